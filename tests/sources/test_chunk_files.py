"""``Chunks`` of CSV and Parquet files: the fit of the table in memory, whatever the batches, and what is refused."""

import gzip
import os
import shutil
import sys
import tracemalloc

import numpy as np
import pytest

import dpci
from dpci.errors import DpciError, InvalidInput
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema
from support.parts import CountingChunks, make_rows

X, Y, _ = make_rows(2000, 3)
# Chunks of a schema would take its blocks by default, encoded arrays the ball.
SETTINGS = {"budget": dpci.ZCDP(0.5), "l2_strength": 0.05, "seed": 3, "rows": 1.0}


def fit(chunks, **keywords):
    return dpci.fit(chunks, **{**SETTINGS, **keywords})


def in_memory(X, y, **keywords):
    return dpci.fit(X, y, **{**SETTINGS, **keywords})


def assert_same(ours, theirs):
    """Parameters of the columns as a fit saw them, for encoded arrays have no units of a table."""
    np.testing.assert_allclose(ours.scaled.params, theirs.params, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.scaled.cov, theirs.cov, rtol=0, atol=1e-10)


SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=0, upper=100),
        CategoricalColumn(name="sex", categories=("F", "M"), reference="F", unknown="zeros"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)


def people(n=500):
    rng = np.random.default_rng(5)
    age, sex = rng.integers(0, 101, n), rng.choice(["F", "M"], n)
    ill = np.where(age + 20 * (sex == "M") + rng.normal(0, 20, n) > 60, "yes", "no")
    return {"id": np.arange(n), "age": age, "sex": sex, "ill": ill}


def write_csv(path, table, delimiter=","):
    lines = [delimiter.join(table)] + [delimiter.join(map(str, row)) for row in zip(*table.values(), strict=True)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("chunk_rows", [1000, 500, 77])
def test_csv_files(tmp_path, chunk_rows):
    table = people()
    expected = in_memory(*SCHEMA.transform(table)[:2])
    whole = write_csv(tmp_path / "people.csv", table, ";")
    chunks = dpci.Chunks.from_csv(whole, schema=SCHEMA, delimiter=";", chunk_rows=chunk_rows)
    result = fit(chunks)
    assert result.names == ("age", "sex=M", "intercept")
    assert_same(result, expected)
    halves = [
        write_csv(tmp_path / f"{k}.csv", {name: column[k * 250 : (k + 1) * 250] for name, column in table.items()})
        for k in range(2)
    ]
    assert_same(fit(dpci.Chunks.from_csv(halves, schema=SCHEMA, chunk_rows=chunk_rows)), expected)


def test_parquet_files(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = people()
    pq.write_table(pa.table(table), tmp_path / "people.parquet", row_group_size=90)
    expected = in_memory(*SCHEMA.transform(table)[:2])
    path = str(tmp_path / "people.parquet")
    assert_same(fit(dpci.Chunks.from_parquet(path, schema=SCHEMA, chunk_rows=77)), expected)

    numbers = {"u": X[:, 0], "v": X[:, 1].astype(np.float32), "flag": Y.astype(bool), "w": X[:, 2]}
    pq.write_table(pa.table(numbers), tmp_path / "numbers.parquet", row_group_size=90)
    path = tmp_path / "numbers.parquet"
    rows = np.column_stack([X[:, 0], X[:, 1].astype(np.float32), X[:, 2]])
    expected = in_memory(rows, Y.astype(bool), rows="clip")
    chunks = dpci.Chunks.from_parquet(path, target="flag", chunk_rows=77)
    assert chunks.names == ("u", "v", "w")
    assert_same(fit(chunks, rows="clip"), expected)
    copy = shutil.copy(path, tmp_path / "copy.parquet")
    two = dpci.Chunks.from_parquet((each for each in (path, copy)), target="flag", columns=["w", "u"])
    twice = np.vstack([X[:, [2, 0]]] * 2)
    assert_same(fit(two), in_memory(twice, np.tile(Y, 2).astype(bool)))


def test_files_that_are_not_as_described(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = people(20)
    write_csv(tmp_path / "people.csv", {name: table[name] for name in ("age", "sex")})
    with pytest.raises(
        InvalidInput, match=r"the table must have the column 'ill', got \['age', 'sex'\] in .*people.csv"
    ):
        fit(dpci.Chunks.from_csv(tmp_path / "people.csv", schema=SCHEMA))
    with pytest.raises(InvalidInput, match=r"a table must be readable, got .*none.csv"):
        fit(dpci.Chunks.from_csv(tmp_path / "none.csv", schema=SCHEMA))
    with pytest.raises(
        InvalidInput, match=r"a table must be a file of the kind .csv, .csv.gz, .parquet, .* got .*people.txt"
    ):
        fit(dpci.Chunks.from_csv(tmp_path / "people.txt", schema=SCHEMA))
    with pytest.raises(InvalidInput, match=r"schema must be a dpci.schema.Schema or PartialSchema, got schema=None"):
        dpci.Chunks.from_csv(tmp_path / "people.csv", schema=None)
    with pytest.raises(InvalidInput, match=r"chunk_rows must be at least 1, got chunk_rows=0"):
        dpci.Chunks.from_csv(tmp_path / "people.csv", schema=SCHEMA, chunk_rows=0)
    with pytest.raises(InvalidInput, match=r"path must name at least one file, got no file"):
        dpci.Chunks.from_csv([], schema=SCHEMA)
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(table), path)
    with pytest.raises(InvalidInput, match=r"target must name a column if no schema is given, got target=None"):
        dpci.Chunks.from_parquet(path)
    with pytest.raises(InvalidInput, match=r"target and columns must be None with a schema, got target='ill'"):
        dpci.Chunks.from_parquet(path, schema=SCHEMA, target="ill")
    with pytest.raises(InvalidInput, match=r"columns must not hold the target, got 'ill' among"):
        dpci.Chunks.from_parquet(path, target="ill", columns=["age", "ill"])
    with pytest.raises(InvalidInput, match=r"the table must have the column 'height', got .* in .*people.parquet"):
        fit(dpci.Chunks.from_parquet(path, target="ill", columns=["age", "height"]), classes=("no", "yes"))
    with pytest.raises(InvalidInput, match=r"column 'sex' must hold booleans, integers or floats, got dtype"):
        fit(dpci.Chunks.from_parquet(path, target="ill"), classes=("no", "yes"))
    path.write_bytes(b"PAR1 no more")
    with pytest.raises(InvalidInput, match=r"must be a Parquet file, got"):
        dpci.Chunks.from_parquet(path, target="ill")


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DpciError, match=r"a Parquet file needs pyarrow: pip install 'dpci\[parquet\]'"):
        dpci.Chunks.from_parquet(tmp_path / "x.parquet", target="y")


def test_nothing_is_read_before_a_fit_asks(tmp_path):
    chunks = dpci.Chunks.from_csv(tmp_path / "later.csv", schema=SCHEMA)
    assert repr(chunks) == "Chunks(names=('age', 'sex=M'))"
    write_csv(tmp_path / "later.csv", people())
    counted = CountingChunks(chunks._source)
    fit(counted, classes=chunks.classes)
    assert counted.passes[0] == "describe"
    assert counted.passes[-1] == "moments"


# Files that are no list of people.


@pytest.mark.parametrize("again", ["the same", "another spelling", "a link"])
def test_nobody_counts_twice(tmp_path, monkeypatch, again):
    monkeypatch.chdir(tmp_path)
    path = write_csv(tmp_path / "people.csv", people())
    other = {"the same": path, "another spelling": "people.csv", "a link": tmp_path / "link.csv"}[again]
    refused = pytest.raises(
        InvalidInput, match=r"a table must be named once, got .*people.csv and .*, which are one file"
    )
    if again != "a link":
        with refused:
            dpci.Chunks.from_csv([path, other], schema=SCHEMA)
        return
    chunks = dpci.Chunks.from_csv([path, other], schema=SCHEMA)
    other.symlink_to(path)
    with refused:
        fit(chunks)


def test_files_that_can_be_read_once_cost_nothing(tmp_path):
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", "-"):
        chunks = dpci.Chunks.from_csv(path, schema=SCHEMA)
        with pytest.raises(InvalidInput, match=r"path must name files, because they are read several times, got '.*'"):
            fit(chunks, seed=None, ledger=ledger)
    assert ledger.remaining == dpci.ZCDP(1.0)


@pytest.mark.parametrize("path", [b"people.csv", 3, None, ["people.csv", 3], [b"people.csv"]], ids=str)
def test_paths_that_are_none(path):
    with pytest.raises(InvalidInput, match=r"path must be a path or several, of type str or os.PathLike, got"):
        dpci.Chunks.from_csv(path, schema=SCHEMA)


def test_errors_say_in_which_file(tmp_path):
    table = people(40)
    table["ill"] = table["ill"].astype(object)
    table["ill"][35] = "maybe"
    paths = [write_csv(tmp_path / "a.csv", people(40)), write_csv(tmp_path / "b.csv", table)]
    with pytest.raises(InvalidInput, match=r"column 'ill' must hold one of .*, got 'maybe' in row 5") as refusal:
        fit(dpci.Chunks.from_csv(paths, schema=SCHEMA, chunk_rows=10))
    assert refusal.value.__notes__ == [f"row 5, counted from 0, is line 37 of {paths[1]}"]


def test_compressed_and_empty_files(tmp_path):
    table = people()
    whole = write_csv(tmp_path / "a.csv", table)
    text = whole.read_bytes()
    header, _, rows = text.partition(b"\n")
    middle = rows.index(b"\n", len(rows) // 2) + 1
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(header + b"\n" + rows[:middle]) + gzip.compress(rows[middle:]))
    (tmp_path / "c.csv").write_bytes(header)
    paths = [tmp_path / "c.csv", tmp_path / "b.csv.gz"]
    assert_same(fit(dpci.Chunks.from_csv(paths, schema=SCHEMA)), in_memory(*SCHEMA.transform(table)[:2]))
    with pytest.raises(InvalidInput, match="the data must have at least one row, got 0 rows in all parts"):
        fit(dpci.Chunks.from_csv(tmp_path / "c.csv", schema=SCHEMA))


# A missing value, a long one, a negative zero: of one person, and nothing that others notice.

LONG = (12345678901234567, 12345678901234568)


@pytest.mark.parametrize("form", ["integers", "few integers"])
def test_codes_beside_a_missing_one(tmp_path, form):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    schema = Schema(
        columns=(CategoricalColumn(name="code", categories=tuple(map(str, LONG)), unknown="zeros"),),
        target=ClassTarget(column="ill", negative=("0",), positive=("1",)),
    )
    codes = pa.array([*LONG * 200, None], pa.int64())
    codes = codes if form == "integers" else codes.dictionary_encode()
    table = pa.table({"code": codes, "ill": [0, 1] * 200 + [1]})
    pq.write_table(table, tmp_path / "codes.parquet")
    rows = np.vstack([np.tile(np.eye(2), (200, 1)), np.zeros((1, 2))]) / schema.row_scale
    expected = in_memory(rows, np.array([-1.0, 1.0] * 200 + [1.0]))
    assert_same(fit(dpci.Chunks.from_parquet(tmp_path / "codes.parquet", schema=schema)), expected)
    np.testing.assert_array_equal(schema.features(table), rows)


def test_missing_numbers_are_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for values in ([0, None, 1], [True, None, False]):
        pq.write_table(pa.table({"u": values, "ill": [0, 1, 1]}), tmp_path / "gaps.parquet")
        chunks = dpci.Chunks.from_parquet(tmp_path / "gaps.parquet", target="ill")
        with pytest.raises(InvalidInput, match=r"column 'u' must have no missing values, got one in row 1"):
            fit(chunks)
        chunks = dpci.Chunks.from_parquet(tmp_path / "gaps.parquet", target="u", columns=["ill"])
        with pytest.raises(InvalidInput, match=r"column 'u' must have no missing values, got one in row 1"):
            fit(chunks)


def test_one_long_text_takes_its_own_memory_only(tmp_path):
    table = people(20_000)
    table["sex"] = table["sex"].astype(object)
    table["sex"][7] = "x" * 100_000
    path = write_csv(tmp_path / "people.csv", table)
    tracemalloc.start()
    try:
        result = fit(dpci.Chunks.from_csv(path, schema=SCHEMA))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.n_samples == 20_000
    assert most < 50e6  # as wide as the longest, the texts of a chunk would have 8 GB


def test_names_of_parquet_columns(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pd = pytest.importorskip("pandas")
    twice = pa.Table.from_arrays([pa.array(X[:, 0])] * 2 + [pa.array(Y)], names=["u", "u", "ill"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    for keywords in ({"target": "ill"}, {"target": "ill", "columns": ["u"]}):
        with pytest.raises(
            InvalidInput, match=r"twice.parquet must have distinct column names, got \['u', 'u', 'ill'\]"
        ):
            fit(dpci.Chunks.from_parquet(tmp_path / "twice.parquet", **keywords))
    # What pandas writes for the rows that a filter left.
    frame = pd.DataFrame({"u": X[:, 0], "ill": Y})
    for index in (None, "id"):
        frame[Y >= 0].rename_axis(index).iloc[::-1].to_parquet(tmp_path / "frame.parquet")
        assert dpci.Chunks.from_parquet(tmp_path / "frame.parquet", target="ill").names == ("u",)


def test_files_that_fit_are_read_once(tmp_path):
    chunks = dpci.Chunks.from_csv(write_csv(tmp_path / "people.csv", people()), schema=SCHEMA, chunk_rows=100)
    passes = []

    def counted():
        passes.append(None)
        yield from chunks._source()

    source = dpci.Chunks(counted, names=SCHEMA.names)

    def rows(one):
        return one.reduce(lambda X, *_: _Rows(len(X))).n_rows

    # 500 rows of two numbers and a target take 12,000 bytes.
    for most_bytes, n_passes in ((12_000, 1), (11_999, 3), (0, 3)):
        passes.clear()
        remembered = source.remembered(most_bytes)
        assert [rows(remembered) for _ in range(3)] == [500] * 3
        # The first call of a source is made twice, to see that it gives other iterators; the second is not read.
        assert len(passes) == n_passes


class _Rows:
    def __init__(self, n_rows):
        self.n_rows = n_rows

    def merge(self, other):
        return _Rows(self.n_rows + other.n_rows)
