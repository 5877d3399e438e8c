"""How terms become columns of bounded rows: their coding, names, units and bounds, and the map from table units.

The coding keeps what the terms can express, so that coefficients have an exact linear map to the units of the table:

- Categories lose their reference where the term without them is in the model, as in R; otherwise all of them have a
  column. A spline always loses its first function, so that it is 0 at the lower bound.
- A number is moved to the middle of its bounds (or to 0 at the lower one, with ``scale="unit"``) where the product then
  differs from that of the numbers as they are by terms that are in the model; otherwise it is divided by its greatest
  absolute value.
- Without an intercept the first categories whose columns have the sum 1 lose their reference, too: they are fitted as a
  constant and the differences from it, and :func:`written` gives each its own coefficient back.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.data.coded import CodedRows, code_type
from dpci.data.storage import SparseRows, offsets
from dpci.errors import InvalidInput
from dpci.schema.cells import Dictionary, as_cells, in_all_columns, stand_in
from dpci.schema.columns import CategoricalColumn, Column, NumericColumn
from dpci.schema.terms import Factor, Levels, Missing, Power, Spline, Term, basis

_F64: TypeAlias = NDArray[np.float64]
_Columns: TypeAlias = Mapping[str, Column]
_Function: TypeAlias = tuple[frozenset[tuple[str, int]], frozenset[tuple[Factor, int]]]
"""A function of a record: powers of numbers times one indicator or function of each other factor."""
_Entries: TypeAlias = tuple[NDArray[np.int64] | None, _F64]

# Rows are divided by slightly more than the worst-case norm, so that rounding cannot lift a row above 1; and the
# functions of a spline by slightly more than their sum.
ROUNDING_MARGIN = 1.0 + 2.0**-40


@dataclass(frozen=True)
class Part:
    """A term with its coding.

    Parameters
    ----------
    factors : tuple of Factor
        Factors of the term.
    moved : frozenset of str
        The numbers that are moved; the others are divided by their greatest value.
    kept : tuple of tuples of int
        For each factor, which of its functions have columns.
    """

    factors: tuple[Factor, ...]
    moved: frozenset[str]
    kept: tuple[tuple[int, ...], ...]

    @property
    def width(self) -> int:
        """Number of columns."""
        return math.prod(map(len, self.kept))

    def functions(self) -> Iterator[_Function]:
        """Yield what each column is a function of, in their order."""
        powers = frozenset((f.column, f.exponent) for f in self.factors if isinstance(f, Power))
        for chosen in itertools.product(*self.kept):
            pairs = zip(self.factors, chosen, strict=True)
            yield powers, frozenset((f, i) for f, i in pairs if not isinstance(f, Power))

    def names(self, columns: _Columns) -> Iterator[str]:
        """Yield the name of each column."""
        for chosen in itertools.product(*self.kept):
            pairs = zip(self.factors, chosen, strict=True)
            yield ":".join(_name(f, i, columns[f.column]) for f, i in pairs)

    def units(self, columns: _Columns) -> Iterator[str]:
        """Yield what the coefficient of each column is per, or against."""
        if splines := [f for f in self.factors if isinstance(f, Spline)]:
            for chosen in itertools.product(*self.kept):
                numbered = [i + 1 for f, i in zip(self.factors, chosen, strict=True) if isinstance(f, Spline)]
                which = " and ".join(f"{i} of {f.n_functions}" for i, f in zip(numbered, splines, strict=True))
                yield f"no unit: function {which}"
            return
        numbers = [_number_unit(f, columns[f.column]) for f in self.factors if isinstance(f, Power)]
        per = [f"per {' x '.join(numbers)}"] if numbers else []
        slopes = bool(numbers)
        others = [
            _against(f, kept, columns[f.column], slopes=slopes) for f, kept in zip(self.factors, self.kept, strict=True)
        ]
        yield from itertools.repeat(", ".join([*per, *filter(None, others)]), self.width)

    def entries(self, values: "Values") -> _Entries:
        """Columns in which a row may differ from 0, increasing, and what it has there; see :class:`Values`."""
        columns: NDArray[np.int64] | None = None
        product = np.ones((1, 1))
        for factor, kept in zip(self.factors, self.kept, strict=True):
            functions, numbers = values.of(factor, moved=factor.column in self.moved)
            both = product[:, :, None] * numbers[:, None, :]
            product = both.reshape(len(both), both.shape[1] * both.shape[2])
            if functions is None:
                continue
            # The last one is that of no function.
            places = np.full(values.n_functions(factor) + 1, -1, dtype=np.int64)
            places[list(kept)] = np.arange(len(kept))
            own = places[functions]
            if columns is not None:
                before, after = columns[:, :, None], own[:, None, :]
                own = np.where((before < 0) | (after < 0), -1, before * len(kept) + after).reshape(product.shape)
            columns = own
        return columns, product

    @property
    def n_entries(self) -> int:
        """Most columns in which a row differs from 0, as in :meth:`entries`."""
        return math.prod(factor.degree + 1 for factor in self.factors if isinstance(factor, Spline))

    def encode(self, values: "Values") -> _F64:
        """(n, width) products of absolute value at most 1, of a row together at most the rounding margin."""
        columns, product = self.entries(values)
        if columns is None:
            return product
        rows = np.zeros((len(product), self.width + 1))
        np.put_along_axis(rows, columns, product, axis=1)
        return rows[:, :-1]

    @property
    def is_category(self) -> bool:
        """Whether each column is 0 or 1, and at most one of them 1."""
        return all(isinstance(factor, Levels | Missing) for factor in self.factors)

    def has_both_signs(self, columns: _Columns) -> bool:
        """Whether the product can be as far below 0 as above."""
        return any(
            isinstance(f, Power) and f.exponent % 2 == 1 and _has_both_signs(columns[f.column], f.column in self.moved)
            for f in self.factors
        )

    @property
    def n_splines(self) -> int:
        """Number of factors that are splines."""
        return sum(isinstance(factor, Spline) for factor in self.factors)

    def expansion(self, columns: _Columns) -> dict[frozenset[tuple[str, int]], float]:
        """Coefficients of the powers of the numbers, in their ``per``, in the product of the numbers as coded."""
        found: dict[frozenset[tuple[str, int]], float] = {frozenset(): 1.0}
        for factor in self.factors:
            if not isinstance(factor, Power):
                continue
            column = columns[factor.column]
            assert isinstance(column, NumericColumn)  # noqa: S101  # for the type checker: as `resolved` left it
            p = factor.exponent
            if factor.column in self.moved:
                offset, slope = (float(value[0]) for value in column.scaling)
                slope *= column.per
                weights = {j: math.comb(p, j) * offset ** (p - j) * slope**j for j in range(p + 1)}
            else:
                weights = {p: (column.per / column.size) ** p}
            found = {
                powers | ({(factor.column, j)} if j else set()): weight * added
                for powers, weight in found.items()
                for j, added in weights.items()
            }
        return found


class Values:
    """The columns of one table as functions of numbers and categories, each made once.

    Each is the functions that may differ from 0 in a row, increasing, -1 for none, and their values, both of shape (n,
    k). None in place of the functions of a factor that has one.
    """

    def __init__(self, columns: _Columns, cells: Mapping[str, NDArray[Any] | Dictionary]) -> None:
        self._columns = columns
        self._cells = cells
        self._numbers: dict[str, _F64] = {}
        self._made: dict[tuple[Factor, bool], _Entries] = {}

    def of(self, factor: Factor, *, moved: bool) -> _Entries:
        """Functions of a factor and their values."""
        key = factor, moved
        if key not in self._made:
            self._made[key] = self._make(factor, moved=moved)
        return self._made[key]

    def n_functions(self, factor: Factor) -> int:
        """Return the number of functions of a factor."""
        column = self._columns[factor.column]
        if isinstance(factor, Spline):
            return factor.n_functions
        return len(column.categories) if isinstance(column, CategoricalColumn) else 1

    def _make(self, factor: Factor, *, moved: bool) -> _Entries:
        name = factor.column
        column = self._columns[name]
        if isinstance(column, CategoricalColumn) or isinstance(factor, Missing):
            cells = self._cells[name]
            codes = column.codes(cells) if isinstance(column, CategoricalColumn) else column.gaps(cells) - 1
            return codes[:, None], np.ones((len(codes), 1))
        if name not in self._numbers:
            try:
                self._numbers[name] = column.numbers(self._cells[name])
            except InvalidInput as error:
                refused = {
                    c.name: as_cells(self._cells[c.name]) for c in self._columns.values() if c.missing == "error"
                }
                raise in_all_columns(error, refused) from None
        numbers = self._numbers[name]
        if isinstance(factor, Spline):
            return basis(factor, column, numbers)
        assert isinstance(factor, Power)  # noqa: S101  # for the type checker
        coded = column.scaled(numbers) if moved else column.held(numbers / column.size, -1.0)
        power = coded
        for _ in range(factor.exponent - 1):
            power = power * coded
        return None, power[:, None]


def coded_rows(parts: Sequence[Part], divisors: Sequence[float], values: Values, n_rows: int) -> CodedRows:
    """Return the rows of parts, each divided by its divisor, with codes for those that are categories."""
    levels = sorted((part.width, at) for at, part in enumerate(parts) if part.is_category)
    places = {at: place for place, (_, at) in enumerate(levels)}
    codes: NDArray[Any] = np.empty((n_rows, len(levels)), dtype=code_type(levels[-1][0]))
    numbers = np.empty((n_rows, sum(part.width for part in parts if not part.is_category)))
    columns: list[int] = []
    starts = [0, *itertools.accumulate(part.width for part in parts)]
    # In their order, so that the first column with a fault is named.
    for at, (part, divisor) in enumerate(zip(parts, divisors, strict=True)):
        if part.is_category:
            columns_of, _ = part.entries(values)
            assert columns_of is not None  # noqa: S101  # for the type checker: a category has columns
            codes[:, places[at]] = columns_of[:, 0] + 1
            continue
        block = numbers[:, len(columns) : len(columns) + part.width]
        np.divide(part.encode(values), divisor, out=block)
        columns += range(starts[at], starts[at + 1])
    categories = tuple((starts[at], width, 1.0 / divisors[at]) for width, at in levels)
    return CodedRows(numbers, codes, tuple(columns), categories)


def sparse_rows(parts: Sequence[Part], divisors: Sequence[float], values: Values, n_rows: int) -> SparseRows:
    """Return the entries of parts that are not 0, each divided by the divisor of its part."""
    width, most = sum(part.width for part in parts), sum(part.n_entries for part in parts)
    columns, entries = np.full((n_rows, most), -1, dtype=np.int32), np.empty((n_rows, most))
    first = start = 0
    for part, divisor in zip(parts, divisors, strict=True):
        own, product = part.entries(values)
        at = slice(start, start + product.shape[1])
        columns[:, at] = first if own is None else np.where(own < 0, -1, first + own)
        np.divide(product, divisor, out=entries[:, at])
        first, start = first + part.width, at.stop
    used = (columns >= 0) & (entries != 0.0)
    return SparseRows((offsets(np.count_nonzero(used, axis=1)), columns[used], entries[used], width))


def single_parts(columns: Sequence[Column]) -> tuple[Part, ...]:
    """Return the coding of each column by itself: numbers are moved, categories lose a reference that is named."""
    parts: list[Part] = []
    for column in columns:
        if isinstance(column, NumericColumn):
            parts.append(Part((Power(column=column.name),), frozenset({column.name}), ((0,),)))
        else:
            kept = tuple(i for i, category in enumerate(column.categories) if category != column.reference)
            parts.append(Part((Levels(column=column.name, reference=column.reference),), frozenset(), (kept,)))
    return (*parts, *_gaps(columns))


def constant_term(terms: Iterable[Term], columns: _Columns) -> Term | None:
    """Return the first term whose columns have the sum 1 in every row, if there is one."""
    for term in terms:
        column = columns[term.columns[0]]
        if len(term.factors) == 1 and isinstance(column, CategoricalColumn) and column.covers_all:
            return term
    return None


def coded_parts(terms: Sequence[Term], columns: Sequence[Column], *, intercept: bool) -> tuple[Part, ...]:
    """Return the coding of terms beside a constant, if ``intercept``; see the top of this file."""
    by_name = {column.name: column for column in columns}
    model: dict[frozenset[Factor], tuple[tuple[int, ...], ...]] = {}
    in_model: set[frozenset[Factor]] = {frozenset(term.factors) for term in terms}
    if intercept:
        in_model.add(frozenset())
    for term in terms:
        key = frozenset(term.factors)
        if not intercept and len(key) == 1 and isinstance(term.factors[0], Levels) and key not in model:
            # The first one has all its columns: they tell what a constant would.
            model[key] = (_kept(term.factors[0], by_name[term.columns[0]], reduced=frozenset() in in_model),)
            in_model.add(frozenset())
            continue
        if key in model:
            raise InvalidInput(f"terms must differ, got {':'.join(term.columns)} twice")
        model[key] = tuple(_kept(f, by_name[f.column], reduced=key - {f} in in_model) for f in term.factors)
        if not all(model[key]) and all(getattr(by_name[name], "other", None) is None for name in term.columns):
            raise InvalidInput(
                f"a term must have a category besides the reference, got none in {':'.join(term.columns)}"
            )
    levels = {key: _levels(key, terms, kept) for key, kept in model.items()}
    if intercept:
        levels[frozenset()] = {frozenset()}
    parts = [Part(t.factors, _moved(t, levels), model[frozenset(t.factors)]) for t in terms]
    return (*parts, *_gaps(columns))


def written(
    parts: Sequence[Part], columns: _Columns, constant: Term | None
) -> tuple[_F64, tuple[str, ...], tuple[str, ...]]:
    """Return the coefficients of the model as it is written, their names and units, the intercept last.

    They are the rows of a matrix: linear functions of those of the columns and of 1. ``constant``: the term whose
    columns have the sum 1, of a model without an intercept.
    """
    k = sum(part.width for part in parts)
    matrix = np.eye(k + 1)
    if constant is None:
        names = (name for part in parts for name in part.names(columns))
        units = coefficient_units(parts, columns, [True] * k)
        return matrix, (*names, "intercept"), (*units, "at 0")
    factor = constant.factors[0]
    every = Part(constant.factors, frozenset(), (_kept(factor, columns[factor.column], reduced=False),))
    at = [part.factors for part in parts].index(constant.factors) if every.width > 1 else len(parts)
    start = sum(part.width for part in parts[:at])
    kept = parts[at].kept[0] if every.width > 1 else ()
    (missing,) = set(every.kept[0]) - set(kept)
    matrix[start : start + len(kept), k] = 1.0
    matrix = np.insert(matrix[:k], start + missing, matrix[k], axis=0)
    whole = [*parts[:at], every, *parts[at + 1 :]]
    names = (name for part in whole for name in part.names(columns))
    return matrix, tuple(names), tuple(coefficient_units(whole, columns, [True] * len(matrix)))


def coefficient_units(parts: Sequence[Part], columns: _Columns, used: Sequence[bool]) -> Iterator[str]:
    """Yield what the coefficient of each column is per, or against, and where it holds.

    A coefficient beside a product, or beside a higher power, is that at 0 of the other numbers and for the references
    of the other categories. ``used`` says which columns are in the model.
    """
    ends = list(itertools.accumulate(part.width for part in parts))
    present = [part for part, end in zip(parts, ends, strict=True) if any(used[end - part.width : end])]
    for part in parts:
        beside = (_beyond(part, other) for other in present)
        places = dict.fromkeys(_place(f, columns[f.column]) for factors in beside for f in factors)
        for unit in part.units(columns):
            yield ", ".join([unit, *places])


def _beyond(part: Part, other: Part) -> tuple[Factor, ...]:
    """Return the factors that a product has besides those of a part, or in a higher power; none of other products."""
    by_column = {factor.column: factor for factor in other.factors}
    for factor in part.factors:
        found = by_column.get(factor.column)
        higher = isinstance(factor, Power) and isinstance(found, Power) and found.exponent > factor.exponent
        if found != factor and not higher:
            return ()
    return tuple(factor for factor in other.factors if factor not in part.factors)


def _place(factor: Factor, column: Column) -> str:
    """Return where a factor that is coded without its reference is 0."""
    if isinstance(factor, Levels):
        return f"for {factor.reference}"
    at = column.lower if isinstance(factor, Spline) and isinstance(column, NumericColumn) else 0.0
    return f"at {factor.column} {at:g}"


def from_units(parts: Sequence[Part], columns: _Columns, divisors: _F64) -> _F64:
    """Return A with ``(x, 1) = A (z, 1)``, z the functions of the parts with the numbers as they are."""
    functions = [function for part in parts for function in part.functions()]
    places = {function: place for place, function in enumerate(functions)}
    places[frozenset(), frozenset()] = len(functions)
    matrix = np.zeros((len(functions) + 1, len(functions) + 1))
    matrix[-1, -1] = 1.0
    row = 0
    for part in parts:
        expansion = part.expansion(columns)
        for _, others in part.functions():
            for powers, weight in expansion.items():
                if weight:
                    matrix[row, places[powers, others]] += weight / divisors[row]
            row += 1
    return matrix


def own_scales(
    parts: Sequence[Part], columns: _Columns, divisors: _F64
) -> Iterator[tuple[str, tuple[float, float, str]]]:
    """Yield offset, slope and unit of what is a column of the table by itself: x is offset + slope * number."""
    start = 0
    for part in parts:
        factor, column = part.factors[0], columns[part.factors[0].column]
        offset, slope, unit = 0.0, 1.0, "share"
        if isinstance(factor, Power) and isinstance(column, NumericColumn):
            scaling = column.scaling if factor.column in part.moved else (np.zeros(1), np.array([1.0 / column.size]))
            (offset,), (slope,) = scaling
            unit = column.unit or "unit"
            unit = unit if column.transform == "none" else f"log {unit}"
        if len(part.factors) == 1 and (part.is_category or getattr(factor, "exponent", 0) == 1):
            for i, name in enumerate(part.names(columns), start):
                yield name, (float(offset / divisors[i]), float(slope / divisors[i]), unit)
        start += part.width


def _gaps(columns: Sequence[Column]) -> list[Part]:
    """Return the indicators of missing numbers."""
    counted = [c.name for c in columns if isinstance(c, NumericColumn) and stand_in(c) is not None]
    return [Part((Missing(column=name),), frozenset(), ((0,),)) for name in counted]


def _kept(factor: Factor, column: Column, *, reduced: bool) -> tuple[int, ...]:
    if isinstance(factor, Levels) and isinstance(column, CategoricalColumn):
        left_out = column.categories.index(str(factor.reference))
        return tuple(i for i in range(len(column.categories)) if not (reduced and i == left_out))
    if isinstance(factor, Spline):
        return tuple(range(1, factor.n_functions))
    return (0,)


def _levels(
    key: frozenset[Factor], terms: Sequence[Term], kept: tuple[tuple[int, ...], ...]
) -> set[frozenset[tuple[Factor, int]]]:
    term = next(term for term in terms if frozenset(term.factors) == key)
    return {others for _, others in Part(term.factors, frozenset(), kept).functions()}


def _moved(
    term: Term,
    levels: Mapping[frozenset[Factor], set[frozenset[tuple[Factor, int]]]],
) -> frozenset[str]:
    """Return the numbers of a term whose moving adds nothing but terms of the model, at the same levels."""
    own = levels[frozenset(term.factors)]
    numbers = [factor for factor in term.factors if isinstance(factor, Power)]
    moved: list[Power] = []
    for factor in numbers:
        candidate = [*moved, factor]
        rest = frozenset(term.factors) - set(candidate)
        lowered = itertools.product(*(range(f.exponent + 1) for f in candidate))
        if all(
            own
            <= levels.get(
                rest | {Power(column=f.column, exponent=j) for f, j in zip(candidate, choice, strict=True) if j}, set()
            )
            for choice in lowered
        ):
            moved = candidate
    return frozenset(factor.column for factor in moved)


def _has_both_signs(column: Column, moved: bool) -> bool:  # noqa: FBT001  # private
    if not isinstance(column, NumericColumn):
        return False
    lower, upper = column.transformed_bounds
    return column.scale == "symmetric" if moved else bool(lower < 0.0 < upper)


def _name(factor: Factor, function: int, column: Column) -> str:
    if isinstance(factor, Levels) and isinstance(column, CategoricalColumn):
        return f"{factor.column}={column.categories[function]}"
    if isinstance(factor, Spline):
        return f"bs({factor.column})[{function + 1}]"
    if isinstance(factor, Missing):
        return f"{factor.column}=missing"
    assert isinstance(factor, Power)  # noqa: S101  # for the type checker
    return factor.column if factor.exponent == 1 else f"{factor.column}^{factor.exponent}"


def _number_unit(factor: Power, column: Column) -> str:
    assert isinstance(column, NumericColumn)  # noqa: S101  # for the type checker
    named = column.counted_unit
    if factor.exponent == 1:
        return named
    return f"({named})^{factor.exponent}" if column.per != 1.0 else f"{named}^{factor.exponent}"


def _against(factor: Factor, kept: tuple[int, ...], column: Column, *, slopes: bool) -> str:
    if isinstance(factor, Missing) and isinstance(column, NumericColumn):
        return f"against {column.missing:g} {column.unit}".rstrip()
    if isinstance(factor, Levels) and isinstance(column, CategoricalColumn):
        if len(kept) < len(column.categories):
            return f"against {factor.reference}"
        # Each category has a slope of its own then.
        if slopes:
            return ""
        return "against all other values" if len(column.categories) == 1 else "against no category"
    return ""
