"""Private Poisson regression of counts over a ball of parameters."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags

from dpci.budgets import Calibration, Neighbors
from dpci.data.arrays import OnViolation, Table
from dpci.ledger.ledger import Ledger
from dpci.losses import Poisson, response
from dpci.mechanisms import MechanismLike
from dpci.model.settings import Moments, Projection
from dpci.rows import RowDomain
from dpci.sklearn.base import PrivateLinearEstimator
from dpci.sklearn.leaks import warn_of_score
from dpci.unit import Persons, Weights


class PrivatePoissonRegressor(RegressorMixin, PrivateLinearEstimator):
    """Poisson regression with differential privacy and confidence intervals: the mean of a count is ``exp(X @ coef)``.

    Private: the fitted attributes, for the budget at each call of ``fit``. Not private: the parameters below, which
    must be public and chosen without looking at the data, and scores. The keywords are those of :func:`dpci.fit`, which
    says more about each.

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
        intervals. It is scikit-learn's ``alpha``, except that it acts on the intercept too. None: what public values
        recommend for predictions (docs/sklearn.md, "The default λ"); ``result_`` has it.
    radius : float
        Public bound on the norm of the parameters, intercept included. The noise grows like its exponential.
    count_bound : float
        Public bound on a count.
    row_norm : float, optional
        Public bound on the Euclidean norm of a row, without the intercept. None: 1, unless ``rows`` is given.
    rows : Ball or Blocks of dpci.rows, optional
        Public domain of the rows in place of ``row_norm``: bounds of each column, or group of indicators, by itself.
    on_violation : {"clip", "error"}
        Treatment of rows beyond their bounds and counts above ``count_bound``: scale and lower them, which is part
        of the model, or refuse the data.
    fit_intercept : bool
        Whether there is an intercept; it is regularised like the coefficients, which the privacy proof needs.
    intercept_scale : float
        Size of the constant column behind the intercept; a larger one weakens the regularisation of the intercept and
        needs more noise.
    mechanism : {"objective", "output"} or object of dpci.mechanisms
        "objective": noise is added to the objective before it is minimised. "output": to the minimiser.
    split : sequence of three floats, optional
        Shares of the budget of coefficients, Hessian and gradient covariance.
    moments : {"joint", "separate", "none"}
        How Hessian and gradient covariance, which the intervals need, are released. "none": not at all; the
        coefficients have the whole budget, and there are no intervals.
    projection : {"auto", "floor", "cautious", "noise_aware"}
        How intervals treat the noise in the released matrices.
    calibration : {"tight", "paper"}
        Constants of the noise: the smallest that are proved, or those of the published method, with more noise.
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
        For tests and simulations only: noise from a seed is not private, and a warning says so. It is not called
        ``random_state``, because scikit-learn's ensembles set every parameter of that name.

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

    Examples
    --------
    >>> import numpy as np
    >>> from dpci.sklearn import PrivatePoissonRegressor
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> model = PrivatePoissonRegressor(epsilon=2.0, l2_strength=0.05).fit(X, np.tile([2, 1], 5000))
    >>> model.coef_.shape, (model.predict(X) > 0).all()
    ((2,), np.True_)
    """

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = None,
        rho: float | None = None,
        l2_strength: float | None = None,
        radius: float = 1.0,
        count_bound: float = 10.0,
        row_norm: float | None = None,
        rows: RowDomain | None = None,
        on_violation: OnViolation = "clip",
        fit_intercept: bool = True,
        intercept_scale: float = 1.0,
        mechanism: MechanismLike = "objective",
        split: Sequence[float] | None = None,
        moments: Moments = "joint",
        projection: Projection = "auto",
        calibration: Calibration = "tight",
        neighbors: Neighbors = "replace_one",
        n_public: int | None = None,
        persons: Persons | None = None,
        weights: Weights | None = None,
        ledger: Ledger | None = None,
        n_threads: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            l2_strength=l2_strength,
            radius=radius,
            row_norm=row_norm,
            rows=rows,
            on_violation=on_violation,
            fit_intercept=fit_intercept,
            intercept_scale=intercept_scale,
            mechanism=mechanism,
            split=split,
            moments=moments,
            projection=projection,
            calibration=calibration,
            neighbors=neighbors,
            n_public=n_public,
            persons=persons,
            weights=weights,
            ledger=ledger,
            n_threads=n_threads,
            seed=seed,
        )
        self.count_bound = count_bound

    def predict(self, X: Table) -> NDArray[np.float64]:
        """Predicted mean count of each row, shape (n_samples,)."""
        return response(Poisson.name, self._linear_predictor(X))

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the deviance explained, D²; not private, with a warning, unless the rows are public."""
        warn_of_score()
        mean = self.predict(X)
        return float(d2_tweedie_score(y, mean, sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.target_tags.positive_only = True
        return tags

    def _loss(self) -> Poisson:
        return Poisson(count_bound=self.count_bound)
