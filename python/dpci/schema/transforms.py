"""Numbers of a column: their bounds, their transforms, and how many of a unit they are."""

import math
import sys
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.errors import InvalidInput
from dpci.schema.cells import in_days, remedy

Transform: TypeAlias = Literal["none", "signed_log"]
_F64: TypeAlias = NDArray[np.float64]
# Greatest number that is made of a logarithm: a finite one.
_FARTHEST = 1e300


def forth(transform: Transform, numbers: _F64) -> _F64:
    """Numbers after a transform."""
    return np.sign(numbers) * np.log1p(np.abs(numbers)) if transform == "signed_log" else numbers


def back(transform: Transform, numbers: _F64) -> _F64:
    """Return the numbers that a transform takes to these."""
    return np.sign(numbers) * np.expm1(np.abs(numbers)) if transform == "signed_log" else numbers


def back_within(
    transform: Transform, bounds: tuple[float, float], extent: tuple[float, float] | None
) -> tuple[float, float]:
    """Return bounds that were chosen after a transform as numbers of the table, within a public range."""
    ends = np.array((-_FARTHEST, _FARTHEST) if extent is None else extent)
    scaled = np.clip(bounds, *forth(transform, ends))
    # Of rounding: back is not forth to the last bit.
    lower, upper = np.clip(back(transform, scaled), *ends).tolist()
    return lower, upper


_WORDS = (
    "year",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "point",
    "level",
    "unit",
    "dollar",
    "euro",
    "pound",
)
"""Units that have an "s" in the plural; others stay as they are: "10 kg", "10 kg/m2"."""


def counted(number: float, unit: str) -> str:
    """Return a unit of which there are so many: "year", "10 years", "10 years less"."""
    singular = unit.removesuffix("s")
    if singular in _WORDS:
        unit = singular if abs(number) == 1.0 else f"{singular}s"
    amount = "" if abs(number) == 1.0 else f"{abs(number):,.15g} "
    return f"{amount}{unit}{' less' if number < 0.0 else ''}"


def is_number(value: object) -> bool:
    """Whether it is a finite number; compared, not converted: NaN fails, and an integer may have hundreds of digits."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    number = value.item() if isinstance(value, np.integer) else value
    return bool(abs(float(number) if isinstance(number, np.floating) else number) <= sys.float_info.max)


def take_bounds(part: Any, name: str) -> None:  # noqa: ANN401  # a column or a target with bounds
    """Take bounds as numbers of Python, the lower one below the upper one; days count from the public day."""
    since = getattr(part, "since", "")
    for field in ("lower", "upper") if since else ():
        object.__setattr__(part, field, in_days(since, getattr(part, field)))
    lower, upper = part.lower, part.upper
    for field, bound in (("lower", lower), ("upper", upper)):
        if not is_number(bound):
            raise InvalidInput(
                f"column {name!r}: bounds must be finite numbers{' or days such as 2024-05-01' if since else ''}, got "
                f"{bound!r}{'' if since else remedy(bound)}"
            )
        if isinstance(bound, np.generic):  # a file holds numbers of Python
            object.__setattr__(part, field, int(bound) if isinstance(bound, np.integer) else float(bound))
    if not (lower < upper):
        raise InvalidInput(f"column {name!r}: lower must be below upper, got lower={lower}, upper={upper}")
    if not math.isfinite(upper - lower):
        raise InvalidInput(f"column {name!r}: upper - lower must be finite, got lower={lower}, upper={upper}")
