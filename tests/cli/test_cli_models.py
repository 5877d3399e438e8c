"""The commands that take a released model: predictions beside those of the library, reports, and what is refused."""

import csv
import gzip
import json
import shutil
import tracemalloc
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

import dpci
from dpci.cli.main import main
from dpci.data.arrays import NamedRows
from dpci.schema import Schema
from support.commands import ran
from support.people import SCHEMA, as_csv, columns, fit_arguments


@pytest.fixture(scope="module")
def expected(people):
    """Labels and probabilities by the library, from one table in memory."""
    schema = Schema.from_file(people / "people.toml")
    model = dpci.PrivateFit.from_json((people / "model.json").read_text())
    X = schema.features(columns())
    rows = NamedRows(X, schema.names)
    labels = ["yes|probably" if value > 0 else "no" for value in model.decision_function(rows)]
    return labels, model.predict_proba(rows)[:, 1]


def predicted(people, capsys, *more, table="people.csv"):
    arguments = ["predict", str(people / "model.json"), str(people / table), "--schema", str(people / "people.toml")]
    captured = ran(capsys, *arguments, *more)
    assert captured.err == ""
    return captured.out


@pytest.mark.parametrize("more", [(), ("--chunk-rows", "1"), ("--chunk-rows", "333"), ("--chunk-rows", "2000")])
@pytest.mark.parametrize("table", ["people.csv", "parts", "parts/*.csv"])
def test_predictions_are_those_of_the_library(people, expected, table, more, capsys):
    lines = list(csv.DictReader(predicted(people, capsys, "--proba", *more, table=table).splitlines()))
    assert [line["prediction"] for line in lines] == expected[0]
    # The numbers are written as Python prints them: exactly.
    np.testing.assert_allclose([float(line["probability"]) for line in lines], expected[1], rtol=1e-14)


def test_json_and_kept_columns(people, expected, capsys):
    text = predicted(people, capsys, "--json", "--keep", "ill", "--keep", "age")
    documents = [json.loads(line) for line in text.splitlines()]
    assert list(documents[0]) == ["ill", "age", "prediction"]
    assert [document["prediction"] for document in documents] == expected[0]
    assert [document["age"] for document in documents] == columns()["age"]


def test_parquet_without_the_target(people, expected, tmp_path, capsys):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    shutil.copytree(people, tmp_path / "here")
    table = columns()
    arrow = pa.table({"id": np.arange(2_000), "ward": table["ward"], "age": np.array(table["age"], dtype=int)})
    pq.write_table(arrow, tmp_path / "here" / "t.parquet", row_group_size=300)
    text = predicted(tmp_path / "here", capsys, "--keep", "id", "--chunk-rows", "250", table="t.parquet")
    lines = list(csv.DictReader(text.splitlines()))
    assert [line["prediction"] for line in lines] == expected[0]
    assert [int(line["id"]) for line in lines] == list(range(2_000))


KEPT = {
    "big": ([2**53 + 1, None, 7, None], ["9007199254740993", "", "7", ""], [2**53 + 1, None, 7, None]),
    "flag": ([True, None, False, True], ["True", "", "False", "True"], [True, None, False, True]),
    "text": (["a", None, "", "é"], ["a", "", "", "é"], ["a", None, "", "é"]),
    "real": ([0.1, None, float("nan"), 3.0], ["0.1", "", "", "3.0"], [0.1, None, None, 3.0]),
    "day": ([date(2020, 1, 2), None, None, None], ["2020-01-02", "", "", ""], ["2020-01-02", None, None, None]),
    "sum": ([Decimal("1.10"), None, None, None], ["1.10", "", "", ""], ["1.10", None, None, None]),
    "none": ([None] * 4, [""] * 4, [None] * 4),
}


@pytest.fixture
def kept(people, tmp_path):
    """A model and a table with an identifier of each kind, some of them missing."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    here = shutil.copytree(people, tmp_path / "here")
    columns = {"age": [20, 30, 40, 50], "ward": ["A", "B", "A", "B"], **{name: v for name, (v, *_) in KEPT.items()}}
    table = pa.table(columns).append_column("coded", pa.array(KEPT["text"][0]).dictionary_encode())
    table = table.append_column("time", pa.array([1, None, 2, 3], pa.timestamp("ns")))
    table = table.append_column("tags", pa.array([["x"]] * 4)).append_column("raw", pa.array([b"x"] * 4))
    pq.write_table(table.append_column("far", pa.array([1.0, 2.0, 3.0, float("inf")])), here / "t.parquet")
    return here


@pytest.mark.parametrize("rows", [(), ("--chunk-rows", "1"), ("--chunk-rows", "3")])
def test_kept_values_are_exact_and_missing_ones_stay_so(kept, rows, capsys):
    options = [word for name in (*KEPT, "coded", "time", "age") for word in ("--keep", name)]
    lines = list(csv.DictReader(predicted(kept, capsys, *options, *rows, table="t.parquet").splitlines()))
    documents = list(
        map(json.loads, predicted(kept, capsys, *options, *rows, "--json", table="t.parquet").splitlines())
    )
    for name, (_, text, values) in KEPT.items():
        assert [line[name] for line in lines] == text
        assert [document[name] for document in documents] == values
    assert [document["coded"] for document in documents] == KEPT["text"][2]
    assert [document["age"] for document in documents] == [20, 30, 40, 50]
    assert documents[0]["time"] == "1970-01-01 00:00:00.000000001"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--keep", "tags"), "must hold numbers, truth values, texts, dates or times, got 'tags' of list<"),
        (("--keep", "raw"), "must hold numbers, truth values, texts, dates or times, got 'raw' of binary"),
        (("--keep", "far", "--json"), "--json requires finite numbers in the columns of --keep"),
    ],
)
def test_values_that_cannot_be_kept(kept, more, message, capsys):
    output = kept / "out"
    arguments = [str(kept / "model.json"), str(kept / "t.parquet"), "--schema", str(kept / "people.toml")]
    assert message in ran(capsys, "predict", *arguments, "--output", output, *more, code=2).err
    assert not output.exists()


@pytest.mark.parametrize("delimiter", ["tab", r"\t", "\t", " ", "|"])
def test_delimiters_of_a_shell(people, expected, delimiter, tmp_path, capsys):
    here, character = shutil.copytree(people, tmp_path / "here"), "\t" if delimiter in {"tab", r"\t"} else delimiter
    (here / "t.csv").write_text(as_csv(columns()).replace(",", character), encoding="utf-8")
    assert predicted(here, capsys, "--delimiter", delimiter, table="t.csv").split() == ["prediction", *expected[0]]


def test_a_blank_line_is_a_missing_value(tmp_path, capsys):
    """A row that only says that its one value is missing is a row."""
    schema = tmp_path / "s.toml"
    schema.write_text(SCHEMA.split('[[columns]]\nkind = "cat')[0], encoding="utf-8")
    fitting = ["fit", str(tmp_path / "t.csv"), "--schema", str(schema), "--epsilon", "5", "--l2-strength", "0.1"]
    (tmp_path / "t.csv").write_text(as_csv({name: columns()[name] for name in ("age", "ill")}), encoding="utf-8")
    assert main([*fitting, "--output", str(tmp_path / "m.json"), "--quiet"]) == 0
    capsys.readouterr()
    (tmp_path / "one.csv").write_text("age\n20\n\n40\n", encoding="utf-8")
    assert main(["predict", str(tmp_path / "m.json"), str(tmp_path / "one.csv"), "--schema", str(schema)]) == 2
    assert "column 'age' must hold finite numbers, got '' in row 1" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
def test_a_file_is_complete_or_absent(people, name, tmp_path, capsys):
    out = tmp_path / name
    common = ["predict", str(people / "model.json"), "--schema", str(people / "people.toml"), "--output", str(out)]
    bad = tmp_path / "bad.csv"
    bad.write_text(as_csv(columns(50)) + "old,A,no\n", encoding="utf-8")
    message = ran(capsys, *common, bad, "--chunk-rows", "10", code=2).err
    assert "column 'age' must hold finite numbers, got 'old' in row 0" in message
    assert f"(row 0, counted from 0, is line 52 of {bad})" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv"]
    assert ran(capsys, *common, people / "people.csv").err == f"wrote {out}\n"
    content = gzip.decompress(out.read_bytes()).decode() if name.endswith(".gz") else out.read_text()
    assert content == predicted(people, capsys)
    # Another run leaves it alone, unless told otherwise, and never replaces what it reads.
    assert "--output must name a new file, got" in ran(capsys, *common, people / "people.csv", code=2).err
    assert ran(capsys, *common, people / "parts" / "0.csv", "--force", "--quiet").err == ""
    assert main([*common[:-1], str(people / "people.csv"), str(people / "people.csv"), "--force"]) == 2
    assert "must not be one of the input files" in capsys.readouterr().err


def test_a_table_without_rows(people, tmp_path, capsys):
    shutil.copytree(people, tmp_path / "here")
    (tmp_path / "here" / "t.csv").write_text("age,ward\n", encoding="utf-8")
    assert predicted(tmp_path / "here", capsys, table="t.csv") == "prediction\n"


def test_real_targets_come_in_units_of_the_table(tmp_path, capsys):
    rng = np.random.default_rng(1)
    age = rng.integers(18, 90, 3_000)
    dose = np.clip(90.0 - age + rng.normal(size=3_000), 0, 100)
    (tmp_path / "t.csv").write_text(as_csv({"age": [str(a) for a in age], "dose": [f"{d:.3f}" for d in dose]}))
    for scale, loss in (("symmetric", ["squared", "--radius", "4"]), ("unit", ["soft_logistic"])):
        (tmp_path / "s.toml").write_text(
            f'[target]\ncolumn = "dose"\nlower = 0\nupper = 100\nscale = "{scale}"\n'
            '[[columns]]\nkind = "numeric"\nname = "age"\nlower = 18\nupper = 90\n',
            encoding="utf-8",
        )
        shared = [str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.toml")]
        fitting = ["--epsilon", "5", "--l2-strength", "0.01", "--output", str(tmp_path / f"{scale}.json"), "--quiet"]
        assert main(["fit", *shared, *fitting, "--loss", *loss]) == 0
        capsys.readouterr()
        found = np.array(ran(capsys, "predict", tmp_path / f"{scale}.json", *shared).out.split()[1:], dtype=float)
        assert np.abs(found - dose).mean() < 8


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--keep", "name"), "the table must have the column 'name', got ['age', 'ward', 'ill'] in 'people.csv'"),
        (("--keep", "age", "--keep", "age"), "--keep must name each column once, got --keep age twice"),
        (("--output", "p.parquet"), "--output must not end in .parquet, because the output is text"),
        (("--keep", "prediction"), "--keep must not name a column that the output has already"),
        (("--chunk-rows", "0"), "--chunk-rows must be at least 1, got --chunk-rows 0"),
        (
            ("--delimiter", ";;"),
            "the delimiter must be one character, and neither a quote nor the end of a line nor NUL, got ';;'",
        ),
        (("--delimiter", '"'), "nor NUL, got a quote"),
        (("--delimiter", "\0"), "nor NUL, got a NUL"),
        (("--delimiter", "\r"), "nor NUL, got a carriage return"),
        (
            ("--schema", "adult_demo"),
            "--schema must have the columns of the schema in the model, got others: adult_demo",
        ),
        (("--output", "no/such.csv"), "--output must name a file in a folder that exists"),
        (("-",), "the standard input (-) must be the only table, got 2"),
        (("people.csv",), "a table must be named once, got people.csv and people.csv, which are one file"),
        (("./parts/../people.csv",), "a table must be named once"),
        (("--output", "people.toml", "--force"), "--output must not be one of the input files, got 'people.toml'"),
        (("--output", "model.json", "--force"), "--output must not be one of the input files, got 'model.json'"),
        (
            ("none*.csv",),
            "a pattern must have at least one .csv, .csv.gz, .parquet, .xlsx, .xlsb, .xls, .ods file, got none",
        ),
    ],
)
def test_refusals(people, more, message, monkeypatch, capsys):
    monkeypatch.chdir(people)
    captured = ran(capsys, "predict", "model.json", "people.csv", "--schema", "people.toml", *more, code=2)
    assert captured.err.startswith("dpci: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_classes_have_the_names_of_the_table(people, tmp_path, capsys):
    model, flipped = tmp_path / "m.json", tmp_path / "flipped.toml"
    assert main([*fit_arguments(people), "--output", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == ["no", "yes|probably"]
    result = dpci.PrivateFit.from_json(model.read_text())
    assert "positive class 'yes'" in result.summary(full=True)
    assert result.classes == ("no", "yes|probably")
    # Whatever the schema calls them now.
    text = (people / "people.toml").read_text()
    flipped.write_text(text.replace("negative", "other").replace("positive", "negative").replace("other", "positive"))
    assert flipped.read_text() != text
    assert main(["predict", str(model), str(people / "people.csv"), "--schema", str(flipped)]) == 0
    rows = NamedRows(Schema.from_file(people / "people.toml").features(columns()), result.names[:-1])
    assert capsys.readouterr().out.split()[1:] == list(result.predict(rows))


def test_models_that_are_none(people, tmp_path, capsys):
    for content, message in ((None, "a model must be a file that can be read"), ("{}", "a saved fit")):
        path = tmp_path / "m.json"
        if content is not None:
            path.write_text(content)
        for command in (
            ["predict", str(path), "x.csv", "--schema", str(people / "people.toml")],
            ["report", str(path)],
        ):
            captured = ran(capsys, *command, code=2)
            assert message in captured.err
            assert captured.err.count("\n") == 1
    # Another model than that of the schema.
    assert main(["predict", str(people / "model.json"), str(people / "people.csv"), "--schema", "adult_demo"]) == 2


def test_memory_does_not_grow_with_the_table(people, tmp_path):
    """Ten times the rows in the same memory: a chunk holds 500 of them."""
    peaks = []
    for n in (2_000, 20_000):
        path = tmp_path / f"{n}.csv"
        path.write_text(as_csv(columns(n)), encoding="utf-8")
        common = ["predict", str(people / "model.json"), str(path), "--schema", str(people / "people.toml"), "--quiet"]
        tracemalloc.start()
        assert main([*common, "--chunk-rows", "500", "--output", str(tmp_path / f"{n}.out.csv")]) == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
    assert (tmp_path / "20000.out.csv").read_text().count("\n") == 20_001


# Reports.


def test_a_report_says_what_the_fit_said(people, tmp_path, capsys):
    model = tmp_path / "model.json"
    fitted = json.loads(ran(capsys, *fit_arguments(people, "--output", str(model), "--quiet", "--json")).out)
    assert json.loads(ran(capsys, "report", model, "--json").out) == fitted
    assert main(["report", str(model), "--level", "0.9"]) == 0
    result = dpci.PrivateFit.from_json(model.read_text())
    assert capsys.readouterr().out == result.summary(level=0.9) + "\n"
    for key, shown in (("scaled", result.scaled), ("coefficients", result)):
        assert [row["name"] for row in fitted[key]] == list(shown.names)
        assert [row["lower"] for row in fitted[key]] == shown.conf_int().lower.tolist()
        assert [row["p_value"] for row in fitted[key]] == shown.pvalues.tolist()
    assert fitted["privacy"]["spent"] == {"epsilon": 1.0}


def test_a_model_without_intervals(people, capsys):
    found = json.loads(ran(capsys, *fit_arguments(people, "--moments", "none", "--json")).out)
    assert set(found["scaled"][0]) == {"name", "estimate"}
    assert "moments" in found["interval_refusal"]


def test_a_report_as_a_page(people, tmp_path, capsys):
    page = tmp_path / "r.html"
    shown = ["--level", "0.9", "--title", "Who is <ill>?", "--output", page]
    arguments = ["report", people / "model.json", *shown]
    assert ran(capsys, *arguments) == ("", f"wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    model = dpci.PrivateFit.from_json((people / "model.json").read_text())
    assert text == model.to_html(level=0.9, title="Who is <ill>?")
    assert "Who is &lt;ill&gt;?" in text
    assert json.loads(ran(capsys, *arguments, "--force", "--quiet", "--json").out)["level"] == 0.9


def test_reports_that_are_refused(people, capsys):
    for more, message in (
        (("--level", "1"), "level must be > 0 and < 1"),
        (("--title", "Ill"), "--title requires --output"),
        (("--output", str(people / "model.json"), "--force"), "--output must not be one of the input files"),
    ):
        assert message in ran(capsys, "report", people / "model.json", *more, code=2).err
