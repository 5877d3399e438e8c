"""``dpci regress`` where the noise hides the regression, and ``dpci audit``: what they print, their exit codes."""

import json
from pathlib import Path

import pytest

import dpci
from dpci import audit
from dpci.cli.main import main
from dpci.errors import InvalidInput
from dpci.regression import LinearFit, MomentMatrix
from support.commands import ran
from support.people import DOSE

SCHEMA = (
    DOSE
    + """
[[columns]]
kind = "numeric"
name = "weight"
lower = 40
upper = 120
"""
)


@pytest.fixture
def still(tmp_path):
    """A table whose columns do not vary: whatever the noise, no regression is clear of it."""
    lines = ["age,weight,dose", *(f"54,80,{20 + i % 7}" for i in range(2000))]
    (tmp_path / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "s.toml").write_text(SCHEMA, encoding="utf-8")
    return ["regress", str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.toml"), "--mu", "1"]


def test_a_hidden_regression_is_written_and_has_its_own_code(still, tmp_path, capsys):
    output, plot, page = (tmp_path / name for name in ("m.json", "p.png", "p.html"))
    path = tmp_path / "l.ledger"
    with dpci.Ledger(dpci.ZCDP(2.0), path=path):
        pass
    files = ["--output", str(output), "--plot", str(plot), "--page", str(page), "--ledger", str(path)]
    found = ran(capsys, *still, *files, code=5)
    assert found.out.startswith("no coefficients: the regressors must vary more than the noise")
    assert "dpci: released and spent, but without coefficients: the regressors must vary" in found.err
    assert f"the release is in {output}" in found.err
    assert "warning" not in found.err
    assert not plot.exists()
    assert not page.exists()
    fit = LinearFit.from_json(output.read_text())
    assert fit.interval_refusal is not None
    # What it cost is not lost.
    assert MomentMatrix.of(fit).fit(l2_strength="private").params.shape == (3,)
    assert main(["verify", str(output), "--ledger", str(path)]) == 6


def test_without_a_file_the_release_is_on_stderr(still, capsys):
    found = ran(capsys, *still, "--json", code=5)
    document = json.loads(found.out)
    assert "vary more than the noise" in document["interval_refusal"]
    assert document["privacy"]["budget"] == {"mu": 1.0}
    saved, error = found.err.splitlines()
    assert LinearFit.from_json(saved).budget == dpci.GDP(1.0)
    assert json.loads(error)["error"]["exit_code"] == 5
    assert "the release is on stderr" in json.loads(error)["error"]["message"]


def test_what_public_numbers_show_is_refused_before_anything_is_spent(still, tmp_path, capsys):
    path = tmp_path / "l.ledger"
    with dpci.Ledger(dpci.PureDP(2.0), path=path) as ledger:
        arguments = [*still[:-2], "--epsilon", "0.01", "--ledger", str(path), "--output", str(tmp_path / "m.json")]
        assert main(arguments) == 2
        assert ledger.history == ()
    assert "must be able to vary more than the noise" in capsys.readouterr().err
    assert not (tmp_path / "m.json").exists()


def test_a_plan_of_a_regression(still, tmp_path, capsys):
    plan = ["plan", "--n-samples", "2000", "--schema", still[3], "--loss", "squared"]
    text = ran(capsys, *plan, "--mu", "1").out
    assert text.startswith("Plan: linear regression from one moment matrix, mu=1 (Gaussian DP), n=2,000, 2 columns")
    assert "per unit" in text
    document = json.loads(ran(capsys, *plan, "--mu", "1", "--target-std-dev", "5", "--r-squared", "0.2", "--json").out)
    assert document["assumptions"]["target_std_dev"] == 5.0
    assert [row["name"] for row in document["coefficients"]] == ["age", "weight", "intercept"]
    expected = dpci.plan(
        n_samples=2000, schema=dpci.schema.Schema.from_file(still[3]), loss="squared", budget=dpci.GDP(1.0)
    ).assuming(target_std_dev=5.0, r_squared=0.2)
    assert [row["std_error"] for row in document["coefficients"]] == expected.std_errors.tolist()
    assert document["least_budget"]["notion"] == "gdp"
    # What an earlier release shows is hidden in this table; a private ridge is not.
    assert main([*still, "--output", str(tmp_path / "m.json")]) == 5
    capsys.readouterr()
    like = ["--like", str(tmp_path / "m.json")]
    assert "no standard errors: the regressors must vary more" in ran(capsys, *plan, "--mu", "1", *like).out
    assert main([*plan, "--mu", "1", *like, "--l2-strength", "private", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assumptions"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "the budget must be --epsilon, --epsilon with --delta, --rho, or --mu for linear regressions, got none"),
        (("--delta", "1e-6"), "got --delta"),
        (
            ("--mu", "1", "--rho", "1"),
            "--mu must be given without --epsilon, --delta and --rho, got --mu 1.0 and --rho",
        ),
        (("--mu", "1", "--l2-strength", "least"), "--l2-strength must be a number of at least 0 or 'private'"),
        (("--mu", "0.001"), "must be able to vary more than the noise"),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["regress", "plan"])
def test_bad_options_are_refused(command, options, message, still, capsys):
    files = still[1:4] if command == "regress" else ["--n-samples", "2000", "--schema", still[3], "--loss", "squared"]
    assert message in ran(capsys, command, *files, *options, code=2).err


def test_assumptions_are_for_regressions(capsys):
    plan = ["plan", "--n-samples", "2000", "--n-features", "2", "--epsilon", "1", "--r-squared", "0.3"]
    for options in (["--l2-strength", "0.1"], ["--loss", "squared", "--radius", "1", "--l2-strength", "0.1"]):
        assert "--r-squared must be given with --loss squared" in ran(capsys, *plan, *options, code=2).err


def test_table_and_json(tmp_path, capsys):
    path = tmp_path / "audit.json"
    arguments = ["audit", "--mechanism", "output", "--mechanism", "histogram", "--runs", "2000", "--seed", "1"]
    printed = ran(capsys, *arguments, "--confidence", "0.999999", "--output", path).out
    assert "NOT PRIVATE" in printed
    assert printed.count("not refuted") == 12
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["n_runs"] == 2000
    assert len(found["bounds"]) == 12


def test_a_refuted_claim_is_exit_code_one(monkeypatch, capsys):
    monkeypatch.setattr(audit.LowerBound, "refutes", lambda *_: True)
    assert "REFUTED" in ran(capsys, "audit", "--mechanism", "histogram", "--runs", "100", "--seed", "1", code=1).out


@pytest.mark.parametrize("argument", [["--mechanism", "nothing"], ["--runs", "1"], ["--epsilon", "0"]])
def test_refusals(argument, capsys):
    assert "must be" in ran(capsys, "audit", *argument, code=2).err


@pytest.mark.parametrize("name", ["there.json", ".", "no/such/folder/audit.json", "x" * 300])
def test_an_output_that_cannot_be_written_is_refused_before_anything_runs(name, tmp_path, monkeypatch, capsys):
    def refuse(**_):
        raise AssertionError("the runs came first")

    monkeypatch.setattr(audit, "report", refuse)
    (tmp_path / "there.json").write_text("kept")
    assert "--output must name" in ran(capsys, "audit", "--output", tmp_path / name, code=2).err
    assert [path.name for path in tmp_path.iterdir()] == ["there.json"]
    assert (tmp_path / "there.json").read_text() == "kept"


def test_a_refused_audit_leaves_no_file(tmp_path):
    assert main(["audit", "--runs", "1", "--output", str(tmp_path / "audit.json")]) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_small_budget_is_audited(capsys):
    assert main(["audit", "--epsilon", "0.1", "--rho", "0.001", "--runs", "100", "--seed", "1"]) == 0
    assert "ball_objective, pure" in capsys.readouterr().out


def test_an_unknown_mechanism_is_refused_before_anything_runs():
    with pytest.raises(InvalidInput, match="mechanism must be one of"):
        audit.report(mechanisms=("output", "nothing"), n_runs=10**12)


def test_a_report_is_complete_or_absent(tmp_path, monkeypatch, capsys):
    def fill_up(path, text, **_):
        path.write_bytes(text[:9].encode())
        raise OSError(28, "No space left on device")

    output = tmp_path / "audit.json"
    arguments = ["audit", "--mechanism", "histogram", "--runs", "100", "--seed", "1", "--output", str(output)]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", fill_up)
        assert main(arguments) == 2
    captured = capsys.readouterr()
    assert "NOT PRIVATE" in captured.out
    assert "No space left on device" in captured.err
    assert list(tmp_path.iterdir()) == []
    output.write_text("of yesterday")
    assert main([*arguments, "--force"]) == 0
    assert json.loads(output.read_text(encoding="utf-8"))["n_runs"] == 100
    assert capsys.readouterr().err == f"wrote {output}\n"
    assert ran(capsys, *arguments, "--force", "--quiet").err == ""


def test_progress_names_what_is_done(capsys):
    arguments = ["audit", "--mechanism", "histogram", "--runs", "100", "--seed", "1"]
    captured = ran(capsys, *arguments, "--progress")
    assert captured.err.count("audited histogram") == captured.out.count("not refuted") > 0
    assert ran(capsys, *arguments).err == ""
