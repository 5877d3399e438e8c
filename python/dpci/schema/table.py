"""``Schema``: the public description of a table, which turns records into bounded rows without looking at the data."""

import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dpci.base.codec import Form, has_fields
from dpci.base.validation import check_choice, check_flag, composed, in_short
from dpci.data.arrays import OnViolation
from dpci.data.frames import is_lazy, named_columns
from dpci.data.storage import EncodedRows, storage
from dpci.errors import InvalidInput
from dpci.rows import Ball, Blocks
from dpci.schema.cells import categories_of, check_length, column_of, drops, has_column, key_of, outside_fits
from dpci.schema.check import SchemaCheck, check_products, check_table, document_of
from dpci.schema.columns import CategoricalColumn, ClassTarget, Column, NumericColumn, NumericTarget, Target
from dpci.schema.design import (
    ROUNDING_MARGIN,
    Part,
    Values,
    coded_parts,
    coded_rows,
    coefficient_units,
    constant_term,
    from_units,
    own_scales,
    single_parts,
    sparse_rows,
    written,
)
from dpci.schema.formula import parse, target_of
from dpci.schema.saved import FileSchema, described_by, essential, plain, plain_column
from dpci.schema.terms import Levels, Missing, Term, resolved
from dpci.shown.document import Document

__all__ = ["Encoded", "Schema", "Table"]

Encoding: TypeAlias = Literal["unit_norm", "full_range"]


class Table(Protocol):
    """A mapping of columns, a data frame or a structured array: anything with ``table[name]``."""

    def __getitem__(self, name: Any, /) -> Any:  # noqa: ANN401  # keys and columns of every such type
        """Return a column."""


_TEXTS = ("name", "title", "source", "licence", "persons")


class Encoded(NamedTuple):
    """Rows, targets and the names of the columns of the rows."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Schema(FileSchema):
    """Everything public about a table: its columns, their bounds and categories, the target, and the terms of a model.

    Every row that `transform` can ever give lies in `rows`: each number is within its own bounds, the indicators of a
    categorical column hold at most a single 1, and a product is at most that of its factors. The bounds depend on the
    schema alone.

    Parameters
    ----------
    columns : tuple of NumericColumn and CategoricalColumn
        In the order in which the matrix is built. Columns of the table that are not named here are ignored.
    target : ClassTarget, CategoricalTarget or NumericTarget
        The column to be predicted: two classes, several, or a number.
    terms : tuple of Term
        Powers, categories, splines and their products, of which the matrix is made. Each column is in one of them.
        None given: each column by itself.
    intercept : bool
        Whether the model has an intercept, which decides how terms are coded (:attr:`has_constant`).
    encoding : {"unit_norm", "full_range"}
        "unit_norm": numbers are in [-1, 1] or [0, 1], indicators are 0 and 1, and all columns are divided by sqrt(k), k
        the columns of the table or the terms, so that every row has norm at most 1. "full_range", for fits with
        ``rows=schema.rows``: nothing is divided by sqrt(k). Numbers are in units of their range, from -1/2 to 1/2
        ("symmetric") or from 0 to 1 ("unit"), and indicators are 0 and 1: a parameter is what the whole range of a
        number adds, or a category against the reference.
    name, title, source, licence : str
        Name and title of the table, the author of its description, and the terms on which it may be used.
    persons : str
        The column of ids where a person may have several rows; "": every row is one record. It is not encoded.

    Examples
    --------
    >>> schema = Schema(
    ...     columns=(
    ...         NumericColumn(name="age", lower=18, upper=100),
    ...         CategoricalColumn(name="sex", categories=("F", "M"), reference="F"),
    ...     ),
    ...     target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
    ... )
    >>> X, y, names = schema.transform({"age": [18, 59], "sex": ["M", "F"], "ill": ["no", "yes"]})
    >>> names, y.tolist()
    (('age', 'sex=M'), [-1.0, 1.0])
    """

    columns: tuple[Column, ...]
    target: Target
    terms: tuple[Term, ...] = ()
    intercept: bool = True
    encoding: Encoding = "unit_norm"
    name: str = ""
    title: str = ""
    source: str = ""
    licence: str = ""
    persons: str = ""

    def __post_init__(self) -> None:
        columns: object = self.columns
        if not isinstance(columns, Sequence) or not all(
            isinstance(c, NumericColumn | CategoricalColumn) for c in columns
        ):
            gaps = " (bounds and lists have to be released: describe the table by a PartialSchema)"
            hint = gaps * ("UnboundedColumn" in repr(columns) or "UnlistedColumn" in repr(columns))
            raise InvalidInput(
                f"columns must be a sequence of NumericColumn and CategoricalColumn, got {in_short(columns)}{hint}"
            )
        object.__setattr__(self, "columns", tuple(columns))
        target: object = self.target
        if not isinstance(target, Target):
            hint = " (describe the table by a PartialSchema)" * ("UnboundedTarget" in repr(target))
            raise InvalidInput(
                f"target must be a ClassTarget, a CategoricalTarget or a NumericTarget, got {in_short(target)}{hint}"
            )
        check_choice("encoding", self.encoding, get_args(Encoding))
        if not self.columns:
            raise InvalidInput("a schema must name at least one column, got none")
        self._take_texts()
        ids = [self.persons] if self.persons else []
        used = [*ids, self.target.column, *(column.name for column in self.columns)]
        if repeated := sorted({name for name in used if used.count(name) > 1}):
            raise InvalidInput(f"a schema must name a column once, target included, got {repeated} twice")
        self._take_terms()
        names = self.names
        if len(set(names)) < len(names):
            repeated = sorted({name for name in names if names.count(name) > 1})
            raise InvalidInput(
                f"columns of the matrix must have different names, got {repeated} twice (rename a column)"
            )

    def _take_texts(self) -> None:
        for field in _TEXTS:
            if not isinstance(text := getattr(self, field), str):
                what = "the name of a column" if field == "persons" else "text"
                raise InvalidInput(f"{field} must be {what}, got {field}={in_short(text)}")
        object.__setattr__(self, "persons", composed(self.persons))
        for part in (*self.columns, self.target):
            for name in ("source", "unit"):
                if not isinstance(text := getattr(part, name, ""), str):
                    raise InvalidInput(f"the {name} of a column must be text, got {name}={text!r}")

    def _take_terms(self) -> None:
        check_flag("intercept", self.intercept)
        terms: object = self.terms
        if not isinstance(terms, Sequence) or not all(isinstance(term, Term) for term in terms):
            raise InvalidInput(f"terms must be a sequence of Term, got {in_short(terms)}")
        object.__setattr__(self, "terms", tuple(resolved(term, self._by_name) for term in terms))
        if not self.terms and not self.intercept:
            raise InvalidInput("intercept must be True for a schema without terms, got intercept=False")
        used = {name for term in self.terms for name in term.columns}
        if self.terms and (unused := [column.name for column in self.columns if column.name not in used]):
            raise InvalidInput(f"every column must be in a term, got none with {unused}")
        if self.terms and not self.names:
            raise InvalidInput("a formula must have a column besides those whose list is not known yet, got none")
        if isinstance(self.target, NumericTarget) and not self.has_constant and self.target.scaling[0] != 0.0:
            # A target that is moved would be one with an intercept.
            object.__setattr__(self, "target", dataclasses.replace(self.target, scale="origin"))

    @property
    def has_constant(self) -> bool:
        """Whether a constant is fitted: an intercept, or what makes up for it where categories have all their columns.

        Without an intercept, the first categories of which every value has one are fitted as a constant and the
        differences from it. Results have a coefficient for each, as R's model matrix has a column.
        """
        return self.intercept or self._constant is not None

    @functools.cached_property
    def _constant(self) -> Term | None:
        return None if self.intercept else constant_term(self.terms, self._by_name)

    @property
    def written(self) -> tuple[NDArray[np.float64], tuple[str, ...], tuple[str, ...]]:
        """Matrix that makes coefficients of the model as it is written of those of the columns and 1; names, units."""
        return written(self._parts, self._by_name, self._constant)

    @property
    def rows(self) -> Blocks:
        """The tightest public blocks that hold every row: each number and each group of indicators by itself."""
        bounds: list[float] = []
        groups: list[tuple[range, float]] = []
        start = 0
        for part in self._parts:
            bound = 1.0 / self._divisor(part)
            if part.width == 1:
                bounds.append(bound)
            else:
                groups.append((range(start, start + part.width), bound))
            start += part.width
        return Blocks(bounds, groups)

    @property
    def target_unit(self) -> float | None:
        """Number in the unit of a numeric target that is 1 in what the fit takes; None for classes."""
        return 1.0 / self.target.scaling[1] if isinstance(self.target, NumericTarget) else None

    @property
    def drops(self) -> tuple[str, ...]:
        """Columns with missing values whose rows weigh 0."""
        return tuple(column.name for column in self.columns if drops(column))

    @property
    def has_levels(self) -> bool:
        """Whether there are groups of columns, and all of them are indicators."""
        groups = [part for part in self._parts if part.width > 1]
        return bool(groups) and all(isinstance(f, Levels | Missing) for part in groups for f in part.factors)

    @property
    def domain(self) -> Ball | Blocks:
        """The domain of rows that goes with the encoding: the unit ball, or `rows`."""
        return Ball(self.row_norm) if self.encoding == "unit_norm" else self.rows

    @property
    def row_norm(self) -> float:
        """Public bound on ||x||_2 for every row: 1 for the encoding "unit_norm"."""
        return 1.0 if self.encoding == "unit_norm" else self.rows.norm

    @property
    def row_scale(self) -> float:
        """Number by which indicators are divided: sqrt(k), and a little more, or 1 for the encoding "full_range"."""
        return math.sqrt(len(self._parts)) * ROUNDING_MARGIN if self.encoding == "unit_norm" else 1.0

    @property
    def divisors(self) -> NDArray[np.float64]:
        """Divisor of each column of the matrix after the scale of its column of the table: (len(names),)."""
        return np.repeat(self._divisors, [part.width for part in self._parts])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(name for part in self._parts for name in part.names(self._by_name))

    def features(self, table: Table) -> NDArray[np.float64]:
        """Rows of a table, without the target.

        Parameters
        ----------
        table : mapping of columns or data frame
            Anything with ``table[name]``; the columns have equal length. Text that reads as a number is a number.

        Returns
        -------
        ndarray of shape (n, len(self.names))
            Float64, C-contiguous, every row in `rows` and of norm at most `row_norm`.

        Raises
        ------
        InvalidInput
            A column is missing, columns differ in length, or a value is not a finite number, or, where the schema asks
            for an error, beyond its bounds or not in the list; names the column and the first such row, counted from 0.
        """
        with outside_fits():
            return self._rows(table)

    def _rows(self, table: Table) -> NDArray[np.float64]:
        values, n_samples = self._values(table)
        rows = np.empty((n_samples, len(self.names)))
        start = 0
        for part in self._parts:
            rows[:, start : start + part.width] = part.encode(values)
            start += part.width
        rows /= self.divisors
        return rows

    def _values(self, table: Table) -> tuple[Values, int]:
        """Return the columns of a table, and its number of rows."""
        table = named_columns(table)
        cells = {
            column.name: (categories_of if isinstance(column, CategoricalColumn) else column_of)(table, column.name)
            for column in self.columns
        }
        n_samples = len(cells[self.columns[0].name])
        for name, column in cells.items():
            check_length(name, column, n_samples)
        return Values(self._by_name, cells), n_samples

    def targets(self, table: Table) -> NDArray[np.float64]:
        """Targets of a table: -1 and 1, numbers of several classes, or scaled numbers; errors as in `features`."""
        return self.target.encode(column_of(named_columns(table), self.target.column))

    def transform(self, table: Table) -> Encoded:
        """``(X, y, names)`` of a table; parameters and errors as in `features`."""
        table = named_columns(table)  # once: a stream can be read only once
        X = self.features(table)
        y = self.targets(table)
        check_length(self.target.column, y, len(X))
        return Encoded(X, y, self.names)

    def check(self, table: Table, *, persons: str | None = None) -> SchemaCheck:
        """Return what the schema would do to a table: what it moves or refuses, and categories that no row has.

        Not private: it counts rows, and is for the holder of the data, before anything is spent. The target and the
        ids of persons are looked at where the table has them.

        Parameters
        ----------
        table : mapping of str to array-like, or data frame
            Table with the columns of the schema.
        persons : str, optional
            Column of ids whose persons are counted; None: that of the schema, if the table has it.

        Raises
        ------
        InvalidInput
            For a table without a column of the schema, or with columns of different lengths.
        """
        table = named_columns(table)
        n_rows, found = check_table(self.columns, self.target, (self.persons, persons), table)
        if self.terms and not any(finding.refused for finding in found):
            whole, complete = filled(table, self)
            rows = self._rows(whole)
            found += check_products(self.names, self._parts, rows if complete is None else rows[complete > 0.0])
        return SchemaCheck(n_rows, tuple(found))

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the parameters, one for each column of the matrix: "per year", "against F", "per year, for F"."""
        return self._units_of([True] * len(self.names))

    def own_scales(self) -> dict[str, tuple[float, float, str]]:
        """Return offset, slope and unit of what is a column of the table by itself, the target among them."""
        found = dict(own_scales(self._parts, self._by_name, self.divisors))
        if isinstance(self.target, NumericTarget):
            found[self.target.column] = (*self.target.scaling, self.target.unit or "unit")
        return found

    def _units_of(self, used: Sequence[bool]) -> tuple[str, ...]:
        """Units of the parameters of a model with some of the columns: products that are not in it do not matter."""
        return tuple(coefficient_units(self._parts, self._by_name, used))

    @property
    def both_signs(self) -> NDArray[np.bool_]:
        """Whether each column of the matrix can be as far below 0 as above; the others are at least 0."""
        signs = [part.has_both_signs(self._by_name) for part in self._parts]
        return np.repeat(signs, [part.width for part in self._parts])

    def from_units(self) -> NDArray[np.float64]:
        """Return the linear map from columns in the units of the table to those of the matrix.

        Returns
        -------
        ndarray of shape (k + 1, k + 1)
            A with ``(x, 1) = A (z, 1)``: x is a row of the matrix, z the same columns before they are scaled: numbers
            within their bounds, after their transform, divided by their ``per``, their powers, indicators, functions of
            splines, and products of these. What is linear in x is linear in z: ``theta' x`` plus a constant c is ``A'
            (theta, c)`` as coefficients of z and of 1.
        """
        return from_units(self._parts, self._by_name, self.divisors)

    @property
    def digest(self) -> str:
        """SHA-256 of what the schema does to a table: equal for schemas that encode every table alike.

        Name, source and licence of the table do not count, nor do ``source``, ``unit`` and ``per`` of its columns.
        """
        parts = [essential(part) for part in (self.target, *self.columns)]
        model = [{"terms": [term.to_dict() for term in self.terms], "intercept": self.intercept}] if self.terms else []
        whole = [self.encoding, self.row_scale, *parts, *model]
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def _document(self) -> Document:
        return document_of(self, "Schema")

    def to_dict(self, *, defaults: bool = False) -> dict[str, Any]:
        """Plain dictionary, the inverse of `from_dict`; fields at their defaults are left out unless asked for."""
        defaults = check_flag("defaults", defaults)
        columns = [plain_column(column, defaults=defaults) for column in self.columns]
        head = {field: getattr(self, field) for field in _TEXTS if getattr(self, field)}
        if self.encoding != "unit_norm" or defaults:
            head["encoding"] = self.encoding
        model: dict[str, Any] = {"terms": [term.to_dict() for term in self.terms]} if self.terms else {}
        if not self.intercept:
            model["intercept"] = False
        return {**head, "target": plain(self.target, defaults=defaults), "columns": columns, **model}

    @property
    def _divisors(self) -> list[float]:
        """Divisor of each part."""
        return [self._divisor(part) * ROUNDING_MARGIN**part.n_splines for part in self._parts]

    @functools.cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @functools.cached_property
    def _parts(self) -> tuple[Part, ...]:
        """Columns of the matrix for each term, or for each column without terms."""
        parts = (
            coded_parts(self.terms, self.columns, intercept=self.has_constant)
            if self.terms
            else (single_parts(self.columns))
        )
        # A released list of one category has no column.
        return tuple(part for part in parts if part.width)

    def _divisor(self, part: Part) -> float:
        """Return what the values of a part, of at most 1, are divided by."""
        halved = self.encoding == "full_range" and part.has_both_signs(self._by_name)
        return 2.0 if halved else self.row_scale

    @classmethod
    def from_formula(cls, formula: str, base: "Schema") -> "Schema":
        """Return the schema of a model that a formula describes, with the public bounds and lists of another schema.

        Parameters
        ----------
        formula : str
            Such as ``"income ~ age + C(education) + sex:age"``: terms joined by ``+``, ``-``, ``:`` and ``*``, with
            ``C(x, ref="a")``, ``I(x**2)``, ``poly(x, 3)`` and ``bs(x, df=6)``, and ``- 1`` for no intercept
            (docs/data.md, "Models"). A formula without a target has that of ``base``. Nothing is read from the data.
        base : Schema
            Describes the columns. Those that the formula does not name are left out, and the terms of ``base`` are
            ignored.

        Raises
        ------
        InvalidInput
            For text that is not a formula in these columns.
        """
        described: object = base
        if not isinstance(described, Schema):
            partial = hasattr(base, "gaps")  # of a class that is built on this one
            hint = " (use PartialSchema.from_formula, whose bounds are released)" if partial else ""
            raise InvalidInput(f"base must be a dpci.schema.Schema, got {in_short(base)}{hint}")
        found = parse(formula, base._by_name)  # noqa: SLF001  # its own class
        used = {name for term in found.terms for name in term.columns}
        target = base.target if found.target is None else target_of(found.target, base.target, base._by_name)  # noqa: SLF001
        columns = tuple(column for column in base.columns if column.name in used)
        return dataclasses.replace(base, columns=columns, target=target, terms=found.terms, intercept=found.intercept)

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "Schema":
        """Return the schema of a dictionary as TOML or JSON gives it; see docs/data.md for the layout."""
        found: Schema = described_by(cls, description)
        return found


def far_columns(schema: Schema) -> list[str]:
    """Return the columns whose numbers stay as they are beyond their bounds, in rows that weigh less."""
    return [part.name for part in schema.columns if isinstance(part, NumericColumn) and part.outside == "weight"]


def on_violation_of(schema: Schema, given: OnViolation) -> OnViolation:
    """Return what happens to rows beyond the bounds of a schema, where ``rows`` of a caller says this."""
    far = far_columns(schema)
    if far and given == "clip":
        raise InvalidInput(
            f'rows must not be "clip" with a column whose outside is "weight", such as {far[0]!r}, got rows="clip"'
        )
    return "weight" if far else given


def fitted_constant(schema: Schema, given: float | None) -> float | None:
    """Return the constant of rows of a schema, where ``rows`` of a caller gives one or none."""
    if schema.intercept and given is None:
        raise InvalidInput(
            "rows must have an intercept with a schema, which moves columns to the middle of their bounds, got "
            "intercept=False: write a model without one as a formula, such as Schema.from_formula('~ 0 + age', "
            "schema), in a shell --formula '~ 0 + age'"
        )
    return (1.0 if given is None else given) if schema.has_constant else None


def encoded_rows(schema: Schema, table: Table) -> EncodedRows:
    """Return the rows of :meth:`Schema.features`, coded or sparse where it takes less memory, by the schema alone."""
    parts = schema._parts  # noqa: SLF001  # its own class
    levels = [part.width for part in parts if part.is_category]
    stored = storage(len(schema.names) - sum(levels), levels, sum(part.n_entries for part in parts))
    if stored == "dense":
        return schema._rows(table)  # noqa: SLF001  # as above
    make = coded_rows if stored == "coded" else sparse_rows
    return make(parts, schema._divisors, *schema._values(table))  # noqa: SLF001  # as above


def filled(table: Any, schema: Schema) -> tuple[Any, NDArray[np.float64] | None]:  # noqa: ANN401  # tables of any library
    """Return a table in which a public cell stands where a row weighs 0, and the weights; None without."""
    if not schema.drops:
        return table, None
    names = {schema.target.column, *(column.name for column in schema.columns)}
    columns = {name: column_of(table, name) for name in names if has_column(table, name)}
    complete = np.ones(len(columns[schema.drops[0]]), dtype=bool)
    for column in schema.columns:
        if not drops(column):
            continue
        cells = columns[column.name]
        missing = column.gaps(cells)
        check_length(column.name, missing, len(complete))
        complete &= ~missing
        if not missing.any():
            continue
        # Of nanoseconds NumPy would make whole numbers.
        cells = cells.astype("datetime64[us]" if cells.dtype.kind == "M" else object).astype(object)
        if isinstance(column, NumericColumn):
            cells[missing] = column.since or column.lower
        else:
            cells[missing] = column.categories[0]
        columns[column.name] = cells
    return columns, complete.astype(np.float64)


def numeric_names(schema: Schema) -> tuple[str, ...]:
    """Return the columns of a table that hold numbers and no dates, the target among them."""
    target = [schema.target.column] if isinstance(schema.target, NumericTarget) else []
    return (
        *(column.name for column in schema.columns if isinstance(column, NumericColumn) and not column.since),
        *target,
    )


def category_names(schema: Schema) -> list[str]:
    """Return the columns of categories, as the table calls them."""
    return [column.name for column in schema.columns if isinstance(column, CategoricalColumn)]


def without_column(schema: Schema, name: str) -> Schema:
    """Return a schema without a column, and without the terms of it."""
    columns = tuple(column for column in schema.columns if column.name != name)
    return dataclasses.replace(schema, columns=columns, terms=tuple(t for t in schema.terms if name not in t.columns))


def same_columns(schema: Schema, other: Schema) -> bool:
    """Whether two schemas make the same rows that count of every table that both take; their targets do not matter."""
    used = [column.name for column in (*schema.columns, *other.columns)]
    # A target of a name of its own goes with both.
    target = ClassTarget(column="".join(used) + "?", negative=("0",), positive=("1",))
    first, second = (
        dataclasses.replace(each, target=target, columns=tuple(map(_of_complete_rows, each.columns))).digest
        for each in (schema, other)
    )
    return first == second


def _of_complete_rows(column: Column) -> Column:
    """Return a column that refuses missing values in place of one that leaves their rows out, and no others."""
    if isinstance(column, NumericColumn):
        return dataclasses.replace(column, missing="error") if drops(column) else column
    return dataclasses.replace(column, missing=None) if drops(column) and column.refuses else column


@dataclass(frozen=True, eq=False, repr=False)
class RawTable:
    """A table in memory that is not encoded yet, with the shape that it will have."""

    table: Any
    schema: Schema

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of encoded columns, without a look at a value."""
        table, name = self.table, self.schema.columns[0].name
        if is_lazy(table):
            raise InvalidInput(f"a table must be in memory, got {type(table).__name__}: compute it first")
        try:
            key = key_of(table, name) if isinstance(table, Mapping) else None
            n_rows = len(table) if key is None else len(table[key])
        except TypeError as error:  # such as a lazy frame
            raise InvalidInput(f"a table must be in memory, got {type(table).__name__}") from error
        return n_rows, len(self.schema.names)


def saved_table(table: Schema | None) -> dict[str, Any] | None:
    """Return a schema as a record is saved with it: with all fields, so that no default changes what it says."""
    if table is None:
        return None
    return {"digest": table.digest, "schema": table.to_dict(defaults=True)}


def _read_table(name: str, value: object) -> Schema:
    fields = has_fields(name, value, "digest", "schema")
    schema = Schema.from_dict(fields["schema"])
    if schema.digest != fields["digest"]:
        raise InvalidInput(f"{name} must have the digest of its schema, {schema.digest}, got {fields['digest']!r}")
    return schema


SavedTable: TypeAlias = Annotated[Schema, Form(saved_table, _read_table)]
