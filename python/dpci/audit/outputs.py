"""The outputs of the runs of an audit as tables; a run that fails is one of them."""

from collections.abc import Callable
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci.audit.bounds import with_failures
from dpci.errors import InvalidInput

_F64: TypeAlias = NDArray[np.float64]

Draw: TypeAlias = Callable[[Any], ArrayLike]

_GREATEST_FLOAT = float(np.finfo(np.float64).max)


class Failure:
    """Stands for the output of a run that raised an exception."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def attempt(draw: Draw, data: object) -> ArrayLike | Failure:
    """Run a mechanism once."""
    try:
        return draw(data)
    except Exception as error:  # noqa: BLE001  # a failure of any kind is an outcome
        return Failure(error)


def tables(first: list[ArrayLike | Failure], second: list[ArrayLike | Failure]) -> tuple[_F64, _F64]:
    """Return outputs on both data sets, (n_runs,) or (n_runs, k); with a column of failures if there are any."""
    runs = first, second
    failed = [np.array([isinstance(output, Failure) for output in outputs]) for outputs in runs]
    kept = [[output for output in outputs if not isinstance(output, Failure)] for outputs in runs]
    errors = [output.error for output in (*first, *second) if isinstance(output, Failure)]
    if not any(kept):
        raise errors[0]
    found = [_as_outputs(outputs) for outputs in kept if outputs]
    if len({outputs.shape[1:] for outputs in found}) > 1:
        raise InvalidInput(f"outputs must have one length, got shapes {found[0].shape[1:]} and {found[1].shape[1:]}")
    if not errors:
        return found[0], found[1]
    given = iter(found)
    empty = np.empty((0, *found[0].shape[1:]))
    a, b = (with_failures(next(given) if outputs else empty, gone) for outputs, gone in zip(kept, failed, strict=True))
    return a, b


def _as_outputs(outputs: list[ArrayLike]) -> _F64:
    """Return the outputs as an array of shape (n_runs,) or (n_runs, k)."""
    try:
        given = np.asarray(outputs)
        with np.errstate(over="ignore"):
            table = given.astype(np.float64) if _is_real(given) else None
    except (TypeError, ValueError, OverflowError):
        table = None
    if table is None:
        raise InvalidInput(
            "outputs must be numbers or vectors of one length, real and in the range of floats, got a "
            f"{type(outputs[0]).__name__} as the first output"
        )
    if table.ndim > 1:
        table = table.reshape(len(table), -1)
    if np.isnan(table).any() or table.size == 0:
        raise InvalidInput(
            "outputs must not be NaN or empty, got one that is (return a number that represents this outcome)"
        )
    # A threshold between infinite outputs would be infinite, which JSON does not have.
    return np.clip(table, -_GREATEST_FLOAT, _GREATEST_FLOAT)


def _is_real(outputs: NDArray[Any]) -> bool:
    """Whether these are real numbers: NumPy would parse texts, and drop imaginary parts."""
    # Integers beyond 64 bits are objects to it.
    if outputs.dtype.kind == "O":
        return all(isinstance(value, Real) for value in outputs.flat)
    return outputs.dtype.kind in "biuf"
