"""``ReleasedBounds``: public values of bounds that were released, by themselves or within the budget of a fit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from dpci import _core
from dpci.accounting.costs import Step
from dpci.accounting.guarantee import Guarantee
from dpci.base.codec import check_interval
from dpci.base.validation import broken
from dpci.budgets import ApproxDP, Budget, core_budget, remainder
from dpci.errors import InvalidInput
from dpci.released.record import SavedBudget
from dpci.schema.columns import NumericColumn, UnboundedColumn
from dpci.schema.table import Schema
from dpci.unit import Persons

RELEASED = "released at "
"""Beginning of the source of released bounds."""


def bounds_spec(
    columns: Iterable[tuple[tuple[float, float] | None, bool]], n_samples: int, budget: Budget, unit: Persons | None
) -> _core.BoundsSpec:
    """Calibrate a release of bounds; of each column its range, and whether 0 stands apart.

    Raises
    ------
    InvalidInput
        For persons without ``max_rows``, and for a budget that cannot find bounds among so many records.
    """
    return _core.BoundsSpec(
        columns=list(columns),
        n_samples=n_samples,
        budget=core_budget(budget),
        persons=unit is not None,
        max_rows=None if unit is None else unit.max_rows,
    )


def source_of(budget: Budget) -> str:
    """Return why released bounds are public, as a schema states it."""
    return f"{RELEASED}{budget}"


def check_ranges(name: str, value: object) -> dict[str, Any]:
    """Return public ranges by the names of columns, None where none is known."""
    if not isinstance(value, dict) or not value or not all(isinstance(column, str) for column in value):
        raise broken(name, "an object that names at least one column", value)
    return {
        column: None if extent is None else check_interval(f"{name}.{column}", extent)
        for column, extent in value.items()
    }


@dataclass(frozen=True, kw_only=True)
class ReleasedBounds:
    """Public values of bounds that were released: of which columns, among which points, and at what cost."""

    budget: SavedBudget
    """Budget of the bounds alone."""
    ranges: Annotated[dict[str, Any], check_ranges]
    """The public range of each column whose bounds were released, None where none is known."""
    zeros: tuple[str, ...]
    """Columns of which 0 stands apart."""
    share: float
    """Share of the records that bounds leave out on either side."""
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not self.ranges or not set(self.ranges).issuperset(self.zeros):
            raise InvalidInput(f"ranges must name columns of the schema with bounds, got ranges={self.ranges!r}")
        if not 0.0 < self.share < 0.5:
            raise InvalidInput(f"share must be above 0 and below .5, got share={self.share!r}")
        if not 1 <= len(self.steps) <= 2 or any((s.step, s.noise) != ("bounds", "gumbel") for s in self.steps):
            raise InvalidInput(f"released bounds must have one or two steps of their kind, got {self.steps}")

    @classmethod
    def of(
        cls, gaps: Sequence[UnboundedColumn], budget: Budget, share: float, steps: tuple[Step, ...]
    ) -> "ReleasedBounds":
        """Return what was released of the gaps of a schema."""
        return cls(
            budget=budget,
            ranges={column.name: column.range for column in gaps},
            zeros=tuple(column.name for column in gaps if column.zeros),
            share=share,
            steps=steps,
        )

    def facts(self) -> dict[str, Any]:
        """Return what was released and spent, as :attr:`PrivateFit.privacy` has it."""
        return {
            "columns": list(self.ranges),
            "share": self.share,
            "budget": self.budget.parameters(),
            "steps": [step.to_dict() for step in self.steps],
        }

    def check_table(self, table: Schema) -> None:
        """Refuse a schema whose columns do not have such bounds."""
        numeric = {column.name: column for column in table.columns if isinstance(column, NumericColumn)}
        if not set(numeric).issuperset(self.ranges):
            raise InvalidInput(f"ranges must name columns of the schema with bounds, got ranges={self.ranges!r}")
        source = source_of(self.budget)
        for name, extent in self.ranges.items():
            column = numeric[name]
            if extent is not None and not extent[0] <= column.lower < column.upper <= extent[1]:
                raise InvalidInput(
                    f"{name!r} must have bounds within its range {tuple(extent)}, got {(column.lower, column.upper)}"
                )
            if column.source != source or column.outside != "clip":
                raise InvalidInput(f"the source of {name!r} must be {source!r}, got {column.source!r}")

    def spec(self, n_samples: int, unit: Persons | None) -> _core.BoundsSpec:
        """Return the release as the core calibrates it, of public choices alone."""
        columns = ((extent, name in self.zeros) for name, extent in self.ranges.items())
        return bounds_spec(columns, n_samples, self.budget, unit)

    def rest_of(self, budget: Budget) -> Budget:
        """Return what a budget leaves for the release that begins with these bounds."""
        return remainder(budget, self.budget)

    def before(self, guarantee: Guarantee, budget: Budget) -> Guarantee:
        """Return the guarantee of the bounds and what follows them together, at the budget of both.

        Under (ε, δ) the exponential mechanism of an ε is ε-DP and ε²/8-zCDP, and both add to what follows. Pure and
        zero-concentrated DP add up to the budget.
        """
        if not isinstance(budget, ApproxDP):
            return Guarantee(budget, None, 0.0, 0.0)
        own = self.budget.parameters()["epsilon"]
        epsilon, delta, rho = guarantee.seal
        return replace(guarantee, budget=budget, seal=(epsilon + own, delta, rho + own**2 / 8.0))
