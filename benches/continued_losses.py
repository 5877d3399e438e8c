"""Coverage and length of Newton steps with losses that are continued as straight lines. Not private.

Five columns, of which two are correlated and one is a rare indicator, normal or with heavy tails (Student t with four
degrees of freedom). Responses follow the model, but counts with a gamma factor of variance .5. Bootstrap samples; the
target is the maximum likelihood estimate of statsmodels on the whole table. Prints Markdown.
"""

from __future__ import annotations

import argparse
import datetime as dt
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy import special

import dpci
from _studies import markdown
from _timing import commit, machine
from dpci import simulate

BETA = np.array([1.5, -1.0, 0.8, 0.0, 1.2])
BUDGETS = {"ρ = .5": dpci.ZCDP(0.5), "(1, 1e-6)": dpci.ApproxDP(1.0, 1e-6)}
HEADER = "response,rows,budget,coverage,worst,length over non-private,refused,distance to statsmodels"
_F64 = np.ndarray


def rows(rng: np.random.Generator, n: int, *, heavy: bool) -> _F64:
    X = rng.standard_t(4, (n, 5)) if heavy else rng.standard_normal((n, 5))
    X[:, 1] += 0.7 * X[:, 0]
    X[:, 4] = rng.random(n) < 0.1
    X /= 10.0 if heavy else 6.0
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]


def counts(mean: float, bound: int, spread: float = 0.0) -> Callable[[np.random.Generator, _F64], _F64]:
    def draw(rng: np.random.Generator, X: _F64) -> _F64:
        means = mean * np.exp(X @ BETA)
        if spread:
            means = means * rng.gamma(1.0 / spread, spread, len(X))
        return np.minimum(rng.poisson(means), bound)

    return draw


def classes(share: Callable[[_F64], _F64], slope: float, start: float) -> Callable[[np.random.Generator, _F64], _F64]:
    return lambda rng, X: (rng.random(len(X)) < share(slope * (X @ BETA) + start)).astype(int)


def of_events(u: _F64) -> _F64:
    return -np.expm1(-np.exp(u))


PROBIT = sm.families.Binomial(sm.families.links.Probit())
CLOGLOG = sm.families.Binomial(sm.families.links.CLogLog())
CASES: dict[str, tuple[Any, Any, Any]] = {
    "counts, mean 2, up to 20": (counts(2.0, 20), dpci.losses.Poisson(20), sm.families.Poisson()),
    "counts, mean .1, up to 10": (counts(0.1, 10), dpci.losses.Poisson(10), sm.families.Poisson()),
    "counts, mean 30, up to 200": (counts(30.0, 200), dpci.losses.Poisson(200), sm.families.Poisson()),
    "counts, mean 2, twice the variance": (counts(2.0, 50, 0.5), dpci.losses.Poisson(50), sm.families.Poisson()),
    "probit": (classes(special.ndtr, 1.5, -0.3), dpci.losses.Probit(), PROBIT),
    "probit, rare class": (classes(special.ndtr, 1.0, -2.0), dpci.losses.Probit(), PROBIT),
    "complementary log-log": (classes(of_events, 1.5, -0.7), dpci.losses.CLogLog(), CLOGLOG),
    "complementary log-log, rare class": (classes(of_events, 1.0, -3.5), dpci.losses.CLogLog(), CLOGLOG),
}


def main() -> None:
    """Print one row for each response, kind of rows and budget."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--n", type=int, default=20_000)
    arguments.add_argument("--replicates", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=7)
    given = arguments.parse_args()
    warnings.simplefilter("ignore", dpci.PrivacyLeakWarning)
    began, table = time.perf_counter(), []
    for response, (draw, loss, family) in CASES.items():
        for kind in ("normal", "heavy tails"):
            rng = np.random.default_rng(given.seed)
            X = rows(rng, given.n, heavy=kind != "normal")
            y = draw(rng, X)
            found = simulate.coverage(
                X,
                y,
                loss=loss,
                budget=dpci.ZCDP(0.5),
                classes=None if isinstance(loss, dpci.losses.Poisson) else (0, 1),
                n_replicates=given.replicates,
                n_variability=0,
                configs=[{"budget": budget} for budget in BUDGETS.values()],
            )
            expected = sm.GLM(y, sm.add_constant(X, prepend=False), family).fit(tol=1e-12).params
            for budget, study in zip(BUDGETS, found, strict=True):
                worst = np.nanmin(study.coverage_by_param)
                gap = np.abs(study.target - expected).max()
                shown = [f"{study.coverage:.3f}", f"{worst:.3f}", f"{study.nonprivate_ratio:.2f}"]
                table.append([response, kind, budget, *shown, f"{study.refused:.3f}", f"{gap:.0e}"])
    print("# Newton steps with continued losses\n")
    print(f"- commit {commit()}, {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC")
    print(f"- {machine()}; {given.replicates} replicates of {given.n:,} records, level .95, seed {given.seed}")
    print(f"- run time {time.perf_counter() - began:.0f} s\n")
    print("Constants were chosen on tables of the same designs with seeds 5 and 6; only the seed is held out.\n")
    print(*markdown(HEADER.split(","), table), sep="\n")


if __name__ == "__main__":
    main()
