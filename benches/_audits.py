"""Base of the audits of persons, strata and weights: fits of one parameter, and lower bounds from releases."""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpci
from _environments import now
from _timing import commit
from dpci import _core
from dpci.audit.bounds import delta_at, epsilon_at, lower_bound, probability_bounds
from dpci.budgets import core_budget
from dpci.data.arrays import Treatment

N_RECORDS = 10
CONFIDENCE = 1.0 - 1e-6
LOSS = dpci.losses.HuberHinge(0.5)
"""Its slope is the greatest one at all parameters that a release of so strong a ridge can have."""
RIDGE = 20.0
"""Ridge of the sum of the losses."""
_F64 = NDArray[np.float64]


def specification(
    mechanism: str,
    budget: dpci.PureDP | dpci.ApproxDP,
    *,
    n: int = N_RECORDS,
    ridge: float = RIDGE,
    neighbors: str = "replace_one",
    **counts: Any,
) -> _core.Spec:
    """Return a fit of one column without moments; ``counts`` say how much records count."""
    bound, _ = counts.get("weights", (1.0, None))
    return _core.Spec(
        _core.Terms(n, neighbors, **counts),
        n_columns=1,
        intercept=None,
        row_norm=1.0,
        loss=LOSS.to_core(),
        l2_strength=ridge / n * bound,
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
    )


def rows_of(changed: float, copies: int) -> _F64:
    """Return a row of 0 for each record but one, which has so many rows of the other value."""
    return np.append(np.zeros(N_RECORDS - 1), np.full(copies, changed))[:, None]


def parameters(
    spec: _core.Spec, rows: _F64, seeds: range, *, on_violation: Treatment = "error", **columns: Any
) -> _F64:
    """Return the released parameter of every seed."""
    y = np.ones(len(rows))
    fits = (
        _core.release(spec, _core.Records(rows, y, **columns), on_violation=on_violation, n_threads=1, seed=seed)
        for seed in seeds
    )
    return np.array([fit["params"][0] for fit in fits])


def seeds_of(n_runs: int, first: int) -> list[range]:
    """Return the seeds of so many runs on either data set."""
    return [range(start, start + n_runs) for start in (first, first + n_runs)]


def least(found: list[_F64], budget: dpci.PureDP | dpci.ApproxDP) -> float:
    """Return a lower bound on ε, or on δ at the ε of the budget, from what was found on either data set."""
    if isinstance(budget, dpci.PureDP):
        return lower_bound(*found, epsilon_at(0.0), quantity="epsilon", at=0.0, confidence=CONFIDENCE).value
    at = budget.epsilon
    return lower_bound(*found, delta_at(at), quantity="delta", at=at, confidence=CONFIDENCE).value


def least_delta(losses: list[_F64], epsilon: float) -> float:
    """Return a lower bound on δ at ε from privacy losses on either data set: the event that shows most is known."""
    n = len(losses[0])
    hits, others = (np.array((found > epsilon).sum()) for found in losses)
    return max(0.0, float(delta_at(epsilon)(*probability_bounds(hits, others, n, CONFIDENCE))))


def row(cells: list[str], unit: str, found: dict[str, float], claim: float) -> None:
    """Print a row of lower bounds; end where the claim is refuted, or where the audit is too weak to refute another.

    The first bound is for the claim, the others are for what breaks it.
    """
    print(f"| {' | '.join(cells)} | {' | '.join(f'{unit}{value:.3g}' for value in found.values())} |", flush=True)
    first, *others = found.values()
    if not 0.2 * claim < first <= claim < min(others):
        sys.exit(f"{', '.join(cells)}: the audit found {found} at the claim {claim}")


def origin(script: str, n_runs: int) -> str:
    """Return the line that says how a page was made."""
    runs = f"{n_runs:,} runs on either data set, confidence 1 - 1e-6"
    return f"`python benches/{script} {n_runs}`, commit {commit()}, {now()}, seeds from 0, {runs}.\n"
