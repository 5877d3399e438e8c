"""The README: its Python and its commands run as they stand, and the demonstration looks as it shows."""

import re
import shlex
import warnings
from pathlib import Path

import pytest

import dpci
from dpci.cli.main import main
from support.guides import shape

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SLOW = {"coverage", "tables"}
"""Commands with tests of their own, which take seconds to minutes at the sizes of the page."""


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_python_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn", reason="one block is about scikit-learn")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # What the page says: studies and curves read the data, one test is by rows.
        warnings.simplefilter("ignore", dpci.PrivacyLeakWarning)
        warnings.simplefilter("ignore", dpci.MomentNoiseWarning)
        for block in blocks("python"):
            exec(compile(block, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert printed.count("95% confidence intervals") == 3
    ledger = namespace["ledger"]
    assert f"# {ledger.spent}, {ledger.remaining!r}\n" in README
    assert list(tmp_path.iterdir()) == []


def test_the_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()]
    commands = [words[1:] for words in lines if words[:1] == ["dpci"]]
    assert {words[0] for words in commands} == {"data", "plan", "fit", "report", "predict", "ledger", *SLOW}
    for words in commands:
        if words[0] not in SLOW:
            assert main(words) == 0, words
    capsys.readouterr()
    assert {"model.json", "model.png", "report.html", "predicted.csv", "people.ledger"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_the_demonstration_looks_as_it_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    captured = capsys.readouterr()
    (shown,) = (block for block in blocks("text") if "demo_output" in block)
    assert shape(shown) == shape(captured.out + captured.err)
