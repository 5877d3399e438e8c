"""What one fit leaves behind: released and public values only, and their JSON form."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci.budgets import Budget, budget_from_parameters
from dpci.errors import InvalidInput
from dpci.labels import Classes

SCHEMA = "dpci.PrivateFit"
SCHEMA_VERSION = 1
_ARRAYS = ("params", "hessian", "gradient_cov")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a release: its noise, its cost and the constants behind it, all public.

    Attributes
    ----------
    step : str
        "coefficients", "hessian", "gradient_cov" or "moments".
    noise : str
        "spherical_laplace", "gaussian" or "matrix_laplace".
    cost : float
        In the unit of :attr:`FitRecord.cost_unit`.
    scale : float
        1/rate (Laplace families) or standard deviation (Gaussian).
    hessian_scale : float or None
        The Hessian's scale in a joint release, whose ``scale`` is that of the gradient covariance.
    sensitivity : float
        What the noise was calibrated to, in the norm of its family.
    """

    step: str
    noise: str
    cost: float
    scale: float
    hessian_scale: float | None
    sensitivity: float

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> "Step":
        """Build a step from the core's dictionary."""
        return cls(*(values[part.name] for part in fields(cls)))

    def to_dict(self) -> dict[str, Any]:
        """Return the step as plain values."""
        return {part.name: getattr(self, part.name) for part in fields(self)}


def cost_unit(notion: str, calibration: str) -> str:
    """Return what the costs of the steps are counted in."""
    if notion == "approx":
        # Gaussians compose by adding (sensitivity / std_dev)²; the paper's route goes through zCDP.
        return "rho" if calibration == "paper" else "mu_squared"
    return {"pure": "epsilon", "zcdp": "rho"}[notion]


@dataclass(frozen=True, kw_only=True, eq=False)
class FitRecord:
    """Everything that a :class:`~dpci.PrivateFit` knows. Arrays are read-only; (k,) is the number of parameters."""

    params: NDArray[np.float64]
    hessian: NDArray[np.float64] | None
    gradient_cov: NDArray[np.float64] | None
    names: tuple[str, ...]
    named_columns: bool
    """Whether the names came with the caller's table."""
    classes: Classes | None
    n_samples: int
    """The public n: ``n_public`` under add/remove."""
    l2_strength: float
    loss: dict[str, Any]
    mechanism: str
    moments: str
    projection: str
    """The projection that was used: "floor", "cautious" or "none"."""
    calibration: str
    row_norm: float
    on_violation: str
    neighbors: str
    intercept_scale: float | None
    notion: str
    budget: dict[str, float]
    noise_law: str
    noise_scale: float
    noise_spectral_radius: float
    steps: tuple[Step, ...]
    private: bool
    version: str

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            array = getattr(self, name)
            if array is not None:
                array = np.array(array, dtype=np.float64)
                array.flags.writeable = False
                object.__setattr__(self, name, array)
        self._check_shapes()
        self.total_budget()

    def total_budget(self) -> Budget:
        """Return the budget as an object."""
        return budget_from_parameters(self.notion, self.budget)

    @property
    def cost_unit(self) -> str:
        """What the costs of the steps are counted in: "epsilon", "rho" or "mu_squared"."""
        return cost_unit(self.notion, self.calibration)

    def to_json(self) -> str:
        """Return the record as JSON; floats survive exactly."""
        values: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        for name in _ARRAYS:
            values[name] = None if values[name] is None else values[name].tolist()
        values["steps"] = [step.to_dict() for step in self.steps]
        return json.dumps({"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **values}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "FitRecord":
        """Rebuild a record from :meth:`to_json`.

        Raises
        ------
        InvalidInput
            If the text is not such a record, or of another schema version.
        """
        try:
            values = json.loads(text)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"a saved fit must be JSON, got {error}") from error
        if not isinstance(values, dict) or values.pop("schema", None) != SCHEMA:
            raise InvalidInput(f"a saved fit must be a JSON object with schema={SCHEMA!r}, got something else")
        version = values.pop("schema_version", None)
        if version != SCHEMA_VERSION:
            raise InvalidInput(f"a saved fit must have schema_version={SCHEMA_VERSION}, got schema_version={version!r}")
        try:
            values["names"] = tuple(values["names"])
            values["classes"] = None if values["classes"] is None else tuple(values["classes"])
            values["steps"] = tuple(Step.from_mapping(step) for step in values["steps"])
            return cls(**values)
        except InvalidInput:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"a saved fit must hold every field of its schema, got {error!r}") from error

    def _check_shapes(self) -> None:
        k = len(self.names)
        for name, shape in (("params", (k,)), ("hessian", (k, k)), ("gradient_cov", (k, k))):
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise InvalidInput(f"{name} must have shape {shape}, got {array.shape}")
