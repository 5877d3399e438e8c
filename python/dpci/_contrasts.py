"""Linear combinations of parameters, given as numbers or by the names of the parameters."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci.arrays import as_numbers, check_finite
from dpci.errors import InvalidInput
from dpci.validation import check_real

# Names may hold "=" and "-" ("sex=Male"), so there is no little language of formulas: a mapping says the same.
NamedRow: TypeAlias = str | Mapping[str, float]
Contrast: TypeAlias = ArrayLike | NamedRow | Sequence[NamedRow]


def contrast_rows(
    contrast: Contrast | None, names: tuple[str, ...], *, what: str = "contrast"
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the coefficients, shape (m, k), of linear combinations of k parameters, and what to call them.

    Parameters
    ----------
    contrast : array-like of shape (k,) or (m, k), or names
        Coefficients; or the name of a parameter, a mapping from names to coefficients, or a list of these. None: each
        parameter.
    names : tuple of str
        The parameters.
    what : str
        The argument, for messages and for the names of rows of numbers.

    Raises
    ------
    InvalidInput
        For other shapes, names that are none, and numbers that are not finite.
    """
    if contrast is None:
        return np.eye(len(names)), names
    if isinstance(contrast, str | Mapping):
        contrast = [contrast]
    if isinstance(contrast, list | tuple) and any(isinstance(row, str | Mapping) for row in contrast):
        rows = [_named_row(row, names, what) for row in contrast]
        return check_finite(what, np.array([values for values, _ in rows])), tuple(label for _, label in rows)
    return _numbers(contrast, len(names), what)


def _numbers(contrast: object, k: int, what: str) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    try:
        with np.errstate(over="ignore"):  # a long double beyond the range becomes infinite, which is refused
            matrix = np.atleast_2d(as_numbers(what, contrast)).astype(np.float64)
    except InvalidInput as error:
        raise InvalidInput(f"{what} must be an array of numbers, or name parameters, got {contrast!r}") from error
    if matrix.ndim != 2 or matrix.shape[1] != k:
        raise InvalidInput(f"{what} must have shape ({k},) or (m, {k}), got shape {np.shape(np.asarray(contrast))}")
    return check_finite(what, matrix), tuple(f"{what}[{i}]" for i in range(len(matrix)))


def _named_row(row: object, names: tuple[str, ...], what: str) -> tuple[NDArray[np.float64], str]:
    if isinstance(row, str):
        row = {row: 1.0}
    if not isinstance(row, Mapping) or not row:
        raise InvalidInput(f"{what} must hold names of parameters, or mappings from names to numbers, got {row!r}")
    values = np.zeros(len(names))
    terms = []
    for name, coefficient in row.items():
        if not isinstance(name, str) or name not in names:
            raise InvalidInput(f"{what} must name parameters ({', '.join(names)}), got {name!r}")
        number = check_real(f"{what}[{name!r}]", coefficient)
        values[names.index(name)] = number
        size = "" if abs(number) == 1.0 else f"{abs(number):g} "
        terms.append(f"{'-' if number < 0.0 else '+'} {size}{name}")
    label = " ".join(terms)
    return values, label.removeprefix("+ ") if label.startswith("+") else f"-{label.removeprefix('- ')}"
