"""Documents as pages: one file of HTML that needs no network and no script, and whose text is escaped throughout."""

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from dpci.base.validation import broken
from dpci.shown.document import (
    SEEDED,
    Bullets,
    Code,
    Document,
    Facts,
    Forest,
    Paragraph,
    Part,
    Section,
    Strong,
    Table,
    Words,
)
from dpci.shown.elements import Html, breakable, join, tag
from dpci.shown.forest import forest_figure
from dpci.shown.style import STYLE

# Nothing is loaded or run, even where a name were to break out of its element.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_WARNINGS = {
    SEEDED: (
        "The noise of this model was drawn from a seed: anyone who knows the seed can subtract it. Do not publish this "
        "page as a private release."
    )
}
"""Request of a banner to the reader of a page."""


def write_html(document: Document, path: "str | PathLike[str] | None") -> str:
    """Return a document as a page, and write it to a file if one is named.

    Raises
    ------
    InvalidInput
        For a title that is no text.
    """
    if not isinstance(document.title, str):
        raise broken("title", "a string or None", document.title)
    page = as_html(document)
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def as_html(document: Document) -> str:
    """Return a document as a page."""
    made = f"dpci {document.version}"
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="generator", content=made),
        tag("title", document.title),
        tag("style", Html(STYLE)),
    ]
    main = [tag("h1", document.title, dir="auto")]
    if document.banner is not None:
        main.append(tag("p", f"{document.banner}. {_WARNINGS[document.banner]}", class_="banner", role="alert"))
    footer = tag("footer", [f"{made}. The same facts in machine-readable form: ", tag("code", "result.to_json()"), "."])
    body = tag("body", [tag("main", [*main, *_elements(document.parts)]), footer])
    page = tag("html", [tag("head", head), body], lang="en")
    # A lone surrogate in a name has no UTF-8.
    return ("<!DOCTYPE html>\n" + page + "\n").encode("utf-8", "replace").decode("utf-8")


def _elements(parts: Sequence[Part]) -> Iterator[Html]:
    for part in parts:
        match part:
            case Paragraph():
                yield tag("p", _marked(part.words), **({"class_": part.role} if part.role else {}))
            case Bullets():
                yield tag("ul", [tag("li", _marked(item)) for item in part.items])
            case Facts():
                # Spaces before a name, which HTML would drop, say that it belongs to the fact above.
                rows = [(name.replace("  ", "\u2003"), value) for name, value in part.rows]
                yield _table(Table(("what", "value"), rows, part.caption, of_words=True))
            case Table():
                yield _table(part)
            case Forest():
                yield forest_figure(part)
            case Section():
                heading = tag("h2", part.heading, id=part.name)
                yield tag("section", [heading, *_elements(part.parts)], aria_labelledby=part.name)


def _table(table: Table) -> Html:
    """Return a table with the unit of a row below its name."""
    places = {name: place for place, name in enumerate(table.header) if place and name != "unit"}
    columns = [places[name] for name in table.first or places if name in places]
    unit = table.header.index("unit") if "unit" in table.header else None
    rows = []
    for row in table.rows:
        name = breakable(row[0]) if isinstance(row[0], str) else _marked(row[0])
        below = [] if unit is None else [tag("small", _marked(row[unit]))]
        first = tag("th", [name, *below], scope="row", dir="auto")
        rows.append(tag("tr", [first, *(tag("td", _marked(row[place])) for place in columns)]))
    head = tag("tr", [tag("th", table.header[place], scope="col") for place in (0, *columns)])
    parts = [tag("caption", tag("span", table.caption)), tag("thead", head), tag("tbody", rows)]
    # On a narrow screen a table scrolls by itself, with the keyboard too.
    kind = "scroll words" if table.of_words else "scroll"
    return tag("div", tag("table", parts), class_=kind, tabindex="0", role="region", aria_label=table.caption)


def _marked(words: Words) -> Html:
    if isinstance(words, tuple):
        return join(map(_marked, words))
    if isinstance(words, Strong):
        return tag("strong", _marked(words.words))
    return tag("code", str(words)) if isinstance(words, Code) else join(words)
