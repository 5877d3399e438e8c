"""Files in the layout of KDD Cup 1999, made up and put where the loaders look for the published ones."""

import dataclasses
import functools
import gzip
import hashlib
from pathlib import Path

import numpy as np
import pooch
import pytest

from dpci import datasets
from dpci.datasets import files as _files
from dpci.datasets import loaders as _loaders
from dpci.datasets import simulated as _simulated
from dpci.datasets.catalogue import KDDCUP99

CHUNK_ROWS = 100

needs_percent10 = pytest.mark.skipif(
    _files.find(KDDCUP99.files["percent10"]) is None, reason="kddcup99 is neither in DPCI_DATA nor in the cache"
)


def published_lines(n: int, seed: int = 0) -> list[bytes]:
    """Lines in the layout of the file: any listed category, numbers within their bounds and beyond, many zeros."""
    return list(_lines(n, seed))


@functools.cache
def _lines(n: int, seed: int) -> tuple[bytes, ...]:
    rng = np.random.default_rng(seed)
    schema = datasets.load_schema("kddcup99")
    columns = {schema.target.column: rng.choice([*schema.target.negative, *schema.target.positive * 20], n)}
    for column in schema.columns:
        if hasattr(column, "categories"):
            columns[column.name] = rng.choice(column.categories, n)
        elif column.name.endswith("_rate"):
            shares = rng.integers(0, 101, n) * rng.integers(0, 2, n)
            columns[column.name] = np.array([f"{share / 100:.2f}" for share in shares])
        else:
            least = int(1.2 * column.upper) + 1
            columns[column.name] = (rng.integers(0, least, n) * (rng.random(n) < 0.2)).astype(str)
    return tuple(
        ",".join(cells).encode() + b"\n" for cells in zip(*(columns[c] for c in KDDCUP99.layout.columns), strict=True)
    )


def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty DPCI_DATA, an empty cache, no network, and small chunks."""
    monkeypatch.setenv("DPCI_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(_loaders, "CHUNK_ROWS", CHUNK_ROWS)
    monkeypatch.setattr(_simulated, "CHUNK_ROWS", CHUNK_ROWS)

    def offline(*_: object) -> None:
        raise OSError("the network is down")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", offline)
    return tmp_path


def publisher(home: Path, monkeypatch: pytest.MonkeyPatch):
    """Make some bytes the published archive, or some lines the published 10% file, and put them where they belong."""

    def put(name: str, archive: bytes, sha256: str) -> Path:
        monkeypatch.setitem(KDDCUP99.files, name, dataclasses.replace(KDDCUP99.files[name], sha256=sha256))
        path = home / "data" / f"{KDDCUP99.files[name].path}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(archive)
        return path

    def full(lines: list[bytes], archive: bytes | None = None) -> Path:
        archive = gzip.compress(b"".join(lines), compresslevel=1) if archive is None else archive
        return put("full", archive, hashlib.sha256(archive).hexdigest())

    def percent10(lines: list[bytes]) -> Path:
        content = b"".join(lines)
        return put("percent10", gzip.compress(content, compresslevel=1), hashlib.sha256(content).hexdigest())

    return {"full": full, "percent10": percent10}
