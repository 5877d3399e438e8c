"""Brings all commands together in one application."""

from dpci.cli.app import WrongUsage, app

# Each module adds its commands when it is imported.
from dpci.cli.commands import (
    audit,  # noqa: F401
    check,  # noqa: F401
    completion,  # noqa: F401
    data,  # noqa: F401
    fit,  # noqa: F401
    ledger,  # noqa: F401
    model,  # noqa: F401
    plan,  # noqa: F401
    regress,  # noqa: F401
    tables,  # noqa: F401
    tune,  # noqa: F401
    verify,  # noqa: F401
)

__all__ = ["WrongUsage", "app"]
