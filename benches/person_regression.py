"""Coverage of regressions on panel data, with persons= and with rows taken for people; argument: releases a line."""

import sys
import warnings

import numpy as np

import dpci
from _environments import now
from _timing import commit
from dpci import regression

N_PERSONS, SLOPES, LEVEL = 2000, np.array([0.6, -0.4]), 0.95
BUDGETS = (dpci.PureDP(4.0), dpci.ZCDP(1.0), dpci.ApproxDP(4.0, 1e-6), dpci.ZCDP(100.0))
PANELS = {"10 rows each": (10, 10), "1 to 10 rows": (1, 10)}
RULES = {"mean": None, "max_rows=3": 3}


def panel(seed: int, least: int, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns in [-1, 1] of which most stays with a person, targets with errors that persons share, and ids.

    The errors of a person have a common part of variance .8 of theirs, and their size depends on the first column.
    """
    rng = np.random.default_rng(seed)
    persons = np.repeat(np.arange(N_PERSONS), rng.integers(least, most + 1, N_PERSONS))
    own = rng.uniform(-1, 1, (N_PERSONS, 2))
    X = 0.9 * own[persons] + 0.1 * rng.uniform(-1, 1, (len(persons), 2))
    shared = rng.uniform(-1, 1, N_PERSONS)[persons]
    errors = (0.4 + 0.4 * np.abs(X[:, 0])) * (np.sqrt(0.8) * shared + np.sqrt(0.2) * rng.uniform(-1, 1, len(persons)))
    return X, 0.2 + X @ SLOPES + errors, persons


def coverage(n_runs: int, sizes: tuple[int, int], budget: dpci.Budget, **rule: int | None) -> list[float]:
    """Return the share of covered coefficients, that of the worst one, and the mean length; no rule: rows as people."""
    truth = np.array([*SLOPES, 0.2])  # the errors are independent of the columns: of every weighting of the rows
    covered, lengths = [], []
    for seed in range(n_runs):
        X, y, persons = panel(seed, *sizes)
        ids = {"persons": dpci.Persons(persons, **rule)} if rule else {"robust": True}
        matrix = regression.release(X, y, budget=budget, bounds=(-1, 1), target_bound=2.5, seed=seed, **ids)
        found = matrix.fit(covariance="robust").conf_int(level=LEVEL)
        covered.append((found.lower <= truth) & (truth <= found.upper))
        lengths.append(np.mean(found.upper - found.lower))
    return [float(np.mean(covered)), float(np.mean(covered, axis=0).min()), float(np.mean(lengths))]


def main() -> None:
    """Print the table of docs/evidence/person_regression.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    warnings.simplefilter("ignore")
    print(f"`python benches/person_regression.py {n_runs}`, commit {commit()}, {now()}, {n_runs} releases a line.\n")
    heads = (
        "panel | budget | mean covers | worst | length | 3 rows cover | worst | length | rows as people cover | length"
    )
    print(f"| {heads} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, sizes in PANELS.items():
        for budget in BUDGETS:
            cells = [value for most in RULES.values() for value in coverage(n_runs, sizes, budget, max_rows=most)]
            rows = coverage(n_runs, sizes, budget)
            numbers = [f"{value:.3f}" for value in (*cells, rows[0], rows[2])]
            print("|", " | ".join([name, str(budget), *numbers]), "|", flush=True)


if __name__ == "__main__":
    main()
