"""The one way in for X and y: a source as the caller gives it becomes rows as the core takes them."""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.data.arrays import Floats, NamedRows, as_features
from dpci.data.coded import CodedRows
from dpci.data.dask import dask_partitions
from dpci.data.frames import check_same_index, column_labels, is_frame
from dpci.data.labels import Classes, SeveralClasses, encode
from dpci.data.parts import DescribedParts, Partitions, PartRules, RowChoices, check_smooth, describe
from dpci.data.persons import check_index_of_persons, count_records, numbered
from dpci.data.storage import Csr
from dpci.data.weights import check_index_of_weights, row_weights
from dpci.errors import InvalidInput
from dpci.unit import NOTHING_BESIDE, Beside

_Resolved = TypeVar("_Resolved")


class Source(NamedTuple):
    """Rows and targets as a caller gives them, and what is beside them."""

    X: Any
    y: Any = None
    beside: Beside = NOTHING_BESIDE
    """Ids and weights of the rows, or the names of their columns; weights may be :class:`ClassWeights`."""
    prepare: "Callable[[Source], Source] | None" = None
    """Looks at the data as soon as they may be read, and returns them as the release takes them."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rows:
    """Rows and targets as the core takes them, and what they are called; made by :func:`read`, and handed on.

    Rows in memory are ``values`` and ``targets``; rows in parts, which every pass reads again, are ``parts``.
    """

    shape: tuple[int, int]
    """Numbers of rows and of columns."""
    names: tuple[str, ...]
    """Names of the parameters."""
    named_columns: bool
    """Whether the names came with the caller's table."""
    classes: Classes | None
    """(negative, positive); None for real targets."""
    classes_inferred: bool
    """Whether the classes were inferred from the labels, so that they are not public."""
    persons: NDArray[np.int64] | None = None
    """The number of the person of each row; None where rows are records of their own."""
    weights: NDArray[np.float64] | None = None
    """The weight of each row; None where each counts once."""
    parts: DescribedParts | None = None
    held: tuple[Floats | Csr | CodedRows, NDArray[np.float64]] | None = None
    core: _core.Records | None = None
    """The records in memory as the core takes them, which checks them once."""

    @property
    def n_records(self) -> int:
        """Number of records: of persons, or of rows."""
        if self.parts is not None:
            return self.parts.n_records
        return count_records(self.shape[0], self.persons)

    @property
    def records(self) -> _core.Records:
        """The records, in memory."""
        assert self.core is not None  # noqa: S101  # for the type checker: ``read`` takes parts only where it may
        return self.core

    @property
    def source(self) -> _core.Records | DescribedParts:
        """The records as the core takes them, in memory or in parts."""
        return self.records if self.parts is None else self.parts

    @property
    def values(self) -> Floats | Csr | CodedRows:
        """The rows, in memory."""
        assert self.held is not None  # noqa: S101  # as above
        return self.held[0]

    @property
    def targets(self) -> NDArray[np.float64]:
        """The targets, in memory: -1 and 1, or real numbers."""
        assert self.held is not None  # noqa: S101  # as above
        return self.held[1]


def read(
    source: Source, choices: RowChoices, resolve: Callable[[int, int], _Resolved], *, parts: PartRules | None = None
) -> tuple[Rows, _Resolved]:
    """Return the rows, and what ``resolve`` makes of their numbers of records and columns.

    Parameters
    ----------
    source : Source
        Rows and targets, prepared already.
    choices : RowChoices
        Choices on which rows, names and targets depend.
    resolve : callable
        Called with both numbers. Where the rows are in memory it is called before the targets are looked at: what
        public choices rule out is refused first.
    parts : PartRules, optional
        How rows in parts are understood and checked; None: they are refused.

    Raises
    ------
    InvalidInput, RowNormViolation
        For malformed data; for rows in parts also where they break the bounds, which all others meet in the core.
    """
    X, y, beside, _ = source
    partitions = None if parts is None else as_partitions(source)
    if parts is not None and partitions is not None:
        found = describe(partitions, dataclasses.replace(parts, beside=names_beside(beside)))
        names = _param_names(found.names, found.n_columns, choices)
        rows = Rows(
            shape=(found.n_rows, found.n_columns),
            names=names,
            named_columns=found.names is not None,
            classes=found.classes,
            classes_inferred=False,
            parts=found,
        )
        return rows, resolve(found.n_records, found.n_columns)
    features = as_features(X)
    names = _param_names(features.names, features.shape[1], choices)
    choices.rows.check_columns(features.shape[1])
    numbers = None if beside.persons is None else numbered(beside.persons, features.shape[0], X)
    n_records = count_records(features.shape[0], numbers)
    resolved = resolve(n_records, features.shape[1])
    if features.names is not None:  # only a frame, which names its columns, has an index
        check_same_index(X, y.labels if isinstance(y, SeveralClasses) else y)
    targets = encode(y, features.shape[0], two_classes=choices.two_classes, classes=choices.classes)
    row_weight = None if beside.weights is None else row_weights(beside.weights, targets.values, X)
    values = features.values
    placed = values if features.place is None or isinstance(values, tuple | CodedRows) else (values, *features.place)
    rows = Rows(
        shape=features.shape,
        names=names,
        named_columns=features.names is not None,
        classes=targets.classes,
        classes_inferred=targets.classes_inferred,
        persons=numbers,
        weights=row_weight,
        held=(values, targets.values),
        core=_core.Records(placed, targets.values, persons=numbers, weights=row_weight),
    )
    return rows, resolved


def _param_names(columns: tuple[str, ...] | None, n_columns: int, choices: RowChoices) -> tuple[str, ...]:
    """Return the names of the parameters: those of the columns, or x0, x1, ..., and the intercept last."""
    names = tuple(f"x{i}" for i in range(n_columns)) if columns is None else columns
    if not choices.has_constant:
        return names
    if "intercept" in names:
        raise InvalidInput("columns of X must not be called 'intercept' with an intercept, got one (rename it)")
    return (*names, "intercept")


def is_in_parts(X: object) -> TypeGuard[Partitions]:
    """Whether these are rows in parts, other than those of Dask."""
    # The class, not the object: frames take the names of their columns for attributes.
    return hasattr(type(X), "reduce") and isinstance(X, Partitions)  # the first alone is fast


def is_dask(X: object) -> bool:
    """Whether these are rows of Dask, which is not imported: while it is not, its objects do not exist."""
    frames = sys.modules.get("dask.dataframe")
    kinds = getattr(sys.modules.get("dask.array"), "Array", ()), getattr(frames, "DataFrame", ())
    return isinstance(X, (*kinds, getattr(frames, "Series", ())))


def known_shape(X: object) -> tuple[int | None, int | None]:
    """Return the numbers of rows and columns; a number is None if it is unknown before the data are read."""
    if is_in_parts(X):
        names = X.names
        return None, None if names is None else len(names)
    shape = getattr(X.values if isinstance(X, NamedRows) else X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise InvalidInput(
            "X must have a known two-dimensional shape before it is read (an array, a frame, a sparse matrix) with a "
            f"ledger that has errors='private', got {type(X).__name__}"
        )
    rows, columns = (int(size) if isinstance(size, int | np.integer) else None for size in shape)
    return rows, columns


def known_names(X: object) -> tuple[str, ...] | None:
    """Return the names of the columns as far as they are known before the rows are read; None without."""
    if is_in_parts(X):
        return X.names
    return X.names if isinstance(X, NamedRows) else column_labels(X)


def check_beside_parts(source: Source) -> None:
    """Refuse ids and weights other than columns of the parts, by their kind, before anything is paid or read."""
    in_parts, on_dask = is_in_parts(source.X), is_dask(source.X)
    for name, values in source.beside.given.items():
        if in_parts and not isinstance(values, str):
            raise InvalidInput(
                f"{name} must be the name of a column where rows come in parts, got {type(values).__name__} "
                "(dpci.Chunks says where parts have such columns)"
            )
        if on_dask and not is_dask(values):
            raise InvalidInput(
                f"{name} must be a Dask array or series where X is a Dask collection, got {type(values).__name__}"
            )


def names_beside(beside: Beside) -> Beside:
    """Return the names under which parts have ids and weights: "persons" and "weights" for Dask collections."""
    names = {name: values if isinstance(values, str) else name for name, values in beside.given.items()}
    return Beside(**names)


def check_index_beside(X: object, beside: Beside) -> None:
    """Refuse ids and weights whose index is another one than that of the table."""
    if beside.persons is not None:
        check_index_of_persons(X, beside.persons)
    if beside.weights is not None:
        check_index_of_weights(X, beside.weights)


def check_source(source: Source, loss: _core.Loss) -> None:
    """Refuse what the kinds of the arguments rule out, before anything is paid or read."""
    in_parts, on_dask = is_in_parts(source.X), is_dask(source.X)
    if in_parts != (source.y is None) or (on_dask and not is_dask(source.y)):
        as_partitions(source)
    if in_parts or on_dask:
        check_smooth(loss)


def as_partitions(source: Source) -> Partitions | None:
    """Return rows in parts, with the columns of ids and weights of Dask collections; None for rows in memory."""
    check_beside_parts(source)
    X, y, beside, _ = source
    if is_in_parts(X):
        if y is not None:
            raise InvalidInput(
                f"y must be None if X holds the targets, got X of type {type(X).__name__} and y of type "
                f"{type(y).__name__}"
            )
        return X
    if y is None:
        if isinstance(X, Iterator):
            raise InvalidInput(
                f"X must be readable several times, got {type(X).__name__}, which can be read only once: pass "
                "dpci.Chunks(function) with a function that returns a fresh iterable each time"
            )
        advice = " (pass schema=, which names the target of a table and bounds its columns)" if is_frame(X) else ""
        got = f"got y=None and X of type {type(X).__name__}"
        raise InvalidInput(f"y must be given unless X holds the targets, {got}{advice}")
    return dask_partitions(X, y, beside.given) if is_dask(X) else None
