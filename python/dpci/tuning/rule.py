"""Parameters that depend on no data, and the fit with them: the choice that costs nothing."""

import dataclasses
import math
from typing import Any

from dpci import _core
from dpci.base.validation import check_count
from dpci.budgets import ZCDP, Budget, check_budget
from dpci.data.rows import Rows, Source
from dpci.errors import InvalidInput, RegularizationTooSmall
from dpci.inference.remarks import remarks
from dpci.ledger.payment import Payment
from dpci.ledger.run import Kind, Outcome, Paid, run
from dpci.mechanisms import NewtonSteps, ObjectivePerturbation
from dpci.model.fit import fit_rows
from dpci.model.recommend import are_rows_given, with_default_rows
from dpci.model.settings import Settings
from dpci.released.model import record_of
from dpci.tuning.candidates import plain_params
from dpci.tuning.record import TuneRecord
from dpci.tuning.result import TuneResult


def public_rule(n_samples: int, n_params: int, budget: Budget) -> dict[str, Any]:
    """Return parameters that depend on no data: λ = sqrt(d/(n ε)) on the ball of radius 1 (Wu et al., Section 4.2).

    The rule is for rows and targets of size at most 1 and output perturbation under pure DP, whose error it balances
    against that of the regularisation. For other notions ε stands for a number of the same size: under ZCDP for the
    greatest pure epsilon that costs no more, under ApproxDP for the epsilon of the budget.

    Parameters
    ----------
    n_samples : int
        Public number of records.
    n_params : int
        Number of parameters d, the intercept included.
    budget : PureDP, ZCDP or ApproxDP
        Budget that the fit will spend.

    Returns
    -------
    dict
        "l2_strength" and "mechanism", keywords of :func:`dpci.fit`. Nothing is spent.

    Raises
    ------
    InvalidInput
        For arguments out of range, and an epsilon at which λ is not a finite number.
    """
    n = check_count("n_samples", n_samples)
    d = check_count("n_params", n_params)
    budget = check_budget(budget)
    pure = budget.pure_within() if isinstance(budget, ZCDP) else budget
    square = d / n / pure.epsilon
    if not 0.0 < square < math.inf:
        raise InvalidInput(
            f"epsilon must give a finite l2_strength sqrt(d/(n epsilon)) > 0, got epsilon={pure.epsilon}"
        )
    return {"l2_strength": math.sqrt(square), "mechanism": ObjectivePerturbation(radius=1.0)}


def tune_by_rule(source: Source, payment: Payment, options: dict[str, Any]) -> TuneResult:
    """Fit with the parameters of the rule, see :func:`dpci.tuning.tune`."""
    budget = payment.charged
    if "l2_strength" in options:
        raise InvalidInput(
            "l2_strength must not be given with method='public_rule', which sets it, got "
            f"l2_strength={options['l2_strength']!r}"
        )
    # Any λ will do to validate the others.
    settings = Settings.checked(**{**options, "budget": budget, "l2_strength": 1.0})
    if settings.radius is not None:
        raise InvalidInput(
            f"radius must be None with method='public_rule', which sets it, got radius={settings.radius:g}"
        )
    if not are_rows_given(options.get("rows")):
        settings = with_default_rows(settings)

    def resolve(n_samples: int, n_columns: int) -> tuple[dict[str, Any], Settings, _core.Spec]:
        params = public_rule(settings.public_n(n_samples), n_columns + settings.has_constant, budget)
        assert not isinstance(settings.mechanism, NewtonSteps)  # noqa: S101  # for the type checker
        params["mechanism"] = dataclasses.replace(settings.mechanism, radius=params["mechanism"].radius)
        chosen = dataclasses.replace(settings, **params)
        try:
            return params, chosen, chosen.spec(n_samples, n_columns, budget=payment.budget)
        except RegularizationTooSmall as error:
            raise InvalidInput(
                f"the l2_strength of method='public_rule' is not possible with this budget: {error}"
            ) from error

    def release(rows: Rows, made: tuple[dict[str, Any], Settings, _core.Spec], paid: Paid) -> Outcome[TuneResult]:
        params, chosen, spec = made
        fit = fit_rows(rows, spec, chosen, paid=paid)
        record = TuneRecord(params=plain_params(params), budget=budget, selection=None, fit=record_of(fit), model=None)
        return TuneResult(record, params), remarks(record_of(fit))

    kind = Kind(choices=settings, resolve=resolve, release=release)
    return run(payment, kind, source)
