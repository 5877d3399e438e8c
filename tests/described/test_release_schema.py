"""Schemas that are released: bounds, files, ledgers, refusals."""

import dataclasses
import json
import pickle

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.described.bounds import outward
from dpci.schema import ClassTarget, NumericColumn, PartialSchema, UnboundedColumn, UnboundedTarget

RNG = np.random.default_rng(4)
N = 6000
TABLE = {
    "age": RNG.integers(18, 90, N).astype(float),
    "income": RNG.lognormal(10, 1, N),
    "spells": np.where(RNG.uniform(size=N) < 0.9, 0.0, RNG.exponential(20, N)),
    "ill": np.where(RNG.uniform(size=N) < 0.3, "yes", "no"),
    "id": np.arange(N) // 2,
}
COLUMNS = (
    UnboundedColumn(name="age", lower=0, upper=150, unit="year"),
    UnboundedColumn(name="income"),
    UnboundedColumn(name="spells", lower=0, upper=1e6, zeros=True),
)
TARGET = ClassTarget(column="ill", negative=("no",), positive=("yes",))
BUDGETS = {"pure": dpci.PureDP(0.5), "zcdp": dpci.ZCDP(0.05), "approx": dpci.ApproxDP(0.5, 1e-6)}


def partial(columns=COLUMNS, target=TARGET, **fields):
    return PartialSchema(columns=columns, target=target, **fields)


PARTIAL = partial()


def release(columns=COLUMNS, target=TARGET, **keywords):
    keywords = {"budget": BUDGETS["zcdp"], "seed": 1, **keywords}
    return dpci.release_schema(TABLE, schema=partial(columns, target), **keywords)


@pytest.mark.parametrize("notion", BUDGETS)
def test_bounds_hold_the_middle_of_each_column(notion):
    for seed in range(10):
        found = release(budget=BUDGETS[notion], seed=seed)
        for name, (lower, upper) in found.bounds.items():
            values = TABLE[name][TABLE[name] != 0.0]
            spread = np.subtract(*np.quantile(values, [0.98, 0.02]))
            outside = np.mean((values < lower) | (values > upper))
            # The share is of all records, of which a tenth has no 0 there: up to a third of those on either side.
            assert outside < (0.7 if name == "spells" else 0.3), (name, lower, upper)
            assert upper - lower < 3.0 * spread, (name, lower, upper)
        assert found.spent == BUDGETS[notion]


def test_a_released_schema_is_an_ordinary_one():
    found = release()
    assert found.schema.columns[0].unit == "year"
    assert found.schema.columns[1].source == "released at rho=0.05 (zCDP) for 3 columns together"
    fit = dpci.fit(TABLE, schema=found.schema, budget=dpci.ZCDP(0.5), l2_strength=0.01, seed=2)
    assert fit.names == ("age", "income", "spells", "intercept")


def test_what_is_known_costs_nothing_and_stays():
    known = NumericColumn(name="age", lower=0, upper=100)
    found = release(columns=(known, *COLUMNS[1:]))
    assert found.schema.columns[0] == known
    assert list(found.bounds) == ["income", "spells"]


@pytest.mark.parametrize("notion", BUDGETS)
def test_files_and_pickles_hold_all(notion):
    found = release(budget=BUDGETS[notion])
    for again in (dpci.ReleasedSchema.from_json(found.to_json()), pickle.loads(pickle.dumps(found))):
        assert again.to_json() == found.to_json()
        assert again.schema == found.schema
        assert again.digest == found.digest
    assert found.privacy["steps"][0]["step"] == "bounds"
    with pytest.raises(dpci.InvalidInput, match="damaged or was edited"):
        dpci.ReleasedSchema.from_json(found.to_json().replace('"share":', '"share": 0.03, "x":', 1))


def test_a_seed_repeats_a_release_and_threads_do_not_matter():
    assert dpci.threads(1)(release)().bounds == dpci.threads(2)(release)().bounds
    assert release().private is False
    assert "NOT PRIVATE" in release().summary()
    assert dpci.release_schema(TABLE, schema=PARTIAL, budget=BUDGETS["zcdp"]).private is True


def test_a_frame_is_a_mapping_of_columns():
    frame = pd.DataFrame(TABLE)
    found = dpci.release_schema(frame, schema=PARTIAL, budget=BUDGETS["zcdp"], seed=1)
    assert found.bounds == release().bounds


def test_the_ledger_pays_once_and_keeps_the_hash():
    ledger = dpci.Ledger(dpci.ZCDP(0.08))
    found = release(seed=None, ledger=ledger)
    (entry,) = ledger.history
    assert entry.source == "dpci.release_schema"
    assert ledger.models == {entry.number: found.digest}
    with pytest.raises(dpci.BudgetExceeded):
        release(seed=None, ledger=ledger)
    assert len(ledger.history) == 1


def test_private_errors_say_nothing_of_the_numbers():
    frame = pd.DataFrame({**TABLE, "income": np.full(N, np.nan)})
    ledger = dpci.Ledger(dpci.ZCDP(1.0), errors="private")
    keywords = {"schema": PARTIAL, "budget": BUDGETS["zcdp"], "ledger": ledger}
    with pytest.raises(dpci.ReleaseFailed):
        dpci.release_schema(frame, **keywords)
    assert len(ledger.history) == 1
    assert dpci.release_schema(pd.DataFrame(TABLE), **keywords).private


@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
def test_tables_have_a_known_number_of_rows_with_private_errors(kind):
    keywords = {"schema": PARTIAL, "budget": BUDGETS["zcdp"]}
    ledger = dpci.Ledger(dpci.ZCDP(1.0), errors="private")
    assert dpci.release_schema(kind(TABLE), ledger=ledger, **keywords).private
    for table, message in ((iter([TABLE]), "in memory"), ({"age": [1.0]}, "among 1 records")):
        with pytest.raises(dpci.InvalidInput, match=message):
            dpci.release_schema(table, ledger=ledger, **keywords)
    assert len(ledger.history) == 1


def test_tables_of_another_kind_are_refused_by_their_rule():
    for table in (iter([TABLE]), [1, 2], np.zeros((3, 2)), None):
        with pytest.raises(dpci.InvalidInput, match="a table must be a mapping of columns or a data frame"):
            dpci.release_schema(table, schema=PARTIAL, budget=BUDGETS["zcdp"])


def test_an_error_of_a_missing_value_names_the_way_and_all_columns():
    holes = {name: np.where(np.arange(N) == 7, np.nan, TABLE[name]) for name in ("age", "spells")}
    asks = 'missing="drop", which leaves its row out.*columns with missing values: age, spells$'
    for release in (dpci.release_schema, dpci.fit):
        with pytest.raises(dpci.InvalidInput, match=asks):
            release({**TABLE, **holes}, schema=PARTIAL, budget=dpci.ZCDP(0.5))
    first = {**TABLE, "age": holes["age"]}
    with pytest.raises(dpci.InvalidInput, match=r"or a number that stands for it; .*lists all such cells$"):
        dpci.release_schema(first, schema=PARTIAL, budget=dpci.ZCDP(0.5))


def test_missing_values_do_not_count_and_the_middle_stands_for_them():
    columns = tuple(dataclasses.replace(column, missing="middle") for column in COLUMNS)
    gaps = {name: RNG.uniform(size=N) < 0.5 for name in ("age", "income", "spells")}
    holes = {name: np.where(gap, np.nan, TABLE[name]) for name, gap in gaps.items()}
    holes["income"] = [None if gap else value for gap, value in zip(gaps["income"], TABLE["income"], strict=True)]
    table = {**TABLE, **holes}
    with pytest.raises(dpci.InvalidInput, match="a missing value"):
        dpci.release_schema(table, schema=PARTIAL, budget=BUDGETS["zcdp"])
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    found = dpci.release_schema(table, schema=partial(columns), budget=BUDGETS["zcdp"], ledger=ledger)
    rows, _, names = found.schema.transform(table)
    for j, name in enumerate(("age", "income", "spells")):
        lower, upper = found.bounds[name]
        present = TABLE[name][~gaps[name] & (TABLE[name] != 0.0)]
        assert np.mean((present >= lower) & (present <= upper)) > 0.6 or name == "spells"
        assert found.schema.columns[j].missing == 0.5 * (lower + upper)
        indicator = rows[:, names.index(f"{name}=missing")] > 0.0
        assert np.array_equal(indicator, gaps[name])
        assert np.allclose(rows[indicator, names.index(name)], 0.0, atol=1e-12)


def test_a_middle_after_a_transform_is_one_within_the_bounds():
    column = UnboundedColumn(name="x", transform="signed_log", missing="middle").bounded(0.0, np.e**2 - 1, source="")
    assert column.missing == pytest.approx(np.e - 1)
    with pytest.raises(dpci.InvalidInput, match="missing must be one of"):
        UnboundedColumn(name="x", missing=3.0)


def test_persons_move_a_bound_by_all_their_rows():
    one = release()
    of_persons = release(persons=dpci.Persons("id", max_rows=2))
    assert of_persons.privacy["unit"] == "person"
    assert of_persons.privacy["steps"][0]["scale"] == 2.0 * one.privacy["steps"][0]["scale"]
    assert of_persons.schema.persons == "id"
    with pytest.raises(dpci.InvalidInput, match="persons must have max_rows"):
        release(persons="id")


def test_add_remove_takes_a_public_number():
    found = release(neighbors=dpci.AddRemove(5000))
    assert (found.n_samples, found.privacy["relation"]) == (5000, "add_remove")


ODD = {
    "all equal": np.full(N, 7.0),
    "zeros": np.zeros(N),
    "two values": np.where(np.arange(N) % 2, 3.0, 4.0),
    "one far out": np.where(np.arange(N) == 5, 1e140, 1.0),
    "subnormal": np.full(N, 5e-324),
    "negative": -TABLE["income"],
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("known", [True, False])
def test_odd_columns_have_bounds(kind, known):
    extent = {"lower": -1e9, "upper": 1e9} if known else {}
    column = UnboundedColumn(name="x", **extent)
    found = dpci.release_schema(
        {"x": ODD[kind], "ill": TABLE["ill"]}, schema=partial((column,)), budget=BUDGETS["pure"], seed=3
    )
    lower, upper = found.bounds["x"]
    assert lower < upper
    if kind in {"all equal", "two values"}:
        assert lower <= 7.0 if kind == "all equal" else lower <= 4.0
        assert upper - lower < 100.0


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("known", [{}, {"lower": 0, "upper": 1e9}])
def test_bounds_on_a_logarithmic_scale_are_chosen_there(notion, known):
    # In the unit of the table they would be widened beyond 0, where the logarithm stretches.
    column = UnboundedColumn(name="income", transform="signed_log", missing="middle", **known)
    ends = np.log1p(np.quantile(TABLE["income"], [0.02, 0.98]))
    for seed in range(5):
        found = release((column,), budget=BUDGETS[notion], seed=seed)
        lower, upper = np.log1p(found.bounds["income"])
        assert ends[0] - 1.5 < lower < ends[0] + 1.0
        assert ends[1] - 1.0 < upper < ends[1] + 1.5
        assert np.log1p(found.schema.columns[0].missing) == pytest.approx((lower + upper) / 2)
    again = dpci.ReleasedSchema.from_json(found.to_json())
    assert again._record.logarithmic == ("income",)
    failed = [line for line in again.officer_report(schema=partial((column,))).splitlines() if "| FAILED |" in line]
    assert failed == ["| FAILED | its noise came from a seed: NOT PRIVATE |"]
    with pytest.raises(dpci.InvalidInput, match="logarithmic must name columns"):
        dataclasses.replace(found._record, logarithmic=())


@pytest.mark.parametrize("values", [*ODD.values(), -ODD["one far out"], np.full(N, 1e305), np.full(N, -1e17)])
def test_odd_columns_have_finite_bounds_on_a_logarithmic_scale(values):
    table = {"x": values, "ill": TABLE["ill"]}
    for known in ({}, {"lower": -1e9, "upper": 1e9}):
        schema = partial((UnboundedColumn(name="x", transform="signed_log", **known),))
        for seed in range(3):
            lower, upper = dpci.release_schema(table, schema=schema, budget=dpci.PureDP(0.05), seed=seed).bounds["x"]
            assert -1e300 <= lower < upper <= 1e300


def test_infinite_numbers_are_refused_before_anything_is_spent():
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    for far in (np.inf, -np.inf):
        table = {**TABLE, "income": np.where(np.arange(N) == 5, far, TABLE["income"])}
        with pytest.raises(dpci.InvalidInput, match="finite"):
            dpci.release_schema(table, schema=PARTIAL, budget=BUDGETS["zcdp"], ledger=ledger)
    assert ledger.history == ()


BAD = {
    "no gap": ({"columns": (NumericColumn(name="age", lower=0, upper=1),)}, "must have an UnboundedColumn"),
    "small budget": ({"budget": dpci.PureDP(1e-3)}, "at least 0[.].* for bounds of 3 columns among 6000"),
    "no columns": ({"columns": None}, "columns must be a sequence"),
    "generator": ({"columns": (column for column in COLUMNS)}, "columns must be a sequence"),
    "missing column": ({"columns": (UnboundedColumn(name="height"),)}, "height"),
    "text": ({"columns": (UnboundedColumn(name="id2"),)}, "id2"),
    "twice": ({"columns": (COLUMNS[0], COLUMNS[0])}, "name a column once"),
    "budget": ({"budget": 1.0}, "budget must be"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_choices_are_refused_before_anything_is_spent(kind):
    keywords, message = BAD[kind]
    ledger = dpci.Ledger(dpci.ZCDP(1.0) if kind != "small budget" else dpci.PureDP(1.0))
    with pytest.raises(dpci.InvalidInput, match=message):
        release(seed=None, ledger=ledger, **keywords)
    assert ledger.history == ()


def test_a_schema_without_gaps_is_refused():
    found = release()
    for other in (found.schema, None, "people.toml"):
        with pytest.raises(dpci.InvalidInput, match=r"schema must be a dpci\.schema\.PartialSchema"):
            dpci.release_schema(TABLE, schema=other, budget=BUDGETS["zcdp"])
    with pytest.raises(dpci.InvalidInput, match="describe the table by a PartialSchema"):
        dpci.schema.Schema(columns=COLUMNS, target=TARGET)


def test_schemas_with_gaps_are_read_from_files(tmp_path):
    lines = (
        'title = "People"\npersons = "id"\n[target]\ncolumn = "ill"\nnegative = "no"\npositive = "yes"\n'
        '[[columns]]\nkind = "unbounded"\nname = "income"\nmissing = "middle"\n'
        '[[columns]]\nkind = "numeric"\nname = "age"\nlower = 0\nupper = 120\n'
    )
    path = tmp_path / "people.toml"
    path.write_text(lines)
    found = PartialSchema.from_file(path)
    assert found.gaps == (UnboundedColumn(name="income", missing="middle"),)
    assert (found.title, found.persons, found.blank.names) == ("People", "id", ("income", "age", "income=missing"))
    assert PartialSchema.from_dict(found.to_dict()) == found == PartialSchema.from_dict(found.to_dict(defaults=True))
    path.write_text('formula = "ill ~ age + income + age:income"\n' + lines)
    with_model = PartialSchema.from_file(path)
    completed = with_model.completed({"income": (0.0, 9.0)}, {}, source="law")
    assert completed.names[:3] == ("age", "income", "age:income")
    assert PartialSchema.from_dict(with_model.to_dict()) == with_model
    for formula, message in (("ill ~ bs(income, df=5)", "a spline must be of a column with bounds"),
                             ("ill ~ age", "must have an UnboundedColumn")):  # fmt: skip
        path.write_text(f'formula = "{formula}"\n' + lines)
        with pytest.raises(dpci.InvalidInput, match=message):
            PartialSchema.from_file(path)
    with pytest.raises(dpci.InvalidInput, match="PartialSchema"):
        dpci.schema.Schema.from_file(path)


def test_bounds_of_the_target_are_released():
    target = UnboundedTarget(column="income", unit="euro")
    columns = (NumericColumn(name="age", lower=0, upper=120), COLUMNS[2])
    schema = partial(columns, target)
    found = dpci.release_schema(TABLE, schema=schema, budget=BUDGETS["zcdp"])
    assert list(found.bounds) == ["spells", "income"]
    assert found.schema.target.source == "released at rho=0.05 (zCDP) for 2 columns together"
    assert found.schema.target.unit == "euro"
    lower, upper = found.bounds["income"]
    assert 0.5 < np.mean((TABLE["income"] >= lower) & (TABLE["income"] <= upper)) < 1.0
    fit = dpci.fit(TABLE, schema=found.schema, budget=dpci.ZCDP(0.5), loss="squared")
    assert fit.names == ("age", "spells", "intercept")
    text = found.officer_report(schema=schema)
    assert "| FAILED |" not in text
    assert "missing values of `spells`, `income`" in text
    assert dpci.ReleasedSchema.from_json(found.to_json()).schema == found.schema
    with pytest.raises(dpci.InvalidInput, match="a missing value"):
        dpci.release_schema({**TABLE, "income": [None] * N}, schema=schema, budget=BUDGETS["zcdp"])
    for alone in (schema, partial(columns[:1], target), PartialSchema.from_formula("income ~ age", schema)):
        assert PartialSchema.from_dict(json.loads(json.dumps(alone.to_dict()))) == alone
        assert dpci.release_schema(TABLE, schema=alone, budget=BUDGETS["zcdp"]).bounds["income"]
    with pytest.raises(dpci.InvalidInput, match="describe the table by a PartialSchema"):
        dpci.schema.Schema(columns=columns[:1], target=target)
    with pytest.raises(dpci.InvalidInput, match="kind of the target must be"):
        PartialSchema.from_dict({**schema.to_dict(), "target": {"kind": "wide", "column": "income"}})
    with pytest.raises(dpci.InvalidInput, match="both be given or both be left out"):
        UnboundedTarget(column="income", lower=0.0)


def test_columns_without_bounds_follow_the_rules_of_those_with():
    with pytest.raises(dpci.InvalidInput, match="both be given or both be left out"):
        UnboundedColumn(name="x", lower=0)
    with pytest.raises(dpci.InvalidInput, match="lower"):
        UnboundedColumn(name="x", lower=2, upper=1)
    with pytest.raises(dpci.InvalidInput, match="scale"):
        UnboundedColumn(name="x", scale="wide")
    with pytest.raises(dpci.InvalidInput, match="finite numbers"):
        UnboundedColumn(name="x").numbers(["a", "b"])


def test_saved_releases_are_held_against_their_rules():
    found = release()
    record = found._record
    for change, message in (
        ({"ranges": {"ill": None}}, "ranges must name columns"),
        ({"ranges": {}}, "ranges must name columns"),
        ({"ranges": {**record.ranges, "age": (0.0, 20.0)}}, "must have bounds within its range"),
        ({"budget": dpci.ZCDP(0.06)}, "the source of"),
        ({"on_violation": "error"}, "and clip"),
        ({"share": 0.6}, "share must be"),
        ({"steps": ()}, "one or two steps"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            dataclasses.replace(record, **change)
    values = json.loads(found.to_json())
    assert values["schema"] == "dpci.ReleasedSchema"


@pytest.mark.parametrize(
    ("column", "bounds", "found"),
    [
        ({}, (14.0061, 73.9939), (14.0, 74.0)),
        ({}, (-1.234e9, 5.6789e9), (-1.24e9, 5.68e9)),
        ({}, (-5e-324, 1e-310), (-5e-324, 1e-310)),
        ({}, (1e9, 1e9 + 2e-7), (1e9, 1e9 + 2e-7)),
        ({"lower": 0, "upper": 5.603}, (0.0, 5.6023), (0.0, 5.603)),
        ({"transform": "signed_log"}, (0.01234, 123456.0), (0.0123, 124000.0)),
    ],
)
def test_bounds_have_few_digits_and_leave_out_no_more(column, bounds, found):
    assert outward(UnboundedColumn(name="a", **column), bounds) == pytest.approx(found, rel=1e-15)
