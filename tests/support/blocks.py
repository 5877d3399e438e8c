"""The gauge of rows in blocks, without the core."""

import numpy as np
from numpy.typing import NDArray

from dpci import _core


def gauge(rows: _core.RowDomain, z: NDArray[np.float64]) -> float:
    """The least factor of the domain, about 0, that has this point: at most 1 for a row."""
    return float((np.bincount(rows.members, np.abs(z)) / rows.bounds).max())
