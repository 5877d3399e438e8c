"""Targets that a released model estimates: differences, predictions, coefficients in the units of a table."""
