"""Intervals under a radius: the law behind the test of a binding bound, and what it refuses."""

import json

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci.errors import InvalidInput
from dpci.inference.validity import FALSE_RATE, greatest_variance, least_curvature, refusal, shorter_probability
from dpci.losses import Squared
from dpci.mechanisms import ObjectivePerturbation, OutputPerturbation
from dpci.released.record import FitRecord
from support.keywords import assembled
from support.saved import rewritten
from support.seal import left_of

N = 4000
DIM = 3
BUDGETS = [dpci.PureDP(2.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-6)]
by_budget = pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: b.notion)
by_mechanism = pytest.mark.parametrize("mechanism", ["objective", "output"])
pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")


@pytest.fixture(scope="module")
def rows():
    """A linear model whose ridge solution has norm about .8."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, DIM))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = X @ np.array([0.6, -0.5, 0.3]) + 0.1 * rng.uniform(-1.0, 1.0, N)
    return X, np.clip(y, -1.0, 1.0)


def fit(rows, /, radius, seed=0, **keywords):
    keywords = {"budget": dpci.PureDP(2.0), "l2_strength": 0.05, "mechanism": "output", "loss": "squared", **keywords}
    return dpci.fit(*rows, **assembled(radius=radius, intercept=False, seed=seed, **keywords))


# The law.


@pytest.mark.parametrize("norm", [0.1, 0.9, 1.1, 2.0])
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: b.notion)
def test_probability_of_a_shorter_sum(rows, budget, norm):
    """Against the noncentral chi-square law, or against the mean of it over draws of the noise's radius and angle."""
    record = fit(rows, 1.0, budget=budget)._record
    length, scale = 1.0, record.noise_scale * 20.0
    record = FitRecord.from_json(rewritten({**json.loads(record.to_json()), "noise_scale": scale}))
    got = shorter_probability(record, norm, length)
    if record.noise_law == "gaussian":
        expected, error = stats.ncx2(DIM, (length / scale) ** 2).cdf((norm / scale) ** 2), 1e-12
    else:
        # The angle's cosine is uniform in three dimensions, so only the radius is drawn.
        radius = stats.gamma(DIM, scale=scale).rvs(400_000, random_state=2)
        cosine = (norm**2 - length**2 - radius**2) / (2.0 * length * radius)
        given = np.clip(0.5 * (1.0 + cosine), 0.0, 1.0)
        # Five standard errors: false-positive rate 6e-7.
        expected, error = given.mean(), 5.0 * given.std() / np.sqrt(len(given))
    assert got == pytest.approx(expected, abs=error)


def test_small_noise_and_long_vectors_stay_bounded(rows):
    """Where the exact law has no usable series the one-dimensional bound stands in, which is no less."""
    record = fit(rows, 1.0, budget=dpci.ZCDP(1e6))._record
    assert record.noise_scale < 1e-4
    for norm in (0.5, 1.0 - record.noise_scale, 1.0):
        exact = stats.norm.cdf((norm - 1.0) / record.noise_scale)
        assert shorter_probability(record, norm, 1.0) == pytest.approx(exact, abs=1e-12)


# What is refused.


@by_budget
@by_mechanism
def test_a_binding_radius_has_no_intervals(rows, budget, mechanism):
    """The rate of intervals is at most FALSE_RATE: of 300 fits, 6 would be seen with probability below 1e-6."""
    given = [fit(rows, 0.4, seed, budget=budget, mechanism=mechanism).interval_refusal is None for seed in range(300)]
    assert sum(given) < 6
    assert stats.binom(300, FALSE_RATE).sf(5) < 1e-6


@by_mechanism
def test_a_radius_that_just_binds_is_refused_too(rows, mechanism):
    """The bound passes through the unconstrained minimiser: the hardest case."""
    length = np.linalg.norm(dpci.lowlevel.minimize_erm(*rows, l2_strength=0.05, loss="squared").params)
    given = [fit(rows, length, seed, mechanism=mechanism).interval_refusal is None for seed in range(300)]
    assert sum(given) < 6


@by_budget
@by_mechanism
def test_a_roomy_radius_has_intervals(rows, budget, mechanism):
    result = fit(rows, 4.0, budget=budget, mechanism=mechanism)
    assert result.interval_refusal is None
    assert np.isfinite(np.asarray(result.conf_int())).all()


def test_refusals_say_why_everywhere(rows):
    result = fit(rows, 0.4)
    found = result.conf_int()
    assert "radius=0.4 " in found.refusals[0]
    assert (found.estimate == result.params).all()
    for name in ("cov", "std_errors", "pvalues"):
        assert np.isnan(getattr(result, name)).all()
    with pytest.raises(InvalidInput, match="does not bind"):
        result.wald_test("x0")
    assert "No intervals: they require released values" in " ".join(result.summary().split())
    assert refusal(fit(rows, 4.0)._record) is None
    assert (
        fit(rows, 0.4, moments="none").interval_refusal
        == "intervals require released moments, got a fit with moments='none'"
    )


# Projection, and where the moments are taken.


def test_projection_moves_only_what_left_the_ball(rows):
    for seed in range(20):
        free = fit(rows, 0.4, seed, budget=dpci.PureDP(0.5))
        moved = fit(rows, 0.4, seed, budget=dpci.PureDP(0.5), mechanism=OutputPerturbation(project=True))
        norm = np.linalg.norm(free.params)
        np.testing.assert_allclose(moved.params, free.params * min(1.0, 0.4 / norm), rtol=1e-14)
        # Both take their moments at the same point.
        np.testing.assert_allclose(moved.hessian, free.hessian, rtol=1e-9)
        np.testing.assert_allclose(moved.gradient_cov, free.gradient_cov, rtol=1e-9, atol=1e-12)


def test_moments_are_calibrated_to_the_ball(rows):
    """Noise carries the released parameters far out; the sensitivity of the moments stays that of the ball."""
    result = fit(rows, 0.4, budget=dpci.PureDP(0.01))
    assert np.linalg.norm(result.params) > 2.0
    step = result.privacy["steps"][1]
    weight = step["scale"] / step["hessian_scale"]
    assert step["sensitivity"] == pytest.approx(2.0 * (2.0 * weight + (2.0 * 1.4) ** 2) / N, rel=1e-9)


# Variant cms11.


def test_cms11_raises_the_regularisation(rows):
    """Beside Algorithm 2 of Chaudhuri et al.: kappa = 2 / (n lambda), extra regularisation, half of epsilon."""
    epsilon, l2_strength = 0.02, 0.01
    with pytest.raises(dpci.RegularizationTooSmall):
        fit(rows, 1.0, budget=dpci.PureDP(epsilon), l2_strength=l2_strength, mechanism="objective", moments="none")
    mechanism = ObjectivePerturbation(variant="cms11")
    result = fit(rows, 1.0, budget=dpci.PureDP(epsilon), l2_strength=l2_strength, mechanism=mechanism, moments="none")
    epsilon = left_of(epsilon)
    assert result.l2_strength == pytest.approx(2.0 / (N * np.expm1(epsilon / 4.0)), rel=1e-12)
    # The diameter of the gradients, that of a cardioid for R = W = B, over half of epsilon.
    diameter = 3.0 * np.sqrt(3.0)
    assert result.privacy["steps"][0]["scale"] == pytest.approx(diameter / (epsilon / 2.0), rel=1e-9)
    roomy = fit(rows, 1.0, l2_strength=l2_strength, mechanism=mechanism, moments="none")
    left = left_of(2.0) - 2.0 * np.log1p(2.0 / (N * l2_strength))
    assert roomy.l2_strength == l2_strength
    assert roomy.privacy["steps"][0]["scale"] == pytest.approx(diameter / left, rel=1e-9)


def test_summaries_say_what_cms11_did(rows):
    mechanism = ObjectivePerturbation(variant="cms11")
    keywords = {"l2_strength": 0.01, "mechanism": mechanism, "moments": "none"}
    for budget in (dpci.PureDP(0.02), dpci.ZCDP(1e-4)):
        raised = fit(rows, 1.0, budget=budget, **keywords)
        assert raised.l2_strength > 0.01
        assert f"{raised.l2_strength:g}, raised by cms11\n" in raised.summary(full=True)
        assert "objective perturbation, variant cms11\n" in raised.summary(full=True)
    for budget in (dpci.PureDP(2.0), dpci.ZCDP(0.5)):
        roomy = fit(rows, 1.0, budget=budget, **keywords).summary(full=True)
        assert "variant cms11" in roomy
        assert "raised" not in roomy
    assert "cms11" not in fit(rows, 1.0).summary(full=True)


def test_summaries_name_the_ball_and_the_projection(rows):
    moved = fit(rows, 0.4, mechanism=OutputPerturbation(project=True)).summary(full=True)
    assert "output perturbation, params projected onto the ball\n" in moved
    assert "at lambda=0.05 over the ball ||params|| <= 0.4, parameter by parameter" in " ".join(moved.split())
    assert "moved into the ball" not in fit(rows, 0.4).summary(full=True)
    free = dpci.fit(rows[0], rows[1] > 0, budget=dpci.PureDP(2.0), l2_strength=0.05, seed=1)
    assert "ball" not in free.summary(full=True).replace("rows             ball of norm 1, without the intercept\n", "")


def test_paper_calibration_keeps_the_published_constant(rows):
    """4 (L + lambda W) / (n lambda), which is rls-out's (12 W + 8) / (n lambda) at lambda = 1 and B = R = 1."""
    keywords = {"calibration": "paper", "moments": "none", "l2_strength": 1.0}
    step = fit(rows, 0.7, **keywords).privacy["steps"][0]
    assert step["sensitivity"] == pytest.approx((12.0 * 0.7 + 8.0) / N, rel=1e-12)
    tight = fit(rows, 0.7, moments="none", l2_strength=1.0).privacy["steps"][0]
    assert tight["sensitivity"] < 4.0 * 1.7 / N


def test_plans_know_the_ball():
    """The moments of a plan are those of the worst parameters of the ball, not of all parameters."""
    keywords = {"budget": dpci.PureDP(2.0), "l2_strength": 0.05, "loss": "squared", "radius": 4.0, "intercept": False}
    plan = dpci.plan(**assembled(n_samples=N, n_features=DIM, **keywords))
    weight = plan.steps[1].scale / plan.steps[1].hessian_scale
    assert plan.steps[1].sensitivity == pytest.approx(2.0 * (2.0 * weight + (2.0 * 5.0) ** 2) / N, rel=1e-9)
    assert "radius=4" in plan.summary()


def test_plans_cap_the_length_at_the_diameter_of_the_ball():
    keywords = {"n_samples": 200, "n_features": 2, "budget": dpci.PureDP(0.5), "l2_strength": 0.05}
    free = dpci.plan(**keywords)
    assert free.privacy_length[1] > 2.0 > free.privacy_length[0]
    shortest, longest = dpci.plan(**assembled(**keywords, radius=1.0)).privacy_length
    assert 0.0 < shortest < longest == 2.0
    assert dpci.plan(**assembled(**keywords, radius=1e-3)).privacy_length == (2e-3, 2e-3)


@pytest.mark.parametrize("keywords", [{"moments": "none"}, {"moments": "none", "loss": "hinge", "mechanism": "output"}])
def test_plans_without_moments_promise_no_intervals(keywords):
    common = {"n_samples": 200, "n_features": 2, "budget": dpci.PureDP(20.0), "l2_strength": 0.05}
    summary = dpci.plan(**assembled(**common, **keywords)).summary()
    reason = "the hinge has no second derivative" if "loss" in keywords else "no moments are released"
    assert f"none, because {reason}" in summary
    for absent in ("interval length", "projection", "noise ratio"):
        assert absent not in summary
        assert absent in dpci.plan(**common).summary()


CMS11 = ObjectivePerturbation(variant="cms11")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"radius": None}, "requires radius, .* bounded only on a bounded domain, got radius=None"),
        ({"radius": 0.0}, "radius must be finite and > 0"),
        ({"radius": float("nan")}, "radius must be finite and > 0"),
        ({"radius": None, "loss": "soft_logistic", "mechanism": OutputPerturbation(project=True)}, "requires a radius"),
        ({"budget": dpci.ApproxDP(1.0, 1e-6), "mechanism": CMS11}, "requires PureDP or ZCDP"),
        ({"loss": "hinge", "moments": "joint"}, "intervals require a loss with a Hessian"),
        ({"loss": "hinge", "mechanism": "objective"}, 'use mechanism="output"'),
    ],
)
def test_what_does_not_go_together(rows, keywords, message):
    X, y = rows
    targets = y > 0 if keywords.get("loss") == "hinge" else np.abs(y)
    with pytest.raises(InvalidInput, match=message):
        fit((X, targets), **{"radius": 1.0, **keywords})


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"radius": 1.0}, "radius must be None"),
        ({"mechanism": CMS11}, "variant='standard'"),
        ({"loss": "squared"}, "slope is bounded for all parameters, got loss='squared'"),
        ({"loss": "squared", "radius": 1.0}, "slope is bounded for all parameters, got loss='squared'"),
        ({"loss": "hinge"}, "a loss without a kink .* got loss='hinge'"),
        ({"loss": "hinge", "mechanism": "output"}, "a loss without a kink .* got loss='hinge'"),
    ],
)
def test_utility_curves_follow_the_free_minimiser_of_the_standard_variant(rows, keywords, message):
    with pytest.raises(InvalidInput, match=message):
        dpci.utility.curve(rows[0], rows[1] > 0, **assembled(at=dpci.PureDP(1.0), l2_strength=0.1, **keywords))


# Extremes.


@pytest.mark.parametrize("radius", [1e-320, 1e-160, 1e160, 6.4e307, 8e307, 1.7e308])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("loss", ["squared", "soft_logistic"])
def test_radii_whose_squares_are_lost_are_refused(rows, radius, mechanism, loss):
    """At 8e307 an intermediate value overflowed and the noise was that of a radius of 0."""
    with pytest.raises(InvalidInput, match="radius must be at least 1e-60 and at most 1e60"):
        fit((rows[0], np.abs(rows[1])), radius, mechanism=mechanism, loss=loss, moments="none", l2_strength=1e-4)


def test_radii_at_the_edge_still_decide_about_intervals(rows):
    result = fit((rows[0], np.abs(rows[1])), 1e60, loss="soft_logistic", budget=dpci.ZCDP(0.1), l2_strength=0.05)
    assert result.interval_refusal is None


def test_bounds_whose_sensitivity_has_lost_digits_are_refused():
    x = np.full((10, 1), 1e-160)
    with pytest.raises(InvalidInput, match="row_norm must be at least 1e-60"):
        fit((x, np.zeros(10)), 1e10, loss=Squared(1e-300), rows=1e-160, l2_strength=1e-300, moments="none")


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: b.notion)
def test_confidence_bounds_on_the_exact_matrices(rows, budget, calibration):
    """Over 300 fits: neither bound is on the wrong side, though each may be with probability 1e-3 / 4."""
    X, y = rows
    exact = 2.0 * X.T @ X / N + 0.05 * np.eye(DIM)
    for seed in range(300):
        record = fit(rows, 4.0, seed, budget=budget, calibration=calibration)._record
        moved = record.params * min(1.0, 4.0 / np.linalg.norm(record.params))
        cov = 4.0 * (X.T * (X @ moved - y) ** 2) @ X / N - 0.05**2 * np.outer(moved, moved)
        least = least_curvature(record, record.hessian, FALSE_RATE / 4.0)
        assert 0.05 <= least <= np.linalg.eigvalsh(exact)[0]
        variance = greatest_variance(record, record.gradient_cov, least, FALSE_RATE / 4.0)
        inverse = np.linalg.inv(exact)
        assert variance >= np.linalg.eigvalsh(inverse @ cov @ inverse)[-1] / N
