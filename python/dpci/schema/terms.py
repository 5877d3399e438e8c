"""Terms of a model: products of powers, categories and splines of the columns of a table."""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.base.validation import check_count, composed
from dpci.errors import InvalidInput
from dpci.schema.cells import label_of
from dpci.schema.columns import CategoricalColumn, Column, NumericColumn

_F64: TypeAlias = NDArray[np.float64]

_MOST_FUNCTIONS = 1000
_HIGHEST_POWER = 10

# Of the distance of the bounds: divided by less, the functions of a spline could overflow.
_LEAST_GAP = 2.0**-40


@dataclass(frozen=True, kw_only=True)
class Power:
    """A number of the table, or a power of it.

    Parameters
    ----------
    column : str
        A numeric column.
    exponent : int
        From 1 to 10.
    """

    column: str
    exponent: int = 1

    def __post_init__(self) -> None:
        exponent = check_count(f"exponent of {self.column!r}", self.exponent)
        if exponent > _HIGHEST_POWER:
            raise InvalidInput(f"exponent of {self.column!r} must be at most {_HIGHEST_POWER}, got {exponent}")
        object.__setattr__(self, "exponent", exponent)


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Indicators of the categories of a column.

    Parameters
    ----------
    column : str
        A categorical column.
    reference : str, optional
        Category with which the others are compared. None: the reference of the column; if it has none, its first
        category.
    """

    column: str
    reference: str | None = None


@dataclass(frozen=True, kw_only=True)
class Spline:
    """A basis of B-splines of a number between its public bounds.

    The functions are not negative and their sum is 1 everywhere within the bounds.

    Parameters
    ----------
    column : str
        A numeric column.
    knots : tuple of float
        Public inner knots in the unit of the table, increasing, strictly within the bounds of the column.
    degree : int
        Degree of the pieces, from 1 to 10.
    """

    column: str
    knots: tuple[float, ...] = ()
    degree: int = 3

    def __post_init__(self) -> None:
        degree = check_count(f"degree of the spline of {self.column!r}", self.degree)
        if degree > _HIGHEST_POWER:
            raise InvalidInput(
                f"degree of the spline of {self.column!r} must be at most {_HIGHEST_POWER}, got {degree}"
            )
        knots: object = self.knots
        if isinstance(knots, str | Mapping) or not isinstance(knots, Iterable):
            raise InvalidInput(f"knots of the spline of {self.column!r} must be a list of numbers, got {knots!r}")
        numbers = tuple(knots)
        if not all(isinstance(knot, int | float | np.number) and not isinstance(knot, bool) for knot in numbers):
            raise InvalidInput(f"knots of the spline of {self.column!r} must be numbers, got {list(numbers)}")
        if len(numbers) + degree >= _MOST_FUNCTIONS:
            raise InvalidInput(
                f"a spline must have at most {_MOST_FUNCTIONS} functions, got {len(numbers) + degree + 1} of "
                f"{self.column!r}"
            )
        object.__setattr__(self, "degree", degree)
        object.__setattr__(self, "knots", tuple(map(float, numbers)))

    @property
    def n_functions(self) -> int:
        """Number of functions of the basis."""
        return len(self.knots) + self.degree + 1


@dataclass(frozen=True, kw_only=True)
class Missing:
    """The indicator of a missing number; every model with a column that counts missing numbers has it."""

    column: str


Factor: TypeAlias = Power | Levels | Spline | Missing


@dataclass(frozen=True)
class Term:
    """A product of factors, each of another column of the table.

    Parameters
    ----------
    factors : tuple of Power, Levels and Spline
        At least one.
    """

    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        factors: object = self.factors
        if not isinstance(factors, tuple | list) or not factors:
            raise InvalidInput(f"a term must have at least one factor, got {factors!r}")
        if not all(isinstance(factor, Power | Levels | Spline) for factor in factors):
            raise InvalidInput(f"factors of a term must be of Power, Levels and Spline, got {factors!r}")
        used: list[object] = [factor.column for factor in factors]
        if not all(isinstance(name, str) for name in used):
            raise InvalidInput(f"a factor must name a column, got {used}")
        if len(set(used)) < len(used):
            raise InvalidInput(f"a term must name a column once (a power is I(x**2)), got {':'.join(map(str, used))}")
        object.__setattr__(self, "factors", tuple(factors))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that it needs."""
        return tuple(factor.column for factor in self.factors)

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionary, the inverse of :meth:`from_dict`."""
        kinds: dict[type, str] = {kind: name for name, kind in _KINDS.items()}
        entries = []
        for factor in self.factors:
            fields = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(factor).items()}
            entries.append({"kind": kinds[type(factor)], **{k: v for k, v in fields.items() if v is not None}})
        return {"factors": entries}

    @classmethod
    def from_dict(cls, description: object) -> "Term":
        """Return the term of a dictionary as TOML or JSON gives it."""
        if not isinstance(description, Mapping) or set(description) != {"factors"}:
            raise InvalidInput(f"a term must have the field 'factors' and no other, got {description!r}")
        entries = description["factors"]
        if not isinstance(entries, list | tuple):
            raise InvalidInput(f"factors of a term must be a list of tables, got {entries!r}")
        factors = []
        for entry in entries:
            fields = dict(entry) if isinstance(entry, Mapping) else {}
            kind = fields.pop("kind", None)
            if not isinstance(kind, str) or kind not in _KINDS:
                raise InvalidInput(f"kind of a factor must be one of {list(_KINDS)}, got {kind!r}")
            known = [field.name for field in dataclasses.fields(_KINDS[kind])]
            if "column" not in fields or set(fields) - set(known):
                raise InvalidInput(f"a factor of kind {kind!r} must have the fields {known}, got {sorted(fields)}")
            factors.append(_KINDS[kind](**fields))
        return cls(tuple(factors))


_KINDS: dict[str, type[Power | Levels | Spline]] = {"power": Power, "levels": Levels, "spline": Spline}


def resolved(term: Term, columns: Mapping[str, Column]) -> Term:
    """Return a term with the references that it leaves to its columns."""
    return Term(tuple(_resolved(factor, columns) for factor in term.factors))


def _resolved(factor: Factor, columns: Mapping[str, Column]) -> Factor:
    column = columns.get(composed(factor.column))
    if column is None:
        raise InvalidInput(f"a term must be of columns of the schema, {sorted(columns)}, got {factor.column!r}")
    factor = dataclasses.replace(factor, column=column.name)
    wanted = CategoricalColumn if isinstance(factor, Levels) else NumericColumn
    if not isinstance(column, wanted):
        kind, got = ("categorical", "a number") if wanted is CategoricalColumn else ("numeric", "categories")
        raise InvalidInput(f"a {type(factor).__name__} must be of a {kind} column, got {factor.column!r}, of {got}")
    if isinstance(factor, Spline) and isinstance(column, NumericColumn):
        if column.outside == "weight":
            raise InvalidInput(
                f"the column of a spline must have outside='clip' or 'error', because a spline ends at the bounds, got "
                f"outside='weight' of {factor.column!r}"
            )
        places = [column.lower, *factor.knots, column.upper]
        if not all(one < other for one, other in itertools.pairwise(places)):
            raise InvalidInput(
                f"knots of the spline of {factor.column!r} must increase between its bounds, got {places}"
            )
        unit = _knots(factor, column)
        if not (np.diff(unit[factor.degree : len(unit) - factor.degree]) >= _LEAST_GAP).all():
            raise InvalidInput(
                f"knots of the spline of {factor.column!r} must be apart by at least 2**-40 of the distance between "
                f"its bounds, got {places}"
            )
    if isinstance(factor, Levels) and isinstance(column, CategoricalColumn):
        reference = column.reference or column.categories[0]
        if factor.reference is not None:
            reference = label_of(factor.reference)
        if reference not in column.categories:
            raise InvalidInput(f"reference must be a category of {factor.column!r}, got {reference!r}")
        return Levels(column=factor.column, reference=reference)
    return factor


def equal_knots(column: NumericColumn, n_functions: int, degree: int) -> tuple[float, ...]:
    """Return inner knots of equal distances between the bounds of a column (after its transform)."""
    lower, upper = column.transformed_bounds
    inner = np.linspace(lower, upper, n_functions - degree + 1)[1:-1]
    return tuple(float(knot) for knot in column.back(inner))


def basis(factor: Spline, column: NumericColumn, numbers: _F64) -> tuple[NDArray[np.int64], _F64]:
    """Functions that may differ from 0 at numbers within the bounds, and their values, each (n, degree + 1)."""
    from scipy.interpolate import BSpline  # noqa: PLC0415  # slow to import, and few models have splines

    lower, upper = column.transformed_bounds
    unit = np.clip((numbers - lower) / (upper - lower), 0.0, 1.0)
    values = BSpline.design_matrix(unit, _knots(factor, column), factor.degree)
    shape = len(unit), factor.degree + 1
    return values.indices.astype(np.int64).reshape(shape), np.maximum(values.data, 0.0).reshape(shape)


def _knots(factor: Spline, column: NumericColumn) -> _F64:
    lower, upper = column.transformed_bounds
    inner = (column.forth(np.array(factor.knots, dtype=np.float64)) - lower) / (upper - lower)
    ends = factor.degree + 1
    return np.concatenate([np.zeros(ends), inner, np.ones(ends)])
