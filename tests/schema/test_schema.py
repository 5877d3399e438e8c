"""Public schemas: what they make of a table, the tightest domain of every row, and their errors."""

import dataclasses
import json
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpci
from dpci.errors import DpciError, InvalidInput
from dpci.rows import Blocks
from dpci.schema import (
    CategoricalColumn,
    CategoricalTarget,
    ClassTarget,
    NumericColumn,
    NumericTarget,
    Schema,
    UnlistedColumn,
)

AGE = NumericColumn(name="age", lower=20, upper=60)
SEX = CategoricalColumn(name="sex", categories=("F", "M"), reference="F", unknown="zeros")
WARD = CategoricalColumn(name="ward", categories=("1", "2"), unknown="zeros")
TARGET = ClassTarget(column="ill", negative=("no",), positive=("yes", "probably"))
SCHEMA = Schema(columns=(AGE, SEX, WARD), target=TARGET)
TABLE = {
    "age": [20, 40, 60, 99],
    "sex": ["M", "F", " M ", None],
    "ward": [1, 2.0, "2", 7],
    "ill": ["no", "yes", "probably", "no"],
    "ignored": [object()] * 4,
}
EXPECTED = np.array([[-1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 0]]) / math.sqrt(3)


def schema_of(**columns: object) -> Schema:
    return Schema.from_dict(
        {"target": {"column": "t", "negative": 0, "positive": 1}, "columns": [{"name": "a", **columns}]}
    )


def test_transform() -> None:
    X, y, names = SCHEMA.transform(TABLE)
    assert names == ("age", "sex=M", "ward=1", "ward=2") == SCHEMA.names
    np.testing.assert_allclose(X, EXPECTED, rtol=1e-11)
    assert y.tolist() == [-1, 1, 1, -1]
    assert X.dtype == np.float64
    assert X.flags.c_contiguous


def test_text_frame_and_records_give_the_same_rows() -> None:
    text = {name: [str(cell) for cell in column] for name, column in TABLE.items()}
    frame = pd.DataFrame(TABLE)
    records = np.array([(20, "M", 1, "no")], dtype=[("age", "i4"), ("sex", "U1"), ("ward", "f8"), ("ill", "U8")])
    for table in (text, frame):
        np.testing.assert_array_equal(SCHEMA.features(table), SCHEMA.features(TABLE))
    np.testing.assert_array_equal(SCHEMA.features(records), SCHEMA.features(TABLE)[:1])
    # What happens to one row does not depend on the others.
    np.testing.assert_array_equal(SCHEMA.features(frame.iloc[2:3]), SCHEMA.features(TABLE)[2:3])


def test_an_empty_table_gives_no_rows() -> None:
    X, y, _ = SCHEMA.transform({name: [] for name in TABLE})
    assert X.shape == (0, 4)
    assert y.shape == (0,)


def test_scales_and_transform() -> None:
    unit = NumericColumn(name="a", lower=0, upper=10, scale="unit").encode([-5, 5, 20])
    np.testing.assert_allclose(unit[:, 0], [0, 0.5, 1])
    log = NumericColumn(name="a", lower=-99, upper=99, transform="signed_log").encode([-99, 0, 9, 99])
    np.testing.assert_allclose(log[:, 0], [-1, 0, 0.5, 1])
    target = NumericTarget(column="dose", lower=0, upper=100)
    np.testing.assert_allclose(target.encode([0, 25, 300]), [-1, -0.5, 1])


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(finite, finite, st.text(max_size=3), st.sampled_from(["x", "y", "z", ""])), min_size=1))
def test_no_row_ever_exceeds_the_bound(rows: list[tuple[float, float, str, str]]) -> None:
    schema = Schema(
        columns=(
            NumericColumn(name="a", lower=-0.1, upper=0.2),
            NumericColumn(name="b", lower=-7e300, upper=3e300, transform="signed_log"),
            CategoricalColumn(name="c", categories=("x", "0"), unknown="zeros"),
            CategoricalColumn(name="d", categories=("x", "y", "z"), reference="z", unknown="zeros"),
        ),
        target=TARGET,
    )
    X = schema.features(dict(zip("abcd", zip(*rows, strict=True), strict=True)))
    assert np.isfinite(X).all()
    assert np.linalg.norm(X, axis=1).max() <= 1.0
    assert math.sqrt(max(math.fsum(v * v for v in row) for row in X.tolist())) <= 1.0


def test_the_bound_is_reached() -> None:
    X = SCHEMA.features({"age": [60], "sex": ["M"], "ward": [1]})
    assert SCHEMA.row_norm == 1.0
    assert 1.0 - 1e-11 < np.linalg.norm(X) <= 1.0


def test_round_trips(tmp_path) -> None:
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA.to_dict()), encoding="utf-8")
    assert Schema.from_file(file) == SCHEMA
    # As editors of Windows begin a file.
    file.write_text(json.dumps(SCHEMA.to_dict()), encoding="utf-8-sig")
    assert Schema.from_file(file) == SCHEMA
    numeric = Schema(columns=(AGE,), target=NumericTarget(column="dose", lower=0, upper=1, scale="unit"), title="t")
    assert Schema.from_dict(numeric.to_dict()) == numeric
    assert hash(SCHEMA) == hash(Schema.from_file(file))


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        ("age", [20, math.nan, 3, 4], r"column 'age' must hold finite numbers, got nan in row 1"),
        ("age", [20, 30, math.inf, 4], r"got inf in row 2"),
        ("age", ["20", "?", "3", "x"], r"column 'age' must hold finite numbers, got '\?' in row 1"),
        ("age", [20, None, 3, 4], r"got None in row 1"),
        # Python reads 40, where the table has a slip of the finger.
        ("age", ["20", "4_0", "3", "4"], r"finite numbers, got '4_0' in row 1"),
        ("age", np.array([20, "4_0", "3", 4], dtype=object), r"finite numbers, got '4_0' in row 1"),
        ("age", [20, 1 + 2j, 3, 4], r"got \(20\+0j\) in row 0"),
        ("age", np.array(["2020-01-01"] * 4, dtype="M8[D]"), r"finite numbers"),
        ("age", [20, 30], r"equal length, got 4 in 'sex' and 2 before it"),
        ("ill", ["no"], r"equal length, got 1 in 'ill' and 4 before it"),
        ("ill", ["no", "yes", "perhaps", "no"], r"column 'ill' must hold one of .*, got 'perhaps' in row 2"),
        ("sex", [b"M", b"F", b"M", None], r"must be text or numbers, got bytes b'[MF]': decode the column"),
        ("sex", np.array([b"M", b"F", b"M", b""]), r"got bytes b'[MF]?': decode the column"),
        ("ill", np.array([b"no"] * 4, dtype=object), r"got bytes b'no': decode the column"),
        ("age", [[1, 2]] * 4, r"column 'age' must be one-dimensional, got shape \(4, 2\)"),
        *(
            ("age", np.array([1, 2, 3, 4], kind), r"column 'age' must hold finite numbers, got dtype " + kind[:9])
            for kind in ("datetime64[ns]", "datetime64[D]", "timedelta64[ns]")
        ),
    ],
)
def test_bad_cells(column: str, cells: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        SCHEMA.transform({**TABLE, column: cells})


def test_missing_column_and_no_table() -> None:
    with pytest.raises(InvalidInput, match=r"must have the column 'ward', got \['age', 'sex'\]"):
        SCHEMA.features({"age": [1], "sex": ["M"]})
    with pytest.raises(InvalidInput, match="mapping of columns or a data frame, got list"):
        SCHEMA.features([[1, 2]])
    with pytest.raises(InvalidInput, match="mapping of columns or a data frame, got ndarray"):
        SCHEMA.features(np.zeros((2, 2)))


def test_refusals_that_the_schema_asks_for() -> None:
    strict = schema_of(kind="numeric", lower=0, upper=1, outside="error")
    with pytest.raises(InvalidInput, match=r"column 'a' must lie in \[0, 1\], got 2 in row 1"):
        strict.features({"a": [1, 2]})
    known = schema_of(kind="categorical", categories=["x"], unknown="error")
    with pytest.raises(InvalidInput, match=r"column 'a' must hold one of \['x'\], got 'y' in row 1"):
        known.features({"a": ["x", "y"]})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "numeric", "lower": 1, "upper": 1}, "lower must be below upper, got lower=1, upper=1"),
        ({"kind": "numeric", "lower": 2, "upper": 1}, "lower must be below upper"),
        ({"kind": "numeric", "lower": math.nan, "upper": 1}, "bounds must be finite numbers, got nan"),
        ({"kind": "numeric", "lower": 0, "upper": math.inf}, "bounds must be finite numbers, got inf"),
        ({"kind": "numeric", "lower": "0", "upper": 1}, "bounds must be finite numbers, got '0'"),
        ({"kind": "numeric", "lower": 0, "upper": True}, "bounds must be finite numbers, got True"),
        ({"kind": "numeric", "lower": -1.7e308, "upper": 1.7e308}, "upper - lower must be finite"),
        (
            {"kind": "numeric", "lower": "1.2.2010", "upper": 1, "since": "2010-01-01"},
            "numbers or days such as 2024-05",
        ),
        ({"kind": "numeric", "lower": 0}, r"column 'a' must have \['upper'\]"),
        ({"kind": "numeric", "lower": 0, "upper": 1, "scale": "max"}, "scale must be one of"),
        ({"kind": "numeric", "lower": 0, "upper": 1, "transform": "log"}, "transform must be one of"),
        ({"kind": "numeric", "lower": 0, "upper": 1, "outside": 3}, "outside must be one of"),
        ({"kind": "numeric", "lower": 0, "upper": 1, "mean": 3}, r"may have the fields .*, got \['mean'\]"),
        ({"kind": "text"}, "kind of column 'a' must be one of"),
        ({}, "kind of column 'a' must be one of"),
        ({"kind": "categorical"}, r"must have \['categories'\]"),
        ({"kind": "categorical", "categories": []}, "at least one, got"),
        ({"kind": "categorical", "categories": "x, y"}, "column 'a': categories must be a list, got 'x, y'"),
        ({"kind": "categorical", "categories": ["x", "x "]}, "categories must be distinct"),
        ({"kind": "categorical", "categories": ["x", "y"], "reference": "z"}, "reference must be a category, got 'z'"),
        ({"kind": "categorical", "categories": ["x"], "reference": "x"}, "a category besides the reference"),
        ({"kind": "categorical", "categories": ["x"], "unknown": "mode"}, "unknown must be one of"),
        ({"kind": "numeric", "lower": 0, "upper": 1, "name": ""}, "name must be a non-empty string, got ''"),
        ({"kind": "numeric", "lower": 0, "upper": 1, "name": "t"}, r"a column once, target included, got \['t'\]"),
    ],
)
def test_bad_columns(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        schema_of(**fields)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({}, "must have 'target'"),
        ({"target": {"column": "t", "negative": 0, "positive": 1}}, "must have 'columns'"),
        ({"target": 3, "columns": []}, "the target must be a table of fields, got 3"),
        ({"target": {"column": "t", "negative": 0, "positive": 1}, "columns": []}, "at least one column"),
        ({"target": {"column": "t", "negative": 0, "positive": 1}, "columns": "a"}, "columns must be a list"),
        ({"target": {"column": "t", "negative": 0, "positive": 1}, "columns": [3]}, "a column must be a table"),
        (
            {"target": {"column": "t", "negative": 1, "positive": [1, 2]}, "columns": []},
            "label must belong to one class",
        ),
        ({"target": {"column": "t", "negative": 1}, "columns": []}, r"the target must have \['positive'\]"),
        ({"target": {"column": "t", "negative": 0, "positive": 1}, "columns": [], "rows": 3}, r"got \['rows'\]"),
        (3, "a schema must be a table of fields"),
    ],
)
def test_bad_descriptions(description: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Schema.from_dict(description)


def test_bad_files(tmp_path) -> None:
    (tmp_path / "bad.toml").write_text("a = = 3", encoding="utf-8")
    (tmp_path / "bad.json").write_text("[1, 2]", encoding="utf-8")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\xfa")
    for name, message in [
        ("bad.toml", "valid TOML"),
        ("bad.json", "table of fields"),
        ("bytes.json", "encoded as UTF-8, got byte 0xff in line 1 of .*save it as UTF-8"),
        ("none.toml", "must be readable"),
        ("schema.yaml", "must end in .toml or .json"),
    ]:
        with pytest.raises(InvalidInput, match=message) as caught:
            Schema.from_file(tmp_path / name)
        assert isinstance(caught.value, DpciError)


@pytest.mark.parametrize(
    ("values", "others"),
    [
        ([0.0, 0.0], [-0.0]),
        (["0", "1"], ["x" * 1000]),
        ([2**60, 2**60 + 1], [None, float("nan"), "x", 0.5, True]),
        ([True, False], [None, float("nan"), 2, "x"]),
        ([1.5, 2.0], [None, 1, True, "x"]),
    ],
    ids=str,
)
def test_no_value_decides_how_another_is_encoded(values, others):
    categories = ("0", "1", str(2**60), str(2**60 + 1), "True", "False", "1.5", "2")
    column = CategoricalColumn(name="c", categories=categories, unknown="zeros")
    alone = column.encode(values)
    assert alone.sum() == len(values)
    for other in others:
        for listed in ([*values, other], [other, *values]):
            for kind in (list, tuple):
                found = column.encode(kind(listed))
                np.testing.assert_array_equal(found[1:] if listed[0] is other else found[:-1], alone)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_codes_of_frames_beside_a_missing_one(library):
    module = pytest.importorskip(library)
    codes = [2**60, 2**60 + 1, None]
    frame = {
        "pandas": lambda: module.DataFrame({"c": module.array(codes, dtype="Int64"), "y": [0, 1, 1]}),
        "polars": lambda: module.DataFrame({"c": codes, "y": [0, 1, 1]}),
        "pyarrow": lambda: module.table({"c": codes, "y": [0, 1, 1]}),
    }[library]()
    column = CategoricalColumn(name="c", categories=(str(2**60), str(2**60 + 1)), unknown="zeros")
    schema = Schema(columns=(column,), target=ClassTarget(column="y", negative=("0",), positive=("1",)))
    np.testing.assert_array_equal(schema.features(frame) > 0, [[True, False], [False, True], [False, False]])


def test_bounds_that_a_transform_makes_equal_are_refused():
    with pytest.raises(InvalidInput, match="differ after the transform"):
        NumericColumn(name="a", lower=1e300, upper=float(np.nextafter(1e300, np.inf)), transform="signed_log")


@pytest.mark.parametrize("nan", [np.float32("nan"), Decimal("nan"), np.datetime64("NaT", "D")])
def test_missing_cells_of_any_type_have_the_stand_in(nan):
    column = NumericColumn(name="a", lower=0.0, upper=1.0, missing=0.5)
    filled, plain = (column.numbers(np.array([0.25, cell], dtype=object)) for cell in (nan, None))
    np.testing.assert_array_equal(filled, plain)


COLUMNS = (
    NumericColumn(name="age", lower=20, upper=60),
    CategoricalColumn(name="ward", categories=("A", "B", "C"), unknown="zeros"),
    CategoricalColumn(name="sex", categories=("F", "M"), reference="F", unknown="zeros"),
    NumericColumn(name="pay", lower=0, upper=1e6, scale="unit", transform="signed_log"),
    CategoricalColumn(name="job", categories=("x", "y", "z", "w"), reference="z", unknown="zeros"),
)
NORMED = Schema(columns=COLUMNS, target=ClassTarget(column="ill", negative=("no",), positive=("yes",)))
WHOLE = dataclasses.replace(NORMED, encoding="full_range")
CELLS = {
    "age": [20, 40, 60, 99],
    "ward": ["A", "B", "C", "?"],
    "sex": ["M", "F", "M", "F"],
    "pay": [0, 1e6, 999, 0],
    "job": ["z", "x", "w", "y"],
}
GROUPS = [(range(1, 4), 1.0), (range(6, 9), 1.0)]


def test_the_whole_range_is_one_unit():
    expected = [
        [-0.5, 1, 0, 0, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 1, 1, 0, 0],
        [0.5, 0, 0, 1, 1, math.log(1000) / math.log1p(1e6), 0, 0, 1],
        [0.5, 0, 0, 0, 0, 0, 0, 1, 0],
    ]
    np.testing.assert_allclose(WHOLE.features(CELLS), expected, rtol=1e-15)
    assert WHOLE.names == NORMED.names
    np.testing.assert_allclose(WHOLE.features(CELLS) * WHOLE.divisors, NORMED.features(CELLS) * NORMED.divisors)
    assert WHOLE.rows == Blocks([0.5, 1.0, 1.0], groups=GROUPS)
    assert WHOLE.row_norm == pytest.approx(math.sqrt(4.25))
    assert WHOLE.row_scale == 1.0


def test_unit_norm_is_as_it_was():
    bound = 1.0 / NORMED.row_scale
    assert NORMED.encoding == "unit_norm"
    assert NORMED.row_norm == 1.0
    assert NORMED.rows == Blocks([bound] * 3, groups=[(columns, bound) for columns, _ in GROUPS])
    assert 1.0 - 1e-11 < NORMED.rows.norm <= 1.0
    assert set(NORMED.divisors) == {NORMED.row_scale}


words = st.sampled_from(["A", "B", "C", "F", "M", "x", "y", "z", "w", ""])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(finite, words, words, finite, words), min_size=1))
def test_every_row_is_inside(rows):
    table = dict(zip(CELLS, zip(*rows, strict=True), strict=True))
    for schema in (NORMED, WHOLE):
        X, domain = schema.features(table), schema.rows
        for block, bound in enumerate(domain.block_bounds):
            columns = [j for j, member in enumerate(domain.members) if member == block]
            assert max(map(math.fsum, np.abs(X[:, columns]).tolist())) <= bound
        np.testing.assert_allclose(dpci.lowlevel.checked_rows(X, rows=domain), X, rtol=1e-12)


@pytest.mark.parametrize("schema", [NORMED, WHOLE], ids=lambda schema: schema.encoding)
def test_every_bound_is_reached(schema):
    X, domain = np.abs(schema.features(CELLS)), schema.rows
    found = [X[:, np.array(domain.members) == block].sum(axis=1).max() for block in range(len(domain.block_bounds))]
    assert found == list(domain.block_bounds)


def test_the_encoding_is_part_of_the_schema():
    assert Schema.from_dict(WHOLE.to_dict()) == WHOLE != NORMED
    assert WHOLE.to_dict()["encoding"] == "full_range"
    assert "encoding" not in NORMED.to_dict()
    with pytest.raises(InvalidInput, match="encoding must be one of 'unit_norm', 'full_range', got encoding='none'"):
        dataclasses.replace(NORMED, encoding="none")


@pytest.mark.parametrize("name", ["adult", "adult_demo", "bank", "credit_default", "kddcup99"])
def test_packaged_schemas(name):
    schema = dpci.datasets.load_schema(name)
    for each in (schema, dataclasses.replace(schema, encoding="full_range")):
        assert each.rows.n_columns == len(each.names) == len(each.divisors)
        assert len(each.rows.block_bounds) == len(each.columns)


def test_axes_of_a_histogram_follow_the_encoding():
    age, ward, sex, pay, job = dpci.baselines.axes_of(WHOLE, bins=4)
    assert (age.lower, age.upper, pay.lower, pay.upper) == (-0.5, 0.5, 0.0, 1.0)
    assert {ward.value, sex.value, job.value} == {1.0}


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_a_fit_on_the_rows_of_a_schema():
    sample = dpci.datasets.load_adult_sample()
    schema = sample.schema
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.01, "classes": (-1, 1), "seed": 1}
    assert dpci.fit(sample.X, sample.y, rows=schema.rows, **keywords).rows == schema.rows
    whole = dataclasses.replace(schema, encoding="full_range")
    X = sample.X * schema.divisors / whole.divisors
    assert dpci.fit(X, sample.y, rows=whole.rows, **keywords).rows == whole.rows
    with pytest.raises(dpci.RowNormViolation):
        dpci.fit(X, sample.y, rows=schema.rows, **keywords)


def test_descriptions_are_written_by_name_and_say_which_one_is_meant():
    for made, advice in (
        (lambda: ClassTarget("ill", "no", "yes"), "first argument alone by position: write negative= and positive="),
        (lambda: UnlistedColumn("ward", ("a",)), "by position: write categories=, reference="),
        (lambda: CategoricalTarget("ward", classes=("a", "b", "c"), negative="a"), "two classes are a ClassTarget"),
        (lambda: ClassTarget("ward", classes=("a", "b")), "three or more classes are a CategoricalTarget"),
        (lambda: CategoricalTarget("ward"), "needs classes="),
        (lambda: CategoricalColumn("ward"), "if nobody knows them, take UnlistedColumn"),
    ):
        with pytest.raises(TypeError, match=advice):
            made()
