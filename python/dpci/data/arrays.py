"""The rows as the core takes them: a C-contiguous matrix, compressed sparse rows, or numbers and codes."""

import contextlib
import math
import operator
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci.base.validation import check_finite, place_of
from dpci.data.coded import CodedRows
from dpci.data.frames import decoded, frame_matrix, is_frame, taken_over
from dpci.data.storage import Csr, SparseRows
from dpci.errors import InvalidInput

_NUMERIC_KINDS = "biuf"

Floats: TypeAlias = NDArray[np.float64] | NDArray[np.float32]
"""Numbers as the core reads them; it computes in float64 with either."""

# Numbers that a prediction handles at a time: 1 MB.
_BLOCK = 1 << 17


class Frame(Protocol):
    """A frame of a library that narwhals reads; none of them is a dependency. Also SciPy's sparse tables."""

    @property
    def shape(self) -> Any: ...  # noqa: ANN401, D102  # the protocol is the documentation


@dataclass(frozen=True)
class NamedRows:
    """Rows that carry the names of their columns, in the manner of a frame and without a copy."""

    values: NDArray[Any] | CodedRows | SparseRows
    names: tuple[str, ...]
    missing: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    """(n,) rows that miss a value, so that nothing is predicted for them; None: none does."""


Place: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Middle and half the width of the bounds of each column."""


@dataclass(frozen=True, eq=False)
class PlacedRows:
    """Dense rows whose columns the core moves to the middle of their bounds and divides by half their width."""

    values: Floats
    names: tuple[str, ...] | None
    place: Place


Table: TypeAlias = ArrayLike | Frame | NamedRows | PlacedRows | CodedRows


class Matrix(NamedTuple):
    """A matrix and the names of its columns, if the caller's table names them."""

    values: NDArray[np.float64]
    names: tuple[str, ...] | None


class Features(NamedTuple):
    """Rows in the form that the core takes, and the names of their columns if the table has them."""

    values: Floats | Csr | CodedRows
    names: tuple[str, ...] | None
    place: Place | None = None
    missing: NDArray[np.bool_] | None = None
    """(n,) rows that miss a value, see :class:`NamedRows`."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        if isinstance(self.values, tuple):
            return len(self.values[0]) - 1, self.values[3]
        return self.values.shape[0], self.values.shape[1]

    def product(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return X times a vector of shape (n_columns,), or raise for the first entry of X that is not finite.

        NaN for rows that miss a value.
        """
        if isinstance(self.values, CodedRows):
            out = self.values.product(vector)
        else:
            out = np.empty(self.shape[0])
            for rows, block in self.blocks():
                out[rows] = block @ vector
        return out if self.missing is None else np.where(self.missing, np.nan, out)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Blocks of rows in float64: the same rows, and so the same products, whatever the type of the values."""
        n_rows, n_columns = self.shape
        height = max(1, _BLOCK // max(1, n_columns))
        for start in range(0, n_rows, height):
            rows = slice(start, min(start + height, n_rows))
            if isinstance(self.values, tuple):
                yield rows, _sparse_block(self.values, rows)
            elif isinstance(self.values, CodedRows):
                yield rows, self.values[rows].dense()
            else:
                yield rows, _finite_block(self.values[rows], start)


def _finite_block(rows: Floats, start: int) -> NDArray[np.float64]:
    block = rows.astype(np.float64, copy=False)
    if not np.isfinite(block).all():
        i, j = map(int, np.argwhere(~np.isfinite(block))[0])
        raise InvalidInput(f"X must be finite, got {block[i, j]} at index {(start + i, j)}")
    return block


def _sparse_block(table: Csr, rows: slice) -> Any:  # noqa: ANN401  # SciPy's class has no type of its entries
    indptr, indices, values, n_columns = table
    first, last = int(indptr[rows.start]), int(indptr[rows.stop])
    block = values[first:last].astype(np.float64, copy=False)
    bad = np.flatnonzero(~np.isfinite(block))
    if len(bad):
        at = first + int(bad[0])
        index = (int(np.searchsorted(indptr, at, side="right")) - 1, int(indices[at]))
        raise InvalidInput(f"X must be finite, got {block[bad[0]]} at index {index}")
    offsets = indptr[rows.start : rows.stop + 1] - first
    from scipy.sparse import csr_array  # noqa: PLC0415  # slow to import, and few tables are sparse

    return csr_array((block, indices[first:last], offsets), shape=(len(offsets) - 1, n_columns))


def check_columns(features: Features, columns: tuple[str, ...], *, named: bool) -> Features:
    """Return rows whose columns are those of a fit; ``named``: the fit's table named them, and so may this one."""
    if features.shape[1] != len(columns):
        raise InvalidInput(f"X must have the {len(columns)} columns of the fit, got {features.shape[1]} columns")
    if named and features.names is not None and features.names != columns:
        at = next(i for i in range(len(columns)) if features.names[i] != columns[i])
        raise InvalidInput(
            f"the columns of X must be as in the fit: column {at} must be {columns[at]!r}, got {features.names[at]!r}"
        )
    return features


def as_features(table: Table) -> Features:
    """Return a table as the core takes it: sparse if it is a sparse matrix or array of SciPy, or as :func:`as_matrix`.

    Numbers in float32 stay so, as the core converts them block by block. Sparse rows in canonical CSR form with float64
    or float32 values, int32 indices and int64 offsets are passed on without a copy.
    """
    if isinstance(table, PlacedRows):
        return Features(table.values, table.names, table.place)
    values, names, missing = (
        (table.values, table.names, table.missing) if isinstance(table, NamedRows) else (table, None, None)
    )
    if isinstance(values, CodedRows | SparseRows):
        return Features(values if isinstance(values, CodedRows) else values.csr, names, missing=missing)
    if _is_sparse(table):
        return Features(_csr(table), None)
    return Features(*_dense(table), missing=missing)


def as_matrix(table: Table) -> Matrix:
    """Return a table as a C-contiguous float64 matrix of shape (n_samples, n_columns).

    A C-contiguous float64 array is passed on without a copy. NaN and infinity are left for the core to refuse.

    Parameters
    ----------
    table : array-like of shape (n_samples, n_columns)
        Lists, arrays of booleans, integers or floats in any memory layout, or a frame whose columns are such.
    """
    if _is_sparse(table):
        raise InvalidInput("X must be dense, got a sparse matrix (pass X.toarray())")
    values, names = _dense(table)
    return Matrix(values.astype(np.float64, copy=False), names)


def _dense(table: Any) -> tuple[Floats, tuple[str, ...] | None]:  # noqa: ANN401  # whatever the caller has
    if not isinstance(table, np.ndarray) and is_frame(table):
        return frame_matrix(table)
    values, names = (table.values, table.names) if isinstance(table, NamedRows) else (table, None)
    values = values.dense() if isinstance(values, CodedRows | SparseRows) else values
    array = as_numbers("X", values)
    return _contiguous(array, 2, dtype=_float_type(array)), names


def as_numbers(name: str, values: object) -> NDArray[Any]:
    """Return an array of booleans, integers or floats of any shape; other types and masked values are refused."""
    if not isinstance(values, np.ndarray):
        values = taken_over(name, values)
    rows = values if isinstance(values, list | tuple) else [values]
    # A conversion would silently bring back what the mask hides.
    if any(isinstance(row, np.ma.MaskedArray) for row in rows):
        raise InvalidInput(f"{name} must have no masked values, got a masked array (fill it, or drop the rows)")
    try:
        array = np.asarray(values if isinstance(values, np.ndarray) else decoded(values))
    except Exception as error:  # whatever the conversion of another library's object raises
        raise InvalidInput(
            f"{name} must be a rectangular array of numbers, got {type(values).__name__} ({error})"
        ) from error
    if array.dtype.kind not in _NUMERIC_KINDS:
        raise InvalidInput(f"{name} must hold booleans, integers or floats, got dtype {array.dtype}")
    return array


def known(name: str, values: Any) -> Any:  # noqa: ANN401  # of any library
    """Return what :func:`taken_over` returns, of Arrow data with several columns a table: all of it has a shape."""
    if isinstance(values, np.ndarray):
        return values
    found = taken_over(name, values)
    if found is not values and hasattr(getattr(found, "type", None), "fields"):
        import pyarrow as pa  # noqa: PLC0415  # loaded already

        return pa.Table.from_struct_array(found)
    return found


def as_floats(cells: NDArray[Any]) -> NDArray[np.float64]:
    """Return the numbers that cells hold, also as texts; NaN where they hold none."""
    if cells.dtype.kind in "mM":
        return np.full(cells.shape, np.nan)
    numbers: NDArray[np.float64] | None = None
    if not _has_underscores(cells):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            # A cast would drop imaginary parts.
            numbers = cells.astype(np.float64, casting="same_kind" if cells.dtype.kind == "c" else "unsafe")
    if numbers is None:
        numbers = np.fromiter((_number(cell) for cell in cells.tolist()), np.float64, cells.size)
    return numbers


def _has_underscores(cells: NDArray[np.generic]) -> bool:
    """Whether a text has the underscore that Python allows between digits and no other program of tables does."""
    return cells.dtype.kind in "OU" and any(isinstance(cell, str) and "_" in cell for cell in cells.tolist())


def _number(cell: object) -> float:
    """Return the number that a cell holds; NaN where it holds none."""
    if isinstance(cell, str) and "_" in cell:
        return math.nan
    try:
        return float(cell)  # type: ignore[arg-type]  # the except clause is the check
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:  # an integer beyond the range of floats
        return math.inf


def as_vector(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return numbers as a contiguous float64 vector."""
    return _contiguous(as_numbers(name, values), 1, name, dtype=np.float64)


def as_square(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return a finite square matrix as contiguous float64."""
    matrix = _contiguous(as_numbers(name, values), 2, name, dtype=np.float64)
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidInput(f"{name} must be square, got shape {matrix.shape}")
    return check_finite(name, matrix)


def _is_sparse(table: object) -> bool:
    # Whoever made a sparse table has loaded this part of SciPy; others do not wait for it.
    is_sparse = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return is_sparse is not None and is_sparse(table)


def _csr(table: Any) -> Csr:  # noqa: ANN401  # any of SciPy's sparse classes
    if table.dtype.kind not in _NUMERIC_KINDS:
        raise InvalidInput(f"X must hold booleans, integers or floats, got dtype {table.dtype}")
    if table.ndim != 2:
        raise InvalidInput(f"X must be two-dimensional, of shape (n_samples, n_columns), got shape {table.shape}")
    if table.shape[1] > np.iinfo(np.int32).max:
        raise InvalidInput(f"a sparse X must have fewer than 2**31 columns, got {table.shape[1]}")
    rows = _checked_rows(table)
    if not rows.has_canonical_format:
        rows = rows.copy()  # the arrays may be the caller's
        rows.sum_duplicates()  # before the cast, so that the sums are those of toarray()
    n_entries = int(rows.indptr[-1])
    with np.errstate(over="ignore"):  # as for dense rows
        values = np.require(rows.data[:n_entries], _float_type(rows.data), ["C_CONTIGUOUS", "ALIGNED"])
    indices = np.require(rows.indices[:n_entries], np.int32, ["C_CONTIGUOUS", "ALIGNED"])
    indptr = np.require(rows.indptr, np.int64, ["C_CONTIGUOUS", "ALIGNED"])
    return indptr, indices, values, int(rows.shape[1])


def _checked_rows(table: Any) -> Any:  # noqa: ANN401  # any of SciPy's sparse classes
    """Convert to CSR; refuse indices out of range, which SciPy's conversions would follow beyond the end of arrays."""
    try:
        if table.format in {"csr", "csc", "bsr"}:
            # A second object, as flags on the caller's may be stale. SciPy follows offsets and converted indices
            # through memory: they are copied, so that they stay what was checked if a thread changes the caller's.
            indices = table.indices if table.format == "csr" else table.indices.copy()
            table = type(table)((table.data, indices, table.indptr.copy()), shape=table.shape)
            table.check_format(full_check=True)
            _check_offsets(table)
        elif table.format == "coo":
            table = type(table)((table.data, (table.row.copy(), table.col.copy())), shape=table.shape)
        elif table.format == "lil" and any(map(operator.ne, map(len, table.rows), map(len, table.data))):
            raise ValueError("rows of other lengths than those of data")  # noqa: TRY301
        rows = table.tocsr()
        if rows is not table:
            rows.check_format(full_check=True)
            _check_offsets(rows)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise InvalidInput(f"a sparse X must have valid indices, got {table.format} with {error}") from error
    return rows


def _check_offsets(table: Any) -> None:  # noqa: ANN401  # one of SciPy's compressed classes
    # SciPy's check leaves this out where the last offset says that there are no entries.
    if np.any(np.diff(table.indptr) < 0):
        raise ValueError("index pointer values must form a non-decreasing sequence")


def _float_type(array: NDArray[Any]) -> type[np.float32 | np.float64]:
    """Return float32 for float32 in either byte order, otherwise float64."""
    return np.float32 if array.dtype.kind == "f" and array.dtype.itemsize == 4 else np.float64


def _contiguous(
    array: NDArray[Any], ndim: int, name: str = "X", *, dtype: type[np.float32 | np.float64]
) -> NDArray[Any]:
    if array.ndim != ndim:
        shape = {1: "one-dimensional", 2: "two-dimensional, of shape (n_samples, n_columns)"}[ndim]
        column = " (for a single column pass X[:, None])" if (array.ndim, ndim) == (1, 2) else ""
        raise InvalidInput(f"{name} must be {shape}, got shape {array.shape}{column}")
    with np.errstate(over="ignore"):  # a long double beyond the range becomes infinite, which the core refuses
        return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])


class ByName(np.ndarray[Any, np.dtype[np.float64]]):
    """An array whose numbers names find, too, as ``params["age"]``; whatever is made of it is an ordinary one."""

    names: tuple[str, ...] = ()

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401  # as numpy's
        if isinstance(key, str) and self.names:
            place = place_of(key, self.names)
            if place is None:
                raise KeyError(f"numbers must be asked for by a name ({', '.join(self.names)}), got {key!r}")
            key = place
        return np.asarray(self)[key]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002  # as numpy's
        return array[()] if return_scalar else np.asarray(array)

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __reduce__(self) -> Any:  # noqa: ANN401  # as numpy's
        return np.asarray(self).__reduce__()


def read_only(values: NDArray[np.float64], names: tuple[str, ...] = ()) -> NDArray[np.float64]:
    """Return the array, which can no longer be written to, with the names of its numbers if they have some."""
    if names:
        named = values.view(ByName)
        named.names = names
        values = named
    values.flags.writeable = False
    return values


OnViolation: TypeAlias = Literal["error", "clip", "weight"]
Treatment: TypeAlias = Literal["error", "clip", "weight", "keep"]
