"""Runs the replicates of a study in short batches: on this machine or through joblib, with progress and checkpoints."""

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.base.optional import optional
from dpci.base.progress import progress_bar
from dpci.data.arrays import Floats
from dpci.data.coded import CodedRows
from dpci.data.storage import Csr
from dpci.model.fit import spec_of
from dpci.model.settings import FitKeywords, Settings
from dpci.simulate.checkpoint import Checkpoint, Outcomes

BATCH_SECONDS = 1.0
# Sending tasks and data has its price, so batches that leave the process are longer.
JOBLIB_BATCH_SECONDS = 10.0
CHECKPOINT_SECONDS = 30.0

# The core solves this many replicates side by side; batches that start at a multiple of it waste nothing.
_LANES = _core.LANES

# Dask cancels a batch if the worker that holds the data dies; the next attempt sends the data again.
_ATTEMPTS = 4


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The rows and the configurations of a study: all that another process needs to repeat it.

    Parameters
    ----------
    values, targets : array or tuple, array
        Rows and targets as the core takes them.
    persons, weights : array or None
        The person to whom each row belongs, and how much it counts.
    shape : tuple of int
        Records and columns.
    configurations : tuple of dict
        Keywords of :func:`dpci.fit` that say what is fitted.
    """

    values: Floats | Csr | CodedRows
    targets: NDArray[np.float64]
    persons: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None
    shape: tuple[int, int]
    configurations: tuple[FitKeywords, ...]

    def study(self, n_threads: int | None) -> _core.Study:
        """Merge duplicate rows and solve the full-data problems."""
        settings = [Settings.checked(**keywords) for keywords in self.configurations]
        records = _core.Records(
            _aligned_rows(self.values),
            _aligned(self.targets),
            persons=None if self.persons is None else _aligned(self.persons),
            weights=None if self.weights is None else _aligned(self.weights),
        )
        on_violation = settings[0].treatment
        specs = [spec_of(one, *self.shape, budget=one.budget) for one in settings]
        return _core.Study(specs, records, on_violation=on_violation, n_threads=n_threads)

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Return all data."""
        values = self.values
        coded = values.arrays if isinstance(values, CodedRows) else None
        rows = coded or (values[:3] if isinstance(values, tuple) else (values,))
        counts = (column for column in (self.persons, self.weights) if column is not None)
        return (*rows, self.targets, *counts)

    def __sizeof__(self) -> int:
        """Bytes of the data too: schedulers send large arguments once for all tasks."""
        return object.__sizeof__(self) + sum(int(array.nbytes) for array in self.arrays())


@dataclass(frozen=True)
class Phase:
    """Consecutive replicates of one kind.

    Parameters
    ----------
    name : str
        Name of the phase.
    first : int
        Number of the first replicate: the randomness of a replicate depends on its number and the seed alone.
    count : int
        How many.
    level : float or None
        Level of the intervals; None: parameters alone.
    """

    name: str
    first: int
    count: int
    level: float | None


Range: TypeAlias = tuple[int, int]


class Runner(Protocol):
    """Runs ranges of replicates, ``width`` replicates in ``n_jobs`` ranges at once, in batches of some seconds."""

    width: int
    n_jobs: int
    batch_seconds: float

    def run(self, ranges: Sequence[Range], level: float | None) -> list[Sequence[Outcomes]]:
        """Return the outcomes of each range by configuration."""


class LocalRunner:
    """Replicates on the threads of this process."""

    def __init__(self, study: _core.Study, seed: int, n_threads: int | None) -> None:
        self._study, self._seed, self._n_threads = study, seed, n_threads
        self.n_jobs, self.batch_seconds = 1, BATCH_SECONDS
        self.width = _LANES * _useful_threads(n_threads)

    def run(self, ranges: Sequence[Range], level: float | None) -> list[Sequence[Outcomes]]:
        """Run one range after the other."""
        run, seed, n_threads = self._study.run, self._seed, self._n_threads
        return [run(*each, seed=seed, level=level, n_threads=n_threads) for each in ranges]


class JoblibRunner:
    """Replicates as tasks of joblib, on the backend and the number of jobs of the caller's ``parallel_config``."""

    def __init__(self, problem: Problem, token: str, seed: int, n_threads: int) -> None:
        joblib = _import_joblib()
        # Without n_jobs both follow parallel_config.
        self._parallel, self._delayed = joblib.Parallel(batch_size=1), joblib.delayed
        self._problem, self._token, self._seed, self._n_threads = problem, token, seed, n_threads
        self.n_jobs, self.batch_seconds = max(1, int(joblib.effective_n_jobs(None))), JOBLIB_BATCH_SECONDS
        self.width = _LANES * _useful_threads(n_threads) * self.n_jobs

    def run(self, ranges: Sequence[Range], level: float | None) -> list[Sequence[Outcomes]]:
        """Run each range as one task, all of them again if a cluster cancels some."""
        task, fixed = self._delayed(_run_elsewhere), {"seed": self._seed, "n_threads": self._n_threads}
        tasks = [task(self._problem, self._token, each, level=level, **fixed) for each in ranges]
        for _ in range(_ATTEMPTS - 1):
            with contextlib.suppress(CancelledError):
                return list(self._parallel(tasks))
        return list(self._parallel(tasks))

    def __enter__(self) -> Self:
        self._parallel.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._parallel.__exit__(*exception)


def run_phases(
    problem: Problem,
    study: _core.Study,
    phases: Sequence[Phase],
    *,
    seed: int,
    n_threads: int | None,
    parallel: bool,
    progress: bool | None,
    checkpoint: Checkpoint | None,
) -> dict[str, list[Outcomes]]:
    """Run all replicates and return the outcomes by phase and configuration.

    With a checkpoint, replicates that it holds are not run again, and whatever ends the run leaves there all that was
    complete. The results depend neither on the batches nor on who ran them.
    """
    nothing = {phase.name: _no_outcomes(study, phase) for phase in phases}
    loaded = nothing if checkpoint is None else checkpoint.load(nothing)
    done = {name: [outcomes] for name, outcomes in loaded.items()}
    if checkpoint is not None:
        checkpoint.save(_joined(done))  # a path that cannot be written is found before the work
    total = sum(phase.count for phase in phases)
    with (
        progress_bar(total, "replicates", wanted=progress, kept=True) as advance,
        _runner(problem, study, seed, n_threads, parallel=parallel) as runner,
    ):
        saved = time.monotonic()
        try:
            for phase in phases:
                advance(min(_count(done[phase.name]), phase.count))
                for batch in _batches(runner, phase, _count(done[phase.name])):
                    done[phase.name].append(batch)
                    advance(len(batch[0][0]))
                    if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
                        checkpoint.save(_joined(done))
                        saved = time.monotonic()
        finally:
            if checkpoint is not None:
                checkpoint.save(_joined(done))
    joined = _joined(done)
    return {phase.name: [_first(outcome, phase.count) for outcome in joined[phase.name]] for phase in phases}


def _batches(runner: Runner, phase: Phase, done: int) -> Iterator[Sequence[Outcomes]]:
    """Run what is missing of a phase, in batches of the runner's length once their speed is known."""
    size = runner.width
    while done < phase.count:
        stop = min(done + size, phase.count)
        began = time.monotonic()
        for batch in runner.run(_ranges(runner, phase.first + done, phase.first + stop), phase.level):
            done += len(batch[0][0])
            yield batch
        rate = size / max(time.monotonic() - began, 1e-3)
        size = max(1, round(min(rate * runner.batch_seconds, 8 * size) / runner.width)) * runner.width


def _useful_threads(n_threads: int | None) -> int:
    """Threads that cores exist for: more of them must not make the first batch longer."""
    cores = os.cpu_count() or 1
    return cores if n_threads is None else min(n_threads, cores)


def _ranges(runner: Runner, start: int, stop: int) -> list[Range]:
    """Cut a batch into one range for each job, all but the last of whole lanes."""
    step = -(-(stop - start) // (runner.n_jobs * _LANES)) * _LANES
    return [(at, min(at + step, stop)) for at in range(start, stop, step)]


@contextlib.contextmanager
def _runner(
    problem: Problem, study: _core.Study, seed: int, n_threads: int | None, *, parallel: bool
) -> Iterator[Runner]:
    if not parallel:
        yield LocalRunner(study, seed, n_threads)
        return
    token = uuid.uuid4().hex
    _LOCAL[token] = study  # for tasks that stay in this process
    try:
        with JoblibRunner(problem, token, seed, n_threads or 1) as runner:
            yield runner
    finally:
        del _LOCAL[token]


_LOCAL: dict[str, _core.Study] = {}
# In a worker process: the study of its last task, because building one costs more than a batch.
_BUILT: dict[str, _core.Study] = {}
_BUILDING = threading.Lock()


def _run_elsewhere(
    problem: Problem, token: str, replicates: Range, *, seed: int, level: float | None, n_threads: int
) -> list[Outcomes]:
    """Run a range of replicates wherever joblib has sent it."""
    study = _LOCAL.get(token)
    if study is None:
        with _BUILDING:
            if token not in _BUILT:
                _BUILT.clear()
                _BUILT[token] = problem.study(n_threads)
            study = _BUILT[token]
    return study.run(*replicates, seed=seed, level=level, n_threads=n_threads)


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array as the core takes it; one that came over a network may begin anywhere in memory."""
    return np.require(array, requirements=["C_CONTIGUOUS", "ALIGNED"])


def _aligned_rows(values: Floats | Csr | CodedRows) -> Floats | Csr | CodedRows:
    if isinstance(values, CodedRows):
        return CodedRows(_aligned(values.numbers), _aligned(values.codes), values.columns, values.categories)
    if not isinstance(values, tuple):
        return _aligned(values)
    indptr, indices, entries, n_columns = values
    return _aligned(indptr), _aligned(indices), _aligned(entries), n_columns


def _import_joblib() -> Any:  # noqa: ANN401  # an optional module
    with optional("joblib", extra="parallel", what="parallel='joblib'"):
        import joblib  # noqa: PLC0415  # optional
    return joblib


def _count(batches: Sequence[Sequence[Outcomes]]) -> int:
    return sum(len(batch[0][0]) for batch in batches)


def _no_outcomes(study: _core.Study, phase: Phase) -> Sequence[Outcomes]:
    k = len(study.targets()[0])
    bounds = np.empty((0, 0 if phase.level is None else k))
    return [(np.empty((0, k)), bounds, bounds) for _ in study.targets()]


def _joined(done: Mapping[str, Sequence[Sequence[Outcomes]]]) -> dict[str, list[Outcomes]]:
    """Concatenate the batches of each phase, by configuration."""
    return {
        name: [
            (
                np.concatenate([outcome[0] for outcome in batches]),
                np.concatenate([outcome[1] for outcome in batches]),
                np.concatenate([outcome[2] for outcome in batches]),
            )
            for batches in zip(*done[name], strict=True)
        ]
        for name in done
    }


def _first(outcome: Outcomes, count: int) -> Outcomes:
    return outcome[0][:count], outcome[1][:count], outcome[2][:count]
