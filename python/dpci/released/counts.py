"""``ReleasedCounts``: released numbers of rows in the cells of columns, and what follows from them without data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.costs import Step
from dpci.base.validation import broken, check_fraction
from dpci.budgets import ApproxDP, Budget, PureDP, remainder
from dpci.errors import InvalidInput
from dpci.schema.transforms import Transform, back, forth

N_BINS = 20
"""Parts of equal width between the bounds of a column."""
LEVEL = 0.95
"""Level of the intervals of counts and of all that follows from them."""
_F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Counting:
    """Shares of a budget for counts: of records beyond their bounds, and of the cells of columns. Public."""

    beyond: float | None = None
    columns: float | None = None

    def split(self, budget: Budget) -> tuple[Budget | None, Budget | None, Budget]:
        """Return the budgets of both, None where there is no share, and the rest; counts spend no δ."""
        whole: Budget = PureDP(budget.epsilon) if isinstance(budget, ApproxDP) else budget
        rest, parts = whole, []
        for share in (self.beyond, self.columns):
            part = None
            if share is not None:
                part = type(whole)(**{name: share * value for name, value in whole.parameters().items()})
                rest = remainder(rest, part)
            parts.append(part)
        if isinstance(budget, ApproxDP):
            rest = ApproxDP(rest.parameters()["epsilon"], budget.delta)
        return parts[0], parts[1], rest

    def spent(self, budget: Budget) -> tuple[float, ...]:
        """Return the ε, or ρ, of each count."""
        parts = self.split(budget)[:2]
        return tuple(next(iter(part.parameters().values())) for part in parts if part is not None)


NO_COUNTS = Counting()


def check_cells(name: str, value: object) -> dict[str, tuple[int, ...]]:
    """Return the counts of the cells of each column."""
    if not isinstance(value, dict) or not all(
        isinstance(column, str) and isinstance(counts, Sequence) and all(type(count) is int for count in counts)
        for column, counts in value.items()
    ):
        raise broken(name, "an object that names columns, with lists of whole numbers", value)
    return {column: tuple(counts) for column, counts in value.items()}


def _check_whole(name: str, value: object) -> int:
    if type(value) is not int:
        raise broken(name, "a whole number", value)
    return value


@dataclass(frozen=True, kw_only=True)
class ReleasedCounts:
    """Numbers of rows that were released after the bounds and lists of a schema, each with noise."""

    beyond_share: Annotated[float, check_fraction] | None
    """Share of the budget for the number of records beyond their bounds; None where it was not released."""
    counts_share: Annotated[float, check_fraction] | None
    """Share of the budget for the counts of columns; None where they were not released."""
    beyond: Annotated[int, _check_whole] | None
    """Records, or persons, with a number beyond its released bounds."""
    cells: Annotated[dict[str, Any], check_cells]
    """Rows of each column: of numbers below their bounds, in 20 parts, above them and missing; of each category."""

    def __post_init__(self) -> None:
        shares = (self.beyond_share, self.counts_share)
        if (self.beyond is None) != (shares[0] is None) or bool(self.cells) != (shares[1] is not None):
            raise InvalidInput(f"counts must be those that have shares of the budget, got shares {shares}")
        if shares == (None, None) or sum(filter(None, shares)) >= 1.0:
            raise InvalidInput(f"shares of counts must be given and add up to less than 1, got {shares}")

    @property
    def counting(self) -> Counting:
        """Shares of the budget."""
        return Counting(self.beyond_share, self.counts_share)

    def check_columns(self, ranges: Mapping[str, Any], categories: Mapping[str, int]) -> None:
        """Refuse counts of other columns and cells than those of numbers and of so many categories."""
        lengths = dict.fromkeys(ranges, N_BINS + 3) | dict(categories)
        found = {name: len(counts) for name, counts in self.cells.items()}
        if self.cells and found != lengths:
            raise InvalidInput(f"counts must be of the cells of {lengths}, got {found}")


@dataclass(frozen=True, kw_only=True)
class Share:
    """Share of the records with its interval, which accounts for the noise."""

    share: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.share:.1%} ({self.lower:.1%} to {self.upper:.1%})"

    @classmethod
    def of_cells(cls, part: Sequence[int], n_cells: int, total: float, step: Step) -> "Share":
        """Return the share of some of so many cells in their total, of which each has noise of its own."""
        count = float(sum(part))
        share = min(1.0, max(0.0, count / max(total, 1.0)))
        # Of n cells: (1 - p) of the noise of those that count less p of that of the others.
        weights = (1.0 - share) ** 2 * len(part) + share**2 * (n_cells - len(part))
        return cls.of(count, half_width(step, weights), total)

    @classmethod
    def of(cls, count: float, half: float, total: float) -> "Share":
        """Return the share of a count within ``half`` of the true one."""
        within = [min(1.0, max(0.0, each / max(total, 1.0))) for each in (count, count - half, count + half)]
        return cls(share=within[0], lower=within[1], upper=within[2])


def half_width(step: Step, weights: float = 1.0) -> float:
    """Return the error that a sum of counts exceeds in 5% of all releases at most; ``weights``: the sum of squares.

    The 95% quantile of a discrete Laplace law is ln(20) scales at most, and that of a weighted sum no more than its
    root: the tails of the sum are lighter.
    """
    if step.noise == "discrete_laplace":
        # One whole number for the rounding of the quantile.
        return math.log(1.0 / (1.0 - LEVEL)) * step.scale * math.sqrt(weights) + 1.0
    return NormalDist().inv_cdf(0.5 + LEVEL / 2.0) * step.scale * math.sqrt(weights) + 1.0


def edges(lower: float, upper: float, transform: Transform = "none") -> _F64:
    """Return the ends of the parts between two bounds, equal ones after the transform."""
    first, last = forth(transform, np.array([lower, upper])).tolist()
    ends: _F64 = np.linspace(first, last, N_BINS + 1)
    # Increasing, and the ends are the bounds, whatever the steps are rounded to.
    found: _F64 = np.clip(np.maximum.accumulate(back(transform, ends)), lower, upper)
    found[[0, -1]] = lower, upper
    return found


def cells_of_numbers(numbers: _F64, ends: _F64) -> NDArray[np.int64]:
    """Return the cell of each number: 0 below all ends, 1 to 20 between them, 21 above, 22 for missing ones."""
    found = np.searchsorted(ends, numbers, side="right")
    found[numbers == ends[-1]] = N_BINS
    found[np.isnan(numbers)] = N_BINS + 2
    return found.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class NumberCounts:
    """Counts of the cells of a number, and the noise on each."""

    lower: float
    upper: float
    range: tuple[float, float] | None
    counts: tuple[int, ...]
    step: Step
    transform: Transform = "none"

    @property
    def ends(self) -> _F64:
        """Ends of the parts between the bounds."""
        return edges(self.lower, self.upper, self.transform)

    @property
    def total(self) -> float:
        """Number of the records that have a value, or what the noise left of it."""
        return max(1.0, float(sum(self.counts[:-1])))

    @property
    def missing(self) -> Share:
        """Share of missing values."""
        return Share.of_cells(self.counts[-1:], len(self.counts), sum(self.counts), self.step)

    @property
    def beyond(self) -> Share:
        """Share of the values beyond either bound."""
        part = (self.counts[0], self.counts[N_BINS + 1])
        return Share.of_cells(part, len(self.counts) - 1, self.total, self.step)

    def quantile(self, p: float) -> tuple[float, float, float]:
        """Return a quantile of the values, and the ends of its 95% interval: cells that noise does not exclude.

        The interval is that of the values of the table, and accounts for the noise and the width of the cells. A cell
        holds the quantile where no more than p of the values lie below it, and no less at its end. The interval has all
        cells of which neither is refuted, each at half of 5%.
        """
        counts = np.array(self.counts[:-1], dtype=np.float64)
        ends = np.r_[-np.inf if self.range is None else self.range[0], self.ends,
                     np.inf if self.range is None else self.range[1]]  # fmt: skip
        below = np.r_[0.0, np.cumsum(counts)]
        k = np.arange(len(counts) + 1)
        # Values below each end less p of all: (1 - p) of those below it less p of those above.
        excess = below - p * below[-1]
        halves = np.array([half_width(self.step, (1 - p) ** 2 * each + p**2 * (len(counts) - each)) for each in k])
        possible = (excess[:-1] <= halves[:-1]) & (excess[1:] >= -halves[1:])
        held = np.flatnonzero(possible)
        if not len(held):
            held = np.arange(len(counts))
        raised = np.maximum.accumulate(np.r_[0.0, np.cumsum(np.maximum(counts, 0.0))])
        wanted = p * raised[-1]
        cell = int(np.clip(np.searchsorted(raised, wanted, side="left") - 1, 0, len(counts) - 1))
        first, last = ends[cell], ends[cell + 1]
        inside = (wanted - raised[cell]) / max(raised[cell + 1] - raised[cell], 1e-300)
        value = (
            first + inside * (last - first) if math.isfinite(last - first) else min(max(first, self.lower), self.upper)
        )
        return float(value), float(ends[held[0]]), float(ends[held[-1] + 1])


Counted = Literal["records_beyond", "column_counts"]


def step_named(steps: Sequence[Step], name: Counted) -> Step | None:
    """Return the step of counts of this name."""
    return next((step for step in steps if step.step == name), None)
