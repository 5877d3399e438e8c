"""Redberg & Wang (2021): per-instance privacy."""
