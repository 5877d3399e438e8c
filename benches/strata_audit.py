"""Audits strata: a record is taken from one of two, or moved to the other; the argument is the number of runs."""

import sys

import numpy as np

import dpci
from _environments import now
from _timing import commit
from dpci import _core
from dpci.audit.bounds import epsilon_at, lower_bound
from dpci.budgets import core_budget

N_RECORDS = 10
CONFIDENCE = 1.0 - 1e-6
SHIFT = 0.05  # by which a row of 1 moves the minimiser
CLAIMS = {"taken away": 1.0, "moved": 2.0}


def spec(mechanism: str) -> _core.Spec:
    """Return the fit of one stratum at ε = 1 for one record added or removed."""
    return _core.Spec(
        n_samples=N_RECORDS,
        n_columns=1,
        intercept=None,
        row_norm=1.0,
        loss=dpci.losses.HuberHinge(0.5).to_core(),
        l2_strength=20.0 / N_RECORDS,
        radius=None,
        budget=core_budget(dpci.PureDP(1.0)),
        mechanism=mechanism,
        noise=None,
        variant="standard",
        project=False,
        split=None,
        moments="none",
        projection="auto",
        calibration="tight",
        neighbors="add_remove",
    )


def outputs(mechanism: str, where: int | None, seeds: range, *, moved: bool) -> np.ndarray:
    """Return a score of two strata for every seed, of which one, or none, has a row of 1."""
    chosen = spec(mechanism)
    empty = np.zeros((N_RECORDS - 1, 1))
    xs = [np.concatenate([empty, np.ones((1, 1))]) if where == stratum else empty for stratum in range(2)]
    ys = [np.ones(len(x)) for x in xs]
    fits = (_core.fit_many([chosen] * 2, xs, ys, clip=False, n_threads=1, seed=seed) for seed in seeds)
    found = np.array([[fit["params"][0] for fit in pair] for pair in fits])
    # Where a record moves, both strata tell: the one is above a threshold and the other below the mirrored one.
    return np.minimum(found[:, 0], SHIFT - found[:, 1]) if moved else found[:, 0]


def bound(mechanism: str, change: str, n_runs: int, *, first_seed: int = 0) -> float:
    """Return a lower bound on ε from so many runs on either table."""
    other = None if change == "taken away" else 1
    starts = (first_seed, first_seed + n_runs)
    found = [
        outputs(mechanism, where, range(start, start + n_runs), moved=other == 1)
        for where, start in zip((0, other), starts, strict=True)
    ]
    return lower_bound(*found, epsilon_at(0.0), quantity="epsilon", at=0.0, confidence=CONFIDENCE).value


def main() -> None:
    """Print the table of docs/evidence/strata_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    runs = f"{n_runs:,} runs on either table, confidence 1 - 1e-6"
    print(f"`python benches/strata_audit.py {n_runs}`, commit {commit()}, {now()}, seeds from 0, {runs}.\n")
    print("| mechanism | the record is | claim | at least |")
    print("|---|---|---|---|")
    for mechanism in ("objective", "output"):
        for change, claim in CLAIMS.items():
            print(f"| {mechanism} | {change} | ε = {claim:g} | ε {bound(mechanism, change, n_runs):.3g} |", flush=True)


if __name__ == "__main__":
    main()
