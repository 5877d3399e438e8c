"""The mechanisms that release coefficients: where the noise enters, and of which family it is."""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from dpci.base.validation import broken, check_choice, check_flag
from dpci.errors import InvalidInput

__all__ = ["Mechanism", "ObjectivePerturbation", "OutputPerturbation"]

Noise: TypeAlias = Literal["spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian"]
Variant: TypeAlias = Literal["standard", "cms11"]
_VARIANTS: tuple[Variant, ...] = ("standard", "cms11")
_NOISES: tuple[Noise, ...] = ("spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian")


@dataclass(frozen=True, slots=True)
class ObjectivePerturbation:
    """Minimise the risk plus a random linear term (Chaudhuri et al. 2011; Wang, Kifer & Lee, Algorithm 1).

    Parameters
    ----------
    noise : {None, "spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian"}
        Family of the noise; None takes the one that fits the budget and the rows: Laplace noise in the shape of
        :class:`dpci.rows.Blocks` under PureDP and ZCDP, spherical for a ball, Gaussian under
        ApproxDP, in the metric of the blocks where the rows have some.
    variant : {"standard", "cms11"}
        "standard" refuses an ``l2_strength`` that is too small for the budget. "cms11" is Algorithm 2 of Chaudhuri,
        Monteleoni & Sarwate (2011): under PureDP and ZCDP it raises ``l2_strength`` where it is too small, which
        changes the target of the intervals (``result.l2_strength`` is what was used), and never needs less noise.
    """

    noise: Noise | None = None
    variant: Variant = "standard"
    name: ClassVar[Literal["objective"]] = "objective"
    project: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_noise(self.noise)
        check_choice("variant", self.variant, _VARIANTS)


@dataclass(frozen=True, slots=True)
class OutputPerturbation:
    """Add noise to the minimiser (Chaudhuri et al. 2011; Wang, Kifer & Lee, Algorithm 4).

    Parameters
    ----------
    noise : {None, "spherical_laplace", "gaussian"}
        Family of the noise; None takes the one that fits the budget. It is that of the ball around the rows.
    project : bool
        With ``radius``: move the noisy parameters to the nearest point of the ball, which never takes them further from
        the minimiser. It costs nothing, but parameters that were moved have no intervals.
    """

    noise: Noise | None = None
    project: bool = False
    name: ClassVar[Literal["output"]] = "output"
    variant: ClassVar[Variant] = "standard"

    def __post_init__(self) -> None:
        _check_noise(self.noise)
        check_flag("project", self.project)


@dataclass(frozen=True, slots=True)
class NewtonSteps:
    """Newton steps with noisy gradients, on rows that released second moments make round (docs/proofs/newton.md)."""

    noise: ClassVar[None] = None
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
        raise InvalidInput(
            f"mechanism must be 'objective' or 'output' for this function, got mechanism={mechanism!r} (only dpci.fit, "
            "what fits many tables, and dpci.plan offer it)"
        )
    known = "'objective', 'output', dpci.ObjectivePerturbation() or dpci.OutputPerturbation()"
    raise broken("mechanism", f"{known}, or for dpci.fit and dpci.plan 'newton' or 'moments'", mechanism)


def _check_noise(noise: object) -> None:
    if noise is not None:
        check_choice("noise", noise, _NOISES)


MechanismLike: TypeAlias = Literal["objective", "output"] | Mechanism
