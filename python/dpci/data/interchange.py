"""Objects of libraries that dpci does not know, read in their memory: by DLPack, and by the Arrow C data interface."""

from typing import Any, Final

import numpy as np

from dpci.base.optional import optional
from dpci.errors import DpciError, InvalidInput

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
_ARROW: Final = ("__arrow_c_stream__", "__arrow_c_array__")


def only_arrow(values: object) -> bool:
    """Tell whether an object hands over columns by the Arrow C data interface and NumPy has no other way to read it."""
    return any(hasattr(type(values), name) for name in _ARROW) and not _known_to_numpy(values)


def arrow_table(table: Any) -> Any:  # noqa: ANN401  # of any library
    """Return a table of pyarrow on the memory of an object of :func:`only_arrow`; a stream is read once, to its end.

    Raises
    ------
    InvalidInput
        For columns that are not a table.
    MissingExtra
        Without pyarrow.
    """
    with optional("pyarrow", extra="arrow", what="an Arrow table of another library as X"):
        import pyarrow as pa  # noqa: PLC0415  # optional
    try:
        return pa.table(table)
    except Exception as error:  # whatever the producer raises
        raise InvalidInput(
            f"X must be a table of Arrow (a struct with a field for each column), got {type(table).__name__} ({error})"
        ) from error


def named_columns(table: Any) -> Any:  # noqa: ANN401  # of any library
    """Return a table whose columns have names and can be asked for; one of Arrow alone as a table of pyarrow."""
    return arrow_table(table) if only_arrow(table) and not hasattr(type(table), "__getitem__") else table


def taken_over(name: str, values: Any) -> Any:  # noqa: ANN401  # of any library
    """Return an array or a column that NumPy reads, without a copy; what NumPy reads by itself is returned as it is.

    Raises
    ------
    InvalidInput
        For memory that the processor cannot read, and for producers that do not hand over what they promise.
    MissingExtra
        For a column of Arrow without pyarrow.
    """
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


def known(name: str, values: Any) -> Any:  # noqa: ANN401  # of any library
    """Return what :func:`taken_over` returns, of Arrow data with several columns a table: all of it has a shape.

    Raises
    ------
    InvalidInput, MissingExtra
        See :func:`taken_over`.
    """
    found = taken_over(name, values)
    if found is not values and hasattr(getattr(found, "type", None), "fields"):
        import pyarrow as pa  # noqa: PLC0415  # loaded already

        return pa.Table.from_struct_array(found)
    return found


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
