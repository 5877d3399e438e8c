"""Public choices of the baselines, validated before any data are looked at, and the making of a result."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.base.threads import check_threads
from dpci.base.validation import (
    broken,
    check_choice,
    check_positive,
)
from dpci.baselines.result import BaselineFit, BaselineRecord, Method
from dpci.budgets import Budget, check_budget
from dpci.data.arrays import OnViolation, Treatment
from dpci.data.labels import Classes, check_classes
from dpci.data.rows import Rows
from dpci.errors import InvalidInput
from dpci.losses import Logistic, Loss, LossLike, Squared, check_loss
from dpci.model.settings import DerivedFacts
from dpci.released.choices import NoisyChoices
from dpci.rows import Ball, RowDomain
from dpci.unit import Persons, Weights

_UNBOUNDED = Ball(sys.float_info.max)


@dataclass(frozen=True, kw_only=True)
class Choices(DerivedFacts):
    """The public choices that every baseline has, validated."""

    loss: Loss
    intercept: float | None
    classes: Classes | None
    n_threads: int | None = None
    rows: RowDomain = _UNBOUNDED
    on_violation: OnViolation = "error"
    unit: Persons | None = None
    weights: Weights | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_threads", check_threads(self.n_threads))
        self.check_targets()

    @property
    def treatment(self) -> Treatment:
        """How the core treats what is beyond its bounds."""
        return self.on_violation

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """Public bounds of real targets; None: two classes."""
        return self.core_loss.target_bounds

    def result(self, method: Method, params: NDArray[np.float64], rows: Rows, /, **facts: Any) -> BaselineFit:  # noqa: ANN401
        """Return the result; ``facts`` are the fields of its record that a model without privacy has not."""
        defaults: dict[str, Any] = {
            "n_samples": rows.n_records,
            "persons": self.unit,
            "weights": self.weights,
            "version": _core.__version__,
            "radius": None,
            "rows": None,
            "on_violation": None,
            "n_cells": None,
            "calibration": None,
            "neighbors": None,
            "budget": None,
            "steps": (),
            "seals": (),
            "private": False,
        }
        return BaselineFit(
            BaselineRecord(
                method=method,
                params=params,
                names=rows.names,
                classes=rows.classes,
                classes_inferred=rows.classes_inferred,
                named_columns=rows.named_columns,
                loss=self.declared_loss,
                intercept_scale=self.intercept,
                **{**defaults, **facts},
            )
        )


@dataclass(frozen=True, kw_only=True)
class PrivateChoices(Choices, NoisyChoices):
    """Choices of a baseline with noise."""

    budget: Budget

    def __post_init__(self) -> None:
        Choices.__post_init__(self)
        check_budget(self.budget)
        NoisyChoices.__post_init__(self)


def polynomial_loss(loss: LossLike, target_bound: float) -> Squared | Logistic:
    """Return the loss of a functional mechanism; an object says its own ``target_bound``."""
    bound = check_positive("target_bound", target_bound)
    if isinstance(loss, Squared):
        if bound not in (1.0, loss.target_bound):
            raise InvalidInput(
                f"target_bound must equal the target_bound of the loss, {loss.target_bound}, got target_bound={bound}"
            )
        return loss
    if isinstance(loss, Logistic):
        return loss
    return Squared(bound) if check_choice("loss", loss, ("squared", "logistic")) == "squared" else Logistic()


class PolynomialNumbers(TypedDict):
    """The loss of a functional mechanism as the core takes it."""

    polynomial: Literal["squared", "logistic"]
    target_bound: float


def polynomial_numbers(loss: Squared | Logistic) -> PolynomialNumbers:
    """Return such a loss as the core takes it."""
    if isinstance(loss, Squared):
        return {"polynomial": "squared", "target_bound": loss.target_bound}
    return {"polynomial": "logistic", "target_bound": 1.0}


def public_classes(classes: Sequence[Any] | None) -> Classes | None:
    """Return the caller's (negative, positive), if given."""
    return None if classes is None else check_classes(classes)


def unbounded_loss(loss: LossLike, *, kinks: bool) -> Loss:
    """Return a loss that can be minimised without bounds on the rows."""
    checked = check_loss(loss)
    core_loss = checked.to_core()
    if core_loss.predictor_bound is not None or (core_loss.kinked and not kinks):
        smooth = "" if kinks else "smooth and "
        raise broken("loss", f"{smooth}defined for every predictor in this baseline", loss)
    return checked
