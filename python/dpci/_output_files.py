"""Files that commands write: checked before any work, complete or absent, and never in place of others unasked."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpci.errors import InvalidInput


def check_new(option: str, path: Path | None, *, force: bool, sources: Sequence[Path] = ()) -> None:
    """Refuse a file that could not be written once the work is done, or would replace another one.

    Parameters
    ----------
    option : str
        Which named it.
    path : Path, optional
        None is no file.
    force : bool
        Whether a file that exists may be replaced.
    sources : sequence of Path
        What is read, and is never replaced.
    """
    if path is None:
        return
    try:
        if path.is_dir() or not path.parent.is_dir():
            msg = f"{option} must name a file in a folder that exists, got {str(path)!r}"
            raise InvalidInput(msg)
        if path.exists() and any(source.exists() and path.samefile(source) for source in sources):
            msg = f"{option} must not be a file that is read, got {str(path)!r}"
            raise InvalidInput(msg)
        if path.is_file() and not force:
            msg = f"{option} must name a new file without --force, got {str(path)!r}, which exists"
            raise InvalidInput(msg)
        if not _is_device(path):
            temporary = _beside(path)
            temporary.open("xb").close()
            temporary.unlink()
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise unwritable(option, path, error) from error


@contextlib.contextmanager
def new_file(path: Path, *, force: bool) -> Iterator[Path]:
    """Give the name of a file to be written, which takes its place when all is well and is removed when it is not."""
    if _is_device(path):
        yield path
        return
    temporary = _beside(path)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        _publish(temporary, Path(os.path.realpath(path)), force=force)
    finally:
        temporary.unlink(missing_ok=True)


def unwritable(option: str, path: Path, error: Exception) -> InvalidInput:
    """Return the refusal of a file that could not be written."""
    reason = getattr(error, "strerror", None) or error
    return InvalidInput(f"{option} must name a file that can be written, got {str(path)!r}: {reason}")


def _is_device(path: Path) -> bool:
    """Whether to write to it directly, as to /dev/stdout."""
    return path.exists() and not path.is_file()


def _beside(path: Path) -> Path:
    """Return another name on the same file system, with the same ending: of a link, beside what it leads to."""
    path = Path(os.path.realpath(path))
    return path.with_name(f".{os.getpid()}.{path.name}")


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
