"""Audits weighted records: one at the bound is replaced; the argument is the number of runs."""

import sys

import numpy as np

import dpci
from _environments import now
from _timing import commit
from dpci import _core
from dpci.audit.bounds import epsilon_at, lower_bound
from dpci.budgets import core_budget

N_RECORDS, BOUND = 10, 5.0
CONFIDENCE = 1.0 - 1e-6


def outputs(mechanism: str, sign: float, seeds: range, *, protected: bool) -> np.ndarray:
    """Return the parameter of every seed: nine rows of 0, and one of 1 or -1 that weighs five.

    Without protection the same sum of losses is made of rows that the mechanism takes for records of their own.
    """
    copies = 1 if protected else int(BOUND)
    rows = np.concatenate([np.zeros(N_RECORDS - 1), np.full(copies, sign)])[:, None]
    weights = np.concatenate([np.ones(N_RECORDS - 1), [BOUND]]) if protected else None
    n = len(rows)
    spec = _core.Spec(
        n_samples=n,
        n_columns=1,
        intercept=None,
        row_norm=1.0,
        loss=dpci.losses.HuberHinge(0.5).to_core(),
        l2_strength=20.0 / N_RECORDS * (BOUND if protected else 1.0),
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
        neighbors="replace_one",
        weight_bound=BOUND if protected else None,
    )
    y = np.ones(n)
    fits = (_core.fit(spec, rows, y, clip=False, n_threads=1, seed=seed, weights=weights) for seed in seeds)
    return np.array([fit["params"][0] for fit in fits])


def bound(mechanism: str, n_runs: int, *, protected: bool, first_seed: int = 0) -> float:
    """Return a lower bound on ε from so many runs on either data set."""
    starts = (first_seed, first_seed + n_runs)
    found = [
        outputs(mechanism, sign, range(start, start + n_runs), protected=protected)
        for sign, start in zip((1.0, -1.0), starts, strict=True)
    ]
    return lower_bound(*found, epsilon_at(0.0), quantity="epsilon", at=0.0, confidence=CONFIDENCE).value


def main() -> None:
    """Print the table of docs/evidence/weight_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    runs = f"{n_runs:,} runs on either data set, confidence 1 - 1e-6"
    print(f"`python benches/weight_audit.py {n_runs}`, commit {commit()}, {now()}, seeds from 0, {runs}.\n")
    print("| mechanism | claim for a record | weight 5, bound 5: at least | five equal rows: at least |")
    print("|---|---|---|---|")
    for mechanism in ("objective", "output"):
        found = [bound(mechanism, n_runs, protected=protected) for protected in (True, False)]
        print(f"| {mechanism} | ε = 1 | ε {found[0]:.3g} | ε {found[1]:.3g} |", flush=True)


if __name__ == "__main__":
    main()
