"""Tables and texts of Markdown documents. What a file holds is shown and never read as Markdown."""

from collections.abc import Iterable, Iterator, Sequence

from dpci.base.tables import printable


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def code(text: str) -> str:
    """Return a text as code, on one line and within one cell of a table."""
    return f"`{printable(text).replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def plain(text: str) -> str:
    """Return a text without what Markdown or HTML would read as a mark, a link, an element or a cell."""
    return "".join(f"&#{ord(sign)};" if sign in "\\`*_[]<>#&!|~" else sign for sign in printable(text))


def names_text(names: Iterable[str]) -> str:
    """Return names as code."""
    return ", ".join(code(name) for name in names)
