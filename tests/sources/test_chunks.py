"""``Chunks``: sources that are read again and again, what is refused of them, Ctrl-C and memory."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci.errors import InvalidInput, RowNormViolation
from support.memory import PEAK_BYTES
from support.parts import cut, make_rows

N, D = 2000, 3
X, Y, REALS = make_rows(N, D)
SETTINGS = {"budget": dpci.ZCDP(0.5), "l2_strength": 0.05, "seed": 3}


def fit(source, **keywords):
    return dpci.fit(source if isinstance(source, dpci.Chunks) else dpci.Chunks(source), **{**SETTINGS, **keywords})


def in_memory(X=X, y=Y, **keywords):
    return dpci.fit(X, y, **{**SETTINGS, **keywords})


def assert_same(ours, theirs):
    np.testing.assert_allclose(ours.params, theirs.params, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.cov, theirs.cov, rtol=0, atol=1e-10)


class Reiterable:
    def __iter__(self):
        return iter(cut(X, Y, 3))


@pytest.mark.parametrize(
    "source",
    [
        lambda: iter(cut(X, Y, 3)),
        lambda: (part for part in cut(X, Y, 3)),
        cut(X, Y, 3),
        tuple(cut(X, Y, 3)),
        Reiterable(),
    ],
    ids=["function", "generator function", "list", "tuple", "iterable"],
)
def test_sources(source):
    assert_same(fit(source), in_memory())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (iter(cut(X, Y, 3)), "source must be readable several times"),
        ((part for part in cut(X, Y, 3)), "source must be readable several times .* got generator"),
        (zip([X], [Y], strict=True), "source must be readable several times .* got zip"),
        (X, "source must be a function that returns an iterable of .X, y., .*got ndarray"),
        (3, "source must be a function that returns an iterable of .X, y., .*got int"),
        ("rows.csv", "source must be a function that returns an iterable of .X, y., .*got str"),
    ],
)
def test_sources_that_are_none(source, message):
    with pytest.raises(InvalidInput, match=message):
        dpci.Chunks(source)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([], "the data must have at least one row, got a source without parts"),
        ([(X[:0], Y[:0])], "the data must have at least one row, got 0 rows in all parts"),
        ([(X, Y), X], "every chunk must be a pair .X, y., got ndarray"),
        ([(X, Y, None)], "the third member of a chunk must be a mapping from names to columns, got NoneType"),
        ([(X, Y, {}, Y)], "every chunk must be a pair .X, y., got tuple of 4"),
        ([(X, Y[:-1])], "y must have one entry for each row of X, got 1999 entries and 2000 rows"),
        ([(X, Y), (X[:, :2], Y)], "every part must have the same columns, got 2 after 3"),
        ([(X[0], Y[:3])], "X must be two-dimensional"),
        (lambda: None, "source must return an iterable of .X, y., got NoneType"),
    ],
)
def test_chunks_that_are_none(chunks, message):
    with pytest.raises(InvalidInput, match=message):
        fit(chunks)


def with_entry(value):
    changed = X.copy()
    changed[-1, 1] = value
    return changed


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (with_entry(np.nan), InvalidInput, "X must be finite, got NaN in row 499, column 1"),
        (with_entry(np.inf), InvalidInput, "X must be finite, got inf in row 499, column 1"),
        (with_entry(5.0), RowNormViolation, "every row of X must have Euclidean norm at most row_norm=1"),
    ],
)
def test_a_bad_row_in_the_last_chunk_costs_nothing(rows, error, message):
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    chunks = list(zip(np.split(rows, 4), np.split(Y, 4), strict=True))
    with pytest.raises(error, match=message) as refusal:
        fit(chunks, ledger=ledger, seed=None)
    assert refusal.value.__notes__ == ["in chunk 3, whose rows are counted from 0"]
    assert ledger.remaining == dpci.ZCDP(1.0)
    if error is RowNormViolation:
        assert_same(fit(chunks, rows="clip"), in_memory(rows, rows="clip"))


def test_a_generator_as_rows_is_told_what_to_do():
    rule = r"X must be readable several times, got generator.*: pass dpci.Chunks\(function\)"
    with pytest.raises(dpci.InvalidInput, match=rule):
        dpci.fit((part for part in cut(X, Y, 3)), budget=dpci.ZCDP(0.5), l2_strength=0.1)


def test_a_ledger_pays_once():
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    result = fit(cut(X, Y, 3), ledger=ledger, seed=None)
    assert result.private
    assert ledger.remaining == dpci.ZCDP(0.5)
    with pytest.raises(InvalidInput, match=r"n_public must be at least a sixteenth"):
        fit(
            cut(X, Y, 3),
            ledger=dpci.Ledger(dpci.ZCDP(1.0), neighbors="add_remove"),
            seed=None,
            neighbors=dpci.AddRemove(100),
        )


@pytest.mark.parametrize(
    "change",
    [
        lambda x, y: (x[:-1], y[:-1]),
        lambda x, y: (np.vstack([x, x[:1]]), np.append(y, y[0])),
        lambda x, y: (-x, y),
        lambda x, y: (x, 1 - y),
        lambda x, y: (x[:, [0, 2, 1]], y),
        lambda x, y: (scipy.sparse.csr_array(x * 0.5), y),
    ],
    ids=["fewer rows", "more rows", "other rows", "other targets", "other order of columns", "other sparse rows"],
)
@pytest.mark.parametrize("at", [3, 5])
def test_a_chunk_that_changes_between_passes(change, at):
    passes = []

    def source():
        passes.append(None)
        yield X[:500], Y[:500]
        last = X[500:], Y[500:]
        yield change(*last) if len(passes) >= at else last

    with pytest.raises(InvalidInput, match=r"every pass over a source must find the same rows, got"):
        fit(source)
    assert len(passes) == at


def test_a_row_that_breaks_its_bound_in_a_later_pass_only():
    passes = []

    def source():
        passes.append(None)
        yield X, Y
        yield (X[:5] * (3.0 if len(passes) == 4 else 1.0)), Y[:5]

    with pytest.raises(RowNormViolation, match=r"every row of X must have Euclidean norm"):
        fit(source)


# Labels: their classes are given, or those of a boolean type.


@pytest.mark.parametrize(
    ("codes", "classes"), [((False, True), None), ((0, 1), (0, 1)), (("a", "b"), ("a", "b"))], ids=str
)
def test_chunks_of_one_class_each(codes, classes):
    coded = np.array(codes)[Y.astype(int)]
    chunks = [(X[k == Y], coded[k == Y]) for k in (0, 1)]
    result = fit(chunks, classes=classes)
    assert result.classes == codes
    order = np.argsort(Y, kind="stable")
    assert_same(result, in_memory(X[order], coded[order], classes=classes))


@pytest.mark.parametrize("codes", [(0, 1), (-1, 1), (0, 2), ("a", "b"), (1, 1)], ids=str)
def test_labels_are_not_read_off(codes):
    coded = np.array(codes)[Y.astype(int)]
    with pytest.raises(
        InvalidInput, match=r"must be given for rows in parts unless y has a boolean data type in every"
    ):
        fit(cut(X, coded, 3))


def test_labels_that_differ_between_chunks():
    with pytest.raises(InvalidInput, match=r"unless y has a boolean data type in every part, got dtype int64"):
        fit([(X, Y), (X, 2 * Y - 1)])
    with pytest.raises(InvalidInput, match=r"y must hold only classes=\(0, 1\), got -1 in row"):
        fit([(X, Y), (X, 2 * Y - 1)], classes=(0, 1))
    with pytest.raises(InvalidInput, match=r"y must have no missing values"):
        fit([(X, Y), (X, np.where(Y == 1, np.nan, 0.0))])
    with pytest.raises(InvalidInput, match=r"within target_bounds"):
        fit([(X, REALS), (X, REALS + 1.5)], loss="soft_logistic")
    # Of many values some are named.
    with pytest.raises(InvalidInput, match=r"must be given"):
        fit([(X, REALS), (X, np.arange(N))])


# Names.


def test_names():
    pd = pytest.importorskip("pandas")
    frames = [(pd.DataFrame(x, columns=["a", "b", "c"]), y) for x, y in cut(X, Y, 3)]
    assert fit(frames).names == ("a", "b", "c", "intercept")
    named = fit(dpci.Chunks(cut(X, Y, 3), names=["a", "b", "c"]))
    assert named.names == ("a", "b", "c", "intercept")
    assert_same(named, in_memory())
    with pytest.raises(InvalidInput, match=r"every part must have the same columns, got .*'d'.* after .*'c'"):
        fit([*frames, (frames[-1][0].rename(columns={"c": "d"}), frames[-1][1])])
    with pytest.raises(
        InvalidInput, match=r"names must be those of the columns of every part, got .'a', 'b'. for 3 col"
    ):
        fit(dpci.Chunks(cut(X, Y, 3), names=["a", "b"]))
    with pytest.raises(InvalidInput, match=r"names must be those of the columns of every part, got .*'z'"):
        fit(dpci.Chunks(frames, names=["a", "b", "z"]))
    for names in (["a", "a", "b"], "abc", [], [1, 2, 3]):
        with pytest.raises(InvalidInput, match=r"names of columns must be different strings"):
            dpci.Chunks(frames, names=names)


# Exceptions and Ctrl-C.


class _Odd(Exception):
    pass


def failing_at(at, error):
    passes = []

    def source():
        passes.append(None)
        for k, part in enumerate(cut(X, Y, 3)):
            if (len(passes), k) == (at, 2):
                raise error
            yield part

    return source


@pytest.mark.parametrize("at", [1, 2, 5])
@pytest.mark.parametrize("error", [_Odd("mine"), KeyboardInterrupt(), SystemExit(3), MemoryError()])
def test_exceptions_come_out_unchanged(at, error):
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    with pytest.raises(type(error)) as raised:
        fit(failing_at(at, error), ledger=ledger, seed=None)
    assert raised.value is error
    # Once it has paid, a release that fails stays paid for: the ledger cannot tell what was seen of it.
    assert ledger.remaining == (dpci.ZCDP(1.0) if at == 1 else dpci.ZCDP(0.5))
    assert_same(fit(cut(X, Y, 3)), in_memory())


def test_the_source_is_read_on_the_thread_of_the_caller():
    threads = set()

    def source():
        threads.add(threading.get_ident())
        yield X, Y

    fit(source)
    assert threads == {threading.get_ident()}


def test_ctrl_c_while_the_source_waits():
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))

    def source():
        yield X, Y
        timer.start()
        time.sleep(60.0)
        pytest.fail("the wait went on")

    with pytest.raises(KeyboardInterrupt):
        fit(source)
    timer.join()


def test_generators_are_closed_when_a_chunk_is_refused():
    closed = []

    def source():
        try:
            yield X * 9, Y
            yield X, Y
        finally:
            closed.append(True)

    with pytest.raises(RowNormViolation) as refusal:
        fit(source)
    # The traceback would keep the generator alive.
    assert closed
    assert refusal.value.__traceback__ is not None


# Memory.

MEMORY = """
import sys, warnings
import numpy as np, dpci
warnings.simplefilter("ignore")
rows, d, n_chunks = 20_000, 50, int(sys.argv[1])
def source():
    for k in range(n_chunks):
        u = np.random.default_rng(k).uniform(-0.1, 0.1, size=rows)
        yield np.multiply.outer(u, np.ones(d)), u > 0.02 * k
result = dpci.fit(dpci.Chunks(source), budget=dpci.ZCDP(0.5), l2_strength=0.01)
assert result.n_samples == rows * n_chunks and result.private
print(peak_bytes() / (rows * d * 8))
"""


def test_memory_does_not_grow_with_the_number_of_chunks():
    peaks = []
    for n_chunks in (4, 12):
        ran = subprocess.run(
            [sys.executable, "-c", PEAK_BYTES + MEMORY, str(n_chunks)], capture_output=True, text=True, check=True
        )
        peaks.append(float(ran.stdout))
    # In chunks of 8 MB, of which three are in memory and as many copies: all twelve would be eight more.
    assert peaks[1] - peaks[0] < 3.0, peaks
