"""Record of a released schema: the schema, which of its bounds were released, and what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpci import _core
from dpci.accounting.guarantee import Guarantee
from dpci.base.codec import check_interval
from dpci.base.validation import broken
from dpci.budgets import ZCDP, ApproxDP, Budget, Neighbors, PureDP, core_budget
from dpci.errors import InvalidInput
from dpci.released.record import CHOSEN_WITHOUT_DATA, Record, SavedBudget, SavedTable
from dpci.schema.columns import NumericColumn
from dpci.unit import Persons


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
    return f"released at {budget}"


def _check_ranges(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or not value or not all(isinstance(column, str) for column in value):
        raise broken(name, "an object that names at least one column", value)
    return {
        column: None if extent is None else check_interval(f"{name}.{column}", extent)
        for column, extent in value.items()
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class SchemaRecord(Record):
    """Everything that a :class:`~dpci.ReleasedSchema` knows."""

    KIND: ClassVar[str] = "dpci.ReleasedSchema"
    WHAT: ClassVar[str] = "a saved schema release"
    STEPS: ClassVar[frozenset[str]] = frozenset(("bounds",))
    NOISES: ClassVar[frozenset[str]] = frozenset(("gumbel",))

    neighbors: Neighbors
    budget: SavedBudget
    table: SavedTable
    ranges: Annotated[dict[str, Any], _check_ranges]
    """The public range of each column whose bounds were released, None where none is known."""
    zeros: tuple[str, ...]
    """Columns of which 0 stands apart."""
    share: float
    """Share of the records that bounds leave out on either side."""

    def __post_init__(self) -> None:
        super().__post_init__()
        numeric = {column.name: column for column in self.table.columns if isinstance(column, NumericColumn)}
        if not self.ranges or not set(numeric).issuperset(self.ranges) or not set(self.ranges).issuperset(self.zeros):
            raise InvalidInput(f"ranges must name columns of the schema with bounds, got ranges={self.ranges!r}")
        for name, extent in self.ranges.items():
            column = numeric[name]
            if extent is not None and not extent[0] <= column.lower < column.upper <= extent[1]:
                raise InvalidInput(
                    f"{name!r} must have bounds within its range {tuple(extent)}, got {(column.lower, column.upper)}"
                )
            if column.source != source_of(self.budget) or column.outside != "clip":
                raise InvalidInput(f"the source of {name!r} must be {source_of(self.budget)!r}, got {column.source!r}")
        if self.rows is not None or self.weights is not None or self.on_violation != "clip":
            raise InvalidInput(
                f"{self.WHAT} must have neither rows nor weights, and clip, got on_violation={self.on_violation!r}"
            )
        if not 0.0 < self.share < 0.5:
            raise InvalidInput(f"share must be above 0 and below .5, got share={self.share!r}")
        if self.seals or not 1 <= len(self.steps) <= 2:
            raise InvalidInput(f"{self.WHAT} must have one or two steps and no seal, got {len(self.steps)} steps")

    @property
    def released(self) -> tuple[str, ...]:
        """Names of the columns whose bounds were released."""
        return tuple(self.ranges)

    def spec(self) -> _core.BoundsSpec:
        """Return the release as the core calibrates it, of public choices alone."""
        columns = ((extent, name in self.zeros) for name, extent in self.ranges.items())
        return bounds_spec(columns, self.n_samples, self.budget, self.persons)

    @property
    def bounds(self) -> str:
        """The bounds that records have to obey, in words."""
        return "none: every number is taken as it is"

    @property
    def cost_unit(self) -> str:
        """Unit in which the costs of the steps are counted: "rho", or "epsilon", also under (ε, δ)."""
        return "rho" if isinstance(self.budget, ZCDP) else "epsilon"

    @property
    def choices(self) -> dict[str, Any]:
        """Public choices, as :attr:`privacy` has them."""
        return {"released": list(self.released), "share": self.share}

    @property
    def conditions(self) -> list[str]:
        """The assumptions of the guarantee besides the theorem."""
        chosen = "public ranges, lists of categories and all other settings were chosen without the data"
        return [chosen if condition == CHOSEN_WITHOUT_DATA else condition for condition in super().conditions]

    def guarantee(self) -> Guarantee:
        """Return the guarantee; under (ε, δ) that of ε alone, because the exponential mechanism needs no δ."""
        budget = PureDP(self.budget.epsilon) if isinstance(self.budget, ApproxDP) else self.budget
        return Guarantee(budget, None, 0.0, 0.0)
