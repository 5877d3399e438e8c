"""Which refusals the data can cause, of the core and of this package: one list, which docs/privacy.md shows."""

from typing import NamedTuple

from dpci import _core


class Refusal(NamedTuple):
    """A refusal that depends on data."""

    what: str
    """What is refused."""
    when: str
    """Before the fit computes anything, during it, or at any time."""
    shows: str
    """What the message shows of the data."""
    remains: bool = False
    """Whether ``on_violation="clip"``, explicit classes and finite, well-formed input leave it."""


OF_PYTHON = {
    "form": Refusal("shape, dtype, masked values, dates, strings, complex numbers, broken indices", "before", "them"),
    "index": Refusal("the index of y is not that of X", "before", "two labels, row"),
    "missing": Refusal("a missing value in a frame", "before", "column, row"),
    "missing_target": Refusal("a missing target", "before", "value, row"),
    "label": Refusal("a target of neither class", "before", "value, row"),
    "one_class": Refusal(
        "one class, more than two, or labels of several types, without `classes` and without a boolean data type",
        "before",
        "labels",
    ),
    "parts_labels": Refusal(
        "labels without a boolean data type in rows in parts, without `classes`", "before", "the data type"
    ),
    "parts_columns": Refusal("other columns in another part", "before", "the columns"),
    "parts_sizes": Refusal("a partition of X with another number of rows than that of y", "before", "the numbers"),
    "no_parts": Refusal("a source or a y without rows", "before", "that there are none", remains=True),
    "parts_change": Refusal("no parts in a later pass over rows in parts", "during", "number of rows", remains=True),
    "parts_iterator": Refusal("a source that gives the same iterator twice, or no pairs", "any time", "a type"),
    "parts_fail": Refusal("a source of rows in parts failed", "any time", "its own exception", remains=True),
    "schema_value": Refusal("a table's value that its schema refuses", "reading", "column, row, value"),
    "table_columns": Refusal("a column that is missing, of another kind or of unequal length", "reading", "them"),
    "file": Refusal("a file that cannot be read, or that is named twice", "reading", "the file"),
    "csv_line": Refusal(
        "a line of CSV with stray quotes, another number of fields, or a record on several lines", "reading", "line"
    ),
}
"""By a key, which tests/house/test_refusals.py gives to the places that raise them."""


def all_refusals() -> tuple[Refusal, ...]:
    """Return those of this package, then those of the core."""
    return (*OF_PYTHON.values(), *(Refusal(*refusal) for refusal in _core.REFUSALS))


def markdown() -> str:
    """Return the table of the page, and which of its lines remain when the input is good."""
    rows = [f"| {what} | {when} | {shows} |" for what, when, shows, _ in all_refusals()]
    table = ["| what | when | the message shows |", "|---|---|---|", *rows]
    remain = [f"- {refusal.what};" for refusal in all_refusals() if refusal.remains]
    remain[-1] = f"{remain[-1][:-1]}."
    lead = [
        'With `on_violation="clip"`, explicit `classes` and finite, well-formed input these lines of the table remain,',
        "and no others:",
        "",
    ]
    return "\n".join([*table, "", *lead, *remain])
