"""Record of a released schema: the schema, which of its bounds were released, and what they cost."""

from dataclasses import dataclass
from typing import Any, ClassVar

from dpci.accounting.guarantee import Guarantee
from dpci.budgets import ZCDP, ApproxDP, Neighbors, PureDP
from dpci.errors import InvalidInput
from dpci.released.record import CHOSEN_WITHOUT_DATA, Record, SavedBudget, SavedTable


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
    released: tuple[str, ...]
    """Columns whose bounds were released."""
    share: float
    """Share of the records that bounds leave out on either side."""

    def __post_init__(self) -> None:
        super().__post_init__()
        known = {column.name for column in self.table.columns if hasattr(column, "lower")}
        if not self.released or len(set(self.released)) < len(self.released) or not known.issuperset(self.released):
            raise InvalidInput(
                f"released must name columns of the schema with bounds, once each, got released={self.released!r}"
            )
        if not 0.0 < self.share < 0.5:
            raise InvalidInput(f"share must be above 0 and below .5, got share={self.share!r}")
        if self.seals or not 1 <= len(self.steps) <= 2:
            raise InvalidInput(f"{self.WHAT} must have one or two steps and no seal, got {len(self.steps)} steps")

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
