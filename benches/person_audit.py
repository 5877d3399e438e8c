"""Audits whole persons: one with ten rows is replaced, with persons= and with rows taken for people."""

import sys

import numpy as np

import dpci
from _environments import now
from _timing import commit
from dpci import _core
from dpci.audit.bounds import delta_at, epsilon_at, lower_bound
from dpci.budgets import core_budget

N_PERSONS, N_ROWS = 10, 10
CONFIDENCE = 1.0 - 1e-6
BUDGETS = {
    ("objective", "pure"): dpci.PureDP(1.0),
    ("output", "pure"): dpci.PureDP(1.0),
    ("objective", "approx"): dpci.ApproxDP(1.0, 0.01),
    ("output", "approx"): dpci.ApproxDP(1.0, 0.01),
}


def outputs(
    mechanism: str, budget: dpci.PureDP | dpci.ApproxDP, sign: float, *, persons: bool, seeds: range
) -> np.ndarray:
    """Return the released parameter of every seed; nine persons have a row of 0, one has ten rows of 1 or of -1."""
    whose = np.concatenate([np.arange(N_PERSONS - 1), np.full(N_ROWS, N_PERSONS - 1)])
    rows = np.concatenate([np.zeros(N_PERSONS - 1), np.full(N_ROWS, sign)])[:, None]
    n = N_PERSONS if persons else len(rows)
    spec = _core.Spec(
        n_samples=n,
        n_columns=1,
        intercept=None,
        row_norm=1.0,
        loss=dpci.losses.HuberHinge(0.5).to_core(),
        l2_strength=20.0 / n,
        radius=None,
        budget=core_budget(budget),
        mechanism=mechanism,
        noise=None,
        variant="standard",
        project=False,
        split=None,
        moments="none",
        projection="auto",
        calibration="tight",
        neighbors="replace_one",
        persons=persons,
    )
    ids = whose.astype(np.int64) if persons else None
    y = np.ones(len(rows))
    fits = (_core.fit(spec, rows, y, clip=False, n_threads=1, seed=seed, persons=ids) for seed in seeds)
    return np.array([fit["params"][0] for fit in fits])


def bound(
    mechanism: str, budget: dpci.PureDP | dpci.ApproxDP, n_runs: int, *, persons: bool, first_seed: int = 0
) -> float:
    """Return a lower bound on ε, or on δ at the ε of the budget, from so many runs on either data set."""
    starts = (first_seed, first_seed + n_runs)
    found = [
        outputs(mechanism, budget, sign, persons=persons, seeds=range(start, start + n_runs))
        for sign, start in zip((1.0, -1.0), starts, strict=True)
    ]
    if isinstance(budget, dpci.PureDP):
        return lower_bound(*found, epsilon_at(0.0), quantity="epsilon", at=0.0, confidence=CONFIDENCE).value
    at = budget.epsilon
    return lower_bound(*found, delta_at(at), quantity="delta", at=at, confidence=CONFIDENCE).value


def main() -> None:
    """Print the table of docs/evidence/person_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    command = f"python benches/person_audit.py {n_runs}"
    runs = f"{n_runs:,} runs on either data set, confidence 1 - 1e-6"
    print(f"`{command}`, commit {commit()}, {now()}, seeds from 0, {runs}.\n")
    print("| mechanism | claim for a person | persons: at least | rows as people: at least |")
    print("|---|---|---|---|")
    for (mechanism, _), budget in BUDGETS.items():
        found = [bound(mechanism, budget, n_runs, persons=persons) for persons in (True, False)]
        what = "ε" if isinstance(budget, dpci.PureDP) else f"δ({budget.epsilon:g})"
        cells = [f"{what} ≥ {value:.3g}" if value > 0.0 else "nothing found" for value in found]
        print(f"| {mechanism} | {budget} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
