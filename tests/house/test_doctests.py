"""The examples of docstrings run, and what users call has one there or on its page of the reference."""

import ast
import doctest
import importlib.util
import inspect
import pkgutil
import re
import warnings
from pathlib import Path
from types import ModuleType

import pytest

import dpci

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# Runs the command line when it is imported.
NOT_IMPORTED = {"dpci.__main__"}
MODULES = ["dpci", *sorted({name for _, name, _ in pkgutil.walk_packages(dpci.__path__, "dpci.")} - NOT_IMPORTED)]


@pytest.fixture(autouse=True, scope="module")
def load_public_names():
    """The package loads what it names when it is first used; doctest finds what is loaded."""
    for name in dpci.__all__:
        getattr(dpci, name)


def has_examples(name):
    """Whether the source of a module has examples, read without importing it."""
    return ">>>" in Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8", errors="ignore")


@pytest.mark.parametrize("name", [name for name in MODULES if name != "dpci._core" and has_examples(name)])
def test_examples_run(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"{name} needs {error.name}")
    with warnings.catch_warnings(action="ignore", category=dpci.PrivacyLeakWarning):
        # An example may show what is not private.
        found = doctest.testmod(module, optionflags=FLAGS)
    assert found.failed == 0


def test_every_example_is_found():
    """Examples of methods would be left out: a public class says that it is of another file than they are."""
    pytest.importorskip("sklearn")
    pytest.importorskip("typer")
    written = set()
    for path in Path(dpci.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            documented = isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
            if documented and ">>>" in (ast.get_docstring(node) or ""):
                written.add(getattr(node, "name", path.stem))
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = [test for name in MODULES for test in finder.find(importlib.import_module(name))]
    assert {test.name.rsplit(".", 1)[-1] for test in tests if test.examples} == written


def called_by_users():
    """Public functions, and classes that are made by their name, by full name."""
    modules = [pytest.importorskip("dpci.sklearn", exc_type=ImportError)]
    modules += [value for name in dpci.__all__ if isinstance(value := getattr(dpci, name), ModuleType)]
    for module in [dpci, *modules]:
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isroutine(value) or (
                inspect.isclass(value) and "\nParameters\n" in inspect.cleandoc(value.__doc__ or "")
            ):
                yield f"{module.__name__}.{name}", value


# What they do needs files that are not in the package: each is shown in docs/public_data.md.
NEED_FILES = {f"dpci.datasets.{name}" for name in ("load_adult", "load_bank", "load_credit_default", "load_kddcup99")}
NEED_FILES |= {f"dpci.datasets.{name}" for name in ("load_table", "simulate_kddcup99")}


def test_what_users_call_has_an_example():
    found = dict(called_by_users())
    assert len(found) > 50
    assert found.keys() > NEED_FILES
    # These blocks run in test_guides.py.
    pages = "".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    shown = set(re.findall(r"\w+", "".join(re.findall(r"^```python\n(.*?)^```", pages, re.DOTALL | re.MULTILINE))))
    lacking = [name for name, value in found.items() if ">>>" not in (value.__doc__ or "")]
    assert [name for name in sorted(set(lacking) - NEED_FILES) if name.rsplit(".", 1)[1] not in shown] == []
