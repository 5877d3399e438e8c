"""The command line: ``dpci``, and ``python -m dpci``."""

from dpci.cli.main import main

__all__ = ["main"]
