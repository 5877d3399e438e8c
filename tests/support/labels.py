"""Labels of every type that says that they are booleans, and of types that do not."""

from importlib import import_module

import numpy as np


def labels_of_boolean_type(y):
    """Yield labels, given as a boolean array, in each boolean data type of the libraries that are installed."""
    yield y
    pd, pl, pa = map(_installed, ("pandas", "polars", "pyarrow"))
    if pd is not None:
        yield pd.Series(y)
        yield pd.Series(y, dtype="boolean")
    if pl is not None:
        yield pl.Series(y)
    if pa is not None:
        yield pa.array(y)
        yield pa.chunked_array([y])
    if pd is not None and pa is not None:
        yield pd.Series(y, dtype="bool[pyarrow]")


def labels_of_other_types(y):
    """Yield (labels, the classes that they show), of which no type says what else might have occurred."""
    yield y.astype(int), (0, 1)
    yield 2.0 * y - 1.0, (-1.0, 1.0)
    yield y.tolist(), (False, True)
    yield y.astype(object), (False, True)
    yield np.where(y, "yes", "no"), ("no", "yes")
    yield np.where(y, 7, 3), (3, 7)
    pd = _installed("pandas")
    if pd is not None:
        # Its categories may have been read off the labels.
        yield pd.Series(pd.Categorical(y)), (False, True)


def _installed(name):
    try:
        return import_module(name)
    except ImportError:
        return None
