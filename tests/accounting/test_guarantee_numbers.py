"""The numbers of a guarantee by hand: what a budget leaves, at both relations, near no epsilon at all."""

import dataclasses
import math

import numpy as np
import pytest

import dpci
from dpci.accounting.guarantee import Guarantee, guarantee_of
from dpci.base.codec import check_interval, from_fields
from dpci.errors import InvalidInput
from support.keywords import assembled


def plan(budget, **keywords):
    given = {"n_samples": 1000, "n_features": 3, "rows": 1.0, "l2_strength": 0.1}
    return dpci.plan(**assembled(budget=budget, **given | keywords))


def test_pure_guarantees_leave_nothing_beyond_their_epsilon():
    delta = plan(dpci.PureDP(1.0)).guarantee.delta([0.0, 0.5, 1.0, 1.5, 40.0])
    # (e^1 - e^epsilon)/(1 + e^1).
    expected = [(math.e - math.exp(epsilon)) / (1 + math.e) for epsilon in (0.0, 0.5)]
    np.testing.assert_allclose(delta, [*expected, 0.0, 0.0, 0.0], rtol=1e-12)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("moments", ["joint", "none"])
def test_the_whole_delta_is_spent_at_the_epsilon_of_the_budget(neighbors, mechanism, moments):
    budget = dpci.ApproxDP(1.0, 1e-6)
    guarantee = plan(budget, neighbors=neighbors, mechanism=mechanism, moments=moments).guarantee
    # Seals have a thousandth, of which (epsilon, delta) composition leaves some unspent.
    assert 0.99e-6 < guarantee.delta(1.0) <= 1e-6 * (1 + 1e-12)


def test_no_delta_is_above_one():
    guarantee = plan(dpci.ApproxDP(1.0, 1e-6), mechanism="objective").guarantee
    assert guarantee.delta(0.0) == 1.0
    assert np.all(guarantee.delta(np.linspace(0.0, 0.01, 50)) <= 1.0)


def test_the_delta_of_much_sensitivity_is_almost_one():
    # Two normal laws six standard deviations apart: 2 Phi(3) - 1.
    guarantee = Guarantee(dpci.ApproxDP(1.0, 1e-6), None, 0.0, 6.0)
    assert guarantee.delta(0.0) == pytest.approx(math.erf(3 / math.sqrt(2)), rel=1e-12)


def test_the_delta_of_a_seal_adds_up_to_one_at_most():
    guarantee = Guarantee(dpci.ApproxDP(1.0, 1e-6), None, 0.0, 1.0, (0.0, 0.3, 0.0))
    alone = math.erf(0.5 / math.sqrt(2))  # 2 Phi(1/2) - 1
    assert guarantee.delta(0.0) == pytest.approx(0.3 + alone, rel=1e-12)
    assert dataclasses.replace(guarantee, seal=(0.0, 0.9, 0.0)).delta(0.0) == 1.0


def test_a_fit_without_coefficients_has_no_guarantee():
    facts = {"rows": dpci.rows.Ball(1.0), "intercept_scale": None, "l2_strength": 0.1, "neighbors": "replace_one"}
    facts |= {
        "mechanism": "objective",
        "calibration": "tight",
        "persons": None,
        "slope_bound": 1.0,
        "curvature_bound": 0.25,
        "loss": {"one_signed": True},
    }
    with pytest.raises(InvalidInput, match=r"must hold the coefficients, got \[\]"):
        guarantee_of(dpci.ApproxDP(1.0, 1e-6), [], [], facts, divisor=100, n_params=2)


@dataclasses.dataclass
class Named:
    names: tuple[str, ...]


def test_names_are_a_list_and_no_text():
    assert from_fields(Named, "it", {"names": ["a", "bc"]}) == Named(("a", "bc"))
    with pytest.raises(InvalidInput, match="names must be a list, got names='abc'"):
        from_fields(Named, "it", {"names": "abc"})


def test_intervals_have_two_different_ends():
    assert check_interval("bounds", [1, 2]) == (1.0, 2.0)
    for ends in ([1, 1], [2, 1], [1], [1, 2, 3]):
        with pytest.raises(InvalidInput, match="bounds"):
            check_interval("bounds", ends)


def test_concentrated_guarantees_are_those_of_rho():
    guarantee = plan(dpci.ZCDP(0.1)).guarantee
    # inf exp((a-1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1) on a fine grid of orders, and a rho.
    orders = 1 + np.exp(np.linspace(-6, 8, 20_001))
    logs = (orders - 1) * (orders * 0.1 - 1.0) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    assert guarantee.delta(1.0) == pytest.approx(np.exp(logs.min()), rel=1e-6)
    np.testing.assert_allclose(guarantee.rdp([1.5, 20.0]), [0.15, 2.0])


@pytest.mark.parametrize("epsilon", [1.0, 50.0])
def test_the_shift_of_published_noise_is_that_of_its_scale(epsilon):
    # Kifer, Smith & Thakurta: LR/std_dev = epsilon/sqrt(8 log(2/delta) + 4 epsilon), great or small.
    found = plan(
        dpci.ApproxDP(epsilon, 1e-6), mechanism="objective", calibration="paper", neighbors="add_remove", moments="none"
    ).guarantee
    left = 0.999 * epsilon
    expected = left / math.sqrt(8 * math.log(2 / 0.999e-6) + 4 * left)
    assert found.shift == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("order", [1.0, 0.9, 0.0, math.nan, math.inf])
def test_orders_are_above_one(order):
    with pytest.raises(InvalidInput, match="order must be finite and > 1"):
        plan(dpci.ZCDP(0.1)).guarantee.rdp(order)


def test_the_seal_adds_its_own_divergence_to_that_of_the_noise():
    rows = np.tile([[0.6, 0.0], [-0.6, 0.1]], (500, 1))
    fit = dpci.fit(rows, rows[:, 0] > 0, budget=dpci.ApproxDP(1.0, 1e-6), l2_strength=0.1, seed=1)
    whole, order = fit.guarantee, 8.0
    assert whole.profile is not None
    bare = dataclasses.replace(whole, seal=(0.0, 0.0, 0.0))
    assert whole.seal[2] > 0.0
    assert whole.rdp(order) > bare.rdp(order) > 0.0
    assert float(whole.rdp(order)) == pytest.approx(float(bare.rdp(order)) + order * whole.seal[2], rel=1e-12)
