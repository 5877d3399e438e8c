"""``dpci regress`` where the noise hides the regression: nothing is lost that was paid for, and the code says so."""

import json

import pytest

import dpci
from dpci.cli.main import main
from dpci.regression import LinearFit, MomentMatrix

SCHEMA = """
[target]
column = "dose"
lower = 0
upper = 100
[[columns]]
kind = "numeric"
name = "age"
lower = 18
upper = 90
[[columns]]
kind = "numeric"
name = "weight"
lower = 40
upper = 120
"""


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
    assert main([*still, *files]) == 5
    found = capsys.readouterr()
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
    assert main(["verify", str(output), "--ledger", str(path)]) == 0


def test_without_a_file_the_release_is_on_stderr(still, capsys):
    assert main([*still, "--json"]) == 5
    found = capsys.readouterr()
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
