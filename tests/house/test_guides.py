"""The guides of the documentation, and the examples of other pages, run as they stand and print what they show."""

import os
import re
from pathlib import Path

import pytest

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
