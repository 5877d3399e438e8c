"""What the private estimators share: parameters become keywords of a fit, and a fit becomes fitted attributes."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.utils import Tags, check_array, check_X_y
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from dpci.budgets import ZCDP, ApproxDP, Budget, Calibration, Neighbors, PureDP
from dpci.data.arrays import NamedRows, OnViolation, Table, as_features
from dpci.data.frames import decoded, is_frame
from dpci.data.labels import check_classes, check_present, is_boolean, label_array
from dpci.errors import InvalidInput
from dpci.inference.intervals import ConfidenceIntervals
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.losses import Loss
from dpci.mechanisms import MechanismLike
from dpci.model.fit import release_fit
from dpci.model.result import PrivateFit
from dpci.model.settings import Moments, Projection, Settings
from dpci.model.tables import person_rule
from dpci.rows import RowDomain
from dpci.sklearn.leaks import level_of_user, warn_of_fitting, warn_of_inspection, warn_of_score

# float32 is passed on as it is.
_DTYPES = (np.float64, np.float32)


class PrivateLinearEstimator(BaseEstimator, ABC):
    """A linear model that is fitted by :func:`dpci.fit`; the classes of :mod:`dpci.sklearn` say which."""

    result_: PrivateFit
    coef_: NDArray[np.float64]
    intercept_: float | NDArray[np.float64]
    n_features_in_: int

    def __init__(
        self,
        *,
        epsilon: float | None,
        delta: float | None,
        rho: float | None,
        l2_strength: float | None,
        row_norm: float | None,
        rows: RowDomain | None,
        on_violation: OnViolation,
        fit_intercept: bool,
        intercept_scale: float,
        mechanism: MechanismLike,
        split: Sequence[float] | None,
        moments: Moments,
        projection: Projection,
        calibration: Calibration,
        radius: float | None,
        neighbors: Neighbors,
        n_public: int | None,
        ledger: Ledger | None,
        n_threads: int | None,
        seed: int | None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.l2_strength = l2_strength
        self.row_norm = row_norm
        self.rows = rows
        self.on_violation = on_violation
        self.fit_intercept = fit_intercept
        self.intercept_scale = intercept_scale
        self.mechanism = mechanism
        self.split = split
        self.moments = moments
        self.projection = projection
        self.calibration = calibration
        self.radius = radius
        self.neighbors = neighbors
        self.n_public = n_public
        self.ledger = ledger
        self.n_threads = n_threads
        self.seed = seed

    def fit(self, X: Table, y: ArrayLike, *, persons: ArrayLike | None = None, max_rows: int | None = None) -> Self:
        """Fit with differential privacy, spending the budget once more at every call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; those beyond their bounds are scaled into them with ``on_violation="clip"``.
        y : array-like of shape (n_samples,)
            Targets.
        persons : array-like of shape (n_samples,), optional
            Whose each row is, where a person may have several: the unit of privacy is then the person, and the mean of
            their rows counts (docs/persons.md). Not for searches and cross-validation, which split rows.
        max_rows : int, optional
            With ``persons``: the first ``max_rows`` rows of each count, by ``1 / max_rows`` each.

        Returns
        -------
        self
            With the attributes above, which hold released and public values only.

        Raises
        ------
        InvalidInput
            For parameters out of range or that contradict each other, before the data are looked at, and for data that
            :func:`dpci.fit` refuses.
        ValueError
            For data that scikit-learn refuses.
        RowNormViolation, RegularizationTooSmall, NotConverged, BudgetExceeded, LedgerError, ReleaseFailed
            As :func:`dpci.fit`. Nothing is released by any error.

        Warns
        -----
        PrivacyLeakWarning
            If the classes were inferred from ``y`` and no seed is given. Also if the fit is called by a package of
            scikit-learn that compares fits, repeats them or reads the data itself (docs/sklearn.md).
        SeededNoiseWarning, MomentNoiseWarning, CurvatureWarning
            As :func:`dpci.fit`.
        """
        warn_of_fitting()
        keywords = self._fit_keywords()
        recommended = keywords["l2_strength"] is None
        if recommended:
            keywords["l2_strength"] = 1.0  # until the rule has one
        contribution = person_rule(persons, None, max_rows)
        settings = Settings.checked(**keywords, contribution=contribution, max_rows=max_rows)
        payment = Payment.due(
            f"dpci.sklearn.{type(self).__name__}",
            self.ledger,
            budget=settings.budget,
            neighbors=settings.neighbors,
            seed=settings.seed,
        )
        level = level_of_user()
        with _restored_on_error(self):
            return self._take(
                release_fit(
                    X,
                    y,
                    settings,
                    payment=payment,
                    prepare=self._check_data,
                    persons=persons,
                    recommended=recommended,
                    stacklevel=level + 1,
                )
            )

    def conf_int(self, **keywords: Any) -> ConfidenceIntervals:  # noqa: ANN401  # those of another method
        """Confidence intervals of the fit, which cost nothing more; the intercept, if there is one, is last.

        They are for ``result_.params``: its last entry times ``intercept_scale`` is ``intercept_``.

        Parameters
        ----------
        **keywords
            Those of :meth:`dpci.PrivateFit.conf_int`, such as ``level`` and ``contrast``.

        Returns
        -------
        ConfidenceIntervals
            One interval for each parameter, or for each row of the contrast.

        Raises
        ------
        InvalidInput
            For a fit without intervals, or arguments out of range.
        sklearn.exceptions.NotFittedError
            Before a fit.
        """
        check_is_fitted(self)
        return self.result_.conf_int(**keywords)

    def __sklearn_clone__(self) -> Self:
        warn_of_fitting()
        return cast("Self", super().__sklearn_clone__())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the loss that the parameters name."""

    def _fit_keywords(self) -> dict[str, Any]:
        """Return the keywords of :func:`dpci.fit` but the ledger: all parameters, some under another name."""
        keywords = self.get_params(deep=False)
        for name in ("ledger", "h", "target_bound", "count_bound"):
            keywords.pop(name, None)
        budget = budget_of(*(keywords.pop(name) for name in ("epsilon", "delta", "rho")))
        return {**keywords, "budget": budget, "loss": self._loss()}

    def _check_data(self, X: Table, y: ArrayLike) -> tuple[Table, NDArray[Any]]:
        """Return rows and targets as scikit-learn validates them, and set ``n_features_in_``."""
        _check_unmasked("X", X)
        _check_unmasked("y", y)
        y, y_numeric = decoded(y), is_regressor(self)
        if not is_frame(X):
            rows, targets = validate_data(self, X, y, accept_sparse="csr", dtype=_DTYPES, y_numeric=y_numeric)
            return rows, targets
        rows, targets = check_X_y(
            self._rows_of_frame(X, reset=True), y, estimator=self, dtype=_DTYPES, y_numeric=y_numeric
        )
        # Columns that scikit-learn knows by name name the parameters too.
        names = getattr(self, "feature_names_in_", None)
        return (rows if names is None else NamedRows(rows, tuple(names))), targets

    def _rows_of_frame(self, X: Table, *, reset: bool) -> Any:  # noqa: ANN401  # a matrix
        """Return the numbers of a frame; what scikit-learn would make numbers of, as categories, is refused by name."""
        rows = as_features(X).values
        validate_data(self, X, reset=reset, skip_check_array=True)  # numbers and names of columns
        return rows

    def _take(self, result: PrivateFit) -> Self:
        """Set the fitted attributes from what was released."""
        params = result.params
        self.result_ = result
        self.coef_ = np.array(params[: self.n_features_in_])
        self.intercept_ = float(self.intercept_scale * params[-1]) if self.fit_intercept else 0.0
        return self

    def _linear_predictor(self, X: Table) -> NDArray[np.float64]:
        check_is_fitted(self)
        warn_of_inspection()
        _check_unmasked("X", X)
        if is_frame(X):
            rows = check_array(self._rows_of_frame(X, reset=False), estimator=self, dtype=_DTYPES, input_name="X")
        else:
            rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=_DTYPES)
        return self.result_.decision_function(rows)


class PrivateClassifier(ClassifierMixin, PrivateLinearEstimator):
    """A private linear model of two classes."""

    classes: Sequence[Any] | None
    classes_: NDArray[Any]

    def decision_function(self, X: Table) -> NDArray[np.float64]:
        """Linear predictor of each row, shape (n_samples,): above 0 for ``classes_[1]``."""
        return self._linear_predictor(X)

    def predict(self, X: Table) -> NDArray[Any]:
        """Class of each row, shape (n_samples,)."""
        positive = self._linear_predictor(X) > 0
        return self.classes_[positive.astype(np.intp)]

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of rows that are classified correctly; not private, with a warning, unless the rows are public.

        ``sample_weight`` weights the score only; no fit has one.
        """
        warn_of_score()
        return float(super().score(X, y, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags

    def _fit_keywords(self) -> dict[str, Any]:
        if self.classes is not None:
            _check_order(self.classes)
        return super()._fit_keywords()

    def _check_data(self, X: Table, y: ArrayLike) -> tuple[Table, NDArray[Any]]:
        y = decoded(y)
        _check_objects_present(y)
        table, labels = super()._check_data(X, y)
        kind = type_of_target(labels, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise InvalidInput(f"Only binary classification is supported. The type of the target is {kind}.")
        if self.classes is not None:
            _check_not_encoded(labels, self.classes)
        return table, _of_same_kind(labels, y)

    def _take(self, result: PrivateFit) -> Self:
        super()._take(result)
        self.coef_ = self.coef_[np.newaxis]
        self.intercept_ = np.array([self.intercept_])
        if result.classes is not None:
            self.classes_ = label_array(result.classes)
        return self


def budget_of(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    """Return the budget that the parameters of an estimator name: rho alone, or epsilon, or epsilon and delta."""
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise InvalidInput(
                f"epsilon and delta must be None if rho is given, got epsilon={epsilon!r}, delta={delta!r}, rho={rho!r}"
            )
        return ZCDP(rho)
    if epsilon is None:
        raise InvalidInput(f"epsilon must be given unless rho is given, got epsilon=None, delta={delta!r}, rho=None")
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


@contextmanager
def _restored_on_error(estimator: PrivateLinearEstimator) -> Iterator[None]:
    """Leave the estimator as it was where a fit fails: columns are counted before the data can be refused."""
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def _check_unmasked(name: str, values: object) -> None:
    """Refuse what scikit-learn would silently unmask."""
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInput(f"{name} must have no masked values, got a masked array (fill it, or drop the rows)")


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
