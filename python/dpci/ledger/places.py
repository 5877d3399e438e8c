"""Where the file of a ledger may be."""

import os
from pathlib import Path

from dpci.base.validation import broken


def sync_folder(folder: Path) -> None:
    """Write the entries of a folder to the disk."""
    if os.name == "nt":  # where folders cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_path(path: object) -> Path:
    """Return the absolute path of a file, through links, whatever the working folder becomes later."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or not name or "\0" in name or not _is_encodable(name):
        raise broken("path", "the name of a file", path)
    file = Path(os.path.realpath(name))
    if not file.name:
        raise broken("path", "the name of a file", path)
    return file


def shown_path(path: str) -> str:
    """Return a path as texts name it: from the working folder, for a file within it."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or the working folder is gone
        return path


def _is_encodable(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True
