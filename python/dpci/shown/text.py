"""Documents as plain text, for terminals: aligned columns, lines of at most 100 letters, the banner at both ends."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dpci.base.habits import OF_TEXTS, instead
from dpci.base.tables import printable
from dpci.shown.document import Bullets, Document, Facts, Paragraph, Part, Section, Strong, Table, Words

_WIDTH = 100


class Text(str):
    """A text that advises whoever looks for parts of a summary in it."""

    __slots__ = ()

    if not TYPE_CHECKING:  # so that a checker of types refuses unknown names

        def __getattr__(self, name: str) -> object:
            """Refuse an unknown name."""
            raise AttributeError(f"'str' object has no attribute {name!r}{instead(name, OF_TEXTS)}")


def as_text(document: Document) -> Text:
    """Return a document as text."""
    banner = [] if document.banner is None else [document.banner]
    title = [printable(document.title)] if document.title else []
    return Text("\n\n".join([*banner, *title, *_blocks(document.parts), *banner]))


def table_text(table: Table) -> str:
    """Return a table whose first column is aligned left and the others right, with a rule under the header."""
    rows = [[printable(words_text(cell)) for cell in row] for row in table.rows]
    widths = [max(len(row[i]) for row in (table.header, *rows)) for i in range(len(table.header))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        return "  ".join(cells).rstrip()

    caption = [printable(table.caption)] if table.caption else []
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([*caption, line(table.header), rule, *(line(row) for row in rows)])


def words_text(words: Words) -> str:
    """Return words without marks."""
    if isinstance(words, tuple):
        return "".join(map(words_text, words))
    return words_text(words.words) if isinstance(words, Strong) else words


def _blocks(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Paragraph():
                yield _filled(part.words)
            case Bullets():
                yield "\n".join(_filled(item, "- ") for item in part.items)
            case Facts():
                yield _facts(part)
            case Table():
                yield table_text(part)
            case Section():
                yield printable(part.heading)
                yield from _blocks(part.parts)
            case _:
                pass  # a terminal shows no figures; the tables have their numbers


def _filled(words: Words, mark: str = "") -> str:
    text = printable(words_text(words))
    return textwrap.fill(text, _WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark))


def _facts(facts: Facts) -> str:
    """Return "name  value" lines with the values aligned, long ones in several lines."""
    width = max(len(name) for name, _ in facts.rows)
    room = max(_WIDTH - width - 2, 20)
    lines = []
    for name, value in facts.rows:
        first, *rest = textwrap.wrap(words_text(value), room, break_on_hyphens=False) or [""]
        lines += [f"{name.ljust(width)}  {first}".rstrip(), *(" " * (width + 2) + line for line in rest)]
    return "\n".join(map(printable, lines))
