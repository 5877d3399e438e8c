"""Base of the private estimators: parameters become keywords of a fit, and a fit becomes fitted attributes."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import Tags, check_array, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from dpci.base.habits import ESTIMATORS, OF_ESTIMATORS, instead
from dpci.base.threads import threads
from dpci.base.validation import as_name, check_choice, check_flag, check_positive
from dpci.budgets import ZCDP, ApproxDP, GaussianBudget, PureDP, neighbors_of
from dpci.data.arrays import NamedRows, Table, as_features, known
from dpci.data.frames import decoded, is_frame, is_lazy, named_columns, taken_over
from dpci.data.rows import Source
from dpci.errors import InvalidInput
from dpci.inference.intervals import ConfidenceIntervals
from dpci.ledger.payment import Payment
from dpci.losses import PARAMETERS, Loss
from dpci.mechanisms import NewtonSteps
from dpci.model.fit import release_fit
from dpci.model.newton import check_newton
from dpci.model.result import PrivateFit
from dpci.model.settings import Settings
from dpci.regression.result import LinearFit
from dpci.rows import Ball, Clipped, Within
from dpci.sklearn.leaks import warn_of_fitting, warn_of_inspection
from dpci.sklearn.parameters import CommonParameters
from dpci.sources.described import check_unit_columns
from dpci.unit import Beside, Given, Persons, Weights, check_unit, check_weights

# float32 is passed on as it is.
_DTYPES = (np.float64, np.float32)


class Releasing(BaseEstimator):
    """An estimator each of whose fits is a private release."""

    result_: Any

    def conf_int(self, **keywords: Any) -> ConfidenceIntervals:  # noqa: ANN401  # those of another method
        """Confidence intervals of the fit, which cost nothing more; the intercept, if there is one, is last.

        They are for the released ``params``: the last entry times ``intercept_scale`` (if any) is ``intercept_``.

        Parameters
        ----------
        **keywords
            Keywords of the same method of the released fit, such as ``level`` and ``contrast``.

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
        return cast("ConfidenceIntervals", self._released().conf_int(**keywords))

    if not TYPE_CHECKING:  # so that a checker of types refuses unknown names

        def __getattr__(self, name: str) -> object:
            """Refuse an unknown name, with advice where users of other libraries type it by habit, or before a fit."""
            fitted, advice = "result_" in vars(self), instead(name, OF_ESTIMATORS)
            if not fitted and name.endswith("_") and not name.startswith("_"):
                advice = ": not fitted: call fit(X, y) first"
            elif not fitted and advice:
                advice = f": not fitted: call fit(X, y) first, then {advice.removeprefix(': ')}"
            message = f"{type(self).__name__!r} object has no attribute {name!r}{advice}"
            raise AttributeError(message, name=name, obj=self)

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401  # of any kind
        """Set parameters, as scikit-learn does; one that there is not is refused with advice."""
        known = self.get_params(deep=False)
        for name in params:
            if name in ESTIMATORS and name not in known:
                raise ValueError(f"invalid parameter {name!r} of {type(self).__name__}{instead(name, ESTIMATORS)}")
        return cast("Self", super().set_params(**params))

    def __sklearn_clone__(self) -> Self:
        warn_of_fitting()
        return cast("Self", super().__sklearn_clone__())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

    def _released(self) -> Any:  # noqa: ANN401  # the result of its own kind
        """Return the released fit."""
        check_is_fitted(self)
        return self.result_


class PrivateEstimator(CommonParameters, Releasing, ABC):
    """A linear model with differential privacy: what scikit-learn asks of it, but not how it is fitted.

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
    result_ : PrivateFit
        Everything that was released, with its intervals and its record of privacy.
    """

    coef_: NDArray[np.float64]
    intercept_: float | NDArray[np.float64]
    n_features_in_: int

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
            Rows; those beyond their bounds are brought into them with ``on_violation="clip"``.
        y : array-like of shape (n_samples,)
            Targets, or the class of each row.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts: from 0 to the public bound of ``weights`` (docs/weights.md).
        persons : array-like of shape (n_samples,), optional
            The person to whom each row belongs, if a person may have several rows. The unit of privacy is then the
            person, and each person counts by the mean over their rows, unless the parameter ``persons`` has
            ``max_rows`` (docs/persons.md). Not for cross-validation, which splits rows.

        Returns
        -------
        self
            With the attributes above, which hold released and public values only.

        Raises
        ------
        InvalidInput
            For parameters out of range or that contradict each other, before the data are looked at, and for data that
            :func:`dpci.fit` (:func:`dpci.regression.release`, :func:`dpci.multinomial.fit`) refuses.
        ValueError
            For data that scikit-learn refuses.
        RowNormViolation, RegularizationTooSmall, NotConverged, BudgetExceeded, LedgerError, ReleaseFailed
            See :func:`dpci.fit`. Nothing is released by any error.

        Warns
        -----
        PrivacyLeakWarning
            If the classes were inferred from ``y`` and no seed is given. Also if the fit is called by a package of
            scikit-learn that compares fits, repeats them or reads the data itself (docs/sklearn.md).
        SeededNoiseWarning, MomentNoiseWarning, CurvatureWarning, CommonLevelWarning
            See :func:`dpci.fit`.
        """
        warn_of_fitting()
        given = self._given(persons, sample_weight)
        source = Source(X, y, given.beside, self._prepared)
        check_unit_columns(None, source)
        with _restored_on_error(self), threads(self.n_threads):
            return self._take(self._release(source, given))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = True
        return tags

    def _prepared(self, source: Source) -> Source:
        """Return rows and targets as :meth:`_check_data` does, with what is beside them."""
        X, y = self._check_data(source.X, source.y)
        return Source(X, y, source.beside)

    def _check_data(self, X: Table, y: ArrayLike) -> tuple[Table, NDArray[Any]]:
        """Return rows and targets as scikit-learn validates them, and set ``n_features_in_``."""
        _check_unmasked("X", X)
        _check_unmasked("y", y)
        X, y, y_numeric = known("X", X), decoded(taken_over("y", y)), is_regressor(self)
        if not is_frame(X):
            rows, targets = validate_data(self, X, y, accept_sparse="csr", dtype=_DTYPES, y_numeric=y_numeric)
            return rows, targets
        rows, targets = check_X_y(
            self._rows_of_frame(X, reset=True), y, estimator=self, dtype=_DTYPES, y_numeric=y_numeric
        )
        # Columns that scikit-learn knows by name name the parameters too.
        names = getattr(self, "feature_names_in_", None)
        return (rows if names is None else NamedRows(rows, tuple(map(as_name, names)))), targets

    def _rows_of_frame(self, X: Table, *, reset: bool) -> Any:  # noqa: ANN401  # a matrix
        """Return the numbers of a frame; what scikit-learn would make numbers of, as categories, is refused by name."""
        X = named_columns(X) if is_lazy(X) else X
        rows = as_features(X).values
        validate_data(self, X, reset=reset, skip_check_array=True)  # numbers and names of columns
        return rows

    @abstractmethod
    def _release(self, source: Source, given: Given) -> Any:  # noqa: ANN401  # the result of its own kind
        """Check the parameters, pay, and release."""

    def _take(self, result: Any) -> Self:  # noqa: ANN401  # the result of its own kind
        """Set the fitted attributes from what was released."""
        params = result.params
        self.result_ = result
        self.coef_ = np.array(params[: self.n_features_in_])
        self.intercept_ = float(getattr(self, "intercept_scale", 1.0) * params[-1]) if self.fit_intercept else 0.0
        return self

    def _source(self) -> str:
        """Return the name of the estimator in a ledger."""
        return f"dpci.sklearn.{type(self).__name__}"

    def _keywords(self) -> dict[str, Any]:
        """Return the keywords of a release: all parameters but those of the ledger and the unit."""
        keywords = self.get_params(deep=False)
        for name in ("epsilon", "delta", "rho", "ledger", "persons", "weights", "n_threads"):
            del keywords[name]
        fitted = check_flag("fit_intercept", keywords.pop("fit_intercept"))
        scale = check_positive("intercept_scale", keywords.pop("intercept_scale", 1.0))
        clips = check_choice("on_violation", keywords.pop("on_violation"), ("error", "clip")) == "clip"
        norm, rows = keywords.pop("row_norm"), keywords.pop("rows", None)
        if norm is not None and rows is not None:
            raise InvalidInput(f"row_norm must be None with rows, got row_norm={norm!r} and rows={rows!r}")
        rows = rows if norm is None else Ball(check_positive("row_norm", norm))
        keywords["rows"] = (Clipped if clips else Within)(rows, intercept=fitted and scale)
        keywords["neighbors"] = neighbors_of(keywords["neighbors"], keywords.pop("n_public"))
        return {**keywords, "budget": self._budget()}

    def _budget(self) -> GaussianBudget:
        """Return the budget that the parameters name: rho alone, or epsilon, or epsilon and delta."""
        epsilon, delta, rho = self.epsilon, self.delta, self.rho
        if rho is not None:
            if epsilon is not None or delta is not None:
                raise InvalidInput(
                    f"epsilon and delta must be None if rho is given, got {epsilon=}, {delta=}, {rho=} (pass "
                    "epsilon=None, because its default is 1)"
                )
            return ZCDP(rho)
        if epsilon is None:
            raise InvalidInput(f"epsilon must be given unless rho is given, got epsilon=None, {delta=}, rho=None")
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)

    def _given(self, persons: ArrayLike | None, sample_weight: ArrayLike | None) -> Given:
        """Return unit and weights of a fit: public parts are parameters, columns are arguments of ``fit``."""
        unit, weights = check_unit(self.persons), check_weights(self.weights)
        for name, values, kind in (("persons", persons, Persons), ("sample_weight", sample_weight, Weights)):
            if isinstance(values, kind):
                raise InvalidInput(
                    f"{name} must be an array in fit, got dpci.{kind.__name__} (pass its public part to the estimator, "
                    f"as the parameter {kind.__name__.lower()})"
                )
        if isinstance(persons, str):
            raise InvalidInput(
                f"persons must be an array of ids in fit, got the text {persons!r} (pass the column: "
                f"persons=frame[{persons!r}])"
            )
        if persons is None and unit is not None:
            raise InvalidInput(
                f"persons=ids must be given to fit by an estimator with persons={unit!r}, got persons=None in fit"
            )
        if sample_weight is not None and weights is None:
            raise InvalidInput(
                "weights=dpci.Weights(bound=...) must be a parameter of the estimator for fits with sample_weight, "
                "because the greatest weight that any record could have must not depend on the data, got weights=None"
            )
        return Given(
            None if persons is None else unit or Persons(),
            None if sample_weight is None else weights,
            Beside(persons, sample_weight),
        )

    def _check_rows(self, X: Table) -> Any:  # noqa: ANN401  # a matrix
        """Return rows to predict for as scikit-learn validates them."""
        check_is_fitted(self)
        warn_of_inspection()
        _check_unmasked("X", X)
        X = known("X", X)
        if is_frame(X):
            return check_array(self._rows_of_frame(X, reset=False), estimator=self, dtype=_DTYPES, input_name="X")
        return validate_data(self, X, reset=False, accept_sparse="csr", dtype=_DTYPES)


class PrivateLinearEstimator(PrivateEstimator):
    """A linear model that is fitted by :func:`dpci.fit`; the classes of :mod:`dpci.sklearn` say which."""

    def _release(self, source: Source, given: Given) -> PrivateFit | LinearFit:
        keywords = self._keywords()
        by_steps = keywords["mechanism"] == NewtonSteps.name
        if by_steps:
            check_newton(keywords)
            keywords |= {"mechanism": NewtonSteps(), "l2_strength": 0.0}
        settings = Settings.checked(**keywords, persons=given.unit, weights=given.weights)
        payment = Payment.of(self._source(), self.ledger, settings, budget=settings.budget)
        return release_fit(source, settings, payment=payment)

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the loss that the parameters name."""

    def _keywords(self) -> dict[str, Any]:
        keywords = {name: value for name, value in super()._keywords().items() if name not in PARAMETERS}
        return {**keywords, "loss": self._loss()}


@contextmanager
def _restored_on_error(estimator: PrivateEstimator) -> Iterator[None]:
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
