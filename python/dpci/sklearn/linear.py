"""Private linear regression by least squares, from one released moment matrix."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from dpci.base.validation import check_flag
from dpci.base.warn import warn
from dpci.budgets import GDP, GaussianBudget, Neighbors
from dpci.data.arrays import OnViolation, Table
from dpci.errors import InvalidInput, MomentNoiseWarning
from dpci.ledger.ledger import Ledger
from dpci.model.moments import regression_of_counts
from dpci.model.tables import check_unit_columns
from dpci.regression.choices.keywords import matrix_choices
from dpci.regression.choices.matrix import MatrixChoices
from dpci.regression.choices.model import PRIVATE, Ridge
from dpci.regression.matrix import whole_regression
from dpci.regression.mechanism import payment_for, release_matrix
from dpci.regression.result import LinearFit
from dpci.rows import RowDomain
from dpci.sklearn.base import PrivateEstimator, budget_of, restored_on_error
from dpci.sklearn.leaks import warn_of_fitting, warn_of_score
from dpci.unit import Beside, Persons, Weights


class MomentEstimator(RegressorMixin, PrivateEstimator):
    """Base of all estimators that are fitted from a released moment matrix."""

    ledger: Ledger | None
    persons: Persons | None
    weights: Weights | None

    def predict(self, X: Table) -> NDArray[np.float64]:
        """Predicted target of each row, shape (n_samples,)."""
        return self._linear_predictor(X)

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination R²; not private, with a warning, unless the rows are public.

        ``sample_weight`` weights the score only, whatever weights the fit had.
        """
        warn_of_score()
        return float(super().score(X, y, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _fit_by_moments(
        self, X: Table, y: ArrayLike, choices: MatrixChoices, *, beside: Beside, l2_strength: Ridge
    ) -> Self:
        """Release the matrix, and take the regression of y on all columns."""
        fit_intercept = check_flag("fit_intercept", self.fit_intercept)
        payment = payment_for(f"dpci.sklearn.{type(self).__name__}", self.ledger, choices)
        with restored_on_error(self):
            matrix = release_matrix(
                X,
                y,
                choices,
                payment=payment,
                prepare=self._check_data,
                beside=beside,
            )
            covariance = "robust" if choices.robust else "classical"
            result = whole_regression(
                matrix, fit_intercept=fit_intercept, l2_strength=l2_strength, covariance=covariance
            )
            refusal = result.interval_refusal
            if refusal is not None and beside.given:
                # The standard errors of a ridge that the noise chooses cannot be planned.
                self._take_nothing(result)
                _warn_of_nothing(refusal)
                return self
            if refusal is not None:
                result = whole_regression(matrix, fit_intercept=fit_intercept, l2_strength=PRIVATE)
                _warn_of_ridge(refusal, result)
            return self._take(result)

    def _take_nothing(self, result: LinearFit) -> None:
        """Keep a release whose regression the noise hides."""
        self.result_ = result
        self.coef_ = np.full(self.n_features_in_, np.nan)
        self.intercept_ = np.nan if self.fit_intercept else 0.0


class PrivateLinearRegression(MomentEstimator):
    """Linear regression by least squares with differential privacy and confidence intervals.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: the parameters below, which
    must be public and chosen without looking at the data, and scores. There is no regularisation and no ball of
    parameters. The keywords are those of :func:`dpci.regression.release`, which says more about each.

    Parameters
    ----------
    epsilon : float or None
        Privacy loss of the fit; alone it is pure differential privacy (``dpci.PureDP``).
    delta : float, optional
        With ``epsilon``: approximate differential privacy (``dpci.ApproxDP``), whose noise is much less with many
        columns.
    rho : float, optional
        Zero-concentrated differential privacy (``dpci.ZCDP``), with ``epsilon=None`` and ``delta=None``.
    mu : float, optional
        Gaussian differential privacy (``dpci.GDP``), with none of the other three.
    bounds : (lower, upper), optional
        Public bounds of the columns: two numbers for all columns, or two arrays with a number for each. Give these if
        you know them.
    row_norm : float, optional
        In place of ``bounds``: a public bound on the Euclidean norm of a row. None: 1, if ``bounds`` and ``rows`` are
        not given.
    rows : Ball or Blocks of dpci.rows, optional
        In place of both: the public domain of the rows.
    target_bound : float or (lower, upper)
        Public bound on the absolute value of a target, or public bounds of the targets.
    robust : bool
        Intervals that do not assume errors of equal variance (HC0), for a tenth of the budget; needs the intercept.
        With persons or weights they are so in any case.
    on_violation : {"clip", "error"}
        Treatment of numbers beyond their bounds: move them to the bounds, which is part of the model, or refuse the
        data.
    fit_intercept : bool
        Whether there is an intercept.
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
        For tests and simulations only: noise from a seed is not private, and a warning says so.

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
    result_ : dpci.regression.LinearFit
        The regression with its intervals. ``dpci.regression.MomentMatrix.of(result_)`` has the release, for other
        regressions at no cost.

    Notes
    -----
    If the noise hides the regression, ``fit`` warns and takes the ridge regression of
    ``l2_strength="private"``. The intervals are then for that regression, and ``result_.l2_strength`` is above 0. With
    persons or weights that ridge has no standard errors: ``coef_`` is then NaN, and ``result_`` keeps the release.

    Examples
    --------
    >>> import numpy as np
    >>> from dpci.sklearn import PrivateLinearRegression
    >>> X = np.random.default_rng(0).uniform(0, 10, (5000, 2))
    >>> model = PrivateLinearRegression(epsilon=2.0, bounds=(0, 10), target_bound=20).fit(X, X @ [1.0, -0.5])
    >>> model.coef_.shape, model.conf_int().names
    ((2,), ('x0', 'x1', 'intercept'))
    """

    result_: LinearFit

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        row_norm: float | None = None,
        rows: RowDomain | None = None,
        target_bound: float | tuple[float, float] = 1.0,
        robust: bool = False,
        on_violation: OnViolation = "clip",
        fit_intercept: bool = True,
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
        self.mu = mu
        self.bounds = bounds
        self.row_norm = row_norm
        self.rows = rows
        self.target_bound = target_bound
        self.robust = robust
        self.on_violation = on_violation
        self.fit_intercept = fit_intercept
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
            Rows; sparse ones only without ``bounds``.
        y : array-like of shape (n_samples,)
            Targets.
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
            :func:`dpci.regression.release` refuses.
        ValueError
            For data that scikit-learn refuses.
        RowNormViolation, BudgetExceeded, LedgerError, ReleaseFailed
            See :func:`dpci.regression.release`. Nothing is released by any error.

        Warns
        -----
        MomentNoiseWarning
            Where the noise hides the regression.
        PrivacyLeakWarning
            If the fit is called by a package of scikit-learn that compares fits, repeats them or reads the data itself
            (docs/sklearn.md).
        SeededNoiseWarning
            If a seed is given.
        """
        warn_of_fitting()
        keywords: dict[str, Any] = self.get_params(deep=False)
        for name in ("ledger", "persons", "weights"):
            keywords.pop(name)
        intercept = check_flag("fit_intercept", keywords.pop("fit_intercept"))
        unit, weights, beside = self._given(persons, sample_weight)
        check_unit_columns(None, X, beside)
        if beside.given:
            check_flag("robust", keywords["robust"])
            keywords["robust"] = regression_of_counts(0.0, fit_intercept=intercept)
        budget = _gaussian_budget_of(*(keywords.pop(name) for name in ("epsilon", "delta", "rho", "mu")))
        choices = matrix_choices(None, budget=budget, unit=unit, weights=weights, **keywords)
        if choices.targets.further:
            raise InvalidInput(
                "target_bound must be a number or one pair (lower, upper), because an estimator has one target, got "
                f"{len(choices.targets.middle)} pairs (dpci.regression.release takes several targets)"
            )
        if choices.robust and not intercept:
            raise InvalidInput("robust must be False without an intercept, got robust=True and fit_intercept=False")
        return self._fit_by_moments(X, y, choices, beside=beside, l2_strength=0.0)

    def _check_data(self, X: Table, y: ArrayLike) -> tuple[Table, NDArray[Any]]:
        rows, targets = super()._check_data(X, y)
        # Before anything is spent. The number of records is public, or an error shows it to the holder of the data.
        if len(targets) <= self.n_features_in_ + bool(self.fit_intercept):
            raise InvalidInput(
                f"a regression needs more records than coefficients, got n_samples={len(targets)} and "
                f"{self.n_features_in_} columns"
            )
        return rows, targets

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.bounds is None
        return tags


def _gaussian_budget_of(
    epsilon: float | None, delta: float | None, rho: float | None, mu: float | None
) -> GaussianBudget:
    if mu is None:
        return budget_of(epsilon, delta, rho)
    if not (epsilon is None and delta is None and rho is None):
        raise InvalidInput(
            f"epsilon, delta and rho must be None if mu is given, got {epsilon=}, {delta=}, {rho=}, {mu=}"
        )
    return GDP(mu)


def _warn_of_nothing(refusal: str) -> None:
    message = (
        f"{refusal}; there are no coefficients, and result_ has the release "
        "(regression.MomentMatrix.of(result_), for other regressions)"
    )
    warn(MomentNoiseWarning(message, code="hidden_by_noise"))


def _warn_of_ridge(refusal: str, result: LinearFit) -> None:
    message = (
        f"{refusal}; the coefficients and intervals are those of the ridge regression with l2_strength='private', "
        f"{result.l2_strength:.3g}"
    )
    warn(MomentNoiseWarning(message, code="hidden_by_noise"))
