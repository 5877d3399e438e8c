"""Coverage where the mean curvature of a loss is 1%, 5% or 20% of its public bound. Not private.

Rows: a skewed column, a normal one, a rare indicator and one with heavy tails, all clipped. Targets of the robust
losses have Laplace errors whose spread grows with the first column; labels are logistic. The width of a robust loss or
a hinge is chosen so that the mean curvature at the minimiser is the given share of its bound, for the logistic loss the
intercept of the labels. λ is a hundredth of the curvature's bound, or twice the least λ. Samples with replacement.
"Without noise" is the same cell at ε = 10⁶. "Known matrices" is the length of intervals that know the true matrices
and have the noise of the same fit. Prints Markdown; exit code 1 if a rule is broken.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special

import dpci
from _studies import markdown
from _timing import commit, machine
from dpci import lowlevel

MEAN, WORST = 0.93, 0.90
SHARES = (0.01, 0.05, 0.2)
BOUND = 4.0
# ε or its like, so that the cells are about as hard for each notion.
BUDGETS = {"pure": dpci.PureDP(4.0), "zCDP": dpci.ZCDP(0.5), "(ε,δ)": dpci.ApproxDP(2.0, 1e-6)}
SIZES = (1_000, 5_000)
NOISELESS = dpci.PureDP(1e6)
HEADER = "loss,share,n,budget,mechanism,coverage,worst,without noise,worst,length over known matrices,warned"


def rows(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    columns = [
        np.minimum(rng.exponential(0.4, n), 1.0),
        np.clip(0.4 * rng.normal(size=n), -1.0, 1.0),
        (rng.random(n) < 0.15).astype(float),
        np.clip(0.3 * rng.standard_t(3, n), -1.0, 1.0),
    ]
    return np.column_stack(columns) / 2.0


def robust(X: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    errors = rng.laplace(size=len(X)) * 0.4 * (0.5 + X[:, 0])
    return np.clip(X @ [1.0, -0.6, 0.8, 0.0] + errors, -BOUND, BOUND)


def labels(X: np.ndarray, seed: int, intercept: float = 0.4) -> np.ndarray:
    u = X @ [4.0, -3.0, 2.0, 0.0] - 0.8 + intercept
    return np.where(np.random.default_rng(seed).random(len(X)) < special.expit(u), 1.0, -1.0)


def solved(difference: Callable[[float], float], low: float, high: float) -> float:
    """Where a growing difference is 0, in a logarithmic search for positive bounds; an end if it has one sign."""
    signs = difference(low), difference(high)
    if signs[0] * signs[1] > 0.0:
        return low if abs(signs[0]) < abs(signs[1]) else high
    if low > 0.0:
        return float(np.exp(optimize.brentq(lambda x: difference(np.exp(x)), np.log(low), np.log(high), xtol=1e-3)))
    return float(optimize.brentq(difference, low, high, xtol=1e-3))


def exact(X: np.ndarray, y: np.ndarray, keywords: dict[str, Any]) -> dpci.PrivateFit:
    loud = keywords | {
        "budget": dpci.PureDP(1e8),
        "mechanism": dpci.ObjectivePerturbation(projection="floor"),
        "seed": 0,
    }
    return dpci.fit(X, y, **loud)


def share_of(X: np.ndarray, y: np.ndarray, loss: dpci.losses.Loss, **keywords: Any) -> float:
    """The mean curvature at the minimiser over its bound, from the entry of the constant."""
    strength = strength_of(loss, 10**9, {})
    found = exact(X, y, {"loss": loss, "l2_strength": strength, **keywords})
    return float((found.hessian[-1, -1] - strength) / bound_of(loss))


def bound_of(loss: dpci.losses.Loss) -> float:
    return float(loss.to_core().curvature_bound)


def strength_of(loss: dpci.losses.Loss, n: int, keywords: dict[str, Any]) -> float:
    strength = 0.01 * bound_of(loss)
    if not keywords or keywords.get("mechanism") == "output":
        return strength
    kept = {name: value for name, value in keywords.items() if name != "classes"}
    plan = dpci.plan(n_samples=n, n_features=4, l2_strength=1e3, **kept)
    return max(strength, 2.0 * plan.least_l2_strength)


def cells(n: int, share: float) -> Iterator[tuple[dpci.losses.Loss, np.ndarray, np.ndarray, dict[str, Any]]]:
    """The losses with this share, with data of their own."""
    X = rows(n, n)
    y, z = robust(X, n + 1), labels(X, n + 2)
    widths: list[tuple[Callable[[float], dpci.losses.Loss], np.ndarray, dict[str, Any]]] = [
        (lambda k: dpci.losses.Huber(target_bound=BOUND, k=k), y, {}),
        (lambda s: dpci.losses.Quantile(quantile=0.5, target_bound=BOUND, s=s), y, {}),
        (lambda s: dpci.losses.Quantile(quantile=0.85, target_bound=BOUND, s=s), y, {}),
        (dpci.losses.SmoothHinge, z, {"classes": (-1, 1)}),
        (dpci.losses.HuberHinge, z, {"classes": (-1, 1)}),
    ]
    for make, values, keywords in widths:
        # A quantile of its own share: the curvature of a sigmoid is spread over several widths.
        width = solved(lambda w, m=make, v=values, k=keywords: share_of(X, v, m(w), **k) - share, 2e-3, 1.5)
        yield make(width), X, values, keywords
    # With fewer positives than these the sandwich itself fails.
    least = special.logit(20.0 / n) - 0.5
    logistic, keywords = dpci.losses.Logistic(), {"classes": (-1, 1)}
    shift = solved(lambda a: share_of(X, labels(X, n + 3, a), logistic, **keywords) - share, least, 0.4)
    yield logistic, X, labels(X, n + 3, shift), keywords


def covered(study: dpci.simulate.CoverageStudy) -> np.ndarray:
    inside: np.ndarray = (study.lower <= study.target) & (study.target <= study.upper)
    return inside


@dataclass(frozen=True)
class Cell:
    """A loss with data, and how it is fitted."""

    loss: dpci.losses.Loss
    X: np.ndarray
    y: np.ndarray
    keywords: dict[str, Any]
    notion: str
    mechanism: str
    # Coverage of each parameter without noise.
    limit: np.ndarray


def measured(cell: Cell, k: int) -> tuple[list[object], list[tuple[bool, str]]]:
    """A row of the table, and the rules of the cell."""
    loss, X, y, notion, mechanism = cell.loss, cell.X, cell.y, cell.notion, cell.mechanism
    n = len(X)
    fit: dict[str, Any] = {"loss": loss, "mechanism": mechanism, **cell.keywords}
    fit["l2_strength"] = strength_of(loss, n, fit | {"budget": BUDGETS[notion]})
    with_budget = fit | {"budget": BUDGETS[notion]}
    study = dpci.simulate.coverage(X, y, n_replicates=k, n_variability=0, n_threads=1, **with_budget)
    inside, limit = covered(study).mean(axis=0), cell.limit
    known = known_length(X, y, with_budget)
    warned = share_warned(X, y, with_budget)
    name = f"{loss}, n={n:,}, {notion}, {mechanism}"
    # A cell is judged where the sandwich itself holds, and where a fit does not warn by name.
    error = (0.95 * 0.05 / k) ** 0.5
    rules = []
    if limit.mean() >= MEAN and limit.min() >= WORST and warned < 0.5:
        rules = [
            (inside.mean() >= MEAN - 2.0 * error / len(inside) ** 0.5, f"mean coverage {inside.mean():.3f}"),
            (inside.min() >= WORST - 2.0 * error, f"worst parameter {inside.min():.3f}"),
        ]
    row = [str(n), notion, mechanism, f"{inside.mean():.3f}", f"{inside.min():.3f}"]
    row += [f"{limit.mean():.3f}", f"{limit.min():.3f}", f"{study.mean_length / known:.2f}"]
    return [*row, f"{warned:.2f}"], [(holds, f"{name}: {rule}") for holds, rule in rules]


def without_noise(loss: dpci.losses.Loss, X: np.ndarray, y: np.ndarray, keywords: dict[str, Any], k: int) -> np.ndarray:
    """Coverage of each parameter at ε = 10⁶."""
    fit = {"loss": loss, "budget": NOISELESS, "l2_strength": strength_of(loss, len(X), {}), **keywords}
    study = dpci.simulate.coverage(X, y, n_replicates=k, n_variability=0, n_threads=1, **fit)
    mean: np.ndarray = covered(study).mean(axis=0)
    return mean


def known_length(X: np.ndarray, y: np.ndarray, keywords: dict[str, Any]) -> float:
    """Mean length of intervals that know the true matrices and have the noise of the same fit."""
    found = exact(X, y, keywords)
    kept = {name: value for name, value in keywords.items() if name != "classes"}
    step = dpci.plan(n_samples=len(X), n_features=X.shape[1], **kept).steps[0]
    dim = len(found.params)
    mechanism = keywords["mechanism"]
    parts = lowlevel.error_components(found.hessian, found.gradient_cov, len(X), np.eye(dim), mechanism=mechanism)
    widths = lowlevel.exact_half_widths(*parts, noise_law=step.noise, noise_scale=step.scale, dim=dim)
    return 2.0 * float(widths.mean())


def share_warned(X: np.ndarray, y: np.ndarray, keywords: dict[str, Any], n_fits: int = 10) -> float:
    """The share of fits of samples that warn of the noise in the matrices or of the curvature."""
    warned = 0
    for seed in range(n_fits):
        sampled = np.random.default_rng(seed).integers(0, len(X), len(X))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dpci.fit(X[sampled], y[sampled], **keywords, seed=seed)
        kinds = (dpci.errors.MomentNoiseWarning, dpci.errors.CurvatureWarning)
        warned += any(issubclass(warning.category, kinds) for warning in caught)
    return warned / n_fits


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--replicates", type=int, default=400)
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    arguments = options.parse_args()
    began, checked, broken = time.perf_counter(), 0, []
    lines = [
        "# Curvature that is a small part of its bound\n",
        f"- commit {commit()}, {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC",
    ]
    lines += [f"- {machine()}, dpci {dpci.__version__}; {arguments.replicates} replicates, level .95, seed 0"]
    lines += [f"- budgets: {', '.join(map(str, BUDGETS.values()))}"]
    for share in SHARES:
        table = []
        for n in arguments.sizes:
            for loss, X, y, keywords in cells(n, share):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    true = share_of(X, y, loss, **keywords)
                    print(f"{loss} {share} {n} {true:.3f}", file=sys.stderr, flush=True)
                    limit = without_noise(loss, X, y, keywords, arguments.replicates)
                    for notion in BUDGETS:
                        for mechanism in ("objective", "output"):
                            row, rules = measured(
                                Cell(loss, X, y, keywords, notion, mechanism, limit), arguments.replicates
                            )
                            table.append([shown(loss), f"{true:.3f}", *row])
                            print(*table[-1], file=sys.stderr, flush=True)
                            checked += len(rules)
                            broken += [rule for holds, rule in rules if not holds]
        lines += [f"\n## Mean curvature {share:.0%} of its bound\n", *markdown(HEADER.split(","), table)]
    lines.insert(4, f"- run time {time.perf_counter() - began:.0f} s")
    lines += ["\n## Rules\n", f"{checked} rules checked, {len(broken)} broken.\n", *(f"- {rule}" for rule in broken)]
    print("\n".join(lines))
    sys.exit(bool(broken))


def shown(loss: dpci.losses.Loss) -> str:
    """A loss with its parameters to two digits."""
    parameters = {name: getattr(loss, name) for name in loss.__match_args__ if name != "target_bound"}
    return f"{type(loss).__name__}({', '.join(f'{name}={value:.2g}' for name, value in parameters.items())})"


if __name__ == "__main__":
    main()
