"""Budgets and their arithmetic against formulas, brute force and dp-accounting; every bound on the safe side."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution, privacy_loss_mechanism
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st

import dpci
from dpci import _core
from dpci.budgets import budget_from_parameters, check_budget
from support.keywords import assembled
from support.seal import left_of

CALIBRATIONS = ("tight", "paper")
DELTAS = (0.3, 1e-3, 1e-6, 1e-12)


def positive(least, greatest):
    """Floats spread evenly over the orders of magnitude."""
    return st.floats(math.log(least), math.log(greatest)).map(math.exp)


check = settings(deadline=None, max_examples=200, derandomize=True)


# The Gaussian profile.


def exact_gaussian_delta(epsilon, mu):
    """Balle & Wang 2018, Theorem 8, at 50 digits."""
    with mp.workdps(50):
        epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_gaussian_delta_of_dp_accounting(epsilon, mu):
    loss = privacy_loss_mechanism.GaussianPrivacyLoss(1.0 / mu)
    # Their difference of two normal tails cancels below 1e-16.
    assert _core.gaussian_delta(epsilon, mu) == pytest.approx(loss.get_delta_for_epsilon(epsilon), rel=1e-9, abs=1e-16)


def test_composed_gaussians_of_dp_accounting():
    """Squared ratios add: a discretised privacy loss distribution, composed by convolution, finds the same delta."""
    ratios = (0.6, 0.3, 0.2)
    interval = 1e-3
    composed = None
    for mu in ratios:
        step = privacy_loss_distribution.from_gaussian_mechanism(1.0 / mu, value_discretization_interval=interval)
        composed = step if composed is None else composed.compose(step)
    for epsilon in (0.5, 1.0, 2.0):
        theirs = composed.get_delta_for_epsilon(epsilon)
        ours = _core.gaussian_delta(epsilon, math.hypot(*ratios))
        assert ours <= theirs
        assert ours == pytest.approx(theirs, rel=1e-4)


# Pure DP to zCDP.


def renyi_divergence(p, q, order):
    with mp.workdps(50):
        total = mp.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))
        return mp.log(total) / (order - 1)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 1.0, 3.0, 10.0])
def test_tight_rho_bounds_randomised_response_and_is_approached(epsilon):
    rho = _core.pure_to_zcdp(epsilon, "tight")
    with mp.workdps(50):
        likely = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
        orders = [1 + mp.mpf(10) ** k for k in np.arange(-6, 3, 0.25)]
        used = [renyi_divergence([likely, 1 - likely], [1 - likely, likely], a) / (a * rho) for a in orders]
    assert max(used) <= 1
    # Near order 1 nothing is left: no smaller rho would do.
    assert max(used) > 1 - 1e-5
    assert rho <= _core.pure_to_zcdp(epsilon, "paper")
    assert _core.pure_to_zcdp(epsilon, "paper") == pytest.approx(epsilon**2 / 2, rel=1e-14)


@check
@given(
    epsilon=positive(0.01, 5.0),
    weights=st.lists(positive(0.1, 1.0), min_size=3, max_size=3),
    ratios=st.lists(st.floats(-1.0, 1.0) | st.sampled_from([-1.0, 1.0]), min_size=3, max_size=3),
    order=positive(1.001, 50.0),
)
def test_tight_rho_bounds_any_pair_of_laws(epsilon, weights, ratios, order):
    """Likelihood ratios within exp(+-epsilon) by construction: half of it each way, before normalising."""
    p = np.array(weights) * np.exp(epsilon / 2 * np.array(ratios))
    q = np.array(weights)
    p, q = p / p.sum(), q / q.sum()
    divergence = renyi_divergence([mp.mpf(x) for x in p], [mp.mpf(x) for x in q], order)
    assert divergence <= order * _core.pure_to_zcdp(epsilon, "tight") + 1e-12


# zCDP to approximate DP.


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", [1e-3, 0.1, 1.0, 8.0])
def test_paper_epsilon_is_that_of_bun_and_steinke(rho, delta):
    epsilon = _core.zcdp_to_approx_epsilon(rho, delta, "paper")
    with mp.workdps(50):
        exact = mp.mpf(rho) + 2 * mp.sqrt(-mp.mpf(rho) * mp.log(delta))
        assert exact <= epsilon <= exact * (1 + mp.mpf("1e-14"))
    assert _core.zcdp_to_approx_epsilon(rho, delta, "tight") <= epsilon


@pytest.mark.parametrize("rho", [0.01, 0.3, 2.0])
def test_zcdp_conversion_of_dp_accounting(rho):
    """Their accountant has the same bound on a grid of orders, so it is never below and, on a fine grid, close."""
    orders = 1.0 + np.geomspace(1e-3, 1e3, 4000)
    divergences = orders * rho
    for delta in (1e-3, 1e-6):
        theirs = rdp_privacy_accountant.compute_epsilon(orders, divergences, delta)[0]
        ours = _core.zcdp_to_approx_epsilon(rho, delta, "tight")
        assert ours <= theirs * (1 + 1e-9)
        assert ours == pytest.approx(theirs, rel=1e-4)
    for epsilon in (4 * rho, 10 * rho):
        theirs = rdp_privacy_accountant.compute_delta(orders, divergences, epsilon)[0]
        ours = _core.zcdp_to_approx_delta(rho, epsilon)
        assert ours <= theirs * (1 + 1e-9)
        assert ours == pytest.approx(theirs, rel=1e-4)


@check
@given(mu=positive(1e-3, 5.0), epsilon=st.floats(0.0, 20.0))
def test_zcdp_never_promises_less_than_a_gaussian_has(mu, epsilon):
    assert _core.gaussian_delta(epsilon, mu) <= _core.zcdp_to_approx_delta(mu**2 / 2, epsilon) * (1 + 1e-12)


# How a fit spends its budget.

SPLITS = [None, (0.5, 0.25, 0.25), (0.7, 0.2, 0.1), (1 / 3, 1 / 3, 1 / 3)]


def plan(budget, **keywords):
    return dpci.plan(**assembled(n_samples=50_000, n_features=5, budget=budget, l2_strength=0.01, **keywords))


def total_cost(steps):
    return float(sum(Fraction(step.cost) for step in steps))


@pytest.mark.parametrize("moments", ["joint", "separate", "none"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("budget", [dpci.PureDP(0.9), dpci.ZCDP(0.3)], ids=str)
def test_costs_sum_to_the_budget(budget, calibration, mechanism, moments):
    for split in SPLITS if moments != "none" else [None]:
        planned = plan(budget, mechanism=mechanism, moments=moments, split=split, calibration=calibration)
        ((name, whole),) = budget.parameters().items()
        assert total_cost(planned.steps) == pytest.approx(left_of(whole), rel=1e-15)
        assert total_cost(planned.steps) <= left_of(whole) * (1 + 2e-16)
        # What the seals spend is the rest.
        spent = sum(Fraction(seal.cost[name]) for seal in planned.seals) + Fraction(total_cost(planned.steps))
        assert float(spent) == pytest.approx(whole, rel=1e-15)
        assert spent <= Fraction(whole)


@pytest.mark.parametrize("moments", ["joint", "separate", "none"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (5.0, 0.01)])
def test_squared_ratios_sum_to_the_gaussian_budget_that_the_seal_leaves(epsilon, delta, moments):
    budget = dpci.ApproxDP(epsilon, delta)
    epsilon, delta = left_of(epsilon), left_of(delta)
    mu = _core.gaussian_mu(epsilon, delta)
    for split in SPLITS if moments != "none" else [None]:
        steps = plan(budget, mechanism="output", moments=moments, split=split).steps
        assert total_cost(steps) == pytest.approx(mu**2, rel=1e-15)
        assert _core.gaussian_delta(epsilon, math.sqrt(total_cost(steps))) <= delta
        # The noise itself, not only the cost that the record names.
        ratios = [step.sensitivity / step.scale for step in steps]
        assert math.hypot(*ratios) == pytest.approx(mu, rel=1e-13)
        assert exact_gaussian_delta(epsilon, math.hypot(*ratios)) <= delta
    shares = {step.step: step.cost / mu**2 for step in steps}
    if moments == "separate":
        assert shares == pytest.approx(dict.fromkeys(("coefficients", "hessian", "gradient_cov"), 1 / 3))


def test_noise_of_each_step_is_what_its_cost_buys():
    for step in plan(dpci.ZCDP(0.3), mechanism="output", moments="separate").steps:
        assert (step.sensitivity / step.scale) ** 2 / 2 == pytest.approx(step.cost, rel=1e-13)
        assert (step.sensitivity / step.scale) ** 2 / 2 <= step.cost
    for step in plan(dpci.PureDP(0.9), mechanism="output", moments="separate").steps:
        assert step.sensitivity / step.scale == pytest.approx(step.cost, rel=1e-13)
        assert step.sensitivity / step.scale <= step.cost


def test_paper_never_beats_tight_under_approximate_dp():
    budget = dpci.ApproxDP(1.0, 1e-6)
    tight, paper = (plan(budget, mechanism="output", calibration=c, moments="none").steps[0] for c in CALIBRATIONS)
    assert tight.scale < paper.scale


# The budgets of the public interface.

BUDGETS = [dpci.PureDP(0.5), dpci.ZCDP(0.125), dpci.ApproxDP(1.0, 1e-6)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_budgets_are_values(budget):
    rebuilt = budget_from_parameters(budget.notion, budget.parameters())
    for twin in (rebuilt, copy.deepcopy(budget), pickle.loads(pickle.dumps(budget))):
        assert twin == budget
        assert hash(twin) == hash(budget)
    assert len({*BUDGETS, rebuilt}) == len(BUDGETS)
    assert check_budget(budget) is budget
    assert all(f"{name}={value:g}" in str(budget) for name, value in budget.parameters().items())
    with pytest.raises(FrozenInstanceError):
        setattr(budget, next(iter(budget.parameters())), 2.0)


def test_numbers_of_any_kind_become_floats():
    assert type(dpci.PureDP(np.float32(1)).epsilon) is float
    assert dpci.ApproxDP(1, Fraction(1, 8)) == dpci.ApproxDP(1.0, 0.125)
    assert hash(dpci.ZCDP(1)) == hash(dpci.ZCDP(1.0))


@pytest.mark.parametrize(
    "bad", [0.0, -1.0, math.inf, -math.inf, math.nan, True, "1", None, 1j, [1.0], 10**400, Decimal(1)]
)
@pytest.mark.parametrize("make", [dpci.PureDP, dpci.ZCDP, lambda e: dpci.ApproxDP(e, 1e-6)])
def test_bad_losses_are_refused(make, bad):
    with pytest.raises(dpci.InvalidInput, match=r"(epsilon|rho) must be .*, got (epsilon|rho)="):
        make(bad)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 1.5, math.inf, math.nan, True, "0.1", None])
@pytest.mark.parametrize("use", [lambda d: dpci.ApproxDP(1.0, d), dpci.PureDP(1.0).to_approx, dpci.ZCDP(1.0).to_approx])
def test_bad_deltas_are_refused(use, bad):
    with pytest.raises(dpci.InvalidInput, match=r"delta must be .*, got delta="):
        use(bad)


@pytest.mark.parametrize(
    "use",
    [
        dpci.PureDP(1.0).to_zcdp,
        dpci.ZCDP(1.0).pure_within,
        dpci.ApproxDP(1.0, 1e-6).zcdp_within,
        lambda calibration: dpci.ZCDP(1.0).to_approx(1e-6, calibration),
    ],
)
def test_unknown_calibrations_are_refused(use):
    for bad in ("loose", None, 1):
        with pytest.raises(dpci.InvalidInput, match=r"calibration must be one of 'tight', 'paper', got"):
            use(bad)


def test_other_objects_are_no_budgets():
    for bad in (1.0, "PureDP", None, {"epsilon": 1.0}, dpci.PureDP):
        with pytest.raises(dpci.InvalidInput, match="budget must be"):
            check_budget(bad)
    with pytest.raises(dpci.InvalidInput, match="notion must be"):
        budget_from_parameters("renyi", {"epsilon": 1.0})


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_conversions_between_budgets(calibration):
    pure, zcdp, approx = dpci.PureDP(0.5), dpci.ZCDP(0.125), dpci.ApproxDP(1.0, 1e-6)
    assert pure.to_zcdp(calibration) == dpci.ZCDP(_core.pure_to_zcdp(0.5, calibration))
    assert zcdp.pure_within(calibration).to_zcdp(calibration).rho <= zcdp.rho
    assert zcdp.to_approx(1e-6, calibration).delta == 1e-6
    within = approx.zcdp_within(calibration)
    assert within.to_approx(approx.delta, calibration).epsilon <= approx.epsilon * (1 + 1e-14)
    assert within.to_approx(approx.delta, calibration).epsilon == pytest.approx(approx.epsilon, rel=1e-9)
    assert pure.to_approx(1e-9) == dpci.ApproxDP(0.5, 1e-9)


def test_conversions_of_extreme_budgets_are_budgets_or_clear_errors():
    """No conversion may turn a legal budget into a budget that promises too much, or into a raw overflow."""
    for size in (1e-300, 1e-12, 1e12, 1e300):
        for convert in (
            dpci.PureDP(size).to_zcdp,
            dpci.ZCDP(size).pure_within,
            lambda size=size: dpci.ZCDP(size).to_approx(1e-6),
            dpci.ApproxDP(size, 1e-6).zcdp_within,
        ):
            try:
                parameters = convert().parameters()
            except dpci.InvalidInput:
                continue
            assert all(math.isfinite(value) and value > 0 for value in parameters.values())
