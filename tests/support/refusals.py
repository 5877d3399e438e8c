"""The list of refusals that the data can cause, in the core and in this package, as docs/privacy.md shows it."""

from typing import NamedTuple

from dpci import _core


class Refusal(NamedTuple):
    """A refusal that depends on data."""

    what: str
    """Data that are refused."""
    when: str
    """Before the fit computes anything, during it, or at any time."""
    shows: str
    """Part of the data that the message shows."""
    remains: bool = False
    """Whether it can still occur with ``rows="clip"``, explicit classes and finite, well-formed input."""


OF_PYTHON = {
    "form": Refusal(
        "a wrong shape or dtype, masked values, dates, strings, complex numbers, broken indices", "before", "the defect"
    ),
    "index": Refusal("the index of y differs from the index of X", "before", "two labels, row"),
    "parts_persons": Refusal(
        "a person with rows in several parts or disjoint groups; ids of other types in another part or group",
        "before",
        "types, the number of rows, no id",
        remains=True,
    ),
    "persons": Refusal(
        "ids of persons that are missing, of several types, of another number or another index than the rows",
        "before",
        "types, numbers of rows, no id",
    ),
    "missing": Refusal("a missing value in a frame", "before", "column, row"),
    "missing_target": Refusal("a missing target", "before", "value, row"),
    "label": Refusal("a target that is none of the classes", "before", "value, row"),
    "one_class": Refusal(
        "one class, more than two classes, or labels of several types, without `classes` or a boolean data type",
        "before",
        "labels",
    ),
    "parts_labels": Refusal(
        "rows in parts whose labels have no boolean data type, without `classes`", "before", "the data type"
    ),
    "parts_columns": Refusal("parts with different columns", "before", "the columns"),
    "parts_sizes": Refusal("partitions of X and y with different numbers of rows", "before", "the numbers of rows"),
    "no_parts": Refusal("a source or a y without rows", "before", "that there are no rows", remains=True),
    "parts_change": Refusal("a later pass over rows in parts finds no parts", "during", "number of rows", remains=True),
    "parts_iterator": Refusal(
        "a source that returns the same iterator twice, or something other than pairs", "any time", "a type"
    ),
    "parts_fail": Refusal("an exception in a source of rows in parts", "any time", "that exception", remains=True),
    "schema_value": Refusal("a value of a table that its schema does not allow", "reading", "column, row, value"),
    "table_columns": Refusal("a column that is missing, of a wrong kind or of a wrong length", "reading", "the column"),
    "file": Refusal("a file that cannot be read or is listed twice", "reading", "the file"),
    "csv_line": Refusal(
        "a CSV line with stray quotes or a wrong number of fields, or a record on several lines", "reading", "line"
    ),
}
"""By key; tests/house/test_refusals.py assigns the keys to the places that raise them."""


def all_refusals() -> tuple[Refusal, ...]:
    """Return the refusals of this package, then those of the core."""
    return (*OF_PYTHON.values(), *(Refusal(*refusal) for refusal in _core.Testing.refusals()))


def markdown() -> str:
    """Return the table of the page, and the list of its lines that can still occur when the input is good."""
    rows = [f"| {what} | {when} | {shows} |" for what, when, shows, _ in all_refusals()]
    table = ["| what | when | the message shows |", "|---|---|---|", *rows]
    remain = [f"- {refusal.what};" for refusal in all_refusals() if refusal.remains]
    remain[-1] = f"{remain[-1][:-1]}."
    lead = [
        'With `rows="clip"`, explicit `classes` and finite, well-formed input, only these refusals can still',
        "occur:",
        "",
    ]
    return "\n".join([*table, "", *lead, *remain])
