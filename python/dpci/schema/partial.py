"""``PartialSchema``: the public description of a table of which some bounds and lists have to be released."""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci.base.validation import check_fraction, in_short
from dpci.data.frames import named_columns
from dpci.errors import InvalidInput
from dpci.schema.cells import check_length, check_target_present, column_of, in_all_columns
from dpci.schema.check import SchemaCheck, check_table, document_of
from dpci.schema.columns import (
    Column,
    Gap,
    NumericColumn,
    Target,
    UnboundedColumn,
    UnboundedTarget,
    UnlistedColumn,
)
from dpci.schema.saved import FileSchema, described_by, plain, plain_column
from dpci.schema.table import Encoding, Schema, Table
from dpci.schema.terms import Spline, Term
from dpci.schema.transforms import forth
from dpci.shown.document import Document

__all__ = ["PartialSchema"]

# Of a column of zeros alone nothing is known.
_OF_ZEROS = (-1.0, 1.0)
_SHARES = ("bounds_share", "beyond_share", "counts_share")


@dataclass(frozen=True, kw_only=True)
class PartialSchema(FileSchema):
    """A :class:`Schema` with gaps: numbers whose bounds nobody knows, and categories whose list nobody knows.

    :func:`dpci.release_schema` releases them, and :func:`dpci.fit` does so within the budget of the fit. All of
    it is public.

    Parameters
    ----------
    columns : tuple of UnboundedColumn, UnlistedColumn, NumericColumn and CategoricalColumn
        Columns of a :class:`Schema`, at least one of them an :class:`UnboundedColumn` or an :class:`UnlistedColumn`. A
        spline of a column without bounds is refused, because its knots lie between bounds.
    target : UnboundedTarget, ClassTarget, CategoricalTarget or NumericTarget
        Target of a :class:`Schema`, or a number whose bounds nobody knows.
    terms, intercept, encoding, name, title, source, licence, persons
        The other fields of a :class:`Schema`.
    bounds_share : float, optional
        Share of the budget of a fit for what the schema lacks, between 0 and 1. None: the smallest of eight from 2.5%
        to 25% at which bounds leave out no more than twice this share of the values on either side, or 25%.
    beyond_share : float, optional
        Share of what the gaps cost for the number of records with a number beyond its released bounds. None: it is not
        released.
    counts_share : float, optional
        Share of what the gaps cost for counts of each of them: the records in 20 parts of the range between the bounds,
        or with each category, of which :meth:`dpci.ReleasedSchema.describe` makes medians and quartiles. They also
        choose a reference for an :class:`UnlistedColumn` that names none. None: they are not released.

    Raises
    ------
    InvalidInput
        For columns without a gap, a spline of a gap, and all that a :class:`Schema` refuses.

    Examples
    --------
    >>> from dpci.schema import ClassTarget
    >>> partial = PartialSchema(
    ...     columns=(UnboundedColumn(name="income"), NumericColumn(name="age", lower=0, upper=100)),
    ...     target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
    ... )
    >>> [column.name for column in partial.gaps]
    ['income']
    """

    columns: tuple[Column | Gap, ...]
    target: Target | UnboundedTarget
    terms: tuple[Term, ...] = ()
    intercept: bool = True
    encoding: Encoding = "unit_norm"
    name: str = ""
    title: str = ""
    source: str = ""
    licence: str = ""
    persons: str = ""
    bounds_share: float | None = None
    beyond_share: float | None = None
    counts_share: float | None = None

    def __post_init__(self) -> None:
        columns: object = self.columns
        if not isinstance(columns, Sequence) or not all(isinstance(c, Column | Gap) for c in columns):
            raise InvalidInput(
                "columns must be a sequence of UnboundedColumn, UnlistedColumn, NumericColumn and CategoricalColumn, "
                f"got columns={in_short(columns)}"
            )
        object.__setattr__(self, "columns", tuple(columns))
        for name in _SHARES:
            if (share := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_fraction(name, share))
        if (both := sum(filter(None, (self.beyond_share, self.counts_share)))) >= 1.0:
            raise InvalidInput(f"beyond_share and counts_share must add up to less than 1, got {both:g}")
        if not self.gaps:
            raise InvalidInput("columns must have an UnboundedColumn or an UnlistedColumn, or the target an "
                               "UnboundedTarget, got none")  # fmt: skip
        if self.beyond_share is not None and not self.unbounded:
            given = f"beyond_share={self.beyond_share:g}"
            raise InvalidInput(f"{given} requires a column or target without bounds, got none (leave it out)")
        unknown = {column.name for column in self.unbounded}
        # What is wrong with the rest is known beforehand.
        for term in self.blank.terms:
            for factor in term.factors:
                if isinstance(factor, Spline) and factor.column in unknown:
                    raise InvalidInput(
                        f"a spline must be of a column with bounds, got one of {factor.column!r} (take a NumericColumn "
                        "with public bounds, or poly(x, 2) of the column as it is)"
                    )

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Columns whose bounds or lists are not known, the target last."""
        return (*(column for column in self.columns if isinstance(column, Gap)), *self._of_target)

    @property
    def unbounded(self) -> tuple[UnboundedColumn, ...]:
        """Numbers whose bounds are not known, the target last."""
        return (*(column for column in self.columns if isinstance(column, UnboundedColumn)), *self._of_target)

    @property
    def _of_target(self) -> tuple[UnboundedColumn, ...]:
        return (self.target.as_column(),) if isinstance(self.target, UnboundedTarget) else ()

    @property
    def unlisted(self) -> tuple[UnlistedColumn, ...]:
        """Categories whose lists are not known."""
        return tuple(column for column in self.columns if isinstance(column, UnlistedColumn))

    @functools.cached_property
    def blank(self) -> Schema:
        """The schema with the public range of each gap, or [-1, 1], for its bounds, and public categories alone."""
        return self.completed({}, {}, source="")

    def completed(
        self,
        bounds: Mapping[str, tuple[float, float] | None],
        levels: Mapping[str, Iterable[str]],
        *,
        source: str,
    ) -> Schema:
        """Return the schema with these bounds and levels by the names of the gaps; ``source``: why they are public.

        A gap without bounds gets its public range, or [-1, 1], and so does one whose transform leaves nothing between
        its bounds.
        """
        # Counts choose the reference of a list, and one category is compared with none; a matrix has a column.
        is_compared = (
            self.counts_share is not None
            and not self.terms
            and any(not isinstance(column, UnlistedColumn) or column.categories for column in self.columns)
        )

        def filled(column: Column | Gap) -> Column:
            if isinstance(column, UnboundedColumn):
                return _bounded(column, bounds.get(column.name), source)
            if isinstance(column, UnlistedColumn):
                found = column.listed(levels.get(column.name, ()), source=source)
                is_one = is_compared and len(found.categories) == 1
                return dataclasses.replace(found, reference=column.other) if is_one else found
            return column

        target = self.target
        if isinstance(target, UnboundedTarget):
            found = bounds.get(target.column) or target.as_column().range or _OF_ZEROS
            target = target.bounded(*found, source=source)
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(Schema)}
        return Schema(**{**fields, "columns": tuple(map(filled, self.columns)), "target": target})

    def check(self, table: Table, *, persons: str | None = None) -> SchemaCheck:
        """Return what the schema would do to a table, as :meth:`Schema.check` does, but for what has no bounds yet.

        It finds missing values, spellings, and cells of the wrong kind. Not private: it is for the holder of the data.

        Raises
        ------
        InvalidInput
            For a table without a column of the schema, or with columns of different lengths.
        """
        n_rows, found = check_table(self.columns, self.target, (self.persons, persons), named_columns(table))
        return SchemaCheck(n_rows, tuple(found))

    def numbers(self, table: Any) -> NDArray[np.float64]:  # noqa: ANN401  # tables of any library
        """(n, unbounded) numbers of a table after their transforms; NaN for missing values where these are allowed."""
        cells = self.gap_cells(table)
        try:
            for column in self._of_target:
                check_target_present(column.name, cells[column.name])
            numbers = [forth(column.transform, column.numbers(cells[column.name])) for column in self.unbounded]
            return np.column_stack(numbers)
        except InvalidInput as error:
            refused = {column.name: cells[column.name] for column in self.unbounded if column.missing == "error"}
            raise in_all_columns(error, refused) from None

    def levels(self, table: Any) -> tuple[NDArray[np.float64], list[list[str]]]:  # noqa: ANN401  # as above
        """(n, unlisted) numbers of the levels in a table, and their labels, column by column."""
        cells = self.gap_cells(table)
        found = [column.levels(cells[column.name]) for column in self.unlisted]
        return np.column_stack([codes for codes, _ in found]), [labels for _, labels in found]

    def gaps_of(self, table: Any) -> NDArray[np.float64]:  # noqa: ANN401  # as above
        """(n, gaps) numbers and levels of a table; errors of both."""
        numbers = [self.numbers(table)] if self.unbounded else []
        levels = [self.levels(table)[0]] if self.unlisted else []
        return np.column_stack([*numbers, *levels])

    def gap_cells(self, table: Any) -> dict[str, NDArray[Any]]:  # noqa: ANN401  # as above
        """Return the cells of the gaps of a table."""
        cells = {column.name: column_of(table, column.name) for column in self.gaps}
        n_rows = len(cells[self.gaps[0].name])
        for name, values in cells.items():
            check_length(name, values, n_rows)
        return cells

    def _document(self) -> Document:
        return document_of(self, "Schema with gaps")

    @property
    def digest(self) -> str:
        """SHA-256 of the whole description, names and sources among it: equal for files that say the same."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def to_dict(self, *, defaults: bool = False) -> dict[str, Any]:
        """Plain dictionary, the inverse of `from_dict`; fields at their defaults are left out unless asked for."""
        described = self.blank.to_dict(defaults=defaults)
        if isinstance(self.target, UnboundedTarget):
            described["target"] = {"kind": "unbounded", **plain(self.target, defaults=defaults)}
        given = {name: getattr(self, name) for name in _SHARES}
        share = {name: value for name, value in given.items() if value is not None}
        columns = [plain_column(column, defaults=defaults) for column in self.columns]
        return {**described, **share, "columns": columns}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "PartialSchema":
        """Return the schema of a dictionary as TOML or JSON gives it; see docs/released_bounds.md for the layout."""
        found: PartialSchema = described_by(cls, description)
        return found

    @classmethod
    def from_formula(cls, formula: str, base: "PartialSchema") -> "PartialSchema":
        """Return the schema of a model that a formula describes; see :meth:`Schema.from_formula`."""
        model = Schema.from_formula(formula, base.blank)
        used = {column.name for column in model.columns}
        return dataclasses.replace(
            base,
            columns=tuple(column for column in base.columns if column.name in used),
            target=base.target if model.target == base.blank.target else model.target,
            terms=model.terms,
            intercept=model.intercept,
        )


def known_of(schema: Schema | PartialSchema) -> Schema:
    """Return the schema itself, or with gaps the blank one."""
    return schema.blank if isinstance(schema, PartialSchema) else schema


def schema_from(description: Any) -> Schema | PartialSchema:  # noqa: ANN401  # a file can hold anything
    """Return the schema of a dictionary as TOML or JSON gives it, which may have gaps."""
    columns = description.get("columns") if isinstance(description, Mapping) else None
    listed = columns if isinstance(columns, list) else []
    target = description.get("target") if isinstance(description, Mapping) else None
    of_target = [target] if isinstance(target, Mapping) else []
    kinds = [part.get("kind") for part in [*listed, *of_target] if isinstance(part, Mapping)]
    has_gaps = "unbounded" in kinds or "unlisted" in kinds
    return (PartialSchema if has_gaps else Schema).from_dict(description)


def _bounded(column: UnboundedColumn, bounds: tuple[float, float] | None, source: str) -> NumericColumn:
    try:
        return column.bounded(*(bounds or column.range or _OF_ZEROS), source=source)
    except InvalidInput:
        return column.bounded(*(column.range or _OF_ZEROS), source=source)
