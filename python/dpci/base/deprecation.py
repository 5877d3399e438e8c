"""How a name of the public interface is taken out of use: warned of for a while, then removed."""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from dpci._core import __version__
from dpci.base.validation import broken
from dpci.errors import DpciDeprecationWarning, InvalidInput

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# Before 1.0, minor versions between the first with the warning and the one without the name.
LEAST_NOTICE = 2

DEPRECATIONS: "list[Deprecation]" = []
"""All that modules loaded so far have announced."""


@dataclass(frozen=True)
class Deprecation:
    """Something that a later version will not have; making one announces it.

    Parameters
    ----------
    what, instead : str
        What goes, and what to use, as the caller writes them: "fit(n_boot=...)".
    since, removal : str
        Versions "major.minor": the first that warns, and the one in which it is gone.
    """

    what: str
    instead: str
    since: str
    removal: str

    def __post_init__(self) -> None:
        since, removal = minor_version(self.since), minor_version(self.removal)
        # From 1.0 only a major version breaks anything; it may follow any minor one, so the notice has no least length.
        major = removal[0] > since[0] and removal[1] == 0
        if not major and (since[0] > 0 or removal[0] > 0 or removal[1] < since[1] + LEAST_NOTICE):
            raise broken(
                "removal",
                f"a later major version or, before 1.0, at least {LEAST_NOTICE} minor versions after "
                f"since={self.since!r}",
                self.removal,
            )
        DEPRECATIONS.append(self)

    @property
    def overdue(self) -> bool:
        """Whether this version should not have it any more."""
        return minor_version(__version__) >= minor_version(self.removal)

    @property
    def message(self) -> str:
        """What goes, since when and until when, and what to use."""
        return (
            f"{self.what} is deprecated since dpci {self.since} and will be removed in {self.removal}: "
            f"use {self.instead}"
        )

    def warn(self, *, stacklevel: int) -> None:
        """Warn; 2 points at the caller of the function that calls this."""
        warnings.warn(DpciDeprecationWarning(self.message, **vars(self)), stacklevel=stacklevel + 1)


def minor_version(text: str) -> tuple[int, int]:
    """Return (major, minor) of a version."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def renamed_keyword(
    old: str, new: str, *, since: str, removal: str
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Let a function take a keyword under its old name too, with a warning.

    Raises
    ------
    InvalidInput
        By the function, if both names are given.
    """

    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        name = function.__qualname__
        deprecation = Deprecation(f"{name}({old}=...)", f"{new}=...", since, removal)

        @functools.wraps(function)
        def renaming(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            if old in kwargs:
                if new in kwargs:
                    raise InvalidInput(f"{name} must be called with {new} only, got {old} (its former name) too")
                deprecation.warn(stacklevel=2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return renaming

    return decorate
