"""Frames and arrays of other libraries, as NumPy reads them: through narwhals, DLPack or the Arrow C interface."""

import re
import sys
from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dpci.base.optional import optional
from dpci.base.validation import composed
from dpci.errors import DpciError, InvalidInput

if TYPE_CHECKING:
    import narwhals

# Rows and columns filled at a time: what a group of columns writes stays in a second-level cache.
_ROWS, _COLUMNS = 4096, 16

_WHOLE_NUMBER = re.compile(r"(-?[0-9]+)\.0*")

_ENCODE = "encode it with public categories or bounds, see dpci.schema, or leave it out"

# DLDeviceType of dlpack.h. Memory of the processor that a graphics card can also reach is memory of the processor.
_PROCESSOR: Final = {1, 3, 11}
_DEVICES: Final = {
    2: "CUDA",
    4: "OpenCL",
    7: "Vulkan",
    8: "Metal",
    9: "VPI",
    10: "ROCm",
    13: "CUDA managed memory",
    14: "oneAPI",
    15: "WebGPU",
    16: "Hexagon",
}

_ARRAY_API: Final = ("__array_namespace__", "__dlpack__", "__array__")
_LAZY: Final = {("polars", "LazyFrame"), ("narwhals", "LazyFrame"), ("duckdb", "DuckDBPyRelation")}
_ARROW: Final = ("__arrow_c_stream__", "__arrow_c_array__")


def is_frame(table: object) -> bool:
    """Tell whether a table has named columns: that of its class is asked, as a lazy one may compute them."""
    named = ("columns", "column_names", "__narwhals_dataframe__", "__narwhals_lazyframe__")
    return not isinstance(table, np.ndarray) and (
        any(hasattr(type(table), name) for name in named) or only_arrow(table)
    )


def frame_matrix(table: Any) -> tuple[NDArray[np.float64] | NDArray[np.float32], tuple[str, ...]]:  # noqa: ANN401  # of any library
    """Return a frame as a C-contiguous matrix, float32 if all columns are, otherwise float64, with names.

    Besides the matrix no more than a few columns are in memory at a time.
    """
    if type(table).__module__.partition(".")[0] == "dask":
        raise InvalidInput(f"X must be in memory, got a lazy {type(table).__name__} of Dask: compute() it")
    nw = _import_narwhals()
    readable = _readable(table)
    try:
        frame = nw.from_native(readable)
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        columns = list(frame.iter_columns())
    except Exception as error:
        _check_names(_labels(table))
        raise InvalidInput(
            f"X must be an array, a sparse matrix or a frame that narwhals reads, got {type(table).__name__} ({error})"
        ) from error
    names = _check_names(column.name for column in columns)
    for name, column in zip(names, columns, strict=True):
        _check_column(name, column)
    single = bool(columns) and all(column.dtype == nw.Float32 for column in columns)
    matrix = np.empty(frame.shape, np.float32 if single else np.float64)
    end = 0
    for part in _parts(frame, columns):
        start, end = end, end + len(part[0])
        _fill(matrix[start:end], part)
    return matrix, names


def _parts(frame: Any, columns: list[Any]) -> Iterable[list[Any]]:  # noqa: ANN401  # of narwhals
    """Return the columns of consecutive rows: those of pyarrow chunk by chunk, because joined chunks are a copy."""
    native = frame.to_native()
    if columns and frame.implementation.is_pyarrow():
        return (batch.columns for batch in native.to_batches())
    return [columns] if columns else []


def _fill(matrix: NDArray[Any], columns: list[Any]) -> None:
    for first in range(0, len(columns), _COLUMNS):
        group = [_numbers(column) for column in columns[first : first + _COLUMNS]]
        for start in range(0, len(matrix), _ROWS):
            for j, column in enumerate(group, first):
                matrix[start : start + _ROWS, j] = column[start : start + _ROWS]


def only_arrow(values: object) -> bool:
    """Tell whether an object hands over columns by the Arrow C data interface and NumPy has no other way to read it."""
    return any(hasattr(type(values), name) for name in _ARROW) and not _known_to_numpy(values)


def arrow_table(table: Any) -> Any:  # noqa: ANN401  # of any library
    """Return a table of pyarrow on the memory of an object of :func:`only_arrow`; a stream is read once, to its end."""
    with optional("pyarrow", extra="arrow", what="an Arrow table of another library as X"):
        import pyarrow as pa  # noqa: PLC0415  # optional
    try:
        return pa.table(table)
    except Exception as error:  # whatever the producer raises
        raise InvalidInput(
            f"X must be a table of Arrow (a struct with a field for each column), got {type(table).__name__} ({error})"
        ) from error


def named_columns(table: Any) -> Any:  # noqa: ANN401  # of any library
    """Return a table whose columns have names and can be asked for: one of Arrow alone as a table of pyarrow.

    A lazy frame or a query is computed, by the library that it is of.
    """
    if is_lazy(table):
        nw = _import_narwhals()
        try:
            return nw.from_native(table).collect().to_native()
        except Exception as error:  # whatever the library raises
            kind = type(table).__name__
            raise InvalidInput(f"a query must give a table, got {kind}, which raises {type(error).__name__}") from error
    return arrow_table(table) if only_arrow(table) and not hasattr(type(table), "__getitem__") else table


def is_lazy(table: object) -> bool:
    """Whether a table is a query that narwhals computes, such as a lazy frame of Polars or a relation of DuckDB."""
    kind = type(table)
    library = kind.__module__.partition(".")[0].lstrip("_")
    return (library, kind.__name__) in _LAZY


def taken_over(name: str, values: Any) -> Any:  # noqa: ANN401  # of any library
    """Return an array or a column that NumPy reads, without a copy; what NumPy reads by itself is returned as it is."""
    kind = type(values)
    if isinstance(values, np.ndarray):
        return values
    try:
        if hasattr(kind, "__dlpack_device__"):
            _check_device(name, values)
        if all(hasattr(kind, name) for name in _ARRAY_API):
            return np.asarray(values)
        if _known_to_numpy(values):
            return values
        if hasattr(kind, "__dlpack__"):
            return np.from_dlpack(values)
        if only_arrow(values):
            with optional("pyarrow", extra="arrow", what=f"a column of Arrow of another library as {name}"):
                import pyarrow as pa  # noqa: PLC0415  # optional
            return pa.chunked_array(values) if hasattr(kind, _ARROW[0]) else pa.array(values)
    except DpciError:
        raise
    except Exception as error:  # whatever another library raises
        raise InvalidInput(
            f"{name} must be readable by NumPy through DLPack or Arrow, got {kind.__name__} ({error})"
        ) from error
    return values


def _known_to_numpy(values: object) -> bool:
    # The class, not the object: frames take the names of their columns for attributes.
    return any(hasattr(type(values), name) for name in ("__array__", "__array_interface__", "__array_struct__"))


def _check_device(name: str, values: Any) -> None:  # noqa: ANN401  # of any library
    device, number = values.__dlpack_device__()
    if device not in _PROCESSOR:
        called = _DEVICES.get(int(device), f"DLPack type {int(device)}")
        raise InvalidInput(
            f"{name} must be in the memory of the processor, got {type(values).__name__} on the device {called} "
            f"{number} (copy it to the CPU first)"
        )


def decoded(values: Any) -> Any:  # noqa: ANN401  # a column of any library
    """Return a column such that NumPy gets its missing values as None or NaN, and each value as what it stands for.

    Only dictionaries of pyarrow are changed: for a null in chunks of one NumPy would get its last value.
    """
    wrapped = type(values).__module__.partition(".")[0] == "narwhals" and hasattr(values, "to_native")
    native = values.to_native() if wrapped else values
    kind: Any = getattr(native, "type", None)
    if type(native).__module__.partition(".")[0] == "pyarrow" and hasattr(kind, "index_type"):
        return native.cast(kind.value_type)
    return values


def is_nan(cell: Any) -> bool:  # noqa: ANN401  # a cell of any type
    """Tell whether a value is not equal to itself, as NaN and NaT of any library are."""
    try:
        return bool(cell != cell)  # noqa: PLR0124  # the definition of NaN
    except ValueError:  # an array
        return False
    except (TypeError, ArithmeticError):  # pandas.NA, and a decimal that signals
        return True


def text_of(text: str) -> str:
    """Return a text as categories and ids are compared: in the normal form C of Unicode, without the space around it.

    Of a whole number the digits are compared.
    """
    text = composed(str.strip(text))
    # A table with a gap turns 2 into 2.0.
    whole = _WHOLE_NUMBER.fullmatch(text) if "." in text else None
    text = whole[1] if whole else text
    return "0" if text == "-0" else text  # zeros are equal


def check_same_index(X: object, y: object) -> None:
    """Compare the index of a frame with that of its targets where both have one and are equally long, as in pandas.

    Rows and targets are paired by position; two indexes that disagree say that the caller thinks otherwise.
    """
    found = _indexes(X, y)
    if found is not None and not found[0].equals(found[1]):
        index, other = found
        row = bisect_left(range(len(index) - 1), 1, key=lambda k: not index[: k + 1].equals(other[: k + 1]))
        label, other_label = (labels[row : row + 1].tolist()[0] for labels in (index, other))
        raise InvalidInput(
            f"the index of y must be that of X, got {other_label!r} and {label!r} in row {row} (y.loc[X.index] "
            "brings y into the order of X; values without an index are paired by position: y.to_numpy(), of Dask "
            "y.to_dask_array())"
        )


def same_index(X: object, values: object) -> bool:
    """Whether the index of a frame is that of values beside it, where both have one and are equally long."""
    found = _indexes(X, values)
    return found is None or bool(found[0].equals(found[1]))


def _indexes(X: object, values: object) -> tuple[Any, Any] | None:
    """Return the indexes of a frame and of values beside it, where both have one and are equally long."""
    if values is None or not is_frame(X):
        return None
    nw = _import_narwhals()
    frame, series = (nw.from_native(each, allow_series=True, pass_through=True) for each in (X, values))
    if not (isinstance(frame, nw.DataFrame) and isinstance(series, nw.Series | nw.DataFrame)):
        return None
    index, other = nw.maybe_get_index(frame), nw.maybe_get_index(series)
    # Other numbers of rows have an error of their own.
    if index is None or frame.implementation != series.implementation or len(index) != len(other):
        return None
    return index, other


def _import_narwhals() -> Any:  # noqa: ANN401  # an optional module
    with optional("narwhals", extra="frames", what="a frame as X"):
        import narwhals  # noqa: PLC0415  # optional
    return narwhals


def _readable(table: Any) -> Any:  # noqa: ANN401  # of any library
    """Return a table as it is, but what narwhals does not read, a record batch or other Arrow data, as pyarrow's."""
    if only_arrow(table):
        nw = _import_narwhals()
        known = nw.from_native(table, pass_through=True)
        return table if isinstance(known, nw.DataFrame | nw.LazyFrame) else arrow_table(table)
    kind = type(table)
    if kind.__name__ == "RecordBatch" and kind.__module__.partition(".")[0] == "pyarrow":
        return sys.modules["pyarrow"].Table.from_batches([table])
    return table


def column_labels(table: object) -> tuple[str, ...] | None:
    """Return the names of the columns of a frame, of Dask too; None where it has none before it is read."""
    return (tuple(composed(str(label)) for label in _labels(table)) or None) if is_frame(table) else None


def _labels(table: Any) -> Iterable[Any]:  # noqa: ANN401  # of any library
    """Return the labels of the columns of a frame that narwhals refuses."""
    labels = table.column_names if hasattr(table, "column_names") else getattr(table, "columns", ())
    return labels if isinstance(labels, Iterable) else ()


def _check_names(labels: Iterable[Any]) -> tuple[str, ...]:
    listed = tuple(labels)
    for label in listed:
        if isinstance(label, tuple):
            raise InvalidInput(
                f"the columns of X must have one name each, got the labels {tuple(map(str, label))} of several levels "
                "(flatten them: X.columns = ['_'.join(map(str, labels)) for labels in X.columns])"
            )
    names = tuple(composed(str(label)) for label in listed)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"the columns of X must have different names, got {name!r} twice")
        seen.add(name)
    return names


def _check_column(name: str, column: "narwhals.Series[Any]") -> None:
    dtype = column.dtype
    plain = dtype.is_numeric() and not dtype.is_decimal()
    # NumPy's and pandas' own types that narwhals has no name for: long double, other byte orders, sparse columns.
    other = getattr(getattr(column.to_native(), "dtype", None), "kind", "") in {"b", "i", "u", "f"}
    if not (plain or other or str(dtype) == "Boolean"):
        raise InvalidInput(
            f"the columns of X must be numeric, got dtype {_native_name(column)} in column {name!r} ({_ENCODE})"
        )
    if column.null_count():
        row = int(np.argmax(column.is_null().to_numpy()))
        raise InvalidInput(f"X must have no missing values, got one in row {row} of column {name!r}")


def _native_name(column: "narwhals.Series[Any]") -> str:
    native = column.to_native()
    return str(getattr(native, "dtype", None) or getattr(native, "type", column.dtype))


def _numbers(column: Any) -> NDArray[Any]:  # noqa: ANN401  # of narwhals, or a chunk of pyarrow
    """Return a column as NumPy has it; its 128-bit integers are the only numbers that NumPy has not."""
    if hasattr(column, "buffers"):  # a chunk of pyarrow, read in place but for booleans, which it keeps as bits
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if str(column.dtype) in {"Int128", "UInt128"}:
        column = column.cast(_import_narwhals().Float64)
    numbers: NDArray[Any] = column.to_numpy()
    return numbers
