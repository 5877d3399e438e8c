"""``SchemaDescription``: the columns of a released schema as a table, which costs nothing more."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from dpci.base.optional import optional
from dpci.base.tables import printable
from dpci.budgets import Budget
from dpci.described.record import SchemaRecord
from dpci.schema.columns import CategoricalColumn, CategoricalTarget, Column, NumericColumn, NumericTarget, Target
from dpci.shown.displayed import Displayed
from dpci.shown.document import BANNER, Document, Facts, Table
from dpci.shown.text import as_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SchemaDescription"]


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
