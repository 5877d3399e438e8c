"""Whose privacy a release protects, and how much its records weigh: persons and weights."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import ArrayLike

from dpci import _core
from dpci.base.validation import as_name, check_count, check_positive, in_short
from dpci.errors import InvalidInput


@dataclass(frozen=True)
class Persons:
    """Persons as the unit of privacy, each of whom may have several rows (docs/persons.md).

    Functions that read data take it with the ids, for which the ids alone are short. Plans, which read none, take it
    without: ``dpci.Persons()``, or ``dpci.Persons(max_rows=3)``.

    Parameters
    ----------
    ids : array-like of shape (n_samples,) or str, optional
        The person to whom each row belongs, in the order of the rows: ids of any type, or the name of the column that
        holds them, where a table has a schema or rows come in chunks. Ids are private, and no result keeps one.
    max_rows : int, optional
        The first ``max_rows`` rows of each person count, by ``1 / max_rows`` each. None: all rows count, each by the
        reciprocal of the number of rows of its person.

    Raises
    ------
    InvalidInput
        For a ``max_rows`` that is no number from 1 to 2**32 - 1.

    Examples
    --------
    >>> import dpci
    >>> print(dpci.Persons(["Ann", "Ann", "Bo"], max_rows=2))
    the first 2 rows of each person, each with weight 1/2
    """

    ids: Any = field(default=None, repr=False, compare=False)
    max_rows: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.max_rows is not None:
            count = check_count("max_rows", self.max_rows)
            if count >= 2**32:
                raise InvalidInput(f"max_rows must be below 2**32, got max_rows={count}")
            object.__setattr__(self, "max_rows", count)

    def __str__(self) -> str:
        if self.max_rows is None:
            return "the mean of each person's rows"
        weight = "" if self.max_rows == 1 else f", each with weight 1/{self.max_rows}"
        return f"{self.kept}{weight}"

    @property
    def kept(self) -> str:
        """The rows that count, in words."""
        if self.max_rows is None:
            return "all rows of each person"
        return (
            "the first row of each person" if self.max_rows == 1 else f"the first {self.max_rows} rows of each person"
        )

    @property
    def public(self) -> "Persons":
        """The same without ids."""
        return dataclasses.replace(self, ids=None)

    def to_dict(self) -> dict[str, int | None]:
        """Return the public rule as JSON holds it."""
        return {"max_rows": self.max_rows}

    @classmethod
    def from_dict(cls, value: Any) -> "Persons":  # noqa: ANN401  # a file can hold anything
        """Return the rule that :meth:`to_dict` returned.

        Raises
        ------
        InvalidInput
            For anything else.
        """
        if not isinstance(value, dict) or set(value) != {"max_rows"}:
            raise InvalidInput(f"persons must have the field 'max_rows' and no other, got persons={value!r}")
        return cls(max_rows=value["max_rows"])


@dataclass(frozen=True)
class Weights:
    """Weights of records, with their public bound and total (docs/weights.md).

    Functions that read data take it with the values; plans, which read none, take ``dpci.Weights(bound=4.0)``.

    Parameters
    ----------
    values : array-like of shape (n_samples,) or str, optional
        How much each row counts, such as survey weights: numbers from 0 to ``bound``, or the name of the column that
        holds them, where a table has a schema or rows come in chunks. A weight is private: it belongs to its record and
        is protected with it.
    bound : float
        The largest weight that any record could have. It is public and must not be taken from the data. Greater weights
        are refused, or lowered to it with ``rows="clip"``. The noise grows with it.
    total : float, optional
        The public number that divides weighted sums, such as the size of the population that the weights represent.
        None: the number of records, for weights with mean 1.

    Raises
    ------
    InvalidInput
        For a bound or total that is not finite and above 0.

    Examples
    --------
    >>> import dpci
    >>> print(dpci.Weights([1.0, 2.5], bound=4.0, total=1000))
    from 0 to 4, sums divided by 1000
    """

    values: Any = field(default=None, repr=False, compare=False)
    bound: float = field(kw_only=True)
    total: float | None = field(default=None, kw_only=True)
    far_rows: bool = field(default=False, kw_only=True, repr=False)
    """Whether rows beyond their bounds weigh less, as ``rows`` or a column of the schema asks; not for callers."""
    left_out: bool = field(default=False, kw_only=True, repr=False)
    """Whether rows weigh 1 but for those that a column of the schema leaves out, which weigh 0; not for callers."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", check_positive("bound", self.bound))
        if self.total is not None:
            object.__setattr__(self, "total", check_positive("total", self.total))

    def __str__(self) -> str:
        total = "" if self.total is None else f", sums divided by {self.total:g}"
        far = ", less of rows beyond their bounds" if self.far_rows else ""
        return f"from 0 to {self.bound:g}{total}{far}"

    @property
    def public(self) -> "Weights":
        """The same without values."""
        return dataclasses.replace(self, values=None)

    def divisor(self, n_samples: int) -> float:
        """Return the number that divides sums over records that weigh at most 1."""
        return (n_samples if self.total is None else self.total) / self.bound

    def mean_share(self, n_samples: int) -> float:
        """Return the mean over the bound of as many weights that add up to their total."""
        return self.divisor(n_samples) / n_samples

    def to_dict(self) -> dict[str, float | None]:
        """Return bound and total as JSON holds them, and why rows weigh less where no caller gave weights."""
        why = {name: True for name in _WHY if getattr(self, name)}
        return {"bound": self.bound, "total": self.total, **why}

    @classmethod
    def from_dict(cls, value: Any) -> "Weights":  # noqa: ANN401  # a file can hold anything
        """Return the bound and total that :meth:`to_dict` returned.

        Raises
        ------
        InvalidInput
            For anything else.
        """
        if (
            not isinstance(value, dict)
            or {*value} - {*_WHY} != {"bound", "total"}
            or any(value.get(name, True) is not True for name in _WHY)
        ):
            raise InvalidInput(f"weights must have the fields 'bound' and 'total' and no other, got weights={value!r}")
        return cls(bound=value["bound"], total=value["total"], **{name: name in value for name in _WHY})


_WHY = ("far_rows", "left_out")


PersonsLike: TypeAlias = ArrayLike | str | Persons
"""Persons with their ids, or the ids alone."""


class Beside(NamedTuple):
    """Private columns beside the rows: arrays, or names of columns; None where there are none."""

    persons: Any = None
    """The ids."""
    weights: Any = None
    """The values."""

    @property
    def given(self) -> dict[str, Any]:
        """Columns that are given, by their keyword."""
        return {name: values for name, values in self._asdict().items() if values is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that are named."""
        return tuple(values for values in self if isinstance(values, str))


NOTHING_BESIDE = Beside()
"""The columns of rows that are records of their own and count once."""


class Given(NamedTuple):
    """Persons and weights as a caller gives them, public and private parts apart."""

    unit: Persons | None
    """The public rule for the rows of a person; None where rows are records of their own."""
    weights: Weights | None
    """The public bound and total; None where each record counts once."""
    beside: Beside


def given_unit(persons: object, weights: object, schema: object = None) -> Given:
    """Return the two keywords of a function that reads data, public and private parts apart.

    ``schema``: that of the table, whose column of persons a message names.
    """
    unit = persons if isinstance(persons, Persons) else None if persons is None else Persons(persons)
    if unit is not None and unit.ids is None:
        named = getattr(schema, "persons", "")
        rule = "" if unit.max_rows is None else f", max_rows={unit.max_rows}"
        raise InvalidInput(
            f"persons must have ids where data are read, got {in_short(unit)} (pass "
            f"persons=dpci.Persons({repr(named) if named else 'ids'}{rule}))"
        )
    if weights is not None and not isinstance(weights, Weights):
        raise InvalidInput(
            "weights must be dpci.Weights(values, bound=...), where bound is the greatest weight that any record could "
            f"have, because it must not depend on the data, got {type(weights).__name__}"
        )
    if weights is not None and weights.values is None:
        raise InvalidInput(
            f"weights must have values where data are read, got {in_short(weights)} (pass dpci.Weights(values, "
            "bound=...))"
        )
    return Given(
        unit and unit.public,
        weights and weights.public,
        Beside(unit and as_name(unit.ids), weights and as_name(weights.values)),
    )


def check_unit(persons: object) -> Persons | None:
    """Return the unit of a function that reads no data; None where rows are records of their own."""
    if persons is None:
        return None
    if not isinstance(persons, Persons):
        raise InvalidInput(
            "persons must be dpci.Persons() or dpci.Persons(max_rows=...) in a plan and as a parameter of an "
            f"estimator, got {type(persons).__name__}"
        )
    if persons.ids is not None:
        raise InvalidInput(
            f"persons must have no ids in a plan and as a parameter of an estimator, got some (pass {persons.public!r})"
        )
    return persons


def check_weights(weights: object) -> Weights | None:
    """Return the public bound and total for a function that reads no data; None where each record counts once."""
    if weights is None:
        return None
    if not isinstance(weights, Weights):
        raise InvalidInput(
            "weights must be dpci.Weights(bound=...) in a plan and as a parameter of an estimator, got "
            f"{type(weights).__name__}"
        )
    if weights.values is not None:
        raise InvalidInput(
            "weights must have no values in a plan and as a parameter of an estimator, got some (pass "
            f"{weights.public!r})"
        )
    return weights


def has_far_rows(weights: Weights | None) -> bool:
    """Return whether rows beyond their bounds weigh less."""
    return weights is not None and weights.far_rows


def unit_in_words(unit: Persons | None) -> str:
    """Return the unit that a release protects, for messages."""
    return "a row" if unit is None else f"a person ({unit})"


def core_terms(
    n_samples: int, neighbors: str, unit: Persons | None = None, weights: Weights | None = None
) -> _core.Terms:
    """Return the public number of records, the relation, unit and weights as the core takes them."""
    return _core.Terms(
        n_samples,
        neighbors,
        persons=unit is not None,
        max_rows=None if unit is None else unit.max_rows,
        weights=None if weights is None else (weights.bound, weights.total),
        far_rows=has_far_rows(weights),
    )
