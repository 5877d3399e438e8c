"""The cells of a column as texts or numbers, each read by itself, whatever the others hold."""

import difflib
import importlib.util
import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from os import PathLike
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpci.base.validation import composed, hint
from dpci.data.frames import decoded, is_nan, text_of
from dpci.errors import InvalidInput
from dpci.unit import Beside

DROP = "drop"
"""Treatment of a missing value: its row weighs 0."""
MARK = "=missing"
"""End of the name of the column of the matrix that marks missing values."""
# What a cell needs that a column refuses, behind the rule in its message.
NUMBER_NEEDS = 'the column needs missing="drop", which leaves its row out, or a number that stands for it'
NO_NUMBER = " (what stands for a missing value must be an empty cell)"
CATEGORY_NEEDS = 'the column needs missing="drop", which leaves its row out, or the category that it counts as'
_OF_FITS = "filter these rows first, because only a fit leaves them out"
OTHER = ' (correct it, add it to the public list, or give the column other= or unknown="zeros")'
AGREED = "a change of the schema after a look at the data needs the approver's consent, docs/approve.md"
TARGET_NEEDS = {
    "missing": "nothing can stand for a target: leave such rows out, and pass neighbors=dpci.AddRemove(n_public=...), "
    "because how many are left is private",
    "other": " (correct it, or add it to the public classes of the target)",
}
# Types whose equal values have equal labels, and those of which a list is kept as it is.
_PLAIN = {str, bool, int, float, type(None)}
_SINGLE_VALUES = (*_PLAIN, np.bool_, np.integer, np.floating)
_NUMBER = re.compile(r"[-+]?[0-9]+([.,][0-9]+)?")
_COMMA = re.compile(r"[-+]?[0-9.]*[0-9],[0-9]+([.,][0-9]+)*")
_DELIMITERS = (";", "\t", "|", ",", " ")
_DATE = re.compile(r"\s*([0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{4})\b")
_MEASURE = re.compile(r"[-+]?[0-9]+([.,][0-9]+)?\s*[^\d\s.,:/-].{0,8}")
_MOMENTS = {"time", "timedelta", "timedelta64", "Timedelta"}
_AS_NUMBERS = " (make a time or a duration a number first, such as hours)"
_SINCE = " (dates need since= of the column, a public day, and a form such as 2024-05-01 without a time zone)"
_DAY = timedelta(days=1)
_NOT_AVAILABLE = {"NAType", "NaTType", "NoneType"}
_MOST_NAMES = 12


def label_of(value: object) -> str:
    """Return the text by which categories are compared: digits of a whole number, otherwise the stripped text."""
    if isinstance(value, bytes):
        # Its own text is b'...', which no list of categories holds, so that every record would be of none.
        raise InvalidInput(f"categories and labels must be text or numbers, got bytes {value!r}: decode the column")
    return text_of(str(value))


def as_cells(values: object) -> NDArray[Any]:
    """Return a column as an array in which no value decides how another one reads: rows belong to different people.

    NumPy makes texts as wide as the longest of them, and integers beside a missing value floats of fewer digits.
    """
    if isinstance(values, list | tuple):
        one_by_one = all(issubclass(kind, _SINGLE_VALUES) for kind in set(map(type, values)))
        return np.array(values, dtype=object) if one_by_one else np.asarray(values)
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise InvalidInput(
            "a column must have no masked cells, because the values behind the mask would be read: pass None or NaN "
            "for missing values, got a column with masked cells"
        )
    try:
        values = decoded(values)
        cells = np.asarray(values)
    except Exception as error:  # whatever the conversion of another library's object raises
        raise InvalidInput(
            f"a column must be an array, got {type(values).__name__}, whose conversion raises "
            f"{type(error).__name__} ({error})"
        ) from error
    kind = getattr(values, "type", getattr(values, "dtype", ""))
    if cells.dtype.kind == "f" and "int" in str(kind).lower():
        column: Any = values
        # Of pyarrow, of series, and of pandas' own arrays.
        name = next(name for name in ("to_pylist", "to_list", "tolist") if hasattr(column, name))
        listed = getattr(column, name)()
        cells = np.array([cell if isinstance(cell, int | float) else math.nan for cell in listed], dtype=object)
    return cells


@dataclass(frozen=True, eq=False)
class Dictionary:
    """A column of few distinct cells, as tables of categories have them."""

    cells: NDArray[Any]
    """The distinct cells, and one that holds nothing."""
    places: NDArray[np.integer[Any]]
    """Which of them each row has; -1 for the last."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.places.ndim

    @property
    def decoded(self) -> NDArray[Any]:
        """The cell of each row."""
        cells: NDArray[Any] = self.cells[self.places]
        return cells

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: slice) -> "Dictionary":
        """Return some of the rows."""
        return Dictionary(self.cells, self.places[rows])


def dictionary_of(values: Any) -> Dictionary | None:  # noqa: ANN401  # a column of any library
    """Return a column of categories of pandas or Polars, or a dictionary of pyarrow, as it is stored; None for others.

    Polars' categories come by way of pyarrow, without which they are decoded as texts.
    """
    if isinstance(values, Dictionary):
        return values
    library = type(values).__module__.partition(".")[0]
    if library == "polars" and str(getattr(values, "dtype", "")).startswith(("Categorical", "Enum")):
        if importlib.util.find_spec("pyarrow") is None:
            return None
        values, library = values.to_arrow(), "pyarrow"
    if library == "pandas" and str(getattr(values, "dtype", "")) == "category" and hasattr(values, "cat"):
        distinct = as_cells(values.cat.categories).astype(object)
        return Dictionary(np.append(distinct, np.array([math.nan], dtype=object)), values.cat.codes.to_numpy())
    if library != "pyarrow" or not hasattr(getattr(values, "type", None), "index_type"):
        return None
    chunks = values.unify_dictionaries().chunks if hasattr(values, "chunks") else [values]
    if not chunks:
        return None
    distinct = as_cells(chunks[0].dictionary).astype(object)
    # Places without a sign have no -1.
    places = [chunk.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False) for chunk in chunks]
    return Dictionary(np.append(distinct, np.array([None], dtype=object)), np.concatenate(places))


class _Places(dict[Hashable, int]):
    """Positions of cells in a list of labels, each looked up once."""

    def __init__(self, index: Mapping[str, int]) -> None:
        self._index = index

    def __missing__(self, cell: Hashable) -> int:
        place = self[cell] = self._index.get(label_of(cell), -1)
        return place


def codes_of(values: object, index: Mapping[str, int]) -> NDArray[np.int64]:
    """Position of each value in a list of labels, -1 where it is not in the list."""
    cells = as_cells(values)
    listed = cells.tolist()
    kinds = {str} if cells.dtype.kind == "U" else set(map(type, listed))
    if len(kinds) > 1 or not kinds <= _PLAIN:
        return np.fromiter((index.get(label_of(cell), -1) for cell in listed), np.int64, len(listed))
    return np.fromiter(map(_Places(index).__getitem__, listed), np.int64, len(listed))


def shortened(cell: object) -> str:
    """Return a cell as text; it may be as long as a file."""
    text = repr(cell)
    return text if len(text) <= 80 else f"{text[:60]}..."


def labels_of(name: str, field: str, values: object) -> tuple[str, ...]:
    """One label or several as a tuple of distinct strings."""
    if isinstance(values, str) or getattr(values, "ndim", 1) == 0 or not isinstance(values, Iterable):
        values = (values,)
    labels = tuple(label_of(value) for value in values)
    if not labels or len(set(labels)) != len(labels):
        raise InvalidInput(f"column {name!r}: {field} must be distinct and at least one, got {list(labels)}")
    return labels


def check_rows(
    name: str, values: object, valid: NDArray[np.bool_], rule: str, *, missing: str, other: str = ""
) -> None:
    """Refuse a column by its first cell that is not valid.

    ``missing``, ``other``: what a missing value needs, and any other one that is no frequent mistake.
    """
    if not valid.all():
        row = int(np.argmin(valid))
        cell = as_cells(values).tolist()[row]
        msg = f"column {name!r} must {rule}, got {shortened(cell)} in row {row}"
        todo = f" (a missing value: {missing})" if is_missing(cell) else remedy(cell) or other
        todo = f"{todo.removesuffix(')')}; {AGREED})" if changes_schema(todo) else todo
        raise InvalidInput(f"{msg}{todo}; schema.check(table) lists all such cells", row=row)


def check_target_present(target: str, values: object) -> None:
    """Refuse missing values of a target, which columns alone have a rule for."""
    cells = as_cells(values)
    check_rows(target, cells, ~missing_cells(cells), "hold finite numbers", **TARGET_NEEDS)


@contextmanager
def outside_fits() -> Iterator[None]:
    """Say of a missing value what helps where no row can weigh 0, as in predictions and in rows encoded alone."""
    try:
        yield
    except InvalidInput as error:
        told = str(error)
        for needs in (NUMBER_NEEDS, CATEGORY_NEEDS):
            told = told.replace(f"{needs}; {AGREED}", _OF_FITS)
        if told == str(error):
            raise
        raise InvalidInput(told, row=error.row) from None


def in_all_columns(error: InvalidInput, cells: Mapping[str, NDArray[Any]]) -> InvalidInput:
    """Return the error of a number, with the names of all columns that have missing cells, if several have them."""
    gaps = [name for name, values in cells.items() if missing_cells(values).any()]
    together = f"{error}; columns with missing values: {', '.join(gaps)}"
    return InvalidInput(together, row=error.row) if len(gaps) > 1 else error


def remedy(cell: object) -> str:
    """Return what is most often wrong with a cell that must hold a number, in brackets."""
    if isinstance(cell, str) and _COMMA.fullmatch(cell.strip()):
        return f" (numbers need a decimal point, and no thousands separator; in a file {hint('decimal', ',')})"
    if (
        isinstance(cell, date | np.datetime64)
        or type(cell).__name__ == "Period"
        or (isinstance(cell, str) and _DATE.match(cell))
    ):
        written = cell.strip() if isinstance(cell, str) else ""
        mark = next((mark for mark in "./" if mark in written[:3]), None)
        return _SINCE if mark is None else f"{_SINCE[:-1]}; {hint('date_format', mark.join(('%d', '%m', '%Y')))})"
    if type(cell).__name__ in _MOMENTS:
        return _AS_NUMBERS
    if isinstance(cell, str) and _MEASURE.fullmatch(cell.strip()):
        return " (a cell must hold a number alone, without its unit)"
    return ""


def changes_schema(todo: str) -> bool:
    """Return whether what an error advises is a change of the schema, and not of the table or its file."""
    return any(change in todo for change in ("missing=", "public list", "public classes", "since="))


def no_moments(name: str, cells: NDArray[Any]) -> InvalidInput:
    """Return the error of a column of dates or times in the place of numbers."""
    way = _SINCE if cells.dtype.kind == "M" else _AS_NUMBERS
    return InvalidInput(f"column {name!r} must hold finite numbers, got dtype {cells.dtype}{way}")


def is_day(text: str) -> bool:
    """Whether a text is a day such as 2024-05-01."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def days_since(since: str, cells: NDArray[Any]) -> NDArray[np.float64]:
    """Return the days from a day to dates and times; NaN for other cells, and for times with a time zone."""
    if cells.dtype.kind == "M":
        days = (cells.astype("datetime64[us]") - np.datetime64(since, "us")) / np.timedelta64(1, "D")
        return np.asarray(days, dtype=np.float64)
    start = datetime.fromisoformat(since)
    return np.fromiter((_days(cell, start) for cell in cells.tolist()), np.float64, cells.size)


def in_days(since: str, value: object) -> object:
    """Return the number of days from a day to another, which a schema may give in place of the number."""
    days = _days(value, datetime.fromisoformat(since))
    return value if math.isnan(days) else days


def _days(cell: object, start: datetime) -> float:
    if is_missing(cell):
        return math.nan
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, str):
        try:
            cell = datetime.fromisoformat(cell.strip())
        except ValueError:
            return math.nan
    if not isinstance(cell, date):
        return math.nan
    moment = cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)  # noqa: DTZ001  # as it is written
    return math.nan if moment.tzinfo is not None else float((moment - start) / _DAY)


def absent(name: str, present: Iterable[object], where: str = "") -> str:
    """Return the message about a table without a column: which columns it has, and the usual mistake."""
    found = [str(other) for other in present]
    advice, header = "", found[0] if len(found) == 1 else ""
    near = next((other for other in found if other.strip().casefold() == name.strip().casefold()), None)
    mark = next((mark for mark in _DELIMITERS if name in [part.strip() for part in header.split(mark)]), None)
    if mark is not None and mark != header:
        advice = separated(found)
    elif near is not None:
        alike = "and be texts, as frame.columns.astype(str) makes them" if near == name else f"{near!r} is there"
        advice = f" (names must agree in every letter{', ' if near == name else ': '}{alike})"
    elif any(_NUMBER.fullmatch(other) for other in found) or (where and header):
        advice = " (the first line of a file must hold the names of the columns)"
    return f"the table must have the column {name!r}, got {some_names(name, found)}{where}{advice}"


def separated(header: Sequence[str]) -> str:
    """Return what to do about a file with one name of a column where another character may stand between several."""
    (only,) = header if len(header) == 1 else ("",)
    marks = [mark for mark in _DELIMITERS if mark in only.strip()]
    return f" ({marks[0]!r} seems to separate the fields: {hint('delimiter', marks[0])})" if marks else ""


def listed(labels: Iterable[str]) -> str:
    """Return labels for a message, some of them where they are many."""
    found = list(labels)
    return str(found) if len(found) <= 12 else f"{str(found[:10])[:-1]}, ... ({len(found)} in all)]"


def missing_cells(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which cells hold nothing: None, NaN, missing values of pandas and polars, and the texts "", NA and NaN."""
    if cells.dtype.kind == "f":
        return np.asarray(np.isnan(cells))
    if cells.dtype.kind in "biu":
        return np.zeros(cells.shape, dtype=bool)
    return np.fromiter(map(is_missing, cells.tolist()), bool, cells.size)


def is_missing(cell: object) -> bool:
    """Whether a cell holds nothing; see :func:`missing_cells`."""
    if isinstance(cell, str):
        return cell.strip().lower() in {"", "na", "nan"}
    return type(cell).__name__ in _NOT_AVAILABLE or is_nan(cell)


def column_of(table: Any, name: str) -> NDArray[Any]:  # noqa: ANN401  # tables of any library
    """Return the cells of a column of a table."""
    if hasattr(type(table), "collect"):
        raise InvalidInput(f"a table must be in memory, got a lazy {type(table).__name__}: collect() it")
    key = key_of(table, name)
    if key is None:
        raise InvalidInput(absent(name, names_of(table)))
    values = as_cells(table[key])
    if values.ndim != 1:
        one = f" (one row is a table too: {name!r}: [{values.item()!r}])" if values.ndim == 0 else ""
        raise InvalidInput(f"column {name!r} must be one-dimensional, got shape {values.shape}{one}")
    return values


def categories_of(table: Any, name: str) -> NDArray[Any] | Dictionary:  # noqa: ANN401  # tables of any library
    """Return the cells of a column of categories, each distinct one once where the table has them so."""
    key = key_of(table, name)
    found = None if key is None else dictionary_of(table[key])
    return column_of(table, name) if found is None else found


def some_names(wanted: str, present: Sequence[object]) -> str:
    """Return the columns of a table for an error: all of a few, otherwise those with the names closest to it."""
    names = [str(column) for column in present]
    if len(names) <= _MOST_NAMES:
        return repr(names)
    close = difflib.get_close_matches(wanted, names, cutoff=0.0)
    return f"{len(names)} columns, of which the closest are {close}"


def key_of(table: Any, name: str) -> str | None:  # noqa: ANN401  # tables of any library
    """Return the label under which a table has a column, however both were typed; None where it has none."""
    wanted = composed(name)
    found = [label for label in names_of(table) if isinstance(label, str) and composed(label) == wanted]
    if len(found) > 1:
        raise InvalidInput(
            f"a table must have different column names, got {wanted!r} {len(found)} times (rename or drop all but one)"
        )
    return next(iter(found), None)


def has_column(table: Any, name: str) -> bool:  # noqa: ANN401  # tables of any library
    """Whether a table has a column, however its name was typed."""
    return key_of(table, name) is not None


def names_of(table: Any) -> list[Any]:  # noqa: ANN401  # tables of any library
    """Return the names of the columns of a table."""
    # The columns of a table of pyarrow are no names.
    present = getattr(table, "column_names", getattr(table, "columns", None))
    if present is None:
        present = table.keys() if isinstance(table, Mapping) else getattr(getattr(table, "dtype", None), "names", None)
    if present is None:
        hint = " (read a file by dpci.read)" if isinstance(table, str | PathLike) else ""
        raise InvalidInput(f"a table must be a mapping of columns or a data frame, got {type(table).__name__}{hint}")
    return list(present)


def check_length(name: str, values: Sized, n_samples: int) -> None:
    """Refuse a column of another length than the ones before it."""
    if len(values) != n_samples:
        raise InvalidInput(
            f"all columns must have equal length, got {len(values)} in {name!r} and {n_samples} before it"
        )


def columns_beside(columns: Any, beside: Beside) -> Beside:  # noqa: ANN401  # tables of any library
    """Return ids and weights of the rows of a table: those of the columns that are named, or as they are given."""
    return Beside(*(column_of(columns, values) if isinstance(values, str) else values for values in beside))


class Gapped(Protocol):
    """A column of any kind; those of categories have ``categories``."""

    @property
    def missing(self) -> object:
        """Treatment of a missing value, or what stands for it."""


def drops(column: Gapped) -> bool:
    """Whether a row with a missing value of a column weighs 0."""
    return column.missing == DROP and DROP not in getattr(column, "categories", ())


def stand_in(column: Gapped) -> float | str | None:
    """Return the public value that stands for a missing one of a column; None where none does."""
    value = column.missing
    if isinstance(value, str):
        return value if hasattr(column, "categories") and not drops(column) else None
    return value if isinstance(value, float) else None
