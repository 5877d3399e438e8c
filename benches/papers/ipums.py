"""Reads an IPUMS extract that the user names: it may not be redistributed, so its layout is a convention."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpci.datasets import Layout
from dpci.errors import InvalidInput
from papers.files import Table, read_bytes, read_csv

_LAYOUT = (
    "a CSV file (.csv, .csv.gz) with a header, no missing value, the target in the last column with two values, of "
    "which the greater is the positive one; a column of numbers only is numeric, any other is categorical"
)

_LONGEST_CELL = 200
_MISSING = "?"

# What float() reads besides, such as 1_000 and the digits of other scripts, is text. The words are taken for numbers so
# that a column of numbers with one of them is refused rather than becoming a category for each number.
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)", re.ASCII | re.IGNORECASE)


def read_ipums(path: Path) -> tuple[Table, Layout]:
    """Columns of an extract of IPUMS that you made, and which of them are numeric.

    Parameters
    ----------
    path : Path
        The file, with the target in the last column (docs/public_data.md); blanks around a cell are left out. The
        values of the target are compared as numbers if both are numbers, otherwise as text: 1 is above 0, ">50K" is
        above "<=50K", "yes" is above "no".

    Returns
    -------
    tuple of (dict of str to ndarray of shape (n,), Layout)
        Float64 for numeric columns, text for the others and for the target.

    Raises
    ------
    InvalidInput
        The file cannot be read or has another layout, a cell has more than 200 characters, or a column mixes numbers
        with a few other cells; names the column.
    """
    if not path.name.lower().endswith((".csv", ".csv.gz")):
        msg = f"an IPUMS extract must be {_LAYOUT}; got {str(path)!r}"
        raise InvalidInput(msg)
    columns = {name: [cell.strip() for cell in cells] for name, cells in _read(path).items()}
    *features, target = columns
    if not features or not columns[target]:
        msg = f"{path} must have at least one row and two columns, got {len(columns[target])} x {len(columns)}"
        raise InvalidInput(msg)
    for name, cells in columns.items():
        _check_cells(path, name, cells)
    numbers = {name: parsed for name in features if (parsed := _numbers(path, name, columns[name])) is not None}
    layout = Layout(
        columns=tuple(columns),
        numeric=tuple(numbers),
        target=target,
        positive=(_positive(path, target, columns[target]),),
        has_header=True,
    )
    table = {name: numbers[name] if name in numbers else np.asarray(cells) for name, cells in columns.items()}
    return table, layout


def _read(path: Path) -> dict[str, Sequence[str]]:
    """Return the cells of each column as text."""
    first, lines = read_csv(path, read_bytes(path))
    header = [name.strip() for name in first]
    if not header or len(set(header)) != len(header):
        raise InvalidInput(f"{path} must begin with a line of distinct column names, got {header}")
    rows = list(lines)
    for row, cells in enumerate(rows, start=1):
        if len(cells) != len(header):
            raise InvalidInput(f"a line of {path} must have {len(header)} cells, got {len(cells)} in {_below(row)}")
    return dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(header, ())


def _check_cells(path: Path, name: str, cells: Sequence[str]) -> None:
    """Refuse missing values, and cells for whose length the whole column would need memory."""
    for row, cell in enumerate(cells, start=1):
        if cell in {"", _MISSING}:
            msg = f"{path} must have no missing value, got {cell!r} in column {name!r}, {_below(row)}"
            raise InvalidInput(msg)
        if len(cell) > _LONGEST_CELL:
            msg = (
                f"a cell of {path} must have at most {_LONGEST_CELL} characters, got {len(cell):,} in column {name!r}, "
                f"{_below(row)}"
            )
            raise InvalidInput(msg)


def _numbers(path: Path, name: str, cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return the numbers of a column, or None if it is not a column of numbers; refuse one that mostly is."""
    words = {cell for cell in set(cells) if not _NUMBER.fullmatch(cell)}
    if not words:
        return _finite(path, name, cells)
    others = [row for row, cell in enumerate(cells) if cell in words]
    if 10 * len(others) <= len(cells):
        row = others[0]
        msg = (
            f"a column of {path} must hold numbers in all cells or in fewer than 90% of them, got {cells[row][:40]!r} "
            f"in column {name!r}, {_below(row + 1)}"
        )
        raise InvalidInput(msg)
    return None


def _finite(path: Path, name: str, cells: Sequence[str]) -> NDArray[np.float64]:
    numbers = np.array([float(cell) for cell in cells])
    odd = np.flatnonzero(~np.isfinite(numbers))
    if len(odd):
        msg = f"a numeric column of {path} must hold finite numbers, got {cells[odd[0]]!r} in column {name!r}"
        raise InvalidInput(msg)
    return numbers


def _below(row: int) -> str:
    return f"row {row} below the header"


def _positive(path: Path, name: str, cells: Sequence[str]) -> str:
    """Return the greater of the two values of the target."""
    labels = sorted(set(cells))
    numbers = _finite(path, name, labels) if all(map(_NUMBER.fullmatch, labels)) else None
    # 1 and 1.0 would be one value in two spellings.
    n_values = len(labels) if numbers is None else len(np.unique(numbers))
    if not (len(labels) == n_values == 2):
        msg = f"the last column of {path} must be the target with two values, got {n_values} in column {name!r}"
        if len(labels) != n_values:
            msg += f", spelt in {len(labels)} ways"
        raise InvalidInput(msg)
    return labels[-1 if numbers is None else int(np.argmax(numbers))]
