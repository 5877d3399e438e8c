"""Audits moment matrices of persons: one with ten rows is replaced, with persons= and with rows taken for people."""

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
BUDGETS = (dpci.PureDP(1.0), dpci.ApproxDP(1.0, 0.01))
Budget = dpci.PureDP | dpci.ApproxDP


def tables(*, persons: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return two columns of rows, targets and ids: nine persons have a row of 0, one has ten rows at either end."""
    ids = np.concatenate([np.arange(N_PERSONS - 1), np.full(N_ROWS, N_PERSONS - 1)])
    rows = np.zeros((2, len(ids), 1))
    rows[0, N_PERSONS - 1 :], rows[1, N_PERSONS - 1 :] = 1.0, -1.0
    # With one target the two records are nearly at right angles.
    y = np.where(ids == N_PERSONS - 1, 1.0, 0.0)
    return rows, y, ids.astype(np.int64), N_PERSONS if persons else len(ids)


def losses(budget: Budget, n_runs: int, *, persons: bool, first_seed: int = 0) -> list[np.ndarray]:
    """Return, of so many releases of either data set, the statistic by which they are told apart best."""
    rows, y, ids, n = tables(persons=persons)
    spec = _core.MomentMatrixSpec(
        n_samples=n,
        n_columns=1,
        row_norm=1.0,
        target_bound=1.0,
        residuals=[],
        residual_share=0.1,
        budget=core_budget(budget),
        neighbors="replace_one",
        persons=persons,
    )
    shares = np.where(ids == N_PERSONS - 1, 1.0 / N_ROWS if persons else 1.0, 1.0)
    exact = []
    for x in rows:
        z = np.column_stack([x, np.full(len(y), spec.intercept), spec.target_weight * y])
        exact.append((z.T * shares) @ z / n)
    found = []
    for k, x in enumerate(rows):
        seeds = range(first_seed + k * n_runs, first_seed + (k + 1) * n_runs)
        keywords = {"clip": False, "n_threads": 1, "persons": ids if persons else None}
        matrices = np.array(
            [_core.release_moment_matrix(spec, x, y, seed=seed, **keywords)["matrix"] for seed in seeds]
        )
        if isinstance(budget, dpci.PureDP):  # the density falls with the nuclear norm
            far, near = (np.abs(np.linalg.eigvalsh(matrices - mean)).sum(axis=1) for mean in (exact[1], exact[0]))
        else:
            far, near = (((matrices - mean) ** 2).sum(axis=(1, 2)) for mean in (exact[1], exact[0]))
        found.append(far - near)
    return found


def bound(budget: Budget, n_runs: int, *, persons: bool, first_seed: int = 0) -> float:
    """Return a lower bound on ε, or on δ at the ε of the budget, from so many runs on either data set."""
    found = losses(budget, n_runs, persons=persons, first_seed=first_seed)
    if isinstance(budget, dpci.PureDP):
        return lower_bound(*found, epsilon_at(0.0), quantity="epsilon", at=0.0, confidence=CONFIDENCE).value
    return lower_bound(
        *found, delta_at(budget.epsilon), quantity="delta", at=budget.epsilon, confidence=CONFIDENCE
    ).value


def main() -> None:
    """Print the table of docs/evidence/person_moment_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    command = f"python benches/person_moment_audit.py {n_runs}"
    runs = f"{n_runs:,} runs on either data set, confidence 1 - 1e-6"
    print(f"`{command}`, commit {commit()}, {now()}, seeds from 0, {runs}.\n")
    print("| claim for a person | persons: at least | rows as people: at least |")
    print("|---|---|---|")
    for budget in BUDGETS:
        cells = [f"{bound(budget, n_runs, persons=persons):.4f}" for persons in (True, False)]
        claim = "ε = 1" if isinstance(budget, dpci.PureDP) else "δ = .01 at ε = 1"
        print("|", " | ".join([claim, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
