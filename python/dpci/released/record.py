"""``Record``: released and public values that every kind of release leaves behind, and their JSON form."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from dpci.accounting.seals import Seal
from dpci.accounting.steps import Step
from dpci.base.codec import Form, Saved, Version, formed
from dpci.base.validation import broken, check_count
from dpci.budgets import Budget, GaussianBudget, Neighbors, budget_from_parameters, gaussian_budget_from
from dpci.data.arrays import OnViolation
from dpci.errors import InvalidInput
from dpci.rows import Ball, Blocks, RowDomain
from dpci.schema.table import Schema
from dpci.unit import Persons, Weights


def _has_fields(name: str, value: object, *fields: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(fields):
        raise InvalidInput(f"{name} must have the fields {', '.join(fields)} and no other, got {name}={value!r}")
    return value


def saved_budget(budget: GaussianBudget) -> dict[str, Any]:
    """Return a budget as a file holds it."""
    return {"notion": budget.notion, **budget.parameters()}


def read_budget(name: str, value: object) -> Budget:
    """Return the budget of a file."""
    return budget_from_parameters(*_notion(name, value))


def _read_gaussian(name: str, value: object) -> GaussianBudget:
    return gaussian_budget_from(*_notion(name, value))


def _notion(name: str, value: object) -> tuple[str, dict[str, Any]]:
    if not isinstance(value, dict) or "notion" not in value:
        raise broken(name, "an object with a notion and its parameters", value)
    return value["notion"], {key: number for key, number in value.items() if key != "notion"}


def saved_rows(rows: RowDomain) -> dict[str, Any]:
    """Return a domain as a file holds it."""
    return {"norm": rows.norm} if isinstance(rows, Ball) else rows.to_dict()


def _read_rows(name: str, value: object) -> RowDomain:
    if isinstance(value, dict) and "norm" in value:
        return Ball(_has_fields(name, value, "norm")["norm"])
    return Blocks.from_dict(value)


def saved_table(table: Schema | None) -> dict[str, Any] | None:
    """Return a schema as a record is saved with it: with all fields, so that no default changes what it says."""
    if table is None:
        return None
    return {"digest": table.digest, "schema": table.to_dict(defaults=True)}


def _read_table(name: str, value: object) -> Schema:
    fields = _has_fields(name, value, "digest", "schema")
    schema = Schema.from_dict(fields["schema"])
    if schema.digest != fields["digest"]:
        raise InvalidInput(f"{name} must have the digest of its schema, {schema.digest}, got {fields['digest']!r}")
    return schema


_check_ledger = formed("[0-9a-f]{32}", "32 hexadecimal digits")
_check_time = formed(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "a UTC time as ledgers write it")


def _check_paid(name: str, value: object) -> dict[str, Any]:
    fields = _has_fields(name, value, "ledger", "entry", "time")
    return {
        "ledger": _check_ledger(f"{name}.ledger", fields["ledger"]),
        "entry": check_count(f"{name}.entry", fields["entry"]),
        "time": _check_time(f"{name}.time", fields["time"]),
    }


SavedBudget: TypeAlias = Annotated[Budget, Form(saved_budget, read_budget)]
SavedGaussianBudget: TypeAlias = Annotated[GaussianBudget, Form(saved_budget, _read_gaussian)]
SavedRows: TypeAlias = Annotated[RowDomain, Form(saved_rows, _read_rows)]
SavedTable: TypeAlias = Annotated[Schema, Form(saved_table, _read_table)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Record(Saved):
    """Released and public values of one release; a kind of release adds its own. Arrays are read-only."""

    STEPS: ClassVar[frozenset[str]]
    """Steps that a release of the kind can have."""
    NOISES: ClassVar[frozenset[str]]
    """Noise that they can have."""

    n_samples: int
    """The public n: ``n_public`` under add/remove."""
    named_columns: bool
    """Whether the names came with the caller's table."""
    rows: SavedRows | None
    """The public domain of the rows, without the intercept; None with bounds of another kind, or none."""
    on_violation: OnViolation | None
    neighbors: Neighbors | None
    budget: SavedGaussianBudget | None
    steps: tuple[Step, ...]
    seals: tuple[Seal, ...]
    private: bool
    version: Version
    persons: Persons | None = None
    """How much the rows of a person count, where the records are persons; None where they are rows."""
    weights: Weights | None = None
    """Public bound and total of the weights of records; None where each counts once."""
    table: SavedTable | None = None
    """The public schema by which the table was encoded; None if the caller passed encoded rows."""
    paid: Annotated[dict[str, Any], _check_paid] | None = None
    """The ledger's id, the number and the time of the entry that paid; None without a ledger."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for step in self.steps:
            if step.step not in self.STEPS or step.noise not in self.NOISES:
                raise InvalidInput(f"{self.WHAT} must have steps of its kind, got {step}")
            if step.scale == 0.0 and step.noise != "none":
                raise InvalidInput(f"the scale of noise must be > 0, got {step}")

    @property
    def notion(self) -> str | None:
        """The notion of the budget; None without a budget."""
        return None if self.budget is None else self.budget.notion

    @property
    def row_norm(self) -> float | None:
        """Radius of the ball in which rows lie, without the intercept; None for another domain."""
        return self.rows.norm if isinstance(self.rows, Ball) else None

    @property
    def blocks(self) -> Blocks | None:
        """The blocks that bound the rows; None without."""
        return self.rows if isinstance(self.rows, Blocks) else None

    @property
    def unit(self) -> str:
        """Whose privacy the release protects: "row" or "person"."""
        return "row" if self.persons is None else "person"

    @property
    def divisor(self) -> float:
        """Divisor of sums over records that weigh at most 1: their number, or the total weight over the largest."""
        return self.n_samples if self.weights is None else self.weights.divisor(self.n_samples)
