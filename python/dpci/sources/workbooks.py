"""Sheets of workbooks, of Excel and of LibreOffice, as columns: read whole, as no sheet has more than 2^20 rows."""

from pathlib import Path
from typing import Any, Final

from dpci.base.optional import optional
from dpci.base.validation import composed
from dpci.errors import InvalidInput

WORKBOOKS: Final = (".xlsx", ".xlsb", ".xls", ".ods")


def read_sheet(path: Path, sheet: str | None) -> dict[str, list[Any]]:
    """Return the columns of a sheet, whose first row has their names; rows without any value are left out.

    Whole numbers are integers, and empty cells "".
    """
    with optional("python_calamine", extra="office", what="A workbook", name="python-calamine"):
        from python_calamine import CalamineError, CalamineWorkbook  # noqa: PLC0415  # optional
    try:
        book = CalamineWorkbook.from_path(str(path))
        rows = book.get_sheet_by_name(_sheet(path, book.sheet_names, sheet)).to_python()
    except CalamineError as error:
        raise InvalidInput(f"{path} must be a workbook of Excel or OpenDocument, got {error}") from error
    rows = [row for row in rows if any(cell != "" for cell in row)]
    header = [composed(str(_whole(cell)).strip()) for cell in (rows[0] if rows else [])]
    # A sheet may have cells that were emptied beside its table.
    used = [i for i, name in enumerate(header) if name or any(row[i] != "" for row in rows)]
    names = [header[i] for i in used]
    if not names or "" in names or len(set(names)) != len(names):
        raise InvalidInput(
            f"the first row of a sheet must hold distinct names of all columns, got {names} in {str(path)!r} "
            "(write nothing beside or above the table)"
        )
    return {header[i]: [_whole(row[i]) for row in rows[1:]] for i in used}


def _sheet(path: Path, names: list[str], wanted: str | None) -> str:
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None:
        first = names[0] if names else "Sheet1"
        raise InvalidInput(
            f"the sheet must be named where a workbook has several, got none of {names} in {str(path)!r} "
            f"(pass sheet={first!r} to dpci.read, in a shell --sheet '{first}')"
        )
    if wanted not in names:
        raise InvalidInput(f"sheet must be one of {names}, the sheets of {str(path)!r}, got sheet={wanted!r}")
    return wanted


def _whole(cell: object) -> object:
    """Return a number without digits after the point as a sheet shows it; its cells know floats only."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell
