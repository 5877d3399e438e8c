"""Lets Ctrl-C end the command line quietly before its work begins and after it; imported before all else."""

import os
import signal
import sys
import threading
from types import FrameType
from typing import Final

_INTERRUPTED: Final = 130


class EndedBySignal(BaseException):
    """A signal asks the program to end; like Ctrl-C, this passes by whatever handles errors, and cleans up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _is_command_line() -> bool:
    """Whether this process was started as ``dpci`` or ``python -m dpci``, and not as a program that imports dpci."""
    started = sys.argv[0] if getattr(sys, "argv", None) else ""
    if started == "-m":  # what Python says until the module is found
        options = sys.orig_argv[1:]
        return options[options.index("-m") + 1 :][:1] == ["dpci"] if "-m" in options else "-mdpci" in options
    name = os.path.basename(started)  # noqa: PTH119  # pathlib takes long to import
    return name in {"dpci", "dpci.exe", "dpci-script.py"}


def _end(_: int, __: FrameType | None) -> None:
    # Nothing is half done, and all is printed; an exception might get lost while modules are imported, or be printed.
    os._exit(_INTERRUPTED)


def begin() -> None:
    """Take over Ctrl-C up to :func:`hand_over`, if this is the command line and nobody else has."""
    if (
        _is_command_line()
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        signal.signal(signal.SIGINT, _end)


def hand_over() -> None:
    """Let Ctrl-C raise ``KeyboardInterrupt`` again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


begin()
