"""Documents as a table of the package great_tables: the first one that a page shows before its folds."""

from collections.abc import Iterator, Sequence
from typing import Any

from dpci.base.optional import optional
from dpci.base.tables import frame_by, printable
from dpci.errors import InvalidInput
from dpci.shown.document import NO_TABLE, Document, Part, Section, Strong, Table, Words


def as_great_table(document: Document) -> Any:  # noqa: ANN401  # the package is optional
    """Return a ``great_tables.GT``, which escapes text; what belongs to names is on the left."""
    with optional("great_tables", extra="tables", what="to_great_tables()", name="great-tables"):
        from great_tables import GT  # noqa: PLC0415  # optional

    table = next(_tables(document.parts), None)
    if table is None:
        raise InvalidInput(f"to_great_tables() {NO_TABLE}")
    n_names = len(table.header) if table.of_words else 2 if "unit" in table.header else 1
    cells = {name: [_plain(row[i]) for row in table.rows] for i, name in enumerate(table.header)}
    made = GT(frame_by("pandas", cells)).cols_align("left", list(table.header[:n_names]))
    made = made.cols_align("right", list(table.header[n_names:]))
    made = made.tab_header(printable(document.title)) if document.title else made
    return made if document.banner is None else made.tab_source_note(document.banner)


def _tables(parts: Sequence[Part]) -> Iterator[Table]:
    for part in parts:
        if isinstance(part, Table):
            yield part
        elif isinstance(part, Section):
            yield from _tables(part.parts)


def _plain(words: Words) -> str:
    if isinstance(words, tuple):
        return "".join(map(_plain, words))
    return _plain(words.words) if isinstance(words, Strong) else printable(words)
