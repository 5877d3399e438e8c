"""The command ``dpci audit``: its table, its JSON, its exit codes."""

import json
from pathlib import Path

import pytest

from dpci import audit
from dpci.cli.main import main
from dpci.errors import InvalidInput
from support.commands import ran


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
