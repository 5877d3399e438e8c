"""Choices that follow from public values: the λ of a fit, and the mechanism of the hinge loss."""

import dataclasses
import os

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

import dpci
from dpci.cli import main
from dpci.datasets.loaders import load_schema
from dpci.datasets.tables import load_table
from dpci.errors import InvalidInput, RegularizationTooSmall
from dpci.rows import Ball, Blocks
from dpci.schema import Schema
from dpci.sklearn.classifiers import PrivateLogisticRegression
from dpci.sklearn.transformers import PublicScaler
from support.keywords import assembled

PURE = dpci.PureDP(1.0)
SIZES = {"n_samples": 20_000, "n_features": 10}


def recommended(**keywords):
    return dpci.plan(
        **assembled(**{**SIZES, "budget": PURE, "mechanism": "objective", **keywords})
    ).recommended_l2_strength


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("budget", [PURE, dpci.ZCDP(0.1), dpci.ApproxDP(1.0, 1e-6)], ids=lambda b: b.notion)
def test_the_rule(budget, mechanism):
    plan = dpci.plan(**SIZES, budget=budget, mechanism=mechanism)
    assert f"lambda={plan.recommended_l2_strength:g}" in plan.title
    noise = np.sqrt(np.mean(np.square(plan.noise_std_devs)))
    own = noise if mechanism == "objective" else noise * plan.recommended_l2_strength
    alone = {"budget": budget, "mechanism": mechanism, "moments": "none"}
    assert recommended(**alone) == pytest.approx(own, rel=0.2)  # the matrices cost a share
    assert plan.noise_ratio < 10.0 or mechanism == "output"
    own = plan.recommended_l2_strength
    assert plan.recommended_l2_strength >= 2 * plan.least_l2_strength
    # Whatever λ the plan has; rows twice as long have parameters half as large, and a λ four times as great.
    assert recommended(budget=budget, mechanism=mechanism, l2_strength=3.0) == pytest.approx(own, rel=0.02)
    longer = recommended(budget=budget, mechanism=mechanism, rows=Ball(2.0), intercept=2.0)
    assert longer == pytest.approx(4 * own, rel=0.02)
    assert recommended(budget=budget, mechanism=mechanism, n_samples=40_000) == pytest.approx(own / 2, rel=0.05)


def test_without_the_ridge_it_is_a_multiple_of_the_least():
    plan = dpci.plan(**SIZES, budget=PURE, target="unregularised", mechanism="objective")
    assert plan.recommended_l2_strength == pytest.approx(4 * plan.least_l2_strength)
    assert "for intervals without the ridge: a greater one" in plan.summary()
    assert recommended() > 5 * plan.recommended_l2_strength
    assert "recommended lambda" in dpci.plan(**SIZES, budget=PURE, l2_strength=0.1).summary()
    with pytest.raises(InvalidInput, match="needs objective perturbation"):
        dpci.plan(**SIZES, budget=PURE, target="unregularised", mechanism="output")
    with pytest.raises(InvalidInput, match="target must be one of"):
        dpci.plan(**SIZES, budget=PURE, target="both", mechanism="objective")


def test_a_schema_gives_columns_and_rows():
    schema = load_schema("adult_demo")
    ridge = {"budget": PURE, "mechanism": "objective"}
    plan = dpci.plan(n_samples=4000, schema=schema, **ridge)
    assert plan == dpci.plan(n_samples=4000, n_features=len(schema.names), rows=schema.rows, **ridge)
    whole = dataclasses.replace(schema, encoding="full_range")
    assert dpci.plan(n_samples=4000, schema=whole, **ridge).rows == whole.rows
    table = dpci.plan_table(n_samples=4000, schema=whole, budgets=PURE, l2_strength=0.1)
    assert {type(entry.rows) for entry in table.entries} == {Ball, Blocks}
    with pytest.raises(InvalidInput, match="n_features must be that of the schema, 6, or None, got n_features=5"):
        dpci.plan(n_samples=4000, n_features=5, schema=schema, budget=PURE)
    for call in (dpci.plan, lambda **k: dpci.plan_table(**k, budgets=PURE, l2_strength=0.1)):
        with pytest.raises(InvalidInput, match="n_features must be given for a plan without a schema"):
            call(n_samples=4000, **({"budget": PURE} if call is dpci.plan else {}))


def test_estimators_take_it():
    X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (3000, 1))
    y = X[:, 0] > 0
    for keywords in ({"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6, "fit_intercept": False}):
        model = PrivateLogisticRegression(**keywords).fit(X, y)
        budget = model.result_.budget
        intercept = keywords.get("fit_intercept", True)
        expected = recommended(n_samples=6000, n_features=2, budget=budget, intercept=intercept)
        assert model.result_.l2_strength == expected
    given = PrivateLogisticRegression(l2_strength=0.5).fit(X, y)
    assert given.result_.l2_strength == 0.5
    with pytest.raises(RegularizationTooSmall):
        PrivateLogisticRegression(l2_strength=1e-9).fit(X, y)


@pytest.mark.skipif("DPCI_DATA" not in os.environ, reason="DPCI_DATA does not name the folder of data")
@pytest.mark.filterwarnings("ignore::dpci.DpciWarning")
def test_bank_at_default_settings():
    table, schema = load_table("bank"), load_schema("bank")
    order = np.random.default_rng(0).permutation(len(table["age"]))
    train, test = ({k: v[part] for k, v in table.items()} for part in (order[:33_908], order[33_908:]))
    ill = {id(part): part[schema.target.column] == "yes" for part in (train, test)}
    plain = make_pipeline(PublicScaler(schema), LogisticRegression(C=1e6, max_iter=1000))
    best = roc_auc_score(ill[id(test)], plain.fit(train, ill[id(train)]).decision_function(test))
    found = []
    for seed in range(8):
        model = make_pipeline(PublicScaler(schema), PrivateLogisticRegression(epsilon=1.0, delta=1e-6, seed=seed))
        found.append(roc_auc_score(ill[id(test)], model.fit(train, ill[id(train)]).decision_function(test)))
    assert best > 0.77
    assert np.mean(found) > best - 0.03
    assert isinstance(schema, Schema)


ROWS = np.random.default_rng(4).normal(size=(2_000, 3)) / 4
TARGETS = ROWS[:, 0] + 0.3 * ROWS[:, 1] > 0


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("budget", [PURE, dpci.ZCDP(0.1), dpci.ApproxDP(1.0, 1e-6)], ids=lambda b: b.notion)
def test_a_fit_takes_what_its_plan_recommends(budget, mechanism):
    keywords = {"budget": budget, "mechanism": mechanism, "rows": "clip"}
    fit = dpci.fit(ROWS, TARGETS, **keywords, seed=1)
    plan = dpci.plan(n_samples=2_000, n_features=3, **keywords)
    assert fit.l2_strength == plan.recommended_l2_strength
    assert f"lambda={fit.l2_strength:g} (recommended)" in plan.title
    assert "recommended by public values" in fit.summary(full=True)
    given = dpci.fit(ROWS, TARGETS, **keywords, l2_strength=fit.l2_strength, seed=1)
    np.testing.assert_array_equal(given.params, fit.params)
    assert "recommended by public values" not in given.summary(full=True)


def test_a_private_number_of_records_does_not_decide():
    keywords = {"budget": PURE, "mechanism": "objective", "rows": "clip", "neighbors": dpci.AddRemove(1_500)}
    strengths = {dpci.fit(ROWS[:n], TARGETS[:n], **keywords, seed=1).l2_strength for n in (1_400, 1_500, 2_000)}
    assert strengths == {dpci.plan(n_samples=1_500, n_features=3, **keywords).recommended_l2_strength}


def test_persons_are_what_is_counted():
    persons = np.arange(2_000) // 4
    keywords = {"budget": dpci.PureDP(4.0), "mechanism": "objective"}
    fit = dpci.fit(ROWS, TARGETS, **keywords, rows="clip", persons=persons, seed=1)
    plan = dpci.plan(n_samples=500, n_features=3, **keywords, persons=dpci.Persons())
    assert fit.l2_strength == plan.recommended_l2_strength


def test_a_loss_that_newton_steps_do_not_take_has_a_ridge():
    fit = dpci.fit(
        ROWS, ROWS[:, 0] / 4, budget=PURE, loss="squared", mechanism=dpci.ObjectivePerturbation(radius=1.0),
        rows="clip", seed=1,
    )  # fmt: skip
    assert (fit.mechanism, fit.l2_strength > 0.0) == ("objective", True)


def test_groups_and_strata_have_each_its_own():
    groups = {"few": (ROWS[:500], TARGETS[:500]), "many": (ROWS, TARGETS)}
    keywords = {"budget": PURE, "mechanism": "objective"}
    fits = dpci.fit_many(groups, **keywords, rows="clip", seed=1)
    for key, (X, _) in groups.items():
        plan = dpci.plan(n_samples=len(X), n_features=3, **keywords)
        assert fits[key].l2_strength == plan.recommended_l2_strength
    schema = Schema(
        columns=(dpci.schema.NumericColumn(name="a", lower=-1, upper=1),),
        target=dpci.schema.ClassTarget(column="y", negative=(0,), positive=(1,)),
    )
    table = {"a": ROWS[:, 0], "y": TARGETS.astype(int), "s": np.repeat(["A", "B"], [500, 1_500])}
    stratified = {"by": "s", "strata": ("A", "B"), "schema": schema}
    for numbers in ({"A": 500, "B": 1_500}, "private"):
        found = dpci.fit_strata(table, **stratified, n_public=numbers, **keywords, seed=1)
        assert found["A"].l2_strength > found["B"].l2_strength
        assert f"{found['B'].l2_strength:.4g} to {found['A'].l2_strength:.4g}, recommended" in found.summary()
        assert dpci.StrataFit.from_json(found.to_json()).digest == found.digest


def test_several_classes():
    classes, y = ("a", "b", "c"), np.array(["a", "b", "c"])[np.arange(2_000) % 3]
    keywords = {"budget": PURE, "classes": classes}
    fit = dpci.multinomial.fit(ROWS, y, **keywords, rows="clip", seed=1)
    plan = dpci.multinomial.plan(n_samples=2_000, n_features=3, **keywords)
    assert f"lambda={fit.l2_strength:g} (recommended)" in plan.title


@pytest.mark.parametrize("lower", [None, 0.0])
def test_a_table_a_schema_and_a_budget_are_a_complete_call(lower):
    target = (
        dpci.schema.ClassTarget(column="y", negative=(0,), positive=(1,))
        if lower is None
        else dpci.schema.NumericTarget(column="y", lower=lower, upper=1.0)
    )
    schema = Schema(columns=(dpci.schema.NumericColumn(name="a", lower=-1, upper=1),), target=target)
    table = {"a": ROWS[:, 0], "y": TARGETS.astype(int)}
    fit = dpci.fit(table, schema=schema, budget=dpci.ZCDP(0.5))
    assert type(fit).__name__ == ("PrivateFit" if lower is None else "LinearFit")


X = np.tile([[0.6, 0.0], [-0.6, 0.1], [0.1, -0.3]], (200, 1))
Y = X[:, 0] > 0
FIT = {"loss": "hinge", "budget": dpci.PureDP(1.0), "l2_strength": 0.1}
REASON = "because the hinge has no second derivative"


def test_the_mechanism_need_not_be_named():
    found = dpci.fit(X, Y, seed=1, **FIT)
    asked = dpci.fit(X, Y, seed=1, **FIT, mechanism=dpci.OutputPerturbation(moments="none"))
    assert found.to_json() == asked.to_json() == dpci.fit(X, Y, seed=1, **FIT, mechanism="output").to_json()
    said = "No intervals: noise was added to the parameters, and the hinge has no second derivative"
    for full in (False, True):
        assert said in " ".join(found.summary(full=full).split())
    assert found.interval_refusal.startswith("intervals require a loss with a Hessian, and the hinge has no second")


def test_the_plan_says_so():
    planned = dpci.plan(n_samples=len(Y), n_features=2, **FIT)
    assert planned.steps == dpci.plan(n_samples=len(Y), n_features=2, mechanism="output", **FIT).steps
    assert "output perturbation" in planned.title
    assert f"none, {REASON}" in planned.summary()
    assert dpci.plan(n_samples=len(Y), n_features=2, budget=FIT["budget"], l2_strength=0.1).without_intervals is None


def test_public_values_choose_the_ridge_too():
    assert 0.0 < dpci.fit(X, Y, loss="hinge", budget=dpci.PureDP(1.0), classes=(False, True)).l2_strength < 1.0


def test_functions_that_pass_keywords_on_choose_it_too():
    many = dpci.fit_many({"a": (X, Y), "b": (X, ~Y)}, seed=1, **FIT)
    assert {fit.privacy["mechanism"] for fit in many.values()} == {"output"}
    grid = [{"l2_strength": 0.1}, {"l2_strength": 0.3}]
    tuned = dpci.tuning.tune(
        X, Y, loss="hinge", budget=dpci.PureDP(4.0), candidates=grid, validation_radius=3.0, classes=(False, True),
        seed=1,
    )  # fmt: skip
    assert tuned.result.privacy["mechanism"] == "output"


def test_objective_perturbation_is_still_refused():
    with pytest.raises(dpci.InvalidInput, match="requires a loss with a second derivative, got the hinge loss"):
        dpci.fit(X, Y, mechanism="objective", **FIT)
    with pytest.raises(dpci.InvalidInput, match="intervals require a loss with a Hessian, got the hinge loss"):
        dpci.fit(X, Y, mechanism=dpci.OutputPerturbation(moments="joint"), **FIT)


def test_the_command_chooses_it(capsys):
    options = ["--n-samples", "600", "--n-features", "2", "--epsilon", "1", "--l2-strength", "0.1", "--loss", "hinge"]
    assert main(["plan", *options]) == 0
    assert REASON in capsys.readouterr().out
    assert main(["plan", *options, "--radius", "2"]) == 0
    assert "output perturbation" in capsys.readouterr().out
