"""Private ridge regression, from one released moment matrix or over a ball of parameters."""

from collections.abc import Sequence
from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from dpci.base.validation import check_flag
from dpci.budgets import Calibration, Neighbors
from dpci.data.arrays import OnViolation, Table
from dpci.ledger.ledger import Ledger
from dpci.losses import Squared
from dpci.mechanisms import MechanismLike
from dpci.model.moments import regression_of_counts, used_keywords
from dpci.model.settings import Moments, Projection
from dpci.model.tables import check_unit_columns
from dpci.regression.choices.keywords import choices_of_fit
from dpci.regression.choices.model import PRIVATE, check_ridge
from dpci.rows import RowDomain
from dpci.sklearn.base import PrivateLinearEstimator, budget_of
from dpci.sklearn.leaks import warn_of_fitting
from dpci.sklearn.linear import MomentEstimator
from dpci.unit import Persons, Weights


class PrivateRidge(MomentEstimator, PrivateLinearEstimator):
    """Ridge regression with differential privacy and confidence intervals.

    Without a ``radius`` it is computed from one released moment matrix, which has far less noise
    (docs/linear_regression.md); with one by perturbation over the ball of this radius.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: the parameters below, which
    must be public and chosen without looking at the data, and scores. The keywords are those of :func:`dpci.fit`, which
    says more about each.

    Parameters
    ----------
    epsilon : float or None
        Privacy loss of the fit; alone it is pure differential privacy (``dpci.PureDP``).
    delta : float, optional
        With ``epsilon``: approximate differential privacy (``dpci.ApproxDP``).
    rho : float, optional
        Zero-concentrated differential privacy (``dpci.ZCDP``), with ``epsilon=None`` and ``delta=None``.
    l2_strength : float, optional
        Regularisation λ of mean loss + (λ/2)·||params||²; public, and part of the definition of the target of the
        intervals. scikit-learn's ``alpha`` is n_samples·λ/2. None without a radius: the least λ that the noise allows,
        from the released matrix (``l2_strength="private"``); with one: what public values recommend for predictions
        (docs/sklearn.md, "The default λ"). ``result_`` has it.
    radius : float, optional
        Public bound on the norm of the parameters, intercept included. None: a moment matrix, which takes none of
        ``intercept_scale``, ``split``, ``moments``, ``projection`` and ``calibration``.
    target_bound : float
        Public bound on the absolute value of a target.
    row_norm : float, optional
        Public bound on the Euclidean norm of a row, without the intercept. None: 1, unless ``rows`` is given.
    rows : Ball or Blocks of dpci.rows, optional
        Public domain of the rows in place of ``row_norm``: bounds of each column, or group of indicators, by itself.
    on_violation : {"clip", "error"}
        Treatment of rows beyond their bounds and targets above ``target_bound``: scale them into the bounds, which
        is part of the model, or refuse the data.
    fit_intercept : bool
        Whether there is an intercept; it is regularised like the coefficients, which the privacy proof needs.
    intercept_scale : float
        Size of the constant column behind the intercept; a larger one weakens the regularisation of the intercept and
        needs more noise.
    mechanism : {"objective", "output", "moments"} or object of dpci.mechanisms, optional
        "objective": noise is added to the objective before it is minimised. "output": to the minimiser. "moments": to
        the moment matrix. None: "moments" without a radius, otherwise "objective".
    split : sequence of three floats, optional
        Shares of the budget of coefficients, Hessian and gradient covariance.
    moments : {"joint", "separate", "none"}
        How Hessian and gradient covariance, which the intervals need, are released. "none": not at all; the
        coefficients have the whole budget, and there are no intervals.
    projection : {"auto", "floor", "cautious", "noise_aware"}
        How intervals treat the noise in the released matrices.
    calibration : {"tight", "paper"}
        Constants of the noise: the smallest that are proved, or those of the published method, with more noise.
    neighbors : {"replace_one", "add_remove"}
        Which neighbouring data sets the guarantee makes hard to tell apart: those with one record replaced, or with one
        added or removed.
    n_public : int, optional
        Public stand-in for the number of rows, for "add_remove".
    persons : Persons, optional
        How many rows of a person count, for fits with ``persons=ids``: ``dpci.Persons(max_rows=3)``. None: all rows.
    weights : Weights, optional
        The public bound and total of ``sample_weight``, required by fits with such weights:
        ``dpci.Weights(bound=4.0)``.
    ledger : Ledger, optional
        The ledger that pays for every fit. Clones share it. It is pickled with the estimator: call
        ``set_params(ledger=None)`` before you save a fitted model for others.
    n_threads : int, optional
        Threads; None: all cores.
    seed : int, optional
        For tests and simulations only: noise from a seed is not private, and a warning says so. It is not called
        ``random_state``, because scikit-learn's ensembles set every parameter of that name.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Released coefficients.
    intercept_ : float
        Released intercept; 0 without one.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X is a frame whose columns are named by strings.
    result_ : LinearFit of dpci.regression, or PrivateFit with a radius
        Everything that was released, with its intervals and its record of privacy.

    References
    ----------
    Wu, Fredrikson, Wu, Jha & Naughton, "Revisiting differentially private regression: lessons from learning theory and
    their consequences"; docs/domains.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpci.sklearn import PrivateRidge
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> model = PrivateRidge(epsilon=2.0, l2_strength=0.05, radius=2.0).fit(X, 0.5 * X[:, 0])
    >>> model.coef_.shape, model.predict(X).shape
    ((2,), (10000,))
    """

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = None,
        rho: float | None = None,
        l2_strength: float | None = None,
        radius: float | None = None,
        target_bound: float = 1.0,
        row_norm: float | None = None,
        rows: RowDomain | None = None,
        on_violation: OnViolation = "clip",
        fit_intercept: bool = True,
        intercept_scale: float = 1.0,
        mechanism: MechanismLike | Literal["moments"] | None = None,
        split: Sequence[float] | None = None,
        moments: Moments = "joint",
        projection: Projection = "auto",
        calibration: Calibration = "tight",
        neighbors: Neighbors = "replace_one",
        n_public: int | None = None,
        persons: Persons | None = None,
        weights: Weights | None = None,
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            l2_strength=l2_strength,
            radius=radius,
            row_norm=row_norm,
            rows=rows,
            on_violation=on_violation,
            fit_intercept=fit_intercept,
            intercept_scale=intercept_scale,
            mechanism=mechanism,
            split=split,
            moments=moments,
            projection=projection,
            calibration=calibration,
            neighbors=neighbors,
            n_public=n_public,
            persons=persons,
            weights=weights,
            ledger=ledger,
            n_threads=n_threads,
            seed=seed,
        )
        self.target_bound = target_bound

    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        persons: ArrayLike | None = None,
    ) -> Self:
        """Fit with differential privacy, spending the budget once more at every call.

        Parameters, errors and warnings are those of :meth:`PrivateLogisticRegression.fit`. Without a ``radius``,
        ``sample_weight`` and ``persons`` need ``l2_strength``, because standard errors are planned before the release.
        """
        if not self._by_moments():
            return super().fit(X, y, sample_weight, persons=persons)
        warn_of_fitting()
        keywords: dict[str, Any] = self.get_params(deep=False)
        for name in ("ledger", "mechanism", "target_bound", "persons", "weights"):
            keywords.pop(name)
        l2_strength = keywords.pop("l2_strength")
        strength = PRIVATE if l2_strength is None else check_ridge("l2_strength", l2_strength)
        intercept = check_flag("fit_intercept", keywords.pop("fit_intercept"))
        unit, weights, beside = self._given(persons, sample_weight)
        check_unit_columns(None, X, beside)
        robust = regression_of_counts(strength, fit_intercept=intercept) if beside.given else ()
        budget = budget_of(*(keywords.pop(name) for name in ("epsilon", "delta", "rho")))
        used = used_keywords(keywords)
        choices = choices_of_fit(
            loss=self._loss(), schema=None, budget=budget, robust=robust, unit=unit, weights=weights, **used
        )
        return self._fit_by_moments(X, y, choices, beside=beside, l2_strength=strength)

    def _by_moments(self) -> bool:
        if self.mechanism is None:
            return self.radius is None
        return isinstance(self.mechanism, str) and self.mechanism == "moments"

    def _fit_keywords(self) -> dict[str, Any]:
        keywords = super()._fit_keywords()
        return {**keywords, "mechanism": "objective" if self.mechanism is None else self.mechanism}

    def _loss(self) -> Squared:
        return Squared(target_bound=self.target_bound)
