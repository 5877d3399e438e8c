"""Checkpoints under bad luck: other studies, full disks, kills; nothing is lost that was complete."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci import _core, simulate
from dpci.errors import InvalidInput
from dpci.model.keywords import CHOICES
from dpci.simulate import replicates as _replicates
from support.studies import complete

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


def bits(study):
    return np.vstack([study.target, study.params, study.lower, study.upper, study.variability.params])


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
KEYWORD_OF = {"on_violation": "rows", "n_public": "neighbors"}
ANOTHER = {
    "budget": dpci.PureDP(2.5),
    "l2_strength": 0.25,
    "loss": dpci.losses.HuberHinge(h=0.25),
    "mechanism": dpci.OutputPerturbation(),
    "split": (0.5, 0.25, 0.25),
    "moments": "separate",
    "projection": "floor",
    "calibration": "paper",
    "radius": 0.75,
    "classes": (1, 0),
    "intercept": 0.5,
    "rows": 2.0,
    "on_violation": "clip",
    "neighbors": dpci.AddRemove(N),
    "n_public": dpci.AddRemove(N),
}


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


def custom_loss(factor=1.0):
    """A multiple of the logistic loss under bounds that fit all multiples up to 1."""

    def sigmoid(u):
        return np.exp(-np.logaddexp(0.0, -u))

    return dpci.losses.Custom(
        lambda u, y: factor * np.logaddexp(0.0, -y * u),
        lambda u, y: -factor * y * sigmoid(-y * u),
        lambda u, _y: factor * sigmoid(u) * sigmoid(-u),
        slope_bound=1.0,
        curvature_bound=0.25,
    )


def test_custom_losses_are_told_apart_by_what_they_compute(rows, tmp_path):
    path = tmp_path / "study.npz"
    run = partial(simulate.coverage, *rows, checkpoint=path, **STUDY)
    study = run(loss=custom_loss())
    np.testing.assert_array_equal(bits(run(loss=custom_loss())), bits(study))
    with pytest.raises(InvalidInput, match="which differs in hash of the full-data minimisers"):
        run(loss=custom_loss(0.9))


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
    longer = {**STUDY, "n_replicates": done + 8}
    found = simulate.coverage(*rows, checkpoint=path, **longer)
    np.testing.assert_array_equal(bits(found), bits(simulate.coverage(*rows, **longer)))


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
    longer = {**STUDY, "n_replicates": done + 24}
    found = simulate.coverage(*rows, checkpoint=path, **longer)
    np.testing.assert_array_equal(bits(found), bits(simulate.coverage(*rows, **longer)))


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
    longer = {**STUDY, "n_replicates": done + 16}
    found = simulate.coverage(*rows, checkpoint=path, **longer)
    np.testing.assert_array_equal(bits(found), bits(simulate.coverage(*rows, **longer)))
