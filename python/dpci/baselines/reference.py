"""The minimiser itself, without privacy, with the interface of a fit."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from dpci import _core
from dpci.base.validation import check_intercept, check_positive
from dpci.base.warn import warn
from dpci.baselines.choices import Choices, public_classes, unbounded_loss
from dpci.baselines.result import BaselineFit
from dpci.data.arrays import Table
from dpci.data.rows import Source, read
from dpci.errors import PrivacyLeakWarning
from dpci.losses import LossLike
from dpci.sources.described import check_unit_columns
from dpci.unit import Persons, Weights, core_terms, given_unit


def non_private(
    X: Table,
    y: ArrayLike,
    *,
    loss: LossLike,
    l2_strength: float,
    radius: float | None = None,
    intercept: bool | float = True,
    classes: Sequence[Any] | None = None,
    persons: ArrayLike | Persons | None = None,
    weights: Weights | None = None,
) -> BaselineFit:
    """Fit the same model without any privacy, for comparison with every mechanism.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows; no bound on their norm is needed.
    y : array-like of shape (n_samples,)
        Two classes, or real numbers within the bounds of the loss.
    loss : str or object of dpci.losses
        Loss.
    l2_strength : float
        λ > 0 of the mean objective.
    radius : float, optional
        Minimise over ‖θ‖ ≤ radius.
    intercept : bool or float
        Whether a constant is appended to every row, or its size; its parameter is regularised too.
    classes : (negative, positive), optional
        The classes.
    persons : array-like of shape (n_samples,) or Persons, optional
        See :func:`dpci.fit`; the same risk is minimised.
    weights : Weights, optional
        See :func:`dpci.fit`; the same risk is minimised.

    Returns
    -------
    BaselineFit
        The minimiser, with ``private=False``.

    Raises
    ------
    InvalidInput
        For arguments out of range or malformed data.
    NotConverged
        If the minimiser could not be certified.

    Warns
    -----
    PrivacyLeakWarning
        Always.
    """
    warn(PrivacyLeakWarning("the result is NOT PRIVATE: it is the minimiser without noise"))
    checked = unbounded_loss(loss, kinks=True)
    unit, weighing, beside = given_unit(persons, weights)
    choices = Choices(
        loss=checked,
        intercept=check_intercept(intercept),
        classes=public_classes(classes),
        unit=unit,
        weights=weighing,
    )
    source = Source(X, y, beside)
    check_unit_columns(None, source)
    l2_strength = check_positive("l2_strength", l2_strength)
    radius = None if radius is None else check_positive("radius", radius)
    rows, _ = read(source, choices, lambda *_: None)
    minimum = _core.minimize_erm(
        rows.records,
        loss=choices.core_loss,
        l2_strength=l2_strength,
        radius=radius,
        intercept=choices.intercept,
        linear_term=None,
        start=None,
        solver="auto",
        tolerance=max(1e-9, 1e-11 / l2_strength),  # a small λ may ask for a gradient below its own rounding
        max_iterations=2000,
        n_threads=choices.n_threads,
        terms=core_terms(rows.n_records, "replace_one", unit, weighing),
    )
    return choices.result(
        "non_private",
        minimum["params"],
        rows,
        l2_strength=l2_strength,
        radius=radius,
    )
