"""The columns of a schema as a document: bounds, categories, units and the reasons why they are public."""

from collections.abc import Iterator
from typing import Any

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
from dpci.schema.formula import formula_text
from dpci.shown.document import Document, Table

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
