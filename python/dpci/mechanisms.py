"""The mechanisms that release coefficients: where the noise enters, and of which family it is."""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from dpci.errors import InvalidInput
from dpci.validation import check_choice

__all__ = ["Mechanism", "ObjectivePerturbation", "OutputPerturbation"]

Noise: TypeAlias = Literal["spherical_laplace", "gaussian"]
_NOISES: tuple[Noise, ...] = ("spherical_laplace", "gaussian")


@dataclass(frozen=True, slots=True)
class ObjectivePerturbation:
    """Minimise the risk plus a random linear term (Chaudhuri et al. 2011; Wang, Kifer & Lee, Algorithm 1).

    Parameters
    ----------
    noise : {None, "spherical_laplace", "gaussian"}
        Family of the noise; None takes the one that fits the budget.
    """

    noise: Noise | None = None
    name: ClassVar[Literal["objective"]] = "objective"

    def __post_init__(self) -> None:
        _check_noise(self.noise)


@dataclass(frozen=True, slots=True)
class OutputPerturbation:
    """Add noise to the minimiser (Chaudhuri et al. 2011; Wang, Kifer & Lee, Algorithm 4).

    Parameters
    ----------
    noise : {None, "spherical_laplace", "gaussian"}
        Family of the noise; None takes the one that fits the budget.
    """

    noise: Noise | None = None
    name: ClassVar[Literal["output"]] = "output"

    def __post_init__(self) -> None:
        _check_noise(self.noise)


Mechanism: TypeAlias = ObjectivePerturbation | OutputPerturbation
_BY_NAME: dict[str, type[Mechanism]] = {kind.name: kind for kind in (ObjectivePerturbation, OutputPerturbation)}


def check_mechanism(mechanism: object) -> Mechanism:
    """Return a mechanism from its name or itself."""
    if isinstance(mechanism, ObjectivePerturbation | OutputPerturbation):
        return mechanism
    if isinstance(mechanism, str) and mechanism in _BY_NAME:
        return _BY_NAME[mechanism]()
    raise InvalidInput(
        "mechanism must be 'objective', 'output', dpci.ObjectivePerturbation() or dpci.OutputPerturbation(), "
        f"got mechanism={mechanism!r}"
    )


def _check_noise(noise: object) -> None:
    if noise is not None:
        check_choice("noise", noise, _NOISES)
