"""Linear combinations of parameters, given as numbers or by the names of the parameters."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci.base.validation import check_different, check_finite, check_real, composed, in_short, place_of
from dpci.data.arrays import as_numbers
from dpci.data.frames import is_frame
from dpci.errors import InvalidInput

# Names may hold "=" and "-" ("sex=Male"), so there is no little language of formulas: a mapping says the same.
NamedRow: TypeAlias = str | Mapping[str, float]
Contrast: TypeAlias = ArrayLike | NamedRow | Sequence[NamedRow]


def contrast_rows(
    contrast: Contrast | None, names: tuple[str, ...], *, what: str = "contrast"
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the coefficients, shape (m, k), of linear combinations of k parameters, and what to call them.

    None: each parameter. The name of a column of categories stands for all of them. Of a frame or a pandas Series whose
    labels are strings numbers are those of the parameters of these names, 0 for the others. ``what`` is the argument,
    for messages and for the names of rows of numbers.
    """
    if contrast is None:
        return np.eye(len(names)), names
    given = [contrast] if isinstance(contrast, str | Mapping) else _strings(contrast)
    if isinstance(given, list | tuple) and any(isinstance(row, str | Mapping) for row in given):
        rows = [_named_row(row, names, what) for each in given for row in _categories(each, names)]
        return check_finite(what, np.array([values for values, _ in rows])), tuple(label for _, label in rows)
    if isinstance(given, list | tuple) and any(row_labels(row) is not None for row in given):
        matrix = np.concatenate([_numbers(row, names, what) for row in given])
    else:
        matrix = _numbers(given, names, what)
    return matrix, counted_labels(len(matrix), what)


def counted_labels(n_rows: int, what: str) -> tuple[str, ...]:
    """Return what rows of numbers are called."""
    return tuple(f"{what}[{i}]" for i in range(n_rows))


def _strings(contrast: object) -> object:
    """Return an array, an index or a series of names as a list, everything else as it is."""
    if isinstance(contrast, list | tuple) or not hasattr(contrast, "__array__"):
        return contrast
    array = np.asarray(contrast)
    named = array.ndim == 1 and array.dtype.kind in "OUT" and all(isinstance(name, str) for name in array)
    return [str(name) for name in array] if named and len(array) else contrast


def row_labels(table: object) -> tuple[str, ...] | None:
    """Return the labels of a pandas Series, or of the columns of a frame; None without labels that are strings.

    Numbers that count, as pandas makes them, are not names: such rows are taken by position.
    """
    if is_frame(table):
        labels = getattr(table, "column_names" if hasattr(type(table), "column_names") else "columns", ())
    else:
        labels = table.index if hasattr(type(table), "iloc") and hasattr(table, "index") else ()
    found = tuple(labels)
    return tuple(map(composed, found)) if found and all(isinstance(label, str) for label in found) else None


def _placed(
    values: NDArray[np.float64], labels: tuple[str, ...], names: tuple[str, ...], what: str
) -> NDArray[np.float64]:
    """Return columns of these labels at the places of the parameters of these names."""
    places = {label: place for label in labels if (place := place_of(label, names)) is not None}
    unknown = next((label for label in labels if label not in places), None)
    if unknown is not None:
        raise InvalidInput(
            f"the labels of {what} must be names of parameters ({', '.join(names)}), got {unknown!r} "
            "(use to_numpy() to pass the numbers by position)"
        )
    if len(set(labels)) < len(labels):
        raise InvalidInput(f"the labels of {what} must differ, got {', '.join(labels)}")
    placed = np.zeros((len(values), len(names)))
    placed[:, list(places.values())] = values
    return placed


def _numbers(contrast: object, names: tuple[str, ...], what: str) -> NDArray[np.float64]:
    try:
        with np.errstate(over="ignore"):  # a long double beyond the range becomes infinite, which is refused
            matrix = np.atleast_2d(as_numbers(what, contrast)).astype(np.float64)
    except InvalidInput as error:
        raise InvalidInput(
            f"{what} must be an array of numbers, or name parameters, got {in_short(contrast)}"
        ) from error
    labels = row_labels(contrast)
    if labels is not None and matrix.ndim == 2 and matrix.shape[1] == len(labels):
        matrix = _placed(matrix, labels, names, what)
    k = len(names)
    if matrix.ndim != 2 or matrix.shape[1] != k:
        raise InvalidInput(f"{what} must have shape ({k},) or (m, {k}), got shape {np.shape(np.asarray(contrast))}")
    return check_finite(what, matrix)


def _meant(name: object, names: tuple[str, ...]) -> str:
    """Return how a hypothesis is typed that was written as an equation, or as the name of a column of categories."""
    if not isinstance(name, str):
        return ""
    of_column = [known for known in names if known.startswith(f"{name}=")]
    if of_column:
        return f" (all categories: {of_column})"
    left = name.partition("=")[0].strip()
    return f" (write {left!r}, and what it equals as value=)" if left in names else ""


def _categories(row: object, names: tuple[str, ...]) -> list[object]:
    """Return the parameters of all categories of a column that is given by its name, or the row as it is."""
    known = not isinstance(row, str) or place_of(row, names) is not None
    return ([] if known else [name for name in names if name.startswith(f"{row}=")]) or [row]


def _named_row(row: object, names: tuple[str, ...], what: str) -> tuple[NDArray[np.float64], str]:
    if isinstance(row, str):
        row = {row: 1.0}
    if not isinstance(row, Mapping) or not row:
        raise InvalidInput(
            f"{what} must hold names of parameters, or mappings from names to numbers, got {in_short(row)}"
        )
    check_different(f"the names in {what} must differ", row)
    values = np.zeros(len(names))
    terms = []
    for name, coefficient in row.items():
        place = place_of(name, names)
        if place is None:
            raise InvalidInput(f"{what} must name parameters ({', '.join(names)}), got {name!r}{_meant(name, names)}")
        number = check_real(f"{what}[{name!r}]", coefficient)
        values[place] = number
        size = "" if abs(number) == 1.0 else f"{abs(number):g} × "
        terms.append(f"{'-' if number < 0.0 else '+'} {size}{names[place]}")
    label = " ".join(terms)
    return values, label.removeprefix("+ ") if label.startswith("+") else f"-{label.removeprefix('- ')}"
