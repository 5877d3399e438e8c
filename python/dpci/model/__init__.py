"""The fit, from its keywords to its result."""
