"""The site of the documentation builds without a warning, names every public object, and needs no other host."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import dpci

ROOT = Path(__file__).parents[2]

# Not in the reference as an object: its page names it in words.
IN_WORDS = {"dpci.__version__", "dpci.Budget"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for package in ("mkdocs", "mkdocstrings_handlers", "material", "latex2mathml", "typer"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install 'dpci[docs]'")
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: strict mode counts what is logged.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    # Nothing here reads the index of the words.
    environment = {**os.environ, "SITE_SEARCH": "false"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def public_names():
    """Every name that the package exports, and those that its public modules export."""
    # dpci.sklearn is imported when it is asked for, as scikit-learn is optional.
    modules = [getattr(dpci, name) for name in dpci.__all__]
    modules += [pytest.importorskip("dpci.sklearn", exc_type=ImportError)]
    found = {f"dpci.{name}" for name in dpci.__all__}
    for module in modules:
        if isinstance(module, ModuleType):
            found |= {module.__name__, *(f"{module.__name__}.{name}" for name in module.__all__)}
    return found


def test_every_page_is_listed_once():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"[\w/]+\.md$", nav, re.MULTILINE)
    assert sorted({page for page in listed if listed.count(page) > 1}) == []
    # The build allows a log that is not listed.
    logs = {f"evidence/{log.name}" for log in (ROOT / "docs" / "evidence").glob("*.md")}
    assert sorted(logs - set(listed)) == []


def test_the_list_of_pages_has_every_page():
    docs = ROOT / "docs"
    text = (docs / "README.md").read_text(encoding="utf-8")
    pages = [*docs.glob("*.md"), *docs.glob("guides/*.md"), *docs.glob("proofs/*.md")]
    names = {page.relative_to(docs).as_posix() for page in pages} - {"README.md", "guides/index.md"}
    assert sorted(name for name in names if f"({name})" not in text) == []


def clicks_from_the_front_page():
    """How many links of the text lead from the front page to each page."""
    link = re.compile(r"(?<!!)\[[^\]\[]*\]\((?!https?:|mailto:|#)([^)#\s]+\.md)")
    found = {ROOT / "README.md": 0}
    for page in (waiting := list(found)):
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for other in ((page.parent / name).resolve() for name in link.findall(text)):
            if other not in found:
                found[other] = found[page] + 1
                waiting.append(other)
    return found


def test_answers_are_three_clicks_away_at_most():
    """Publish with odds ratios; pure or (ε, δ) for a clinic; approve or refuse a release."""
    found = clicks_from_the_front_page()
    guides = [path for path in (ROOT / "docs" / "guides").glob("*.md") if path.name != "index.md"]
    pages = [ROOT / "docs" / f"{name}.md" for name in ("choose", "approve", "inference", "persons")]
    assert {page.name for page in [*guides, *pages] if found.get(page, 9) > 2} == set()
    others = [ROOT / "docs" / f"{name}.md" for name in ("specimen", "glossary", "public_data", "data", "cli")]
    assert {page.name for page in others if found.get(page, 9) > 3} == set()


def test_no_page_is_longer_than_25000_characters():
    docs = ROOT / "docs"
    pages = [path for folder in ("", "guides", "reference") for path in (docs / folder).glob("*.md")]
    lengths = {path.relative_to(docs).as_posix(): len(path.read_text(encoding="utf-8")) for path in pages}
    assert len(lengths) > 50
    assert {name: length for name, length in lengths.items() if length > 25_000} == {}


@pytest.mark.lint
def test_every_public_name_is_on_some_page(site):
    from mkdocstrings import Inventory  # noqa: PLC0415  # the fixture skips without it

    with (site / "objects.inv").open("rb") as file:
        there = set(Inventory.parse_sphinx(file))
    assert len(public_names()) > 100
    assert public_names() - there - IN_WORDS == set()
    text = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    assert [name for name in IN_WORDS if f"`{name}`" not in text] == []


@pytest.mark.lint
def test_every_public_member_is_described(site):
    # mkdocstrings leaves out what has no docstring.
    pages = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    for name in public_names() - IN_WORDS:
        parent, _, last = name.rpartition(".")
        thing = getattr(importlib.import_module(parent), last)
        if isinstance(thing, type):
            # scikit-learn adds methods of its own.
            ours = [key for key in vars(thing) if getattr(getattr(thing, key), "__module__", "").startswith("dpci")]
            members = [key for key in ours if not key.startswith("_") and callable(getattr(thing, key))]
            missing = [key for key in members if f'id="{name}.{key}"' not in pages]
            assert not missing, f"{name}: {missing}"


def test_docstrings_are_what_the_parser_understands():
    pytest.importorskip("griffe")
    pytest.importorskip("pymdownx")
    found = importlib.util.spec_from_file_location("docstrings", ROOT / "docs" / "_site" / "docstrings.py")
    docstrings = importlib.util.module_from_spec(found)
    found.loader.exec_module(docstrings)
    text = """Line; see docs/data.md, "Rows in
    blocks", and docs/ledger.md.

Parameters
----------
level, target
    As in :meth:`conf_int`.
path : str or path-like, optional
    A file.
method : {"a", "b"}, optional
    Way.

Raises
------
InvalidInput, LedgerError
    For a * b.
"""
    lines = docstrings.as_markdown(text, "dpci.plan").splitlines()
    # A page and its section are a link; the build refuses links to what is not there.
    title = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    assert lines[1] == f'    blocks"](../data.md#rows-in-blocks), and [{title}](../ledger.md).'
    # Each parameter has the type of its own; choices name no default, and a hyphen is no minus.
    assert lines[5:9] == ["level", "    As in `conf_int`.", "target", "    As in `conf_int`."]
    assert lines[9] == "path : str or path\N{NON-BREAKING HYPHEN}like, optional"
    assert lines[11] == 'method : "a" or "b", optional'
    assert lines[16:] == ["InvalidInput, LedgerError", r"    For a \* b."]


@pytest.mark.lint
def test_nothing_comes_from_another_host(site):
    loads = re.compile(
        r"""<(?:script|img|iframe|source)[^>]*src="(?:https?:)?//[^"]*|<link[^>]*rel="stylesheet"[^>]*//[^"]*"""
    )
    for page in site.rglob("*.html"):
        assert loads.findall(page.read_text(encoding="utf-8")) == [], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


@pytest.mark.lint
def test_formulas_and_docstrings_are_converted(site):
    for page in site.rglob("*.html"):
        text = re.sub(r"<(code|pre|script|math)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        # TeX that was not read, roles of Sphinx, the mark of the commands.
        found = re.findall(r"arithmatex|:(?:func|class|meth|attr):`|help of the commands|\\\(|\\frac|\\text", text)
        assert not found, f"{page.name}: {found[:3]}"
    method = (site / "proofs" / "mechanisms.html").read_text(encoding="utf-8")
    assert method.count("<math") > 200
    # A name with a backslash within a formula is one that the converter did not know.
    for page in site.rglob("*.html"):
        for formula in re.findall(r"<math.*?</math>", page.read_text(encoding="utf-8"), re.DOTALL):
            assert "\\" not in formula, f"{page.name}: {formula}"


@pytest.mark.lint
def test_the_commands_are_described(site):
    text = (site / "reference" / "command_line.html").read_text(encoding="utf-8")
    for command in ("fit", "coverage", "data", "audit", "ledger", "ledger create"):
        assert f"Usage: dpci {command}" in text, command


@pytest.mark.lint
def test_the_list_of_logs_has_every_log(site):
    text = (site / "evidence" / "index.html").read_text(encoding="utf-8").partition("<article")[2]
    logs = {log.stem for log in (ROOT / "docs" / "evidence").glob("*.md")} - {"index"}
    assert len(logs) > 50
    assert sorted(name for name in logs if f'href="{name}.html"' not in text) == []
