"""Parts of a table, each of which a schema encodes where it lies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpci.data.arrays import NamedRows, as_numbers
from dpci.data.frames import check_same_index, named_columns, taken_over
from dpci.data.labels import Classes, CodedLabels
from dpci.data.parts import NOTHING, Mergeable, on_threads
from dpci.data.weights import check_index_of_weights, weight_values, weights_of_cells
from dpci.schema.cells import as_cells, column_of, outside_fits
from dpci.schema.columns import ClassTarget, class_labels
from dpci.schema.table import Schema, encoded_rows, filled
from dpci.unit import NOTHING_BESIDE, Beside

_Merged = TypeVar("_Merged", bound=Mergeable)

_CODED: Classes = (-1, 1)


class SchemaParts:
    """Parts of a table, each of which a schema encodes, or has encoded, where it lies."""

    def __init__(self, parts: Any, schema: Schema, beside: Beside = NOTHING_BESIDE, *, encoded: bool = False) -> None:  # noqa: ANN401  # any partitions
        self._parts = parts
        self._schema = schema
        self._beside = beside
        self._encoded = encoded

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return self._schema.names

    @property
    def tables(self) -> Any:  # noqa: ANN401  # any partitions
        """The parts before they are encoded."""
        return self._parts

    def encoding(self, work: Callable[..., _Merged]) -> Callable[..., _Merged]:
        """Return work on encoded rows as work on the tables."""
        return _Encoding(self._schema, work, self._beside, encoded=self._encoded)

    def on_threads(self, n_threads: int | None) -> tuple["SchemaParts", int | None]:
        """Return the parts on so many threads, and the threads of each."""
        parts, each = on_threads(self._parts, n_threads)
        return SchemaParts(parts, self._schema, self._beside, encoded=self._encoded), each

    def reduce(self, work: Callable[..., _Merged]) -> _Merged | None:
        """Apply ``work`` to the encoded rows and targets of every part."""
        merged: _Merged | None = self._parts.reduce(self.encoding(work))
        return merged


@dataclass(frozen=True)
class _Encoding:
    """Work on encoded rows, as work on those of the table."""

    schema: Schema
    work: Callable[..., Any]
    beside: Beside
    encoded: bool

    def __call__(self, X: Any, y: Any, given: Mapping[str, Any] = NOTHING) -> Any:  # noqa: ANN401  # whatever a source gives
        if self.encoded:
            return self.work(X, coded(y, self.schema), given)
        # Once, also here: a stream can be read only once.
        X = named_columns(X)
        read = [name for name in self.beside.names if name not in given and name != COMPLETE]
        columns = {**given, **{name: column_of(X, name) for name in read}}
        rows, targets, complete = encode_table(X, y, self.schema)
        if complete is not None:
            name = self.beside.weights
            columns[name] = complete if name == COMPLETE else weights_of_complete(columns[name], complete, X)
        return self.work(rows, targets, columns)


COMPLETE = "=complete"
"""Name of the weights of rows in parts without others, of which those with a missing value weigh 0."""


def encode_table(X: Any, y: Any, schema: Schema) -> tuple[NamedRows, Any, NDArray[np.float64] | None]:  # noqa: ANN401  # tables of any library
    """Return rows and targets of a table, and weights where rows with a missing value have none.

    ``y`` None: the table has the column of targets.
    """
    check_same_index(X, y)
    X, complete = filled(named_columns(X), schema)  # once: a stream can be read only once
    features = encoded_rows(schema, X)
    targets = schema.targets(X) if y is None else schema.target.encode(taken_over("y", y))
    return NamedRows(features, schema.names), coded(targets, schema), complete


def rows_to_predict(schema: Schema, X: Any) -> NamedRows:  # noqa: ANN401  # tables of any library
    """Return the rows of a table without its target, and which of them miss a value of a column that drops them."""
    X, complete = filled(named_columns(X), schema)
    with outside_fits():
        return NamedRows(encoded_rows(schema, X), schema.names, missing=None if complete is None else complete == 0.0)


def weights_of_complete(weights: object, complete: NDArray[np.float64], X: object) -> NDArray[np.float64]:
    """Return the weights of rows, 0 where a row has a missing value: its own is not looked at."""
    check_index_of_weights(X, weights)
    cells = as_cells(weights)
    if cells.shape == complete.shape:
        cells = np.where(complete > 0.0, cells if cells.dtype.kind in "biuf" else cells.astype(object), 0)
    return weight_values(weights_of_cells(cells.tolist() if cells.dtype.kind == "O" else cells), len(complete))


def coded(targets: Any, schema: Schema) -> Any:  # noqa: ANN401  # encoded targets
    """Return encoded targets with the classes that they stand for, if they stand for any."""
    classes = schema_classes(schema)
    return targets if classes is None else CodedLabels(as_numbers("y", targets).astype(np.float64), classes)


def schema_classes(schema: Schema) -> Classes | None:
    """Return (negative, positive) as the table has them; None for a target that is a number."""
    return (class_labels(schema.target) or _CODED) if isinstance(schema.target, ClassTarget) else None
