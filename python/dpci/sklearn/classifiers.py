"""Private linear classifiers: logistic regression and a support vector machine."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target

from dpci.budgets import Calibration, Neighbors
from dpci.data.arrays import OnViolation, Table
from dpci.data.frames import decoded
from dpci.data.interchange import taken_over
from dpci.data.labels import check_classes, check_present, is_boolean, label_array
from dpci.data.weights import ClassWeights
from dpci.errors import InvalidInput
from dpci.ledger.ledger import Ledger
from dpci.losses import HuberHinge, Logistic
from dpci.mechanisms import MechanismLike
from dpci.model.result import PrivateFit
from dpci.model.settings import Moments, Projection
from dpci.regression.result import LinearFit
from dpci.rows import RowDomain
from dpci.sklearn.base import PrivateLinearEstimator
from dpci.sklearn.leaks import warn_of_score
from dpci.unit import Given, Persons, Weights


class PrivateClassifier(ClassifierMixin, PrivateLinearEstimator):
    """A private linear model of two classes."""

    classes: Sequence[Any] | None
    class_weight: Mapping[Any, float] | None
    classes_: NDArray[Any]

    def decision_function(self, X: Table) -> NDArray[np.float64]:
        """Linear predictor of each row, shape (n_samples,): above 0 for ``classes_[1]``."""
        return self._linear_predictor(X)

    def predict(self, X: Table) -> NDArray[Any]:
        """Class of each row, shape (n_samples,)."""
        positive = self._linear_predictor(X) > 0
        return self.classes_[positive.astype(np.intp)]

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """(Weighted) share of rows that are classified correctly; not private, unless the rows are public."""
        warn_of_score()
        return float(super().score(X, y, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags

    def _given(self, persons: ArrayLike | None, sample_weight: ArrayLike | None) -> Given:
        given = super()._given(persons, sample_weight)
        if self.class_weight is None:
            return given
        by_class = ClassWeights.checked(self.class_weight, self.classes, sample_weight)
        if given.weights is None:
            total = None if self.weights is None else self.weights.total
            public = Weights(bound=by_class.bound, total=total)
        else:
            public = replace(given.weights, bound=by_class.bound * given.weights.bound)
            by_class = replace(by_class, row_bound=given.weights.bound, clip=self.on_violation == "clip")
        return Given(given.unit, public, given.beside._replace(weights=by_class))

    def _fit_keywords(self) -> dict[str, Any]:
        if self.classes is not None:
            _check_order(self.classes)
        return super()._fit_keywords()

    def _check_data(self, X: Table, y: ArrayLike) -> tuple[Table, NDArray[Any]]:
        y = decoded(taken_over("y", y))
        _check_objects_present(y)
        table, labels = super()._check_data(X, y)
        kind = type_of_target(labels, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise InvalidInput(f"Only binary classification is supported. The type of the target is {kind}.")
        if self.classes is not None:
            _check_not_encoded(labels, self.classes)
        elif self.class_weight is not None and any(
            label not in self.class_weight for label in np.unique(labels).tolist()
        ):
            raise InvalidInput(
                f"y must hold the classes of class_weight, {tuple(self.class_weight)!r}, got other labels; pass "
                "classes and a weight for each of them"
            )
        return table, _of_same_kind(labels, y)

    def _take(self, result: PrivateFit | LinearFit) -> Self:
        super()._take(result)
        self.coef_ = self.coef_[np.newaxis]
        self.intercept_ = np.array([self.intercept_])
        if not isinstance(result, LinearFit) and result.classes is not None:
            self.classes_ = label_array(result.classes)
        return self


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


def _check_objects_present(y: ArrayLike) -> None:
    """Refuse missing labels among objects, such as None beside strings, over which scikit-learn would stumble."""
    labels = np.asarray(y)
    if labels.dtype.kind == "O" and labels.ndim == 1:
        check_present(labels)


def _of_same_kind(labels: NDArray[Any], y: ArrayLike) -> NDArray[Any]:
    """Return labels that have a boolean data type exactly where the caller's had one: it makes the classes public.

    scikit-learn makes floats of pandas' own booleans, and booleans of a list that happens to hold nothing else.
    """
    if is_boolean(y, np.asarray(y)):
        return labels.astype(np.bool_)
    return labels.astype(object) if labels.dtype.kind == "b" else labels


def _check_not_encoded(labels: NDArray[Any], classes: Sequence[Any]) -> None:
    """Say where labels 0 and 1 come from if these are not the classes."""
    zero = labels == 0
    if labels.dtype.kind in "iu" and zero.any() and (zero | (labels == 1)).all() and 0 not in list(classes):
        raise InvalidInput(
            f"y must hold only classes={tuple(classes)!r}, got 0 in row {int(np.argmax(zero))} (with tools of "
            "scikit-learn that encode labels as 0 and 1, such as VotingClassifier, use classes=(0, 1))"
        )


def _check_order(classes: Sequence[Any]) -> None:
    """Refuse classes in another order than scikit-learn's, whose metrics take the greater one for the positive."""
    negative, positive = check_classes(classes)
    try:
        increasing = bool(negative < positive)  # type: ignore[operator]  # the except clause is the check
    except TypeError:
        increasing = False
    if not increasing:
        raise InvalidInput(
            f"classes must be (negative, positive) in increasing order, as in scikit-learn, got {classes!r}"
        )
