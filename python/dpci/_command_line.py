"""Brings all commands together in one application."""

# Each module adds its commands when it is imported.
from dpci import (
    _audit_command,  # noqa: F401
    _commands,  # noqa: F401
    _completion_command,  # noqa: F401
    _data_command,  # noqa: F401
    _ledger_command,  # noqa: F401
    _model_commands,  # noqa: F401
    _tables_command,  # noqa: F401
)
from dpci._cli_app import WrongUsage, app

__all__ = ["WrongUsage", "app"]
