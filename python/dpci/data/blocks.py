"""Rows in blocks, checked or scaled into their bounds: here until the core does it (``core_rows`` in rows.py)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpci.data.arrays import Features
from dpci.errors import RowNormViolation
from dpci.rows import Ball, Blocks, RowDomain

# As the core's for the norm: what rounding may lift a row above its bound.
_ROUNDING_ROOM = 1e-9


def within(rows: RowDomain, features: Features, *, clip: bool) -> Features:
    """Return rows of the domain; rows of a ball are left to the core.

    Raises
    ------
    InvalidInput
        For another number of columns than the blocks have.
    RowNormViolation
        For a block above its bound, unless it may be clipped.
    """
    if isinstance(rows, Ball):
        return features
    rows.check_columns(features.shape[1])
    greatest = 0.0
    for at, shares in _shares(features, rows):
        if not clip and (shares > 1.0 + _ROUNDING_ROOM).any():
            i, block = map(int, np.argwhere(shares > 1.0 + _ROUNDING_ROOM)[0])
            bound, columns = rows.block_bounds[block], np.flatnonzero(np.array(rows.members) == block)
            raise RowNormViolation(
                f"the absolute values of every row of X must sum to at most {bound:g} over the {len(columns)} columns "
                f"of the block of column {columns[0]}, got {shares[i, block] * bound:g} in row {at.start + i} (scale "
                'the columns with public bounds, or pass on_violation="clip")'
            )
        greatest = max(greatest, float(shares.max(initial=0.0)))
    return features if greatest <= 1.0 else _scaled(features, rows)


def _shares(features: Features, rows: Blocks) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield, for slices of the rows, the sum of absolute values of each block over its bound, (rows, blocks)."""
    bounds, members = np.array(rows.block_bounds), np.array(rows.members)
    sums = (members[:, None] == np.arange(len(bounds))).astype(np.float64)
    for at, block in features.blocks():
        with np.errstate(over="ignore"):  # infinite sums are above any bound
            yield at, (abs(block) @ sums) / bounds


def _scaled(features: Features, rows: Blocks) -> Features:
    """Return a copy in which each block that is above its bound is divided by what it is too large by."""
    members = np.array(rows.members)
    if isinstance(features.values, tuple):
        indptr, indices, entries, n_columns = features.values
        scaled = entries.astype(np.float64)
        for at, shares in _shares(features, rows):
            part = slice(int(indptr[at.start]), int(indptr[at.stop]))
            owner = np.repeat(np.arange(len(shares)), np.diff(indptr[at.start : at.stop + 1]))
            scaled[part] /= np.maximum(shares, 1.0)[owner, members[indices[part]]]
        return Features((indptr, indices, scaled, n_columns), features.names)
    values = features.values.astype(np.float64)
    for at, shares in _shares(features, rows):
        values[at] /= np.maximum(shares, 1.0)[:, members]
    return Features(values, features.names)
