"""Per-instance privacy: a model released together with a function that bounds what it costs each record.

The method of Redberg & Wang 2021, "Privately publishable per-instance privacy", Algorithm 2, with the corrections of
docs/per_instance.md.
"""

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from dpci import _core
from dpci.base.validation import broken, check_choice, check_flag, check_real
from dpci.budgets import AddRemove, ApproxDP, Calibration
from dpci.data.arrays import Table
from dpci.data.rows import Rows, Source
from dpci.errors import InvalidInput
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.ledger.run import Kind, Outcome, Paid, run
from dpci.losses import LossLike
from dpci.mechanisms import ObjectivePerturbation
from dpci.model.settings import FitKeywords, Settings, fit_keywords
from dpci.per_instance.bounds import Report
from dpci.per_instance.record import BOUNDS, KINDS, Bound, ReportRecord, check_shares
from dpci.per_instance.record import Kind as ReportKind
from dpci.rows import RowsLike
from dpci.sources.described import check_unit_columns
from dpci.unit import Persons, Weights, given_unit

__all__ = ["report"]


def report(
    X: Table,
    y: ArrayLike,
    *,
    budget: ApproxDP,
    l2_strength: float,
    n_public: int,
    shares: Sequence[float] = (0.2, 0.7, 0.1),
    kind: ReportKind = "data_dependent",
    simultaneous: bool = False,
    failure_probability: float = 1e-6,
    loss: LossLike = "logistic",
    calibration: Calibration = "tight",
    bound: Bound = "interpolated",
    classes: Sequence[Any] | None = None,
    rows: RowsLike | None = None,
    persons: ArrayLike | Persons | None = None,
    weights: Weights | None = None,
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> Report:
    """Fit a model by Gaussian objective perturbation, and release with it bounds on its privacy loss for each record.

    Everything in the report is differentially private at the budget, for one record added or removed, or one person
    with all rows. The report is a function: ``report(X, y)`` says how much the released model tells about given
    records. The function may be published; its values at private records may not.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows within ``rows``, as for :func:`dpci.fit`.
    y : array-like of shape (n_samples,)
        Two classes, or real numbers for a loss of real targets.
    budget : ApproxDP
        Budget to spend, all releases together.
    l2_strength : float
        Regularisation λ > 0 of the mean objective; the sum objective has the ridge n_public * l2_strength.
    n_public : int
        Public stand-in for the number of rows, or of persons, which is private under this relation.
    shares : sequence of three floats
        Shares of (coefficients, gradient, Hessian), each at least 1e-12, with sum 1. With ``calibration="tight"`` they
        divide the squared ratios (sensitivity / standard deviation)**2, as everywhere under ApproxDP; with "paper" they
        divide epsilon. Checked, but not used, by a data-independent report.
    kind : {"data_dependent", "data_independent"}
        "data_dependent" also releases the gradient and the Hessian of the objective at the parameters, which sharpen
        ``eps1`` for a model with more noise and cost ``eps2`` and ``eps3``; "data_independent" spends everything on the
        model and bounds by the ridge alone. See "Which kind" in docs/per_instance.md.
    simultaneous : bool
        Whether the bounds are for all records at once, also those chosen after seeing the report; wider.
    failure_probability : float
        Greatest probability, at least 1e-300 and below 1, that ``eps1`` is below the exact loss. It concerns
        correctness, not privacy. A data-dependent report gives one half to the gradient's bound and one half to the
        Hessian's.
    loss : str or object of dpci.losses
        See :func:`dpci.fit`.
    calibration : {"tight", "paper"}
        "tight": all releases are calibrated together. "paper": Kifer, Smith & Thakurta's noise for the coefficients and
        the analytic Gaussian mechanism for the others, each at a third of delta, which costs more.
    bound : {"interpolated", "paper"}
        How the noisy Hessian bounds the log-determinant: by its best combination with the ridge, for any λ; or by 3/2
        of its inverse as printed, which needs a larger λ.
    classes : (negative, positive), optional
        The public classes, as for :func:`dpci.fit`.
    rows : float, "clip", or object of dpci.rows, optional
        See :func:`dpci.fit`; what is clipped here is clipped in later calls. The norm is at least 1e-100 and at most
        1e100.
    persons : array-like of shape (n_samples,) or Persons, optional
        The person to whom each row belongs, as for :func:`dpci.fit`. The bounds are then those of persons, each with
        all rows (docs/per_instance.md, "Persons and weights").
    weights : Weights, optional
        How much each row counts, as for :func:`dpci.fit`; without a total ``n_public`` divides weighted sums.
    ledger : Ledger, optional
        The ledger that pays. The spend is recorded before noise is drawn, as for :func:`dpci.fit`; its relation must be
        "add_remove".
    seed
        See :func:`dpci.fit`.

    Returns
    -------
    Report
        The released model as ``.result``, and the function from records to bounds.

    Raises
    ------
    InvalidInput
        For arguments out of range, malformed data, or another budget than ApproxDP.
    RowNormViolation
        See :func:`dpci.fit`.
    RegularizationTooSmall
        If the mechanism, or ``bound="paper"``, needs a larger ``l2_strength``; the message names it.
    NotConverged, BudgetExceeded, LedgerError, ReleaseFailed
        See :func:`dpci.fit`. Nothing is released by any error.

    Warns
    -----
    PrivacyLeakWarning, SeededNoiseWarning
        See :func:`dpci.fit`.

    Examples
    --------
    >>> import numpy as np, dpci
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> y = X[:, 0] > 0
    >>> report = dpci.per_instance.report(X, y, budget=dpci.ApproxDP(1.0, 1e-6), l2_strength=0.01, n_public=10_000)
    >>> eps1, eps2, eps3, delta = report([[0.1, 0.2]], [True])
    >>> eps1.shape
    (1,)
    """
    call = dict(locals())
    if not isinstance(budget, ApproxDP):
        raise broken("budget", "dpci.ApproxDP for a per-instance report, because its noise is Gaussian", budget)
    unit, weighing, beside = given_unit(persons, weights)
    mechanism = ObjectivePerturbation(moments="none", calibration=calibration)
    decided: FitKeywords = {
        "mechanism": mechanism,
        "neighbors": AddRemove(n_public),
        "persons": unit,
        "weights": weighing,
    }
    settings = Settings.checked(**{**fit_keywords(call), **decided})
    float(settings.strength)  # no rule chooses it
    if settings.core_loss.kinked or not math.isfinite(settings.core_loss.slope_bound):
        raise InvalidInput(
            "loss must have a bounded slope and a second derivative for a per-instance report, got "
            f"loss={settings.loss!r}"
        )
    payment = Payment.of("dpci.per_instance.report", ledger, settings, budget=budget)
    kind = check_choice("kind", kind, KINDS)
    checked_shares = check_shares(shares)
    public: dict[str, Any] = {
        "simultaneous": check_flag("simultaneous", simultaneous),
        "failure_probability": check_real("failure_probability", failure_probability),
        "bound": check_choice("bound", bound, BOUNDS),
    }
    given_shares = checked_shares if kind == "data_dependent" else None

    def resolve(n_samples: int, n_columns: int) -> tuple[_core.Spec, _core.ReportSpec]:
        spec_of_fit = settings.spec(n_samples, n_columns, budget=payment.budget)
        return spec_of_fit, _core.ReportSpec(spec_of_fit, shares=given_shares, **public)

    def release(rows: Rows, specs: tuple[_core.Spec, _core.ReportSpec], paid: Paid) -> Outcome[Report]:
        spec_of_fit, spec = specs
        on_violation, n_threads = settings.on_violation, settings.n_threads
        released = _core.release(spec, rows.records, on_violation=on_violation, n_threads=n_threads, seed=settings.seed)
        model = {name: value for name, value in released.items() if name not in {"gradient", "hessian"}}
        record = ReportRecord(
            fit=settings.record(spec_of_fit, rows, {**model, "noise_law": "gaussian", "paid": paid}),
            kind=kind,
            shares=given_shares,
            gradient=released["gradient"],
            hessian=released["hessian"],
            **public,
        )
        return Report(record, settings.encoded_loss), ()

    source = Source(X, y, beside)
    check_unit_columns(None, source)
    made = Kind(choices=settings, resolve=resolve, release=release, what="report")
    return run(payment, made, source)
