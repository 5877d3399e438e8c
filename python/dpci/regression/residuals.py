"""Values released of the residuals of a planned regression, their moments or a gradient, and their JSON form."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.base.codec import Positive, read_only
from dpci.errors import InvalidInput
from dpci.regression.choices.planned import Regression

_F64 = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualMoments:
    """Released moments of the residuals of one regression. Arrays are read-only; k columns."""

    regression: Regression
    """With the names of its target and of its features, in the order of the columns."""
    point: _F64
    """Coefficients of (scaled row, constant) at which residuals were taken, shape (k + 1,)."""
    moments: _F64
    """Mean of r²xx', x = (scaled features, constant); of persons of gg', g their sum of ωrx, with weights ω in r."""

    def __post_init__(self) -> None:
        for name in ("point", "moments"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def check(self, columns: tuple[str, ...], targets: tuple[str, ...]) -> None:
        """Check that they are of a matrix of these columns of X and targets."""
        if self.regression.among(columns, targets) != self.regression:
            raise InvalidInput(f"a planned regression must name its columns in their order, got {self.regression}")
        size = len(self.regression.features or ()) + 1
        if self.point.shape != (len(columns) + len(targets),) or self.moments.shape != (size, size):
            raise InvalidInput(f"the moments of residuals must have shape {(size, size)}, got {self.moments.shape}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Refinement:
    """The released gradient of one regression at the coefficients that the matrix gives, and what gave it its cap.

    Arrays are read-only.
    """

    regression: Regression
    """With the names of its target and of its features, in the order of the columns."""
    point: _F64
    """Coefficients of (scaled row, constant) at which residuals were taken, shape (k + 1,)."""
    levels: _F64
    """Share of the records at each level of their residuals, from the greatest down by factors of √2, shape (32,)."""
    gradient: _F64
    """Mean of (rx, ωr²/cap), x = (scaled features, constant), r the residuals held to the cap, shape (k + 2,)."""
    cap: Positive
    """The largest residual that counts, which the levels determine."""
    square_weight: Positive
    """ω."""

    def __post_init__(self) -> None:
        for name in ("point", "levels", "gradient"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def check(self, columns: tuple[str, ...], targets: tuple[str, ...]) -> None:
        """Check that it is of a matrix of these columns of X and targets."""
        if self.regression.among(columns, targets) != self.regression:
            raise InvalidInput(f"a refined regression must name its columns in their order, got {self.regression}")
        size = len(self.regression.features or ()) + 2
        if self.point.shape != (len(columns) + len(targets),) or self.gradient.shape != (size,):
            raise InvalidInput(f"a gradient must have shape {(size,)}, got {self.gradient.shape}")
        if self.levels.shape != (_core.LEVELS,):
            raise InvalidInput(f"levels of residuals must have shape {(_core.LEVELS,)}, got {self.levels.shape}")
