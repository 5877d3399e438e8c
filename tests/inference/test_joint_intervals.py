"""Intervals that cover together, and intervals of many predictions, against draws from the law and one by one."""

import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from scipy import stats
from scipy.special import expit

import dpci
from dpci.inference.intervals import ErrorLaw
from dpci.inference.simultaneous import FAILURE_PROBABILITY, order_statistic
from dpci.inference.targets.prediction import _half_widths
from support.fits import SETTINGS, make_rows
from support.keywords import assembled

N_DRAWS = 400_000
FALSE_RATE = 1e-6


@pytest.fixture(
    scope="module",
    params=[(dpci.PureDP(0.3), "output"), (dpci.ApproxDP(1.0, 1e-6), "objective")],
    ids=lambda pair: f"{pair[0].notion}-{pair[1]}",
)
def result(request):
    budget, mechanism = request.param
    return dpci.fit(*make_rows(), **{**SETTINGS, "budget": budget, "mechanism": mechanism})


# They depend on each other, so that the union bound is far from sharp.
CONTRASTS = np.array([[1, -1, 0, 0], [1, 0, -1, 0], [0, 1, -1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0.01]])


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_joint_coverage(result, level):
    contrasts = CONTRASTS
    errors = np.abs(result._error_law().draw(np.random.default_rng(8), contrasts, N_DRAWS))

    def covered(**keywords):
        half_width = result.conf_int(level=level, contrast=contrasts, **keywords).length / 2
        return half_width, int((errors <= half_width).all(axis=1).sum())

    (each, n_each), (joint, n_joint), (union, n_union) = (
        covered(simultaneous=kind) for kind in (None, "max_z", "bonferroni")
    )
    assert (each < joint).all()
    assert (joint < union).all()
    # Not below the level, and above it by no more than the bound on the quantile costs.
    low = stats.binom.ppf(FALSE_RATE, N_DRAWS, level)
    worst = (order_statistic(100_000, level) + 6.0 * math.sqrt(100_000 * level * (1 - level))) / 100_000
    assert low <= n_joint <= stats.binom.ppf(1 - FALSE_RATE, N_DRAWS, worst)
    assert n_each < low
    assert n_joint < n_union


def test_max_z_is_the_quantile_of_the_greatest_z():
    # Only under Gaussian noise, with the matrices taken as exact, are all marginal laws of one shape.
    result = dpci.fit(
        *make_rows(), **assembled(**{**SETTINGS, "budget": dpci.ApproxDP(1.0, 1e-6), "projection": "floor"})
    )
    rows = CONTRASTS[:4]
    cov = rows @ result.cov @ rows.T
    std_errors = np.sqrt(np.diag(cov))
    z = result.conf_int(simultaneous="max_z", contrast=rows, n_draws=400_000, seed=3).length / 2 / std_errors
    np.testing.assert_allclose(z, z[0], rtol=1e-9)
    box = stats.multivariate_normal(cov=cov / np.outer(std_errors, std_errors), allow_singular=True, seed=1)
    covers = box.cdf(np.full(4, z[0]), lower_limit=np.full(4, -z[0]))
    assert 0.95 < covers < 0.9535


def test_intervals_that_cover_together_are_repeatable_and_say_so(result):
    one, two = (result.conf_int(simultaneous="max_z", contrast=CONTRASTS) for _ in range(2))
    np.testing.assert_array_equal(np.asarray(one), np.asarray(two))
    other = result.conf_int(simultaneous="max_z", contrast=CONTRASTS, seed=1)
    assert not np.array_equal(np.asarray(one), np.asarray(other))
    assert one.simultaneous == "max_z"
    assert "simultaneous intervals (max_z)" in repr(one)
    # Too few draws to say anything: Šidák's inequality.
    few = result.conf_int(simultaneous="max_z", n_draws=10)
    np.testing.assert_array_equal(np.asarray(few), np.asarray(result.conf_int(level=0.95 ** (1 / 4))))
    single = result.conf_int(simultaneous="max_z", contrast="x0")
    np.testing.assert_array_equal(np.asarray(single), np.asarray(result.conf_int(contrast="x0")))


def test_bonferroni_is_a_level(result):
    union = result.conf_int(simultaneous="bonferroni", level=0.9)
    np.testing.assert_allclose(np.asarray(union), np.asarray(result.conf_int(level=1 - 0.1 / 4)), rtol=1e-12)
    assert union.level == 0.9


@pytest.mark.parametrize(("n", "level"), [(100, 0.5), (1000, 0.95), (100_000, 0.99)])
def test_order_statistics_bound_quantiles(n, level):
    j = order_statistic(n, level)
    assert stats.binom.sf(j - 1, n, level) <= FAILURE_PROBABILITY < stats.binom.sf(j - 2, n, level)


@pytest.mark.parametrize("kind", ["bonferroni", "max_z"])
def test_levels_next_to_1(result, kind):
    level = math.nextafter(1.0, 0.0)
    together = result.conf_int(level=level, simultaneous=kind)
    np.testing.assert_array_equal(np.asarray(together), np.asarray(result.conf_int(level=level)))


def test_draws_take_the_memory_of_their_contrasts():
    law = ErrorLaw(np.eye(300), np.eye(300), 0.0, "spherical_laplace", 0.7)
    tracemalloc.start()
    errors = law.draw(np.random.default_rng(0), np.eye(300)[:2] * [[1.0], [1e8]], 200_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6  # of which the draws are 3.2e6; a block of 300 parameters would be 9.8e6
    # Variances of 200,000 draws: within 6% but for less than one in a million.
    np.testing.assert_allclose(errors.var(axis=0), (1.0 + law.mean_omega) * np.array([1.0, 1e16]), rtol=0.06)


def test_bad_simultaneous(result):
    with pytest.raises(dpci.InvalidInput, match="must be one of 'bonferroni', 'max_z', got simultaneous='scheffe'"):
        result.conf_int(simultaneous="scheffe")
    with pytest.raises(dpci.InvalidInput, match="require method='exact', got method='monte_carlo'"):
        result.conf_int(simultaneous="max_z", method="monte_carlo")
    for name in ("n_draws", "seed"):
        for kind in (None, "bonferroni"):
            with pytest.raises(dpci.InvalidInput, match=f"{name} must be None unless .* got {name}=7"):
                result.conf_int(simultaneous=kind, **{name: 7})
    with pytest.raises(dpci.InvalidInput, match="the variance of a contrast must be finite"):
        result.conf_int(contrast=[1e200, 0, 0, 0])
    with pytest.raises(dpci.InvalidInput, match="n_draws must be at most 50000000 for 4 intervals"):
        result.conf_int(simultaneous="max_z", n_draws=10**9)


# Predictions.


def test_intervals_of_probabilities_are_those_of_contrasts(result):
    X = np.random.default_rng(9).uniform(-0.5, 0.5, size=(3000, 3))
    plain = result.conf_int(level=0.9, contrast=np.column_stack([X, np.ones(len(X))]))
    for rows in (X, X[:20], scipy.sparse.csr_array(X)):
        intervals = result.predict_conf_int(rows, level=0.9)
        n = rows.shape[0]
        np.testing.assert_allclose(intervals.lower, expit(plain.lower[:n]), rtol=1e-9)
        np.testing.assert_allclose(intervals.upper, expit(plain.upper[:n]), rtol=1e-9)
        np.testing.assert_allclose(intervals.estimate, result.predict_proba(rows)[:, 1], rtol=1e-12)
    assert len(result.predict_conf_int(X[:0])) == 0
    assert intervals.names[1] == "row[1]"


@pytest.mark.parametrize("dim", [1, 2, 30])
def test_the_table_of_quantiles_is_exact(dim):
    law = ErrorLaw(np.eye(dim), np.eye(dim), 0.0, "spherical_laplace", 0.7)
    rng = np.random.default_rng(10)
    sampling, noise = 10.0 ** rng.uniform(-6, 6, size=(2, 2000))
    sampling[:3], noise[3:5] = 0.0, 0.0
    for level in (1e-4, 0.05, 0.3, 0.5, 0.95, 0.9999):
        many = _half_widths(sampling, noise, law, level)
        few = np.concatenate([_half_widths(*part, law, level) for part in zip(
            np.array_split(sampling, 40), np.array_split(noise, 40), strict=True)])  # fmt: skip
        np.testing.assert_allclose(many, few, rtol=2e-6)


def test_regression_predicts_its_linear_predictor():
    X, _ = make_rows()
    y = np.clip(X @ [0.5, -0.3, 0.1], -1, 1)
    ridge = dpci.fit(
        X,
        y,
        budget=dpci.ZCDP(1.0),
        l2_strength=0.1,
        loss="squared",
        mechanism=dpci.ObjectivePerturbation(radius=20.0),
        seed=1,
    )
    intervals = ridge.predict_conf_int(X[:5])
    np.testing.assert_allclose(intervals.estimate, ridge.predict(X[:5]))
    hinge = dpci.fit(*make_rows(), **{**SETTINGS, "loss": "huber_hinge"})
    np.testing.assert_allclose(hinge.predict_conf_int(X[:5]).estimate, hinge.decision_function(X[:5]))


def test_bad_rows_to_predict(result):
    with pytest.raises(dpci.InvalidInput, match="3 columns"):
        result.predict_conf_int(np.ones((2, 4)))
    with pytest.raises(dpci.InvalidInput, match="X must be finite"):
        result.predict_conf_int([[0.0, math.nan, 0.0]])
    with pytest.raises(dpci.InvalidInput, match="beyond the range of floats"):
        result.predict_conf_int([[1e200, 0.0, 0.0]])
    with pytest.raises(dpci.InvalidInput, match="level must be"):
        result.predict_conf_int([[0.0, 0.0, 0.0]], level=2)


def test_frames(result):
    frame = result.conf_int().to_frame()
    assert list(frame.columns) == ["estimate", "lower", "upper"]
    assert list(frame.index) == list(result.names)
    table = result.summary_frame(level=0.9)
    np.testing.assert_array_equal(table["pvalue"], result.pvalues)
    np.testing.assert_array_equal(table[["lower", "upper"]], np.asarray(result.conf_int(level=0.9)))
