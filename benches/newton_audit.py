"""Audits fits by Newton steps: lower bounds on the privacy of whole releases, by thresholds on what they show.

The argument is the number of runs. Prints docs/evidence/newton_audit.md.
"""

import sys

import numpy as np
from numpy.typing import NDArray
from scipy import special

import dpci
from _environments import now
from _timing import commit
from dpci import _core
from dpci.audit.bounds import probability_bounds
from dpci.budgets import core_budget

N = 400
MANY = 24
"""Records that differ where the audit has to find more than the claim for one."""
CONFIDENCE = 1.0 - 1e-6
_F64 = NDArray[np.float64]
CLAIMS: dict[str, dpci.ZCDP | dpci.ApproxDP] = {
    "ρ = 2": dpci.ZCDP(2.0),
    "(ε, δ) = (8, .001)": dpci.ApproxDP(8.0, 1e-3),
}


def spec(budget: dpci.ZCDP | dpci.ApproxDP, neighbors: str) -> _core.NewtonSpec:
    """Return a fit of one column."""
    return _core.NewtonSpec(
        _core.Terms(N, neighbors),
        n_columns=1,
        intercept=None,
        row_norm=1.0,
        loss=dpci.losses.Logistic().to_core(),
        budget=core_budget(budget),
    )


def sides(n: int, neighbors: str, differ: int) -> list[tuple[_F64, _F64]]:
    """Return two data sets of equal rows, in which so many records have the other class, or are missing.

    No row is longer than the radius, and the bound on gradients is a few times as long as each of them.
    """
    x, y = np.ones((n, 1)), np.append(np.ones(differ), np.tile([1.0, -1.0], n)[: n - differ])
    if neighbors == "replace_one":
        return [(x, y), (x, np.append(-np.ones(differ), y[differ:]))]
    return [(x, y), (x[differ:], y[differ:])]


def of_mu(first: float, second: float) -> float:
    """Return the μ of Gaussian DP that they show."""
    return float(special.ndtri([first, second]).sum())


def greatest(first: _F64, second: _F64) -> float:
    """Return a lower bound on μ of Gaussian DP from a score of runs of either data set.

    Half of the runs choose the threshold, the others count.
    """
    half = len(first) // 2
    grid = np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0.01, 0.99, 99))

    def powers(rows: slice, threshold: float) -> tuple[int, int]:
        return int((first[rows] < threshold).sum()), int((second[rows] >= threshold).sum())

    def found(rows: slice, threshold: float) -> float:
        size = len(first[rows])
        counts = np.array(powers(rows, threshold))
        least, _ = probability_bounds(counts, np.zeros_like(counts), size, CONFIDENCE)
        return of_mu(*least)

    best = max(grid, key=lambda threshold: found(slice(None, half), threshold))
    return found(slice(half, None), best)


def scores(case: _core.NewtonSpec, side: tuple[_F64, _F64], n_runs: int, seed: int) -> _F64:
    """Return the parameter of so many runs: the noise of the last two gradients makes most of its error."""
    rows = _core.simulate(case, _core.Records(*side), n_runs=n_runs, seed=seed, n_threads=1)
    return np.asarray(rows[:, 0])


def main() -> None:
    """Print docs/evidence/newton_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("# Audits of Newton steps\n")
    print(f"`python benches/newton_audit.py {n_runs}`, commit {commit()}, {now()}, seeds 0 and 1.\n")
    print(
        f"This audit makes {n_runs:,} releases from each of two neighbouring data sets of {N:,} records with one\n"
        "column. A threshold on the parameter tells them apart. Its lower bound on μ of Gaussian differential privacy\n"
        "has confidence 1 - 1e-6. The last two gradients have .615 of the budget's μ², and a record's gradient is a\n"
        "third of the bound: no such threshold can show more than a third of μ.\n"
        f"Where {MANY} records differ, the same audit finds more than the claim for one. Pure DP is not audited here:\n"
        "a test compares the densities of its start between all neighbours of a small table.\n"
    )
    print(f"| claim | neighbours | μ of the claim | at least | where {MANY} records differ, at least |")
    print("|---|---|---|---|---|")
    for name, budget in CLAIMS.items():
        for neighbors in ("replace_one", "add_remove"):
            claim = np.sqrt(2.0 * budget.rho) if isinstance(budget, dpci.ZCDP) else _core.gaussian_mu(8.0, 1e-3)
            found = []
            for differ in (1, MANY):
                case = spec(budget, neighbors)
                both = enumerate(sides(N, neighbors, differ))
                first, second = (scores(case, side, n_runs, seed) for seed, side in both)
                found.append(max(greatest(first, second), greatest(second, first)))
            print(f"| {name} | {neighbors} | {claim:.3g} | {found[0]:.3g} | {found[1]:.3g} |", flush=True)
            if not found[0] <= claim < found[1]:
                sys.exit(f"{name}, {neighbors}: the audit found {found} at the claim {claim}")


if __name__ == "__main__":
    main()
