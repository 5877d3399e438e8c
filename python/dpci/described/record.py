"""Record of a released schema: the schema, which of its bounds were released, and what they cost."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

from dpci.accounting.guarantee import Guarantee
from dpci.budgets import ZCDP, ApproxDP, Neighbors, PureDP, SavedBudget
from dpci.errors import InvalidInput
from dpci.released.bounds import ReleasedBounds, check_ranges
from dpci.released.counts import ReleasedCounts
from dpci.released.record import Record
from dpci.schema.table import SavedTable


@dataclass(frozen=True, kw_only=True, eq=False)
class SchemaRecord(Record):
    """Everything that a :class:`~dpci.ReleasedSchema` knows."""

    KIND: ClassVar[str] = "dpci.ReleasedSchema"
    WHAT: ClassVar[str] = "a saved schema release"
    STEPS: ClassVar[frozenset[str]] = frozenset(("bounds", "levels", "records_beyond", "column_counts"))
    NOISES: ClassVar[frozenset[str]] = frozenset(("gumbel", "bernoulli", "discrete_laplace", "discrete_gaussian"))

    neighbors: Neighbors
    budget: SavedBudget
    table: SavedTable
    ranges: Annotated[dict[str, Any], check_ranges]
    """The public range of each column whose bounds were released, None where none is known."""
    zeros: tuple[str, ...]
    """Columns of which 0 stands apart."""
    logarithmic: tuple[str, ...] = ()
    """Columns whose bounds were chosen after the signed logarithm."""
    listed: tuple[str, ...]
    """Columns whose categories were released."""
    share: float | None
    """Share of the records that bounds leave out on either side; None without bounds."""
    counts: ReleasedCounts | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.found.check_table(self.table)
        if self.rows is not None or self.weights is not None or self.on_violation != "clip":
            raise InvalidInput(
                f"{self.WHAT} must have neither rows nor weights, and clip, got on_violation={self.on_violation!r}"
            )
        if self.seals:
            raise InvalidInput(f"{self.WHAT} must have no seal, got {len(self.seals)}")

    @cached_property
    def found(self) -> ReleasedBounds:
        """The bounds, as a fit that releases its own has them."""
        return ReleasedBounds(
            budget=self.budget,
            ranges=self.ranges,
            zeros=self.zeros,
            logarithmic=self.logarithmic,
            listed=self.listed,
            share=self.share,
            steps=self.steps,
            counts=self.counts,
        )

    @property
    def bounds(self) -> str:
        """The bounds that records have to obey, in words."""
        return "none: every value is taken as it is"

    @property
    def cost_unit(self) -> str:
        """Unit in which the costs of the steps are counted: "rho", or "epsilon", also under (ε, δ)."""
        return "rho" if isinstance(self.budget, ZCDP) else "epsilon"

    @property
    def choices(self) -> dict[str, Any]:
        """Public choices, as :attr:`privacy` has them."""
        shares = {} if self.counts is None else {"beyond_share": self.counts.beyond_share,
                                                 "counts_share": self.counts.counts_share}  # fmt: skip
        return {"released": list(self.ranges), "listed": list(self.listed), "share": self.share, **shares}

    @property
    def chosen(self) -> tuple[str, ...]:
        """Choices that must not depend on the data."""
        return ("budget", "public ranges and bounds", "categories", "columns", "classes")

    def guarantee(self) -> Guarantee:
        """Return the guarantee; under (ε, δ) bounds alone have that of ε, because their choice needs no δ."""
        if self.listed:
            return Guarantee(self.budget, None, 0.0, 0.0, self.found.totals)
        budget = PureDP(self.budget.epsilon) if isinstance(self.budget, ApproxDP) else self.budget
        return Guarantee(budget, None, 0.0, 0.0)
