"""The law of the errors with level totals: against the formulas of the appendix, and the coverage of common levels."""

import dataclasses
import warnings

import numpy as np
import pytest

import dpci
from dpci.released.model import record_of
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema

pytestmark = pytest.mark.filterwarnings(
    "ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning", "ignore::dpci.PrivacyLeakWarning"
)

BOUND, LEVELS, SIZE, STRENGTH = 0.3, 30, 4000, 0.02
ROWS = dpci.rows.Blocks([0.5], groups=[(range(1, 1 + LEVELS), BOUND)])
WITH_LEVELS = dpci.ObjectivePerturbation(moments="levels")
COMMON = 3


def table():
    """A number and the indicators of one category, of which most records have the level at position 3."""
    rng = np.random.default_rng(3)
    level = np.where(rng.random(SIZE) < 0.9, COMMON - 1, rng.integers(0, LEVELS, SIZE))
    X = np.zeros((SIZE, 1 + LEVELS))
    X[:, 0] = rng.uniform(-0.5, 0.5, SIZE)
    X[np.arange(SIZE), 1 + level] = BOUND
    return X, np.where(2.0 * X[:, 0] - 0.5 + rng.logistic(size=SIZE) > 0.0, 1, -1)


def fitted(epsilon, **changed):
    keywords = {"rows": ROWS, "l2_strength": STRENGTH, "classes": (-1, 1), "n_threads": 1, "seed": 1}
    keywords |= {"mechanism": WITH_LEVELS, **changed}
    return dpci.fit(*table(), budget=dpci.PureDP(epsilon), **keywords)


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
    prior, noise = 0.25 * size**2, step.hessian_scale**2 * (len(data) + 1.0)
    share = prior / (prior + noise)
    relative = (np.diag(values) + share * (vectors.T @ data @ vectors - np.diag(values))) / size
    parts, turn = np.linalg.eigh(relative)
    hessian = vectors @ (size * ((turn * np.maximum(parts, 0.25)) @ turn.T)) @ vectors.T
    inverse = np.linalg.inv(hessian + STRENGTH * np.eye(len(data)))
    # The covariance.
    factor = -np.sign(means @ record.params / weight) * np.sqrt(1.0 - 4.0 * weight)
    reach = np.array([0.5, *[BOUND] * LEVELS, scale])
    more = np.zeros(len(data))
    for j, level in enumerate(levels):
        more[1 + j] = BOUND**2 * max(min(mean_of_positive(level, cell[1]), weight) - totals[j], 0.0)
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
    X, y = table()
    keywords = {"rows": ROWS, "l2_strength": STRENGTH, "classes": (-1, 1), "budget": dpci.PureDP(0.5), "n_threads": 1}
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
