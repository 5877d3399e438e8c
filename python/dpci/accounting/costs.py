"""Costs of a release: its steps, and the seals of its numbers; public numbers only."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import frexp, isclose, sqrt
from typing import Annotated, Any, Literal

from dpci import _core
from dpci.base.codec import NotNegative, Positive, from_fields, plain_fields
from dpci.base.validation import check_positive
from dpci.errors import InvalidInput

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
    "levels",
    "records_beyond",
    "column_counts",
    "radius",
    "shape",
    "gradient_norms",
    "hessian_norms",
    "null_slope",
    "newton_gradient",
    "newton_hessian",
]
Noise = Literal[
    "spherical_laplace",
    "shaped_laplace",
    "gaussian",
    "shaped_gaussian",
    "matrix_laplace",
    "laplace",
    "gumbel",
    "bernoulli",
    "discrete_laplace",
    "discrete_gaussian",
    "none",
]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a release: its noise, its cost and the constants behind it, all public.

    Attributes
    ----------
    step : str
        "coefficients", "hessian", "gradient_cov" or "moments"; "report_gradient" and "report_hessian" of a per-instance
        report; "radius", "shape", "null_slope", "newton_gradient" and "newton_hessian" of Newton steps.
    noise : str
        "spherical_laplace", "gaussian" or "matrix_laplace"; "gumbel" is the law of the exponential mechanism,
        "bernoulli" that of a choice whether a level is listed; counts have "discrete_laplace" and "discrete_gaussian".
    cost : float
        In the unit of :attr:`FitRecord.cost_unit`.
    scale : float
        1/rate (Laplace families, and the exponential mechanism) or standard deviation (Gaussian).
    hessian_scale : float or None
        The Hessian's scale in a joint release, whose ``scale`` is that of the gradient covariance.
    levels_scale : float or None
        The scale of the level totals in one that has them.
    sensitivity : float
        Sensitivity to which the noise was calibrated, in the norm of its family.
    """

    step: Name
    noise: Noise
    cost: Positive
    scale: NotNegative
    hessian_scale: Positive | None
    levels_scale: Positive | None
    sensitivity: NotNegative

    def to_dict(self) -> dict[str, Any]:
        """Return the step as a file holds it."""
        return plain_fields(self)


def steps_from(steps: Iterable[_core.Step | Step]) -> tuple[Step, ...]:
    """Return the steps of a release of the core as records."""
    return tuple(Step(*(getattr(step, part.name) for part in fields(Step))) for step in steps)


FAILURE_PROBABILITY = 2.0**-960
"""Bound on the probability that any draw of noise in a release is beyond the range that the seal covers: an error."""


_UNITS = (("epsilon",), ("rho",), ("epsilon", "delta"))


def _check_cost(name: str, value: object) -> dict[str, float]:
    if not isinstance(value, dict) or tuple(value) not in _UNITS:
        raise InvalidInput(f"{name} must have one of the parameters {_UNITS}, got {name}={value!r}")
    return {unit: check_positive(f"{name}.{unit}", cost) for unit, cost in value.items()}


@dataclass(frozen=True, slots=True)
class Seal:
    """The seal of one released vector (docs/proofs/program.md, "The seal").

    Attributes
    ----------
    release : str
        Name of the sealed numbers: "params", "hessian", "gradient_cov", "gradient", "moment_matrix",
        "residual_moments", "residual_levels", "residual_gradient", "polynomial", "the histogram" or "score".
    noise : str
        "discrete_laplace" or "discrete_gaussian" (Canonne, Kamath & Steinke 2020).
    lattice : float
        Step g of the lattice, a power of two: every released number is a whole number of steps.
    scale : int
        Scale or standard deviation of the integer noise, in steps.
    distance : float
        Bound τ on the Euclidean distance of the computed vector to the ideal one, fixed before the data were seen.
    std_dev : float
        Standard deviation of the noise in one number.
    cost : dict
        Its part of the budget: epsilon, rho, or epsilon and delta.
    """

    release: Literal[
        "params",
        "hessian",
        "gradient_cov",
        "gradient",
        "radius",
        "shape",
        "gradient_norms",
        "hessian_norms",
        "polynomial",
        "the histogram",
        "score",
        "moment_matrix",
        "residual_moments",
        "residual_levels",
        "residual_gradient",
    ]
    noise: Literal["discrete_laplace", "discrete_gaussian"]
    lattice: Positive
    scale: int
    distance: Positive
    std_dev: Positive
    cost: Annotated[dict[str, float], _check_cost]

    @classmethod
    def from_dict(cls, values: object) -> "Seal":
        """Return the seal that a file holds."""
        seal: Seal = from_fields(cls, "a seal", values)
        if frexp(seal.lattice)[0] != 0.5:
            raise InvalidInput(f"lattice must be a power of two, got {seal.lattice!r}")
        width = seal.scale * seal.lattice * (sqrt(2.0) if seal.noise == "discrete_laplace" else 1.0)
        if not isclose(seal.std_dev, width, rel_tol=1e-9):
            raise InvalidInput(f"std_dev must be that of the noise, {width!r}, got {seal.std_dev!r}")
        return seal

    def to_dict(self) -> dict[str, Any]:
        """Return the seal as a file holds it."""
        return plain_fields(self) | {"cost": dict(self.cost)}


def seals_from(seals: Iterable[_core.Seal]) -> tuple[Seal, ...]:
    """Return the seals of a release of the core as records."""
    return tuple(Seal(*(getattr(seal, part.name) for part in fields(Seal))) for seal in seals)


def seal_facts(seals: tuple[Seal, ...]) -> dict[str, Any]:
    """Return what a machine-readable record says about the seals."""
    return {"releases": [seal.to_dict() for seal in seals], "failure_probability": FAILURE_PROBABILITY}


def seal_costs(seals: Iterable[Seal], steps: Iterable["Step"] = ()) -> list[dict[str, float]]:
    """Return what sealing each vector spent.

    A Hessian that the released parameters show to be free of data needs no seal. Its share is spent all the same, as
    that of its noise is: what a fit spends does not depend on the parameters that came out.
    """
    costs = [seal.cost for seal in seals]
    return costs + costs[:1] * has_needless_seal(steps)


def has_needless_seal(steps: Iterable["Step"]) -> bool:
    """Whether the Hessian is free of data, so that it has no seal."""
    return any(step.noise == "none" or (step.step == "moments" and step.hessian_scale is None) for step in steps)


def seal_cost(seals: Iterable[Seal], steps: Iterable["Step"] = ()) -> dict[str, float]:
    """Return what all seals spent together (:func:`seal_costs`), by parameter of the budget."""
    total: dict[str, float] = {}
    for cost in seal_costs(seals, steps):
        for name, value in cost.items():
            total[name] = total.get(name, 0.0) + value
    return total


def describe_seals(seals: tuple[Seal, ...]) -> str:
    """Return a phrase for tables: cost, noise and the lattice of the parameters."""
    cost = " ".join(f"{name} {value:.3g}" for name, value in seal_cost(seals).items())
    return f"{cost}, {seals[0].noise.replace('_', ' ')} noise on multiples of {seals[0].lattice:.3g}"


_WORDS = {"radius": "length of rows", "shape": "second moments of rows", "null_slope": "mean slope at 0"}
"""Steps whose own names say little to a reader."""


def step_names(steps: Iterable[Step]) -> list[str]:
    """Return what steps are called in tables and documents; those of one kind are numbered."""
    kinds = [_WORDS.get(step.step, step.step.replace("_", " ")) for step in steps]
    places = [kinds[: at + 1].count(kind) for at, kind in enumerate(kinds)]
    return [f"{kind} {place}" if kinds.count(kind) > 1 else kind for kind, place in zip(kinds, places, strict=True)]


def levels_scale(steps: Iterable[Step]) -> float | None:
    """Return the scale of the noise in the level totals; None without them."""
    return next((step.levels_scale for step in steps if step.step == "moments"), None)


def noise_of(taken: Iterable[Step], matrix: Literal["hessian", "gradient_cov"]) -> tuple[str, float] | None:
    """Return the name and the scale of the noise in a released matrix; None without noise."""
    steps = {step.step: step for step in taken}
    step = steps.get(matrix, steps.get("moments"))
    if step is None or step.noise == "none":
        return None
    scale = step.hessian_scale if step.step == "moments" and matrix == "hessian" else step.scale
    return None if scale is None else (step.noise, scale)
