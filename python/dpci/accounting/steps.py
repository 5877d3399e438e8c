"""One step of a release: its noise, its cost and the constants behind it; public numbers only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from dpci import _core


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a release: its noise, its cost and the constants behind it, all public.

    Attributes
    ----------
    step : str
        "coefficients", "hessian", "gradient_cov" or "moments"; "report_gradient" and "report_hessian" of a per-instance
        report.
    noise : str
        "spherical_laplace", "gaussian" or "matrix_laplace".
    cost : float
        In the unit of :attr:`FitRecord.cost_unit`.
    scale : float
        1/rate (Laplace families) or standard deviation (Gaussian).
    hessian_scale : float or None
        The Hessian's scale in a joint release, whose ``scale`` is that of the gradient covariance.
    sensitivity : float
        Sensitivity to which the noise was calibrated, in the norm of its family.
    """

    step: str
    noise: str
    cost: float
    scale: float
    hessian_scale: float | None
    sensitivity: float

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> "Step":
        """Build a step from :meth:`to_dict`."""
        return cls(*(values[part.name] for part in fields(cls)))

    def to_dict(self) -> dict[str, Any]:
        """Return the step as plain values."""
        return {part.name: getattr(self, part.name) for part in fields(self)}


def steps_from(steps: Iterable[_core.Step | Step]) -> tuple[Step, ...]:
    """Return the steps of a release of the core as records."""
    return tuple(Step(*(getattr(step, part.name) for part in fields(Step))) for step in steps)
