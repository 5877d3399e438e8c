"""Coverage of intervals for the unregularised target, beside those of the regularised one."""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpci
from _environments import now
from _timing import commit
from dpci.datasets.loaders import load_schema
from dpci.datasets.tables import load_table, without_missing
from statsmodels_limit import full_rank

_F64 = NDArray[np.float64]
MATRICES = 0.7, 0.15, 0.15
PURE, APPROX = dpci.PureDP(1.0), dpci.ApproxDP(1.0, 1e-6)


@dataclass(frozen=True)
class Case:
    """A population, and how it is fitted."""

    name: str
    population: "Population"
    n: int
    budget: dpci.PureDP | dpci.ApproxDP
    strength: float
    """λ, or where it is above 1 the multiple of the least λ that is offered."""
    split: tuple[float, float, float] | None = None
    """Shares of the budget for coefficients, Hessian and gradient covariance; None: the default."""

    def l2_strength(self) -> float:
        """Return λ."""
        if self.strength < 1.0:
            return self.strength
        offered = dpci.plan(
            n_samples=self.n,
            n_features=self.population.n_columns,
            budget=self.budget,
            l2_strength=0.01,
            split=self.split,
        )
        return self.strength * offered.least_l2_strength


class Population:
    """Rows of a table, drawn with replacement; the target is their own unregularised minimiser."""

    def __init__(self, X: _F64, y: _F64) -> None:
        self.X, self.y = np.ascontiguousarray(X), y
        self.target = dpci.lowlevel.minimize_erm(
            self.X, y, l2_strength=1e-9, intercept_scale=1.0, tolerance=1e-6
        ).params

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.X.shape[1]

    def regularised(self, l2_strength: float) -> _F64:
        """Return the target of intervals at this λ."""
        return dpci.lowlevel.minimize_erm(
            self.X, self.y, l2_strength=l2_strength, intercept_scale=1.0, tolerance=1e-6
        ).params

    def sample(self, rng: np.random.Generator, n: int) -> tuple[_F64, _F64]:
        """Draw rows."""
        rows = rng.integers(0, len(self.X), n)
        return self.X[rows], self.y[rows]


class AwanWang(Population):
    """The design of Awan and Wang's simulations: x = 2 Beta(1/2, 1/2) - 1, log odds 1/2 + 2x."""

    def __init__(self) -> None:
        self.X, self.y = AwanWang.sample(self, np.random.default_rng(1), 2_000_000)
        self.target = np.array([2.0, 0.5])

    @property
    def n_columns(self) -> int:
        """One column."""
        return 1

    def sample(self, rng: np.random.Generator, n: int) -> tuple[_F64, _F64]:
        """Draw rows."""
        x = 2.0 * rng.beta(0.5, 0.5, n) - 1.0
        return x[:, None], np.where(rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-0.5 - 2.0 * x)), 1.0, -1.0)


def cases() -> Iterator[Case]:
    """Yield what is measured."""
    simulated = AwanWang()
    for epsilon, n, strength in (
        (1.0, 1_000, 4.0),
        (1.0, 1_000, 0.0059),
        (1.0, 1_000, 0.02),
        (1.0, 2_000, 0.0029),
        (1.0, 10_000, 4.0),
        (1.0, 10_000, 0.002),
        (1.0, 30_000, 0.002),
        (3.0, 2_000, 4.0),
        (3.0, 2_000, 0.0029),
        (10.0, 1_000, 4.0),
    ):
        yield Case("Awan & Wang", simulated, n, dpci.PureDP(epsilon), strength)
    adult = load_schema("adult_demo").transform(without_missing(load_table("adult", "train")))
    tables = {"Adult": (adult.X, adult.y)}
    for name, data in (("Bank", dpci.datasets.load_bank()), ("Credit default", dpci.datasets.load_credit_default())):
        X, _ = full_rank(data, data.y)
        tables[name] = (X[:, :10], data.y)
    for name, (X, y) in tables.items():
        population = Population(X, y)
        for budget in (PURE, APPROX):
            for strength in (4.0, 12.0, 40.0):
                yield Case(name, population, len(X), budget, strength)
            yield Case(name, population, len(X), budget, 4.0, MATRICES)
        yield Case(name, population, 10 * len(X), APPROX, 4.0, MATRICES)


@dataclass(frozen=True)
class Found:
    """What was measured: shares of all coefficients of all fits, or of those that are given."""

    l2_strength: float
    given: float
    covers: float
    worst: float
    own: float
    regularised_covers: float
    all_regularised_cover: float
    length: float
    median_length: float


def measure(case: Case, n_fits: int) -> Found:
    """Fit many samples."""
    strength = case.l2_strength()
    keywords: dict[str, Any] = {"budget": case.budget, "l2_strength": strength, "classes": (-1, 1), "split": case.split}
    rng, target = np.random.default_rng(0), case.population.target
    own_target = case.population.regularised(strength)
    given, covers, own, ridge, lengths, long = [], [], [], [], [], []
    for seed in range(n_fits):
        X, y = case.population.sample(rng, case.n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpci.DpciWarning)
            result = dpci.fit(X, y, **keywords, seed=seed)
        without, regularised = result.conf_int(target="unregularised"), result.conf_int()
        given.append([refusal is None for refusal in without.refusals])
        covers.append((without.lower <= target) & (target <= without.upper))
        ridge.append((regularised.lower <= target) & (target <= regularised.upper))
        own.append((regularised.lower <= own_target) & (own_target <= regularised.upper))
        long.append(np.median(without.length[np.isfinite(without.length)]) if given[-1].count(True) else np.nan)
        lengths.append(without.length / regularised.length)
    shown = np.array(given)
    covered, regularised_covered, ratios = np.array(covers), np.array(ridge), np.array(lengths)
    often = shown.sum(axis=0) >= 0.2 * n_fits
    each = [covered[shown[:, j], j].mean() for j in np.flatnonzero(often)]
    return Found(
        keywords["l2_strength"],
        shown.mean(),
        covered[shown].mean() if shown.any() else np.nan,
        min(each, default=np.nan),
        np.mean(own),
        regularised_covered[shown].mean() if shown.any() else np.nan,
        regularised_covered.mean(),
        ratios[shown].mean() if shown.any() else np.nan,
        np.nanmedian(long) if shown.any() else np.nan,
    )


ABOUT = """# Intervals without the ridge

`python benches/unregularised.py {n_fits}`, commit {commit}, {date}, {n_fits} fits for each line, seeded noise.

The table has the coverage of 95% intervals for the unregularised coefficients of the population, intercept included.
It compares `conf_int(target="unregularised")`, where it gives an interval, with the intervals of the regularised
target, which have another target. "own" is the coverage of the regularised target by its own intervals, over all
coefficients. "worst" is the coefficient with the lowest coverage among those that have an interval in at least one fit
in five; its standard error is about {error:.3f}. "ratio" is the mean ratio of the two lengths. "length" is the median
over fits of the median length of the intervals that are given.

Awan & Wang: one column x = 2 Beta(1/2, 1/2) - 1, log odds 1/2 + 2x. The other populations are bootstrap samples of a
table, of the size of the table: Adult with the schema adult_demo, and the first ten columns of full rank of Bank and
Credit default. λ is stated, or is a multiple of the least λ that is allowed. "matrices .3" gives a greater share of
the budget to the matrices, `split=(.7, .15, .15)`, at the same multiple of its own least λ; its tables of ten times
the size are drawn in the same way."""


def main(n_fits: int, populations: list[str]) -> None:
    """Print the evidence, of all populations or of those that are named."""
    error = float(np.sqrt(0.05 * 0.95 / n_fits))
    print(ABOUT.format(n_fits=n_fits, commit=commit(), date=now(), error=error))
    header = ["population", "n", "budget", "λ", "given", "covers", "worst", "own"]
    print(f"| {' | '.join([*header, 'regularised, where given', 'regularised, all', 'ratio', 'length'])} |")
    print("|---" * 12 + "|")
    for case in cases():
        if populations and case.name not in populations:
            continue
        found = measure(case, n_fits)
        strength = f"{found.l2_strength:.2g}" + (f" ({case.strength:g} × least)" if case.strength > 1.0 else "")
        strength += "" if case.split is None else ", matrices .3"
        shares = (
            found.given,
            found.covers,
            found.worst,
            found.own,
            found.regularised_covers,
            found.all_regularised_cover,
        )
        numbers = " | ".join("-" if np.isnan(share) else f"{share:.3f}" for share in shares)
        lengths = " | ".join(
            "-" if np.isnan(x) else f"{x:.{d}g}" for x, d in ((found.length, 3), (found.median_length, 2))
        )
        print(f"| {case.name} | {case.n:,} | {case.budget} | {strength} | {numbers} | {lengths} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, sys.argv[2:])
