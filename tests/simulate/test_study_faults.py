"""Studies under bad luck and of odd input: nothing complete is lost, and what is refused is refused in words."""

import errno
import io
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci import _core, simulate
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.model.keywords import CHOICES
from dpci.model.settings import Settings
from dpci.simulate import replicates as _replicates
from support import custom_losses
from support.studies import bits, complete

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")

N, D = 200, 3
STUDY = {"budget": dpci.PureDP(2.0), "l2_strength": 0.2, "n_replicates": 30, "n_variability": 20, "n_threads": 1}


def make_rows():
    rng = np.random.default_rng(41)
    X = rng.integers(-2, 3, size=(N, D)) / 4.0
    return X, (X @ [3.0, -2.0, 1.0] + rng.logistic(size=N) > 0).astype(int)


@pytest.fixture(scope="module")
def rows():
    return make_rows()


# Checkpoints of another study.


@pytest.fixture(scope="module")
def written(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "study.npz"
    simulate.coverage(*rows, checkpoint=path, **STUDY)
    return path.read_bytes()


@pytest.fixture
def saved(written, tmp_path):
    path = tmp_path / "study.npz"
    path.write_bytes(written)
    return path


# The keyword that makes a choice, where their names differ.
KEYWORD_OF = {"intercept": "rows", "on_violation": "rows", "n_public": "neighbors"}
ANOTHER = {
    "budget": dpci.PureDP(2.5), "l2_strength": 0.25, "loss": dpci.losses.HuberHinge(h=0.25),
    "mechanism": dpci.OutputPerturbation(), "split": (0.5, 0.25, 0.25), "moments": "separate", "projection": "floor",
    "calibration": "paper", "radius": 0.75, "classes": (1, 0), "intercept": dpci.rows.Within(intercept=0.5),
    "rows": 2.0, "on_violation": "clip", "neighbors": dpci.AddRemove(N), "n_public": dpci.AddRemove(N),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*CHOICES} - {"n_threads", "seed"}))
def test_every_choice_belongs_to_the_study(rows, saved, written, name):
    keywords = {**STUDY, KEYWORD_OF.get(name, name): ANOTHER[name]}
    there = "hash of X and y: " if name == "classes" else rf"configs\[0\]\.{name}[.:]"
    with pytest.raises(InvalidInput, match=f"must belong to the same study.*which differs in .*{there}"):
        simulate.coverage(*rows, checkpoint=saved, **keywords)
    assert saved.read_bytes() == written


def with_another_zero(X, y):
    return np.where(X == 0.0, -0.0, X), y


def with_another_bit(X, y):
    X = X.copy()
    X[-1, -1] = np.nextafter(X[-1, -1], 1.0)
    return X, y


def in_another_order(X, y):
    return X[::-1], y[::-1]


def as_sparse_rows(X, y):
    return scipy.sparse.csr_array(X), y


@pytest.mark.parametrize("change", [with_another_zero, with_another_bit, in_another_order, as_sparse_rows])
def test_data_of_other_bits_are_refused(rows, saved, written, change):
    with pytest.raises(InvalidInput, match=r"which differs in hash of X and y: .* there, .* here"):
        simulate.coverage(*change(*rows), checkpoint=saved, **STUDY)
    assert saved.read_bytes() == written


def test_another_version_is_refused(rows, saved, written, monkeypatch):
    version = dpci.__version__
    monkeypatch.setattr(_core, "__version__", "0.0.0")
    with pytest.raises(InvalidInput, match=rf"differs in version: {version} there, 0.0.0 here"):
        simulate.coverage(*rows, checkpoint=saved, **STUDY)
    assert saved.read_bytes() == written


def test_a_checkpoint_of_variability_is_none_of_coverage(rows, tmp_path):
    path = tmp_path / "study.npz"
    simulate.variability(*rows, budget=STUDY["budget"], l2_strength=0.2, n_variability=20, checkpoint=path)
    with pytest.raises(InvalidInput, match="which differs in study: variability there, coverage here"):
        simulate.coverage(*rows, checkpoint=path, **STUDY)


def test_custom_losses_are_told_apart_by_what_they_compute(rows, tmp_path):
    path = tmp_path / "study.npz"
    run = partial(simulate.coverage, *rows, checkpoint=path, **STUDY)
    study = run(loss=custom_losses.logistic())
    np.testing.assert_array_equal(bits(run(loss=custom_losses.logistic())), bits(study))
    with pytest.raises(InvalidInput, match="which differs in hash of the full-data minimisers"):
        run(loss=custom_losses.logistic(0.9))


# Paths and disks.


@pytest.mark.parametrize(
    "path", ["", "a\0b", "n" * 300, "\ud800", "{folder}", "{file}/study.npz", "{folder}/none/study.npz"]
)
def test_paths_that_no_checkpoint_can_have(rows, saved, monkeypatch, path):
    monkeypatch.chdir(saved.parent)
    path = path.format(folder=saved.parent, file=saved)
    with pytest.raises(InvalidInput, match=r"checkpoint must be a file that can be (read|written), got '") as refusal:
        simulate.coverage(*rows, checkpoint=path, **{**STUDY, "n_replicates": 10**9})
    assert "remove it" not in str(refusal.value)


def test_an_unreadable_file_is_kept(rows, saved, written, monkeypatch):
    def refuse(*_arguments, **_keywords):
        raise PermissionError(errno.EACCES, "Permission denied", str(saved))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refuse)
        with pytest.raises(InvalidInput, match=r"a file that can be read, got '.*': Permission denied$"):
            simulate.coverage(*rows, checkpoint=saved, **STUDY)
    assert saved.read_bytes() == written


def test_ctrl_c_during_a_save_is_no_other_error(rows, tmp_path, monkeypatch):
    with zipfile.ZipFile(io.BytesIO(), "w") as archive, archive.open("array", "w") as member:
        kind, close, calls = type(member), type(member).close, []

    def interrupted(self):
        if not calls:
            calls.append(signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
        close(self)

    monkeypatch.setattr(kind, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate.coverage(*rows, checkpoint=tmp_path / "study.npz", **STUDY)
    assert complete(tmp_path / "study.npz") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["study.npz"]


@pytest.fixture
def saved_often(monkeypatch):
    """Batches of one group of replicates, each of which is saved."""
    monkeypatch.setattr(_replicates, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(_replicates, "BATCH_SECONDS", 1e-9)


@pytest.mark.parametrize(
    ("owner", "name", "number"),
    [(os, "fsync", errno.ENOSPC), (os, "fsync", errno.EIO), (Path, "replace", errno.EACCES)],
    ids=["disk full", "disk broken", "folder read-only"],
)
@pytest.mark.usefixtures("saved_often")
def test_what_cannot_be_saved_does_not_harm_what_was(rows, tmp_path, monkeypatch, owner, name, number):
    path = tmp_path / "study.npz"
    real, calls = getattr(owner, name), []

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) > 2:
            raise OSError(number, os.strerror(number))
        return real(*arguments)

    run = partial(simulate.coverage, *rows, checkpoint=path, **STUDY)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, failing)
        with pytest.raises(InvalidInput, match=f"a file that can be written, got '.*': {os.strerror(number)}"):
            run()
    assert [file.name for file in tmp_path.iterdir()] == ["study.npz"]
    assert complete(path) == _core.LANES
    np.testing.assert_array_equal(bits(run()), bits(simulate.coverage(*rows, **STUDY)))


def assert_resumed(rows, path, n_replicates):
    longer = {**STUDY, "n_replicates": n_replicates}
    found = simulate.coverage(*rows, checkpoint=path, **longer)
    np.testing.assert_array_equal(bits(found), bits(simulate.coverage(*rows, **longer)))


@pytest.mark.usefixtures("saved_often")
def test_a_file_beyond_the_limit_of_the_system(rows, tmp_path):
    path = tmp_path / "study.npz"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, before[1]))
        with pytest.raises(InvalidInput, match=r"a file that can be written, got '.*': File too large"):
            simulate.coverage(*rows, checkpoint=path, **{**STUDY, "n_replicates": 10**9})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [file.name for file in tmp_path.iterdir()] == ["study.npz"]
    done = complete(path)
    assert done >= 64
    assert_resumed(rows, path, done + 8)


# Kills.

# A clock on which every batch takes one second: what a kill may cost is known to the batch.
KILLED = """
import os, signal, sys, warnings
from types import SimpleNamespace
sys.path.insert(0, sys.argv[1])
from simulate import test_study_faults as tests
from dpci import simulate
from dpci.simulate import checkpoint as _checkpoint, replicates as _replicates

where, at = sys.argv[3], int(sys.argv[4])
count = {"run": 0, "save": 0}

def then(kind, function):
    def counted(*arguments):
        count[kind] += 1
        if where == kind and count[kind] == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)
    return counted

_replicates.LocalRunner.run = then("run", _replicates.LocalRunner.run)
_checkpoint.os.fsync = then("save", os.fsync)
_replicates.time = SimpleNamespace(monotonic=lambda: float(count["run"]))
warnings.simplefilter("ignore")
simulate.coverage(*tests.make_rows(), checkpoint=sys.argv[2], **{**tests.STUDY, "n_replicates": 10**6})
"""


@pytest.mark.parametrize(("where", "at", "ran"), [("run", 100, 99), ("save", 4, 93)])
def test_a_kill_costs_one_interval_at_most(rows, tmp_path, where, at, ran):
    path = tmp_path / "study.npz"
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parents[1]), str(path), where, str(at)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    done = complete(path)
    # Batches of one group; saved by the first batch that ends after the interval.
    assert 0 < _core.LANES * ran - done <= _core.LANES * (_replicates.CHECKPOINT_SECONDS + 1)
    assert_resumed(rows, path, done + 24)


INTERRUPTED = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
import joblib
from simulate import test_study_faults as tests
from dpci import simulate
from dpci.simulate import replicates as _replicates

_replicates.CHECKPOINT_SECONDS, _replicates.JOBLIB_BATCH_SECONDS, _replicates.BATCH_SECONDS = 0.0, 0.2, 1e-9
warnings.simplefilter("ignore")
study = {**tests.STUDY, "n_replicates": 10**6, "parallel": None if sys.argv[3] == "alone" else "joblib"}
with joblib.parallel_config(sys.argv[3].replace("alone", "threading"), n_jobs=2):
    try:
        simulate.coverage(*tests.make_rows(), checkpoint=sys.argv[2], **study)
    except KeyboardInterrupt:
        sys.exit(7)
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["alone", "loky", "threading"])
def test_an_interrupted_study_is_resumed(rows, tmp_path, backend):
    path = tmp_path / "study.npz"
    command = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parents[1]), str(path), backend]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while complete(path) < 24 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        stopped = time.monotonic()
        _, text = process.communicate(timeout=30)
    assert process.returncode == 7, text.decode()
    assert time.monotonic() - stopped < (5 if backend == "alone" else 10)
    done = complete(path)
    assert 24 <= done < 10**6
    assert_resumed(rows, path, done + 16)


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
        simulate.coverage(np.zeros((N, 0)), rows[1], rows=dpci.rows.Within(intercept=False), **STUDY)


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
        simulate.coverage(X, rows[1], rows=dpci.rows.Within(intercept=intercept), **STUDY)


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
            X, y, budget=dpci.PureDP(1000.0), mechanism="output", rows=dpci.rows.Within(intercept=False),
            l2_strength=1.0, classes=(-1, 1), n_replicates=32, n_variability=64, configs=configs,
        )  # fmt: skip
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
    wide, narrow = (
        Settings.checked(**settings, rows=dpci.rows.Within(norm, intercept=False)).spec(50, 2) for norm in (1.0, 0.01)
    )
    with pytest.raises(dpci.DpciError, match=r"row_norm=0\.01, .* got row_norm=1,"):
        _core.Study([wide, narrow], _core.Records(X, y), on_violation="error", n_threads=1)


def test_rows_that_are_clipped_hard_keep_their_part_in_the_moments():
    """Dense and sparse sums agree where the scale of a row, squared, would underflow."""
    dense = np.zeros((64, 40))
    dense[np.arange(64), np.arange(64) % 40] = 0.99e150
    y = np.resize([1.0, -1.0, 1.0], 64)
    found = []
    for X in (dense, scipy.sparse.csr_array(dense)):
        with pytest.warns(dpci.errors.DpciWarning):
            result = dpci.fit(
                X, y, budget=dpci.PureDP(1e6), l2_strength=10.0, rows=dpci.rows.Clipped(3.14e-12), classes=(-1, 1),
                mechanism=dpci.ObjectivePerturbation(projection="floor"), seed=0,
            )  # fmt: skip
        found.append(result.hessian)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-9)
