"""The wage equation with privacy: six measures of how far released regressions are from those of the confidential data.

Log wage on education, experience, its square and female, on generated data of the shape of the Current Population
Survey. As in the study of the Urban Institute (Barrientos, Williams, Snoke & Bowen 2024), one set of data is fixed and
releases are repeated, each with seeded noise: not private. Prints Markdown; exit code 1 if the rule is broken.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from scipy import stats

import dpci

NAMES = ("education", "experience", "experience²", "female")
# Years of school as the survey codes them, and shares of workers.
YEARS = np.array([0, 4, 6, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20])
SHARES = np.array([0.3, 0.5, 1.5, 1.2, 1.5, 2.0, 3.0, 30.0, 19.0, 10.0, 20.0, 8.5, 2.5])
PARAMS = np.array([0.10, 0.035, -0.0005, -0.22])
INTERCEPT, SPREAD = 0.95, 0.5
# Public: hourly wages from 1.65 to 245 dollars, at most 20 years of school and 50 of experience.
BOUNDS = ([0.0, 0.0, 0.0, 0.0], [20.0, 50.0, 2500.0, 1.0])
TARGET_BOUND = (0.5, 5.5)
EPSILONS = (1.0, 10.0, 50.0)
LEVEL = 0.95
# The rule: mean overlap at this ε, for these columns.
AT, LEAST, RULED = 10.0, 0.7, ("education", "female")


def survey(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Education, experience, its square and female, and log wages with errors of unequal variance."""
    rng = np.random.default_rng(seed)
    education = rng.choice(YEARS, n, p=SHARES / SHARES.sum()).astype(float)
    age = rng.integers(18, 66, n)
    experience = np.clip(age - education - 6.0, 0.0, 50.0)
    female = (rng.random(n) < 0.48).astype(float)
    X = np.column_stack([education, experience, experience**2, female])
    spread = SPREAD * (0.8 + 0.4 * experience / 50.0)
    return X, np.clip(INTERCEPT + X @ PARAMS + spread * rng.standard_normal(n), *TARGET_BOUND)


def least_squares(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and classical intervals without privacy, shape (k,) and (k, 2)."""
    n, k = X.shape
    design = np.column_stack([X, np.ones(n)])
    params, (squares,), *_ = np.linalg.lstsq(design, y, rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * squares / (n - k - 1))
    half = stats.t.ppf(0.5 + 0.5 * LEVEL, n - k - 1) * errors
    return params[:k], np.column_stack([params - half, params + half])[:k]


def overlap(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Mean share of each interval that lies in the other (Karr et al. 2006); below 0 for a gap between them."""
    common = np.minimum(ours[:, 1], theirs[:, 1]) - np.maximum(ours[:, 0], theirs[:, 0])
    return 0.5 * (common / np.diff(ours)[:, 0] + common / np.diff(theirs)[:, 0])


def differs(intervals: np.ndarray) -> np.ndarray:
    """Whether each interval leaves out 0."""
    return (intervals[:, 0] > 0.0) | (intervals[:, 1] < 0.0)


@dpci.threads(1)
def run(seed: int, *, n: int, epsilon: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Slopes and intervals of one release; None if they are refused."""
    warnings.simplefilter("ignore")
    X, y = survey(n)
    budget = dpci.ApproxDP(epsilon, 1.0 / n**2)
    matrix = dpci.regression.release(X, y, budget=budget, bounds=BOUNDS, target_bound=TARGET_BOUND, seed=seed)
    try:
        fit = matrix.fit()
    except dpci.InvalidInput:
        return None
    k = X.shape[1]
    return fit.params[:k], np.asarray(fit.conf_int(level=LEVEL))[:k]


def measures(pool: ProcessPoolExecutor, n: int, epsilon: float, runs: int) -> tuple[np.ndarray, float]:
    """The six means of each slope, shape (k, 6), and the share of runs with intervals."""
    params, intervals = least_squares(*survey(n))
    found = [one for one in pool.map(partial(run, n=n, epsilon=epsilon), range(runs), chunksize=5) if one is not None]
    if not found:
        return np.full((len(NAMES), 6), np.nan), 0.0
    bias = np.mean([theta - params for theta, _ in found], axis=0)
    columns = (
        bias,
        bias / params,
        np.mean([overlap(ours, intervals) for _, ours in found], axis=0),
        np.mean([np.diff(ours)[:, 0] / np.diff(intervals)[:, 0] for _, ours in found], axis=0),
        np.mean([np.sign(theta) == np.sign(params) for theta, _ in found], axis=0),
        np.mean([differs(ours) == differs(intervals) for _, ours in found], axis=0),
    )
    return np.column_stack(columns), len(found) / runs


def rows(pool: ProcessPoolExecutor, sizes: list[int], runs: int, broken: list[str]) -> Iterator[str]:
    """Lines of the table; what breaks the rule is appended."""
    for n in sizes:
        for epsilon in EPSILONS:
            table, given = measures(pool, n, epsilon, runs)
            for name, line in zip(NAMES, table, strict=True):
                ruled = epsilon == AT and name in RULED
                if ruled and not line[2] >= LEAST:
                    broken.append(f"{name} at n={n:,}")
                said = "" if not ruled else "holds" if line[2] >= LEAST else "broken"
                rest = " | ".join(f"{value:.2f}" for value in line[2:])
                shown = f"{line[0]:.2g} | {line[1]:.1%} | {rest}" if given else " | ".join("-" * 6)
                yield f"| {n:,} | {epsilon:g} | {name} | {shown} | {given:.2f} | {said} |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--sizes", type=int, nargs="+", default=[20_000, 60_000])
    arguments = options.parse_args()
    started = time.perf_counter()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print("# The wage equation with privacy\n")
    print(f"- {arguments.runs} releases of a cell, the data fixed; commit {commit.stdout.strip()}; data seed 0")
    print(f"- numpy {np.__version__}, dpci {dpci.__version__}, Python {platform.python_version()}; level .95\n")
    print(f"A cell holds if at ε = {AT:g} the mean overlap with the intervals of least squares is at least {LEAST}.\n")
    head = "n | ε | column | bias | relative bias | overlap | length ratio | sign | significance | given | verdict"
    print(f"| {head} |\n|{' --- |' * 11}")
    broken: list[str] = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for line in rows(pool, arguments.sizes, arguments.runs, broken):
            print(line, flush=True)
    print(f"\nRun time: {time.perf_counter() - started:.0f} s.")
    sys.exit(f"broken: {', '.join(broken)}" if broken else 0)


if __name__ == "__main__":
    main()
