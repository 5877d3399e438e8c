"""What the baselines share: public choices, validated before any data are looked at, and how a result is made."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.accounting.seals import seals_from
from dpci.accounting.steps import Step
from dpci.base.validation import check_choice, check_flag, check_positive, check_seed, check_threads
from dpci.baselines.record import BaselineRecord, Method
from dpci.baselines.result import BaselineFit
from dpci.budgets import Budget, Neighbors, check_budget
from dpci.data.arrays import Features, Table, as_features
from dpci.data.labels import Classes, Targets, check_classes
from dpci.data.rows import encode_targets, param_names
from dpci.errors import InvalidInput, SeededNoiseWarning
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment, Till
from dpci.losses import Logistic, Loss, LossLike, Squared, check_loss, declaration
from dpci.model.settings import DerivedFacts, check_n_public

_Spec = TypeVar("_Spec")


class CoreNumbers(TypedDict):
    """Intercept, relation and budget as the core takes them; numbers that its notion does not use are 0."""

    intercept: float | None
    neighbors: str
    notion: str
    epsilon: float
    rho: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class Choices(DerivedFacts):
    """The public choices that every baseline has, validated."""

    loss: Loss
    core_loss: _core.Loss
    fit_intercept: bool
    intercept_scale: float
    classes: Sequence[Any] | None
    n_threads: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "fit_intercept", check_flag("fit_intercept", self.fit_intercept))
        object.__setattr__(self, "intercept_scale", check_positive("intercept_scale", self.intercept_scale))
        object.__setattr__(self, "n_threads", check_threads(self.n_threads))
        if self.classes is not None:
            object.__setattr__(self, "classes", check_classes(self.classes))
            if not self.two_classes:
                raise InvalidInput(f"classes must be None for a loss with real targets, got classes={self.classes!r}")

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """Public bounds of real targets; None: two classes."""
        return self.core_loss.target_bounds

    def shape(self, X: Table) -> tuple[Features, tuple[str, ...]]:
        """Return rows as the core takes them, and the names of their parameters."""
        features = as_features(X)
        return features, param_names(features.names, features.shape[1], self)

    def targets(self, X: Table, y: ArrayLike, n_samples: int) -> Targets:
        """Return targets as the core takes them, with their classes; no warning, as nothing here is private."""
        return encode_targets(X, y, self, n_samples, stacklevel=None)

    def result(
        self,
        method: Method,
        params: NDArray[np.float64],
        features: Features,
        names: tuple[str, ...],
        coding: Sequence[Any],
        **facts: Any,  # noqa: ANN401
    ) -> BaselineFit:
        """Return the result; ``facts`` are the fields of its record that a model without privacy has not.

        ``coding``: the classes of the targets, and whether they were inferred.
        """
        classes, classes_inferred = coding
        defaults: dict[str, Any] = {
            "n_samples": features.shape[0],
            "radius": None,
            "row_norm": None,
            "on_violation": None,
            "n_cells": None,
            "calibration": None,
            "neighbors": None,
            "notion": None,
            "budget": None,
            "steps": (),
            "seals": (),
            "private": False,
        }
        return BaselineFit(
            BaselineRecord(
                method=method,
                params=params,
                names=names,
                classes=classes,
                classes_inferred=classes_inferred,
                named_columns=features.names is not None,
                loss=declaration(self.loss, self.core_loss),
                intercept_scale=self.intercept,
                version=_core.__version__,
                **{**defaults, **facts},
            )
        )


class Rows(NamedTuple):
    """Rows and targets as the core takes them, and the names of their parameters."""

    features: Features
    names: tuple[str, ...]
    targets: NDArray[np.float64]
    coding: tuple[Classes | None, bool]
    """The classes of the targets, and whether they were inferred."""


@dataclass(frozen=True, kw_only=True)
class PrivateChoices(Choices):
    """Those of a baseline with noise."""

    budget: Budget
    neighbors: Neighbors
    n_public: int | None
    seed: int | None

    def __post_init__(self) -> None:
        Choices.__post_init__(self)
        check_budget(self.budget)
        check_choice("neighbors", self.neighbors, ("replace_one", "add_remove"))
        object.__setattr__(self, "n_public", check_n_public(self.neighbors, self.n_public))
        object.__setattr__(self, "seed", check_seed(self.seed))

    def payment(self, source: str, ledger: Ledger | None) -> Payment:
        """Return what the release owes its ledger."""
        return Payment.due(source, ledger, budget=self.budget, neighbors=self.neighbors, seed=self.seed)

    def core_numbers(self, budget: Budget) -> CoreNumbers:
        """Return these choices, with this budget, as the core takes them."""
        fixed = {"intercept": self.intercept, "neighbors": self.neighbors, "notion": budget.notion}
        unused = {"epsilon": 0.0, "rho": 0.0, "delta": 0.0}
        return cast("CoreNumbers", {**fixed, **unused, **budget.parameters()})

    def taken(
        self,
        X: Table,
        y: ArrayLike,
        till: Till,
        resolve: Callable[[int, int], _Spec],
        *,
        row_norm: float,
        clip: bool,
        n_public: int | None = None,
    ) -> tuple["Rows", _Spec]:
        """Return rows and targets, checked and paid for, and what is calibrated for so many."""
        features, names = self.shape(X)
        spec = resolve(*features.shape)
        stacklevel = None if self.seed is not None else 4
        found = encode_targets(X, y, self, features.shape[0], stacklevel=stacklevel)
        bounds = {"loss": self.core_loss, "intercept": self.intercept, "n_threads": self.n_threads}
        till.settle(features.values, found.values, n_public=n_public, row_norm=row_norm, clip=clip, **bounds)
        return Rows(features, names, found.values, (found.classes, found.classes_inferred)), spec

    def released(self, release: "_core.BaselineDict | _core.HistogramDict", n_samples: int) -> dict[str, Any]:
        """Return the fields of a record that follow from a release; warns if its noise is seeded."""
        if not release["private"]:
            warnings.warn(
                "the noise comes from the caller's seed: the result is NOT PRIVATE (leave seed=None to release)",
                SeededNoiseWarning,
                stacklevel=3,
            )
        return {
            "n_samples": self.public_n(n_samples),
            "neighbors": self.neighbors,
            "notion": self.budget.notion,
            "budget": self.budget.parameters(),
            "steps": tuple(Step.from_mapping(step) for step in release["steps"]),
            "seals": seals_from(release["seals"]),
            "private": release["private"],
        }


def polynomial_loss(loss: LossLike, target_bound: float) -> Squared | Logistic:
    """Return the loss of a functional mechanism; an object says its own ``target_bound``."""
    bound = check_positive("target_bound", target_bound)
    if isinstance(loss, Squared):
        if bound not in (1.0, loss.target_bound):
            raise InvalidInput(f"target_bound must be that of the loss, {loss.target_bound}, got target_bound={bound}")
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


def unbounded_loss(loss: LossLike, *, kinks: bool) -> tuple[Loss, _core.Loss]:
    """Return a loss that can be minimised without bounds on the rows, and the core's."""
    checked = check_loss(loss)
    core_loss = checked.to_core()
    if core_loss.predictor_bound is not None or (core_loss.kinked and not kinks):
        smooth = "" if kinks else "that are smooth and "
        raise InvalidInput(f"this baseline takes losses {smooth}defined for every predictor, got loss={loss!r}")
    return checked, core_loss
