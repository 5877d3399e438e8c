"""The functional mechanism: regression from a noisy polynomial of the loss."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike

from dpci import _core
from dpci.base.validation import check_choice, check_not_negative
from dpci.baselines.choices import (
    PrivateChoices,
    polynomial_loss,
    polynomial_numbers,
    public_classes,
)
from dpci.baselines.result import BaselineFit
from dpci.budgets import Budget, Calibration, NeighborsLike, core_budget, read_neighbors
from dpci.data.arrays import Table
from dpci.data.rows import Rows, Source
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.ledger.run import Kind, Outcome, Paid, run
from dpci.losses import Logistic, Squared
from dpci.rows import Ball, BallLike, read_ball
from dpci.sources.described import check_unit_columns
from dpci.unit import Persons, Weights, core_terms, given_unit

Polynomial: TypeAlias = Literal["squared", "logistic"] | Squared | Logistic


def functional_mechanism(
    X: Table,
    y: ArrayLike,
    *,
    budget: Budget,
    loss: Polynomial = "squared",
    calibration: Calibration = "tight",
    l2_strength: float = 0.0,
    target_bound: float = 1.0,
    rows: BallLike = 1.0,
    classes: Sequence[Any] | None = None,
    neighbors: NeighborsLike = "replace_one",
    persons: ArrayLike | Persons | None = None,
    weights: Weights | None = None,
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> BaselineFit:
    """Fit a linear or logistic regression by the functional mechanism.

    Noise is added to the coefficients of the loss as a quadratic polynomial in the parameters, which is then minimised.
    Everything in the result is differentially private at the budget, for the relation of ``neighbors``, over data that
    obey the public bounds. Proofs of the sensitivities: docs/baselines.md.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows with Euclidean norm at most ``rows``.
    y : array-like of shape (n_samples,)
        Real numbers within ``target_bound`` of 0 for "squared", two classes for "logistic".
    budget : PureDP, ZCDP or ApproxDP
        PureDP adds Laplace noise to the coefficients; the others add Gaussian noise to the sums from which they are
        computed.
    loss : {"squared", "logistic"}, Squared or Logistic
        (xθ - y)², or the logistic loss to second order around θ = 0.
    calibration : {"tight", "paper"}
        "tight": the least noise that docs/baselines.md proves, on the monomials. "paper": the constants that Zhang et
        al. print, 2(d + 1)² and d²/4 + 3d, on all d² entries; PureDP only; also private, with more noise.
    l2_strength : float
        Public λ ≥ 0 of (λ/2)‖θ‖² in the mean objective, added to the quadratic form.
    target_bound : float
        Public bound on the absolute value of real targets; an object ``Squared(B)`` has its own.
    rows : float, "clip", or Within or Clipped of dpci.rows
        Public bound on the norm of a row, without the intercept. Rows above it, targets beyond ``target_bound`` and
        weights above their bound are refused; "clip", and ``dpci.rows.Clipped(norm)``, moves them to the bound.
    classes : (negative, positive), optional
        The public classes of "logistic".
    neighbors : "replace_one" or AddRemove
        See :func:`dpci.fit`.
    persons : array-like of shape (n_samples,) or Persons, optional
        The person of each row, as for :func:`dpci.fit`. The noise is that of rows, because the terms of a record lie
        between those of its rows.
    weights : Weights, optional
        The weight of each record, as for :func:`dpci.fit`.
    ledger, seed
        See :func:`dpci.fit`.

    Returns
    -------
    BaselineFit
        Parameters and predictions; no intervals. All parameters are 0 if the noisy polynomial is convex in no
        direction.

    Raises
    ------
    InvalidInput
        For arguments out of range, malformed data, or a combination that is not offered.
    RowNormViolation, BudgetExceeded, LedgerError, ReleaseFailed
        See :func:`dpci.fit`.

    Warns
    -----
    PrivacyLeakWarning, SeededNoiseWarning
        See :func:`dpci.fit`.

    References
    ----------
    Zhang, Zhang, Xiao, Yang & Winslett, "Functional mechanism: regression analysis under differential privacy", 2012.
    """
    checked = polynomial_loss(loss, target_bound)
    unit, weighing, beside = given_unit(persons, weights)
    domain, on_violation, constant = read_ball(rows)
    choices = PrivateChoices(
        loss=checked,
        intercept=constant,
        classes=public_classes(classes),
        budget=budget,
        **read_neighbors(neighbors),
        rows=domain or Ball(),
        on_violation=on_violation,
        seed=seed,
        unit=unit,
        weights=weighing,
    )
    payment = Payment.of("dpci.baselines.functional_mechanism", ledger, choices, budget=budget)
    calibration = check_choice("calibration", calibration, ("tight", "paper"))
    l2_strength = check_not_negative("l2_strength", l2_strength)

    def resolve(n_samples: int, n_columns: int) -> _core.FunctionalSpec:
        return _core.FunctionalSpec(
            core_terms(choices.public_n(n_samples), choices.neighbors, choices.unit, choices.weights),
            n_columns=n_columns,
            row_norm=choices.row_norm,
            **polynomial_numbers(checked),
            l2_strength=l2_strength,
            calibration=calibration,
            intercept=choices.intercept,
            budget=core_budget(payment.budget),
        )

    source = Source(X, y, beside)
    check_unit_columns(None, source)

    def release(rows: Rows, spec: _core.FunctionalSpec, _: Paid) -> Outcome[BaselineFit]:
        on_violation, n_threads = choices.on_violation, choices.n_threads
        released = _core.release(spec, rows.records, on_violation=on_violation, n_threads=n_threads, seed=choices.seed)
        result = choices.result(
            "functional_mechanism",
            released["params"],
            rows,
            l2_strength=l2_strength,
            rows=choices.rows,
            calibration=calibration,
            **choices.recorded(rows.n_records, released),
        )
        return result, ()

    return run(payment, Kind(choices=choices, resolve=resolve, release=release), source)
