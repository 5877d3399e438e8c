"""Brings all commands together in one application."""

# Each module adds its commands when it is imported.
from dpci.cli.app import WrongUsage, app

__all__ = ["WrongUsage", "app"]
