"""How a released model is shown."""
