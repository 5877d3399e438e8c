"""Private multinomial logistic regression: three classes or more."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.utils.multiclass import check_classification_targets

from dpci.data.arrays import Table
from dpci.data.labels import Label, check_several_classes, label_array, several_read_off, warn_of_inferred
from dpci.data.rows import Source
from dpci.errors import InvalidInput
from dpci.ledger.payment import Payment
from dpci.multinomial.release import multinomial_settings, release_fit
from dpci.multinomial.result import MultinomialFit
from dpci.sklearn.classifiers import ClassifierBase
from dpci.sklearn.docstrings import described
from dpci.sklearn.parameters import MultinomialParameters
from dpci.unit import Given


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
