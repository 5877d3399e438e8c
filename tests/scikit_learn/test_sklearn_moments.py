"""PrivateLinearRegression, and PrivateRidge without a radius: the moment matrix with scikit-learn's manners."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpci
from dpci import regression
from dpci.sklearn.linear import PrivateLinearRegression, PrivateRidge
from support.sklearn_rows import N, make_rows, make_targets, warnings_of

X, _ = make_rows()
T = make_targets(X)
KNOWN = {"bounds": (-0.5, 0.5), "target_bound": (-1.0, 1.0)}
HUGE = 1e12


def test_a_huge_budget_gives_the_coefficients_of_scikit_learn():
    model, theirs = PrivateLinearRegression(epsilon=HUGE, **KNOWN).fit(X, T), LinearRegression().fit(X, T)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), atol=1e-6)
    without = PrivateLinearRegression(epsilon=HUGE, fit_intercept=False, **KNOWN).fit(X, T)
    expected = LinearRegression(fit_intercept=False).fit(X, T).coef_
    np.testing.assert_allclose(without.coef_, expected, atol=1e-6)
    assert without.intercept_ == 0.0
    ones = np.column_stack([X, np.ones(N)])
    ridge = PrivateRidge(epsilon=HUGE, l2_strength=0.02).fit(X, T)
    theirs = Ridge(alpha=N * 0.02 / 2, fit_intercept=False).fit(ones, T)
    np.testing.assert_allclose(np.append(ridge.coef_, ridge.intercept_), theirs.coef_, atol=1e-6)


def test_the_result_is_that_of_a_release():
    given = {"robust": True, "neighbors": "add_remove", "n_public": N, "n_threads": 1, "seed": 3, **KNOWN}
    model, caught = warnings_of(lambda: PrivateLinearRegression(epsilon=None, rho=0.5, **given).fit(X, T))
    assert [warning.category for warning in caught] == [dpci.SeededNoiseWarning]
    assert caught[0].filename == __file__
    given["neighbors"] = dpci.AddRemove(given.pop("n_public"))
    with pytest.warns(dpci.SeededNoiseWarning):
        direct = regression.release(X, T, budget=dpci.ZCDP(0.5), rows="clip", **given)
    assert model.result_.to_json() == direct.fit(covariance="robust").to_json()
    np.testing.assert_array_equal(model.conf_int(level=0.8), model.result_.conf_int(level=0.8))
    assert regression.MomentMatrix.of(model.result_).to_json() == direct.to_json()
    with pytest.warns(dpci.SeededNoiseWarning):
        ridge = PrivateRidge(l2_strength=0.1, target_bound=2.0, seed=5).fit(X, T)
    with pytest.warns(dpci.SeededNoiseWarning):
        same = dpci.fit(
            X, T, loss=dpci.losses.Squared(2.0), budget=dpci.PureDP(1.0), l2_strength=0.1, rows="clip", seed=5
        )
    assert ridge.result_.to_json() == same.to_json()


@pytest.mark.parametrize(
    ("params", "budget"),
    [
        ({}, dpci.PureDP(1.0)),
        ({"delta": 1e-6}, dpci.ApproxDP(1.0, 1e-6)),
        ({"epsilon": None, "rho": 0.5}, dpci.ZCDP(0.5)),
        ({"epsilon": None, "mu": 0.5}, dpci.GDP(0.5)),
    ],
)
def test_budgets(params, budget):
    assert PrivateLinearRegression(**params, **KNOWN).fit(X, T).result_.budget == budget


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"mu": 0.5}, r"epsilon, delta and rho must be None if mu is given, got epsilon=1.0"),
        ({"epsilon": None}, r"epsilon must be given unless rho is given"),
        ({"epsilon": -1.0}, r"epsilon must be finite and > 0"),
        ({"row_norm": 1.0}, r"rows must be None, or 'clip', with bounds"),
        ({"bounds": 3}, r"bounds must be a pair"),
        ({"target_bound": (1, 0)}, r"target_bound must be finite and increasing"),
        ({"robust": True, "fit_intercept": False}, r"robust must be False without an intercept"),
        ({"fit_intercept": "no"}, r"fit_intercept must be"),
        ({"n_public": 5}, r"n_public must be None"),
        ({"ledger": "no"}, r"ledger must be a dpci.Ledger or None"),
    ],
    ids=str,
)
def test_parameters_are_checked_before_the_data(params, message):
    model = PrivateLinearRegression(**{**KNOWN, **params})
    with pytest.raises(dpci.InvalidInput, match=message):
        model.fit("no table", None)
    with pytest.raises(NotFittedError):
        model.conf_int()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"intercept_scale": 0.5}, "intercept must be True or False with"),
        ({"l2_strength": -1.0}, "l2_strength must be"),
    ],
    ids=str,
)
def test_a_ridge_refuses_what_its_mechanism_does_not_use(params, message):
    with pytest.raises(dpci.InvalidInput, match=message):
        PrivateRidge(**params).fit("no table", None)


def test_perturbation_needs_a_radius():
    with pytest.raises(dpci.InvalidInput, match="radius"):
        PrivateRidge(mechanism="objective", l2_strength=0.1).fit(X, T)


def test_hidden_regressions_become_ridges_with_a_warning():
    ledger = dpci.Ledger(dpci.PureDP(0.01))
    model, caught = warnings_of(lambda: PrivateLinearRegression(epsilon=0.01, ledger=ledger, **KNOWN).fit(X, T))
    (warning,) = caught
    assert warning.category is dpci.MomentNoiseWarning
    assert warning.filename == __file__
    assert "l2_strength='private'" in str(warning.message)
    assert model.result_.l2_rule == "private"
    assert model.result_.l2_strength > 0
    assert np.isfinite(model.predict(X)).all()
    assert ledger.history[0].source == "dpci.sklearn.PrivateLinearRegression"
    with pytest.raises(dpci.BudgetExceeded):
        clone(model).fit(X, T)


def test_too_few_records_cost_nothing():
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    with pytest.raises(dpci.InvalidInput, match="more records than coefficients, got n_samples=4"):
        PrivateLinearRegression(ledger=ledger, **KNOWN).fit(X[:4], T[:4])
    assert ledger.history == ()
    # A ridge may have more coefficients than records.
    assert np.isfinite(warnings_of(lambda: PrivateRidge().fit(X[:2], T[:2]))[0].coef_).all()


def test_pipelines_frames_pickles_and_sparse_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["age", "dose", "time"])
    pipe = make_pipeline(FunctionTransformer(feature_names_out="one-to-one"), PrivateLinearRegression(**KNOWN))
    model = clone(pipe).fit(frame, T)
    assert model[-1].conf_int().names == ("age", "dose", "time", "intercept")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame))
    with pytest.raises(dpci.InvalidInput, match="X must be dense"):
        PrivateLinearRegression(**KNOWN).fit(scipy.sparse.csr_array(X), T)
    sparse = PrivateLinearRegression(epsilon=HUGE).fit(scipy.sparse.csr_array(X), T)
    dense = PrivateLinearRegression(epsilon=HUGE).fit(X, T)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_allclose(sparse.predict(scipy.sparse.csr_array(X)), sparse.predict(X), atol=1e-12)


def test_an_estimator_has_one_target():
    ledger = dpci.Ledger(dpci.PureDP(2.0))
    several = np.column_stack([T, T])
    for bound in ((-1.0, 1.0), [(-1.0, 1.0), (-1.0, 1.0)]):
        model = PrivateLinearRegression(epsilon=1.0, bounds=(-0.5, 0.5), target_bound=bound, ledger=ledger)
        with pytest.raises((dpci.InvalidInput, ValueError), match=r"target_bound must|1d array|one-dimensional"):
            model.fit(X, several)
    assert ledger.spent["epsilon"] == 0.0
