"""``Displayed``: objects that a notebook shows as a document."""

from dpci.shown.document import Document


class Displayed:
    """Object whose content is a document, which a notebook shows in place of its short form."""

    __slots__ = ()

    def _document(self) -> Document:
        """Return the content."""
        raise NotImplementedError  # each kind of object has its own

    def _repr_html_(self) -> str:
        """Return the content as the output of a cell of a notebook, which asks for it by this name."""
        from dpci.shown.notebook import as_cell  # noqa: PLC0415  # most programs run in no notebook

        return as_cell(self._document())
