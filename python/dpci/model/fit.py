"""``fit``: from rows to a private model with confidence intervals."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, overload

from numpy.typing import ArrayLike

from dpci import _core
from dpci.base.validation import broken, check_real
from dpci.budgets import Budget, Calibration, GaussianBudget, Neighbors, check_budget
from dpci.data.arrays import OnViolation, Table
from dpci.data.frames import named_columns, taken_over
from dpci.data.parts import DescribedParts, Partitions, PartRules, describe
from dpci.data.rows import Rows, Source, names_beside
from dpci.described.bounds import OF_BOUNDS, BoundsStage, check_persons, stage_within
from dpci.described.parts import GapParts, check_as_many, describe_complete, gap_cells, gap_rules
from dpci.errors import InvalidInput
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.ledger.run import Kind, Outcome, Paid, run
from dpci.losses import LossLike, Squared, check_loss
from dpci.mechanisms import MechanismLike, NewtonSteps, check_mechanism
from dpci.model.keywords import takes_moments, takes_newton
from dpci.model.newton import check_newton, newton_release, newton_spec
from dpci.model.recommend import recommended_l2_strength, with_default_rows
from dpci.model.remarks import remarks
from dpci.model.result import PrivateFit
from dpci.model.settings import FitKeywords, Moments, OtherKeywords, Projection, Settings, fit_keywords
from dpci.model.tables import source_of
from dpci.released.bounds import ReleasedBounds
from dpci.released.model import record_of
from dpci.released.whole import Whole
from dpci.rows import Blocks, RowDomain
from dpci.schema.columns import NumericTarget
from dpci.schema.partial import PartialSchema
from dpci.schema.parts import SchemaParts
from dpci.schema.table import RawTable, Schema, encoded_rows
from dpci.schema.table import Table as NamedTable
from dpci.sources.chunks import Chunks
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
    schema: Schema | None = None,
    ledger: Ledger | None = None,
    **keywords: Unpack[OtherKeywords],
) -> "LinearFit": ...


@overload
def fit(
    X: AnyRows,
    y: ArrayLike | None = None,
    *,
    budget: Budget,
    loss: LossLike = "logistic",
    mechanism: MechanismLike | Literal["newton"] | None = None,
    radius: float | None = None,
    schema: Schema | PartialSchema | None = None,
    bounds_share: float | None = None,
    ledger: Ledger | None = None,
    **keywords: Unpack[OtherKeywords],
) -> PrivateFit: ...


def fit(
    X: AnyRows,
    y: ArrayLike | None = None,
    *,
    budget: GaussianBudget,
    l2_strength: float | Literal["private"] | None = None,
    schema: Schema | PartialSchema | None = None,
    bounds_share: float | None = None,
    loss: LossLike = "logistic",
    mechanism: MechanismLike | Literal["newton", "moments"] | None = None,
    split: Sequence[float] | None = None,
    moments: Moments = "joint",
    projection: Projection = "auto",
    calibration: Calibration = "tight",
    radius: float | None = None,
    classes: Sequence[Any] | None = None,
    fit_intercept: bool = True,
    intercept_scale: float = 1.0,
    row_norm: float | None = None,
    rows: RowDomain | None = None,
    on_violation: OnViolation = "error",
    neighbors: Neighbors = "replace_one",
    n_public: int | None = None,
    persons: PersonsLike | None = None,
    weights: Weights | None = None,
    ledger: Ledger | None = None,
    n_threads: int | None = None,
    seed: int | None = None,
) -> "PrivateFit | LinearFit":
    """Fit a linear model with differential privacy and release what confidence intervals need.

    Minimises the mean loss (``mechanism="newton"``), or mean loss + (l2_strength / 2) * ||params||**2. Everything in
    the result is differentially private at the budget, for the neighbouring relation of ``neighbors``, over data that
    obey the public bounds. Do not write to ``X`` or ``y`` during the call.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows with Euclidean norm at most ``row_norm``, or in the domain ``rows``. Numbers of any type; frames keep their
        column names; SciPy's sparse matrices and arrays stay sparse. C-contiguous float64 and float32 arrays, also
        mapped files, are not copied; docs/inputs.md has the list. Or rows in parts: :class:`dpci.Chunks`, read in
        several passes, or a Dask array or frame (docs/scale.md). With ``schema`` the table as it is: a frame, a mapping
        of columns, a structured array, a ``.csv``, ``.csv.gz`` or ``.parquet`` file, chunks of tables, or a Dask frame.
    y : array-like of shape (n_samples,)
        Two classes, or real numbers for "squared", "soft_logistic", and a custom loss with ``target_bounds``, in the
        order of the rows: where ``X`` and ``y`` both have an index, as in pandas, the two must be equal. A Dask array
        or series with the partitions of ``X`` where that is a Dask collection; None if and only if the parts of ``X``
        hold their targets, or the table holds the target of ``schema``.
    budget : PureDP, ZCDP, ApproxDP or GDP
        Budget to spend. Objective perturbation takes Laplace noise under PureDP and ZCDP, Gaussian noise under
        ApproxDP. GDP is for ``mechanism="moments"`` alone.
    l2_strength : float, optional
        Regularisation λ > 0, which objective and output perturbation need. It defines the target of the intervals and
        must not depend on the data. 0 is legal only for a custom loss that declares strong convexity, and with
        ``mechanism="moments"``. There 0 is the default, and "private" takes the smallest λ that the noise allows.
        None with ``mechanism="newton"``.
    schema : dpci.schema.Schema, optional
        Public description of the table: it gives the bound on the rows, the names and the classes. It stays with the
        result, which then encodes tables by itself and gives numbers in the units of the table (docs/data.md). None:
        the schema of the chunks, if they were made with one. A :class:`dpci.schema.PartialSchema`: the bounds that it
        lacks are released first, for a part of the budget (docs/released_bounds.md).
    bounds_share : float, optional
        Share of the budget for the bounds that ``schema`` lacks, between 0 and 1. None: the smallest of 5%, 10%, 15%,
        20% and 25% at which bounds leave out no more than 5% of the values on either side, and 25% if none does.
    loss : str or object of dpci.losses
        "logistic", "huber_hinge", "smooth_hinge", "soft_logistic" (labels in [0, 1]), "squared" (targets in [-1, 1]),
        "hinge", or an object.
    mechanism : str or object, optional
        "newton": Newton steps with noisy gradients, which estimate the ordinary coefficients without a ridge
        (docs/newton.md), for losses with bounded slope and curvature.
        "objective" or "output" perturbation, or an object that also names the noise. "moments", for the squared loss:
        linear regression from one noisy moment matrix, without a radius (docs/linear_regression.md); it takes none of
        ``split``, ``moments``, ``projection``, ``calibration``, ``radius``, ``classes`` and ``intercept_scale``. None:
        "moments" for the squared loss without a radius; "newton" without ``l2_strength``; otherwise "objective".
    split : sequence of three floats, optional
        Shares of (coefficients, Hessian, gradient covariance), each above 0, with sum 1. None: (.9, .05, .05) under
        PureDP, more for the matrices with few records and few parameters, and (.95, .025, .025) otherwise
        (docs/proofs/mechanisms.md, "Accounting").
    moments : {"joint", "separate", "none"}
        How Hessian and gradient covariance are released; "none" gives the whole budget to the coefficients, and there
        are no intervals.
    projection : {"auto", "floor", "cautious", "noise_aware"}
        How intervals treat the noise in the released matrices. "noise_aware" keeps the matrices as released and counts
        their noise (docs/proofs/intervals.md, "Noise in the matrices"); "auto" is "noise_aware", or "floor" with
        ``calibration="paper"``. "floor" and "cautious" do not count it: "floor" raises eigenvalues of the Hessian below
        ``l2_strength`` to it, and "cautious" also lowers those within the noise.
    calibration : {"tight", "paper"}
        "paper" uses the constants of Wang, Kifer & Lee (separate moments, both floored at λ, shares (.5, .25, .25)),
        and those of Kifer, Smith & Thakurta for Gaussian objective perturbation (add/remove only); also private, with
        more noise.
    radius : float, optional
        Minimise over ||params|| <= radius only (intercept included). Bounds of the loss are then those on this ball;
        the squared loss needs a radius, except with ``mechanism="moments"``. The noise of output perturbation may leave
        the ball (see ``OutputPerturbation``). Intervals are refused unless the released values show that the bound does
        not bind.
    classes : (negative, positive), optional
        The public classes. None: (False, True) if ``y`` has a boolean data type. Classes of other labels, including 0
        and 1, are inferred from ``y`` with a warning; for rows in parts they are refused.
    fit_intercept : bool
        Append the constant ``intercept_scale`` to every row; its parameter is last and is regularised too, which the
        privacy proof needs.
    intercept_scale : float
        Value of that constant; the bound on the rows becomes sqrt(row_norm**2 + intercept_scale**2).
    row_norm : float, optional
        Public bound on the norm of a row, without the intercept: short for ``rows=dpci.rows.Ball(row_norm)``. None: 1,
        unless ``rows`` is given. With a schema and neither of the two: its unit ball or its blocks, whichever has the
        smaller geometric mean of the coefficients' noise, by public values (docs/data.md, "Rows in blocks").
    rows : Ball or Blocks of dpci.rows, optional
        Public domain of the rows, without the intercept, in place of ``row_norm``: :class:`dpci.rows.Blocks` bounds
        each column, or group of indicators, by itself.
    on_violation : {"error", "clip"}
        Treatment of rows and real targets beyond their bounds. "clip" scales a row down to its bound, or each of its
        blocks to the block's bound. The target of the intervals is then that of the clipped records.
    neighbors : {"replace_one", "add_remove"}
        Data sets that must be hard to tell apart: one record replaced, or one added or removed.
    n_public : int, optional
        Public stand-in for the number of records, required by (and only for) "add_remove".
    persons : array-like of shape (n_samples,), str or Persons, optional
        The person to whom each row belongs, in the order of the rows: ids of any type, or with ``schema`` the name of
        the column that holds them. The unit of privacy is then the person: neighbouring data sets differ in all rows of
        one person, n counts persons, and the target minimises the mean over persons of the mean loss of their rows
        (docs/persons.md). :class:`dpci.Persons` also bounds how many rows of a person count. No id is kept. None: every
        row is one record.
    weights : Weights, optional
        How much each row counts, such as survey weights: :class:`dpci.Weights` has the values, or with ``schema`` the
        name of the column that holds them, and the public bound and total (docs/weights.md).
    ledger : Ledger, optional
        The ledger that pays for the fit. The spend is recorded before noise is drawn. If the remaining budget is too
        small, the fit is refused before anything is computed.
    n_threads : int, optional
        Threads; None: all cores, or one for each partition of a Dask collection. The result does not depend on it.
    seed : int, optional
        For simulations and tests: the noise comes from this seed, and the result is marked as not private. None: the
        noise generator is seeded by the operating system.

    Returns
    -------
    PrivateFit or LinearFit
        Parameters, intervals and the record of what was spent; with ``mechanism="moments"`` a
        :class:`dpci.regression.LinearFit`.

    Raises
    ------
    InvalidInput
        For arguments out of range, malformed data, or a combination that is not offered.
    RowNormViolation
        For a row beyond its bounds with ``on_violation="error"``.
    RegularizationTooSmall
        If objective perturbation needs a larger ``l2_strength``; the message names it.
    NotConverged
        If the minimiser could not be certified. Nothing is released by any error.
    BudgetExceeded
        If the budget is greater than what remains in the ledger.
    LedgerError
        If the ledger cannot be read or written.
    ReleaseFailed
        With a ledger that has private errors: replaces every error that depends on the data.

    Warns
    -----
    PrivacyLeakWarning
        If the classes were inferred from ``y``, unless a seed is given.
    SeededNoiseWarning
        If a seed is given.
    MomentNoiseWarning
        If the noise in the Hessian is more than ten times the strong convexity of the objective (objective
        perturbation) or, for losses that are not a likelihood and for persons and weights, twice the mean curvature
        that the Hessian shows. With ``mechanism="moments"``, where the regressors vary no more than the noise: no
        coefficients.
    CurvatureWarning, CommonLevelWarning
        If :attr:`PrivateFit.curvature_room` is below 3 (Huber, quantile: 1); if :attr:`PrivateFit.common_levels`
        names an interval.
    FarRowsWarning
        If Newton steps limit what the rows farthest out pull at coefficients.

    Examples
    --------
    >>> import numpy as np, dpci
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> y = X[:, 0] > 0
    >>> result = dpci.fit(X, y, budget=dpci.ZCDP(rho=0.5), l2_strength=0.01)
    >>> result.names
    ('x0', 'x1', 'intercept')
    """
    if schema is None and isinstance(X, Chunks):
        schema = X.schema
    given = dict(locals())
    loss = check_loss(loss)
    partial = schema if isinstance(schema, PartialSchema) else None
    if partial is None and bounds_share is not None:
        raise broken("bounds_share", "None for a schema without gaps", bounds_share)
    described = schema.blank if isinstance(schema, PartialSchema) else schema
    if takes_moments(loss, mechanism, radius):
        # Imported when it is first used: a program that fits other losses does not wait for it.
        from dpci.model.moments import fit_moments  # noqa: PLC0415

        del given["bounds_share"]
        return fit_moments(**{**given, "loss": loss})
    steps = takes_newton(mechanism, l2_strength, budget)
    if steps:
        check_newton(given)
        l2_strength = 0.0
    if l2_strength is None:
        check_budget(budget)
        check_mechanism("objective" if mechanism is None else mechanism)
        raise TypeError(
            "fit() missing required keyword-only argument: 'l2_strength' (a fit without it needs PureDP, ZCDP or "
            "ApproxDP, and no other mechanism than 'newton')"
        )
    unit, weighing, beside = given_unit(persons, weights)
    decided: FitKeywords = {
        "budget": check_budget(budget),
        "l2_strength": check_real("l2_strength", l2_strength),
        "loss": loss,
        "mechanism": NewtonSteps() if steps else check_mechanism("objective" if mechanism is None else mechanism),
        "persons": unit,
        "weights": weighing,
    }
    settings = Settings.checked(schema=described, **{**fit_keywords(given), **decided})
    default_rows = rows is None and row_norm is None
    if default_rows and not steps:
        settings = with_default_rows(settings)
    payment = Payment.of("dpci.fit", ledger, settings, budget=settings.budget)
    source = source_of(Source(X, y, beside), schema)
    if partial is None:
        return release_fit(source, settings, payment=payment)
    return _release_with_bounds(
        source, settings, partial, payment=payment, share=bounds_share, default_rows=default_rows
    )


def release_fit(source: Source, settings: Settings, *, payment: Payment, recommended: bool = False) -> PrivateFit:
    """Fit with validated keywords, see :func:`fit`.

    ``recommended``: with the λ that public values recommend for predictions, whatever the settings have.
    """

    def release(rows: Rows, made: tuple[AnySpec, Settings], paid: Paid) -> Outcome[PrivateFit]:
        result = fit_rows(rows, *made, paid=paid)
        return result, remarks(record_of(result))

    kind = Kind(
        choices=settings,
        resolve=calibration_of(settings, payment, recommended=recommended),
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
    share: float | None,
    default_rows: bool,
) -> PrivateFit:
    """Release the bounds that a schema lacks, then fit, at one budget that is paid once; see :func:`fit`.

    ``settings`` have the blank schema, by which the table is checked before it is paid for; ``default_rows``: and the
    domain of rows that goes with it.
    """
    if source.prepare is None and not isinstance(source.X, SchemaParts):
        raise InvalidInput(f"a schema with gaps needs a table that is not encoded, got {type(source.X).__name__}")
    check_persons(settings.unit)
    if not default_rows and isinstance(settings.rows, Blocks):
        raise InvalidInput(
            "rows must be a ball or None for a schema with gaps, whose blocks follow from what is released, got "
            f"rows={settings.rows!r}"
        )
    encoded, tables = source.prepare, []

    def prepare(given: Source) -> Source:
        # Once: a stream can be read only once.
        tables.append(named_columns(given.X.table))
        assert encoded is not None  # noqa: S101  # for the type checker: of tables in memory
        return encoded(Source(RawTable(tables[0], partial.blank), source.y, given.beside))

    def resolve(n_records: int, n_columns: int) -> tuple[BoundsStage, AnySpec]:
        n, unit, neighbors = settings.public_n(n_records), settings.unit, settings.neighbors
        stage = stage_within(partial, payment.budget, n, unit=unit, neighbors=neighbors, share=share)
        return stage, spec_of(settings, n_records, n_columns, budget=stage.rest or payment.budget)

    def release(rows: Rows, made: tuple[BoundsStage, AnySpec], paid: Paid) -> Outcome[PrivateFit]:
        stage, _ = made
        threads, seed = settings.n_threads, None if settings.seed is None else settings.seed ^ OF_BOUNDS
        gaps = None if rows.parts is None else _gaps_of(source, partial, rows, settings)
        found = (
            stage.release(gap_cells(tables[0], source.y, partial), rows.persons, n_threads=threads, seed=seed)
            if gaps is None
            else stage.release_parts(gaps, seed=seed)
        )
        domain = found.schema.domain if default_rows else settings.rows
        chosen = dataclasses.replace(settings, schema=found.schema, rows=domain)
        if default_rows and not isinstance(chosen.mechanism, NewtonSteps):
            chosen = with_default_rows(chosen)
        complete = (
            _encoded_by(found.schema, tables[0], source.y, rows)
            if gaps is None
            else _described_by(found.schema, source, rows, chosen, gaps)
        )
        spec = spec_of(chosen, rows.n_records, complete.shape[1], budget=stage.rest or payment.budget)
        result = fit_rows(complete, spec, chosen, paid=paid, bounds=found.facts)
        return result, remarks(record_of(result))

    kind = Kind(choices=settings, resolve=resolve, release=release, parts=PartRules.of(settings))
    # The table has the targets that are not given.
    in_memory = source._replace(y=() if source.y is None else source.y, prepare=prepare)
    return run(payment, kind, source if encoded is None else in_memory)


def _encoded_by(schema: Schema, table: Any, y: Any, rows: Rows) -> Rows:  # noqa: ANN401  # of any library
    """Return rows in memory by the schema that released gaps complete, in place of the blank one."""
    values, targets = encoded_rows(schema, table), rows.targets
    if isinstance(schema.target, NumericTarget):  # whose bounds may be among them
        targets = schema.targets(table) if y is None else schema.target.encode(taken_over("y", y))
    core = _core.Records(values, targets, persons=rows.persons, weights=rows.weights)
    names = _names_by(schema, rows)
    return dataclasses.replace(rows, shape=values.shape, names=names, held=(values, targets), core=core)


def _names_by(schema: Schema, rows: Rows) -> tuple[str, ...]:
    # The intercept is last.
    return (*schema.names, *rows.names[rows.shape[1] :])


def _gaps_of(source: Source, partial: PartialSchema, rows: Rows, settings: Settings) -> DescribedParts:
    """Read the gaps of rows in parts once, for releases of them."""
    persons = source.beside.persons
    gaps = GapParts(source.X.tables, partial, () if persons is None else (persons,))
    found = describe(gaps, gap_rules(settings.unit, settings.n_threads, persons))
    check_as_many(found, rows)
    return found


def _described_by(schema: Schema, source: Source, rows: Rows, settings: Settings, gaps: DescribedParts) -> Rows:
    """Read rows in parts by the schema that released gaps complete; see :func:`_encoded_by`."""
    rules = dataclasses.replace(PartRules.of(settings), beside=names_beside(source.beside))
    encoded = SchemaParts(source.X.tables, schema, source.beside.names)
    parts = describe_complete(encoded, rules, gaps)
    check_as_many(parts, rows)
    shape = parts.n_rows, parts.n_columns
    return dataclasses.replace(rows, shape=shape, names=_names_by(schema, rows), parts=parts)


def calibration_of(
    settings: Settings, payment: Payment, *, recommended: bool
) -> Callable[[int, int], tuple[AnySpec, Settings]]:
    """Return the calibration of a fit for its numbers of records and columns; ``recommended`` as above."""

    def resolve(n_samples: int, n_columns: int) -> tuple[AnySpec, Settings]:
        chosen = settings
        if recommended:
            strength = recommended_l2_strength(settings, n_samples, n_columns)
            chosen = dataclasses.replace(settings, l2_strength=strength)
        return spec_of(chosen, n_samples, n_columns, budget=payment.budget), chosen

    return resolve


def spec_of(settings: Settings, n_samples: int, n_columns: int, *, budget: Budget) -> AnySpec:
    """Return the specification of a fit, calibrated; see :meth:`Settings.spec`."""
    if isinstance(settings.mechanism, NewtonSteps):
        return newton_spec(settings, n_samples, n_columns, budget=budget)
    return settings.spec(n_samples, n_columns, budget=budget)


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
    clip = settings.clip
    release: Mapping[str, Any]
    if isinstance(spec, _core.NewtonSpec):
        release = newton_release(rows, spec, settings)
    elif rows.parts is None:
        release = _core.fit(spec, rows.records, clip=clip, n_threads=settings.n_threads, seed=settings.seed)
    else:
        release = _core.fit_parts(spec, rows.parts.evaluate, first=rows.parts.first, clip=clip, seed=settings.seed)
    values = {**release, "paid": paid, "whole": whole, "released_bounds": bounds}
    return PrivateFit(settings.record(spec, rows, values))
