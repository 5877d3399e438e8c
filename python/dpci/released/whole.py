"""The release that a fit is a part of, which paid for all of its parts together."""

from dataclasses import dataclass
from typing import Annotated, Literal

from dpci.base.validation import check_positive
from dpci.budgets import ZCDP, ApproxDP, Budget, Neighbors, PureDP, SavedBudget, for_changes, times
from dpci.errors import InvalidInput

_NAMES = {
    "strata": "all {parts} strata of the table",
    "counted_strata": "all {parts} strata of the table with the counts of their records",
    "groups": "all {parts} groups",
    "disjoint_groups": "all {parts} disjoint groups",
    "tuning": "the choice among {parts} candidates and the fit",
}
_ONLY = {
    "strata": "the only stratum of the table",
    "groups": "the only group",
    "disjoint_groups": "the only group",
}
_WITH_MORE = {"counted_strata", "tuning"}
"""Releases of which a part of the budget paid for something else than their parts."""


def _check_numbers(name: str, value: object) -> dict[str, float]:
    if not isinstance(value, dict) or not value or not set(value) <= {"epsilon", "delta", "rho"}:
        raise InvalidInput(f"{name} must have numbers of a budget, got {name}={value!r}")
    return {key: check_positive(f"{name}.{key}", number) for key, number in value.items()}


@dataclass(frozen=True)
class Whole:
    """Public values of a release that is more than one fit: the parts share one payment."""

    kind: Literal["strata", "counted_strata", "groups", "disjoint_groups", "tuning"]
    """"strata", "counted_strata", "groups", "disjoint_groups" or "tuning"."""
    parts: int
    """Strata, groups or candidates."""
    neighbors: Neighbors
    """The relation by which all parts together were charged."""
    budget: SavedBudget
    """Budget that all parts together were charged."""
    besides: Annotated[dict[str, float], _check_numbers] | None = None
    """Spends of counts or of a choice besides the parts, by the names of a budget's numbers; None for other kinds."""

    def __post_init__(self) -> None:
        if (self.besides is not None) != (self.kind in _WITH_MORE):
            raise InvalidInput(f"besides must be given for {' and '.join(sorted(_WITH_MORE))} alone, got {self}")

    @property
    def of_strata(self) -> bool:
        """Whether the parts are strata, of which a record may leave one for another."""
        return self.kind in {"strata", "counted_strata"}

    @property
    def counts(self) -> bool:
        """Whether the numbers of records were released as well."""
        return self.kind == "counted_strata"

    def __str__(self) -> str:
        names = {**_NAMES, **_ONLY} if self.parts == 1 else _NAMES
        return names[self.kind].format(parts=self.parts)

    def cost_of(self, part: Budget) -> Budget:
        """Return what all parts cost together, each at the budget of one, and what else was released."""
        if self.besides is not None:
            numbers = part.parameters().items()
            part = type(part)(**{name: value + self.besides.get(name, 0.0) for name, value in numbers})
        if self.of_strata:
            return cost_of_strata(part, self.neighbors)
        return times(part, self.parts) if self.kind == "groups" else part


def cost_of_strata(budget: Budget, neighbors: str) -> Budget:
    """Return the cost of all strata together; a replaced record is one removed and one added (docs/strata.md)."""
    if neighbors == "add_remove":
        return budget
    found = for_changes(budget, 2)
    if found is None:
        given = " and ".join(f"{name}={value}" for name, value in budget.parameters().items())
        raise InvalidInput(
            f"(1 + exp(epsilon)) * delta must be below 1 for strata with neighbors='replace_one', got {given}"
        )
    assert isinstance(found, PureDP | ZCDP | ApproxDP)  # noqa: S101  # for the type checker: of the same kind
    return found


def counted_strata(number: int) -> str:
    """Return so many strata in words."""
    return f"{number} {'stratum' if number == 1 else 'strata'}"
