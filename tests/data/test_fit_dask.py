"""Fits of Dask collections: what they take, and the same results on every scheduler as in memory."""

import itertools

import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci import _core, lowlevel
from dpci.data import dask as _dask
from dpci.data.dask import DaskPartitions
from dpci.data.parts import Describe, PartRules, SumOver, describe
from dpci.errors import InvalidInput, RowNormViolation
from support import custom_losses
from support.keywords import assembled
from support.parts import assert_same_fit, make_rows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")

N, D = 3000, 5
X, Y, REALS = make_rows(N, D)
NAMES = list("abcde")
SETTINGS = {"budget": dpci.PureDP(1.0), "l2_strength": 0.05, "seed": 3}
CHUNKS = (1, 700, 0, 299, 1000, 1000)


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads"):
        yield


def arrays(targets=Y, chunks=CHUNKS):
    return da.from_array(X, chunks=(chunks, D)), da.from_array(targets, chunks=(chunks,))


def frame():
    table = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(target=Y), npartitions=4)
    return table[NAMES], table["target"]


def in_memory(targets=Y, **keywords):
    return dpci.fit(X, targets, **{**SETTINGS, **keywords})


def split(table):
    return table[:, :D], table[:, D] > 0


def unknown(collection):
    """The same blocks, of sizes that nobody knows."""
    return collection.map_blocks(lambda block: block, chunks=(tuple(np.nan for _ in CHUNKS), *collection.chunks[1:]))


SOURCES = {
    "arrays": arrays,
    "one partition": lambda: arrays(chunks=(N,)),
    "many partitions": lambda: arrays(chunks=(20,) * 150),
    "blocks of columns": lambda: (arrays()[0].rechunk((CHUNKS, (2, 3))), arrays()[1]),
    "both cut from one": lambda: split(da.from_array(np.column_stack([X, Y]), chunks=(CHUNKS, 4))),
    "sizes unknown": lambda: tuple(map(unknown, arrays())),
    "persisted": lambda: dask.persist(*arrays()),
    "sparse": lambda: (arrays()[0].map_blocks(scipy.sparse.csr_array), arrays()[1]),
    "frame": frame,
    "frame and array": lambda: (frame()[0], frame()[1].values),
    "array and series": lambda: (frame()[0].values, frame()[1]),
}


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source(source, scheduler):
    with dask.config.set(scheduler=scheduler):
        ours = dpci.fit(*SOURCES[source](), **SETTINGS)
    theirs = in_memory()
    np.testing.assert_allclose(ours.params, theirs.params, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.conf_int(), theirs.conf_int(), rtol=0, atol=1e-10)
    assert ours.names == ((*NAMES, "intercept") if source.startswith("frame") else theirs.names)


CUSTOM = custom_losses.soft_labels()


@pytest.mark.parametrize(
    ("targets", "keywords"),
    [
        (Y, {"loss": "huber_hinge", "budget": dpci.ZCDP(0.5)}),
        (Y, {"loss": "smooth_hinge", "mechanism": "output", "budget": dpci.ApproxDP(1.0, 1e-6)}),
        (REALS, {"loss": "squared", "radius": 1.0}),
        ((REALS + 1) / 2, {"loss": CUSTOM}),
        (Y, {"rows": dpci.rows.Clipped(0.5)}),
        (Y, {"neighbors": dpci.AddRemove(2500)}),
        (Y.astype(int), {"classes": (0, 1)}),
        (np.where(Y, "yes", "no"), {"classes": ("no", "yes")}),
    ],
    ids=["huber hinge", "smooth hinge", "squared", "custom", "clip", "add/remove", "classes 0 and 1", "words"],
)
def test_settings(targets, keywords):
    assert_same_fit(
        dpci.fit(*arrays(targets), **assembled(**{**SETTINGS, **keywords})), in_memory(targets, **assembled(**keywords))
    )


def test_minimisers_of_many_parameters_agree_to_the_last_digits():
    # Of a hundred parameters the lattice of the seal may tell two minimisers apart that are both good enough.
    rows, classes, _ = make_rows(4000, 100, seed=1)
    keywords = {"l2_strength": 0.02, "intercept": 1.0, "tolerance": 1e-11}
    blocks = da.from_array(rows, chunks=(900, 100)), da.from_array(2.0 * classes - 1.0, chunks=900)
    ours = lowlevel.minimize_erm(*blocks, **keywords)
    theirs = lowlevel.minimize_erm(rows, 2.0 * classes - 1.0, **keywords)
    assert np.linalg.norm(ours.params - theirs.params) <= min(1e-10, ours.certificate + theirs.certificate)
    matrices = lowlevel.hessian_and_gradient_cov(*blocks, ours.params, l2_strength=0.02, intercept=1.0)
    expected = lowlevel.hessian_and_gradient_cov(
        rows, 2.0 * classes - 1.0, ours.params, l2_strength=0.02, intercept=1.0
    )
    np.testing.assert_allclose(matrices, expected, rtol=0, atol=1e-14)


def test_parquet_files_that_dask_reads_together(tmp_path):
    # Optimised on its own, the frame of the targets has fewer partitions than that of the rows (Dask 2025 and later).
    pytest.importorskip("pyarrow")
    rows = pd.DataFrame(X, columns=NAMES)
    for k, part in enumerate(np.array_split(np.arange(N), 5)):
        rows.assign(target=Y).iloc[part].to_parquet(tmp_path / f"{k}.parquet")
    table = dd.read_parquet(tmp_path)
    assert_same_fit(dpci.fit(table[NAMES], table["target"], **SETTINGS), dpci.fit(rows, Y, **SETTINGS))


@pytest.mark.parametrize("kind", ["arrays", "both cut from one", "frame"])
def test_every_pass_computes_every_partition_once(kind):
    seen = []

    def count(part):
        seen.append(len(part))
        return part

    if kind == "frame":
        table = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(target=Y), npartitions=4)
        table = table.map_partitions(count, meta=table)
        seen.clear()
        source = table[NAMES], table["target"]
    else:
        table = da.from_array(np.column_stack([X, Y]), chunks=(750, D + 1)).map_blocks(count, dtype=float)
        source = (
            (table[:, :D], table[:, D]) if kind == "both cut from one" else (table[:, :D], arrays(chunks=(750,) * 4)[1])
        )
    seen.clear()
    partitions = _dask.dask_partitions(*source)
    describe(partitions, PartRules.unbounded(dpci.losses.SoftLogistic(), None, None))
    assert seen == [750] * 4


@pytest.mark.parametrize("n_parts", [1, 7, 8, 9, 64, 65, 100])
def test_neighbours_are_merged_in_order(n_parts):
    class Part(tuple):  # noqa: SLOT001  # holds nothing else
        n_rows = property(len)

        def merge(self, other):
            return Part((*self, *other))

    rows = da.from_array(np.arange(3.0 * n_parts).reshape(-1, 1), chunks=(3, 1))
    partitions = DaskPartitions(rows, rows[:, 0], {}, None)
    assert partitions.reduce(lambda x, _y: Part(x[:, 0])) == tuple(range(3 * n_parts))

    # The first error wins, with the rows before its partition, whatever fails elsewhere.
    first = 2 * n_parts // 3

    def fail(x, _y):
        if x[0, 0] >= 3 * first:
            raise InvalidInput(f"part {x[0, 0]:g}")
        return Part(x[:, 0])

    with pytest.raises(InvalidInput, match=rf"^part {3 * first}\n") as caught:
        partitions.reduce(fail)
    assert caught.value.__notes__ == [f"in partition {first}, whose row 0 is row {3 * first} of X"]

    class Odd(Part):
        def merge(self, other):
            raise InvalidInput(f"{other[0]:g} after {self[0]:g}")

    if n_parts > 1:
        with pytest.raises(InvalidInput, match=r"^3 after 0\n") as caught:
            partitions.reduce(lambda x, _y: Odd(x[:, 0]))
        assert caught.value.__notes__ == ["in partition 1, whose row 0 is row 3 of X"]


def spoilt(row, value, source):
    table = X.copy()
    table[row] = value
    return (
        da.from_array(table, chunks=(CHUNKS, D))
        if source == "array"
        else dd.from_pandas(pd.DataFrame(table), npartitions=4)
    )


@pytest.mark.parametrize("source", ["array", "frame"])
def test_rows_that_break_a_rule(source):
    with pytest.raises(InvalidInput, match=r"X must (be finite|have no missing values), got") as caught:
        dpci.fit(spoilt(1500, np.nan, source), _targets(source), **SETTINGS)
    assert caught.value.__notes__ == [
        "in partition 4, whose row 0 is row 1000 of X"
        if source == "array"
        else "in partition 2, whose row 0 is row 1500 of X"
    ]
    with pytest.raises(RowNormViolation, match="in row 0 "):
        dpci.fit(spoilt(0, 1.0, source), _targets(source), **SETTINGS)


def _targets(source):
    return arrays()[1] if source == "array" else frame()[1]


def test_nothing_is_paid_for_rows_that_are_refused():
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    with pytest.raises(InvalidInput, match="X must be finite"):
        dpci.fit(spoilt(1500, np.inf, "array"), arrays()[1], **{**SETTINGS, "seed": None}, ledger=ledger)
    assert ledger.remaining == dpci.PureDP(1.0)


def test_rows_that_change_between_passes():
    passes = itertools.count()
    changing = arrays(chunks=(N,))[0].map_blocks(lambda x: x * 0.99 ** next(passes), dtype=float)
    with pytest.raises(InvalidInput, match="every pass over a source must find the same rows"):
        dpci.fit(changing, arrays(chunks=(N,))[1], **SETTINGS)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda: (arrays()[0], Y), "y must be a Dask array or series if X is a Dask collection, got ndarray"),
        (lambda: (frame()[0], frame()[0]), "y must be a Dask array or series .*, got DataFrame"),
        (lambda: (arrays()[0][:, 0], arrays()[1]), "X must have 2 dimensions, got 1"),
        (lambda: (frame()[1], frame()[1]), "X must have 2 dimensions, got 1"),
        (lambda: (arrays()[0], arrays()[0]), "y must have 1 dimension, got 2"),
        (lambda: (arrays()[0], arrays(chunks=(N,))[1]), "y must have the partitions of X, got 1 and 6"),
        (
            lambda: (arrays()[0], arrays(chunks=(1, 700, 0, 300, 999, 1000))[1]),
            "y must have the partitions of X, got 300 entries for 299 rows in partition 3",
        ),
        (
            lambda: (unknown(arrays()[0]), arrays(chunks=(1, 700, 0, 300, 999, 1000))[1]),
            "y must have one entry for each row of X, got 300 entries and 299 rows",
        ),
        (lambda: (frame()[0].assign(a="text"), frame()[1]), "the columns of X must be numeric"),
        (lambda: (arrays()[0], arrays(Y + 5)[1]), "classes=.* must be given for rows in parts unless y has a boolean"),
        (lambda: (arrays()[0][:0], arrays()[1][:0]), "the data must have at least one row"),
    ],
)
def test_what_is_refused(source, message):
    with pytest.raises(InvalidInput, match=message):
        dpci.fit(*source(), **SETTINGS)


def test_what_dask_raises_comes_out():
    def fail(_block):
        raise OSError("no such disk")

    with pytest.raises(OSError, match="no such disk"):
        dpci.fit(arrays()[0].map_blocks(fail, dtype=float, meta=np.empty((0, 0))), arrays()[1], **SETTINGS)


def test_each_partition_has_one_thread_unless_told_otherwise():
    partitions = _dask.dask_partitions(*arrays())
    rules = PartRules.unbounded(dpci.losses.Logistic(), None, None)
    found = describe(_dask.dask_partitions(*arrays(2.0 * Y - 1.0)), rules)
    assert found.rules.n_threads == 1
    assert partitions.names is None
    two = PartRules.unbounded(dpci.losses.Logistic(), None, 2)
    assert describe(_dask.dask_partitions(*arrays(2.0 * Y - 1.0)), two).rules.n_threads == 2


def test_workers_of_another_version_are_refused():
    rules = PartRules.unbounded(dpci.losses.SoftLogistic(), None, 1)
    outcome = _dask._work_on(Describe(rules), 3, "0.0.0", (), X, (REALS + 1) / 2)
    assert isinstance(outcome.error, InvalidInput)
    assert str(outcome.error).startswith("workers must have dpci 0.0.0, the version of the caller, got ")
    work = SumOver(_core.Request("risk", np.zeros(D), bytes(32)), rules)
    assert _dask._work_on(work, 3, _core.__version__, (), X, (REALS + 1) / 2).n_rows == N


def test_persons_and_weights_beside_partitions():
    rng = np.random.default_rng(1)
    ids, weights = np.sort(rng.integers(0, N // 3, size=N)), rng.uniform(0.0, 2.0, size=N)
    cuts = [0, *(int(np.searchsorted(ids, share * N // 12)) for share in (1, 2)), N]
    sizes = tuple(np.diff(cuts).tolist())
    whole = dpci.fit(X, Y, persons=ids, weights=dpci.Weights(weights, bound=2.0), **SETTINGS)

    def cut(values):
        return da.from_array(values, chunks=(sizes, *values.shape[1:]))

    weighing = dpci.Weights(cut(weights), bound=2.0)
    found = dpci.fit(cut(X), cut(Y), persons=cut(ids), weights=weighing, **SETTINGS)
    assert found.n_samples == whole.n_samples < N
    np.testing.assert_allclose(found.params, whole.params, rtol=0, atol=1e-12)
    with pytest.raises(InvalidInput, match="all of their rows in one part"):
        dpci.fit(cut(X), cut(Y), persons=cut(ids[::-1] % ids[sizes[0]]), weights=weighing, **SETTINGS)
    with pytest.raises(InvalidInput, match="persons must be a Dask array or series"):
        dpci.fit(cut(X), cut(Y), persons=ids, **SETTINGS)


def test_a_function_of_one_array_computes_collections():
    X_, Y_ = arrays()
    ids = np.arange(N) // 2
    given = {"budget": dpci.PureDP(1.0), "loss": "logistic", "seed": 3}
    mechanism = dpci.baselines.functional_mechanism
    theirs = mechanism(X, Y, persons=dpci.Persons(ids), **given).params
    np.testing.assert_array_equal(mechanism(X_, Y_, persons=da.from_array(ids, chunks=700), **given).params, theirs)
