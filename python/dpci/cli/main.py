"""Entry point of the command line: starts the commands, and turns what goes wrong into one line and an exit code."""

import contextlib
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from json import dumps as to_json
from typing import Final

from dpci.base import startup as _startup
from dpci.base.habits import OPTIONS, instead
from dpci.base.optional import optional
from dpci.base.startup import EndedBySignal
from dpci.cli.output import NoCoefficients, NotDelivered
from dpci.cli.words import SHELLS, answer
from dpci.errors import BudgetExceeded, DpciError, InvalidInput, ReleaseFailed

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
    """Refuse a standard output that cannot be written, before anything is spent for what it will not show."""
    if sys.stdout is None:
        raise InvalidInput("the standard output must be open, got a closed one (redirect it to a file or to /dev/null)")
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return  # of a program that calls, and keeps what is written
    try:
        os.write(descriptor, b"")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InvalidInput(f"the standard output must be writable, got {error.strerror}") from error


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


_ASKS: Final = "_DPCI_COMPLETE"
REFUSED: Final = 2
BUDGET_EXCEEDED: Final = 3
RELEASE_FAILED: Final = 4
NO_COEFFICIENTS: Final = 5
DEFECT: Final = 70
"""EX_SOFTWARE of sysexits.h."""
NOT_DELIVERED: Final = 74
"""EX_IOERR of sysexits.h."""
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
"""Exit code that a shell reports of a program that SIGPIPE ends."""
_LONGEST: Final = 4_000
_ADVISED: Final = re.compile(
    r"""(?:(?<=pass )|(?<=use ))(l2_strength|moments|calibration|projection|n_public)=['"]?(\w*)['"]?"""
)
"""Keywords of Python in advice, which options have the names of."""
_CODES: Final[dict[type, int]] = {
    BudgetExceeded: BUDGET_EXCEEDED,
    ReleaseFailed: RELEASE_FAILED,
    NoCoefficients: NO_COEFFICIENTS,
    NotDelivered: NOT_DELIVERED,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``dpci``.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the name of the program; by default those of the process.

    Returns
    -------
    int
        0 when all went well, 1 for a claim that an audit refuted, 2 for wrong usage or refused input, 3 for a budget
        that the ledger does not cover, 4 for a release that failed after its budget was spent (private errors), 5 for a
        linear regression that was released but is within the noise, 70 for a defect, 74 for a release that could not be
        written in full, 130 after Ctrl-C, 129 and 143 after SIGHUP and SIGTERM, 141 when the output was closed.
    """
    try:
        arguments = list(sys.argv[1:] if argv is None else argv)
        report = _Report(as_json="--json" in arguments)
        try:
            with signals_as_exceptions():
                return _guarded(arguments, report)
        except EndedBySignal as end:
            return 128 + end.number
        finally:
            drop_unwritable()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        _startup.begin()


def _guarded(arguments: list[str], report: "_Report") -> int:
    try:
        check_open()
        if (asked := os.environ.get(_ASKS)) in SHELLS:
            return answer(asked)
        with warnings.catch_warnings():
            warnings.showwarning = report.warning
            return _run(arguments, report)
    except BrokenPipeError:
        return BROKEN_PIPE
    except (DpciError, OSError) as error:
        return report.error(error, _CODES.get(type(error), REFUSED))
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  # the last resort: a defect has an exit code of its own
        return report.error(error, DEFECT)


def _run(arguments: list[str], report: "_Report") -> int:
    if arguments == ["--version"]:  # asked for by programs, which need not wait for the commands
        from dpci._core import __version__  # noqa: PLC0415  # completion does without the core

        print(f"dpci {__version__}", flush=True)
        return 0
    with optional("typer", extra="cli", what="the command line"):
        from dpci.cli.commands.all import WrongUsage, command  # noqa: PLC0415  # optional
    _startup.hand_over()
    try:
        code = command()(args=arguments, prog_name="dpci", standalone_mode=False)
        # What is still in the buffer would otherwise break the pipe when the process ends.
        sys.stdout.flush()
    except WrongUsage as error:
        error.message += instead(getattr(error, "option_name", None), OPTIONS)
        if not report.as_json:
            error.show()
            return REFUSED
        return report.error(error, REFUSED, error.format_message())
    except SystemExit as stop:
        # The library of the command line ends the process itself where a pipe is closed.
        if isinstance(stop.__context__, BrokenPipeError):
            return BROKEN_PIPE
        return stop.code if isinstance(stop.code, int) else 0
    return code if isinstance(code, int) else 0


class _Report:
    """Says what went wrong on stderr: a line of text, or of JSON for a program that asked for it."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def error(self, error: Exception, code: int, message: str | None = None) -> int:
        notes = getattr(error, "__notes__", ())
        text = _as_options(_on_one_line(" ".join([message or str(error) or repr(error), *notes])))
        kind = type(error).__name__
        if self.as_json:
            where = {"traceback": traceback.format_exc()} if code == DEFECT else {}
            facts = {"type": kind, "message": text, "exit_code": code, **where}
            _say(to_json({"error": facts}, ensure_ascii=False))
        elif code == DEFECT:
            _say(traceback.format_exc().rstrip())
            _say(f"dpci: a defect of dpci, please report it: {kind}: {text}")
        else:
            if code == NOT_DELIVERED and not isinstance(error.__cause__, (DpciError, OSError)):
                _say(traceback.format_exc().rstrip())
            _say(f"dpci: {text}")
        return code

    def warning(self, message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        text = _on_one_line(str(message))
        if self.as_json:
            _say(to_json({"warning": {"type": category.__name__, "message": text}}, ensure_ascii=False))
        else:
            _say(f"dpci: warning: {text}")


def _on_one_line(text: str) -> str:
    """Return a message without what could change a terminal; of one that quotes a whole file the two ends."""
    from dpci.base.tables import printable  # noqa: PLC0415  # with all of NumPy, for which completion does not wait

    text = printable(" ".join(text.split()))
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} [...] {text[-half:]}"


def _as_options(text: str) -> str:
    """Return a message that advises options where it advised keywords of Python."""
    return _ADVISED.sub(lambda found: f"--{found[1].replace('_', '-')} {found[2]}".rstrip(), text)


def _say(text: str) -> None:
    # Without the second stream there is still the exit code; None would be the first one.
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr)
