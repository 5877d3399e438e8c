"""One column of a table each: its public bounds or categories, and how a value becomes numbers of at most 1."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dpci.base.habits import LOGARITHMS, STAND_INS, instead
from dpci.base.validation import check_flag, column, composed
from dpci.data.arrays import as_floats
from dpci.data.labels import check_several_classes
from dpci.errors import InvalidInput
from dpci.schema.cells import (
    CATEGORY_NEEDS,
    DROP,
    NO_NUMBER,
    NUMBER_NEEDS,
    OTHER,
    TARGET_NEEDS,
    Dictionary,
    as_cells,
    check_rows,
    check_target_present,
    codes_of,
    days_since,
    drops,
    in_days,
    is_day,
    label_of,
    labels_of,
    listed,
    missing_cells,
    no_moments,
)
from dpci.schema.transforms import Transform, back, counted, forth, is_number, take_bounds

Scale: TypeAlias = Literal["symmetric", "unit"]
TargetScale: TypeAlias = Literal["symmetric", "unit", "origin"]
Outside: TypeAlias = Literal["clip", "error", "weight"]
UnboundedOutside: TypeAlias = Literal["clip", "weight"]
Unknown: TypeAlias = Literal["zeros", "error"]
UnboundedMissing: TypeAlias = Literal["error", "drop", "middle"]
_F64: TypeAlias = NDArray[np.float64]


@column("lower", "upper", otherwise="UnboundedColumn")
@dataclass(frozen=True, kw_only=True)
class NumericColumn:
    """A number with public bounds; gives one column of the matrix.

    Parameters
    ----------
    name : str
        Column of the table.
    lower, upper : float
        Public bounds in the unit of the table, ``lower < upper``.
    scale : {"symmetric", "unit"}
        The bounds are mapped to [-1, 1] or to [0, 1].
    transform : {"none", "signed_log"}
        ``signed_log`` applies sign(v) log(1 + abs(v)) to value and bounds before scaling: for money or traffic.
    outside : {"clip", "error", "weight"}
        Treatment of a value beyond its bounds. "weight": it stays as it is, and its row weighs less
        (docs/weights.md, "Rows beyond their bounds").
    missing : "error", "drop" or float
        Treatment of a missing value: None, NaN, NA, or the text "", "NA" or "NaN". "error": the data are
        refused. "drop": its row weighs 0, as if it were left out. A public number within the bounds: it replaces the
        value, and a further column of the matrix, ``name=missing``, is 1 in that row and 0 in the others.
    source : str
        Why the bounds are public.
    unit : str
        Unit of the numbers in the table, such as "year", which results name, in the singular.
    per : float
        Coefficients and odds ratios are given per this many units: 1000 of an income in euros gives "per 1,000 EUR". It
        changes no row and may be chosen at any time.
    since : str
        A public day, such as "2024-01-01". The cells are then dates or times without a time zone, as texts such as
        "2024-05-01" or as any library has them, and count as days since that day; the unit is "day". Bounds are such
        days, or numbers of them. "": the cells are numbers.
    """

    name: str = dataclasses.field(kw_only=False)
    lower: float
    upper: float
    scale: Scale = "symmetric"
    transform: Transform = "none"
    outside: Outside = "clip"
    missing: float | Literal["error", "drop"] = "error"
    source: str = ""
    unit: str = ""
    per: float = 1.0
    since: str = ""

    def __post_init__(self) -> None:
        _take_name(self, "name")
        _take_since(self)
        take_bounds(self, self.name)
        _take_per(self)
        _check_choice(self.name, "scale", self.scale, Scale)
        _check_choice(self.name, "transform", self.transform, Transform)
        lower, upper = self.transformed_bounds
        if not (lower < upper):
            got = f"got lower={self.lower}, upper={self.upper}"
            raise InvalidInput(f"column {self.name!r}: lower and upper must differ after the transform, {got}")
        _check_choice(self.name, "outside", self.outside, Outside)
        stand_in: Any = in_days(self.since, self.missing) if self.since else self.missing
        if stand_in not in ("error", DROP):
            if not is_number(stand_in) or not (self.lower <= stand_in <= self.upper):
                raise InvalidInput(
                    f"column {self.name!r}: missing must be 'error', 'drop' or a number within the bounds, got "
                    f"{stand_in!r}"
                )
            object.__setattr__(self, "missing", float(stand_in))

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the one column of the matrix."""
        return (self.name,)

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of the parameter of the column in the table, such as "per year"."""
        return (f"per {self.counted_unit}",)

    @property
    def counted_unit(self) -> str:
        """Unit of a coefficient: "year", "1,000 EUR", "log unit"."""
        unit = self.unit or "unit"
        return counted(self.per, unit) if self.transform == "none" else f"log {unit}"

    @property
    def scaling(self) -> tuple[_F64, _F64]:
        """``(offset, slope)`` of the column: what `encode` gives is offset + slope * value, after the transform."""
        lower, upper = self.transformed_bounds
        offset, slope = -lower / (upper - lower), 1.0 / (upper - lower)
        if self.scale == "symmetric":
            offset, slope = 2.0 * offset - 1.0, 2.0 * slope
        return np.array([offset]), np.array([slope])

    @property
    def size(self) -> float:
        """The largest absolute value within the bounds, after the transform."""
        return float(np.abs(self.transformed_bounds).max())

    def encode(self, values: object) -> NDArray[np.float64]:
        """(n, 1) values in [-1, 1] or [0, 1]."""
        return self.scaled(self.numbers(values))[:, None]

    def numbers(self, values: object) -> NDArray[np.float64]:
        """(n,) numbers within the bounds, after the transform."""
        cells = as_cells(values)
        numbers = _numbers(self, cells)
        if not isinstance(self.missing, str):
            numbers = np.where(missing_cells(cells), self.missing, numbers)
        check_rows(self.name, cells, np.isfinite(numbers), _rule(self), missing=NUMBER_NEEDS, other=NO_NUMBER)
        if self.outside == "error":
            inside = (numbers >= self.lower) & (numbers <= self.upper)
            check_rows(self.name, cells, inside, f"lie in [{self.lower:g}, {self.upper:g}]", missing=NUMBER_NEEDS)
        return self.forth(numbers if self.outside == "weight" else np.clip(numbers, self.lower, self.upper))

    def gaps(self, values: object) -> NDArray[np.bool_]:
        """(n,) which numbers are missing and have the public one in their place."""
        return missing_cells(as_cells(values))

    def scaled(self, numbers: _F64) -> _F64:
        """Numbers whose bounds are moved to [-1, 1] or [0, 1]."""
        lower, upper = self.transformed_bounds
        unit = self.held((numbers - lower) / (upper - lower), 0.0)
        return np.asarray(unit if self.scale == "unit" else 2.0 * unit - 1.0)

    def held(self, numbers: _F64, least: float) -> _F64:
        """Numbers moved into [least, 1]; only to ±10¹⁰ where their rows weigh less instead, 10⁻²⁰ there."""
        return np.clip(numbers, -1e10, 1e10) if self.outside == "weight" else np.clip(numbers, least, 1.0)

    @property
    def transformed_bounds(self) -> _F64:
        """Bounds after the transform, (2,)."""
        return self.forth(np.array([self.lower, self.upper], dtype=np.float64))

    def forth(self, numbers: _F64) -> _F64:
        """Numbers after the transform."""
        return forth(self.transform, numbers)

    def back(self, numbers: _F64) -> _F64:
        """Return the numbers that the transform takes to these."""
        return back(self.transform, numbers)


@column()
@dataclass(frozen=True, kw_only=True)
class UnboundedColumn:
    """A number whose bounds nobody knows, for :func:`dpci.release_schema`, which makes a NumericColumn of it.

    Parameters
    ----------
    name : str
        Column of the table.
    lower, upper : float, optional
        A public range that holds every value, in the unit of the table, however wide; both or none. Values beyond it
        count as its ends. A range makes the bounds better; without one any number from 1e-12 to 1e18 is found.
    zeros : bool
        Whether nearly all values may be 0, as those of a rare cost. Bounds are then those of the other values, of which
        they leave out up to 20% on either side, and hold 0 as well.
    transform : {"none", "signed_log"}
        See :class:`NumericColumn`. Bounds are chosen after the transform.
    scale, unit, per, since
        See :class:`NumericColumn`.
    outside : {"clip", "weight"}
        Treatment of a value beyond the released bounds, see :class:`NumericColumn`.
    missing : {"error", "drop", "middle"}
        Treatment of a missing value. "error": the data are refused. Otherwise it does not count for the bounds. "drop":
        its row weighs 0, as if it were left out. "middle": the middle of the bounds, after the transform, stands for it
        in the :class:`NumericColumn`, beside a further column of the matrix, ``name=missing``.

    Examples
    --------
    >>> UnboundedColumn(name="income").bounded(0.0, 200_000.0, source="released").upper
    200000.0
    """

    name: str = dataclasses.field(kw_only=False)
    lower: float | None = None
    upper: float | None = None
    zeros: bool = False
    scale: Scale = "symmetric"
    transform: Transform = "none"
    unit: str = ""
    per: float = 1.0
    missing: UnboundedMissing = "error"
    since: str = ""
    outside: UnboundedOutside = "clip"

    def __post_init__(self) -> None:
        _take_name(self, "name")
        _take_since(self)
        check_flag("zeros", self.zeros)
        _check_choice(self.name, "missing", self.missing, UnboundedMissing)
        _check_choice(self.name, "outside", self.outside, UnboundedOutside)
        if (self.lower is None) is not (self.upper is None):
            raise InvalidInput(
                f"column {self.name!r}: lower and upper must both be given or both be left out, got "
                f"lower={self.lower}, upper={self.upper} (a public range may be much too wide, as lower=0, upper=1e6)"
            )
        # A column with bounds has the same rules.
        checked = self.bounded(*(self.range or (-1.0, 1.0)), source="")
        if self.range is not None:
            object.__setattr__(self, "lower", float(checked.lower))
            object.__setattr__(self, "upper", float(checked.upper))

    @property
    def range(self) -> tuple[float, float] | None:
        """The public range; None where none is known."""
        return None if self.lower is None or self.upper is None else (self.lower, self.upper)

    def bounded(self, lower: float, upper: float, *, source: str) -> NumericColumn:
        """Return the column with these bounds; ``source`` says why they are public."""
        found = NumericColumn(
            name=self.name,
            lower=lower,
            upper=upper,
            scale=self.scale,
            transform=self.transform,
            source=source,
            unit=self.unit,
            per=self.per,
            since=self.since,
            outside=self.outside,
        )
        if self.missing != "middle":
            return replace(found, missing=self.missing)
        middle = found.back(0.5 * found.transformed_bounds.sum(keepdims=True))
        return replace(found, missing=float(np.clip(middle[0], found.lower, found.upper)))

    def numbers(self, values: object) -> _F64:
        """(n,) numbers of the column, as they are; NaN for missing values where these are allowed."""
        cells = as_cells(values)
        numbers = _numbers(self, cells)
        gaps = missing_cells(cells) if self.missing != "error" else np.zeros(len(numbers), dtype=bool)
        check_rows(self.name, cells, gaps | np.isfinite(numbers), _rule(self), missing=NUMBER_NEEDS, other=NO_NUMBER)
        return np.where(gaps, np.nan, numbers)


@column("categories", otherwise="UnlistedColumn")
@dataclass(frozen=True, kw_only=True)
class CategoricalColumn:
    """A value from a public list; gives one 0/1 column of the matrix per category, named ``column=category``.

    Parameters
    ----------
    name : str
        Column of the table.
    categories : tuple of str
        The public list. Whole numbers are compared by their digits, so ``2``, ``2.0`` and ``"2"`` are one category, and
        texts in the normal form C of Unicode.
    reference : str, optional
        Category without a column of its own, with which the others are compared.
    unknown : {"error", "zeros"}
        Treatment of a value that is not in the list: an error, or zeros in all columns. With "zeros" a category that
        the table spells in another way matches no row; ``Schema.check`` shows it.
    missing : str, optional
        Category that replaces a missing value (None, NaN, NA, or the text "", "NA" or "NaN"), unless the list has that
        text as a category. "drop", if no category has that name: its row weighs 0, as if it were left out. None: a
        missing value is treated as one that is not in the list.
    source : str
        Why the list is public.
    other : str, optional
        Category that replaces a value that is not in the list, whatever ``unknown`` says.
    """

    name: str = dataclasses.field(kw_only=False)
    categories: tuple[str, ...]
    reference: str | None = None
    unknown: Unknown = "error"
    missing: str | None = None
    source: str = ""
    other: str | None = None

    def __post_init__(self) -> None:
        _take_name(self, "name")
        categories: object = self.categories
        if isinstance(categories, str):
            # "A, B" would be one category, which no record has.
            raise InvalidInput(f"column {self.name!r}: categories must be a list, got {categories!r}")
        object.__setattr__(self, "categories", labels_of(self.name, "categories", self.categories))
        # A released list can have one category alone, and then no column.
        if self.reference is not None and len(self.categories) == 1 and self.other is None:
            raise InvalidInput(
                f"column {self.name!r} must have a category besides the reference, got {self.categories!r}"
            )
        _check_choice(self.name, "unknown", self.unknown, Unknown)
        for field in ("reference", "missing", "other"):
            if (stand_in := getattr(self, field)) is not None and not (field == "missing" and drops(self)):
                object.__setattr__(self, field, label_of(stand_in))
                if getattr(self, field) not in self.categories:
                    raise InvalidInput(
                        f"column {self.name!r}: {field} must be a category, got {stand_in!r} (add it to categories)"
                    )

    @property
    def refuses(self) -> bool:
        """Whether a value that is not in the list is an error."""
        return self.unknown == "error" and self.other is None

    @property
    def covers_all(self) -> bool:
        """Whether each value counts as one category."""
        return self.unknown == "error" or self.other is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(f"{self.name}={category}" for category in self.categories if category != self.reference)

    @property
    def units(self) -> tuple[str, ...]:
        """With which category that of each parameter is compared."""
        against = "no category" if self.reference is None else self.reference
        return (f"against {against}",) * len(self.names)

    @property
    def scaling(self) -> tuple[_F64, _F64]:
        """``(offset, slope)`` of the columns: indicators are 0 and 1 as they are."""
        return np.zeros(len(self.names)), np.ones(len(self.names))

    def encode(self, values: object) -> NDArray[np.float64]:
        """(n, categories without the reference) indicators."""
        indicators = self.indicators(values)
        if self.reference is not None:
            indicators = np.delete(indicators, self.categories.index(self.reference), axis=1)
        return indicators

    def indicators(self, values: object) -> NDArray[np.float64]:
        """(n, categories) indicators of all of them."""
        codes = self.codes(values)
        indicators = np.zeros((codes.size, len(self.categories)))
        known = np.flatnonzero(codes >= 0)
        indicators[known, codes[known]] = 1.0
        return indicators

    def codes(self, values: object) -> NDArray[np.int64]:
        """(n,) places of the values in the list; -1 for none."""
        if isinstance(values, Dictionary):
            found: NDArray[np.int64] = replace(self, unknown="zeros").codes(values.cells)[values.places]
            if self.refuses and not (found >= 0).all():
                self.codes(values.decoded)
            return found
        codes = self._places(values)
        if self.missing is not None and not drops(self):
            codes = np.where(self.gaps(values), self.categories.index(self.missing), codes)
        if self.other is not None:
            codes = np.where(codes < 0, self.categories.index(self.other), codes)
        if self.refuses:
            known = f"hold one of {listed(self.categories)}"
            check_rows(self.name, values, codes >= 0, known, missing=CATEGORY_NEEDS, other=OTHER)
        return codes

    def gaps(self, values: object) -> NDArray[np.bool_]:
        """(n,) which values are missing, and no category as the text NA may be one."""
        found = missing_cells(as_cells(values))
        return found & (self._places(values) < 0) if found.any() else found

    def _places(self, values: object) -> NDArray[np.int64]:
        return codes_of(values, {category: code for code, category in enumerate(self.categories)})


@column()
@dataclass(frozen=True, kw_only=True)
class UnlistedColumn:
    """A category whose list nobody knows, of which a release makes a CategoricalColumn.

    A level of the table is listed where enough records have it. All others count as ``other``.

    Parameters
    ----------
    name : str
        Column of the table.
    categories : tuple of str
        Public categories, which are listed whatever the table holds, and cost nothing.
    reference : str, optional
        The reference: one of the public categories, or ``other`` beside at least one of these. None: with
        ``counts_share=`` of the :class:`PartialSchema` the category with the greatest released count, otherwise none;
        ``other`` counts as it where the counts show no rows of it.
    other : str
        Category of all values that are not listed.
    missing : str, optional
        Category that replaces a missing value, which is listed, too. "drop", if it is not listed: its row weighs 0, as
        if it were left out. None: a missing value counts as ``other``.

    Examples
    --------
    >>> UnlistedColumn(name="ward").listed(["B", "A"], source="released").categories
    ('A', 'B', 'other')
    """

    name: str = dataclasses.field(kw_only=False)
    categories: tuple[str, ...] = ()
    reference: str | None = None
    other: str = "other"
    missing: str | None = None

    def __post_init__(self) -> None:
        _take_name(self, "name")
        if self.categories:
            object.__setattr__(self, "categories", labels_of(self.name, "categories", self.categories))
        object.__setattr__(self, "other", label_of(self.other))
        if self.missing is not None:
            object.__setattr__(self, "missing", label_of(self.missing))
        # A column with a list has the same rules.
        self.listed((), source="")

    @property
    def known(self) -> tuple[str, ...]:
        """Categories that are listed whatever the table holds."""
        replaced = [] if self.missing in (None, DROP) else [self.missing]
        return tuple(dict.fromkeys([*self.categories, *replaced, self.other]))

    def listed(self, levels: Iterable[str], *, source: str) -> CategoricalColumn:
        """Return the column with these levels besides those that are known; ``source`` says why they are public."""
        # A category of that name would be no rule any more.
        found = sorted(set(levels) - set(self.known) - ({DROP} if drops(self) else set()))
        after = [label for label in self.known if label not in self.categories]
        return CategoricalColumn(
            name=self.name,
            categories=(*self.categories, *found, *after),
            reference=self.reference,
            missing=self.missing,
            source=source,
            other=self.other,
        )

    def levels(self, values: object) -> tuple[_F64, list[str]]:
        """(n,) numbers of the levels of a column, and their labels; -1 for what is known or missing."""
        cells = as_cells(values)
        present = ~missing_cells(cells)
        labels = sorted({label_of(cell) for cell in cells[present].tolist()} - set(self.known))
        codes = codes_of(cells, {label: code for code, label in enumerate(labels)})
        return np.where(present, codes, -1).astype(np.float64), labels


@column("negative", "positive")
@dataclass(frozen=True, kw_only=True)
class ClassTarget:
    """Two public classes, each one or several labels of the table; gives -1 (negative) and 1 (positive)."""

    column: str = dataclasses.field(kw_only=False)
    negative: tuple[str, ...]
    positive: tuple[str, ...]
    source: str = ""
    """Why the classes are public; it changes no row."""

    def __post_init__(self) -> None:
        _take_name(self, "column")
        object.__setattr__(self, "negative", labels_of(self.column, "negative", self.negative))
        object.__setattr__(self, "positive", labels_of(self.column, "positive", self.positive))
        if both := sorted(set(self.negative) & set(self.positive)):
            raise InvalidInput(f"target {self.column!r}: a label must belong to one class only, got {both} in both")

    @property
    def known(self) -> tuple[str, ...]:
        """All labels of the table."""
        return (*self.negative, *self.positive)

    def encode(self, values: object) -> NDArray[np.float64]:
        """(n,) of -1 and 1; a label of neither class is an error."""
        index = dict.fromkeys(self.negative, 0) | dict.fromkeys(self.positive, 1)
        codes = codes_of(values, index)
        check_rows(self.column, values, codes >= 0, f"hold one of {listed(index)}", **TARGET_NEEDS)
        return np.where(codes == 1, 1.0, -1.0)


@column("classes")
@dataclass(frozen=True, kw_only=True)
class CategoricalTarget:
    """Three public classes or more, the reference first, each one or several labels of the table; gives 0, 1, 2, ...

    It is for :func:`dpci.multinomial.fit`. For two classes use :class:`ClassTarget`, which needs fewer parameters.
    """

    column: str = dataclasses.field(kw_only=False)
    classes: tuple[tuple[str, ...], ...]
    source: str = ""
    """Why the classes are public; it changes no row."""

    def __post_init__(self) -> None:
        _take_name(self, "column")
        classes: object = self.classes
        if isinstance(classes, str) or not isinstance(classes, Iterable):
            raise InvalidInput(f"target {self.column!r}: classes must be a list, got {classes!r}")
        listed_classes = tuple(labels_of(self.column, "a class", each) for each in self.classes)
        object.__setattr__(self, "classes", listed_classes)
        if repeated := sorted({label for label in self.known if self.known.count(label) > 1}):
            raise InvalidInput(
                f"target {self.column!r}: a label must belong to one class only, got {repeated} in several"
            )
        check_several_classes(self.labels)

    @property
    def known(self) -> tuple[str, ...]:
        """All labels of the table."""
        return tuple(label for each in self.classes for label in each)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes by name, the reference first: several labels of one class are joined by ``|``."""
        return tuple(map("|".join, self.classes))

    def encode(self, values: object) -> NDArray[np.float64]:
        """(n,) numbers of the classes, 0 for the reference; a label of no class is an error."""
        index = {label: code for code, each in enumerate(self.classes) for label in each}
        codes = codes_of(values, index)
        check_rows(self.column, values, codes >= 0, f"hold one of {listed(index)}", **TARGET_NEEDS)
        return codes.astype(np.float64)


@column("lower", "upper", otherwise="UnboundedTarget")
@dataclass(frozen=True, kw_only=True)
class NumericTarget:
    """A number with public bounds, clipped and mapped to [-1, 1] ("symmetric") or [0, 1] ("unit").

    With "origin" it is divided by its greatest absolute value, so that 0 stays 0: a schema of a model without a
    constant has this scale.
    """

    column: str = dataclasses.field(kw_only=False)
    lower: float
    upper: float
    scale: TargetScale = "symmetric"
    source: str = ""
    unit: str = ""

    @property
    def scaling(self) -> tuple[float, float]:
        """``(offset, slope)``: what `encode` gives is offset + slope * value."""
        if self.scale == "origin":
            return 0.0, 1.0 / self.as_column().size
        offset, slope = self.as_column().scaling
        return float(offset[0]), float(slope[0])

    def __post_init__(self) -> None:
        _take_name(self, "column")
        take_bounds(self, self.column)
        _check_choice(self.column, "scale", self.scale, TargetScale)

    def as_column(self) -> NumericColumn:
        """Return the same as a column; of "origin" with its bounds alone."""
        scale: Scale = "unit" if self.scale == "unit" else "symmetric"
        return NumericColumn(name=self.column, lower=self.lower, upper=self.upper, scale=scale)

    def encode(self, values: object) -> NDArray[np.float64]:
        """(n,) scaled targets."""
        check_target_present(self.column, values)
        column = self.as_column()
        numbers = column.numbers(values)
        return numbers / column.size if self.scale == "origin" else column.scaled(numbers)

    def decode(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scaled numbers in the unit of the column; nothing is clipped."""
        offset, slope = self.scaling
        return np.asarray((scaled - offset) / slope)


@column()
@dataclass(frozen=True, kw_only=True)
class UnboundedTarget:
    """A number to be predicted whose bounds nobody knows, of which :func:`dpci.release_schema` makes a NumericTarget.

    Parameters
    ----------
    column : str
        Column of the table.
    lower, upper, zeros, scale, unit
        See :class:`UnboundedColumn`.

    Examples
    --------
    >>> UnboundedTarget(column="wage").bounded(0.0, 80.0, source="released").upper
    80.0
    """

    column: str = dataclasses.field(kw_only=False)
    lower: float | None = None
    upper: float | None = None
    zeros: bool = False
    scale: Scale = "symmetric"
    unit: str = ""

    def __post_init__(self) -> None:
        checked = self.as_column()
        for field, value in (("column", checked.name), ("lower", checked.lower), ("upper", checked.upper)):
            object.__setattr__(self, field, value)

    def as_column(self) -> UnboundedColumn:
        """Return the same as a column."""
        return UnboundedColumn(
            name=self.column, lower=self.lower, upper=self.upper, zeros=self.zeros, scale=self.scale, unit=self.unit
        )

    def bounded(self, lower: float, upper: float, *, source: str) -> NumericTarget:
        """Return the target with these bounds; ``source`` says why they are public."""
        return NumericTarget(
            column=self.column, lower=lower, upper=upper, scale=self.scale, source=source, unit=self.unit
        )


def class_labels(target: "Target") -> tuple[str, str] | None:
    """Return the two classes as the table has them: several labels of one class are joined by ``|``."""
    if not isinstance(target, ClassTarget):
        return None
    negative, positive = "|".join(target.negative), "|".join(target.positive)
    return None if negative == positive else (negative, positive)


Column: TypeAlias = NumericColumn | CategoricalColumn
Gap: TypeAlias = UnboundedColumn | UnlistedColumn
Target: TypeAlias = ClassTarget | CategoricalTarget | NumericTarget


def _take_name(part: object, field: str) -> None:
    name = getattr(part, field)
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"a column name must be a non-empty string, got {name!r}")
    object.__setattr__(part, field, composed(name))


def _take_since(part: "NumericColumn | UnboundedColumn") -> None:
    """Take a public day as TOML, Python or a text has it, and the unit of what is counted from it."""
    since: object = part.since
    if isinstance(since, date) and not isinstance(since, datetime):
        since = since.isoformat()
    if not isinstance(since, str) or (since and not is_day(since)):
        raise InvalidInput(f"column {part.name!r}: since must be a day such as '2024-01-01' or '', got {part.since!r}")
    object.__setattr__(part, "since", since)
    if since and not part.unit:
        object.__setattr__(part, "unit", "day")


def _numbers(part: "NumericColumn | UnboundedColumn", cells: NDArray[Any]) -> _F64:
    """Return the numbers of cells; NaN where they hold none."""
    if part.since:
        return days_since(part.since, cells)
    if cells.dtype.kind in "mM":  # as numbers, counts of days or of nanoseconds
        raise no_moments(part.name, cells)
    return as_floats(cells)


def _take_per(column: NumericColumn) -> None:
    """Take the number of units that coefficients are per."""
    if not is_number(column.per) or not column.per > 0:
        raise InvalidInput(f"column {column.name!r}: per must be a number above 0, got {column.per!r}")
    object.__setattr__(column, "per", float(column.per))
    if column.per != 1.0 and column.transform != "none":
        raise InvalidInput(
            f"column {column.name!r}: per must be 1 with transform={column.transform!r}, whose coefficients are per "
            f"unit of the logarithm, got per={column.per:g}"
        )


def _rule(part: "NumericColumn | UnboundedColumn") -> str:
    return "hold dates or times without a time zone" if part.since else "hold finite numbers"


def _check_choice(name: str, field: str, value: object, choices: object) -> None:
    if not isinstance(value, str) or value not in get_args(choices):
        hint = f" ({LOGARITHMS})" if field == "transform" and "log" in str(value) else instead(value, STAND_INS)
        raise InvalidInput(f"column {name!r}: {field} must be one of {list(get_args(choices))}, got {value!r}{hint}")
