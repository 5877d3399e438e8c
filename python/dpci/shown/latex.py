"""Documents as LaTeX: the tables that a page shows before its folds, for ``booktabs``. Text of a file is escaped."""

import re
from collections.abc import Iterator, Sequence

from dpci.base.tables import printable
from dpci.base.validation import broken
from dpci.errors import InvalidInput
from dpci.shown.document import NO_TABLE, Document, Facts, Part, Section, Strong, Table, Words

_SPECIAL = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "\\": "\\textbackslash{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
}
_SPECIALS = re.compile("|".join(map(re.escape, _SPECIAL)))


def as_latex(document: Document) -> str:
    """Return the tables of a document, one below the other."""
    notice = [] if document.banner is None else [f"\\textbf{{{_plain(document.banner)}}}"]
    tables = list(_tables(document.parts))
    if not tables:
        raise InvalidInput(f"to_latex() {NO_TABLE}")
    return "\n\n".join([*notice, *tables]) + "\n"


def floating(tables: str, caption: str | None, label: str | None) -> str:
    """Return tables in an environment that LaTeX places, where a caption or a label is given."""
    if not isinstance(caption, str | None):
        raise broken("caption", "a text or None", caption)
    if label is not None and not re.fullmatch(r"[\w:.+/-]+", f"{label}"):
        raise broken("label", "letters, digits and :.+/-_, such as 'tab:odds'", label)
    named = [
        *([] if caption is None else [f"\\caption{{{_plain(caption)}}}"]),
        *([] if label is None else [f"\\label{{{label}}}"]),
    ]
    return "\n".join(["\\begin{table}", "\\centering", *named, f"{tables}\\end{{table}}\n"]) if named else tables


def _tables(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Facts():
                yield _table(("what", "value"), part.rows, part.caption, "ll")
            case Table():
                n_names = 2 if "unit" in part.header else 1
                n_cells = len(part.header) - n_names
                kinds = "l" * len(part.header) if part.of_words else "l" * n_names + "r" * n_cells
                yield _table(part.header, part.rows, part.caption, kinds)
            case Section():
                yield from _tables(part.parts)
            case _:
                pass


def _table(header: Sequence[str], rows: Sequence[Sequence[Words]], caption: str, kinds: str) -> str:
    comment = [f"% {' '.join(printable(caption).split())}"] if caption else []
    head, *body = [f"{' & '.join(map(_marked, row))} \\\\" for row in (header, *rows)]
    begin, end = f"\\begin{{tabular}}{{{kinds}}}", "\\end{tabular}"
    return "\n".join([*comment, begin, "\\toprule", head, "\\midrule", *body, "\\bottomrule", end])


def _marked(words: Words) -> str:
    if isinstance(words, tuple):
        return "".join(map(_marked, words))
    return f"\\textbf{{{_marked(words.words)}}}" if isinstance(words, Strong) else _plain(str(words))


def _plain(text: str) -> str:
    return _SPECIALS.sub(lambda found: _SPECIAL[found[0]], printable(text))
