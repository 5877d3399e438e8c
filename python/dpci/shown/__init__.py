"""Documents about results, and the writers that turn any of them into text, a page or Markdown."""
