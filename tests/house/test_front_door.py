"""Tables as new users try them, after public reports about other libraries: each works, or is refused with the way."""

import datetime as dt
import decimal
import gzip
import inspect
import io
import re
import sqlite3

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")

N = 600
_rng = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": _rng.integers(18, 90, N), "sex": _rng.choice(["F", "M"], N)})
FRAME["ill"] = np.where(_rng.logistic(size=N) < 0.05 * (FRAME["age"] - 55), "yes", "no")
FRAME["note"] = "x"
SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=18, upper=90),
        CategoricalColumn(name="sex", categories=("F", "M"), reference="F"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)
KEYWORDS = {"budget": dpci.PureDP(4.0), "l2_strength": 0.05, "seed": 1}


def fit(table):
    return dpci.fit(table, schema=SCHEMA, **KEYWORDS)


@pytest.fixture(scope="module")
def params():
    return fit(FRAME).params


def library(name, make):
    def of():
        return make(pytest.importorskip(name))

    return of


def sql():
    with sqlite3.connect(":memory:") as connection:
        FRAME.to_sql("people", connection, index=False)
        return pd.read_sql("SELECT * FROM people", connection)


def arrow():
    pytest.importorskip("pyarrow")
    return FRAME.convert_dtypes(dtype_backend="pyarrow")


SAME = {
    "a frame": lambda: FRAME,
    "columns in another order": lambda: FRAME[FRAME.columns[::-1]],
    "a shuffled index": lambda: FRAME.set_index(_rng.permutation(N)),
    "a named index": lambda: FRAME.rename_axis("row"),
    "an index of two levels": lambda: FRAME.set_index([np.zeros(N), np.arange(N)]),
    "categories": lambda: FRAME.assign(sex=FRAME["sex"].astype("category")),
    "categories with levels that no row has": lambda: FRAME.assign(
        sex=pd.Categorical(FRAME["sex"], categories=["X", "M", "F"])
    ),
    "nullable types": FRAME.convert_dtypes,
    "types of Arrow": arrow,
    "spaces after categories": lambda: FRAME.assign(sex=FRAME["sex"] + " "),
    "numbers as floats": lambda: FRAME.assign(age=FRAME["age"].astype(float)),
    "numbers as text": lambda: FRAME.assign(age=FRAME["age"].astype(str)),
    "numbers as decimals": lambda: FRAME.assign(age=[decimal.Decimal(int(age)) for age in FRAME["age"]]),
    "numbers of one byte": lambda: FRAME.assign(age=FRAME["age"].astype("int8")),
    "a mapping of lists": lambda: {name: FRAME[name].tolist() for name in FRAME},
    "a mapping of arrays": lambda: {name: FRAME[name].to_numpy() for name in FRAME},
    "a structured array": lambda: FRAME[["age", "sex", "ill"]].to_records(index=False),
    "Polars": library("polars", lambda pl: pl.from_pandas(FRAME)),
    "lazy Polars": library("polars", lambda pl: pl.from_pandas(FRAME).lazy().filter(pl.col("age") > 0)),
    "a table of Arrow": library("pyarrow", lambda pa: pa.Table.from_pandas(FRAME)),
    "a query of SQL": sql,
    "a relation of DuckDB": library("duckdb", lambda duckdb: duckdb.from_df(FRAME)),
}


@pytest.mark.parametrize("form", SAME)
def test_the_same_people_give_the_same_model(form, params):
    assert (fit(SAME[form]()).params == params).all()


def written(text, name="people.csv"):
    def write(folder):
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


CSV = FRAME.to_csv(index=False)
FILES = {
    "UTF-8": (written(CSV), {}),
    "a byte order mark": (written("\ufeff" + CSV), {}),
    "gzip": (written(gzip.compress(CSV.encode()), "people.csv.gz"), {}),
    "an index": (written(FRAME.to_csv()), {}),
    "quotes around all": (written(FRAME.to_csv(index=False, quoting=1)), {}),
    "semicolons": (written(CSV.replace(",", ";")), {"delimiter": ";"}),
    "tabs": (written(CSV.replace(",", "\t")), {"delimiter": "\t"}),
    "UTF-16 of a spreadsheet": (
        written(CSV.replace(",", "\t").encode("utf-16")),
        {"delimiter": "\t", "encoding": "utf-16"},
    ),
    "Windows": (written(CSV.replace(",x\n", ",ü\n").encode("cp1252")), {"encoding": "cp1252"}),
    "decimal commas": (
        written(FRAME.assign(age=FRAME["age"].astype(float)).to_csv(index=False, sep=";", decimal=",")),
        {"delimiter": ";", "decimal": ","},
    ),
}


@pytest.mark.parametrize("form", FILES)
def test_the_same_people_in_a_file(form, tmp_path, params):
    write, options = FILES[form]
    path = write(tmp_path)
    assert (fit(dpci.read(path, schema=SCHEMA, **options)).params == params).all()
    if not options:
        np.testing.assert_allclose(fit(path).params, params, rtol=1e-9)


MISSING = FRAME.assign(age=FRAME["age"].astype("Int64").where(FRAME["age"] > 20))
REFUSED = {
    "missing numbers": (
        MISSING,
        'a missing value: the column needs missing="drop", which leaves its row out, or a number',
    ),
    "missing categories": (FRAME.assign(sex=FRAME["sex"].where(FRAME["age"] > 20)), "a missing value"),
    "other categories": (FRAME.assign(sex="Z"), r"column 'sex' must hold one of \['F', 'M'\], got 'Z' in row 0"),
    "truth values as a target": (FRAME.assign(ill=FRAME["ill"] == "yes"), "got .* add it to the public classes"),
    "a column twice": (pd.concat([FRAME, FRAME[["age"]]], axis=1), "rename or drop all but one"),
    "a column less": (FRAME.drop(columns="age"), "the table must have the column 'age'"),
    "a name in capitals": (FRAME.rename(columns={"age": "Age"}), "names must agree in every letter: 'Age' is there"),
    "dates": (FRAME.assign(age=pd.Timestamp("2020-01-01", tz="UTC")), "dates need since= of the column, a public day"),
    "days as objects": (FRAME.assign(age=[dt.date(2020, 1, 1)] * N), "dates need since= of the column, a public day"),
    "days as text": (FRAME.assign(age="2020-01-01"), "dates need since= of the column, a public day"),
    "German days as text": (FRAME.assign(age="01.02.2020"), "dates need since= of the column, a public day"),
    "decimal commas": (FRAME.assign(age="41,5"), "pass decimal=',' to dpci.read"),
    "no rows": (FRAME[:0], "at least one row"),
    "an array": (FRAME[["age"]].to_numpy(), "X must be a table with named columns where there is a schema"),
    "a series": (FRAME["age"], "X must be a table with named columns"),
    "an open file": (io.StringIO(CSV), "X must be a table with named columns"),
    "a page of the web": ("https://example.invalid/people.csv", "download it first"),
    "a document": ("people.docx", r"a table must be a file of the kind \.csv, "),
    "a file that is not there": ("nobody.csv", "a table must be readable, got 'nobody.csv'"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_a_refusal_names_the_way(form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, way = REFUSED[form]
    ledger = dpci.Ledger(dpci.PureDP(9.0))
    with pytest.raises(dpci.InvalidInput, match=way):
        dpci.fit(table, schema=SCHEMA, ledger=ledger, **{**KEYWORDS, "seed": None})
    assert ledger.history == ()


def test_prediction_takes_what_the_fit_took():
    made = fit(FRAME)
    wanted = made.predict(FRAME)
    for form in ("columns in another order", "categories", "a mapping of lists", "numbers as text"):
        assert (made.predict(SAME[form]()) == wanted).all(), form
    assert made.predict(FRAME.iloc[[0]]).shape == (1,)
    assert made.predict(FRAME.drop(columns="ill")).shape == (N,)
    with pytest.raises(dpci.InvalidInput, match="got 'Z' in row 0"):
        made.predict(FRAME.assign(sex="Z"))


def test_a_fit_has_twelve_keywords_and_its_help_fits_on_a_screen():
    kinds = [parameter.kind for parameter in inspect.signature(dpci.fit).parameters.values()]
    assert kinds.count(inspect.Parameter.KEYWORD_ONLY) == 12
    # The signature takes a line, or with Python 3.13 one for each keyword.
    assert len(inspect.getdoc(dpci.fit).splitlines()) <= 58


def test_messages_say_what_to_type(tmp_path):
    keywords = {"epsilon": 1.0}, {"rho": 0.5}, {"epsilon": 1.0, "delta": 1e-6}
    for given, typed in zip(keywords, ("PureDP(1.0)", "ZCDP(0.5)", "ApproxDP(1.0, 1e-06)"), strict=True):
        with pytest.raises(TypeError, match=re.escape(f": pass budget=dpci.{typed}") + "$"):
            dpci.fit(FRAME, **given)
    with pytest.raises(TypeError, match=r"pass budget=dpci\.PureDP\(epsilon=\.\.\.\)"):
        dpci.fit(FRAME, epsilon="1")
    column = dpci.schema.CategoricalColumn(name="sex", categories=("F", "M"))
    with pytest.raises(dpci.InvalidInput, match=r"in row 1 \(.*give the column other= or unknown="):
        column.encode(["F", "Z"])
    (tmp_path / "latin.csv").write_bytes("âge\n1\n".encode("cp1252"))
    with pytest.raises(dpci.InvalidInput, match="must be CSV text in UTF-8, got other bytes near its start"):
        dpci.read(tmp_path / "latin.csv")


def test_a_refused_budget_is_that_of_the_caller():
    columns = (
        dpci.schema.UnlistedColumn(name="sex", categories=("F",), reference="F"),
        dpci.schema.UnboundedColumn(name="age"),
    )
    target = dpci.schema.ClassTarget(column="ill", negative=("no",), positive=("yes",))
    schema = dpci.schema.PartialSchema(columns=columns, target=target)
    table = {"sex": ["F", "M"] * 500, "age": [1.0, 2.0] * 500, "ill": ["no", "yes"] * 500}
    with pytest.raises(dpci.InvalidInput, match=r"UnlistedColumn, .*got rho=0\.5 \(zCDP\)"):
        dpci.fit(table, schema=schema, budget=dpci.ZCDP(0.5))
