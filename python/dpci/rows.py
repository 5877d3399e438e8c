"""Domains of rows: the public sets, balls or blocks, that rows lie in and that noise is made for."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpci import _core
from dpci.base.codec import Form, has_fields
from dpci.base.validation import broken, check_count, check_intercept, check_positive
from dpci.errors import InvalidInput

__all__ = ["Ball", "Blocks", "Clipped", "Weighted", "Within"]

CLIP: Literal["clip"] = "clip"
"""Word for rows that are moved to their bounds."""
WEIGHT: Literal["weight"] = "weight"
"""Word for rows that stay as they are beyond their bounds, and weigh less."""
Group: TypeAlias = tuple[Iterable[int], float]
"""Columns of the rows, counted from 0, and the bound on the sum of their absolute values."""


@dataclass(frozen=True, slots=True)
class Ball:
    """Rows of Euclidean norm at most ``norm``; ``rows=r`` is short for ``rows=Ball(r)``.

    Parameters
    ----------
    norm : float
        The bound, finite and above zero; the intercept is not counted.

    Examples
    --------
    >>> import dpci
    >>> dpci.rows.Ball(2.0).norm
    2.0
    """

    norm: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", check_positive("norm", self.norm))

    def check_columns(self, n_columns: int) -> None:
        """Do nothing: a ball has any number of columns."""

    def __str__(self) -> str:
        """Return the domain as summaries show it."""
        return f"ball of norm {self.norm:.4g}"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Blocks:
    """Rows of bounded columns: each column, or each group of columns together, has a bound of its own.

    A column that is in no group has abs(x) at most its bound, and the absolute values of a group's columns sum to at
    most the group's bound: 1 for the indicators of one categorical column, of which at most one is 1, and for a basis
    of B-splines. :attr:`dpci.schema.Schema.rows` writes this down for a table.

    Parameters
    ----------
    bounds : sequence of floats
        Bounds of the columns that are in no group, in their order.
    groups : sequence of (columns, bound)
        Columns by their positions, counted from 0, such as ``range(2, 6)``; every position of the rows that is not
        named here is one of ``bounds``.

    Attributes
    ----------
    bounds, groups : tuple
        Bounds and groups as given; positions in increasing order, groups by their first one, a group of one column
        among the bounds.

    Examples
    --------
    Age and income between -1 and 1, then six indicators of one categorical column:

    >>> import dpci
    >>> rows = dpci.rows.Blocks([1.0, 1.0], groups=[(range(2, 8), 1.0)])
    >>> rows.n_columns, round(rows.norm, 4)
    (8, 1.7321)
    """

    bounds: tuple[float, ...]
    groups: tuple[tuple[tuple[int, ...], float], ...]

    def __init__(self, bounds: Iterable[float], groups: Iterable[Group] = ()) -> None:
        singles = [check_positive(f"bounds[{i}]", bound) for i, bound in enumerate(_items("bounds", bounds))]
        given = [_group(i, group) for i, group in enumerate(_items("groups", groups))]
        n_columns = len(singles) + sum(len(columns) for columns, _ in given)
        if not n_columns:
            raise InvalidInput("bounds and groups must bound at least one column, got none")
        _check_partition(given, n_columns, len(singles))
        grouped = {column for columns, _ in given for column in columns}
        of_column = dict(zip((j for j in range(n_columns) if j not in grouped), singles, strict=True))
        of_column |= {columns[0]: bound for columns, bound in given if len(columns) == 1}
        object.__setattr__(self, "bounds", tuple(of_column[column] for column in sorted(of_column)))
        object.__setattr__(self, "groups", tuple(sorted(group for group in given if len(group[0]) > 1)))
        if math.isinf(self.norm):
            raise InvalidInput("bounds and groups must have a finite Euclidean norm, got bounds that overflow")

    @property
    def n_columns(self) -> int:
        """Number of columns of the rows, without the intercept."""
        return len(self.bounds) + sum(len(columns) for columns, _ in self.groups)

    @property
    def norm(self) -> float:
        """Euclidean norm of the longest row: the root of the sum of all squared bounds."""
        return math.hypot(*self.block_bounds)

    @property
    def block_bounds(self) -> tuple[float, ...]:
        """Bound of every block: of the single columns, then of the groups."""
        return (*self.bounds, *(bound for _, bound in self.groups))

    @property
    def members(self) -> tuple[int, ...]:
        """Block of every column, as a position in :attr:`block_bounds`."""
        found = {column: len(self.bounds) + i for i, (columns, _) in enumerate(self.groups) for column in columns}
        singles = iter(range(len(self.bounds)))
        return tuple(found[j] if j in found else next(singles) for j in range(self.n_columns))

    def check_columns(self, n_columns: int) -> None:
        """Refuse rows of another number of columns.

        Raises
        ------
        InvalidInput
            For any other number than :attr:`n_columns`.
        """
        if n_columns != self.n_columns:
            raise InvalidInput(
                f"rows must bound every column of X, {n_columns} without the intercept, got {self!r}, which bounds "
                f"{self.n_columns}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionary, the inverse of :meth:`from_dict`."""
        groups = [{"columns": list(columns), "bound": bound} for columns, bound in self.groups]
        return {"bounds": list(self.bounds), "groups": groups}

    @classmethod
    def from_dict(cls, description: object) -> "Blocks":
        """Return the blocks of a dictionary as JSON gives it."""
        if not isinstance(description, Mapping) or set(description) != {"bounds", "groups"}:
            raise InvalidInput(f"blocks must have the fields 'bounds' and 'groups', got {description!r}")
        groups = []
        for i, group in enumerate(_items("groups", description["groups"])):
            if not isinstance(group, Mapping) or set(group) != {"columns", "bound"}:
                raise InvalidInput(f"groups[{i}] must have the fields 'columns' and 'bound', got {group!r}")
            groups.append((group["columns"], group["bound"]))
        return cls(description["bounds"], groups)

    def __repr__(self) -> str:
        """Return the call that makes these blocks."""
        bounds = f"[{', '.join(map(repr, self.bounds))}]"
        groups = ", ".join(f"({_columns_text(columns)}, {bound!r})" for columns, bound in self.groups)
        return f"Blocks({bounds}, groups=[{groups}])" if groups else f"Blocks({bounds})"

    def __str__(self) -> str:
        """Return the domain as summaries show it."""
        grouped = self.n_columns - len(self.bounds)
        parts = [f"{len(self.bounds)} bounded"] if self.bounds else []
        if self.groups:
            parts.append(f"{grouped} in {len(self.groups)} group{'s'[: len(self.groups) > 1]}")
        columns = "column" if self.n_columns == 1 else "columns"
        return f"blocks of {self.n_columns} {columns}, {' and '.join(parts)}; norm {self.norm:.4g}"


RowDomain: TypeAlias = Ball | Blocks


@dataclass(frozen=True, slots=True, repr=False)
class Within:
    """Rows that are refused beyond their bounds, as they are without this class, and the constant that is appended.

    Parameters
    ----------
    within : float, Ball or Blocks, optional
        Public bounds, as ``rows`` of :func:`dpci.fit` takes them. None: norm 1, or those of the schema.
    intercept : bool or float
        Whether a constant is appended to every row, or its size; its parameter is last. With a schema the formula says
        whether there is one.

    Examples
    --------
    >>> import dpci
    >>> dpci.rows.Within(2.0, intercept=False)
    Within(Ball(norm=2.0), intercept=False)
    """

    within: RowDomain | float | None = None
    intercept: bool | float = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        check_intercept(self.intercept)
        if self.within is not None:
            object.__setattr__(self, "within", _domain("within", self.within))

    def __repr__(self) -> str:
        """Return the call with what differs from its defaults."""
        given = [] if self.within is None else [repr(self.within)]
        if self.intercept is not True:
            given.append(f"intercept={self.intercept!r}")
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(frozen=True, slots=True, repr=False)
class Clipped(Within):
    """Rows that are moved to their bounds where they lie beyond them; ``rows="clip"`` is short for ``Clipped()``.

    Targets and weights beyond their bounds are moved, too.

    Parameters
    ----------
    within, intercept
        See :class:`Within`.

    Examples
    --------
    >>> import dpci
    >>> dpci.rows.Clipped(2.0)
    Clipped(Ball(norm=2.0))
    """


@dataclass(frozen=True, slots=True, repr=False)
class Weighted(Within):
    """Rows that stay as they are beyond their bounds and weigh less; ``rows="weight"`` is short for ``Weighted()``.

    A row that is q times as long as its bound weighs 1/q², or with Newton steps what these make of it
    (docs/weights.md, "Rows beyond their bounds"). Targets and weights beyond their bounds are moved to them.

    Parameters
    ----------
    within, intercept
        See :class:`Within`.

    Examples
    --------
    >>> import dpci
    >>> dpci.rows.Weighted(2.0)
    Weighted(Ball(norm=2.0))
    """


RowsLike: TypeAlias = float | Ball | Blocks | Within | Literal["clip", "weight"]
"""Bounds of rows as a caller gives them: a number is that of their norm."""


BallLike: TypeAlias = float | Ball | Within | Literal["clip"]
"""Bounds of rows that lie in a ball."""


class Bounded(NamedTuple):
    """Bounds of rows, and what is done with rows beyond them."""

    domain: RowDomain | None
    """None: norm 1, or the domain of the schema."""
    on_violation: Literal["error", "clip", "weight"]
    intercept: float | None = 1.0
    """Constant that is appended to every row."""


def read_rows(rows: object) -> Bounded:
    """Return the three choices that ``rows`` of a caller makes."""
    if isinstance(rows, str):
        if rows not in {CLIP, WEIGHT}:
            raise broken("rows", f"a number, {CLIP!r}, {WEIGHT!r} or an object of dpci.rows", rows)
        return Bounded(None, CLIP if rows == CLIP else WEIGHT)
    if isinstance(rows, Within):
        assert not isinstance(rows.within, int | float)  # noqa: S101  # for the type checker
        beyond = CLIP if isinstance(rows, Clipped) else WEIGHT if isinstance(rows, Weighted) else "error"
        return Bounded(rows.within, beyond, check_intercept(rows.intercept))
    return Bounded(None if rows is None else _domain("rows", rows), "error")


def read_bounds(rows: object) -> Bounded:
    """Return the choices of functions that take an intercept elsewhere, or none."""
    found = read_rows(rows)
    if found.intercept != 1.0:
        raise broken("rows", "given without an intercept for this function", rows)
    return found


def read_ball(rows: object) -> Bounded:
    """Return the choices of functions whose rows lie in a ball."""
    found = read_rows(rows)
    if isinstance(found.domain, Blocks):
        raise broken("rows", "a bound on the norm for this function, which takes no blocks", found.domain)
    if found.on_violation == WEIGHT:
        raise broken("rows", f"a bound on the norm, {CLIP!r} or dpci.rows.Clipped for this function", rows)
    return found


def _domain(name: str, rows: object) -> RowDomain:
    if isinstance(rows, Ball | Blocks):
        return rows
    if isinstance(rows, Real | np.number) and not isinstance(rows, bool | np.bool_):
        return Ball(check_positive(name, rows))
    raise broken(name, "a number, Ball or Blocks of dpci.rows", rows)


def same_blocks(one: RowDomain, other: RowDomain) -> bool:
    """Whether the columns are in the same blocks, as far as both domains have blocks."""
    if isinstance(one, Ball) or isinstance(other, Ball):
        return True
    return one.members == other.members and bool(np.allclose(one.block_bounds, other.block_bounds, rtol=1e-9, atol=0.0))


def core_rows(rows: RowDomain) -> _core.RowDomain | float:
    """Return the domain as the core takes it; a ball is its norm."""
    return rows.norm if isinstance(rows, Ball) else _core.RowDomain.blocks(rows.block_bounds, rows.members)


def core_blocks(rows: RowDomain, intercept: float | None) -> _core.RowDomain | None:
    """Return the blocks of rows with their constant, a block of its own, as noise in their shape takes them."""
    if isinstance(rows, Ball):
        return None
    whole = _core.RowDomain.blocks(rows.block_bounds, rows.members)
    return whole if intercept is None else whole.with_constant(intercept)


def _items(name: str, values: object) -> list[Any]:
    """Return the entries of any sequence but a text."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise broken(name, "a sequence", values)
    return list(values)


def _group(i: int, group: object) -> tuple[tuple[int, ...], float]:
    pair = _items(f"groups[{i}]", group)
    if len(pair) != 2:
        raise InvalidInput(f"groups[{i}] must be a pair (columns, bound), such as (range(2, 6), 1.0), got {group!r}")
    columns = _items(f"columns of groups[{i}]", pair[0])
    if not columns:
        raise InvalidInput(f"groups[{i}] must hold at least one column, got none")
    positions = sorted(check_count(f"columns of groups[{i}]", column, least=0) for column in columns)
    return tuple(positions), check_positive(f"bound of groups[{i}]", pair[1])


def _check_partition(groups: list[tuple[tuple[int, ...], float]], n_columns: int, n_singles: int) -> None:
    seen: set[int] = set()
    for i, (columns, _) in enumerate(groups):
        for column in columns:
            if column in seen:
                raise InvalidInput(f"a column must be in one group, once, got column {column} again in groups[{i}]")
            if column >= n_columns:
                raise InvalidInput(
                    f"groups must hold columns from 0 to {n_columns - 1}, as bounds has {n_singles} and the groups "
                    f"have {n_columns - n_singles}, got column {column} in groups[{i}]"
                )
            seen.add(column)


def _columns_text(columns: tuple[int, ...]) -> str:
    first, last = columns[0], columns[-1]
    consecutive = last - first == len(columns) - 1
    return f"range({first}, {last + 1})" if consecutive else f"[{', '.join(map(str, columns))}]"


def _saved_rows(rows: RowDomain) -> dict[str, Any]:
    return {"norm": rows.norm} if isinstance(rows, Ball) else rows.to_dict()


def _read_saved_rows(name: str, value: object) -> RowDomain:
    if isinstance(value, dict) and "norm" in value:
        return Ball(has_fields(name, value, "norm")["norm"])
    return Blocks.from_dict(value)


SavedRows: TypeAlias = Annotated[RowDomain, Form(_saved_rows, _read_saved_rows)]
