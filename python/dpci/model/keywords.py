"""Which keywords functions take that pass them on to a fit, and what they refuse."""

import math
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from dpci.base.habits import KEYWORDS as HABITS
from dpci.base.habits import unexpected
from dpci.base.validation import check_count
from dpci.budgets import ZCDP, ApproxDP, PureDP
from dpci.errors import InvalidInput
from dpci.losses import Logistic, Loss, LossLike, Squared, check_loss
from dpci.model.settings import AUTO, Settings
from dpci.schema.columns import CategoricalColumn, NumericTarget
from dpci.schema.partial import PartialSchema, known_of
from dpci.schema.table import Schema
from dpci.sources.described import check_schema
from dpci.unit import Persons


def planned_unit(schema: Schema | None, persons: Persons | None) -> Persons | None:
    """Return the unit of a plan: where a schema names persons, every fit is of persons."""
    named = schema is not None and check_schema(schema).persons
    return Persons() if persons is None and named else persons


def n_planned_columns(n_features: object, schema: Schema | None) -> int:
    """Return the number of columns that a plan is given, or that of its schema."""
    if schema is None:
        if n_features is None:
            raise InvalidInput("n_features must be given for a plan without a schema, got None")
        return check_count("n_features", n_features, least=0)
    n_columns = len(check_schema(schema).names)
    if n_features is not None and check_count("n_features", n_features, least=0) != n_columns:
        raise InvalidInput(f"n_features must be that of the schema, {n_columns}, or None, got n_features={n_features}")
    return n_columns


def check_no_ledger(function: str, keyword: str) -> None:
    """Refuse a ledger for a function whose results no budget covers."""
    if keyword == "ledger":
        raise InvalidInput(f"{function}() takes no ledger, because it makes no private release, got ledger=")


# A schema is for functions that take tables: what others read is encoded. Those that take persons or weights say so.
CHOICES = tuple(part.name for part in fields(Settings) if part.name not in {"schema", "unit", "weights"})
"""Choices that settings keep."""
KEYWORDS = tuple(name for name in CHOICES if name not in {"on_violation", "n_public", "intercept", "n_threads"})
"""Keywords that make them: one keyword may make several of them."""
UNIT_KEYWORDS = ("persons", "weights")
MODEL_KEYWORDS = tuple(name for name in KEYWORDS if name != "seed")


_WITHOUT_RIDGE = " (dpci.fit, fit_many, fit_strata and plan need none)"


def check_keywords(
    function: str,
    keywords: Mapping[str, object],
    *,
    allowed: Collection[str] = MODEL_KEYWORDS,
    required: Collection[str] = ("budget", "l2_strength"),
    advice: Mapping[str, str] = HABITS,
) -> None:
    """Refuse what ``function``, which passes keywords on, does not know or cannot do without, in Python's own words."""
    for name in keywords:
        check_no_ledger(function, name)
        if name not in allowed:
            raise unexpected(function, name, advice, keywords)
    for name in required:
        if name == "l2_strength" and isinstance(strength := keywords.get(name), str) and strength == AUTO:
            raise InvalidInput(f"l2_strength must be a number for {function}(), got 'auto' (dpci.plan recommends one)")
        if name not in keywords:
            hint = _WITHOUT_RIDGE if name == "l2_strength" else ""
            raise TypeError(f"{function}() missing required keyword-only argument: {name!r}{hint}")


def takes_moments(loss: Loss, mechanism: object) -> bool:
    """Whether keywords of a fit ask for the moment matrix: by name, or for the squared loss."""
    if mechanism is None:
        return isinstance(loss, Squared)
    return isinstance(mechanism, str) and mechanism == "moments"


def default_loss(loss: LossLike | None, schema: Schema | None) -> Loss:
    """Return the loss of a fit: without one the usual one for the target of the schema, or for two classes."""
    if loss is not None:
        return check_loss(loss)
    return Squared() if isinstance(schema, Schema) and isinstance(schema.target, NumericTarget) else Logistic()


def takes_newton(mechanism: object, l2_strength: object, budget: object, loss: Loss) -> bool:
    """Whether keywords of a fit ask for Newton steps: by name, or without a ridge for a budget and loss that fit."""
    if mechanism is not None:
        return isinstance(mechanism, str) and mechanism == "newton"
    auto = isinstance(l2_strength, str) and l2_strength == AUTO
    core = loss.to_core()
    # Slope and curvature have bounds for every predictor.
    finite = all(map(math.isfinite, (core.slope_bound, core.curvature_bound)))
    bounded = (
        finite and not core.kinked and core.predictor_bound is None and isinstance(budget, PureDP | ZCDP | ApproxDP)
    )
    return auto and (bounded or (core.is_continued and isinstance(budget, ZCDP | ApproxDP)))


_SHARED = frozenset(
    (
        *("budget", "l2_strength", "loss", "mechanism", "schema", "unit", "weights"),
        *("rows", "intercept", "on_violation", "neighbors", "n_public", "n_threads", "seed"),
    )
)
# The keywords that only perturbation of the objective or the output uses, with their defaults: whatever is new, too.
_UNUSED: dict[str, object] = {part.name: part.default for part in fields(Settings) if part.name not in _SHARED}


def used_keywords(
    keywords: dict[str, Any], mechanism: str = "moments", *, allowed: tuple[str, ...] = (), advice: str = ""
) -> dict[str, Any]:
    """Return keywords of :func:`dpci.fit` without the mechanism, and without those that only other mechanisms use.

    ``allowed``: keywords that this mechanism uses, too; ``advice``: end of the message about others.
    """
    unused = {name: default for name, default in _UNUSED.items() if name not in allowed}
    for name, default in unused.items():
        value = keywords.get(name, default)
        if not (value is default or (isinstance(value, str | int | float) and value == default)):
            # Arrays are records, which no message shows.
            shown = (
                f"{name}={value!r}" if isinstance(value, str | int | float) else f"an object of {type(value).__name__}"
            )
            raise InvalidInput(
                f"{name} must be {default!r} with mechanism={mechanism!r}, which does not use it, got {shown}{advice}"
            )
    return {name: value for name, value in keywords.items() if name not in {*unused, "mechanism"}}


def check_references(schema: Schema | PartialSchema, *, fit_intercept: bool, ridge: str) -> None:
    """Refuse regressors that are collinear whatever the table holds: indicators of all categories beside the like.

    ``ridge``: the keyword by which they can be fitted all the same.
    """
    known, later = known_of(schema), set()
    if isinstance(schema, PartialSchema) and schema.counts_share is not None:
        # The most common category of a list.
        later = {column.name for column in schema.unlisted}
    whole = [
        column
        for column in known.columns
        if isinstance(column, CategoricalColumn) and column.reference is None and column.covers_all
        if column.name not in later
    ]
    if not known.terms and len(whole) + fit_intercept > 1:
        first = whole[0]
        example = f", such as reference={first.categories[0]!r}" if first.categories else ""
        raise InvalidInput(
            "categorical columns need a reference category where there is no ridge, because the indicators of all "
            f"categories have the sum 1, like those of another column or the intercept, got none for {first.name!r}: "
            f"set reference= of the column{example}, write the model as a formula, or pass {ridge}"
        )
