"""Audits whole persons: one with ten rows is replaced, with persons=, with two ids, and with rows taken for people.

The argument is the number of runs. Prints docs/evidence/person_audit.md.
"""

import itertools
import sys

import numpy as np
from numpy.typing import NDArray

import dpci
from _audits import N_RECORDS, least, origin, parameters, row, rows_of, seeds_of, specification

N_ROWS = 10
BUDGETS = (dpci.PureDP(1.0), dpci.ApproxDP(1.0, 0.1))
IDS = {"person": 1, "two ids": 2, "rows": N_ROWS}
"""How many persons the ten rows of one are taken for."""
ABOUT = (
    f"{N_RECORDS - 1} persons have a row of 0 each. One more has {N_ROWS} rows, all 1 in one data set and all -1 in\n"
    "the other. The table has lower bounds on the privacy loss between the two: with `persons=`, where that\n"
    "person has two ids, which is as much as half the noise, and where rows are taken for people. The last\n"
    "two have a tenth of the runs.\n"
)


def runs_of(ids: str, n_runs: int) -> int:
    """Return how many runs on either data set are enough: what breaks the claim is seen in a tenth."""
    return n_runs if IDS[ids] == 1 else n_runs // 10


def persons_of(own: int) -> NDArray[np.int64]:
    """Return the persons of all rows, where the last ten are those of so many persons."""
    return np.append(np.arange(N_RECORDS - 1), N_RECORDS - 1 + np.arange(N_ROWS) * own // N_ROWS)


def bound(
    mechanism: str, budget: dpci.PureDP | dpci.ApproxDP, n_runs: int, *, ids: str = "person", first_seed: int = 0
) -> float:
    """Return a lower bound on ε, or on δ at the ε of the budget, from so many runs on either data set."""
    own = IDS[ids]
    spec = specification(mechanism, budget, n=N_RECORDS - 1 + own, persons=own < N_ROWS)
    columns = {"persons": persons_of(own)} if own < N_ROWS else {}
    sides = zip((1.0, -1.0), seeds_of(n_runs, first_seed), strict=True)
    return least([parameters(spec, rows_of(sign, N_ROWS), seeds, **columns) for sign, seeds in sides], budget)


def main() -> None:
    """Print docs/evidence/person_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("# Audits of whole persons\n")
    print(origin("person_audit.py", n_runs))
    print(ABOUT)
    print("| mechanism | claim for a person | persons: at least | two ids: at least | rows as people: at least |")
    print("|---|---|---|---|---|")
    for budget, mechanism in itertools.product(BUDGETS, ("objective", "output")):
        found = {ids: bound(mechanism, budget, runs_of(ids, n_runs), ids=ids) for ids in IDS}
        what = ("ε ", budget.epsilon) if isinstance(budget, dpci.PureDP) else ("δ at ε = 1: ", budget.delta)
        row([mechanism, str(budget)], what[0], found, what[1])


if __name__ == "__main__":
    main()
