"""Intervals of noise in the shape of the rows, and of levels with their totals: against simulated errors."""

import dataclasses
import math
import warnings

import numpy as np
import pytest
from scipy import special, stats

import dpci
from dpci import _core
from dpci.inference import validity, wald
from dpci.inference.simultaneous import shaped_draws
from dpci.released.model import record_of
from dpci.rows import Blocks
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema
from support.blocks import gauge
from support.fits import BOUND, LEVELS, make_levels

ROWS = Blocks([1.0], groups=[([1, 2, 3], 1.0), ([4, 5], 0.5)])
N = 4000
PURE = dpci.PureDP(1.0)
pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning", "ignore::dpci.PrivacyLeakWarning")


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


STRENGTH = 0.02
DOMAIN = dpci.rows.Blocks([0.5], groups=[(range(1, 1 + LEVELS), BOUND)])
WITH_LEVELS = dpci.ObjectivePerturbation(moments="levels")
COMMON = 3


def fitted(epsilon, **changed):
    keywords = {"rows": DOMAIN, "l2_strength": STRENGTH, "classes": (-1, 1), "seed": 1}
    keywords |= {"mechanism": WITH_LEVELS, **changed}
    return dpci.fit(*make_levels(), budget=dpci.PureDP(epsilon), **keywords)


# The formulas of the appendix, once more.


def onto(values, total):
    """The nearest values that are not negative and have this sum, by bisection."""
    low, high = values.min() - total, values.max()
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(values - middle, 0.0).sum() > total else (low, middle)
    return np.maximum(values - low, 0.0)


def mean_of_positive(found, noise):
    """Mean of a normal law cut off at 0, by the midpoint rule."""
    start = max(found - 12.0 * noise, 0.0)
    x = start + (np.arange(400_000) + 0.5) * (max(found, 0.0) + 12.0 * noise - start) / 400_000
    weight = np.exp(-0.5 * ((x - found) / noise) ** 2)
    return (weight * x).sum() / weight.sum()


def mean_of_exponential(found, noise, mean):
    """Mean of a number with an exponential law of this mean, found with normal noise, by the midpoint rule."""
    x = (np.arange(400_000) + 0.5) * (max(found, 0.0) + 12.0 * noise) / 400_000
    exponent = -0.5 * ((x - found) / noise) ** 2 - x / mean
    weight = np.exp(exponent - exponent.max())
    return (weight * x).sum() / weight.sum()


def expected_law(record):
    """Return H⁻¹/n, and the sampling covariance without what is left open, by the appendix."""
    n, scale, step = record.n_samples, record.intercept_scale, record.steps[1]
    data = record.hessian - STRENGTH * np.eye(len(record.hessian))
    sizes = np.array([3, LEVELS + 1])
    count = sizes.sum()
    cell = step.levels_scale * np.sqrt(2.0 * (count + 1) * (count + 2) / ((sizes + 1) * (sizes + 2)))
    of_weight = (1.0 / (sizes * cell**2)).sum() ** -0.5
    found = data[-1, -1] / scale**2
    weight = min(mean_of_positive(found, of_weight), 0.25)
    square, number = data[0, 0] / 0.25, data[0, -1] / (0.5 * scale)
    low, middle, high = onto(
        np.array([(found + square) / 4 - number / 2, (found - square) / 2, (found + square) / 4 + number / 2]), weight
    )
    mean = high - low
    variance = max(weight - 2.0 * middle - mean**2 / weight, 0.0)
    variance = max(variance**2 / (variance + 3.0**0.5 * cell[0]), 1e-4 * weight)
    levels = np.diag(data)[1:-1] / BOUND**2
    rest = found - levels.sum()
    is_seen = rest > 2.0 * np.hypot(LEVELS**0.5 * cell[1], of_weight)
    totals = onto(np.append(levels, rest) if is_seen else levels, weight)[:LEVELS]
    means = np.array([0.5 * mean, *(BOUND * totals), scale * weight])
    second = np.outer(means, means) / weight
    second[1:-1, 1:-1] = np.diag(BOUND**2 * totals)
    second[0, 0] = 0.25 * (mean**2 / weight + variance)
    # The posterior.
    values, vectors = np.linalg.eigh(second)
    values = np.maximum(values, 1e-6 * values.sum() / len(values))
    size = np.sqrt(np.outer(values, values))
    noise, turned = step.hessian_scale**2 * (len(data) + 1.0), vectors.T @ data @ vectors
    spreads, priors = np.array([0.05, 0.1, 0.2, 0.35, 0.5]), np.array([*[1.0] * 4, 12.0]) / 16.0
    above = np.triu_indices(len(data), 1)
    laws = [stats.norm(scale=np.sqrt((spread**2 * size[above] ** 2 + noise) / 2.0)) for spread in spreads]
    posterior = special.softmax([law.logpdf(turned[above]).sum() for law in laws] + np.log(priors))
    prior = (posterior @ spreads**2) * size**2
    share = prior / (prior + noise)
    relative = (np.diag(values) + share * (turned - np.diag(values))) / size
    parts, turn = np.linalg.eigh(relative)
    hessian = vectors @ (size * ((turn * np.maximum(parts, 0.25)) @ turn.T)) @ vectors.T
    inverse = np.linalg.inv(hessian + STRENGTH * np.eye(len(data)))
    # The covariance.
    factor = -np.sign(means @ record.params / weight) * np.sqrt(1.0 - 4.0 * weight)
    reach = np.array([0.5, *[BOUND] * LEVELS, scale])
    more = np.zeros(len(data))
    hidden = levels[levels < 2.0 * cell[1]]
    count = max(len(hidden), 1)
    mean_of_hidden = (max(hidden.sum(), 0.0) + count**0.5 * cell[1]) / count
    for j, level in enumerate(levels):
        expected = mean_of_exponential(level, cell[1], mean_of_hidden)
        more[1 + j] = BOUND**2 * max(min(expected, weight) - totals[j], 0.0)
    covariance = hessian + np.diag(more + reach * STRENGTH * np.maximum(factor * record.params, 0.0))
    values, vectors = np.linalg.eigh(covariance)
    prior = 0.25 * np.outer(values, values)
    share = prior / (prior + step.scale**2 * (len(data) + 1.0))
    released = vectors.T @ record.gradient_cov @ vectors
    covariance = vectors @ (np.diag(values) + share * (released - np.diag(values))) @ vectors.T
    return inverse / n, inverse @ covariance @ inverse / n


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 1e5])
def test_the_law_is_that_of_the_appendix(epsilon):
    result = fitted(epsilon)
    law = result._error_law()
    noise, sampling = expected_law(record_of(result))
    np.testing.assert_allclose(law.noise, noise, rtol=1e-4, atol=1e-6 * noise.max())
    assert np.isinf(law.shape)
    # What noise leaves open is added, most to the parameter of the common level, and vanishes with it.
    more = np.diag(law.sampling - sampling)
    variances = (noise**2) @ law.noise_variances + np.diag(sampling)
    assert (more > -1e-6 * variances).all()
    assert more.max() > 0.02 * variances[more.argmax()] or epsilon > 1e3
    assert (more < 0.02 * variances).all() or epsilon < 1e3


def test_without_noise_intervals_are_those_of_the_matrices():
    """The sandwich of the released matrices, which have next to no noise."""
    result = fitted(1e7)
    plugged = fitted(1e7, mechanism=dpci.ObjectivePerturbation(projection="floor"))
    np.testing.assert_allclose(result.conf_int().length, plugged.conf_int().length, rtol=0.02)


def test_a_common_level_is_covered_and_intervals_are_not_longer():
    """Over 400 releases: of a coverage of .93 at most .86 has a probability below 1e-6, of .75 at least .84."""
    X, y = make_levels()
    keywords = {"rows": DOMAIN, "l2_strength": STRENGTH, "classes": (-1, 1), "budget": dpci.PureDP(0.5), "n_threads": 1}
    keywords |= {"n_replicates": 400, "n_variability": 0, "seed": 5}
    joint = dpci.simulate.coverage(X, y, **keywords)
    levels = dpci.simulate.coverage(X, y, mechanism=WITH_LEVELS, **keywords)
    assert joint.coverage_by_param[COMMON] < 0.80
    assert min(levels.coverage_by_param) > 0.86
    assert levels.mean_length < joint.mean_length


def schema(**changed):
    columns = (
        NumericColumn(name="age", lower=0, upper=100),
        CategoricalColumn(name="sex", categories=("f", "m")),
        CategoricalColumn(name="work", categories=tuple("abcde")),
    )
    target = ClassTarget(column="y", negative=("no",), positive=("yes",))
    return Schema(**{"columns": columns, "target": target, "encoding": "full_range", **changed})


def moments_of(schema, **changed):
    rng = np.random.default_rng(4)
    values = {"age": rng.uniform(0, 100, 500), "sex": rng.choice(["f", "m"], 500), "work": rng.choice([*"abcde"], 500)}
    values["y"] = rng.choice(["no", "yes"], 500)
    keywords = {"budget": dpci.PureDP(2.0), "l2_strength": 0.1, "seed": 1, **changed}
    with warnings.catch_warnings(action="ignore", category=dpci.CommonLevelWarning):
        return record_of(dpci.fit(values, schema=schema, **keywords)).moments


def test_a_schema_says_that_groups_are_indicators():
    own = schema()
    assert moments_of(own) == "levels"
    assert moments_of(Schema.from_formula("age + sex:work", own)) == "levels"
    for formula in ("bs(age, df=5) + sex + work", "age:work + sex", "age"):
        assert moments_of(dataclasses.replace(Schema.from_formula(formula, own), encoding="full_range")) == "joint"
    assert moments_of(own, budget=dpci.ZCDP(0.5)) == "joint"
    assert moments_of(own, loss="smooth_hinge") == "joint"
    assert moments_of(own, mechanism="output") == "joint"
    assert moments_of(own, mechanism=dpci.ObjectivePerturbation(moments="joint")) == "joint"


def test_results_are_read_as_they_were_written():
    result = fitted(2.0)
    again = dpci.PrivateFit.from_json(result.to_json())
    np.testing.assert_array_equal(again.conf_int().lower, result.conf_int().lower)
    assert "joint with level totals" in result.summary(full=True)
    assert result.common_levels is None
