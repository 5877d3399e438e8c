"""The columns of a schema as a document: bounds, categories, units and the reasons why they are public."""

from collections.abc import Iterator

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
from dpci.shown.document import Document, Table

_TO_RELEASE = "to be released"


def document_of(
    columns: tuple[Column | Gap, ...], target: Target | UnboundedTarget, *, title: str, formula: str, persons: str
) -> Document:
    """Return a table with a row for each column, the target last."""
    rows = [[part.name, *_cells(part)] for part in columns]
    rows.append([f"{target.column} (target)", *_cells(target)])
    facts = [("formula", formula), ("persons", persons)]
    caption = "; ".join(f"{name}: {value}" for name, value in facts if value)
    return Document(title=title, parts=[Table(["column", "values", "unit", "source"], rows, caption, of_words=True)])


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
