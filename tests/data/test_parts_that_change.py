"""Sources whose rows differ between passes: always an error, whatever changes in whichever pass, and no release."""

import threading

import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci import _core
from dpci.data.parts import Describe, PartRules, SumOver
from dpci.errors import InvalidInput
from dpci.rows import Ball
from support.keywords import assembled
from support.parts import CountingChunks, cut, make_rows

pytestmark = [pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")]

N, D = 600, 4
X, Y, REALS = make_rows(N, D)
SETTINGS = {"budget": dpci.ZCDP(0.5), "l2_strength": 0.05, "seed": 3}
FITS = {
    "logistic": (Y, {}),
    "logistic with classes": (Y, {"classes": (0, 1)}),
    "squared": (REALS, {"loss": "squared", "radius": 2.0}),
}
OTHER_ROWS = r"every pass over a source must find the same rows, got the same number of rows with different values"


def random_signs(x, y, _k):
    return x * np.random.default_rng().choice([-1.0, 1.0], size=(len(x), 1)), y


CHANGES = {
    "all signs": lambda x, y, k: (x * (-1.0) ** k, y),
    "signs of rows": random_signs,
    "two signs of one row": lambda x, y, k: (x * np.where(np.arange(x.size).reshape(x.shape) < 2, (-1.0) ** k, 1.0), y),
    "order of magnitude": lambda x, y, k: (x * 2.0**-k, y),
    "fresh rows": lambda x, y, _: (np.random.default_rng().uniform(-0.4, 0.4, size=x.shape), y),
    "fresh zeros and ones": lambda x, y, _: (np.random.default_rng().integers(0, 2, size=x.shape) / 2.0, y),
    "two entries swapped": lambda x, y, k: (np.vstack([np.roll(x[:1], k, axis=1), x[1:]]), y),
    "two targets swapped": lambda x, y, k: (x, y[np.r_[1, 0, 2 : len(y)]] if k % 2 else y),
    "rows against targets": lambda x, y, k: (np.roll(x, k, axis=0), y),
}
"""Rows and targets in pass k."""


def changing(targets, change, passes=None):
    """A source that changes in the passes numbered so, counted from 0; None: in all."""
    count = []

    def source():
        k = len(count)
        count.append(None)
        x, y = X.copy(), targets.copy()
        if y[0] == y[1]:  # so that a swap is one
            y[1] = y[np.argmax(y != y[0])]
        if passes is None or k in passes:
            x, y = change(x, y, k + 1 if passes is None else 1)
        yield x[:200], y[:200]
        yield x[200:], y[200:]

    return source, count


def number_of_passes(targets, **keywords):
    chunks = CountingChunks(cut(X, targets, 2))
    dpci.fit(chunks, **assembled(**{**SETTINGS, **keywords}))
    assert chunks.passes[0] == "describe"
    return len(chunks.passes)


@pytest.mark.parametrize("moments", ["none", "joint"])
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("change", CHANGES)
def test_rows_that_change_are_never_released(change, fit, moments):
    targets, keywords = FITS[fit]
    keywords = {**SETTINGS, **keywords, "moments": moments}
    source, count = changing(targets, CHANGES[change])
    with pytest.raises(InvalidInput, match=OTHER_ROWS):
        dpci.fit(dpci.Chunks(source), **assembled(**keywords))
    assert len(count) == 2
    # The pass that describes alone, and the last one alone: the moments', if there are any.
    with pytest.raises(InvalidInput, match=OTHER_ROWS):
        dpci.fit(dpci.Chunks(changing(targets, CHANGES[change], passes={0})[0]), **assembled(**keywords))
    last = number_of_passes(targets, **keywords) - 1
    source, count = changing(targets, CHANGES[change], passes={last})
    with pytest.raises(InvalidInput, match=OTHER_ROWS):
        dpci.fit(dpci.Chunks(source), **assembled(**keywords))
    assert len(count) == last + 1


@pytest.mark.parametrize("codes", [(0, 1), (-1, 1), (False, True)], ids=str)
def test_labels_that_change_after_the_first_pass(codes):
    labels, other = (np.where(y, codes[1], codes[0]) for y in (Y, np.roll(Y, 1)))
    given = {**SETTINGS, "classes": codes}
    for first, rest in ((labels, other), (other, labels)):
        passes = []

        def source(first=first, rest=rest, passes=passes):
            passes.append(None)
            yield X, first if len(passes) == 1 else rest

        with pytest.raises(InvalidInput, match=OTHER_ROWS):
            dpci.fit(dpci.Chunks(source), **given)
    assert dpci.fit(dpci.Chunks([(X, labels)]), **given).classes == codes


def test_what_may_change_between_passes():
    # The partition, the order of rows, their storage and precision, the type of labels, the sign of zeros.
    rows = np.where(np.abs(X) < 0.1, 0.0, X).astype(np.float32)
    forms = [
        lambda: cut(rows, Y, 3),
        lambda: cut(rows[::-1], Y[::-1] == 1, 5),
        lambda: [(scipy.sparse.csc_array(rows), Y.astype(float))],
        lambda: [(np.where(rows == 0, -0.0, rows).astype(np.float64), Y)],
    ]
    count = []

    def source():
        count.append(None)
        return forms[len(count) % len(forms)]()

    found = dpci.fit(dpci.Chunks(source), **SETTINGS)
    np.testing.assert_allclose(found.params, dpci.fit(rows, Y, **SETTINGS).params, rtol=0, atol=1e-10)
    assert len(count) > len(forms)


def test_minimisers_of_rows_that_change():
    targets = 2.0 * Y - 1.0
    source, _ = changing(targets, CHANGES["all signs"])
    with pytest.raises(InvalidInput, match=OTHER_ROWS):
        dpci.lowlevel.minimize_erm(dpci.Chunks(source), l2_strength=0.1)
    source, _ = changing(targets, CHANGES["all signs"])
    with pytest.raises(InvalidInput, match=OTHER_ROWS):
        dpci.lowlevel.hessian_and_gradient_cov(dpci.Chunks(source), None, np.zeros(D), l2_strength=0.1)


def test_every_fit_has_a_key_of_its_own():
    rules = PartRules(
        loss=dpci.losses.Logistic(), classes=(0, 1), rows=Ball(1.0), intercept=1.0, treatment="error", n_threads=None
    )
    fingerprints = set()
    for _ in range(5):
        work = Describe(rules)
        key = work.lengths.__getnewargs__()[2]
        description = work(X, Y)
        later = SumOver(_core.Request("risk", np.zeros(D + 1), key), rules)(X, Y)
        fingerprints.add(description.sums.__getnewargs__()[2])
        assert later.__getnewargs__()[2] in fingerprints
    assert len(fingerprints) == 5
    for key in (b"short", bytes(33), 5):
        with pytest.raises((TypeError, ValueError)):
            _core.Request("lengths", np.empty(0), key)


# Sources that can be read once only.


def test_one_iterator_is_found_before_the_ledger_pays():
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    keywords = {**SETTINGS, "seed": None, "ledger": ledger}
    for once in ((part for part in cut(X, Y, 3)), iter(cut(X, Y, 3))):
        with pytest.raises(
            InvalidInput, match=r"source must return a fresh iterable each time it is called, got the sa"
        ):
            dpci.fit(dpci.Chunks(lambda once=once: once), **keywords)
    assert ledger.remaining == dpci.ZCDP(1.0)


def test_one_iterator_behind_others_is_found_in_the_second_pass():
    once = iter(cut(X, Y, 3))
    with pytest.raises(
        InvalidInput, match=r"a source must return a fresh iterable each time: .* got no parts after 600"
    ):
        dpci.fit(dpci.Chunks(lambda: map(tuple, once)), **SETTINGS)


# Parts of few rows.


class Watched:
    """The work of a pass with a custom loss that remembers its threads, and raises what it is told to."""

    def __init__(self):
        self.threads, self.error = set(), None
        loss = dpci.losses.Custom(
            lambda u, y: np.logaddexp(0.0, -y * u),
            self._slope,
            lambda u, y: 0.25 * y**2 * (1.0 - np.tanh(0.5 * y * u) ** 2),
            slope_bound=1.0,
            curvature_bound=0.25,
            target_bounds=(-1.0, 1.0),
        )
        rules = PartRules(loss=loss, classes=None, rows=Ball(1.0), intercept=1.0, treatment="error", n_threads=None)
        self.work = SumOver(_core.Request("risk", np.zeros(D + 1), bytes(32)), rules)

    def _slope(self, u, y):
        self.threads.add(threading.get_ident())
        if self.error is not None:
            raise self.error
        return -0.5 * y * (1.0 - np.tanh(0.5 * y * u))


@pytest.mark.parametrize(("n_rows", "here"), [(1, True), (N, True), (100 * N, False)])
def test_small_parts_are_summed_on_the_thread_that_asks(n_rows, here):
    rows, targets = np.resize(X, (n_rows, D)), np.resize(REALS, n_rows)
    watched = Watched()
    watched.work(X, REALS)  # the loss is tried once, here
    watched.threads.clear()
    assert watched.work(rows, targets).n_rows == n_rows
    assert (watched.threads == {threading.get_ident()}) == here
    # What is raised comes out the same on either thread.
    for error, message in ((KeyboardInterrupt(), None), (ValueError("mine"), "an exception from slope: .*mine")):
        watched.error = error
        expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else InvalidInput
        with pytest.raises(expected, match=message):
            watched.work(rows, targets)


def test_one_row_each():
    x, y = X[:40], Y[:40]
    chunks = dpci.Chunks([(x[i : i + 1], y[i : i + 1]) for i in range(len(x))])
    ours, theirs = dpci.fit(chunks, **SETTINGS), dpci.fit(x, y, **SETTINGS)
    np.testing.assert_allclose(ours.params, theirs.params, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.hessian, theirs.hessian, rtol=0, atol=1e-10)
