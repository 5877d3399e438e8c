"""Audits weighted records: one at the bound, or beyond that of its row, is replaced; the argument is how many runs."""

import sys

import numpy as np

import dpci
from _audits import N_RECORDS, RIDGE, least, origin, parameters, rows_of, seeds_of, specification

BOUND = 5.0
BUDGET = dpci.PureDP(1.0)


def bound(mechanism: str, n_runs: int, *, protected: bool, first_seed: int = 0) -> float:
    """Return a lower bound on ε from so many runs on either data set: a record of 1 or -1 that weighs five.

    Without protection the same sum of losses is made of rows that the mechanism takes for records of their own.
    """
    copies = 1 if protected else int(BOUND)
    counts = {"weights": (BOUND, None)} if protected else {}
    n = N_RECORDS - 1 + copies
    spec = specification(mechanism, BUDGET, n=n, ridge=RIDGE * n / N_RECORDS, **counts)
    columns = {"weights": np.append(np.ones(N_RECORDS - 1), BOUND)} if protected else {}
    sides = zip((1.0, -1.0), seeds_of(n_runs, first_seed), strict=True)
    return least([parameters(spec, rows_of(sign, copies), seeds, **columns) for sign, seeds in sides], BUDGET)


def far_bound(mechanism: str, n_runs: int, *, size: float, first_seed: int = 0) -> float:
    """Return the same for a record that is so many times as long as its bound, and weighs less."""
    spec = specification(mechanism, BUDGET, far_rows=True)
    sides = zip((size, -size), seeds_of(n_runs, first_seed), strict=True)
    return least(
        [parameters(spec, rows_of(x, 1), seeds, on_violation="weight") for x, seeds in sides],
        BUDGET,
    )


def main() -> None:
    """Print the table of docs/evidence/weight_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(origin("weight_audit.py", n_runs))
    print("| mechanism | claim for a record | weight 5, bound 5: at least | five equal rows: at least |")
    print("|---|---|---|---|")
    for mechanism in ("objective", "output"):
        found = [bound(mechanism, n_runs, protected=protected) for protected in (True, False)]
        print(f"| {mechanism} | ε = 1 | ε {found[0]:.3g} | ε {found[1]:.3g} |", flush=True)
    print("\n| mechanism | claim for a record | row at its bound: at least | row three times as long: at least |")
    print("|---|---|---|---|")
    for mechanism in ("objective", "output"):
        found = [far_bound(mechanism, n_runs, size=size) for size in (1.0, 3.0)]
        print(f"| {mechanism} | ε = 1 | ε {found[0]:.3g} | ε {found[1]:.3g} |", flush=True)


if __name__ == "__main__":
    main()
