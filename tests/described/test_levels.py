"""Released lists of categories: their law against an independent one, privacy by brute force, and what users meet."""

import dataclasses
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci import _core
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, PartialSchema, UnboundedColumn, UnlistedColumn
from support.core import specified

RNG = np.random.default_rng(6)
N = 6000
TABLE = {
    "age": RNG.uniform(18, 90, N),
    "ward": RNG.choice(["A", "B", "C", "D"], N, p=[0.5, 0.3, 0.15, 0.05]).astype(object),
    "ill": np.where(RNG.uniform(size=N) < 0.3, "yes", "no"),
    "id": np.arange(N) // 2,
}
TABLE["ward"][:3] = ["one", "two", "three"]
TARGET = ClassTarget(column="ill", negative=("no",), positive=("yes",))
BUDGET = dpci.ApproxDP(0.5, 1e-7)
pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")


def partial(*columns, **fields):
    return PartialSchema(columns=columns or (UnlistedColumn(name="ward"),), target=TARGET, **fields)


def release(schema=None, table=TABLE, **keywords):
    return dpci.release_schema(table, **{"schema": schema or partial(), "budget": BUDGET, **keywords})


def kept(count, epsilon, delta):
    """Return the probability that a level with so many rows is listed."""
    p = 0.0
    for _ in range(count):
        p = min(np.exp(epsilon) * p + delta, 1.0 - np.exp(-epsilon) * (1.0 - p - delta), 1.0)
    return p


def of_one_change(budget, *, sides, rows):
    """Return epsilon and delta of one change, of those that a record or a person makes."""
    epsilon = budget.epsilon / (sides * rows)
    return epsilon, budget.delta / (sides * sum(np.exp(i * epsilon) for i in range(rows)))


def law(counts, epsilon, delta):
    """Return the probability of each set of levels."""
    each = [kept(count, epsilon, delta) for count in counts]
    sets = itertools.product([0, 1], repeat=len(counts))
    return np.array([np.prod([p if x else 1.0 - p for x, p in zip(one, each, strict=True)]) for one in sets])


def changes(total, n_levels, rows):
    """Yield how counts change where up to ``rows`` rows leave and as many join, as ``total`` says."""
    moves = [each for each in itertools.product(range(rows + 1), repeat=n_levels) if sum(each) <= rows]
    for gone, new in itertools.product(moves, moves):
        if total == "add_remove" and any(gone):
            continue
        yield np.array(new) - np.array(gone)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("budget", [dpci.ApproxDP(1.0, 0.01), dpci.ApproxDP(3.0, 1e-4)], ids=["small", "large"])
def test_no_neighbouring_table_is_told_apart_beyond_epsilon_and_delta(rows, neighbors, budget):
    sides = 2 if neighbors == "replace_one" else 1
    one = of_one_change(budget, sides=sides, rows=rows)
    greatest = 0.0
    for counts in ([0, 3, 9], [1, 1, 0], [4, 12, 30], [60, 6, 2], [7, 0, 200]):
        first = law(counts, *one)
        for change in changes(neighbors, 3, rows):
            other = np.array(counts) + change
            if (other < 0).any():
                continue
            second = law(other.tolist(), *one)
            for p, q in ((first, second), (second, first)):
                greatest = max(greatest, np.maximum(p - np.exp(budget.epsilon) * q, 0.0).sum())
    assert greatest <= budget.delta * (1 + 1e-9)
    # The bound is used: a law of half this delta would be more private than it has to be.
    assert greatest > 0.45 * budget.delta


@pytest.mark.parametrize(("rows", "neighbors"), [(1, "replace_one"), (3, "add_remove")])
def test_releases_have_the_law(rows, neighbors):
    """Goodness of fit of the listed sets; false positives 1e-6."""
    budget = dpci.ApproxDP(1.5, 0.02)
    counts = [2, 11, 6, 300] if rows == 1 else [2, 8, 5, 300]
    codes = np.repeat(np.arange(4.0), counts)[:, None]
    # Each row is a person, so that all count.
    persons = np.arange(len(codes))
    unit = {} if rows == 1 else {"persons": True, "max_rows": rows}
    spec = specified(
        _core.LevelsSpec, n_columns=1, budget=_core.Budget.approx(budget.epsilon, budget.delta), neighbors=neighbors,
        **unit,
    )  # fmt: skip
    records = _core.Records(codes, np.zeros(len(codes)), persons=persons if unit else None)
    n_draws, found = 8_000, {}
    for seed in range(n_draws):
        (levels,) = _core.release_levels(spec, records, n_threads=1, seed=seed)
        found[tuple(levels)] = found.get(tuple(levels), 0) + 1
    sides = 2 if neighbors == "replace_one" else 1
    odds = law(counts, *of_one_change(budget, sides=sides, rows=rows))
    sets = [tuple(i for i, x in enumerate(one) if x) for one in itertools.product([0, 1], repeat=4)]
    expected = dict(zip(sets, odds, strict=True))
    common = [one for one, p in expected.items() if n_draws * p >= 10]
    rest = n_draws - sum(found.get(one, 0) for one in common)
    observed = [*(found.get(one, 0) for one in common), rest]
    known = [expected[one] for one in common]
    assert len(common) > 3
    assert stats.chisquare(observed, [n_draws * p for p in [*known, 1 - sum(known)]]).pvalue > 1e-6


def test_half_of_the_releases_list_a_level_of_the_count_that_the_summary_names():
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-6)):
        spec = specified(
            _core.LevelsSpec, n_columns=1, budget=_core.Budget.approx(epsilon, delta), neighbors="add_remove"
        )
        count = int(spec.half_count)
        assert kept(count - 2, epsilon, delta) < 0.5 < kept(count + 2, epsilon, delta)


def test_frequent_categories_are_listed_and_all_others_count_as_one():
    found = release()
    assert found.categories == {"ward": ("A", "B", "C", "D", "other")}
    assert found.bounds == {}
    assert found.share is None
    (column,) = found.schema.columns
    assert (column.other, column.reference, column.source) == ("other", None, f"released at {BUDGET}")
    rows, _, names = found.schema.transform(TABLE)
    assert names == ("ward=A", "ward=B", "ward=C", "ward=D", "ward=other")
    assert np.flatnonzero(rows[:, 4]).tolist() == [0, 1, 2]
    assert "categories with fewer than about" in found.summary()


def test_the_order_of_the_rows_does_not_matter():
    order = RNG.permutation(N)
    other = {name: values[order] for name, values in TABLE.items()}
    assert release(seed=1).schema == release(table=other, seed=1).schema
    assert dpci.threads(1)(release)(seed=1).schema == dpci.threads(2)(release)(seed=1).schema


def test_public_categories_and_missing_values():
    column = UnlistedColumn(name="ward", categories=("Z", "A"), reference="A", missing="none", other="rest")
    table = {**TABLE, "ward": TABLE["ward"].copy()}
    table["ward"][100:2000] = [None, "NA", ""][1]
    found = release(partial(column), table)
    assert found.categories == {"ward": ("Z", "A", "B", "C", "D", "none", "rest")}
    rows, _, names = found.schema.transform(table)
    assert rows[:, names.index("ward=none")].astype(bool).sum() == 1900
    # Without a category of their own they count as all others, however many they are.
    found = release(partial(), table)
    assert found.categories == {"ward": ("A", "B", "C", "D", "other")}
    rows, _, names = found.schema.transform(table)
    assert rows[:, names.index("ward=other")].astype(bool).sum() == 1903


@pytest.mark.parametrize("case", ["all different", "one", "numbers", "hostile"])
def test_odd_columns_have_a_list(case):
    values = {
        "all different": [f"{i:x}" for i in range(N)],
        "one": ["only"] * N,
        "numbers": [2, 2.0, "2"] * (N // 3),
        "hostile": ["</script>\x1b[31m", "other", "a=b", "x" * 500] * (N // 4),
    }[case]
    found = release(table={**TABLE, "ward": values})
    (listed,) = found.categories.values()
    expected = {
        "all different": ("other",),
        "one": ("only", "other"),
        "numbers": ("2", "other"),
        "hostile": ("</script>\x1b[31m", "a=b", "x" * 500, "other"),
    }[case]
    assert listed == expected
    assert "\x1b" not in found.summary()
    assert dpci.ReleasedSchema.from_json(found.to_json()).schema == found.schema


def test_a_fit_lists_the_categories_that_its_schema_lacks():
    schema = partial(
        UnboundedColumn(name="age", lower=0, upper=150), UnlistedColumn(name="ward", categories=("A",), reference="A")
    )
    budget = dpci.ApproxDP(2.0, 1e-6)
    both = dpci.fit(TABLE, schema=replace(schema, bounds_share=0.5), budget=budget, l2_strength=0.01, seed=3)
    assert both.names == ("age", "ward=B", "ward=C", "ward=D", "ward=other", "intercept")
    record = both._record
    first = release(schema, budget=record.released_bounds.budget, seed=3 ^ 0x5DEECE66D)
    assert first.schema == both.schema
    # The list has a quarter of epsilon, and all of delta.
    costs = [step["cost"] for step in first.privacy["steps"]]
    assert (sum(costs[:-1]), costs[-1]) == (0.75, 0.25)
    second = dpci.fit(TABLE, schema=first.schema, budget=record.own_budget, l2_strength=0.01, seed=3)
    assert np.array_equal(both.params, second.params)
    assert both.guarantee.delta(2.0) <= 1e-6
    alone = record.own_guarantee()
    assert both.guarantee.delta(1.5) == pytest.approx(float(alone.delta(0.5)) + 5e-7)
    assert both.guarantee.rdp(3.0) == np.inf
    assert dpci.PrivateFit.from_json(both.to_json()).to_json() == both.to_json()
    assert "bounds and categories  epsilon=1, delta=5e-07" in both.summary(full=True)


def test_persons_need_a_greatest_number_of_rows():
    of_persons = release(persons=dpci.Persons("id", max_rows=2))
    one = release()
    assert of_persons.privacy["steps"][0]["scale"] == pytest.approx(2 * one.privacy["steps"][0]["scale"])
    with pytest.raises(dpci.InvalidInput, match="persons must have max_rows"):
        release(persons="id")


@pytest.mark.parametrize("budget", [dpci.PureDP(1.0), dpci.ZCDP(0.5)], ids=str)
def test_a_list_needs_a_delta(budget):
    ledger = dpci.Ledger(budget)
    for call in (
        lambda: release(budget=budget, ledger=ledger),
        lambda: dpci.fit(TABLE, schema=partial(), budget=budget, l2_strength=0.1, ledger=ledger),
    ):
        with pytest.raises(dpci.InvalidInput, match="budget must be ApproxDP for an UnlistedColumn"):
            call()
    assert ledger.history == ()


def test_approvals_name_the_list_and_find_another_law():
    found = release(partial(UnboundedColumn(name="age"), UnlistedColumn(name="ward")), budget=dpci.ApproxDP(2.0, 1e-6))
    schema = partial(UnboundedColumn(name="age"), UnlistedColumn(name="ward"))
    text = found.officer_report(schema=schema)
    assert "| FAILED |" not in text
    assert "| categories released | `ward` |" in text
    assert (
        "seen, except the bounds of `age` and the categories of `ward`, which the release found within its budget"
        in text
    )
    record = found._record
    steps = (*record.steps[:-1], dataclasses.replace(record.steps[-1], scale=1.0))
    edited = dpci.ReleasedSchema(dataclasses.replace(record, steps=steps))
    assert "| FAILED | the noise must be that which the public choices in the file call for, scale of" in (
        edited.officer_report(schema=schema)
    )
    for change, message in (
        ({"listed": ()}, "one or two steps of their kind, and lists and counts"),
        ({"listed": ("age",)}, "got both in"),
        ({"listed": ("height",)}, "listed must name columns"),
        ({"share": None}, "None without bounds"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            dataclasses.replace(record, **change)


def test_schemas_are_read_from_dictionaries():
    schema = partial(UnlistedColumn(name="ward", categories=("A",), reference="A", missing="none"))
    again = PartialSchema.from_dict(json.loads(json.dumps(schema.to_dict(defaults=True))))
    assert again == schema
    assert schema.to_dict()["columns"][0]["kind"] == "unlisted"
    for wrong, message in (
        ({"reference": "B"}, "reference must be a category"),
        ({"categories": ("A", "A")}, "distinct"),
        ({"name": ""}, "non-empty"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            UnlistedColumn(**{"name": "ward", **wrong})


def test_a_category_can_stand_for_all_others():
    column = CategoricalColumn(name="ward", categories=("A", "B", "rest"), other="rest", unknown="error")
    assert column.encode(["A", "x", None, "rest"]).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]
    with pytest.raises(dpci.InvalidInput, match="other must be a category"):
        CategoricalColumn(name="ward", categories=("A",), other="rest")
    schema = dpci.schema.Schema(columns=(column, NumericColumn(name="age", lower=0, upper=99)), target=TARGET)
    check = schema.check(TABLE)
    assert not check.refused
    assert any(finding.what == "in no category: counted as rest" for finding in check.findings)
    plain = dataclasses.replace(column, other=None)
    assert schema.digest != dataclasses.replace(schema, columns=(plain, schema.columns[1])).digest
    # What came later does not change the digests of schemas without it.
    assert "other" not in dpci.schema.Schema(columns=(plain,), target=TARGET).to_dict()["columns"][0]
