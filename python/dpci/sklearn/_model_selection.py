"""Tells whether scikit-learn's model selection is at work, whose scores and choices are not private."""

import inspect
import warnings
from types import FrameType

from dpci.errors import PrivacyLeakWarning

_SEARCHES = "sklearn.model_selection"


def warn_of_model_selection() -> None:
    """Give a ``PrivacyLeakWarning`` where a function of ``sklearn.model_selection`` is being called.

    Each fit is private, but what compares fits on held-out records reads these without noise. The warning is given when
    an estimator is fitted and when it is cloned: clones are made where the search was called, also if worker processes
    fit them. It points to the first line outside scikit-learn that led to the search.
    """
    # The stack, innermost first: this function is level 1 of warnings.warn, and levels[i] is i + 1.
    modules = [_module(frame) for frame in _callers(inspect.currentframe())]
    searching = [level for level, module in enumerate(modules) if _within(module, _SEARCHES)]
    if not searching:
        return
    level = searching[-1]
    while level + 1 < len(modules) and _within(modules[level], "sklearn"):
        level += 1
    warnings.warn(
        "scikit-learn's model selection reads the records that it scores without noise: its scores, and what it "
        "chooses by them, are not private, whatever each fit spent (PrivateGridSearch chooses within one budget)",
        PrivacyLeakWarning,
        stacklevel=level + 1,
    )


def _callers(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
