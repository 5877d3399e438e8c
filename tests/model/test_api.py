"""The public fit: what it takes, what it returns, and how it shows, saves and predicts."""

import copy
import inspect
import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.losses import HuberHinge, Logistic, SmoothHinge
from dpci.model.keywords import KEYWORDS, UNIT_KEYWORDS
from dpci.model.settings import FitKeywords
from support import custom_losses
from support.fits import PURE, SETTINGS, D, N, make_rows
from support.keywords import assembled
from support.seal import left_of


@pytest.fixture(scope="module")
def rows():
    return make_rows()


def fit(rows, /, **keywords):
    return dpci.fit(*rows, **assembled(**{**SETTINGS, **keywords}))


def test_predict_proba(rows):
    result = fit(rows)
    proba = result.predict_proba(rows[0])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(proba[:, 1] > 0.5, result.predict(rows[0]) == 1)
    with pytest.raises(dpci.InvalidInput, match="logistic"):
        fit(rows, loss="huber_hinge").predict_proba(rows[0])


def test_contrasts(rows):
    result = fit(rows)
    plain = result.conf_int(level=0.9)
    one = result.conf_int(level=0.9, contrast=[0, 1, 0, 0])
    assert np.asarray(one).shape == (1, 2)
    np.testing.assert_allclose(np.asarray(one)[0], np.asarray(plain)[1])
    np.testing.assert_allclose(np.asarray(result.conf_int(level=0.9, contrast=np.eye(4)[:2])), np.asarray(plain)[:2])
    wide = result.conf_int(level=0.9, contrast=np.array([[2, 0, 0, 0]]))
    np.testing.assert_allclose(wide.length, 2 * plain.length[0])


def test_monte_carlo_agrees_with_exact(rows):
    result = fit(rows)
    exact = result.conf_int(level=0.9)
    drawn = result.conf_int(level=0.9, method="monte_carlo", n_draws=200_000, seed=3)
    np.testing.assert_allclose(np.asarray(drawn), np.asarray(exact), atol=0.02 * exact.length.max())
    again = result.conf_int(level=0.9, method="monte_carlo", n_draws=200_000, seed=3)
    np.testing.assert_array_equal(np.asarray(drawn), np.asarray(again))


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_intervals_and_pvalues_agree(rows, mechanism):
    result = fit(rows, mechanism=mechanism)
    # An interval at level 1 - p just reaches zero.
    for i, p in enumerate(result.pvalues):
        if 1e-8 < p < 1:
            bounds = np.asarray(result.conf_int(level=1 - p))[i]
            assert np.abs(bounds).min() < 1e-6 * np.abs(bounds).max()
    np.testing.assert_allclose(result.std_errors**2, np.diag(result.cov))


def test_without_moments(rows):
    result = fit(rows, moments="none")
    assert result.hessian is None
    assert result.gradient_cov is None
    assert result.spent == PURE
    assert "No intervals" in result.summary()
    for ask in (result.conf_int, lambda: result.cov, lambda: result.std_errors, lambda: result.pvalues, result.plot):
        with pytest.raises(dpci.InvalidInput, match="moments='none'"):
            ask()
    assert dpci.PrivateFit.from_json(result.to_json()).hessian is None


def test_round_trips(rows):
    result = fit(rows, split=(0.6, 0.2, 0.2), classes=(0, 1), loss=HuberHinge(0.3))
    text = result.to_json()
    assert json.loads(text)["schema_version"] == 1
    for other in (dpci.PrivateFit.from_json(text), pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        np.testing.assert_array_equal(other.params, result.params)
        np.testing.assert_array_equal(other.hessian, result.hessian)
        np.testing.assert_array_equal(np.asarray(other.conf_int()), np.asarray(result.conf_int()))
        assert other.privacy == result.privacy
        assert other.summary() == result.summary()
        assert other.to_json() == text
        assert not other.private
        assert not other.params.flags.writeable


def test_seeded_fits_say_so(rows):
    with pytest.warns(dpci.SeededNoiseWarning, match="NOT PRIVATE"):
        seeded = fit(rows)
    assert not seeded.private
    assert seeded.summary().startswith("NOT PRIVATE (seeded)")
    assert "NOT PRIVATE (seeded)" in repr(seeded)
    assert not seeded.privacy["private"]
    released = fit(rows, seed=None, classes=(0, 1))
    assert released.private
    assert "NOT PRIVATE" not in released.summary()
    assert not np.array_equal(released.params, fit(rows, seed=None, classes=(0, 1)).params)


def test_summary_has_what_a_reader_needs(rows):
    text = fit(rows).summary(level=0.9, full=True)
    wanted = [
        "90% confidence", "std error", "objective perturbation", "epsilon=2", "one record replaced", "2,000", "0.02",
    ]  # fmt: skip
    for part in [*wanted, "coefficients", "moments", "population", "not the unregularised"]:
        assert part in text, part
    assert max(map(len, text.splitlines())) <= 100


SOFT_LABELS = custom_losses.soft_labels()
CUSTOM_LOGISTIC = custom_losses.logistic(one_signed=True)


def test_shapes_and_names(rows):
    result = fit(rows)
    k = D + 1
    assert result.names == ("x0", "x1", "x2", "intercept")
    assert result.params.shape == result.std_errors.shape == result.pvalues.shape == (k,)
    assert result.hessian.shape == result.gradient_cov.shape == result.cov.shape == (k, k)
    intervals = result.conf_int()
    assert np.asarray(intervals).shape == (k, 2)
    assert len(intervals) == k
    np.testing.assert_array_equal(np.asarray(intervals)[:, 0], intervals.lower)
    assert (intervals.lower < result.params).all()
    assert (result.params < intervals.upper).all()
    assert result.n_samples == N
    assert result.classes == (0, 1)
    assert result.l2_strength == 0.02


def test_without_intercept(rows):
    result = fit(rows, intercept=False)
    assert result.names == ("x0", "x1", "x2")
    np.testing.assert_allclose(result.decision_function(rows[0]), rows[0] @ result.params)


def test_intercept_scale(rows):
    result = fit(rows, intercept=0.5)
    expected = rows[0] @ result.params[:-1] + 0.5 * result.params[-1]
    np.testing.assert_allclose(result.decision_function(rows[0]), expected)


def test_arrays_are_read_only(rows):
    result = fit(rows)
    intervals = result.conf_int()
    for array in (result.params, result.hessian, result.cov, result.std_errors, result.pvalues, intervals.lower):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    with pytest.raises(AttributeError):
        result.params = np.zeros(4)


@pytest.mark.parametrize(
    ("budget", "mechanism"),
    [
        (PURE, "objective"),
        (PURE, "output"),
        (dpci.ZCDP(rho=0.5), "objective"),
        (dpci.ZCDP(rho=0.5), dpci.OutputPerturbation(noise="gaussian")),
        (dpci.ApproxDP(epsilon=1.0, delta=1e-6), "output"),
    ],
)
@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_every_mechanism(rows, budget, mechanism, calibration):
    result = fit(rows, budget=budget, mechanism=mechanism, calibration=calibration, projection="floor")
    assert result.budget == result.spent == budget
    assert np.isfinite(np.asarray(result.conf_int())).all()
    privacy = result.privacy
    names = ["coefficients", "moments"] if calibration == "tight" else ["coefficients", "hessian", "gradient_cov"]
    assert [step["step"] for step in privacy["steps"]] == names
    assert privacy["notion"] == budget.notion
    shares = [step["cost"] for step in privacy["steps"]]
    if calibration == "paper":
        np.testing.assert_allclose(np.array(shares) / sum(shares), [0.5, 0.25, 0.25])
    if budget.notion != "approx":
        (whole,) = budget.parameters().values()
        np.testing.assert_allclose(sum(shares), left_of(whole), rtol=1e-15)


@pytest.mark.parametrize("loss", ["logistic", "huber_hinge", Logistic(), HuberHinge(h=1.0), SmoothHinge(s=0.5)])
def test_losses(rows, loss):
    result = fit(rows, loss=loss)
    assert (result.predict(rows[0]) == rows[1]).mean() > 0.6
    assert result.loss["slope_bound"] == 1.0


def test_custom_loss_is_the_built_in_one(rows):
    # Of a custom loss no slope is known at a margin, so output perturbation has more noise for it.
    custom, built_in = fit(rows, loss=CUSTOM_LOGISTIC), fit(rows)
    np.testing.assert_allclose(custom.params, built_in.params, atol=1e-6)
    assert "relies on the declared bounds" in custom.summary()
    assert "relies on the declared bounds" not in built_in.summary()
    assert any("declared bounds" in condition for condition in custom.privacy["conditions"])
    restored = dpci.PrivateFit.from_json(custom.to_json())
    assert restored.loss == custom.loss
    assert restored.loss["curvature_bound"] == 0.25


def test_real_targets(rows):
    X = rows[0]
    y = np.clip(0.5 + X[:, 0], 0, 1)
    result = dpci.fit(X, y, budget=PURE, l2_strength=0.02, loss=SOFT_LABELS, seed=1)
    assert result.classes is None
    assert result.decision_function(X).shape == (N,)
    with pytest.raises(dpci.InvalidInput, match="predict requires a loss with two classes"):
        result.predict(X)
    with pytest.raises(dpci.InvalidInput, match=r"y must be within target_bounds \[0, 1\] .*got 2 in row 0"):
        dpci.fit(X, np.where(np.arange(N) == 0, 2.0, y), budget=PURE, l2_strength=0.02, loss=SOFT_LABELS)
    dpci.fit(X, y * 2, budget=PURE, l2_strength=0.02, loss=SOFT_LABELS, rows="clip", seed=1)


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        ([0.0, 1.0], (0, 1), (0, 1)),
        ([False, True], None, (False, True)),
        (["no", "yes"], ("no", "yes"), ("no", "yes")),
        (["no", "yes"], np.array(["yes", "no"]), ("yes", "no")),
        ([3, 7], [7, 3], (7, 3)),
        ([1, 0], (1, 0), (1, 0)),
    ],
)
def test_labels(rows, labels, classes, expected):
    X, y = rows
    result = fit((X, np.array(labels)[y]), classes=classes)
    assert result.classes == expected
    predicted = result.predict(X)
    assert set(predicted) == set(labels)
    assert (predicted == np.array(labels)[y]).mean() > 0.6
    np.testing.assert_array_equal(predicted == expected[1], result.decision_function(X) > 0)
    assert dpci.PrivateFit.from_json(result.to_json()).predict(X).dtype == predicted.dtype


def test_one_class_alone_is_legal_when_declared(rows):
    result = fit((rows[0], np.ones(N)), classes=(0, 1))
    assert (result.predict(rows[0]) == 1).all()


def test_frames_keep_names(rows):
    frame = pd.DataFrame(rows[0], columns=["age", "hours", "gain"])
    result = fit((frame, rows[1]))
    assert result.names == ("age", "hours", "gain", "intercept")
    np.testing.assert_array_equal(result.params, fit(rows).params)
    np.testing.assert_array_equal(result.predict(frame), result.predict(rows[0]))
    with pytest.raises(dpci.InvalidInput, match="column 1 must be 'hours', got 'gain'"):
        result.predict(frame[["age", "gain", "hours"]])
    # The names of a fit on an array are made up, so any frame of that width will do.
    fit(rows).predict(frame)


def test_frames_of_mixed_numeric_columns(rows):
    frame = pd.DataFrame(np.round(rows[0]), columns=["a", "b", "c"]).clip(0, 1)
    mixed = frame.assign(a=frame["a"].astype(bool), b=frame["b"].astype("Int64"), c=frame["c"].astype("float32"))
    np.testing.assert_array_equal(fit((mixed, rows[1]), rows=2.0).params, fit((frame, rows[1]), rows=2.0).params)


def test_same_seed_same_bits_for_any_number_of_threads(rows):
    results = [dpci.threads(n)(fit)(rows) for n in (None, 1, 2, 3)]
    for result in results[1:]:
        assert result.to_json() == results[0].to_json()


def test_moment_noise_warning(rows):
    with pytest.warns(dpci.MomentNoiseWarning, match=r"budget or a zCDP or \(epsilon, delta\) budget;") as caught:
        result = fit(rows, budget=dpci.PureDP(0.5), l2_strength=0.005)
    assert result.privacy["projection"] == "noise_aware"
    (warning,) = [str(one.message) for one in caught if one.category is dpci.MomentNoiseWarning]
    ratio = dpci.plan(n_samples=N, n_features=D, budget=dpci.PureDP(0.5), l2_strength=0.005).noise_ratio
    assert f"is {ratio:.0f} times the strong convexity" in warning
    # Whoever has such a budget already is not sent to it.
    with pytest.warns(
        dpci.MomentNoiseWarning, match="reduce the noise, use a greater l2_strength, a greater budget;"
    ) as caught:
        fit(rows, budget=dpci.ApproxDP(0.1, 1e-6), l2_strength=0.005)
    assert not any("delta" in str(warning.message) for warning in caught)


@pytest.mark.filterwarnings("error::dpci.MomentNoiseWarning")
def test_little_noise_or_a_projection_that_does_not_count_it_gives_no_warning(rows):
    fit(rows, budget=dpci.PureDP(2.0), l2_strength=0.02)
    fit(rows, budget=dpci.PureDP(0.5), l2_strength=0.005, projection="floor")
    fit(rows, budget=dpci.PureDP(0.5), l2_strength=0.005, mechanism="output")


def test_add_remove_keeps_the_number_of_rows_to_itself(rows):
    result = fit(rows, neighbors=dpci.AddRemove(2222))
    assert result.n_samples == 2222
    # As a number of its own, not as digits of another.
    assert not re.search(rf"(?<![\d.e-]){N}(?![\d.])", result.to_json())
    assert f"{N:,}" not in result.summary()
    assert "one record added or removed" in result.summary()


def test_plan_needs_no_data_and_tells_what_the_fit_spends(rows):
    keywords = {"budget": dpci.ZCDP(rho=0.3), "l2_strength": 0.02, "loss": "huber_hinge"}
    plan = dpci.plan(n_samples=N, n_features=D, **keywords)
    result = dpci.fit(*rows, **keywords, seed=1)
    planned, spent = plan.steps[0], result.privacy["steps"][0]
    assert planned.to_dict() == spent
    assert plan.n_params == D + 1
    assert plan.row_norm == pytest.approx(np.sqrt(2))
    assert 0 < plan.privacy_length[0] <= plan.privacy_length[1]
    assert plan.noise_ratio == pytest.approx(plan.noise_spectral_radius / 0.02)
    for part in ("coefficients", "least lambda", "huber hinge", "rho"):
        assert part in repr(plan)
    with pytest.raises(AttributeError):
        plan.n_params = 3
    with pytest.raises(dpci.RegularizationTooSmall, match=r"l2_strength must be greater than"):
        dpci.plan(n_samples=N, n_features=D, budget=PURE, l2_strength=plan.least_l2_strength / 100)


def test_plan_under_add_remove():
    keywords = {"budget": PURE, "l2_strength": 0.02, "neighbors": "add_remove"}
    left_out = dpci.plan(n_samples=N, n_features=D, **keywords)
    assert left_out == dpci.plan(n_samples=N, n_features=D, **{**keywords, "neighbors": dpci.AddRemove(N)})
    with pytest.raises(dpci.InvalidInput, match="n_public must equal n_samples=2000"):
        dpci.plan(n_samples=N, n_features=D, **{**keywords, "neighbors": dpci.AddRemove(N + 1)})


def test_no_copy_of_contiguous_doubles(rows):
    X = np.ascontiguousarray(rows[0])
    assert np.shares_memory(dpci.data.arrays.as_matrix(X).values, X)


def test_keywords_are_the_same_everywhere():
    signature = inspect.signature(dpci.fit).parameters
    others = {"X", "y", "ledger", "schema", "persons", "weights", *UNIT_KEYWORDS}
    assert set(signature) - others == set(KEYWORDS)
    assert set(FitKeywords.__annotations__) == {*KEYWORDS, *UNIT_KEYWORDS}
    assert all(p.kind is p.KEYWORD_ONLY for name, p in signature.items() if name not in {"X", "y"})


def test_lowlevel(rows):
    X, y = rows[0], 2.0 * rows[1] - 1
    found = dpci.lowlevel.minimize_erm(X, y, l2_strength=0.02, intercept=1.0)
    value, gradient = dpci.lowlevel.erm_value_and_gradient(X, y, found.params, l2_strength=0.02, intercept=1.0)
    assert value < np.log(2)
    assert np.linalg.norm(gradient) / 0.02 < 1e-9
    assert found.certificate <= 1e-10
    hessian, gradient_cov = dpci.lowlevel.hessian_and_gradient_cov(X, y, found.params, l2_strength=0.02, intercept=1.0)
    components = dpci.lowlevel.error_components(hessian, gradient_cov, N, np.eye(4), mechanism="output")
    law = {"noise_law": "gaussian", "noise_scale": 0.1, "dim": 4}
    half_widths = dpci.lowlevel.exact_half_widths(*components, **law)
    lower, upper = dpci.lowlevel.monte_carlo_interval(*components, **law, n_draws=100_000, seed=1)
    np.testing.assert_allclose(upper, half_widths, rtol=0.03)
    np.testing.assert_allclose(lower, -half_widths, rtol=0.03)
    np.testing.assert_allclose(dpci.lowlevel.weighted_gram(X, y**2), X.T @ X)
    assert dpci.lowlevel.gaussian_delta(1.0, dpci.lowlevel.gaussian_mu(1.0, 1e-6)) == pytest.approx(1e-6)


@pytest.mark.parametrize(
    "name", ["spherical_laplace", "gaussian", "laplace", "symmetric_gaussian", "symmetric_matrix_laplace"]
)
def test_lowlevel_noise(name):
    draw = getattr(dpci.lowlevel, name)
    noise = draw(5, 3, 0.5, 7)
    assert noise.shape == ((5, 3, 3) if name.startswith("symmetric") else (5, 3))
    np.testing.assert_array_equal(noise, draw(5, 3, 0.5, 7))
    assert not np.array_equal(noise, draw(5, 3, 0.5, 8))


def test_lowlevel_says_that_it_is_not_private():
    for name in dpci.lowlevel.__all__:
        assert getattr(dpci.lowlevel, name).__doc__.startswith("Not private by itself.")
