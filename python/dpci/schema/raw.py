"""Tables that are not encoded yet, and the columns of ids and weights beside their rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpci.data.frames import named_columns
from dpci.data.persons import check_index_of_persons
from dpci.data.rows import is_in_parts
from dpci.data.weights import check_index_of_weights
from dpci.errors import InvalidInput
from dpci.schema.cells import column_of
from dpci.schema.table import Schema
from dpci.unit import Beside


@dataclass(frozen=True, eq=False, repr=False)
class RawTable:
    """A table in memory that is not encoded yet, with the shape that it will have."""

    table: Any
    schema: Schema

    @cached_property
    def columns(self) -> Any:  # noqa: ANN401  # tables of any library
        """The table, whose columns can be asked for; one that is a stream of Arrow is read here, once."""
        return named_columns(self.table)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of encoded columns, without a look at a value."""
        table, name = self.table, self.schema.columns[0].name
        try:
            n_rows = len(table[name]) if isinstance(table, Mapping) and name in table else len(table)
        except TypeError as error:  # such as a lazy frame
            raise InvalidInput(f"a table must be in memory, got {type(table).__name__}") from error
        return n_rows, len(self.schema.names)


def column_values(X: Any, values: Any) -> Any:  # noqa: ANN401  # a column of any library
    """Return ids or weights, of a table those of the column that is named."""
    # Parts are asked for their columns one by one.
    if not isinstance(values, str) or is_in_parts(X):
        return values
    return column_of(X.columns if isinstance(X, RawTable) else X, values)


def columns_beside(X: Any, beside: Beside) -> Beside:  # noqa: ANN401  # whatever the caller has
    """Return ids and weights of the rows of a table: those of the columns that are named, or as they are given.

    Raises
    ------
    InvalidInput
        Where the table and one of them have an index and the two differ.
    """
    # Encoded rows have no index any more.
    table = X.table if isinstance(X, RawTable) else X
    check_index_of_persons(table, beside.persons)
    check_index_of_weights(table, beside.weights)
    return Beside(column_values(X, beside.persons), column_values(X, beside.weights))
