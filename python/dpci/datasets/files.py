"""Finds a public file in the user's folder, in the cache or on the network, and checks that it is the published one."""

import gzip
import hashlib
import importlib
import io
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Literal, NamedTuple

from dpci.datasets.catalogue import PublicFile
from dpci.errors import DpciError, InvalidInput


class DatasetUnavailable(DpciError):  # named like the other exceptions of dpci
    """A public data file is not available, or is not the published one; the message says what to do.

    Attributes
    ----------
    code
        ``"dataset_unavailable"``.
    file
        The published file's name; None of one that the caller named.
    """

    code = "dataset_unavailable"
    file: str | None = None


class Found(NamedTuple):
    """Where a file lies, and which of the places that is."""

    path: Path
    place: Literal["DPCI_DATA", "cache"]


def find(file: PublicFile) -> Found | None:
    """First copy in the folder that `DPCI_DATA` names, then in the cache of downloads; None where there is none."""
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
    if file.sha256_of == "archive":
        with found.path.open("rb") as archive:
            return _digest(archive) == file.sha256
    content = _content(found.path)
    return content is not None and file.digest(content) == file.sha256


def read(file: PublicFile, *, download: bool = True) -> bytes:
    """Uncompressed content of a public file, its checksum verified.

    Raises
    ------
    DatasetUnavailable
        There is no copy and none can be downloaded, or the copy is not the published file.
    InvalidInput
        The file is one that only `stream` reads.
    """
    if file.sha256_of == "archive":
        raise InvalidInput(
            f"a table must be small enough to be held as text, got {file.path}: a loader streams it into sparse rows"
        )
    if found := find(file):
        content = _content(found.path)
        got = "a damaged gzip archive" if content is None else file.digest(content)
        if content is None or got != file.sha256:
            msg = (
                f"{found.path} must be the published file with sha256 {file.sha256}, got {got}; delete it or replace it"
            )
            raise DatasetUnavailable(msg, file=file.path)
        return content
    _check_allowed(file, download=download)
    content = _download(file)
    if (got := file.digest(content)) != file.sha256:
        msg = f"the file at {file.url} must have sha256 {file.sha256}, got {got}"
        raise DatasetUnavailable(msg, file=file.path)
    _store(file, content)
    return content


@contextmanager
def stream(file: PublicFile, *, download: bool = True) -> Iterator[io.BufferedIOBase]:
    """Uncompressed content of a published gzip archive as a stream of lines; the archive is verified beforehand.

    Raises
    ------
    DatasetUnavailable
        See `read`; also for a file without compression, whose checksum is not known.
    """
    found = find(file)
    path = found.path if found else _download_archive(file, download=download)
    if path.suffix != ".gz":
        msg = (
            f"{path} must be the published archive {path.name}.gz, got an uncompressed file: only the checksum of the "
            "archive is known; put the archive beside it"
        )
        raise DatasetUnavailable(msg, file=file.path)
    # One handle for both passes: what is parsed is what was verified.
    with path.open("rb") as archive:
        if (got := _digest(archive)) != file.sha256:
            msg = f"{path} must be the published archive with sha256 {file.sha256}, got {got}; delete it or replace it"
            raise DatasetUnavailable(msg, file=file.path)
        archive.seek(0)
        try:
            with gzip.GzipFile(fileobj=archive) as content:
                yield content
        except (OSError, EOFError, zlib.error) as error:
            msg = f"{path} must be a whole gzip archive, got a damaged one: {error}"
            raise DatasetUnavailable(msg, file=file.path) from error


def _digest(archive: io.BufferedIOBase) -> str:
    return hashlib.file_digest(archive, "sha256").hexdigest()


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
    names = f"{file.path}.gz" if file.sha256_of == "archive" else f"{file.path} or {file.path}.gz"
    return (
        f"no copy of {file.path} was found: set DPCI_DATA to a folder that holds {names} "
        f"({file.sha256_of} with sha256 {file.sha256}, published at {file.url})"
    )


def _fetch(file: PublicFile, target: Path) -> None:
    """Download the bytes at the public address; the caller checks them."""
    pooch = _pooch()
    if pooch is None:
        raise _no_pooch(file)
    try:
        pooch.HTTPDownloader(progressbar=False, timeout=30)(file.url, str(target), None)
    except (OSError, ValueError) as error:
        raise _download_failed(file, error) from error


def _check_allowed(file: PublicFile, *, download: bool) -> None:
    if not download:
        raise DatasetUnavailable(f"{_not_here(file)}; downloading was not allowed", file=file.path)


def _no_pooch(file: PublicFile) -> DatasetUnavailable:
    return DatasetUnavailable(
        f"{_not_here(file)}; a download needs pooch: pip install 'dpci[datasets]'", file=file.path
    )


def _download_failed(file: PublicFile, error: Exception) -> DatasetUnavailable:
    return DatasetUnavailable(f"{_not_here(file)}; the download failed: {error}", file=file.path)


def _download(file: PublicFile) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "download"
        # The content is checked by our own digest: the archive around it has none that is published.
        _fetch(file, target)
        try:
            raw = target.read_bytes()
            if file.member:
                return zipfile.ZipFile(io.BytesIO(raw)).read(file.member)
            return gzip.decompress(raw) if file.url_is_gzip else raw
        except (OSError, EOFError, KeyError, ValueError, zlib.error, zipfile.BadZipFile) as error:
            raise _download_failed(file, error) from error


def _download_archive(file: PublicFile, *, download: bool) -> Path:
    """Fetch a published archive into the cache, whole and verified or not at all, and return where it lies."""
    _check_allowed(file, download=download)
    cache = _cache()
    if cache is None:
        raise _no_pooch(file)
    path = cache / f"{file.path}.gz"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            part = Path(folder) / "download"
            _fetch(file, part)
            with part.open("rb") as archive:
                got = _digest(archive)
            if got != file.sha256:
                msg = f"the file at {file.url} must have sha256 {file.sha256}, got {got}"
                raise DatasetUnavailable(msg, file=file.path)
            part.replace(path)
    except OSError as error:
        raise _download_failed(file, error) from error
    return path


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
