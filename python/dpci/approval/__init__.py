"""What whoever approves a release has to know of it, held against its schema and its ledger, as one document."""
