"""Storage of rows that a schema makes: dense, coded or sparse, by the sizes of each alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.data.coded import CodedRows, code_type

Csr: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64] | NDArray[np.float32], int]
"""(indptr, indices, values, n_columns); the indices of a row strictly increasing."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of which most entries are 0, such as functions of splines, and numbers of one category each.

    Parameters
    ----------
    csr : tuple
        The entries that are not 0, as the core takes them.
    """

    csr: Csr

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.csr[0]) - 1, self.csr[3]

    @property
    def nbytes(self) -> int:
        """Bytes of all data."""
        return sum(array.nbytes for array in self.csr[:3])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: "slice | NDArray[Any]") -> "SparseRows":
        """Return some of the rows."""
        indptr, indices, values, n_columns = self.csr
        at = np.arange(len(self))[rows]
        lengths = np.diff(indptr)[at]
        starts = offsets(lengths)
        entries = np.repeat(indptr[at] - starts[:-1], lengths) + np.arange(starts[-1])
        return SparseRows((starts, indices[entries], values[entries], n_columns))

    def dense(self) -> NDArray[np.float64]:
        """Return the rows as a C-contiguous matrix."""
        indptr, indices, values, _ = self.csr
        matrix = np.zeros(self.shape)
        matrix[np.repeat(np.arange(len(self)), np.diff(indptr)), indices] = values
        return matrix


EncodedRows: TypeAlias = NDArray[np.float64] | CodedRows | SparseRows
"""Rows of a table with a schema."""


def storage(n_numbers: int, levels: Sequence[int], n_entries: int) -> Literal["dense", "coded", "sparse"]:
    """Return how rows are stored, by public sizes: coded in half the bytes of dense ones or less, sparse in a quarter.

    Sparse rows of more bytes are slower than dense ones (docs/performance.md). ``n_numbers``: columns beside those of
    ``levels``; ``n_entries``: most entries of a row that are not 0.
    """
    dense = 8 * (n_numbers + sum(levels))
    sparse = 12 * n_entries + 8
    coded = 8 * n_numbers + len(levels) * np.dtype(code_type(max(levels))).itemsize if levels else math.inf
    if sparse < coded and 4 * sparse <= dense:
        return "sparse"
    return "coded" if 2 * coded <= dense else "dense"


def stacked(parts: Sequence[EncodedRows]) -> EncodedRows:
    """Return the rows of parts of one kind as one."""
    coded = [part for part in parts if isinstance(part, CodedRows)]
    if coded:
        numbers, codes = (np.concatenate(arrays) for arrays in zip(*(part.arrays for part in coded), strict=True))
        return CodedRows(numbers, codes, coded[0].columns, coded[0].categories)
    if sparse := [part.csr for part in parts if isinstance(part, SparseRows)]:
        indices, values = (np.concatenate([csr[at] for csr in sparse]) for at in (1, 2))
        lengths: Any = np.concatenate([np.diff(csr[0]) for csr in sparse])
        return SparseRows((offsets(lengths), indices, values, sparse[0][3]))
    return np.concatenate([part for part in parts if isinstance(part, np.ndarray)])


def offsets(lengths: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return where each row begins, and the end, of the numbers of their entries."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
