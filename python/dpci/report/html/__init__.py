"""One self-contained HTML page about a released model."""
