"""The command line."""

from dpci.cli.main import main

__all__ = ["main"]
