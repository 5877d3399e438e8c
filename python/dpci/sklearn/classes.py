"""Labels of private classifiers, their order and their types."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target

from dpci.data.arrays import Table
from dpci.data.frames import decoded
from dpci.data.interchange import taken_over
from dpci.data.labels import check_classes, check_present, is_boolean, label_array
from dpci.data.weights import ClassWeights
from dpci.errors import InvalidInput
from dpci.model.result import PrivateFit
from dpci.regression.result import LinearFit
from dpci.sklearn.base import PrivateLinearEstimator
from dpci.sklearn.leaks import warn_of_score
from dpci.unit import Given, Weights


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
