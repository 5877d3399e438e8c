"""Coverage of the intervals of means, variances and correlations from a released moment matrix.

Four columns of bounds [-1, 1], less or more normal, and y: a normal one (standard deviation .25, cut off at ±1), one
that follows it with a correlation of .8, a uniform one, and one of ±1 with three quarters at 1; y is half their sum
with errors of standard deviation .2, |y| ≤ 3. New data and seeded noise in every run: not private. A column of the
table has the mean coverage of 95% intervals over the columns, or the pairs that are given in half of the runs, and
their mean length. ``--runs`` is 1000. Prints Markdown.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import dpci
from _environments import now
from _timing import commit

BUDGETS = {
    "replace_one": [dpci.PureDP(1.0), dpci.PureDP(5.0), dpci.GDP(0.3), dpci.GDP(1.0), dpci.GDP(10.0)],
    "add_remove": [dpci.GDP(1.0)],
}


def data(n: int, rng: np.random.Generator) -> np.ndarray:
    one = 0.25 * rng.standard_normal(n)
    other = 0.8 * one + 0.6 * 0.25 * rng.standard_normal(n)
    columns = np.clip(np.column_stack([one, other, rng.uniform(-1, 1, n), 2.0 * (rng.random(n) < 0.75) - 1.0]), -1, 1)
    return np.column_stack([columns, np.clip(0.5 * columns.sum(axis=1) + 0.2 * rng.standard_normal(n), -3, 3)])


def truth() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, variances and correlations, from many records."""
    sums, squares, total = np.zeros(5), np.zeros((5, 5)), 0
    for seed in range(20):
        table = data(1_000_000, np.random.default_rng([seed, 99]))
        sums, squares, total = sums + table.sum(axis=0), squares + table.T @ table, total + len(table)
    mean = sums / total
    cov = squares / total - np.outer(mean, mean)
    spread = np.sqrt(np.diag(cov))
    return mean, np.diag(cov), (cov / np.outer(spread, spread))[np.triu_indices(5, 1)]


def cell(n: int, budget: object, neighbors: str, runs: int, known: tuple[np.ndarray, ...]) -> list[str]:
    covered: list[list[np.ndarray]] = [[], [], [], []]
    lengths: list[list[float]] = [[], [], [], []]
    for seed in range(runs):
        table = data(n, np.random.default_rng(seed))
        matrix = dpci.regression.release(
            table[:, :4], table[:, 4], budget=budget, bounds=(-1, 1), target_bound=3.0,
            neighbors=dpci.AddRemove(n) if neighbors == "add_remove" else neighbors, seed=seed,
        )  # fmt: skip
        found = (
            matrix.means(),
            matrix.variances(),
            matrix.variances(assume="normal"),
            matrix.correlations(),
        )
        for k, (intervals, target) in enumerate(zip(found, (known[0], known[1], known[1], known[2]), strict=True)):
            inside = ((intervals.lower <= target) & (target <= intervals.upper)).astype(float)
            inside[np.isnan(intervals.lower)] = np.nan
            covered[k].append(inside)
            lengths[k].append(float(np.nanmean(intervals.length)) if np.isfinite(inside).any() else np.nan)
    numbers = []
    for k in range(4):
        # Pairs that are rarely given are given where the noise flatters them.
        often = np.isfinite(covered[k]).mean(axis=0) >= 0.5
        by_column = np.nanmean(np.array(covered[k])[:, often], axis=0) if often.any() else np.array([np.nan])
        least, mean = np.nanmin(by_column), np.nanmean(by_column)
        numbers.append(f"{mean:.3f} ({least:.3f}) | {np.nanmean(lengths[k]):.3f}")
    given = np.isfinite(covered[3]).mean()
    return [f"{n:,}", neighbors, str(budget), *numbers, f"{given:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")
    start = time.monotonic()
    known = truth()
    print("# Means, variances and correlations from one moment matrix\n")
    print(f"- `python benches/column_statistics.py --runs {runs}`, commit {commit()}, {now()}")
    print(f"- {runs} runs of a cell, seeds from 0; numpy {np.__version__}, dpci {dpci.__version__}; level .95\n")
    print("Coverage is the mean over the columns or pairs, the least of one in parentheses.\n")
    head = ["n", "neighbours", "budget"]
    for name in ("means", "variances, bounded", "variances, normal", "correlations"):
        head += [name, "length"]
    head.append("correlations given")
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for n in (1_000, 10_000):
        for neighbors, budgets in BUDGETS.items():
            for budget in budgets:
                print(f"| {' | '.join(cell(n, budget, neighbors, runs, known))} |", flush=True)
    print(f"\nRun time: {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    main()
