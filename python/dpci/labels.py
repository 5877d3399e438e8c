"""The targets as the core takes them: two classes coded -1 and 1, or real numbers; the coding is public."""

import math
import numbers
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci._frames import decoded
from dpci.arrays import as_vector
from dpci.errors import InvalidInput, PrivacyLeakWarning

Label: TypeAlias = bool | int | float | str
Classes: TypeAlias = tuple[Label, Label]

_CLASSES_RULE = "classes must be two different booleans, finite numbers or strings (negative, positive)"


# Understood without being given, as (negative, positive).
_USUAL: tuple[Classes, ...] = ((False, True), (0, 1), (-1, 1))


def were_inferred(given: Classes | None, found: Classes | None) -> bool:
    """Return whether classes that were found were read off the labels, neither given nor among the usual ones."""
    return given is None and found is not None and found not in _USUAL


def check_classes(classes: object) -> Classes:
    """Return the caller's (negative, positive) as plain Python values."""
    if (
        not isinstance(classes, Sequence | np.ndarray)
        or isinstance(classes, str)
        or getattr(classes, "ndim", 1) != 1
        or len(classes) != 2
    ):
        raise InvalidInput(f"{_CLASSES_RULE}, got classes={classes!r}")
    negative, positive = (label.item() if isinstance(label, np.generic) else label for label in classes)
    for label in (negative, positive):
        # NaN differs from itself, so no target could ever equal it; JSON has neither NaN nor infinity.
        if not isinstance(label, bool | int | float | str) or (isinstance(label, float) and not math.isfinite(label)):
            raise InvalidInput(f"{_CLASSES_RULE}, got {label!r}")
    if negative == positive:
        raise InvalidInput(f"{_CLASSES_RULE}, got {negative!r} twice")
    return negative, positive


def encode_labels(
    y: ArrayLike, classes: Classes | None, n_samples: int, *, stacklevel: int = 2
) -> tuple[NDArray[np.float64], Classes]:
    """Return the labels coded -1 and 1, and the (negative, positive) that they stand for.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of any type.
    classes : tuple, optional
        The public (negative, positive); with it one class alone is legal. None: booleans, {0, 1} and {-1, 1} are
        understood; any other pair is read off the labels, sorted, with a ``PrivacyLeakWarning``.
    n_samples : int
        Rows of X.
    stacklevel : int
        Where the warning points: 1 is this function, 2 its caller.
    """
    labels = _labels(y, n_samples)
    if classes is None:
        classes = _usual_classes(labels)
    if classes is None:
        classes = _inferred_classes(labels, stacklevel + 1)
    negative, positive = (_equal(labels, label) for label in classes)
    unknown = ~(negative | positive)
    if unknown.any():
        row = int(np.argmax(unknown))
        raise InvalidInput(
            f"y must hold only classes=({classes[0]!r}, {classes[1]!r}), got {_plain(labels[row])!r} in row {row}"
        )
    return np.where(positive, 1.0, -1.0), classes


def encode_usual(y: ArrayLike, n_samples: int) -> NDArray[np.float64]:
    """Return labels coded as they are if booleans, {0, 1} or {-1, 1} turn out to be the classes: 1 is positive."""
    return np.where(_equal(_labels(y, n_samples), 1), 1.0, -1.0)


@dataclass(frozen=True)
class LabelSet:
    """Which labels occur among some of the records."""

    values: frozenset[Any]
    booleans: bool

    @classmethod
    def of(cls, y: ArrayLike, n_samples: int) -> "LabelSet":
        """Those of some records, checked as :func:`encode_labels` does."""
        labels = _labels(y, n_samples)
        distinct = set(labels.tolist()) if labels.dtype.kind == "O" else set(np.unique(labels).tolist())
        return cls(frozenset(list(distinct)[:_MANY_LABELS]), labels.dtype.kind == "b")

    def merge(self, other: "LabelSet") -> "LabelSet":
        """Return those of both."""
        values = list(self.values | other.values)[:_MANY_LABELS]
        return LabelSet(frozenset(values), self.booleans and other.booleans)

    def classes(self) -> Classes:
        """Return the classes of booleans, {0, 1} and {-1, 1}; nothing else is read off rows in parts."""
        if self.booleans:
            return False, True
        for negative in (0, -1):
            if self.values == {negative, 1}:
                return negative, 1
        raise InvalidInput(
            "classes=(negative, positive) must be given unless the labels of all parts together are booleans, {0, 1} "
            f"or {{-1, 1}}, got {', '.join(sorted(map(repr, self.values))[:5])}"
        )


_MANY_LABELS = 8
"""Labels kept of those that occur: more than two are no classes."""


def label_array(classes: Classes) -> NDArray[Any]:
    """Return both classes as an array that holds the caller's labels; of objects where no other type keeps both."""
    array = np.array(classes)
    return array if array.tolist() == list(classes) else np.array(classes, dtype=object)


def encode_reals(y: ArrayLike, n_samples: int) -> NDArray[np.float64]:
    """Return real targets as a vector; their range is checked by the core."""
    targets = as_vector("y", y)
    _check_length(len(targets), n_samples)
    return targets


def _labels(y: ArrayLike, n_samples: int) -> NDArray[Any]:
    if isinstance(y, np.ma.MaskedArray):
        raise InvalidInput("y must have no masked values, got a masked array")
    try:
        labels = np.asarray(decoded(y))
    except Exception as error:  # whatever the conversion of another library's object raises
        raise InvalidInput(f"y must be one-dimensional, got {type(y).__name__} ({error})") from error
    if labels.ndim != 1:
        raise InvalidInput(f"y must be one-dimensional, got shape {labels.shape}")
    _check_length(len(labels), n_samples)
    if labels.dtype.kind not in "biufUOT":
        raise InvalidInput(f"y must hold booleans, numbers or strings, got dtype {labels.dtype}")
    check_present(labels)
    if labels.dtype.kind == "O":
        for row, label in enumerate(labels):
            if not isinstance(label, str | numbers.Number | np.bool_):
                raise InvalidInput(f"y must hold booleans, numbers or strings, got {label!r} in row {row}")
    return labels


def check_present(labels: NDArray[Any]) -> None:
    """Refuse labels of which one is missing."""
    if labels.dtype.kind == "O":
        missing = np.array([_is_missing(label) for label in labels], dtype=bool)
    else:
        missing = labels != labels  # noqa: PLR0124  # NaN alone differs from itself
    if np.any(missing):
        row = int(np.argmax(missing))
        raise InvalidInput(f"y must have no missing values, got {_plain(labels[row])!r} in row {row}")


def _check_length(got: int, n_samples: int) -> None:
    if got != n_samples:
        raise InvalidInput(f"y must have one entry for each row of X, got {got} entries and {n_samples} rows")


def _usual_classes(labels: NDArray[Any]) -> Classes | None:
    """Return the classes of booleans, {0, 1} and {-1, 1}."""
    if labels.dtype.kind == "b":
        return False, True
    positive = _equal(labels, 1)
    for negative in (0, -1):
        is_negative = _equal(labels, negative)
        if is_negative.any() and positive.any() and (is_negative | positive).all():
            return negative, 1
    return None


def _inferred_classes(labels: NDArray[Any], stacklevel: int) -> Classes:
    try:
        found = [_plain(label) for label in np.unique(labels)]
    except TypeError as error:
        raise InvalidInput(
            f"y must hold labels of one type, or classes=(negative, positive) must be given ({error})"
        ) from error
    if len(found) == 0:
        raise InvalidInput("the data must have at least one row, got an empty y")
    if len(found) == 1:
        raise InvalidInput(
            f"y must hold two classes unless classes=(negative, positive) is given, got one class, {found[0]!r}"
        )
    if len(found) > 2:
        raise InvalidInput(f"y must hold two classes, got {len(found)}: {', '.join(map(repr, found[:5]))}")
    classes = check_classes(found)
    warnings.warn(
        f"the classes were read off y (negative={classes[0]!r}, positive={classes[1]!r}), which reveals which labels "
        "occur; pass classes=(negative, positive) instead",
        PrivacyLeakWarning,
        stacklevel=stacklevel,
    )
    return classes


def _equal(labels: NDArray[Any], label: Label) -> NDArray[np.bool_]:
    """Compare elementwise; labels of another type are unequal. Strings and numbers never are the same label."""
    if isinstance(label, str) != (labels.dtype.kind in "UT") and labels.dtype.kind != "O":
        return np.zeros(len(labels), dtype=bool)
    return np.asarray(labels == label, dtype=bool)


def _is_missing(label: object) -> bool:
    """Tell None, NaN, NaT and pandas.NA, which is equal to nothing and unequal to nothing."""
    if label is None or type(label).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(label, float) and label != label  # noqa: PLR0124


def _plain(label: object) -> Any:  # noqa: ANN401  # whatever the caller's labels are
    return label.item() if isinstance(label, np.generic) else label
