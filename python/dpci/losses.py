"""Losses of (linear predictor, target) with the public bounds that privacy rests on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.errors import InvalidInput
from dpci.validation import check_flag, check_positive, check_reals

__all__ = ["Custom", "HuberHinge", "Logistic", "Loss", "SmoothHinge", "SoftLogistic"]

Vectorised: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Logistic:
    """Logistic loss log(1 + exp(-z)) of the margin z; slope at most 1, curvature at most 1/4."""

    name: ClassVar[str] = "logistic"

    def to_core(self) -> _core.Loss:
        """Return the loss as the core takes it."""
        return _core.Loss.logistic()


@dataclass(frozen=True, slots=True)
class HuberHinge:
    """Hinge loss with its kink rounded by a parabola; slope at most 1, curvature at most 1/(2h).

    Parameters
    ----------
    h : float
        Half-width of the parabola around margin 1, finite and above zero.
    """

    h: float = 0.5
    name: ClassVar[str] = "huber_hinge"

    def __post_init__(self) -> None:
        object.__setattr__(self, "h", check_positive("h", self.h))

    def to_core(self) -> _core.Loss:
        """Return the loss as the core takes it."""
        return _core.Loss.huber_hinge(self.h)


@dataclass(frozen=True, slots=True)
class SmoothHinge:
    """Smooth hinge s log(1 + exp((1 - z) / s)) of the margin z; slope at most 1, curvature at most 1/(4s).

    Parameters
    ----------
    s : float
        Width of the rounding, finite and above zero.
    """

    s: float = 0.1
    name: ClassVar[str] = "smooth_hinge"

    def __post_init__(self) -> None:
        object.__setattr__(self, "s", check_positive("s", self.s))

    def to_core(self) -> _core.Loss:
        """Return the loss as the core takes it."""
        return _core.Loss.smooth_hinge(self.s)


@dataclass(frozen=True, slots=True)
class SoftLogistic:
    """Logistic loss log(1 + exp(u)) - y u of a soft label y in [0, 1], such as a probability or a share of votes.

    Slope of either sign, at most 1 in size; curvature at most 1/4. Labels outside [0, 1] are refused, or moved into it
    with ``on_violation="clip"``.
    """

    name: ClassVar[str] = "soft_logistic"

    def to_core(self) -> _core.Loss:
        """Return the loss as the core takes it."""
        return _core.Loss.soft_logistic()


@dataclass(frozen=True)
class Custom:
    """A convex loss in the caller's code, whose privacy rests on the declared bounds.

    The declaration is checked on a fixed public grid, never at the data: a bound that fails only off the grid is not
    found, and then the released values are not private at the stated budget.

    Parameters
    ----------
    value, slope, curvature : callable
        ``f(u, y)`` for equally long float64 arrays of linear predictors and targets, returning an array of that length:
        the loss, its first and its second derivative in ``u``.
    slope_bound : float
        Bound on ``|slope|`` over all predictors and targets.
    curvature_bound : float
        Bound on ``curvature`` over all predictors and targets.
    one_signed : bool
        Whether the slope of any given target never changes sign.
    target_bounds : tuple of float, optional
        Public range (lower, upper) of real targets. None: two classes, passed as -1 and 1.

    Raises
    ------
    InvalidInput
        Where the functions contradict the declaration on the grid, or return other than finite arrays of that length.
    """

    value: Vectorised
    slope: Vectorised
    curvature: Vectorised
    slope_bound: float = field(kw_only=True)
    curvature_bound: float = field(kw_only=True)
    one_signed: bool = field(default=False, kw_only=True)
    target_bounds: tuple[float, float] | None = field(default=None, kw_only=True)
    name: ClassVar[str] = "custom"

    def __post_init__(self) -> None:
        for part in ("value", "slope", "curvature"):
            if not callable(getattr(self, part)):
                raise InvalidInput(f"{part} must be callable, got {part}={getattr(self, part)!r}")
        object.__setattr__(self, "slope_bound", check_positive("slope_bound", self.slope_bound))
        object.__setattr__(self, "curvature_bound", check_positive("curvature_bound", self.curvature_bound))
        object.__setattr__(self, "one_signed", check_flag("one_signed", self.one_signed))
        if self.target_bounds is not None:
            object.__setattr__(self, "target_bounds", check_reals("target_bounds", self.target_bounds, 2))
        self.to_core()

    def to_core(self) -> _core.Loss:
        """Return the loss as the core takes it, its declaration checked."""
        return _core.Loss.custom(
            self.value,
            self.slope,
            self.curvature,
            self.slope_bound,
            self.curvature_bound,
            self.one_signed,
            self.target_bounds,
        )


Loss: TypeAlias = Logistic | HuberHinge | SmoothHinge | SoftLogistic | Custom
_BY_NAME = {kind.name: kind for kind in (Logistic, HuberHinge, SmoothHinge, SoftLogistic)}


def check_loss(loss: object) -> Loss:
    """Return a loss from its name (with default parameters) or itself."""
    if isinstance(loss, Logistic | HuberHinge | SmoothHinge | SoftLogistic | Custom):
        return loss
    if isinstance(loss, str) and loss in _BY_NAME:
        return _BY_NAME[loss]()
    names = ", ".join(map(repr, _BY_NAME))
    raise InvalidInput(f"loss must be one of {names} or an object of dpci.losses, got loss={loss!r}")


def declaration(loss: Loss, core: _core.Loss) -> dict[str, Any]:
    """Return what is public about a loss: its name, its parameter and its bounds, for records."""
    shape = {key: getattr(loss, key) for key in ("h", "s") if hasattr(loss, key)}
    return {
        "name": loss.name,
        **shape,
        "slope_bound": core.slope_bound,
        "curvature_bound": core.curvature_bound,
        "one_signed": core.one_signed,
        "target_bounds": None if core.target_bounds is None else list(core.target_bounds),
    }


def from_declaration(loss: Mapping[str, Any]) -> Loss | None:
    """Return the loss of a :func:`declaration`; None for a custom one, whose code no record holds."""
    kind = _BY_NAME.get(loss["name"])
    return None if kind is None else kind(**{key: loss[key] for key in ("h", "s") if key in loss})


def describe(loss: Mapping[str, Any]) -> str:
    """Return one phrase for a :func:`declaration`."""
    shape = "".join(f" ({key}={loss[key]:g})" for key in ("h", "s") if key in loss)
    return f"{str(loss['name']).replace('_', ' ')}{shape}"
