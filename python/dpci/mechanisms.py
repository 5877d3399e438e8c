"""The mechanisms that release coefficients: where the noise enters, and of which family it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypeAlias

from dpci.base.validation import broken, check_choice, check_flag, check_positive, check_reals
from dpci.budgets import Calibration, check_calibration
from dpci.errors import InvalidInput

__all__ = ["Mechanism", "ObjectivePerturbation", "OutputPerturbation"]

Noise: TypeAlias = Literal["spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian"]
Variant: TypeAlias = Literal["standard", "cms11"]
Moments: TypeAlias = Literal["joint", "levels", "separate", "none"]
Projection: TypeAlias = Literal["auto", "floor", "cautious", "noise_aware"]
_MOMENTS: tuple[Moments, ...] = ("joint", "levels", "separate", "none")
_PROJECTIONS: tuple[Projection, ...] = ("auto", "floor", "cautious", "noise_aware")
_VARIANTS: tuple[Variant, ...] = ("standard", "cms11")
_NOISES: tuple[Noise, ...] = ("spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian")


@dataclass(frozen=True, repr=False)
class _Perturbation:
    """Options of one perturbed minimisation and of the matrices that are released with it."""

    noise: Noise | None = None
    split: Sequence[float] | None = field(default=None, kw_only=True)
    moments: Moments | None = field(default=None, kw_only=True)
    projection: Projection = field(default="auto", kw_only=True)
    calibration: Calibration = field(default="tight", kw_only=True)
    radius: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.noise is not None:
            check_choice("noise", self.noise, _NOISES)
        if self.split is not None:
            object.__setattr__(self, "split", check_reals("split", self.split, 3))
        if self.moments is not None:
            check_choice("moments", self.moments, _MOMENTS)
        check_choice("projection", self.projection, _PROJECTIONS)
        check_calibration(self.calibration)
        if self.radius is not None:
            object.__setattr__(self, "radius", check_positive("radius", self.radius))

    @property
    def shares(self) -> tuple[float, float, float] | None:
        """The three shares of ``split``."""
        if self.split is None:
            return None
        first, second, third = self.split
        return first, second, third

    @property
    def given(self) -> dict[str, Any]:
        """Options that differ from their defaults."""
        values = {part.name: (getattr(self, part.name), part.default) for part in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    def __repr__(self) -> str:
        """Return the call with the options that differ from their defaults."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"


@dataclass(frozen=True, repr=False)
class ObjectivePerturbation(_Perturbation):
    """Minimise the risk plus a random linear term (Chaudhuri et al. 2011; Wang, Kifer & Lee, Algorithm 1).

    Parameters
    ----------
    noise : {None, "spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian"}
        Family of the noise; None takes the one that fits the budget and the rows: Laplace noise in the shape of
        :class:`dpci.rows.Blocks` under PureDP and ZCDP, spherical for a ball, Gaussian under
        ApproxDP, in the metric of the blocks where the rows have some.
    split : sequence of three floats, optional
        Shares of (coefficients, Hessian, gradient covariance), each above 0, with sum 1. None: (.9, .05, .05) under
        PureDP, more for the matrices with few records and few parameters or with level totals of few records, and
        (.95, .025, .025) otherwise (docs/proofs/mechanisms.md, "Accounting").
    moments : {"joint", "levels", "separate", "none"}, optional
        How Hessian and gradient covariance, which the intervals need, are released. "levels" adds the totals of the
        levels of categories to a joint release, so that intervals of common levels cover; groups of columns must then
        be indicators. "none" gives the whole budget to the coefficients, and there are no intervals. None: "levels" for
        objective perturbation of the logistic loss under PureDP where a schema says that groups are indicators,
        otherwise "joint"; "none" for functions about coefficients alone.
    projection : {"auto", "floor", "cautious", "noise_aware"}
        How intervals treat the noise in the released matrices. "noise_aware" keeps the matrices as released and counts
        their noise (docs/proofs/intervals.md, "Noise in the matrices"); "auto" is "noise_aware", or "floor" with
        ``calibration="paper"``. "floor" and "cautious" do not count it: "floor" raises eigenvalues of the Hessian below
        λ to it, and "cautious" also lowers those within the noise.
    calibration : {"tight", "paper"}
        "paper" uses the constants of Wang, Kifer & Lee (separate moments, both floored at λ, shares (.5, .25, .25)),
        and those of Kifer, Smith & Thakurta for Gaussian objective perturbation (add/remove only); also private, with
        more noise.
    radius : float, optional
        Minimise over ||params|| <= radius only (intercept included). Bounds of the loss are then those on this ball;
        the squared loss and counts need one. Intervals are refused unless the released values show that the bound does
        not bind.
    variant : {"standard", "cms11"}
        "standard" refuses an ``l2_strength`` that is too small for the budget. "cms11" is Algorithm 2 of Chaudhuri,
        Monteleoni & Sarwate (2011): under PureDP and ZCDP it raises ``l2_strength`` where it is too small, which
        changes the target of the intervals (``result.l2_strength`` is what was used), and never needs less noise.

    Examples
    --------
    >>> import dpci
    >>> dpci.ObjectivePerturbation(moments="none", radius=2.0)
    ObjectivePerturbation(moments='none', radius=2.0)
    """

    variant: Variant = field(default="standard", kw_only=True)
    name: ClassVar[Literal["objective"]] = "objective"
    project: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("variant", self.variant, _VARIANTS)


@dataclass(frozen=True, repr=False)
class OutputPerturbation(_Perturbation):
    """Add noise to the minimiser (Chaudhuri et al. 2011; Wang, Kifer & Lee, Algorithm 4).

    Parameters
    ----------
    noise : {None, "spherical_laplace", "gaussian"}
        Family of the noise; None takes the one that fits the budget. It is that of the ball around the rows.
    split, moments, projection, calibration, radius
        See :class:`dpci.ObjectivePerturbation`. The noise may leave the ball of the radius.
    project : bool
        With ``radius``: move the noisy parameters to the nearest point of the ball, which never takes them further from
        the minimiser. It costs nothing, but parameters that were moved have no intervals.
    """

    project: bool = field(default=False, kw_only=True)
    name: ClassVar[Literal["output"]] = "output"
    variant: ClassVar[Variant] = "standard"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("project", self.project)


@dataclass(frozen=True, slots=True)
class NewtonSteps:
    """Newton steps with noisy gradients, on rows that released second moments make round (docs/proofs/newton.md)."""

    noise: ClassVar[None] = None
    split: ClassVar[None] = None
    moments: ClassVar[Moments] = "joint"
    calibration: ClassVar[Calibration] = "tight"
    radius: ClassVar[None] = None
    project: ClassVar[bool] = False
    name: ClassVar[Literal["newton"]] = "newton"
    variant: ClassVar[Variant] = "standard"


Mechanism: TypeAlias = ObjectivePerturbation | OutputPerturbation
"""Mechanisms that perturb one minimisation."""
_BY_NAME: dict[str, type[Mechanism]] = {kind.name: kind for kind in (ObjectivePerturbation, OutputPerturbation)}

_OF_FIT = (NewtonSteps.name, "moments")
"""Names of further mechanisms of a fit."""


def check_mechanism(mechanism: object) -> Mechanism:
    """Return a mechanism from its name or itself."""
    if isinstance(mechanism, ObjectivePerturbation | OutputPerturbation):
        return mechanism
    if isinstance(mechanism, str) and mechanism in _BY_NAME:
        return _BY_NAME[mechanism]()
    if isinstance(mechanism, str) and mechanism in _OF_FIT:
        where = "dpci.fit, what fits many tables, and dpci.plan offer it"
        if mechanism == NewtonSteps.name:
            where = f"it has neither a ridge to choose nor one perturbed minimiser to follow; {where}, and studies too"
        raise InvalidInput(
            f"mechanism must be 'objective' or 'output' for this function, got mechanism={mechanism!r} ({where})"
        )
    known = "'objective', 'output', dpci.ObjectivePerturbation() or dpci.OutputPerturbation()"
    raise broken("mechanism", f"{known}, or for dpci.fit and dpci.plan 'newton' or 'moments'", mechanism)


def without_moments(mechanism: object) -> Mechanism:
    """Return a mechanism for functions about parameters alone, which releases moments only where it says so."""
    found = check_mechanism(mechanism)
    return replace(found, moments="none") if found.moments is None and found.split is None else found


MechanismLike: TypeAlias = Literal["objective", "output"] | Mechanism
