"""The benchmark against other libraries: they solve the problem that dpci solves, and a lost race is printed as one."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benches" / "contest"


@pytest.fixture
def module(monkeypatch):
    """Import a script of the benchmark, whose names are its own only as long as a test runs."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(FOLDER.parent) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def rows(module, tmp_path):
    """A small problem in a folder, as a contestant finds it."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((600, 4))
    X /= np.linalg.norm(X, axis=1).max() * (1 + 1e-12)
    y = np.where(X @ [3.0, -2.0, 1.0, 0.0] + 0.3 * generator.standard_normal(600) > 0, 1.0, -1.0)
    problem = module("problem")
    problem.save_rows(tmp_path, "train", X, y)
    problem.save_rows(tmp_path, "test", X[:50], y[:50])
    return tmp_path


@pytest.mark.parametrize(
    ("library", "solver", "loss"),
    [
        ("dpci", "minimiser", "logistic"),
        ("dpci", "minimiser", "squared"),
        ("dpci", "minimiser", "huber_hinge"),
        ("sklearn", "newton-cholesky", "logistic"),
        ("sklearn", "cholesky", "squared"),
        ("scipy", "L-BFGS-B", "logistic"),
        ("scipy", "trust-exact", "huber_hinge"),
        ("scipy", "cholesky", "squared"),
        ("statsmodels", "newton-cg", "logistic"),
        ("statsmodels", "svd", "squared"),
    ],
)
def test_contestants_solve_one_problem(module, rows, library, solver, loss):
    problem = module("problem")
    terms = problem.Terms("erm", loss, 0.02, 1.0)
    exact = module("reference").reference(rows, terms)
    assert exact.certificate < 1e-9
    fit = module(f"with_{library}").contestant(problem.Problem(*problem.load_rows(rows, "train"), terms), solver)
    # statsmodels does not let one set the tolerance, which is coarse.
    assert exact.distance(fit(1e-8, 1)["params"]) < (1e-3 if library == "statsmodels" else 1e-6)


def test_exact_standard_errors_are_those_of_the_sandwich(module, rows):
    problem = module("problem")
    X, y = problem.load_rows(rows, "train")
    sandwich = module("with_statsmodels").contestant
    # Without a penalty it is HC0.
    exact = module("reference").reference(rows, problem.Terms("errors", "logistic", 1e-9, 1.0))
    for solver in ("GLM", "Logit"):
        found = sandwich(problem.Problem(X, y, problem.Terms("errors", "logistic", 1e-9, 1.0)), solver)(1e-8, 1)
        np.testing.assert_allclose(found["std_errors"], exact.std_errors, rtol=1e-4)


def record(module, theirs, *, missed=False):
    """A contest in which dpci takes a second."""
    line = {"solver": "any", "missed": False, "failure": "", "kept": True, "tolerance": None}
    ours = {**line, "library": "dpci", "solver": "minimiser", "seconds": 1.0}
    return {
        "task": module("cells").PLAIN,
        "lines": [ours, {**line, "library": "glum", "seconds": theirs, "missed": missed}],
    }


def test_the_verdict_names_who_is_faster(module):
    verdict = module("report").verdict
    assert verdict(record(module, 3.0)) == "dpci wins: 3.0 times faster than glum (any)"
    assert verdict(record(module, 0.5)) == "**LOST** to glum (any): 2.00 times slower"
    assert verdict(record(module, 0.5, missed=True)) == "dpci alone finishes"


def test_a_worker_reports_what_its_library_raises(module, rows):
    problem, contestant = module("problem"), module("contestant")
    terms = problem.Terms("erm", "logistic", -1.0, 1.0).to_json()
    process = contestant.Process(Path(sys.executable), "dpci", "minimiser", rows, terms)
    try:
        assert process.answer(60)["loaded"] > 0
        with pytest.raises(contestant.Failed, match="l2_strength must be"):
            process.fit(1e-6, 1, 60)
    finally:
        process.close()
