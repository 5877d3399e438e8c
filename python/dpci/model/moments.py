"""``fit`` with ``mechanism="moments"``: a linear regression from one released moment matrix."""

from collections.abc import Callable
from typing import Any, Literal

from numpy.typing import ArrayLike

import dpci.regression  # noqa: F401  # the package before its files, as threads that import it lock them
from dpci.base.validation import broken, in_short
from dpci.base.warn import warn
from dpci.data.rows import Source
from dpci.errors import InvalidInput, MomentNoiseWarning
from dpci.ledger.ledger import Ledger
from dpci.losses import Loss, Squared
from dpci.model.keywords import check_references, used_keywords
from dpci.model.settings import AUTO
from dpci.regression.choices.clear import Case
from dpci.regression.choices.matrix import MatrixChoices, choices_of_fit
from dpci.regression.choices.model import Model, Ridge, check_ridge
from dpci.regression.choices.planned import Regression
from dpci.regression.matrix import whole_regression
from dpci.regression.mechanism import payment_for, release_matrix
from dpci.regression.plan import MomentPlan, planned, planned_with_gaps
from dpci.regression.result import LinearFit
from dpci.released.choices import rows_are_alike, weights_of
from dpci.rows import read_rows
from dpci.schema.partial import PartialSchema, known_of
from dpci.schema.table import Schema, fitted_constant, on_violation_of
from dpci.sources.described import check_schema, source_of
from dpci.unit import Persons, PersonsLike, Weights, check_unit, check_weights, given_unit

# Those of fit that a plan may leave out.
_DEFAULTS: dict[str, Any] = {
    "l2_strength": AUTO,
    "schema": None,
    "neighbors": "replace_one",
    "rows": None,
    "seed": None,
    "persons": None,
    "weights": None,
}


def fit_moments(
    X: Any,  # noqa: ANN401  # whatever the caller has
    y: ArrayLike | None,
    *,
    persons: PersonsLike | None,
    weights: Weights | None,
    ledger: Ledger | None,
    **keywords: Any,  # noqa: ANN401  # the other keywords of ``fit``
) -> LinearFit:
    """Release a moment matrix, and return the regression of y on all columns; see :func:`dpci.fit`."""
    unit, weighing, beside = given_unit(persons, weights)
    made, model = _choices(persons=unit, weights=weighing, **keywords)
    payment = payment_for("dpci.fit", ledger, made)
    source = source_of(Source(X, y, beside), made.gaps or made.schema)
    matrix = release_matrix(source, made, payment=payment, whole=model)
    asked = model(made, matrix.columns)
    result = whole_regression(matrix, fit_intercept=asked.fit_intercept, l2_strength=asked.l2_strength)
    if result.interval_refusal is not None:
        message = (
            f"{result.interval_refusal}; regression.MomentMatrix.of(result) has the release, for other regressions"
        )
        warn(MomentNoiseWarning(message, code="hidden_by_noise"))
    return result


def plan_moments(
    *,
    n_samples: int,
    n_columns: int,
    target: str,
    like: object,
    **keywords: Any,  # noqa: ANN401  # of ``fit``
) -> MomentPlan:
    """Plan a release of :func:`fit_moments`; see :func:`dpci.plan`."""
    if target != "regularised":
        raise InvalidInput(
            f"target must be 'regularised' with mechanism='moments', which recommends no l2_strength, got {target!r}"
        )
    made, model = _choices(**{**_DEFAULTS, **keywords})
    made.core_domain(n_columns)
    columns, _ = made.all_names(None if made.schema is None else made.schema.names, n_columns)
    case, asked = Case(made, columns, n_samples, made.budget), model(made, columns)
    if made.gaps is None:
        return planned(case, asked, like=like)
    if like is not None:
        raise InvalidInput(
            f"like must be None for a schema with gaps, got {in_short(like)} (pass schema=like.schema, whose bounds "
            "are known)"
        )
    return planned_with_gaps(case, asked, made.gaps)


def _choices(
    *,
    loss: Loss,
    l2_strength: Ridge | Literal["auto"],
    schema: Schema | PartialSchema | None,
    persons: Persons | None,
    weights: Weights | None,
    **others: Any,  # noqa: ANN401  # the other keywords of ``fit``
) -> tuple[MatrixChoices, Callable[[MatrixChoices, tuple[str, ...]], Model]]:
    """Return the choices of the release, and what makes its regression of the names of the columns."""
    if not isinstance(loss, Squared):
        raise broken("loss", "'squared' with mechanism='moments'", loss)
    others = used_keywords(others)
    l2_strength = check_ridge("l2_strength", 0.0 if l2_strength == AUTO else l2_strength)
    _, beyond, constant = read_rows(others["rows"])
    fit_intercept = has_intercept(constant)
    known = None if schema is None else check_schema(known_of(schema))
    if schema is not None and known is not None:
        fit_intercept = fitted_constant(known, constant) is not None
        if l2_strength == 0.0:
            check_references(schema, fit_intercept=fit_intercept, ridge="l2_strength='private'")
        beyond = on_violation_of(known, beyond)
    weighed = weights_of(check_weights(weights), known, far_rows=beyond == "weight")
    counts = not rows_are_alike(check_unit(persons), weighed)
    made = choices_of_fit(
        loss=loss,
        schema=schema,
        unit=persons,
        weights=weights,
        robust=regression_of_counts(l2_strength, fit_intercept=fit_intercept) if counts else (),
        **others,
    )

    def whole(choices: MatrixChoices, columns: tuple[str, ...]) -> Model:
        features, targets = choices.names(columns, len(columns))
        return Model(
            target=targets[-1],
            features=features,
            fit_intercept=fit_intercept,
            l2_strength=l2_strength,
            covariance="robust" if counts else "classical",
        )

    return made, whole


def has_intercept(constant: float | None) -> bool:
    """Return whether a regression has an intercept, whose size a moment matrix does not use."""
    if constant not in {None, 1.0}:
        raise broken("intercept", "True or False with mechanism='moments', which does not use its size", constant)
    return constant is not None


def regression_of_counts(l2_strength: Ridge, *, fit_intercept: bool) -> tuple[Regression, ...]:
    """Return the regression whose residuals' moments are released for standard errors with persons or weights."""
    if isinstance(l2_strength, str):
        raise broken(
            "l2_strength",
            "a number with persons and with weights, because their standard errors are planned before the matrix is "
            "released",
            l2_strength,
        )
    if not fit_intercept:
        raise InvalidInput(
            "intercept must be True with persons and with weights, because standard errors are planned for "
            "regressions with an intercept, got False"
        )
    return (Regression(l2_strength=l2_strength),)
