"""Tables as spreadsheets and other programs write them: the same model, or a refusal of its own that costs nothing."""

import gzip
import json

import numpy as np
import pytest

import dpci
from dpci.cli.main import main
from dpci.errors import InvalidInput
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema

SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=18, upper=100),
        CategoricalColumn(name="ward", categories=("1", "2"), reference="1"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)
RNG = np.random.default_rng(0)
AGE, WARD = RNG.integers(18, 100, 80), RNG.integers(1, 3, 80)
ILL = np.where(RNG.logistic(size=80) + AGE / 20 > 3, "yes", "no")
ROWS = [(str(age), str(ward), str(ill)) for age, ward, ill in zip(AGE, WARD, ILL, strict=True)]
HEADER = ("age", "ward", "ill")
FIT = {"schema": SCHEMA, "budget": dpci.PureDP(1e5), "l2_strength": 0.5, "seed": 1}


def text(rows=ROWS, header=HEADER, mark=",", end="\n"):
    return end.join(mark.join(row) for row in ([header] if header else []) + list(rows)) + end


def changed(**cells):
    """Rows of which each cell of a column has another form."""
    change = [cells.get(name, str) for name in HEADER]
    return [tuple(form(cell) for form, cell in zip(change, row, strict=True)) for row in ROWS]


def beside(*cells):
    return [*ROWS, cells]


def fitted(table):
    return dpci.fit(table, **FIT).to_json()


MODEL = fitted({"age": AGE, "ward": WARD, "ill": ILL})

SAME = {
    "byte order mark": "\ufeff" + text(), "CRLF": text(end="\r\n"), "CR": text(end="\r"),
    "no last line end": text()[:-1], "blank lines": text(ROWS[:5]) + "\n\r\n" + text(ROWS[5:], None) + "\n\n",
    "quotes": text([tuple(f'"{cell}"' for cell in row) for row in ROWS]),
    "trailing spaces": text(changed(age="{} ".format, ward=" {}  ".format, ill="{}\t".format)),
    "spaces in the header": text(header=(" age ", '"ward"', "ill ")),
    "categories as 1.0": text(changed(ward="{}.0".format)), "ages as floats": text(changed(age="{}.000".format)),
    "a column of names": text([(*row, "O'Neill; x") for row in ROWS], (*HEADER, "name")),
    "an index without a name": text([(str(i), *row) for i, row in enumerate(ROWS)], ("", *HEADER)),
    "a delimiter at every end": text([(*row, "") for row in ROWS], (*HEADER, "")),
}  # fmt: skip

REFUSED = {
    "semicolons": (text(mark=";"), "(';' seems to separate the fields: pass delimiter=';'"),
    "tabs": (text(mark="\t"), "('\\t' seems to separate the fields: pass delimiter='\\t'"),
    "decimal comma": (
        text(changed(age='"{},5"'.format)),
        "(numbers need a decimal point, and no thousands separator; in a file pass decimal=','",
    ),
    "decimal comma between commas": (text(changed(age="{},5".format)), "must have 3 fields, got 4 in line 2"),
    "thousands": (text(beside('"1,000"', "1", "no")), "got '1,000' in row 80 (numbers need a decimal point"),
    "underscores": (text(beside("1_0", "1", "no")), "must hold finite numbers, got '1_0' in row 80"),
    "apostrophes": (text(changed(age="'{}'".format)), "must hold finite numbers"),
    "no header": (text(header=None), "(the first line of a file must hold the names of the columns)"),
    "two headers": (text(beside(*HEADER)), "column 'age' must hold finite numbers, got 'age' in row 80"),
    "a repeated name": (text([(row[0], *row) for row in ROWS], ("age", *HEADER)), "a line of distinct column names"),
    "capitals": (text(header=("Age", "ward", "ill")), "(names must agree in every letter: 'Age' is there)"),
    "sep= of a spreadsheet": ("sep=,\n" + text(), "the table must have the column 'age', got ['sep=', '']"),
    "NA": (text(beside("NA", "1", "no")), "got 'NA' in row 80 (a missing value: the column needs missing="),
    "an empty cell": (text(beside("", "1", "no")), "got '' in row 80 (a missing value: the column needs missing="),
    "a question mark": (text(beside("?", "1", "no")), "must hold finite numbers, got '?' in row 80"),
    "an empty category": (
        text(beside("30", "", "no")),
        "must hold one of ['1', '2'], got '' in row 80 (a missing value",
    ),
    "an unknown category": (text(beside("30", "3", "no")), "must hold one of ['1', '2'], got '3' in row 80"),
    "a leading zero": (text(beside("30", "01", "no")), "must hold one of ['1', '2'], got '01' in row 80"),
    "an empty target": (text(beside("30", "1", "")), "must hold one of ['no', 'yes'], got '' in row 80"),
    "a truth value": (text(beside("True", "1", "no")), "must hold finite numbers, got 'True' in row 80"),
    "a date": (text(beside("2020-01-01", "1", "no")), "got '2020-01-01' in row 80 (dates need since= of the column"),
    "infinity": (text(beside("inf", "1", "no")), "must hold finite numbers, got 'inf' in row 80"),
    "too great a number": (text(beside("9" * 400, "1", "no")), "must hold finite numbers, got '999"),
    "too long a field": (text(beside("9" * 200_000, "1", "no")), "got field larger than field limit"),
    "one field more": (text(beside("30", "1", "no", "x")), "must have 3 fields, got 4 in line 82"),
    "a line of spaces": (text(beside("   ")), "must have 3 fields, got 1 in line 82"),
    "a stray quote": (text(beside('30"', "1", '"no')), "unexpected end of data"),
    "nothing": ("", "must begin with a line of distinct column names, got []"),
    "a header alone": (text([]), "at least one row"),
    "UTF-16": (text().encode("utf-16"), "must be CSV text in UTF-8"),
    "Latin 1": (text(beside("30", "1", "n\u00f6")).encode("latin-1"), "must be CSV text in UTF-8"),
    "a workbook": (b"PK\x03\x04\xff\xfe\x00", "must be CSV text in UTF-8"),
    "an archive": (gzip.compress(text().encode()), "must be CSV text in UTF-8"),
}


def run(folder, *arguments):
    """Return the exit code of ``dpci fit`` and what its ledger has spent."""
    (folder / "schema.json").write_text(json.dumps(SCHEMA.to_dict()))
    dpci.Ledger(dpci.PureDP(1.0), path=folder / "ledger.db")
    given = ["--schema", str(folder / "schema.json"), "--ledger", str(folder / "ledger.db"), "--epsilon", "1"]
    code = main(["fit", *map(str, arguments), *given, "--l2-strength", "0.5", "--quiet"])
    return code, dpci.Ledger.open(folder / "ledger.db").spent["epsilon"]


@pytest.mark.parametrize("form", SAME)
def test_the_same_table_gives_the_same_model(form, tmp_path):
    (tmp_path / "t.csv").write_bytes(SAME[form].encode())
    assert fitted(tmp_path / "t.csv") == MODEL


@pytest.mark.parametrize("form", REFUSED)
def test_a_refusal_says_what_is_wrong_and_costs_nothing(form, tmp_path, capsys):
    content, message = REFUSED[form]
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    with pytest.raises(InvalidInput) as refusal:
        dpci.fit(path, schema=SCHEMA, budget=dpci.PureDP(1.0), l2_strength=0.5, ledger=ledger)
    assert message in str(refusal.value)
    assert ledger.history == ()
    assert run(tmp_path, path) == (2, 0.0)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("mark", "name", "more"),
    [(";", "t.csv", ()), ("tab", "t.csv.gz", ("--chunk-rows", "7")), ("|", "t.csv", ("--chunk-rows", "80"))],
)
@pytest.mark.filterwarnings("ignore::dpci.DpciWarning")
def test_delimiters_archives_and_chunks_on_the_command_line(mark, name, more, tmp_path, capsys):
    content = text(mark="\t" if mark == "tab" else mark).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert run(tmp_path, tmp_path / name, "--delimiter", mark, *more) == (0, 1.0)
    assert "ward=2" in capsys.readouterr().out


def test_a_bad_row_in_the_last_chunk_costs_nothing(tmp_path, capsys):
    (tmp_path / "t.csv").write_text(text(beside("?", "1", "no")))
    assert run(tmp_path, tmp_path / "t.csv", "--chunk-rows", "7") == (2, 0.0)
    assert "(row 3, counted from 0, is line 82 of " in capsys.readouterr().err


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("kind", ["numbers", "floats", "texts", "categories"])
def test_categories_of_frames_are_compared_by_their_text(library, kind, tmp_path):
    module = pytest.importorskip(library)
    cells = {"numbers": WARD.tolist(), "floats": WARD.astype(float).tolist()}.get(kind, [str(ward) for ward in WARD])
    columns = {"age": AGE.tolist(), "ward": cells, "ill": ILL.tolist()}
    if library == "pyarrow":
        frame = module.table(columns)
        if kind == "categories":
            frame = frame.set_column(1, "ward", frame.column("ward").dictionary_encode())
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(frame, tmp_path / "t.parquet")
        assert fitted(tmp_path / "t.parquet") == MODEL
    else:
        frame = module.DataFrame(columns)
        if kind == "categories" and library == "pandas":
            # Unused ones and another order are no matter.
            frame["ward"] = module.Categorical(frame["ward"], categories=["3", "2", "1"])
        elif kind == "categories":
            frame = frame.with_columns(module.col("ward").cast(module.Categorical))
    assert fitted(frame) == MODEL


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("age", None, "'age' must hold finite numbers"),
        ("ward", None, "'ward' must hold one of"),
        ("ward", 3, "'ward' must hold one of"),
        ("ill", None, "'ill' must hold one of"),
    ],
)
def test_gaps_and_strangers_of_frames_cost_nothing(library, column, cell, message):
    module = pytest.importorskip(library)
    columns = {"age": AGE.tolist(), "ward": WARD.tolist(), "ill": ILL.tolist()}
    columns[column] = [*columns[column][:-1], cell]
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    with pytest.raises(InvalidInput, match=message):
        dpci.fit(frame, schema=SCHEMA, budget=dpci.PureDP(1.0), l2_strength=0.5, ledger=ledger)
    assert ledger.history == ()


@pytest.mark.parametrize("days", [AGE.astype("M8[D]"), AGE.astype("m8[s]")])
def test_dates_are_no_numbers(days):
    with pytest.raises(InvalidInput, match="'age' must hold finite numbers, got dtype"):
        dpci.fit({"age": days, "ward": WARD, "ill": ILL}, **FIT)
