"""The keywords of a fit: validated together before any data are looked at, then one specification for the core."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypedDict, Unpack

from dpci import _core
from dpci.base.validation import (
    broken,
    check_not_negative,
    check_positive,
    check_real,
)
from dpci.budgets import (
    Budget,
    Neighbors,
    NeighborsLike,
    PureDP,
    check_budget,
    core_budget,
    read_neighbors,
)
from dpci.data.arrays import OnViolation, Treatment
from dpci.data.labels import Classes, check_classes
from dpci.data.rows import Rows
from dpci.errors import InvalidInput
from dpci.losses import (
    COUNTS,
    SEVERAL,
    Logistic,
    Loss,
    LossLike,
    SoftLogistic,
    check_loss,
    completed,
    declaration,
    describe,
)
from dpci.mechanisms import (
    Mechanism,
    MechanismLike,
    Moments,
    NewtonSteps,
    ObjectivePerturbation,
    OutputPerturbation,
    check_mechanism,
)
from dpci.released.choices import NoisyChoices
from dpci.released.record import FitRecord
from dpci.rows import Ball, Blocks, RowDomain, RowsLike, core_rows, read_rows
from dpci.schema.columns import CategoricalTarget, NumericTarget
from dpci.schema.parts import schema_classes
from dpci.schema.table import Schema, fitted_constant, on_violation_of
from dpci.sources.described import check_schema
from dpci.unit import Persons, PersonsLike, Weights, check_unit, check_weights, core_terms

AUTO: Literal["auto"] = "auto"
"""λ that public values recommend, once they are all known."""


def _optional(rule: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else rule(value)


def check_strength(value: object) -> float | Literal["auto"]:
    """Return λ, or that public values choose it."""
    if isinstance(value, str) and value == AUTO:
        return AUTO
    if isinstance(value, str) or value is None:
        raise broken("l2_strength", "a real number or 'auto'", value)
    return check_real("l2_strength", value)


# Of each keyword alone; :class:`Settings` looks at those that depend on another.
_RULES: dict[str, Callable[[Any], Any]] = {
    "budget": check_budget,
    "l2_strength": check_strength,
    "loss": check_loss,
    "mechanism": lambda value: value if isinstance(value, NewtonSteps) else check_mechanism(value),
    "classes": _optional(check_classes),
}

# What the target of a schema is, whether it is a number; what a loss must take then, and the usual one.
_TARGETS = (("has two classes", "two classes", "logistic"), ("is a number", "real targets", "squared"))
_WITHOUT_MOMENTS: dict[str, Any] = {
    "hessian": None,
    "gradient_cov": None,
    "projection": "none",
    "noise_spectral_radius": 0.0,
}


def default_mechanism(loss: Loss) -> Mechanism:
    """Return the mechanism of a fit that names none: of the objective, but for the hinge, whose kink it cannot take."""
    return OutputPerturbation() if loss.to_core().kinked else ObjectivePerturbation()


class CommonKeywords(TypedDict, total=False):
    """The keywords of :func:`dpci.fit` that all functions take that pass keywords on."""

    classes: Sequence[Any] | None
    rows: RowsLike | None
    neighbors: NeighborsLike


class OtherKeywords(CommonKeywords, total=False):
    """The keywords of :func:`dpci.fit` but those that decide what it returns, its budget, schema and ledger."""

    l2_strength: float | Literal["auto", "private"]
    persons: PersonsLike | None
    weights: Weights | None
    seed: int | None


class BudgetlessKeywords(CommonKeywords, total=False):
    """The keywords of :func:`dpci.fit` that say what is fitted, but not at which budget."""

    l2_strength: float | Literal["auto"]
    loss: LossLike | None
    mechanism: MechanismLike | NewtonSteps | Literal["newton"]


class ModelKeywords(BudgetlessKeywords, total=False):
    """The keywords of :func:`dpci.fit` that say what is fitted, for functions that pass them on."""

    budget: Budget


class FitKeywords(ModelKeywords, total=False):
    """The keywords of :func:`dpci.fit`, for functions that pass them on."""

    persons: Persons | None
    weights: Weights | None
    seed: int | None


class DerivedFacts:
    """Consequences of the public choices of a fit or of a baseline."""

    loss: Loss
    classes: Classes | None
    intercept: float | None
    """The constant that the core appends to every row."""
    rows: RowDomain
    on_violation: OnViolation
    n_threads: int | None

    @property
    def encoded_loss(self) -> Loss:
        """The loss with all parameters, for the targets that the core takes."""
        return completed(self.loss)

    @cached_property
    def core_loss(self) -> _core.Loss:
        """The loss as the core takes it."""
        return self.encoded_loss.to_core()

    @property
    def declared_loss(self) -> dict[str, Any]:
        """Public facts of the loss, for a record."""
        return declaration(self.encoded_loss, self.core_loss)

    @property
    def two_classes(self) -> bool:
        """Whether the loss takes two classes rather than real targets."""
        return self.core_loss.target_bounds is None

    @property
    def has_constant(self) -> bool:
        """Whether the last parameter is that of a constant."""
        return self.intercept is not None

    def check_targets(self) -> None:
        """Refuse classes for a loss that has none."""
        if self.classes is not None and not self.two_classes:
            raise broken("classes", "None for a loss with real targets", self.classes)

    @property
    def row_norm(self) -> float:
        """Euclidean bound on the rows, without the intercept."""
        return self.rows.norm


def fit_keywords(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call that are keywords of a fit."""
    return {name: value for name, value in call.items() if name in FitKeywords.__optional_keys__}


@dataclass(frozen=True, kw_only=True)
class Settings(DerivedFacts, NoisyChoices):
    """The keywords of a fit: :meth:`checked` makes them of the caller's. All are public; none is computed from data."""

    budget: Budget
    l2_strength: float | Literal["auto"] = AUTO
    loss: Loss = field(default_factory=Logistic)
    mechanism: Mechanism | NewtonSteps = field(default_factory=ObjectivePerturbation)
    classes: Classes | None = None
    intercept: float | None = 1.0
    rows: RowDomain = field(default_factory=Ball)
    on_violation: OnViolation = "error"
    neighbors: Neighbors = "replace_one"
    n_public: int | None = None
    seed: int | None = None
    schema: Schema | None = None

    @classmethod
    def checked(cls, *, schema: Schema | None = None, **keywords: Unpack[FitKeywords]) -> "Settings":
        """Return the settings that a caller's keywords describe; those that a schema decides are taken from it."""
        values: dict[str, Any] = {**keywords}
        if values.get("mechanism") is None:
            values["mechanism"] = default_mechanism(check_loss(values.get("loss", Logistic.name)))
        rows, on_violation, constant = read_rows(values.pop("rows", None))
        if schema is not None:
            on_violation = on_violation_of(check_schema(schema), on_violation)
        relation = read_neighbors(values.pop("neighbors", "replace_one"))
        unit, weights = check_unit(values.pop("persons", None)), check_weights(values.pop("weights", None))
        if rows is None:
            rows = Ball() if schema is None else check_schema(schema).domain
        checked = {name: _RULES[name](value) if name in _RULES else value for name, value in values.items()}
        kept = None if schema is None else check_schema(schema)
        bounded: dict[str, Any] = {"rows": rows, "on_violation": on_violation, "intercept": constant}
        return cls(**checked, **relation, **bounded, unit=unit, weights=weights, schema=kept)

    def __post_init__(self) -> None:
        # Without regularisation only by Newton steps, or for a loss that declares strong convexity, which the core
        # looks at.
        strong = getattr(self.loss, "strong_convexity", 0.0) > 0.0 or isinstance(self.mechanism, NewtonSteps)
        if not self.is_auto:
            strength = (check_not_negative if strong else check_positive)("l2_strength", self.l2_strength)
            object.__setattr__(self, "l2_strength", strength)
        super().__post_init__()
        if self.schema is not None:
            self._take(self.schema)
        self.check_targets()

    @property
    def radius(self) -> float | None:
        """Bound on the norm of the parameters."""
        return self.mechanism.radius

    @property
    def moments(self) -> Moments:
        """How the matrices behind the intervals are released."""
        default: Moments = "levels" if self._has_levels else "joint"
        return self.mechanism.moments or ("none" if self.core_loss.kinked else default)

    @property
    def _has_levels(self) -> bool:
        """Whether level totals are released: where the intervals have a law that counts them."""
        mechanism = self.mechanism
        return (
            isinstance(mechanism, ObjectivePerturbation)
            and isinstance(self.budget, PureDP)
            and self.loss.name == Logistic.name
            and (self.unit, self.weights) == (None, None)
            and (mechanism.projection, mechanism.calibration) in {("auto", "tight"), ("noise_aware", "tight")}
            and self.intercept is not None
            and isinstance(self.rows, Blocks)
            and self.schema is not None
            and self.schema.has_levels
        )

    def without_moments(self) -> "Settings":
        """Return the settings of a fit that releases parameters alone."""
        assert not isinstance(self.mechanism, NewtonSteps)  # noqa: S101  # which release both together
        return replace(self, mechanism=replace(self.mechanism, moments="none", split=None))

    @property
    def treatment(self) -> Treatment:
        """How the core treats rows beyond their bounds: Newton steps weigh them themselves."""
        weighs = isinstance(self.mechanism, NewtonSteps) and self.on_violation == "weight"
        return "keep" if weighs else self.on_violation

    @property
    def is_auto(self) -> bool:
        """Whether public values choose λ."""
        return isinstance(self.l2_strength, str) and self.l2_strength == AUTO

    @property
    def strength(self) -> float:
        """Number λ, for functions that take no other."""
        if isinstance(self.l2_strength, str):
            raise broken("l2_strength", "a number for this function", self.l2_strength)
        return self.l2_strength

    @property
    def encoded_loss(self) -> Loss:
        """The loss with all parameters, from units of a table those of the targets that its schema encodes."""
        return completed(self.loss, self._target_unit)

    @property
    def loss_words(self) -> str:
        """The loss in one phrase, in units of the table."""
        return describe(self.declared_loss, self._target_unit)

    @property
    def _target_unit(self) -> float | None:
        return None if self.schema is None else self.schema.target_unit

    def _take(self, schema: Schema) -> None:
        """Take the classes of a schema, and refuse what contradicts it."""
        classes = schema_classes(schema)
        if isinstance(schema.target, CategoricalTarget) != (self.loss.name == SEVERAL):
            raise InvalidInput(
                "a schema whose target has several classes is for dpci.multinomial.fit alone, got "
                f"loss={self.loss.name!r} with the target {schema.target.column!r}"
            )
        if (classes is None) == self.two_classes:
            kind, wanted, name = _TARGETS[classes is None]
            raise InvalidInput(
                f"loss must take {wanted} where the schema's target {kind}: pass loss={name!r} "
                f"(dpci fit --loss {name}), got loss={self.loss!r}"
            )
        if self.classes not in {None, classes}:
            raise InvalidInput(f"classes must be those of the schema, {classes!r}, or None, got {self.classes!r}")
        _check_counts(self.loss.name, schema)
        if self.loss.name == SoftLogistic.name and getattr(schema.target, "scale", "unit") != "unit":
            raise InvalidInput(
                "the target of a schema must have scale='unit' and an intercept for the soft_logistic loss, which "
                f"models a share of the range of its bounds, got {schema.target}"
            )
        if self.rows not in (Ball(schema.row_norm), schema.rows):
            raise InvalidInput(f"rows must be those of the schema, {schema.domain!r}, got {self.rows!r}")
        object.__setattr__(self, "intercept", fitted_constant(schema, self.intercept))
        object.__setattr__(self, "classes", classes)

    def spec(
        self, n_samples: int, n_columns: int, *, budget: Budget | None = None, l2_strength: float | None = None
    ) -> _core.Spec:
        """Return the specification for a table of this size, calibrated; studies put other values in two places."""
        mechanism = self.mechanism
        assert not isinstance(mechanism, NewtonSteps)  # noqa: S101  # they have a specification of their own
        self.rows.check_columns(n_columns)
        return _core.Spec(
            core_terms(self.public_n(n_samples), self.neighbors, self.unit, self.weights),
            n_columns=n_columns,
            intercept=self.intercept,
            row_norm=core_rows(self.rows),
            loss=self.core_loss,
            l2_strength=self.strength if l2_strength is None else l2_strength,
            radius=mechanism.radius,
            budget=core_budget(self.budget if budget is None else budget),
            mechanism=mechanism.name,
            noise=mechanism.noise,
            variant=mechanism.variant,
            project=mechanism.project,
            split=mechanism.shares,
            moments=self.moments,
            projection=mechanism.projection,
            calibration=mechanism.calibration,
        )

    def record(self, spec: _core.Spec | _core.NewtonSpec, rows: Rows, release: Mapping[str, Any]) -> FitRecord:
        """Return what a release leaves behind; one without moments need not have their fields."""
        public = {
            **self.public_record(spec),
            "names": rows.names,
            "named_columns": rows.named_columns,
            "classes": rows.classes,
            "classes_inferred": rows.classes_inferred,
            "table": self.schema,
        }
        common = self.recorded(rows.n_records, release, paid=release.get("paid"))
        return FitRecord(**{**public, **_WITHOUT_MOMENTS, **release, **common})

    def public_record(self, spec: _core.Spec | _core.NewtonSpec) -> dict[str, Any]:
        """Return the settings that a result keeps, as plain values, with what the specification made of them."""
        kept = ("radius", "rows", "on_violation", "neighbors", "budget", "weights")
        return {
            **{name: getattr(self, name) for name in kept},
            "l2_strength": spec.l2_strength,
            "l2_recommended": self.is_auto,
            "slope_bound": spec.slope_bound,
            "curvature_bound": spec.curvature_bound if math.isfinite(spec.curvature_bound) else None,
            "loss": self.declared_loss,
            "persons": self.unit,
            "mechanism": self.mechanism.name,
            "moments": self.moments,
            "calibration": self.mechanism.calibration,
            "variant": self.mechanism.variant,
            "project": self.mechanism.project,
            "intercept_scale": self.intercept,
        }


def _check_counts(loss: str, schema: Schema) -> None:
    """Refuse a loss of counts for a target that a schema encodes as anything but a share of its upper bound."""
    target = schema.target
    if loss in COUNTS and not schema.has_constant:
        raise InvalidInput(
            f"the formula must have an intercept, or a categorical column with all its categories, for the {loss} loss "
            "with a schema, which divides counts by their upper bound, got neither"
        )
    if loss in COUNTS and isinstance(target, NumericTarget) and (target.scale, target.lower) != ("unit", 0.0):
        got = "bounds that do not begin at 0" if target.scale == "unit" else f"scale={target.scale!r}"
        counts = f"({target.column!r}, lower=0, upper=..., scale='unit')"
        raise InvalidInput(
            f"the target of a schema must have scale='unit' and lower=0 for the {loss} loss, got {got}: type "
            f"NumericTarget{counts}, or UnboundedTarget{counts}, of which upper may be much too great"
        )
