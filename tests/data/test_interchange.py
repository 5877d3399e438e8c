"""Rows of libraries that dpci has never heard of: fake producers with nothing but DLPack or the Arrow C interface."""

import narwhals
import numpy as np
import pyarrow as pa
import pytest

import dpci
from dpci.data import frames
from dpci.data.arrays import as_features
from dpci.schema import ClassTarget, NumericColumn, Schema
from dpci.sklearn import PrivateLogisticRegression, RowNormClipper

N, NAMES = 1200, ("age", "dose", "weight")
_RNG = np.random.default_rng(8)
X = _RNG.uniform(-0.55, 0.55, size=(N, 3))
Y = X @ [4.0, -3.0, 1.0] + _RNG.logistic(size=N) > 0
TABLE = pa.table(dict(zip(NAMES, X.T, strict=True)))
KEYWORDS = {"budget": dpci.PureDP(2.0), "l2_strength": 0.05, "seed": 5}
SCHEMA = Schema(
    columns=tuple(NumericColumn(name=name, lower=-0.55, upper=0.55) for name in NAMES),
    target=ClassTarget(column="ill", negative="no", positive="yes"),
)


class Tensor:
    """Object that implements DLPack and nothing else; ``device`` as in dlpack.h."""

    def __init__(self, array, device=(1, 0)):
        self._array, self._device = array, device

    def __dlpack__(self, **keywords):
        assert self._device[0] == 1, "memory that the processor cannot read was asked for"
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._device


class OldTensor(Tensor):
    """A producer from before the keywords of DLPack 1."""

    def __dlpack__(self, stream=None):
        return self._array.__dlpack__(stream=stream)


class Stream:
    """Arrow columns in chunks, which can be read once."""

    def __init__(self, data):
        self._data = data

    def __arrow_c_stream__(self, requested_schema=None):
        data, self._data = self._data, None
        return data.__arrow_c_stream__(requested_schema)


class Block:
    """Arrow columns in one piece."""

    def __init__(self, data):
        self._data = data

    def __arrow_c_array__(self, requested_schema=None):
        return self._data.__arrow_c_array__(requested_schema)


class Broken(Stream):
    """A stream that fails as it is read."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise RuntimeError("the query failed")


def chunked(table, size=256):
    return pa.Table.from_batches(table.to_batches(max_chunksize=size))


@pytest.fixture(scope="module")
def expected():
    return dpci.fit(X, Y, **KEYWORDS)


@pytest.mark.parametrize("kind", [Tensor, OldTensor])
def test_a_fit_to_tensors(kind, expected):
    result = dpci.fit(kind(X), kind(Y.view(np.uint8)), classes=(0, 1), **KEYWORDS)
    np.testing.assert_array_equal(result.params, expected.params)
    np.testing.assert_array_equal(result.predict(kind(X)), result.predict(X))


def test_tensors_are_read_in_place():
    for array in (X, X.astype(np.float32)):
        assert np.shares_memory(as_features(Tensor(array)).values, array)


def test_a_boolean_data_type_is_public_in_tensors_and_columns():
    for y in (Tensor(Y), Stream(pa.chunked_array([Y])), Block(pa.array(Y))):
        assert dpci.fit(X, y, **KEYWORDS).classes == (False, True)  # with no PrivacyLeakWarning


def test_persons_too():
    ids = np.arange(N) // 2
    fits = [
        dpci.fit(X, Y, persons=kind(ids), **KEYWORDS) for kind in (np.asarray, Tensor, lambda a: Block(pa.array(a)))
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.params, fits[0].params)


@pytest.mark.parametrize("method", ["__dlpack__", "__dlpack_device__"])
def test_whatever_a_producer_raises_is_bad_input(method, monkeypatch):
    def broken(*_, **__):
        raise AttributeError("no memory")

    monkeypatch.setattr(Tensor, method, broken)
    with pytest.raises(dpci.InvalidInput, match="readable by NumPy through DLPack or Arrow, got Tensor"):
        dpci.fit(Tensor(X), Y, **KEYWORDS)


@pytest.mark.parametrize(("device", "called"), [((2, 1), "CUDA 1"), ((8, 0), "Metal 0"), ((99, 0), "DLPack type 99 0")])
def test_another_device_is_refused_by_name(device, called):
    with pytest.raises(dpci.InvalidInput, match=rf"^X must be in the memory of the processor, got Tensor .* {called}"):
        dpci.fit(Tensor(X, device), Y, **KEYWORDS)
    with pytest.raises(dpci.InvalidInput, match=rf"^y must be in the memory of the processor, got Tensor .* {called}"):
        dpci.fit(X, Tensor(Y, device), **KEYWORDS)


def test_a_device_counts_beside_another_protocol_too():
    class Array(Tensor):
        def __array__(self, dtype=None, copy=None):
            raise AssertionError("read")

    with pytest.raises(dpci.InvalidInput, match="CUDA 0"):
        dpci.fit(Array(X, (2, 0)), Y, **KEYWORDS)


@pytest.mark.parametrize("table", [lambda: Stream(chunked(TABLE)), lambda: Block(TABLE.to_batches()[0])])
def test_a_fit_to_plain_arrow(table, expected):
    result = dpci.fit(table(), Y, **KEYWORDS)
    assert result.names == (*NAMES, "intercept")
    np.testing.assert_array_equal(result.params, expected.params)
    np.testing.assert_array_equal(result.predict(table()), expected.predict(X))


def test_a_schema_encodes_plain_arrow():
    table = TABLE.append_column("ill", pa.array(np.where(Y, "yes", "no")))
    keywords = {**KEYWORDS, "schema": SCHEMA}
    expected = dpci.fit(table, **keywords)
    result = dpci.fit(Stream(chunked(table)), **keywords)
    np.testing.assert_array_equal(result.params, expected.params)
    np.testing.assert_array_equal(result.predict(Stream(table)), expected.predict(table))
    for got, want in zip(SCHEMA.transform(Stream(table)), SCHEMA.transform(table), strict=True):
        np.testing.assert_array_equal(got, want)
    assert SCHEMA.check(Stream(table)) == SCHEMA.check(table)


def test_rows_in_parts_of_plain_arrow_and_tensors():
    parts = [(TABLE.slice(k, 400), Y[k : k + 400]) for k in range(0, N, 400)]
    expected = dpci.fit(dpci.Chunks(lambda: iter(parts)), **KEYWORDS)
    taken = dpci.fit(dpci.Chunks(lambda: ((Stream(a), Stream(pa.chunked_array([b]))) for a, b in parts)), **KEYWORDS)
    assert taken.names == expected.names
    np.testing.assert_array_equal(taken.params, expected.params)


def test_what_is_missing_or_no_number_is_refused_by_its_column():
    few = {**KEYWORDS, "l2_strength": 50.0}
    gap = pa.table({"age": pa.chunked_array([[0.1, 0.2], [0.3, None]])})
    with pytest.raises(dpci.InvalidInput, match=r"no missing values, got one in row 3 of column 'age'"):
        dpci.fit(Stream(gap), Y[:4], **few)
    with pytest.raises(dpci.InvalidInput, match="must be numeric, got dtype string in column 'ward'"):
        dpci.fit(Stream(pa.table({"ward": ["A"]})), Y[:1], **few)
    with pytest.raises(dpci.InvalidInput, match=r"y must have no missing values, got nan in row 1"):
        dpci.fit(X[:2], Stream(pa.chunked_array([[1, None]])), classes=(0, 1), **few)


def test_producers_that_fail_are_refused():
    with pytest.raises(dpci.InvalidInput, match=r"X must be a table of Arrow .* got Broken \(the query failed\)"):
        dpci.fit(Broken(None), Y, **KEYWORDS)
    with pytest.raises(dpci.InvalidInput, match=r"y must be readable by NumPy .* got Broken \(the query failed\)"):
        dpci.fit(X, Broken(None), **KEYWORDS)
    with pytest.raises(dpci.InvalidInput, match="X must be a table of Arrow"):
        dpci.fit(Stream(pa.chunked_array([X[:, 0]])), Y, **KEYWORDS)
    with pytest.raises(dpci.InvalidInput, match="complex"):
        dpci.fit(Tensor(X.astype(complex)), Y, **KEYWORDS)


def test_private_errors_need_a_shape_before_anything_is_paid_or_read():
    ledger = dpci.Ledger(dpci.PureDP(8.0), errors="private")
    stream = Stream(TABLE)
    keywords = {**KEYWORDS, "seed": None, "ledger": ledger, "classes": (0, 1), "rows": "clip"}
    for table in (stream, Tensor(X)):
        with pytest.raises(dpci.InvalidInput, match="known two-dimensional shape"):
            dpci.fit(table, Y, **keywords)
    assert ledger.remaining == dpci.PureDP(8.0)
    assert stream._data is TABLE


def test_chunks_of_pyarrow_are_read_where_they_lie(monkeypatch):
    """Joined chunks would be a copy of every column."""
    numbers, seen = frames._numbers, []

    def watched(column):
        seen.append(numbers(column))
        return seen[-1]

    monkeypatch.setattr(frames, "_numbers", watched)
    table = chunked(TABLE.append_column("flag", pa.array(Y)))
    np.testing.assert_array_equal(as_features(table).values, np.column_stack([X, Y]))
    stored = [chunk.to_numpy() for name in NAMES for chunk in table[name].iterchunks()]
    assert sum(any(np.shares_memory(a, b) for b in stored) for a in seen) == len(stored)
    # Columns whose chunks end at different rows, and a table without rows.
    uneven = pa.table({"a": pa.chunked_array([[1.0], [2.0, 3.0]]), "b": pa.chunked_array([[4.0, 5.0], [6.0]])})
    np.testing.assert_array_equal(as_features(uneven).values, [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])
    assert as_features(uneven.slice(0, 0)).shape == (0, 2)
    assert as_features(narwhals.from_native(uneven)).shape == (3, 2)


# Every place that takes data, on objects with one protocol and nothing else.

P, W, R = np.arange(N) // 2, _RNG.uniform(size=N), X @ [1.0, 2.0, 3.0]
LABELS = np.where(Y, 1.0, -1.0)
PUBLIC = {**KEYWORDS, "classes": (-1, 1)}
MATRIX = {"bounds": (-0.6, 0.6), "budget": dpci.PureDP(50.0), "seed": 3}
PARTS = [slice(0, 500), slice(500, N)]


def arrow(values):
    names = NAMES if values.shape[1:] == (3,) else ("u", "v")
    return pa.table(dict(zip(names, values.T, strict=True))) if values.ndim == 2 else pa.chunked_array([values])


def block(values):
    data = arrow(values).combine_chunks()
    return Block(data.to_batches()[0] if values.ndim == 2 else data)


def estimator(w, **fit):
    return PrivateLogisticRegression(epsilon=2.0, seed=1, classes=(-1, 1), weights=dpci.Weights(bound=1.0)).fit(
        w(X), w(LABELS), **fit
    )


PLACES = {
    "fit": lambda w: dpci.fit(w(X), w(LABELS), persons=w(P), **PUBLIC).params,
    "weights": lambda w: dpci.fit(w(X), w(LABELS), weights=dpci.Weights(w(W), bound=1.0), **PUBLIC).params,
    "parts": lambda w: dpci.fit(dpci.Chunks(lambda: ((w(X[k]), w(LABELS[k])) for k in PARTS)), **PUBLIC).params,
    "fit_many": lambda w: dpci.fit_many({"a": (w(X), w(LABELS))}, **PUBLIC)["a"].params,
    "predict": lambda w: dpci.fit(X, LABELS, **PUBLIC).predict(w(X)),
    "contrast": lambda w: dpci.fit(X, LABELS, **PUBLIC).wald_test(w(np.eye(4)[0] - np.eye(4)[1])).pvalue,
    "multinomial": lambda w: (
        dpci.multinomial.fit(w(X), w(P % 3), persons=w(P), **{**KEYWORDS, "classes": (0, 1, 2)}).params
    ),
    "matrix": lambda w: (
        dpci.regression.release(
            w(X), w(R), persons=w(P), weights=dpci.Weights(w(W), bound=1.0), robust=True, target_bound=(-4, 4), **MATRIX
        )
        .fit()
        .params
    ),
    "targets": lambda w: (
        dpci.regression.release(
            w(X), w(np.column_stack([R, W])), target_bound=[(-4, 4), (0, 1)], **MATRIX
        )._record.matrix
    ),
    "predict_linear": lambda w: dpci.regression.release(X, R, target_bound=(-4, 4), **MATRIX).fit().predict(w(X)),
    "functional": lambda w: (
        dpci.baselines.functional_mechanism(w(X), w(LABELS), budget=dpci.PureDP(9.0), l2_strength=1.0, seed=1).params
    ),
    "tune": lambda w: (
        dpci.tuning.tune(
            w(X), w(LABELS), candidates=[{"l2_strength": 0.1}, {"l2_strength": 0.2}], validation_radius=1.0,
            budget=dpci.PureDP(2.0), classes=(-1, 1), seed=1,
        ).result.params
    ),
    "minimiser": lambda w: dpci.lowlevel.minimize_erm(w(X), w(LABELS), l2_strength=0.1).params,
    "estimator": lambda w: estimator(w, sample_weight=w(W)).coef_,
    "estimator_of_persons": lambda w: estimator(w, persons=w(P)).coef_,
    "estimator_predicts": lambda w: estimator(w).predict_proba(w(X)),
    "clipper": lambda w: RowNormClipper(0.5).fit(w(X)).transform(w(X)),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")
def test_one_protocol_is_enough_wherever_data_are_taken(place):
    expected = PLACES[place](np.asarray)
    for wrap in (Tensor, lambda values: Stream(arrow(values)), block):
        np.testing.assert_array_equal(PLACES[place](wrap), expected)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")
def test_arrays_of_the_array_api_are_read_from_the_processor_alone(place):
    strict = pytest.importorskip("array_api_strict")
    np.testing.assert_array_equal(PLACES[place](strict.asarray), PLACES[place](np.asarray))
    away = strict.Device("device1")
    if place != "contrast":  # which is the caller's own, and shown in full
        with pytest.raises(dpci.InvalidInput, match=r"readable by NumPy .*device1"):
            PLACES[place](lambda values: strict.asarray(values, device=away))


@pytest.mark.parametrize("what", ["X", "y", "persons", "weights"])
def test_another_device_is_refused_for_every_argument(what):
    data = {"X": X, "y": LABELS, "persons": P, "weights": W}
    data[what] = Tensor(data[what], (2, 0))
    weights = dpci.Weights(data.pop("weights"), bound=1.0)
    with pytest.raises(dpci.InvalidInput, match=f"^{what} must be in the memory of the processor"):
        dpci.fit(**data, weights=weights, **PUBLIC)
