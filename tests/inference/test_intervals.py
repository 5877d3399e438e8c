"""Exact intervals and their parts against plain NumPy formulas, and what a fit makes of them."""

import math

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci import _core, lowlevel
from dpci.inference.intervals import ErrorLaw
from support.keywords import assembled
from support.seal import std_dev

SCALE = 0.7
DIMS = (1, 2, 10, 91, 1000)
LEVELS = (0.5, 0.95, 0.999)
# Share of the noise in the error's variance.
RATIOS = (0.0, 1e-6, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999999, 1.0)


def parts(dim, ratio):
    """Sampling variance and multiplier of an error of variance 1 of which noise makes up ``ratio``."""
    return 1.0 - ratio, np.sqrt(ratio / (dim + 1)) / SCALE


def half_widths(dim, level, ratios=RATIOS):
    v, a = parts(dim, np.array(ratios))
    return lowlevel.exact_half_widths(v, a, noise_law="spherical_laplace", noise_scale=SCALE, dim=dim, level=level)


def test_without_noise_the_law_is_normal():
    np.testing.assert_allclose(half_widths(10, 0.95, (0.0,)), stats.norm.ppf(0.975), rtol=1e-13)
    assert half_widths(100_000, 0.95, (1.0,)) == pytest.approx(stats.norm.ppf(0.975), rel=1e-5)


def test_half_widths_grow_with_level_and_scale():
    for dim in DIMS:
        widths = np.array([half_widths(dim, level) for level in (1e-6, 0.1, 0.49, 0.5, 0.51, 0.9, 0.999, 1 - 1e-9)])
        assert (np.diff(widths, axis=0) > 0).all()
    v, a = np.array([0.3, 0.0]), np.array([0.2, 5.0])
    law = {"noise_law": "spherical_laplace", "dim": 4}
    once = lowlevel.exact_half_widths(v, a, noise_scale=SCALE, **law)
    np.testing.assert_allclose(lowlevel.exact_half_widths(9 * v, 3 * a, noise_scale=SCALE, **law), 3 * once, rtol=1e-14)
    np.testing.assert_allclose(lowlevel.exact_half_widths(v, a / 2, noise_scale=2 * SCALE, **law), once, rtol=1e-14)


# The parts of an error.

D, N = 4, 1234


@pytest.fixture(scope="module")
def released():
    rng = np.random.default_rng(12)
    root, other = rng.standard_normal((2, D, D))
    return root @ root.T + 0.1 * np.eye(D), other @ other.T, rng.standard_normal((6, D))


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_error_components_are_the_sandwich(released, mechanism):
    hessian, gradient_cov, contrasts = released
    v, a = lowlevel.error_components(hessian, gradient_cov, N, contrasts, mechanism=mechanism)
    inverse = np.linalg.inv(hessian)
    sandwich = inverse @ gradient_cov @ inverse / N
    np.testing.assert_allclose(v, np.einsum("mi,ij,mj->m", contrasts, sandwich, contrasts), rtol=1e-10)
    multiplier = contrasts @ inverse / N if mechanism == "objective" else contrasts
    np.testing.assert_allclose(a, np.linalg.norm(multiplier, axis=1), rtol=1e-12)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize(("law", "variance"), [("gaussian", SCALE**2), ("spherical_laplace", (D + 1) * SCALE**2)])
def test_the_covariance_is_sampling_and_noise_together(released, mechanism, law, variance):
    hessian, gradient_cov, contrasts = released
    core = _core.ErrorLaw.plug_in(hessian, gradient_cov, N, mechanism)
    assert core.least_sampling is None
    assert core.shape == np.inf
    cov = sum(ErrorLaw(core.sampling, core.noise, 0.0, law, SCALE).parts(np.eye(D)))
    inverse = np.linalg.inv(hessian)
    noise = inverse @ inverse / N**2 if mechanism == "objective" else np.eye(D)
    np.testing.assert_allclose(cov, inverse @ gradient_cov @ inverse / N + variance * noise, rtol=1e-10)
    assert np.array_equal(core.sampling, core.sampling.T)
    v, a = lowlevel.error_components(hessian, gradient_cov, N, contrasts, mechanism=mechanism)
    np.testing.assert_allclose(np.einsum("mi,ij,mj->m", contrasts, cov, contrasts), v + a**2 * variance, rtol=1e-10)


# Intervals of a fit.


def make_fit(budget, mechanism):
    rng = np.random.default_rng(13)
    X = rng.uniform(-0.5, 0.5, (3000, D - 1))
    y = np.where(X @ [4.0, -2.0, 0.0] + rng.logistic(size=3000) > 0, 1, -1)
    return dpci.fit(
        X, y, **assembled(budget=budget, l2_strength=0.02, mechanism=mechanism, projection="floor", seed=14)
    )


@pytest.fixture(
    scope="module",
    params=[
        (dpci.PureDP(2.0), "objective"),
        (dpci.PureDP(2.0), "output"),
        (dpci.ZCDP(1.0), "objective"),
        (dpci.ApproxDP(1.0, 1e-6), "output"),
    ],
    ids=lambda pair: f"{pair[0].notion}-{pair[1]}",
)
def result(request):
    return make_fit(*request.param)


def expected_half_widths(result, contrasts, level):
    """From what the result publishes, by the formulas above."""
    (step,) = (s for s in result.privacy["steps"] if s["step"] == "coefficients")
    v, a = lowlevel.error_components(
        result.hessian, result.gradient_cov, result.n_samples, contrasts, mechanism=result.mechanism
    )
    v += std_dev(result) ** 2 * (contrasts**2).sum(axis=1)
    law = {"noise_law": step["noise"], "noise_scale": step["scale"], "dim": len(result.params)}
    return lowlevel.exact_half_widths(v, a, **law, level=level)


@pytest.mark.parametrize("level", [1e-9, 0.5, 0.95, 1 - 1e-12])
def test_intervals_are_estimate_plus_and_minus_half_width(result, level):
    intervals = result.conf_int(level=level)
    half_width = expected_half_widths(result, np.eye(D), level)
    np.testing.assert_allclose(intervals.upper, result.params + half_width, rtol=1e-12)
    np.testing.assert_allclose(intervals.lower, result.params - half_width, rtol=1e-12)
    assert np.asarray(intervals).shape == (D, 2)
    np.testing.assert_array_equal(np.asarray(intervals), np.column_stack([intervals.lower, intervals.upper]))
    assert intervals.level == level
    assert (intervals.length > 0).all()


def test_contrasts(result):
    contrasts = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.5], [0.25, 0.25, 0.25, 0.25]])
    together = result.conf_int(contrast=contrasts)
    half_width = expected_half_widths(result, contrasts, 0.95)
    np.testing.assert_allclose(together.estimate, contrasts @ result.params, rtol=1e-14)
    np.testing.assert_allclose(together.upper - together.estimate, half_width, rtol=1e-9)
    assert np.asarray(together).shape == (3, 2)
    for i, contrast in enumerate(contrasts):
        alone = result.conf_int(contrast=contrast)
        assert np.asarray(alone).shape == (1, 2)
        np.testing.assert_allclose(np.asarray(alone)[0], np.asarray(together)[i], rtol=1e-13)
        doubled = result.conf_int(contrast=list(2.0 * contrast))
        np.testing.assert_allclose(doubled.length, 2.0 * alone.length, rtol=1e-12)
        mirrored = result.conf_int(contrast=-contrast)
        np.testing.assert_allclose([mirrored.lower, mirrored.upper], [-alone.upper, -alone.lower], rtol=1e-12)
    np.testing.assert_allclose(result.conf_int(contrast=np.eye(D)), result.conf_int(), rtol=1e-13)


def test_pvalues_agree_with_the_intervals(result):
    """Zero is an end of the interval whose level is one less the p-value."""
    # Nearer to 0, 1 - pvalue loses the digits that this needs.
    (moderate,) = np.nonzero((result.pvalues > 1e-6) & (result.pvalues < 1.0))
    assert len(moderate) > 0
    for i in moderate:
        intervals = result.conf_int(level=1.0 - result.pvalues[i])
        end = intervals.lower[i] if result.params[i] > 0 else intervals.upper[i]
        assert end == pytest.approx(0.0, abs=1e-8 * intervals.length[i])


def test_standard_errors(result):
    np.testing.assert_allclose(result.std_errors, np.sqrt(np.diag(result.cov)), rtol=1e-14)
    assert result.std_errors.shape == (D,)
    (step,) = (s for s in result.privacy["steps"] if s["step"] == "coefficients")
    normal = result.conf_int(level=0.95).length / (2.0 * stats.norm.ppf(0.975))
    # Exact for Gaussian noise; a mixture of normals with four parameters is not far from one.
    np.testing.assert_allclose(normal, result.std_errors, rtol=1e-12 if step["noise"] == "gaussian" else 0.05)


def test_monte_carlo_intervals_are_reproducible_and_close(result):
    exact = result.conf_int()
    first, second = (result.conf_int(method="monte_carlo", n_draws=20_000, seed=15) for _ in range(2))
    np.testing.assert_array_equal(np.asarray(first), np.asarray(second))
    np.testing.assert_allclose(first.length, exact.length, rtol=0.05)
    assert not np.array_equal(result.conf_int(method="monte_carlo", seed=16), result.conf_int(method="monte_carlo"))


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 1.5, 95, math.nan, math.inf, "0.95", None, True])
@pytest.mark.parametrize("method", ["exact", "monte_carlo"])
def test_levels_outside_the_open_interval_are_refused(result, level, method):
    with pytest.raises(dpci.InvalidInput, match=r"level must be .*, got level="):
        result.conf_int(level=level, method=method)


@pytest.mark.parametrize(
    "contrast",
    [
        [1.0, 2.0],
        np.ones((2, D + 1)),
        np.ones((1, 1, D)),
        1.0,
        [math.nan] * D,
        [math.inf] * D,
        ["a"] * D,
        [[1.0] * D, [1.0]],
        [1j] * D,
    ],
)
def test_bad_contrasts_are_refused(result, contrast):
    with pytest.raises(dpci.InvalidInput, match="contrast"):
        result.conf_int(contrast=contrast)


def test_no_contrasts_give_no_intervals(result):
    assert np.asarray(result.conf_int(contrast=np.empty((0, D)))).shape == (0, 2)
    assert np.asarray(result.conf_int(contrast=np.empty((0, D)), method="monte_carlo", seed=1)).shape == (0, 2)


def test_bad_parts_are_refused():
    good = {"noise_law": "spherical_laplace", "noise_scale": SCALE, "dim": 3, "level": 0.95}
    for bad in (
        {"level": 0.0},
        {"level": math.nan},
        {"noise_scale": 0.0},
        {"noise_scale": math.inf},
        {"dim": 0},
        {"noise_law": "laplace"},
    ):
        with pytest.raises(dpci.InvalidInput):
            lowlevel.exact_half_widths([1.0], [1.0], **{**good, **bad})
    for v, a in (([-1.0], [1.0]), ([1.0], [-1.0]), ([math.nan], [1.0]), ([1.0], [math.inf]), ([1.0, 2.0], [1.0])):
        with pytest.raises(dpci.InvalidInput):
            lowlevel.exact_half_widths(v, a, **good)
        with pytest.raises(dpci.InvalidInput):
            lowlevel.monte_carlo_interval(v, a, **good, seed=1)
    with pytest.raises(dpci.InvalidInput):
        _core.ErrorShape("gaussian", 1.0, 1).pvalues(np.ones(1), np.ones(1), np.full(1, math.nan))
    with pytest.raises(dpci.DpciError, match="positive definite"):
        lowlevel.error_components(-np.eye(2), np.eye(2), 10, np.eye(2), mechanism="objective")
    with pytest.raises(dpci.InvalidInput):
        lowlevel.error_components(np.eye(2), np.eye(2), 10, np.eye(3), mechanism="objective")
