"""``Schema.check`` counts what the schema does, and agrees with what encoding then does."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from dpci.data.persons import numbered
from dpci.errors import InvalidInput
from dpci.schema import (
    CategoricalColumn,
    ClassTarget,
    NumericColumn,
    NumericTarget,
    PartialSchema,
    Schema,
    UnboundedColumn,
    UnboundedTarget,
    UnlistedColumn,
)

SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=20, upper=60),
        CategoricalColumn(name="sex", categories=("F", "M"), reference="F", unknown="zeros"),
        CategoricalColumn(name="ward", categories=("1", "2", "3"), unknown="error"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes", "probably")),
)
GOOD = {"age": [20, 60], "sex": ["F", "M"], "ward": [1, 2.0], "ill": ["no", "yes"]}


def findings(**columns):
    table = {**GOOD, **columns}
    return [(f.column, f.what, f.n_rows, f.refused, f.examples) for f in SCHEMA.check(table).findings]


ABSENT = [
    ("ward", "category without rows", 0, False, ("'3'",)),
    ("ill", "label without rows", 0, False, ("'probably'",)),
]


def test_what_is_found():
    assert findings() == ABSENT
    assert findings(age=[19, "99"])[:2] == [
        ("age", "below 20: moved to the bound", 1, False, ("'19'",)),
        ("age", "above 60: moved to the bound", 1, False, ("'99'",)),
    ]
    assert findings(age=["?", None])[:2] == [
        ("age", "missing: refused", 1, True, ("'None'",)),
        ("age", "not a finite number: refused", 1, True, ("'?'",)),
    ]
    # The mistake that gives zeros in every row.
    assert findings(sex=["Female", "Male"])[:2] == [
        ("sex", "in no category: zeros in all columns", 2, False, ("'Female'", "'Male'")),
        ("sex", "category without rows", 0, False, ("'F'", "'M'")),
    ]
    assert findings(ward=[1, 7])[0] == ("ward", "in no category: refused", 1, True, ("'7'",))
    found = SCHEMA.check({**GOOD, "age": ["18,0", None], "ward": [7, None]}).findings
    advice = {one.column: one.advice for one in found if one.refused}
    assert advice["age"].startswith("numbers need a decimal point")
    assert "pass decimal=','" in advice["age"]
    assert advice["ward"].startswith("correct it, add it to the public list, or")
    assert advice["ward"].endswith("or the category that it counts as")
    told = SCHEMA.check({**GOOD, "age": [30, None], "who": [1, 1]}, persons="who")
    assert 'the column needs missing="drop"' in repr(told)
    assert "a change of the schema after a look at the data needs the approver's consent" in repr(told)
    assert told.findings[-1].what == "1 person, at most 2 rows each: fit with persons='who'"
    clean = SCHEMA.check({**GOOD, "who": [1, 2]}, persons="who").findings[-1]
    assert (clean.what, clean.n_rows) == ("2 persons, one row each", 2)
    with pytest.raises(InvalidInput, match="the table must have the column 'whom'"):
        SCHEMA.check({**GOOD, "who": [1, 2]}, persons="whom")
    assert findings(ill=["no", "maybe"])[1] == ("ill", "of neither class: refused", 1, True, ("'maybe'",))


def test_it_says_that_it_is_not_private_and_whether_a_fit_would_be_refused():
    shown = repr(SCHEMA.check(GOOD))
    assert shown.startswith("NOT PRIVATE: 2 rows")
    assert shown.endswith("nothing would be refused")
    assert repr(SCHEMA.check({**GOOD, "ward": [1, 7]})).endswith("a fit would be refused")
    full = {"age": [30] * 3, "sex": ["F", "M", "F"], "ward": [1, 2, 3], "ill": ["no", "yes", "probably"]}
    assert repr(SCHEMA.check(full)).endswith("every value agrees with the schema")
    many = SCHEMA.check({**GOOD, "sex": list("abcdef"), "age": [30] * 6, "ward": [1] * 6, "ill": ["no"] * 6})
    assert many.findings[0].examples == ("'a'", "'b'", "'c'", "...")


def test_a_table_without_rows_would_be_refused():
    found = SCHEMA.check({name: [] for name in GOOD})
    assert found.refused
    assert repr(found).endswith("the table must have at least one row")


def test_a_column_that_is_missing_from_many_is_named_with_the_closest():
    wide = {f"field {i}": [1] for i in range(60)} | {"sexe": ["F"], "age": [30], "ward": [1]}
    with pytest.raises(InvalidInput, match=r"must have the column 'sex', got 63 columns, .* closest are \['sexe', "):
        SCHEMA.check(wide)


@pytest.mark.parametrize("seed", range(20))
def test_refused_is_what_encoding_refuses(seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.choice([20, 70, 30, None if seed % 3 else 40], 4),
            "sex": rng.choice(["F", "M", "x"], 4),
            "ward": rng.choice([1, 2, 3 + seed % 2], 4),
            "ill": rng.choice(["no", "yes", "perhaps" if seed % 4 == 1 else "probably"], 4),
        }
    )
    checked = SCHEMA.check(table)
    if checked.refused:
        with pytest.raises(InvalidInput):
            SCHEMA.transform(table)
    else:
        SCHEMA.transform(table)


def test_tables_and_numeric_targets():
    dosed = Schema(columns=SCHEMA.columns[:1], target=NumericTarget(column="dose", lower=0, upper=5))
    assert dosed.check({"age": [30]}).findings == ()  # the target need not be there
    (found,) = dosed.check({"age": [30], "dose": [9]}).findings
    assert (found.what, found.refused) == ("above 5: moved to the bound", False)
    with pytest.raises(InvalidInput, match="the table must have the column 'sex'"):
        SCHEMA.check({"age": [30]})
    with pytest.raises(InvalidInput, match="all columns must have equal length"):
        SCHEMA.check({**GOOD, "sex": ["F"]})


@pytest.mark.parametrize(
    ("ids", "gaps"),
    [
        (["a", "b"], 0),
        (["a", None], 1),
        (["a", " "], 1),
        ([1.0, float("nan")], 1),
        (pd.array([1, None], dtype="Int64"), 1),
        (np.array(["2020-01-01", "NaT"], dtype="M8[ns]"), 1),
        ([1, 2], 0),
    ],
)
def test_rows_without_an_id_are_found_as_fits_find_them(ids, gaps):
    named = dataclasses.replace(SCHEMA, persons="who")
    table = {**{name: [cells[0], cells[0]] for name, cells in GOOD.items()}, "who": ids}
    found = [f for f in named.check(table).findings if "without an id" in f.what]
    assert [f.n_rows for f in found] == [gaps] * bool(gaps)
    assert all(f.refused and not f.examples for f in found)
    if gaps:
        with pytest.raises(InvalidInput, match="id in every row"):
            numbered(ids, 2)
    else:
        numbered(ids, 2)
    # Where the table has none, as it may lack the target.
    assert not [f for f in named.check({name: [cells[0]] for name, cells in GOOD.items()}).findings if f.refused]


class _Failing:
    """A column of another library whose conversion fails."""

    def __array__(self, *_, **__):
        raise KeyError("boom")


@pytest.mark.parametrize("name", ["age", "ward", "ill"])
def test_columns_of_any_library_are_read_or_refused(name):
    cells = {"age": [30, 30], "ward": [1, 2], "ill": ["no", "yes"]}[name]
    for column in (pd.array(cells), pd.Series(cells).array):
        assert SCHEMA.transform({**GOOD, name: column}).X.tolist() == SCHEMA.transform({**GOOD, name: cells}).X.tolist()
    gap = pd.array([*cells[:-1], None], dtype="string" if name == "ill" else "Int64")
    for broken, message in ((gap, "<NA>|nan|None|missing"), (_Failing(), "whose conversion raises KeyError")):
        with pytest.raises(InvalidInput, match=message):
            SCHEMA.transform({**GOOD, name: broken})


def test_a_schema_with_gaps_is_checked_but_for_its_bounds():
    partial = PartialSchema(
        columns=(
            UnboundedColumn(name="age"),
            UnboundedColumn(name="income", lower=0, upper=1e6, missing="middle"),
            UnlistedColumn(name="town", categories=("north",), missing="none"),
            *SCHEMA.columns[1:],
        ),
        target=SCHEMA.target,
    )
    table = {**GOOD, "age": [19, "99"], "income": [5.0, 7.0], "town": ["north", "south"]}
    assert [(f.column, f.what) for f in partial.check(table).findings] == [
        ("town", "category without rows"),
        *[(column, what) for column, what, *_ in ABSENT],
    ]
    # Levels that are rare may count as "other", which needs no row of its own.
    assert partial.check(table).findings[0].examples == ("'none'",)
    found = partial.check({**table, "age": ["?", None], "income": [-1.0, math.nan], "ill": ["no", "maybe"]})
    assert found.refused
    assert [(f.column, f.what, f.n_rows) for f in found.findings if f.n_rows] == [
        ("age", "missing: refused", 1),
        ("age", "not a finite number: refused", 1),
        ("income", "missing: replaced by the middle of the bounds", 1),
        ("income", "below 0: counts as the end of the range", 1),
        ("ill", "of neither class: refused", 1),
    ]
    wages = PartialSchema(columns=SCHEMA.columns, target=UnboundedTarget(column="ill"))
    assert [f.what for f in wages.check(GOOD).findings][-1] == "not a finite number: refused"
    with pytest.raises(InvalidInput, match="must have the column 'income'"):
        partial.check(GOOD)
