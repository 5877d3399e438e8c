"""Rows of numbers and codes: one small integer for each categorical column, in place of its 0/1 columns."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Category: TypeAlias = tuple[int, int, float]
"""First column, number of levels, and the entry that a row has in the column of its level."""

Codes: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows whose categories are codes: 0 for a row without a level, c for one with the c-th.

    Parameters
    ----------
    numbers : ndarray of shape (n, p)
        The columns that are numbers, C-contiguous.
    codes : ndarray of shape (n, k)
        The codes, C-contiguous; fastest with categories of few levels first.
    columns : tuple of int
        Which columns the numbers are.
    categories : tuple of tuple
        Which columns the levels of each category are, and their entry.
    """

    numbers: NDArray[np.float64]
    codes: Codes
    columns: tuple[int, ...]
    categories: tuple[Category, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, those of the levels among them."""
        return len(self.codes), len(self.columns) + sum(levels for _, levels, _ in self.categories)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All data."""
        return self.numbers, self.codes

    @property
    def nbytes(self) -> int:
        """Bytes of all data."""
        return self.numbers.nbytes + self.codes.nbytes

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: "slice | NDArray[Any]") -> "CodedRows":
        """Return some of the rows."""
        numbers, codes = (np.ascontiguousarray(array[rows]) for array in self.arrays)
        return CodedRows(numbers, codes, self.columns, self.categories)

    def dense(self) -> NDArray[np.float64]:
        """Return the rows as a C-contiguous matrix."""
        matrix = np.zeros(self.shape)
        matrix[:, list(self.columns)] = self.numbers
        for (first, _, value), codes in zip(self.categories, self.codes.T, strict=True):
            inside = np.flatnonzero(codes)
            matrix[inside, first - 1 + codes[inside].astype(np.intp)] = value
        return matrix

    def product(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows times a vector."""
        out: NDArray[np.float64] = self.numbers @ vector[list(self.columns)]
        for (first, levels, value), codes in zip(self.categories, self.codes.T, strict=True):
            out += np.concatenate([[0.0], value * vector[first : first + levels]])[codes]
        return out


def code_type(levels: int) -> type[np.uint8 | np.uint16 | np.uint32]:
    """Return the narrowest type of the codes of so many levels."""
    return np.uint8 if levels < 1 << 8 else np.uint16 if levels < 1 << 16 else np.uint32
