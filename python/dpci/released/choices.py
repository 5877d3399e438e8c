"""``NoisyChoices``: public choices that releases with noise have in common, and their fields of a record."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpci import _core
from dpci.accounting.costs import seals_from, steps_from
from dpci.base.threads import check_threads
from dpci.base.validation import check_choice, check_seed
from dpci.budgets import GaussianBudget, Neighbors, check_n_public
from dpci.data.arrays import OnViolation, Treatment
from dpci.losses import Squared
from dpci.rows import Ball, RowDomain
from dpci.schema.table import Schema
from dpci.unit import Persons, Weights, has_far_rows


def weights_of(weights: Weights | None, schema: Schema | None, *, far_rows: bool) -> Weights | None:
    """Return bound and total of the weights of records, those that only rows beyond bounds or left out have included.

    None: each record counts once.
    """
    drops = schema is not None and bool(schema.drops)
    if weights is None and (far_rows or drops):
        weights = Weights(bound=1.0, left_out=drops and not far_rows)
    return weights and replace(weights, far_rows=far_rows)


def rows_are_alike(persons: Persons | None, weights: Weights | None) -> bool:
    """Whether each row that counts is a record of its own and counts once."""
    return persons is None and (weights is None or weights.left_out)


def given_weights(weights: Weights | None, schema: Schema | None) -> Weights | None:
    """Return bound and total of weights that a caller gave; None where none did, whatever :func:`weights_of` added."""
    return None if weights == weights_of(None, schema, far_rows=has_far_rows(weights)) else weights


@dataclass(frozen=True, kw_only=True)
class NoisyChoices:
    """Public choices of a release with noise, checked; a kind adds its own, and checks its budget."""

    budget: GaussianBudget
    neighbors: Neighbors
    n_public: int | None
    n_threads: int | None = None
    seed: int | None
    on_violation: OnViolation
    unit: Persons | None = None
    """The rule for the rows of a person; None where rows are records of their own."""
    weights: Weights | None = None
    """Public bound and total of the weights of records."""

    def __post_init__(self) -> None:
        check_choice("on_violation", self.on_violation, ("error", "clip", "weight"))
        weights = weights_of(self.weights, getattr(self, "schema", None), far_rows=self.treatment == "weight")
        object.__setattr__(self, "weights", weights)
        check_choice("neighbors", self.neighbors, ("replace_one", "add_remove"))
        object.__setattr__(self, "n_public", check_n_public(self.neighbors, self.n_public))
        object.__setattr__(self, "n_threads", check_threads(self.n_threads))
        object.__setattr__(self, "seed", check_seed(self.seed))

    @property
    def treatment(self) -> Treatment:
        """How the core treats numbers beyond their bounds."""
        return self.on_violation

    def public_n(self, n_records: int) -> int:
        """Return the public number of records: ``n_public`` under add/remove, where their number is private."""
        return n_records if self.n_public is None else self.n_public

    def recorded(
        self, n_records: int, release: Mapping[str, Any], *, paid: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the fields of a record that every release has; ``release`` is what the core returns."""
        return {
            "n_samples": self.public_n(n_records),
            "on_violation": self.on_violation,
            "neighbors": self.neighbors,
            "budget": self.budget,
            "steps": steps_from(release["steps"]),
            "seals": seals_from(release["seals"]),
            "private": release["private"],
            "persons": self.unit,
            "weights": self.weights,
            "paid": paid,
            "version": _core.__version__,
        }


_NO_TARGET = Squared()
# As far as the squares of a row can be added.
_UNBOUNDED = Ball(1e150)


@dataclass(frozen=True, kw_only=True)
class NoModel(NoisyChoices):
    """Public choices of a release that fits no model and takes any rows."""

    on_violation: OnViolation = "clip"
    encoded_loss: Squared = _NO_TARGET
    two_classes: bool = False
    rows: RowDomain = _UNBOUNDED
    has_constant: bool = False
    intercept: None = None
    classes: None = None
