"""Counts that are released after bounds: sensitivities by brute force, laws, budgets, intervals, what users meet."""

import dataclasses
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci import _core
from dpci.accounting.costs import steps_from
from dpci.described.counts import count_rows
from dpci.released.counts import N_BINS, NumberCounts, Share, cells_of_numbers, edges, half_width
from dpci.schema import ClassTarget, NumericTarget, PartialSchema, UnboundedColumn, UnboundedTarget, UnlistedColumn
from support.core import specified

RNG = np.random.default_rng(41)
N = 6000
TABLE = {
    "age": RNG.uniform(18, 90, N).round(3),
    "income": np.where(RNG.random(N) < 0.2, np.nan, RNG.lognormal(10, 1, N)),
    "town": RNG.choice(["north", "south", "west"], N, p=[0.6, 0.3, 0.1]),
    "id": np.arange(N) // 3,
}
TABLE["ill"] = np.where(TABLE["age"] / 30 + RNG.logistic(size=N) > 1.8, "yes", "no")
TARGET = ClassTarget(column="ill", negative=("no",), positive=("yes",))
AGE, INCOME = UnboundedColumn(name="age", lower=0, upper=150), UnboundedColumn(name="income", missing="middle")
TOWN = UnlistedColumn(name="town", categories=("north",), reference="north")
NUMBERS = PartialSchema(columns=(AGE, INCOME), target=TARGET, beyond_share=0.2, counts_share=0.3)
LISTS = replace(NUMBERS, columns=(AGE, INCOME, TOWN))
PURE, RHO, BOTH = dpci.PureDP(4.0), dpci.ZCDP(0.5), dpci.ApproxDP(4.0, 1e-6)
pytestmark = pytest.mark.filterwarnings("ignore::dpci.DpciWarning")


def release(schema=NUMBERS, table=TABLE, **keywords):
    return dpci.release_schema(table, **{"schema": schema, "budget": PURE, "seed": 1, **keywords})


def failures(text):
    """Return the failed lines of an approval, but that noise came from a seed."""
    return [line for line in text.splitlines() if line.startswith("| FAILED |") and "seed" not in line]


def counts_spec(n_columns, budget, neighbors="replace_one", max_rows=None):
    keywords = {} if max_rows is None else {"persons": True, "max_rows": max_rows}
    return specified(_core.CountsSpec, neighbors=neighbors, n_columns=n_columns, budget=budget, **keywords)


@pytest.mark.parametrize("most", [None, 1, 2])
def test_one_record_or_person_moves_counts_by_no_more_than_their_sensitivity(most):
    ages, incomes, towns = [-5.0, 20.0, 45.0, 200.0], [np.nan, 1.0, 50.0], ["north", "south", ""]
    schema = replace(LISTS, columns=(AGE, INCOME, replace(TOWN, missing="drop")))
    complete = schema.completed({"age": (10.0, 90.0), "income": (0.0, 9.0)}, {"town": ("south",)}, source="")
    kinds = list(itertools.product(ages, incomes, towns))
    rng = np.random.default_rng(7)

    def counts(rows, persons):
        cells = dict(zip(("age", "income", "town"), map(np.array, zip(*rows, strict=True)), strict=True))
        found = count_rows(schema, complete, cells, persons, most)
        return np.concatenate(found.cells), found.beyond

    # A record is a person with one row.
    rows_each, persons_each = (1 if most is None else 3), 4
    persons = None if most is None else np.repeat(np.arange(persons_each), rows_each)
    left = slice(rows_each, None)
    for _ in range(60):
        table = [kinds[i] for i in rng.integers(len(kinds), size=rows_each * persons_each)]
        before = counts(table, persons)
        removed = counts(table[left], None if persons is None else persons[left])
        other = [kinds[i] for i in rng.integers(len(kinds), size=rows_each)]
        replaced = counts(other + table[left], persons)
        for after, neighbors in ((removed, "add_remove"), (replaced, "replace_one")):
            moved = np.abs(after[0] - before[0]).astype(float)
            pure = counts_spec(3, _core.Budget.pure(1.0), neighbors, most).step
            zcdp = counts_spec(3, _core.Budget.zcdp(0.5), neighbors, most).step
            assert moved.sum() <= pure.sensitivity
            assert np.sqrt((moved**2).sum()) <= zcdp.sensitivity + 1e-12
            of_records = counts_spec(None, _core.Budget.pure(1.0), neighbors, most).step
            assert abs(after[1] - before[1]) <= of_records.sensitivity


@pytest.mark.parametrize(("budget", "law"), [("pure", "dlaplace"), ("zcdp", "norm")])
def test_noise_has_the_scale_of_the_step(budget, law):
    made = _core.Budget.pure(0.5) if budget == "pure" else _core.Budget.zcdp(0.01)
    spec = counts_spec(2, made)
    errors = np.array(_core.release_counts(spec, [1000] * 20_000, seed=3)) - 1000
    # Laplace noise of four counts over ε; a standard deviation of √(4/(2ρ)).
    assert spec.step.scale == (8.0 if law == "dlaplace" else 15.0)
    exact = stats.dlaplace(1.0 / 8.0) if law == "dlaplace" else None
    ends = np.arange(-60, 61)
    below = np.searchsorted(np.sort(errors), ends, side="right") / len(errors)
    expected = exact.cdf(ends) if exact is not None else stats.norm.cdf(ends + 0.5, scale=15.0)
    # Kolmogorov's statistic at 1e-6.
    assert np.abs(below - expected).max() < 2.7 / np.sqrt(len(errors))


def test_numbers_fall_into_cells():
    values = np.array([-1.0, 0.0, 0.49, 0.5, 9.99, 10.0, 10.1, np.nan, -0.0])
    found = cells_of_numbers(values, edges(0.0, 10.0))
    assert found.tolist() == [0, 1, 1, 2, 20, 20, 21, 22, 1]
    assert edges(0.1, 0.3)[[0, -1]].tolist() == [0.1, 0.3]
    logarithmic = edges(0.0, np.expm1(10.0), "signed_log")
    np.testing.assert_allclose(np.log1p(logarithmic), np.linspace(0.0, 10.0, N_BINS + 1), atol=1e-12)


def counted(values, step, lower=-2.0, upper=2.0):
    cells = np.bincount(cells_of_numbers(values, edges(lower, upper)), minlength=N_BINS + 3)
    return NumberCounts(lower=lower, upper=upper, range=None, counts=tuple(cells.tolist()), step=step)


@pytest.mark.parametrize("make", [lambda: _core.Budget.pure(0.2), lambda: _core.Budget.zcdp(0.005)])
def test_intervals_of_quantiles_and_shares_hold_the_table_s(make):
    values = np.random.default_rng(5).normal(size=800)
    spec = counts_spec(1, make())
    (step,) = steps_from([spec.step])
    exact = counted(values, step)
    truth = [np.sort(values)[int(np.ceil(p * len(values))) - 1] for p in (0.25, 0.5, 0.75)]
    outside, rows = (np.abs(values) > 2.0).mean(), [480, *[16] * 20]
    hits, n = np.zeros(5), 600
    for seed in range(n):
        noisy = replace(exact, counts=tuple(_core.release_counts(spec, list(exact.counts), seed=seed)))
        for i, p in enumerate((0.25, 0.5, 0.75)):
            value, lower, upper = noisy.quantile(p)
            hits[i] += lower <= truth[i] <= upper
            assert np.isfinite(value)
        share = noisy.beyond
        hits[3] += share.lower <= outside <= share.upper
        # The noise of many other cells moves a large share more than its own.
        found = _core.release_counts(spec, rows, seed=n + seed)
        common = Share.of_cells(found[:1], len(rows), sum(found), step)
        hits[4] += common.lower <= 0.6 <= common.upper
    assert (hits >= stats.binom.ppf(1e-6, n, 0.95)).all(), hits / n


def test_without_noise_quartiles_are_those_of_the_table():
    values = np.random.default_rng(6).normal(size=50_000)
    (step,) = steps_from([counts_spec(1, _core.Budget.pure(1000.0)).step])
    found = counted(values, step)
    for p in (0.25, 0.5, 0.75):
        value, lower, upper = found.quantile(p)
        assert abs(value - np.quantile(values, p)) < 0.03
        assert lower <= np.quantile(values, p) <= upper <= lower + 0.4 + 1e-9
    assert abs(found.beyond.share - (np.abs(values) > 2.0).mean()) < 1e-12


def test_ends_that_nothing_bounds_are_open():
    (step,) = steps_from([counts_spec(1, _core.Budget.pure(0.01)).step])
    found = NumberCounts(lower=0.0, upper=1.0, range=None, counts=(0,) * (N_BINS + 3), step=step)
    assert found.quantile(0.5)[1:] == (-np.inf, np.inf)
    assert replace(found, range=(-3.0, 4.0)).quantile(0.5)[1:] == (-3.0, 4.0)


@pytest.mark.parametrize(("schema", "budget"), [(NUMBERS, PURE), (NUMBERS, RHO), (NUMBERS, BOTH), (LISTS, BOTH)])
def test_costs_add_up_to_the_budget(schema, budget):
    found = release(schema, budget=budget)
    whole = next(iter(budget.parameters().values()))
    costs = {}
    for step in found._record.steps:
        costs[step.step] = costs.get(step.step, 0.0) + step.cost
    assert sum(costs.values()) == pytest.approx(whole, rel=1e-12)
    assert sum(costs.values()) <= whole * (1 + 1e-15)
    assert costs["records_beyond"] == pytest.approx(0.2 * whole)
    assert costs["column_counts"] == pytest.approx(0.3 * whole)
    assert found.spent == budget
    text = found.officer_report(schema=schema)
    assert not failures(text)
    assert "discrete noise on counts" in text


@pytest.mark.parametrize("budget", [PURE, RHO, BOTH])
@pytest.mark.parametrize("ridge", [None, 0.01])
def test_a_fit_counts_within_its_budget(budget, ridge):
    schema = LISTS if isinstance(budget, dpci.ApproxDP) else NUMBERS
    table = TABLE if ridge is None else {name: cells for name, cells in TABLE.items() if name != "id"}
    fit = dpci.fit(table, schema=schema, budget=budget, seed=1, **({} if ridge is None else {"l2_strength": ridge}))
    facts = fit.privacy["released_bounds"]
    assert [step["step"] for step in facts["steps"]][-2:] == ["records_beyond", "column_counts"]
    numeric = {column.name: column for column in fit.schema.columns if hasattr(column, "lower")}
    with np.errstate(invalid="ignore"):
        beyond = [(TABLE[name] < c.lower) | (TABLE[name] > c.upper) for name, c in numeric.items()]
    exact = int(np.any(beyond, axis=0).sum())
    step = next(step for step in fit._record.released_bounds.steps if step.step == "records_beyond")
    # Of all releases 5% are farther off, and this one is not.
    assert abs(facts["beyond"] - exact) <= half_width(step)
    assert "beyond bounds" in fit.summary(full=True)
    assert f"{facts['beyond'] / N:.1%}" in fit.summary(full=True)
    assert f"{facts['beyond'] / N:.1%}" in fit.to_html()
    assert not failures(text := fit.officer_report(schema=schema))
    assert f"{facts['beyond'] / N:.1%}" in text
    assert dpci.PrivateFit.from_json(fit.to_json()).digest == fit.digest
    if isinstance(budget, dpci.ApproxDP):
        assert float(fit.guarantee.delta(budget.epsilon)) <= budget.delta * (1 + 1e-9)


def test_a_regression_counts_within_its_budget():
    schema = replace(NUMBERS, target=UnboundedTarget(column="wage"))
    table = {**TABLE, "wage": RNG.normal(size=N) + TABLE["age"] / 10}
    matrix = dpci.regression.release(table, schema=schema, budget=BOTH, seed=2)
    assert "beyond bounds" in matrix.fit("wage").summary()
    assert not failures(matrix.officer_report(schema=schema))
    assert len(matrix.privacy["released_bounds"]["cells"]["wage"]) == N_BINS + 3


@pytest.mark.parametrize("target", [TARGET, UnboundedTarget(column="income")])
def test_the_most_common_category_is_a_reference_that_nobody_named(target):
    table = {**TABLE, "income": np.nan_to_num(TABLE["income"]), "one": np.arange(N)}
    columns = (UnlistedColumn(name="town"), UnlistedColumn(name="one"), AGE)
    schema = PartialSchema(columns=columns, target=target, counts_share=0.2)
    found = release(schema, table, budget=dpci.ApproxDP(8.0, 1e-6))
    town, one, _ = found.schema.columns
    assert town.reference == "north" == town.categories[int(np.argmax(found.counts.cells["town"]))]
    # No row has another category, and none has a column that no row would be in.
    assert (town.categories, town.other) == (("north", "south", "west"), "north")
    assert town.codes(np.array(["south", "east"])).tolist() == [1, 0]
    assert len(found.describe().columns[0].shares) == len(town.categories)
    # Nothing of a column without a common level is listed: its one category has no column.
    assert (one.categories, one.reference) == (("other",), "other")
    assert found.schema.names == ("town=south", "town=west", "age")
    assert not failures(found.officer_report(schema=schema))
    assert dpci.ReleasedSchema.from_json(found.to_json()).schema == found.schema
    keywords = {"loss": "squared"} if target is not TARGET else {}
    with_terms = PartialSchema.from_formula(f"{target.column} ~ town * age", replace(schema, columns=(TOWN, AGE)))
    assert release(with_terms, table, budget=dpci.ApproxDP(8.0, 1e-6)).schema.columns[0].other == "other"
    alone = replace(schema, columns=columns[1:2], target=TARGET)
    assert release(alone, table, budget=dpci.ApproxDP(8.0, 1e-6)).schema.names == ("one=other",)
    fit = dpci.fit(table, schema=schema, budget=dpci.ApproxDP(8.0, 1e-6), seed=1, **keywords)
    assert fit.names == ("town=south", "town=west", "age", "intercept")
    assert fit.interval_refusal is None
    assert not failures(fit.officer_report(schema=schema))
    if keywords:
        with pytest.raises(dpci.InvalidInput, match="need a reference category"):
            dpci.fit(table, schema=replace(schema, counts_share=None), budget=BOTH, **keywords)


def test_counts_cost_a_joint_fit_no_more_than_they_say():
    without = replace(LISTS, beyond_share=None, counts_share=None, bounds_share=0.1)
    found = {share: dpci.fit(TABLE, schema=schema, budget=BOTH, seed=1) for share, schema in
             ((0.0, without), (0.5, replace(without, beyond_share=0.2, counts_share=0.3)))}  # fmt: skip
    # What bounds lose, the fit does not get: counts add up, whereas bounds and noise have one profile.
    assert found[0.5]._record.own_budget.epsilon < found[0.0]._record.own_budget.epsilon


def test_parts_have_the_counts_of_the_table_in_memory():
    ends = [0, 3, 3, 999, 3000, N]
    parts = [({name: cells[a:b] for name, cells in TABLE.items()}, None) for a, b in itertools.pairwise(ends)]
    persons = dpci.Persons("id", max_rows=2)
    for keywords in ({}, {"persons": persons}):
        whole = release(LISTS, budget=BOTH, **keywords)
        found = release(LISTS, dpci.Chunks(parts), budget=BOTH, **keywords)
        assert found.counts == whole.counts
        assert found.digest == whole.digest


def test_persons_are_counted_once():
    # Of each of 20 persons three rows, of which one counts; all others are alike.
    table = {**TABLE, "age": np.where(np.arange(N) < 60, 149.0, 50.0)}
    schema = replace(NUMBERS, columns=(AGE,), counts_share=None, beyond_share=0.5)
    found = release(schema, table, budget=dpci.PureDP(1000.0), persons=dpci.Persons("id", max_rows=3))
    assert found.bounds["age"][1] < 149.0
    assert abs(found.counts.beyond - 20) <= 6
    assert found.describe().units == "persons"


def test_descriptions_have_what_a_first_table_needs():
    found = release(LISTS, budget=dpci.ApproxDP(8.0, 1e-6))
    description = found.describe()
    age, income, town, ill = description.columns
    for column, values in ((age, TABLE["age"]), (income, TABLE["income"])):
        assert len(column.counts) == N_BINS
        for p, quartile in zip((0.25, 0.5, 0.75), column.quartiles, strict=True):
            assert quartile.lower <= np.nanquantile(values, p) <= quartile.upper
    assert age.missing is None
    assert income.missing.lower <= 0.2 <= income.missing.upper + 0.01
    exact = [(TABLE["town"] == name).sum() for name in town.categories]
    assert np.abs(np.array(town.counts) - exact).max() <= 2 * town.count_error
    assert (ill.counts, ill.quartiles) == ((), ())
    text = description.summary()
    for words in ("median", "first quartile", "beyond bounds", "north", "rows"):
        assert words in text
    page = found.to_html(title="Table one")
    assert page == description.to_html(title="Table one")
    assert '<h1 dir="auto">Table one' in page
    assert page.count("<svg") == 3
    assert page.count("<rect") == 2 * N_BINS + len(town.categories)
    json.dumps(description.to_dict(), allow_nan=False)
    assert dpci.ReleasedSchema.from_json(found.to_json()).describe() == description


def test_descriptions_without_counts_have_none():
    found = release(replace(NUMBERS, beyond_share=None, counts_share=None))
    assert found.counts is None
    assert found.describe().beyond is None
    assert "median" not in found.describe().summary()


def test_hostile_names_stay_text():
    name = "<script>alert(1)</script>"
    schema = replace(LISTS, columns=(UnboundedColumn(name=name), TOWN))
    page = release(schema, {**TABLE, name: TABLE["age"]}, budget=BOTH).describe().to_html()
    assert "<script" not in page


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"beyond_share": 0.5, "counts_share": 0.5}, "add up to less than 1"),
        ({"beyond_share": 1.0}, "beyond_share must be > 0 and < 1"),
        ({"counts_share": "much"}, "counts_share"),
        ({"columns": (TOWN,), "counts_share": None}, "requires a column or target without bounds"),
    ],
)
def test_shares_that_leave_nothing_are_refused(fields, words):
    with pytest.raises(dpci.InvalidInput, match=words):
        replace(NUMBERS, **fields)


def test_shares_are_saved_with_the_schema():
    assert PartialSchema.from_dict(NUMBERS.to_dict()) == NUMBERS


def test_a_schema_with_too_little_left_for_bounds_is_refused_before_anything_is_paid():
    ledger = dpci.Ledger(PURE)
    with pytest.raises(dpci.InvalidInput, match="epsilon must be at least"):
        release(replace(NUMBERS, counts_share=0.7999), seed=None, budget=dpci.PureDP(0.3), ledger=ledger)
    assert ledger.remaining == PURE


def test_records_whose_counts_contradict_each_other_are_refused():
    record = release()._record
    cells = dict(record.counts.cells)
    for counts in (
        replace(record.counts, cells={**cells, "age": cells["age"][:-1]}),
        replace(record.counts, cells={"age": cells["age"]}),
    ):
        with pytest.raises(dpci.InvalidInput):
            dataclasses.replace(record, counts=counts)
    for fields in ({"beyond": None}, {"cells": {}}, {"beyond_share": 0.9}):
        with pytest.raises(dpci.InvalidInput):
            replace(record.counts, **fields)
    with pytest.raises(dpci.InvalidInput):
        dataclasses.replace(record, counts=None)


def test_an_approval_finds_counts_with_less_noise():
    found = release()
    steps = tuple(replace(s, scale=s.scale / 2) if s.step == "column_counts" else s for s in found._record.steps)
    text = dpci.ReleasedSchema(dataclasses.replace(found._record, steps=steps)).officer_report(schema=NUMBERS)
    assert failures(text)


def test_plans_say_how_well_counts_are_known():
    plan = dpci.plan(n_samples=N, schema=NUMBERS, budget=PURE)
    assert [step.step for step in plan.bounds.steps][-2:] == ["records_beyond", "column_counts"]
    text = plan.summary()
    assert "number known to" in text
    assert "each known to" in text
    numbers = replace(NUMBERS, columns=(AGE,), target=NumericTarget(column="wage", lower=0, upper=9))
    assert "each known to" in dpci.plan(n_samples=N, schema=numbers, budget=BOTH, loss="squared").summary()


@pytest.mark.parametrize(("scheduler", "persons"), [("threads", None), ("processes", dpci.Persons("id", max_rows=2))])
def test_dask_frames_have_the_bounds_lists_and_counts_of_the_table_in_memory(scheduler, persons):
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = dd.from_pandas(pd.DataFrame(TABLE), npartitions=4)
    whole = release(LISTS, budget=BOTH, persons=persons)
    with dask.config.set(scheduler=scheduler, num_workers=1):
        assert release(LISTS, frame, budget=BOTH, persons=persons).digest == whole.digest
