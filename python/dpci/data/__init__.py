"""Converts X and y of any supported type into the arrays that the core takes."""
