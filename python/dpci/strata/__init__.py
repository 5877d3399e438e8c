"""One private model for each stratum of a table, at the cost of one."""
