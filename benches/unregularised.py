"""Coverage of intervals for the unregularised target, beside those of the regularised one."""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpci
from _environments import now
from _timing import commit
from dpci.datasets.loaders import load_schema
from dpci.datasets.tables import load_table, without_missing
from dpci.schema.columns import NumericColumn
from statsmodels_limit import full_rank

_F64 = NDArray[np.float64]
MATRICES = 0.7, 0.15, 0.15
# At great budgets the least λ is near the least that can be certified for all data sets.
CERTIFIED = 1e-6
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
    times: int = 1
    """How many times as many fits as of the others."""

    def l2_strength(self) -> float:
        """Return λ."""
        if self.strength < 1.0:
            return self.strength
        offered = dpci.plan(
            n_samples=self.n,
            n_features=self.population.n_columns,
            budget=self.budget,
            l2_strength=0.01,
            mechanism=dpci.ObjectivePerturbation(split=self.split),
        )
        return max(self.strength * offered.least_l2_strength, CERTIFIED)


def without_ridge(X: _F64, y: _F64, params: _F64) -> _F64:
    """Return the minimiser without a ridge, by Newton's method from that with a tiny one."""
    rows = np.column_stack([X, np.ones(len(X))])
    for _ in range(30):
        positive = 1.0 / (1.0 + np.exp(-(rows @ params)))
        hessian = (rows * (positive * (1.0 - positive))[:, None]).T @ rows
        step = np.linalg.solve(hessian, rows.T @ (positive - (y > 0)))
        params = params - step
        if np.abs(rows @ step).max() < 1e-9:
            return np.asarray(params)
    raise RuntimeError("Newton's method must converge")


class Population:
    """Rows of a table, drawn with replacement; the target is their own unregularised minimiser."""

    def __init__(self, X: _F64, y: _F64) -> None:
        self.X, self.y = np.ascontiguousarray(X), y
        start = dpci.lowlevel.minimize_erm(self.X, y, l2_strength=1e-9, intercept=1.0, tolerance=1e-6).params
        self.target = without_ridge(self.X, y, start)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.X.shape[1]

    def regularised(self, l2_strength: float) -> _F64:
        """Return the target of intervals at this λ."""
        return dpci.lowlevel.minimize_erm(self.X, self.y, l2_strength=l2_strength, intercept=1.0, tolerance=1e-6).params

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


ZCDP = dpci.ZCDP(0.5)
N_GENERATED = 200_000


def generated(columns: _F64, slopes: list[float], intercept: float) -> Population:
    """Return rows in the unit ball, of columns within [-1, 1], with a logistic model; slopes: those of the columns."""
    d = columns.shape[1]
    predictor = columns @ np.array(slopes) + intercept
    y = np.random.default_rng(7).uniform(size=len(columns)) < 1.0 / (1.0 + np.exp(-predictor))
    return Population(columns / np.sqrt(d), np.where(y, 1.0, -1.0))


def normals(half_widths: list[float]) -> _F64:
    """Return normal columns with so many standard deviations between the middle and the public bounds."""
    rng = np.random.default_rng(8)
    return np.column_stack([rng.normal(size=N_GENERATED).clip(-4, 4) / width for width in half_widths])


def rare() -> Iterator[Case]:
    """Yield rare columns, rare classes and wide bounds, at sizes and λ where some of the fits give the target."""
    rng, n = np.random.default_rng(9), N_GENERATED
    uniform, rare_column = rng.uniform(-1, 1, n), (rng.uniform(size=n) < 0.03).astype(float)
    rare_number = (rng.uniform(size=n) < 0.02) * rng.uniform(0.3, 1.0, n)
    other = rng.normal(0, 0.3, n).clip(-1, 1)
    pure = dpci.PureDP(20.0)
    with_column = generated(np.column_stack([rare_column, uniform]), [1.5, 1.0], -1.0)
    for size, budget, strength in (
        (2_000, pure, 0.002),
        (2_000, pure, 0.0005),
        (3_000, pure, 0.0005),
        (3_000, pure, 4.0),
        (20_000, ZCDP, 4.0),
    ):
        yield Case("3% column, uniform column", with_column, size, budget, strength, times=5)
    alone = generated(rare_column[:, None], [1.5], -3.5)
    for size, budget, strength in (
        (2_500, pure, 0.0001),
        (2_500, pure, 4.0),
        (5_000, pure, 0.0005),
        (5_000, ZCDP, 0.0005),
        (10_000, dpci.PureDP(3.0), 0.001),
    ):
        yield Case("3% column alone, 4% positives", alone, size, budget, strength, times=5)
    constant = generated(1.0 - rare_column[:, None], [-2.0], 1.0)
    for size, budget, strength in (
        (2_500, pure, 0.0001),
        (2_500, pure, 0.0005),
        (5_500, ZCDP, 0.0005),
        (10_000, APPROX, 20.0),
    ):
        yield Case("97% column alone", constant, size, budget, strength, times=5)
    positives = generated(np.column_stack([rare_column, uniform]), [1.5, 1.0], -3.5)
    for size, strength in ((10_000, 0.0001), (15_000, 4.0)):
        yield Case("3% column, uniform column, 4% positives", positives, size, ZCDP, strength, times=3)
    slope = generated(np.column_stack([rare_number, uniform, other]), [2.0, 1.0, -1.0], -0.5)
    for size, budget, strength in (
        (2_000, pure, 0.0005),
        (10_000, APPROX, 20.0),
        (30_000, ZCDP, 4.0),
        (30_000, ZCDP, 0.0001),
    ):
        yield Case("number in 2% of the rows, two columns", slope, size, budget, strength, times=2)
    yield from products(rng)
    yield from unbalanced(rng)
    uniforms = generated(rng.uniform(-1, 1, (n, 4)), [1.0, -0.75, 0.5, 0.0], 0.3)
    for size, budget, strength in ((7_000, dpci.PureDP(3.0), 0.0005), (7_000, dpci.PureDP(3.0), 4.0)):
        yield Case("four uniform columns", uniforms, size, budget, strength, times=3)
    for width in (10.0, 30.0):
        wide = generated(normals([width] * 4), [width, -0.7 * width, 0.4 * width, 0.0], -1.0)
        for size, budget, strength in ((20_000, APPROX, 4.0), (20_000, ZCDP, 20.0), (5_000, pure, 0.001)):
            yield Case(f"four normal columns, bounds {width:g} deviations off", wide, size, budget, strength)


def products(rng: np.random.Generator) -> Iterator[Case]:
    """Yield few records with a product of two columns, at a ridge that is too strong for most fits."""
    n = N_GENERATED
    enough = dpci.ZCDP(1000.0)
    for size, shares, slopes, intercept in (
        (500, (0.5, 0.3), [2.0, -1.0, 2.0], -1.0),
        (700, (0.3, 0.4), [-1.5, 1.0, 2.5], 0.5),
    ):
        first, second = ((rng.uniform(size=n) < share).astype(float) for share in shares)
        product = generated(np.column_stack([first, second, first * second]), slopes, intercept)
        for strength in (0.001, 0.0005):
            yield Case("two 0/1 columns, their product", product, size, enough, strength, times=10)


def unbalanced(rng: np.random.Generator) -> Iterator[Case]:
    """Yield few records with few positives, whose curvature falls exponentially with the intercept."""
    population = generated(rng.uniform(-0.9, 0.9, (N_GENERATED, 1)), [3.0], -3.0)
    for size, rho, strength, times in (
        (500, 10.0, 0.0025, 10),
        (300, 100.0, 0.003, 10),
        (1_000, 5.0, 0.003, 10),
        (300, 1e8, 0.006, 30),
        (150, 1e8, 0.008, 40),
        (150, 1e8, 0.004, 10),
    ):
        yield Case("uniform column, 8% positives", population, size, dpci.ZCDP(rho), strength, times=times)


def numbers() -> Iterator[Case]:
    """Yield tables with all their numeric columns, and generated heavy tails."""
    schemas = {"Adult": "adult", "Bank": "bank", "Credit default": "credit_default"}
    for name, schema in schemas.items():
        public = load_schema(schema)
        table = load_table(schema, "train") if schema == "adult" else load_table(schema)
        columns = [c for c in public.columns if isinstance(c, NumericColumn)]
        for title, kept in (
            ("numbers", columns),
            ("numbers, not transformed", [replace(c, transform="none") for c in columns]),
        ):
            encoded = replace(public, columns=tuple(kept)).transform(
                without_missing(table) if schema == "adult" else table
            )
            population = Population(encoded.X, encoded.y)
            for budget, split in (
                (PURE, None),
                (APPROX, None),
                (ZCDP, None),
                (ZCDP, MATRICES),
                (dpci.PureDP(20.0), None),
            ):
                yield Case(f"{name}, {title}", population, len(encoded.X), budget, 4.0, split)
            if title == "numbers":
                yield Case(f"{name}, {title}", population, 10 * len(encoded.X), ZCDP, 4.0, MATRICES)
    rng, n = np.random.default_rng(10), N_GENERATED
    tails = np.column_stack(
        [
            rng.pareto(2.5, n).clip(0, 50) / 50,
            rng.standard_t(2, n).clip(-30, 30) / 30,
            np.exp(1.3 * rng.normal(size=n)).clip(0, 100) / 100,
            rng.uniform(size=n) < 0.05,
            rng.standard_t(2.5, n).clip(-10, 10) / 10,
            rng.uniform(-1, 1, n),
        ]
    )
    heavy = generated(tails, [20.0, 12.0, 25.0, 1.0, 3.0, 0.5], -1.2)
    for size, budget, split in (
        (20_000, PURE, None),
        (20_000, APPROX, None),
        (20_000, ZCDP, None),
        (1_000_000, ZCDP, MATRICES),
        (20_000, dpci.PureDP(20.0), None),
    ):
        yield Case("heavy tails", heavy, size, budget, 4.0, split)


@dataclass(frozen=True)
class Found:
    """Measured values: shares of all coefficients of all fits, or of those that are given."""

    l2_strength: float
    fits: int
    given: float
    covers: float
    worst: str
    own: float
    all_regularised_cover: float
    length: float
    median_length: float


def measure(case: Case, n_fits: int) -> Found:
    """Fit many samples."""
    strength = case.l2_strength()
    keywords: dict[str, Any] = {"budget": case.budget, "l2_strength": strength, "classes": (-1, 1)}
    keywords["mechanism"] = dpci.ObjectivePerturbation(split=case.split)
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
    covered, ratios = np.array(covers), np.array(lengths)
    counts = shown.sum(axis=0)
    each = [(covered[shown[:, j], j].mean(), counts[j]) for j in np.flatnonzero(counts > 0.005 * n_fits)]
    lowest = min(each, default=None)
    return Found(
        strength,
        n_fits,
        shown.mean(),
        covered[shown].mean() if shown.any() else np.nan,
        "-" if lowest is None else f"{lowest[0]:.3f} of {lowest[1]}",
        np.mean(own),
        np.mean(ridge),
        ratios[shown].mean() if shown.any() else np.nan,
        np.nanmedian(long) if shown.any() else np.nan,
    )


ABOUT = """# Intervals without the ridge

`python benches/unregularised.py {n_fits}`, commit {commit}, {date}, seeded noise.

The tables have the coverage of 95% intervals for the unregularised coefficients of the population, intercept included,
**in the fits that give them**. "given" is the share of coefficients and fits with an interval by
`conf_int(target="unregularised")`, "covers" the coverage of these. "worst" is the coefficient with the lowest coverage
among those that more than .5% of the fits give, and the number of these fits. "own" is the coverage of the regularised
target by its own intervals in all fits, "regularised" that of the unregularised target by the same intervals. "ratio"
is the mean ratio of the lengths of both intervals. "length" is the median over fits of the median length of what is
given.

Awan & Wang: one column x = 2 Beta(1/2, 1/2) - 1, log odds 1/2 + 2x. Adult, Bank and Credit default are bootstrap
samples of a table, of its size or ten times that: Adult with the schema adult_demo, and the first ten columns of full
rank of the others; "numbers" are all numeric columns of a table with its schema, which takes logarithms of amounts, or
without these transforms. The other populations are generated, 200,000 rows each. λ is stated, or is a multiple of the
least λ that is allowed. "matrices .3" gives a greater share of the budget to the matrices, `split=(.7, .15, .15)`, at
the same multiple of its own least λ. No constant of the method was chosen on Credit default or on the heavy tails."""


def main(n_fits: int, parts: list[str]) -> None:
    """Print the evidence, of all parts or of those that are named."""
    print(ABOUT.format(n_fits=n_fits, commit=commit(), date=now()))
    columns = (
        "population",
        "n",
        "budget",
        "λ",
        "fits",
        "given",
        "covers",
        "worst",
        "own",
        "regularised",
        "ratio",
        "length",
    )
    for name, part in (("tables", cases), ("numbers", numbers), ("rare", rare)):
        if parts and name not in parts:
            continue
        print(f"\n| {' | '.join(columns)} |")
        print("|---" * len(columns) + "|")
        for case in part():
            found = measure(case, case.times * n_fits)
            strength = f"{found.l2_strength:.2g}" + (f" ({case.strength:g} × least)" if case.strength > 1.0 else "")
            strength += "" if case.split is None else ", matrices .3"
            shares = [found.given, found.covers, found.own, found.all_regularised_cover]
            given, covers, own, ridge = ("-" if np.isnan(share) else f"{share:.3f}" for share in shares)
            lengths = " | ".join(
                "-" if np.isnan(x) else f"{x:.{d}g}" for x, d in ((found.length, 3), (found.median_length, 2))
            )
            print(
                f"| {case.name} | {case.n:,} | {case.budget} | {strength} | {found.fits:,} | {given} | {covers} | "
                f"{found.worst} | {own} | {ridge} | {lengths} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, sys.argv[2:])
