"""The guarantee of a result is that of the mechanism, its numbers by hand; groups, and what no release spends."""

import dataclasses
import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

import dpci
from dpci.accounting.costs import step_names
from dpci.accounting.guarantee import Guarantee, guarantee_of
from dpci.base.codec import check_interval, from_fields, plain_fields
from dpci.budgets import for_changes
from dpci.errors import InvalidInput
from dpci.released.whole import Whole, cost_of_strata
from support.keywords import assembled
from support.saved import rewritten

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


def plan(budget, **keywords):
    given = {"n_samples": 1000, "n_features": 3, "rows": 1.0, "l2_strength": 0.1}
    return dpci.plan(**assembled(budget=budget, **given | keywords))


def test_pure_guarantees_leave_nothing_beyond_their_epsilon():
    delta = plan(dpci.PureDP(1.0)).guarantee.delta([0.0, 0.5, 1.0, 1.5, 40.0])
    # (e^1 - e^epsilon)/(1 + e^1).
    expected = [(math.e - math.exp(epsilon)) / (1 + math.e) for epsilon in (0.0, 0.5)]
    np.testing.assert_allclose(delta, [*expected, 0.0, 0.0, 0.0], rtol=1e-12)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("mechanism", "rows"), [("objective", 0.5), ("objective", 2.0), ("output", 1.0)])
@pytest.mark.parametrize("moments", ["joint", "none"])
def test_the_whole_delta_is_spent_at_the_epsilon_of_the_budget(neighbors, mechanism, rows, moments):
    budget, choices = dpci.ApproxDP(1.0, 1e-6), {"rows": rows, "intercept": False, "l2_strength": 0.5}
    guarantee = plan(budget, neighbors=neighbors, mechanism=mechanism, moments=moments, **choices).guarantee
    # Seals have a thousandth, of which (epsilon, delta) composition leaves some unspent.
    assert 0.99e-6 < guarantee.delta(1.0) <= 1e-6 * (1 + 1e-12)


def test_steps_of_one_kind_alone_are_numbered():
    assert step_names(plan(BUDGET, moments="joint").steps) == ["coefficients", "moments"]
    newton = dpci.plan(n_samples=1000, n_features=1, rows=1.0, budget=BUDGET)
    assert {"newton gradient 1", "newton gradient 2", "moments"} <= set(step_names(newton.steps))


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


COUNTS = (1, 2, 3, 10)


@pytest.mark.parametrize("count", COUNTS)
def test_epsilons_and_mus_add_up_and_rhos_grow_with_the_square(count):
    # A chain of Laplace or Gaussian laws, each one sensitivity further: its ends are neighbours at this budget.
    assert for_changes(dpci.PureDP(0.1), count) == dpci.PureDP(float(Fraction("0.1") * count))
    assert for_changes(dpci.ZCDP(0.1), count) == dpci.ZCDP(float(Fraction("0.1") * count**2))
    assert for_changes(dpci.GDP(0.3), count) == dpci.GDP(float(Fraction("0.3") * count))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_delta_follows_the_chain_of_inequalities(count, epsilon):
    found, lost = for_changes(dpci.ApproxDP(epsilon, 1e-20), count), 0.0
    for _ in range(count):  # P(S) <= e^epsilon Q(S) + delta, and Q(S) once more
        lost = math.exp(epsilon) * lost + 1e-20
    assert found.epsilon == pytest.approx(count * epsilon, rel=1e-15)
    assert lost <= found.delta * (1 + 1e-15)
    assert found.delta == pytest.approx(lost, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(5.0, 0.01), (800.0, 1e-306), (705.0, 1e-290)])
def test_what_is_no_guarantee_is_none(epsilon, delta):
    assert for_changes(dpci.ApproxDP(epsilon, delta), 2) is None
    with pytest.raises(dpci.errors.InvalidInput, match="must be below 1 for strata"):
        cost_of_strata(dpci.ApproxDP(epsilon, delta), "replace_one")


def test_the_gaussian_mechanism_is_within_the_group_guarantee():
    # Exact hockey-stick divergence of normal laws `count` sensitivities apart, against that of the group's budget.
    mu = 0.3
    delta = norm.cdf(mu / 2 - 1.0 / mu) - math.e * norm.cdf(-mu / 2 - 1.0 / mu)
    for count in (2, 3):
        found, far = for_changes(dpci.ApproxDP(1.0, delta), count), count * mu
        exact = norm.cdf(far / 2 - found.epsilon / far) - np.exp(found.epsilon) * norm.cdf(
            -far / 2 - found.epsilon / far
        )
        assert exact <= found.delta


@pytest.mark.parametrize(
    ("kind", "neighbors", "cost"),
    [
        ("strata", "add_remove", 1.0),
        ("strata", "replace_one", 2.0),
        ("counted_strata", "replace_one", 2.0),
        ("groups", "replace_one", 3.0),
        ("disjoint_groups", "replace_one", 1.0),
        ("tuning", "add_remove", 1.0),
    ],
)
def test_what_the_parts_of_a_release_cost_together(kind, neighbors, cost):
    besides = {"epsilon": 1e-300} if kind in {"counted_strata", "tuning"} else None
    whole = Whole(kind, 3, neighbors, dpci.PureDP(6.0), besides)
    assert whole.cost_of(dpci.PureDP(1.0)) == dpci.PureDP(cost)


@pytest.mark.parametrize(
    ("kind", "neighbors", "cost"), [("counted_strata", "replace_one", 3.0), ("tuning", "add_remove", 1.5)]
)
def test_what_counts_or_a_choice_spent_is_part_of_the_cost(kind, neighbors, cost):
    whole = Whole(kind, 3, neighbors, dpci.PureDP(6.0), {"epsilon": 0.5})
    assert whole.cost_of(dpci.PureDP(1.0)) == dpci.PureDP(cost)
    assert from_fields(Whole, "whole", plain_fields(whole)) == whole


N = 2_000
RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, (N, 3))
REAL = np.clip(X[:, 0] + 0.1 * RNG.normal(size=N), -1, 1)
BUDGETS = {
    "pure": dpci.PureDP(1.0),
    "zcdp": dpci.ZCDP(0.3),
    "approx": dpci.ApproxDP(1.0, 1e-6),
    "gdp": dpci.GDP(0.8),
    # Where e^epsilon is beyond floats.
    "great": dpci.GDP(1e5),
}
RELATIONS = {"replace_one": {}, "add_remove": {"neighbors": dpci.AddRemove(N)}}


def matrix(budget, relation, **keywords):
    return dpci.regression.release(X, REAL, rows=1.0, budget=budget, **RELATIONS[relation], **keywords)


def made(kind, notion, relation):
    budget, facts = BUDGETS[notion], RELATIONS[relation]
    if kind == "matrix":
        return matrix(budget, relation)
    if kind == "multinomial":
        labels = np.resize(["a", "b", "c"], N)
        return dpci.multinomial.fit(X, labels, classes=["a", "b", "c"], l2_strength=0.2, budget=budget, **facts)
    keywords = {"l2_strength": 0.2, "classes": (False, True), "mechanism": kind, "budget": budget}
    return dpci.fit(X, REAL > 0, **keywords, **facts)


def kinds(notion):
    # Gaussian DP is a notion of matrices alone.
    return ("matrix",) if notion in {"gdp", "great"} else ("matrix", "objective", "output", "multinomial")


CASES = [(kind, notion, relation) for notion in BUDGETS for kind in kinds(notion) for relation in RELATIONS]


def budget_of(values):
    return values["fit"]["budget"] if "fit" in values else values["budget"]


def numbers_of(budget):
    return [name for name in budget if name != "notion"]


@pytest.mark.parametrize(("kind", "notion", "relation"), CASES)
def test_a_smaller_budget_is_refused(kind, notion, relation):
    result = made(kind, notion, relation)
    text = result.to_json()
    assert type(result).from_json(text).to_json() == text
    for name in numbers_of(budget_of(json.loads(text))):
        values = json.loads(text)
        # The seals of Gaussian DP leave a few millionths of the budget unspent.
        budget_of(values)[name] *= 1.0 - (1e-3 if name == "mu" else 1e-6)
        with pytest.raises(InvalidInput, match="the steps and seals must spend at most the budget"):
            type(result).from_json(rewritten(values))


def test_the_parts_of_a_gaussian_budget_make_up_the_whole():
    """A seal is epsilon-DP, and so as good as a normal shift with mu = 2 quantile(e^epsilon / (1 + e^epsilon))."""
    for text in ("gdp", "approx"):
        values = json.loads(matrix(BUDGETS[text], "replace_one").to_json())
        (step,), (seal,) = values["steps"], values["seals"]
        assert step["cost"] == pytest.approx((step["sensitivity"] / step["scale"]) ** 2, rel=1e-12)
        if text == "gdp":
            of_seal = 2.0 * norm.ppf(1.0 / (1.0 + math.exp(-seal["cost"]["epsilon"])))
            assert step["cost"] + of_seal**2 == pytest.approx(0.8**2, rel=1e-5)


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("part", ["cost", "scale", "sensitivity"])
def test_a_step_that_costs_something_else_than_its_noise_is_refused(notion, part):
    values = json.loads(matrix(BUDGETS[notion], "replace_one").to_json())
    values["steps"][0][part] *= 1.01
    with pytest.raises(InvalidInput, match="cost of the step 'moment_matrix' must be that of its noise"):
        dpci.regression.MomentMatrix.from_json(rewritten(values))


@pytest.mark.parametrize("notion", ["pure", "approx", "gdp"])
def test_a_seal_in_another_unit_is_refused(notion):
    values = json.loads(matrix(BUDGETS[notion], "replace_one").to_json())
    values["seals"][0]["cost"] = {"rho": 1e-9}
    with pytest.raises(InvalidInput, match="the cost of a seal must be in epsilon"):
        dpci.regression.MomentMatrix.from_json(rewritten(values))


@pytest.mark.parametrize("refused", [None, ["law"], {"a": 1}, math.nan, 3])
@pytest.mark.parametrize("name", ["source", "unit"])
def test_a_source_or_unit_of_a_schema_is_text(name, refused):
    column = dpci.schema.NumericColumn(name="age", lower=0, upper=1, **{name: refused})
    target = dpci.schema.NumericTarget(column="wage", lower=0, upper=1)
    with pytest.raises(InvalidInput, match=f"the {name} of a column must be text"):
        dpci.schema.Schema(columns=(column,), target=target)
