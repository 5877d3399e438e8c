"""Tables as offices write them: other delimiters, decimal marks, encodings and quotes, workbooks, folders, queries."""

import datetime as dt
import json
import sqlite3

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.cli.main import main
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, PartialSchema, Schema, UnboundedColumn
from dpci.sources.formats import Format
from support.workbooks import write_ods, write_xlsx

SCHEMA = Schema(
    columns=(
        NumericColumn(name="Größe", lower=1.0, upper=2.5),
        CategoricalColumn(name="Stadt", categories=("Köln", "Ulm", "1,5"), reference="Ulm"),
    ),
    target=ClassTarget(column="krank", negative=("nein",), positive=("ja",)),
)
_rng = np.random.default_rng(4)
N = 400
SIZES = _rng.uniform(1.2, 2.1, N).round(2)
TABLE = {
    "Größe": SIZES.tolist(),
    "Stadt": _rng.choice(["Köln", "Ulm", "1,5"], N).tolist(),
    "krank": np.where(SIZES + _rng.normal(size=N) > 1.7, "ja", "nein").tolist(),
    "Notiz": ["a;b"] * N,
}
GERMAN = {"delimiter": ";", "decimal": ",", "encoding": "latin-1"}
FIT = {"schema": SCHEMA, "budget": dpci.PureDP(5.0), "l2_strength": 0.05, "seed": 2}

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")


def text(*, delimiter=",", decimal=".", quote='"'):
    rows = [list(TABLE), *zip(*TABLE.values(), strict=True)]
    written = [[f"{quote}{cell}{quote}" if delimiter in str(cell) else str(cell) for cell in row[1:]] for row in rows]
    sizes = ["Größe", *(f"{size:.2f}".replace(".", decimal) for size in SIZES)]
    return "\n".join(delimiter.join([size, *row]) for size, row in zip(sizes, written, strict=True)) + "\n"


@pytest.fixture
def german(tmp_path):
    path = tmp_path / "leute.csv"
    path.write_bytes(text(delimiter=";", decimal=",").encode("latin-1"))
    return path


@pytest.fixture(scope="module")
def params():
    return dpci.fit(TABLE, **FIT).params


def test_a_file_is_read_as_it_is_written(german, params):
    table = dpci.read(german, **GERMAN, schema=SCHEMA)
    assert [float(cell) for cell in table["Größe"]] == SIZES.tolist()
    # A category that looks like a number stays what it is, because the schema says so.
    assert table["Stadt"] == TABLE["Stadt"]
    assert "Notiz" not in table
    assert (dpci.fit(table, **FIT).params == params).all()
    chunks = dpci.Chunks.from_csv(german, schema=SCHEMA, chunk_rows=64, **GERMAN)
    # Sums over chunks are added up in another order.
    np.testing.assert_allclose(dpci.fit(chunks, **FIT).params, params, rtol=1e-9)


def test_all_columns_are_read_without_a_schema(german):
    table = dpci.read(german, **GERMAN)
    assert list(table) == ["Größe", "Stadt", "krank", "Notiz"]
    assert table["Notiz"] == TABLE["Notiz"]
    assert set(table["Stadt"]) == {"Köln", "Ulm", "1.5"}
    gaps = PartialSchema(columns=(UnboundedColumn(name="Größe"),), target=SCHEMA.target)
    assert list(dpci.read(german, **GERMAN, schema=gaps)) == ["Größe", "krank"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_encodings_and_quotes(tmp_path, encoding, quote):
    path = tmp_path / "people.csv"
    path.write_bytes(text(delimiter=";", quote=quote).encode(encoding))
    assert dpci.read(path, delimiter=";", encoding=encoding, quote=quote)["Notiz"] == TABLE["Notiz"]


def test_quotes_may_be_letters(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text('a|b\n"1|2\n')
    assert dpci.read(path, delimiter="|", quote="none") == {"a": ['"1'], "b": ["2"]}
    path.write_text('a|b\n"1"2|2\n')
    with pytest.raises(dpci.InvalidInput, match=r"pass quote='none' to dpci.read, in a shell --quote none"):
        dpci.read(path, delimiter="|")


def test_the_command_takes_the_same_options(german, tmp_path, capsys):
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA.to_dict()))
    options = [word for name, value in GERMAN.items() for word in (f"--{name}", value)]
    command = ["check", str(german), "--schema", str(schema)]
    main([*command, *options])
    assert "every value agrees with the schema" in capsys.readouterr().out
    output = tmp_path / "model.json"
    budget = ["--epsilon", "5", "--l2-strength", "0.05", "--output", str(output), "--quiet"]
    main(["fit", *command[1:], *options, *budget])
    assert dpci.PrivateFit.from_json(output.read_text()).n_samples == N
    main(["predict", str(output), str(german), *options, "--keep", "Größe"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split(",")[-1] in {"ja", "nein"}


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({}, "pass encoding='cp1252' to dpci.read, in a shell --encoding cp1252"),
        (
            {"encoding": "latin-1"},
            "';' seems to separate the fields: pass delimiter=';' to dpci.read, in a shell --delimiter ';'",
        ),
        ({"encoding": "latin-1", "delimiter": ";"}, "in a file pass decimal=',' to dpci.read, in a shell --decimal ,"),
    ],
)
def test_a_refusal_names_the_option(german, given, advice):
    with pytest.raises(dpci.InvalidInput) as caught:
        dpci.fit(dpci.read(german, schema=SCHEMA, **given), **FIT)
    assert advice in str(caught.value)


def test_dates_have_a_form(tmp_path):
    path = tmp_path / "visits.csv"
    days = ["31.12.2023", "1.1.2024", " 29.02.2024 ", "2024-02-29"]
    path.write_text("\n".join(["day;krank", *(f"{day};{'ja' if at else 'nein'}" for at, day in enumerate(days))]))
    day = NumericColumn(name="day", lower=0, upper=90, since="2023-12-31")
    schema = Schema(columns=(day,), target=SCHEMA.target)
    plain = dpci.read(path, schema=schema, delimiter=";")
    advice = "pass date_format='%d.%m.%Y' to dpci.read, in a shell --date-format '%d.%m.%Y'"
    assert advice in " ".join(str(schema.check(plain)).split())
    with pytest.raises(dpci.InvalidInput, match=advice):
        schema.features(plain)
    table = dpci.read(path, schema=schema, delimiter=";", date_format="%d.%m.%Y")
    assert table["day"] == ["2023-12-31", "2024-01-01", "2024-02-29", "2024-02-29"]
    assert not schema.check(table).refused
    times = Format(date_format="%m/%d/%Y %H:%M").with_dates({"at": ["12/31/2023 8:05", 7, "31/12/2023", "5"]})
    assert times == {"at": ["2023-12-31T08:05:00", 7, "31/12/2023", "5"]}


def test_refusals_of_bytes_show_none(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes("name\nMüller\n".encode("latin-1"))
    with pytest.raises(dpci.InvalidInput) as caught:
        dpci.read(path)
    assert "0xfc" not in str(caught.value)
    path.write_bytes("name\nMüller\n".encode("utf-16"))
    with pytest.raises(dpci.InvalidInput, match="pass encoding='utf-16'"):
        dpci.read(path)


def test_a_thousands_separator_is_no_decimal_point(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("Größe;Stadt;krank\n1.750;Ulm;ja\n", encoding="utf-8")
    with pytest.raises(dpci.InvalidInput, match="no thousands separator, got a point in the column 'Größe'"):
        dpci.read(path, delimiter=";", decimal=",", schema=SCHEMA)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"delimiter": ";;"}, "the delimiter must be one character"),
        ({"decimal": ";"}, "decimal must be '.' or ','"),
        ({"decimal": ","}, "decimal and delimiter must differ"),
        ({"encoding": "klingon"}, "encoding must be the name of an encoding of text"),
        ({"encoding": "base64"}, "encoding must be the name of an encoding of text"),
        ({"encoding": "utf-7"}, "every line reads by itself"),
        ({"encoding": "iso2022_jp"}, "every line reads by itself"),
        ({"encoding": "unicode_escape"}, "every line reads by itself"),
        ({"quote": ""}, "quote must be one character other than the delimiter, or 'none'"),
        ({"delimiter": 1}, "delimiter must be a text"),
        ({"quote": None}, "quote must be a text"),
        ({"decimal": b","}, "decimal must be a text"),
        ({"encoding": b"utf-8"}, "encoding must be the name of an encoding of text"),
        ({"sheet": 1}, "sheet must be the name of a sheet or None"),
        *(({"date_format": form}, "date_format must be a form") for form in (1, "", "%d.%m.%y", "%d%m%Y", "%d0%m.%Y")),
    ],
)
def test_options_out_of_range(given, rule):
    with pytest.raises(dpci.InvalidInput, match=rule):
        Format(**given)


# A line of bytes decides nothing about the lines after it, whatever it holds: else one record would change others.
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "cp1252", "latin-1", "shift_jis", "gbk", "big5", "euc_kr"])
def test_the_bytes_of_a_record_stay_in_its_line(tmp_path, encoding):
    path = tmp_path / "people.csv"
    head, tail = "a\n".encode(encoding), "\n1\n".encode(encoding)
    rng = np.random.default_rng(0)
    n_read = 0
    for _ in range(300):
        record = rng.integers(0, 256, 2, dtype=np.uint8).tobytes()
        path.write_bytes(head + record + tail)
        try:
            (column,) = dpci.read(path, encoding=encoding, quote="none").values()
        except dpci.InvalidInput:
            continue
        n_read += 1
        newlines = record.decode(encoding).replace("\r\n", "\n").replace("\r", "\n").count("\n")
        assert column[-1] == "1"
        assert len(column) == 2 + newlines or newlines
    assert n_read > 20


@pytest.fixture(params=["xlsx", "ods"])
def book(request, tmp_path):
    pytest.importorskip("python_calamine")
    write = {"xlsx": write_xlsx, "ods": write_ods}[request.param]
    rows = [list(TABLE), *zip(*TABLE.values(), strict=True)]

    def made(sheets=None):
        path = tmp_path / f"people.{request.param}"
        write(path, {"Leute": rows} if sheets is None else sheets)
        return path

    return made


def test_sheets_of_workbooks(book, params):
    path = book()
    table = dpci.read(path)
    assert {name: list(cells) for name, cells in table.items()} == TABLE
    assert (dpci.fit(dpci.read(path, schema=SCHEMA), **FIT).params == params).all()
    np.testing.assert_allclose(dpci.fit(path, **FIT).params, params, rtol=1e-9)


def test_whole_numbers_and_gaps_of_a_sheet(book):
    path = book({"one": [["id", "x"], [7.0, None], [None, None], [8, 1.5]]})
    assert dpci.read(path) == {"id": [7, 8], "x": ["", 1.5]}


def test_a_workbook_with_several_sheets_needs_a_name(book):
    path = book({"one": [["a"], [1]], "two": [["a"], [2]]})
    with pytest.raises(dpci.InvalidInput, match=r"pass sheet='one' to dpci.read, in a shell --sheet 'one'"):
        dpci.read(path)
    assert dpci.read(path, sheet="two") == {"a": [2]}
    with pytest.raises(dpci.InvalidInput, match=r"sheet must be one of \['one', 'two'\]"):
        dpci.read(path, sheet="three")
    with pytest.raises(dpci.InvalidInput, match="distinct names of all columns"):
        dpci.read(book({"one": [["a", None], [1, 2]]}))


def test_a_file_that_is_no_workbook(tmp_path):
    pytest.importorskip("python_calamine")
    path = tmp_path / "people.xlsx"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(dpci.InvalidInput, match="must be a workbook of Excel or OpenDocument"):
        dpci.read(path)


def test_folders_and_patterns(tmp_path, params):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(TABLE)
    for i in range(2):
        frame[i * 200 : (i + 1) * 200].to_parquet(tmp_path / f"part-{i}.parquet", index=False)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "~$part.xlsx").touch()
    for source in (tmp_path, tmp_path / "part-*.parquet"):
        assert (dpci.fit(dpci.read(source, schema=SCHEMA), **FIT).params == params).all()
        np.testing.assert_allclose(
            dpci.fit(dpci.Chunks.from_parquet(source, schema=SCHEMA), **FIT).params, params, rtol=1e-9
        )
    (tmp_path / "rest.csv").write_text("other\n1\n")
    with pytest.raises(dpci.InvalidInput, match="all files of a table must have the same columns"):
        dpci.read(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(dpci.InvalidInput, match=r"a folder must have at least one .csv, .csv.gz, .parquet, .xlsx"):
        dpci.read(tmp_path / "empty")


def test_lazy_frames_are_computed(params):
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame(TABLE).lazy()
    assert (dpci.fit(lazy, **FIT).params == params).all()
    assert (dpci.fit(lazy, **FIT).predict(lazy) == dpci.fit(TABLE, **FIT).predict(TABLE)).all()
    X = lazy.select(polars.col("Größe") / 4.0)
    plain = {"budget": dpci.PureDP(5.0), "l2_strength": 0.05, "seed": 2, "classes": ("nein", "ja")}
    y = np.array(TABLE["krank"])
    assert (dpci.fit(X, y, **plain).params == dpci.fit(X.collect(), y, **plain).params).all()
    # Its number of rows would be computed before the budget is spent.
    ledger = dpci.Ledger(dpci.PureDP(9.0), errors="private")
    with pytest.raises(dpci.InvalidInput, match="compute it first"):
        dpci.fit(lazy, **{**FIT, "seed": None}, ledger=ledger, rows="clip")
    assert not ledger.history
    broken = lazy.with_columns(polars.col("missing"))
    with pytest.raises(dpci.InvalidInput, match="a query must give a table, got LazyFrame, which raises"):
        dpci.fit(broken, **FIT)


def test_queries(params):
    frame = pd.DataFrame(TABLE)
    with sqlite3.connect(":memory:") as connection:
        frame.to_sql("people", connection, index=False)
        table = pd.read_sql('SELECT "Größe", "Stadt", "krank" FROM people', connection)
    assert (dpci.fit(table, **FIT).params == params).all()


def test_relations_of_duckdb(params):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(TABLE)
    relation = duckdb.sql('SELECT "Größe", "Stadt", "krank" FROM frame')
    assert len(frame) == N
    assert (dpci.fit(relation, **FIT).params == params).all()


def test_repeated_columns_are_refused_by_name():
    frame = pd.DataFrame(TABLE)
    twice = pd.concat([frame, frame[["Stadt"]]], axis=1)
    with pytest.raises(dpci.InvalidInput, match=r"got 'Stadt' 2 times \(rename or drop all but one\)"):
        dpci.fit(twice, **FIT)


@pytest.mark.parametrize(
    ("moment", "way"),
    [
        (dt.date(2024, 5, 1), "dates need since= of the column"),
        (dt.datetime(2024, 5, 1, 12, 0), "dates need since= of the column"),  # noqa: DTZ001  # as files hold it
        (dt.time(12, 0), "make a time or a duration a number first"),
        (dt.timedelta(days=3), "make a time or a duration a number first"),
        (pd.Timestamp("2024-05-01", tz="UTC"), "dates need since= of the column"),
    ],
)
def test_dates_and_times_are_no_numbers(moment, way):
    frame = pd.DataFrame(TABLE).assign(Größe=[moment] * N)
    with pytest.raises(dpci.InvalidInput, match=way):
        dpci.fit(frame, **FIT)


DAYS = np.arange(N) % 300
DATED = Schema(columns=(NumericColumn(name="admitted", lower=0, upper=366, since="2024-01-01"),), target=SCHEMA.target)
NUMBERED = Schema(columns=(NumericColumn(name="admitted", lower=0, upper=366, unit="day"),), target=SCHEMA.target)


def dates(form):
    stamps = pd.to_datetime("2024-01-01") + pd.to_timedelta(DAYS, unit="D")
    return {
        "texts": stamps.strftime("%Y-%m-%d").tolist(),
        "texts with times": stamps.strftime(" %Y-%m-%d 00:00:00").tolist(),
        "days": list(stamps.date),
        "stamps": list(stamps),
        "NumPy": stamps.to_numpy(),
        "pandas": pd.Series(stamps),
    }[form]


@pytest.mark.parametrize("form", ["texts", "texts with times", "days", "stamps", "NumPy", "pandas"])
def test_dates_count_as_days_since_a_public_day(form):
    table = {"admitted": dates(form), "krank": TABLE["krank"]}
    found = dpci.fit(table, **{**FIT, "schema": DATED})
    same = dpci.fit({**table, "admitted": DAYS}, **{**FIT, "schema": NUMBERED})
    assert (found.params == same.params).all()
    assert found.units[0] == "per day"
    assert (found.predict(table) == same.predict({"admitted": DAYS})).all()
    assert str(DATED.check(table)) == str(NUMBERED.check({**table, "admitted": DAYS}))


def test_hours_are_parts_of_days_and_gaps_are_missing():
    column = NumericColumn(name="t", lower=0, upper=2, since="2024-01-01", missing=1.0, scale="unit")
    cells = ["2024-01-01T12:00", "2024-01-03", "", None, pd.NaT, dt.datetime(2024, 1, 2, 6)]  # noqa: DTZ001  # as above
    assert column.numbers(cells).tolist() == [0.5, 2.0, 1.0, 1.0, 1.0, 1.25]
    gaps = np.array(["2024-01-02", "NaT"], dtype="datetime64[ns]")
    assert column.numbers(gaps).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("cell", ["01.02.2024", "2024", 45_000, "2024-05-01T00:00+01:00", pd.Timestamp(0, tz="UTC")])
def test_what_is_no_date_is_refused(cell):
    with pytest.raises(dpci.InvalidInput, match="column 'admitted' must hold dates or times without a time zone"):
        DATED.features({"admitted": [cell]})
    with pytest.raises(dpci.InvalidInput, match="since must be a day such as '2024-01-01' or ''"):
        NumericColumn(name="x", lower=0, upper=1, since=cell)


def test_a_schema_of_dates_is_saved(tmp_path):
    (tmp_path / "s.toml").write_text(
        '[target]\ncolumn = "krank"\nnegative = "nein"\npositive = "ja"\n[[columns]]\nkind = "numeric"\n'
        'name = "admitted"\nlower = 0\nupper = 366\nsince = 2024-01-01\n'
    )
    assert Schema.from_file(tmp_path / "s.toml") == DATED
    assert Schema.from_dict(json.loads(json.dumps(DATED.to_dict()))) == DATED
    assert DATED.digest != NUMBERED.digest
    assert "0 to 366 days since 2024-01-01" in DATED._repr_html_()
    table = {"admitted": dates("texts"), "krank": TABLE["krank"]}
    fit = dpci.fit(table, **{**FIT, "schema": DATED})
    assert "0 to 366 days since 2024-01-01" in fit.to_html()
    assert dpci.PrivateFit.from_json(fit.to_json()).schema == DATED


def test_bounds_of_dates_are_released():
    gaps = PartialSchema(columns=(UnboundedColumn(name="admitted", since="2024-01-01"),), target=SCHEMA.target)
    table = {"admitted": dates("texts"), "krank": TABLE["krank"]}
    released = dpci.release_schema(table, schema=gaps, budget=dpci.PureDP(50.0), seed=1).schema
    assert released.columns[0].since == "2024-01-01"
    assert released.columns[0].upper > 200.0
