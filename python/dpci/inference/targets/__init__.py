"""Targets that a released model estimates: linear functions of them, scaled or in the units of a table."""
