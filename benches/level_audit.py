"""Audits level totals by the privacy losses of fits: a number or a level of one record changes, or the record leaves.

The argument is the number of runs. Rows are a number, or two levels of a category. A record is a row, a person with two
equal rows, or a row that weighs as much as it may. So great a ridge makes curvatures those at 0, and nearly all of the
budget is for the moments. From the released Hessian follow the cells of the one block, whose
noise has a density of known form; the other entries of the moments are not looked at. Half the noise is the same
releases with the noise of the cells divided by two. Prints docs/evidence/level_audit.md.
"""

import itertools
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import dpci
from _audits import CONFIDENCE, origin, row, seeds_of
from dpci import _core
from dpci.audit.bounds import epsilon_at, lower_bound

Array = NDArray[np.float64]

N, EPSILON, RIDGE = 50, 2.0, 100.0
BOUND = 5.0
"""Weight of the record that changes; the others weigh 1."""
LOSSES = {"logistic": dpci.losses.Logistic(), "smooth hinge": dpci.losses.SmoothHinge(1.0)}
_OF_NUMBER = np.array([[1.0, 1.0, -2.0], [2.0, -2.0, 0.0], [1.0, 1.0, 2.0]]) / 4.0
"""Cells of a number from the sums of weights, of its squares and of itself."""


@dataclass(frozen=True)
class Case:
    """A change of one record, and how neighbours differ."""

    rows: str
    neighbors: str
    record: str = "row"
    loss: str = "logistic"

    @property
    def spec(self) -> _core.Spec:
        """All public choices, calibrated."""
        members = [0] if self.rows == "number" else [0, 0]
        weights = (BOUND, None) if self.record == "weighted row" else None
        return _core.Spec(
            _core.Terms(N, self.neighbors, persons=self.record == "person", weights=weights),
            n_columns=len(members),
            intercept=1.0,
            row_norm=_core.RowDomain.blocks([1.0], members),
            loss=LOSSES[self.loss].to_core(),
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
        copies = 2 if self.record == "person" else 1
        with_record = [np.repeat(np.vstack([end, others]), copies, axis=0) for end in ends]
        others = np.repeat(others, copies, axis=0)
        return with_record if self.neighbors == "replace_one" else [with_record[0], others]

    def cells(self, sums: Array) -> Array:
        """Cells from sums over the records: a matrix for each release."""
        if self.rows == "number":
            return np.stack([sums[:, 1, 1], sums[:, 0, 0], sums[:, 0, 1]], axis=1) @ _OF_NUMBER.T
        levels = np.stack([sums[:, 0, 0], sums[:, 1, 1]], axis=1)
        return np.column_stack([levels, sums[:, 2, 2] - levels.sum(axis=1)])

    def shares(self, rows: Array) -> Array:
        """Weights of the rows in sums over the records."""
        if self.record == "person":
            return np.full(len(rows), 0.5)
        return np.where(rows.any(axis=1) & (self.record == "weighted row"), BOUND, 1.0)

    def records(self, rows: Array) -> _core.Records:
        """Return the rows with classes, persons and weights."""
        y = np.where(np.arange(len(rows)) % 2 == 0, 1.0, -1.0)
        persons = np.arange(len(rows)) // 2 if self.record == "person" else None
        weights = self.shares(rows) if self.record == "weighted row" else None
        return _core.Records(rows, y, persons=persons, weights=weights)

    def exact(self, rows: Array) -> Array:
        """Cells without noise."""
        _, _, (curvature,) = LOSSES[self.loss].to_core().evaluate(np.zeros(1), np.ones(1))
        rows, shares = np.column_stack([rows, np.ones(len(rows))]), self.shares(rows)
        return self.cells((curvature * (rows.T * shares) @ rows / N)[None])[0]

    def audited(self, n_runs: int, *, first_seed: int = 0) -> tuple[float, float]:
        """Lower bounds on ε from so many runs on either data set: of the releases, and of these with half the noise."""
        exact = [self.exact(rows) for rows in self.sides]
        found = []
        for rows, seeds in zip(self.sides, seeds_of(n_runs, first_seed), strict=True):
            records = self.records(rows)
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
        "between the two, from the released cells alone. A person has two equal rows, which both change: with the\n"
        "same noise the totals are those of a row. A weighted row has weight "
        f"{BOUND:g}, the bound, among rows of weight 1.\n"
    )
    print("| rows | neighbours | record | loss | claim | released: at least | half the noise of the cells: at least |")
    print("|---|---|---|---|---|---|---|")
    kinds = [("row", "logistic"), ("row", "smooth hinge"), ("person", "logistic"), ("weighted row", "logistic")]
    sides = itertools.product(("number", "levels"), ("replace_one", "add_remove"))
    for (record, loss), (rows, neighbors) in itertools.product(kinds, sides):
        released, half = Case(rows, neighbors, record, loss).audited(n_runs)
        cells = [rows, neighbors, record, loss, f"ε = {EPSILON:g}"]
        row(cells, "ε ", {"released": released, "half": half}, EPSILON)


if __name__ == "__main__":
    main()
