"""Regressors of a loss: those of scikit-learn in the limit, and the loss as a parameter."""

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor
from sklearn.utils import get_tags

import dpci
from dpci.losses import Poisson, Quantile, Squared
from dpci.sklearn.linear import PrivatePoissonRegressor, PrivateRegressor
from support.keywords import assembled
from support.sklearn_rows import make_rows, make_targets

X, _ = make_rows()
WITH_ONES = np.column_stack([X, np.ones(len(X))])


def test_poisson_regression_tends_to_that_of_scikit_learn():
    counts = np.random.default_rng(4).poisson(np.exp(X[:, 0] + 0.2))
    model = PrivatePoissonRegressor(
        epsilon=1e9, mechanism=dpci.ObjectivePerturbation(moments="none"), radius=2.0, l2_strength=0.02
    ).fit(X, counts)
    theirs = PoissonRegressor(alpha=0.02, fit_intercept=False, tol=1e-10, max_iter=1000).fit(WITH_ONES, counts)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(model.predict(X), theirs.predict(WITH_ONES), rtol=1e-4)
    with pytest.warns(dpci.DpciWarning, match="score"):
        score = model.score(X, counts)
    assert abs(score - theirs.score(WITH_ONES, counts)) < 1e-4


HUGE = {"epsilon": 1e9, "moments": "none", "l2_strength": 0.02}


def test_a_loss_of_counts_predicts_means():
    counts = np.random.default_rng(4).poisson(np.exp(X[:, 0] + 0.2))
    named = PrivatePoissonRegressor(seed=3, l2_strength=0.1, count_bound=5.0).fit(X, counts)
    model = PrivateRegressor(
        seed=3, l2_strength=0.1, loss=Poisson(count_bound=5.0), mechanism=dpci.ObjectivePerturbation(radius=1.0)
    ).fit(X, counts)
    assert model.result_.to_json() == named.result_.to_json()
    scores = []
    for fitted in (model, named, model.set_params(loss="huber")):  # what is fitted counts, not what comes next
        np.testing.assert_array_equal(fitted.predict(X), named.result_.predict(X))
        with pytest.warns(dpci.DpciWarning, match="score"):
            scores.append(fitted.score(X, counts))
    assert scores[0] == scores[1] == scores[2]


def test_quantiles_are_those_of_the_targets():
    targets = make_targets(X)
    below = [
        (
            targets
            <= PrivateRegressor(**assembled(**HUGE | {"l2_strength": 1e-4}, loss=loss)).fit(X, targets).predict(X)
        ).mean()
        for loss in (Quantile(quantile=0.2, s=0.01), Quantile(quantile=0.8, s=0.01))
    ]
    np.testing.assert_allclose(below, [0.2, 0.8], atol=0.05)


def test_the_loss_is_checked_by_fit_and_says_which_targets_there_are():
    for loss in ("logistic", dpci.losses.HuberHinge()):
        with pytest.raises(dpci.InvalidInput, match="loss must be that of a real target or of a count"):
            PrivateRegressor(loss=loss).fit("no table", None)
    with pytest.raises(dpci.InvalidInput, match="loss must be one of"):
        PrivateRegressor(loss="absolute").fit("no table", None)
    assert [get_tags(PrivateRegressor(loss=loss)).target_tags.positive_only for loss in (Squared(), "poisson")] == [
        False,
        True,
    ]
