"""Effects of a schema on a table, which are not private, and the document of the schema itself, which is public."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci.base.tables import printable
from dpci.base.validation import broken
from dpci.data.arrays import as_floats
from dpci.data.frames import is_nan
from dpci.schema.cells import (
    AGREED,
    CATEGORY_NEEDS,
    DROP,
    NO_NUMBER,
    NUMBER_NEEDS,
    OTHER,
    TARGET_NEEDS,
    as_cells,
    changes_schema,
    check_length,
    column_of,
    days_since,
    drops,
    has_column,
    label_of,
    missing_cells,
    remedy,
)
from dpci.schema.columns import (
    CategoricalColumn,
    CategoricalTarget,
    ClassTarget,
    Column,
    Gap,
    NumericColumn,
    NumericTarget,
    Target,
    UnboundedColumn,
    UnboundedTarget,
    UnlistedColumn,
)
from dpci.schema.design import Part
from dpci.schema.formula import formula_text
from dpci.shown.displayed import Displayed
from dpci.shown.document import NOT_PRIVATE, Document, Paragraph, Table
from dpci.shown.text import table_text, words_text

__all__ = ["Finding", "SchemaCheck"]


_MOST_EXAMPLES = 3


@dataclass(frozen=True)
class Finding:
    """One thing that a schema does to some rows of a table, or a category without rows.

    Attributes
    ----------
    column : str
        Column of the table.
    what : str
        Change or refusal, in words.
    n_rows : int
        Number of rows to which it is done.
    refused : bool
        Whether a fit would be refused.
    examples : tuple of str
        Some of the values.
    advice : str
        Way out of a refusal; empty where nothing is refused.
    """

    column: str
    what: str
    n_rows: int
    refused: bool
    examples: tuple[str, ...] = ()
    advice: str = ""


@dataclass(frozen=True, repr=False)
class SchemaCheck(Displayed):
    """Effects of a schema on a table, found by ``Schema.check``. Not private: it is for the holder of the data.

    Attributes
    ----------
    n_rows : int
        Rows of the table.
    findings : tuple of Finding
        Differences from the schema, in the order of its columns.
    """

    n_rows: int
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> bool:
        """Whether a fit would be refused."""
        return self.n_rows == 0 or any(finding.refused for finding in self.findings)

    def __repr__(self) -> str:
        parts = self._parts()
        return "\n".join(table_text(part) if isinstance(part, Table) else words_text(part.words) for part in parts)

    def _document(self) -> Document:
        return Document(parts=self._parts())

    def _parts(self) -> list[Paragraph | Table]:
        title = Paragraph(f"{NOT_PRIVATE}: {self.n_rows:,} rows; only for the holder of the data")
        if self.n_rows == 0:
            return [title, Paragraph("a fit would be refused: the table must have at least one row")]
        if not self.findings:
            return [title, Paragraph("every value agrees with the schema")]
        rows = [
            [f.column, f.what, f"{f.n_rows:,}", ", ".join(map(printable, f.examples)) or "-"] for f in self.findings
        ]
        ways = list(dict.fromkeys(f"{f.column}: {f.advice}" for f in self.findings if f.advice))
        if any(map(changes_schema, ways)):
            ways.append(AGREED)
        outcome = "a fit would be refused" if self.refused else "nothing would be refused"
        table = Table(["column", "what", "rows", "examples"], rows, of_words=True)
        return [title, table, *map(Paragraph, ways), Paragraph(outcome)]


def check_table(
    columns: Iterable[Column | Gap],
    target: Target | UnboundedTarget,
    ids: tuple[str, str | None],
    table: Any,  # noqa: ANN401  # tables of any library
) -> tuple[int, list[Finding]]:
    """Return the number of rows, and what columns and a target do to a table.

    ``ids``: the column of persons of the schema, and that whose persons are counted in its place.
    """
    cells = [(column, column_of(table, column.name)) for column in columns]
    n_rows = len(cells[0][1])
    found: list[Finding] = []
    for column, values in cells:
        check_length(column.name, values, n_rows)
        found += check_column(column, values)
    if has_column(table, target.column):
        targets = column_of(table, target.column)
        check_length(target.column, targets, n_rows)
        found += check_target(target, targets)
    return n_rows, [*found, *check_ids(ids, table, n_rows)]


def check_column(column: Column | Gap, values: NDArray[Any]) -> Iterator[Finding]:
    """Yield what a column does to its values; bounds and lists that nobody knows yet change none."""
    if isinstance(column, NumericColumn | UnboundedColumn):
        yield from _numbers(column, values)
        return
    other = column.other if isinstance(column, UnlistedColumn) else None
    if isinstance(column, UnlistedColumn):
        column = column.listed(_counted(values[~missing_cells(values)]), source="")
    labels, cells = _counted(values), as_cells(values)
    gaps = _counted(cells[missing_cells(cells)])
    absent = {label: count for label, count in gaps.items() if label not in column.categories}
    if drops(column):
        yield from _some(column.name, "missing: the row weighs 0", absent, refused=False)
        labels -= Counter(absent)
    elif column.missing is not None:
        yield from _some(column.name, f"missing: replaced by {column.missing}", absent, refused=False)
        labels[column.missing] += sum(absent.values())
        labels -= Counter(absent)
    unknown = {label: count for label, count in labels.items() if label not in column.categories}
    done = "refused" if column.refuses else "zeros in all columns"
    done = done if column.other is None else f"counted as {column.other}"
    yield from _some(
        column.name, f"in no category: {done}", unknown, refused=column.refuses, way=_way(gaps, CATEGORY_NEEDS, OTHER)
    )
    # Rare levels of a list that nobody knows count as its other.
    yield from _absent(column, labels, but=other)


def check_target(target: Target | UnboundedTarget, values: NDArray[Any]) -> Iterator[Finding]:
    """Yield what a target does to its values."""
    if isinstance(target, NumericTarget | UnboundedTarget):
        yield from _numbers(target.as_column(), values, needs=TARGET_NEEDS["missing"])
        return
    labels, cells = _counted(values), as_cells(values)
    gaps = _counted(cells[missing_cells(cells)])
    unknown = {label: count for label, count in labels.items() if label not in target.known}
    which = "neither" if isinstance(target, ClassTarget) else "no"
    yield from _some(
        target.column, f"of {which} class: refused", unknown, refused=True, way=_way(gaps, *TARGET_NEEDS.values())
    )
    yield from _absent(target, labels)


def check_ids(persons: tuple[str, str | None], table: Any, n_rows: int) -> Iterator[Finding]:  # noqa: ANN401  # of any library
    """Yield the rows without an id, and how many persons there are, which a plan asks; no id is shown."""
    of_schema, asked = persons
    name = of_schema if asked is None else asked
    if not isinstance(name, str):
        raise broken("persons", "the name of a column", name)
    if not name or (asked is None and not has_column(table, name)):
        return
    ids = column_of(table, name)
    check_length(name, ids, n_rows)
    if ids.dtype.kind in "mM":
        blank = np.isnat(ids).tolist()
    else:
        blank = [cell is None or is_nan(cell) or (isinstance(cell, str) and not cell.strip()) for cell in ids.tolist()]
    if gaps := sum(blank):
        yield Finding(name, "without an id: refused", gaps, refused=True, advice="give these rows an id, or drop them")
    counted = Counter(cell for cell, none in zip(ids.tolist(), blank, strict=True) if not none)
    if counted:
        most = max(counted.values())
        each = "one row each" if most == 1 else f"at most {most:,} rows each"
        todo = f": fit with persons={name!r}" if most > 1 and not of_schema else ""
        whose = "1 person" if len(counted) == 1 else f"{len(counted):,} persons"
        yield Finding(name, f"{whose}, {each}{todo}", sum(counted.values()), refused=False)


def _absent(
    part: CategoricalColumn | ClassTarget | CategoricalTarget, labels: Counter[str], but: str | None = None
) -> Iterator[Finding]:
    if isinstance(part, CategoricalColumn):
        name, known, what = part.name, part.categories, "category without rows"
    else:
        name, known, what = part.column, part.known, "label without rows"
    absent = [label for label in known if label not in labels and label != but]
    if absent:
        yield Finding(name, what, 0, refused=False, examples=_examples(absent))


def check_products(names: tuple[str, ...], parts: tuple[Part, ...], rows: NDArray[np.float64]) -> Iterator[Finding]:
    """Yield the products and functions of splines that are 0 in every row, of which a model learns nothing."""
    simple = [len(part.factors) == 1 and not part.n_splines for part in parts for _ in range(part.width)]
    for name, column, known in zip(names, rows.T, simple, strict=True):
        if not known and not column.any():
            yield Finding(name, "0 in every row", 0, refused=False)


def _numbers(
    column: NumericColumn | UnboundedColumn, values: NDArray[Any], *, needs: str = NUMBER_NEEDS
) -> Iterator[Finding]:
    name, missing = column.name, column.missing
    numbers = days_since(column.since, values) if column.since else as_floats(values)
    valid = np.isfinite(numbers)
    gaps = missing_cells(values)
    words = {"middle": "replaced by the middle of the bounds", DROP: "the row weighs 0"}
    done = words.get(str(missing), "refused")
    done = done if isinstance(missing, str) else f"replaced by {missing:g}"
    yield from _some(name, f"missing: {done}", _counted(values[gaps]), refused=missing == "error", way=lambda _: needs)
    what = "not a date" if column.since else "not a finite number"
    yield from _some(name, f"{what}: refused", _counted(values[~valid & ~gaps]), refused=True, way=_of_number)
    if isinstance(column, UnboundedColumn):
        (lower, upper), refused, done = column.range or (-math.inf, math.inf), False, "counts as the end of the range"
    else:
        lower, upper, refused = column.lower, column.upper, column.outside == "error"
        kept = "stays as it is, and its row weighs less"
        done = {"error": "refused", "weight": kept}.get(column.outside, "moved to the bound")
    for beyond, what in ((numbers < lower, f"below {lower:g}"), (numbers > upper, f"above {upper:g}")):
        counted = _counted(values[beyond & valid])
        yield from _some(name, f"{what}: {done}", counted, refused=refused)


def _some(
    name: str, what: str, counted: dict[str, int], *, refused: bool, way: Callable[[str], str] = str
) -> Iterator[Finding]:
    """Yield a finding if there are rows of it; ``way`` says what a label that is refused needs."""
    if counted:
        frequent = sorted(counted, key=lambda label: (-counted[label], label))
        ways = dict.fromkeys(way(label) for label in frequent) if refused else {}
        advice = "; ".join(each.strip(" ()") for each in ways)
        yield Finding(name, what, sum(counted.values()), refused=refused, examples=_examples(frequent), advice=advice)


def _of_number(label: str) -> str:
    return remedy(label) or NO_NUMBER


def _way(gaps: Counter[str], missing: str, other: str) -> Callable[[str], str]:
    return lambda label: missing if label in gaps else other


def _examples(labels: list[str]) -> tuple[str, ...]:
    shown = tuple(map(repr, labels[:_MOST_EXAMPLES]))
    return shown if len(labels) <= _MOST_EXAMPLES else (*shown, "...")


def _counted(values: NDArray[Any]) -> Counter[str]:
    return Counter(label_of(cell) for cell in as_cells(values).tolist())


_TO_RELEASE = "to be released"


def document_of(schema: Any, kind: str) -> Document:  # noqa: ANN401  # a Schema, with gaps or without
    """Return a table with a row for each column, the target last; ``kind`` is the title of a schema without a name."""
    target, terms = schema.target, schema.terms
    rows = [[part.name, *_cells(part)] for part in schema.columns]
    rows.append([f"{target.column} (target)", *_cells(target)])
    formula = formula_text(target.column, terms, intercept=schema.intercept) if terms else ""
    caption = "; ".join(f"{n}: {value}" for n, value in (("formula", formula), ("persons", schema.persons)) if value)
    table = Table(["column", "values", "unit", "source"], rows, caption, of_words=True)
    return Document(title=schema.title or schema.name or kind, parts=[table])


def _cells(part: Column | Gap | Target | UnboundedTarget) -> Iterator[str]:
    """Yield what values are allowed, their unit or reference, and why they are public."""
    match part:
        case NumericColumn() | NumericTarget():
            yield f"{part.lower:g} to {part.upper:g}{_since(part)}"
            yield part.unit
        case UnboundedColumn() | UnboundedTarget():
            known = "" if part.lower is None else f", within {part.lower:g} to {part.upper:g}"
            yield f"number, bounds {_TO_RELEASE}{known}{_since(part)}"
            yield part.unit
        case CategoricalColumn():
            yield ", ".join(part.categories)
            yield "" if part.reference is None else f"against {part.reference}"
        case UnlistedColumn():
            yield f"{', '.join(part.known)}, and categories {_TO_RELEASE}"
            yield "" if part.reference is None else f"against {part.reference}"
        case ClassTarget():
            yield f"{' | '.join(part.positive)} against {' | '.join(part.negative)}"
            yield ""
        case CategoricalTarget():
            yield ", ".join(part.labels)
            yield f"against {part.labels[0]}"
    yield getattr(part, "source", "")


def _since(part: object) -> str:
    since = getattr(part, "since", "")
    return f" days since {since}" if since else ""
