"""Intervals of several targets from one release, and from one release for each with its part of the budget.

The argument is the number of replicates of the data. Prints docs/evidence/several_targets.md.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from numpy.typing import NDArray

import dpci
from _environments import now
from _timing import commit

Array = NDArray[np.float64]

N, D, LEVEL = 20_000, 4, 0.95
BOUND = 3.0
BUDGETS = {
    "zCDP, ρ = .5": lambda m: dpci.ZCDP(0.5 / m),
    "pure DP, ε = 4": lambda m: dpci.PureDP(4.0 / m),
}
SLOPES = np.array([0.8, -0.5, 0.3, 0.0])


def sample(m: int, seed: int) -> tuple[Array, Array]:
    """Return uniform columns, and targets of the same slopes in other orders."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N, D))
    slopes = np.column_stack([np.roll(SLOPES, j) for j in range(m)])
    return X, np.clip(X @ slopes + rng.normal(0, 0.5, (N, m)), -BOUND, BOUND)


def covered(fit: dpci.regression.LinearFit, j: int) -> tuple[float, float]:
    """Return the mean length of the slopes' intervals, and the share that has the truth."""
    found, truth = fit.conf_int(level=LEVEL), np.roll(SLOPES, j)
    inside = (found.lower[:D] <= truth) & (truth <= found.upper[:D])
    return float(found.length[:D].mean()), float(inside.mean())


def compared(m: int, budget: str, n_runs: int) -> tuple[float, float, float, float]:
    """Return the length and the coverage of one release, and of m."""
    known = {"bounds": (-1, 1), "target_bound": BOUND}
    joint, single = [], []
    for run in range(n_runs):
        X, Y = sample(m, run)
        matrix = dpci.regression.release(X, Y, budget=BUDGETS[budget](1), seed=run, **known)
        for j in range(m):
            joint.append(covered(matrix.fit(matrix.targets[j]), j))
            alone = dpci.regression.release(X, Y[:, j], budget=BUDGETS[budget](m), seed=1000 * (j + 1) + run, **known)
            single.append(covered(alone.fit(), j))
    return *np.mean(joint, axis=0), *np.mean(single, axis=0)


def main() -> None:
    """Print docs/evidence/several_targets.md."""
    warnings.simplefilter("ignore", dpci.SeededNoiseWarning)
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("# Several targets in one release\n")
    print(f"`python benches/several_targets.py {n_runs}`, commit {commit()}, {now()}.\n")
    print(
        f"The table has the mean length of 95% intervals of slopes, and their coverage, over {n_runs} data sets of\n"
        f"{N:,} records with {D} columns (replace-one). With m targets, each separate release has an m-th of the\n"
        "budget.\n"
    )
    print("| budget | targets | one release | coverage | separate releases | coverage | ratio of lengths |")
    print("|---|---|---|---|---|---|---|")
    for budget in BUDGETS:
        for m in (1, 2, 5, 10):
            length, cover, alone, cover_alone = compared(m, budget, n_runs)
            cells = (f"{length:.4f}", f"{cover:.3f}", f"{alone:.4f}", f"{cover_alone:.3f}", f"{length / alone:.2f}")
            print(f"| {budget} | {m} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
