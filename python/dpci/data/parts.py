"""Rows in parts, wherever they are: what a source of parts must do, and the work that is done on each part."""

import copyreg
import dataclasses
import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.data.arrays import Features, as_features, check_columns
from dpci.data.frames import check_same_index
from dpci.data.interchange import taken_over
from dpci.data.labels import BOOLEANS, Classes, check_public_classes, encode
from dpci.errors import DpciError, InvalidInput
from dpci.losses import Loss
from dpci.rows import Ball, RowDomain, core_rows

_GREATEST_NORM = sys.float_info.max


class Mergeable(Protocol):
    """What the work on one part returns."""

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

    A source that works on several parts at once says so with ``concurrent = True``: each has one thread then, unless
    the caller's ``n_threads`` says otherwise.
    """

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, where the source knows them before it is read."""

    def reduce(self, work: Callable[[Any, Any], _Merged]) -> _Merged | None:
        """Apply ``work(X, y)``, which is picklable, to every part, and merge in the order of the parts.

        Whichever part is finished first: the order of merging decides the last bits. None without parts.
        """


@dataclass(frozen=True, kw_only=True)
class PartRules:
    """How the rows and the targets of a part are understood and checked; public, and picklable as the loss is."""

    loss: Loss
    classes: Classes | None
    rows: RowDomain
    intercept: float | None
    clip: bool
    n_threads: int | None
    columns: tuple[str, ...] | None = None
    named: bool = False

    @classmethod
    def unbounded(cls, loss: Loss, intercept: float | None, n_threads: int | None) -> "PartRules":
        """Those of functions that make no privacy claim: rows of any norm, classes -1 and 1."""
        two_classes = _to_core(loss).target_bounds is None
        return cls(
            loss=loss,
            classes=(-1, 1) if two_classes else None,
            rows=Ball(_GREATEST_NORM),
            intercept=intercept,
            clip=False,
            n_threads=n_threads,
        )

    @property
    def two_classes(self) -> bool:
        """Whether targets are classes."""
        return _to_core(self.loss).target_bounds is None

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
        return encode(y, n_rows, two_classes=self.two_classes, classes=classes).values

    def sums(self, request: _core.Request, features: Features, targets: NDArray[np.float64]) -> _core.Sums:
        """Check the rows of a part and sum over them."""
        return _core.part_sums(
            request,
            features.values,
            targets,
            loss=_to_core(self.loss),
            row_norm=core_rows(self.rows),
            intercept=self.intercept,
            clip=self.clip,
            n_threads=self.n_threads,
        )


@functools.lru_cache(maxsize=16)
def _to_core(loss: Loss) -> _core.Loss:
    return loss.to_core()


@dataclass(frozen=True)
class SumOver:
    """The work of one pass: the sums over a part."""

    request: _core.Request
    rules: PartRules

    def __call__(self, X: Any, y: Any) -> _core.Sums:  # noqa: ANN401  # whatever a source gives
        """Return the sums over one part."""
        features = self.rules.features(X)
        return self.rules.sums(self.request, features, self.rules.targets(X, y, features.shape[0]))


@dataclass(frozen=True)
class Description:
    """What a first pass finds out about some of the parts, whose rows it checks."""

    sums: _core.Sums
    n_columns: int
    names: tuple[str, ...] | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.sums.n_rows

    def merge(self, other: "Description") -> "Description":
        """Return the description of both."""
        if (self.n_columns, self.names) != (other.n_columns, other.names):
            mine, others = (self.names or self.n_columns, other.names or other.n_columns)
            raise InvalidInput(f"every part must have the same columns, got {others} after {mine}")
        return Description(self.sums.merge(other.sums), self.n_columns, self.names)


def _keyed_request() -> _core.Request:
    """Return the request of a first pass, with a new key, by which rows are compared between passes.

    From the operating system's generator: nobody who does not see the key can choose rows that it takes for others.

    Raises
    ------
    DpciError
        Without entropy, as for release noise.
    """
    try:
        key = os.urandom(32)
    except (OSError, NotImplementedError) as error:
        raise DpciError(
            f"the operating system must provide entropy for the key of a fit in parts, got the error: {error}"
        ) from error
    return _core.Request("lengths", np.empty(0), key)


@dataclass(frozen=True)
class Describe:
    """The work of the first pass."""

    rules: PartRules
    lengths: _core.Request = field(default_factory=_keyed_request)

    def __call__(self, X: Any, y: Any) -> Description:  # noqa: ANN401  # whatever a source gives
        """Return what the first pass finds out about one part."""
        features = self.rules.features(X)
        n_rows, n_columns = features.shape
        sums = self.rules.sums(self.lengths, features, self.rules.targets(X, y, n_rows))
        return Description(sums, n_columns, features.names)


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

    Raises
    ------
    InvalidInput
        For rows or targets that break a rule, parts with different columns, labels of another type without
        ``classes``, the hinge, and a source without rows.
    RowNormViolation
        For a row above the bound.
    """
    check_smooth(_to_core(rules.loss))
    if rules.classes is None and rules.two_classes:
        rules = dataclasses.replace(rules, classes=getattr(partitions, "classes", None))
    if rules.n_threads is None and getattr(partitions, "concurrent", False):
        rules = dataclasses.replace(rules, n_threads=1)
    work = Describe(rules)
    found = partitions.reduce(work)
    if found is None:
        raise InvalidInput("the data must have at least one row, got a source without parts")
    if found.n_rows == 0:
        raise InvalidInput("the data must have at least one row, got 0 rows in all parts")
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
