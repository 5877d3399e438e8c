"""Tables: plain text with aligned columns, and pandas frames."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpci._optional import optional

if TYPE_CHECKING:
    import pandas as pd


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first column is aligned left and the others right, with a rule under the header."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        return "  ".join(cells).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *(line(row) for row in rows)])


def format_percent(level: float) -> str:
    """Return a level as a percentage, with as many digits as tell it from 100%."""
    return f"{100 * level:.13g}%"


def format_pvalue(pvalue: float) -> str:
    """Return a p-value with four decimals, or that it is below the least of them."""
    return "<0.0001" if pvalue < 1e-4 else f"{pvalue:.4f}"


def new_frame(columns: Mapping[str, NDArray[np.float64]], names: Sequence[str]) -> "pd.DataFrame":
    """Return columns as a pandas frame indexed by names.

    Raises
    ------
    DpciError
        If pandas is not installed.
    """
    with optional("pandas", extra="pandas", what="to_frame"):
        import pandas as pd  # noqa: PLC0415  # optional
    return pd.DataFrame(columns, index=pd.Index(names, name="name"))


def format_facts(facts: Sequence[tuple[str, str]]) -> str:
    """Return "name  value" lines with the values aligned."""
    width = max(len(name) for name, _ in facts)
    return "\n".join(f"{name.ljust(width)}  {value}".rstrip() for name, value in facts)
