"""Brings all commands together in one application."""

import functools
from typing import Any

from typer.main import get_command

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
    schema,  # noqa: F401
    tune,  # noqa: F401
    verify,  # noqa: F401
)

__all__ = ["WrongUsage", "app", "command"]


@functools.cache
def command() -> Any:  # noqa: ANN401  # of a class that typer does not export
    """Return all commands as one, which is made of their signatures once in a process."""
    return get_command(app)
