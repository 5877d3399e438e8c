"""What one fit leaves behind: released and public values only, and their JSON form."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.seals import Seal
from dpci.accounting.steps import Step, cost_unit
from dpci.base.validation import check_count, check_flag, check_not_negative, check_positive
from dpci.budgets import Budget, budget_from_parameters
from dpci.data.labels import Classes
from dpci.errors import InvalidInput
from dpci.losses import declaration, from_declaration
from dpci.released.consistency import check_consistent
from dpci.released.rules import (
    Rule,
    check_array,
    check_interval,
    check_labels,
    check_names,
    check_seals,
    check_text,
    one_of,
    optional,
    read_saved,
    saved_text,
)

SCHEMA = "dpci.PrivateFit"
SCHEMA_VERSION = 5
_ARRAYS = ("params", "hessian", "gradient_cov")


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
    classes_inferred: bool
    """Whether the classes were inferred from the labels, so that they are not public."""
    n_samples: int
    """The public n: ``n_public`` under add/remove."""
    l2_strength: float
    """λ as it was used: with what the variant "cms11" added."""
    radius: float | None
    loss: dict[str, Any]
    slope_bound: float
    """Of the loss on the domain."""
    curvature_bound: float | None
    """Of the loss on the domain; None for a loss with a kink."""
    mechanism: str
    variant: str
    project: bool
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
    seals: tuple[Seal, ...]
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
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the rows: those of the parameters without the intercept."""
        return self.names if self.intercept_scale is None else self.names[:-1]

    @property
    def cost_unit(self) -> str:
        """What the costs of the steps are counted in: "epsilon", "rho" or "mu_squared"."""
        return cost_unit(self.notion, self.calibration, self.mechanism)

    def to_json(self) -> str:
        """Return the record as JSON; floats survive exactly."""
        values: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        for name in _ARRAYS:
            values[name] = None if values[name] is None else values[name].tolist()
        for name in ("steps", "seals"):
            values[name] = [part.to_dict() for part in values[name]]
        return saved_text(values, schema=SCHEMA, version=SCHEMA_VERSION)

    @classmethod
    def from_json(cls, text: str | bytes, *, selected: bool = False) -> "FitRecord":
        """Rebuild a record from :meth:`to_json`.

        Raises
        ------
        InvalidInput
            If the text is not such a record, or of another schema version.
        """
        values = read_saved(text, what="a saved fit", schema=SCHEMA, version=SCHEMA_VERSION)
        names = [part.name for part in fields(cls)]
        missing = [name for name in names if name not in values]
        if missing or len(values) > len(names):
            got = f"none called {missing[0]!r}" if missing else f"{next(n for n in values if n not in names)!r} too"
            raise InvalidInput(f"a saved fit must hold every field of its schema and no other, got {got}")
        try:
            for name, rule in _RULES.items():
                values[name] = rule(name, values[name])
            record = cls(**values)
        except InvalidInput:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(f"a saved fit must hold every field of its schema, got {error!r}") from error
        check_consistent(record, selected=selected)
        return record

    def _check_shapes(self) -> None:
        k = len(self.names)
        if (self.hessian is None) != (self.gradient_cov is None) or (self.hessian is None) != (self.moments == "none"):
            raise InvalidInput(f"both matrices must be there unless moments='none', got moments={self.moments!r}")
        for name, shape in (("params", (k,)), ("hessian", (k, k)), ("gradient_cov", (k, k))):
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise InvalidInput(f"{name} must have shape {shape}, got {array.shape}")


def _check_loss(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be an object, got {name}={value!r}")
    for key, rule in _LOSS_RULES.items():
        if key not in value:
            raise InvalidInput(f"{name} must have {key}, got {name}={value!r}")
        rule(f"{name}.{key}", value[key])
    for key in ("h", "s", "target_bound"):
        check_positive(f"{name}.{key}", value.get(key, 1.0))
    built_in = from_declaration(value)
    if built_in is not None and value != declaration(built_in, built_in.to_core()):
        raise InvalidInput(f"{name} must have the declaration of {built_in!r}, got {name}={value!r}")
    return value


def _check_steps(name: str, value: object) -> tuple[Step, ...]:
    if not isinstance(value, list) or not value:
        raise InvalidInput(f"{name} must be a list of at least one step, got {name}={value!r}")
    steps = tuple(Step.from_mapping(step) for step in value)
    for step in steps:
        for part, rule in _STEP_RULES.items():
            rule(f"{name}.{part}", getattr(step, part))
    return steps


# What a saved record has to obey, field by field: a file can hold anything.
_LOSS_RULES: dict[str, Rule] = {
    "name": one_of("logistic", "huber_hinge", "smooth_hinge", "soft_logistic", "squared", "hinge", "custom"),
    "slope_bound": optional(check_positive),
    "curvature_bound": optional(check_positive),
    "predictor_bound": optional(check_positive),
    "strong_convexity": check_not_negative,
    "one_signed": check_flag,
    "target_bounds": optional(check_interval),
}
_STEP_RULES: dict[str, Rule] = {
    "step": one_of("coefficients", "hessian", "gradient_cov", "moments", "report_gradient", "report_hessian"),
    "noise": one_of("spherical_laplace", "gaussian", "matrix_laplace", "none"),
    "cost": check_positive,
    "scale": check_not_negative,
    "hessian_scale": optional(check_positive),
    "sensitivity": check_not_negative,
}
_RULES: dict[str, Rule] = {
    "params": check_array,
    "hessian": optional(check_array),
    "gradient_cov": optional(check_array),
    "names": check_names,
    "named_columns": check_flag,
    "classes": optional(check_labels),
    "classes_inferred": check_flag,
    "n_samples": check_count,
    "l2_strength": check_not_negative,
    "radius": optional(check_positive),
    "loss": _check_loss,
    "slope_bound": check_positive,
    "curvature_bound": optional(check_not_negative),
    "mechanism": one_of("objective", "output"),
    "variant": one_of("standard", "cms11"),
    "project": check_flag,
    "moments": one_of("joint", "separate", "none"),
    "projection": one_of("floor", "cautious", "none"),
    "calibration": one_of("tight", "paper"),
    "row_norm": check_positive,
    "on_violation": one_of("error", "clip"),
    "neighbors": one_of("replace_one", "add_remove"),
    "intercept_scale": optional(check_positive),
    "noise_law": one_of("spherical_laplace", "gaussian"),
    "noise_scale": check_positive,
    "noise_spectral_radius": check_not_negative,
    "steps": _check_steps,
    "seals": check_seals,
    "private": check_flag,
    "version": check_text,
}
