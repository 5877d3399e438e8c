"""Savings by a radius for the parameters where noise dominates: lengths and coverage of intervals, in Markdown."""

import argparse
import datetime as dt
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

_F64 = NDArray[np.float64]
LEVEL = 0.95
N, DIM = 10_000, 3
# By mechanism and regularisation, budgets at which noise dominates the sampling error.
SETTINGS = {
    ("output", 0.002): (dpci.PureDP(1.0), dpci.ZCDP(0.125), dpci.ApproxDP(2.0, 1e-6)),
    ("output", 0.01): (dpci.PureDP(0.35), dpci.ZCDP(0.01), dpci.ApproxDP(0.25, 1e-6)),
    ("objective", 0.01): (dpci.PureDP(0.15), dpci.ZCDP(0.0025), dpci.ApproxDP(0.15, 1e-6)),
}
RADII = (None, 5.0, 3.0)
NOTES = f"""- {N:,} rows with {DIM} columns, uniform in the unit ball, no intercept; logistic model of norm 1.5
- logistic loss, default shares, level {LEVEL}; seeds 0, 1, ... of rows and noise; target: the population's minimiser
- "2LR": the same loss as a `Custom` one, for which dpci knows no smaller constant than 2LR

*noise* is the scale of the noise divided by that of 2LR, and *length* the mean length of the given intervals divided
by that of 2LR. *given* is the share of fits with intervals; with a radius, intervals are refused if it may bind.
*coverage* is that of the given intervals, as a mean over the parameters. *noise share* is the mean over fits of the
share of the variance that a fit reports as noise."""


def custom_logistic() -> dpci.losses.Custom:
    """The logistic loss of which only the bounds on slope and curvature are known."""

    def slope(u: _F64, y: _F64) -> _F64:
        return -y / (1.0 + np.exp(y * u))

    return dpci.losses.Custom(
        lambda u, y: np.logaddexp(0.0, -y * u), slope, lambda u, y: np.abs(slope(u, y)) * (1.0 - np.abs(slope(u, y))),
        slope_bound=1.0, curvature_bound=0.25, one_signed=True,
    )  # fmt: skip


def sample(rng: np.random.Generator, n: int) -> tuple[_F64, _F64]:
    """Rows of the population."""
    X = rng.standard_normal((n, DIM))
    X *= rng.uniform(size=(n, 1)) ** (1.0 / DIM) / np.linalg.norm(X, axis=1, keepdims=True)
    X *= 1.0 - 1e-12
    y = np.where(X @ [1.2, -0.9, 0.0] + rng.logistic(size=n) > 0, 1.0, -1.0)
    return X, y


@dataclass(frozen=True)
class Outcome:
    """Results of the fits of a cell."""

    scale: float
    length: float
    given: float
    coverage: float
    noise_share: float


def noise_share(result: dpci.PrivateFit) -> float:
    """Share of the noise in the variance of the parameters, with the released matrices as they are."""
    step = result.privacy["steps"][0]
    variance, multiplier = lowlevel.error_components(
        result.hessian, result.gradient_cov, result.n_samples, np.eye(DIM), mechanism=result.mechanism
    )
    noise = multiplier**2 * step["scale"] ** 2 * (DIM + 1 if step["noise"] == "spherical_laplace" else 1)
    return float(np.mean(noise / (noise + variance)))


@dpci.threads(1)
def study(  # noqa: PLR0917  # one setting of a cell
    budget: dpci.PureDP | dpci.ZCDP | dpci.ApproxDP, mechanism: str, l2_strength: float, radius: float | None,
    loss: str | dpci.losses.Custom, target: _F64, runs: int,
) -> Outcome:  # fmt: skip
    """Draw samples and fit each."""
    hits, lengths, shares, refused = [], [], [], 0
    for seed in range(runs):
        X, y = sample(np.random.default_rng(seed), N)
        result = dpci.fit(
            X, y, budget=budget, l2_strength=l2_strength, loss=loss,
            mechanism=replace(check_mechanism(mechanism), radius=radius),
            rows=dpci.rows.Within(intercept=False), classes=(-1, 1), seed=seed,
        )  # fmt: skip
        shares.append(noise_share(result))
        if result.interval_refusal is not None:
            refused += 1
            continue
        intervals = result.conf_int(level=LEVEL)
        hits.append((intervals.lower <= target) & (target <= intervals.upper))
        lengths.append(intervals.length)
    return Outcome(
        scale=result.privacy["steps"][0]["scale"],
        length=float(np.mean(lengths)) if lengths else np.nan,
        given=1.0 - refused / runs,
        coverage=float(np.mean(hits)) if hits else np.nan,
        noise_share=float(np.mean(shares)),
    )


def report(runs: int) -> Iterator[str]:
    """Yield the lines of the tables."""
    header = ["budget", "radius", "noise", "length", "given", "coverage", "noise share"]
    population = sample(np.random.default_rng(10**6), 2_000_000)
    for (mechanism, l2_strength), budgets in SETTINGS.items():
        found = lowlevel.minimize_erm(
            *population, l2_strength=l2_strength, loss="logistic", intercept=False, tolerance=1e-7
        )
        target = np.asarray(found.params)
        yield f"\n## {mechanism} perturbation, λ = {l2_strength:g}, target of norm {np.linalg.norm(target):.2f}\n"
        table = []
        for budget in budgets:
            before = study(budget, mechanism, l2_strength, None, custom_logistic(), target, runs)
            share = f"{before.noise_share:.2f}"
            table.append([budget, "2LR", "1", "1", f"{before.given:.3f}", f"{before.coverage:.3f}", share])
            for radius in RADII:
                now = study(budget, mechanism, l2_strength, radius, "logistic", target, runs)
                table.append([
                    budget, "none" if radius is None else f"{radius:g}", f"{now.scale / before.scale:.3f}",
                    f"{now.length / before.length:.3f}", f"{now.given:.3f}", f"{now.coverage:.3f}",
                    f"{now.noise_share:.2f}",
                ])  # fmt: skip
        yield from markdown(header, table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    arguments = parser.parse_args()
    began = time.perf_counter()
    warnings.simplefilter("ignore")
    lines = list(report(arguments.runs))
    print("# A radius for the parameters: noise and lengths\n")
    print(f"- `python benches/radius.py`; commit {commit()}, {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC")
    print(f"- {machine()}; {time.perf_counter() - began:.0f} s; {arguments.runs} fits in each cell")
    print(NOTES)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
