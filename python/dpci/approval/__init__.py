"""Facts that whoever approves a release has to know, held against its schema and its ledger, as one document."""
