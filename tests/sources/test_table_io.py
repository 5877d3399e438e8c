"""Files of the user, whole, by batches and damaged: whatever bytes a table holds, it is read or refused in one line."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci.cli.main import main
from dpci.cli.rows import TableRows, UnitOptions
from dpci.errors import InvalidInput
from dpci.schema import Schema
from dpci.sources.files import read_batches
from dpci.sources.find import find_tables
from dpci.sources.formats import Format
from support.commands import ran
from support.people import SCHEMA, as_csv, columns
from support.tables import read_table


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


def test_a_damaged_file_on_the_command_line(packed: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(packed[:10] + b"\xff" + packed[11:])
    more = ("--epsilon", "1", "--l2-strength", ".01")
    captured = ran(capsys, "coverage", "--schema", "adult_demo", path, *more, code=2)
    assert captured.out == ""
    assert captured.err.startswith(f"dpci: a table must be readable, got {str(path)!r}: Error -3 while decompressing")
    assert captured.err.count("\n") == 1


# Batches.


@pytest.mark.parametrize("n_rows", [1, 7, 100, 101, None])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_batches_hold_the_rows_of_the_whole(name: str, n_rows: int | None, tmp_path: Path) -> None:
    table, path = columns(101), tmp_path / name
    if name.endswith(".parquet"):
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table(table), path, row_group_size=30)
    else:
        text = as_csv(table).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    batches = list(read_batches(path, n_rows=n_rows))
    assert {key: [cell for batch in batches for cell in batch[key]] for key in table} == table
    if n_rows is not None:
        assert all(0 < len(batch["age"]) <= n_rows for batch in batches)


def test_a_null_of_a_category_in_parquet_stays_missing(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"ward": pa.array(["A", None, "B"]).dictionary_encode()}), path)
    for n_rows in (None, 2):
        read = [value for batch in read_batches(path, n_rows=n_rows) for value in batch["ward"]]
        assert read == ["A", None, "B"]


def test_columns_that_are_not_asked_for_are_not_read(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns(10)), path)
    (batch,) = read_batches(path, n_rows=None, columns=["ward"])
    assert list(batch) == ["ward"]
    with pytest.raises(InvalidInput, match=r"must have the column 'height', got \['age', 'ward', 'ill'\]"):
        next(read_batches(path, n_rows=5, columns=["ward", "height"]))


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("\ufeffage,ward,ill\r\n20,A,no\r\n\r\n90,B,yes\r\n", ","),
        ('"age", "ward", ill\n"20", "A","no"\n90,"B",yes', ","),
        ('age;name;ward;ill\n20;"a;""b""";A;no\n90;5" of it;B;yes\n', ";"),
        ("ill\tward\tage\nno\tA\t20.0\nyes\tB\t9e1\n", "\t"),
    ],
)
def test_the_many_ways_to_write_csv(text: str, delimiter: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "t.csv").write_bytes(text.encode())
    schema = Schema.from_file(tmp_path / "s.toml")
    rows = TableRows(files=(tmp_path / "t.csv",), schema=schema, form=Format(delimiter=delimiter), chunk_rows=1)
    table, y, _ = UnitOptions().read(rows, np.inf, progress=False)
    X = table.values
    np.testing.assert_allclose(X * schema.row_scale, [[2 * 2 / 72 - 1, 0], [1, 1]], rtol=1e-15)
    assert y.tolist() == [-1.0, 1.0]


STRAY = [
    # The quotes of two people: without a rule, the rows between them are one field.
    ('age,ward,ill\n20,A,"no\n30,B,no\n40,A,yes"\n50,B,yes\n', "must end on its line, got one from line 2 to 4"),
    ('age,ward,ill\n20,A,no\n30,"B,no\n40,A",yes\n', "must end on its line, got one from line 3 to 4"),
    ('age,ward,ill\r\n20,"A\r\n",no\r\n', "must end on its line, got one from line 2 to 3"),
    ('age,ward,ill\r20,"A\r",no\r', "must end on its line, got one from line 2 to 3"),
    ('age,ward,"ill\n"\n20,A,no\n', "must end on its line, got one from line 1 to 2"),
    ('age,ward,ill\n20,A,"no\n30,B,yes\n', "got unexpected end of data after line 1"),
    ('age,ward,ill\n20,"A"x,no\n', "got ',' expected after '\"' after line 1"),
]


@pytest.mark.parametrize(("text", "message"), STRAY)
def test_a_stray_quote_swallows_nobody(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    (tmp_path / "s.toml").write_text(SCHEMA, encoding="utf-8")
    schema = Schema.from_file(tmp_path / "s.toml")
    with pytest.raises(InvalidInput, match=re.escape(message)):
        read_table(path)
    with pytest.raises(InvalidInput, match=re.escape(message)):
        dpci.fit(dpci.Chunks.from_csv(path, schema=schema), budget=dpci.PureDP(1.0), l2_strength=0.1)


def test_every_line_of_a_single_column_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('age\n20\n\n""\n40\n\n', encoding="utf-8")
    assert read_table(tmp_path / "t.csv") == {"age": ["20", "", "", "40", ""]}


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "\r", "\0"])
def test_what_cannot_stand_between_fields(delimiter: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCHEMA, encoding="utf-8")
    schema = Schema.from_file(tmp_path / "s.toml")
    with pytest.raises(InvalidInput, match="the delimiter must be one character, and neither a quote nor"):
        dpci.Chunks.from_csv(tmp_path / "t.csv", schema=schema, delimiter=delimiter)


def test_a_table_without_rows_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "t.csv").write_text("age,ward,ill\n", encoding="utf-8")
    common = [str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.toml"), "--epsilon", "1", "--l2-strength", "0.1"]
    captured = ran(capsys, "fit", *common, code=2)
    assert captured.out == ""
    assert "at least" in captured.err
    assert captured.err.count("\n") == 1


def test_files_of_a_folder_and_of_a_pattern(tmp_path: Path) -> None:
    names = ["b.parquet", "a.csv", ".hidden.csv", "_SUCCESS", "notes.txt", "c.CSV.GZ"]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "d.csv").touch()
    (tmp_path / "[1].csv").touch()
    found = [tmp_path / name for name in ("a.csv", "b.parquet", "c.CSV.GZ")]
    assert find_tables([tmp_path]) == (tmp_path / "[1].csv", *found)
    assert find_tables([tmp_path / "?.*"]) == tuple(found)
    assert find_tables([tmp_path / "**" / "d.csv"]) == (tmp_path / "deep" / "d.csv",)
    # A file whose name looks like a pattern is that file.
    assert find_tables([tmp_path / "[1].csv"]) == (tmp_path / "[1].csv",)
    # A file that is not there is refused when it is read.
    assert find_tables([tmp_path / "none.csv"]) == (tmp_path / "none.csv",)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InvalidInput, match="a folder must have at least one"):
        find_tables([tmp_path / "deep", tmp_path / "nothing"])


def test_nobody_counts_twice(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv.gz", "parts/c.csv", "parts/a.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    table = tmp_path / "a.csv"
    (tmp_path / "link.csv").symlink_to(table)
    (tmp_path / "hard.csv").hardlink_to(table)
    for other in (table, tmp_path / "parts" / ".." / "a.csv", tmp_path / "link.csv", tmp_path / "hard.csv", tmp_path):
        with pytest.raises(InvalidInput, match=r"a table must be named once, got .* and .*, which are one file"):
            find_tables([table, other])
    with pytest.raises(InvalidInput, match="a table must be named once"):
        find_tables([Path("none.csv"), Path("./none.csv")])
    # The same name elsewhere is another table; in one folder it is a copy in another format.
    assert len(find_tables([table, tmp_path / "parts"])) == 3
    for name in ("a.csv.gz", "a.parquet", "a.CSV.GZ"):
        (tmp_path / "parts" / name).touch()
        with pytest.raises(InvalidInput, match="tables of a folder must differ in more than their endings, got"):
            find_tables([tmp_path / "parts"])
        (tmp_path / "parts" / name).unlink()


def test_parquet_columns_have_distinct_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table([pa.array([1.0]), pa.array([2.0])], names=["age", "age"]), path)
    for more in ((), ("--chunk-rows", "10")):
        arguments = ["fit", str(path), "--schema", "adult_demo", "--epsilon", "1", "--l2-strength", "0.1", *more]
        assert main(arguments) == 2
        assert capsys.readouterr().err == f"dpci: {path} must have distinct column names, got ['age', 'age']\n"
