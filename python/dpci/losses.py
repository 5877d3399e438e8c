"""Losses of (linear predictor, target) with the public bounds that privacy rests on."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpci import _core
from dpci.base.codec import Rule, check_interval
from dpci.base.habits import LOSSES
from dpci.base.validation import (
    broken,
    check_choice,
    check_flag,
    check_not_negative,
    check_positive,
    check_reals,
    in_short,
)
from dpci.errors import InvalidInput

__all__ = [
    "CLogLog",
    "Custom",
    "Hinge",
    "Huber",
    "HuberHinge",
    "Logistic",
    "Loss",
    "NegativeBinomial",
    "Poisson",
    "Probit",
    "Quantile",
    "SmoothHinge",
    "SoftLogistic",
    "Squared",
]

Vectorised: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


_USUAL = {"count_bound": 10.0, "target_bound": 1.0}
_SHARES = {"k": 0.25, "s": 0.1}
"""Bounds of losses that are given none, and widths as shares of a bound."""


class _BuiltIn:
    """A loss of the core, with positive parameters."""

    __slots__ = ()
    name: ClassVar[str]

    def __post_init__(self) -> None:
        open_ones = _USUAL.keys() | _SHARES.keys() if isinstance(self, _BOUNDED) else set[str]()
        for key, value in self.parameters.items():
            if value is not None or key not in open_ones:
                object.__setattr__(self, key, check_positive(key, value))
        self.to_core()

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters by name, None for what a schema or a default decides."""
        return {name: getattr(self, name) for name in cast("Any", self).__match_args__}  # those of its fields

    def to_core(self) -> _core.Loss:
        """Return the loss as the core takes it."""
        return _core.Loss(self.name, *cast("_BuiltIn", completed(cast("Loss", self))).parameters.values())


@dataclass(frozen=True, slots=True)
class Logistic(_BuiltIn):
    """Logistic loss log(1 + exp(-z)) of the margin z; slope at most 1, curvature at most 1/4."""

    name: ClassVar[str] = "logistic"


@dataclass(frozen=True, slots=True)
class HuberHinge(_BuiltIn):
    """Hinge loss with its kink rounded by a parabola; slope at most 1, curvature at most 1/(2h).

    Parameters
    ----------
    h : float
        Half-width of the parabola around margin 1, finite and above zero.
    """

    h: float = 0.5
    name: ClassVar[str] = "huber_hinge"


@dataclass(frozen=True, slots=True)
class SmoothHinge(_BuiltIn):
    """Smooth hinge s log(1 + exp((1 - z) / s)) of the margin z; slope at most 1, curvature at most 1/(4s).

    Parameters
    ----------
    s : float
        Width of the rounding, finite and above zero.
    """

    s: float = 0.1
    name: ClassVar[str] = "smooth_hinge"


@dataclass(frozen=True, slots=True)
class SoftLogistic(_BuiltIn):
    """Logistic loss log(1 + exp(u)) - y u of a soft label y in [0, 1], such as a probability or a share of votes.

    Slope of either sign, at most 1 in size; curvature at most 1/4. Labels outside [0, 1] are refused, or moved into it
    with ``rows="clip"``.
    """

    name: ClassVar[str] = "soft_logistic"


@dataclass(frozen=True, slots=True)
class Squared(_BuiltIn):
    """Squared loss (u - y)² of a real target; curvature 2, slope at most 2 (R W + target_bound) for params in a ball.

    Its slope is bounded on a bounded domain only, so a fit needs a mechanism with a ``radius``.

    Parameters
    ----------
    target_bound : float
        Public bound on the size of a target, above 0 and at most 1e70.
    """

    target_bound: float = 1.0
    name: ClassVar[str] = "squared"


@dataclass(frozen=True, slots=True)
class Hinge(_BuiltIn):
    """Hinge loss max(0, 1 - z) of the margin z; slope at most 1, with a kink at margin 1.

    Noise is added to the minimiser, and there are no intervals, because the kink has no second derivative.
    """

    name: ClassVar[str] = "hinge"


@dataclass(frozen=True, slots=True)
class Poisson(_BuiltIn):
    """Poisson loss of a count with a log link, for rates as well; the mean of a count is exp(u).

    Its slope and its curvature are bounded on a bounded domain only, so a fit needs ``radius``: within R W = r the
    slope is at most the greater of exp(r) and ``count_bound``, the curvature at most exp(r).

    Parameters
    ----------
    count_bound : float, optional
        Public bound on a count, above 0 and at most 1e70. None: the upper bound of the schema's target, 10 without one.
    """

    count_bound: float | None = None
    name: ClassVar[str] = "poisson"


@dataclass(frozen=True, slots=True)
class NegativeBinomial(_BuiltIn):
    """Negative binomial loss of a count with a log link, for counts that vary more than Poisson counts.

    The mean of a count is exp(u), its variance ``mean + dispersion * mean**2``. The slope is at most the greater of
    ``count_bound`` and ``1 / dispersion``, so a fit needs no ``radius``.

    Parameters
    ----------
    count_bound : float, optional
        Public bound on a count, above 0 and at most 1e70. None: the upper bound of the schema's target, 10 without one.
    dispersion : float
        Public dispersion, from 1e-6 to 1e6 (over the upper bound of a schema's target); it is not estimated.
    """

    count_bound: float | None = None
    dispersion: float = 1.0
    name: ClassVar[str] = "negative_binomial"


@dataclass(frozen=True, slots=True)
class Probit(_BuiltIn):
    """Probit loss -log Phi(z) of the margin z; curvature at most 1, slope bounded by a ``radius`` alone."""

    name: ClassVar[str] = "probit"


@dataclass(frozen=True, slots=True)
class CLogLog(_BuiltIn):
    """Complementary log-log loss of two classes: the positive one has the probability 1 - exp(-exp(u)).

    A fit needs ``radius``: within R W = r slope and curvature are at most exp(r). The two classes are not alike.
    """

    name: ClassVar[str] = "cloglog"


@dataclass(frozen=True, slots=True)
class Huber(_BuiltIn):
    """Huber's loss of a real target: half the squared residual up to k, linear beyond; slope at most k.

    Parameters
    ----------
    target_bound : float, optional
        Public bound on the size of a target, above 0 and at most 1e70. None: 1, or what the target of a schema implies.
    k : float, optional
        Residual at which the loss becomes linear, in the units of the target, with a schema those of its table. None: a
        quarter of the bound on targets.
    """

    target_bound: float | None = None
    k: float | None = None
    name: ClassVar[str] = "huber"


@dataclass(frozen=True, slots=True)
class Quantile(_BuiltIn):
    """Quantile loss of a real target, its kink rounded over a width s; slope at most max(quantile, 1 - quantile).

    The target of the intervals is the minimiser of the rounded loss.

    Parameters
    ----------
    quantile : float
        Quantile of the targets that is modelled, from .001 to .999.
    target_bound : float, optional
        Public bound on the size of a target, above 0 and at most 1e70. None: 1, or what the target of a schema implies.
    s : float, optional
        Width of the rounding in the units of the target, with a schema those of its table, from 1e-6 to 1 times the
        bound on targets; the curvature is at most 1/(4s). None: a tenth of the bound.
    """

    quantile: float = 0.5
    target_bound: float | None = None
    s: float | None = None
    name: ClassVar[str] = "quantile"


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
    predictor_bound : float, optional
        The bounds hold for ``|u|`` up to this only, and the functions are not called beyond; a fit then needs a
        ``radius`` of at most ``predictor_bound`` over the bound on the rows. None: everywhere.
    strong_convexity : float
        Lower bound on ``curvature``. With it a fit of one parameter, whose rows all have the norm that bounds them (or
        are the intercept alone), needs no regularisation: output perturbation takes ``l2_strength=0``. A function of
        the linear predictor is strongly convex in no more than one parameter, so more are refused.

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
    predictor_bound: float | None = field(default=None, kw_only=True)
    strong_convexity: float = field(default=0.0, kw_only=True)
    name: ClassVar[str] = "custom"

    def __post_init__(self) -> None:
        for part in ("value", "slope", "curvature"):
            if not callable(getattr(self, part)):
                raise broken(part, "callable", getattr(self, part))
        object.__setattr__(self, "slope_bound", check_positive("slope_bound", self.slope_bound))
        object.__setattr__(self, "curvature_bound", check_positive("curvature_bound", self.curvature_bound))
        object.__setattr__(self, "one_signed", check_flag("one_signed", self.one_signed))
        if self.target_bounds is not None:
            object.__setattr__(self, "target_bounds", check_reals("target_bounds", self.target_bounds, 2))
        if self.predictor_bound is not None:
            object.__setattr__(self, "predictor_bound", check_positive("predictor_bound", self.predictor_bound))
        strong = check_not_negative("strong_convexity", self.strong_convexity)
        object.__setattr__(self, "strong_convexity", strong)
        self.to_core()

    def to_core(self) -> _core.Loss:
        """Return the loss as the core takes it, its declaration checked."""
        return _core.Loss.custom(self)


BuiltIn: TypeAlias = (
    Logistic
    | HuberHinge
    | SmoothHinge
    | SoftLogistic
    | Squared
    | Hinge
    | Poisson
    | NegativeBinomial
    | Probit
    | CLogLog
    | Huber
    | Quantile
)
LossName: TypeAlias = Literal[
    "logistic",
    "huber_hinge",
    "smooth_hinge",
    "soft_logistic",
    "squared",
    "hinge",
    "poisson",
    "negative_binomial",
    "probit",
    "cloglog",
    "huber",
    "quantile",
]
Loss: TypeAlias = BuiltIn | Custom
"""Any loss of this module."""
LossLike: TypeAlias = LossName | Loss

BUILT_IN: dict[str, type[BuiltIn]] = {kind.name: kind for kind in get_args(BuiltIn)}
"""The losses that have a name, by name: whatever lists losses asks here."""
NAMES = (*BUILT_IN, Custom.name)
PARAMETERS = tuple(dict.fromkeys(part.name for kind in BUILT_IN.values() for part in fields(kind)))
"""Parameters by which two losses of one name differ."""
LOG_ODDS = (Logistic.name, SoftLogistic.name)
"""Losses whose linear predictor is the logarithm of odds."""
COUNTS = (Poisson.name, NegativeBinomial.name)
"""Losses whose linear predictor is the logarithm of a mean."""
PROBABILISTIC = (*LOG_ODDS, Probit.name, CLogLog.name)
"""Losses that model a probability."""
LOCATIONS = (Squared.name, Huber.name, Quantile.name)
"""Losses whose linear predictor is in the units of the target."""


SEVERAL = "multinomial"
"""The loss of :func:`dpci.multinomial.fit`, with one linear predictor for each class but the reference."""
WITHOUT_INTERVALS = "the hinge has no second derivative (huber_hinge and smooth_hinge have one)"
"""Reason why a fit of the hinge loss adds noise to the parameters and has no intervals."""


def response(name: str, predictor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a loss models at linear predictors: a probability, a mean, or the predictor itself."""
    with np.errstate(over="ignore"):
        if name in LOG_ODDS:
            return np.asarray(special.expit(predictor))
        if name == Probit.name:
            return np.asarray(special.ndtr(predictor))
        if name == CLogLog.name:
            return -np.expm1(-np.exp(predictor))
        return np.exp(predictor) if name in COUNTS else predictor


def check_loss(loss: object) -> Loss:
    """Return a loss from its name (with default parameters) or itself."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in BUILT_IN:
        return BUILT_IN[loss]()
    names = ", ".join(map(repr, BUILT_IN))
    meant = LOSSES.get(loss.lower()) if isinstance(loss, str) else None
    hint = (
        f" (use dpci.losses.{_with_numbers(loss)})"
        if isinstance(loss, str) and loss.partition(":")[0] in BUILT_IN
        else " (use dpci.multinomial.fit)"
        if isinstance(loss, str) and loss == SEVERAL
        else f" (use {meant!r})"
        if meant
        else ""
    )
    raise InvalidInput(f"loss must be one of {names} or an object of dpci.losses, got loss={in_short(loss)}{hint}")


_BOUNDED = Poisson | NegativeBinomial | Huber | Quantile
"""Losses of targets with a bound, which a schema can give."""


def completed(loss: Loss, unit: float | None = None) -> Loss:
    """Return a loss with all parameters; where 1 of an encoded target is ``unit`` of the table, in encoded units."""
    if not isinstance(loss, _BOUNDED):
        return loss
    values = loss.parameters
    name = next(key for key in _USUAL if key in values)
    given = values[name]
    if unit is None:
        if None not in values.values():
            return loss
        # Of arrays the usual bound, or a width that is given alone.
        widths = [values[width] or 0.0 for width in _SHARES.keys() & values.keys()]
        unit, values[name] = 1.0, max([_USUAL[name], *widths]) if given is None else given
    elif given is None or math.isclose(given, unit):
        values[name] = 1.0
    else:
        raise InvalidInput(f"{name} must be None with a schema, whose target has the bound {unit:.6g}, got {given:.6g}")
    for width in _SHARES.keys() & values.keys():
        value = values[width]
        values[width] = _SHARES[width] * values[name] if value is None else value / unit
    if isinstance(loss, NegativeBinomial):
        values["dispersion"] *= unit  # y/B has the variance m/B + α·m² at its mean m: α·B over 1/B
    return type(loss)(**values)


def _with_numbers(text: str) -> str:
    """Return a loss as Python has it of the text that commands take, such as "poisson:15"."""
    name, _, numbers = text.partition(":")
    kind = BUILT_IN[name]
    given = (f"{part.name}={number}" for part, number in zip(fields(kind), numbers.split(","), strict=False))
    return f"{kind.__name__}({', '.join(given)})"


def declaration(loss: Loss, core: _core.Loss) -> dict[str, Any]:
    """Return what is public about a loss: its name, its parameter and its bounds, None for one that is infinite."""
    loss = completed(loss)
    shape = {key: getattr(loss, key) for key in PARAMETERS if hasattr(loss, key)}
    return {
        "name": loss.name,
        **shape,
        "slope_bound": _finite(core.slope_bound),
        "curvature_bound": _finite(core.curvature_bound),
        "one_signed": core.one_signed,
        "target_bounds": None if core.target_bounds is None else list(core.target_bounds),
        "predictor_bound": core.predictor_bound,
        "strong_convexity": core.strong_convexity,
    }


def from_declaration(loss: Mapping[str, Any]) -> Loss | None:
    """Return the loss of a :func:`declaration`; None for a custom one, whose code no record holds."""
    kind = BUILT_IN.get(loss["name"])
    if kind is None:
        return None
    return kind(**{part.name: loss[part.name] for part in fields(kind) if part.name in loss})


@dataclass(frozen=True, slots=True)
class LossFacts:
    """Facts of a declared loss, for which statements about a fit ask again and again."""

    words: str
    """The loss in one phrase."""
    scale: str
    """Scale of its coefficients, for the label of an axis."""
    is_likelihood: bool
    """Whether it is the negative logarithm of a likelihood of one predictor; of a custom loss nothing is known."""
    may_be_flat: bool
    """Whether rows may have slopes but almost no curvature at margins near 0; a custom loss may."""
    is_flat: bool
    """Whether a built-in loss has almost no curvature around margin 0, where rows without any signal lie."""
    width: str | None
    """Parameter that is the width of the residuals with curvature, of Huber's loss and of the quantile loss."""
    width_words: str
    """The same with its number in the units of the target; empty without."""


def facts_of(loss: Mapping[str, Any], unit: float | None = None) -> LossFacts:
    """Return the facts of a :func:`declaration`; ``unit`` as in :func:`describe`."""
    name, built_in = loss["name"], from_declaration(loss)
    core = None if built_in is None else built_in.to_core()
    is_flat = core is not None and core.may_be_flat
    width = {Huber.name: "k", Quantile.name: "s"}.get(name)
    return LossFacts(
        words=describe(loss, unit),
        scale=scale_of(name),
        is_likelihood=core is not None and core.is_likelihood,
        may_be_flat=is_flat or name == Custom.name,
        is_flat=is_flat,
        width=width,
        width_words="" if width is None else f"{width}={loss[width] * (1.0 if unit is None else unit):g}",
    )


def scale_of(loss: str) -> str:
    """Return the scale of coefficients of a loss, for the label of an axis."""
    if loss in (*LOG_ODDS, SEVERAL):
        return "log odds"
    return "log mean" if loss in COUNTS else "estimate"


def describe(loss: Mapping[str, Any], unit: float | None = None) -> str:
    """Return one phrase for a :func:`declaration`, in units of a table where 1 of the target is ``unit`` of them."""
    shown = {key: loss[key] for key in PARAMETERS if key in loss}
    if unit is not None:
        shown.pop("target_bound", None)
        shown |= {key: shown[key] * unit for key in ("count_bound", *_SHARES) if key in shown}
        shown |= {key: shown[key] / unit for key in ("dispersion",) if key in shown}
    shape = "".join(f" ({key}={value:g})" for key, value in shown.items())
    return f"{str(loss['name']).replace('_', ' ')}{shape}"


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def _check_saved(name: str, value: object) -> dict[str, Any]:
    """Return the declaration of a loss."""
    if not isinstance(value, dict):
        raise broken(name, "an object", value)
    for key, rule in _LOSS_RULES.items():
        if key not in value:
            raise InvalidInput(f"{name} must have {key}, got {name}={value!r}")
        rule(f"{name}.{key}", value[key])
    for key in PARAMETERS:
        check_positive(f"{name}.{key}", value.get(key, 1.0))
    built_in = from_declaration(value)
    if built_in is not None and value != declaration(built_in, built_in.to_core()):
        raise InvalidInput(f"{name} must have the declaration of {built_in!r}, got {name}={value!r}")
    return value


def _optional(rule: Rule) -> Rule:
    return lambda name, value: None if value is None else rule(name, value)


_LOSS_RULES: dict[str, Rule] = {
    "name": lambda name, value: check_choice(name, value, NAMES),
    "slope_bound": _optional(check_positive),
    "curvature_bound": _optional(check_positive),
    "predictor_bound": _optional(check_positive),
    "strong_convexity": check_not_negative,
    "one_signed": check_flag,
    "target_bounds": _optional(check_interval),
}


SavedLoss: TypeAlias = Annotated[dict[str, Any], _check_saved]
"""Declaration of a loss: name, parameter and public bounds."""
