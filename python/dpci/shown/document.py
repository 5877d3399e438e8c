"""``Document``: the content of a summary, a page or a report of any kind of result; writers decide how it looks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOT_PRIVATE = "NOT PRIVATE"
"""The mark of what is computed from the data, or without noise that protects them."""
SEEDED = f"{NOT_PRIVATE} (seeded)"
"""The mark of every result whose noise came from a seed: in summaries, on pages and plots, and in short forms."""
NO_NOISE = f"{NOT_PRIVATE} (no noise)"
BANNER: dict[bool, str | None] = {True: None, False: SEEDED}
"""The banner of a result that is private, and of one that is not."""


class Code(str):
    """A name, hash or value, shown letter by letter."""

    __slots__ = ()


@dataclass(frozen=True)
class Strong:
    """Words that must not be overlooked."""

    words: "Words"


Words: TypeAlias = "str | Strong | tuple[Words, ...]"
"""A sentence or a cell: text, which no writer reads as markup, and pieces of it that are set apart."""


class Part:
    """Part of a document, of one of the kinds below."""

    __slots__ = ()


@dataclass(frozen=True)
class Paragraph(Part):
    """Sentences that stand together."""

    words: Words
    role: str = ""
    """"lead" for the first one of a page, "note" for one to be read; empty for others."""


@dataclass(frozen=True)
class Bullets(Part):
    """A list."""

    items: Sequence[Words]
    to_tick: bool = False
    """Whether the reader ticks the items."""


@dataclass(frozen=True)
class Facts(Part):
    """Names with their values; those of a name that begins with spaces belong to the fact above."""

    rows: Sequence[tuple[str, Words]]
    caption: str = ""


@dataclass(frozen=True)
class Table(Part):
    """A table whose first column names its rows; one that is called "unit" belongs to the names."""

    header: Sequence[str]
    rows: Sequence[Sequence[Words]]
    caption: str = ""
    first: Sequence[str] = ()
    """Columns that a narrow screen shows first; empty: the given order."""
    of_words: bool = False
    """Whether cells hold words instead of numbers."""


@dataclass(frozen=True)
class Forest(Part):
    """Intervals drawn one below the other."""

    names: Sequence[str]
    estimate: "NDArray[np.float64]"
    lower: "NDArray[np.float64]"
    upper: "NDArray[np.float64]"
    level: float
    axis: str = "estimate"
    """The label of the axis."""
    are_ratios: bool = False
    """Whether the numbers are ratios, which are drawn on a logarithmic axis around 1."""


@dataclass(frozen=True)
class Bars(Part):
    """Counts drawn as bars, side by side or one for each name."""

    name: str
    labels: Sequence[str]
    counts: Sequence[int]
    ends: tuple[str, str] | None = None
    """Labels of the ends of an axis on which bars stand side by side; None where each has its label below."""


@dataclass(frozen=True)
class Section(Part):
    """Parts below a heading; ``name`` is that of links to it."""

    name: str
    heading: str
    parts: Sequence[Part]
    folded: bool = False
    """Whether a page shows the heading only, until a reader opens it."""


NO_TABLE = "requires an object that shows a table, got one without (to_markdown() has its text)"
"""End of the refusal of forms that are tables alone."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """A title and what stands below it."""

    title: str = ""
    """Empty where a text needs none."""
    parts: Sequence[Part]
    banner: str | None = None
    """Notice that must be seen first, such as :data:`SEEDED`."""
    version: str = ""
    """The version of dpci that made the result."""

    def unfolded(self) -> "Document":
        """Return what stands outside of folded sections."""
        shown = [part for part in self.parts if not (isinstance(part, Section) and part.folded)]
        return replace(self, parts=shown)


def joined(words: Iterable[Words], separator: str = ", ") -> Words:
    """Return words one after the other."""
    pieces = [piece for each in words for piece in (separator, each)]
    return tuple(pieces[1:])


def names(texts: Iterable[str]) -> Words:
    """Return names one after the other, each letter by letter."""
    return joined(map(Code, texts))


def short_form(result: object, *facts: str, private: bool) -> str:
    """Return the one line that stands for a result where a program shows it."""
    return f"<{type(result).__name__}: {', '.join([*facts, *([] if private else [SEEDED])])}>"
