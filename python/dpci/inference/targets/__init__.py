"""What a released model estimates: linear functions of a target, scaled or in the units of a table."""
