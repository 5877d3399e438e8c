"""The preprocessing under which the published coverage tables were made; it reads its scales off the data."""

import warnings
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpci.datasets import Dataset, Layout, load_layout, load_table
from dpci.errors import InvalidInput, PrivacyLeakWarning
from papers.files import Table

_Items = TypeVar("_Items", NDArray[np.int64], list[tuple[str, str, str | None, float]])

# A unit row may come out a few units in the last place above 1; divided by this it does not.
_ROUNDING_MARGIN = 1.0 + 2.0**-48


def load_with_data_dependent_scaling(
    name: str, n: int | None = None, d: int | None = None, *, seed: int = 0, download: bool = True
) -> Dataset:
    """Rows as in the experiments of Wang, Kifer and Lee. Not private: for reproducing tables only.

    Numeric columns in the order of the file, then the one-hot columns of each categorical column in sorted order of the
    categories that occur; each divided by its greatest absolute value, columns of zeros dropped; rows permuted, the
    first ``n`` taken, of these the first ``d`` columns; rows of norm above 1 scaled to 1; a column of ones appended;
    rows scaled to norm 1. Rows of Adult with a missing value are left out.

    Parameters
    ----------
    name : {"adult", "bank", "credit_default", "kddcup99"}
        The data set (the training half of Adult, the 10% file of KDD Cup 1999).
    n, d : int, optional
        Numbers of rows and of columns before the column of ones; None: all.
    seed : int
        Seed of the permutation.
    download : bool
        Whether a file that is not here may be fetched.

    Returns
    -------
    Dataset
        With ``d + 1`` columns, the last one named "ones", and ``schema=None``: fit it with
        ``rows=dpci.rows.Within(intercept=False)``.

    Raises
    ------
    InvalidInput
        There is no such data set, or it has fewer rows or columns than asked for.
    """
    table = load_table(name, drop_missing=True, download=download)
    X, y, names = scale_by_the_data(table, load_layout(name), n, d, seed=seed, stacklevel=3)
    return Dataset(X=X, y=y, names=names, schema=None, licence=f"that of {name}, docs/public_data.md")


def scale_by_the_data(
    table: Table, layout: Layout, n: int | None = None, d: int | None = None, *, seed: int = 0, stacklevel: int = 2
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[str, ...]]:
    """Rows, targets and names of the columns of any table, made as :func:`load_with_data_dependent_scaling` says.

    Parameters
    ----------
    table : dict of str to ndarray of shape (n,)
        Columns as :func:`dpci.datasets.load_table` or :func:`papers.ipums.read_ipums` returns them.
    layout : Layout
        Names and kinds of these columns.
    n, d, seed
        See :func:`load_with_data_dependent_scaling`.
    stacklevel : int
        Level at which the warning points: 1 is this function, 2 its caller.

    Returns
    -------
    tuple of (ndarray of shape (n, d + 1), ndarray of shape (n,), tuple of str)
        Rows, targets -1 and 1, names of the columns, the last one "ones".

    Raises
    ------
    InvalidInput
        The table has fewer rows or columns than asked for.

    Warns
    -----
    PrivacyLeakWarning
        Always.

    Examples
    --------
    >>> import warnings, numpy as np, dpci
    >>> from papers.scaling import scale_by_the_data
    >>> warnings.simplefilter("ignore", dpci.PrivacyLeakWarning)
    >>> layout = dpci.datasets.Layout(columns=("age", "paid"), numeric=("age",), target="paid", positive=("yes",))
    >>> table = {"age": np.array([40.0, 20.0]), "paid": np.array(["yes", "no"])}
    >>> X, y, names = scale_by_the_data(table, layout)
    >>> X.round(3).tolist(), y.tolist(), names
    ([[0.707, 0.707], [0.447, 0.894]], [1.0, -1.0], ('age', 'ones'))
    """
    warnings.warn(
        "the scales and categories of these rows are computed from the data, so a fit on them is NOT PRIVATE",
        PrivacyLeakWarning,
        stacklevel=stacklevel,
    )
    target = table[layout.target]
    kept = _first("n", n, np.random.default_rng(seed).permutation(len(target)))

    # (name, column, category or None, greatest absolute value): filled in below, once it is known which are wanted.
    columns: list[tuple[str, str, str | None, float]] = []
    for column in layout.numeric:
        greatest = float(np.abs(table[column]).max())
        if greatest > 0.0:
            columns.append((column, column, None, greatest))
    for column in layout.columns:
        if column not in {*layout.numeric, *layout.ignored, layout.target}:
            # A category that occurs has the greatest value 1 and is no column of zeros.
            columns += [(f"{column}={label}", column, str(label), 1.0) for label in np.unique(table[column])]
    columns = _first("d", d, columns)

    X = np.empty((len(kept), len(columns) + 1))
    for position, (_, column, category, greatest) in enumerate(columns):
        values = table[column][kept]
        X[:, position] = values / greatest if category is None else values == category
    features = X[:, :-1]
    features /= np.maximum(np.linalg.norm(features, axis=1), 1.0)[:, None]
    X[:, -1] = 1.0
    X /= (np.linalg.norm(X, axis=1) * _ROUNDING_MARGIN)[:, None]
    y = np.where(np.isin(target[kept], layout.positive), 1.0, -1.0)
    return X, y, (*(label for label, *_ in columns), "ones")


def _first(what: str, count: int | None, items: _Items) -> _Items:
    if count is None:
        return items
    if not (0 < count <= len(items)):
        msg = f"{what} must be between 1 and {len(items)}, got {what}={count}"
        raise InvalidInput(msg)
    return items[:count]
