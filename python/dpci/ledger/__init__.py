"""One total for many releases."""
