"""``FitRecord``: released and public values of one fit, and how a saved one is read."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.base.codec import NotNegative, Positive, Rule, check_interval
from dpci.base.validation import broken, check_choice, check_flag, check_not_negative, check_positive, check_real
from dpci.budgets import Neighbors, core_budget
from dpci.data.arrays import OnViolation
from dpci.data.labels import Classes, check_classes
from dpci.errors import InvalidInput
from dpci.losses import NAMES, PARAMETERS, SEVERAL, declaration, from_declaration
from dpci.released.record import Record, SavedBudget, SavedRows
from dpci.released.whole import Whole


def check_labels(name: str, value: object) -> Classes:
    """Return (negative, positive)."""
    classes = check_classes(value)
    for label in classes:
        # An integer may be too great to be compared with targets.
        if not isinstance(label, str) and math.isinf(number := check_real(name, label + 0)):
            raise InvalidInput(f"{name} must be within the range of floats, got {number}")
    return classes


def check_saved_loss(name: str, value: object) -> dict[str, Any]:
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


@dataclass(frozen=True, kw_only=True, eq=False)
class FitRecord(Record):
    """Everything that a :class:`~dpci.PrivateFit` knows. Arrays are read-only; (k,) is the number of parameters."""

    KIND: ClassVar[str] = "dpci.PrivateFit"
    WHAT: ClassVar[str] = "a saved fit"
    STEPS: ClassVar[frozenset[str]] = frozenset(
        ("coefficients", "hessian", "gradient_cov", "moments", "report_gradient", "report_hessian")
    )
    NOISES: ClassVar[frozenset[str]] = frozenset(
        ("spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian", "matrix_laplace", "none")
    )

    params: NDArray[np.float64]
    hessian: NDArray[np.float64] | None
    gradient_cov: NDArray[np.float64] | None
    names: tuple[str, ...]
    classes: Annotated[Classes, check_labels] | None
    classes_inferred: bool
    """Whether the classes were inferred from the labels, so that they are not public."""
    rows: SavedRows
    on_violation: OnViolation
    neighbors: Neighbors
    budget: SavedBudget
    l2_strength: NotNegative
    """λ as it was used: with what the variant "cms11" added."""
    radius: Positive | None
    loss: Annotated[dict[str, Any], check_saved_loss]
    slope_bound: Positive
    """Slope bound of the loss on the domain."""
    curvature_bound: NotNegative | None
    """Curvature bound of the loss on the domain; None for a loss with a kink."""
    mechanism: Literal["objective", "output"]
    variant: Literal["standard", "cms11"]
    project: bool
    moments: Literal["joint", "separate", "none"]
    projection: Literal["floor", "cautious", "noise_aware", "none"]
    """The projection that was used."""
    calibration: Literal["tight", "paper"]
    intercept_scale: Positive | None
    noise_law: Literal["spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian"]
    noise_scale: Positive
    noise_spectral_radius: NotNegative
    whole: Whole | None = None
    """The release that the fit is a part of, such as all strata of a table; None for a fit by itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_shapes()
        if not self.steps:
            raise InvalidInput(f"{self.WHAT} must have at least one step, got none")

    @property
    def row_norm(self) -> float:
        """Bound on the Euclidean norm of a row, without the intercept."""
        return self.rows.norm

    @property
    def n_is_released(self) -> bool:
        """Whether the number of records in place of the private one was released with noise, which cost budget."""
        return self.whole is not None and self.whole.counts

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Beginning of the names of the parameters of each linear predictor: of several classes "class:"."""
        if self.loss["name"] != SEVERAL:
            return ("",)
        return tuple(dict.fromkeys("".join(name.partition(":")[:2]) for name in self.names))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the rows: those of the parameters of one linear predictor without the intercept."""
        prefix, *others = self.prefixes
        names = [name.removeprefix(prefix) for name in self.names[: len(self.names) // (1 + len(others))]]
        return tuple(names if self.intercept_scale is None else names[:-1])

    def by_predictor(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return names of parameters of one linear predictor as those of each."""
        kept = tuple(names)
        return tuple(prefix + name for prefix in self.prefixes for name in kept)

    @property
    def cost_unit(self) -> str:
        """Unit in which the costs of the steps are counted: "epsilon", "rho" or "mu_squared"."""
        return _core.cost_unit(core_budget(self.budget), self.calibration, self.mechanism)

    def _check_shapes(self) -> None:
        k = len(self.names)
        if (self.hessian is None) != (self.gradient_cov is None) or (self.hessian is None) != (self.moments == "none"):
            raise InvalidInput(f"both matrices must be given unless moments='none', got moments={self.moments!r}")
        for name, shape in (("params", (k,)), ("hessian", (k, k)), ("gradient_cov", (k, k))):
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise InvalidInput(f"{name} must have shape {shape}, got {array.shape}")
