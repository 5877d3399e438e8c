"""``fit``: settings, reading, paying and releasing of a multinomial logistic regression."""

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

from numpy.typing import ArrayLike

from dpci import _core
from dpci.budgets import Budget, Neighbors
from dpci.data.arrays import OnViolation, Table
from dpci.data.labels import SeveralClasses, check_several_classes
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.losses import Loss
from dpci.model.fit import fit_rows
from dpci.model.settings import Moments, Settings
from dpci.multinomial.loss import Multinomial
from dpci.multinomial.record import MultinomialRecord, block_names
from dpci.multinomial.result import MultinomialFit
from dpci.released.model import record_of


def fit(
    X: Table,
    y: ArrayLike,
    *,
    budget: Budget,
    classes: Sequence[Any],
    l2_strength: float,
    split: Sequence[float] | None = None,
    moments: Moments = "joint",
    fit_intercept: bool = True,
    intercept_scale: float = 1.0,
    row_norm: float = 1.0,
    on_violation: OnViolation = "error",
    neighbors: Neighbors = "replace_one",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    n_threads: int | None = None,
    seed: int | None = None,
) -> MultinomialFit:
    """Fit a multinomial logistic regression with differential privacy and release what confidence intervals need.

    Each class but the first, the reference, has its own coefficients: the log odds of the class against the reference.
    Minimises mean loss + (l2_strength / 2) * ||params||**2 over all of them, and adds noise to the minimiser (output
    perturbation). Everything in the result is differentially private at the budget, for the relation of ``neighbors``,
    over data that obey the public bounds. Proofs: docs/proofs/multinomial.md.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n_samples, n_features)
        Rows in memory with Euclidean norm at most ``row_norm``.
    y : array-like of shape (n_samples,)
        The class of each row.
    budget : PureDP, ZCDP or ApproxDP
        What the fit may spend.
    classes : sequence of labels
        The public classes, 3 to 20 of them, the reference first. They are not inferred, because the labels that occur
        are private.
    l2_strength : float
        Public λ > 0; it acts on the intercepts too. The noise of the coefficients is proportional to 1/λ, and the
        intervals are for the minimiser with this λ.
    split : tuple of three floats, optional
        Shares of the budget for coefficients, Hessian and gradient covariance.
    moments : {"joint", "separate", "none"}
        How Hessian and gradient covariance are released; "none": no intervals.
    fit_intercept : bool
        Append the constant ``intercept_scale`` to every row.
    intercept_scale : float
        That constant; the bound on the rows becomes sqrt(row_norm**2 + intercept_scale**2).
    row_norm : float
        Public bound on the Euclidean norm of a row, without the constant.
    on_violation : {"error", "clip"}
        What to do with longer rows.
    neighbors : {"replace_one", "add_remove"}
        Data sets that must be hard to tell apart.
    n_public : int, optional
        Public stand-in for the number of rows, required by (and only for) "add_remove".
    ledger : Ledger, optional
        The ledger that pays for the fit. The spend is recorded before noise is drawn.
    n_threads : int, optional
        Threads; None: all cores. The result does not depend on it.
    seed : int, optional
        For simulations and tests: noise from this seed; the result is marked as not private.

    Returns
    -------
    MultinomialFit
        Parameters, intervals, probabilities and the record of what was spent.

    Raises
    ------
    InvalidInput
        For arguments out of range, malformed data, and labels that are none of the classes.
    RowNormViolation
        For a row above ``row_norm`` with ``on_violation="error"``.
    NotConverged
        If the minimiser could not be certified. Nothing is released by any error.
    BudgetExceeded, LedgerError, ReleaseFailed
        As :func:`dpci.fit`.

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
    known = check_several_classes(classes)
    settings = Settings.checked(
        budget=budget,
        l2_strength=l2_strength,
        mechanism="output",
        split=split,
        moments=moments,
        fit_intercept=fit_intercept,
        intercept_scale=intercept_scale,
        row_norm=row_norm,
        on_violation=on_violation,
        neighbors=neighbors,
        n_public=n_public,
        n_threads=n_threads,
        seed=seed,
    )
    # Settings ask a loss for its name and for the core's loss alone.
    settings = dataclasses.replace(settings, loss=cast("Loss", Multinomial(len(known))))
    payment = Payment.due("dpci.multinomial.fit", ledger, budget=budget, neighbors=neighbors, seed=seed)

    def resolve(n_samples: int, n_columns: int) -> _core.Spec:
        return settings.spec(n_samples, n_columns, budget=payment.budget)

    with payment.release(X, y, settings, resolve) as till:
        rows, spec = till.read(X, SeveralClasses(y, known), stacklevel=3)
        named = dataclasses.replace(rows, names=block_names(known, rows.names))
        fitted = fit_rows(named, spec, settings, paid=till.receipt())
        result = MultinomialFit(MultinomialRecord(record_of(fitted.result), known))
    till.keep(lambda: result.digest, stacklevel=3)
    fitted.announce(3)
    return result
