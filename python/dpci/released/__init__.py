"""Released and public values that a release leaves behind, without data and without noise."""
