"""Refined coefficients of a planned regression: coverage and length, beside those of the matrix alone.

Seeded, so not private. Prints Markdown; exit code 1 if a coverage is out of its limits but for 3.5 standard errors:
at least .94 of slopes with normal errors, at least .93 of each coefficient with other ones, at least .9 of the slope
with outliers.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
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
SIZES = (2000, 50_000)
# With all errors but normal ones of one variance.
OTHER_BUDGETS = {"ε = 4": dpci.PureDP(4.0), "ρ = .5": dpci.ZCDP(0.5), "(1, 10⁻⁶)": dpci.ApproxDP(1.0, 1e-6)}
# Numbers of records: the part of the runs, and the budgets.
OTHER_SIZES = {
    2000: (1.0, ("ε = 4", "ρ = .5")),
    10_000: (1.0, ("(1, 10⁻⁶)",)),
    50_000: (1.0, ("ρ = .5",)),
    200_000: (0.5, ("ρ = .5",)),
}
# With ten columns.
TEN = {5000: (1.0, ("ρ = .5",)), 50_000: (0.5, ("ρ = .5", "ε = 4")), 200_000: (0.25, ("ρ = .5",))}
LEAST = 0.93
# Share of the records in a group with a tail, number of records, budget.
GROUPS = (
    (0.03, 30_000, dpci.PureDP(8.0)), (0.03, 30_000, dpci.ZCDP(0.5)), (0.05, 10_000, dpci.ZCDP(0.1)),
    (0.05, 30_000, dpci.ZCDP(0.1)),
)  # fmt: skip
# Share of outliers, their size times a power of x0, number of records, budget.
OUTLIERS = (
    (0.0, 15.0, 1, 3000, dpci.PureDP(4.0)), (0.0, 15.0, 1, 5000, dpci.ZCDP(0.1)),
    (0.01, 15.0, 1, 3000, dpci.PureDP(4.0)), (0.01, 15.0, 1, 6000, dpci.PureDP(2.0)),
    (0.01, 15.0, 1, 5000, dpci.ZCDP(0.1)), (0.01, 15.0, 1, 3000, dpci.PureDP(8.0)),
    (0.02, 15.0, 1, 3000, dpci.PureDP(4.0)), (0.02, 15.0, 1, 6000, dpci.PureDP(2.0)),
    (0.02, 15.0, 1, 5000, dpci.ZCDP(0.1)), (0.02, 15.0, 1, 3000, dpci.ApproxDP(1.0, 1e-6)),
    (0.03, 15.0, 1, 3000, dpci.ApproxDP(1.0, 1e-6)),
    (0.02, 8.0, 2, 3000, dpci.PureDP(4.0)), (0.02, 8.0, 2, 6000, dpci.PureDP(2.0)),
    (0.02, 8.0, 2, 5000, dpci.ZCDP(0.1)),
)  # fmt: skip
# Of x0 with such outliers.
LEAST_SPREAD = 0.9
PARAMS = ("x0", "other slopes", "intercept")
# Runs with many records are fewer.
FEWER, LARGEST = 3, 10


@dpci.threads(1)
def uniform(seed: int, *, n: int, budget: dpci.budgets.GaussianBudget, refine: bool) -> tuple[np.ndarray, np.ndarray]:
    """Columns uniform on (0, 10), unit errors, targets within 30."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 10.0, (n, 3))
    y = X @ BETA + rng.standard_normal(n)
    matrix = dpci.regression.release(
        X, y, budget=budget, bounds=(0.0, 10.0), target_bound=30.0, rows="clip", refine=refine, seed=seed,

    )  # fmt: skip
    return covered(matrix.fit(), BETA)


def log_normal(rng: np.random.Generator, n: int) -> np.ndarray:
    """Log-normal errors of variance 1, whose logarithm has the standard deviation 1.2."""
    return np.asarray((rng.lognormal(0.0, 1.2, n) - np.exp(0.72)) / np.sqrt(np.expm1(1.44) * np.exp(1.44)))


def spikes(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Normal errors; one in a hundred, and more of them where x is large, is 8 larger."""
    return rng.standard_normal(len(x)) * 0.5 + 8.0 * (rng.uniform(size=len(x)) < 0.002 * x)


ERRORS: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "normal, uneven": lambda rng, x: rng.standard_normal(len(x)) * (0.4 + 0.08 * (x - 5.0) ** 2),
    "bimodal": lambda rng, x: rng.standard_normal(len(x)) * 0.3 + np.where(rng.uniform(size=len(x)) < 0.5, 1.0, -1.0),
    "t with 5 degrees, growing": lambda rng, x: growing(x) * rng.standard_t(5, len(x)) * np.sqrt(0.6),
    "t with 3 degrees, growing": lambda rng, x: growing(x) * rng.standard_t(3, len(x)) / np.sqrt(3.0),
    "exponential, growing": lambda rng, x: growing(x) * (rng.exponential(size=len(x)) - 1.0),
    "log-normal": lambda rng, x: log_normal(rng, len(x)),
    "log-normal, growing": lambda rng, x: growing(x) * log_normal(rng, len(x)),
    "spiked": spikes,
}


def growing(x: np.ndarray) -> np.ndarray:
    """The spread of errors that grows with the first column."""
    return 0.1 + 0.18 * x


def drawn(rng: np.random.Generator, n: int, errors: str, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and clipped targets."""
    X = rng.uniform(0.0, 10.0, (n, columns))
    return X, np.clip(X[:, 0] - X[:, 1] + ERRORS[errors](rng, X[:, 0]), -30.0, 30.0)


@cache
def population(errors: str) -> np.ndarray:
    """Coefficients of the clipped targets in 10,000,000 records; those of further columns are 0."""
    rng = np.random.default_rng(1)
    gram, cross = np.zeros((4, 4)), np.zeros(4)
    for _ in range(20):
        X, y = drawn(rng, 500_000, errors, 3)
        design = np.column_stack([X, np.ones(len(X))])
        gram += design.T @ design
        cross += design.T @ y
    return np.asarray(np.linalg.solve(gram, cross))


@dpci.threads(1)
def other(seed: int, *, n: int, budget: str, errors: str, columns: int) -> np.ndarray:
    """Coverage and length of x0: of the refined fit with robust and classical covariance, and of the matrix alone.

    Not a number where a fit is refused.
    """
    truth = np.insert(population(errors), 3, np.zeros(columns - 3))
    X, y = drawn(np.random.default_rng(seed + 2), n, errors, columns)
    found = []
    for refine, covariances in ((True, ("robust", "classical")), (False, ("robust",))):
        matrix = dpci.regression.release(
            X, y, budget=OTHER_BUDGETS[budget], bounds=(0.0, 10.0), target_bound=30.0, refine=refine, robust=True,
            seed=seed,
        )  # fmt: skip
        for covariance in covariances:
            try:
                inside, lengths = covered(matrix.fit(covariance=covariance), truth)
            except dpci.InvalidInput:
                found.append(np.full(columns + 2, np.nan))
                continue
            found.append(np.append(inside.astype(float), lengths[0]))
    return np.array(found)


@dpci.threads(1)
def grouped(seed: int, *, share: float, n: int, budget: dpci.budgets.GaussianBudget) -> np.ndarray:
    """Coverage and length of the coefficient of a group that alone has a heavy tail: refined, and of the matrix alone.

    Its errors are Pareto ones, t^(-5/2) up to 30, less their mean; those of the others are normal.
    """
    rng = np.random.default_rng(seed + 2)
    X = rng.uniform(0.0, 10.0, (n, 3))
    X[:, 2] = 10.0 * (rng.uniform(size=n) < share)
    normal = 0.05 * rng.standard_normal(n)
    tail = np.minimum((1.0 - rng.uniform(size=n)) ** -0.4, 30.0) - (5.0 - 2.0 * 30.0**-1.5) / 3.0
    y = X[:, 0] - X[:, 1] + normal + 0.06 * X[:, 2] * tail
    found = []
    for refine in (True, False):
        matrix = dpci.regression.release(
            X, y, budget=budget, bounds=(0.0, 10.0), target_bound=30.0, rows="clip", refine=refine, robust=True,
            seed=seed,
        )  # fmt: skip
        inside, lengths = covered(matrix.fit(), np.array([1.0, -1.0, 0.0, 0.0]))
        found.append([inside[2], lengths[2]])
    return np.array(found, dtype=float)


@dpci.threads(1)
def spread(
    seed: int, *, share: float, size: float, power: int, n: int, budget: dpci.budgets.GaussianBudget
) -> np.ndarray:
    """Coverage of each coefficient and length of x0, with outliers of spread sizes: refined, and the matrix alone."""
    rng = np.random.default_rng(seed + 2)
    X = rng.uniform(0.0, 1.0, (n, 3))
    errors = 0.3 * rng.standard_normal(n) + size * X[:, 0] ** power * (rng.uniform(size=n) < share)
    y = X[:, 0] - X[:, 1] + errors
    # The line that is nearest to x or to x² on (0, 1).
    slope, constant = share * size, 0.0 if power == 1 else -share * size / 6.0
    truth = np.array([1.0 + slope, -1.0, 0.0, constant])
    found = []
    for refine in (True, False):
        matrix = dpci.regression.release(
            X, y, budget=budget, bounds=(0.0, 1.0), target_bound=30.0, rows="clip", refine=refine, robust=True,
            seed=seed,
        )  # fmt: skip
        inside, lengths = covered(matrix.fit(), truth)
        found.append([*inside, lengths[0]])
    return np.array(found, dtype=float)


@dpci.threads(1)
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
        X[rows], y[rows], budget=PUBLISHED[budget], rows=1.0, target_bound=1.0, refine=plan if refine else None,
        robust=None if l2_strength else plan, seed=seed,
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
        # Intervals allow for what the cap may cut off, and of normal errors it cuts off nothing.
        holds = inside(*refined[:2], 0.94, 1.0)
        if not holds:
            self.broken.append(what)
        return (*shown(*refined), f"{plain[2]:.4g}", f"{refined[2] / plain[2]:.2f}", "holds" if holds else "broken")

    def budgets(self) -> Iterator[tuple[Any, ...]]:
        """Normal errors, all budgets."""
        for n, (name, budget) in itertools.product(SIZES, BUDGETS.items()):
            runs = self.runs if n == SIZES[0] else self.runs // FEWER
            work = partial(uniform, n=n, budget=budget)
            found = [cell(self.pool, partial(work, refine=refine), runs) for refine in (True, False)]
            yield f"{n:,}", name, *self.judged(f"{n} {name}", *found)

    def errors(self, sizes: dict[int, tuple[float, tuple[str, ...]]], columns: int) -> Iterator[tuple[Any, ...]]:
        """Errors of other laws: coverage of each coefficient, the verdict, and the length."""
        cells = [(n, part, budget) for n, (part, budgets) in sizes.items() for budget in budgets]
        for kind, (n, part, budget) in itertools.product(ERRORS, cells):
            runs = max(int(part * self.runs) // FEWER, 2)
            work = partial(other, n=n, budget=budget, errors=kind, columns=columns)
            found = np.array(list(self.pool.map(work, range(runs), chunksize=max(runs // 8, 1))))
            given = ~np.isnan(found).any(axis=(1, 2))
            if given.mean() < 0.5:
                yield f"{n:,}", kind, budget, *[""] * 9, f"{given.mean():.2f}", "hidden"
                continue
            found = found[given]
            robust, classical, alone = (
                [cells.mean() for cells in (fit[:, 0], fit[:, 1:-2], fit[:, -2])] for fit in found.transpose(1, 0, 2)
            )
            holds = all(c >= LEAST - 3.5 * np.sqrt(LEAST * (1.0 - LEAST) / len(found)) for c in robust)
            if not holds:
                self.broken.append(f"{n} {columns} columns {kind} {budget}")
            ratio = found[:, 0, -1].mean() / found[:, 2, -1].mean()
            texts = [f"{c:.3f}" for c in (*robust, *classical, *alone)]
            yield (
                f"{n:,}", kind, budget, *texts[:6], texts[6], texts[8], f"{ratio:.2f}", f"{given.mean():.2f}",
                "holds" if holds else "broken",
            )  # fmt: skip

    def groups(self) -> Iterator[tuple[Any, ...]]:
        """The coefficient of a rare group with a tail."""
        for share, n, budget in GROUPS:
            work = partial(grouped, share=share, n=n, budget=budget)
            found = np.array(list(self.pool.map(work, range(self.runs), chunksize=max(self.runs // 8, 1))))
            (refined, length), (alone, whole) = found.mean(axis=0)
            yield f"{share:.0%}", f"{n:,}", str(budget), f"{refined:.3f}", f"{alone:.3f}", f"{length / whole:.2f}"

    def outliers(self) -> Iterator[tuple[Any, ...]]:
        """Outliers of spread sizes."""
        for share, size, power, n, budget in OUTLIERS:
            work = partial(spread, share=share, size=size, power=power, n=n, budget=budget)
            runs = max(self.runs // FEWER, 2)
            found = np.array(list(self.pool.map(work, range(runs), chunksize=max(runs // 8, 1))))
            refined, alone = found.mean(axis=0)
            holds = refined[0] >= LEAST_SPREAD - 3.5 * np.sqrt(LEAST_SPREAD * (1.0 - LEAST_SPREAD) / runs)
            if not holds:
                self.broken.append(f"{share} {size} {power} {n} {budget}")
            of_size = "none" if not share else f"{share:.0%} at {size:g} x0" + ("²" if power == 2 else "")
            yield (
                f"{n:,}", str(budget), of_size, *(f"{c:.3f}" for c in refined[:-1]), f"{alone[0]:.3f}",
                f"{refined[-1]:.4g}", f"{refined[-1] / alone[-1]:.2f}", "holds" if holds else "broken",
            )  # fmt: skip

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
    # Before the processes start, which then have them.
    for kind in ERRORS:
        population(kind)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    head = ("coverage", "s.e.", "mean length", "given", "matrix alone", "ratio", "verdict")
    with ProcessPoolExecutor(arguments.jobs) as pool:
        bench = Bench(pool, arguments.runs)
        print("# Refined coefficients of linear regressions\n")
        few = "a third of that with 50,000 records, other errors and outliers, a tenth with 100,000"
        print(f"- {bench.runs} runs of a cell, {few}; commit {commit.stdout.strip()}")
        print(f"- numpy {np.__version__}, dpci {dpci.__version__}, Python {platform.python_version()}; level .95")
        print("- a cell holds if coverage of the slopes is at least .94 but for 3.5 standard errors\n")
        print("## X uniform on (0, 10)³, β = (1.5, -2, .5), unit normal errors, |y| ≤ 30\n")
        table(("n", "budget", *head), bench.budgets())
        print("## Other errors: y = x0 - x1 + e within ±30, e of standard deviation about 1\n")
        print(
            "Errors that grow have the spread .1 + .18 x0. A cell holds if each coefficient of the refined fit with the"
        )
        print(f"robust covariance is covered in at least {LEAST} but for 3.5 standard errors. The ratio is that of the")
        print("lengths for x0, refined over the matrix alone, both robust.\n")
        covers = [f"{fit}: {name}" for fit in ("robust", "classical") for name in PARAMS]
        last = ("matrix alone: x0", "matrix alone: intercept", "ratio", "given", "verdict")
        table(("n", "errors", "budget", *covers, *last), bench.errors(OTHER_SIZES, 3))
        print("## The same with ten columns\n")
        table(("n", "errors", "budget", *covers, *last), bench.errors(TEN, 10))
        print("## A rare group with a heavy tail\n")
        print("A column marks a few records. Their errors are Pareto ones, $t^{-5/2}$; the others are normal with a")
        print(
            "twentieth of their scale. Coverage of the coefficient of the group, robust; the page states its limits.\n"
        )
        table(("share", "n", "budget", "refined", "matrix alone", "ratio"), bench.groups())
        print("## Outliers of spread sizes\n")
        print(
            "Columns uniform on (0, 1), y = x0 - x1 + e within ±30, e normal with the standard deviation .3 and, for a"
        )
        print("share of the records, outliers on one side. Robust; a cell holds if x0 is covered in at least")
        print(f"{LEAST_SPREAD} but for 3.5 standard errors.\n")
        columns = ("x0", "x1", "x2", "intercept", "matrix alone: x0", "mean length of x0", "ratio", "verdict")
        table(("n", "budget", "outliers", *columns), bench.outliers())
        print(f"## Linear model of regression_quality.md, n = {ROWS:,}, d = {DIM}\n")
        print("The last column compares with the ridge that `dpci.fit` solves on a ball, objective perturbation.\n")
        table(("budget", "λ", *head, "of the ball's"), bench.published())
    print(f"Run time: {time.perf_counter() - started:.0f} s.")
    sys.exit(f"broken: {', '.join(bench.broken)}" if bench.broken else 0)


if __name__ == "__main__":
    main()
