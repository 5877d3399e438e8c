"""``fit``: from rows to a private model with confidence intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, overload

from numpy.typing import ArrayLike

from dpci import _core
from dpci.base.habits import KEYWORDS
from dpci.base.validation import advised
from dpci.budgets import Budget, GaussianBudget, NeighborsLike, check_budget
from dpci.data.arrays import Table
from dpci.data.parts import Partitions, PartRules
from dpci.data.rows import Rows, Source
from dpci.described.bounds import BoundsStage
from dpci.described.within import GapsFirst
from dpci.errors import InvalidInput
from dpci.inference.remarks import remarks
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.ledger.run import Kind, Outcome, Paid, run
from dpci.losses import LossLike, Squared
from dpci.mechanisms import MechanismLike, NewtonSteps
from dpci.model.keywords import default_loss, takes_moments, takes_newton
from dpci.model.newton import check_newton, newton_release, newton_spec
from dpci.model.recommend import are_rows_given, strength_of, with_default_rows
from dpci.model.result import PrivateFit
from dpci.model.settings import OtherKeywords, Settings, check_strength, fit_keywords
from dpci.released.bounds import ReleasedBounds
from dpci.released.model import record_of
from dpci.released.whole import Whole
from dpci.rows import Blocks, RowsLike
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema
from dpci.schema.table import Table as NamedTable
from dpci.sources.chunks import Chunks
from dpci.sources.described import source_of
from dpci.unit import PersonsLike, Weights, given_unit

if TYPE_CHECKING:
    from dpci.regression.result import LinearFit

__all__ = ["fit"]

AnySpec: TypeAlias = _core.Spec | _core.NewtonSpec
AnyRows: TypeAlias = Table | NamedTable | Partitions | str | PathLike[str]


@overload
def fit(
    X: AnyRows,
    y: ArrayLike | None = None,
    *,
    budget: GaussianBudget,
    mechanism: Literal["moments"],
    loss: Literal["squared"] | Squared,
    schema: Schema | PartialSchema | None = None,
    ledger: Ledger | None = None,
    **keywords: Unpack[OtherKeywords],
) -> LinearFit: ...


@overload
def fit(
    X: AnyRows,
    y: ArrayLike | None = None,
    *,
    budget: Budget,
    loss: LossLike | None = None,
    mechanism: MechanismLike | Literal["newton"] | None = None,
    schema: Schema | PartialSchema | None = None,
    ledger: Ledger | None = None,
    **keywords: Unpack[OtherKeywords],
) -> PrivateFit: ...


@advised(KEYWORDS)
def fit(
    X: AnyRows,
    y: ArrayLike | None = None,
    *,
    budget: GaussianBudget,
    l2_strength: float | Literal["auto", "private"] = "auto",
    schema: Schema | PartialSchema | None = None,
    loss: LossLike | None = None,
    mechanism: MechanismLike | Literal["newton", "moments"] | None = None,
    classes: Sequence[Any] | None = None,
    rows: RowsLike | None = None,
    neighbors: NeighborsLike = "replace_one",
    persons: PersonsLike | None = None,
    weights: Weights | None = None,
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> PrivateFit | LinearFit:
    """Fit a linear model with differential privacy and release what confidence intervals need.

    The whole result is differentially private at the budget, over data that obey the public bounds.

    Parameters
    ----------
    X : array-like or table of shape (n_samples, n_features)
        With ``schema`` a table as it is: a frame, a mapping of columns, a file, parts. Otherwise rows of numbers
        (docs/inputs.md). Do not write to ``X`` or ``y`` during the call.
    y : array-like of shape (n_samples,), optional
        Two classes or real numbers, in the order of the rows. None where ``X`` has the targets.
    budget : PureDP, ZCDP, ApproxDP or GDP
        Budget to spend; GDP for ``mechanism="moments"`` alone.
    l2_strength : float or "auto"
        Public λ of the ridge (λ / 2) * ||params||**2, intercept included. "auto": none for "newton" and "moments",
        otherwise what public values recommend. "moments" takes "private", too: the least that the noise allows.
    schema : dpci.schema.Schema or PartialSchema, optional
        Public description of the table: bounds, names, classes, encoding. Bounds that it lacks are released first.
    loss : str or object of dpci.losses, optional
        None: "squared" for a schema whose target is a number, otherwise "logistic".
    mechanism : {"newton", "moments", "objective", "output"} or object, optional
        Where the noise enters; :class:`dpci.ObjectivePerturbation` and :class:`dpci.OutputPerturbation` have options.
        None: what suits the loss, the budget and ``l2_strength`` (docs/choose.md).
    classes : (negative, positive), optional
        Public classes of ``y``. None: (False, True) for booleans; others are inferred from ``y`` with a warning.
    rows : float, "clip", "weight", or object of dpci.rows, optional
        Public bounds, such as 2.0 for the norm of rows. None: 1, or those of the schema. What lies beyond is refused;
        "clip" moves it to the bounds, "weight" lets it weigh less. An intercept is fitted, unless
        :class:`dpci.rows.Within` says otherwise.
    neighbors : "replace_one" or AddRemove
        Tables that are hard to tell apart: with one record replaced, or one more or less, so that their number is
        private and has a public stand-in.
    persons : array-like, str or Persons, optional
        Ids of the persons to whom rows belong, or their column: the unit of privacy is then the person.
    weights : Weights, optional
        How much each row counts, with its public bound.
    ledger : Ledger, optional
        Pays before noise is drawn; refuses a fit that costs more than its rest.
    seed : int, optional
        For simulations and tests: the result is not private.

    Returns
    -------
    PrivateFit or LinearFit
        Parameters, intervals and the record of what was spent.

    Raises
    ------
    InvalidInput, RowNormViolation, RegularizationTooSmall, NotConverged, BudgetExceeded, LedgerError, ReleaseFailed
        Nothing is released by any error (docs/reference/errors.md).

    Examples
    --------
    >>> import numpy as np, dpci
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> dpci.fit(X, X[:, 0] > 0, budget=dpci.ZCDP(rho=0.5)).names
    ('x0', 'x1', 'intercept')
    """
    if schema is None and isinstance(X, Chunks):
        schema = X.schema
    given = dict(locals())
    partial = schema if isinstance(schema, PartialSchema) else None
    described = schema.blank if isinstance(schema, PartialSchema) else schema
    loss = default_loss(loss, described)
    if takes_moments(loss, mechanism):
        # Imported when it is first used: a program that fits other losses does not wait for it.
        from dpci.model.moments import fit_moments  # noqa: PLC0415

        return fit_moments(**{**given, "loss": loss})
    steps = takes_newton(mechanism, l2_strength, budget, loss)
    if steps:
        check_newton(given)
    unit, weighing, beside = given_unit(persons, weights, schema)
    decided: dict[str, Any] = {
        "budget": check_budget(budget),
        "l2_strength": 0.0 if steps else check_strength(l2_strength),
        "loss": loss,
        "mechanism": NewtonSteps() if steps else mechanism,
        "persons": unit,
        "weights": weighing,
    }
    settings = Settings.checked(schema=described, **{**fit_keywords(given), **decided})
    default_rows = not are_rows_given(rows)
    if default_rows and not steps:
        settings = with_default_rows(settings)
    payment = Payment.of("dpci.fit", ledger, settings, budget=settings.budget)
    source = source_of(Source(X, y, beside), schema)
    if partial is None:
        return release_fit(source, settings, payment=payment)
    return _release_with_bounds(source, settings, partial, payment=payment, default_rows=default_rows)


def release_fit(source: Source, settings: Settings, *, payment: Payment) -> PrivateFit:
    """Fit with validated keywords, see :func:`fit`."""

    def release(rows: Rows, spec: AnySpec, paid: Paid) -> Outcome[PrivateFit]:
        result = fit_rows(rows, spec, settings, paid=paid)
        return result, remarks(record_of(result))

    kind = Kind(
        choices=settings,
        resolve=lambda n, k: spec_of(settings, n, k, budget=payment.budget),
        release=release,
        parts=PartRules.of(settings),
    )
    return run(payment, kind, source)


def _release_with_bounds(
    source: Source,
    settings: Settings,
    partial: PartialSchema,
    *,
    payment: Payment,
    default_rows: bool,
) -> PrivateFit:
    """Release the bounds that a schema lacks, then fit, at one budget that is paid once; see :func:`fit`.

    ``settings`` have the blank schema, by which the table is checked before it is paid for; ``default_rows``: and the
    domain of rows that goes with it.
    """
    if not default_rows and isinstance(settings.rows, Blocks):
        raise InvalidInput(
            "rows must be a ball or None for a schema with gaps, whose blocks follow from what is released, got "
            f"rows={settings.rows!r}"
        )
    gaps = GapsFirst(partial, source, settings, payment.budget, settings.mechanism.name)

    def resolve(n_records: int, n_columns: int) -> tuple[BoundsStage, AnySpec]:
        stage = gaps.stage(n_records)
        return stage, spec_of(settings, n_records, n_columns, budget=stage.rest or payment.budget)

    def release(rows: Rows, made: tuple[BoundsStage, AnySpec], paid: Paid) -> Outcome[PrivateFit]:
        stage, _ = made
        found = gaps.release(stage, rows)
        domain = found.schema.domain if default_rows else settings.rows
        chosen = dataclasses.replace(settings, schema=found.schema, rows=domain)
        if default_rows and not isinstance(chosen.mechanism, NewtonSteps):
            chosen = with_default_rows(chosen)
        complete = gaps.complete(found.schema, rows, chosen)
        spec = spec_of(chosen, rows.n_records, complete.shape[1], budget=stage.rest or payment.budget)
        result = fit_rows(complete, spec, chosen, paid=paid, bounds=found.facts)
        return result, remarks(record_of(result))

    kind = Kind(choices=settings, resolve=resolve, release=release, parts=PartRules.of(settings))
    return run(payment, kind, gaps.source)


def spec_of(settings: Settings, n_samples: int, n_columns: int, *, budget: Budget) -> AnySpec:
    """Return the specification of a fit, calibrated, at the λ that goes with it; see :meth:`Settings.spec`."""
    if isinstance(settings.mechanism, NewtonSteps):
        return newton_spec(settings, n_samples, n_columns, budget=budget)
    strength = strength_of(dataclasses.replace(settings, budget=budget), n_samples, n_columns)
    return settings.spec(n_samples, n_columns, budget=budget, l2_strength=strength)


def fit_rows(
    rows: Rows,
    spec: AnySpec,
    settings: Settings,
    *,
    paid: Paid = None,
    whole: Whole | None = None,
    bounds: ReleasedBounds | None = None,
) -> PrivateFit:
    """Release a fit of rows that are read and ``paid`` for, at the budget of ``spec``, as a part of ``whole``.

    ``bounds``: those of the schema that were released before it.
    """
    on_violation, n_threads, seed = settings.on_violation, settings.n_threads, settings.seed
    release: Mapping[str, Any]
    if isinstance(spec, _core.NewtonSpec):
        release = newton_release(rows, spec, settings)
    else:
        release = _core.release(spec, rows.source, on_violation=on_violation, n_threads=n_threads, seed=seed)
    values = {**release, "paid": paid, "whole": whole, "released_bounds": bounds}
    return PrivateFit(settings.record(spec, rows, values))
