"""The README: its Python and its commands run as they stand, and it is short."""

import re
import shlex
import warnings
from pathlib import Path

import dpci
from dpci.cli.main import main

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    with warnings.catch_warnings(action="error"):
        # What the page says: studies and curves read the data, one test is by rows.
        warnings.simplefilter("ignore", dpci.PrivacyLeakWarning)
        warnings.simplefilter("ignore", dpci.MomentNoiseWarning)
        for block in blocks("python"):
            exec(compile(block, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert printed.count("95% confidence intervals") == 1
    assert namespace["page"].startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == []


def test_the_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [
        shlex.split(line, comments=True) for block in blocks("sh") for line in block.replace("\\\n", "").splitlines()
    ]
    commands = [words[1:] for words in lines if words[:1] == ["dpci"]]
    assert {words[0] for words in commands} == {"data", "check", "plan", "ledger", "fit", "report", "verify"}
    for words in commands:
        assert main(words) == 0, words
    capsys.readouterr()
    assert {"model.json", "model.png", "report.html", "approval.html"} <= {path.name for path in tmp_path.iterdir()}


def test_it_is_one_page():
    lines = README.splitlines()
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 120
    assert next(i for i, line in enumerate(lines, 1) if line.startswith("result = dpci.fit(")) <= 40
    assert README.count("![") == README.count("dpci.fit(people") == 1
    (table,) = re.findall(r"(?:^\|.*\n)+", README, re.MULTILINE)
    assert table.count("\n") == 2 + 10
