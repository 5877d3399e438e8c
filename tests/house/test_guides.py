"""Guides, the gallery and the README run, and print what they show."""

import os
import re
import runpy
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci.cli.main import main
from support import specimen
from support.guides import Block, run, shape

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = DOCS / "guides"
FULL_FILES = "<!-- what follows needs the full files -->\n"
PAGES = sorted(path for path in GUIDES.glob("*.md") if path.name != "index.md")
# An extract that cannot run by itself, as it needs a cluster, is a block of "py", not of "python".
WITH_EXAMPLES = [*sorted((DOCS / "reference").glob("*.md")), *sorted(DOCS.glob("*.md"))]
WITH_EXAMPLES = [
    path
    for path in WITH_EXAMPLES
    if re.search("^```(?:python|console)$", path.read_text(encoding="utf-8"), re.MULTILINE)
]


def test_the_index_has_every_guide():
    assert len(PAGES) == 7
    index = (GUIDES / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"({page.name})" not in index] == []


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_guide_prints_what_it_shows(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("```python\n") + text.count("```console\n") >= 4
    here, _, with_files = text.partition(FULL_FILES)
    here = text if "DPCI_DATA" in os.environ else here
    blocks = run(here, str(page))
    assert any(block.shown for block in blocks)
    for block in blocks:
        assert block.agrees, f"{block.code}\nshown:\n{block.shown}\nprinted:\n{block.printed}"
    if len(here) < len(text):
        pytest.skip(f"all agree so far; {with_files.count('```python')} need the full files: DPCI_DATA is not set")


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=[page.relative_to(DOCS).as_posix() for page in WITH_EXAMPLES])
def test_an_example_prints_what_it_shows(page):
    for block in run(page.read_text(encoding="utf-8"), str(page)):
        assert block.agrees, f"{block.code}\nshown:\n{block.shown}\nprinted:\n{block.printed}"


def test_the_specimen_of_a_report_is_what_its_commands_make():
    page = specimen.PAGE.read_text(encoding="utf-8")
    assert specimen.alike(specimen.written(page)) == specimen.alike(page)


def test_what_differs_is_found():
    def agree(shown, printed, *, varies):
        return Block("", shown, printed, varies, 0).agrees

    assert agree("a  1\n", "a  1\n", varies=False)
    assert not agree("a  1\n", "a  2\n", varies=False)
    assert agree("a  1.50\n---\n", "a -12.5e-3\n------\n", varies=True)
    assert agree("p 0.0123\n", "p <0.0001\n", varies=True)
    assert not agree("a  1\n", "b  1\n", varies=True)
    assert not agree("a  1\n", "a  1  2\n", varies=True)
    assert not agree(None, "a\n", varies=True)
    assert shape("x1, 2026-11-21T20:00:00.5Z") == ["x", "#", ",", "#"]


def test_a_block_that_fails_names_its_line():
    with pytest.raises(ZeroDivisionError) as failure:
        run("text\n\n```python\na = 1\na / 0\n```\n", "page.md")
    assert failure.traceback[-1].lineno == 4  # counted from 0
    with pytest.raises(AssertionError, match=r"page.md:3: exit code 2"):
        run("\n```console\n$ dpci data none --export x.csv\n```\n", "page.md")


FOLDER = Path(__file__).parents[2] / "examples" / "gallery"
CASES = sorted(path.stem for path in FOLDER.glob("*.py"))


def test_the_list_has_every_case():
    listed = re.findall(
        r"^\| \[(\w+)\.py\]\(\1\.py\)", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(listed) == CASES
    assert len(CASES) == 10


@pytest.mark.parametrize("case", CASES)
def test_a_case_runs(case, tmp_path, monkeypatch, capsys):
    plot = pytest.importorskip("matplotlib.pyplot")
    plot.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(action="error"):
        # The noise is real: what a fit says about it may differ from run to run.
        warnings.simplefilter("ignore", dpci.DpciWarning)
        made = runpy.run_path(str(FOLDER / f"{case}.py"), run_name="__main__")
    plot.close("all")
    assert (tmp_path / f"{case}.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "interval" in printed
    assert "NOT PRIVATE" not in printed
    results = [value for value in made.values() if isinstance(value, dpci.PrivateFit)]
    assert all(result.private for result in results)


README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(kind: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def from_an_office(n: int = 4000) -> bytes:
    """A table as an office exports it: semicolons, decimal commas, empty cells, spaces, a letter beyond ASCII."""
    draw = np.random.default_rng(1)
    age, bmi, man = draw.uniform(18.0, 90.0, n), draw.normal(26.0, 4.0, n), draw.random(n) < 0.5
    ill = draw.logistic(size=n) < 0.05 * (age - 60.0) + 0.1 * (bmi - 26.0) + 0.5 * man
    lines = ["Nr;Straße;age;bmi;sex;ill"]
    for row in range(n):
        index = "" if row % 60 == 5 else f"{bmi[row]:.1f}".replace(".", ",")
        lines.append(f'{row};"Süd; 3";{age[row]:.0f};{index};{"M " if man[row] else "F"};{"yes" if ill[row] else "no"}')
    return "\r\n".join(lines).encode("latin-1")


def test_the_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("patients.csv").write_bytes(from_an_office())
    namespace = {"__name__": "__main__"}
    with warnings.catch_warnings(action="error"):
        # What the page says: studies and curves read the data, one test is by rows.
        warnings.simplefilter("ignore", dpci.PrivacyLeakWarning)
        warnings.simplefilter("ignore", dpci.MomentNoiseWarning)
        for block in blocks("python"):
            exec(compile(block, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert printed.count("95% confidence intervals") == 1
    assert "nothing would be refused" in printed or "agrees with the schema" in printed
    assert [sum(map(bool, block.splitlines())) for block in blocks("python")][1:] == [13]  # of their own file
    assert list(namespace["result"].odds_ratios().names) == ["age", "bmi", "sex=M"]
    report = Path("approval.html").read_text(encoding="utf-8")
    assert "the ledger is undamaged, with 1 entry" in report
    written = {"agreed.json", "patients.csv", "patients.ledger", "approval.html"}
    written |= {"model.json", "result.json", "page.html"}
    assert {path.name for path in tmp_path.iterdir()} == written
    assert dpci.load("model.json").names == namespace["result"].names


def test_the_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    (block,) = (block for block in blocks("sh", page) if "dpci ledger" in block)
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    commands = [words[1:] for words in lines if words[:1] == ["dpci"]]
    assert {words[0] for words in commands} == {"data", "check", "plan", "ledger", "fit", "report", "verify", "predict"}
    for words in commands:
        assert main(words) == 0, words
    capsys.readouterr()
    written = {path.name for path in tmp_path.iterdir()}
    assert {"model.json", "model.png", "report.html", "approval.html", "predicted.csv"} <= written


def test_it_is_one_page():
    lines = README.splitlines()
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 120
    assert next(i for i, line in enumerate(lines, 1) if line.startswith("result = dpci.fit(")) <= 40
    assert README.count("![") == README.count("dpci.fit(people") == 1
    (table,) = re.findall(r"(?:^\|.*\n)+", README, re.MULTILINE)
    assert table.count("\n") == 2 + 10
