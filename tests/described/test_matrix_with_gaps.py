"""Moment matrices that release the bounds of their schema first: one budget, one payment, and the two releases."""

import dataclasses
import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpci
from dpci.schema import CategoricalColumn, PartialSchema, UnboundedColumn, UnboundedTarget, UnlistedColumn

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")

RNG = np.random.default_rng(5)
N = 8000


def drawn(rng, n):
    tenure, ward = rng.lognormal(1.5, 0.8, n), rng.choice(["A", "B"], n)
    return {"tenure": tenure, "ward": ward, "wage": 15 + 0.8 * tenure + 2 * (ward == "B") + rng.normal(0, 4, n)}


TABLE = {**drawn(RNG, N), "id": np.arange(N) // 2, "hours": RNG.uniform(0, 40, N)}
WARD = CategoricalColumn(name="ward", categories=("A", "B"), reference="A")
WAGE = UnboundedTarget(column="wage", lower=0, upper=1000)
PARTIAL = PartialSchema(columns=(UnboundedColumn(name="tenure", lower=0, upper=100), WARD), target=WAGE)
NO_RANGES = PartialSchema(columns=(UnboundedColumn(name="tenure"), WARD), target=UnboundedTarget(column="wage"))
BUDGETS = {"pure": dpci.PureDP(1.0), "zcdp": dpci.ZCDP(0.3), "approx": dpci.ApproxDP(1.0, 1e-6)}


def fit(table=TABLE, y=None, **keywords):
    return dpci.fit(table, y, **{"schema": PARTIAL, "budget": BUDGETS["zcdp"], **keywords})


def record_of(found):
    return dpci.regression.MomentMatrix.of(found)._record


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("schema", [PARTIAL, NO_RANGES], ids=["ranges", "none"])
@pytest.mark.parametrize(
    "unit",
    [
        {},
        {"persons": dpci.Persons("id", max_rows=2)},
        {"weights": dpci.Weights("hours", bound=40.0)},
        {"neighbors": dpci.AddRemove(N - 50)},
        {"l2_strength": "private"},
    ],
    ids=str,
)
def test_it_is_the_release_of_a_schema_and_then_a_fit(notion, schema, unit):
    budget = BUDGETS[notion]
    both = fit(schema=replace(schema, bounds_share=0.25), budget=budget, seed=3, **unit)
    record = record_of(both)
    bounds, own = record.released_bounds, record.own_budget
    assert (both.budget, both.spent) == (budget, budget)
    relation = {name: given for name, given in unit.items() if name in {"persons", "neighbors"}}
    # A seed of its own: the choice of the bounds and the noise of the matrix are independent.
    first = dpci.release_schema(TABLE, schema=schema, budget=bounds.budget, seed=3 ^ 0x5DEECE66D, **relation)
    # By itself it notes the column of persons.
    assert replace(first.schema, persons="") == both.schema
    second = dpci.fit(TABLE, schema=both.schema, budget=own, seed=3, **unit)
    assert np.array_equal(record.matrix, record_of(second).matrix)
    assert both.interval_refusal == second.interval_refusal
    if both.interval_refusal is None:
        assert np.array_equal(second.conf_int(), both.conf_int())
    assert both.privacy["released_bounds"]["steps"] == first.privacy["steps"]
    assert both.privacy["steps"] == second.privacy["steps"]


def test_parts_of_the_budget_add_up_or_share_a_profile():
    for notion in ("pure", "zcdp"):
        record = record_of(fit(budget=BUDGETS[notion], seed=3))
        for name, whole in BUDGETS[notion].parameters().items():
            parts = record.own_budget.parameters()[name], record.released_bounds.budget.parameters()[name]
            assert sum(parts) == pytest.approx(whole, rel=1e-15)
    for epsilon in (0.1, 1.0, 6.0):
        for schema in (PARTIAL, NO_RANGES):
            budget = dpci.ApproxDP(epsilon, 1e-6)
            given = replace(schema, bounds_share=0.25)
            found = fit({name: np.tile(cells, 10) for name, cells in TABLE.items()}, schema=given, budget=budget)
            record = record_of(found)
            assert record.released_bounds.budget == dpci.PureDP(0.25 * epsilon)
            assert 0.75 * epsilon < record.own_budget.epsilon < epsilon
            assert budget.delta * (1.0 - 1e-6) <= found.guarantee.delta(epsilon) <= budget.delta
            epsilons = np.linspace(0.0, 1.2 * epsilon, 9)
            assert (found.guarantee.delta(epsilons) >= record.own_guarantee().delta(epsilons)).all()


@pytest.mark.parametrize("errors", ["detailed", "private"])
@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
def test_a_ledger_pays_once_before_anything_is_read(errors, kind):
    ledger = dpci.Ledger(dpci.ZCDP(1.0), errors=errors)
    found = fit(kind(TABLE), ledger=ledger, rows="clip")
    (entry,) = ledger.history
    assert (entry.source, entry.budget) == ("dpci.fit", dpci.ZCDP(0.3))
    assert ledger.models == {entry.number: dpci.regression.MomentMatrix.of(found).digest}
    assert "| FAILED |" not in found.officer_report(schema=PARTIAL, ledger=ledger)
    broken = kind({**TABLE, "tenure": np.full(N, np.nan)})
    with pytest.raises(dpci.InvalidInput if errors == "detailed" else dpci.ReleaseFailed):
        fit(broken, ledger=ledger, rows="clip")
    n_entries = 1 if errors == "detailed" else 2
    assert len(ledger.history) == n_entries
    unlisted = replace(PARTIAL, columns=(PARTIAL.columns[0], UnlistedColumn(name="ward", categories=("A",))))
    for refused, message in (
        ({"schema": replace(PARTIAL, bounds_share=1e-9)}, "rho must be at least .* among 8000 records"),
        ({"schema": unlisted}, "budget must be ApproxDP for an UnlistedColumn|need a reference category"),
        ({"rows": dpci.rows.Clipped(intercept=2.0)}, "intercept must be True or False"),
        ({"rows": 3.0}, "rows must be those of the schema"),
        ({"budget": dpci.ZCDP(1e-5)}, "among 8000 records"),
        ({"budget": dpci.ZCDP(0.02), "schema": replace(PARTIAL, bounds_share=0.99999)}, "must be able to vary more"),
        ({"loss": dpci.losses.Huber(k=3.0), "l2_strength": 1e-9}, "l2_strength must be greater than"),
        ({"budget": dpci.GDP(0.5)}, "budget must be PureDP, ZCDP or ApproxDP for a schema with gaps"),
    ):
        with pytest.raises(dpci.DpciError, match=message):
            fit(kind(TABLE), **{"ledger": ledger, "rows": "clip", **refused})
    assert len(ledger.history) == n_entries
    of_persons = dpci.Ledger(dpci.ZCDP(1.0), errors=errors)
    with pytest.raises(dpci.InvalidInput, match="persons must have max_rows"):
        fit(kind(TABLE), ledger=of_persons, rows="clip", persons="id")
    assert of_persons.history == ()


def test_files_hold_what_was_released_and_are_held_against_their_rules():
    found = fit(seed=3)
    matrix = dpci.regression.MomentMatrix.of(found)
    for one in (found, matrix):
        for again in (type(one).from_json(one.to_json()), pickle.loads(pickle.dumps(one))):
            assert again.to_json() == one.to_json()
            assert again.privacy == one.privacy
            assert again.summary() == one.summary()
    record = matrix._record
    bounds = record.released_bounds

    def other(**fields):
        return {"released_bounds": dataclasses.replace(bounds, **fields)}

    for change, message in (
        (lambda: {"released_bounds": None}, "the steps and seals must spend the whole budget"),
        (lambda: other(budget=dpci.ZCDP(0.1)), "must spend at most the budget"),
        (lambda: other(ranges={"height": None}), "ranges must name columns"),
        (lambda: {"table": None, "rows": None}, "must have a schema, got none"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            dataclasses.replace(record, **change())
    assert json.loads(matrix.to_json())["released_bounds"]["ranges"] == {"tenure": [0.0, 100.0], "wage": [0.0, 1000.0]}
    for change, what in (
        ({"share": 0.03}, "share of the bounds"),
        ({"steps": tuple(dataclasses.replace(step, scale=2.0 * step.scale) for step in bounds.steps)}, "scale of the"),
    ):
        edited = dataclasses.replace(record, **other(**change))
        text = dpci.regression.MomentMatrix(edited).officer_report(schema=PARTIAL)
        assert f"| FAILED | the noise must be that which the public choices in the file call for, {what}" in text


def test_a_joint_release_that_spends_more_than_its_budget_is_found():
    record = record_of(fit(budget=BUDGETS["approx"], seed=3))
    louder = tuple(dataclasses.replace(step, cost=1.21 * step.cost, scale=step.scale / 1.1) for step in record.steps)
    for change in (
        {"steps": louder},
        {"released_bounds": dataclasses.replace(record.released_bounds, budget=dpci.PureDP(0.5))},
        {"budget": dpci.ApproxDP(0.99, 1e-6)},
    ):
        with pytest.raises(dpci.InvalidInput, match=r"must spend at most the budget|must spend together at most"):
            dataclasses.replace(record, **change)


def test_texts_say_what_bounds_cost_and_leave_out():
    found = fit(budget=BUDGETS["approx"], seed=3)
    bounds = record_of(found).released_bounds
    for text in (found.summary(), dpci.regression.MomentMatrix.of(found).summary(), found.to_html()):
        words = " ".join(text.split())
        assert f"{bounds.budget} for 2 columns together, by the exponential mechanism" in words
        assert f"beyond them up to about {bounds.share:.1%} of the values on either side" in words
        assert "Released bounds and categories" in words
    text = fit(budget=BUDGETS["approx"]).officer_report(schema=PARTIAL)
    assert PARTIAL.digest in text
    assert "| FAILED |" not in text
    assert "It covers the released bounds, every linear regression among the 3 columns" in text
    assert "bounds and Gaussian noise compose in one profile" in text
    known = replace(PARTIAL, columns=(dpci.schema.NumericColumn(name="tenure", lower=0, upper=120), WARD))
    assert "| FAILED | the schema of the model differs" in found.officer_report(schema=known)
    assert found.privacy["conditions"][0].startswith("none: the noise is seeded")
    conditions = " ".join(fit().privacy["conditions"])
    assert "budget, public bounds and ranges, public categories and columns were chosen without the data" in conditions


def test_lists_are_released_with_bounds():
    unlisted = UnlistedColumn(name="ward", categories=("A",), reference="A")
    found = fit(
        schema=replace(PARTIAL, columns=(PARTIAL.columns[0], unlisted)), budget=dpci.ApproxDP(4.0, 1e-6), seed=3
    )
    assert found.names == ("tenure", "ward=B", "ward=other", "intercept")
    assert found.privacy["released_bounds"]["listed"] == ["ward"]
    # Nobody has another ward: the noise hides that column, which no data may decide.
    assert "ward=other" in str(found.interval_refusal)
    private = fit(
        schema=replace(PARTIAL, columns=(PARTIAL.columns[0], unlisted)),
        budget=dpci.ApproxDP(4.0, 1e-6),
        l2_strength="private",
        seed=3,
    )
    assert private.interval_refusal is None


def test_intervals_cover_the_coefficients_between_the_released_bounds():
    """Each interval misses in 5% of 200 tables, and a test finds more than 6% by chance with probability 1e-6."""
    people = drawn(np.random.default_rng(77), 200_000)
    misses, n_tables = np.zeros(2), 200
    for seed in range(n_tables):
        table = drawn(np.random.default_rng(1000 + seed), 4000)
        found = fit(table, schema=NO_RANGES, budget=dpci.ZCDP(0.5), seed=seed)
        tenure, wage = found.schema.columns[0], found.schema.target
        X = np.column_stack(
            [people["tenure"].clip(tenure.lower, tenure.upper), people["ward"] == "B", np.ones(len(people["wage"]))]
        )
        truth = np.linalg.solve(X.T @ X, X.T @ people["wage"].clip(wage.lower, wage.upper))[:2]
        intervals = found.conf_int()
        misses += (truth < intervals.lower[:2]) | (truth > intervals.upper[:2])
    most = stats.binom.isf(5e-7, n_tables, 0.06)
    assert (misses <= most).all(), misses
    # Intervals that are far too long would miss nothing.
    assert (misses >= 1).all()


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("more", [{}, {"refine": True}, {"robust": True}, {"robust": True, "refine": True}], ids=str)
def test_a_matrix_of_a_table_completes_its_schema(notion, more):
    budget = BUDGETS[notion]
    both = dpci.regression.release(TABLE, schema=replace(NO_RANGES, bounds_share=0.25), budget=budget, seed=3, **more)
    own, bounds = both._record.own_budget, both._record.released_bounds
    first = dpci.release_schema(TABLE, schema=NO_RANGES, budget=bounds.budget, seed=3 ^ 0x5DEECE66D)
    assert first.schema == both.schema
    second = dpci.regression.release(TABLE, schema=first.schema, budget=own, seed=3, **more)
    assert np.array_equal(both.moments, second.moments)
    assert both.fit().conf_int().length.tolist() == second.fit().conf_int().length.tolist()
    assert both.privacy["steps"] == second.privacy["steps"]
    for one in (both, second):
        assert type(one).from_json(one.to_json()).to_json() == one.to_json()
    if notion == "approx":
        assert both.guarantee.delta(budget.epsilon) <= budget.delta
    if not more:
        fitted = fit(schema=replace(NO_RANGES, bounds_share=0.25), budget=budget, seed=3)
        assert dpci.regression.MomentMatrix.of(fitted).digest == both.digest
    text = both.officer_report(schema=NO_RANGES)
    assert [line for line in text.splitlines() if "| FAILED |" in line and "NOT PRIVATE" not in line] == []


def test_a_table_with_a_schema_has_its_bounds_there(tmp_path):
    path = tmp_path / "people.csv"
    pd.DataFrame(TABLE).to_csv(path, index=False)
    given = {"schema": PARTIAL, "budget": BUDGETS["zcdp"], "seed": 3}
    found = dpci.regression.release(path, **given)
    assert found.targets == ("wage",)
    np.testing.assert_allclose(found.moments, dpci.regression.release(TABLE, **given).moments, rtol=1e-9)
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    for refused, message in (
        ({"bounds": (0, 1)}, "bounds must not be given with a schema"),
        ({"target_bound": (0, 9)}, "target_bound must not be given with a schema"),
        ({"target_bound": np.array([0.0, 9.0])}, "target_bound must not be given with a schema"),
        ({"rows": 2.0}, "rows must be those of the schema"),
        ({"schema": {"tenure": 3}}, "schema must be a dpci.schema.Schema"),
        ({"budget": dpci.GDP(0.5)}, "budget must be PureDP, ZCDP or ApproxDP"),
        ({"robust": [dpci.regression.Regression(features=["tenur"])]}, "tenur"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            dpci.regression.release(TABLE, **{**given, "seed": None, "ledger": ledger, **refused})
    assert ledger.history == ()
    dpci.regression.release(TABLE, **{**given, "seed": None, "ledger": ledger})
    assert [(entry.source, entry.budget) for entry in ledger.history] == [("dpci.regression.release", BUDGETS["zcdp"])]
