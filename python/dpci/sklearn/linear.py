"""Private regressors: linear and ridge regression from one released moment matrix, others by perturbation of a loss."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dpci.base.validation import check_flag, check_positive
from dpci.base.warn import warn
from dpci.budgets import GDP, GaussianBudget
from dpci.data.arrays import Table
from dpci.data.rows import Source
from dpci.errors import InvalidInput, MomentNoiseWarning
from dpci.losses import COUNTS, LOCATIONS, Loss, Poisson, Squared, check_loss
from dpci.mechanisms import check_mechanism
from dpci.model.keywords import used_keywords
from dpci.model.moments import has_intercept, regression_of_counts
from dpci.model.result import PrivateFit
from dpci.model.settings import AUTO
from dpci.regression.choices.matrix import MatrixChoices, choices_of_fit, matrix_choices
from dpci.regression.choices.model import PRIVATE, Ridge, check_ridge
from dpci.regression.choices.targets import Targets
from dpci.regression.matrix import whole_regression
from dpci.regression.mechanism import payment_for, release_matrix
from dpci.regression.result import LinearFit
from dpci.rows import Within, read_rows
from dpci.sklearn.base import PrivateEstimator, PrivateLinearEstimator
from dpci.sklearn.docstrings import described
from dpci.sklearn.leaks import warn_of_score
from dpci.sklearn.parameters import CountParameters, LinearParameters, LossParameters, RidgeParameters
from dpci.unit import Given


class RegressorBase(RegressorMixin, PrivateEstimator):
    """A private linear model of a number."""

    def predict(self, X: Table) -> NDArray[np.float64]:
        """Predicted target of each row, shape (n_samples,); for counts the mean, for a quantile loss the quantile."""
        rows = self._check_rows(X)
        return np.asarray(self.result_.predict(rows))

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


class LossRegressor(RegressorBase, PrivateLinearEstimator):
    """A private regressor whose loss says what it predicts."""

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R², of counts the share of the Poisson deviance explained, D²; not private, unless the rows are public.

        ``sample_weight`` weights the score only, whatever weights the fit had.
        """
        check_is_fitted(self)
        if self.result_.loss["name"] not in COUNTS:
            return super().score(X, y, sample_weight=sample_weight)
        warn_of_score()
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))


@described
class PrivateRegressor(LossParameters, LossRegressor):
    """Regression by a loss of :mod:`dpci.losses`, with differential privacy and confidence intervals.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: the parameters, which must be
    public and chosen without looking at the data, and scores. The keywords are those of :func:`dpci.fit`, which says
    more about each.

    Examples
    --------
    >>> import numpy as np
    >>> from dpci.losses import Quantile
    >>> from dpci.sklearn import PrivateRegressor
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> model = PrivateRegressor(loss=Quantile(quantile=0.9), epsilon=2.0, l2_strength=0.05).fit(X, 0.5 * X[:, 0])
    >>> model.coef_.shape, model.predict(X).shape
    ((2,), (10000,))
    """

    def _loss(self) -> Loss:
        loss = check_loss(self.loss)
        if loss.name not in (*LOCATIONS, *COUNTS):
            raise InvalidInput(f"loss must be that of a real target or of a count, got {self.loss!r}")
        return loss

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = getattr(self.loss, "name", self.loss) in COUNTS
        return tags


@described
class PrivatePoissonRegressor(CountParameters, LossRegressor):
    """Poisson regression with differential privacy and confidence intervals: the mean of a count is ``exp(X @ coef)``.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: the parameters, which must be
    public and chosen without looking at the data, and scores. The keywords are those of :func:`dpci.fit`, which says
    more about each. ``l2_strength`` is scikit-learn's ``alpha``, except that it acts on the intercept too.

    Examples
    --------
    >>> import numpy as np
    >>> from dpci.sklearn import PrivatePoissonRegressor
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> model = PrivatePoissonRegressor(epsilon=2.0, l2_strength=0.05).fit(X, np.tile([2, 1], 5000))
    >>> model.coef_.shape, (model.predict(X) > 0).all()
    ((2,), np.True_)
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _keywords(self) -> dict[str, Any]:
        keywords = super()._keywords()
        mechanism = check_mechanism(self.mechanism)
        if mechanism.radius is not None:
            raise InvalidInput(
                f"radius must be that of the estimator and not of its mechanism, got {mechanism.radius} beside "
                f"radius={self.radius}"
            )
        del keywords["radius"]
        return {**keywords, "mechanism": replace(mechanism, radius=check_positive("radius", self.radius))}

    def _loss(self) -> Poisson:
        return Poisson(count_bound=self.count_bound)


class MomentEstimator(RegressorBase):
    """Base of all estimators that are fitted from a released moment matrix."""

    def _regression(self, source: Source, choices: MatrixChoices, *, l2_strength: Ridge) -> LinearFit:
        """Release the matrix, and return the regression of y on all columns."""
        matrix = release_matrix(source, choices, payment=payment_for(self._source(), self.ledger, choices))
        intercept = bool(self.fit_intercept)
        covariance = "robust" if choices.robust else "classical"
        result = whole_regression(matrix, fit_intercept=intercept, l2_strength=l2_strength, covariance=covariance)
        refusal = result.interval_refusal
        if refusal is None:
            return result
        if source.beside.given:
            # The standard errors of a ridge that the noise chooses cannot be planned.
            _warn(
                f"{refusal}; there are no coefficients, and result_ has the release "
                "(regression.MomentMatrix.of(result_), for other regressions)"
            )
            return result
        result = whole_regression(matrix, fit_intercept=intercept, l2_strength=PRIVATE)
        _warn(
            f"{refusal}; the coefficients and intervals are those of the ridge regression with l2_strength='private', "
            f"{result.l2_strength:.3g}"
        )
        return result

    def _by_moments(self) -> bool:
        """Whether the parameters ask for a moment matrix."""
        return True

    def _apart(self, rows: Within) -> tuple[Within, bool]:
        """Return the rows of a matrix, which always has a constant, and whether the regression has an intercept."""
        return replace(rows, intercept=True), has_intercept(read_rows(rows).intercept)

    def _take(self, result: Any) -> Self:  # noqa: ANN401  # of a perturbation it is a PrivateFit
        if result.interval_refusal is None or not self._by_moments():
            return super()._take(result)
        self.result_ = result  # the noise hides the regression: the release alone is kept
        self.coef_ = np.full(self.n_features_in_, np.nan)
        self.intercept_ = np.nan if self.fit_intercept else 0.0
        return self


@described
class PrivateLinearRegression(LinearParameters, MomentEstimator):
    """Linear regression by least squares with differential privacy and confidence intervals.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: the parameters below, which
    must be public and chosen without looking at the data, and scores. There is no regularisation and no ball of
    parameters. The keywords are those of :func:`dpci.regression.release`, which says more about each.

    Attributes
    ----------
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

    def _release(self, source: Source, given: Given) -> LinearFit:
        keywords = self._keywords()
        keywords["rows"], intercept = self._apart(keywords["rows"])
        if given.beside.given:
            check_flag("robust", keywords["robust"])
            keywords["robust"] = regression_of_counts(0.0, fit_intercept=intercept)
        targets = Targets.checked(None, keywords.pop("target_bound"))
        choices = matrix_choices(targets, unit=given.unit, weights=given.weights, **keywords)
        if choices.targets.further:
            raise InvalidInput(
                "target_bound must be a number or one pair (lower, upper), because an estimator has one target, got "
                f"{len(choices.targets.middle)} pairs (dpci.regression.release takes several targets)"
            )
        if choices.robust and not intercept:
            raise InvalidInput("robust must be False without an intercept, got robust=True and fit_intercept=False")
        return self._regression(source, choices, l2_strength=0.0)

    def _keywords(self) -> dict[str, Any]:
        keywords = super()._keywords()
        del keywords["mu"]
        return keywords

    def _budget(self) -> GaussianBudget:
        if self.mu is None:
            return super()._budget()
        epsilon, delta, rho, mu = self.epsilon, self.delta, self.rho, self.mu
        if not (epsilon is None and delta is None and rho is None):
            raise InvalidInput(
                f"epsilon, delta and rho must be None if mu is given, got {epsilon=}, {delta=}, {rho=}, {mu=}"
            )
        return GDP(mu)

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


def _warn(message: str) -> None:
    warn(MomentNoiseWarning(message, code="hidden_by_noise"))


@described
class PrivateRidge(RidgeParameters, MomentEstimator, PrivateLinearEstimator):
    """Ridge regression with differential privacy and confidence intervals.

    It is computed from one released moment matrix, which has far less noise
    (docs/linear_regression.md), or by perturbation over a ball of parameters. From a matrix,
    ``sample_weight`` and ``persons`` need ``l2_strength``, because standard errors are planned before the release.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: the parameters, which must be
    public and chosen without looking at the data, and scores. The keywords are those of :func:`dpci.fit`, which says
    more about each. scikit-learn's ``alpha`` is n_samples·``l2_strength``/2.

    Attributes
    ----------
    result_ : LinearFit of dpci.regression, or PrivateFit of a perturbation
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
    >>> model = PrivateRidge(epsilon=2.0, l2_strength=0.05).fit(X, 0.5 * X[:, 0])
    >>> model.coef_.shape, model.predict(X).shape
    ((2,), (10000,))
    """

    def _release(self, source: Source, given: Given) -> PrivateFit | LinearFit:
        if not self._by_moments():
            return super()._release(source, given)
        keywords = self._keywords()
        l2_strength = keywords.pop("l2_strength")
        strength = PRIVATE if l2_strength == AUTO else check_ridge("l2_strength", l2_strength)
        keywords["rows"], intercept = self._apart(keywords["rows"])
        robust = regression_of_counts(strength, fit_intercept=intercept) if given.beside.given else ()
        choices = choices_of_fit(
            schema=None,
            robust=robust,
            unit=given.unit,
            weights=given.weights,
            **used_keywords(keywords),
        )
        return self._regression(source, choices, l2_strength=strength)

    def _by_moments(self) -> bool:
        return self.mechanism is None or (isinstance(self.mechanism, str) and self.mechanism == "moments")

    def _loss(self) -> Squared:
        return Squared(target_bound=self.target_bound)
