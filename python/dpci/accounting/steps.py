"""One step of a release: its noise, its cost and the constants behind it; public numbers only."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal

from dpci import _core
from dpci.base.codec import NotNegative, Positive, plain_fields

Name = Literal[
    "coefficients",
    "hessian",
    "gradient_cov",
    "moments",
    "report_gradient",
    "report_hessian",
    "moment_matrix",
    "residual_moments",
    "residual_levels",
    "residual_gradient",
    "polynomial",
    "histogram",
    "bounds",
]
Noise = Literal[
    "spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian", "matrix_laplace", "laplace", "gumbel", "none"
]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a release: its noise, its cost and the constants behind it, all public.

    Attributes
    ----------
    step : str
        "coefficients", "hessian", "gradient_cov" or "moments"; "report_gradient" and "report_hessian" of a per-instance
        report.
    noise : str
        "spherical_laplace", "gaussian" or "matrix_laplace"; "gumbel" is the law of the exponential mechanism.
    cost : float
        In the unit of :attr:`FitRecord.cost_unit`.
    scale : float
        1/rate (Laplace families, and the exponential mechanism) or standard deviation (Gaussian).
    hessian_scale : float or None
        The Hessian's scale in a joint release, whose ``scale`` is that of the gradient covariance.
    sensitivity : float
        Sensitivity to which the noise was calibrated, in the norm of its family.
    """

    step: Name
    noise: Noise
    cost: Positive
    scale: NotNegative
    hessian_scale: Positive | None
    sensitivity: NotNegative

    def to_dict(self) -> dict[str, Any]:
        """Return the step as a file holds it."""
        return plain_fields(self)


def steps_from(steps: Iterable[_core.Step | Step]) -> tuple[Step, ...]:
    """Return the steps of a release of the core as records."""
    return tuple(Step(*(getattr(step, part.name) for part in fields(Step))) for step in steps)
