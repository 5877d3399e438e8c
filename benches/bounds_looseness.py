"""How far the bounds of dpci.utility.bound are above the errors that happen: a known population, and warfarin doses.

Prints the table of docs/bounds.md in Markdown. Not private: the noise is seeded and the errors are read off the data.
The last rows need DPCI_DATA. Exit code 1 if an error is above its bound more often than the bound says.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import binom

import dpci
from dpci.datasets.files import DatasetUnavailable
from papers.wu.setup import patients

FAILURE = 0.05
FEW = {"budget": dpci.PureDP(2.0), "l2_strength": 0.05, "rows": dpci.rows.Within(intercept=False)}
SQUARED, LOGISTIC = dpci.losses.Squared(), dpci.losses.Logistic()
# Of the known population: name, loss, radius, projected, risks.
CASES = (
    ("logistic, no radius", LOGISTIC, None, False, ("training", "regularized")),
    ("squared, W=1", SQUARED, 1.0, False, ("training",)),
    ("squared, W=1, projected", SQUARED, 1.0, True, ("training", "empirical", "population")),
    ("squared, W=.2 (active), projected", SQUARED, 0.2, True, ("training", "population")),
)
# Of warfarin: epsilon, projected.
DOSES = ((0.1, False), (1.0, False), (1.0, True), (10.0, True))
Row = tuple[str, str, np.ndarray, float]


def population() -> tuple[np.ndarray, np.ndarray]:
    """Sixty equally likely records of norm at most 1, as in tests/utility/test_error_bounds.py."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    X /= np.linalg.norm(X, axis=1)[:, None] * rng.uniform(1.0, 2.0, size=(60, 1))
    return X, np.clip(X @ [0.9, -0.5, 0.3] + rng.normal(scale=0.3, size=60), -1.0, 1.0)


def risk(loss: Any, X: np.ndarray, y: np.ndarray, w: np.ndarray, strength: float) -> float:
    return float(loss.to_core().evaluate(np.ascontiguousarray(X @ w), y)[0].mean() + strength / 2.0 * w @ w)


def least(loss: Any, X: np.ndarray, y: np.ndarray, radius: float | None, strength: float) -> float:
    """Least risk on the ball; without a radius, where the minimiser is well inside of 10."""
    ball = {"type": "ineq", "fun": lambda w: (radius or 10.0) ** 2 - w @ w}
    start = np.zeros(X.shape[1])
    best = minimize(lambda w: risk(loss, X, y, w, strength), start, constraints=[ball], options={"ftol": 1e-12})
    return float(best.fun)


def known(n_runs: int, n: int = 400) -> Iterator[Row]:
    """Excesses where records are drawn from a population that is known."""
    X, y = population()
    for name, loss, radius, project, risks in CASES:
        targets = y if loss is SQUARED else np.where(y > 0.0, 1.0, -1.0)
        ways = {
            **FEW,
            "loss": loss,
            "mechanism": dpci.OutputPerturbation(moments="none", radius=radius, project=project),
        }
        found: dict[str, list[float]] = {of: [] for of in risks}
        for seed in range(n_runs):
            drawn = np.random.default_rng([7, seed]).integers(60, size=n)
            params = dpci.fit(X[drawn], targets[drawn], seed=seed, **ways).params
            for of, values in found.items():
                rows = drawn if of in {"training", "empirical"} else np.arange(60)
                strength = FEW["l2_strength"] if of in {"training", "regularized"} else 0.0
                here = loss, X[rows], targets[rows]
                values.append(risk(*here, params, strength) - least(*here, radius, strength))
        for of, values in found.items():
            stated = dpci.utility.bound(n_samples=n, n_features=3, of=of, failure_probability=FAILURE, **ways)
            yield name, of, np.array(values), stated.value


def warfarin(n_runs: int) -> Iterator[Row]:
    """Excesses over the sample of the 3,450 patients."""
    source = patients()
    n, d = source.X.shape
    floor = least(SQUARED, source.X, source.y, 1.0, 0.0)
    for epsilon, project in DOSES:
        mechanism = dpci.OutputPerturbation(radius=1.0, project=project)
        ways = {"budget": dpci.PureDP(epsilon), "l2_strength": math.sqrt(d / (n * epsilon))}
        ways |= {"loss": SQUARED, "mechanism": mechanism, "rows": dpci.rows.Within(intercept=False)}
        fits = (dpci.fit(source.X, source.y, seed=seed, **ways) for seed in range(n_runs))
        values = [risk(SQUARED, source.X, source.y, fit.params, 0.0) - floor for fit in fits]
        stated = dpci.utility.bound(n_samples=n, n_features=d, of="empirical", failure_probability=FAILURE, **ways)
        name = f"warfarin, ε={epsilon:g}{', projected' if project else ''}".replace("=0.", "=.")
        yield name, "empirical", np.array(values), stated.value


def shown(value: float) -> str:
    """Two digits, without the zero before the point."""
    return np.format_float_positional(value, 2, fractional=False, trim="-").removeprefix("0")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300, help="models for each line")
    n_runs = parser.parse_args().runs
    warnings.simplefilter("ignore")
    rows = list(known(n_runs))
    try:
        rows += warfarin(n_runs)
    except DatasetUnavailable as error:
        print(error, file=sys.stderr)
    print("| case | `of` | median | 95% | bound | bound / 95% |\n|---|---|---:|---:|---:|---:|")
    for name, of, values, bound in rows:
        usual, rare = np.quantile(values, [0.5, 1.0 - FAILURE])
        print(f"| {name} | {of} | {shown(usual)} | {shown(rare)} | {shown(bound)} | {shown(bound / rare)} |")
    # Were the bound exact, more would be one case in a million.
    allowed = binom.isf(1e-6, n_runs, FAILURE)
    return int(any(np.sum(values > bound) > allowed for _, _, values, bound in rows))


if __name__ == "__main__":
    sys.exit(main())
