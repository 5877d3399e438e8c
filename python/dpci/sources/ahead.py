"""Work on several chunks at once: they are read on the caller's thread, and outcomes come in their order."""

import copy
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar, cast

import numpy as np

_Chunk = TypeVar("_Chunk")
_Outcome = TypeVar("_Outcome")


def outcomes(
    chunks: Iterator[_Chunk], work: Callable[[int, _Chunk], _Outcome], *, at_once: int, held: bool
) -> Generator[_Outcome, None, None]:
    """Yield what ``work`` makes of every numbered chunk, in their order.

    Parameters
    ----------
    chunks : iterator
        Read here, on the thread of the caller, as any code of the caller.
    work : callable
        Called on other threads if several chunks are worked on at once. What it returns holds nothing of the chunk.
    at_once : int
        Chunks that are worked on at once while the next is read.
    held : bool
        Whether a chunk stays as it is while the next is read. If not, it is copied: a source may fill the same arrays
        again.
    """
    if at_once == 1:
        for number, chunk in enumerate(chunks):
            yield work(number, chunk)
        return
    waiting: deque[Future[_Outcome]] = deque()
    free: list[Any] = []

    def on_copy(number: int, copied: _Chunk) -> _Outcome:
        try:
            return work(number, copied)
        finally:
            free.append(copied)

    pool = ThreadPoolExecutor(at_once, thread_name_prefix="dpci")
    try:
        for number, chunk in enumerate(_after(chunks, waiting)):
            kept = chunk if held else _copied(chunk, free)
            if kept is None:
                yield from (waiting.popleft().result() for _ in range(len(waiting)))
                yield work(number, chunk)
                continue
            if len(waiting) == at_once:
                yield waiting.popleft().result()
            waiting.append(pool.submit(copy_context().run, work if held else on_copy, number, kept))
            del chunk, kept
        yield from (each.result() for each in waiting)
    finally:
        pool.shutdown(cancel_futures=True)


def _after(chunks: Iterator[_Chunk], waiting: deque[Future[_Outcome]]) -> Iterator[_Chunk]:
    """Yield the chunks; where one cannot be read, an error in those before it comes first."""
    while True:
        try:
            chunk = next(chunks)
        except StopIteration:
            return
        except Exception:
            for each in waiting:
                each.result()
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
