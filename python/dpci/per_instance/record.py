"""Record of one per-instance report: a fit, two more releases and public choices, and their JSON form."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.costs import Step
from dpci.base.codec import NotNegative, Saved
from dpci.base.validation import check_choice, check_reals, check_symmetric
from dpci.errors import InvalidInput
from dpci.losses import Loss
from dpci.released.record import FitRecord
from dpci.rows import core_rows
from dpci.unit import core_terms

Kind: TypeAlias = Literal["data_dependent", "data_independent"]
Bound: TypeAlias = Literal["interpolated", "paper"]
KINDS: tuple[Kind, ...] = ("data_dependent", "data_independent")
BOUNDS: tuple[Bound, ...] = ("interpolated", "paper")
_EXTRA_STEPS = ("report_gradient", "report_hessian")


def check_shares(value: object) -> tuple[float, ...]:
    """Return shares of (coefficients, gradient, Hessian), each at least 1e-12, with sum 1."""
    shares = check_reals("shares", value, 3)
    _core.check_shares(shares)
    return shares


# What the bounds of a report are derived for.
_FIT = {
    "neighbors": "add_remove",
    "notion": "approx",
    "moments": "none",
    "mechanism": "objective",
    "noise_law": "gaussian",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportRecord(Saved):
    """Everything that a :class:`~dpci.per_instance.Report` knows, but the code of a custom loss."""

    KIND: ClassVar[str] = "dpci.PerInstanceReport"
    WHAT: ClassVar[str] = "a saved report"

    fit: FitRecord
    kind: Kind
    shares: Annotated[tuple[float, ...], lambda _, shares: check_shares(shares)] | None
    """Shares of (coefficients, gradient, Hessian); None for a data-independent report."""
    simultaneous: bool
    failure_probability: NotNegative
    bound: Bound
    gradient: NDArray[np.float64] | None
    """Released gradient of the sum objective, shape (k,); None for a data-independent report."""
    hessian: NDArray[np.float64] | None
    """Released Hessian of the sum objective, shape (k, k); None for a data-independent report."""

    def __post_init__(self) -> None:
        super().__post_init__()
        k = len(self.fit.names)
        for name, shape in (("shares", (3,)), ("gradient", (k,)), ("hessian", (k, k))):
            if ((found := getattr(self, name)) is None) == self.data_dependent:
                raise InvalidInput(f"{name} must be given if and only if kind='data_dependent', got kind={self.kind!r}")
            if found is not None and np.shape(found) != shape:
                raise InvalidInput(f"{name} must have shape {shape}, got {np.shape(found)}")
        if self.hessian is not None:
            check_symmetric("hessian", self.hessian)
        for name, expected in _FIT.items():
            check_choice(f"{name} of the fit of a report", getattr(self.fit, name), (expected,))
        self._check_steps()

    @property
    def data_dependent(self) -> bool:
        """Whether gradient and Hessian were released."""
        return self.kind == "data_dependent"

    def step(self, name: str) -> Step:
        """Return the step of a release by its name; every release of the kind has one."""
        return next(step for step in self.fit.steps if step.step == name)

    def core_bounds(self, loss: Loss) -> "_core.RecordBounds":
        """Return the compiled function from records to bounds."""
        fit = self.fit
        derivatives = None
        if self.gradient is not None and self.hessian is not None:
            scales = (self.step("report_gradient").scale, self.step("report_hessian").scale)
            derivatives = (self.gradient, scales[0], self.hessian, scales[1])
        return _core.RecordBounds(
            core_terms(fit.n_samples, fit.neighbors, fit.persons, fit.weights),
            loss=loss.to_core(),
            params=fit.params,
            l2_strength=fit.l2_strength,
            std_dev=fit.noise_scale,
            delta=fit.budget.parameters()["delta"],
            row_norm=core_rows(fit.rows),
            intercept=fit.intercept_scale,
            on_violation=fit.on_violation,
            derivatives=derivatives,
            failure_probability=self.failure_probability,
            simultaneous=self.simultaneous,
            bound=self.bound,
        )

    def calibrated(self, spec: _core.Spec) -> _core.ReportSpec:
        """Return the specification of the report from that of its fit."""
        return _core.ReportSpec(
            spec,
            shares=self.shares,
            failure_probability=self.failure_probability,
            simultaneous=self.simultaneous,
            bound=self.bound,
        )

    def _check_steps(self) -> None:
        expected = ("coefficients", *(_EXTRA_STEPS if self.data_dependent else ()))
        found = tuple(step.step for step in self.fit.steps)
        if found != expected:
            raise InvalidInput(f"the steps of the fit of a {self.kind} report must be {expected}, got {found}")
        for step in self.fit.steps:
            check_choice(f"noise of the step {step.step!r}", step.noise, ("gaussian",))
        scale, noise_scale = self.step("coefficients").scale, self.fit.noise_scale
        if noise_scale != scale:
            raise InvalidInput(
                f"noise_scale must be the scale of the step 'coefficients', {scale}, got noise_scale={noise_scale}"
            )
