"""Damaged files of the user: whatever bytes a table holds, it is read or refused in one line."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from dpci._table_io import read_table
from dpci.cli import main
from dpci.errors import InvalidInput


@pytest.fixture(scope="module")
def packed() -> bytes:
    rng = np.random.default_rng(3)
    lines = ["a,b", *(f"{x},{y}" for x, y in rng.integers(0, 10**6, (400, 2)))]
    return gzip.compress("\n".join(lines).encode(), mtime=0)


def test_flipped_bytes_are_refused(packed: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    # Behind the ten bytes of the header of gzip all is under its checksum, or is the checksum.
    positions = np.random.default_rng(4).choice(np.arange(10, len(packed) - 8), 100, replace=False)
    broken_streams = 0
    for position in positions:
        damaged = bytearray(packed)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        with pytest.raises(InvalidInput, match=r"must") as refusal:
            read_table(path)
        broken_streams += "Error -3 while decompressing" in str(refusal.value)
    # zlib's own error, which is no OSError.
    assert broken_streams > 10


def test_every_truncation_is_refused(packed: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    for length in range(0, len(packed), 37):
        path.write_bytes(packed[:length])
        with pytest.raises(InvalidInput, match=r"must"):
            read_table(path)
    path.write_bytes(packed)
    assert len(read_table(path)["a"]) == 400


def test_a_damaged_parquet_file_is_read_or_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    rng = np.random.default_rng(0)
    pq.write_table(pa.table({"a": rng.integers(0, 9, 500), "b": rng.choice(["x", "y"], 500)}), path)
    whole = path.read_bytes()
    refusals = 0
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        try:
            read_table(path)  # the format has no checksum that must be there
        except InvalidInput:
            refusals += 1
    assert refusals > len(whole) // 2


@pytest.mark.parametrize("argv", [("tables", "--table", "5", "--us"), ("coverage", "--schema", "adult_demo")])
def test_a_damaged_file_on_the_command_line(
    argv: tuple[str, ...], packed: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(packed[:10] + b"\xff" + packed[11:])
    more = () if argv[0] == "tables" else ("--epsilon", "1", "--l2-strength", ".01")
    assert main([*argv, str(path), *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"dpci: a table must be readable, got {str(path)!r}: Error -3 while decompressing")
    assert captured.err.count("\n") == 1
