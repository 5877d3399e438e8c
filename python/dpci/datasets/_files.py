"""Finds a public file in the user's folder, in the cache or on the network, and checks that it is the published one."""

import gzip
import importlib
import io
import os
import tempfile
import zipfile
import zlib
from pathlib import Path
from types import ModuleType
from typing import Literal, NamedTuple

from dpci.datasets._catalogue import PublicFile
from dpci.errors import DpciError


class DatasetUnavailable(DpciError):  # named like the other exceptions of dpci
    """A public data file is neither here nor to be had, or is not the published one; the message says what to do."""


class Found(NamedTuple):
    """Where a file lies, and which of the places that is."""

    path: Path
    place: Literal["DPCI_DATA", "cache"]


def find(file: PublicFile) -> Found | None:
    """First copy in the folder that `DPCI_DATA` names, then in the cache; None where there is none."""
    folders: list[tuple[Literal["DPCI_DATA", "cache"], Path]] = []
    if named := os.environ.get("DPCI_DATA"):
        folders.append(("DPCI_DATA", Path(named)))
    if cache := _cache():
        folders.append(("cache", cache))
    for place, folder in folders:
        for path in (folder / f"{file.path}.gz", folder / file.path):
            if path.is_file():
                return Found(path, place)
    return None


def is_intact(file: PublicFile, found: Found) -> bool:
    """Whether the copy is the published file."""
    content = _content(found.path)
    return content is not None and file.digest(content) == file.sha256


def read(file: PublicFile, *, download: bool = True) -> bytes:
    """Uncompressed content of a public file, its checksum verified.

    Raises
    ------
    DatasetUnavailable
        There is no copy and none can be downloaded, or the copy is not the published file.
    """
    if found := find(file):
        content = _content(found.path)
        got = "a damaged gzip archive" if content is None else file.digest(content)
        if content is None or got != file.sha256:
            msg = (
                f"{found.path} must be the published file with sha256 {file.sha256}, got {got}; delete it or replace it"
            )
            raise DatasetUnavailable(msg)
        return content
    if not download:
        msg = f"{_not_here(file)}; downloading was not allowed"
        raise DatasetUnavailable(msg)
    content = _download(file)
    if (got := file.digest(content)) != file.sha256:
        msg = f"the file at {file.url} must have sha256 {file.sha256}, got {got}"
        raise DatasetUnavailable(msg)
    _store(file, content)
    return content


def _cache() -> Path | None:
    pooch = _pooch()
    return Path(pooch.os_cache("dpci")) if pooch else None


def _pooch() -> ModuleType | None:
    try:
        return importlib.import_module("pooch")
    except ImportError:
        return None


def _content(path: Path) -> bytes | None:
    """Uncompressed bytes; None where the archive is damaged."""
    raw = path.read_bytes()
    if path.suffix != ".gz":
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error):
        return None


def _not_here(file: PublicFile) -> str:
    return (
        f"no copy of {file.path} was found: set DPCI_DATA to a folder that holds {file.path} or {file.path}.gz "
        f"(content with sha256 {file.sha256}, published at {file.url})"
    )


def _download(file: PublicFile) -> bytes:
    pooch = _pooch()
    if pooch is None:
        msg = f"{_not_here(file)}, or install dpci[datasets] to download it"
        raise DatasetUnavailable(msg)
    with tempfile.TemporaryDirectory() as folder:
        try:
            # The content is checked by our own digest below: the archive around it has none that is published.
            fetch = pooch.HTTPDownloader(progressbar=False, timeout=30)
            target = Path(folder) / "download"
            fetch(file.url, str(target), None)
            raw = target.read_bytes()
            if file.member:
                return zipfile.ZipFile(io.BytesIO(raw)).read(file.member)
            return gzip.decompress(raw) if file.url_is_gzip else raw
        except (OSError, EOFError, KeyError, ValueError, zlib.error, zipfile.BadZipFile) as error:
            msg = f"{_not_here(file)}; the download failed: {error}"
            raise DatasetUnavailable(msg) from error


def _store(file: PublicFile, content: bytes) -> None:
    """Keep a verified file in the cache, whole or not at all; a cache that cannot be written is no error."""
    cache = _cache()
    if cache is None:
        return
    path = cache / f"{file.path}.gz"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
            part.write(gzip.compress(content, mtime=0))
        Path(part.name).replace(path)
    except OSError:
        return
