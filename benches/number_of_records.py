"""Coverage of intervals under add/remove where the number of records N is not ``n_public``: a report in Markdown."""

import argparse
import datetime as dt
import functools
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import dpci
from _studies import markdown
from _timing import commit, machine
from dpci import lowlevel
from dpci.mechanisms import check_mechanism
from papers.scaling import load_with_data_dependent_scaling

_F64 = NDArray[np.float64]
BUDGETS = (dpci.PureDP(1e4), dpci.PureDP(4.0))
MECHANISMS = ("objective", "output")
LEVEL = 0.95
NOTES = """- seed 3 of the samples, 0, 1, ... of the noise; standard error of a coverage of .95 for 300 samples: .013
- projection="floor", so that both intervals come from the same two matrices
- target: the population's minimiser at λ·n_public/N, for a Poisson number at its mean

The first three coverages are those of the released intervals: the mean over the parameters, the worst parameter, and
the intercept. The next three are for intervals that subtract the square of the mean gradient as if N were n_public, as
dpci once did. The length is the mean length of the former divided by that of the latter."""


@dataclass(frozen=True, eq=False)
class Population:
    """Rows that stand for the population: samples are drawn from them with replacement."""

    title: str
    X: _F64
    y: _F64
    n_public: int
    l2_strength: float

    @functools.cache  # noqa: B019  # the few populations live as long as the report
    def target(self, ratio: float) -> _F64:
        """Return the minimiser of the population's risk where N is ``ratio`` times ``n_public``."""
        strength = self.l2_strength / ratio
        found = lowlevel.minimize_erm(
            self.X, self.y, loss="logistic", l2_strength=strength, intercept=1.0, tolerance=1e-7
        )
        return np.asarray(found.params)


def rare(n_public: int, l2_strength: float) -> Population:
    """One positive in a hundred."""
    rng = np.random.default_rng(15)
    X = rng.uniform(-0.7, 0.7, size=(100_000, 2))
    y = np.where(X @ [1.5, -1.0] - 4.75 + rng.logistic(size=len(X)) > 0, 1.0, -1.0)
    return Population(f"simulated, {np.mean(y > 0):.2%} positives", X, y, n_public, l2_strength)


def adult(n_public: int) -> Population:
    """Adult with 10 columns."""
    data = load_with_data_dependent_scaling("adult", None, 10)
    y = np.where(np.asarray(data.y) > 0, 1.0, -1.0)
    return Population(f"Adult, d=10, {np.mean(y > 0):.0%} positives", data.X, y, n_public, 0.002)


@dataclass(frozen=True)
class Number:
    """How many records there are: ``ratio`` times ``n_public``, or a Poisson number with that mean."""

    ratio: float
    poisson: bool = False

    def __str__(self) -> str:
        return f"{'Poisson, mean ' if self.poisson else ''}{self.ratio:g} n_public"


NUMBERS = (
    *(Number(ratio) for ratio in (0.5, 0.8, 1.0, 1.2, 1.5, 2.0)),
    Number(1.0, poisson=True),
    Number(1.5, poisson=True),
)


@dataclass
class Cell:
    """Hits and lengths of the released intervals, and of those that subtract the square of the mean gradient."""

    hits: list[NDArray[np.bool_]]
    old_hits: list[NDArray[np.bool_]]
    lengths: list[_F64]
    old_lengths: list[_F64]

    def row(self) -> list[str]:
        hits, old = np.array(self.hits), np.array(self.old_hits)
        longer = np.mean(self.lengths) / np.mean(self.old_lengths)
        shown = [hits.mean(), hits.mean(axis=0).min(), hits[:, -1].mean()]
        former = [old.mean(), old.mean(axis=0).min(), old[:, -1].mean()]
        return [*(f"{value:.3f}" for value in shown + former), f"{longer:.3f}"]


def half_widths(result: dpci.PrivateFit, gradient_cov: _F64) -> _F64:
    """Half widths from another gradient covariance than the released one."""
    steps, dim = result.privacy["steps"], len(result.params)
    values, vectors = np.linalg.eigh(gradient_cov)
    gradient_cov = (vectors * np.maximum(values, 0.0)) @ vectors.T
    variance, multiplier = lowlevel.error_components(
        result.hessian, gradient_cov, result.n_samples, np.eye(dim), mechanism=result.mechanism
    )
    law = {"noise_law": steps[0]["noise"], "noise_scale": steps[0]["scale"], "dim": dim}
    return np.asarray(lowlevel.exact_half_widths(variance, multiplier, level=LEVEL, **law))


@dpci.threads(1)
def study(population: Population, mechanism: str, budget: dpci.PureDP, number: Number, runs: int) -> Cell:
    """Draw samples and fit each."""
    ratio, target = number.ratio, population.target(number.ratio)
    cell = Cell([], [], [], [])
    rng = np.random.default_rng(3)
    n_records = round(ratio * population.n_public)
    for seed in range(runs):
        rows = rng.integers(0, len(population.y), rng.poisson(n_records) if number.poisson else n_records)
        result = dpci.fit(
            population.X[rows],
            population.y[rows],
            budget=budget,
            l2_strength=population.l2_strength,
            mechanism=replace(check_mechanism(mechanism), projection="floor"),
            classes=(-1, 1),
            neighbors=dpci.AddRemove(population.n_public),
            seed=seed,
        )
        intervals = result.conf_int(level=LEVEL)
        cell.hits.append((intervals.lower <= target) & (target <= intervals.upper))
        cell.lengths.append(intervals.length)
        mean_gradient = population.l2_strength * result.params
        former = half_widths(result, np.asarray(result.gradient_cov) - np.outer(mean_gradient, mean_gradient))
        cell.old_hits.append(np.abs(result.params - target) <= former)
        cell.old_lengths.append(2.0 * former)
    return cell


def report(populations: list[Population], runs: int) -> Iterator[str]:
    """Yield the lines of the tables, one for each population."""
    header = ["ε", "mechanism", "N", "coverage", "worst", "intercept", "coverage", "worst", "intercept", "length"]
    for population in populations:
        yield f"\n## {population.title}, n_public={population.n_public:,}, λ={population.l2_strength:g}\n"
        rows = []
        for budget in BUDGETS:
            for mechanism in MECHANISMS:
                for number in NUMBERS:
                    cell = study(population, mechanism, budget, number, runs)
                    rows.append([f"{budget.epsilon:g}", mechanism, number, *cell.row()])
        yield from markdown(header, rows)


def main() -> None:
    """Print the report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=300, help="samples in each cell")
    options.add_argument("--quick", action="store_true", help="the simulated population alone")
    arguments = options.parse_args()
    began = time.perf_counter()
    populations = [rare(5000, 0.1)] if arguments.quick else [rare(5000, 0.1), adult(5000)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpci.errors.DpciWarning)
        lines = list(report(populations, arguments.runs))
    print("# Add/remove: how many records there are beside n_public\n")
    print(f"- `python benches/number_of_records.py`; commit {commit()}, {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC")
    print(f"- {machine()}, dpci {dpci.__version__}; {time.perf_counter() - began:.0f} s")
    print(f"- logistic loss, pure DP, level {LEVEL}; {arguments.runs} samples with replacement in each cell")
    print(NOTES)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
