"""Plans of fits that release bounds first, and of fits without a ridge: what the fits then do."""

import json
from dataclasses import replace

import numpy as np
import pytest

import dpci
from dpci.schema import CategoricalColumn, ClassTarget, PartialSchema, UnboundedColumn, UnboundedTarget, UnlistedColumn

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")

N = 4000
RNG = np.random.default_rng(9)
TABLE = {
    "age": RNG.uniform(18, 90, N),
    "income": RNG.lognormal(10, 1, N),
    "ward": RNG.choice(["A", "B"], N),
    "ill": RNG.choice(["no", "yes"], N),
}
AGE = UnboundedColumn(name="age", lower=0, upper=150)
WARD = CategoricalColumn(name="ward", categories=("A", "B"), reference="A")
ILL = ClassTarget(column="ill", negative=("no",), positive=("yes",))
PARTIAL = PartialSchema(columns=(AGE, UnboundedColumn(name="income"), WARD), target=ILL)
BUDGETS = {"pure": dpci.PureDP(2.0), "zcdp": dpci.ZCDP(0.5), "approx": dpci.ApproxDP(2.0, 1e-6)}


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("share", [None, 0.2])
def test_a_plan_is_of_what_the_fit_does(notion, share):
    keywords = {"schema": replace(PARTIAL, bounds_share=share), "budget": BUDGETS[notion]}
    if notion == "pure":
        keywords["l2_strength"] = 0.01
    plan, fit = dpci.plan(n_samples=N, **keywords), dpci.fit(TABLE, seed=1, **keywords)
    released = fit.privacy["released_bounds"]
    bounds = plan.bounds.to_dict()
    assert bounds["budget"] == released["budget"]
    assert bounds["steps"] == released["steps"]
    assert (bounds["columns"], bounds["left_out"]) == (["age", "income"], released["share"])
    assert plan.bounds.is_recommended == (share is None)
    costs = [step["cost"] for step in fit.privacy["steps"]]
    assert [step.cost for step in plan.steps] == pytest.approx(costs, rel=1e-9)
    assert [step.step for step in plan.steps] == [step["step"] for step in fit.privacy["steps"]]


def test_the_recommended_share_and_what_bounds_cost():
    few = dpci.plan(n_samples=1000, schema=PARTIAL, budget=dpci.ZCDP(0.5))
    many = dpci.plan(n_samples=100_000, schema=PARTIAL, budget=dpci.ZCDP(0.5))
    assert (few.bounds.share, many.bounds.share) == (0.05, 0.025)
    assert many.bounds.left_out == pytest.approx(0.02)
    known = dpci.plan(n_samples=1000, n_features=3, budget=dpci.ZCDP(0.5))
    assert few.length[0] / known.length[0] == pytest.approx(few.bounds.longer, rel=1e-12)
    assert 1.0 < many.bounds.longer < few.bounds.longer < 1.02
    text = few.summary()
    assert "released first                age, income" in text
    assert "recommended bounds_share      0.05, which is rho=0.025 (zCDP)" in text
    assert f"up to about {few.bounds.left_out:.1%} of the values on either side" in text
    assert json.loads(json.dumps(few.to_dict()))["bounds"]["share"] == 0.05
    assert known.to_dict()["bounds"] is None
    fixed = dpci.plan(n_samples=1000, schema=replace(PARTIAL, bounds_share=0.3), budget=dpci.ZCDP(0.5))
    assert "\nbounds_share " in fixed.summary()


def test_lists_are_planned_with_the_public_categories():
    town = UnlistedColumn(name="town", categories=("north",), reference="north")
    schema = PartialSchema(columns=(AGE, town), target=ILL)
    plan = dpci.plan(n_samples=20_000, schema=schema, budget=BUDGETS["approx"])
    assert plan.n_params == 3
    assert plan.bounds.listed == ("town",)
    assert "categories with fewer than about" in plan.summary()
    # Which categories a list will have is not known, and counts will choose its reference.
    counted = PartialSchema(
        columns=(AGE, UnlistedColumn(name="town")), target=UnboundedTarget(column="income"), counts_share=0.1
    )
    known = dpci.plan(n_samples=20_000, schema=counted, budget=BUDGETS["approx"], loss="squared")
    assert (known.names, known.refusal) == (("age", "intercept"), None)
    with pytest.raises(dpci.InvalidInput, match="budget must be ApproxDP for an UnlistedColumn"):
        dpci.plan(n_samples=20_000, schema=schema, budget=BUDGETS["zcdp"])


def test_objective_perturbation_has_a_plan_with_gaps_too():
    plan = dpci.plan(n_samples=N, schema=PARTIAL, budget=BUDGETS["pure"], mechanism="objective")
    assert plan.recommended_l2_strength is not None
    assert "epsilon=2 (pure DP)" in plan.title
    assert plan.bounds.longer > 1.0
    assert "cost in length" in plan.summary()
    assert f"less than about {plan.bounds.break_even:.2f} times as wide" in " ".join(plan.summary().split())
    assert plan.to_dict()["bounds"]["columns"] == ["age", "income"]


def test_a_plan_without_a_ridge_is_of_newton_steps_where_a_fit_takes_them():
    sizes = {"n_samples": 4000, "n_features": 3}
    for notion in ("pure", "zcdp", "approx"):
        plan = dpci.plan(budget=BUDGETS[notion], **sizes)
        assert isinstance(plan, dpci.NewtonPlan)
        assert plan == dpci.plan(budget=BUDGETS[notion], mechanism="newton", **sizes)
        by_name = dpci.plan(budget=BUDGETS[notion], mechanism="objective", **sizes)
        assert by_name.recommended_l2_strength is not None
    with pytest.raises(dpci.InvalidInput, match=r"target must not be given for Newton steps.*mechanism='objective'"):
        dpci.plan(budget=BUDGETS["zcdp"], target="unregularised", **sizes)


def test_what_has_no_plan_is_refused():
    for keywords, message in (
        ({"schema": PARTIAL, "persons": dpci.Persons()}, "persons must have max_rows"),
        ({"schema": PARTIAL, "n_samples": 60}, "bounds_share=0.25 of the budget"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            dpci.plan(**{"n_samples": N, "budget": BUDGETS["zcdp"], **keywords})


WAGES = PartialSchema(columns=(AGE, UnboundedColumn(name="income"), WARD), target=UnboundedTarget(column="wage"))
WAGE = 0.2 * TABLE["age"] + RNG.normal(0, 4, N)


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("share", [None, 0.2])
def test_a_plan_of_a_matrix_is_of_what_the_fit_does(notion, share):
    keywords = {"schema": replace(WAGES, bounds_share=share), "budget": BUDGETS[notion]}
    plan = dpci.plan(n_samples=N, **keywords)
    fit = dpci.fit({**TABLE, "wage": WAGE}, seed=1, **keywords)
    released, bounds = fit.privacy["released_bounds"], plan.bounds.to_dict()
    assert (bounds["budget"], bounds["steps"]) == (released["budget"], released["steps"])
    assert (bounds["columns"], bounds["left_out"]) == (["age", "income", "wage"], released["share"])
    assert plan.bounds.is_recommended == (share is None)
    assert [step.to_dict() for step in plan.steps] == fit.privacy["steps"]
    assert plan.guarantee.delta(0.7) == fit.guarantee.delta(0.7)
    known = dpci.plan(n_samples=N, schema=fit.schema, budget=BUDGETS[notion])
    assert 1.0 < plan.bounds.longer < 1.35
    assert plan.noise_std_dev > known.noise_std_dev
    assert str(BUDGETS[notion]) in plan.title
    assert "released first" in plan.summary()
    assert json.loads(json.dumps(plan.to_dict()))["bounds"]["share"] == plan.bounds.share
    other = plan.assuming(target_std_dev=0.2)
    assert other.bounds.share == plan.bounds.share
    assert (other.std_errors < plan.std_errors).all()
    assert plan.names == fit.names


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_plan_of_a_matrix_knows_missing_values_dates_and_logarithms():
    columns = (
        UnboundedColumn(name="since", since="2020-01-01", missing="middle"),
        UnboundedColumn(name="pay", transform="signed_log"),
    )
    known = dpci.schema.NumericColumn(name="day", lower="2020-01-01", upper="2022-06-19", since="2020-01-01")
    schema = PartialSchema(columns=(*columns, known), target=dpci.schema.NumericTarget(column="y", lower=0, upper=1))
    found = dpci.plan(n_samples=50_000, schema=schema, loss="squared", budget=dpci.ZCDP(0.5))
    assert found.names == ("since", "pay", "day", "since=missing", "intercept")
    assert np.isfinite(found.half_widths).all()
    assert "one in ten missing" in found.summary()
    # One in ten is missing: the indicator varies by .3 of its bounds, a uniform number by .58 of half of them.
    assert 1.5 < found.half_widths[3] / found.half_widths[0] < 2.5


def test_a_plan_of_a_matrix_takes_no_earlier_release_and_refuses_as_the_fit():
    fit = dpci.fit({**TABLE, "wage": WAGE}, schema=WAGES, budget=BUDGETS["zcdp"], seed=1)
    for keywords, message in (
        ({"like": fit}, r"like must be None for a schema with gaps, got .* \(pass schema=like.schema"),
        ({"budget": dpci.GDP(0.5)}, "budget must be PureDP, ZCDP or ApproxDP for a schema with gaps"),
        ({"budget": dpci.ZCDP(1e-5)}, "rho must be at least .* among 4000 records"),
        ({"persons": dpci.Persons()}, "persons must have max_rows"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            dpci.plan(**{"n_samples": N, "schema": WAGES, "budget": BUDGETS["zcdp"], **keywords})


@pytest.mark.parametrize("budget", [dpci.ZCDP(0.5), dpci.PureDP(2.0)], ids=str)
def test_the_plan_says_how_many_missing_cells_an_interval_takes(budget):
    schema = PartialSchema(columns=(replace(AGE, missing="middle"), WARD), target=ILL)
    plan = dpci.plan(n_samples=N, schema=schema, budget=budget)
    assert plan.rare == ("categories", "missing cells")
    assert f"each needs about {plan.least_marks} records" in plan.summary()
    for times, given in ((0.2, False), (3.0, True)):
        ages = np.where(np.arange(N) < times * plan.least_marks, np.nan, TABLE["age"])
        fit = dpci.fit({**TABLE, "age": ages}, schema=schema, budget=budget, seed=1)
        assert np.isfinite(fit.params[fit.names.index("age=missing")]) == given
