"""Locks that a forked child can still take."""

import os
import threading


def lock_across_forks() -> "threading.RLock":
    """Return a lock that is held while the process forks: a child must not inherit it taken by a thread it lacks."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
