"""Frames of pandas, polars and pyarrow: names kept, every numeric dtype taken, everything else refused by its name."""

import datetime as dt
import subprocess
import sys

import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpci
from dpci.data.arrays import NamedRows, as_features, as_matrix
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema
from support.keywords import assembled

N, NAMES = 5000, ("age", "dose", "weight")
_RNG = np.random.default_rng(4)
X = _RNG.uniform(-0.55, 0.55, size=(N, 3))
LABELS = X @ [4.0, -3.0, 1.0] + _RNG.logistic(size=N) > 0
COLUMNS = dict(zip(NAMES, X.T, strict=True))
LIBRARIES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "narwhals": lambda columns: narwhals.from_native(pd.DataFrame(columns)),
}
KEYWORDS = {"budget": dpci.PureDP(2.0), "l2_strength": 0.02, "seed": 5}


@pytest.fixture(scope="module")
def expected():
    return dpci.fit(X, LABELS, **KEYWORDS)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_fit_keeps_the_names_and_the_numbers(library, expected):
    result = dpci.fit(LIBRARIES[library](COLUMNS), LABELS, **KEYWORDS)
    assert result.names == (*NAMES, "intercept")
    np.testing.assert_array_equal(result.params, expected.params)
    for other in LIBRARIES.values():
        np.testing.assert_array_equal(result.predict(other(COLUMNS)), expected.predict(X))
    np.testing.assert_array_equal(result.predict(X), expected.predict(X))


def test_record_batches_are_frames(expected):
    table = pa.table(COLUMNS)
    result = dpci.fit(table.to_batches()[0], LABELS, **KEYWORDS)
    assert result.names == (*NAMES, "intercept")
    np.testing.assert_array_equal(result.params, expected.params)
    by_parts = dpci.Chunks([(batch, LABELS[:1000]) for batch in table[:1000].to_batches(max_chunksize=1000)])
    assert dpci.fit(by_parts, **{**KEYWORDS, "l2_strength": 0.1}).names == result.names


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_in_another_order_are_refused_by_name(library, expected):
    result = dpci.fit(pd.DataFrame(COLUMNS), LABELS, **KEYWORDS)
    turned = LIBRARIES[library]({name: COLUMNS[name] for name in ("age", "weight", "dose")})
    with pytest.raises(dpci.InvalidInput, match=r"column 1 must be 'dose', got 'weight'"):
        result.predict(turned)
    # A fit without names takes any.
    assert len(expected.predict(turned)) == N


LABEL_FORMS = {
    "pandas": lambda v: pd.Series(v, index=range(len(v), 0, -1)),
    "pandas nullable": lambda v: pd.Series(v).convert_dtypes(),
    "pandas arrow": lambda v: pd.Series(v).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "pyarrow chunks": lambda v: pa.chunked_array([v[:7], v[7:]]),
}


@pytest.mark.parametrize("form", LABEL_FORMS)
@pytest.mark.parametrize("kind", ["int", "bool", "str"])
def test_labels(form, kind, expected):
    labels, classes = {
        "int": (LABELS, None),
        "bool": (LABELS.astype(bool), None),
        "str": (np.where(LABELS, "yes", "no").astype(object), ("no", "yes")),
    }[kind]
    result = dpci.fit(X, LABEL_FORMS[form](labels), classes=classes, **KEYWORDS)
    np.testing.assert_array_equal(result.params, expected.params)
    np.testing.assert_array_equal(result.predict(X), _labelled(expected, labels))


def _labelled(expected, labels):
    """Return the predictions in the caller's labels."""
    negative, positive = sorted({*labels.tolist()})
    return np.where(expected.predict(X) == 1, positive, negative)


@pytest.mark.parametrize("form", ["pandas", "pandas nullable", "polars", "pyarrow"])
def test_missing_labels_are_refused_with_their_row(form):
    labels = [0, 1] * (N // 2)
    labels[11] = None
    with pytest.raises(dpci.InvalidInput, match=r"y must have no missing values, got .* in row 11"):
        dpci.fit(X, LABEL_FORMS[form](labels), **KEYWORDS)


DICTIONARIES = {
    "chunks": lambda v: pa.chunked_array([pa.array(v[:2]).dictionary_encode(), pa.array(v[2:]).dictionary_encode()]),
    "array": lambda v: pa.array(v).dictionary_encode(),
    "narwhals": lambda v: narwhals.from_native(pa.chunked_array([pa.array(v).dictionary_encode()]), series_only=True),
}


@pytest.mark.parametrize("form", DICTIONARIES)
def test_a_null_of_a_dictionary_is_missing(form, expected):
    """NumPy gets the last value of the dictionary for it."""
    labels = ["yes" if label else "no" for label in LABELS]
    given = {**KEYWORDS, "classes": ("no", "yes")}
    result = dpci.fit(X, DICTIONARIES[form](labels), **given)
    np.testing.assert_array_equal(result.params, expected.params)
    labels[11] = None
    with pytest.raises(dpci.InvalidInput, match=r"y must have no missing values, got None in row 11"):
        dpci.fit(X, DICTIONARIES[form](labels), **given)
    reals = [None, *X[1:, 0].tolist()]
    with pytest.raises(dpci.InvalidInput, match=r"y must be a number, got NaN in row 0"):
        dpci.fit(X, DICTIONARIES[form](reals), **assembled(**{**KEYWORDS, "loss": "squared", "radius": 1.0}))


@pytest.mark.parametrize("form", DICTIONARIES)
def test_a_null_of_a_dictionary_is_missing_for_a_schema(form):
    target = ClassTarget(column="ill", negative="no", positive="yes")
    column = DICTIONARIES[form](["A", None, "B"])
    ward = Schema(columns=(CategoricalColumn(name="ward", categories=("A", "B"), unknown="zeros"),), target=target)
    np.testing.assert_array_equal(ward.features({"ward": column}) > 0, [[True, False], [False, False], [False, True]])
    with pytest.raises(dpci.InvalidInput, match=r"column 'ill' must hold one of .*, got None in row 1"):
        target.encode(DICTIONARIES[form](["no", None, "yes"]))
    with pytest.raises(dpci.InvalidInput, match=r"column 'age' must hold finite numbers, got nan in row 1"):
        NumericColumn(name="age", lower=0, upper=9).encode(DICTIONARIES[form]([1, None, 2]))


@pytest.mark.parametrize("form", ["pandas nullable", "pandas arrow", "polars", "pyarrow", "pyarrow chunks"])
def test_real_targets(form):
    y = np.clip(X @ [0.5, -0.2, 0.1], -1, 1)
    keywords = {**KEYWORDS, "loss": "squared", "radius": 1.0}
    np.testing.assert_array_equal(
        dpci.fit(X, LABEL_FORMS[form](y), **assembled(**keywords)).params,
        dpci.fit(X, y, **assembled(**keywords)).params,
    )


WHOLE = np.array([0, 1, 1, 0, 1, 0])
NUMERIC = {
    **{f"pandas {name}": pd.DataFrame({"a": WHOLE.astype(name), "b": WHOLE}) for name in
       ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "g", ">f4", ">i8")},
    **{f"pandas {name}": pd.DataFrame({"a": pd.array(WHOLE, dtype=name), "b": WHOLE}) for name in
       ("Int8", "UInt64", "Float32", "Float64", "boolean", "bool[pyarrow]", "int16[pyarrow]", "float[pyarrow]")},
    "pandas sparse": pd.DataFrame({"a": pd.arrays.SparseArray(WHOLE), "b": WHOLE}),
    **{f"polars {dtype}": pl.DataFrame({"a": pl.Series(WHOLE).cast(dtype), "b": WHOLE}) for dtype in
       (pl.Boolean, pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Float64)},
    **{f"pyarrow {dtype}": pa.table({"a": pa.array(WHOLE).cast(dtype), "b": WHOLE}) for dtype in
       (pa.bool_(), pa.int8(), pa.uint64(), pa.float32(), pa.float64())},
    "pyarrow chunks": pa.concat_tables([pa.table({"a": part, "b": part}) for part in (WHOLE[:2], WHOLE[2:])]),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMERIC)
def test_every_numeric_dtype_is_taken(name):
    values, names, *_ = as_features(NUMERIC[name])
    assert names == ("a", "b")
    assert values.dtype == np.dtype(np.float64)
    assert values.flags.c_contiguous
    np.testing.assert_array_equal(values, np.column_stack([WHOLE, WHOLE]))


REFUSED = {
    "pandas category": pd.DataFrame({"a": WHOLE, "b": pd.Categorical(WHOLE)}),
    "pandas strings": pd.DataFrame({"a": WHOLE, "b": WHOLE.astype(str)}),
    "pandas objects": pd.DataFrame({"a": WHOLE, "b": WHOLE.astype(object)}),
    "pandas dates": pd.DataFrame({"a": WHOLE, "b": pd.Timestamp(0)}),
    "pandas durations": pd.DataFrame({"a": WHOLE, "b": pd.Timedelta(1)}),
    "pandas complex": pd.DataFrame({"a": WHOLE, "b": WHOLE + 0j}),
    "pandas decimal": pd.DataFrame({"a": WHOLE, "b": pd.array(WHOLE, pd.ArrowDtype(pa.decimal128(25, 2)))}),
    "polars category": pl.DataFrame({"a": WHOLE, "b": pl.Series(["u"] * 6, dtype=pl.Categorical)}),
    "polars enum": pl.DataFrame({"a": WHOLE, "b": pl.Series(["u"] * 6, dtype=pl.Enum(["u"]))}),
    "polars strings": pl.DataFrame({"a": WHOLE, "b": ["1"] * 6}),
    "polars dates": pl.DataFrame({"a": WHOLE, "b": [dt.date(2020, 1, 1)] * 6}),
    "polars lists": pl.DataFrame({"a": WHOLE, "b": [[1.0]] * 6}),
    "polars decimal": pl.DataFrame({"a": WHOLE, "b": pl.Series(WHOLE).cast(pl.Decimal(5, 2))}),
    "polars nulls": pl.DataFrame({"a": WHOLE, "b": [None] * 6}),
    "pyarrow dictionary": pa.table({"a": WHOLE, "b": pa.array(["u"] * 6).dictionary_encode()}),
    "pyarrow strings": pa.table({"a": WHOLE, "b": ["1"] * 6}),
    "pyarrow times": pa.table({"a": WHOLE, "b": pa.array(WHOLE).cast(pa.timestamp("s"))}),
    "pyarrow nulls": pa.table({"a": WHOLE, "b": pa.nulls(6)}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_number_is_refused_by_name(name):
    with pytest.raises(
        dpci.InvalidInput, match=r"columns of X must be numeric, got dtype .* in column 'b' \(encode .*dpci\.schema"
    ):
        as_features(REFUSED[name])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("kind", ["float", "int", "bool"])
def test_missing_values_are_refused_by_column_and_row(library, kind):
    some = {"float": [0.5, None, 1.0], "int": [1, None, 2], "bool": [True, None, False]}[kind]
    frame = LIBRARIES[library]({"a": [1.0, 2.0, 3.0], "b": some})
    if library == "pandas":
        frame = frame.convert_dtypes()
    with pytest.raises(dpci.InvalidInput, match=r"X must have no missing values, got one in row 1 of column 'b'"):
        as_features(frame)


def test_not_a_number_is_left_to_the_core():
    frame = pl.DataFrame({"a": [0.0, 0.1], "b": [0.1, float("nan")]})
    with pytest.raises(dpci.InvalidInput, match=r"X must be finite, got NaN in row 1, column 1"):
        dpci.fit(frame, [0, 1], **{**KEYWORDS, "l2_strength": 0.5})


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_of_float32_alone_stay_float32(library):
    single = LIBRARIES[library]({name: column.astype(np.float32) for name, column in COLUMNS.items()})
    values, _, *_ = as_features(single)
    assert values.dtype == np.dtype(np.float32)
    np.testing.assert_array_equal(values, X.astype(np.float32))
    np.testing.assert_array_equal(as_matrix(single).values, X.astype(np.float32).astype(np.float64))
    mixed = LIBRARIES[library]({"a": X[:, 0].astype(np.float32), "b": X[:, 1]})
    assert as_features(mixed)[0].dtype == np.dtype(np.float64)


def test_more_columns_and_rows_than_are_filled_at_a_time():
    rows = _RNG.random((9001, 37))
    frame = pl.DataFrame(rows, schema=[f"c{i}" for i in range(37)], orient="row")
    np.testing.assert_array_equal(as_features(frame).values, rows)


@pytest.mark.parametrize("columns", [[0, 1, 2], [None, 1.5, "x"]])
def test_labels_of_pandas_that_are_no_strings(columns):
    frame = pd.DataFrame(X, columns=columns)
    assert as_features(frame).names == tuple(map(str, frame.columns))
    np.testing.assert_array_equal(as_features(frame).values, X)


def test_labels_of_several_levels_are_refused():
    columns = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])
    for labels in (columns, pd.Index([("a", 1), "b"], tupleize_cols=False)):
        with pytest.raises(
            dpci.InvalidInput, match=r"must have one name each, got the labels \('a', '1'\) .*flatten them"
        ):
            dpci.fit(pd.DataFrame(X[:, :2], columns=labels), LABELS, **KEYWORDS)


def test_equal_names_are_refused():
    arrow = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    for frame in (pd.DataFrame(X[:, :2], columns=["a", "a"]), pd.DataFrame(X[:, :2], columns=[1, "1"]), arrow):
        with pytest.raises(dpci.InvalidInput, match=r"must have different names, got '\w' twice"):
            as_features(frame)


def test_names_are_the_same_however_an_accent_was_typed():
    composed, two_characters = "\N{LATIN SMALL LETTER E WITH ACUTE}", "e\N{COMBINING ACUTE ACCENT}"
    assert as_features(pd.DataFrame(X[:, :1], columns=[two_characters])).names == (composed,)
    with pytest.raises(dpci.InvalidInput, match="must have different names"):
        as_features(pd.DataFrame(X[:, :2], columns=[composed, two_characters]))


@pytest.mark.parametrize(
    "lazy", [pl.LazyFrame(COLUMNS), narwhals.from_native(pl.LazyFrame(COLUMNS))], ids=["polars", "narwhals"]
)
def test_lazy_frames_are_computed(lazy):
    with pytest.warns(dpci.SeededNoiseWarning):
        found, plain = (dpci.fit(X, LABELS, **KEYWORDS) for X in (lazy, pl.DataFrame(COLUMNS)))
    assert found.to_json() == plain.to_json()


def test_what_only_looks_like_a_frame_is_refused():
    class Stranger:
        columns = ("a",)

    with pytest.raises(dpci.InvalidInput, match=r"a frame that narwhals reads, got Stranger"):
        as_features(Stranger())


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_without_rows_or_columns(library):
    frame = LIBRARIES[library]({"a": np.empty(0), "b": np.empty(0)})
    assert as_features(frame).shape == (0, 2)
    assert as_features(LIBRARIES[library]({})).shape == (0, 0)
    with pytest.raises(dpci.InvalidInput, match="at least one row"):
        dpci.fit(frame, [], classes=(0, 1), **KEYWORDS)


def test_rows_with_names_need_no_frame():
    values, names, *_ = as_features(NamedRows(X, NAMES))
    assert names == NAMES
    assert np.shares_memory(values, X)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_schema_reads_every_frame(library):
    schema = Schema(
        columns=(
            NumericColumn(name="age", lower=0, upper=100),
            CategoricalColumn(name="ward", categories=("A", "B"), unknown="zeros"),
        ),
        target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
    )
    table = {"age": [20, 50, 100], "ward": ["A", "C", "B"], "ill": ["no", "yes", "yes"]}
    found, plain = schema.transform(LIBRARIES[library](table)), schema.transform(table)
    np.testing.assert_array_equal(found.X, plain.X)
    np.testing.assert_array_equal(found.y, plain.y)
    if library == "polars":
        np.testing.assert_array_equal(schema.transform(LIBRARIES[library](table).lazy()).X, plain.X)


GROWTH = """
import numpy as np, polars as pl
from dpci.data.arrays import as_features
frame = pl.DataFrame({f"c{j}": np.full(100_000, j, dtype="i4") for j in range(64)})
as_features(frame[:10])
def status(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))
open("/proc/self/clear_refs", "w").write("5")  # the peak so far is forgotten
resident = status("VmRSS")
values = as_features(frame)[0]
print((status("VmHWM") - resident) / values.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read as Linux shows it")
def test_a_frame_costs_one_matrix():
    """Not the frame's own conversion and a second one to rows in order, which are two."""
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
    assert 0.9 < float(done.stdout) < 1.25


WITHOUT_NARWHALS = """
import sys
sys.modules["narwhals"] = None
import numpy as np, dpci
class Frame:
    columns = ("a",)
try:
    dpci.fit(Frame(), [0, 1], budget=dpci.PureDP(1.0), l2_strength=0.1)
except dpci.DpciError as error:
    print(error)
dpci.fit(np.zeros((4, 1)), [0, 1, 0, 1], budget=dpci.PureDP(1.0), l2_strength=0.5)
"""


def test_without_narwhals_frames_name_the_extra():
    done = subprocess.run([sys.executable, "-c", WITHOUT_NARWHALS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "a frame as X needs narwhals: pip install 'dpci[frames]'"
