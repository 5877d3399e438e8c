"""Coverage of the intervals of response families, from counts to quantiles; ``--help`` has the options."""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

import dpci
from _environments import now
from _timing import commit
from dpci import losses, lowlevel
from dpci.mechanisms import check_mechanism

N, STRENGTH, LEVEL = 30_000, 0.02, 0.95
PARAMS = np.array([0.6, -0.5, 0.3, 0.2])
BUDGETS = (dpci.PureDP(2.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-6))
# Noise that moves no digit which a coverage could show: the sandwich alone.
NO_NOISE = dpci.ZCDP(1e14)
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
    """Return the minimiser of the population's risk: the mean of those of ten samples of two million records.

    The error of one alone would be an eighth of a standard error of the fits, the same in all lines of a family.
    """
    found = []
    for seed in range(10**6, 10**6 + 10):
        X, y = sample(family, np.random.default_rng(seed), 2_000_000)
        rows_of = np.column_stack([X, np.ones(len(X))])
        keywords = {"loss": family.loss, "l2_strength": STRENGTH, "radius": family.radius, "tolerance": 1e-8}
        found.append(lowlevel.minimize_erm(rows_of, y, **keywords).params)
    return np.mean(found, axis=0)


class Line:
    """The fits of one budget and mechanism."""

    def __init__(self, budget: dpci.Budget, mechanism: str) -> None:
        self.budget, self.mechanism = budget, mechanism
        self.covered: list[NDArray[np.bool_]] = []
        self.lengths: list[float] = []
        self.n_fits = 0

    @property
    def has_ended(self) -> bool:
        """Whether intervals are refused so often that no more fits are needed to say so."""
        return self.n_fits >= 100 and not self.covered

    @dpci.threads(1)
    def add(self, family: Family, sampled: tuple[_F64, _F64], truth: _F64, seed: int) -> None:
        """Fit once more, with intervals where they are not refused."""
        self.n_fits += 1
        fit = dpci.fit(
            *sampled,
            budget=self.budget,
            l2_strength=STRENGTH,
            loss=family.loss,
            mechanism=replace(check_mechanism(self.mechanism), radius=family.radius),
            classes=(-1, 1) if family.loss.to_core().target_bounds is None else None,
            seed=seed,
        )
        if fit.interval_refusal is None:
            found = fit.conf_int(level=LEVEL)
            self.covered.append((found.lower <= truth) & (truth <= found.upper))
            self.lengths.append(float(np.mean(found.upper - found.lower)))

    def cells(self) -> list[str]:
        """Return coverage, the worst parameter's, and length; the rare fits that have intervals are no fair sample."""
        if len(self.covered) <= 0.5 * self.n_fits:
            return ["-", "-", "-"]
        shares = (np.mean(self.covered), np.mean(self.covered, axis=0).min(), np.mean(self.lengths))
        return [f"{value:.3f}" for value in shares]


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
    print("| loss | budget | mechanism | coverage | worst | length | refused | without noise |")
    print("|---|---|---|---|---|---|---|---|")
    for family in (family for family in FAMILIES if asked.only in repr(family.loss)):
        truth = target(family)
        lines = [Line(budget, mechanism) for budget in BUDGETS for mechanism in ("objective", "output")]
        noiseless = Line(NO_NOISE, "output")
        for seed in range(asked.first, asked.first + n_fits):
            sampled = sample(family, np.random.default_rng(seed), N)
            for line in (*lines, noiseless):
                if not line.has_ended:
                    line.add(family, sampled, truth, seed)
        without = noiseless.cells()[0]
        for line in lines:
            refused = 1.0 - len(line.covered) / line.n_fits
            cells = [repr(family.loss), str(line.budget), line.mechanism, *line.cells(), f"{refused:.2f}", without]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
