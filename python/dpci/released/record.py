"""Record of one fit: released and public values only, and their JSON form."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.seals import Seal
from dpci.accounting.steps import Step
from dpci.budgets import Budget, budget_from_parameters, core_budget
from dpci.data.labels import Classes
from dpci.errors import InvalidInput
from dpci.losses import SEVERAL
from dpci.released.rules import saved_table, saved_text
from dpci.released.whole import Whole
from dpci.rows import Ball, Blocks, RowDomain
from dpci.schema.table import Schema
from dpci.unit import Persons, Weights

SCHEMA = "dpci.PrivateFit"
SCHEMA_VERSION = 1
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
    """Slope bound of the loss on the domain."""
    curvature_bound: float | None
    """Curvature bound of the loss on the domain; None for a loss with a kink."""
    mechanism: str
    variant: str
    project: bool
    moments: str
    projection: str
    """The projection that was used: "floor", "cautious", "noise_aware" or "none"."""
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
    blocks: Blocks | None = None
    """The blocks that bound the rows, of Euclidean norm ``row_norm``; None for the ball of that norm."""
    persons: Persons | None = None
    """How much the rows of a person count, where the records are persons; None where they are rows."""
    weights: Weights | None = None
    """Public bound and total of the weights of records; None where each counts once."""
    table: Schema | None = None
    """The public schema by which the table was encoded; None if the caller passed encoded rows."""
    paid: dict[str, Any] | None = None
    """The ledger's id, the number and the time of the entry that paid for the fit; None without a ledger."""
    whole: Whole | None = None
    """The release that the fit is a part of, such as all strata of a table; None for a fit by itself."""

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
    def rows(self) -> RowDomain:
        """The public domain of the rows, without the intercept."""
        return Ball(self.row_norm) if self.blocks is None else self.blocks

    @property
    def n_is_released(self) -> bool:
        """Whether the number of records in place of the private one was released with noise, which cost budget."""
        return self.whole is not None and self.whole.counts

    @property
    def divisor(self) -> float:
        """Divisor of sums over records that weigh at most 1: their number, or the total weight over the largest."""
        return self.n_samples if self.weights is None else self.weights.divisor(self.n_samples)

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
        return _core.cost_unit(core_budget(self.total_budget()), self.calibration, self.mechanism)

    def to_json(self) -> str:
        """Return the record as JSON; floats survive exactly."""
        values: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        for name in _ARRAYS:
            values[name] = None if values[name] is None else values[name].tolist()
        for name in ("steps", "seals"):
            values[name] = [part.to_dict() for part in values[name]]
        for name in ("blocks", "persons", "weights", "whole"):
            values[name] = None if values[name] is None else values[name].to_dict()
        values["table"] = saved_table(self.table)
        return saved_text(values, schema=SCHEMA, version=SCHEMA_VERSION)

    @property
    def digest(self) -> str:
        """The hash of what the saved record says, which is its checksum."""
        return str(json.loads(self.to_json())["checksum"])

    def _check_shapes(self) -> None:
        k = len(self.names)
        if (self.hessian is None) != (self.gradient_cov is None) or (self.hessian is None) != (self.moments == "none"):
            raise InvalidInput(f"both matrices must be given unless moments='none', got moments={self.moments!r}")
        for name, shape in (("params", (k,)), ("hessian", (k, k)), ("gradient_cov", (k, k))):
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise InvalidInput(f"{name} must have shape {shape}, got {array.shape}")
