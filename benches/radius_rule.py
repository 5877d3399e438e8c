"""How far a radius has to be above the norm of the minimiser for intervals to be given, in Markdown."""

import argparse
import datetime as dt
import itertools
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import dpci
from _studies import markdown
from _timing import commit, machine
from dpci import lowlevel
from dpci.mechanisms import check_mechanism

_F64 = NDArray[np.float64]
NORM = 1.5
MULTIPLES = (1.5, 2.0, 3.0, 5.0, 8.0, 12.0)
SIZES, BUDGETS, STRENGTHS, DIMS = (2_000, 5_000, 50_000), (1.0, 4.0), (0.003, 0.01, 0.1), (3, 8)
MARGIN, HIDDEN = 5.0, 3.0
# A rule that asks for more than this many norms says that a radius is the wrong means.
MOST = 30.0
NOTES = f"""- rows uniform in the ball, no intercept; parameters of norm {NORM} before the ridge (squared loss: 1)
- pure ε, default shares; seeds 0, 1, ... of rows and noise
- *norm* is that of the population's minimiser with the ridge
- *rule* is W over norm, W = norm + {MARGIN:g}(s + LR/√n)/c with c = λ + max(0, h - {HIDDEN:g}r). By `dpci.plan` at
  three norms s is the largest of `noise_std_devs` and r `noise_spectral_radius`; L bounds the slope, and h is the least
  eigenvalue of the mean of l''xxᵀ at the minimiser; with output perturbation s is not divided by c
- *at the rule*: share of the fits with intervals at that radius, where it is at most {MOST:g} norms; the other columns:
  that share by the radius over the norm"""


def sample(rng: np.random.Generator, n: int, dim: int, loss: str) -> tuple[_F64, _F64]:
    """Rows of the population and their targets."""
    X = rng.standard_normal((n, dim))
    X *= rng.uniform(size=(n, 1)) ** (1.0 / dim) / np.linalg.norm(X, axis=1, keepdims=True)
    X *= 1.0 - 1e-12
    slope = NORM * np.resize([1.0, -1.0], dim) / np.sqrt(dim)
    if loss == "squared":
        return X, np.clip(X @ slope / NORM + 0.2 * rng.standard_normal(n), -1.0, 1.0)
    return X, np.where(X @ slope + rng.logistic(size=n) > 0, 1.0, -1.0)


def hessian(params: _F64, X: _F64, loss: str) -> _F64:
    """Mean of the curvature times xx'."""
    p = 1.0 / (1.0 + np.exp(-X @ params))
    curvature = np.full(len(X), 2.0) if loss == "squared" else p * (1.0 - p)
    return (X.T * curvature) @ X / len(X)


def radius_by_rule(
    plan: dpci.Plan, norm: float, *, n: int, l2_strength: float, curvature: float, slope: float, mechanism: str
) -> float:  # fmt: skip
    """Return the radius of the rule, from public numbers, the expected norm and the expected least curvature."""
    c = l2_strength + max(0.0, curvature - HIDDEN * plan.noise_spectral_radius)
    noise = max(plan.noise_std_devs) / (c if mechanism == "objective" else 1.0)
    return norm + MARGIN * (noise + slope / np.sqrt(n) / c)


@dpci.threads(1)
def rows(loss: str, mechanism: str, runs: int) -> Iterator[list[object]]:
    """Yield a row of a table for each setting."""
    for dim, n, l2_strength, epsilon in itertools.product(DIMS, SIZES, STRENGTHS, BUDGETS):
        drawn = [sample(np.random.default_rng(seed), n, dim, loss) for seed in range(runs)]
        population = sample(np.random.default_rng(10**6), 200_000, dim, loss)
        found = lowlevel.minimize_erm(
            *population, l2_strength=l2_strength,
            loss=dpci.losses.Squared() if loss == "squared" else loss, intercept=False, tolerance=1e-6,
            radius=100.0 if loss == "squared" else None,
        )  # fmt: skip
        norm = float(np.linalg.norm(found.params))
        curvature = float(np.linalg.eigvalsh(hessian(found.params, population[0], loss))[0])
        kind = check_mechanism(mechanism)
        public = {
            "budget": dpci.PureDP(epsilon), "l2_strength": l2_strength, "loss": loss,
            "rows": dpci.rows.Within(intercept=False), "classes": None if loss == "squared" else (-1, 1),
        }  # fmt: skip
        plan = dpci.plan(n_samples=n, n_features=dim, mechanism=replace(kind, radius=3.0 * norm), **public)
        slope = 2.0 * (3.0 * norm + 1.0) if loss == "squared" else 1.0
        numbers = {"n": n, "l2_strength": l2_strength, "curvature": curvature, "slope": slope, "mechanism": mechanism}
        rule = radius_by_rule(plan, norm, **numbers) / norm
        shares = []
        for multiple in (rule, *MULTIPLES):
            if multiple > MOST:
                shares.append("")
                continue
            results = (
                dpci.fit(X, y, mechanism=replace(kind, radius=multiple * norm), seed=seed, **public)
                for seed, (X, y) in enumerate(drawn)
            )
            shares.append(f"{sum(result.interval_refusal is None for result in results) / runs:.2f}")
        yield [dim, n, l2_strength, epsilon, f"{norm:.2f}", f"{rule:.1f}", *shares]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    began = time.perf_counter()
    warnings.simplefilter("ignore")
    header = ["d", "n", "λ", "ε", "norm", "rule", "at the rule", *(f"{multiple:g}" for multiple in MULTIPLES)]
    lines: list[str] = []
    for loss, mechanism in (("logistic", "objective"), ("logistic", "output"), ("squared", "objective")):
        lines.append(f"\n## {loss} loss, {mechanism} perturbation\n")
        lines += markdown(header, list(rows(loss, mechanism, arguments.runs)))
    print("# How much greater than the minimiser's norm a radius has to be\n")
    print(f"- `python benches/radius_rule.py`; commit {commit()}, {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC")
    print(f"- {machine()}; {time.perf_counter() - began:.0f} s; {arguments.runs} fits in each cell")
    print(NOTES)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
