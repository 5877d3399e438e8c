"""Work on several chunks at once: the caller's thread reads them and works, too; outcomes come in their order."""

import copy
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Generic, TypeVar, cast

import numpy as np

_Chunk = TypeVar("_Chunk")
_Outcome = TypeVar("_Outcome")


def outcomes(
    chunks: Iterator[_Chunk], work: Callable[[int, _Chunk], _Outcome], *, at_once: int, held: bool
) -> Generator[_Outcome, None, None]:
    """Yield what ``work`` makes of every numbered chunk, in their order.

    The thread of the caller reads the chunks and hands them to the other threads. While these have enough, it works
    on a chunk itself.

    Parameters
    ----------
    chunks : iterator
        Read here, on the thread of the caller, as any code of the caller.
    work : callable
        Called on other threads too if several chunks are worked on at once. What it returns holds nothing of the chunk.
    at_once : int
        Chunks that are worked on at once.
    held : bool
        Whether a chunk stays as it is while the next is read. If not, those for other threads are copied: a source may
        fill the same arrays again.
    """
    if at_once == 1:
        for number, chunk in enumerate(chunks):
            yield work(number, chunk)
        return
    tasks: deque[_Task[_Outcome]] = deque()
    free: list[Any] = []
    others = ThreadPoolExecutor(at_once - 1, thread_name_prefix="dpci")
    try:
        for number, chunk in enumerate(_after(chunks, tasks)):
            # For each other thread one that it works on and one that waits: none is idle while a chunk is read.
            wanted = sum(not task.done() for task in tasks) < 2 * (at_once - 1)
            kept = None if not wanted else chunk if held else _copied(chunk, free)
            if kept is None:
                here = _Task(work, number, chunk)
                here.run_here(tasks)
                tasks.append(here)
            else:
                tasks.append(_Task(work, number, kept))
                tasks[-1].run_on(others, [] if held else free)
            del chunk, kept
            while tasks and tasks[0].done():
                yield tasks.popleft().result()
        for k in reversed(range(len(tasks))):
            if tasks[k].taken_back():
                tasks[k].run_here(itertools.islice(tasks, k))
        yield from (task.result() for task in tasks)
    finally:
        others.shutdown(cancel_futures=True)


class _Task(Generic[_Outcome]):
    """Work on one chunk, on the thread of the caller or on another."""

    def __init__(self, work: Callable[[int, Any], _Outcome], number: int, chunk: Any) -> None:  # noqa: ANN401  # any chunk
        self._given = [(work, number, chunk)]
        self._future: Future[_Outcome] = Future()

    def run_here(self, earlier: Iterable["_Task[_Outcome]"]) -> None:
        """Work now; an error in an earlier chunk comes first."""
        try:
            self._future.set_result(self._outcome([]))
        except Exception:
            for task in earlier:
                task.result()
            raise

    def run_on(self, others: ThreadPoolExecutor, free: list[Any]) -> None:
        """Have another thread work, and then add the chunk to those that are free."""
        self._future = others.submit(copy_context().run, self._outcome, free)

    def _outcome(self, free: list[Any]) -> _Outcome:
        # Taken out: a task that waits for its turn to be yielded keeps no chunk in memory.
        work, number, chunk = self._given.pop()
        try:
            return work(number, chunk)
        finally:
            free.append(chunk)

    def taken_back(self) -> bool:
        """Return whether the other threads have not begun, and will not."""
        if not self._future.cancel():
            return False
        self._future = Future()
        return True

    def done(self) -> bool:
        """Return whether the outcome is there."""
        return self._future.done()

    def result(self) -> _Outcome:
        """Wait for the outcome."""
        return self._future.result()


def _after(chunks: Iterator[_Chunk], tasks: Iterable[_Task[Any]]) -> Iterator[_Chunk]:
    """Yield the chunks; where one cannot be read, an error in those before it comes first."""
    while True:
        try:
            chunk = next(chunks)
        except StopIteration:
            return
        except Exception:
            for task in tasks:
                task.result()
            raise
        yield chunk


def _copied(chunk: _Chunk, free: list[Any]) -> _Chunk | None:
    """Return a copy, None of what cannot be copied, such as a stream.

    Arrays are written over those of a copy that is ``free``, where they fit: new memory takes longer than the copying.
    """
    given: Any = chunk
    over = free.pop() if free else None
    if len(given) == 2 and all(type(each) is np.ndarray and each.dtype.kind in "biuf" for each in given):
        if over is None or len(over) != 2 or any(_differ(new, old) for new, old in zip(given, over, strict=True)):
            return cast("_Chunk", tuple(each.copy() for each in given))
        for new, old in zip(given, over, strict=True):
            np.copyto(old, new)
        return cast("_Chunk", over)
    try:
        return copy.deepcopy(chunk)
    except Exception:  # noqa: BLE001  # whatever the objects of a library raise
        return None


def _differ(new: Any, old: Any) -> bool:  # noqa: ANN401  # a member of a chunk
    return type(old) is not np.ndarray or (new.shape, new.dtype) != (old.shape, old.dtype)
