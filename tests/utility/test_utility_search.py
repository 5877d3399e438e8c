"""Budgets for a utility against refits: far from the measuring point, with several draws, and what is not reached."""

import numpy as np
import pytest
from scipy.optimize import brentq

import dpci
from dpci.errors import InvalidInput
from dpci.utility.search import least_root, refined_root
from support.utility import APPROX, KIFER, curve, make_adult_rows, refit, refit_utility

ADULT_ROWS = make_adult_rows()
LOGISTIC, HUBER = dpci.losses.Logistic(), dpci.losses.HuberHinge(h=0.1)


@pytest.mark.parametrize(
    ("loss", "factor"), [*((LOGISTIC, factor) for factor in (0.1, 0.3, 3.0, 10.0)), (HUBER, 0.5), (HUBER, 3.0)]
)
def test_answers_are_budgets_of_refits(loss, factor):
    # Two Newton steps to budgets far below the measuring one do not converge: they cross targets where refits do not.
    at = dpci.ApproxDP(0.3, 1e-6)
    found = curve(ADULT_ROWS, at=at, l2_strength=0.05, loss=loss, metric="smoothed_accuracy", seed=0)
    target = refit_utility(found, factor * 0.3, ADULT_ROWS)
    got = found.epsilon_for(target)
    assert got < 1.05 * factor * 0.3
    # A refit has the target within five per cent of it.
    ends = [refit_utility(found, got * side, ADULT_ROWS) - target for side in (0.95, 1.05)]
    assert ends[0] * ends[1] < 0.0


def test_a_spurious_crossing_is_passed_over():
    found = curve(ADULT_ROWS, at=dpci.ApproxDP(0.3, 1e-6), l2_strength=0.05, metric="smoothed_accuracy", seed=0)
    target = refit_utility(found, 0.09, ADULT_ROWS)
    # The prediction crosses the target at a budget where the refit is elsewhere.
    values = np.geomspace(0.004, 0.007, 16)
    assert np.ptp(np.sign(found.predict_utility(values) - target)) == 2
    missed = [abs(refit_utility(found, value, ADULT_ROWS) - target) for value in values]
    assert min(missed) > abs(found.utility - target)
    assert found.epsilon_for(target) == pytest.approx(0.09, rel=1e-3)
    with pytest.raises(InvalidInput, match=r"target must be a utility between .* reach, got target="):
        found.epsilon_for(target, within=(0.004, 0.007))


def test_draws_are_averaged():
    found = curve(at=APPROX, n_draws=3)
    target = np.mean([of_draw(found, 0.4, draw) for draw in range(3)])
    assert found.epsilon_for(target) == pytest.approx(0.4, rel=1e-3)


def of_draw(found, value, draw):
    return float(found.evaluator.values(refit(found, value, draw=draw)[np.newaxis])[0])


def test_parameters_that_are_no_minimiser():
    # Their gradient is taken off at every budget: what many Newton steps of such a curve converge to.
    odd = curve(at=APPROX).params[0] + 0.1
    exact = curve(at=APPROX, params=odd, n_steps=12)
    target = exact.predict_utility(0.5)
    by_steps = brentq(lambda value: exact.predict_utility(value) - target, 0.4, 0.6)
    assert curve(at=APPROX, params=odd).epsilon_for(target, within=(0.4, 0.6)) == pytest.approx(by_steps, rel=1e-3)
    exact = curve(**KIFER, params=odd, n_steps=12)
    target = exact.predict_utility(0.5)
    assert curve(**KIFER, params=odd).epsilon_for(target, within=(0.4, 0.6)) == pytest.approx(0.5, rel=1e-3)


def test_the_metric_may_be_constant():
    found = curve(at=APPROX, metric=dpci.utility.Metric(lambda _params: 1.0, lambda params: 0.0 * params))
    for method in ("newton", "first_order"):
        assert found.epsilon_for(1.0, method, within=(0.2, 2.0)) == 0.2
        with pytest.raises(InvalidInput, match="between 1 and 1"):
            found.epsilon_for(2.0, method)


def test_narrow_ranges():
    found = curve(at=APPROX)
    for value in (0.51, 1.95):
        assert found.epsilon_for(refit_utility(found, value), within=(0.5, 2.0)) == pytest.approx(value, rel=1e-3)
    assert found.epsilon_for(found.utility, within=(0.9999, 1.0001)) == pytest.approx(1.0, rel=2e-4)
    with pytest.raises(InvalidInput, match="target must be"):
        found.epsilon_for(refit_utility(found, 0.4), within=(0.5, 2.0))


def test_refinement_finds_a_root_near_or_none():
    near = 0.3
    root = refined_root(lambda x: np.exp(x) - np.exp(near), near - 0.1, -5.0, 5.0)
    assert root == pytest.approx(near, abs=1e-4)
    for gap in (lambda _x: 1.0, lambda x: x - 3.0, lambda x: 1.0 + x**2, lambda _x: np.nan):
        assert refined_root(gap, 0.1, -5.0, 5.0) is None
    # Beyond an end of the range.
    assert refined_root(lambda x: x - 0.3, 0.1, -5.0, 0.2) is None
    assert refined_root(lambda x: x - 0.3, 0.1, 0.1, 0.1 + 1e-9) is None


def test_the_least_confirmed_root_is_returned():
    # The prediction has roots at 1 and 4, the curve only that at 4.
    asked = []

    def compute(value):
        asked.append(value)
        return value - 4.0

    root, gaps = least_root(lambda x: (x - 1.0) * (x - 4.0), compute, np.geomspace(0.1, 9.0, 32))
    assert root == pytest.approx(4.0, rel=1e-4)
    assert gaps.shape == (32,)
    assert min(asked) == pytest.approx(1.0, rel=0.05)  # the first was tried
    # A prediction that ends just short of the target.
    root, _ = least_root(lambda x: np.abs(x - 4.0) + 0.1, lambda value: value - 4.2, np.geomspace(0.1, 9.0, 32))
    assert root == pytest.approx(4.2, rel=1e-4)
    # One that crosses far from the curve, or not at all: the curve itself is bracketed, if it has a root.
    values = np.geomspace(0.1, 9.0, 32)
    for predict in (lambda x: x - 1.0, lambda x: x + 1.0):
        root, _ = least_root(predict, lambda value: value - 4.0, values)
        assert root == pytest.approx(4.0, rel=1e-3)
        root, gaps = least_root(predict, lambda value: value + 4.0, values)
        assert root is None
        assert gaps.min() == pytest.approx(4.1)


def test_fits_find_what_overshooting_predictions_miss():
    """Measured at much noise, two steps of Kifer et al.'s mechanism rise with epsilon where the loss falls."""
    rng = np.random.default_rng(2)
    n = 10_000
    X = rng.normal(size=(n, 10))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, np.newaxis]
    y = np.where(X @ (3.0 * rng.normal(size=10)) + rng.logistic(size=n) > 0.0, 1, -1)
    mechanism = {"calibration": "paper", "neighbors": "add_remove", "classes": (-1, 1)}
    noisy, there = (
        curve((X, y), at=dpci.ApproxDP(epsilon, 1e-6), l2_strength=1e-6, seed=0, **mechanism) for epsilon in (0.1, 1.0)
    )
    assert noisy.predict_utility(1.0) > there.utility + 0.05  # or the test shows nothing
    assert noisy.epsilon_for(there.utility) == pytest.approx(1.0, rel=0.01)
    with pytest.raises(dpci.InvalidInput, match=r"target must be a utility between 0\.31\d+ and"):
        noisy.epsilon_for(0.1)
    with pytest.raises(dpci.InvalidInput, match="eps must hold at least one budget to plot"):
        noisy.plot(eps=[])
