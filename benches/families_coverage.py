"""Coverage of the intervals of response families, from counts to quantiles; ``--help`` has the options."""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

import dpci
from _environments import now
from _timing import commit
from dpci import losses, lowlevel

N, STRENGTH, LEVEL = 30_000, 0.02, 0.95
PARAMS = np.array([0.6, -0.5, 0.3, 0.2])
BUDGETS = (dpci.PureDP(2.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-6))
_F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """A loss, its radius, and targets drawn at linear predictors."""

    loss: losses.Loss
    radius: float | None
    draw: Callable[[np.random.Generator, _F64], _F64]


def residuals(rng: np.random.Generator, u: _F64) -> _F64:
    return np.clip(0.5 * u + 0.1 * rng.standard_t(2, len(u)), -1.0, 1.0)


FAMILIES = (
    Family(losses.Poisson(count_bound=8.0), 1.8, lambda rng, u: np.minimum(rng.poisson(np.exp(u)), 8.0)),
    Family(
        losses.NegativeBinomial(count_bound=15.0, dispersion=0.5),
        None,
        lambda rng, u: np.minimum(rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(u))), 15.0),
    ),
    # Counts that are not of the model: the variance is twice that of Poisson counts.
    Family(
        losses.Poisson(count_bound=15.0),
        1.8,
        lambda rng, u: np.minimum(rng.negative_binomial(np.exp(u), 0.5), 15.0),
    ),
    Family(losses.SoftLogistic(), None, lambda rng, u: rng.binomial(5, special.expit(2.0 * u)) / 5.0),
    Family(losses.Probit(), 1.8, lambda rng, u: np.where(rng.random(len(u)) < special.ndtr(u), 1.0, -1.0)),
    Family(losses.CLogLog(), 1.8, lambda rng, u: np.where(rng.random(len(u)) < -np.expm1(-np.exp(u)), 1.0, -1.0)),
    Family(losses.Huber(target_bound=1.0, k=0.2), None, residuals),
    Family(losses.Quantile(quantile=0.8, target_bound=1.0, s=0.05), None, residuals),
)


def rows(rng: np.random.Generator, n: int) -> _F64:
    return rng.uniform(-1.0, 1.0, (n, 3)) / np.sqrt(3.0)


def sample(family: Family, rng: np.random.Generator, n: int) -> tuple[_F64, _F64]:
    X = rows(rng, n)
    return X, np.asarray(family.draw(rng, X @ PARAMS[:3] + PARAMS[3]), dtype=float)


def target(family: Family) -> _F64:
    """Return the minimiser of the population's risk, from two million records."""
    X, y = sample(family, np.random.default_rng(10**6), 2_000_000)
    return lowlevel.minimize_erm(
        np.column_stack([X, np.ones(len(X))]),
        y,
        loss=family.loss,
        l2_strength=STRENGTH,
        radius=family.radius,
        tolerance=1e-8,
    ).params


def main() -> None:
    """Print the table of docs/evidence/families.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_fits", type=int, nargs="?", default=200, help="fits a line")
    parser.add_argument("--first", type=int, default=0, help="seed of the first sample and its noise")
    parser.add_argument("--only", default="", help="losses whose name contains this")
    asked = parser.parse_args()
    n_fits = asked.n_fits
    warnings.simplefilter("ignore")
    options = (f" --first {asked.first}" if asked.first else "") + (f" --only {asked.only}" if asked.only else "")
    command = f"python benches/families_coverage.py {n_fits}{options}"
    print(f"`{command}`, commit {commit()}, {now()}, {n_fits} fits a line, seeded noise.\n")
    print("| loss | budget | mechanism | coverage | worst | length | refused |")
    print("|---|---|---|---|---|---|---|")
    for family in (family for family in FAMILIES if asked.only in repr(family.loss)):
        truth = target(family)
        for budget in BUDGETS:
            for mechanism in ("objective", "output"):
                covered, lengths = [], []
                for seed in range(asked.first, asked.first + n_fits):
                    X, y = sample(family, np.random.default_rng(seed), N)
                    classes = (-1, 1) if family.loss.to_core().target_bounds is None else None
                    fit = dpci.fit(
                        X,
                        y,
                        budget=budget,
                        l2_strength=STRENGTH,
                        loss=family.loss,
                        radius=family.radius,
                        mechanism=mechanism,
                        classes=classes,
                        seed=seed,
                    )
                    if fit.interval_refusal is None:
                        found = fit.conf_int(level=LEVEL)
                        covered.append((found.lower <= truth) & (truth <= found.upper))
                        lengths.append(np.mean(found.upper - found.lower))
                cells = ["-", "-", "-"]
                # The rare fits that are given intervals are no fair sample.
                if len(covered) > 0.5 * n_fits:
                    shares = (np.mean(covered), np.mean(covered, axis=0).min(), np.mean(lengths))
                    cells = [f"{value:.3f}" for value in shares]
                refused = 1.0 - len(covered) / n_fits
                print(f"| {family.loss!r} | {budget} | {mechanism} | {' | '.join(cells)} | {refused:.2f} |", flush=True)


if __name__ == "__main__":
    main()
