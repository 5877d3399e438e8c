"""Fits that release the bounds of their schema first: one budget, one payment, and the two releases that they are."""

import dataclasses
import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.data.arrays import NamedRows
from dpci.described.bounds import SHARES, stage_within
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, PartialSchema, UnboundedColumn, UnlistedColumn

RNG = np.random.default_rng(5)
N = 8000
TABLE = {
    "age": RNG.uniform(18, 90, N),
    "income": RNG.lognormal(10, 1, N),
    "ward": RNG.choice(["A", "B"], N),
    "ill": np.where(RNG.uniform(size=N) < 0.3, "yes", "no"),
    "id": np.arange(N) // 2,
}
PARTIAL = PartialSchema(
    columns=(
        UnboundedColumn(name="age", lower=0, upper=150, unit="year"),
        UnboundedColumn(name="income", lower=0, upper=1e7),
        CategoricalColumn(name="ward", categories=("A", "B"), reference="A"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)
BUDGETS = {"pure": dpci.PureDP(1.0), "zcdp": dpci.ZCDP(0.3), "approx": dpci.ApproxDP(1.0, 1e-6)}
pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")


def fit(table=TABLE, y=None, **keywords):
    return dpci.fit(table, y, **{"schema": PARTIAL, "budget": BUDGETS["zcdp"], "l2_strength": 0.01, **keywords})


@pytest.mark.parametrize("notion", BUDGETS)
def test_it_is_the_release_of_a_schema_and_then_a_fit(notion):
    budget = BUDGETS[notion]
    both = fit(schema=replace(PARTIAL, bounds_share=0.25), budget=budget, seed=3)
    record = both._record
    parts = record.released_bounds.budget, record.own_budget
    assert parts[0].parameters() == {name: 0.25 * value for name, value in budget.parameters().items()}
    # A seed of its own: the choice of the bounds and the noise of the fit are independent.
    first = dpci.release_schema(TABLE, schema=PARTIAL, budget=parts[0], seed=3 ^ 0x5DEECE66D)
    assert first.schema == both.schema
    assert first.share == record.released_bounds.share
    second = dpci.fit(TABLE, schema=first.schema, budget=parts[1], l2_strength=0.01, seed=3)
    assert np.array_equal(second.params, both.params)
    assert np.array_equal(second.conf_int(), both.conf_int())
    assert both.privacy["released_bounds"]["steps"] == first.privacy["steps"]
    assert both.privacy["steps"] == second.privacy["steps"]


@pytest.mark.parametrize("notion", BUDGETS)
def test_both_together_cost_the_budget(notion):
    budget = BUDGETS[notion]
    found = fit(budget=budget)
    record = found._record
    own, bounds = record.own_budget, record.released_bounds.budget
    assert found.budget == budget
    for name, whole in budget.parameters().items():
        assert own.parameters()[name] + bounds.parameters()[name] == pytest.approx(whole, rel=1e-15)
        assert getattr(found.spent, name) == pytest.approx(whole, rel=1e-9)
    if notion == "approx":
        alone = record.own_guarantee()
        spent = sum(step.cost for step in record.released_bounds.steps)
        assert spent == pytest.approx(bounds.epsilon)
        for epsilon in (0.3, 0.6, 0.9):
            # What is pure adds to epsilon.
            assert found.guarantee.delta(epsilon) == pytest.approx(float(alone.delta(epsilon - spent)), rel=1e-9)
        assert found.guarantee.rdp(4.0) == pytest.approx(float(alone.rdp(4.0)) + 4.0 * spent**2 / 8.0)
        assert found.guarantee.delta(budget.epsilon) <= budget.delta
    else:
        alone = dpci.fit(TABLE, schema=found.schema, budget=budget, l2_strength=0.01)
        assert found.guarantee.delta(0.5) == alone.guarantee.delta(0.5)
    text = " ".join(found.summary(full=True).split())
    assert f"budget spent {budget} " in text
    assert f" bounds {bounds} for 2 columns together, by the exponential mechanism" in text
    for column in ("age", "income"):
        lower, upper = ((part.lower, part.upper) for part in found.schema.columns if part.name == column).__next__()
        lower, upper = (float(f"{bound:.4g}") for bound in (lower, upper))
        assert f" {column} {lower:g} to {upper:g} " in text


@pytest.mark.parametrize("errors", ["detailed", "private"])
@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
def test_a_ledger_pays_once_before_anything_is_read(errors, kind):
    ledger = dpci.Ledger(dpci.ZCDP(1.0), errors=errors)
    found = fit(kind(TABLE), ledger=ledger, rows="clip")
    (entry,) = ledger.history
    assert (entry.source, entry.budget) == ("dpci.fit", dpci.ZCDP(0.3))
    assert ledger.models == {entry.number: found.digest}
    broken = kind({**TABLE, "income": np.full(N, np.nan)})
    with pytest.raises(dpci.InvalidInput if errors == "detailed" else dpci.ReleaseFailed):
        fit(broken, ledger=ledger, rows="clip")
    assert len(ledger.history) == (1 if errors == "detailed" else 2)
    n_entries = len(ledger.history)
    for refused, message in (
        ({"schema": replace(PARTIAL, bounds_share=1e-9)}, "rho must be at least .* among 8000 records"),
        ({"l2_strength": 1e-9}, "l2_strength must be greater than"),
        ({"loss": "squared"}, "the target of the schema must be a number for the squared loss, got classes"),
    ):
        with pytest.raises(dpci.DpciError, match=message):
            fit(kind(TABLE), ledger=ledger, rows="clip", **refused)
    assert len(ledger.history) == n_entries
    of_persons = dpci.Ledger(dpci.ZCDP(1.0), errors=errors)
    with pytest.raises(dpci.InvalidInput, match="persons must have max_rows"):
        fit(kind(TABLE), ledger=of_persons, rows="clip", persons="id")
    assert of_persons.history == ()


def test_bounds_take_the_least_share_that_is_enough():
    def share(n, budget, given=None):
        schema = replace(PARTIAL, bounds_share=given)
        stage = stage_within(schema, budget, n, unit=None, neighbors="replace_one")
        name, whole = next(iter(budget.parameters().items()))
        return stage.budget.parameters()[name] / whole, stage.specs.share

    for n in (1_000, 2_000, 4_000, 8_000, 100_000):
        for budget in BUDGETS.values():
            taken, left_out = share(n, budget)
            enough = []
            for each in SHARES:
                try:
                    enough += [each] if share(n, budget, each)[1] <= 2.0 * each else []
                except dpci.InvalidInput:
                    continue
            assert taken == pytest.approx(min(enough, default=0.25))
            assert left_out == share(n, budget, taken)[1]
    assert share(100_000, BUDGETS["zcdp"]) == (pytest.approx(0.025), 0.02)


def test_files_hold_what_was_released_and_are_held_against_their_rules():
    found = fit()
    for again in (dpci.PrivateFit.from_json(found.to_json()), pickle.loads(pickle.dumps(found))):
        assert again.to_json() == found.to_json()
        assert again.privacy == found.privacy
        assert again.summary() == found.summary()
    record = found._record
    bounds = record.released_bounds

    def other(**fields):
        return {"released_bounds": dataclasses.replace(bounds, **fields)}

    columns = tuple(
        dataclasses.replace(column, source="law") if column.name == "age" else column for column in record.table.columns
    )
    for change, message in (
        (lambda: {"released_bounds": None}, "the steps and seals must spend the whole budget"),
        (lambda: other(budget=dpci.ZCDP(0.1)), "must spend at most the budget"),
        (lambda: other(budget=dpci.PureDP(0.1)), "a part of a budget must be of its notion"),
        (lambda: other(ranges={"height": None}), "ranges must name columns"),
        (lambda: other(ranges={}), "ranges must name columns"),
        (lambda: other(ranges={"age": (0.0, 20.0)}), "bounds within its range"),
        (lambda: other(share=0.7), "share must be"),
        (lambda: other(steps=()), "one or two steps"),
        (lambda: {"table": dataclasses.replace(record.table, columns=columns)}, "the source of 'age' must be"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            dataclasses.replace(record, **change()).check()
    assert json.loads(found.to_json())["released_bounds"]["ranges"] == {"age": [0.0, 150.0], "income": [0.0, 1e7]}


def test_an_approval_finds_bounds_that_cost_less_than_they_say():
    found = fit()
    record = found._record
    assert "| FAILED |" not in found.officer_report(schema=PARTIAL)
    bounds = record.released_bounds
    for change, what in (
        ({"share": 0.03}, "share of the bounds"),
        ({"steps": tuple(dataclasses.replace(step, scale=2.0 * step.scale) for step in bounds.steps)}, "scale of the"),
    ):
        edited = dataclasses.replace(record, released_bounds=dataclasses.replace(bounds, **change))
        text = dpci.PrivateFit(edited).officer_report(schema=PARTIAL)
        assert f"| FAILED | the noise must be that which the public choices in the file call for, {what}" in text
    known = dataclasses.replace(PARTIAL, columns=(NumericColumn(name="age", lower=0, upper=120), *PARTIAL.columns[1:]))
    assert "| FAILED | the schema of the model differs" in found.officer_report(schema=known)
    text = found.officer_report()
    assert "| column age" not in text.partition("## Decide first")[0]
    assert "It covers the released bounds, the released parameters, and the matrices" in text
    assert (
        "before they were seen, except the bounds of `age`, `income`, which the release found within its budget" in text
    )


def test_persons_missing_values_and_add_remove():
    columns = tuple(
        dataclasses.replace(column, missing="middle") if isinstance(column, UnboundedColumn) else column
        for column in PARTIAL.columns
    )
    gaps = RNG.uniform(size=N) < 0.2
    table = {**TABLE, "age": np.where(gaps, np.nan, TABLE["age"])}
    found = fit(
        table,
        schema=dataclasses.replace(PARTIAL, columns=columns, persons="id"),
        persons=dpci.Persons("id", max_rows=2),
        neighbors=dpci.AddRemove(N // 2),
    )
    assert found.names == ("age", "income", "ward=B", "age=missing", "income=missing", "intercept")
    assert found.privacy["released_bounds"]["steps"][0]["sensitivity"] == 2.0
    assert found.privacy["unit"] == "person"
    assert found.schema.columns[0].missing == pytest.approx(np.mean([found.schema.columns[0].lower,
                                                                     found.schema.columns[0].upper]))  # fmt: skip


def test_blocks_follow_the_released_bounds():
    full = dataclasses.replace(PARTIAL, encoding="full_range")
    found = fit(schema=full, rows=None)
    assert found.schema.encoding == "full_range"
    assert found.privacy["constants"]["blocks"]["bounds"] == [0.5, 0.5, 1.0]


EPSILON_DELTA = dpci.ApproxDP(1.0, 1e-6)
IN_STAGES = dataclasses.replace(PARTIAL, columns=(PARTIAL.columns[0], UnboundedColumn(name="income")))


def newton(budget=EPSILON_DELTA, schema=PARTIAL, **keywords):
    return dpci.fit(TABLE, **{"schema": replace(schema, bounds_share=0.2), "budget": budget, "seed": 3, **keywords})


def mu_squared(found):
    return sum(step.cost for step in found._record.steps)


@pytest.mark.parametrize(
    ("schema", "budget", "gain"),
    [(PARTIAL, EPSILON_DELTA, 1.3), (IN_STAGES, EPSILON_DELTA, 1.4), (IN_STAGES, dpci.ApproxDP(3.0, 1e-6), 1.35)],
)
def test_newton_steps_and_bounds_spend_their_joint_profile(schema, budget, gain):
    found = newton(budget, schema=schema)
    record = found._record
    bounds, own = record.released_bounds, record.own_budget
    assert bounds.budget == dpci.PureDP(0.2 * budget.epsilon)
    assert own.delta == budget.delta
    assert budget.epsilon - bounds.budget.epsilon < own.epsilon < budget.epsilon
    assert found.budget == found.spent == budget
    basic = dpci.ApproxDP(0.8 * budget.epsilon, 0.8 * budget.delta)
    apart = dpci.fit(TABLE, schema=found.schema, budget=basic, seed=3)
    whole = dpci.fit(TABLE, schema=found.schema, budget=budget, seed=3)
    assert gain * mu_squared(apart) < mu_squared(found) < mu_squared(whole)
    again = dpci.fit(TABLE, schema=found.schema, budget=own, seed=3)
    assert np.array_equal(again.params, found.params)
    # The profile of the noise that was drawn is all but used up at the budget.
    assert budget.delta * (1.0 - 1e-6) <= found.guarantee.delta(budget.epsilon) <= budget.delta
    epsilons = np.linspace(0.0, 1.2 * budget.epsilon, 9)
    profile = found.guarantee.delta(epsilons)
    assert (np.diff(profile) <= 0.0).all()
    assert (profile >= record.own_guarantee().delta(epsilons)).all()
    assert found.guarantee.rdp(4.0) == pytest.approx(
        float(record.own_guarantee().rdp(4.0)) + 4.0 * bounds.budget.epsilon**2 / 8.0
    )
    text = found.officer_report(schema=schema)
    assert [line for line in text.splitlines() if "| FAILED |" in line and "NOT PRIVATE" not in line] == []
    plan = dpci.plan(n_samples=N, schema=replace(schema, bounds_share=0.2), budget=budget)
    assert plan.bounds.budget == bounds.budget
    assert sum(step.cost for step in plan.steps) == pytest.approx(mu_squared(found), rel=1e-9)
    again = dpci.PrivateFit.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert again.summary() == found.summary()


def test_a_ledger_pays_the_whole_of_a_joint_release_once():
    ledger = dpci.Ledger(dpci.ApproxDP(1.5, 1e-5))
    found = newton(ledger=ledger, seed=None)
    (entry,) = ledger.history
    assert entry.budget == EPSILON_DELTA
    text = found.officer_report(ledger=ledger, schema=PARTIAL)
    assert "| FAILED |" not in text
    assert "bounds and Gaussian noise compose in one profile" in text


def test_a_joint_release_that_spends_more_than_its_budget_is_found():
    record = newton(schema=IN_STAGES)._record
    bounds = record.released_bounds

    def other(budget, **fields):
        return dataclasses.replace(record, released_bounds=dataclasses.replace(bounds, budget=budget, **fields))

    louder = tuple(dataclasses.replace(step, cost=1.02 * step.cost, scale=step.scale / 1.01) for step in record.steps)
    for edited, message in (
        (dataclasses.replace(record, steps=louder), "must spend at most the budget"),
        (other(dpci.PureDP(0.3)), "must spend at most the budget"),
        (other(dpci.ApproxDP(0.2, 2e-7)), "must be PureDP without lists"),
        (dataclasses.replace(record, budget=dpci.ApproxDP(0.99, 1e-6)), "must spend at most the budget"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            edited.check()
    # One stage in place of two has another profile.
    step = dataclasses.replace(bounds.steps[0], cost=0.2, scale=bounds.steps[0].scale / 2.0)
    with pytest.raises(dpci.InvalidInput, match="must spend at most the budget"):
        other(bounds.budget, steps=(step,)).check()
    # Whoever names stages that the choices do not make is found by verification.
    weaker = tuple(dataclasses.replace(step, scale=2.0 * step.scale) for step in bounds.steps)
    text = dpci.PrivateFit(other(bounds.budget, steps=weaker)).officer_report(schema=IN_STAGES)
    assert "| FAILED | the noise must be that which the public choices in the file call for" in text


def test_lists_take_a_part_of_epsilon_and_delta_from_a_joint_release():
    ward = UnlistedColumn(name="ward", categories=("A",), reference="A")
    listed = dataclasses.replace(PARTIAL, columns=(*PARTIAL.columns[:2], ward))
    record = (found := newton(schema=listed))._record
    own, lists = record.own_budget, 0.25 * 0.2
    assert record.released_bounds.budget == dpci.ApproxDP(0.2, 0.2 * 1e-6)
    assert own.delta == pytest.approx(0.8e-6)
    assert 0.8 < own.epsilon < 1.0 - lists
    assert found.guarantee.delta(1.0) <= 1e-6
    assert found.guarantee.delta(1.0) > 0.999e-6
    # Lists alone add up with the fit.
    alone = PartialSchema(columns=(NumericColumn(name="age", lower=0, upper=150), ward), target=PARTIAL.target)
    record = newton(schema=alone)._record
    assert record.own_budget.parameters() == pytest.approx({"epsilon": 0.8, "delta": 0.8e-6})


@pytest.mark.parametrize("notion", BUDGETS)
def test_what_is_not_joint_is_split(notion):
    # Newton steps under other notions, and objective perturbation.
    ridge = {"l2_strength": 0.01} if notion == "approx" else {}
    schema = replace(PARTIAL, bounds_share=0.2)
    record = dpci.fit(TABLE, schema=schema, budget=BUDGETS[notion], **ridge)._record
    for part, share in ((record.released_bounds.budget, 0.2), (record.own_budget, 0.8)):
        expected = {name: share * value for name, value in BUDGETS[notion].parameters().items()}
        assert part.parameters() == pytest.approx(expected, rel=1e-15)


def test_what_has_no_bounds_is_refused_by_its_rule():
    for call, message in (
        (lambda: fit(NamedRows(np.zeros((N, 3)), PARTIAL.blank.names), np.zeros(N)), "a table that is not encoded"),
        (lambda: replace(PARTIAL, bounds_share=1.0), "bounds_share must be > 0 and < 1"),
        (lambda: dpci.fit_strata(TABLE, by="ward", schema=PARTIAL, budget=BUDGETS["zcdp"], l2_strength=1, n_public=9),
         "must have bounds for every column"),
    ):  # fmt: skip
        with pytest.raises(dpci.InvalidInput, match=message):
            call()
