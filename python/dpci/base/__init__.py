"""What every room needs, and knows nothing of the subject."""
