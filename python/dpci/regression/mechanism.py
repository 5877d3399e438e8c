"""``release``: the noisy moment matrix of rows and targets, from which every linear regression among them follows."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from dpci import _core
from dpci.base.habits import MATRICES
from dpci.base.validation import advised, in_short
from dpci.base.warn import warn
from dpci.budgets import GDP, GaussianBudget, NeighborsLike, PureDP
from dpci.data.arrays import Table, known
from dpci.data.parts import Partitions, PartRules
from dpci.data.persons import check_columns_of_unit
from dpci.data.rows import (
    Rows,
    Source,
    as_partitions,
    check_beside_parts,
    is_dask,
    is_in_parts,
    known_names,
    names_beside,
)
from dpci.described.bounds import BoundsStage
from dpci.described.within import GapsFirst
from dpci.errors import InvalidInput, MomentNoiseWarning, RowNormViolation
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.ledger.run import Kind, Outcome, Paid, run
from dpci.losses import Squared
from dpci.regression.choices.bounds import SPARSE, StandardisedParts
from dpci.regression.choices.clear import Case
from dpci.regression.choices.matrix import MatrixChoices, choices_of_fit, matrix_choices
from dpci.regression.choices.model import Model
from dpci.regression.choices.planned import Regression, planned_model
from dpci.regression.choices.targets import Targets
from dpci.regression.matrix import MomentMatrix
from dpci.regression.record import MomentRecord
from dpci.regression.residuals import Refinement, ResidualMoments
from dpci.rows import RowsLike
from dpci.schema.partial import PartialSchema, known_of
from dpci.schema.table import Schema
from dpci.schema.table import Table as NamedTable
from dpci.sources.described import check_schema, source_of
from dpci.unit import PersonsLike, Weights, given_unit

_TARGET_BOUND = 1.0


@advised(MATRICES)
def release(
    X: Table | NamedTable | Partitions | str | PathLike[str],
    y: ArrayLike | None = None,
    *,
    budget: GaussianBudget,
    schema: Schema | PartialSchema | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    rows: RowsLike | None = None,
    target_bound: float | tuple[float, float] | Sequence[tuple[float, float]] = _TARGET_BOUND,
    robust: bool | Sequence[Regression] | None = None,
    refine: bool | Sequence[Regression] | None = None,
    neighbors: NeighborsLike = "replace_one",
    persons: PersonsLike | None = None,
    weights: Weights | None = None,
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> MomentMatrix:
    """Release the second moments of the columns of X, a constant and y, with noise.

    One release serves every linear regression of any column on any others, with confidence intervals:
    :meth:`MomentMatrix.fit` is post-processing. The whole result is differentially private at the budget, for
    the relation of ``neighbors``, over data that obey the public bounds. Proofs: docs/proofs/linear_regression.md.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows; arrays, frames, sparse matrices (without ``bounds``), :class:`dpci.Chunks` or Dask collections.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Real targets; None if X holds them. Several targets, as an array or a frame, need ``bounds``, or blocks as
        ``rows``.
    budget : PureDP, ZCDP, ApproxDP or GDP
        PureDP adds symmetric matrix Laplace noise. The others add Gaussian noise, which is far smaller with many
        columns. A ledger counts :class:`dpci.GDP` as the zCDP that it implies.
    schema : Schema or PartialSchema, optional
        Public description of the table, see :func:`dpci.fit`, in place of ``bounds``, ``rows`` but "clip", and
        ``target_bound``. Bounds that it lacks are released first, within the budget.
    bounds : (lower, upper), optional
        Public bounds of the columns: two numbers for all columns, or two arrays with a number for each. Give these if
        you know them.
    rows : float, "clip", "weight", or object of dpci.rows, optional
        Instead of ``bounds``: a public bound on the Euclidean norm of a row, or :class:`dpci.rows.Blocks`, each of
        which is scaled by its bound. None: norm 1, if ``bounds`` are not given. "clip", which goes with ``bounds`` too,
        moves numbers beyond their bounds to them; with "weight", which does not, their rows weigh less; otherwise they
        are refused. Clipping changes what is estimated.
    target_bound : float, (lower, upper), or list of (lower, upper)
        Public bound on the absolute value of the targets, or their public bounds. A list has the bounds of each of
        several targets. For rows in parts its length is the number of targets.
    robust : bool or sequence of Regression, optional
        Regressions whose intervals do not assume errors of equal variance. The moments of their squared residuals are
        released too, for a tenth of the budget, in equal parts. True: y on all columns of X; with several targets, each
        of them. None: as True with persons or weights, where regressions have no other standard errors; otherwise no
        regression.
    refine : bool or sequence of Regression, optional
        Regressions whose coefficients are refined by one step of Newton's method. The matrix then has .4 of the budget.
        The refined regressions get .6, in equal parts: .45 of it under pure DP, and .6 otherwise, shows how far the
        tail of the residuals reaches, and the rest pays for the mean of the regressors times the residuals, clipped
        there. Intervals of a refined regression are often half as long or less; those of all others are longer
        (docs/linear_regression.md). True: y on all columns.
    neighbors : "replace_one" or AddRemove
        See :func:`dpci.fit`.
    persons : array-like of shape (n_samples,), str or Persons, optional
        See :func:`dpci.fit`: the person to whom each row belongs. The matrix is then the mean over persons of the
        mean of zz' over their rows, and robust covariances are cluster-robust (docs/persons.md).
    weights : Weights, optional
        See :func:`dpci.fit`: how much each row counts, with the public bound and total.
    ledger, seed
        See :func:`dpci.fit`.

    Returns
    -------
    MomentMatrix
        The noisy matrix, and the regressions among its columns.

    Raises
    ------
    InvalidInput
        For arguments out of range, malformed data, and numbers outside their bounds without ``rows="clip"``.
        Before anything is spent: for a regression of ``robust`` that public numbers show to be within the noise.
    RowNormViolation, BudgetExceeded, LedgerError, ReleaseFailed
        See :func:`dpci.fit`.

    Warns
    -----
    SeededNoiseWarning
        If a seed is given.
    MomentNoiseWarning
        Before anything is spent, if no regression with an intercept can exceed the noise without a ridge.

    Examples
    --------
    >>> import numpy as np, dpci
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (5000, 2))
    >>> y = X @ [1.5, -2.0] + rng.normal(size=5000)
    >>> matrix = dpci.regression.release(X, y, budget=dpci.ZCDP(0.5), bounds=(0, 10), target_bound=30)
    >>> matrix.fit().names
    ('x0', 'x1', 'intercept')
    """
    if not (isinstance(ledger, Ledger) and ledger.errors == "private"):  # which pays before anything is read
        X, y = known("X", X), known("y", y)
    unit, weighing, beside = given_unit(persons, weights)
    keywords: dict[str, Any] = {
        "budget": budget,
        "rows": rows,
        "robust": robust,
        "refine": refine,
        "neighbors": neighbors,
        "unit": unit,
        "weights": weighing,
        "seed": seed,
    }
    if schema is not None:
        check_no_bounds(bounds, target_bound)
        check_schema(known_of(schema))
        choices = choices_of_fit(loss=Squared(), schema=schema, **keywords)
        payment = payment_for("dpci.regression.release", ledger, choices)
        return release_matrix(source_of(Source(X, y, beside), schema), choices, payment=payment, tell=True)
    choices = matrix_choices(Targets.checked(y, target_bound), bounds=bounds, **keywords)
    if beside.names and not is_in_parts(X):
        name = next(name for name, values in beside.given.items() if isinstance(values, str))
        raise InvalidInput(f"{name} must be an array, because all columns of X are used, got the name of a column")
    payment = payment_for("dpci.regression.release", ledger, choices)
    return release_matrix(Source(X, y, beside), choices, payment=payment, tell=True)


def check_no_bounds(bounds: object, target_bound: object) -> None:
    """Refuse bounds beside a schema, which has them."""
    is_default = isinstance(target_bound, float) and target_bound == _TARGET_BOUND
    for name, value in (("bounds", bounds), ("target_bound", None if is_default else target_bound)):
        if value is not None:
            raise InvalidInput(f"{name} must not be given with a schema, which has the bounds, got {in_short(value)}")


_Made: TypeAlias = tuple[BoundsStage | None, _core.MomentMatrixSpec]
"""Calibrated release of the gaps of a schema, None without gaps, and of the matrix."""


def payment_for(source: str, ledger: Ledger | None, choices: MatrixChoices) -> Payment:
    """Return what a release of these choices owes a ledger."""
    if isinstance(ledger, Ledger) and isinstance(ledger.total, PureDP) and isinstance(choices.budget, GDP):
        raise InvalidInput(
            f"a ledger with a total of pure DP, {ledger.total!r}, pays for pure DP only, got a budget of Gaussian DP, "
            f"{choices.budget!r}, which implies no pure DP (give dpci.PureDP, or a ledger of ZCDP or ApproxDP)"
        )
    return Payment.of(source, ledger, choices, budget=choices.charge)


def release_matrix(
    source: Source,
    choices: MatrixChoices,
    *,
    payment: Payment,
    whole: Callable[[MatrixChoices, tuple[str, ...]], Model] | None = None,
    tell: bool = False,
) -> MomentMatrix:
    """Release with validated choices, the gaps of the schema first.

    Regressions that public numbers show to be hopeless are refused before: those that ``robust`` plans, and that which
    ``whole`` makes of the names of the columns. With ``tell`` there is a warning where no other would have a chance.
    """
    _check_table(source, choices)
    if choices.schema is None:
        choices = dataclasses.replace(choices, targets=choices.targets.named(source.y))
    encoded = None if choices.schema is None else choices.schema.names
    plans = bool(choices.robust or choices.refine)
    names = (encoded or known_names(source.X)) if plans else None
    # Frames in parts have names that no one knows before they are read.
    unnamed = plans and names is None and isinstance(source.X, Partitions)
    # With persons and weights something must be planned: y on all columns stands for it.
    stand_in = (Regression(),) if choices.needs_robust else ()
    first = dataclasses.replace(choices, robust=stand_in, refine=()) if unnamed else choices
    placed: Any = None  # the rows, once there is access to them
    gaps, source = _gaps_of(source, choices, payment)

    def checked(made: MatrixChoices, n_samples: int, columns: tuple[str, ...]) -> _Made:
        stage, case = _calibrated(gaps, Case(made, columns, n_samples, payment.budget))
        # With private errors the budget is spent when the context opens: what follows must not fail for nothing.
        if not payment.private or placed is None:
            _check_case(case, whole, planned=made is choices)
            reason = case.hopeless() if tell and made is choices else None
            if reason is not None:
                warn(MomentNoiseWarning(reason, code="hidden_by_noise"))
        return stage, case.spec

    def resolve(n_samples: int, n_columns: int) -> _Made:
        # Before they are placed the rows lack further targets.
        lacking = choices.targets.further if placed is None else 0
        columns, _ = choices.all_names(names, n_columns + lacking)
        return checked(first, n_samples, columns)

    def by_name(rows: Rows) -> _Made:
        columns, _ = choices.all_names(rows.names[:-1] if rows.named_columns else None, rows.shape[1])
        return checked(choices, rows.n_records, columns)

    def standardised(prepared: Source) -> Source:
        nonlocal placed
        found = _standardised(prepared, choices)
        placed = found.X
        return found

    def released(rows: Rows, made: _Made, paid: Paid) -> Outcome[MomentMatrix]:
        return _matrix(rows, made, choices, gaps, paid), ()

    kind = Kind(
        choices=choices,
        resolve=resolve,
        release=released,
        parts=PartRules.of(choices),
        arrange=standardised,
        by_name=by_name if unnamed else None,
    )
    try:
        return run(payment, kind, source)
    except RowNormViolation:
        choices.standardise().explain(placed)
        raise


def _gaps_of(source: Source, choices: MatrixChoices, payment: Payment) -> tuple[GapsFirst | None, Source]:
    """Return the gaps of a schema, None without, and what is read."""
    if choices.gaps is None:
        return None, source
    gaps = GapsFirst(choices.gaps, source, choices, payment.budget, "moment_matrix")
    return gaps, gaps.source


def _calibrated(gaps: GapsFirst | None, case: Case) -> tuple[BoundsStage | None, Case]:
    """Return the release of the gaps of a schema, and the case of the matrix with what it leaves of the budget."""
    if gaps is None:
        return None, case
    stage = gaps.stage(case.n_samples)
    rest = stage.rest or case.budget
    return stage, dataclasses.replace(case, choices=dataclasses.replace(case.choices, budget=rest), budget=rest)


def _matrix(rows: Rows, made: _Made, choices: MatrixChoices, gaps: GapsFirst | None, paid: Paid) -> MomentMatrix:
    """Release the gaps of a schema, and the matrix of the rows that the complete schema makes."""
    (stage, spec), bounds = made, None
    if gaps is not None and stage is not None:
        found = gaps.release(stage, rows)
        bounds, choices = found.facts, choices.completed(found.schema)
        rows = gaps.complete(found.schema, rows, choices, partial(_standardised, choices=choices))
        columns, _ = choices.all_names(rows.names[:-1], rows.shape[1])
        spec = choices.spec(rows.n_records, rows.shape[1], stage.rest or choices.budget, columns)
    beside = {"paid": paid, "named_columns": rows.named_columns, "released_bounds": bounds}
    release = {**_released(rows, spec, choices), **beside}
    return MomentMatrix(record_of_release(rows.names[:-1], rows.n_records, spec, choices, release))


def _check_table(source: Source, choices: MatrixChoices) -> None:
    """Refuse persons and weights that rows in parts do not have as columns, and sparse rows with bounds."""
    check_beside_parts(source)
    X = source.X
    if is_in_parts(X) or is_dask(X):
        schema = getattr(X, "schema", None)
        check_columns_of_unit(schema.persons if isinstance(schema, Schema) else None, source.beside)
    if choices.bounds is not None and hasattr(X, "tocsr"):
        raise InvalidInput(SPARSE)


def _check_case(case: Case, whole: Callable[[MatrixChoices, tuple[str, ...]], Model] | None, *, planned: bool) -> None:
    """Refuse regressions that cannot be above the noise; those that are ``planned`` only where they are known."""
    k = len(case.columns)
    regressions = (*case.choices.planned(case.columns, k), *case.choices.refined(case.columns, k)) if planned else ()
    models = [planned_model(regression) for regression in regressions]
    for model in [*models, *([] if whole is None else [whole(case.choices, case.columns)])]:
        case.check_possible(model)


def _released(rows: Rows, spec: _core.MomentMatrixSpec, choices: MatrixChoices) -> "_core.MomentMatrixDict":
    source = rows.source
    if rows.parts is not None:
        # Every pass checks rows against their domain: the number of columns is known now.
        domain = choices.core_domain(rows.shape[1])
        rules = dataclasses.replace(rows.parts.rules, rows=domain, intercept=spec.intercept)
        source = dataclasses.replace(rows.parts, rules=rules)
    return _core.release(spec, source, on_violation=choices.treatment, n_threads=choices.n_threads, seed=choices.seed)


def _standardised(source: Source, choices: MatrixChoices) -> Source:
    """Return rows and targets as the core takes them, with their ids and weights, or the names of these in parts."""
    standardise = choices.standardise()
    partitions = as_partitions(source)
    if partitions is not None:
        return Source(StandardisedParts(partitions, standardise), None, names_beside(source.beside))
    X, y = standardise.joined(source.X, source.y)
    return Source(standardise.placed(X), standardise.last(X, y), source.beside)


def record_of_release(
    columns: tuple[str, ...],
    n_samples: int,
    spec: _core.MomentMatrixSpec,
    choices: MatrixChoices,
    release: Mapping[str, Any],
) -> MomentRecord:
    """Return the record of what the core released for these columns, further targets included."""
    n_columns = len(columns)
    place = choices.place(n_columns)
    features, targets = choices.names(columns if release["named_columns"] else None, n_columns)
    columns = (*features, *targets[:-1])
    planned = choices.planned(columns, n_columns)
    return MomentRecord(
        matrix=release["matrix"],
        residuals=tuple(
            ResidualMoments(regression=regression, point=point, moments=moments)
            for regression, (point, moments) in zip(planned, release["residuals"], strict=True)
        ),
        refined=tuple(
            Refinement(
                regression=regression, point=point, levels=levels, gradient=gradient, cap=cap, square_weight=weight
            )
            for regression, (point, levels, gradient, cap, weight) in zip(
                choices.refined(columns, n_columns), release["refined"], strict=True
            )
        ),
        columns=columns,
        target=targets[-1],
        further=targets[:-1],
        named_columns=release["named_columns"],
        middle=place[0],
        scale=place[1] / spec.weights,
        constant=spec.intercept,
        target_middle=float(choices.targets.middle[-1]),
        target_half=float(choices.targets.half[-1]),
        target_weight=spec.target_weight,
        rows=choices.domain,
        table=choices.schema,
        released_bounds=release["released_bounds"],
        **choices.recorded(n_samples, release, paid=release["paid"]),
    )
