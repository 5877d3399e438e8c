"""Intervals, tests and comparisons of fits whose noise is in the shape of the rows: against simulated errors."""

import dataclasses
import math

import numpy as np
import pytest

import dpci
from dpci import _core
from dpci.inference import validity, wald
from dpci.inference.simultaneous import shaped_draws
from dpci.released.model import record_of
from dpci.rows import Blocks
from support.blocks import gauge

ROWS = Blocks([1.0], groups=[([1, 2, 3], 1.0), ([4, 5], 0.5)])
N = 4000
PURE = dpci.PureDP(1.0)
pytestmark = pytest.mark.filterwarnings(
    "ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning", "ignore::dpci.PrivacyLeakWarning"
)


def law_in(result):
    return result._error_law()


def make(seed):
    rng = np.random.default_rng(seed)
    X = np.zeros((N, 6))
    X[:, 0] = rng.uniform(-1, 1, N)
    X[np.arange(N), rng.integers(1, 4, N)] = 1.0
    X[np.arange(N), rng.integers(4, 6, N)] = 0.5
    return X, rng.random(N) < 1 / (1 + np.exp(-X @ [1.0, 1.0, 0.0, -1.0, 0.5, 0.0]))


X, Y = make(1)


@pytest.fixture(scope="module")
def result():
    return dpci.fit(X, Y, budget=PURE, l2_strength=0.05, rows=ROWS, seed=1)


CONTRASTS = np.vstack([np.eye(7), [0, 1, -1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1]])


def test_the_noise_is_in_the_shape_of_the_rows(result):
    record = record_of(result)
    assert record.noise_law == "shaped_laplace"
    assert "shaped laplace noise" in result.summary(full=True)
    again = dpci.PrivateFit.from_json(result.to_json())
    np.testing.assert_array_equal(again.conf_int().lower, result.conf_int().lower)
    law = law_in(result)
    # The constant is a block of its own.
    assert law.blocks.bounds == [1.0, 1.0, 0.5, 1.0]
    assert law.blocks.members == [0, 1, 1, 1, 2, 2, 3]
    plan = dpci.plan(n_samples=N, n_features=6, budget=PURE, l2_strength=0.05, rows=ROWS)
    np.testing.assert_allclose(np.sqrt(law.noise_variances) / N, plan.noise_std_devs, rtol=1e-12)


@pytest.mark.parametrize(
    "budget", [dpci.PureDP(1.0), dpci.ZCDP(0.1), dpci.ApproxDP(1.0, 1e-6)], ids=["pure", "zcdp", "approx"]
)
def test_intervals_are_quantiles_of_simulated_errors(budget):
    law = law_in(dpci.fit(X, Y, budget=budget, l2_strength=0.05, rows=ROWS, seed=1))
    draws = np.abs(law.draw(np.random.default_rng(5), CONTRASTS, 200_000))
    fixed, mixed = law.parts(CONTRASTS)
    np.testing.assert_allclose((draws**2).mean(axis=0), np.diag(fixed + mixed), rtol=0.02)
    np.testing.assert_allclose(np.diag(mixed), law.noise_variance(CONTRASTS), rtol=1e-12)
    for level in (0.5, 0.95, 0.99):
        np.testing.assert_allclose(law.half_widths(CONTRASTS, level), np.quantile(draws, level, axis=0), rtol=0.02)
    tails = law.pvalues(CONTRASTS, np.quantile(draws, 0.9, axis=0))
    np.testing.assert_allclose(tails, 0.1, rtol=0.04)


def test_methods_agree(result):
    exact = result.conf_int(contrast=CONTRASTS)
    drawn = result.conf_int(contrast=CONTRASTS, method="monte_carlo", n_draws=200_000, seed=3)
    np.testing.assert_allclose(drawn.length, exact.length, rtol=0.02)
    np.testing.assert_allclose(result.std_errors, np.sqrt(np.diag(result.cov)), rtol=1e-12)
    rows = CONTRASTS[-1:, :6]
    predicted = result.predict_conf_int(rows)
    linear = result.conf_int(contrast=np.column_stack([rows, np.ones(1)]))
    np.testing.assert_allclose(predicted.lower, 1 / (1 + np.exp(-linear.lower)), rtol=1e-9)
    joint = result.conf_int(simultaneous="max_z")
    law = law_in(result)
    inside = np.abs(law.draw(np.random.default_rng(9), np.eye(7), 100_000)) <= joint.length / 2
    assert 0.945 < inside.all(axis=1).mean() < 0.96


def test_joint_tests_have_their_size(result, monkeypatch):
    monkeypatch.setattr(wald, "_DRAWS", 10_000)
    law = law_in(result)
    rows = np.eye(7)[:3]
    hypothesis = result.wald_test(rows, method="joint")
    assert hypothesis.pvalue == result.wald_test(rows, method="joint").pvalue
    # Errors as they are under the hypothesis: their p-values are uniform.
    errors = law.draw(np.random.default_rng(4), rows, 200)
    pvalues = [result.wald_test(rows, result.params[:3] - error, method="joint").pvalue for error in errors]
    for level in (0.1, 0.5, 0.9):
        assert np.mean(np.array(pvalues) <= level) == pytest.approx(level, abs=0.11)
    assert result.wald_test(rows, 1e6, method="joint").pvalue == pytest.approx(1 / 10_001)


def test_differences_of_two_fits():
    a = dpci.fit(X, Y, budget=PURE, l2_strength=0.05, rows=ROWS, seed=1)
    b = dpci.fit(*make(2), budget=PURE, l2_strength=0.05, rows=ROWS.norm, seed=2)
    found = dpci.compare(a, b)
    laws = [law_in(each) for each in (a, b)]
    draws = [law.draw(np.random.default_rng(i), np.eye(7), 200_000) for i, law in enumerate(laws)]
    sizes = np.abs(draws[0] - draws[1])
    half = (found.intervals.upper - found.intervals.lower) / 2
    np.testing.assert_allclose(half, np.quantile(sizes, 0.95, axis=0), rtol=0.02)
    np.testing.assert_allclose(found.std_errors, sizes.std(axis=0) * 0 + np.sqrt((sizes**2).mean(axis=0)), rtol=0.02)
    pvalues = (sizes >= np.abs(found.difference)).mean(axis=0)
    np.testing.assert_allclose(found.pvalues, pvalues, atol=0.005)


def test_simulated_noise_has_the_law_of_the_core():
    """The gauge of a draw is a gamma number of shape D; the core's sampler has the same moments."""
    blocks = record_blocks()
    ours = shaped_draws(np.random.default_rng(1), blocks, 0.5, 20_000)
    theirs, _ = _core.Testing.bounded_noise("shaped_laplace", 20_000, 7, 0.5, 3, blocks)
    for draws in (ours, theirs):
        sizes = np.array([gauge(blocks, draw) for draw in draws])
        assert sizes.mean() == pytest.approx(0.5 * 7, rel=0.01)
        assert sizes.std() == pytest.approx(0.5 * math.sqrt(7), rel=0.03)
        np.testing.assert_allclose(draws.std(axis=0), np.sqrt(0.25 * 72 * blocks.variances()), rtol=0.03)
        assert np.abs(np.corrcoef(draws.T) - np.eye(7)).max() < 0.03


def record_blocks():
    return _core.RowDomain.blocks([1.0, 1.0, 0.5], [0, 1, 1, 1, 2, 2]).with_constant(2.0)


def test_a_radius_shows_slack_where_the_error_leaves_room():
    plenty, little = (
        dpci.fit(
            X, Y, budget=PURE, l2_strength=0.05, rows=ROWS, mechanism=dpci.ObjectivePerturbation(radius=radius), seed=1
        )
        for radius in (400.0, 1.0)
    )
    assert validity.refusal(record_of(plenty)) is None
    assert "the radius does not bind" in validity.refusal(record_of(little))


def test_contradictions_of_saved_fits_are_found(result):
    record = record_of(result)
    for change in (
        {"rows": dpci.rows.Ball(ROWS.norm)},
        {"mechanism": "output"},
        {"calibration": "paper"},
        {"budget": dpci.ApproxDP(1.0, 1e-6)},
    ):
        with pytest.raises(dpci.InvalidInput):
            dataclasses.replace(record, **change).check()


def test_gaussian_noise_is_in_the_metric_of_the_rows():
    budget = dpci.ApproxDP(1.0, 1e-6)
    common = {"budget": budget, "l2_strength": 0.05, "rows": ROWS}
    result = dpci.fit(X, Y, seed=1, **common)
    law, record = law_in(result), record_of(result)
    assert record.noise_law == "shaped_gaussian"
    # Blocks of 1, 3, 2 and the constant: a^2 D/k.
    np.testing.assert_allclose(law.metric, [7.0, *[7 / 3] * 3, *[7 / 8] * 2, 7.0], rtol=1e-12)
    plan = dpci.plan(n_samples=N, n_features=6, **common)
    np.testing.assert_allclose(np.sqrt(law.noise_variances) / N, plan.noise_std_devs, rtol=1e-12)
    again = dpci.PrivateFit.from_json(result.to_json())
    np.testing.assert_array_equal(again.conf_int().lower, result.conf_int().lower)
    with pytest.raises(dpci.errors.InvalidInput, match="noise_law"):
        dataclasses.replace(record, rows=dpci.rows.Ball(ROWS.norm)).check()
    # What was claimed is what the noise gives; with the noise of a ball of norm R it would be much less.
    assert 0.99 * budget.delta < result.guarantee.delta(1.0) <= budget.delta
    # The joint test and the intervals know one law.
    errors = law.draw(np.random.default_rng(3), np.eye(7), 200_000)
    fixed, mixed = law.parts(np.eye(7))
    np.testing.assert_allclose(np.cov(errors.T), fixed + mixed, atol=0.02 * np.diag(fixed + mixed).max())
    # No confusion with the noise of a ball, which stays to be had.
    ball = dpci.fit(X, Y, seed=1, mechanism=dpci.ObjectivePerturbation(noise="gaussian"), **common)
    assert record_of(ball).noise_law == "gaussian"
    assert law_in(ball).metric is None
    product = np.log(law.noise_variances / law_in(ball).noise_variances).mean()
    assert product == pytest.approx(np.log(law.metric).mean() - np.log(ROWS.norm**2 + 1.0), rel=1e-3)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_a_study_has_the_intervals_of_a_fit_under_gaussian_noise(relation):
    public = dpci.AddRemove(N) if relation == "add_remove" else relation
    common = {"budget": dpci.ApproxDP(1.0, 1e-3), "l2_strength": 0.05, "rows": ROWS, "neighbors": public}
    study = dpci.simulate.coverage(X, Y, classes=(False, True), n_replicates=60, n_variability=0, seed=1, **common)
    fit = dpci.fit(X, Y, seed=1, **common).conf_int()
    np.testing.assert_allclose((study.upper - study.lower).mean(axis=0), fit.upper - fit.lower, rtol=0.2)
    assert study.coverage > 0.88
