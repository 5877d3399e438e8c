"""Chunks that are summed two at once: what the threads of a fit may not change, and what a source may rely on."""

import threading
import time

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput, RowNormViolation
from dpci.sources.ahead import outcomes
from support.parts import cut, make_rows

N, D = 40_000, 5
X, Y, _ = make_rows(N, D)


def fit(source, n_threads):
    budget = dpci.ZCDP(0.5)
    with dpci.threads(n_threads):
        return dpci.fit(dpci.Chunks(source), budget=budget, l2_strength=0.05, seed=3)


def refilled():
    """Yield chunks of several lengths in the same two arrays."""
    rows, targets = np.empty((N, D)), np.empty(N, dtype=bool)
    for part, labels in cut(X, Y, 8):
        rows[: len(part)], targets[: len(part)] = part, labels
        yield rows[: len(part)], targets[: len(part)]


class Uncopied(np.ndarray):
    def __deepcopy__(self, memo):
        raise TypeError("no copies")


SOURCES = {
    "list": cut(X, Y, 8),
    "arrays that are filled again": refilled,
    "rows that cannot be copied": lambda: ((part.view(Uncopied), labels) for part, labels in refilled()),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_threads_change_no_bit(source):
    alone = fit(SOURCES["list"], 1)
    for n_threads in (1, 2, 4, None):
        found = fit(source, n_threads)
        np.testing.assert_array_equal(found.params, alone.params)
        np.testing.assert_array_equal(found.cov, alone.cov)


def test_a_source_is_read_on_the_thread_of_the_fit():
    threads = set()

    def source():
        for chunk in SOURCES["list"]:
            threads.add(threading.get_ident())
            yield chunk

    fit(source, 2)
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_error_of_the_first_chunk_comes_first(n_threads):
    too_long = X.copy()
    too_long[N // 8] *= 100.0  # in chunk 4

    def source():
        yield from list(cut(too_long, Y, 8))[:5]
        raise OSError("the disk is gone")

    with pytest.raises(RowNormViolation) as refusal:
        fit(source, n_threads)
    assert refusal.value.__notes__ == ["in chunk 4, whose rows are counted from 0"]
    with pytest.raises(OSError, match="the disk is gone"):
        fit(source_that_ends, n_threads)


def source_that_ends():
    yield from cut(X, Y, 8)
    raise OSError("the disk is gone")


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_chunk_that_is_none_after_good_ones(n_threads):
    with pytest.raises(InvalidInput, match=r"every chunk must be a pair .X, y., got ndarray"):
        fit([*cut(X, Y, 8), X], n_threads)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_chunks_without_the_columns_of_those_before(n_threads):
    """The copies of earlier chunks, over which later ones are written, have more members."""

    def source():
        for k in range(8):
            rows = slice(5000 * k, 5000 * (k + 1))
            yield (X[rows], Y[rows], {"id": np.arange(N)[rows]}) if k < 5 else (X[rows], Y[rows])

    with pytest.raises(InvalidInput, match="must have the column 'id'") as refusal:
        dpci.threads(n_threads)(dpci.fit)(dpci.Chunks(source), budget=dpci.ZCDP(0.5), l2_strength=0.05, persons="id")
    assert refusal.value.__notes__ == ["in chunk 5, whose rows are counted from 0"]


class Numbered:
    """A chunk that is counted while it is in memory."""

    alive = 0

    def __init__(self, number):
        self.number = number
        Numbered.alive += 1

    def __del__(self):
        Numbered.alive -= 1


@pytest.mark.parametrize("at_once", [1, 2, 3])
@pytest.mark.parametrize("slow", [0, 5, 19])
def test_no_more_chunks_are_worked_on_or_held_than_asked_for(at_once, slow):
    lock, running, most, held, threads = threading.Lock(), [], [0], [0], set()

    def work(number, chunk):
        with lock:
            running.append(number)
            most[0] = max(most[0], len(running))
        time.sleep(0.03 if number == slow else 0.001 * (number % 3))  # later ones may be done earlier
        with lock:
            running.remove(number)
        threads.add(threading.current_thread())
        return number, chunk.number

    def chunks():
        for k in range(20):
            yield Numbered(10 * k)
            held[0] = max(held[0], Numbered.alive)

    assert list(outcomes(chunks(), work, at_once=at_once, held=True)) == [(k, 10 * k) for k in range(20)]
    assert most[0] == at_once == len(threads)
    assert threading.main_thread() in threads
    # One that the caller has, and for each other thread one that it works on and one that waits.
    assert held[0] <= 2 * at_once - 1
    assert Numbered.alive == 0
