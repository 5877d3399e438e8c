"""Private linear classifiers: logistic regression and a support vector machine."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from dpci.budgets import Calibration, Neighbors
from dpci.data.arrays import OnViolation, Table
from dpci.ledger.ledger import Ledger
from dpci.losses import HuberHinge, Logistic
from dpci.mechanisms import MechanismLike
from dpci.model.settings import Moments, Projection
from dpci.rows import RowDomain
from dpci.sklearn.classes import PrivateClassifier
from dpci.unit import Persons, Weights


class PrivateLogisticRegression(PrivateClassifier):
    """Logistic regression of two classes with differential privacy and confidence intervals.

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
        Regularisation λ > 0 of mean loss + (λ/2)·||params||²; public, and part of the definition of the target of the
        intervals. scikit-learn's ``C`` is 1/(n_samples·λ).
        None: what public values recommend for predictions (docs/sklearn.md, "The default λ"); ``result_`` has it.
    row_norm : float, optional
        Public bound on the Euclidean norm of a row, without the intercept. None: 1, unless ``rows`` is given.
    rows : Ball or Blocks of dpci.rows, optional
        Public domain of the rows in place of ``row_norm``: bounds of each column, or group of indicators, by itself.
    on_violation : {"clip", "error"}
        Treatment of rows beyond their bounds: scale them into the bounds, which is part of the model, or refuse the
        data.
    classes : (negative, positive), optional
        The public classes in increasing order. None: (False, True) where ``y`` has a boolean data type; other labels,
        also 0 and 1, are inferred from ``y``, with a ``PrivacyLeakWarning``.
    fit_intercept : bool
        Whether there is an intercept; it is regularised like the coefficients, which the privacy proof needs.
    intercept_scale : float
        Size of the constant column behind the intercept; a larger one weakens the regularisation of the intercept and
        needs more noise.
    mechanism : {"objective", "output"} or object of dpci.mechanisms
        "objective": noise is added to the objective before it is minimised. "output": to the minimiser.
    split : sequence of three floats, optional
        Shares of the budget of coefficients, Hessian and gradient covariance.
    moments : {"joint", "separate", "none"}
        How Hessian and gradient covariance, which the intervals need, are released. "none": not at all; the
        coefficients have the whole budget, and there are no intervals.
    projection : {"auto", "floor", "cautious", "noise_aware"}
        How intervals treat the noise in the released matrices.
    calibration : {"tight", "paper"}
        Constants of the noise: the smallest that are proved, or those of the published method, with more noise.
    radius : float, optional
        Bound on the norm of the parameters, intercept included.
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
    class_weight : mapping, optional
        Public weights of the two classes, such as ``{0: 1.0, 1: 5.0}``, by which rows count. The noise grows with the
        greater one. Weights that are computed from the labels, as "balanced" ones are, would not be private.
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
    coef_ : ndarray of shape (1, n_features_in_)
        Released coefficients.
    intercept_ : ndarray of shape (1,)
        Released intercept; 0 without one.
    classes_ : ndarray of shape (2,)
        (negative, positive).
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X is a frame whose columns are named by strings.
    result_ : PrivateFit
        Everything that was released, with its intervals and its record of privacy.

    References
    ----------
    Chaudhuri, Monteleoni & Sarwate (2011), "Differentially private empirical risk minimization"; Wang, Kifer & Lee,
    "Differentially private confidence intervals for empirical risk minimization".

    Examples
    --------
    >>> import numpy as np
    >>> from dpci.sklearn import PrivateLogisticRegression
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> y = np.tile(["yes", "no"], 5000)
    >>> model = PrivateLogisticRegression(epsilon=1.0, l2_strength=0.01, classes=("no", "yes")).fit(X, y)
    >>> model.predict(X[:2]).tolist(), model.coef_.shape
    (['yes', 'no'], (1, 2))
    >>> len(model.conf_int(level=0.9))
    3
    """

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = None,
        rho: float | None = None,
        l2_strength: float | None = None,
        row_norm: float | None = None,
        rows: RowDomain | None = None,
        on_violation: OnViolation = "clip",
        classes: Sequence[Any] | None = None,
        fit_intercept: bool = True,
        intercept_scale: float = 1.0,
        mechanism: MechanismLike = "objective",
        split: Sequence[float] | None = None,
        moments: Moments = "joint",
        projection: Projection = "auto",
        calibration: Calibration = "tight",
        radius: float | None = None,
        neighbors: Neighbors = "replace_one",
        n_public: int | None = None,
        persons: Persons | None = None,
        weights: Weights | None = None,
        class_weight: Mapping[Any, float] | None = None,
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            l2_strength=l2_strength,
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
            radius=radius,
            neighbors=neighbors,
            n_public=n_public,
            persons=persons,
            weights=weights,
            ledger=ledger,
            n_threads=n_threads,
            seed=seed,
        )
        self.classes = classes
        self.class_weight = class_weight

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probabilities of both classes by row, shape (n_samples, 2), in the order of ``classes_``."""
        score = self._linear_predictor(X)
        return np.column_stack([expit(-score), expit(score)])

    def predict_log_proba(self, X: Table) -> NDArray[np.float64]:
        """Logarithms of :meth:`predict_proba`, without underflow."""
        score = self._linear_predictor(X)
        return np.column_stack([log_expit(-score), log_expit(score)])

    def _loss(self) -> Logistic:
        return Logistic()


class PrivateLinearSVC(PrivateClassifier):
    """Linear support vector machine (Huber hinge) with differential privacy and confidence intervals.

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
        Regularisation λ > 0 of mean loss + (λ/2)·||params||²; public, and part of the definition of the target of the
        intervals. None: what public values recommend for predictions (docs/sklearn.md, "The default λ").
    h : float
        Half-width of the parabola that rounds the kink of the hinge at margin 1.
    row_norm : float, optional
        Public bound on the Euclidean norm of a row, without the intercept. None: 1, unless ``rows`` is given.
    rows : Ball or Blocks of dpci.rows, optional
        Public domain of the rows in place of ``row_norm``: bounds of each column, or group of indicators, by itself.
    on_violation : {"clip", "error"}
        Treatment of rows beyond their bounds: scale them into the bounds, which is part of the model, or refuse the
        data.
    classes : (negative, positive), optional
        The public classes in increasing order. None: (False, True) where ``y`` has a boolean data type; other labels,
        also 0 and 1, are inferred from ``y``, with a ``PrivacyLeakWarning``.
    fit_intercept : bool
        Whether there is an intercept; it is regularised like the coefficients, which the privacy proof needs.
    intercept_scale : float
        Size of the constant column behind the intercept; a larger one weakens the regularisation of the intercept and
        needs more noise.
    mechanism : {"objective", "output"} or object of dpci.mechanisms
        "objective": noise is added to the objective before it is minimised. "output": to the minimiser.
    split : sequence of three floats, optional
        Shares of the budget of coefficients, Hessian and gradient covariance.
    moments : {"joint", "separate", "none"}
        How Hessian and gradient covariance, which the intervals need, are released. "none": not at all; the
        coefficients have the whole budget, and there are no intervals.
    projection : {"auto", "floor", "cautious", "noise_aware"}
        How intervals treat the noise in the released matrices.
    calibration : {"tight", "paper"}
        Constants of the noise: the smallest that are proved, or those of the published method, with more noise.
    radius : float, optional
        Bound on the norm of the parameters, intercept included.
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
    class_weight : mapping, optional
        Public weights of the two classes, such as ``{0: 1.0, 1: 5.0}``, by which rows count. The noise grows with the
        greater one. Weights that are computed from the labels, as "balanced" ones are, would not be private.
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
    coef_ : ndarray of shape (1, n_features_in_)
        Released coefficients.
    intercept_ : ndarray of shape (1,)
        Released intercept; 0 without one.
    classes_ : ndarray of shape (2,)
        (negative, positive).
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X is a frame whose columns are named by strings.
    result_ : PrivateFit
        Everything that was released, with its intervals and its record of privacy.

    References
    ----------
    Chaudhuri, Monteleoni & Sarwate (2011), "Differentially private empirical risk minimization"; Wang, Kifer & Lee,
    "Differentially private confidence intervals for empirical risk minimization".

    Examples
    --------
    >>> import numpy as np
    >>> from dpci.sklearn import PrivateLinearSVC
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> model = PrivateLinearSVC(epsilon=None, rho=0.5, l2_strength=0.05).fit(X, X[:, 0] > 0)
    >>> model.predict(X[:2]).tolist()
    [True, False]
    """

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = None,
        rho: float | None = None,
        l2_strength: float | None = None,
        h: float = 0.5,
        row_norm: float | None = None,
        rows: RowDomain | None = None,
        on_violation: OnViolation = "clip",
        classes: Sequence[Any] | None = None,
        fit_intercept: bool = True,
        intercept_scale: float = 1.0,
        mechanism: MechanismLike = "objective",
        split: Sequence[float] | None = None,
        moments: Moments = "joint",
        projection: Projection = "auto",
        calibration: Calibration = "tight",
        radius: float | None = None,
        neighbors: Neighbors = "replace_one",
        n_public: int | None = None,
        persons: Persons | None = None,
        weights: Weights | None = None,
        class_weight: Mapping[Any, float] | None = None,
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            l2_strength=l2_strength,
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
            radius=radius,
            neighbors=neighbors,
            n_public=n_public,
            persons=persons,
            weights=weights,
            ledger=ledger,
            n_threads=n_threads,
            seed=seed,
        )
        self.classes = classes
        self.class_weight = class_weight
        self.h = h

    def _loss(self) -> HuberHinge:
        return HuberHinge(h=self.h)
