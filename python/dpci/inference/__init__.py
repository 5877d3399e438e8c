"""From released values to statements about the population."""
