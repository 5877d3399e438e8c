"""``BoundsPlan``: costs and precision of bounds and lists that a fit releases within its budget, before any data."""

from dataclasses import dataclass
from typing import Any

from dpci.accounting.costs import Step
from dpci.budgets import Budget
from dpci.described.bounds import BoundsStage
from dpci.released.counts import half_width, step_named

__all__ = ["BoundsPlan"]

# Width of released bounds of a normal column, ±2.2 standard deviations, over that of its 2% and 98% quantiles.
_WIDTH = 2.2 / 2.054


@dataclass(frozen=True, kw_only=True)
class BoundsPlan:
    """The release of the bounds and lists that a schema lacks, within the budget of a fit. Computed without data.

    Attributes
    ----------
    columns : tuple of str
        Columns whose bounds will be released.
    listed : tuple of str
        Columns whose categories will be released.
    share : float
        Share of the budget for bounds and lists: the caller's, or the recommended one.
    is_recommended : bool
        Whether it is the recommended one.
    budget : PureDP, ZCDP or ApproxDP
        Budget of bounds and lists.
    left_out : float or None
        Share of the values that a bound leaves out at most, on either side, up to its rank error; None without bounds.
    half_count : float or None
        Number of rows at which a category is listed in half of the releases; None without lists.
    longer : float
        Length of an interval over that of a fit with the same bounds, if they were known and cost nothing.
    break_even : float or None
        Width of known bounds, over that of the middle 96% of the values, below which they make shorter intervals; None
        without bounds.
    steps : tuple of Step
        Steps of the release, each with its cost.
    """

    columns: tuple[str, ...]
    listed: tuple[str, ...]
    share: float
    is_recommended: bool
    budget: Budget
    left_out: float | None
    half_count: float | None
    longer: float
    break_even: float | None
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, stage: BoundsStage, *, longer: float) -> "BoundsPlan":
        """Return the plan of a calibrated release."""
        schema, specs = stage.schema, stage.specs
        return cls(
            columns=tuple(column.name for column in schema.unbounded),
            listed=tuple(column.name for column in schema.unlisted),
            share=stage.share,
            is_recommended=stage.schema.bounds_share is None,
            budget=stage.budget,
            left_out=specs.share,
            half_count=None if specs.levels is None else specs.levels.half_count,
            longer=longer,
            break_even=None if specs.share is None else _WIDTH * longer,
            steps=specs.steps,
        )

    def facts(self) -> list[tuple[str, str]]:
        """Return the lines of a plan's summary."""
        used = "bounds_share" if not self.is_recommended else "recommended bounds_share"
        lines = [("released first", f"{', '.join((*self.columns, *self.listed))}"),
                 (used, f"{self.share:.4g}, which is {self.budget}")]  # fmt: skip
        if self.left_out is not None:
            lines.append(("left out", f"up to about {self.left_out:.1%} of the values on either side"))
        if self.half_count is not None:
            rare = f"categories with fewer than about {self.half_count:,.0f} rows, in half of the releases"
            lines.append(("not listed", rare))
        if (step := step_named(self.steps, "records_beyond")) is not None:
            error = f"number known to {half_width(step):,.0f}, in 95% of the releases"
            lines.append(("beyond bounds", error))
        if (step := step_named(self.steps, "column_counts")) is not None:
            lines.append(("counts", f"each known to {half_width(step):,.0f} rows, in 95% of the releases"))
        lines.append(("cost in length", f"{self.longer:.3f} times the intervals with known bounds"))
        if self.break_even is not None:
            width = f"{self.break_even:.2f} times as wide as the middle 96% of the values"
            lines.append(("known bounds", f"shorten intervals if they are less than about {width}"))
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, as JSON can hold them."""
        return {
            "columns": list(self.columns),
            "listed": list(self.listed),
            "share": self.share,
            "is_recommended": self.is_recommended,
            "budget": self.budget.parameters(),
            "left_out": self.left_out,
            "half_count": self.half_count,
            "longer": self.longer,
            "break_even": self.break_even,
            "steps": [step.to_dict() for step in self.steps],
        }
