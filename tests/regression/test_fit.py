"""Regressions from one moment matrix: against statsmodels, against each other, and where they are refused."""

import itertools
import json
import pickle

import numpy as np
import pytest

import dpci
from dpci import regression
from support.keywords import assembled

N = 500
_rng = np.random.default_rng(1)
X = _rng.uniform([1990, -1, 0], [2020, 1, 10], (N, 3))
Y = (X - [2005, 0, 5]) @ [0.1, -2.0, 0.5] + (0.5 + 0.1 * X[:, 2]) * _rng.normal(size=N) + 7
BOUNDS = ([1990, -1, 0], [2020, 1, 10])
DESIGN = np.column_stack([X, np.ones(N)])
ENORMOUS = {"pure": dpci.PureDP(1e13), "zcdp": dpci.ZCDP(1e24), "approx": dpci.ApproxDP(1e13, 1e-6)}


def released(budget=ENORMOUS["pure"], **keywords):
    given = {"bounds": BOUNDS, "target_bound": (-10, 24), "robust": True, "seed": 1}
    return regression.release(X, Y, budget=budget, **{**given, **keywords})


@pytest.fixture(scope="module")
def exact():
    return released()


@pytest.mark.parametrize("notion", ["pure", "zcdp"])
@pytest.mark.parametrize(("covariance", "kind"), [("classical", "nonrobust"), ("robust", "HC0")])
def test_an_enormous_budget_gives_the_numbers_of_statsmodels(notion, covariance, kind):
    sm = pytest.importorskip("statsmodels.api")
    theirs = sm.OLS(Y, DESIGN).fit(cov_type=kind)
    fit = released(ENORMOUS[notion]).fit(covariance=covariance)
    room = {"rtol": 1e-8}
    np.testing.assert_allclose(fit.params, theirs.params, **room)
    np.testing.assert_allclose(fit.std_errors, theirs.bse, **room)
    np.testing.assert_allclose(fit.cov, theirs.cov_params(), **room)
    np.testing.assert_allclose(np.asarray(fit.conf_int(level=0.9)), theirs.conf_int(0.1), **room)
    np.testing.assert_allclose(fit.pvalues, theirs.pvalues, rtol=1e-5, atol=1e-12)
    rows = np.array([[1.0, 0, 0, 0], [0, 1, 1, 0]])
    if covariance == "classical":
        test = theirs.f_test(rows)
        found = fit.wald_test(rows)
        assert found.statistic == pytest.approx(float(test.fvalue), rel=room["rtol"])
        assert found.pvalue == pytest.approx(float(test.pvalue), rel=1e-4, abs=1e-15)
        assert fit.wald_test(1e-160 * rows).statistic == pytest.approx(found.statistic, rel=1e-8)
        assert fit.residual_variance == pytest.approx(theirs.mse_resid, rel=room["rtol"])
    contrast = theirs.t_test([0, 1, 1, 0])
    found = fit.conf_int(contrast={"x1": 1, "x2": 1})
    np.testing.assert_allclose(np.asarray(found), contrast.conf_int(), **room)
    np.testing.assert_allclose(fit.predict(X[:5]), theirs.predict(DESIGN[:5]), **room)
    means = theirs.get_prediction(DESIGN[:5]).conf_int()
    np.testing.assert_allclose(np.asarray(fit.predict_conf_int(X[:5])), means, **room)


@pytest.mark.parametrize("features", [["x0"], ["x2", "x0"], ["x1", "x2"], []])
@pytest.mark.parametrize("intercept", [True, False])
def test_submodels_are_the_regressions_of_their_columns(features, intercept, exact):
    if not features and not intercept:
        with pytest.raises(dpci.InvalidInput, match="feature or an intercept"):
            exact.fit(features=features, intercept=False)
        return
    at = [int(name[1]) for name in features] + ([3] if intercept else [])
    expected = np.linalg.lstsq(DESIGN[:, at], Y, rcond=None)[0]
    fit = exact.fit(features=features, intercept=intercept)
    np.testing.assert_allclose(fit.params, expected, rtol=1e-7)
    (again,) = exact.submodels([features], intercept=intercept)
    assert again.to_json() == fit.to_json()


def test_a_submodel_equals_the_regression_from_its_part_of_the_matrix():
    noisy = released(dpci.ZCDP(200.0))
    moments = noisy.moments
    for features in (["x1", "x2"], ["x2"], ["x1", "x0", "x2"]):
        at = [int(name[1]) for name in features] + [3]
        expected = np.linalg.solve(moments[np.ix_(at, at)], moments[at, 4])
        np.testing.assert_allclose(noisy.fit(features=features).params, expected, rtol=1e-7)
    # Bounds around zero lose no digits to centring.
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1, 1, (N, 3))
    plain = regression.release(rows, rows @ [0.1, -0.2, 0.3], budget=dpci.ZCDP(20.0), bounds=(-1, 1), seed=1)
    for size in range(4):
        for columns in itertools.combinations(range(3), size):
            at = [*columns, 3]
            expected = np.linalg.solve(plain.moments[np.ix_(at, at)], plain.moments[at, 4])
            fit = plain.fit(features=[f"x{column}" for column in columns])
            np.testing.assert_allclose(fit.params, expected, rtol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_every_regression_among_the_columns_is_that_of_statsmodels(intercept, exact):
    sm = pytest.importorskip("statsmodels.api")
    table, names = np.column_stack([X, Y]), ["x0", "x1", "x2", "y"]
    for target in range(4):
        others = [column for column in range(4) if column != target]
        for size in range(0 if intercept else 1, 4):
            for columns in itertools.combinations(others, size):
                design = table[:, columns]
                if intercept:
                    design = np.column_stack([design, np.ones(N)])
                theirs = sm.OLS(table[:, target], design).fit()
                features = [names[column] for column in columns]
                fit = exact.fit(names[target], features=features, intercept=intercept, covariance="classical")
                np.testing.assert_allclose(fit.params, theirs.params, rtol=1e-8, atol=1e-9)
                np.testing.assert_allclose(fit.std_errors, theirs.bse, rtol=1e-8)


def test_any_column_is_a_target(exact):
    fit = exact.fit("x2", features=["x0", "y"])
    expected = np.linalg.lstsq(np.column_stack([X[:, 0], Y, np.ones(N)]), X[:, 2], rcond=None)[0]
    np.testing.assert_allclose(fit.params, expected, rtol=1e-6)
    assert fit.target == "x2"
    assert exact.fit("x1").names == ("x0", "x2", "intercept")
    assert exact.fit("x1", features=[]).params == pytest.approx([X[:, 1].mean()])


@pytest.mark.parametrize("intercept", [True, False])
def test_ridge_is_that_of_a_fit(intercept, exact):
    design = DESIGN if intercept else X
    strength = 0.3
    gram = design.T @ design / N + strength / 2 * np.eye(design.shape[1])
    expected = np.linalg.solve(gram, design.T @ Y / N)
    fit = exact.fit(l2_strength=strength, intercept=intercept)
    np.testing.assert_allclose(fit.params, expected, rtol=1e-6)
    inverse = np.linalg.inv(gram)
    spread = inverse @ (design.T @ design / N) @ inverse / N * fit.residual_variance
    np.testing.assert_allclose(fit.cov, spread, rtol=1e-4)


def test_ridge_has_the_target_of_a_fit_with_the_squared_loss():
    rng = np.random.default_rng(4)
    rows = rng.uniform(-0.5, 0.5, (N, 2))
    y = np.clip(rows @ [0.5, -0.4] + 0.1 * rng.normal(size=N), -1, 1)
    keywords = {"budget": dpci.ZCDP(1e10), "seed": 1}
    theirs = dpci.fit(
        rows, y, **assembled(loss="squared", radius=10.0, l2_strength=0.1, mechanism="output", **keywords)
    )
    ours = regression.release(rows, y, rows=1.0, **keywords).fit(l2_strength=0.1)
    np.testing.assert_allclose(ours.params, theirs.params, atol=1e-4)


def test_add_remove_with_another_public_number():
    # The public number is half the true one: variances follow the true one, which the matrix shows.
    fit = released(neighbors=dpci.AddRemove(N // 2)).fit()
    same = released().fit()
    np.testing.assert_allclose(fit.params, same.params, rtol=1e-6)
    np.testing.assert_allclose(fit.std_errors, same.std_errors, rtol=1e-3)
    robust = released(neighbors=dpci.AddRemove(N // 2)).fit(covariance="robust")
    np.testing.assert_allclose(robust.std_errors, released().fit(covariance="robust").std_errors, rtol=1e-3)


# One notion for each law of the noise.
@pytest.mark.parametrize("budget", [dpci.PureDP(4.0), dpci.ZCDP(0.5)], ids=str)
@pytest.mark.parametrize("robust", [False, True])
def test_standard_errors_are_the_spread_of_releases(budget, robust):
    """Releases of the same data: the noise alone, whose part of the variance each fit states."""
    rng = np.random.default_rng(3)
    rows = rng.uniform(0, 1, (5000, 2))
    y = rows @ [1.0, -1.0] + 0.3 * rng.normal(size=5000)
    found, stated = [], []
    for seed in range(400):
        matrix = regression.release(rows, y, budget=budget, bounds=(0, 1), target_bound=3, robust=robust, seed=seed)
        fit = matrix.fit(covariance="robust" if robust else "classical")
        found.append(fit.params)
        stated.append(fit.noise_shares * fit.std_errors**2)
    spread = np.var(found, axis=0)
    np.testing.assert_allclose(np.mean(stated, axis=0), spread, rtol=0.35)
    pivots = (np.array(found) - np.linalg.lstsq(np.column_stack([rows, np.ones(len(y))]), y, rcond=None)[0]) ** 2
    assert np.all(np.abs(pivots.mean(axis=0) / np.mean(stated, axis=0) - 1) < 0.35)


@pytest.mark.parametrize("rho", [2e-2, 1.0, 1e3])
def test_robust_joint_tests_whatever_the_noise(rho):
    rng = np.random.default_rng(6)
    rows = rng.uniform(-1, 1, (20_000, 3))
    y = rows @ [0.2, 0, 0] + 0.1 * (1 + np.abs(rows[:, 0])) * rng.uniform(-1, 1, 20_000)
    fits = [
        regression.release(rows, y, budget=dpci.ZCDP(rho), bounds=(-1, 1), robust=True, seed=seed).fit(
            covariance="robust"
        )
        for seed in range(40)
    ]
    for fit in fits:
        assert np.linalg.eigvalsh(fit.cov)[0] > 0
        assert np.all(np.abs(np.sqrt(np.diag(fit.cov)) / fit.std_errors - 1) < 0.5)
    # Of a true hypothesis on one data set: p-values are small in a few releases only.
    assert sum(fit.wald_test(["x1", "x2"]).pvalue < 0.01 for fit in fits) <= 6


def test_collinear_columns_are_named():
    rows = np.column_stack([X, X[:, 1]])
    bounds = ([*BOUNDS[0], -1], [*BOUNDS[1], 1])
    matrix = regression.release(rows, Y, budget=dpci.ZCDP(50.0), bounds=bounds, target_bound=(-10, 24), seed=1)
    with pytest.raises(dpci.InvalidInput, match="'x1', 'x3' vary together"):
        matrix.fit()
    assert matrix.fit(features=["x0", "x1", "x2"]).params.shape == (4,)
    assert np.isfinite(matrix.fit(l2_strength=1.0).params).all()
    constant = np.column_stack([X[:, 1:], np.full(N, 0.5)])
    matrix = regression.release(constant, Y, budget=dpci.ZCDP(50.0), bounds=(-1, 10), target_bound=(-10, 24), seed=1)
    with pytest.raises(dpci.InvalidInput, match="'x2'"):
        matrix.fit()


def test_a_private_ridge_is_the_least_that_the_noise_needs(exact):
    # 0 where the regressors vary enough.
    free = exact.fit(l2_strength="private")
    assert free.l2_strength == 0.0
    assert free.l2_rule == "private"
    assert free.to_json() != exact.fit().to_json()
    np.testing.assert_array_equal(free.params, exact.fit().params)
    rows = np.column_stack([X, X[:, 1]])
    bounds = ([*BOUNDS[0], -1], [*BOUNDS[1], 1])
    matrix = regression.release(rows, Y, budget=dpci.ZCDP(50.0), bounds=bounds, target_bound=(-10, 24), seed=1)
    fit = matrix.fit(l2_strength="private")
    # The same from the public matrix: columns less their middle over half their width, and the constant of the record.
    record = json.loads(matrix.to_json())
    noisy = np.array(record["matrix"])
    (step,) = record["steps"]
    noise = step["scale"]  # the seal adds nothing visible
    lack = 2.0 * np.sqrt(2.0 * 5) * noise - np.linalg.eigvalsh(noisy[:5, :5])[0]
    assert fit.l2_strength == pytest.approx(2.0 * lack, rel=1e-7)
    solution = np.linalg.solve(noisy[:5, :5] + lack * np.eye(5), noisy[:5, 5])
    middle, half = np.mean(bounds, axis=0), 0.5 * np.diff(bounds, axis=0)[0]
    slopes = solution[:4] / half / record["target_weight"]
    np.testing.assert_allclose(fit.params[:4], slopes, rtol=1e-7)
    intercept = solution[4] * record["constant"] / record["target_weight"] + 7 - slopes @ middle
    assert fit.params[4] == pytest.approx(intercept, rel=1e-6)
    assert "from the released matrix" in fit.summary()
    again = regression.LinearFit.from_json(fit.to_json())
    assert again.l2_strength == fit.l2_strength
    np.testing.assert_array_equal(again.params, fit.params)
    with pytest.raises(dpci.InvalidInput, match="l2_strength"):
        dpci.compare(fit, matrix.fit(l2_strength=1.0))


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
@pytest.mark.parametrize("budget", [dpci.PureDP(1e-3), dpci.ZCDP(1e-9), dpci.GDP(1e-6)], ids=str)
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_a_private_ridge_always_has_a_solution(budget, neighbors):
    relation = "replace_one" if neighbors == "replace_one" else dpci.AddRemove(N)
    for seed in range(10):
        matrix = released(budget, neighbors=relation, robust=False, seed=seed)
        for features in (None, ["x0"], []):
            fit = matrix.fit(features=features, l2_strength="private")
            assert np.isfinite(fit.params).all()
            assert np.all(fit.conf_int().length > 0)


def test_a_matrix_of_noise_is_refused():
    with pytest.warns(dpci.MomentNoiseWarning, match="no regression with an intercept"):
        matrix = released(dpci.PureDP(1e-3), robust=False)
    for features in (None, ["x0"]):
        with pytest.raises(dpci.InvalidInput, match="vary more than the noise"):
            matrix.fit(features=features)


def test_a_negative_residual_variance_leaves_intervals():
    # No errors at all, and noise: the estimate of their variance is below zero in half of all releases.
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (N, 2))
    y = rows @ [0.3, 0.2]
    for seed in range(20):
        fit = regression.release(rows, y, budget=dpci.ZCDP(5.0), bounds=(-1, 1), seed=seed).fit()
        assert fit.residual_variance > 0
        assert np.all(fit.conf_int().length > 0)
        assert np.all((fit.noise_shares > 0.5) & (fit.noise_shares <= 1))


BAD = {
    "a target that is none": (lambda m: m.fit("z"), "target must be of the columns"),
    "a feature that is none": (lambda m: m.fit(features=["z"]), "features must be of the columns"),
    "one name": (lambda m: m.fit(features="x0"), "sequence of names"),
    "a feature twice": (lambda m: m.fit(features=["x0", "x0"]), "differ"),
    "the target among the features": (lambda m: m.fit("x0", features=["x0"]), "differ"),
    "a ridge below zero": (lambda m: m.fit(l2_strength=-1), "l2_strength"),
    "an intercept by number": (lambda m: m.fit(intercept=1), "intercept"),
    "another covariance": (lambda m: m.fit(covariance="HC3"), "covariance"),
    "robust of a part": (lambda m: m.fit(features=["x0"], covariance="robust"), "planned"),
    "robust ridge": (lambda m: m.fit(l2_strength=1.0, covariance="robust"), "planned"),
    "a level": (lambda m: m.fit().conf_int(level=1.0), "level"),
    "a contrast": (lambda m: m.fit().conf_int(contrast="z"), "contrast"),
    "dependent rows": (lambda m: m.fit().wald_test([[1, 0, 0, 0], [2, 0, 0, 0]]), "independent"),
    "values": (lambda m: m.fit().wald_test("x0", [1, 2]), "value"),
    "far values": (lambda m: m.fit().wald_test(["x0", "x1"], 1e200), "statistic, and .* within the range of floats"),
    "columns": (lambda m: m.fit().predict(X[:, :2]), "3 columns"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_refused_in_words(name, exact):
    call, message = BAD[name]
    with pytest.raises(dpci.InvalidInput, match=message):
        call(exact)


def test_robust_needs_its_release():
    with pytest.raises(dpci.InvalidInput, match="robust=True"):
        released(robust=False).fit(covariance="robust")


def test_results_say_what_they_are(exact):
    fit = exact.fit()
    assert fit.names == ("x0", "x1", "x2", "intercept")
    assert "NOT PRIVATE" in fit.summary()
    assert "of y, robust covariance" in fit.summary()
    assert "LinearFit" in repr(fit)
    assert pickle.loads(pickle.dumps(fit)).summary() == fit.summary()
    document = json.loads(fit.to_json())
    for name in document:
        with pytest.raises(dpci.InvalidInput):
            regression.LinearFit.from_json(json.dumps({**document, name: None}))
    with pytest.raises(ValueError, match="read-only"):
        fit.params[0] = 0
    pytest.importorskip("pandas")
    assert list(fit.summary_frame().index) == list(fit.names)
