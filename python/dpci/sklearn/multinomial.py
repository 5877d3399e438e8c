"""Private multinomial logistic regression: three classes or more."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets

from dpci.budgets import Neighbors
from dpci.data.arrays import OnViolation, Table
from dpci.data.frames import decoded
from dpci.data.interchange import taken_over
from dpci.data.labels import (
    Label,
    check_present,
    check_several_classes,
    label_array,
    several_read_off,
    warn_of_inferred,
)
from dpci.errors import InvalidInput
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.mechanisms import MechanismLike
from dpci.model.settings import Moments
from dpci.model.tables import Source, check_unit_columns
from dpci.multinomial.release import multinomial_settings, release_fit
from dpci.multinomial.result import MultinomialFit
from dpci.sklearn.base import PrivateEstimator, budget_of, restored_on_error
from dpci.sklearn.leaks import warn_of_fitting, warn_of_score
from dpci.unit import Persons, Weights


class PrivateMultinomialRegression(ClassifierMixin, PrivateEstimator):
    """Multinomial logistic regression with differential privacy and confidence intervals, for three classes or more.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: parameters, which have to be
    public and must not be chosen by looking at the data; and scores. The keywords are those of
    :func:`dpci.multinomial.fit`, which says more about each.

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
        intervals. It acts on the log odds of each class against the reference.
        None: what public values recommend for predictions (docs/sklearn.md, "The default λ"); ``result_`` has it.
    row_norm : float, optional
        Public bound on the Euclidean norm of a row, without the intercept. None: 1.
    on_violation : {"clip", "error"}
        Treatment of longer rows: scale them to the bound, which is part of the model, or refuse the data.
    classes : sequence of labels, optional
        The public classes, 3 to 20 of them, the reference first. None: inferred from ``y``, with a
        ``PrivacyLeakWarning``; the reference is then the smallest label.
    mechanism : {"objective", "output"} or object of dpci.mechanisms, optional
        Where the noise is added: to the risk, or to the minimiser. None: "output" with ``rho``, otherwise "objective".
    fit_intercept : bool
        Whether there are intercepts; they are regularised like the coefficients, which the privacy proof needs.
    intercept_scale : float
        Size of the constant column behind the intercepts; a larger one weakens their regularisation and needs more
        noise.
    split : sequence of three floats, optional
        Shares of the budget of coefficients, Hessian and gradient covariance.
    moments : {"joint", "separate", "none"}
        How Hessian and gradient covariance, which the intervals need, are released; "none" leaves the whole budget to
        the coefficients, without intervals.
    neighbors : {"replace_one", "add_remove"}
        Data sets that must be hard to tell apart.
    n_public : int, optional
        Public stand-in for the number of records, for "add_remove".
    persons : Persons, optional
        How many rows of a person count, for fits with ``persons=ids``: ``dpci.Persons(max_rows=3)``. None: all rows.
    weights : Weights, optional
        The public bound and total of ``sample_weight``, required by fits with such weights:
        ``dpci.Weights(bound=4.0)``.
    ledger : Ledger, optional
        Where every fit is paid. Clones share it. It is pickled with the estimator: ``set_params(ledger=None)`` before a
        fitted model is saved for others.
    n_threads : int, optional
        Threads; None: all cores.
    seed : int, optional
        For tests and simulations only: noise from a seed is not private, and a warning says so. It is not called
        ``random_state``, because scikit-learn's ensembles set every parameter of that name.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features_in_)
        Released log odds per unit against the reference, in the order of ``classes_``; 0 in the row of the reference.
    intercept_ : ndarray of shape (n_classes,)
        Released log odds at the origin against the reference; 0 for the reference, and without intercepts.
    classes_ : ndarray of shape (n_classes,)
        The classes in increasing order, as the metrics of scikit-learn need them; ``result_.classes`` has the reference
        first.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X is a frame with text for names.
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

    result_: MultinomialFit
    classes_: NDArray[Any]

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = None,
        rho: float | None = None,
        l2_strength: float | None = None,
        row_norm: float | None = None,
        on_violation: OnViolation = "clip",
        classes: Sequence[Any] | None = None,
        mechanism: MechanismLike | None = None,
        fit_intercept: bool = True,
        intercept_scale: float = 1.0,
        split: Sequence[float] | None = None,
        moments: Moments = "joint",
        neighbors: Neighbors = "replace_one",
        n_public: int | None = None,
        persons: Persons | None = None,
        weights: Weights | None = None,
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.l2_strength = l2_strength
        self.row_norm = row_norm
        self.on_violation = on_violation
        self.classes = classes
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.intercept_scale = intercept_scale
        self.split = split
        self.moments = moments
        self.neighbors = neighbors
        self.n_public = n_public
        self.persons = persons
        self.weights = weights
        self.ledger = ledger
        self.n_threads = n_threads
        self.seed = seed

    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        persons: ArrayLike | None = None,
    ) -> Self:
        """Fit with differential privacy, spending the budget once more at every call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; longer ones than ``row_norm`` are scaled to it with ``on_violation="clip"``.
        y : array-like of shape (n_samples,)
            The class of each row.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts: from 0 to the public bound of ``weights`` (docs/weights.md).
        persons : array-like of shape (n_samples,), optional
            See :class:`PrivateLogisticRegression`: the person to whom each row belongs.

        Returns
        -------
        self
            With the attributes above, which hold released and public values only.

        Raises
        ------
        InvalidInput
            For parameters out of range or that contradict each other, before the data are looked at, and for data that
            :func:`dpci.multinomial.fit` refuses.
        ValueError
            For data that scikit-learn refuses.
        RowNormViolation, RegularizationTooSmall, NotConverged, BudgetExceeded, LedgerError, ReleaseFailed
            See :func:`dpci.multinomial.fit`. Nothing is released by any error.

        Warns
        -----
        PrivacyLeakWarning
            If the classes were inferred from ``y`` and no seed is given. Also if the fit is called by a package of
            scikit-learn that compares fits, repeats them or reads the data itself (docs/sklearn.md).
        SeededNoiseWarning
            If a seed is given.
        """
        warn_of_fitting()
        unit, weights, beside = self._given(persons, sample_weight)
        check_unit_columns(None, X, beside)
        keywords = {**self._fit_keywords(), "persons": unit, "weights": weights}
        known = keywords.pop("classes")
        recommended = keywords["l2_strength"] is None
        if recommended:
            keywords["l2_strength"] = 1.0  # until the rule has one
        # All but the number of classes is checked before the data are looked at, which may have to tell it.
        classes = None if known is None else _sortable(known)
        settings = multinomial_settings(3, **keywords)
        payment = Payment.of(f"dpci.sklearn.{type(self).__name__}", self.ledger, settings, budget=settings.budget)
        if classes is None and payment.private:
            raise InvalidInput(
                "classes must be given with a ledger that has errors='private', got classes=None (they would be "
                "inferred from y)"
            )
        with restored_on_error(self):
            if classes is None:
                source = Source(*self._check_data(X, y), None)
                classes = several_read_off(source.y)
                if self.seed is None:
                    warn_of_inferred(classes)
            else:
                source = Source(X, y, self._check_data)
            result = release_fit(
                source,
                classes,
                multinomial_settings(len(classes), **keywords),
                payment=payment,
                beside=beside,
                inferred=known is None,
                recommended=recommended,
            )
            return self._take(result)

    def decision_function(self, X: Table) -> NDArray[np.float64]:
        """Log odds of each class against the reference, shape (n_samples, n_classes), columns as in ``classes_``."""
        return self._linear_predictor(X)[:, self._order()]

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

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """(Weighted) share of rows that are classified correctly; not private, unless the rows are public."""
        warn_of_score()
        return float(super().score(X, y, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _fit_keywords(self) -> dict[str, Any]:
        """Return the keywords of :func:`dpci.multinomial.fit` but the ledger and the weights."""
        keywords = self.get_params(deep=False)
        for name in ("ledger", "persons", "weights"):
            del keywords[name]
        budget = budget_of(*(keywords.pop(name) for name in ("epsilon", "delta", "rho")))
        return {**keywords, "budget": budget}

    def _take(self, result: MultinomialFit) -> Self:  # type: ignore[override]  # of its own kind
        """Set the fitted attributes from what was released."""
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
        y = decoded(taken_over("y", y))
        labels = np.asarray(y)
        if labels.dtype.kind == "O" and labels.ndim == 1:
            check_present(labels)  # before scikit-learn stumbles over None beside strings
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
