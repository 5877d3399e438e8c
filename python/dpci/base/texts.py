"""Names and other texts, compared however they were typed: an accented letter is one character or two in Unicode."""

import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from dpci.errors import InvalidInput

_Value = TypeVar("_Value")


def composed(text: str) -> str:
    """Return a text in the normal form C of Unicode: an accented letter is one character, however it was typed."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def as_name(value: _Value) -> _Value:
    """Return a text as :func:`composed` does, and anything else as it is."""
    return composed(value) if isinstance(value, str) else value  # type: ignore[return-value]  # a text again


def place_of(name: object, names: Sequence[str]) -> int | None:
    """Return the place of a name among names, however both were typed; None where it is not one of them."""
    if not isinstance(name, str):
        return None
    wanted = composed(name)
    return next((place for place, known in enumerate(names) if composed(known) == wanted), None)


def check_different(rule: str, values: Iterable[Hashable]) -> None:
    """Refuse texts that are equal however they were typed.

    Raises
    ------
    InvalidInput
        With the rule and the first text that is there twice.
    """
    seen: set[Hashable] = set()
    for value in map(as_name, values):
        if value in seen:
            raise InvalidInput(f"{rule}, got {value!r} twice")
        seen.add(value)
