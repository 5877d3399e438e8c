"""``FitRecord``: released and public values of one fit, and how a saved one is read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.guarantee import GUARANTEE_FACTS, Guarantee, guarantee_of
from dpci.accounting.seals import seal_cost
from dpci.base.codec import NotNegative, Positive
from dpci.budgets import Budget, Neighbors, budget_from_parameters, core_budget
from dpci.data.arrays import OnViolation
from dpci.data.labels import CLASSES_READ_OFF
from dpci.errors import InvalidInput
from dpci.losses import SEVERAL
from dpci.released.model_record import ModelRecord
from dpci.released.record import SavedBudget, SavedRows
from dpci.released.whole import Whole

# Steps add up to the budget except for rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class FitRecord(ModelRecord):
    """Everything that a :class:`~dpci.PrivateFit` knows. Arrays are read-only; (k,) is the number of parameters."""

    KIND: ClassVar[str] = "dpci.PrivateFit"
    WHAT: ClassVar[str] = "a saved fit"
    STEPS: ClassVar[frozenset[str]] = frozenset(
        ("coefficients", "hessian", "gradient_cov", "moments", "report_gradient", "report_hessian")
    )
    NOISES: ClassVar[frozenset[str]] = frozenset(
        ("spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian", "matrix_laplace", "none")
    )

    hessian: NDArray[np.float64] | None
    gradient_cov: NDArray[np.float64] | None
    rows: SavedRows
    on_violation: OnViolation
    neighbors: Neighbors
    budget: SavedBudget
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

    @property
    def spent(self) -> Budget:
        """Budget that the steps spent together, in the notion of the budget; never more than the budget."""
        notion, total = self.budget.notion, self.budget
        if notion == "approx":
            return total
        name, whole = next(iter(total.parameters().items()))
        cost = sum(step.cost for step in self.steps) + seal_cost(self.seals, self.steps).get(name, 0.0)
        return total if cost >= whole * (1 - _ROUNDING) else budget_from_parameters(notion, {name: cost})

    @property
    def choices(self) -> dict[str, Any]:
        """Public choices, as :attr:`privacy` has them."""
        names = ("classes_inferred", "mechanism", "variant", "project", "calibration", "moments", "projection")
        return {name: getattr(self, name) for name in names}

    @property
    def constants(self) -> dict[str, Any]:
        """The public numbers that the theorem is about."""
        return {**super().constants, "slope_bound": self.slope_bound, "curvature_bound": self.curvature_bound}

    def guarantee(self) -> Guarantee:
        """Return the guarantee of all steps and seals together."""
        facts = {name: getattr(self, name) for name in GUARANTEE_FACTS}
        n_params = len(self.names)
        return guarantee_of(self.budget, self.steps, self.seals, divisor=self.divisor, n_params=n_params, **facts)

    def _special_conditions(self) -> Iterator[str]:
        if self.loss["name"] == "custom":
            yield "the declared bounds of the custom loss hold for every predictor and target"
        if self.classes_inferred:
            yield CLASSES_READ_OFF

    def _check_shapes(self) -> None:
        k = len(self.names)
        if (self.hessian is None) != (self.gradient_cov is None) or (self.hessian is None) != (self.moments == "none"):
            raise InvalidInput(f"both matrices must be given unless moments='none', got moments={self.moments!r}")
        for name, shape in (("params", (k,)), ("hessian", (k, k)), ("gradient_cov", (k, k))):
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise InvalidInput(f"{name} must have shape {shape}, got {array.shape}")
