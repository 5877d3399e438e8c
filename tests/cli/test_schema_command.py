"""``dpci schema``, and schemas with gaps in other commands."""

import json

import pytest

import dpci
from dpci.cli.main import main
from dpci.schema import PartialSchema
from support.commands import ran
from support.people import GAPS, as_csv, columns

SHARED = ["--schema", "gaps.toml", "--quiet"]
FIT = ["fit", "people.csv", *SHARED, "--epsilon", "8", "--l2-strength", "0.01"]
RELEASE = ["schema", "people.csv", *SHARED, "--epsilon", "4"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    table = columns()
    table["id"] = [f"{i // 2:04d}" for i in range(len(table["age"]))]
    (tmp_path / "people.csv").write_text(as_csv(table), encoding="utf-8")
    (tmp_path / "gaps.toml").write_text(GAPS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, *arguments):
    return ran(capsys, *arguments, code=2).err


def test_a_released_schema_is_one_for_all_commands(here, capsys):
    dpci.Ledger(dpci.PureDP(20.0), path=here / "l.db").close()
    assert "left out      up to about" in ran(capsys, *RELEASE, "--ledger", "l.db", "--output", "people.json").out
    found = dpci.ReleasedSchema.from_json((here / "people.json").read_text())
    lower, upper = found.bounds["age"]
    assert lower < 30.0
    assert upper > 80.0
    with_bounds = ["--schema", "people.json", "--epsilon", "1", "--l2-strength", "0.01", "--quiet"]
    assert main(["fit", "people.csv", *with_bounds, "--output", "model.json"]) == 0
    assert dpci.PrivateFit.from_json((here / "model.json").read_text()).schema == found.schema
    assert main(["fit", "people.csv", "--schema", "model.json", *with_bounds[2:]]) == 0
    with pytest.raises(dpci.InvalidInput, match=r"got a saved result \(use dpci.load"):
        PartialSchema.from_file(here / "model.json")
    assert main([*FIT, "--output", "other.json"]) == 0
    assert "released separately" in refused(capsys, "compare", "model.json", "other.json")
    capsys.readouterr()
    assert "nothing differs" in ran(capsys, "verify", "people.json", "--schema", "gaps.toml", "--ledger", "l.db").out
    assert main(["report", "people.json", "--officer", "--schema", "gaps.toml", "--ledger", "l.db"]) == 0
    agreed = PartialSchema.from_file(here / "gaps.toml")
    told = capsys.readouterr().out
    report = found.officer_report(schema=agreed, ledger=here / "l.db")
    assert told.partition("## Decide first")[2] == report.partition("## Decide first")[2]
    damaged = (here / "people.json").read_text().replace('"share": 0.', '"share": 0.0', 1)
    (here / "people.json").write_text(damaged)
    assert "damaged or was edited" in refused(capsys, "fit", "people.csv", *with_bounds)


def test_a_page_shows_the_counts(here):
    gaps = "beyond_share = 0.1\ncounts_share = 0.3\n" + (here / "gaps.toml").read_text(encoding="utf-8")
    (here / "gaps.toml").write_text(gaps, encoding="utf-8")
    assert main([*RELEASE, "--page", "people.html", "--output", "people.json"]) == 0
    page = (here / "people.html").read_text(encoding="utf-8")
    assert page.count("<rect") == 20
    assert "beyond bounds" in page
    assert main(["report", "people.json", "--output", "again.html"]) == 0
    assert (here / "again.html").read_text(encoding="utf-8") == page


def test_json_has_the_bounds_and_the_guarantee(capsys):
    persons = ["--persons", "id", "--max-rows", "2"]
    assert main([*RELEASE[:-1], "16", *persons, "--neighbors", "add_remove", "--n-public", "1000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["bounds"]["age"]) == {"lower", "upper"}
    assert (found["private"], found["n_samples"], found["privacy"]["unit"]) == (True, 1000, "person")
    assert found["privacy"]["budget"] == {"epsilon": 16.0}


SAVED = ("--output", "again.json", "--quiet")


def test_a_fit_releases_the_bounds_that_its_schema_lacks(here, capsys):
    assert main([*FIT, "--bounds-share", "0.5", "--output", "model.json", "--formula", "ill ~ age"]) == 0
    fit = dpci.PrivateFit.from_json((here / "model.json").read_text())
    assert fit.privacy["released_bounds"]["budget"] == {"epsilon": 4.0}
    assert fit.names == ("age", "intercept")
    assert main([*FIT, "--rows", "blocks", "--persons", "id", "--max-rows", "2", "--bounds-share", "0.8", *SAVED]) == 0
    capsys.readouterr()
    shown = ran(capsys, "report", "again.json", "--full").out
    assert "epsilon=6.4 (pure DP) for one column, by the exponential mechanism" in " ".join(shown.split())
    found = dpci.PrivateFit.from_json((here / "again.json").read_text())
    (lower, upper), *_ = [(c.lower, c.upper) for c in found.schema.columns if c.name == "age"]
    assert f"{float(f'{lower:.4g}'):g} to {float(f'{upper:.4g}'):g}" in shown.partition("Released bounds")[2]
    assert "odds ratio" in shown


@pytest.mark.parametrize(
    ("more", "of_fit"),
    [
        (("--chunk-rows", "100", "--persons", "id", "--max-rows", "2"), ()),
        (("--ledger", "private.db"), ("--on-violation", "clip")),
    ],
)
def test_tables_in_parts_have_their_gaps_released(here, more, of_fit):
    ledger = dpci.Ledger(dpci.PureDP(60.0), errors="private", path=here / "private.db")
    assert main([*RELEASE[:-1], "16", *more, "--output", "schema.json", "--quiet"]) == 0
    found = dpci.ReleasedSchema.from_json((here / "schema.json").read_text())
    assert found.n_samples == (1000 if "id" in more else 2000)
    assert main([*FIT, "--bounds-share", "0.6", *more, *of_fit, "--output", "model.json", "--quiet"]) == 0
    fit = dpci.PrivateFit.from_json((here / "model.json").read_text())
    assert fit.privacy["released_bounds"]["columns"] == ["age"]
    assert fit.n_samples == found.n_samples
    assert ledger.spent["epsilon"] == pytest.approx(24.0 if of_fit else 0.0)


def test_a_schema_with_gaps_is_checked(here, capsys):
    assert "every value agrees with the schema" in ran(capsys, "check", "people.csv", "--schema", "gaps.toml").out
    (here / "gaps.toml").write_text(GAPS.replace('"yes"', '"Yes"'), encoding="utf-8")
    assert "of neither class: refused" in ran(capsys, "check", "people.csv", "--schema", "gaps.toml", code=1).out


def test_gaps_are_refused_where_they_cannot_be_filled(here, capsys):
    dpci.Ledger(dpci.PureDP(20.0), errors="private", path=here / "private.db").close()
    private = ["--ledger", "private.db"]
    (here / "full.toml").write_text(
        GAPS.replace("unbounded", "numeric").replace('"age"', '"age"\nlower = 0\nupper = 99')
    )
    full = [*FIT[:2], "--schema", "full.toml", *FIT[5:]]
    for arguments, message in (
        ([FIT[0], "-", *FIT[2:], *private], "a ledger with errors='private' requires files"),
        ([RELEASE[0], "-", *RELEASE[2:], "--chunk-rows", "100"], "--chunk-rows requires files"),
        ([*full, "--bounds-share", "0.1"], "--bounds-share requires a schema with gaps"),
        ([*RELEASE[:2], *full[2:4], "--epsilon", "1"], 'must have a column of the kind "unbounded"'),
        (["coverage", *FIT[1:4], "--epsilon", "1"], "must have bounds for every column here, got none for age"),
        ([*RELEASE[:-1], "0.01"], "epsilon must be at least"),
        ([*RELEASE, "--max-rows", "2"], "--max-rows must go with --persons"),
        ([*RELEASE, "--persons", "id"], "persons must have max_rows"),
    ):
        assert message in refused(capsys, *arguments), arguments


@pytest.mark.parametrize("more", [[], ["--chunk-rows", "100"]], ids=str)
def test_a_regression_completes_its_schema(here, capsys, more):
    gaps = GAPS.replace('column = "ill"\nnegative = "no"\npositive = ["yes", "probably"]', 'column = "age"')
    gaps = gaps.replace('[[columns]]\nkind = "unbounded"\nname = "age"\n', "")
    gaps = gaps.replace("[target]\n", '[target]\nkind = "unbounded"\n')
    (here / "gaps.toml").write_text(gaps, encoding="utf-8")
    budget = ["--epsilon", "40", "--bounds-share", "0.2"]
    for command in ("fit", "regress"):
        assert main([command, "people.csv", *SHARED, *budget, *more, "--output", f"{command}.json"]) == 0
        assert "epsilon=8 (pure DP) for one column" in capsys.readouterr().out
    assert "nothing differs" in ran(capsys, "verify", "regress.json", "--schema", "gaps.toml").out
    assert "released first     age" in ran(capsys, "plan", "--schema", "gaps.toml", "--n-samples", "5000", *budget).out
