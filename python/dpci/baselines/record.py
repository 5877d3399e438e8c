"""Record of a baseline: released and public values, or a model that is not private, and their JSON form."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.seals import Seal
from dpci.accounting.steps import Step
from dpci.base.validation import broken, check_count, check_flag, check_not_negative, check_positive
from dpci.budgets import Budget, budget_from_parameters
from dpci.data.labels import Classes
from dpci.errors import InvalidInput
from dpci.losses import declaration, from_declaration
from dpci.released.rules import (
    Rule,
    built,
    check_array,
    check_interval,
    check_labels,
    check_names,
    check_seals,
    check_version,
    one_of,
    optional,
    read_saved,
    saved_text,
    steps_by,
)
from dpci.unit import Persons, Weights

SCHEMA = "dpci.BaselineFit"
SCHEMA_VERSION = 1

Method: TypeAlias = Literal["functional_mechanism", "projected_histogram", "non_private"]
NON_PRIVATE: Method = "non_private"
_SEALED: dict[Method, tuple[str, ...]] = {
    "functional_mechanism": ("polynomial", "polynomial"),
    "projected_histogram": ("the histogram",),
    NON_PRIVATE: (),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class BaselineRecord:
    """Everything that a :class:`~dpci.baselines.BaselineFit` knows. Arrays are read-only."""

    method: Method
    params: NDArray[np.float64]
    names: tuple[str, ...]
    named_columns: bool
    """Whether the names came with the caller's table."""
    classes: Classes | None
    classes_inferred: bool
    """Whether the classes were inferred from the labels, so that they are not public."""
    n_samples: int
    """The public n: ``n_public`` under add/remove; the number of records where nothing is private."""
    loss: dict[str, Any]
    """Declaration of the loss: name, parameter and public bounds."""
    l2_strength: float
    radius: float | None
    """Bound on the norm of the parameters; None where there is none."""
    intercept_scale: float | None
    row_norm: float | None
    """Public bound on the rows without intercept; None where none is needed."""
    on_violation: str | None
    n_cells: int | None
    """Cells of a histogram."""
    calibration: str | None
    neighbors: str | None
    notion: str | None
    budget: dict[str, float] | None
    """None for a model that is not private, as are the four before it."""
    steps: tuple[Step, ...]
    seals: tuple[Seal, ...]
    private: bool
    version: str
    persons: Persons | None = None
    """How much the rows of a person count, where the records are persons; None where they are rows."""
    weights: Weights | None = None
    """Public bound and total of the weights of records; None where each counts once."""

    @property
    def table(self) -> None:
        """No schema: the caller of a baseline passes encoded rows."""

    def __post_init__(self) -> None:
        params = np.array(self.params, dtype=np.float64)
        params.flags.writeable = False
        object.__setattr__(self, "params", params)
        if params.shape != (len(self.names),):
            raise InvalidInput(f"params must have shape ({len(self.names)},), got {params.shape}")
        released = self.method != NON_PRIVATE
        parts = (self.notion is not None, self.budget is not None, self.neighbors is not None, bool(self.steps))
        if any(part is not released for part in parts) or (self.private and not released):
            raise InvalidInput(
                f"a budget and its steps must be given unless method={NON_PRIVATE!r}, got method={self.method!r}"
            )
        found = tuple(seal.release for seal in self.seals)
        if found != _SEALED[self.method]:
            raise InvalidInput(f"the seals of a {self.method} must be those of {_SEALED[self.method]}, got {found}")
        if self.classes_inferred and self.classes is None:
            raise InvalidInput("classes_inferred must be False for real targets, got True")
        self.total_budget()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the rows: those of the parameters without the intercept."""
        return self.names if self.intercept_scale is None else self.names[:-1]

    def total_budget(self) -> Budget | None:
        """Return the budget as an object; None for a model that is not private."""
        if self.notion is None or self.budget is None:
            return None
        return budget_from_parameters(self.notion, self.budget)

    def to_json(self) -> str:
        """Return the record as JSON; floats survive exactly."""
        values: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        values["params"] = self.params.tolist()
        for name in ("steps", "seals"):
            values[name] = [part.to_dict() for part in values[name]]
        for name in ("persons", "weights"):
            values[name] = None if values[name] is None else values[name].to_dict()
        return saved_text(values, schema=SCHEMA, version=SCHEMA_VERSION)

    @classmethod
    def from_json(cls, text: str | bytes) -> "BaselineRecord":
        """Rebuild a record from :meth:`to_json`.

        Raises
        ------
        InvalidInput
            If the text is not such a record, or of another schema version.
        """
        values = read_saved(text, what="a saved baseline", schema=SCHEMA, version=SCHEMA_VERSION)
        return built(cls, values, _RULES, what="a saved baseline")


def _check_loss(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise broken(name, "an object", value)
    bounds = optional(check_interval)(f"{name}.target_bounds", value["target_bounds"])
    built_in = from_declaration(value)
    if built_in is None:
        one_of("custom")(f"{name}.name", value["name"])
    elif value != declaration(built_in, built_in.to_core()):
        raise InvalidInput(f"{name} must have the declaration of {built_in!r}, got {name}={value!r}")
    return {**value, "target_bounds": None if bounds is None else list(bounds)}


_STEP_RULES: dict[str, Rule] = {
    "step": one_of("polynomial", "histogram"),
    "noise": one_of("laplace", "gaussian"),
    "cost": check_positive,
    "scale": check_positive,
    "sensitivity": check_positive,
}
# What a saved record has to obey, field by field: a file can hold anything.
_RULES: dict[str, Rule] = {
    "method": one_of("functional_mechanism", "projected_histogram", NON_PRIVATE),
    "params": check_array,
    "names": check_names,
    "named_columns": check_flag,
    "classes": optional(check_labels),
    "classes_inferred": check_flag,
    "n_samples": check_count,
    "loss": _check_loss,
    "l2_strength": check_not_negative,
    "radius": optional(check_positive),
    "intercept_scale": optional(check_positive),
    "row_norm": optional(check_positive),
    "on_violation": optional(one_of("error", "clip")),
    "n_cells": optional(check_count),
    "calibration": optional(one_of("tight", "paper")),
    "neighbors": optional(one_of("replace_one", "add_remove")),
    "notion": optional(one_of("pure", "zcdp", "approx")),
    "steps": steps_by(_STEP_RULES),
    "seals": check_seals,
    "private": check_flag,
    "version": check_version,
    "persons": optional(lambda _, value: Persons.from_dict(value)),
    "weights": optional(lambda _, value: Weights.from_dict(value)),
}
