"""``fit``: settings, reading, paying and releasing of a multinomial logistic regression."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, cast

from numpy.typing import ArrayLike

from dpci.base.habits import KEYWORDS
from dpci.base.validation import advised
from dpci.budgets import ZCDP, Budget, NeighborsLike
from dpci.data.labels import Label, SeveralClasses, check_several_classes
from dpci.data.parts import PartRules
from dpci.data.rows import Rows, Source, is_dask
from dpci.errors import InvalidInput
from dpci.inference.remarks import remarks
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.ledger.run import Kind, Outcome, Paid, run
from dpci.losses import Loss
from dpci.mechanisms import MechanismLike
from dpci.model.fit import AnyRows, AnySpec, fit_rows, spec_of
from dpci.model.settings import Settings, fit_keywords
from dpci.multinomial.record import Multinomial, MultinomialRecord, block_names
from dpci.multinomial.result import MultinomialFit
from dpci.released.model import record_of
from dpci.rows import BallLike, read_ball
from dpci.schema.columns import CategoricalTarget
from dpci.schema.table import Schema, far_columns
from dpci.sources.chunks import Chunks
from dpci.sources.described import check_schema, source_of
from dpci.unit import PersonsLike, Weights, given_unit


@advised(KEYWORDS)
def fit(
    X: AnyRows,
    y: ArrayLike | None = None,
    *,
    budget: Budget,
    classes: Sequence[Any] | None = None,
    l2_strength: float | Literal["auto"] = "auto",
    mechanism: MechanismLike | None = None,
    rows: BallLike | None = None,
    neighbors: NeighborsLike = "replace_one",
    persons: PersonsLike | None = None,
    weights: Weights | None = None,
    schema: Schema | None = None,
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> MultinomialFit:
    """Fit a multinomial logistic regression with differential privacy and release what confidence intervals need.

    Each class but the first, the reference, has its own coefficients: the log odds of the class against the reference.
    The fit minimises mean loss + (l2_strength / 2) * ||params||**2, with a random linear term (objective perturbation)
    or with noise added to the minimiser (output perturbation). The whole result is differentially private at the
    budget, for the relation of ``neighbors``, over data that obey the public bounds. Proofs:
    docs/proofs/multinomial.md.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n_samples, n_features)
        Rows with Euclidean norm at most ``rows``. Or rows in parts: :class:`dpci.Chunks`, or a Dask array or frame
        (docs/scale.md). With ``schema``: a table with its columns, a file or chunks of tables, as for :func:`dpci.fit`.
    y : array-like of shape (n_samples,)
        The class of each row. None with ``schema``, whose table has the target, and for parts that hold their targets.
    budget : PureDP, ZCDP or ApproxDP
        The budget of the fit.
    classes : sequence of labels
        The public classes, 3 to 20 of them, the reference first. They are not inferred, because the labels that occur
        are private. None with ``schema``, whose target has them.
    l2_strength : float or "auto"
        Public λ > 0; it acts on the intercepts too, and the intervals are for the minimiser with this λ. The noise of
        output perturbation is proportional to 1/λ; objective perturbation needs a least λ, which a refusal names.
        "auto": see :func:`dpci.fit`.
    mechanism : {"objective", "output"} or object of dpci.mechanisms, optional
        Where the noise is added: to the risk as a random linear term, or to the minimiser. None: "output" under ZCDP,
        otherwise "objective".
    rows : float, "clip" or Clipped, optional
        Public bound on the Euclidean norm of a row, without the constant. None: 1, which every row of a schema has.
        Longer rows are refused; "clip", and ``dpci.rows.Clipped(norm)``, scales them down to the bound.
    neighbors : "replace_one" or AddRemove
        See :func:`dpci.fit`.
    persons : array-like of shape (n_samples,), str or Persons, optional
        See :func:`dpci.fit`: the person to whom each row belongs, and how much the rows of a person count. The unit
        of privacy is then the person, and the covariance is cluster-robust (docs/persons.md).
    weights : Weights, optional
        See :func:`dpci.fit`: how much each row counts, with the public bound and total (docs/weights.md).
    schema : dpci.schema.Schema, optional
        Public description of the table, with a :class:`~dpci.schema.CategoricalTarget` and the encoding "unit_norm".
        The table is encoded in the fit, and results are in its units.
    ledger, seed
        See :func:`dpci.fit`.

    Returns
    -------
    MultinomialFit
        Parameters, intervals, probabilities and the record of what was spent.

    Raises
    ------
    InvalidInput
        For arguments out of range, malformed data, and labels that are not among the classes.
    RowNormViolation, RegularizationTooSmall, NotConverged, BudgetExceeded, LedgerError, ReleaseFailed
        See :func:`dpci.fit`. Nothing is released by any error.

    Warns
    -----
    SeededNoiseWarning
        If a seed is given.

    Examples
    --------
    >>> import numpy as np, dpci
    >>> X = np.tile([[0.8], [0.0], [-0.8]], (2000, 1))
    >>> y = np.tile(["a", "b", "c"], 2000)
    >>> budget = dpci.ZCDP(rho=0.5)
    >>> result = dpci.multinomial.fit(X, y, budget=budget, classes=["a", "b", "c"], l2_strength=0.01)
    >>> result.names
    ('b:x0', 'b:intercept', 'c:x0', 'c:intercept')
    """
    if schema is None and isinstance(X, Chunks):
        schema = None if X.schema is None else check_schema(X.schema)
    call = dict(locals())
    known = public_classes(classes, schema)
    check_norm(rows, schema)
    unit, weighing, beside = given_unit(persons, weights)
    decided = {"classes": None, "persons": unit, "weights": weighing}
    settings = multinomial_settings(len(known), schema=schema, **{**fit_keywords(call), **decided})
    payment = Payment.of("dpci.multinomial.fit", ledger, settings, budget=budget)
    return release_fit(source_of(Source(X, y, beside), schema), known, settings, payment=payment)


def release_fit(
    source: Source,
    classes: tuple[Label, ...],
    settings: Settings,
    *,
    payment: Payment,
    inferred: bool = False,
) -> MultinomialFit:
    """Fit with validated keywords, see :func:`fit`.

    ``inferred``: the classes were inferred from the labels, which the result says.
    """
    # A schema codes its classes 0, 1, 2, ...
    coded = classes if settings.schema is None else tuple(range(len(classes)))

    def labelled(source: Source) -> Source:
        # The classes of parts are with their rules.
        in_parts = source.y is None or is_dask(source.X)
        return source if in_parts else source._replace(y=SeveralClasses(source.y, coded))

    def release(rows: Rows, spec: AnySpec, paid: Paid) -> Outcome[MultinomialFit]:
        named = dataclasses.replace(rows, names=block_names(classes, rows.names), classes_inferred=inferred)
        fit = fit_rows(named, spec, settings, paid=paid)
        return MultinomialFit(MultinomialRecord(record_of(fit), classes)), remarks(record_of(fit))

    kind = Kind(
        choices=settings,
        resolve=lambda n, k: spec_of(settings, n, k, budget=payment.budget),
        release=release,
        parts=dataclasses.replace(PartRules.of(settings), several=coded),
        arrange=labelled,
    )
    return run(payment, kind, source)


def multinomial_settings(n_classes: int, *, schema: Schema | None = None, **keywords: Any) -> Settings:  # noqa: ANN401  # of fit
    """Return the settings of a fit of so many classes, from the keywords of :func:`fit` that they have."""
    # Settings ask a loss for its name and for the core's loss alone.
    loss = cast("Loss", Multinomial(n_classes))
    if keywords.get("mechanism") is None:
        # The shorter intervals (docs/evidence/multinomial.md): under zCDP output perturbation alone is Gaussian.
        keywords["mechanism"] = "output" if isinstance(keywords.get("budget"), ZCDP) else "objective"
    settings = Settings.checked(**keywords)
    if schema is None:
        return dataclasses.replace(settings, loss=loss)
    if check_schema(schema).encoding != "unit_norm":
        raise InvalidInput(
            "schema must have encoding='unit_norm' for dpci.multinomial.fit, whose rows lie in a ball, got "
            f"encoding={schema.encoding!r}"
        )
    if far_columns(schema):
        raise InvalidInput(
            'outside must be "clip" or "error" in the columns of a schema for dpci.multinomial.fit, got "weight"'
        )
    return dataclasses.replace(settings, loss=loss, schema=schema, rows=schema.domain)


def check_norm(rows: object, schema: Schema | None) -> None:
    """Refuse blocks, and a bound on rows that a schema bounds."""
    domain = read_ball(rows).domain
    if schema is not None and domain is not None:
        raise InvalidInput(f"rows must be None or 'clip' with a schema, whose rows have norm at most 1, got {domain!r}")


def public_classes(classes: object, schema: Schema | None) -> tuple[Label, ...]:
    """Return the public classes, as they are given or as the schema has them."""
    if schema is None:
        return check_several_classes(classes)
    target = check_schema(schema).target
    if not isinstance(target, CategoricalTarget):
        raise InvalidInput(
            "the target of the schema must be a CategoricalTarget, which has three classes or more, for "
            f"dpci.multinomial.fit, got {target!r}"
        )
    if classes is not None and check_several_classes(classes) != target.labels:
        raise InvalidInput(f"classes must be those of the schema, {target.labels!r}, or None, got {classes!r}")
    return target.labels
