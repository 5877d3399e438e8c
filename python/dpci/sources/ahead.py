"""Work on several chunks at once: they are read on the caller's thread, and outcomes come in their order."""

import copy
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

_Chunk = TypeVar("_Chunk")
_Outcome = TypeVar("_Outcome")


def outcomes(
    chunks: Iterator[_Chunk], work: Callable[[int, _Chunk], _Outcome], *, at_once: int, held: bool
) -> Iterator[_Outcome]:
    """Yield what ``work`` makes of every numbered chunk, in their order.

    Parameters
    ----------
    chunks : iterator
        Read here, on the thread of the caller, as any code of the caller.
    work : callable
        Called on other threads if several chunks are worked on at once.
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
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="dpci")
    try:
        for number, chunk in enumerate(_after(chunks, waiting)):
            kept = chunk if held else _copied(chunk)
            if kept is None:
                yield from (waiting.popleft().result() for _ in range(len(waiting)))
                yield work(number, chunk)
                continue
            if len(waiting) == at_once:
                yield waiting.popleft().result()
            waiting.append(pool.submit(copy_context().run, work, number, kept))
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


def _copied(chunk: _Chunk) -> _Chunk | None:
    """Return a copy, None of what cannot be copied, such as a stream."""
    try:
        return copy.deepcopy(chunk)
    except Exception:  # noqa: BLE001  # whatever the objects of a library raise
        return None
