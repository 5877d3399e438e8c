"""Documents as Markdown. Text of a file is shown and never read as Markdown."""

import re
from collections.abc import Iterator, Sequence

from dpci.base.tables import printable
from dpci.shown.document import Bullets, Code, Document, Facts, Paragraph, Part, Section, Strong, Table, Words

# Marks, elements, links and cells. Underscores mark nothing within a word, or as a line to be filled in.
_MARKS = re.compile(r"[\\`*\[\]<>#&!|~]|_(?![^\W_])|(?<![^\W_])_")
_BLANK = re.compile(r"(?<!\w)(___)(?!\w)")


def as_markdown(document: Document) -> str:
    """Return a document as Markdown."""
    title = [f"# {_plain(document.title)}"] if document.title else []
    banner = [] if document.banner is None else [f"**{document.banner}.**"]
    return "\n\n".join([*title, *banner, *_blocks(document.parts, "##")]) + "\n"


def _blocks(parts: Sequence[Part], heading: str) -> Iterator[str]:
    for part in parts:
        match part:
            case Paragraph():
                yield _marked(part.words)
            case Bullets():
                yield "\n".join(f"- {'[ ] ' * part.to_tick}{_marked(item)}" for item in part.items)
            case Facts():
                yield _table(("what", "value"), part.rows)
            case Table():
                yield _table(part.header, part.rows)
            case Section():
                yield f"{heading} {_plain(part.heading)}"
                yield from _blocks(part.parts, f"{heading}#")
            case _:
                pass  # Markdown holds no figures; the tables have their numbers


def _table(header: Sequence[str], rows: Sequence[Sequence[Words]]) -> str:
    lines = [f"| {' | '.join(map(_marked, row))} |" for row in (header, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(header)}", *lines[1:]])


def _marked(words: Words) -> str:
    if isinstance(words, tuple):
        return "".join(map(_marked, words))
    if isinstance(words, Strong):
        return f"**{_marked(words.words)}**"
    if isinstance(words, Code):
        return f"`{printable(words).replace('`', chr(39)).replace('|', chr(92) + '|')}`"
    return _plain(words)


def _plain(text: str) -> str:
    """Return a text without what Markdown or HTML would read as a mark, a link, an element or a cell."""
    pieces = _BLANK.split(printable(text))
    return "".join(piece if piece == "___" else _MARKS.sub(_entity, piece) for piece in pieces)


def _entity(mark: re.Match[str]) -> str:
    return f"&#{ord(mark[0])};"
