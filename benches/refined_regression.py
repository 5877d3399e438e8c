"""Refined coefficients of a planned regression: coverage and length, beside those of the matrix alone.

Seeded, so not private. Prints Markdown; exit code 1 if a coverage is out of [.94, .968] but for 3.5 standard errors.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import dpci
from regression_moments import BETA, DIM, L2_STRENGTH, ROWS, cell, covered, inside, linear_model, shown, table

BUDGETS = {
    "μ = .5": dpci.GDP(0.5),
    "μ = 1": dpci.GDP(1.0),
    "μ = 2": dpci.GDP(2.0),
    "ε = 2": dpci.PureDP(2.0),
    "ε = 8": dpci.PureDP(8.0),
}
PUBLISHED = {"pure": dpci.PureDP(1.0), "zCDP": dpci.ZCDP(0.1875), "(ε,δ)": dpci.ApproxDP(1.0, 1e-6)}
# Mean lengths of dpci.fit at default shares, objective perturbation: docs/evidence/regression_quality.md.
ON_A_BALL = {"pure": 0.008782, "zCDP": 0.01227, "(ε,δ)": 0.01493}
ERRORS = ("normal", "uneven", "t with 5 degrees", "exponential", "log-normal")
SIZES = (2000, 50_000)
# Runs with many records are fewer.
FEWER, LARGEST = 3, 10


def uniform(
    seed: int, *, n: int, budget: dpci.budgets.GaussianBudget, errors: str, refine: bool, covariance: str
) -> tuple[np.ndarray, np.ndarray]:
    """Columns uniform on (0, 10), errors of variance about 1, targets within 30."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 10.0, (n, 3))
    draws = {
        "normal": lambda: rng.standard_normal(n),
        "uneven": lambda: rng.standard_normal(n) * (0.4 + 0.08 * (X[:, 0] - 5.0) ** 2),
        "t with 5 degrees": lambda: rng.standard_t(5, n) * np.sqrt(0.6),
        "exponential": lambda: rng.exponential(size=n) - 1.0,
        "log-normal": lambda: (np.exp(rng.standard_normal(n)) - np.exp(0.5)) / np.sqrt(np.expm1(1.0) * np.e),
    }
    y = X @ BETA + draws[errors]()
    matrix = dpci.regression.release(
        X, y, budget=budget, bounds=(0.0, 10.0), target_bound=30.0, on_violation="clip", refine=refine,
        robust=covariance == "robust", seed=seed, n_threads=1,
    )  # fmt: skip
    return covered(matrix.fit(covariance=covariance), BETA)


def bootstrap(seed: int, *, budget: str, l2_strength: float, refine: bool) -> tuple[np.ndarray, np.ndarray]:
    """Ridge, or least squares, of a bootstrap sample of the linear model; with an intercept."""
    X, y = linear_model()
    design = np.column_stack([X, np.ones(ROWS)])
    truth = np.linalg.solve(design.T @ design / ROWS + 0.5 * l2_strength * np.eye(DIM + 1), design.T @ y / ROWS)
    rows = np.random.default_rng(seed + 1).integers(0, ROWS, ROWS)
    plan = [dpci.regression.Regression(l2_strength=l2_strength)]
    # As in regression_moments.py: the ridge with classical intervals, whose errors are uneven.
    covariance = "classical" if l2_strength else "robust"
    matrix = dpci.regression.release(
        X[rows], y[rows], budget=PUBLISHED[budget], row_norm=1.0, target_bound=1.0, refine=plan if refine else None,
        robust=None if l2_strength else plan, seed=seed, n_threads=1,
    )  # fmt: skip
    return covered(matrix.fit(l2_strength=l2_strength, covariance=covariance), truth[:DIM])


@dataclass
class Bench:
    """The tables, and what is broken."""

    pool: ProcessPoolExecutor
    runs: int
    broken: list[str] = field(default_factory=list)

    def judged(self, what: str, refined: tuple[float, ...], plain: tuple[float, ...]) -> tuple[str, ...]:
        """The numbers of a refined cell, its length over that of the matrix alone, and the verdict."""
        holds = inside(*refined[:2], 0.94, 0.968)
        if not holds:
            self.broken.append(what)
        return (*shown(*refined), f"{plain[2]:.4g}", f"{refined[2] / plain[2]:.2f}", "holds" if holds else "broken")

    def budgets(self) -> Iterator[tuple[Any, ...]]:
        """Normal errors, all budgets."""
        for n, (name, budget) in itertools.product(SIZES, BUDGETS.items()):
            runs = self.runs if n == SIZES[0] else self.runs // FEWER
            work = partial(uniform, n=n, budget=budget, errors="normal", covariance="classical")
            found = [cell(self.pool, partial(work, refine=refine), runs) for refine in (True, False)]
            yield f"{n:,}", name, *self.judged(f"{n} {name}", *found)

    def errors(self) -> Iterator[tuple[Any, ...]]:
        """Errors of other laws, with robust intervals."""
        for n, kind in itertools.product(SIZES, ERRORS):
            runs = self.runs if n == SIZES[0] else self.runs // FEWER
            work = partial(uniform, n=n, budget=dpci.ZCDP(0.5), errors=kind, covariance="robust")
            found = [cell(self.pool, partial(work, refine=refine), runs) for refine in (True, False)]
            yield f"{n:,}", kind, *self.judged(f"{n} {kind}", *found)

    def published(self) -> Iterator[tuple[Any, ...]]:
        """The linear model at the budgets of regression_quality.md."""
        for budget, strength in itertools.product(PUBLISHED, (L2_STRENGTH, 0.0)):
            work = partial(bootstrap, budget=budget, l2_strength=strength)
            found = [cell(self.pool, partial(work, refine=refine), self.runs // LARGEST) for refine in (True, False)]
            numbers = self.judged(f"{budget} {strength}", *found)
            last = f"{found[0][2] / ON_A_BALL[budget]:.2f}" if strength else ""
            yield budget, f"{strength:g}", *numbers, last


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=1000)
    options.add_argument("--jobs", type=int, default=2)
    arguments = options.parse_args()
    started = time.perf_counter()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    head = ("coverage", "s.e.", "mean length", "given", "matrix alone", "ratio", "verdict")
    with ProcessPoolExecutor(arguments.jobs) as pool:
        bench = Bench(pool, arguments.runs)
        print("# Refined coefficients of linear regressions\n")
        few = "a third of that with 50,000 records, a tenth with 100,000"
        print(f"- {bench.runs} runs of a cell, {few}; commit {commit.stdout.strip()}")
        print(f"- numpy {np.__version__}, dpci {dpci.__version__}, Python {platform.python_version()}; level .95")
        print("- a cell holds if coverage of the slopes is in [.94, .968] but for 3.5 standard errors\n")
        print("## X uniform on (0, 10)³, β = (1.5, -2, .5), unit normal errors, |y| ≤ 30\n")
        table(("n", "budget", *head), bench.budgets())
        print("## The same design with other errors, ρ = .5, robust intervals\n")
        table(("n", "errors", *head), bench.errors())
        print(f"## Linear model of regression_quality.md, n = {ROWS:,}, d = {DIM}\n")
        print("The last column compares with the ridge that `dpci.fit` solves on a ball, objective perturbation.\n")
        table(("budget", "λ", *head, "of the ball's"), bench.published())
    print(f"Run time: {time.perf_counter() - started:.0f} s.")
    sys.exit(f"broken: {', '.join(bench.broken)}" if bench.broken else 0)


if __name__ == "__main__":
    main()
