"""Converts targets for the core: two classes coded -1 and 1, or real numbers. The coding is public."""

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci.base.validation import composed
from dpci.base.warn import warn
from dpci.data.arrays import as_vector
from dpci.data.frames import decoded, taken_over
from dpci.errors import InvalidInput, PrivacyLeakWarning

Label: TypeAlias = bool | int | float | str
Classes: TypeAlias = tuple[Label, Label]

_CLASSES_RULE = "classes must be two different booleans, finite numbers or strings (negative, positive)"


BOOLEANS: Classes = (False, True)
"""The classes of labels whose data type says that they are booleans."""


class Targets(NamedTuple):
    """The targets of some records as the core takes them, and what they stand for."""

    values: NDArray[np.float64]
    classes: Classes | None
    """(negative, positive); None for real targets."""
    classes_inferred: bool
    """Whether the classes were inferred from the labels, so that they are not public."""


@dataclass(frozen=True, eq=False)
class CodedLabels:
    """Labels that are coded -1 and 1 already, as a schema codes them, with the classes that they stand for."""

    values: NDArray[np.float64]
    classes: Classes

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: ANN401, FBT001  # NumPy's
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)


@dataclass(frozen=True, eq=False)
class SeveralClasses:
    """Labels of more than two public classes, which nobody has looked at yet: class k is coded k."""

    labels: Any
    classes: tuple[Label, ...]

    def encoded(self, n_samples: int) -> Targets:
        """Return the numbers of the classes."""
        labels = _labels(taken_over("y", self.labels), n_samples)
        codes = _codes(labels, self.classes)
        if (codes < 0).any():
            row = int(np.argmax(codes < 0))
            shown = ", ".join(map(repr, self.classes))
            raise InvalidInput(f"y must hold only the classes {shown}, got {_plain(labels[row])!r} in row {row}")
        return Targets(codes.astype(np.float64), classes=None, classes_inferred=False)


def check_several_classes(classes: object) -> tuple[Label, ...]:
    """Return the caller's classes, the reference first, as plain Python values."""
    rule = "classes must be at least three different booleans, finite numbers or strings, the reference first"
    if (
        not isinstance(classes, Sequence | np.ndarray)
        or isinstance(classes, str)
        or getattr(classes, "ndim", 1) != 1
        or len(classes) < 3
    ):
        raise InvalidInput(f"{rule} (dpci.fit takes two), got classes={classes!r}")
    labels = tuple(check_label(rule, label) for label in classes)
    # Names of parameters have the class in them.
    for at, label in enumerate(labels):
        if any(label == other or str(label) == str(other) for other in labels[:at]):
            raise InvalidInput(f"{rule}, got {label!r} twice")
        if ":" in str(label):
            raise InvalidInput(f"classes must not contain a colon, which names of parameters have, got {label!r}")
    return labels


def check_label(rule: str, label: object) -> Label:
    """Return a label of a class as a plain Python value."""
    plain = label.item() if isinstance(label, np.generic) else label
    # NaN differs from itself, so no target could ever equal it; JSON has neither NaN nor infinity.
    if not isinstance(plain, bool | int | float | str) or (isinstance(plain, float) and not math.isfinite(plain)):
        raise InvalidInput(f"{rule}, got {plain!r}")
    return composed(plain) if isinstance(plain, str) else plain


def check_classes(classes: object) -> Classes:
    """Return the caller's (negative, positive) as plain Python values."""
    if (
        not isinstance(classes, Sequence | np.ndarray)
        or isinstance(classes, str)
        or getattr(classes, "ndim", 1) != 1
        or len(classes) != 2
    ):
        raise InvalidInput(f"{_CLASSES_RULE}, got classes={classes!r}")
    negative, positive = (check_label(_CLASSES_RULE, label) for label in classes)
    if negative == positive:
        raise InvalidInput(f"{_CLASSES_RULE}, got {negative!r} twice")
    return negative, positive


def encode(
    y: "ArrayLike | SeveralClasses",
    n_samples: int,
    *,
    two_classes: bool,
    classes: Classes | None,
) -> Targets:
    """Return the targets of a loss of two classes or of real targets; see :func:`encode_labels`."""
    if isinstance(y, SeveralClasses):
        return y.encoded(n_samples)
    if not two_classes:
        return Targets(encode_reals(y, n_samples), classes=None, classes_inferred=False)
    return encode_labels(y, classes, n_samples)


def encode_labels(y: ArrayLike, classes: Classes | None, n_samples: int) -> Targets:
    """Return the labels coded -1 and 1, and the (negative, positive) that they stand for.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of any type.
    classes : tuple, optional
        The public (negative, positive); the labels may then contain only one of them. None: (False, True) for a boolean
        data type, which is known before any label is read. Otherwise the classes are inferred from the sorted labels,
        of which :func:`warn_of_inferred` warns. This includes 0 and 1, because other labels could have occurred.
    n_samples : int
        Rows of X.
    """
    if isinstance(y, CodedLabels):
        _check_length(len(y.values), n_samples)
        return Targets(y.values, y.classes, classes_inferred=False)
    y = taken_over("y", y)
    labels = _labels(y, n_samples)
    if inferred := classes is None and not is_boolean(y, labels):
        classes = _read_off(labels)
    known = BOOLEANS if classes is None else classes
    codes = _codes(labels, known)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InvalidInput(
            f"y must hold only classes=({known[0]!r}, {known[1]!r}), got {_plain(labels[row])!r} in row {row}"
        )
    return Targets(np.subtract(2 * codes, 1, dtype=np.float64), known, inferred)


def check_public_classes(y: ArrayLike, classes: Classes | None, n_samples: int) -> Classes:
    """Return the classes of a part of the records, which must be public: those given, or those of a boolean data type.

    A part without rows has every type.
    """
    if classes is not None:
        return classes
    if n_samples > 0 and not is_boolean(y, _labels(y, n_samples)):
        raise InvalidInput(
            "classes=(negative, positive) must be given for rows in parts unless y has a boolean data type in every "
            f"part, got {_type_name(y)}"
        )
    return BOOLEANS


def is_boolean(y: object, labels: NDArray[Any]) -> bool:
    """Return whether labels have a boolean data type, which makes the classes False and True public.

    ``labels`` is ``y`` as an array. Lists and arrays of objects have no boolean data type, whatever they contain.
    """
    dtype = getattr(y, "dtype", getattr(y, "type", None))
    # The categories of pandas may have been read off the labels.
    if getattr(dtype, "name", None) == "category":
        return False
    return dtype is not None and "b" in (labels.dtype.kind, getattr(dtype, "kind", None))


CLASSES_READ_OFF = "the labels that occur are not secret: the classes were inferred from y"
"""A condition of the guarantee if the classes were not public."""


def several_read_off(y: ArrayLike) -> tuple[Label, ...]:
    """Return the three labels or more that occur, in increasing order; they are then not public."""
    labels = np.asarray(y)
    check_present(labels)
    found = _labels_that_occur(labels, "classes")
    if len(found) < 3:
        kinds = "one class" if len(found) == 1 else "two classes (PrivateLogisticRegression is for them)"
        raise InvalidInput(f"y must hold three classes or more unless classes is given, got {kinds}")
    return check_several_classes(found)


def label_array(classes: tuple[Label, ...]) -> NDArray[Any]:
    """Return classes as an array that holds the caller's labels; of objects where no other type keeps them."""
    array = np.array(classes)
    return array if array.tolist() == list(classes) else np.array(classes, dtype=object)


AnyClasses = TypeVar("AnyClasses", bound=tuple[Label, ...] | None)


def labels_of(classes: AnyClasses, schema: object) -> AnyClasses:
    """Return classes as users compare them: a schema has texts, but a table of 0 and 1 most often holds integers."""
    texts = [] if classes is None or schema is None else [str(label) for label in classes]
    whole = texts and all(text.lstrip("-").isdecimal() and text == str(int(text)) for text in texts)
    return tuple(map(int, texts)) if whole else classes  # type: ignore[return-value]  # as many


def labels_at(classes: tuple[Label, ...], places: NDArray[np.intp], missing: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the class at each place, in the caller's labels; None where nothing is known."""
    labels = label_array(classes)[places]
    if missing.any():
        labels = labels.astype(object)
        labels[missing] = None
    return labels


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
        raise InvalidInput(f"y must be a one-dimensional array, got {type(y).__name__} ({error})") from error
    if labels.ndim != 1:
        flat = " (pass y[:, 0])" if labels.ndim == 2 and labels.shape[1] == 1 else ""
        raise InvalidInput(f"y must be one-dimensional, got shape {labels.shape}{flat}")
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


def _read_off(labels: NDArray[Any]) -> Classes:
    """Return the two labels that occur in increasing order."""
    found = _labels_that_occur(labels, "classes=(negative, positive)")
    if len(found) == 1:
        raise InvalidInput(
            f"y must hold two classes unless classes=(negative, positive) is given, got one class, {found[0]!r}"
        )
    if len(found) > 2:
        shown = ", ".join(map(repr, found[:5]))
        raise InvalidInput(f"y must hold two classes, got {len(found)}: {shown} (dpci.multinomial.fit takes several)")
    return check_classes(found)


def _labels_that_occur(labels: NDArray[Any], wanted: str) -> list[Any]:
    try:
        found = [_plain(label) for label in np.unique(labels)]
    except TypeError as error:
        raise InvalidInput(
            f"y must hold labels of one type unless {wanted} is given, got several types ({error})"
        ) from error
    if not found:
        raise InvalidInput("the data must have at least one row, got an empty y")
    return sorted(set(map(composed, found))) if isinstance(found[0], str) else found


def warn_of_inferred(classes: tuple[Label, ...]) -> None:
    """Warn that these classes are not public, because they are the labels that occur."""
    shown, wanted = ", ".join(map(repr, classes[:5])) + (", ..." if len(classes) > 5 else ""), "classes"
    if len(classes) == 2:
        shown, wanted = f"negative={classes[0]!r}, positive={classes[1]!r}", "classes=(negative, positive)"
    message = f"the classes were inferred from y ({shown}), which reveals the labels that occur (pass public {wanted})"
    warn(PrivacyLeakWarning(message))


def _codes(labels: NDArray[Any], classes: Sequence[Label]) -> NDArray[np.signedinteger[Any]]:
    """Return the place of each label in the list of classes, -1 where it is none of them."""
    codes: NDArray[np.signedinteger[Any]] = np.full(len(labels), -1, np.min_scalar_type(-1 - len(classes)))
    for code, label in enumerate(classes):
        # Without a branch for each label: writing where a mask is true takes several times as long.
        np.maximum(codes, np.multiply(_equal(labels, label), code + 1, dtype=codes.dtype) - 1, out=codes)
    others = np.flatnonzero(codes < 0)
    if len(others) and labels.dtype.kind in "UTO":
        # Perhaps in another normal form of Unicode than the classes, as a file of another system has it.
        places = {label: code for code, label in enumerate(classes) if isinstance(label, str)}
        texts = (composed(label) if isinstance(label, str) else None for label in labels[others].tolist())
        codes[others] = [-1 if text is None else places.get(text, -1) for text in texts]
    return codes


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


def _type_name(y: object) -> str:
    dtype = getattr(y, "dtype", getattr(y, "type", None))
    return type(y).__name__ if dtype is None else f"dtype {dtype}"
