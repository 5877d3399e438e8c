"""Private linear classifiers: logistic regression of two classes or more, and a support vector machine."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from scipy.special import expit, log_expit
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from dpci.data.arrays import Table
from dpci.data.frames import decoded, taken_over
from dpci.data.labels import (
    Label,
    check_classes,
    check_present,
    check_several_classes,
    is_boolean,
    label_array,
    several_read_off,
    warn_of_inferred,
)
from dpci.data.rows import Source
from dpci.data.weights import ClassWeights
from dpci.errors import InvalidInput
from dpci.ledger.payment import Payment
from dpci.losses import HuberHinge, Logistic
from dpci.model.result import PrivateFit
from dpci.multinomial.release import multinomial_settings, release_fit
from dpci.multinomial.result import MultinomialFit
from dpci.sklearn.base import PrivateEstimator, PrivateLinearEstimator
from dpci.sklearn.docstrings import described
from dpci.sklearn.leaks import warn_of_score
from dpci.sklearn.parameters import ClassParameters, HingeParameters, MultinomialParameters
from dpci.unit import Given, Weights


class ClassifierBase(ClassifierMixin, PrivateEstimator):
    """A private linear model of a class."""

    classes_: NDArray[Any]

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """(Weighted) share of rows that are classified correctly; not private, unless the rows are public."""
        warn_of_score()
        return float(super().score(X, y, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _check_data(self, X: Table, y: ArrayLike) -> tuple[Table, NDArray[Any]]:
        labels = np.asarray(decoded(taken_over("y", y)))
        if labels.dtype.kind == "O" and labels.ndim == 1:
            check_present(labels)  # before scikit-learn stumbles over None beside strings
        return super()._check_data(X, y)


class BinaryClassifier(ClassParameters, ClassifierBase, PrivateLinearEstimator):
    """A private linear model of two classes.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features_in_)
        Released coefficients.
    intercept_ : ndarray of shape (1,)
        Released intercept; 0 without one.
    classes_ : ndarray of shape (2,)
        (negative, positive).
    """

    def decision_function(self, X: Table) -> NDArray[np.float64]:
        """Linear predictor of each row, shape (n_samples,): above 0 for ``classes_[1]``."""
        rows = self._check_rows(X)
        return np.asarray(self.result_.decision_function(rows))

    def predict(self, X: Table) -> NDArray[Any]:
        """Class of each row, shape (n_samples,)."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(np.intp)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
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

    def _keywords(self) -> dict[str, Any]:
        if self.classes is not None:
            _check_order(self.classes)
        keywords = super()._keywords()
        del keywords["class_weight"]
        return keywords

    def _check_data(self, X: Table, y: ArrayLike) -> tuple[Table, NDArray[Any]]:
        y = decoded(taken_over("y", y))
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

    def _take(self, result: PrivateFit) -> Self:
        super()._take(result)
        self.coef_ = self.coef_[np.newaxis]
        self.intercept_ = np.array([self.intercept_])
        if result.classes is not None:
            self.classes_ = label_array(result.classes)
        return self


@described
class PrivateLogisticRegression(BinaryClassifier):
    """Logistic regression of two classes with differential privacy and confidence intervals.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: the parameters, which must be
    public and chosen without looking at the data, and scores. The keywords are those of :func:`dpci.fit`, which says
    more about each. scikit-learn's ``C`` is 1/(n_samples·``l2_strength``).

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

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probabilities of both classes by row, shape (n_samples, 2), in the order of ``classes_``."""
        score = self.decision_function(X)
        return np.column_stack([expit(-score), expit(score)])

    def predict_log_proba(self, X: Table) -> NDArray[np.float64]:
        """Logarithms of :meth:`predict_proba`, without underflow."""
        score = self.decision_function(X)
        return np.column_stack([log_expit(-score), log_expit(score)])

    def _loss(self) -> Logistic:
        return Logistic()


@described
class PrivateLinearSVC(HingeParameters, BinaryClassifier):
    """Linear support vector machine (Huber hinge) with differential privacy and confidence intervals.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: the parameters, which must be
    public and chosen without looking at the data, and scores. The keywords are those of :func:`dpci.fit`, which says
    more about each.

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

    def _loss(self) -> HuberHinge:
        return HuberHinge(h=self.h)


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
            "classes must be (negative, positive) in increasing order, because scikit-learn sorts labels and takes the "
            f"second for the positive class, got {classes!r} (to model {positive!r}, pass y == {positive!r} without "
            "classes, or rename the labels; in the other order every sign is reversed)"
        )


@described
class PrivateMultinomialRegression(MultinomialParameters, ClassifierBase):
    """Multinomial logistic regression with differential privacy and confidence intervals, for three classes or more.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: the parameters, which must be
    public and chosen without looking at the data, and scores. The keywords are those of :func:`dpci.multinomial.fit`,
    which says more about each.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features_in_)
        Released log odds per unit against the reference, in the order of ``classes_``; 0 in the row of the reference.
    intercept_ : ndarray of shape (n_classes,)
        Released log odds at the origin against the reference; 0 for the reference, and without intercepts.
    classes_ : ndarray of shape (n_classes,)
        The classes in increasing order, as the metrics of scikit-learn need them; ``result_.classes`` has the reference
        first.
    result_ : dpci.multinomial.MultinomialFit
        Everything that was released, with its intervals and its record of privacy.

    Examples
    --------
    >>> import numpy as np
    >>> from dpci.sklearn import PrivateMultinomialRegression
    >>> X = np.tile([[0.8], [0.0], [-0.8]], (3000, 1))
    >>> y = np.tile(["high", "middle", "low"], 3000)
    >>> model = PrivateMultinomialRegression(epsilon=3.0, l2_strength=0.01, classes=("middle", "low", "high"))
    >>> model.fit(X, y).classes_.tolist(), model.coef_.shape
    (['high', 'low', 'middle'], (3, 1))
    >>> model.conf_int().names
    ('low:x0', 'low:intercept', 'high:x0', 'high:intercept')
    """

    def _release(self, source: Source, given: Given) -> MultinomialFit:
        keywords = {**self._keywords(), "persons": given.unit, "weights": given.weights}
        known = keywords.pop("classes")
        # All but the number of classes is checked before the data are looked at, which may have to tell it.
        classes = None if known is None else _sortable(known)
        settings = multinomial_settings(3, **keywords)
        payment = Payment.of(self._source(), self.ledger, settings, budget=settings.budget)
        if classes is None and payment.private:
            raise InvalidInput(
                "classes must be given with a ledger that has errors='private', got classes=None (they would be "
                "inferred from y)"
            )
        if classes is None:
            source = self._prepared(source)
            classes = several_read_off(source.y)
            if self.seed is None:
                warn_of_inferred(classes)
        return release_fit(
            source,
            classes,
            multinomial_settings(len(classes), **keywords),
            payment=payment,
            inferred=known is None,
        )

    def decision_function(self, X: Table) -> NDArray[np.float64]:
        """Log odds of each class against the reference, shape (n_samples, n_classes), columns as in ``classes_``."""
        rows = self._check_rows(X)
        return np.asarray(self.result_.decision_function(rows))[:, self._order()]

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probability of each class, shape (n_samples, n_classes), columns as in ``classes_``."""
        return np.asarray(special.softmax(self.decision_function(X), axis=1))

    def predict_log_proba(self, X: Table) -> NDArray[np.float64]:
        """Logarithm of the probability of each class, also where that is 0 to double precision."""
        return np.asarray(special.log_softmax(self.decision_function(X), axis=1))

    def predict(self, X: Table) -> NDArray[Any]:
        """Most probable class of each row, shape (n_samples,)."""
        chosen = self.decision_function(X).argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def _take(self, result: MultinomialFit) -> Self:
        self.result_ = result
        order = self._order()
        self.classes_ = label_array(tuple(result.classes[at] for at in order))
        self.coef_ = np.vstack([np.zeros(self.n_features_in_), result.coef])[order]
        self.intercept_ = np.append(0.0, result.intercept)[order]
        return self

    def _order(self) -> list[int]:
        """Where the classes of the result, whose first is the reference, stand in increasing order."""
        classes = self.result_.classes
        return sorted(range(len(classes)), key=lambda at: classes[at])

    def _check_data(self, X: Table, y: ArrayLike) -> tuple[Table, NDArray[Any]]:
        table, labels = super()._check_data(X, y)
        check_classification_targets(labels)
        return table, labels


def _sortable(classes: Sequence[Any]) -> tuple[Label, ...]:
    """Return public classes that have an order, which scikit-learn's attribute ``classes_`` needs."""
    found = check_several_classes(classes)
    try:
        sorted(found)  # the except clause is the check
    except TypeError as error:
        raise InvalidInput(f"classes must be of one type, because classes_ is sorted, got {classes!r}") from error
    return found
