"""Columns that store each category once become codes directly, and are what their texts are."""

import importlib.util

import numpy as np
import pytest

import dpci
from dpci.data.coded import CodedRows
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema
from dpci.schema.cells import Dictionary, categories_of, dictionary_of
from dpci.schema.table import encoded_rows

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N = 900
TOWNS = tuple(f"town {i}" for i in range(12))
SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=0, upper=100),
        CategoricalColumn(name="town", categories=TOWNS, unknown="zeros"),
        CategoricalColumn(name="job", categories=tuple("abcdef"), missing="f"),
    ),
    target=ClassTarget(column="y", negative=("no",), positive=("yes",)),
)
FIT = {"schema": SCHEMA, "budget": dpci.PureDP(2.0), "l2_strength": 0.05, "seed": 1}
pytestmark = pytest.mark.filterwarnings("ignore::dpci.DpciWarning")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    age = rng.uniform(0, 100, N)
    return pl.DataFrame(
        {
            "id": np.sort(rng.integers(0, 300, N)),
            "age": age,
            "town": [*rng.choice([*TOWNS, " town 3", "elsewhere"], N - 1), None],
            "job": [None, *rng.choice([*"abcdef"], N - 1)],
            "y": np.where(age + rng.normal(0, 30, N) > 50, "yes", "no"),
        }
    )


def stored(table, name):
    """The table with its texts as dictionaries of one library."""
    distinct = [*TOWNS, " town 3", "elsewhere"]
    if name == "categorical":
        return table.with_columns(pl.col("town", "job").cast(pl.Categorical))
    if name == "enum":
        return table.with_columns(pl.col("town").cast(pl.Enum(distinct)), pl.col("job").cast(pl.Enum([*"abcdef"])))
    if name == "pandas":
        return table.to_pandas().astype({"town": "category", "job": "category"})
    arrow = pa.table({column: pa.array(table[column].to_list()) for column in table.columns})
    for column in ("town", "job"):
        coded = arrow[column].combine_chunks().dictionary_encode()
        coded = pa.DictionaryArray.from_arrays(coded.indices.cast("uint8"), coded.dictionary)
        arrow = arrow.set_column(arrow.column_names.index(column), column, coded)
    return arrow


@pytest.mark.parametrize("name", ["categorical", "enum", "pandas", "unsigned"])
def test_they_are_coded_as_their_texts(table, name):
    expected, given = encoded_rows(SCHEMA, table), stored(table, name)
    assert isinstance(categories_of(given, "town"), Dictionary)
    found = encoded_rows(SCHEMA, given)
    assert isinstance(found, CodedRows)
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_array_equal(found.numbers, expected.numbers)
    assert dpci.fit(given, **FIT).to_json() == dpci.fit(table, **FIT).to_json()


def test_without_pyarrow_polars_decodes_them(table, monkeypatch):
    given = stored(table, "categorical")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert dictionary_of(given["town"]) is None
    np.testing.assert_array_equal(encoded_rows(SCHEMA, given).codes, encoded_rows(SCHEMA, table).codes)


@pytest.mark.parametrize("name", ["categorical", "enum", "pandas", "unsigned"])
def test_a_category_that_is_not_listed_is_refused_by_its_row(table, name):
    strict = Schema(columns=(CategoricalColumn(name="town", categories=TOWNS, unknown="error"),), target=SCHEMA.target)
    messages = []
    for given in (table, stored(table, name)):
        with pytest.raises(dpci.InvalidInput, match="column 'town' must hold one of") as refused:
            encoded_rows(strict, given)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]
    # A level that no row has is refused by nobody.
    kept = stored(table, name)[:0]
    assert len(encoded_rows(strict, kept)) == 0


@pytest.mark.parametrize("persons", [None, "id"])
@pytest.mark.parametrize("dictionaries", [False, True])
def test_parquet_files_are_read_as_the_frame(table, tmp_path, dictionaries, persons):
    path = tmp_path / "people.parquet"
    arrow = stored(table, "arrow") if dictionaries else table.to_arrow().cast(text_schema(table))
    pq.write_table(arrow, path, row_group_size=250)
    expected = dpci.fit(table, persons=persons, **FIT).params
    np.testing.assert_allclose(dpci.fit(path, persons=persons, **FIT).params, expected, atol=1e-9)
    beside = {"beside": [persons], "together": persons} if persons else {}
    chunks = dpci.Chunks.from_parquet(path, schema=SCHEMA, chunk_rows=200, **beside)
    found = dpci.fit(chunks, persons=persons, **{**FIT, "schema": None})
    np.testing.assert_allclose(found.params, expected, atol=1e-9)
    assert list(dpci.read(path)["town"]) == table["town"].to_list()


def text_schema(table):
    kinds = {"id": pa.int64(), "age": pa.float64()}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in table.columns])
