"""Studies on clusters: the same bits on Dask, loky and threads, also when a worker dies in the middle."""

import logging
import os
import signal
from concurrent.futures.process import BrokenProcessPool
from functools import partial

import joblib
import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci import simulate
from dpci.simulate import replicates as _replicates
from support import custom_losses
from support.studies import bits

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")

N, D = 500, 3
STUDY = {"budget": dpci.PureDP(2.0), "l2_strength": 0.1, "n_replicates": 200, "n_variability": 40}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(21)
    X = rng.uniform(-0.5, 0.5, size=(N, D))
    return X, (X @ [4.0, -2.0, 1.0] + rng.logistic(size=N) > 0).astype(int)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two worker processes of one thread each, which are the default client's; nannies replace a dead one."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,  # workers that the tests kill are reported as errors
            local_directory=str(tmp_path_factory.mktemp("dask")),
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture
def small_batches(monkeypatch):
    """Many batches of at most 64 replicates, saved one by one, so that something can happen between them."""
    init = _replicates.JoblibRunner.__init__

    def with_short_batches(self, *arguments):
        init(self, *arguments)
        self.width, self.batch_seconds = 64, 1e-9

    monkeypatch.setattr(_replicates.JoblibRunner, "__init__", with_short_batches)
    monkeypatch.setattr(_replicates, "CHECKPOINT_SECONDS", 0.0)


def on(backend):
    """Two jobs of a backend; those of Dask are its workers."""
    return joblib.parallel_config(backend=backend) if backend == "dask" else joblib.parallel_config(backend, n_jobs=2)


@pytest.mark.parametrize("backend", ["dask", "loky", "threading"])
@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"loss": custom_losses.logistic(one_signed=True)},
        {"configs": [{}, {"mechanism": "output", "loss": custom_losses.logistic(one_signed=True)}]},
    ],
    ids=["built-in", "custom", "configs"],
)
@pytest.mark.usefixtures("cluster", "small_batches")
def test_a_backend_changes_nothing(rows, backend, keywords):
    run = partial(simulate.coverage, *rows, **STUDY, **keywords)
    with on(backend):
        ours = run(parallel="joblib")
    theirs = run(n_threads=1)
    if "configs" not in keywords:
        ours, theirs = [ours], [theirs]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(bits(one), bits(other))


@pytest.mark.usefixtures("cluster")
def test_sparse_rows_and_variability_travel(rows):
    X, y = rows
    run = partial(
        simulate.variability, scipy.sparse.csr_array(X * (X > 0.1)), y, budget=STUDY["budget"], l2_strength=0.1,
        n_variability=50,
    )  # fmt: skip
    with on("dask"):
        found = run(parallel="joblib", n_threads=2)
    np.testing.assert_array_equal(found.params, run(n_threads=1).params)


@pytest.mark.parametrize("backend", ["dask", "loky", "threading"])
@pytest.mark.usefixtures("cluster", "small_batches")
def test_a_checkpoint_goes_from_one_runner_to_another(rows, tmp_path, backend):
    path = tmp_path / "study.npz"
    run = partial(simulate.coverage, *rows, checkpoint=path)
    shorter = {**STUDY, "n_replicates": 90, "n_variability": 0}
    run(**shorter, n_threads=1)
    with on(backend):
        run(**{**shorter, "n_replicates": 150}, parallel="joblib")
    found = run(**STUDY, n_threads=1)
    np.testing.assert_array_equal(bits(found), bits(simulate.coverage(*rows, **STUDY)))


def deadly(folder, *starts):
    """The task of a study, except that every range from one of ``starts`` kills its worker once."""
    home = os.getpid()

    def kill_once_then_run(problem, token, replicates, **fixed):
        if os.getpid() == home:  # joblib falls back on the caller while a single worker is left
            return _replicates._LOCAL[token].run(*replicates, **fixed)
        mark = folder / str(replicates[0])
        if replicates[0] in starts and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return _replicates._run_elsewhere(problem, token, replicates, **fixed)  # the worker's own, not patched

    return kill_once_then_run


@pytest.mark.slow
@pytest.mark.usefixtures("small_batches")
def test_dask_workers_that_die_are_replaced(rows, cluster, tmp_path, monkeypatch):
    # The rows are sent ahead of the tasks and held by workers alone, so they are lost with the last that holds them.
    before = set(cluster.run(os.getpid).values())
    monkeypatch.setattr(_replicates, "_run_elsewhere", deadly(tmp_path, 64, 96))
    with on("dask"):
        found = simulate.coverage(*rows, **STUDY, parallel="joblib", checkpoint=tmp_path / "study.npz")
    assert {"64", "96"} & {file.name for file in tmp_path.iterdir()}
    assert before - set(cluster.run(os.getpid).values())
    np.testing.assert_array_equal(bits(found), bits(simulate.coverage(*rows, **STUDY)))


@pytest.mark.slow
@pytest.mark.usefixtures("small_batches")
def test_a_loky_worker_that_dies_loses_its_batch_alone(rows, tmp_path, monkeypatch):
    path = tmp_path / "study.npz"
    monkeypatch.setattr(_replicates, "_run_elsewhere", deadly(tmp_path, 64))  # one, as a second may die in the next run
    run = partial(simulate.coverage, *rows, **STUDY, parallel="joblib", checkpoint=path)
    with on("loky"):
        with pytest.raises(BrokenProcessPool, match="terminated"):
            run()
        with np.load(path) as archive:
            assert len(archive["coverage_0_params"]) == 64
        found = run()
    np.testing.assert_array_equal(bits(found), bits(simulate.coverage(*rows, **STUDY)))


@pytest.mark.parametrize("cancelled", [1, _replicates._ATTEMPTS - 1, _replicates._ATTEMPTS])
def test_a_batch_that_a_cluster_cancels_is_sent_again(rows, tmp_path, monkeypatch, cancelled):
    task, calls = _replicates._run_elsewhere, []

    def cancelled_at_first(*arguments, **keywords):
        calls.append(1)
        if len(calls) <= cancelled:
            raise distributed.client.FutureCancelledError("batch", "of a test")
        return task(*arguments, **keywords)

    monkeypatch.setattr(_replicates, "_run_elsewhere", cancelled_at_first)
    run = partial(simulate.coverage, *rows, **STUDY, parallel="joblib", checkpoint=tmp_path / "study.npz")
    with joblib.parallel_config("sequential"):
        if cancelled == _replicates._ATTEMPTS:
            with pytest.raises(distributed.client.FutureCancelledError):
                run()
            assert len(calls) == cancelled
        found = run()
    np.testing.assert_array_equal(bits(found), bits(simulate.coverage(*rows, **STUDY)))
