"""Reads an IPUMS extract that the user names: it may not be redistributed, so its layout is a convention."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpci._table_io import read_table
from dpci.datasets._catalogue import Layout
from dpci.datasets._tables import MISSING, Table
from dpci.errors import InvalidInput

LAYOUT = (
    "a CSV file (.csv, .csv.gz) with a header, no missing value, the target in the last column with two values, of "
    "which the greater is the positive one; a column of numbers only is numeric, any other is categorical"
)


def read_ipums(path: Path) -> tuple[Table, Layout]:
    """Columns of the user's file, and which of them are numeric.

    Parameters
    ----------
    path : Path
        File with the layout of ``LAYOUT``. The values of the target are compared as numbers if both are numbers, else
        as text: 1 is above 0, ">50K" above "<=50K", "yes" above "no".

    Returns
    -------
    tuple of (dict of str to ndarray of shape (n,), Layout)
        Float64 for numeric columns, text for the others and for the target.

    Raises
    ------
    InvalidInput
        The file cannot be read or has another layout; names the column.
    """
    if not path.name.lower().endswith((".csv", ".csv.gz")):
        msg = f"an IPUMS extract must be {LAYOUT}; got {str(path)!r}"
        raise InvalidInput(msg)
    columns = {name: np.asarray(cells, dtype=np.str_) for name, cells in read_table(path).items()}
    *features, target = columns
    if not features or not len(columns[target]):
        msg = f"{path} must have at least one row and two columns, got {len(columns[target])} x {len(columns)}"
        raise InvalidInput(msg)
    for name, cells in columns.items():
        missing = np.flatnonzero(np.isin(np.char.strip(cells), ("", MISSING)))
        if len(missing):
            msg = (
                f"{path} must have no missing value, got {str(cells[missing[0]])!r} in column {name!r}, "
                f"row {missing[0] + 1} below the header"
            )
            raise InvalidInput(msg)
    numbers = {name: parsed for name in features if (parsed := _numbers(path, name, columns[name])) is not None}
    layout = Layout(
        columns=tuple(columns),
        numeric=tuple(numbers),
        target=target,
        positive=(_positive(path, target, columns[target]),),
        has_header=True,
    )
    return {**columns, **numbers}, layout


def _numbers(path: Path, name: str, cells: NDArray[np.str_]) -> NDArray[np.float64] | None:
    """Return the numbers of a column, or None if it is no column of numbers."""
    try:
        numbers = cells.astype(np.float64)
    except ValueError:
        return None
    odd = np.flatnonzero(~np.isfinite(numbers))
    if len(odd):
        msg = f"a numeric column of {path} must hold finite numbers, got {str(cells[odd[0]])!r} in column {name!r}"
        raise InvalidInput(msg)
    return numbers


def _positive(path: Path, name: str, cells: NDArray[np.str_]) -> str:
    """Return the greater of the two values of the target."""
    labels = np.unique(cells)
    numbers = _numbers(path, name, labels)
    # 1 and 1.0 would be one value in two spellings.
    n_values = len(labels) if numbers is None else len(np.unique(numbers))
    if not (len(labels) == n_values == 2):
        msg = f"the last column of {path} must be the target with two values, got {n_values} in column {name!r}"
        if len(labels) != n_values:
            msg += f", spelt in {len(labels)} ways"
        raise InvalidInput(msg)
    return str(labels[-1] if numbers is None else labels[np.argmax(numbers)])
