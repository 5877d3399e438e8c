"""Helpers that every folder may use; they know nothing of privacy or of statistics."""
