"""``Record``: released and public values that every kind of release leaves behind, and their JSON form."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np

from dpci.accounting.costs import Seal, Step, seal_facts
from dpci.accounting.guarantee import Guarantee, seal_totals
from dpci.base.codec import Form, Saved, Version, formed
from dpci.base.validation import broken, check_count
from dpci.budgets import (
    GDP,
    ApproxDP,
    Budget,
    GaussianBudget,
    Neighbors,
    budget_from_parameters,
    gaussian_budget_from,
)
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


OBEYS_BOUNDS = "every possible record obeys the public bounds"
ENCODED_WITHIN = "the schema encodes every record that it accepts within the public bounds"
_COST_UNITS = {"pure": "epsilon", "zcdp": "rho", "approx": "mu_squared", "gdp": "mu_squared"}


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

    @property
    def cost_unit(self) -> str | None:
        """Unit in which the costs of the steps are counted: "epsilon", "rho" or "mu_squared"; None without a budget."""
        return None if self.notion is None else _COST_UNITS[self.notion]

    @property
    def spent(self) -> GaussianBudget | None:
        """Budget that the steps spent together: the whole one."""
        return self.budget

    @property
    def bounds(self) -> str:
        """The bounds that records have to obey, in words."""
        return str(self.rows)

    @property
    def choices(self) -> dict[str, Any]:
        """Public choices of the kind, as :attr:`privacy` has them."""
        raise NotImplementedError

    @property
    def constants(self) -> dict[str, Any]:
        """The public numbers that the theorem is about; a kind adds its own."""
        return {
            "n_public": self.n_samples,
            "persons": None if self.persons is None else self.persons.to_dict(),
            "weights": None if self.weights is None else self.weights.to_dict(),
            "row_norm": self.row_norm,
            "blocks": None if self.blocks is None else self.blocks.to_dict(),
            "on_violation": self.on_violation,
        }

    @property
    def chosen(self) -> tuple[str, ...]:
        """Choices that must not depend on the data, as pages and reports list them; a source is asked for each."""
        return ("budget", "bounds", "categories", "columns")

    @property
    def conditions(self) -> list[str]:
        """The assumptions of the guarantee besides the theorem."""
        rests_on = [] if self.private else ["none: the noise is seeded, so whoever knows the seed can subtract it"]
        rests_on += self._special_conditions()
        if self.on_violation == "error":
            obeys = OBEYS_BOUNDS if self.table is None else ENCODED_WITHIN
            rests_on.append(f"{obeys} ({self.bounds}); only the holder of the data sees errors")
        if self.private:
            rests_on.append(f"{', '.join(self.chosen[:-1])} and {self.chosen[-1]} were chosen without the data")
            rests_on.append("the noise is indistinguishable from random: ChaCha20 seeded by the operating system")
        rests_on.append(
            'logarithms and other elementary functions err by at most two units in the last place (the page "Noise")'
        )
        return rests_on

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee."""
        return {
            "private": self.private,
            "relation": self.neighbors,
            "unit": self.unit,
            "notion": self.notion,
            "budget": None if self.budget is None else self.budget.parameters(),
            "spent": None if self.spent is None else self.spent.parameters(),
            "cost_unit": self.cost_unit,
            "steps": [step.to_dict() for step in self.steps],
            "seal": seal_facts(self.seals),
            **self.choices,
            "constants": self.constants,
            "conditions": self.conditions,
            "version": self.version,
        }

    def guarantee(self) -> Guarantee:
        """Return the (epsilon, delta) profile and the Renyi curve of all steps and seals together."""
        budget = self.budget
        if budget is None:
            raise InvalidInput(f"a guarantee requires a private model, got {self.WHAT} without a budget")
        if not isinstance(budget, ApproxDP):
            return Guarantee(budget, None, 0.0, budget.mu if isinstance(budget, GDP) else 0.0)
        mu = float(np.hypot.reduce([step.sensitivity / step.scale for step in self.steps]))
        return Guarantee(budget, None, 0.0, mu, seal_totals(self.seals, ()))

    def _special_conditions(self) -> Iterable[str]:
        """Return conditions of the kind."""
        return ()
