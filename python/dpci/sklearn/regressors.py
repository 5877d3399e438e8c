"""Private regressors of a loss: counts, medians and robust means by perturbation."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dpci.base.validation import check_positive
from dpci.data.arrays import Table
from dpci.errors import InvalidInput
from dpci.losses import COUNTS, LOCATIONS, Loss, Poisson, check_loss
from dpci.mechanisms import check_mechanism
from dpci.sklearn.base import PrivateEstimator, PrivateLinearEstimator
from dpci.sklearn.docstrings import described
from dpci.sklearn.leaks import warn_of_score
from dpci.sklearn.parameters import CountParameters, LossParameters


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
