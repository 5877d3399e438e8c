"""``ModelRecord``: the parameters and the public facts of a linear model, whichever way it was made."""

import math
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dpci.base.codec import NotNegative, Positive, Rule, check_interval
from dpci.base.validation import (
    broken,
    check_choice,
    check_different,
    check_flag,
    check_not_negative,
    check_positive,
    check_real,
)
from dpci.data.labels import Classes, check_classes
from dpci.errors import InvalidInput
from dpci.losses import NAMES, PARAMETERS, LossFacts, declaration, facts_of, from_declaration
from dpci.released.record import Record


def check_labels(name: str, value: object) -> Classes:
    """Return (negative, positive)."""
    classes = check_classes(value)
    for label in classes:
        # An integer may be too great to be compared with targets.
        if not isinstance(label, str) and math.isinf(number := check_real(name, label + 0)):
            raise InvalidInput(f"{name} must be within the range of floats, got {number}")
    return classes


def check_saved_loss(name: str, value: object) -> dict[str, Any]:
    """Return the declaration of a loss."""
    if not isinstance(value, dict):
        raise broken(name, "an object", value)
    for key, rule in _LOSS_RULES.items():
        if key not in value:
            raise InvalidInput(f"{name} must have {key}, got {name}={value!r}")
        rule(f"{name}.{key}", value[key])
    for key in PARAMETERS:
        check_positive(f"{name}.{key}", value.get(key, 1.0))
    built_in = from_declaration(value)
    if built_in is not None and value != declaration(built_in, built_in.to_core()):
        raise InvalidInput(f"{name} must have the declaration of {built_in!r}, got {name}={value!r}")
    return value


def _optional(rule: Rule) -> Rule:
    return lambda name, value: None if value is None else rule(name, value)


_LOSS_RULES: dict[str, Rule] = {
    "name": lambda name, value: check_choice(name, value, NAMES),
    "slope_bound": _optional(check_positive),
    "curvature_bound": _optional(check_positive),
    "predictor_bound": _optional(check_positive),
    "strong_convexity": check_not_negative,
    "one_signed": check_flag,
    "target_bounds": _optional(check_interval),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelRecord(Record):
    """Record of a linear model; (k,) is the number of parameters."""

    params: NDArray[np.float64]
    """Parameters, the intercept last."""
    names: tuple[str, ...]
    """Names of the parameters."""
    classes: Annotated[Classes, check_labels] | None
    """(negative, positive); None for real targets."""
    classes_inferred: bool
    """Whether the classes were inferred from the labels, so that they are not public."""
    loss: Annotated[dict[str, Any], check_saved_loss]
    """Declaration of the loss: name, parameter and public bounds."""
    l2_strength: NotNegative
    """λ as it was used: with what the variant "cms11" added."""
    radius: Positive | None
    """Bound on the norm of the parameters; None where there is none."""
    intercept_scale: Positive | None
    """The constant appended to every row; None: none."""

    def check(self) -> None:
        """Refuse names that are equal, of which an interval would not say which parameter it is for."""
        super().check()
        check_different(f"names of parameters in {self.WHAT} must differ", self.names)

    @property
    def chosen(self) -> tuple[str, ...]:
        """Choices that must not depend on the data."""
        return (*super().chosen, "classes", "formula", "loss")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the rows: those of the parameters without the intercept."""
        return self.names if self.intercept_scale is None else self.names[:-1]

    @cached_property
    def loss_facts(self) -> LossFacts:
        """Facts of the loss."""
        return facts_of(self.loss)

    @property
    def params_norm(self) -> float:
        """Euclidean norm of the parameters; infinite where their squares are beyond the range of floats."""
        with np.errstate(all="ignore"):  # saved records may hold any numbers
            return float(np.linalg.norm(self.params))

    @property
    def constants(self) -> dict[str, Any]:
        """The public numbers that the theorem is about."""
        names = ("l2_strength", "radius", "intercept_scale")
        return {**super().constants, **{name: getattr(self, name) for name in names}, "loss": deepcopy(self.loss)}
