"""``dpci tune`` and ``dpci compare``, what of them can be verified, and the options that say what is shown."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci.cli.main import main
from support.commands import ended as run
from support.people import make_people

TUNE = ["tune", "people.csv", "--schema", "people.toml", "--epsilon", "2", "--radius", "3", "--quiet"]
TWO = ["--candidate", "l2_strength=.1", "--candidate", "l2_strength=.5,mechanism=output"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files of a tuning and of two fits, and the ledger that paid for the tuning."""
    folder = tmp_path_factory.mktemp("made")
    make_people(folder)
    table, schema = str(folder / "people.csv"), str(folder / "people.toml")
    with dpci.Ledger(dpci.PureDP(9.0), path=folder / "l.db"):
        pass
    fit = ["fit", table, "--schema", schema, "--epsilon", "5", "--quiet", "--l2-strength"]
    assert main([*fit, "0.005", "--output", str(folder / "other.json")]) == 0
    assert main([*fit, "1", "--output", str(folder / "strong.json")]) == 0
    paid = ["--ledger", str(folder / "l.db"), "--output", str(folder / "tuned.json")]
    assert main([TUNE[0], table, TUNE[2], schema, *TUNE[4:], *TWO, *paid]) == 0
    return folder


@pytest.fixture(autouse=True)
def here(made, monkeypatch):
    monkeypatch.chdir(made)


def test_a_tuning_is_that_of_its_candidates_and_pays_once(capsys):
    tuned = dpci.tuning.TuneResult.from_json(Path("tuned.json").read_text())
    assert dict(tuned.params) in (
        {"l2_strength": 0.1},
        {"l2_strength": 0.5, "mechanism": {"name": "output", "radius": 3.0}},
    )
    assert tuned.result.schema == dpci.schema.Schema.from_file("people.toml")
    ledger = dpci.Ledger.open("l.db")
    assert ledger.spent == {"epsilon": 2.0}
    assert ledger.models == {1: tuned.digest}
    code, out, _ = run(capsys, "report", "tuned.json")
    assert code == 0
    assert out == tuned.summary() + "\n"
    document = json.loads(run(capsys, "report", "tuned.json", "--json")[1])
    assert document["chosen"] == dict(tuned.params)
    assert document["privacy"]["spent"] == {"epsilon": 2.0}
    # Predictions are those of the fit with the choice.
    assert run(capsys, "predict", "tuned.json", "people.csv")[1].count("\n") == 2001
    code, _, err = run(capsys, "report", "tuned.json", "--output", "page.html", "--without-ridge")
    assert code == 2
    assert "--without-ridge must not be given for a saved tuning" in err
    assert run(capsys, "report", "tuned.json", "--output", "page.html")[0] == 0
    page = Path("page.html").read_text(encoding="utf-8")
    # The whole budget, the candidates, and the hash of the file of the tuning.
    assert f"<td>{tuned.spent}</td>" in page
    assert ">candidates</th><td>l2_strength=0.1; l2_strength=0.5, mechanism=output(radius=3.0)</td>" in page
    assert tuned.digest in page
    assert "What someone can learn" in page


def findings(capsys, file):
    code, out, _ = run(capsys, "verify", file, "--ledger", "l.db", "--schema", "people.toml", "--json")
    found = json.loads(out)["findings"]
    failed = [finding["what"] for finding in found if finding["outcome"] == "FAILED"]
    assert code == (1 if failed else 0)
    return failed, [finding["what"] for finding in found if finding["outcome"] == "not shown"]


def test_a_tuning_is_verified_and_its_fit_alone_is_not(made, capsys):
    failed, unchecked = findings(capsys, "tuned.json")
    assert failed == []
    assert any("the list of candidates, budget" in what for what in unchecked)
    tuned = dpci.tuning.TuneResult.from_json((made / "tuned.json").read_text())
    (made / "part.json").write_text(tuned.result.to_json())
    failed, unchecked = findings(capsys, "part.json")
    assert failed == []
    assert any("the ledger can only hold that of the whole" in what for what in unchecked)
    # The budget of the tuning, which is greater than that of the fit.
    officer = run(capsys, "report", "part.json", "--officer")[1]
    assert f"spends {tuned.spent}, which is the number that counts" in officer
    (made / "changed.json").write_text((made / "tuned.json").read_text().replace('"l2_strength"', '"l2-strength"', 1))
    code, out, err = run(capsys, "verify", "changed.json")
    assert code == 2
    assert out == "Result: the file does not match its hash: it was altered or damaged (exit code 2). Refuse.\n"
    assert "a saved tuning must match its hash" in err


def test_a_report_is_verified(made, capsys):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (500, 2))
    ledger = dpci.Ledger(dpci.ApproxDP(2.0, 1e-5), neighbors="add_remove", path=made / "reports.db")
    with warnings.catch_warnings(action="ignore"):
        report = dpci.per_instance.report(
            X, X[:, 0] > 0, budget=dpci.ApproxDP(1.0, 1e-6), l2_strength=0.1, n_public=500, ledger=ledger
        )
    (made / "report.json").write_text(report.to_json())
    code, out, _ = run(capsys, "verify", "report.json", "--ledger", "reports.db")
    assert code == 0
    assert "holds the hash of this model" in out
    assert "a per-instance report" in out
    assert "not shown    bounds that someone computed for records" in out
    (made / "report.json").write_text(report.result.to_json())
    code, out, _ = run(capsys, "verify", "report.json", "--ledger", "reports.db")
    assert code == 0
    assert "paid for a per-instance report, whose own file holds this fit" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--candidate", "0.1"], "--candidate must be NAME=VALUE"),
        (["--candidate", "l2_strength=.1,l2_strength=.2"], "each name once"),
        (["--candidate", "l2_strength=small"], "--candidate l2_strength must hold numbers, got 'small'"),
        (["--candidate", "level=0.9"], "candidates must differ only in"),
        (["--candidate", "radius=2"], "every candidate must have a number as l2_strength"),
        ([*TWO, "--method", "best"], "method must be one of"),
        ([*TWO, "--selection-share", "2"], "selection_share must be > 0 and <= 1"),
    ],
)
def test_what_a_tuning_refuses_costs_nothing(options, message, capsys):
    code, _, err = run(capsys, *TUNE, *options, "--ledger", "l.db")
    assert code == 2
    assert message in err
    assert dpci.Ledger.open("l.db").spent == {"epsilon": 2.0}


def test_a_tuning_takes_tables_in_memory_only():
    schema = dpci.schema.Schema.from_file("people.toml")
    grid = [{"l2_strength": 0.1, "radius": 3.0}]
    with pytest.raises(dpci.InvalidInput, match="a tuning needs a table in memory, got str"):
        dpci.tuning.tune("people.csv", schema=schema, candidates=grid, budget=dpci.PureDP(2.0))


def test_comparisons_are_those_of_python(capsys):
    models = [dpci.PrivateFit.from_json(Path(name).read_text()) for name in ("model.json", "other.json")]
    code, _, err = run(capsys, "compare", "model.json", "other.json")
    assert code == 2
    assert "the same l2_strength to be compared, got 0.01 and 0.005" in err
    arguments = ["compare", "model.json", "other.json", "--without-ridge", "--shared-data"]
    found = dpci.compare(*models, target="unregularised", shared_data=True)
    assert run(capsys, *arguments)[1] == found.summary() + "\n"
    document = json.loads(run(capsys, *arguments, "--json", "--contrast", "age")[1])
    (row,) = document["differences"]
    assert row["name"] == "age"
    assert (document["target"], document["in_units"], document["shared_data"]) == ("unregularised", True, True)
    strong = json.loads(run(capsys, *arguments[:2], "strong.json", *arguments[3:], "--json")[1])
    for row in strong["differences"]:
        assert row["estimate"] is row["p_value"] is row["lower"] is None
        assert "the " in row["refusal"]
    code, _, err = run(capsys, "compare", "model.json", "people.toml")
    assert code == 2
    assert "a saved fit must be JSON" in err


def test_what_is_shown_is_what_was_asked_for(capsys):
    fitted = dpci.PrivateFit.from_json(Path("other.json").read_text())
    shown = run(capsys, "report", "other.json", "--units", "scaled", "--simultaneous", "bonferroni")[1]
    assert shown == fitted.summary(units="scaled", simultaneous="bonferroni") + "\n"
    document = json.loads(run(capsys, "report", "strong.json", "--without-ridge", "--json")[1])
    assert all(row["estimate"] is None and row["refusal"] for row in document["scaled"])
    document = json.loads(run(capsys, "report", "other.json", "--simultaneous", "bonferroni", "--json")[1])
    intervals = fitted.conf_int(simultaneous="bonferroni")
    assert [row["lower"] for row in document["coefficients"]] == intervals.lower.tolist()
    fit = ["fit", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--l2-strength", "0.05"]
    out = run(capsys, *fit, "--units", "scaled", "--simultaneous", "max_z")[1]
    assert out.startswith("95% simultaneous (max_z) confidence intervals\n")
    code, out, err = run(capsys, *fit, "--units", "miles")
    assert (code, out) == (2, "")
    assert "units must be one of" in err
    plan = ["plan", "--n-samples", "2000", "--schema", "people.toml", "--epsilon", "1", "--l2-strength", "0.05"]
    assert run(capsys, *plan, "--without-ridge")[1] != run(capsys, *plan)[1]
    assert run(capsys, "compare", "-h")[1] == run(capsys, "compare", "--help")[1]
