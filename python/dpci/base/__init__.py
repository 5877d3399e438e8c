"""Helpers that every folder may use; they know nothing about privacy or statistics."""
