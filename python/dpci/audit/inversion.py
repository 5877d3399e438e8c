"""Model inversion: an attack by the holder of the data on a fitted regression. Never private."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci.base.validation import (
    as_name,
    broken,
    check_different,
    check_finite,
    check_not_negative,
    check_positive,
    composed,
    place_of,
)
from dpci.base.warn import warn
from dpci.data.arrays import Table, as_matrix, as_vector
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.shown.displayed import Displayed
from dpci.shown.document import NOT_PRIVATE, Document, Facts
from dpci.shown.text import as_text

__all__ = ["ModelInversion", "Regression", "model_inversion"]

_F64: TypeAlias = NDArray[np.float64]

# A prior may miss 1 by rounding of its entries.
_PRIOR_SLACK = 1e-9

# A coded value is found again up to rounding.
_VALUE_SLACK = 1e-9


class Regression(Protocol):
    """A fitted regression: :class:`dpci.PrivateFit`, or anything that predicts."""

    def predict(self, X: Any, /) -> Any:  # noqa: ANN401  # whatever the model takes and gives
        """Return a number for each row."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelInversion(Displayed):
    """Accuracy of the attack on a hidden attribute. Not private: it is computed from the data.

    Attributes
    ----------
    accuracy, standard_error : float
        Share of the records whose level was guessed correctly, and its binomial standard error.
    prior_accuracy, prior_standard_error : float
        The same for an attacker without the model, who always guesses the mode of the prior.
    levels : tuple
        The levels, in the order of the prior.
    guesses : ndarray of shape (n,)
        Position of the guess among the levels, by record.
    truth : ndarray of shape (n,)
        Position of the record's own level.
    """

    accuracy: float
    standard_error: float
    prior_accuracy: float
    prior_standard_error: float
    levels: tuple[Hashable, ...]
    guesses: NDArray[np.int64]
    truth: NDArray[np.int64]

    @property
    def n_samples(self) -> int:
        """Number of records."""
        return len(self.guesses)

    @property
    def private(self) -> bool:
        """False: guesses and accuracy are computed from the data."""
        return False

    def summary(self) -> str:
        """Aligned lines of the results."""
        return as_text(self._document())

    def _document(self) -> Document:
        facts = [
            ("records", f"{self.n_samples:,}"),
            ("levels", ", ".join(map(str, self.levels))),
            ("accuracy", f"{self.accuracy:.4f} (standard error {self.standard_error:.4f})"),
            ("mode of the prior", f"{self.prior_accuracy:.4f} (standard error {self.prior_standard_error:.4f})"),
        ]
        return Document(title=f"Model inversion. {NOT_PRIVATE}", parts=[Facts(facts)])

    def __repr__(self) -> str:
        return self.summary()


class _Attribute(NamedTuple):
    """Where the hidden attribute stands in the rows, and what its levels look like there."""

    columns: tuple[int, ...]
    levels: tuple[Hashable, ...]
    values: _F64
    """Values, of shape (levels, columns)."""
    prior: _F64


def model_inversion(
    result: Regression,
    X: Table,
    y: ArrayLike,
    *,
    column: int | str | Sequence[int | str],
    prior: Mapping[Any, float],
    residual_variance: float,
    on: float | None = None,
) -> ModelInversion:
    """Guess a hidden attribute of each record from its target and its other columns, with a fitted regression.

    This is the attack of Fredrikson et al. (2014). An attacker knows the model f, the target y and all columns v of a
    record except one attribute, and guesses the level t that maximises
    ``prior(t) N(y - f(v, t); 0, residual_variance)``. The result is NOT PRIVATE: it is for the holder of the data.

    Parameters
    ----------
    result : PrivateFit or object with ``predict``
        The model; it must predict numbers.
    X : array-like of shape (n, d)
        Dense rows as the model takes them, with the true levels.
    y : array-like of shape (n,)
        Targets, in the unit in which the model predicts.
    column : int, str or sequence of these
        The hidden attribute. With the index or the name of a column, its values are the levels. With a sequence of
        indicator columns (0 or ``on``), each record has at most one that is not zero. A name that is not a column but
        stands before "=" in the names of columns, as with a schema, selects those columns.
    prior : mapping
        Public probability of each level; zeros are allowed, and the sum must be 1. The keys are the values of a coded
        column, the entries of the sequence, or the text after "=". With indicator columns there may be one more key:
        the reference level, for which all columns are zero.
    residual_variance : float
        Public variance of ``y - f`` at the true level, > 0, in the unit of ``y`` squared.
    on : float
        The value of an indicator column for its level: 1, or ``1 / schema.row_scale`` for rows scaled by a schema.
        Required with indicator columns, because it is never computed from the rows; not for a coded column.

    Returns
    -------
    ModelInversion
        Accuracy of the guesses, and that of the prior's mode. If scores are equal, the first level in the prior is
        guessed.

    Raises
    ------
    InvalidInput
        For arguments out of range, a record whose level the prior does not list, or predictions that are not numbers.

    Warns
    -----
    PrivacyLeakWarning
        Always.

    Examples
    --------
    >>> import warnings, numpy as np, dpci
    >>> warnings.simplefilter("ignore", dpci.PrivacyLeakWarning)
    >>> class Dose:
    ...     def predict(self, X):
    ...         return X @ np.array([1.0, -0.5])
    >>> X = np.array([[0.2, 0.0], [0.2, 1.0], [0.9, 1.0]])
    >>> found = dpci.audit.model_inversion(
    ...     Dose(), X, [0.2, -0.3, 0.4], column=1, prior={0: 0.6, 1: 0.4}, residual_variance=0.01
    ... )
    >>> found.accuracy, found.guesses.tolist()
    (1.0, [0, 1, 1])
    """
    if not callable(getattr(result, "predict", None)):
        raise InvalidInput(
            f"result must have a method predict, got {type(result).__name__} (for a tuning, pass its attribute result)"
        )
    rows, names = as_matrix(X)
    targets = as_vector("y", y)
    if len(rows) == 0 or len(targets) != len(rows):
        raise InvalidInput(f"X and y must have equally many rows, at least one, got {len(rows)} and {len(targets)}")
    check_finite("X", rows)
    check_finite("y", targets)
    if (classes := getattr(result, "classes", None)) is not None:
        raise InvalidInput(f"model inversion requires a regression, got a model of the classes {classes!r}")
    shares = _checked_prior(prior)
    variance = check_positive("residual_variance", residual_variance)
    hidden = _attribute(rows.shape[1], names or _names_of(result, rows.shape[1]), column, shares, on)
    truth = _true_levels(rows, hidden)
    message = "model inversion is NOT PRIVATE: its result depends on targets and hidden attributes"
    warn(PrivacyLeakWarning(message))
    guesses = _guess(result, rows, targets, hidden, residual_variance=variance)
    return _scored(guesses, truth, hidden)


def _guess(
    result: Regression, rows: _F64, targets: _F64, hidden: _Attribute, *, residual_variance: float
) -> NDArray[np.int64]:
    """Return the position of the most probable level of each record; a level of prior zero is never guessed."""
    possible = np.flatnonzero(hidden.prior)
    scores = np.empty((len(possible), len(rows)))
    changed = rows.copy()
    for score, level in zip(scores, possible, strict=True):
        changed[:, hidden.columns] = hidden.values[level]
        # A target far away may have a square beyond the range: then no level is better than another.
        with np.errstate(over="ignore"):
            misfit = (targets - _predictions(result, changed)) ** 2
        # Times twice the variance, because a quotient of a tiny one is infinite for every level.
        score[:] = 2.0 * residual_variance * np.log(hidden.prior[level]) - misfit
    return np.asarray(possible[np.argmax(scores, axis=0)], dtype=np.int64)


def _predictions(result: Regression, rows: _F64) -> _F64:
    predicted = result.predict(rows)
    try:
        numbers = np.asarray(predicted, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the model must predict numbers, got {np.asarray(predicted).dtype}") from error
    if numbers.shape != (len(rows),):
        raise InvalidInput(f"the model must predict a number for each row, got shape {numbers.shape}")
    return check_finite("predictions", numbers)


def _scored(guesses: NDArray[np.int64], truth: NDArray[np.int64], hidden: _Attribute) -> ModelInversion:
    shares = np.mean(guesses == truth), np.mean(truth == np.argmax(hidden.prior))
    errors = np.sqrt(np.multiply(shares, np.subtract(1.0, shares)) / len(truth))
    return ModelInversion(
        accuracy=float(shares[0]),
        standard_error=float(errors[0]),
        prior_accuracy=float(shares[1]),
        prior_standard_error=float(errors[1]),
        levels=hidden.levels,
        guesses=guesses,
        truth=truth,
    )


def _checked_prior(prior: object) -> dict[Hashable, float]:
    if not isinstance(prior, Mapping) or not prior:
        raise broken("prior", "a mapping of levels to probabilities", prior)
    check_different("the levels of prior must differ", prior)
    shares = {as_name(level): check_not_negative(f"prior[{level!r}]", share) for level, share in prior.items()}
    total = sum(shares.values())
    if not (abs(total - 1.0) <= _PRIOR_SLACK):
        raise InvalidInput(f"prior must sum to 1, got {total}")
    return shares


def _names_of(result: Regression, n_columns: int) -> tuple[str, ...] | None:
    """Names by which a fit knows its columns, if it does; the intercept comes after them."""
    names = getattr(result, "names", None)
    return tuple(names[:n_columns]) if isinstance(names, tuple) and len(names) >= n_columns else None


def _attribute(
    width: int, names: tuple[str, ...] | None, column: object, shares: Mapping[Hashable, float], on: object
) -> _Attribute:
    known, levels, prior = names or (), tuple(shares), np.array(list(shares.values()))
    keys: tuple[Hashable, ...]
    begin = f"{composed(column)}=" if isinstance(column, str) and place_of(column, known) is None else None
    group = [] if begin is None else [name for name in known if name.startswith(begin)]
    if group:
        keys, columns = tuple(name.split("=", 1)[1] for name in group), [known.index(name) for name in group]
    elif isinstance(column, Sequence) and not isinstance(column, str | bytes):
        keys, columns = tuple(map(as_name, column)), [_position(key, known, width) for key in column]
    else:
        at = _position(column, known, width)
        if on is not None:
            raise InvalidInput(
                f"on must be None unless column names indicator columns, got on={on!r} with column={column!r}"
            )
        values = np.array([_coded_level(level) for level in levels])
        return _Attribute((at,), levels, values[:, None], prior)
    return _Attribute(tuple(columns), levels, _indicators(columns, keys, levels, on), prior)


def _coded_level(level: object) -> float:
    """Return a level of a coded column, which must be a finite number."""
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not np.isfinite(level):
        raise InvalidInput(f"the levels of a coded column must be finite numbers, got {level!r}")
    return float(level)


def _position(column: object, names: tuple[str, ...], n_columns: int) -> int:
    if (
        isinstance(column, int | np.integer)
        and not isinstance(column, bool | np.timedelta64)
        and 0 <= column < n_columns
    ):
        return int(column)
    place = place_of(column, names)
    if place is not None:
        return place
    raise broken("column", f"an index below {n_columns} or a name of {list(names)}", column)


def _indicators(columns: Sequence[int], keys: tuple[Hashable, ...], levels: tuple[Hashable, ...], on: object) -> _F64:
    """Levels of indicator columns; which column is which level is public, or a guess would depend on other rows."""
    if not columns or len(set(columns)) != len(columns):
        raise InvalidInput(f"column must name different columns, at least one, got {list(keys)}")
    if missing := [key for key in keys if key not in levels]:
        raise InvalidInput(f"prior must have a key for every column, got no key for {missing[0]!r}")
    if len(extra := [level for level in levels if level not in keys]) > 1:
        raise InvalidInput(f"prior must have at most one key without a column (the reference level), got {extra}")
    if on is None:
        raise InvalidInput("on must be given with indicator columns: 1, or 1 / schema.row_scale, got on=None")
    value = check_positive("on", on)
    values = np.zeros((len(levels), len(columns)))
    for position, key in enumerate(keys):
        values[levels.index(key), position] = value
    return values


def _true_levels(rows: _F64, hidden: _Attribute) -> NDArray[np.int64]:
    present = rows[:, hidden.columns]
    distance = np.abs(present[:, None, :] - hidden.values[None, :, :]).max(axis=2)
    nearest = np.argmin(distance, axis=1)
    if (unlisted := distance[np.arange(len(rows)), nearest] > _VALUE_SLACK * np.abs(hidden.values).max()).any():
        row = int(np.argmax(unlisted))
        raise InvalidInput(
            f"every record must have a level of the prior, one of {hidden.values.tolist()}, "
            f"got {present[row].tolist()} in row {row}"
        )
    return np.asarray(nearest, dtype=np.int64)
