"""Turns X and y, whatever they are, into what the core takes."""
