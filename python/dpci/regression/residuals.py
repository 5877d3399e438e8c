"""Values released of the residuals of a planned regression, their moments or a gradient, and their JSON form."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.base.validation import broken, check_positive
from dpci.errors import InvalidInput
from dpci.regression.choices.planned import Regression
from dpci.released.rules import check_array, check_names, check_text

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
        """Check that they are of a matrix of these columns of X and targets.

        Raises
        ------
        InvalidInput
            For names that are not there, and arrays of another shape.
        """
        if self.regression.among(columns, targets) != self.regression:
            raise InvalidInput(f"a planned regression must name its columns in their order, got {self.regression}")
        size = len(self.regression.features or ()) + 1
        if self.point.shape != (len(columns) + len(targets),) or self.moments.shape != (size, size):
            raise InvalidInput(f"the moments of residuals must have shape {(size, size)}, got {self.moments.shape}")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return {
            **asdict(self.regression),
            "point": self.point.tolist(),
            "moments": self.moments.tolist(),
        }

    @classmethod
    def from_dict(cls, value: object) -> "ResidualMoments":
        """Rebuild it from :meth:`to_dict`."""
        if not isinstance(value, dict) or set(value) != {"target", "features", "l2_strength", "point", "moments"}:
            raise InvalidInput(f"the moments of residuals must have the fields of their schema, got {value!r:.80}")
        regression = Regression(
            target=check_text("target", value["target"]),
            features=check_names("features", value["features"]),
            l2_strength=value["l2_strength"],
        )
        arrays = {name: check_array(name, value[name]) for name in ("point", "moments")}
        return cls(regression=regression, **arrays)


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
    cap: float
    """The largest residual that counts, which the levels determine."""
    square_weight: float
    """ω."""

    def __post_init__(self) -> None:
        for name in ("point", "levels", "gradient"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def check(self, columns: tuple[str, ...], targets: tuple[str, ...]) -> None:
        """Check that it is of a matrix of these columns of X and targets.

        Raises
        ------
        InvalidInput
            For names that are not there, and arrays of another shape.
        """
        if self.regression.among(columns, targets) != self.regression:
            raise InvalidInput(f"a refined regression must name its columns in their order, got {self.regression}")
        size = len(self.regression.features or ()) + 2
        if self.point.shape != (len(columns) + len(targets),) or self.gradient.shape != (size,):
            raise InvalidInput(f"a gradient must have shape {(size,)}, got {self.gradient.shape}")
        if self.levels.shape != (_core.LEVELS,):
            raise InvalidInput(f"levels of residuals must have shape {(_core.LEVELS,)}, got {self.levels.shape}")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        arrays = {name: getattr(self, name).tolist() for name in ("point", "levels", "gradient")}
        return {**asdict(self.regression), **arrays, "cap": self.cap, "square_weight": self.square_weight}

    @classmethod
    def from_dict(cls, value: object) -> "Refinement":
        """Rebuild it from :meth:`to_dict`."""
        expected = {"target", "features", "l2_strength", "point", "levels", "gradient", "cap", "square_weight"}
        if not isinstance(value, dict) or set(value) != expected:
            raise InvalidInput(f"a refined regression must have the fields of its schema, got {value!r:.80}")
        regression = Regression(
            target=check_text("target", value["target"]),
            features=check_names("features", value["features"]),
            l2_strength=value["l2_strength"],
        )
        return cls(
            regression=regression,
            point=check_array("point", value["point"]),
            levels=check_array("levels", value["levels"]),
            gradient=check_array("gradient", value["gradient"]),
            cap=check_positive("cap", value["cap"]),
            square_weight=check_positive("square_weight", value["square_weight"]),
        )


def check_refined(name: str, value: object) -> tuple[Refinement, ...]:
    """Return the refined regressions that a saved record has."""
    if not isinstance(value, list):
        raise broken(name, "a list", value)
    return tuple(map(Refinement.from_dict, value))


def check_residuals(name: str, value: object) -> tuple[ResidualMoments, ...]:
    """Return the residuals that a saved record has."""
    if not isinstance(value, list):
        raise broken(name, "a list", value)
    return tuple(map(ResidualMoments.from_dict, value))


def read_only(values: _F64) -> _F64:
    """Return a copy that cannot be changed."""
    values = np.array(values, dtype=np.float64)
    values.flags.writeable = False
    return values
