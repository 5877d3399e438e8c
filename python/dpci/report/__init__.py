"""How a released model is shown: as text, as a plot, as an HTML page."""
