"""Where the file of a ledger may be."""

import os
from pathlib import Path

from dpci.errors import InvalidInput


def sync_folder(folder: Path) -> None:
    """Write the entries of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_path(path: object) -> Path:
    """Return the absolute path of a file, through links, whatever the working folder becomes later."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or not name or "\0" in name or not _is_encodable(name):
        raise InvalidInput(f"path must be the name of a file, got path={path!r}")
    file = Path(os.path.realpath(name))
    if not file.name:
        raise InvalidInput(f"path must be the name of a file, got path={path!r}")
    return file


def _is_encodable(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True
