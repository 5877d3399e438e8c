"""``Approvable``: released results of which an approver can have a report."""

from abc import abstractmethod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpci.ledger.ledger import Ledger
from dpci.released.result import Result, SavedRecord
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema

if TYPE_CHECKING:
    from dpci.approval.statement import Statement


class Approvable(Result[SavedRecord]):
    """A released result of which an approver can have a report."""

    __slots__ = ()

    @abstractmethod
    def _statement(self) -> "Statement":
        """Return what an approver must know of it."""

    def officer_report(
        self,
        path: "str | PathLike[str] | None" = None,
        *,
        ledger: "Ledger | str | PathLike[str] | None" = None,
        schema: Schema | PartialSchema | None = None,
    ) -> str:
        """Return a document for whoever has to approve the release, in Markdown or HTML (docs/approve.md).

        It says who is protected, what the budget covers and means in plain words, what the guarantee assumes, and what
        the file can and cannot show. It answers the points of NIST SP 800-226 that this release decides, and ends with
        a checklist to sign. It is what ``dpci report --officer`` writes.

        Parameters
        ----------
        path : path, optional
            File to write the document to as well, in UTF-8; one that exists is replaced. A name that ends in
            ``.html`` or ``.htm`` makes it a page, any other Markdown.
        ledger : Ledger or path, optional
            The ledger that paid, or its file: the document says whether it agrees. It is only read.
        schema : Schema or PartialSchema of dpci.schema, optional
            The schema that was agreed on before the release: the document says whether that of the release agrees.
            With gaps where the release found bounds.

        Returns
        -------
        str
            The document.

        Raises
        ------
        InvalidInput
            For another ``ledger`` or ``schema`` than that.
        LedgerError
            For a file that is missing, damaged or no ledger.
        OSError
            If the document cannot be written.
        """
        document = approval_of(self, path, ledger=ledger, schema=schema)
        if path is not None:
            Path(path).write_text(document, encoding="utf-8")
        return document


def approval_of(
    result: Result[Any],
    path: "str | PathLike[str] | None",
    *,
    ledger: "Ledger | str | PathLike[str] | None",
    schema: Schema | PartialSchema | None,
    names: tuple[str, str] = ("", ""),
) -> str:
    """Return the report of a released result for whoever has to approve it, as a file of this name holds it.

    ``names``: those of the files of the result and of the schema, empty where they are not known.
    """
    from dpci.approval.document import Names, approval_document  # noqa: PLC0415  # most programs write no document
    from dpci.shown.html import as_html  # noqa: PLC0415  # as above
    from dpci.shown.markdown import as_markdown  # noqa: PLC0415  # as above

    document = approval_document(statement_of(result), ledger=ledger, schema=schema, names=Names(*names))
    is_page = path is not None and Path(path).suffix.lower() in {".html", ".htm"}
    return as_html(document) if is_page else as_markdown(document)


def statement_of(result: Result[Any]) -> "Statement":
    """Return what an approver must know of a released result, for the rooms that show it."""
    statement: Statement = result._statement()  # noqa: SLF001  # of this module's own class
    return statement
