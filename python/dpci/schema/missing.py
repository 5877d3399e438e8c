"""Missing values of a column: whether they leave out their rows, and which value stands for them."""

from typing import Protocol

DROP = "drop"
"""Treatment of a missing value: its row weighs 0."""


class Gapped(Protocol):
    """A column of any kind; those of categories have ``categories``."""

    @property
    def missing(self) -> object:
        """Treatment of a missing value, or what stands for it."""


def drops(column: Gapped) -> bool:
    """Whether a row with a missing value of a column weighs 0."""
    return column.missing == DROP and DROP not in getattr(column, "categories", ())


def stand_in(column: Gapped) -> float | str | None:
    """Return the public value that stands for a missing one of a column; None where none does."""
    value = column.missing
    if isinstance(value, str):
        return value if hasattr(column, "categories") and not drops(column) else None
    return value if isinstance(value, float) else None
