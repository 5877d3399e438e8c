"""``SchemaDescription``: columns of a released schema with their bounds, categories and counts, for people to read."""

import math
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from dpci.base.optional import optional
from dpci.base.tables import printable
from dpci.budgets import Budget
from dpci.described.record import SchemaRecord
from dpci.released.bounds import OF_OTHERS
from dpci.released.counts import LEVEL, NumberCounts, Share, half_width, step_named
from dpci.schema.columns import CategoricalColumn, CategoricalTarget, Column, NumericColumn, NumericTarget, Target
from dpci.shown.displayed import Displayed
from dpci.shown.document import BANNER, Bars, Document, Facts, Part, Table
from dpci.shown.html import write_html
from dpci.shown.text import as_text

if TYPE_CHECKING:
    import pandas as pd

_QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Quantile:
    """Quantile of the values of a column, with an interval that accounts for the noise.

    Attributes
    ----------
    value : float
        Estimate.
    lower, upper : float or None
        Ends of the interval; None where nothing public bounds it.
    """

    value: float
    lower: float | None
    upper: float | None

    def __str__(self) -> str:
        lower, upper = ("-" if end is None else _shown(end) for end in (self.lower, self.upper))
        return f"{_shown(self.value)} ({lower} to {upper})"


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
    counts : tuple of int
        Rows in each of the 20 parts between the bounds, or with each category, as they were released: with noise, which
        makes some negative. Empty where none were.
    count_error : float or None
        Error that a count exceeds in 5% of the releases at most.
    edges : tuple of float
        Ends of the 20 parts, which have the same width, after the transform of the column.
    shares : tuple of Share
        Share of each category with a 95% interval for the noise. Empty where there are no counts.
    beyond, missing : Share or None
        Shares of the values beyond the bounds and of missing ones, each with a 95% interval.
    quartiles : tuple of Quantile
        First quartile, median and third quartile of the values, each with a 95% interval: of the table itself, for the
        noise and the width of the parts.
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
    counts: tuple[int, ...] = ()
    count_error: float | None = None
    edges: tuple[float, ...] = ()
    shares: tuple[Share, ...] = ()
    beyond: Share | None = None
    missing: Share | None = None
    quartiles: tuple[Quantile, ...] = ()

    @property
    def extent(self) -> str:
        """Bounds or categories, in words."""
        if self.lower is not None:
            return f"{self.lower:g} to {self.upper:g}" + (f" ({printable(self.unit)})" if self.unit else "")
        shown = ", ".join(map(printable, self.categories))
        return shown if self.reference is None else f"{shown}; reference {printable(self.reference)}"

    @property
    def excluded(self) -> str:
        """Values and categories that are not in it, in words."""
        if self.beyond is not None:
            return str(self.beyond)
        if self.left_out is not None:
            return f"up to about {self.left_out:.1%} on either side"
        if self.half_count is not None:
            return f"categories of fewer than about {self.half_count:,.0f} rows"
        return "-"

    @property
    def bars(self) -> Bars | None:
        """Its counts as a figure; None without counts."""
        if not self.counts:
            return None
        unit = f" ({self.unit})" if self.unit else ""
        if self.lower is None or self.upper is None:
            return Bars(self.name, self.categories, self.counts)
        return Bars(self.name + unit, tuple(f"{_shown(a)} to {_shown(b)}" for a, b in pairwise(self.edges)),
                    self.counts, (_shown(self.lower), _shown(self.upper)))  # fmt: skip


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
        listed in half of the releases, ``half_count``. With ``counts_share=`` of the :class:`dpci.schema.PartialSchema`
        released columns have ``counts`` and their ``count_error``, and numbers ``quartiles``, and the shares of the
        values ``beyond`` the bounds and ``missing``.
    beyond : Share or None
        Share of the records with a number beyond its released bounds, with a 95% interval; None without
        ``beyond_share=``.
    units : str
        "records", or "persons".
    budget : PureDP, ZCDP or ApproxDP
        Budget that was spent on all released bounds, categories and counts together.
    private : bool
        Whether the release was private; False with a seed.
    """

    columns: tuple[DescribedColumn, ...]
    beyond: Share | None
    units: str
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
                share = found.share if found.share is None or name not in found.zeros else max(found.share, OF_OTHERS)
                left_out = share if name in found.ranges else None
                column = DescribedColumn(**facts, kind="number", lower=part.lower, upper=part.upper, left_out=left_out)
            elif isinstance(part, CategoricalColumn):
                facts |= {"categories": part.categories, "reference": part.reference}
                listed = half_count if name in found.listed else None
                column = DescribedColumn(**facts, kind="category", half_count=listed)
            else:
                classes = part.labels if isinstance(part, CategoricalTarget) else part.known
                return DescribedColumn(**facts, kind="classes", categories=classes)
            return _counted(column, record)

        columns = [described(column, column.name, is_target=False) for column in table.columns]
        target = described(table.target, table.target.column, is_target=True)
        units = "records" if record.persons is None else "persons"
        return cls((*columns, target), found.beyond(record.n_samples), units, record.budget, record.private)

    def to_dict(self) -> dict[str, Any]:
        """Return all facts, as JSON can hold them."""
        lists = ("categories", "counts", "edges", "shares", "quartiles")
        columns = [
            {**asdict(column), **{name: list(asdict(column)[name]) for name in lists}} for column in self.columns
        ]
        beyond = None if self.beyond is None else asdict(self.beyond)
        return {"columns": columns, "beyond": beyond, "budget": self.budget.parameters(), "private": self.private}

    def to_frame(self) -> "pd.DataFrame":
        """Return the columns as a pandas data frame, whose index has their names.

        Raises
        ------
        MissingExtra
            Without pandas.
        """
        with optional("pandas", extra="pandas", what="to_frame"):
            import pandas as pd  # noqa: PLC0415  # optional
        return pd.DataFrame([vars(column) for column in self.columns]).set_index("name")

    def summary(self) -> str:
        """Return the columns as tables of text."""
        return as_text(self._document())

    def to_html(self, path: "str | PathLike[str] | None" = None, *, title: str | None = None) -> str:
        """Return the columns as one self-contained HTML page with a small plot of each, and write it to ``path``."""
        title = "A table under differential privacy" if title is None else title
        return write_html(replace(self._document(), title=title), path)

    def _document(self) -> Document:
        rows = [
            [_name(column), column.extent, "released" if column.is_released else "known", column.excluded]
            for column in self.columns
        ]
        table = Table(["column", "bounds or categories", "how", "left out"], rows, of_words=True)
        facts = [("budget spent", f"{self.budget}, on all released columns together")]
        if self.beyond is not None:
            facts.insert(
                0, ("beyond bounds", f"{self.beyond} of the {self.units} have a number beyond released bounds")
            )
        return Document(parts=[table, *self._counts(), Facts(facts)], banner=BANNER[self.private])

    def _counts(self) -> list[Part]:
        """Return the tables and figures of counts."""
        counted = [column for column in self.columns if column.counts]
        if not counted:
            return []
        missing = any(column.missing is not None for column in counted)
        numbers = [
            [_name(column), *map(str, column.quartiles), *([str(column.missing or "-")] if missing else [])]
            for column in counted
            if column.quartiles
        ]
        names = ["column", "first quartile", "median", "third quartile", *(["missing"] if missing else [])]
        lists = [
            [_name(column), printable(category), f"{max(count, 0):,}", str(share)]
            for column in counted
            if not column.quartiles
            for category, count, share in zip(column.categories, column.counts, column.shares, strict=True)
        ]
        most = max(column.count_error or 0.0 for column in counted)
        errors = f"a number of rows is off by more than {most:,.0f} in 5% of the releases"
        note = f"in brackets {LEVEL:.0%} intervals for the values of this table, which allow for noise and 20 parts"
        return [
            *([Table(names, numbers, f"Numbers; {note}", of_words=True)] if numbers else []),
            *([Table(["column", "category", "rows", "share"], lists, f"Categories; {errors}", of_words=True)]
              if lists else []),
            *[bars for column in counted if (bars := column.bars) is not None],
        ]  # fmt: skip

    def __repr__(self) -> str:
        return self.summary()


def _shown(number: float) -> str:
    return f"{number:,.0f}" if 1e3 <= abs(number) < 1e9 else f"{number:.4g}"


def _name(column: DescribedColumn) -> str:
    return printable(column.name) + (" (target)" if column.is_target else "")


def _counted(column: DescribedColumn, record: SchemaRecord) -> DescribedColumn:
    """Return a column with its counts, where these were released."""
    step = step_named(record.steps, "column_counts")
    counts = () if record.counts is None else record.counts.cells.get(column.name, ())
    if step is None or not counts:
        return column
    error = half_width(step)
    if column.lower is None or column.upper is None:
        shares = tuple(Share.of_cells((count,), len(counts), sum(counts), step) for count in counts)
        return replace(column, counts=tuple(counts), count_error=error, shares=shares)
    part = next((each for each in record.table.columns if each.name == column.name), None)
    transform = part.transform if isinstance(part, NumericColumn) else "none"
    found = NumberCounts(
        lower=column.lower,
        upper=column.upper,
        range=record.ranges.get(column.name),
        counts=tuple(counts),
        step=step,
        transform=transform,
    )
    quartiles = [found.quantile(p) for p in _QUARTILES]
    may_miss = isinstance(part, NumericColumn) and part.missing != "error"
    return replace(
        column,
        counts=tuple(counts[1:-2]),
        count_error=error,
        edges=tuple(found.ends.tolist()),
        beyond=found.beyond,
        missing=found.missing if may_miss else None,
        quartiles=tuple(
            Quantile(value, *(end if math.isfinite(end) else None for end in ends)) for value, *ends in quartiles
        ),
    )
