"""Sizes that ask for a seam, and ways of values through the files of the package."""

import ast
import re
import warnings
from pathlib import Path

import pytest

import house_figures

ROOT = Path(__file__).parents[2]
PATTERNS = ("rust/**/*.rs", "python/**/*.py", "tests/**/*.py", "benches/**/*.py", "examples/**/*.py")
# Functions that are longer. The list shrinks; nothing is added to it.
LONGER = {
    "python/dpci/regression/equations.py::solve",
    "python/dpci/tuning/choose.py::release_tuned",
    "rust/dpci-core/src/design/persons.rs::new",
    "rust/dpci-core/src/erm/hinge/descent.rs::new",
    "rust/dpci-core/src/interval/little_curvature.rs::around",
    "rust/dpci-core/src/interval/moment_regression.rs::moment_regression",
    "rust/dpci-core/src/interval/monte_carlo.rs::monte_carlo",
    "rust/dpci-core/src/interval/newton_step.rs::new",
    "rust/dpci-core/src/loss/custom.rs::check_declaration",
    "rust/dpci-core/src/records/kernels.rs::sums",
    "rust/dpci-core/src/records/several.rs::several",
    "rust/dpci-core/src/solver/ball/mod.rs::minimize",
    "rust/dpci-core/src/solver/lbfgs.rs::minimize",
    "rust/dpci-core/src/solver/newton.rs::minimize",
    "rust/dpci-core/src/spec/fit/calibrate.rs::coefficient_noise",
    "rust/dpci-core/src/spec/fit/choices.rs::check_combination",
    "rust/dpci-core/src/spec/fit/domain.rs::new",
    "rust/dpci-core/src/spec/tuning/mod.rs::new",
    "rust/dpci-core/src/study/ex_post.rs::ex_post_losses",
    "rust/dpci-core/src/study/replicates.rs::new",
    "rust/dpci-core/src/study/rough_sums.rs::rough_sums",
    "rust/dpci-core/src/study/utility/center.rs::smoothed",
}


def n_lines(text):
    """Lines of code: neither empty nor a comment."""
    lines = [line.strip() for line in text.splitlines()]
    return sum(not line.startswith(("//", "#")) for line in lines if line)


def python_functions(text):
    """Names of functions, each with its text below the docstring."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            begin = node.body[0].end_lineno + 1 if ast.get_docstring(node) is not None else node.body[0].lineno
            yield node.name, "\n".join(lines[begin - 1 : node.end_lineno])


def rust_functions(text):
    """Names of functions outside of test modules, each with its text from the first line of the signature."""
    text = re.split(r"#\[cfg\(test\)\]\s*(?:pub(?:\([a-z]+\))? )?mod \w+ \{", text)[0]
    begins = re.finditer(r"^( *)(?:pub(?:\([a-z]+\))? )?(?:const |unsafe )*fn (\w+)[^;{]*\{\n", text, re.MULTILINE)
    for begin in begins:
        end = text.index(f"\n{begin[1]}}}\n", begin.end() - 1)
        yield begin[2], text[begin.start() : end]


def test_files_are_short():
    files = sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern))
    lengths = {str(path.relative_to(ROOT)): n_lines(path.read_text(encoding="utf-8")) for path in files}
    assert len(lengths) > 800
    assert {path: length for path, length in lengths.items() if length > 600} == {}


def test_functions_are_short():
    python = sorted((ROOT / "python" / "dpci").rglob("*.py"))
    rust = [path for path in sorted(ROOT.glob("rust/*/src/**/*.rs")) if "test" not in path.as_posix()]
    read = [(path, python_functions) for path in python] + [(path, rust_functions) for path in rust]
    found = [
        (f"{path.relative_to(ROOT).as_posix()}::{name}", n_lines(text))
        for path, functions in read
        for name, text in functions(path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 4000
    longer = {name: n for name, n in found if n > 60}
    assert {name: n for name, n in longer.items() if name not in LONGER} == {}
    # Shorter now: take them off the list.
    assert sorted(LONGER - set(longer)) == []


def test_the_readers_find_functions():
    python = 'def f(x):\n    """Return x.\n\n    More.\n    """\n    # why\n    return x\n\n\n'
    python += "class C:\n    def g(self): pass\n"
    assert {name: n_lines(text) for name, text in python_functions(python)} == {"f": 1, "g": 1}
    rust = "impl A {\n    pub(crate) fn f(\n        x: i32,\n    ) -> i32 {\n        // why\n        x\n    }\n}\n\n"
    rust += "fn g();\nfn h() {\n    1\n}\n"
    assert {name: n_lines(text) for name, text in rust_functions(rust)} == {"f": 4, "h": 2}


# Files, and times that the way comes back to one. The numbers shrink.
MOST = {
    "a fit to its page": (13, 141),
    "a fit to its summary": (11, 110),
    "X into a fit": (6, 6),  # one of them is the decorator that advises whoever misspells a keyword
    "y into a matrix": (8, 12),  # likewise
}


@pytest.fixture(scope="module")
def ways():
    with warnings.catch_warnings(action="ignore"):
        return {name: (files, returns) for name, files, returns, _ in house_figures.journeys()}


def test_every_way_has_a_limit(ways):
    assert set(ways) == set(MOST)


@pytest.mark.parametrize("way", MOST)
def test_a_way_visits_few_files_and_returns_to_few(ways, way):
    (files, returns), (most_files, most_returns) = ways[way], MOST[way]
    assert 3 < files <= most_files
    assert returns <= most_returns
