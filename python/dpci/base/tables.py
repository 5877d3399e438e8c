"""Cells of tables as text, and pandas frames."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci.base.optional import optional
from dpci.base.validation import check_choice

if TYPE_CHECKING:
    import pandas as pd


# Sizes that four decimals show well, and the most decimals that are easier to read than powers of ten.
_LEAST, _GREATEST, _MOST_DECIMALS = 1e-3, 1e12, 10
ERROR_DIGITS = 2
"""Digits of an error, or of the length of an interval, that the usual decimals would hide."""
# Embeddings, overrides and isolates, and what ends them.
_DIRECTION_CONTROLS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def printable(text: str) -> str:
    """Return a text on one line that shows what it is: line breaks, controls and overrides of direction as escapes.

    Names are the caller's: one with a line break would look like two rows, one with an escape sequence changes a
    terminal, and one with an override of direction reads as another name.
    """
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if _hides(c) else c for c in text)


def _hides(character: str) -> bool:
    # Joiners and marks of direction belong to words of some scripts.
    return (
        unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}
        or unicodedata.bidirectional(character) in _DIRECTION_CONTROLS
    )


def format_percent(level: float) -> str:
    """Return a level as a percentage, with as many digits as tell it from 100%."""
    return f"{100 * level:.13g}%"


def format_pvalue(pvalue: float) -> str:
    """Return a p-value with four decimals, or that it is below the smallest of them."""
    return "<0.0001" if pvalue < 1e-4 else f"{pvalue:.4f}"


def number_format(sizes: ArrayLike, values: ArrayLike, *, digits: int = 4) -> str:
    """Return the format of values whose standard errors, or whose own sizes, are these.

    Four decimals. Where the least size above 0 would be lost in them, so many of its digits; powers of ten where that
    is many decimals, or where the values have many before the point.
    """
    found = np.asarray(sizes, dtype=np.float64)
    least = float(found[found > 0.0].min(initial=1.0))
    decimals = 4 if least >= _LEAST else digits - 1 - math.floor(math.log10(least))
    if decimals > _MOST_DECIMALS or np.abs(values).max(initial=float(found.max(initial=0.0))) > _GREATEST:
        return ".4e"
    return f".{decimals}f"


def estimates_as_text(values: NDArray[np.float64]) -> list[str]:
    """Return estimates without errors as text, each with digits of its own; dashes for NaN."""
    return [f"{value:{number_format(abs(value), value)}}" if np.isfinite(value) else "-" for value in values]


def row_of_text(
    estimate: float, error: float, pvalue: float, lower: float, upper: float, *, shown: str | None = None
) -> list[str]:
    """Return estimate, standard error, p-value and bounds as text; dashes where there is no estimate."""
    if not np.isfinite(error):
        return ["-"] * 5
    shown = shown or number_format(error, estimate, digits=ERROR_DIGITS)
    numbers = [f"{value:{shown}}" for value in (estimate, error, lower, upper)]
    return [*numbers[:2], format_pvalue(pvalue), *numbers[2:]]


def format_bound(bound: float, digits: int, *, least: bool = False) -> str:
    """Return a number that is said to be reached "at most": rounded upwards to so many significant digits.

    What is rounded is the shortest decimal number that stands for the float, so that 0.1 stays 0.1. One that is said to
    be there at ``least`` is rounded downwards.
    """
    rounding = ROUND_FLOOR if least else ROUND_CEILING
    rounded = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(bound))))
    return f"{float(rounded):.{digits}g}"


def new_frame(columns: Mapping[str, NDArray[np.float64]], names: Sequence[str]) -> "pd.DataFrame":
    """Return columns as a pandas frame indexed by names."""
    with optional("pandas", extra="pandas", what="to_frame"):
        import pandas as pd  # noqa: PLC0415  # optional
    return pd.DataFrame(columns, index=pd.Index(names, name="name"))


Library: TypeAlias = Literal["pandas", "polars", "pyarrow"]
_LIBRARIES: tuple[Library, ...] = ("pandas", "polars", "pyarrow")


def frame_by(library: object, columns: Mapping[str, object]) -> Any:  # noqa: ANN401  # of an optional library
    """Return columns as a frame of a library, which is named or is that of a table."""
    named = library if isinstance(library, str) else str(type(library).__module__).partition(".")[0]
    match check_choice("like", named, _LIBRARIES):
        case "pandas":
            with optional("pandas", extra="pandas", what="a frame of pandas"):
                import pandas as pd  # noqa: PLC0415  # optional
            return pd.DataFrame(columns)
        case "polars":
            with optional("polars", extra="polars", what="a frame of Polars"):
                import polars as pl  # noqa: PLC0415  # optional
            return pl.DataFrame(columns)
        case "pyarrow":
            with optional("pyarrow", extra="arrow", what="a table of Arrow"):
                import pyarrow as pa  # noqa: PLC0415  # optional
            return pa.table(columns)


def change_text(neighbors: str, unit: str) -> str:
    """Return what neighbouring data differ in; ``unit`` is "record" or "person"."""
    return f"one {unit} {'replaced' if neighbors == 'replace_one' else 'added or removed'}"


def positive_class(classes: tuple[object, object] | None, *, inferred: bool) -> str:
    """Return the positive class as the end of a line that names the loss; nothing for real targets."""
    if classes is None:
        return ""
    return f", positive class {classes[1]!r}" + (" (classes inferred from y: not private)" if inferred else "")
