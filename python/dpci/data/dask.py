"""Rows in the partitions of a Dask array or frame: each is summed where it lies, and the sums are added in a tree."""

import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, TypeVar, cast

from dpci import _core
from dpci.data.parts import NOTHING, Mergeable
from dpci.errors import DpciError, InvalidInput

_Merged = TypeVar("_Merged", bound=Mergeable)

# Sums that are added in one task: fewer make the tree deeper, more bring many sums to one worker.
_FAN_IN = 8

_POLL_SECONDS = 1.0

# Without workers a scheduler waits for ever unless it is told otherwise: some may still come.
_NO_WORKERS = "distributed.scheduler.no-workers-timeout"
_NO_WORKERS_SECONDS = 300.0


def dask_partitions(
    rows: Any,  # noqa: ANN401  # Dask's
    y: object,
    beside: Mapping[str, Any] = NOTHING,
) -> "DaskPartitions":
    """Return the partitions of a Dask array or frame, with columns ``beside`` its rows."""
    array = getattr(sys.modules.get("dask.array"), "Array", ())
    dataframe = sys.modules.get("dask.dataframe")
    frame, series = getattr(dataframe, "DataFrame", ()), getattr(dataframe, "Series", ())
    if not isinstance(y, (array, series)):
        raise InvalidInput(
            f"y must be a Dask array or series if X is a Dask collection, got {type(y).__name__} "
            "(dask.array.from_array(y, chunks=X.chunks[0]) divides an array as X is divided)"
        )
    columns = {"y": y, **beside}
    for name, collection, ndim in (("X", rows, 2), *((name, column, 1) for name, column in columns.items())):
        if collection.ndim != ndim:
            raise InvalidInput(f"{name} must have {ndim} dimension{'s'[: ndim - 1]}, got {collection.ndim}")
    if isinstance(rows, array) and rows.numblocks[1] > 1:
        rows = rows.rechunk({1: -1})  # the columns of a row must be together
    for name, column in columns.items():
        _check_sizes(name, rows, column)
        if isinstance(rows, array) and isinstance(column, series):
            columns[name] = column.values  # Dask's
            _check_sizes(name, rows, columns[name])
        elif isinstance(rows, frame) and isinstance(column, array):
            series_of = dataframe.from_dask_array  # type: ignore[union-attr]  # the frame's own module
            columns[name] = series_of(column).map_partitions(_without_index, meta=(name, object))
    names = tuple(map(str, rows.columns)) if isinstance(rows, frame) else None
    y = columns.pop("y")
    return DaskPartitions(rows, y, columns, names)


class DaskPartitions:
    """The partitions of a Dask array or frame and those of its targets, one by one.

    Errors of dpci come back from the workers as values: so the first partition's error wins, whichever is found first,
    and neither workers nor scheduler write messages that hold numbers of the data into their logs.
    """

    def __init__(  # Dask's collections, which is not imported
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        beside: Mapping[str, Any],
        names: tuple[str, ...] | None,
    ) -> None:
        self._names = names
        self._beside = tuple(beside)
        together = _parts_of_arrays if names is None else _parts_of_frame
        self._parts = together(X, y, *beside.values())

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns of a frame."""
        return self._names

    def on_threads(self, n_threads: int | None) -> tuple["DaskPartitions", int]:
        """Return the partitions and the threads of each: one, because the scheduler works on several, unless more."""
        return self, 1 if n_threads is None else n_threads

    def reduce(self, work: Callable[..., _Merged]) -> _Merged | None:
        """Apply ``work(X, y)`` to every partition and merge neighbours in a tree that depends on their number alone."""
        delayed = _module("dask").delayed
        sent = delayed(work, name=f"dpci-work-{uuid.uuid4().hex}", traverse=False)
        work_on, merge = delayed(_work_on, pure=False), delayed(_merged, pure=False)
        level = [work_on(sent, k, _core.__version__, self._beside, *part) for k, part in enumerate(self._parts)]
        while len(level) > 1:
            level = [merge(*level[k : k + _FAN_IN]) for k in range(0, len(level), _FAN_IN)]
        outcome: _Outcome = _computed(level[0])
        if outcome.error is not None:
            outcome.error.add_note(f"in partition {outcome.partition}, whose row 0 is row {outcome.n_rows} of X")
            raise outcome.error
        return cast("_Merged", outcome.total)


@dataclass(frozen=True)
class _Outcome:
    """Outcome of consecutive partitions: the merged values that their work returned, or the first error.

    Parameters
    ----------
    partition : int
        The first partition, or that of the error.
    n_rows : int
        Rows of the partitions, or those before the partition of the error.
    """

    partition: int
    n_rows: int
    total: Mergeable | None = None
    error: DpciError | None = None


def _work_on(
    work: Callable[..., Mergeable],
    partition: int,
    version: str,
    beside: tuple[str, ...],
    *data: Any,  # noqa: ANN401  # of any kind
) -> _Outcome:
    """Do the work on one partition, on a worker."""
    try:
        if version != _core.__version__:
            raise InvalidInput(f"workers must have dpci {version}, the version of the caller, got {_core.__version__}")
        X, y, *columns = data[0] if len(data) == 1 else data
        total = work(X, y, dict(zip(beside, columns, strict=True))) if beside else work(X, y)
    except DpciError as error:
        return _Outcome(partition, 0, error=error)
    return _Outcome(partition, total.n_rows, total)


def _merged(*outcomes: _Outcome) -> _Outcome:
    """Merge in order what became of neighbours, on a worker."""
    merged = outcomes[0]
    for outcome in outcomes[1:]:
        if merged.error is not None:
            break
        if outcome.error is not None:
            return replace(outcome, n_rows=merged.n_rows + outcome.n_rows)
        try:
            total = cast("Mergeable", merged.total).merge(cast("Mergeable", outcome.total))
        except DpciError as error:
            return _Outcome(outcome.partition, merged.n_rows, error=error)
        merged = _Outcome(merged.partition, merged.n_rows + outcome.n_rows, total)
    return merged


def _module(name: str) -> Any:  # noqa: ANN401  # Dask's
    """Import a part of Dask, which is optional; there are collections of it, so it is there."""
    return import_module(name)


def _check_sizes(name: str, X: Any, y: Any) -> None:  # noqa: ANN401  # Dask's
    """Compare what is known of the partitions before they are computed; the rest is found where they are."""
    if X.npartitions != y.npartitions:
        raise InvalidInput(
            f"{name} must have the partitions of X, got {y.npartitions} and {X.npartitions} (rechunk or repartition "
            "one of them)"
        )
    for k, (rows, targets) in enumerate(zip(_sizes(X), _sizes(y), strict=False)):
        if rows != targets and rows == rows and targets == targets:  # noqa: PLR0124  # unknown sizes are NaN
            raise InvalidInput(
                f"{name} must have the partitions of X, got {targets} entries for {rows} rows in partition {k}"
            )


def _sizes(collection: Any) -> Sequence[float]:  # noqa: ANN401  # Dask's
    return cast("Sequence[float]", getattr(collection, "chunks", ((),))[0])


def _parts_of_arrays(*arrays: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401  # Dask's
    """Return the tasks of corresponding blocks, optimised together: what both are cut from is computed once.

    ``dask.optimize`` and ``to_delayed`` look at one collection at a time.
    """
    graphs, delayed = _module("dask.highlevelgraph").HighLevelGraph, _module("dask.delayed").Delayed
    keys = [list(_flat(each.__dask_keys__())) for each in arrays]
    merged = graphs.merge(*(each.__dask_graph__() for each in arrays))
    graph = arrays[0].__dask_optimize__(merged, [key for mine in keys for key in mine])
    layer = f"dpci-blocks-{uuid.uuid4().hex}"
    graph = graphs.from_collections(layer, graph, dependencies=())
    return [tuple(delayed(key, graph, layer=layer) for key in pair) for pair in zip(*keys, strict=True)]


def _flat(keys: Any) -> Iterator[Any]:  # noqa: ANN401  # Dask's nested lists of keys
    for key in keys:
        if isinstance(key, list):
            yield from _flat(key)
        else:
            yield key


def _parts_of_frame(*collections: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401  # Dask's
    """Return one task for each pair of partitions: optimised on its own, a frame may get others (Parquet files)."""
    pairs = _module("dask.dataframe").map_partitions(
        _together, *collections, meta=("pair", object), align_dataframes=False
    )
    return [(pair,) for pair in pairs.to_delayed()]


def _without_index(y: Any) -> Any:  # noqa: ANN401  # of any kind
    """Return the values alone: the index that an array gets with a frame says nothing about the rows."""
    return y.to_numpy()


def _together(*collections: Any) -> tuple[Any, ...]:  # noqa: ANN401  # of any kind
    return collections


def _computed(task: Any) -> Any:  # noqa: ANN401  # Dask's
    """Compute a task on the caller's scheduler; on a cluster without workers not for ever."""
    client = getattr(_module("dask.base").get_scheduler(collections=[task]), "__self__", None)
    distributed = sys.modules.get("distributed")
    if distributed is None or not isinstance(client, distributed.Client):
        return task.compute()
    with _thread_left_to_others(distributed):
        future = client.compute(task)
        try:
            _wait(client, future, distributed)
            return future.result()
        finally:
            future.release()  # what still runs is of no use to anyone, whatever ended the wait


@contextmanager
def _thread_left_to_others(distributed: Any) -> Iterator[None]:  # noqa: ANN401  # Dask's
    """Leave the threads of the worker where a fit runs in a task: its own tasks would wait for them for ever."""
    try:
        distributed.secede()
    except (ValueError, AttributeError, KeyError):  # in no task, in a coroutine, or the caller has left already
        yield
        return
    try:
        yield
    finally:
        distributed.rejoin()


def _wait(client: Any, future: Any, distributed: Any) -> None:  # noqa: ANN401  # Dask's
    setting = _module("dask.config").get(_NO_WORKERS, None)
    limit = _module("dask.utils").parse_timedelta(setting or _NO_WORKERS_SECONDS)
    seen = time.monotonic()
    while True:
        try:
            distributed.wait(future, timeout=_POLL_SECONDS)
        except TimeoutError:
            now = time.monotonic()
            if client.nthreads():
                seen = now
            elif now - seen > limit:
                raise DpciError(
                    f"a Dask cluster must have workers, got none for {limit:g} s (the setting {_NO_WORKERS})",
                    code="no_workers",
                ) from None
        else:
            return
