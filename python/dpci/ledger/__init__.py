"""The ledger: one total that many releases draw on, in memory or in a file."""
