"""Fits on a Dask cluster: the same bits on any number of workers, workers that die, none left, Ctrl-C, and the logs."""

import logging
import os
import signal
import threading
import time

import numpy as np
import pytest

import dpci
from dpci.data import dask as _dask
from dpci.errors import RowNormViolation
from support.parts import assert_same_fit, make_rows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")

N, D = 3000, 5
X, Y, _ = make_rows(N, D)
SETTINGS = {"budget": dpci.PureDP(1.0), "l2_strength": 0.05, "seed": 3}


def start(folder, n_workers, **keywords):
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address=":0",  # a cluster of other tests may have the usual port
        silence_logs=logging.CRITICAL,  # workers that the tests kill are reported as errors
        local_directory=str(folder),
        **keywords,
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three worker processes of one thread each; nannies replace a dead one. A task may kill one of them, not two."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        start(tmp_path_factory.mktemp("dask"), 3, processes=True) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture
def small_cluster(tmp_path):
    """One worker in this process."""
    with start(tmp_path, 1, processes=False) as made, distributed.Client(made):
        yield made


def arrays(rows=X, chunk=250):
    return da.from_array(rows, chunks=(chunk, D)), da.from_array(Y, chunks=chunk)


def bits(fit):
    return np.concatenate([fit.params, fit.hessian.ravel(), fit.gradient_cov.ravel()])


@pytest.fixture(scope="module")
def expected():
    """On one thread, without a cluster."""
    with dask.config.set(scheduler="sync"):
        found = dpci.fit(*arrays(), **SETTINGS)
    assert_same_fit(found, dpci.fit(X, Y, **SETTINGS))
    return found


@pytest.mark.usefixtures("cluster")
def test_the_number_of_workers_changes_nothing(expected):
    np.testing.assert_array_equal(bits(dpci.fit(*arrays(), **SETTINGS)), bits(expected))
    np.testing.assert_array_equal(bits(dpci.fit(*dask.persist(*arrays()), **SETTINGS)), bits(expected))


@pytest.mark.usefixtures("cluster")
def test_a_loss_of_local_functions_travels():
    def sigmoid(u, y=0.0):
        return 0.5 * (1.0 + np.tanh(0.5 * u)) - y

    loss = dpci.losses.Custom(
        lambda u, y: np.logaddexp(0.0, u) - y * u, sigmoid, lambda u, _y: sigmoid(u) * sigmoid(-u), slope_bound=1.0,
        curvature_bound=0.25, target_bounds=(0.0, 1.0),
    )  # fmt: skip
    assert_same_fit(dpci.fit(*arrays(), **SETTINGS, loss=loss), dpci.fit(X, Y, **SETTINGS, loss=loss))


def deadly(folder):
    """The work on a partition, except that in the third pass the seventh partition kills its worker, once."""
    work_on = _dask._work_on

    def kill_once_then_work(work, partition, *rest):
        if partition == 7:
            passes = len(list(folder.iterdir()))
            (folder / str(passes)).touch()
            if passes == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        return work_on(work, partition, *rest)

    return kill_once_then_work


@pytest.mark.slow
@pytest.mark.parametrize("persisted", [False, True])
def test_a_worker_that_dies_in_the_middle_changes_nothing(cluster, expected, tmp_path, monkeypatch, persisted):
    before = set(cluster.run(os.getpid).values())
    source = dask.persist(*arrays()) if persisted else arrays()
    monkeypatch.setattr(_dask, "_work_on", deadly(tmp_path))
    found = dpci.fit(*source, **SETTINGS)
    assert len(list(tmp_path.iterdir())) > 3, "the third pass went on after the kill"
    np.testing.assert_array_equal(bits(found), bits(expected))
    cluster.wait_for_workers(3, timeout=30)
    assert len(before - set(cluster.run(os.getpid).values())) == 1


@pytest.mark.usefixtures("cluster")
@pytest.mark.slow
def test_a_partition_that_kills_every_worker_is_an_error(monkeypatch):
    def kill(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(_dask, "_work_on", kill)
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    with pytest.raises(distributed.scheduler.KilledWorker):
        dpci.fit(*arrays(chunk=N), **{**SETTINGS, "seed": None}, ledger=ledger)
    assert ledger.remaining == dpci.PureDP(1.0)


def fit_of_others():
    return dpci.fit(*arrays(), **SETTINGS)


def test_a_fit_inside_a_task_leaves_its_thread_to_its_own_tasks(small_cluster, expected):
    # The only worker has one thread, on which both fits run, and what they wait for.
    with distributed.Client(small_cluster) as client:
        for future in [client.submit(fit_of_others, pure=False) for _ in range(2)]:
            np.testing.assert_array_equal(bits(future.result(timeout=30)), bits(expected))
        assert client.submit(sum, [1, 2]).result(timeout=30) == 3  # the thread came back


@pytest.mark.parametrize("paid", [False, True])
def test_a_cluster_without_workers(small_cluster, monkeypatch, paid):
    # Before the rows were checked nothing is paid; later what was paid stays paid, as nobody knows what was drawn.
    computed, passes = _dask._computed, []

    def computed_without_workers(task):
        passes.append(1)
        if len(passes) == 1 + 2 * paid:
            small_cluster.scale(0)
            while small_cluster.scheduler.workers:
                time.sleep(0.01)
        return computed(task)

    monkeypatch.setattr(_dask, "_computed", computed_without_workers)
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "0.5s"}),
        pytest.raises(dpci.DpciError, match=r"a Dask cluster must have workers, got none for 0.5 s"),
    ):
        dpci.fit(*arrays(), **{**SETTINGS, "seed": None}, ledger=ledger)
    assert len(passes) == 1 + 2 * paid
    assert ledger.remaining == (None if paid else dpci.PureDP(1.0))


def test_workers_may_come_late(small_cluster, expected):
    small_cluster.scale(0)
    while small_cluster.scheduler.workers:
        time.sleep(0.01)
    timer = threading.Timer(1.5, small_cluster.scale, [1])
    timer.start()
    np.testing.assert_array_equal(bits(dpci.fit(*arrays(), **SETTINGS)), bits(expected))
    timer.join()


def test_ctrl_c_cancels_what_runs(cluster):
    slow = arrays()[0].map_blocks(lambda x: (time.sleep(0.5), x)[1], dtype=float, meta=np.empty((0, 0)))
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        dpci.fit(slow, arrays()[1], **SETTINGS)
    assert time.monotonic() - began < 5.0
    timer.join()
    deadline = time.monotonic() + 10.0
    while any(cluster.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(cluster.processing().values())


def test_numbers_of_the_data_are_not_logged(cluster):
    rows = X.copy()
    rows[1700] *= 1.23456789 / np.linalg.norm(rows[1700])
    with pytest.raises(RowNormViolation, match=r"got 1\.2345678[0-9]* in row 200") as caught:
        dpci.fit(*arrays(rows), **SETTINGS)
    assert caught.value.__notes__ == ["in partition 6, whose row 0 is row 1500 of X"]
    logs = [*cluster.get_worker_logs().values(), cluster.get_scheduler_logs()]
    assert "1.2345678" not in str(logs)
