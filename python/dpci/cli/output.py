"""Files that commands write: checked before any work, complete or absent, never in place of others without --force."""

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from dpci.errors import DpciError, InvalidInput

# What SQLite keeps beside a ledger at times, and what other programs lock it with.
_LEDGER_ENDINGS: Final = ("", "-wal", "-journal", "-shm", "-lock")


class NotDelivered(DpciError):
    """A release that was paid for could not be written in full; the message says where the model is."""

    code = "not_delivered"


class NoCoefficients(DpciError):
    """A linear regression was released and paid for, and the noise hides it; the message says where the release is."""

    code = "hidden_by_noise"


def check_new(option: str, path: Path | None, *, force: bool, sources: Sequence[Path] = ()) -> None:
    """Refuse a file that could not be written once the work is done, or would replace another one.

    Parameters
    ----------
    option : str
        Which named it.
    path : Path, optional
        None is not a file.
    force : bool
        Whether a file that exists may be replaced.
    sources : sequence of Path
        Files that are read, and are never replaced.
    """
    if path is None:
        return
    try:
        if path.is_dir() or not path.parent.is_dir():
            raise InvalidInput(f"{option} must name a file in a folder that exists, got {str(path)!r}")
        check_unread(option, path, sources)
        if path.is_file() and not force:
            raise InvalidInput(f"{option} must name a new file, got {str(path)!r}, which exists (--force replaces it)")
        if not _is_device(path):
            temporary = _beside(path)
            try:
                temporary.open("xb").close()
            finally:
                temporary.unlink(missing_ok=True)  # also when a signal ends the program here
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise _unwritable(option, path, error) from error


def check_text(option: str, path: Path | None) -> None:
    """Refuse to write text into a file whose name says Parquet, which nothing could read then."""
    if path is not None and path.suffix.lower() == ".parquet":
        raise InvalidInput(f"{option} must not end in .parquet, because the output is text, got {str(path)!r}")


PAGES: Final = ("", ".html", ".htm")
"""Endings of the names of files that hold a page."""
TEXTS: Final = (*PAGES, ".md", ".markdown", ".txt")
"""Endings of the names of files that hold a page or Markdown."""


def check_form(option: str, path: Path | None, endings: Sequence[str]) -> None:
    """Refuse a file whose name says another form than what is written into it."""
    if path is not None and path.suffix.lower() not in endings:
        named = " or ".join(endings[1:])
        raise InvalidInput(f"{option} must end in {named}, got {str(path)!r} (a browser prints a page as PDF)")


def check_unread(option: str, path: Path | None, sources: Sequence[Path]) -> None:
    """Refuse to replace a file that is read, whether it is there yet or not."""
    from dpci.sources.files import identity  # noqa: PLC0415  # with all of NumPy, for which completion does not wait

    if path is not None and identity(path) in {identity(source) for source in sources}:
        raise InvalidInput(f"{option} must not be one of the input files, got {str(path)!r}")


def check_all_new(outputs: Mapping[str, Path | None], *, force: bool, sources: Sequence[Path] = ()) -> None:
    """Refuse files, by the options that named them, as :func:`check_new` and :func:`check_different` do."""
    for option, path in outputs.items():
        check_new(option, path, force=force, sources=sources)
    check_different(outputs)


def check_different(outputs: Mapping[str, Path | None]) -> None:
    """Refuse two options that name one file, of which the second would replace the first."""
    from dpci.sources.files import identity  # noqa: PLC0415  # likewise

    named: dict[object, str] = {}
    for option, path in outputs.items():
        if path is not None and (other := named.setdefault(identity(path), option)) != option:
            raise InvalidInput(f"{other} and {option} must name different files, got {str(path)!r} for both")


def ledger_files(path: Path) -> list[Path]:
    """Return the file of a ledger and those that may appear beside it."""
    real = Path(os.path.realpath(path))
    return [real.with_name(real.name + ending) for ending in _LEDGER_ENDINGS]


@contextlib.contextmanager
def new_file(option: str, path: Path, *, force: bool) -> Iterator[Path]:
    """Give the name of a file to be written, which takes its place when all is well and is removed when it is not."""
    try:
        if _is_device(path):
            yield path
            return
        temporary = _beside(path)
        try:
            yield temporary
            with temporary.open("r+b") as file:  # Windows syncs only what may be written
                os.fsync(file.fileno())
            _publish(temporary, Path(os.path.realpath(path)), force=force)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(option, path, error) from error


def _unwritable(option: str, path: Path, error: Exception) -> InvalidInput:
    """Return the refusal of a file that could not be written."""
    reason = getattr(error, "strerror", None) or error
    return InvalidInput(f"{option} must name a file that can be written, got {str(path)!r}: {reason}")


def _is_device(path: Path) -> bool:
    """Whether to write to it directly, as to /dev/stdout."""
    return path.exists() and not path.is_file()


def _beside(path: Path) -> Path:
    """Return another name on the same file system, with the same ending: of a link, beside what it leads to."""
    path = Path(os.path.realpath(path))
    # Random: what a killed program has left is in nobody's way, and nobody can wait for the name.
    return path.with_name(f".{secrets.token_hex(8)}.{path.name}")


def _publish(temporary: Path, path: Path, *, force: bool) -> None:
    if not force:
        try:
            # Fails where another program has made the file meanwhile, which replacing it would not.
            path.hardlink_to(temporary)
        except FileExistsError:
            raise
        except OSError:
            pass  # a file system without hard links
        else:
            return
    temporary.replace(path)
