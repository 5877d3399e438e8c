"""``dpci verify``, and what ``dpci fit`` refuses before a ledger pays: each mistake its own error."""

import contextlib
import dataclasses
import io
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci.approval.approvable import statement_of
from dpci.approval.ledger import against_ledger
from dpci.cli.main import main
from dpci.schema import Schema
from support.saved import rewritten

SCHEMA = """
[target]
column = "ill"
negative = "no"
positive = "yes"

[[columns]]
kind = "numeric"
name = "age"
lower = 18
upper = 100

[[columns]]
kind = "categorical"
name = "sex"
categories = ["F", "M"]
reference = "F"
"""
RNG = np.random.default_rng(0)
ROWS = [
    f"{RNG.integers(18, 100)},{sex},{ill}"
    for sex, ill in zip(RNG.choice(["F", "M"], 3000), RNG.choice(["no", "yes"], 3000), strict=True)
]
FIT = ["fit", "people.csv", "--schema", "people.toml", "--l2-strength", "0.05", "--epsilon", "1", "--ledger", "l.db"]


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings(action="ignore"):
        code = main([*arguments])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(SCHEMA)
    (tmp_path / "people.csv").write_text("age,sex,ill\n" + "\n".join(ROWS) + "\n")
    dpci.Ledger(dpci.PureDP(3.0), path="l.db")
    return tmp_path


@pytest.fixture
def model(folder):
    code, _, err = run(*FIT, "--output", "model.json")
    assert code == 0, err
    return folder / "model.json"


def findings(*arguments):
    code, out, err = run("verify", "model.json", *arguments, "--json")
    assert err == ""
    found = json.loads(out)["findings"]
    failed = [finding["what"] for finding in found if finding["outcome"] == "FAILED"]
    unchecked = {outcome: [finding["what"] for finding in found if finding["outcome"] == outcome]
                 for outcome in ("not checked", "not shown")}  # fmt: skip
    assert code == (1 if failed else 6 if unchecked["not checked"] else 0)
    return failed, unchecked["not checked"] + unchecked["not shown"]


def of_others(failed):
    """Failures besides those of the noise, which is another one for a changed model, and of the lattices."""
    return [what for what in failed if not what.startswith(("the noise must be that", "released numbers must be"))]


@pytest.mark.usefixtures("model")
def test_what_agrees_and_what_cannot_be_checked():
    failed, unchecked = findings("--ledger", "l.db", "--schema", "people.toml")
    assert failed == []
    assert len(unchecked) == 6
    assert any("no file can show it" in what for what in unchecked)
    failed, unchecked = findings()
    assert failed == []
    assert any("no agreed schema was given, repeat with --schema" in what for what in unchecked)
    assert any("no ledger was given, repeat with --ledger" in what for what in unchecked)
    code, out, _ = run("verify", "model.json")
    assert code == 6
    assert (out.count("\nnot checked  "), out.count("\nnot shown    ")) == (2, 6)
    end = (
        '\n\nResult: incomplete, 2 checks were left out (exit code 6). Repeat with what the lines "not checked" name.\n'
    )
    assert out.endswith(end)
    code, out, _ = run("verify", "model.json", "--ledger", "l.db", "--schema", "people.toml")
    assert code == 0
    assert out.endswith("\n\nResult: nothing differs, 6 not shown (exit code 0). This is not an approval.\n")
    assert run("report", "model.json", "--officer")[0] == 6
    assert run("report", "model.json", "--officer", "--ledger", "l.db", "--schema", "people.toml")[0] == 0
    code, out, _ = run("verify", "modle.json")
    assert (code, out) == (2, "Result: modle.json not found (exit code 2). Nothing was checked.\n")


@pytest.mark.parametrize("kind", ["groups", "tuning"])
def test_a_fit_that_claims_to_be_a_part_of_another_release(model, kind):
    saved = json.loads(model.read_text())
    budget = {"notion": "pure", "epsilon": 1.0}
    besides = {"epsilon": 1e-12} if kind == "tuning" else None
    saved["whole"] = {"kind": kind, "parts": 1, "neighbors": "replace_one", "budget": budget, "besides": besides}
    saved["params"][0] += 1.0
    model.write_text(rewritten(saved))
    failed = of_others(findings("--ledger", "l.db")[0])
    assert len(failed) == 1
    assert "has another source than the model" in failed[0]


def test_another_ledger_and_an_entry_of_another_model(model):
    dpci.Ledger(dpci.PureDP(3.0), path="other.db")
    failed, _ = findings("--ledger", "other.db")
    assert len(failed) == 1
    assert "the model names ledger" in failed[0]
    # A model that was made anew with the same words, hash included.
    genuine = model.read_text()
    saved = json.loads(genuine)
    saved["params"][0] += 0.5
    model.write_text(rewritten(saved))
    failed = of_others(findings("--ledger", "l.db", "--schema", "people.toml")[0])
    assert failed == [next(what for what in failed if "holds the hash of another model" in what)]
    saved["paid"] = {**saved["paid"], "entry": 7}
    model.write_text(rewritten(saved))
    failed = of_others(findings("--ledger", "l.db")[0])
    assert "the ledger does not have entry 7" in failed[0]
    saved["paid"] = {**saved["paid"], "entry": 1}
    saved["budget"] = {"notion": "pure", "epsilon": 2.0}
    model.write_text(rewritten(saved))
    code, _, err = run("verify", "model.json", "--ledger", "l.db")
    assert code == 2
    assert "must spend the whole budget epsilon=2, got 1" in err
    claim = statement_of(dpci.PrivateFit.from_json(genuine)).claim
    found = against_ledger(dataclasses.replace(claim, charged=dpci.PureDP(2.0)), "l.db")
    assert any("has another budget than the model" in what for _, what in found)
    Path("l.db").unlink()
    model.write_text(genuine)
    code, out, err = run("verify", "model.json", "--ledger", "l.db")
    assert (code, out) == (2, "Result: l.db not found (exit code 2). Nothing was checked.\n")
    assert "check the path, or ask the analyst for it" in err


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("upper = 100", "upper = 90", "column 'age' has the upper bound 100 in the model, 90 in the agreed one"),
        ('"F", "M"', '"F", "W"', "column 'sex' has the categories: F, M in the model, F, W in the agreed one"),
        (
            '"F", "M"',
            '"M", "F"',
            "column 'sex' has the same categories in another order: F, M in the model, M, F in the agreed one",
        ),
        ('"age"', '"weight"', "column 'age' is only in the model"),
        ('positive = "yes"', 'positive = "YES"', "the target is"),
        ("", 'formula = "age*sex"\n', "the columns of the rows are age, sex=M in the model, age, sex=M, age:sex=M in"),
    ],
)
def test_another_schema(folder, old, new, difference):
    text = SCHEMA.replace(old, new) if old else new + SCHEMA
    (folder / "people.toml").write_text(text)
    failed, _ = findings("--schema", "people.toml")
    assert len(failed) == 1
    assert difference in failed[0]


def test_a_changed_model_file(model):
    text = model.read_text()
    for changed in (
        text.replace('"lower": 18', '"lower": 17'),
        text.replace('"version"', '"Version"'),
        text[:-9],
        "{}",
    ):
        assert changed != text
        model.write_text(changed)
        code, out, err = run("verify", "model.json")
        assert code == 2
        assert out.startswith("Result: ")
        assert ("altered or damaged" in out) == ("its hash" in err)
        assert "a saved fit must" in err


def test_a_regression_is_that_of_the_matrix_which_the_ledger_paid_for(folder):
    text = SCHEMA.replace('negative = "no"\npositive = "yes"', "lower = 0\nupper = 1").replace('"ill"', '"wage"')
    (folder / "wages.toml").write_text(text)
    rows = [row.replace(",no", ",0.25").replace(",yes", ",0.75") for row in ROWS]
    (folder / "wages.csv").write_text("age,sex,wage\n" + "\n".join(rows) + "\n")
    fit = ["regress", "wages.csv", "--schema", "wages.toml", "--epsilon", "1", "--ledger", "l.db"]
    code, _, err = run(*fit, "--output", "model.json")
    assert code == 0, err
    given = ("--ledger", "l.db", "--schema", "wages.toml")
    assert findings(*given)[0] == []
    regression = dpci.regression.LinearFit.from_json((folder / "model.json").read_text())
    matrix = dpci.regression.MomentMatrix.of(regression)
    assert dpci.Ledger.open("l.db").models == {1: matrix.digest}
    for saved in (matrix, matrix.fit("age", ["sex=M"])):
        (folder / "model.json").write_text(saved.to_json())
        assert findings(*given)[0] == []
    # Another matrix with the same words, hash included.
    other = json.loads(matrix.to_json())
    other["matrix"][0][0] += 0.5
    (folder / "model.json").write_text(rewritten(other))
    assert any("holds the hash of another model" in what for what in findings(*given)[0])


def test_what_cannot_be_checked_of_persons_and_of_several_targets(folder):
    X, ids = RNG.uniform(0, 1, (600, 2)), np.repeat(np.arange(200), 3)
    common = {"budget": dpci.ZCDP(0.5), "bounds": ([0, 0], [1, 1])}
    matrices = {
        "one row": dpci.regression.release(X, X[:, 0], target_bound=1.0, **common),
        "each id": dpci.regression.release(X, X[:, 0], target_bound=1.0, persons=ids, **common),
    }
    for of_it, matrix in matrices.items():
        (folder / "model.json").write_text(matrix.to_json())
        (about,) = [what for what in findings()[1] if "chosen without the data, and that" in what]
        assert of_it in about
    several = dpci.regression.release(X, X, target_bound=1.0, **common)
    (folder / "model.json").write_text(several.to_json())
    assert findings()[0] == []
    code, _, err = run("report", "model.json")
    assert code != 0
    assert "moment matrices of one target, got y0, y1" in err


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_strata_are_one_release_and_each_names_it(folder, neighbors):
    dpci.Ledger(dpci.PureDP(3.0), path="s.db", neighbors=neighbors)
    table = {"age": np.linspace(18, 100, 900), "sex": np.resize(["F", "M"], 900), "ill": np.resize(["no", "yes"], 900)}
    with warnings.catch_warnings(action="ignore"):
        found = dpci.fit_strata(
            {**table, "state": np.resize(["A", "B", "B"], 900)}, by="state", strata=("A", "B"), n_public=400,
            schema=Schema.from_file("people.toml"), neighbors=neighbors, budget=dpci.PureDP(1.0), l2_strength=0.5,
            ledger=dpci.Ledger.open("s.db"),
        )  # fmt: skip
    (folder / "model.json").write_text(found.to_json())
    assert findings("--ledger", "s.db")[0] == []
    code, out, _ = run("report", "model.json")
    assert code == 0
    assert out == found.summary() + "\n"
    (folder / "model.json").write_text(found["B"].to_json())
    failed, unchecked = findings("--ledger", "s.db")
    assert failed == []
    assert any("the ledger can only hold that of the whole" in what for what in unchecked)
    charged = 1.0 if neighbors == "add_remove" else 2.0
    document = run("report", "model.json", "--officer")[1]
    assert f"The whole is all 2 strata of the table. It spends epsilon={charged:g} (pure DP)" in document
    assert f"The release spends epsilon={charged:g} (pure DP)." in document
    assert ("replaced by another, possibly of another stratum" in document) == (neighbors == "replace_one")
    # A part that claims to be of more strata, one that says of no whole, and strata of which one says of none.
    saved = json.loads(found["B"].to_json())
    more = {**saved, "whole": {**saved["whole"], "parts": 3}}
    alone = {**saved, "whole": None}
    for changed, message in (
        (
            more,
            "has another source than the model: dpci.fit_strata, 2 strata of 'state' in the ledger, dpci.fit_strata, 3",
        ),
        (alone, "the fit does not say that it is a part of all strata of a table"),
    ):
        (folder / "model.json").write_text(rewritten(changed))
        (failed,) = findings("--ledger", "s.db")[0]
        assert message in failed
    everything = json.loads(found.to_json())
    everything["strata"][1][1] = alone
    (folder / "model.json").write_text(rewritten(everything))
    code, out, err = run("verify", "model.json")
    assert code == 2, out + err
    assert "strata must be models of one kind, got another whole of 'B'" in err
    of_none = [json.loads(found[name].to_json()) for name in found]
    for one in of_none:
        one["whole"] = None
    everything["strata"] = [[name, one] for name, one in zip(found, of_none, strict=True)]
    (folder / "model.json").write_text(rewritten(everything))
    assert findings()[0] == ["these models do not say that they are a part of all strata: A, B"]
    # A part that claims that the whole cost more or less than strata at its budget.
    saved = json.loads(found["B"].to_json())
    for claimed in (0.5 * charged, 1.5 * charged):
        saved["whole"]["budget"] = {"notion": "pure", "epsilon": claimed}
        (folder / "model.json").write_text(rewritten(saved))
        assert run("verify", "model.json")[0] == 2


def test_a_formula_is_agreed_with_its_schema():
    formula = ["--formula", "ill ~ age*sex"]
    assert run(*FIT, *formula, "--output", "model.json")[0] == 0
    agreed = ["--ledger", "l.db", "--schema", "people.toml"]
    for command in (["verify", "model.json"], ["report", "model.json", "--officer"]):
        assert run(*command, *agreed, *formula)[0] == 0
        code, out, _ = run(*command, *agreed, "--formula", "ill ~ age + sex")
        assert code == 1
        assert "the columns of the rows are age, sex=M, age:sex=M in the model, age, sex=M in the agreed one" in out
        code, _, err = run(*command, *formula)
        assert code == 2
        assert "--formula requires --schema, which bounds each column, got --formula 'ill ~ age*sex'" in err
    assert "require --officer" in run("report", "model.json", *formula)[2]


def test_models_without_ledger_and_without_schema(folder):
    X = RNG.uniform(-0.5, 0.5, (300, 2))
    with warnings.catch_warnings(action="ignore"):
        result = dpci.fit(X, X[:, 0] > 0, budget=dpci.PureDP(1.0), l2_strength=0.1, seed=1)
    (folder / "model.json").write_text(result.to_json())
    failed, _ = findings()
    assert failed == ["its noise came from a seed: NOT PRIVATE"]
    failed, _ = findings("--ledger", "l.db", "--schema", "people.toml")
    assert failed[1:] == [
        "the model was fitted to encoded rows and holds no schema, but one was given",
        "the model names no ledger, but one was given",
    ]
    # Whoever sees no exit code reads it, and the report fails with the same code.
    code, out, _ = run("verify", "model.json", "--ledger", "l.db", "--schema", "people.toml")
    assert code == 1
    assert out.endswith("Result: 3 checks FAILED (exit code 1). Refuse.\n")
    assert run("report", "model.json", "--officer", "--ledger", "l.db")[0] == 1


@pytest.mark.parametrize(
    ("row", "schema", "options", "message"),
    [
        ("30,Female,no", None, [], "column 'sex' must hold one of ['F', 'M'], got 'Female' in row 3000"),
        ("30,F,maybe", None, [], "column 'ill' must hold one of ['no', 'yes'], got 'maybe' in row 3000"),
        ("30,F,no", None, ["--delimiter", ";"], "the table must have the column"),
        (",F,no", None, [], "column 'age' must hold finite numbers, got '' in row 3000"),
        ("30,,no", None, [], "column 'sex' must hold one of ['F', 'M'], got '' in row 3000"),
        ("30,F", None, [], "3 fields"),
        ("30,F,no", SCHEMA.replace('"age"', '"Age"'), [], "the table must have the column 'Age'"),
        ("30,F,no", SCHEMA.replace("lower = 18", "lower = 180"), [], "lower must be below upper"),
        ("30,F,no", None, ["--formula", "ill ~ Age"], "formula: names must be those of columns of the schema"),
    ],
)
def test_mistakes_cost_nothing(folder, row, schema, options, message):
    with (folder / "people.csv").open("a") as file:
        file.write(row + "\n")
    if schema is not None:
        (folder / "people.toml").write_text(schema)
    code, out, err = run(*FIT, *options, "--output", "model.json")
    assert (code, out) == (2, "")
    assert message in err, err
    assert not (folder / "model.json").exists()
    assert dpci.Ledger.open("l.db").spent == {"epsilon": 0.0}


@pytest.mark.usefixtures("model")
def test_predictions_of_a_wrong_table_begin_with_no_header(folder):
    (folder / "new.csv").write_text("age,sex\n30,Female\n")
    code, out, err = run("predict", "model.json", "new.csv")
    assert (code, out) == (2, "")
    assert "column 'sex' must hold one of ['F', 'M'], got 'Female' in row 0" in err
