"""Duties of the command line to the process around it: streams that can be written, and an orderly end by a signal."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Final

from dpci.base.startup import EndedBySignal
from dpci.errors import InvalidInput

# Windows has no hangup.
_SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextlib.contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Raise `EndedBySignal` for the signals that would end the process at once, unless it was told to ignore them."""
    is_main = threading.current_thread() is threading.main_thread()
    taken = [number for number in _SIGNALS if is_main and signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _: object) -> None:
        # Another one must not interrupt what the first one cleans up.
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        raise EndedBySignal(number)

    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def check_open() -> None:
    """Refuse a standard output that is closed or cannot be written, before anything is spent for what it will not show.

    Raises
    ------
    InvalidInput
        It is such.
    """
    if sys.stdout is None:
        msg = "the standard output must be open, got a closed one (redirect it to a file or to /dev/null)"
        raise InvalidInput(msg)
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return  # of a program that calls, and keeps what is written
    try:
        os.write(descriptor, b"")
    except BrokenPipeError:
        raise
    except OSError as error:
        msg = f"the standard output must be writable, got {error.strerror}"
        raise InvalidInput(msg) from error


def drop_unwritable() -> None:
    """Forget text that could not be written: the interpreter would try again at its end, and spoil the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
