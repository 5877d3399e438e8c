"""The guarantee of a result is that of the mechanism: the plan's, whatever parameters came out; extreme budgets."""

import math

import mpmath
import numpy as np
import pytest

import dpci
from support.keywords import assembled

BUDGET = dpci.ApproxDP(1.0, 1e-6)
CURVES = (np.array([0.2, 1.0, 3.0]), np.array([1.5, 2.0, 8.0, 32.0]))


def without_curvature():
    """Rows so few and short that the parameters of a Huber hinge stay where no margin reaches its parabola."""
    X = np.full((400, 1), 0.05)
    return X, np.tile([1, -1], 200)


@pytest.mark.parametrize(
    "keywords",
    [
        {"mechanism": "objective"},
        {"mechanism": "output"},
        {"mechanism": "output", "calibration": "paper"},
        {"mechanism": "objective", "calibration": "paper", "neighbors": dpci.AddRemove(400)},
        {"mechanism": "objective", "split": (0.02, 0.96, 0.02)},
    ],
    ids=str,
)
def test_a_needless_release_counts_in_the_guarantee(keywords):
    """No margin reaches the parabola, so nothing is released for the Hessian; elsewhere it would have been."""
    X, y = without_curvature()
    model = {
        "budget": BUDGET,
        "l2_strength": 5.0,
        "loss": dpci.losses.HuberHinge(0.5),
        "moments": "separate",
        "intercept": False,
        **keywords,
    }
    plan = dpci.plan(**assembled(n_samples=400, n_features=1, **model))
    result = dpci.fit(X, y, classes=(-1, 1), seed=1, **assembled(**model))
    hessian = {step["step"]: step for step in result.privacy["steps"]}["hessian"]
    assert hessian["noise"] == "none"  # or the test shows nothing
    for fit in (result, dpci.PrivateFit.from_json(result.to_json())):
        np.testing.assert_allclose(fit.guarantee.delta(CURVES[0]), plan.guarantee.delta(CURVES[0]), rtol=1e-9)
        np.testing.assert_allclose(fit.guarantee.rdp(CURVES[1]), plan.guarantee.rdp(CURVES[1]), rtol=1e-12)
        assert fit.guarantee.delta(BUDGET.epsilon) <= BUDGET.delta


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.01, 0.5, 3.0, 40.0, 800.0])
def test_pure_renyi_curve(epsilon):
    """Curve of randomised response, to 50 digits, from above; never more than epsilon."""
    guarantee = dpci.plan(
        n_samples=10, n_features=1, budget=dpci.PureDP(epsilon), l2_strength=1e9, mechanism="output"
    ).guarantee
    with mpmath.workdps(50):
        for order in (1.0 + 1e-8, 1.0 + 1e-6, 1.5, 2.0, 30.0, 1e4):
            whole, k = mpmath.mpf(epsilon), mpmath.mpf(order) - 1
            exact = mpmath.log(mpmath.cosh((k + 0.5) * whole) / mpmath.cosh(whole / 2)) / k
            got = float(guarantee.rdp(order))
            assert got >= min(epsilon, float(exact)) * (1.0 - 1e-15)
            assert got <= float(exact) * (1.0 + 1e-12)
            assert got <= epsilon


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_budgets_beyond_double_precision_are_named(mechanism):
    model = {"n_samples": 10, "n_features": 1, "l2_strength": 1e9, "mechanism": mechanism}
    with pytest.raises(dpci.InvalidInput, match="epsilon must be at least 1e-60 and at most 1e15"):
        dpci.plan(budget=dpci.ApproxDP(1e308, 1e-6), **model)
    small = dpci.ApproxDP(1e-6, 1e-300)
    assert dpci.plan(budget=small, **model).guarantee.delta(small.epsilon) <= small.delta
    # The noise of the seal is drawn in integers, and at most 2^40 of its steps wide.
    for epsilon in (1e-9, 1e-50):
        with pytest.raises(dpci.InvalidInput, match="the budget of a seal must be large enough"):
            dpci.plan(budget=dpci.ApproxDP(epsilon, 1e-300), **{**model, "mechanism": "output"})


def test_arguments_of_the_curves():
    guarantee = dpci.plan(n_samples=1000, n_features=1, budget=BUDGET, l2_strength=0.1).guarantee
    assert guarantee.delta([[0.5, 1.0]]).shape == (1, 2)
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(dpci.InvalidInput, match="epsilon must be finite and >= 0"):
            guarantee.delta(bad)
    for bad in (1.0, math.nan, math.inf):
        with pytest.raises(dpci.InvalidInput, match="order must be finite and > 1"):
            guarantee.rdp([2.0, bad])
