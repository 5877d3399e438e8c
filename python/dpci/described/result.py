"""``ReleasedSchema``: a public schema whose bounds and lists were released, and what they cost."""

from os import PathLike
from typing import TYPE_CHECKING, Any

from dpci.approval.approvable import Approvable
from dpci.base.tables import change_text, printable
from dpci.budgets import Budget
from dpci.described.description import SchemaDescription
from dpci.described.record import SchemaRecord
from dpci.released.bounds import numbers_of
from dpci.released.counts import ReleasedCounts
from dpci.released.model import ReleaseFacts
from dpci.released.result import Shown
from dpci.schema.columns import CategoricalColumn
from dpci.schema.table import Schema
from dpci.shown.document import BANNER, Document, Facts, Paragraph, Table
from dpci.shown.text import as_text

if TYPE_CHECKING:
    from dpci.approval.statement import Statement


class _ShownSchema(Shown):
    """A released schema as commands show it."""

    def numbers(self, view: Any) -> dict[str, Any]:  # noqa: ANN401, ARG002  # of a room that is built on this one
        """Return bounds and cost for programs to read."""
        found = self.result
        bounds = {name: {"lower": lower, "upper": upper} for name, (lower, upper) in found.bounds.items()}
        n = {"n_samples": found.n_samples}
        lists = {name: list(categories) for name, categories in found.categories.items()}
        counted = {} if found.counts is None else {"counts": found.describe().to_dict()}
        shown = {"bounds": bounds, "categories": lists, "share": found.share, **counted}
        return {"private": found.private, **n, **shown, "privacy": found.privacy}


class ReleasedSchema(ReleaseFacts[SchemaRecord, Budget], Approvable[SchemaRecord]):
    """A schema whose bounds and lists were released. Made by :func:`dpci.release_schema`, never changed.

    The schema is public: every later release may use it, and pays for itself alone. Bounds hold all but a public share
    of the values on either side, up to the rank error; the values beyond them are clipped by a fit.
    """

    __slots__ = ()
    _record: SchemaRecord
    _RECORD, _SHOWN = SchemaRecord, _ShownSchema

    @property
    def schema(self) -> Schema:
        """The public schema, for :func:`dpci.fit` and all others that take one."""
        return self._record.table

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Bounds of the columns whose bounds were released, by their names."""
        numeric = numbers_of(self.schema)
        return {name: (numeric[name].lower, numeric[name].upper) for name in self._record.ranges}

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """Categories of the columns whose list was released, by their names."""
        lists = {column.name: column for column in self.schema.columns if isinstance(column, CategoricalColumn)}
        return {name: lists[name].categories for name in self._record.listed}

    @property
    def share(self) -> float | None:
        """Share of the records that a bound leaves out at most, on either side, up to its rank error; None without."""
        return self._record.share

    @property
    def counts(self) -> ReleasedCounts | None:
        """Released numbers of rows; None without ``beyond_share=`` and ``counts_share=`` of the schema with gaps."""
        return self._record.counts

    def describe(self) -> SchemaDescription:
        """Return the columns of the schema with their bounds or categories, and what these leave out; costs nothing.

        With ``counts_share=`` of the :class:`dpci.schema.PartialSchema` it has histograms, quartiles and the rows of
        each category, too.
        """
        return SchemaDescription.of(self._record)

    def to_html(self, path: "str | PathLike[str] | None" = None, *, title: str | None = None) -> str:
        """Return the description as one self-contained HTML page, with small plots of its counts."""
        return self.describe().to_html(path, title=title)

    def summary(self) -> str:
        """Table of the bounds and categories, and what they cost."""
        return as_text(self._document())

    def _document(self) -> Document:
        record = self._record
        bounds = [[name, f"{lower:g}", f"{upper:g}"] for name, (lower, upper) in self.bounds.items()]
        lists = [[name, ", ".join(map(printable, found))] for name, found in self.categories.items()]
        unit = "record" if record.persons is None else "person"
        left_out = record.found.left_out if self.share else ""
        beyond = record.found.beyond(record.n_samples)
        facts = [
            ("budget spent", str(self.spent)),
            ("neighbours", change_text(record.neighbors, unit)),
            *([] if record.persons is None else [("persons", record.persons.kept)]),
            ("n (public)" if record.neighbors == "add_remove" else "n", f"{record.n_samples:,}"),
            *([("left out", left_out)] if left_out else []),
            *([] if beyond is None else [("beyond bounds", f"{beyond} of the {unit}s have a number beyond them")]),
            *([("not listed", self._not_listed())] if lists else []),
        ]
        tables = [
            *([Table(["column", "lower", "upper"], bounds)] if bounds else []),
            *([Table(["column", "categories"], lists)] if lists else []),
        ]
        note = Paragraph("The schema is public. A release that uses it pays for itself alone.")
        return Document(parts=[*tables, Facts(facts), note], banner=BANNER[self.private])

    def _not_listed(self) -> str:
        record = self._record
        levels = record.found.specs(record.n_samples, record.persons, record.neighbors).levels
        assert levels is not None  # noqa: S101  # for the type checker
        return f"categories with fewer than about {levels.half_count:,.0f} rows, in half of the releases"

    def _statement(self) -> "Statement":
        from dpci.described.approval import approval_of_schema  # noqa: PLC0415  # most programs write no document

        return approval_of_schema(self._record)

    def _short(self) -> tuple[str, ...]:
        n_columns = len(self._record.found.columns)
        return f"{n_columns} released column{'s' if n_columns > 1 else ''}", str(self.spent)
