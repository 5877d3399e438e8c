"""``ReleasedSchema``: a public schema whose bounds and lists were released, and what they cost."""

from typing import TYPE_CHECKING, Any

from dpci.approval.approvable import Approvable
from dpci.base.tables import change_text, printable
from dpci.budgets import Budget
from dpci.described.record import SchemaRecord
from dpci.released.bounds import numbers_of
from dpci.released.model import ReleaseFacts
from dpci.released.result import Shown
from dpci.schema.columns import CategoricalColumn
from dpci.schema.table import Schema
from dpci.shown.document import BANNER, Document, Facts, Paragraph, Table
from dpci.shown.text import as_text

if TYPE_CHECKING:
    from dpci.approval.statement import Statement


from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from dpci.base.optional import optional
from dpci.schema.columns import CategoricalTarget, Column, NumericColumn, NumericTarget, Target
from dpci.shown.displayed import Displayed

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class DescribedColumn:
    """Public facts of one column of a released schema.

    Attributes
    ----------
    name : str
        Column of the table.
    kind : str
        "number", "category" or "classes".
    is_target : bool
        Whether it is the column that is predicted.
    is_released : bool
        Whether its bounds or categories were released; otherwise they were known.
    lower, upper : float or None
        Bounds of a number, in its unit; values beyond them are moved there.
    left_out : float or None
        Share of the values that a released bound leaves out at most, on either side, up to its rank error.
    categories : tuple of str
        Categories or classes.
    reference : str or None
        Category against which the coefficients of the others are.
    half_count : float or None
        Number of rows at which a category of a released list is listed in half of the releases.
    unit : str
        Unit of a number.
    source : str
        Reason why all this is public.
    """

    name: str
    kind: Literal["number", "category", "classes"]
    is_target: bool
    is_released: bool
    lower: float | None = None
    upper: float | None = None
    left_out: float | None = None
    categories: tuple[str, ...] = ()
    reference: str | None = None
    half_count: float | None = None
    unit: str = ""
    source: str = ""

    @property
    def extent(self) -> str:
        """Bounds or categories, in words."""
        if self.lower is not None:
            return f"{self.lower:g} to {self.upper:g}" + (f" ({printable(self.unit)})" if self.unit else "")
        shown = ", ".join(map(printable, self.categories))
        return shown if self.reference is None else f"{shown}; reference {printable(self.reference)}"

    @property
    def beyond(self) -> str:
        """Values and categories that are not in it, in words."""
        if self.left_out is not None:
            return f"up to about {self.left_out:.1%} on either side"
        if self.half_count is not None:
            return f"categories of fewer than about {self.half_count:,.0f} rows"
        return "-"


@dataclass(frozen=True, repr=False)
class SchemaDescription(Displayed):
    """Columns of a released schema, with what is known of each. Post-processing: it costs nothing, and has no data.

    Attributes
    ----------
    columns : tuple
        Columns in the order of the schema, the target last. Each has a ``name``, its ``kind`` ("number", "category" or
        "classes"), whether it ``is_target`` and ``is_released``, and its ``unit`` and ``source``. Numbers have bounds,
        ``lower`` and ``upper``, and the share of the values that released ones leave out on either side, ``left_out``.
        Others have ``categories`` and a ``reference``, and released lists the number of rows at which a category is
        listed in half of the releases, ``half_count``.
    budget : PureDP, ZCDP or ApproxDP
        Budget that was spent on all released bounds and categories together.
    private : bool
        Whether the release was private; False with a seed.
    """

    columns: tuple[DescribedColumn, ...]
    budget: Budget
    private: bool

    @classmethod
    def of(cls, record: SchemaRecord) -> "SchemaDescription":
        """Return the description of a release."""
        table, found = record.table, record.found
        levels = found.specs(record.n_samples, record.persons, record.neighbors).levels
        half_count = None if levels is None else levels.half_count

        def described(part: Column | Target, name: str, *, is_target: bool) -> DescribedColumn:
            facts: dict[str, Any] = {"name": name, "is_target": is_target, "is_released": name in found.columns}
            facts |= {"source": part.source, "unit": getattr(part, "unit", "")}
            if isinstance(part, NumericColumn | NumericTarget):
                left_out = found.share if name in found.ranges else None
                return DescribedColumn(**facts, kind="number", lower=part.lower, upper=part.upper, left_out=left_out)
            if isinstance(part, CategoricalColumn):
                facts |= {"categories": part.categories, "reference": part.reference}
                return DescribedColumn(
                    **facts, kind="category", half_count=half_count if name in found.listed else None
                )
            classes = part.labels if isinstance(part, CategoricalTarget) else part.known
            return DescribedColumn(**facts, kind="classes", categories=classes)

        columns = [described(column, column.name, is_target=False) for column in table.columns]
        target = described(table.target, table.target.column, is_target=True)
        return cls((*columns, target), record.budget, record.private)

    def to_dict(self) -> dict[str, Any]:
        """Return all facts, as JSON can hold them."""
        columns = [{**asdict(column), "categories": list(column.categories)} for column in self.columns]
        return {"columns": columns, "budget": self.budget.parameters(), "private": self.private}

    def to_frame(self) -> "pd.DataFrame":
        """Return the columns as a pandas data frame, whose index has their names.

        Raises
        ------
        MissingExtra
            Without pandas.
        """
        with optional("pandas", extra="pandas", what="to_frame"):
            import pandas as pd  # noqa: PLC0415  # optional
        return pd.DataFrame([asdict(column) for column in self.columns]).set_index("name")

    def summary(self) -> str:
        """Return the columns as a table of text."""
        return as_text(self._document())

    def _document(self) -> Document:
        rows = [
            [
                printable(column.name) + (" (target)" if column.is_target else ""),
                column.extent,
                "released" if column.is_released else "known",
                column.beyond,
            ]
            for column in self.columns
        ]
        table = Table(["column", "bounds or categories", "how", "left out"], rows, of_words=True)
        cost = Facts([("budget spent", f"{self.budget}, on all released columns together")])
        return Document(parts=[table, cost], banner=BANNER[self.private])

    def __repr__(self) -> str:
        return self.summary()


class _ShownSchema(Shown):
    """A released schema as commands show it."""

    def numbers(self, view: Any) -> dict[str, Any]:  # noqa: ANN401, ARG002  # of a room that is built on this one
        """Return bounds and cost for programs to read."""
        found = self.result
        bounds = {name: {"lower": lower, "upper": upper} for name, (lower, upper) in found.bounds.items()}
        n = {"n_samples": found.n_samples}
        lists = {name: list(categories) for name, categories in found.categories.items()}
        shown = {"bounds": bounds, "categories": lists, "share": found.share}
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

    def describe(self) -> SchemaDescription:
        """Return the columns of the schema with their bounds or categories, and what these leave out; costs nothing."""
        return SchemaDescription.of(self._record)

    def summary(self) -> str:
        """Table of the bounds and categories, and what they cost."""
        return as_text(self._document())

    def _document(self) -> Document:
        record = self._record
        bounds = [[name, f"{lower:g}", f"{upper:g}"] for name, (lower, upper) in self.bounds.items()]
        lists = [[name, ", ".join(map(printable, found))] for name, found in self.categories.items()]
        unit = "record" if record.persons is None else "person"
        left_out = f"up to about {self.share:.1%} of the values on either side" if self.share else ""
        facts = [
            ("budget spent", str(self.spent)),
            ("neighbours", change_text(record.neighbors, unit)),
            *([] if record.persons is None else [("persons", record.persons.kept)]),
            ("n (public)" if record.neighbors == "add_remove" else "n", f"{record.n_samples:,}"),
            *([("left out", left_out)] if left_out else []),
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
