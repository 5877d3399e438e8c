"""Record of the release of a moment matrix: released and public values, and their JSON form."""

import json
import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.guarantee import Guarantee, seal_totals
from dpci.accounting.seals import Seal, seal_facts
from dpci.accounting.spending import check_spending
from dpci.accounting.steps import Step
from dpci.approval.approvable import Approvable
from dpci.base.validation import check_count, check_flag, check_positive, check_real
from dpci.budgets import GDP, ZCDP, ApproxDP, Budget, GaussianBudget, gaussian_budget_from
from dpci.errors import InvalidInput
from dpci.regression.choices.bounds import check_of_schema
from dpci.regression.choices.planned import Regression
from dpci.regression.residuals import Refinement, ResidualMoments, check_refined, check_residuals, read_only
from dpci.released.facts import conditions_of_release
from dpci.released.rules import (
    Rule,
    built,
    check_array,
    check_names,
    check_paid,
    check_seals,
    check_table,
    check_text,
    check_version,
    one_of,
    optional,
    read_saved,
    saved_table,
    saved_text,
    steps_by,
)
from dpci.rows import Ball, Blocks
from dpci.schema.table import Schema
from dpci.unit import Persons, Weights

_F64 = NDArray[np.float64]

SCHEMA = "dpci.MomentMatrix"
SCHEMA_VERSION = 1

_ARRAYS = ("matrix", "middle", "scale")
_MATRIX, _RESIDUALS, _LEVELS, _GRADIENT = "moment_matrix", "residual_moments", "residual_levels", "residual_gradient"


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentRecord:
    """Everything that a :class:`~dpci.regression.MomentMatrix` knows. Arrays are read-only; k columns."""

    matrix: _F64
    """Mean of zz', z = (scaled row, constant, weighted target), shape (k + 2, k + 2)."""
    residuals: tuple[ResidualMoments, ...]
    """Moments of the residuals of planned regressions."""
    columns: tuple[str, ...]
    """Names of the columns of X, and behind them of all targets but the last."""
    target: str
    """Name of the last target: by the schema, the caller, or "y"; with underscores where a column is."""
    named_columns: bool
    """Whether the names came with the caller's table."""
    middle: _F64
    """Middle of the bounds of each column; 0 with a bound on the norm."""
    scale: _F64
    """Half the width of the bounds of each column; 1 with a bound on the norm."""
    constant: float
    """In the place of the intercept in z."""
    target_middle: float
    target_half: float
    target_weight: float
    """By which targets, less their middle, are multiplied in z."""
    row_norm: float | None
    """Bound on the rows; None with bounds of the columns, or blocks."""
    blocks: Blocks | None
    """Blocks of the rows before they are scaled; None without."""
    table: Schema | None
    """The public schema by which the table was encoded; None if the caller passed encoded rows."""
    n_samples: int
    """The public n: ``n_public`` under add/remove."""
    on_violation: str
    neighbors: str
    notion: str
    budget: dict[str, float]
    steps: tuple[Step, ...]
    seals: tuple[Seal, ...]
    private: bool
    version: str
    further: tuple[str, ...] = ()  # all targets but the last
    paid: dict[str, Any] | None = None
    """The ledger's id, the number and the time of the entry that paid; None without a ledger."""
    persons: Persons | None = None  # None where the records are rows
    weights: Weights | None = None  # None where each record counts once
    refined: tuple[Refinement, ...] = ()  # levels and gradients of refined regressions

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, read_only(getattr(self, name)))
        self._check_arrays()
        k = len(self.columns)
        if self.further != self.columns[k - len(self.further) :] or len(self.further) >= k:
            raise InvalidInput(f"further targets must be the last of the columns {self.columns}, got {self.further}")
        for residual in self.residuals:
            residual.check(self.features, self.targets)
        for one in self.refined:
            one.check(self.features, self.targets)
        refining = (part for part in (_LEVELS, _GRADIENT) for _ in self.refined)
        expected = (_MATRIX, *(_RESIDUALS for _ in self.residuals), *refining)
        found = {tuple(step.step for step in self.steps), tuple(seal.release for seal in self.seals)}
        if found != {expected}:
            raise InvalidInput(f"the steps and seals of a moment matrix must be those of {expected}, got {found}")
        if self.target in self.columns:
            raise InvalidInput(f"target must differ from the names of the columns, got {self.target!r}")
        if self.table is not None:
            check_of_schema(self.table, self.columns, self.blocks, self.persons)
        if self.row_norm is not None and self.blocks is not None:
            raise InvalidInput(f"rows must lie in a ball or in blocks, got row_norm={self.row_norm} and {self.blocks}")
        check_spending(self.total_budget(), self.steps, self.seals, self.guarantee)
        if not 1.0 <= self.divisor < math.inf:
            raise InvalidInput(f"the total of the weights must be at least their bound, got {self.weights}")

    def _check_arrays(self) -> None:
        k = len(self.columns)
        for name, shape in {"matrix": (k + 2, k + 2), "middle": (k,), "scale": (k,)}.items():
            if (got := getattr(self, name).shape) != shape:
                raise InvalidInput(f"{name} must have shape {shape}, got {got}")
        if not np.all(self.scale > 0.0):
            raise InvalidInput(f"scale must be positive, got {self.scale.min()}")

    @property
    def unit(self) -> str:
        """Whose privacy the release protects: "row" or "person"."""
        return "row" if self.persons is None else "person"

    @property
    def divisor(self) -> float:
        """Divisor of the sums over the records."""
        return self.n_samples if self.weights is None else self.weights.divisor(self.n_samples)

    @property
    def counted_is_public(self) -> bool:
        """Whether it is public what the records count together: each counts 1, and their number is public."""
        counts_one = self.weights is None and (self.persons is None or self.persons.max_rows is None)
        return counts_one and self.neighbors != "add_remove"

    @property
    def counted(self) -> float:
        """Total count of the records over the divisor; where it is not public, as the noisy matrix shows it."""
        return 1.0 if self.counted_is_public else float(self.matrix[-2, -2]) / self.constant**2

    @property
    def needs_robust(self) -> bool:
        """Whether residuals of rows are not independent ones of one variance: those of persons, and weighted ones."""
        return self.persons is not None or self.weights is not None

    @property
    def features(self) -> tuple[str, ...]:
        """The columns of X."""
        return self.columns[: len(self.columns) - len(self.further)]

    @property
    def targets(self) -> tuple[str, ...]:
        """All targets."""
        return (*self.further, self.target)

    def target_bounds(self) -> list[list[float]]:
        """Return the bounds of each target."""
        # The last is multiplied by ``target_weight``, all to the same size.
        size, k = self.target_weight * self.target_half, len(self.features)
        places = [*zip(self.middle[k:], size * self.scale[k:], strict=True), (self.target_middle, self.target_half)]
        return [[float(middle - half), float(middle + half)] for middle, half in places]

    def total_budget(self) -> GaussianBudget:
        """Return the budget as an object."""
        return gaussian_budget_from(self.notion, self.budget)

    def guarantee(self) -> Guarantee:
        """Return the (epsilon, delta) profile and the Renyi curve of all steps and seals together."""
        budget = self.total_budget()
        if isinstance(budget, GDP):
            return Guarantee(budget, None, 0.0, budget.mu)
        if not isinstance(budget, ApproxDP):
            return Guarantee(budget, None, 0.0, 0.0)
        mu = float(np.hypot.reduce([step.sensitivity / step.scale for step in self.steps]))
        return Guarantee(budget, None, 0.0, mu, seal_totals(self.seals, ()))

    def noise(self) -> float:
        """Return the standard deviation of an isometric coordinate of the noise in the matrix, seal included."""
        return self._noise(0, len(self.matrix))

    def residuals_of(self, model: Regression) -> tuple[_F64, float] | None:
        """Return the moments of the residuals of a regression and their noise, as :meth:`noise`; None if not released.

        They are those of (scaled row, constant), shape (k + 1, k + 1), with zeros for columns that are no regressors.
        """
        wanted = model.among(self.features, self.targets)
        for at, residual in enumerate(self.residuals, start=1):
            if residual.regression == wanted:
                k = len(self.columns)
                used = [*(self.columns.index(name) for name in wanted.features or ()), k]
                moments = np.zeros((k + 1, k + 1))
                moments[np.ix_(used, used)] = residual.moments
                return moments, self._noise(at, len(used))
        return None

    def refined_of(self, model: Regression) -> tuple[Refinement, Step, Step, Seal] | None:
        """Return the gradient of a refined regression; the noise of its levels, and its own; None if not released."""
        wanted = model.among(self.features, self.targets)
        for at, one in enumerate(self.refined, start=1 + len(self.residuals)):
            if one.regression == wanted:
                own = at + len(self.refined)
                return one, self.steps[at], self.steps[own], self.seals[own]
        return None

    def _noise(self, at: int, size: int) -> float:
        step, seal = self.steps[at], self.seals[at]
        return _core.sealed_std_dev(step.noise, scale=step.scale, dim=size, seal_std_dev=seal.std_dev)

    @property
    def is_gaussian(self) -> bool:
        """Whether the noise is normal."""
        return self.steps[0].noise == "gaussian"

    def to_json(self) -> str:
        """Return the record as JSON; floats survive exactly."""
        values: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        for name in _ARRAYS:
            values[name] = values[name].tolist()
        for name in ("residuals", "refined"):
            values[name] = [planned.to_dict() for planned in values[name]]
        for name in ("steps", "seals"):
            values[name] = [part.to_dict() for part in values[name]]
        values["table"] = saved_table(self.table)
        for name in ("blocks", "persons", "weights"):
            values[name] = None if values[name] is None else values[name].to_dict()
        return saved_text(values, schema=SCHEMA, version=SCHEMA_VERSION)

    @classmethod
    def from_json(cls, text: str | bytes) -> "MomentRecord":
        """Rebuild a record from :meth:`to_json`.

        Raises
        ------
        InvalidInput
            If the text is not such a record, or of another schema version.
        """
        values = read_saved(text, what="a saved moment matrix", schema=SCHEMA, version=SCHEMA_VERSION)
        return built(cls, values, _RULES, what="a saved moment matrix")

    @property
    def digest(self) -> str:
        """The hash of what the saved record says, which is its checksum; the ledger that paid holds it too."""
        return str(json.loads(self.to_json())["checksum"])

    @property
    def charge(self) -> Budget:
        """Budget that a ledger counts."""
        return charge_of(self.total_budget())


def charge_of(budget: GaussianBudget) -> Budget:
    """Return what a ledger counts: of Gaussian DP the zCDP that it implies, rounded up."""
    return ZCDP(budget.to_zcdp().rho * (1.0 + 2.0**-50)) if isinstance(budget, GDP) else budget


class ReleaseFacts(Approvable):
    """Facts of the release of a moment matrix; arrays are read-only."""

    __slots__ = ("_record",)

    def __init__(self, record: MomentRecord) -> None:
        self._record = record

    @property
    def n_samples(self) -> int:
        """The public number of samples: ``n_public`` under add/remove."""
        return self._record.n_samples

    @property
    def private(self) -> bool:
        """Whether noise from the operating system protects the data: False for seeded noise."""
        return self._record.private

    @property
    def budget(self) -> GaussianBudget:
        """Budget that the release of the matrix spent: the whole budget."""
        return self._record.total_budget()

    @property
    def spent(self) -> GaussianBudget:
        """Budget that was spent: the whole one, by the release. A regression costs nothing more."""
        return self.budget

    @property
    def schema(self) -> Schema | None:
        """The public schema by which the table was encoded; None if the caller passed encoded rows."""
        return self._record.table

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, spent by step, constants, conditions, version."""
        record = self._record
        return {
            "private": record.private,
            "relation": record.neighbors,
            "unit": record.unit,
            "notion": record.notion,
            "budget": dict(record.budget),
            "spent": dict(record.budget),
            "cost_unit": {"pure": "epsilon", "zcdp": "rho", "approx": "mu_squared", "gdp": "mu_squared"}[record.notion],
            "steps": [step.to_dict() for step in record.steps],
            "seal": seal_facts(record.seals),
            "mechanism": "moment_matrix",
            "constants": {
                "n_public": record.n_samples,
                "row_norm": record.row_norm,
                "blocks": None if record.blocks is None else record.blocks.to_dict(),
                "middle": record.middle[: len(record.features)].tolist(),
                "scale": record.scale[: len(record.features)].tolist(),
                "target_bounds": record.target_bounds() if record.further else record.target_bounds()[0],
                "on_violation": record.on_violation,
                "persons": None if record.persons is None else record.persons.to_dict(),
                "weights": None if record.weights is None else record.weights.to_dict(),
            },
            "conditions": conditions(record),
            "version": record.version,
        }

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) profile and the Renyi curve; void for seeded noise."""
        return self._record.guarantee()


def conditions(record: MomentRecord) -> list[str]:
    """Return what the guarantee rests on besides the theorem."""
    domain = record.blocks if record.row_norm is None else Ball(record.row_norm)
    bounds = f"an interval for each of {len(record.features)} columns" if domain is None else str(domain)
    return conditions_of_release(private=record.private, bounds=bounds if record.on_violation == "error" else None)


def _check_finite(name: str, value: object) -> float:
    number = check_real(name, value)
    if not math.isfinite(number):
        raise InvalidInput(f"{name} must be finite, got {name}={number}")
    return number


_STEP_RULES: dict[str, Rule] = {
    "step": one_of(_MATRIX, _RESIDUALS, _LEVELS, _GRADIENT),
    "noise": one_of("matrix_laplace", "laplace", "spherical_laplace", "gaussian"),
    "cost": check_positive,
    "scale": check_positive,
    "hessian_scale": optional(check_positive),
    "sensitivity": check_positive,
}
# What a saved record has to obey, field by field: a file can hold anything.
_RULES: dict[str, Rule] = {
    "matrix": check_array,
    "residuals": check_residuals,
    "columns": check_names,
    "target": check_text,
    "named_columns": check_flag,
    "middle": check_array,
    "scale": check_array,
    "constant": check_positive,
    "target_middle": _check_finite,
    "target_half": check_positive,
    "target_weight": check_positive,
    "row_norm": optional(check_positive),
    "blocks": optional(lambda _, value: Blocks.from_dict(value)),
    "table": optional(check_table),
    "n_samples": check_count,
    "on_violation": one_of("error", "clip"),
    "neighbors": one_of("replace_one", "add_remove"),
    "notion": one_of("pure", "zcdp", "approx", "gdp"),
    "steps": steps_by(_STEP_RULES),
    "seals": check_seals,
    "private": check_flag,
    "version": check_version,
    "further": lambda name, value: check_names(name, value) if value else (),
    "paid": optional(check_paid),
    "persons": optional(lambda _, value: Persons.from_dict(value)),
    "weights": optional(lambda _, value: Weights.from_dict(value)),
    "refined": check_refined,
}
