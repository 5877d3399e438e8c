"""The single entry point for X and y: names of the parameters and coding of the targets."""

from collections.abc import Iterator
from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from dpci import _core
from dpci.data.arrays import NamedRows, Table
from dpci.data.dask import dask_partitions, is_dask
from dpci.data.frames import check_same_index
from dpci.data.labels import Classes, Targets, encode_labels, encode_reals
from dpci.data.parts import Partitions, _check_smooth
from dpci.errors import InvalidInput


class ModelChoices(Protocol):
    """What names and targets depend on."""

    @property
    def fit_intercept(self) -> bool:
        """Whether a constant is appended to every row."""

    @property
    def two_classes(self) -> bool:
        """Whether the loss is one of two classes."""

    @property
    def label_classes(self) -> Classes | None:
        """The caller's public classes."""


def param_names(columns: tuple[str, ...] | None, n_columns: int, settings: ModelChoices) -> tuple[str, ...]:
    """Return the names of the parameters: those of the columns, or x0, x1, ..., and the intercept last."""
    names = tuple(f"x{i}" for i in range(n_columns)) if columns is None else columns
    if not settings.fit_intercept:
        return names
    if "intercept" in names:
        raise InvalidInput("no column of X may be called 'intercept' with fit_intercept=True, got one (rename it)")
    return (*names, "intercept")


def encode_targets(
    X: Table, y: ArrayLike, settings: ModelChoices, n_samples: int, *, stacklevel: int | None
) -> Targets:
    """Return the targets as the core takes them, and the (negative, positive) that they stand for.

    Only the index of ``X`` is used. It must equal the index of ``y`` if both have one.

    The warning about inferred classes points ``stacklevel`` frames up: 1 is this function, 2 its caller. None: no such
    warning, for results that are marked as not private anyway.
    """
    check_same_index(X, y)
    if settings.two_classes:
        above = None if stacklevel is None else stacklevel + 1
        return encode_labels(y, settings.label_classes, n_samples, stacklevel=above)
    return Targets(encode_reals(y, n_samples), classes=None, classes_inferred=False)


def _is_source(X: object) -> bool:
    # The class, not the object: frames take the names of their columns for attributes.
    return isinstance(X, Partitions) and hasattr(type(X), "reduce")


def known_shape(X: object) -> tuple[int | None, int | None]:
    """Return the numbers of rows and columns; a number is None if it is unknown before the data are read.

    Raises
    ------
    InvalidInput
        For rows in memory that have no shape before they are read, such as lists.
    """
    if _is_source(X):
        names = cast("Partitions", X).names
        return None, None if names is None else len(names)
    shape = getattr(X.values if isinstance(X, NamedRows) else X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise InvalidInput(
            "X must have a known two-dimensional shape before it is read (an array, a frame, a sparse matrix) with a "
            f"ledger that has errors='private', got {type(X).__name__}"
        )
    rows, columns = (int(size) if isinstance(size, int | np.integer) else None for size in shape)
    return rows, columns


def check_source(X: object, y: object, loss: _core.Loss) -> None:
    """Refuse what the kinds of the arguments rule out, before anything is paid or read.

    Raises
    ------
    InvalidInput
        For targets given twice, or not at all, and for the hinge with rows in parts.
    """
    in_parts = _is_source(X)
    if in_parts != (y is None):
        as_partitions(X, y)
    if in_parts or is_dask(X):
        _check_smooth(loss)


def as_partitions(X: object, y: object) -> Partitions | None:
    """Return rows in parts as such, None for rows in memory.

    Raises
    ------
    InvalidInput
        For targets given twice, or not at all; for Dask collections whose partitions do not match.
    """
    if _is_source(X):
        if y is not None:
            raise InvalidInput(
                f"y must be None if X holds the targets, got X of type {type(X).__name__} and y of type "
                f"{type(y).__name__}"
            )
        return cast("Partitions", X)
    if y is None:
        if isinstance(X, Iterator):
            raise InvalidInput(
                f"X must be readable several times, got {type(X).__name__}, which can be read only once: pass "
                "dpci.Chunks(function) with a function that returns a fresh iterable each time"
            )
        raise InvalidInput(f"y must be given unless X holds the targets, got y=None and X of type {type(X).__name__}")
    return dask_partitions(X, y)
