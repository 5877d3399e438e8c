"""Private ridge regression, from one released moment matrix or over a ball of parameters."""

from typing import Any

from dpci.base.validation import check_flag
from dpci.data.rows import Source
from dpci.losses import Squared
from dpci.model.moments import regression_of_counts, used_keywords
from dpci.model.result import PrivateFit
from dpci.regression.choices.matrix import choices_of_fit
from dpci.regression.choices.model import PRIVATE, check_ridge
from dpci.regression.result import LinearFit
from dpci.sklearn.base import PrivateLinearEstimator
from dpci.sklearn.docstrings import described
from dpci.sklearn.linear import MomentEstimator
from dpci.sklearn.parameters import RidgeParameters
from dpci.unit import Given


@described
class PrivateRidge(RidgeParameters, MomentEstimator, PrivateLinearEstimator):
    """Ridge regression with differential privacy and confidence intervals.

    Without a ``radius`` it is computed from one released moment matrix, which has far less noise
    (docs/linear_regression.md); with one by perturbation over the ball of this radius. From a matrix,
    ``sample_weight`` and ``persons`` need ``l2_strength``, because standard errors are planned before the release.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: the parameters, which must be
    public and chosen without looking at the data, and scores. The keywords are those of :func:`dpci.fit`, which says
    more about each. scikit-learn's ``alpha`` is n_samples·``l2_strength``/2.

    Attributes
    ----------
    result_ : LinearFit of dpci.regression, or PrivateFit with a radius
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
    >>> model = PrivateRidge(epsilon=2.0, l2_strength=0.05, radius=2.0).fit(X, 0.5 * X[:, 0])
    >>> model.coef_.shape, model.predict(X).shape
    ((2,), (10000,))
    """

    def _release(self, source: Source, given: Given) -> PrivateFit | LinearFit:
        if not self._by_moments():
            return super()._release(source, given)
        keywords = self._keywords()
        l2_strength = keywords.pop("l2_strength")
        strength = PRIVATE if l2_strength is None else check_ridge("l2_strength", l2_strength)
        intercept = check_flag("fit_intercept", keywords.pop("fit_intercept"))
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
        if self.mechanism is None:
            return self.radius is None
        return isinstance(self.mechanism, str) and self.mechanism == "moments"

    def _keywords(self) -> dict[str, Any]:
        keywords = super()._keywords()
        return {**keywords, "mechanism": "objective" if self.mechanism is None else self.mechanism}

    def _loss(self) -> Squared:
        return Squared(target_bound=self.target_bound)
