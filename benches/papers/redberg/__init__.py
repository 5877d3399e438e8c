"""The experiments of Redberg & Wang (2021): per-instance privacy."""
