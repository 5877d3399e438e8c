"""Multinomial fits of rows in parts: those of the rows in memory, from chunks, files and Dask; and what is refused."""

import dataclasses
import itertools

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.schema import CategoricalTarget, NumericColumn, Schema
from dpci.unit import given_unit
from support.parts import CountingChunks

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")

N, CLASSES = 900, ("b", "a", "c")
_RNG = np.random.default_rng(3)
X = _RNG.uniform(-0.7, 0.7, (N, 2))
IDS = np.sort(_RNG.integers(0, 250, N))
WEIGHTS = _RNG.uniform(0.0, 2.0, N)
Y = np.array(CLASSES)[(X @ _RNG.normal(size=(2, 3)) * 2.0 + _RNG.gumbel(size=(N, 3))).argmax(axis=1)]
CUTS = (0, *np.searchsorted(IDS, (1, 60, 60, 200)), N)
ASKED = {"budget": dpci.ZCDP(rho=0.5), "classes": CLASSES, "l2_strength": 0.05, "seed": 1}
CASES = {
    "rows": ({}, {}),
    "persons": ({"id": IDS}, {"persons": "id"}),
    "first rows": ({"id": IDS}, {"persons": dpci.Persons("id", max_rows=2)}),
    "weights": ({"w": WEIGHTS}, {"weights": dpci.Weights("w", bound=2.0)}),
    "both": ({"id": IDS, "w": WEIGHTS}, {"persons": "id", "weights": dpci.Weights("w", bound=2.0)}),
    "add_remove": ({"id": IDS}, {"persons": "id", "neighbors": dpci.AddRemove(240)}),
}


def parts(columns, x=X, y=Y):
    """Chunks that are cut between persons, some of them empty."""
    pairs = itertools.pairwise(CUTS)
    if not columns:
        return [(x[a:b], y[a:b]) for a, b in pairs]
    return [(x[a:b], y[a:b], {name: column[a:b] for name, column in columns.items()}) for a, b in pairs]


def in_memory(columns, keywords):
    """The keywords of the same fit of one table."""
    given = given_unit(keywords.get("persons"), keywords.get("weights"))
    ids, values = (columns.get(name) for name in given.beside)
    return {
        **keywords,
        "persons": None if given.unit is None else dataclasses.replace(given.unit, ids=ids),
        "weights": None if given.weights is None else dataclasses.replace(given.weights, values=values),
    }


def assert_equal(ours, theirs):
    assert (ours.names, ours.classes, ours.n_samples) == (theirs.names, theirs.classes, theirs.n_samples)
    np.testing.assert_allclose(ours.params, theirs.params, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.asarray(ours.conf_int()), np.asarray(theirs.conf_int()), rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.hessian, theirs.hessian, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.gradient_cov, theirs.gradient_cov, rtol=0, atol=1e-9)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("case", CASES)
def test_parts_are_the_whole(case, mechanism):
    columns, keywords = CASES[case]
    source = CountingChunks(parts(columns))
    ours = dpci.multinomial.fit(source, mechanism=mechanism, **ASKED, **keywords)
    assert_equal(ours, dpci.multinomial.fit(X, Y, mechanism=mechanism, **ASKED, **in_memory(columns, keywords)))
    assert source.passes[0] == "describe"
    assert source.passes[-1] == "moments"
    assert set(source.passes[1:-1]) <= {"risk", "risk_and_hessian"}


SCHEMA = Schema(
    columns=tuple(NumericColumn(name=name, lower=-1, upper=1) for name in ("one", "two")),
    target=CategoricalTarget(column="way", classes=(("b",), ("a",), ("c", "other"))),
    persons="id",
)
OF_SCHEMA = {name: value for name, value in ASKED.items() if name != "classes"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A CSV file of persons, sorted by them, and its columns."""
    found = {"one": X[:, 0].tolist(), "two": X[:, 1].tolist(), "way": Y.tolist(), "id": [f"p{i:03d}" for i in IDS]}
    path = tmp_path_factory.mktemp("several") / "ways.csv"
    rows = "\n".join(",".join(map(str, row)) for row in zip(*found.values(), strict=True))
    path.write_text(f"{','.join(found)}\n{rows}\n", encoding="utf-8")
    return path, found


def test_a_file_and_chunks_of_a_schema_are_the_table(table):
    path, columns = table
    whole = dpci.multinomial.fit(columns, schema=SCHEMA, persons="id", **OF_SCHEMA)
    chunks = dpci.Chunks.from_csv(path, schema=SCHEMA, beside=["id"], together="id", chunk_rows=100)
    for found in (
        dpci.multinomial.fit(path, schema=SCHEMA, persons="id", **OF_SCHEMA),
        dpci.multinomial.fit(chunks, schema=SCHEMA, persons="id", **OF_SCHEMA),
        dpci.multinomial.fit(chunks, persons="id", **OF_SCHEMA),
    ):
        assert_equal(found, whole)
        assert found.classes == ("b", "a", "c|other")
    # The schema of chunks counts, too, where the fit is given none.
    for source, more in (
        (path, {"schema": SCHEMA}),
        (chunks, {"schema": SCHEMA}),
        (chunks, {}),
        (columns, {"schema": SCHEMA}),
    ):
        with pytest.raises(InvalidInput, match="persons must be given where the schema names a column"):
            dpci.multinomial.fit(source, **OF_SCHEMA, **more)


def test_dask_partitions_are_the_whole():
    da = pytest.importorskip("dask.array", reason="optional")
    keywords = {"persons": da.from_array(IDS, chunks=(tuple(np.diff(CUTS).tolist()),))}
    rows = tuple(np.diff(CUTS).tolist())
    ours = dpci.multinomial.fit(
        da.from_array(X, chunks=(rows, 2)), da.from_array(Y, chunks=(rows,)), **ASKED, **keywords
    )
    assert_equal(ours, dpci.multinomial.fit(X, Y, persons=IDS, **ASKED))


def changing():
    """Rows that are others in the second pass."""
    count = itertools.count()
    return dpci.Chunks(lambda: parts({}, x=X if next(count) == 0 else X * 0.999))


REFUSED = {
    "another class": (lambda: parts({}, y=np.where(np.arange(N) == N - 1, "d", Y)), {}, "must hold only the classes"),
    "a long row": (lambda: parts({}, x=X * np.where(np.arange(N) == 3, 9.0, 1.0)[:, None]), {}, "norm"),
    "no targets": (lambda: [(x, None) for x, _ in parts({})], {}, "y"),
    "two parts": (
        lambda: parts({"id": np.where(np.arange(N) == N - 1, IDS[0], IDS)}),
        {"persons": "id"},
        "in one part",
    ),
    "no column": (lambda: parts({}), {"persons": "id"}, "must have the column 'id'"),
    "not named": (lambda: parts({"id": IDS}), {}, "must be named by persons= or weights="),
    "ids": (lambda: parts({"id": IDS}), {"persons": IDS}, "must be the name of a column"),
    "heavy": (lambda: parts({"w": WEIGHTS}), {"weights": dpci.Weights("w", bound=1.0)}, "weights"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_anything_is_spent(case):
    make, keywords, message = REFUSED[case]
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    with pytest.raises(dpci.DpciError, match=message):
        dpci.multinomial.fit(dpci.Chunks(make()), **{**ASKED, "seed": None}, **keywords, ledger=ledger)
    assert len(ledger.history) == 0


def test_rows_that_change_between_passes_are_refused():
    with pytest.raises(InvalidInput, match="every pass"):
        dpci.multinomial.fit(changing(), **ASKED)
    with pytest.raises(InvalidInput, match="y must be None if X holds the targets"):
        dpci.multinomial.fit(dpci.Chunks(parts({})), Y, **ASKED)
    with pytest.raises(InvalidInput, match="y must be given unless X holds the targets"):
        dpci.multinomial.fit(X, **ASKED)


def test_private_errors_pay_before_anything_is_read():
    ledger = dpci.Ledger(dpci.ZCDP(1.0), errors="private")
    keywords = {**ASKED, "seed": None, "rows": "clip", "ledger": ledger}
    assert dpci.multinomial.fit(dpci.Chunks(parts({"id": IDS})), persons="id", **keywords).private
    with pytest.raises(dpci.ReleaseFailed):
        dpci.multinomial.fit(dpci.Chunks(parts({"id": IDS}, y=np.full(N, "d"))), persons="id", **keywords)
    assert len(ledger.history) == 2
