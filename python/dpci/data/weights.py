"""Weights of rows as numbers: a column of them, and those of the two classes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci.base.validation import broken, check_positive
from dpci.data.arrays import as_floats, as_numbers
from dpci.data.frames import same_index
from dpci.errors import InvalidInput

_F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """Public weights of the two classes, times those of the rows where these have some."""

    negative: float
    positive: float
    of_rows: Any = None
    row_bound: float = math.inf
    """The largest weight of a row before it is multiplied by that of its class."""
    clip: bool = False

    @classmethod
    def checked(cls, weights: object, classes: Sequence[Any] | None, of_rows: object) -> "ClassWeights":
        """Return the weights that a mapping from public classes to numbers describes."""
        if isinstance(weights, str):
            raise broken(
                "class_weight",
                "a mapping from classes to public weights, because weights that are computed from the labels are not "
                "private",
                weights,
            )
        if not isinstance(weights, Mapping):
            raise InvalidInput(f"class_weight must be a mapping from classes to weights or None, got {weights!r}")
        # A boolean target makes its classes public.
        negative, positive = (False, True) if classes is None else classes
        if len(weights) != 2 or negative not in weights or positive not in weights:
            raise InvalidInput(
                f"class_weight must have a weight for each of the classes {(negative, positive)!r} and no other, got "
                f"class_weight={dict(weights)!r}" + ("" if classes is not None else " and classes=None")
            )
        return cls(
            check_positive("class_weight", weights[negative]),
            check_positive("class_weight", weights[positive]),
            of_rows,
        )

    @property
    def bound(self) -> float:
        """The larger of the two."""
        return max(self.negative, self.positive)

    def values(self, targets: _F64, X: object) -> _F64:
        """Return the weight of each row, of targets -1 and 1."""
        by_class = np.where(targets > 0.0, self.positive, self.negative)
        if self.of_rows is None:
            return by_class
        of_rows = weight_values(self.of_rows, len(targets), X)
        legal = np.isfinite(of_rows) & (of_rows >= 0.0) & (self.clip | (of_rows <= self.row_bound))
        if not legal.all():
            at = int(np.argmin(legal))
            raise InvalidInput(
                f"sample_weight must be finite, at least 0 and at most the bound of weights, {self.row_bound:g}, got "
                f'{of_rows[at]:g} in row {at} (pass rows="clip" to lower greater weights to the bound)'
            )
        return by_class * np.minimum(of_rows, self.row_bound)


def weights_of_cells(cells: object) -> object:
    """Return a column of a file as numbers, where it holds the texts of a CSV file."""
    if not isinstance(cells, list) or str not in set(map(type, cells)):
        return cells
    numbers = as_floats(np.array(cells, dtype=object))
    if (missing := np.isnan(numbers)).any():
        row = int(np.argmax(missing))
        comma = " (numbers need a decimal point)" if "," in str(cells[row]) else ""
        raise InvalidInput(
            f"the column of weights must have a number in every row, got another cell in row {row}{comma}"
        )
    return numbers


def weight_values(weights: object, n_rows: int, X: object = None) -> _F64:
    """Return the weight of each row; their range is checked where rows are.

    Parameters
    ----------
    weights : array-like of shape (n_rows,)
        Numbers of any type, in the order of the rows.
    n_rows : int
        Number of rows.
    X : table, optional
        The rows: an index of theirs must be that of the weights, where both have one.
    """
    values = as_numbers("weights", weights)
    if values.shape != (n_rows,):
        raise InvalidInput(f"weights must have one number for each of the {n_rows} rows, got shape {values.shape}")
    check_index_of_weights(X, weights)
    return np.ascontiguousarray(values, dtype=np.float64)


def check_index_of_weights(X: object, weights: object) -> None:
    """Refuse weights whose index is another one than that of the table."""
    if not same_index(X, weights.of_rows if isinstance(weights, ClassWeights) else weights):
        raise InvalidInput(
            "the index of weights must be that of X, got another one (weights.loc[X.index] brings them into the order "
            "of X; weights without an index are paired by position: weights.to_numpy())"
        )


def row_weights(weights: object, targets: _F64, X: object) -> _F64:
    """Return the weight of each row, as it is given or by its class."""
    if isinstance(weights, ClassWeights):
        return weights.values(targets, X)
    return weight_values(weights, len(targets), X)
