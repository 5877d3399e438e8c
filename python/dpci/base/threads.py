"""Threads: how many compute, and locks that a forked child can still take."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_NUMBER: ContextVar[int | None] = ContextVar("_NUMBER", default=None)


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Let everything that is computed within the block use so many threads, in the thread that enters it.

    No result depends on the number.

    Parameters
    ----------
    number : int or None
        Threads of each call. None, as outside of any block: all cores.

    Examples
    --------
    >>> import numpy as np, dpci
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> with dpci.threads(1):
    ...     result = dpci.fit(X, X[:, 0] > 0, budget=dpci.ZCDP(rho=0.5))
    """
    token = _NUMBER.set(None if number is None else _count("threads", number))
    try:
        yield
    finally:
        _NUMBER.reset(token)


def check_threads(value: object) -> int | None:
    """Return a number of threads; without one that of :func:`threads`, of which None stands for all cores."""
    return _NUMBER.get() if value is None else _count("n_threads", value)


def _count(name: str, value: object) -> int:
    from dpci.base.validation import check_count  # noqa: PLC0415  # NumPy, for which `dpci --version` does not wait

    return check_count(name, value)


def lock_across_forks() -> "threading.RLock":
    """Return a lock that is held while the process forks: a child must not inherit it taken by a thread it lacks."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
