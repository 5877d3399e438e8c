"""``Displayed``: objects that a notebook shows as a document, and that advise whoever types another library's name."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dpci.base.habits import NAMES, instead
from dpci.shown.document import Document


class Displayed:
    """Object whose content is a document, which a notebook shows in place of its short form."""

    __slots__ = ()
    _HABITS: ClassVar[Mapping[str, str]] = NAMES
    """Advice on names of other libraries."""

    def _document(self) -> Document:
        """Return the content."""
        raise NotImplementedError  # each kind of object has its own

    def _repr_html_(self) -> str:
        """Return the content as the output of a cell of a notebook, which asks for it by this name."""
        from dpci.shown.notebook import as_cell  # noqa: PLC0415  # most programs run in no notebook

        return as_cell(self._document())

    def to_markdown(self) -> str:
        """Return what a page shows before its folds as Markdown."""
        from dpci.shown.markdown import as_markdown  # noqa: PLC0415  # most programs write no such text

        return as_markdown(self._document().unfolded())

    def to_latex(
        self, path: "str | PathLike[str] | None" = None, *, caption: str | None = None, label: str | None = None
    ) -> str:
        r"""Return the tables that a page shows before its folds as LaTeX; needs ``\usepackage{booktabs}``.

        Parameters
        ----------
        path : path, optional
            File to write them to as well; one that exists is replaced.
        caption, label : str, optional
            Caption and label of a ``table`` environment around them. The caption is plain text, not LaTeX.
        """
        from dpci.shown.latex import as_latex, floating  # noqa: PLC0415  # likewise

        text = floating(as_latex(self._document().unfolded()), caption, label)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_great_tables(self) -> Any:  # noqa: ANN401  # the package is optional
        """Return the first table that a page shows as a ``great_tables.GT``, to be styled further; needs great_tables.

        It renders as HTML. ``to_latex`` and ``to_markdown`` are for other documents.
        """
        from dpci.shown.great import as_great_table  # noqa: PLC0415  # likewise

        return as_great_table(self._document().unfolded())

    if not TYPE_CHECKING:  # so that a checker of types refuses unknown names

        def __getattr__(self, name: str) -> object:
            """Refuse an unknown name, with advice where users of other libraries type it by habit."""
            # Advice is about models, which have intervals; any other object has its own names.
            habits = type(self)._HABITS  # noqa: SLF001  # of its own class
            advice = instead(name, habits) if habits is not NAMES or hasattr(type(self), "conf_int") else ""
            message = f"{type(self).__name__!r} object has no attribute {name!r}{advice}"
            raise AttributeError(message, name=name, obj=self)
