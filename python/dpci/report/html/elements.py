"""HTML elements whose text is escaped, whatever it holds."""

import html
from collections.abc import Iterable
from typing import TypeAlias


class Html(str):
    """Text that is markup already; every other string is escaped where it enters an element."""

    __slots__ = ()


Content: TypeAlias = str | Iterable[str]

# Elements without an end tag.
_VOID = frozenset({"meta", "line", "circle", "rect", "br"})


def tag(name: str, content: Content = (), /, **attributes: object) -> Html:
    """Return an element; underscores around and in names of attributes stand for what Python does not allow there."""
    written = "".join(
        f' {key.strip("_").replace("_", "-")}="{html.escape(str(value))}"' for key, value in attributes.items()
    )
    if name in _VOID:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(content)}</{name}>")


def join(content: Content) -> Html:
    """Return pieces one after the other, escaped unless they are markup."""
    pieces = [content] if isinstance(content, str) else content
    return Html("".join(piece if isinstance(piece, Html) else html.escape(piece) for piece in pieces))
