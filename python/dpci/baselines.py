"""Baselines: the functional mechanism, regression on a noisy histogram, and no privacy, with the interface of a fit."""

import sys
import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike

from dpci import _core
from dpci._axes import Axis, Bins, Levels, OneHot, axes_of, bin_centers, check_axes, check_bins
from dpci._baseline_choices import Choices, PrivateChoices, polynomial_loss, polynomial_numbers, unbounded_loss
from dpci._baseline_fit import BaselineFit
from dpci.arrays import Table
from dpci.budgets import Budget, Calibration
from dpci.errors import PrivacyLeakWarning
from dpci.ledger import Ledger
from dpci.losses import Logistic, Squared
from dpci.settings import LossLike, Neighbors, OnViolation
from dpci.validation import check_choice, check_not_negative, check_positive

__all__ = [
    "BaselineFit",
    "Bins",
    "Levels",
    "OneHot",
    "axes_of",
    "functional_mechanism",
    "non_private",
    "projected_histogram",
]

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
    row_norm: float = 1.0,
    fit_intercept: bool = True,
    intercept_scale: float = 1.0,
    on_violation: OnViolation = "error",
    classes: Sequence[Any] | None = None,
    neighbors: Neighbors = "replace_one",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    n_threads: int | None = None,
    seed: int | None = None,
) -> BaselineFit:
    """Fit a linear or logistic regression by the functional mechanism.

    Noise is added to the coefficients of the loss as a quadratic polynomial in the parameters, which is then minimised.
    Everything in the result is differentially private at the budget, for the relation of ``neighbors``, over data that
    obey the public bounds. Proofs of the sensitivities: docs/baselines.md.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows with Euclidean norm at most ``row_norm``.
    y : array-like of shape (n_samples,)
        Real numbers within ``target_bound`` of 0 for "squared", two classes for "logistic".
    budget : PureDP, ZCDP or ApproxDP
        Under PureDP Laplace noise on the coefficients; otherwise Gaussian noise on the sums behind them.
    loss : {"squared", "logistic"}, Squared or Logistic
        (xθ - y)², or the logistic loss to second order around θ = 0.
    calibration : {"tight", "paper"}
        "tight": the least noise that docs/baselines.md proves, on the monomials. "paper": the constants that Zhang et
        al. print, 2(d + 1)² and d²/4 + 3d, on all d² entries; PureDP only; also private, with more noise.
    l2_strength : float
        Public λ ≥ 0 of (λ/2)‖θ‖² in the mean objective, added to the quadratic form.
    target_bound : float
        Public bound on the size of real targets; an object ``Squared(B)`` brings its own.
    row_norm : float
        Public bound on the norm of a row, without the intercept.
    fit_intercept : bool
        Append the constant ``intercept_scale`` to every row; the number of parameters d counts it.
    intercept_scale : float
        That constant; the bound on the rows becomes sqrt(row_norm**2 + intercept_scale**2).
    on_violation : {"error", "clip"}
        What to do with rows above ``row_norm`` and targets beyond ``target_bound``.
    classes : (negative, positive), optional
        The public classes of "logistic".
    neighbors : {"replace_one", "add_remove"}
        Data sets that must be hard to tell apart.
    n_public : int, optional
        Public stand-in for the number of rows, required by (and only for) "add_remove".
    ledger : Ledger, optional
        Where the budget is written as spent before noise is drawn, as for :func:`dpci.fit`.
    n_threads : int, optional
        Threads; None: all cores. The result does not depend on it.
    seed : int, optional
        For simulations and tests: noise from this seed, which is not private and says so.

    Returns
    -------
    BaselineFit
        Parameters and predictions; no intervals. All parameters are 0 where the noise left no direction.

    Raises
    ------
    InvalidInput
        For arguments out of range, malformed data, or a combination that is not offered.
    RowNormViolation
        For a row above ``row_norm`` with ``on_violation="error"``.
    BudgetExceeded, LedgerError, ReleaseFailed
        As :func:`dpci.fit`.

    Warns
    -----
    PrivacyLeakWarning
        If the classes were read off ``y``, unless a seed is given.
    SeededNoiseWarning
        If a seed is given.

    References
    ----------
    Zhang, Zhang, Xiao, Yang & Winslett, "Functional mechanism: regression analysis under differential privacy", 2012.
    """
    checked = polynomial_loss(loss, target_bound)
    choices = PrivateChoices(
        loss=checked,
        core_loss=checked.to_core(),
        fit_intercept=fit_intercept,
        intercept_scale=intercept_scale,
        classes=classes,
        n_threads=n_threads,
        budget=budget,
        neighbors=neighbors,
        n_public=n_public,
        seed=seed,
    )
    payment = choices.payment("dpci.baselines.functional_mechanism", ledger)
    calibration = check_choice("calibration", calibration, ("tight", "paper"))
    l2_strength = check_not_negative("l2_strength", l2_strength)
    row_norm = check_positive("row_norm", row_norm)
    on_violation = check_choice("on_violation", on_violation, ("error", "clip"))
    clip = on_violation == "clip"

    def resolve(n_samples: int, n_columns: int) -> _core.FunctionalSpec:
        return _core.FunctionalSpec(
            n_samples=choices.public_n(n_samples),
            n_columns=n_columns,
            row_norm=row_norm,
            **polynomial_numbers(checked),
            l2_strength=l2_strength,
            calibration=calibration,
            **choices.core_numbers(payment.budget),
        )

    with payment.release(X, choices, resolve, on_violation=on_violation) as till:
        rows, spec = choices.taken(X, y, till, resolve, n_public=n_public, row_norm=row_norm, clip=clip)
        release = _core.release_functional_mechanism(
            spec, rows.features.values, rows.targets, clip=clip, n_threads=choices.n_threads, seed=choices.seed
        )
    return choices.result(
        "functional_mechanism",
        release["params"],
        rows.features,
        rows.names,
        rows.coding,
        l2_strength=l2_strength,
        row_norm=row_norm,
        on_violation=on_violation,
        calibration=calibration,
        **choices.released(release, rows.features.shape[0]),
    )


def projected_histogram(
    X: Table,
    y: ArrayLike,
    *,
    budget: Budget,
    axes: Sequence[Axis],
    l2_strength: float,
    target_bins: int = 10,
    loss: LossLike = "squared",
    fit_intercept: bool = True,
    intercept_scale: float = 1.0,
    classes: Sequence[Any] | None = None,
    neighbors: Neighbors = "replace_one",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    n_threads: int | None = None,
    seed: int | None = None,
) -> BaselineFit:
    """Fit a regression to a histogram with noisy counts.

    Every record is moved to the nearest cell of a public grid over X and y; every cell, empty or not, gets noise;
    counts are rounded to whole numbers, to 0 where they are negative; the model is fitted to the centres of the cells,
    each as often as its count says. Everything in the result is differentially private at the budget, for the relation
    of ``neighbors``, whatever the rows hold.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows; no bound on their norm is needed.
    y : array-like of shape (n_samples,)
        Two classes, or real numbers, moved into the bounds of the loss.
    budget : PureDP, ZCDP or ApproxDP
        Under PureDP Laplace noise of scale 2/ε (1/ε under "add_remove"), Gaussian noise otherwise.
    axes : sequence of Bins, OneHot and Levels
        Each attribute once: its columns and public levels; every column of X belongs to exactly one. :func:`axes_of`
        makes them from a schema. The number of cells is the product of the numbers of levels, the target's among them;
        times n_features + 1 it may be at most 2**25, because all centres are held in memory.
    l2_strength : float
        Public λ > 0 of the mean objective over the cells.
    target_bins : int
        Equal bins of real targets between the bounds of the loss.
    loss : str or object of dpci.losses
        What is minimised over the cells, "squared" or any other smooth loss.
    fit_intercept : bool
        Append the constant ``intercept_scale`` to every row.
    intercept_scale : float
        That constant.
    classes : (negative, positive), optional
        The public classes.
    neighbors : {"replace_one", "add_remove"}
        Data sets that must be hard to tell apart.
    n_public : int, optional
        Public stand-in for the number of rows, required by (and only for) "add_remove".
    ledger : Ledger, optional
        Where the budget is written as spent before noise is drawn, as for :func:`dpci.fit`.
    n_threads : int, optional
        Threads; None: all cores. The result does not depend on it.
    seed : int, optional
        For simulations and tests: noise from this seed, which is not private and says so.

    Returns
    -------
    BaselineFit
        Parameters and predictions; no intervals. All parameters are 0 where no cell is left.

    Raises
    ------
    InvalidInput
        For arguments out of range, malformed data, axes that miss a column or name one twice, or too many cells.
    NotConverged
        If the minimiser over the cells could not be certified.
    BudgetExceeded, LedgerError, ReleaseFailed
        As :func:`dpci.fit`.

    Warns
    -----
    PrivacyLeakWarning
        If the classes were read off ``y``, unless a seed is given.
    SeededNoiseWarning
        If a seed is given.

    References
    ----------
    Lei, "Differentially private M-estimators", 2011. Vinterbo, "Differentially private projected histograms", 2012, who
    selects attributes with part of the budget, where this function takes public axes. Fredrikson, Lantz, Jha, Lin, Page
    & Ristenpart, "Privacy in pharmacogenetics", 2014, compare such histograms with the functional mechanism.
    """
    checked, core_loss = unbounded_loss(loss, kinks=False)
    choices = PrivateChoices(
        loss=checked,
        core_loss=core_loss,
        fit_intercept=fit_intercept,
        intercept_scale=intercept_scale,
        classes=classes,
        n_threads=n_threads,
        budget=budget,
        neighbors=neighbors,
        n_public=n_public,
        seed=seed,
    )
    payment = choices.payment("dpci.baselines.projected_histogram", ledger)
    axes = check_axes(axes)
    l2_strength = check_positive("l2_strength", l2_strength)
    target_bins = check_bins("target_bins", target_bins)
    bounds = choices.target_bounds

    def resolve(_: int, n_columns: int) -> _core.HistogramSpec:
        return _core.HistogramSpec(
            axes=[(list(axis.columns), axis.levels.ravel().tolist()) for axis in axes],
            n_columns=n_columns,
            targets=[-1.0, 1.0] if bounds is None else bin_centers(target_bins, *bounds).tolist(),
            loss=core_loss,
            l2_strength=l2_strength,
            **choices.core_numbers(payment.budget),
        )

    # Every record has a nearest cell, so rows need no bound.
    with payment.release(X, choices, resolve, on_violation="clip") as till:
        rows, spec = choices.taken(X, y, till, resolve, row_norm=sys.float_info.max, clip=True)
        values, n_threads = rows.features.values, choices.n_threads
        release = _core.release_histogram(spec, values, rows.targets, n_threads=n_threads, seed=choices.seed)
    return choices.result(
        "projected_histogram",
        release["params"],
        rows.features,
        rows.names,
        rows.coding,
        l2_strength=l2_strength,
        n_cells=spec.n_cells,
        **choices.released(release, rows.features.shape[0]),
    )


def non_private(
    X: Table,
    y: ArrayLike,
    *,
    loss: LossLike,
    l2_strength: float,
    radius: float | None = None,
    fit_intercept: bool = True,
    intercept_scale: float = 1.0,
    classes: Sequence[Any] | None = None,
    n_threads: int | None = None,
) -> BaselineFit:
    """Fit the same model without any privacy: what every mechanism is compared with.

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
    fit_intercept : bool
        Append the constant ``intercept_scale`` to every row; its parameter is regularised too.
    intercept_scale : float
        That constant.
    classes : (negative, positive), optional
        The classes.
    n_threads : int, optional
        Threads; None: all cores. The result does not depend on it.

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
    warnings.warn(
        "the result is NOT PRIVATE: it is the minimiser itself, without noise", PrivacyLeakWarning, stacklevel=2
    )
    checked, core_loss = unbounded_loss(loss, kinks=True)
    choices = Choices(
        loss=checked,
        core_loss=core_loss,
        fit_intercept=fit_intercept,
        intercept_scale=intercept_scale,
        classes=classes,
        n_threads=n_threads,
    )
    l2_strength = check_positive("l2_strength", l2_strength)
    radius = None if radius is None else check_positive("radius", radius)
    features, names = choices.shape(X)
    targets, *coding = choices.targets(X, y, features.shape[0])
    minimum = _core.minimize_erm(
        features.values,
        targets,
        loss=core_loss,
        l2_strength=l2_strength,
        radius=radius,
        intercept=choices.intercept,
        linear_term=None,
        start=None,
        solver="auto",
        tolerance=max(1e-9, 1e-11 / l2_strength),  # a small λ may ask for a gradient below its own rounding
        max_iterations=2000,
        n_threads=choices.n_threads,
    )
    return choices.result(
        "non_private",
        minimum["params"],
        features,
        names,
        coding,
        l2_strength=l2_strength,
        radius=radius,
    )
