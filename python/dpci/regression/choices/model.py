"""Which regression is asked for, and its regressors as combinations of the columns of the matrix."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.base.validation import check_not_negative
from dpci.errors import InvalidInput

_F64 = NDArray[np.float64]

INTERCEPT = "intercept"

PRIVATE: Literal["private"] = "private"
Covariance: TypeAlias = Literal["classical", "robust"]
Ridge: TypeAlias = float | Literal["private"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Place:
    """Where the columns of a matrix are, and in which units; further targets are behind those of X."""

    columns: tuple[str, ...]
    target: str
    middle: _F64
    """Middle of the bounds of each column."""
    scale: _F64
    """Half the width of the bounds of each column."""
    constant: float
    """In the place of the intercept."""
    target_middle: float
    """Middle of the bounds of the last target."""
    target_weight: float
    """By which targets, less their middle, are multiplied."""

    @property
    def units(self) -> _F64:
        """Rows of the map from the matrix to the products in the caller's units: columns, 1 and the last target."""
        k = len(self.columns)
        units = np.diag([*self.scale, 1.0 / self.constant, 1.0 / self.target_weight])
        units[:k, k] = self.middle / self.constant
        units[k + 1, k] = self.target_middle / self.constant
        return units


def check_ridge(name: str, value: object) -> Ridge:
    """Return λ ≥ 0, or "private"."""
    if isinstance(value, str) and value != PRIVATE:
        raise InvalidInput(f"{name} must be a number or {PRIVATE!r}, got {value!r}")
    return PRIVATE if isinstance(value, str) else check_not_negative(name, value)


@dataclass(frozen=True, kw_only=True)
class Model:
    """Which regression: of which column on which others."""

    target: str
    features: tuple[str, ...]
    fit_intercept: bool
    l2_strength: Annotated[Ridge, check_ridge]
    """λ of the ridge, or "private": the smallest that lifts every direction above the noise."""
    covariance: Covariance

    @property
    def centred(self) -> bool:
        """Whether columns are taken from the middle of their bounds."""
        return self.fit_intercept and self.l2_strength in (0.0, PRIVATE)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients, the intercept last."""
        return (*self.features, INTERCEPT) if self.fit_intercept else self.features


def combinations(place: Place, model: Model) -> tuple[_F64, _F64, _F64, _F64]:
    """Return regressors and response as combinations of the matrix's columns, and the way back to the caller's units.

    With an intercept and no ridge all are taken from the middle of their bounds, which changes the intercept alone and
    loses no digits where bounds are far from 0. A private ridge is defined there.
    """
    k = len(place.columns)
    centred = model.centred
    constant = np.zeros(k + 2)
    constant[k] = 1.0 / place.constant

    def column(name: str) -> tuple[_F64, float]:
        row = np.zeros(k + 2)
        if name == place.target:
            row[k + 1], middle = 1.0 / place.target_weight, place.target_middle
        else:
            at = place.columns.index(name)
            row[at], middle = place.scale[at], float(place.middle[at])
        return (row, middle) if centred else (row + middle * constant, 0.0)

    columns = [column(name) for name in model.features]
    response, shift_of_target = column(model.target)
    rows = [row for row, _ in columns] + ([constant] if model.fit_intercept else [])
    back, shift = np.eye(len(rows)), np.zeros(len(rows))
    if centred:
        back[-1, :-1] = [-middle for _, middle in columns]
        shift[-1] = shift_of_target
    return np.array(rows), response, back, shift
