"""Persons and weights of rows in parts: the fit of the whole table, and no person counts twice, in whatever pass."""

import datetime as dt
import itertools
import uuid

import numpy as np
import pytest

import dpci
from dpci.data.persons import tagged
from dpci.errors import InvalidInput

pytestmark = [pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")]

N, D = 1200, 3
_RNG = np.random.default_rng(1)
X = _RNG.uniform(-0.4, 0.4, size=(N, D))
Y = X[:, 0] + 0.1 * _RNG.normal(size=N) > 0
W = _RNG.uniform(0.0, 2.0, size=N)
IDS = np.sort(_RNG.integers(0, 300, size=N))
CUTS = (0, *np.searchsorted(IDS, (20, 20, 150, 260)), N)
SETTINGS = {"budget": dpci.ZCDP(0.5), "l2_strength": 0.05, "seed": 3}


def chunks(ids=IDS, cuts=CUTS, **columns):
    columns = {"id": ids, **columns}
    pairs = itertools.pairwise(cuts)
    return [(X[a:b], Y[a:b], {name: column[a:b] for name, column in columns.items()}) for a, b in pairs]


def assert_equal(ours, theirs):
    assert ours.n_samples == theirs.n_samples
    np.testing.assert_allclose(ours.params, theirs.params, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.asarray(ours.conf_int()), np.asarray(theirs.conf_int()), rtol=0, atol=1e-10)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("rule", [{}, {"max_rows": 2}, {"neighbors": dpci.AddRemove(250)}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_are_the_whole(mechanism, rule, weighted):
    keywords = {**SETTINGS, "mechanism": mechanism, **rule}
    max_rows = keywords.pop("max_rows", None)
    columns = {"w": W} if weighted else {}
    of_parts, of_table = ({"weights": dpci.Weights(w, bound=2.0)} if weighted else {} for w in ("w", W))
    parts = dpci.Chunks(chunks(**columns))
    ours = dpci.fit(parts, persons=dpci.Persons("id", max_rows=max_rows), **keywords, **of_parts)
    assert_equal(ours, dpci.fit(X, Y, persons=dpci.Persons(IDS, max_rows=max_rows), **keywords, **of_table))


def test_weights_alone():
    cut = [(x, y, {"w": beside["w"]}) for x, y, beside in chunks(w=W)]
    ours = dpci.fit(dpci.Chunks(cut), weights=dpci.Weights("w", bound=2.0), **SETTINGS)
    theirs = dpci.fit(X, Y, weights=dpci.Weights(W, bound=2.0), **SETTINGS)
    assert ours.n_samples == N
    np.testing.assert_allclose(ours.params, theirs.params, rtol=0, atol=1e-12)


def straddling():
    ids = IDS.copy()
    ids[-1] = ids[0]
    return chunks(ids)


def typed(others, last):
    """Ids of one type in all parts but the fourth."""
    return [(x, y, {"id": b["id"].astype(last if k == 3 else others)}) for k, (x, y, b) in enumerate(chunks())]


REFUSED = {
    "straddles": (straddling, "all of their rows in one part"),
    "missing": (lambda: chunks(np.where(np.arange(N) == N - 1, np.nan, IDS)), "id in every row"),
    "two types in a part": (lambda: chunks([*map(int, IDS[:-1]), "x"]), "ids of one type"),
    "texts after integers": (lambda: typed(int, str), "ids of one type in all parts"),
    "floats after integers": (lambda: typed(int, float), "ids of one type in all parts"),
    "two precisions": (lambda: typed("f4", "f8"), "ids of one type in all parts"),
    "tuples": (lambda: chunks([(int(i),) for i in IDS]), "whose values tell them apart"),
    "too few": (lambda: [(x, y, {"id": b["id"][1:]}) for x, y, b in chunks()], "one id for each"),
    "no column": (lambda: [(x, y) for x, y, _ in chunks()], "must have the column 'id'"),
    "another column": (lambda: [(x, y, {**b, "w": b["id"]}) for x, y, b in chunks()], "must be named by"),
    "no mapping": (lambda: [(x, y, b["id"]) for x, y, b in chunks()], "must be a mapping"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_anything_is_spent(case):
    make, message = REFUSED[case]
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    keywords = {**SETTINGS, "seed": None, "ledger": ledger}
    with pytest.raises(InvalidInput, match=message) as caught:
        dpci.fit(dpci.Chunks(make()), persons="id", **keywords)
    assert not any(str(int(i)) in str(caught.value) for i in IDS[[0, -1]] if i > 10)
    assert len(ledger.history) == 0


def test_columns_that_no_fit_asks_for_are_refused():
    # Persons who are given and not used would each count as often as they have rows.
    with pytest.raises(InvalidInput, match="must be named by persons= or weights="):
        dpci.fit(dpci.Chunks(chunks()), **SETTINGS)
    with pytest.raises(InvalidInput, match="must be the name of a column"):
        dpci.fit(dpci.Chunks(chunks()), persons=IDS, **SETTINGS)


def changing(change, at):
    """Parts that are others from a pass on, counted from 0."""
    count = []

    def source():
        count.append(None)
        return chunks() if len(count) - 1 != at else change()

    return dpci.Chunks(source)


def other_cut():
    first = int(np.flatnonzero(np.bincount(IDS) > 2)[10])
    return chunks(cuts=(0, int(np.searchsorted(IDS, first)) + 1, N))


def swapped():
    ids = IDS.copy()
    last, first = int(np.searchsorted(IDS, 100)) - 1, int(np.searchsorted(IDS, 100))
    ids[[last, first]] = ids[[first, last]]
    return chunks(ids)


def relabelled():
    return chunks(np.where(IDS[0] == IDS, 10_000, IDS))


@pytest.mark.parametrize("change", [other_cut, swapped, relabelled])
@pytest.mark.parametrize("persons", ["id", dpci.Persons("id", max_rows=40)], ids=str)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_passes_with_other_persons_are_refused(change, persons, at):
    with pytest.raises(InvalidInput, match="every pass over a source must find the same rows"):
        dpci.fit(changing(change, at), persons=persons, **SETTINGS)


@pytest.mark.parametrize("first", [True, False])
def test_passes_with_other_weights_are_refused(first):
    count = []

    def source():
        count.append(None)
        other = W.copy()
        other[0 if first else -1] += 1e-9 * (len(count) > 2)
        return chunks(w=other)

    with pytest.raises(InvalidInput, match="every pass over a source must find the same rows"):
        dpci.fit(dpci.Chunks(source), persons="id", weights=dpci.Weights("w", bound=3.0), **SETTINGS)


KINDS = [
    np.array([3, 1, 3], dtype=np.int8),
    np.array([2**64 - 1, 1, 2**64 - 1], dtype=np.uint64),
    np.array(["a", "b\u00e4", "a"]),
    ["a", "\ud800", "a"],
    np.array([0.0, 1.5, -0.0]),
    np.array(["2020-01-01", "2021-01-01", "2020-01-01"], dtype="M8[ns]"),
    [dt.date(2020, 1, 1), dt.date(2020, 1, 2), dt.date(2020, 1, 1)],
    [uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=1)],
    np.array([True, False, True]),
]


@pytest.mark.parametrize("ids", KINDS, ids=lambda ids: str(np.asarray(ids).dtype) + type(ids[0]).__name__)
def test_hashes_are_equal_for_equal_ids_and_no_others(ids):
    found = tagged(ids, 3, None, bytes(32))
    numbers, tags = found.for_core
    assert numbers[0] == numbers[2] != numbers[1]
    assert (tags[0] == tags[2]).all()
    assert (tags[0] != tags[1]).any()
    alone = tagged(ids[2:], 1, None, bytes(32))
    assert (alone.tags[0] == tags[0]).all()
    assert alone.kind == found.kind
    assert (tagged(ids, 3, None, b"\1" * 32).tags != found.tags).all()


def test_integers_of_all_widths_are_one_kind():
    each = [tagged(np.array([7], dtype=kind), 1, None, bytes(32)) for kind in "bBhHiIlLqQ"] + [
        tagged([7], 1, None, bytes(32))
    ]
    assert len({(found.kind, *found.tags[0].tolist()) for found in each}) == 1


@pytest.mark.parametrize("in_parts", [False, True])
def test_the_records_of_which_there_are_too_many_are_persons(in_parts):
    persons = len(np.unique(IDS))
    settings = {**SETTINGS, "l2_strength": 3.0}

    def fit(n_public):
        if in_parts:
            return dpci.fit(dpci.Chunks(chunks()), persons="id", neighbors=dpci.AddRemove(n_public), **settings)
        return dpci.fit(X, Y, persons=IDS, neighbors=dpci.AddRemove(n_public), **settings)

    assert fit(-(-persons // 16)).n_samples == -(-persons // 16)
    with pytest.raises(InvalidInput, match=rf"of the number of records, got n_public=10 for {persons} records"):
        fit(10)
