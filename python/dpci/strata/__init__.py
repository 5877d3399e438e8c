"""One private model for each stratum of a table, by parallel composition."""
