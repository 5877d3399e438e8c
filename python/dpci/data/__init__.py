"""X and y, whatever they are, as the core takes them."""
