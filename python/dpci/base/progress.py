"""Bars of progress: shown where somebody looks, on a terminal or in a notebook, and where tqdm is installed."""

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from dpci.base.optional import optional

_HIDDEN: ContextVar[bool] = ContextVar("hidden", default=False)
_DELAY = 1.0
"""Seconds after which a bar that nobody asked for appears: what takes less needs none."""


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """Show no bar inside the block: releases with private errors tell nothing about the data, not even their number."""
    token = _HIDDEN.set(True)
    try:
        yield
    finally:
        _HIDDEN.reset(token)


@contextlib.contextmanager
def progress_bar(
    total: int | None, unit: str, *, wanted: bool | None, what: str = "", kept: bool = False
) -> Iterator[Callable[[int], object]]:
    """Give a function that adds to a bar on stderr, or in a notebook, or one that does nothing.

    Without a total it is not known how much there is. ``wanted`` None: wherever somebody looks. A bar that is ``kept``
    stays when it is full.
    """
    if _HIDDEN.get() or not (is_watched() if wanted is None else wanted):
        yield lambda _: None
        return
    delay = _DELAY if wanted is None else 0.0
    looks: dict[str, Any] = {"desc": what or None, "unit": f" {unit}", "unit_scale": not kept, "leave": kept}
    with _tqdm()(total=total, delay=delay, **looks) as bar:
        yield bar.update


def is_watched() -> bool:
    """Whether somebody looks: stderr is a terminal, or the program is a notebook, and tqdm is installed."""
    stderr: Any = sys.stderr  # None where it is closed
    looks = "ipykernel" in sys.modules or (stderr is not None and stderr.isatty())
    return looks and importlib.util.find_spec("tqdm") is not None


def _tqdm() -> Any:  # noqa: ANN401  # an optional class
    with optional("tqdm", extra="progress", what="a progress bar"):
        import tqdm.auto  # noqa: PLC0415  # optional
    return tqdm.auto.tqdm
