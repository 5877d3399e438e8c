"""Entry point of the command line: starts the commands, and turns every refusal into one line and exit code 2."""

import sys
from collections.abc import Sequence

from dpci._optional import optional
from dpci.errors import DpciError


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``dpci``.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the name of the program; by default those of the process.

    Returns
    -------
    int
        0 when all went well, 2 for wrong usage or refused input, 130 after Ctrl-C.
    """
    try:
        with optional("typer", extra="cli", what="the command line"):
            # They add their commands to those of the last line.
            from dpci import _audit_command, _ledger_command, _tables_command  # noqa: F401, PLC0415  # optional
            from dpci._commands import app  # noqa: PLC0415  # optional
        app(args=None if argv is None else list(argv), prog_name="dpci")
    except (DpciError, OSError) as error:
        return _refuse(str(error))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    return 0


def _refuse(message: str) -> int:
    print(f"dpci: {' '.join(message.split())}", file=sys.stderr)
    return 2
