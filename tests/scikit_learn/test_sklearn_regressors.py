"""Poisson regression of scikit-learn, in the limit."""

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor

import dpci
from dpci.sklearn.regressors import PrivatePoissonRegressor
from support.sklearn_rows import make_rows

X, _ = make_rows()
WITH_ONES = np.column_stack([X, np.ones(len(X))])


def test_poisson_regression_tends_to_that_of_scikit_learn():
    counts = np.random.default_rng(4).poisson(np.exp(X[:, 0] + 0.2))
    model = PrivatePoissonRegressor(epsilon=1e9, moments="none", l2_strength=0.02, radius=2.0).fit(X, counts)
    theirs = PoissonRegressor(alpha=0.02, fit_intercept=False, tol=1e-10, max_iter=1000).fit(WITH_ONES, counts)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(model.predict(X), theirs.predict(WITH_ONES), rtol=1e-4)
    with pytest.warns(dpci.DpciWarning, match="score"):
        score = model.score(X, counts)
    assert abs(score - theirs.score(WITH_ONES, counts)) < 1e-4
