"""``Format``: how the files of a table are written, as programs for the office write them in many countries."""

import codecs
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dpci.base.validation import broken, hint
from dpci.errors import InvalidInput

NO_QUOTE: Final = "none"
"""Word for text without quotes, which a shell passes more easily than nothing."""
_ENDS: Final = {'"': "a quote", "\n": "a line feed", "\r": "a carriage return", "\0": "a NUL"}
# In these an escape in one line can change how the next ones read, and so one record those of other people.
_STATEFUL: Final = re.compile(r"utf[-_]?7|hz|iso2022.*|punycode|idna|.*unicode[-_]escape|undefined|mbcs|oem")
_PARTS: Final = {f"%{name}": f"(?P<{name}>[0-9]{{1,2}})" for name in "dmHMS"} | {"%Y": "(?P<Y>[0-9]{4})"}
_OF_A_DAY: Final = 3
_WITH_COMMA: Final = re.compile(r"\s*[-+]?[0-9]*,[0-9]+([eE][-+]?[0-9]+)?\s*")
_WITH_POINT: Final = re.compile(r"\s*[-+]?[0-9][0-9.]*\.[0-9]+(,[0-9]+)?\s*")


@dataclass(frozen=True, kw_only=True)
class Format:
    """How files are written: the fields of CSV text, its bytes, and which sheet of a workbook is the table.

    Parameters
    ----------
    delimiter : str
        The one character between fields.
    decimal : {".", ","}
        The decimal mark of numbers.
    encoding : str
        Name of the encoding of the text, such as "latin-1", "cp1252" or "utf-16".
    quote : str
        The one character around fields that hold a delimiter; "none": quotes are letters as others.
    sheet : str, optional
        Name of the sheet. None: the only one.
    date_format : str, optional
        Form of dates, of ``%d``, ``%m``, ``%Y`` and perhaps ``%H``, ``%M`` and ``%S``, such as "%d.%m.%Y". None: as in
        2024-12-31.
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    quote: str = '"'
    sheet: str | None = None
    date_format: str | None = None

    def __post_init__(self) -> None:
        for name in ("delimiter", "decimal", "quote"):
            given: object = getattr(self, name)
            if not isinstance(given, str):
                raise broken(name, "a text", given)
        check_delimiter(self.delimiter)
        if self.decimal not in (".", ","):
            raise broken("decimal", "'.' or ','", self.decimal)
        if self.decimal == self.delimiter:
            raise InvalidInput(
                f"decimal and delimiter must differ, got {self.decimal!r} for both ({hint('delimiter', ';')})"
            )
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if self.quote != NO_QUOTE and (len(self.quote) != 1 or self.quote in (self.delimiter, "\n", "\r", "\0")):
            raise broken("quote", f"one character other than the delimiter, or {NO_QUOTE!r}", self.quote)
        if self.sheet is not None and not isinstance(self.sheet, str):
            raise broken("sheet", "the name of a sheet or None", self.sheet)
        if self.date_format is not None:
            _dates(self.date_format)

    def with_dates(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return columns in which every text that is a date in :attr:`date_format` is written as 2024-12-31."""
        if self.date_format is None:
            return dict(columns)
        found = _dates(self.date_format)
        return {name: [_iso(cell, found) for cell in cells] for name, cells in columns.items()}

    def with_points(
        self, columns: Mapping[str, list[str]], numbers: Collection[str] | None, name: object
    ) -> Mapping[str, list[Any]]:
        """Return the cells of CSV text with decimal points in place of the decimal mark.

        ``numbers`` names the columns of numbers, in which a point is refused; None: every cell that is a number with a
        comma gets a point, and no cell is refused.
        """
        if self.decimal == ".":
            return columns
        return {
            column: [_point(cell, column if numbers else None, name) for cell in cells]
            if numbers is None or column in numbers
            else cells
            for column, cells in columns.items()
        }


def check_delimiter(delimiter: str) -> str:
    """Return what may stand between the fields of CSV text."""
    if len(delimiter) != 1 or delimiter in _ENDS:
        got = _ENDS.get(delimiter, repr(delimiter))
        raise InvalidInput(
            f"the delimiter must be one character, and neither a quote nor the end of a line nor NUL, got {got}"
        )
    return delimiter


def _encoding(name: object) -> str:
    rule = "the name of an encoding of text in which every line reads by itself, such as 'latin-1' or 'cp1252'"
    try:
        known = codecs.lookup(str(name)).name
        "".encode(known)  # refuses those from bytes to bytes
    except (LookupError, UnicodeError) as error:
        raise broken("encoding", rule, name) from error
    if not isinstance(name, str) or _STATEFUL.fullmatch(known):
        raise broken("encoding", rule, name)
    # A byte order mark, as spreadsheets write it, is no part of the first name.
    return "utf-8-sig" if known == "utf-8" else known


def _point(cell: str, column: str | None, name: object) -> str:
    if _WITH_COMMA.fullmatch(cell):
        return cell.replace(",", ".")
    if column is not None and _WITH_POINT.fullmatch(cell):
        raise InvalidInput(
            f"numbers of {name} must have the decimal mark ',' and no thousands separator, got a point in the column "
            f"{column!r}"
        )
    return cell


def _dates(form: object) -> re.Pattern[str]:
    """Return the pattern of dates of a form: a plain number is none, because other characters stand between."""
    rule = "a form with %d, %m and %Y and other characters between them, such as '%d.%m.%Y'"
    if not isinstance(form, str):
        raise broken("date_format", rule, form)
    parts = re.split(r"(%.)", form)
    used, between = parts[1::2], parts[2:-1:2]
    known = set(used) <= set(_PARTS) and len(set(used)) == len(used) and {"%d", "%m", "%Y"} <= set(used)
    if not known or not all(text and not any(map(str.isdigit, text)) for text in between):
        raise broken("date_format", rule, form)
    return re.compile("".join(_PARTS.get(part) or re.escape(part) for part in parts))


def _iso(cell: object, dates: re.Pattern[str]) -> object:
    found = dates.fullmatch(cell.strip()) if isinstance(cell, str) else None
    if found is None:
        return cell
    parts = {name: int(text) for name, text in found.groupdict().items()}
    day = f"{parts['Y']:04}-{parts['m']:02}-{parts['d']:02}"
    time = [f"{parts.get(name, 0):02}" for name in "HMS"]
    return day if len(parts) == _OF_A_DAY else f"{day}T{':'.join(time)}"


PLAIN: Final = Format()
