"""Audits level totals by the privacy losses of fits: a number or a level of one record changes, or the record leaves.

The argument is the number of runs. Rows are a number, or two levels of a category. So great a ridge makes curvatures
1/4, and nearly all of the budget is for the moments. From the released Hessian follow the cells of the one block, whose
noise has a density of known form; the other entries of the moments are not looked at. Half the noise is the same
releases with the noise of the cells divided by two. Prints docs/evidence/level_audit.md.
"""

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from _audits import CONFIDENCE, origin, row, seeds_of
from dpci import _core
from dpci.audit.bounds import epsilon_at, lower_bound

Array = NDArray[np.float64]

N, EPSILON, RIDGE, CURVATURE = 50, 2.0, 100.0, 0.25
_OF_NUMBER = np.array([[1.0, 1.0, -2.0], [2.0, -2.0, 0.0], [1.0, 1.0, 2.0]]) / 4.0
"""Cells of a number from the sums of weights, of its squares and of itself."""


@dataclass(frozen=True)
class Case:
    """A change of one record, and how neighbours differ."""

    rows: str
    neighbors: str

    @property
    def spec(self) -> _core.Spec:
        """All public choices, calibrated."""
        members = [0] if self.rows == "number" else [0, 0]
        return _core.Spec(
            _core.Terms(N, self.neighbors),
            n_columns=len(members),
            intercept=1.0,
            row_norm=_core.RowDomain.blocks([1.0], members),
            loss=_core.Loss("logistic"),
            l2_strength=RIDGE,
            radius=None,
            budget=_core.Budget.pure(EPSILON),
            mechanism="objective",
            noise=None,
            variant="standard",
            project=False,
            split=(0.02, 0.49, 0.49),
            moments="levels",
            projection="auto",
            calibration="tight",
        )

    @property
    def sides(self) -> list[Array]:
        """Rows of either data set: those of one record differ, or are missing."""
        ends = [[1.0], [-1.0]] if self.rows == "number" else [[1.0, 0.0], [0.0, 1.0]]
        others = np.zeros((N - 1, len(ends[0])))
        with_record = [np.vstack([end, others]) for end in ends]
        return with_record if self.neighbors == "replace_one" else [with_record[0], others]

    def cells(self, sums: Array) -> Array:
        """Cells from sums over the records: a matrix for each release."""
        if self.rows == "number":
            return np.stack([sums[:, 1, 1], sums[:, 0, 0], sums[:, 0, 1]], axis=1) @ _OF_NUMBER.T
        levels = np.stack([sums[:, 0, 0], sums[:, 1, 1]], axis=1)
        return np.column_stack([levels, sums[:, 2, 2] - levels.sum(axis=1)])

    def exact(self, rows: Array) -> Array:
        """Cells without noise."""
        rows = np.column_stack([rows, np.ones(len(rows))])
        return self.cells((CURVATURE * rows.T @ rows / N)[None])[0]

    def audited(self, n_runs: int, *, first_seed: int = 0) -> tuple[float, float]:
        """Lower bounds on ε from so many runs on either data set: of the releases, and of these with half the noise."""
        exact = [self.exact(rows) for rows in self.sides]
        found = []
        for rows, seeds in zip(self.sides, seeds_of(n_runs, first_seed), strict=True):
            y = np.where(np.arange(len(rows)) % 2 == 0, 1.0, -1.0)
            records = _core.Records(rows, y)
            fits = (_core.release(self.spec, records, on_violation="error", n_threads=1, seed=seed) for seed in seeds)
            fits = [(fit["hessian"], fit["steps"][1].levels_scale) for fit in fits]
            scale = fits[0][1]
            found.append(self.cells(np.array([hessian for hessian, _ in fits]) - RIDGE * np.eye(rows.shape[1] + 1)))
        bounds = []
        for factor in (1.0, 0.5):
            drawn = [here + factor * (cells - here) for here, cells in zip(exact, found, strict=True)]
            distances = [[np.abs(cells - here).sum(axis=1) for here in exact] for cells in drawn]
            losses = [(other - own) / scale for own, other in distances]
            at = epsilon_at(0.0)
            bound = lower_bound(losses[0], losses[1], at, quantity="epsilon", at=0.0, confidence=CONFIDENCE)
            bounds.append(bound.value)
        return bounds[0], bounds[1]


def main() -> None:
    """Print docs/evidence/level_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("# Audits of level totals\n")
    print(origin("level_audit.py", n_runs))
    print(
        "Fits of 50 records at pure ε = 2, of which .98 is for the moments. One record has another number or level\n"
        "in one data set than in the other, or is there in one only. The table has lower bounds on the privacy loss\n"
        "between the two, from the released cells alone.\n"
    )
    print("| rows | neighbours | claim | released: at least | half the noise of the cells: at least |")
    print("|---|---|---|---|---|")
    for rows in ("number", "levels"):
        for neighbors in ("replace_one", "add_remove"):
            released, half = Case(rows, neighbors).audited(n_runs)
            row([rows, neighbors, f"ε = {EPSILON:g}"], "ε ", {"released": released, "half": half}, EPSILON)


if __name__ == "__main__":
    main()
