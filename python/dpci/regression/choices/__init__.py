"""The public choices of a moment matrix: bounds of columns, and the rest."""
