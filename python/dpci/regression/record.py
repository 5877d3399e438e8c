"""What the release of a moment matrix leaves behind: released and public values, and their JSON form."""

import json
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.guarantee import Guarantee, seal_totals
from dpci.accounting.seals import Seal, describe_seals, seal_facts
from dpci.accounting.steps import Step
from dpci.base.validation import check_count, check_flag, check_positive, check_real
from dpci.budgets import GDP, ZCDP, ApproxDP, Budget, GaussianBudget, gaussian_budget_from
from dpci.errors import InvalidInput
from dpci.regression.choices.planned import Regression
from dpci.released.rules import (
    Rule,
    built,
    check_array,
    check_names,
    check_paid,
    check_seals,
    check_table,
    check_text,
    one_of,
    optional,
    read_saved,
    saved_table,
    saved_text,
    steps_by,
)
from dpci.rows import Blocks
from dpci.schema.table import Schema

_F64 = NDArray[np.float64]

SCHEMA = "dpci.MomentMatrix"
SCHEMA_VERSION = 2

_ARRAYS = ("matrix", "middle", "scale")
_RELATIONS = {"replace_one": "replace one record", "add_remove": "add or remove one record"}
_MATRIX, _RESIDUALS = "moment_matrix", "residual_moments"


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualMoments:
    """Released moments of the residuals of one regression. Arrays are read-only; k columns."""

    regression: Regression
    """With the names of its target and of its features, in the order of the columns."""
    point: _F64
    """Coefficients of (scaled row, constant) at which residuals were taken, shape (k + 1,)."""
    moments: _F64
    """Mean of r²xx', x = (scaled features, constant)."""

    def __post_init__(self) -> None:
        for name in ("point", "moments"):
            object.__setattr__(self, name, _read_only(getattr(self, name)))

    def check(self, columns: tuple[str, ...], target: str) -> None:
        """Check that they are of a matrix of these columns.

        Raises
        ------
        InvalidInput
            For names that are not there, and arrays of another shape.
        """
        if self.regression.among(columns, target) != self.regression:
            raise InvalidInput(f"a planned regression must name its columns in their order, got {self.regression}")
        size = len(self.regression.features or ()) + 1
        if self.point.shape != (len(columns) + 1,) or self.moments.shape != (size, size):
            raise InvalidInput(f"the moments of residuals must have shape {(size, size)}, got {self.moments.shape}")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return {
            **asdict(self.regression),
            "point": self.point.tolist(),
            "moments": self.moments.tolist(),
        }

    @classmethod
    def from_dict(cls, value: object) -> "ResidualMoments":
        """Rebuild it from :meth:`to_dict`."""
        if not isinstance(value, dict) or set(value) != {"target", "features", "l2_strength", "point", "moments"}:
            raise InvalidInput(f"the moments of residuals must have the fields of their schema, got {value!r:.80}")
        regression = Regression(
            target=check_text("target", value["target"]),
            features=check_names("features", value["features"]),
            l2_strength=value["l2_strength"],
        )
        arrays = {name: check_array(name, value[name]) for name in ("point", "moments")}
        return cls(regression=regression, **arrays)


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentRecord:
    """Everything that a :class:`~dpci.regression.MomentMatrix` knows. Arrays are read-only; k columns."""

    matrix: _F64
    """Mean of zz', z = (scaled row, constant, weighted target), shape (k + 2, k + 2)."""
    residuals: "tuple[ResidualMoments, ...]"
    """Of the residuals of planned regressions."""
    columns: tuple[str, ...]
    target: str
    """What the targets are called: by the schema, the caller's column, or "y"; with underscores where a column is."""
    named_columns: bool
    """Whether the names came with the caller's table."""
    middle: _F64
    """Of the bounds of each column; 0 with a bound on the norm."""
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
    """The public schema that encoded the table; None for rows that came encoded."""
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
    paid: dict[str, Any] | None = None
    """The ledger's id, the number and the time of the entry that paid; None without a ledger."""

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, _read_only(getattr(self, name)))
        k = len(self.columns)
        shapes = {
            "matrix": (k + 2, k + 2),
            "middle": (k,),
            "scale": (k,),
        }
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.shape != shape:
                raise InvalidInput(f"{name} must have shape {shape}, got {array.shape}")
        if not np.all(self.scale > 0.0):
            raise InvalidInput(f"scale must be positive, got {self.scale.min()}")
        for residual in self.residuals:
            residual.check(self.columns, self.target)
        expected = (_MATRIX, *(_RESIDUALS for _ in self.residuals))
        found = {tuple(step.step for step in self.steps), tuple(seal.release for seal in self.seals)}
        if found != {expected}:
            raise InvalidInput(f"the steps and seals of a moment matrix must be those of {expected}, got {found}")
        if self.target in self.columns:
            raise InvalidInput(f"target must differ from the names of the columns, got {self.target!r}")
        if self.table is not None and self.table.names != self.columns:
            raise InvalidInput(f"the schema must name the columns {self.columns}, got {self.table.names}")
        self.total_budget()

    def total_budget(self) -> GaussianBudget:
        """Return the budget as an object."""
        return gaussian_budget_from(self.notion, self.budget)

    def noise(self) -> float:
        """Return the standard deviation of an isometric coordinate of the noise in the matrix, seal included."""
        return self._noise(0, len(self.matrix))

    def residuals_of(self, model: Regression) -> tuple[_F64, float] | None:
        """Return the moments of the residuals of a regression and their noise, as :meth:`noise`; None if not released.

        They are those of (scaled row, constant), shape (k + 1, k + 1), with zeros for columns that are no regressors.
        """
        wanted = model.among(self.columns, self.target)
        for at, residual in enumerate(self.residuals, start=1):
            if residual.regression == wanted:
                k = len(self.columns)
                used = [*(self.columns.index(name) for name in wanted.features or ()), k]
                moments = np.zeros((k + 1, k + 1))
                moments[np.ix_(used, used)] = residual.moments
                return moments, self._noise(at, len(used))
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
        values["residuals"] = [residual.to_dict() for residual in self.residuals]
        for name in ("steps", "seals"):
            values[name] = [part.to_dict() for part in values[name]]
        values["blocks"] = None if self.blocks is None else self.blocks.to_dict()
        values["table"] = saved_table(self.table)
        if self.paid is None:
            del values["paid"]  # which the first files of this version lack: their hashes stay
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
        values.setdefault("paid", None)
        return built(cls, values, _RULES, what="a saved moment matrix")

    @property
    def digest(self) -> str:
        """The hash of what the saved record says, which is its checksum; the ledger that paid holds it too."""
        return str(json.loads(self.to_json())["checksum"])

    @property
    def charge(self) -> Budget:
        """What a ledger counts."""
        return charge_of(self.total_budget())


def charge_of(budget: GaussianBudget) -> Budget:
    """Return what a ledger counts: of Gaussian DP the zCDP that it implies, rounded up."""
    return ZCDP(budget.to_zcdp().rho * (1.0 + 2.0**-50)) if isinstance(budget, GDP) else budget


class ReleaseFacts:
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
        """What was spent by the release of the matrix: the whole budget."""
        return self._record.total_budget()

    @property
    def spent(self) -> GaussianBudget:
        """What was spent: the whole budget, by the release; a regression costs nothing more."""
        return self.budget

    @property
    def schema(self) -> Schema | None:
        """The public schema that encoded the table; None for rows that came encoded."""
        return self._record.table

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, spent by step, constants, conditions, version."""
        record = self._record
        return {
            "private": record.private,
            "relation": record.neighbors,
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
                "middle": record.middle.tolist(),
                "scale": record.scale.tolist(),
                "target_bounds": [
                    record.target_middle - record.target_half,
                    record.target_middle + record.target_half,
                ],
                "on_violation": record.on_violation,
            },
            "conditions": conditions(record),
            "version": record.version,
        }

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) profile and the Renyi curve; void for seeded noise."""
        budget, record = self.budget, self._record
        if isinstance(budget, GDP):
            return Guarantee(budget, None, 0.0, budget.mu)
        if not isinstance(budget, ApproxDP):
            return Guarantee(budget, None, 0.0, 0.0)
        mu = float(np.hypot.reduce([step.sensitivity / step.scale for step in record.steps]))
        return Guarantee(budget, None, 0.0, mu, seal_totals(record.seals, ()))


def release_lines(record: MomentRecord) -> list[tuple[str, str]]:
    """Return what was released and what it cost, a fact a line."""
    return [
        ("released", f"second moments of {len(record.columns)} columns, a constant and {record.target}"),
        ("columns", ", ".join(record.columns)),
        ("budget spent", str(record.total_budget())),
        *((f"  {step.step}", f"{step.noise} noise of scale {step.scale:.4g}") for step in record.steps),
        ("  rounding seal", describe_seals(record.seals)),
        ("neighbours", _RELATIONS[record.neighbors]),
        ("n (public)" if record.neighbors == "add_remove" else "n", f"{record.n_samples:,}"),
    ]


def conditions(record: MomentRecord) -> list[str]:
    """Return what the guarantee rests on besides the theorem."""
    rests_on = []
    if not record.private:
        rests_on.append("none: the noise is seeded, so whoever knows the seed can subtract it")
    if record.on_violation == "error":
        rests_on.append("every possible record obeys the public bounds; errors are seen by the holder of the data only")
    if record.private:
        rests_on.append("the noise is as good as random: ChaCha20 seeded by the operating system")
    rests_on.append("elementary functions err by no more than docs/noise.md assumes")
    return rests_on


def _check_residuals(name: str, value: object) -> tuple[ResidualMoments, ...]:
    if not isinstance(value, list):
        raise InvalidInput(f"{name} must be a list, got {name}={value!r}")
    return tuple(map(ResidualMoments.from_dict, value))


def _read_only(values: _F64) -> _F64:
    values = np.array(values, dtype=np.float64)
    values.flags.writeable = False
    return values


def _check_finite(name: str, value: object) -> float:
    number = check_real(name, value)
    if not math.isfinite(number):
        raise InvalidInput(f"{name} must be finite, got {name}={number}")
    return number


_STEP_RULES: dict[str, Rule] = {
    "step": one_of(_MATRIX, _RESIDUALS),
    "noise": one_of("matrix_laplace", "gaussian"),
    "cost": check_positive,
    "scale": check_positive,
    "sensitivity": check_positive,
}
# What a saved record has to obey, field by field: a file can hold anything.
_RULES: dict[str, Rule] = {
    "matrix": check_array,
    "residuals": _check_residuals,
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
    "version": check_text,
    "paid": optional(check_paid),
}
