"""Studies of odd input, and the work that they share: refused, or the right answer."""

import os
from functools import partial

import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci import _core, simulate
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.model.settings import Settings
from dpci.simulate import replicates as _replicates

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")

N, D = 200, 3
STUDY = {"budget": dpci.PureDP(2.0), "l2_strength": 0.2, "n_replicates": 30, "n_variability": 20, "n_threads": 1}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(41)
    X = rng.integers(-2, 3, size=(N, D)) / 4.0
    return X, (X @ [3.0, -2.0, 1.0] + rng.logistic(size=N) > 0).astype(int)


def bits(study):
    return np.vstack([study.target, study.params, study.lower, study.upper, study.variability.params])


# Samples that have lost something.


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_tiny_data_sets(rows, n, mechanism):
    X, y = rows[0][:n], np.arange(n) % 2
    study = simulate.coverage(X, y, **{**STUDY, "l2_strength": 2.0}, mechanism=mechanism, classes=(0, 1))
    assert np.isfinite(bits(study)).all()
    assert (study.lower < study.upper).all()
    expected = dpci.lowlevel.minimize_erm(X, 2.0 * y - 1.0, l2_strength=2.0, intercept=1.0)
    np.testing.assert_allclose(study.target, expected.params, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "X", [np.full((N, D), 0.25), np.zeros((N, D)), np.zeros((N, 0))], ids=["one row", "zeros", "no columns"]
)
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_rows_that_span_nothing(X, storage):
    for y in (np.ones(N, dtype=int), (np.arange(N) == 0).astype(int)):
        study = simulate.coverage(storage(X), y, classes=(0, 1), **STUDY)
        assert study.n_distinct == len(np.unique(y))
        assert np.isfinite(bits(study)).all()


def test_no_parameters_are_refused(rows):
    with pytest.raises(InvalidInput, match="at least one row and one parameter, got 200 rows and 0 parameters"):
        simulate.coverage(np.zeros((N, 0)), rows[1], intercept=False, **STUDY)


# Arguments.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("n_replicates", "n_variability") for value in (True, "3", np.float64(3.0), 2**63)),
        ("n_replicates", None),  # without n_variability the study chooses the number
    ],
    ids=repr,
)
def test_counts(rows, name, value):
    with pytest.raises(InvalidInput, match=rf"{name} must be (an integer|below 2\*\*63), got {name}="):
        simulate.coverage(*rows, **{**STUDY, name: value})


def test_integers_of_numpy_are_integers(rows):
    study = simulate.coverage(*rows, **{**STUDY, "n_replicates": np.int64(30), "seed": np.uint64(0)})
    np.testing.assert_array_equal(bits(study), bits(simulate.coverage(*rows, **STUDY)))


@pytest.mark.parametrize("n_threads", [64, 10**9])
@pytest.mark.parametrize("parallel", [None, "joblib"])
def test_threads_beyond_the_cores_do_no_harm(rows, monkeypatch, n_threads, parallel):
    run = partial(simulate.coverage, *rows, parallel=parallel)
    found = run(**{**STUDY, "n_threads": n_threads})
    np.testing.assert_array_equal(bits(found), bits(simulate.coverage(*rows, **STUDY)))

    def refuse(_self, ranges, _level):
        raise RuntimeError(ranges[-1][1])

    # The first batch shows how fast the machine is, so it must be short, or nothing is saved for long.
    runner = _replicates.LocalRunner if parallel is None else _replicates.JoblibRunner
    monkeypatch.setattr(runner, "run", refuse)
    with pytest.raises(RuntimeError) as first:
        run(**{**STUDY, "n_threads": n_threads, "n_replicates": 10**12})
    assert first.value.args[0] <= _core.LANES * os.cpu_count()


def test_configurations_may_come_from_any_iterable(rows):
    found = simulate.coverage(*rows, configs=(dict(config) for config in ({}, {"mechanism": "output"})), **STUDY)
    assert len(found) == 2
    assert len(
        simulate.variability(*rows, budget=STUDY["budget"], l2_strength=0.2, n_variability=2, configs=[{}] * 255)
    )


@pytest.mark.parametrize("intercept", [True, False])
def test_too_many_parameters(rows, intercept):
    X = scipy.sparse.csr_array((N, 2049 - intercept))
    with pytest.raises(InvalidInput, match="the number of parameters of a study must be at most 2048"):
        simulate.coverage(X, rows[1], intercept=intercept, **STUDY)


# Sparse rows.


def with_explicit_zeros(rows):
    full = scipy.sparse.csr_array(np.ones_like(rows))
    full.data = rows.ravel().copy()
    return full


def with_unsorted_indices(rows):
    sparse = scipy.sparse.csr_array(rows)
    for start, stop in zip(sparse.indptr, sparse.indptr[1:], strict=False):
        sparse.indices[start:stop] = sparse.indices[start:stop][::-1]
        sparse.data[start:stop] = sparse.data[start:stop][::-1]
    sparse.has_sorted_indices = False
    return sparse


def with_duplicate_entries(rows):
    # Halves of powers of two, whose sums are exact.
    half = scipy.sparse.coo_array(rows / 2.0)
    entries = (np.tile(half.data, 2), (np.tile(half.row, 2), np.tile(half.col, 2)))
    return scipy.sparse.coo_array(entries, shape=rows.shape)


def with_long_indices(rows):
    sparse = scipy.sparse.csr_array(rows)
    sparse.indices, sparse.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    return sparse


@pytest.mark.parametrize(
    "make", [with_explicit_zeros, with_unsorted_indices, with_duplicate_entries, with_long_indices]
)
def test_sparse_rows_of_any_form(rows, make):
    X, y = rows
    plain, odd = scipy.sparse.csr_array(X), make(X)
    np.testing.assert_array_equal(odd.toarray(), X)
    entries = odd.data.copy()
    found, expected = (simulate.coverage(table, y, **STUDY) for table in (odd, plain))
    np.testing.assert_array_equal(odd.data, entries)
    assert found.n_distinct == expected.n_distinct
    np.testing.assert_allclose(bits(found), bits(expected), rtol=0, atol=1e-8)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_sparse_rows_are_finite(rows, value):
    sparse = scipy.sparse.csr_array(rows[0])
    sparse.data[7] = value
    row = int(np.searchsorted(sparse.indptr, 7, side="right")) - 1
    with pytest.raises(InvalidInput, match=rf"X must be finite, got .* in row {row}, column {sparse.indices[7]}"):
        simulate.coverage(sparse, rows[1], **STUDY)


def lengths(configs):
    """Variability lengths and coverage on rows that come with both targets, so that every minimiser is zero."""
    half = np.random.default_rng(3).uniform(-0.5, 0.5, size=(300, 3))
    X, y = np.concatenate([half, half]), np.repeat([1.0, -1.0], len(half))
    with pytest.warns(PrivacyLeakWarning):
        found = simulate.coverage(
            X,
            y,
            budget=dpci.PureDP(1000.0),
            mechanism="output",
            intercept=False,
            l2_strength=1.0,
            classes=(-1, 1),
            n_replicates=32,
            n_variability=64,
            configs=configs,
        )
    assert all(np.abs(study.target).max() < 1e-9 for study in found)
    return [study.variability_length for study in found]


@pytest.mark.parametrize(
    "pair",
    [
        ({"l2_strength": 0.01}, {"l2_strength": 1.0}),
        ({"loss": dpci.losses.HuberHinge(h=0.3)}, {"loss": dpci.losses.HuberHinge(h=2.0)}),
        ({"loss": "logistic"}, {"loss": dpci.losses.SmoothHinge(s=0.5)}),
    ],
)
def test_another_risk_with_the_same_minimiser_has_replicates_of_its_own(pair):
    """The noise of a configuration depends on its place, but drowns in nothing here: lengths follow the risk alone."""
    alone = [lengths([config])[0] for config in pair]
    assert max(alone) > 1.2 * min(alone)
    np.testing.assert_allclose(lengths(list(pair)), alone, rtol=0.05)
    np.testing.assert_allclose(lengths(list(pair)[::-1]), alone[::-1], rtol=0.05)


def test_batches_are_whole_groups():
    assert _core.LANES == 16
    for n_threads in (1, 2, 5):
        assert _replicates.LocalRunner(None, 0, n_threads).width % _core.LANES == 0

    class Runner:
        n_jobs = 3

    ranges = _replicates._ranges(Runner, 0, 160)
    assert [stop - start for start, stop in ranges] == [64, 64, 32]


def test_rows_of_other_bounds_are_refused():
    """The core itself compares what rows were checked against with what the noise was calibrated for."""
    X, y = np.full((50, 2), 0.1), np.resize([1.0, -1.0], 50)
    settings = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1}
    wide, narrow = (Settings.checked(**settings, rows=norm, intercept=False).spec(50, 2) for norm in (1.0, 0.01))
    with pytest.raises(dpci.DpciError, match=r"row_norm=0\.01, .* got row_norm=1,"):
        _core.Study([wide, narrow], _core.Records(X, y), clip=False, n_threads=1)


def test_rows_that_are_clipped_hard_keep_their_part_in_the_moments():
    """Dense and sparse sums agree where the scale of a row, squared, would underflow."""
    dense = np.zeros((64, 40))
    dense[np.arange(64), np.arange(64) % 40] = 0.99e150
    y = np.resize([1.0, -1.0, 1.0], 64)
    found = []
    for X in (dense, scipy.sparse.csr_array(dense)):
        with pytest.warns(dpci.errors.DpciWarning):
            result = dpci.fit(
                X,
                y,
                budget=dpci.PureDP(1e6),
                l2_strength=10.0,
                rows=dpci.rows.Clipped(3.14e-12),
                classes=(-1, 1),
                mechanism=dpci.ObjectivePerturbation(projection="floor"),
                seed=0,
            )
        found.append(result.hessian)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-9)
