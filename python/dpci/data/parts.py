"""Rows in parts, wherever they are: what a source of parts must do, and the work that is done on each part."""

import copyreg
import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.data.arrays import Features, Treatment, as_features, check_columns
from dpci.data.frames import check_same_index, taken_over
from dpci.data.labels import BOOLEANS, Classes, Label, SeveralClasses, check_public_classes, encode
from dpci.data.persons import PartPersons, check_apart, check_one_kind, tagged
from dpci.data.weights import weight_values, weights_of_cells
from dpci.errors import DpciError, InvalidInput
from dpci.losses import Loss
from dpci.rows import Ball, RowDomain, core_rows
from dpci.unit import NOTHING_BESIDE, Beside, Persons, Weights

_GREATEST_NORM = sys.float_info.max

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
"""Values beside the rows of parts without persons and weights."""


class Mergeable(Protocol):
    """Value that the work on one part returns."""

    @property
    def n_rows(self) -> int:
        """Rows that went into it."""

    def merge(self, other: Self, /) -> Self:
        """Return what both hold, this one's first."""


_Merged = TypeVar("_Merged", bound=Mergeable)


@runtime_checkable
class Partitions(Protocol):
    """Rows with their targets, in parts that are read again in every pass.

    A source that knows the public classes of its targets has them as ``classes``.

    A source that works on several parts at once has a method ``on_threads(n_threads)``, which returns the source as it
    works on that many threads, and the threads of each part.
    """

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, where the source knows them before it is read."""

    def reduce(self, work: Callable[..., _Merged]) -> _Merged | None:
        """Apply ``work(X, y)``, which is picklable, to every part, and merge in the order of the parts.

        Whichever part is finished first: the order of merging decides the last bits. None without parts. Parts with
        persons or weights are ``work(X, y, columns)``, where a mapping has the columns beside the rows by name.
        """


def on_threads(partitions: Partitions, n_threads: int | None) -> tuple[Partitions, int | None]:
    """Return a source as it works on so many threads, None: as many as there are, and the threads of each part."""
    divide = getattr(partitions, "on_threads", None)
    return (partitions, n_threads) if divide is None else divide(n_threads)


class RowChoices(Protocol):
    """Public choices on which the reading of rows and targets depends."""

    @property
    def encoded_loss(self) -> Loss:
        """The loss for the targets that the core takes."""

    @property
    def two_classes(self) -> bool:
        """Whether the loss is one of two classes."""

    @property
    def classes(self) -> Classes | None:
        """The caller's public classes."""

    @property
    def rows(self) -> RowDomain:
        """The public domain of the rows."""

    @property
    def has_constant(self) -> bool:
        """Whether the last parameter is that of a constant."""

    @property
    def intercept(self) -> float | None:
        """The constant that is appended to every row before it is checked."""

    @property
    def treatment(self) -> Treatment:
        """How the core treats what is beyond its bounds."""

    @property
    def n_threads(self) -> int | None:
        """Threads; None: all cores."""

    @property
    def unit(self) -> Persons | None:
        """The rule for the rows of a person; None where rows are records of their own."""

    @property
    def weights(self) -> Weights | None:
        """The public bound and total of the weights; None where each record counts once."""


@dataclass(frozen=True, kw_only=True)
class PartRules:
    """Rules by which rows and targets are understood and checked; public, and picklable as the loss is."""

    loss: Loss
    classes: Classes | None
    rows: RowDomain
    intercept: float | None
    treatment: Treatment
    n_threads: int | None
    columns: tuple[str, ...] | None = None
    named: bool = False
    unit: Persons | None = None
    weights: Weights | None = None
    beside: Beside = NOTHING_BESIDE
    """Names of the columns of ids and weights beside the rows."""
    several: tuple[Label, ...] | None = None
    """The public classes of a loss that has more than two, the reference first."""

    @classmethod
    def of(cls, choices: RowChoices) -> "PartRules":
        """Return the rules that follow from the choices of a release."""
        return cls(
            loss=choices.encoded_loss,
            classes=choices.classes,
            rows=choices.rows,
            intercept=choices.intercept,
            treatment=choices.treatment,
            n_threads=choices.n_threads,
            unit=choices.unit,
            weights=choices.weights,
        )

    @classmethod
    def unbounded(cls, loss: Loss, intercept: float | None, n_threads: int | None) -> "PartRules":
        """Return the rules of functions that make no privacy claim: rows of any norm, classes -1 and 1."""
        two_classes = _to_core(loss).target_bounds is None
        return cls(
            loss=loss,
            classes=(-1, 1) if two_classes else None,
            rows=Ball(_GREATEST_NORM),
            intercept=intercept,
            treatment="error",
            n_threads=n_threads,
        )

    @property
    def two_classes(self) -> bool:
        """Whether targets are classes."""
        return _to_core(self.loss).target_bounds is None

    @property
    def bounds(self) -> dict[str, Any]:
        """Bounds of rows, targets and weights, and what happens beyond them, as the core takes them."""
        return {
            "loss": _to_core(self.loss),
            "row_norm": core_rows(self.rows),
            "intercept": self.intercept,
            "on_violation": self.treatment,
            "n_threads": self.n_threads,
            "weight_bound": None if self.weights is None else self.weights.bound,
        }

    def features(self, X: Any) -> Features:  # noqa: ANN401  # whatever a source gives
        """Return the rows of a part, whose columns must be as in the parts before."""
        features = as_features(X)
        self.rows.check_columns(features.shape[1])
        return features if self.columns is None else check_columns(features, self.columns, named=self.named)

    def targets(self, X: Any, y: Any, n_rows: int) -> NDArray[np.float64]:  # noqa: ANN401  # whatever a source gives
        """Return the targets of a part, whose classes are public: they are the same in every part."""
        y = taken_over("y", y)  # once: a stream can be read only once
        classes = check_public_classes(y, self.classes, n_rows) if self.two_classes else None
        check_same_index(X, y)
        labels = y if self.several is None else SeveralClasses(y, self.several)
        return encode(labels, n_rows, two_classes=self.two_classes, classes=classes).values

    def sums(
        self,
        request: _core.Request,
        X: Any,  # noqa: ANN401  # whatever a source gives
        y: Any,  # noqa: ANN401
        beside: Mapping[str, Any],
    ) -> tuple[_core.Sums, Features, PartPersons | None]:
        """Check the rows of a part and sum over them; return also the rows, and whose they are."""
        features = self.features(X)
        n_rows = features.shape[0]
        used = self.beside.given
        for what, name in used.items():
            if name not in beside:
                raise InvalidInput(f"every part must have the column {name!r} of {what} beside its rows, got none")
        if unused := [name for name in beside if name not in used.values()]:
            raise InvalidInput(
                f"columns beside the rows of a part must be named by persons= or weights=, got {unused[0]!r}, which is "
                "not"
            )
        ids, weighed = self.beside
        persons = None if ids is None else tagged(beside[ids], n_rows, X, request.key)
        weights = None if weighed is None else weight_values(weights_of_cells(beside[weighed]), n_rows, X)
        numbers, tags = (None, None) if persons is None else persons.for_core
        sums = _core.part_sums(
            request,
            _core.Records(features.values, self.targets(X, y, n_rows), persons=numbers, weights=weights),
            tags=tags,
            max_rows=None if self.unit is None else self.unit.max_rows,
            **self.bounds,
        )
        return sums, features, persons


@functools.lru_cache(maxsize=16)
def _to_core(loss: Loss) -> _core.Loss:
    return loss.to_core()


@dataclass(frozen=True)
class SumOver:
    """The work of one pass: the sums over a part."""

    request: _core.Request
    rules: PartRules

    def __call__(self, X: Any, y: Any, beside: Mapping[str, Any] = NOTHING) -> _core.Sums:  # noqa: ANN401  # as above
        """Return the sums over one part."""
        return self.rules.sums(self.request, X, y, beside)[0]


@dataclass(frozen=True)
class Description:
    """Facts that a first pass finds out about some of the parts, whose rows it checks."""

    sums: _core.Sums
    n_columns: int
    names: tuple[str, ...] | None
    tags: tuple[NDArray[np.uint64], ...] = ()
    """Hashes of the persons of each part."""
    kind: str | None = None
    """Kind of their ids."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.sums.n_rows

    def merge(self, other: "Description") -> "Description":
        """Return the description of both."""
        if (self.n_columns, self.names) != (other.n_columns, other.names):
            mine, others = (self.names or self.n_columns, other.names or other.n_columns)
            raise InvalidInput(f"every part must have the same columns, got {others} after {mine}")
        kind = check_one_kind(self.kind, other.kind)
        return Description(self.sums.merge(other.sums), self.n_columns, self.names, self.tags + other.tags, kind)


def _keyed_request() -> _core.Request:
    """Return the request of a first pass, with a new key, by which rows are compared between passes.

    From the operating system's generator: nobody who does not see the key can choose rows that it takes for others.
    """
    try:
        key = os.urandom(32)
    except (OSError, NotImplementedError) as error:
        raise DpciError(
            f"the operating system must provide entropy for the key of a fit in parts, got the error: {error}",
            code="no_entropy",
        ) from error
    return _core.Request("lengths", np.empty(0), key)


@dataclass(frozen=True)
class Describe:
    """The work of the first pass."""

    rules: PartRules
    lengths: _core.Request = field(default_factory=_keyed_request)

    def __call__(self, X: Any, y: Any, beside: Mapping[str, Any] = NOTHING) -> Description:  # noqa: ANN401  # as above
        """Return what the first pass finds out about one part."""
        sums, features, persons = self.rules.sums(self.lengths, X, y, beside)
        if persons is None:
            return Description(sums, features.shape[1], features.names)
        return Description(sums, features.shape[1], features.names, (persons.tags,), persons.kind)


@dataclass(frozen=True)
class DescribedParts:
    """Rows in parts that were read and checked once."""

    first: tuple[_core.Request, _core.Sums]
    n_columns: int
    names: tuple[str, ...] | None
    classes: Classes | None
    partitions: Partitions
    rules: PartRules

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.first[1].n_rows

    @property
    def n_records(self) -> int:
        """Number of records: of persons, or of rows."""
        return self.first[1].n_records

    def evaluate(self, request: _core.Request) -> _core.Sums:
        """Return the sums over all records: one pass, in which every row is checked again."""
        sums = self.partitions.reduce(SumOver(request, self.rules))
        if sums is None:
            raise InvalidInput(
                f"a source must return a fresh iterable each time: every pass over it must find the same rows, got no "
                f"parts after {self.n_rows} rows"
            )
        return sums


def describe(partitions: Partitions, rules: PartRules) -> DescribedParts:
    """Read the parts once: count and check the rows, take their fingerprint, compare the columns.

    If neither the rules nor the source have ``classes``, every part must have labels of a boolean data type. Classes
    are never inferred.
    """
    check_smooth(_to_core(rules.loss))
    if rules.classes is None and rules.two_classes:
        rules = dataclasses.replace(rules, classes=getattr(partitions, "classes", None))
    partitions, each = on_threads(partitions, rules.n_threads)
    rules = dataclasses.replace(rules, n_threads=each)
    work = Describe(rules)
    found = partitions.reduce(work)
    if found is None:
        raise InvalidInput("the data must have at least one row, got a source without parts")
    if found.n_rows == 0:
        raise InvalidInput("the data must have at least one row, got 0 rows in all parts")
    if found.tags:
        check_apart(found.tags)
    names = found.names if partitions.names is None else partitions.names
    if names is not None and (len(names) != found.n_columns or (found.names or names) != names):
        columns_found = found.names or f"{found.n_columns} columns"
        raise InvalidInput(f"names must be those of the columns of every part, got {names} for {columns_found}")
    classes = (rules.classes or BOOLEANS) if rules.two_classes else None
    columns = tuple(f"x{i}" for i in range(found.n_columns)) if names is None else names
    rules = dataclasses.replace(rules, classes=classes, columns=columns, named=names is not None)
    return DescribedParts((work.lengths, found.sums), found.n_columns, names, classes, partitions, rules)


def check_smooth(loss: _core.Loss) -> None:
    """Refuse the hinge, whose minimiser needs the rows themselves."""
    if loss.kinked:
        raise InvalidInput("the hinge requires all rows in memory, got rows in parts (use huber_hinge or smooth_hinge)")


def _rebuilt(cls: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401  # as pickled
    """Make a request or sums again; arrays that came over a network may begin anywhere in memory."""
    aligned = (np.require(a, requirements=["C", "ALIGNED"]) if isinstance(a, np.ndarray) else a for a in arguments)
    return cls(*aligned)


def _reduced_to_arguments(travelling: _core.Request | _core.Sums) -> tuple[Any, ...]:
    return _rebuilt, (type(travelling), *travelling.__getnewargs__())


copyreg.pickle(_core.Request, _reduced_to_arguments)
copyreg.pickle(_core.Sums, _reduced_to_arguments)
