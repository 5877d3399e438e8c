"""The command ``dpci audit``: its table, its JSON, its exit codes."""

import json

import pytest

from dpci import audit
from dpci.cli import main
from dpci.errors import InvalidInput


def test_table_and_json(tmp_path, capsys):
    path = tmp_path / "audit.json"
    arguments = ["audit", "--mechanism", "output", "--mechanism", "histogram", "--runs", "2000", "--seed", "1"]
    assert main([*arguments, "--confidence", "0.999999", "--output", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "NOT PRIVATE" in printed
    assert printed.count("not refuted") == 12
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["n_runs"] == 2000
    assert len(found["bounds"]) == 12


def test_a_refuted_claim_is_exit_code_one(monkeypatch, capsys):
    monkeypatch.setattr(audit.LowerBound, "refutes", lambda *_: True)
    assert main(["audit", "--mechanism", "histogram", "--runs", "100", "--seed", "1"]) == 1
    assert "REFUTED" in capsys.readouterr().out


@pytest.mark.parametrize("argument", [["--mechanism", "nothing"], ["--runs", "1"], ["--epsilon", "0"]])
def test_refusals(argument, capsys):
    assert main(["audit", *argument]) == 2
    assert "must be" in capsys.readouterr().err


def test_an_unknown_mechanism_is_refused_before_anything_runs():
    with pytest.raises(InvalidInput, match="mechanism must be one of"):
        audit.report(mechanisms=("output", "nothing"), n_runs=10**12)
