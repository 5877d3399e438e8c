"""Audits strata: a record is taken from one of two, or moved to the other; the argument is the number of runs."""

import sys

import numpy as np

import dpci
from _audits import RIDGE, least, origin, rows_of, seeds_of, specification
from dpci import _core

SHIFT = 1.0 / RIDGE  # by which a row of 1 moves the minimiser
CLAIMS = {"taken away": 1.0, "moved": 2.0}
BUDGET = dpci.PureDP(1.0)


def outputs(mechanism: str, where: int | None, seeds: range, *, moved: bool) -> np.ndarray:
    """Return a score of two strata for every seed, of which one, or none, has a row of 1."""
    chosen = specification(mechanism, BUDGET, neighbors="add_remove")
    xs = [rows_of(1.0, 1 if where == stratum else 0) for stratum in range(2)]
    ys = [np.ones(len(x)) for x in xs]
    fits = (
        _core.fit_many([chosen] * 2, list(map(_core.Records, xs, ys)), on_violation="error", n_threads=1, seed=seed)
        for seed in seeds
    )
    found = np.array([[fit["params"][0] for fit in pair] for pair in fits])
    # Where a record moves, both strata tell: the one is above a threshold and the other below the mirrored one.
    return np.minimum(found[:, 0], SHIFT - found[:, 1]) if moved else found[:, 0]


def bound(mechanism: str, change: str, n_runs: int, *, first_seed: int = 0) -> float:
    """Return a lower bound on ε from so many runs on either table."""
    other = None if change == "taken away" else 1
    sides = zip((0, other), seeds_of(n_runs, first_seed), strict=True)
    return least([outputs(mechanism, where, seeds, moved=other == 1) for where, seeds in sides], BUDGET)


def main() -> None:
    """Print the table of docs/evidence/strata_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(origin("strata_audit.py", n_runs))
    print("| mechanism | the record is | claim | at least |")
    print("|---|---|---|---|")
    for mechanism in ("objective", "output"):
        for change, claim in CLAIMS.items():
            print(f"| {mechanism} | {change} | ε = {claim:g} | ε {bound(mechanism, change, n_runs):.3g} |", flush=True)


if __name__ == "__main__":
    main()
