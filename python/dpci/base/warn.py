"""Warnings that point at the line of the caller, however many frames of the package are between."""

import sys
import warnings
from types import FrameType

from dpci.errors import SeededNoiseWarning

# The package, and those that call its estimators for whoever called them.
_PASSED = ("dpci", "sklearn", "joblib")


def warn(warning: Warning) -> None:
    """Give a warning that points at the nearest line outside of the package."""
    frame = sys._getframe(1)  # noqa: SLF001  # as ``inspect`` and the standard library's own ``logging`` do
    while frame.f_back is not None and is_within(frame, *_PASSED):
        frame = frame.f_back
    warn_at(frame, warning)


def warn_at(frame: FrameType, warning: Warning) -> None:
    """Give a warning that points at the line that a frame executes."""
    warnings.warn_explicit(
        warning,
        category=type(warning),
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def is_within(frame: FrameType, *packages: str) -> bool:
    """Whether a frame executes code of one of these packages."""
    module = str(frame.f_globals.get("__name__", ""))
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def warn_of_seed(what: str) -> None:
    """Warn that ``what`` is not private because its noise was seeded."""
    verb = "are" if what.endswith("s") else "is"
    message = (
        f"the {what} {verb} NOT PRIVATE, because the noise comes from the caller's seed (pass seed=None for a private "
        "release)"
    )
    warn(SeededNoiseWarning(message, what=what))
