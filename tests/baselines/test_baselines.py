"""The functional mechanism, with and without its noise, and the model without privacy: against scikit-learn."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression, Ridge

import dpci
from dpci import _core, baselines
from dpci.errors import DpciError, InvalidInput, PrivacyLeakWarning, RowNormViolation, SeededNoiseWarning
from support.baselines import BUDGET, WEIGHTS, D, N, make_rows, minimize_polynomial, recover_noise, varied_rows
from support.core import specified
from support.keywords import bounded
from support.saved import rewritten
from support.seal import left_of, unsealed

X, Y, LABELS = make_rows()


def functional(x=X, y=Y, **keywords):
    return baselines.functional_mechanism(x, y, **bounded(**{"budget": BUDGET, "seed": 5, **keywords}))


def quiet_non_private(*rows, **keywords):
    with pytest.warns(PrivacyLeakWarning, match="NOT PRIVATE"):
        return baselines.non_private(*rows, **keywords)


def with_constant(x, s=1.0):
    return np.hstack([x, np.full((len(x), 1), s)])


# Against others' code, without noise.


def test_without_noise_it_is_least_squares():
    free = functional(budget=dpci.PureDP(1e12))
    np.testing.assert_allclose(free.params, np.linalg.lstsq(with_constant(X), Y)[0], atol=1e-7)
    ridge = Ridge(alpha=0.1 * N / 2.0, fit_intercept=False).fit(with_constant(X), Y)
    shrunk = functional(budget=dpci.PureDP(1e12), l2_strength=0.1)
    np.testing.assert_allclose(shrunk.params, ridge.coef_, atol=1e-8)
    np.testing.assert_allclose(shrunk.predict(X), ridge.predict(with_constant(X)), atol=1e-8)


def test_the_logistic_polynomial_is_the_taylor_expansion():
    theta = functional(y=LABELS, loss="logistic", budget=dpci.PureDP(1e12), intercept=False).params
    step = 1e-4

    def value(t):  # the mean loss along the line through 0 and theta
        return np.mean(np.log1p(np.exp(-LABELS * (X @ theta) * t)))

    slope = (value(step) - value(-step)) / (2.0 * step)
    curvature = (value(step) + value(-step) - 2.0 * value(0.0)) / step**2
    assert -slope / curvature == pytest.approx(1.0, rel=1e-5)


def test_units_do_not_matter():
    # Rows in another unit with another bound, targets likewise: the same model in the new units.
    small = functional(intercept=False)
    large = functional(100.0 * X, 7.0 * Y, rows=100.0, target_bound=7.0, intercept=False)
    # Alike but for the noise of the seals, of which 20 standard deviations are exceeded with probability 1e-11. The
    # noise on Q is less than its ridge, so the least eigenvalue is at least that of the sums.
    ours, theirs = (model.privacy["seal"]["releases"] for model in (small, large))
    quadratic, linear = (
        20.0 * max(ours[i]["std_dev"], theirs[i]["std_dev"] / unit) for i, unit in enumerate((1e4, 7e2))
    )
    moved = (D * quadratic * np.linalg.norm(small.params) + np.sqrt(D) * linear / 2.0) / np.linalg.eigvalsh(X.T @ X)[0]
    assert moved < 1e-5
    np.testing.assert_allclose(large.params / 0.07, small.params, rtol=0.0, atol=moved)


def test_more_budget_more_calibration_less_error():
    exact = functional(budget=dpci.PureDP(1e12)).params

    def error(**keywords):
        return np.mean([np.linalg.norm(functional(seed=s, **keywords).params - exact) for s in range(60)])

    assert error(budget=dpci.PureDP(100.0)) < error(budget=dpci.PureDP(10.0))
    assert error(budget=dpci.PureDP(20.0)) < 0.5 * error(budget=dpci.PureDP(20.0), calibration="paper")


# Forms of input, threads, duplicates.


def test_sparse_rows_frames_and_threads():
    dense = functional().params
    np.testing.assert_allclose(functional(scipy.sparse.csr_array(X)).params, dense, rtol=1e-10)
    frame = functional(pd.DataFrame(X, columns=["a", "b", "c"]))
    assert frame.names == ("a", "b", "c", "intercept")
    np.testing.assert_array_equal(frame.params, dense)
    with pytest.raises(InvalidInput, match="column 0 must be 'a'"):
        frame.predict(pd.DataFrame(X, columns=["b", "a", "c"]))
    x, y, _ = make_rows(30_000)
    one, two = (dpci.threads(k)(functional)(x, y).params for k in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_out_of_bounds_rows_and_targets():
    far, wild = X.copy(), Y.copy()
    far[3] *= 50.0
    wild[4] = 9.0
    with pytest.raises(RowNormViolation, match="in row 3"):
        functional(far)
    with pytest.raises(InvalidInput, match="in row 4"):
        functional(y=wild)
    clipped = functional(far, wild, rows="clip")
    far[3] /= np.linalg.norm(far[3])
    wild[4] = 1.0
    np.testing.assert_allclose(clipped.params, functional(far, wild).params, rtol=1e-9)


# Results.


@pytest.fixture(
    params=["squared", "logistic", "paper", "add_remove", "zcdp", "approx", "non_private"], name="any_result"
)
def make_any_result(request):
    if request.param == "non_private":
        return quiet_non_private(X, LABELS, loss="logistic", l2_strength=0.01, radius=0.5)
    keywords = {
        "squared": {},
        "logistic": {"y": np.where(LABELS > 0, "yes", "no"), "loss": "logistic", "classes": ("no", "yes")},
        "paper": {"calibration": "paper"},
        "add_remove": {"neighbors": dpci.AddRemove(300)},
        "zcdp": {"budget": dpci.ZCDP(0.1)},
        "approx": {"budget": dpci.ApproxDP(1.0, 1e-6)},
    }[request.param]
    return functional(**keywords)


def test_saved_and_pickled(any_result):
    for again in (baselines.BaselineFit.from_json(any_result.to_json()), pickle.loads(pickle.dumps(any_result))):
        assert again.privacy == any_result.privacy
        assert again.names == any_result.names
        assert again.classes == any_result.classes
        assert again.summary() == any_result.summary()
        np.testing.assert_array_equal(again.params, any_result.params)
        np.testing.assert_array_equal(again.predict(X), any_result.predict(X))


def test_what_a_result_says(any_result):
    assert not any_result.private
    text = any_result.summary()
    assert text.startswith("NOT PRIVATE")
    assert text.endswith(text.split("\n", 1)[0])
    assert "intercept" in text
    assert "NOT PRIVATE" in repr(any_result)
    with pytest.raises(InvalidInput, match="no confidence intervals"):
        any_result.conf_int(level=0.9)
    with pytest.raises(ValueError, match="read-only"):
        any_result.params[0] = 1.0
    assert any_result.privacy["mechanism"] == any_result.method
    assert any_result.privacy["conditions"][0].startswith("none")
    assert any_result.spent == any_result.budget


@pytest.mark.entropy
def test_a_release_is_private_and_never_repeats():
    first, second = (baselines.functional_mechanism(X, Y, budget=BUDGET) for _ in range(2))
    assert first.private
    assert "NOT PRIVATE" not in first.summary()
    assert "NOT PRIVATE" not in repr(first)
    assert not np.array_equal(first.params, second.params)
    with pytest.warns(SeededNoiseWarning):
        functional()


def test_add_remove_shows_the_public_number_alone():
    result = functional(neighbors=dpci.AddRemove(300))
    assert result.n_samples == 300
    assert str(N) not in result.to_json().replace(str(result.params.tolist()), "")


def test_guarantee():
    pure = functional().guarantee
    assert pure.delta(1.0) == 0.0
    assert functional(budget=dpci.ZCDP(0.1)).guarantee.rdp(4.0) == pytest.approx(0.4)
    approx = functional(budget=dpci.ApproxDP(1.0, 1e-6)).guarantee
    assert approx.delta(1.0) == pytest.approx(1e-6, rel=1e-6)
    with pytest.raises(InvalidInput, match="requires a private model"):
        _ = quiet_non_private(X, Y, loss="squared", l2_strength=0.1).guarantee


def test_classes_and_probabilities():
    labels = np.where(LABELS > 0, "yes", "no")
    result = functional(y=labels, loss="logistic", classes=("no", "yes"), budget=dpci.PureDP(1e9))
    assert result.classes == ("no", "yes")
    assert np.mean(result.predict(X) == labels) > 0.7
    probabilities = result.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(probabilities[:, 1] > 0.5, result.decision_function(X) > 0)
    with pytest.raises(InvalidInput, match="requires a loss that models a probability"):
        functional().predict_proba(X)
    with pytest.warns(PrivacyLeakWarning, match="inferred from y"):
        functional(y=labels, loss="logistic", seed=None)


# The model without privacy.


def test_non_private_is_the_minimiser():
    ridge = Ridge(alpha=0.05 * N / 2.0, fit_intercept=False).fit(with_constant(X), Y)
    found = quiet_non_private(X, Y, loss="squared", l2_strength=0.05)
    np.testing.assert_allclose(found.params, ridge.coef_, atol=1e-8)
    assert found.budget is None
    assert not found.private
    theirs = LogisticRegression(C=1.0 / (0.01 * N), fit_intercept=False, tol=1e-10).fit(X, LABELS)
    ours = quiet_non_private(X, LABELS, loss="logistic", l2_strength=0.01, intercept=False)
    np.testing.assert_allclose(ours.params, theirs.coef_[0], atol=1e-5)
    inside = quiet_non_private(X, Y, loss="squared", l2_strength=1e-9, radius=0.3)
    assert np.linalg.norm(inside.params) == pytest.approx(0.3, rel=1e-6)
    assert "no noise" in inside.summary()


# What is refused.


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"budget": 1.0}, "budget must be dpci.PureDP"),
        ({"loss": "hinge"}, "loss must be one of 'squared', 'logistic', got loss='hinge'"),
        ({"calibration": "loose"}, "calibration must be one of"),
        ({"calibration": "paper", "budget": dpci.ZCDP(1.0)}, "requires PureDP"),
        ({"calibration": "paper", "budget": dpci.ApproxDP(1.0, 1e-6)}, "requires PureDP"),
        ({"l2_strength": -1.0}, "l2_strength must be finite and >= 0"),
        ({"l2_strength": float("nan")}, "l2_strength must be finite and >= 0"),
        ({"target_bound": 0.0}, "target_bound must be finite and > 0"),
        ({"rows": float("inf")}, "rows must be finite and > 0"),
        ({"rows": 1e200}, "such that the noise has a finite scale"),
        ({"budget": dpci.PureDP(1e-320)}, "budget must be such that the noise has a finite scale"),
        ({"intercept": -1.0}, "intercept must be finite and > 0"),
        ({"rows": "drop"}, "rows must be a number"),
        ({"neighbors": "swap"}, "neighbors must be 'replace_one' or dpci.AddRemove"),
        ({"neighbors": "add_remove"}, "the number of records is then private"),
        ({"classes": (0, 1)}, "classes must be None for a loss with real targets"),
        ({"seed": -1}, "seed must be None or an integer"),
        ({"x": np.zeros((0, 2)), "y": []}, "at least one row"),
        ({"x": np.zeros((N, 0)), "intercept": False}, "at least one row and one parameter"),
        ({"x": np.zeros((N, 5000))}, "at most 4096"),
        ({"x": np.full((N, 1), np.nan)}, "X must be finite"),
        ({"y": np.full(N, np.nan)}, "y must be a number, got NaN in row 0"),
        ({"y": Y[:-1]}, "one entry for each row"),
        ({"x": pd.DataFrame({"intercept": X[:, 0]})}, "must not be called 'intercept'"),
    ],
)
def test_refused(keywords, message):
    with pytest.raises(DpciError, match=message):
        functional(**keywords)


@pytest.mark.parametrize("change", [{"n_samples": N - 1}, {"n_columns": D + 1}])
def test_rows_of_another_specification_are_refused(change):
    choices = {"n_samples": N, "n_columns": D, "intercept": 1.0, "row_norm": 1.0, "l2_strength": 0.0, **change}
    spec = specified(_core.FunctionalSpec, polynomial="squared", budget=_core.Budget.pure(1.0), **choices)
    with pytest.raises(InvalidInput, match="must have length"):
        _core.release(spec, _core.Records(X, Y), on_violation="error", n_threads=1, seed=1)


def test_the_hinge_without_privacy():
    with pytest.warns(PrivacyLeakWarning):
        result = baselines.non_private(X, LABELS, loss="hinge", l2_strength=0.1, radius=1.0, intercept=False)
    signs = np.where(LABELS.max() == LABELS, 1.0, -1.0)
    found = dpci.lowlevel.minimize_erm(X, signs, loss="hinge", l2_strength=0.1, radius=1.0)
    np.testing.assert_allclose(result.params, found.params, atol=1e-9)


def test_losses_that_non_private_refuses():
    bounded = dpci.losses.Custom(
        lambda u, y: (u - y) ** 2, lambda u, y: 2.0 * (u - y), lambda u, _y: np.full_like(u, 2.0), slope_bound=4.0,
        curvature_bound=2.0, target_bounds=(-1.0, 1.0), predictor_bound=1.0,
    )  # fmt: skip
    with pytest.warns(PrivacyLeakWarning), pytest.raises(InvalidInput, match="defined for every predictor"):
        baselines.non_private(X, Y, loss=bounded, l2_strength=0.1)
    with pytest.warns(PrivacyLeakWarning), pytest.raises(InvalidInput, match="l2_strength must be finite and > 0"):
        baselines.non_private(X, Y, loss="squared", l2_strength=0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "other"}, "schema='dpci.BaselineFit'"),
        ({"schema_version": 9}, "schema_version=1"),
        ({"params": [1.0]}, "params must have shape"),
        ({"params": [None] * 4}, "params must be finite"),
        ({"method": "magic"}, "method must be one of"),
        ({"budget": None}, "a budget and its steps"),
        ({"method": "non_private"}, "a budget and its steps"),
        ({"budget": {"notion": "pure", "epsilon": -1.0}}, "epsilon must be finite and > 0"),
        ({"budget": {"notion": "zcdp", "epsilon": 1.0}}, "every field of its schema"),
        ({"steps": [{"step": "polynomial"}]}, "every field of its schema"),
        ({"loss": 3}, "loss must be an object"),
        ({"n_samples": 0}, "n_samples must be at least 1"),
        ({"private": 1}, "private must be True or False"),
    ],
)
def test_damaged_files_are_refused(change, message):
    values = {**json.loads(functional().to_json()), **change}
    with pytest.raises(InvalidInput, match=message):
        baselines.BaselineFit.from_json(rewritten(values))


@pytest.mark.parametrize("text", ["", "[]", "{}", "not JSON", b"\xff"])
def test_what_is_no_file_is_refused(text):
    with pytest.raises(InvalidInput, match="a saved baseline must be"):
        baselines.BaselineFit.from_json(text)


X, Y, LABELS = make_rows()
TARGETS = {"squared": Y, "logistic": LABELS}


# Against NumPy. The law of the noise is in statistical/test_baselines_law.py.


@pytest.mark.parametrize("loss", WEIGHTS)
@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("epsilon", [0.1, 3.0, 300.0])
def test_laplace_noise_on_the_coefficients(loss, calibration, neighbors, epsilon):
    n_public = None if neighbors == "replace_one" else 350
    l2_strength, s, bound = 0.01, 0.5, 1.5 if loss == "squared" else 1.0
    keywords = {
        "loss": loss, "budget": dpci.PureDP(epsilon), "calibration": calibration,
        "neighbors": "replace_one" if n_public is None else dpci.AddRemove(n_public), "l2_strength": l2_strength,
        "intercept": s, "target_bound": bound,
    }  # fmt: skip
    result = functional(y=TARGETS[loss], **keywords)
    (step,) = result.privacy["steps"]
    assert step["noise"] == "laplace"
    assert step["scale"] == pytest.approx(step["sensitivity"] / left_of(epsilon), rel=1e-12)
    facts = {"loss": loss, "std_dev": np.sqrt(2.0) * step["scale"], "row_norm": np.hypot(1.0, s), "target_bound": bound}
    ridge = (n_public or N) * l2_strength / 2.0
    models = [(with_constant(x, s), y, ridge, functional(x, y, **keywords).params) for x, y in varied_rows(D, loss)]
    quadratic, linear, unexplained = recover_noise(models, **facts)
    assert unexplained < 1e-9
    rows = with_constant(X, s)
    expected = minimize_polynomial(
        rows, TARGETS[loss], quadratic_noise=quadratic, linear_noise=linear, ridge=ridge, **facts
    )
    np.testing.assert_allclose(result.params, expected, rtol=1e-8)


@pytest.mark.parametrize("loss", WEIGHTS)
@pytest.mark.parametrize("budget", [dpci.ZCDP(0.2), dpci.ApproxDP(1.0, 1e-6)])
def test_gaussian_noise_on_the_sums(loss, budget):
    keywords = {"loss": loss, "budget": budget, "intercept": False}
    result = functional(y=TARGETS[loss], **keywords)
    (step,) = result.privacy["steps"]
    rest = unsealed(budget)
    mu = np.sqrt(2.0 * rest.rho) if budget.notion == "zcdp" else _core.gaussian_mu(rest.epsilon, rest.delta)
    assert step["noise"] == "gaussian"
    assert step["scale"] == pytest.approx(3.0 / np.sqrt(2.0) / mu, rel=1e-12)
    facts = {"loss": loss, "std_dev": WEIGHTS[loss][0] * step["scale"]}
    models = [(x, y, 0.0, functional(x, y, **keywords).params) for x, y in varied_rows(D, loss)]
    quadratic, linear, unexplained = recover_noise(models, **facts)
    assert unexplained < 1e-9
    expected = minimize_polynomial(X, TARGETS[loss], quadratic_noise=quadratic, linear_noise=linear, **facts)
    np.testing.assert_allclose(result.params, expected, rtol=1e-8)


def drowned(x, seed, **keywords):
    """A model that noise drowns, and the eigenvalues and vectors of its quadratic part in units of the noise.

    Ridges that save all directions show the noise of the seed; the data are 10⁻⁵ of it and turn its vectors by no more.
    """
    keywords |= {"budget": dpci.PureDP(1e-6), "seed": seed, "intercept": False}
    result = functional(x, **keywords)
    scale = result.privacy["steps"][0]["scale"]
    models = []
    for times in np.geomspace(20.0, 200.0, 6):
        strength = 2.0 * times * scale / N
        models.append((x, Y, times * scale, functional(x, **keywords, l2_strength=strength).params))
    noise, _, unexplained = recover_noise(
        models, loss="squared", std_dev=np.sqrt(2.0) * scale, row_norm=keywords.get("rows", 1.0)
    )
    assert unexplained < 1e-9
    values, vectors = np.linalg.eigh(noise / scale)
    return result, values + 4.0 * np.sqrt(2.0), vectors


def test_directions_that_are_not_positive_are_dropped():
    # At this budget the noise drowns the data: the ridge saves some directions, rarely all and rarely none.
    dropped = set()
    for seed in range(250):
        result, values, vectors = drowned(with_constant(X), seed, calibration="paper", rows=np.sqrt(2.0))
        gone = vectors[:, values < 0.0]
        dropped.add(gone.shape[1])
        assert np.linalg.norm(gone.T @ result.params) < 1e-4 * np.linalg.norm(result.params)
    assert {0, 1} <= dropped


def test_parameters_are_zero_where_no_direction_is_left():
    def model(seed):
        return functional(X[:, :1], intercept=False, budget=dpci.PureDP(1e-6), seed=seed)

    gone = [seed for seed in range(3000) if model(seed).params.tolist() == [0.0]]
    assert 0 < len(gone) < 30
    for seed in gone:
        assert drowned(X[:, :1], seed)[1] < 1e-4
        assert (model(seed).predict(X[:, :1]) == 0.0).all()
    for seed in set(range(100)) - set(gone):
        assert drowned(X[:, :1], seed)[1] > -1e-4
