"""Record of the release of a moment matrix: released and public values, and their JSON form."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.costs import Seal, Step
from dpci.accounting.guarantee import Guarantee, check_spending
from dpci.base.codec import Positive
from dpci.base.validation import check_different, check_symmetric
from dpci.budgets import GDP, ZCDP, ApproxDP, Budget, GaussianBudget, Neighbors, SavedGaussianBudget
from dpci.data.arrays import OnViolation
from dpci.errors import InvalidInput
from dpci.regression.choices.bounds import check_of_schema
from dpci.regression.choices.model import Place
from dpci.regression.choices.planned import Regression
from dpci.regression.residuals import Refinement, ResidualMoments
from dpci.released.bounds import ReleasedBounds, are_joint, check_far_rows, chosen_beside
from dpci.released.choices import rows_are_alike
from dpci.released.record import Record

_F64 = NDArray[np.float64]

_MATRIX, _RESIDUALS, _LEVELS, _GRADIENT = "moment_matrix", "residual_moments", "residual_levels", "residual_gradient"


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentRecord(Record):
    """Everything that a :class:`~dpci.regression.MomentMatrix` knows. Arrays are read-only; k columns.

    ``rows`` are those before they are scaled; None with bounds of each column.
    """

    KIND: ClassVar[str] = "dpci.MomentMatrix"
    WHAT: ClassVar[str] = "a saved moment matrix"
    STEPS: ClassVar[frozenset[str]] = frozenset((_MATRIX, _RESIDUALS, _LEVELS, _GRADIENT))
    NOISES: ClassVar[frozenset[str]] = frozenset(("matrix_laplace", "laplace", "spherical_laplace", "gaussian"))

    matrix: _F64
    """Mean of zz', z = (scaled row, constant, weighted target), shape (k + 2, k + 2)."""
    residuals: tuple[ResidualMoments, ...]
    """Moments of the residuals of planned regressions."""
    columns: tuple[str, ...]
    """Names of the columns of X, and behind them of all targets but the last."""
    target: str
    """Name of the last target: by the schema, the caller, or "y"; with underscores where a column is."""
    middle: _F64
    """Middle of the bounds of each column; 0 with a bound on the norm."""
    scale: _F64
    """Half the width of the bounds of each column; 1 with a bound on the norm."""
    constant: Positive
    """In the place of the intercept in z."""
    target_middle: float
    target_half: Positive
    target_weight: Positive
    """By which targets, less their middle, are multiplied in z."""
    on_violation: OnViolation
    neighbors: Neighbors
    budget: SavedGaussianBudget
    further: tuple[str, ...] = ()  # all targets but the last
    refined: tuple[Refinement, ...] = ()  # levels and gradients of refined regressions
    released_bounds: ReleasedBounds | None = None  # those of the schema, for a part of the budget

    def __post_init__(self) -> None:
        super().__post_init__()
        check_far_rows(self.on_violation, self.weights, self.table, weighed=True)
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
        check_spending(self.own_budget, self.steps, self.seals, self.own_guarantee)
        if self.released_bounds is not None:
            self._check_bounds(self.released_bounds)
        if not 1.0 <= self.divisor < math.inf:
            raise InvalidInput(f"the total of the weights must be at least their bound, got {self.weights}")

    def check(self) -> None:
        """Refuse names that are equal, and matrices that are not symmetric to the last bit."""
        super().check()
        check_different(f"names of columns in {self.WHAT} must differ", (*self.columns, self.target))
        check_symmetric("matrix", self.matrix)
        for residual in self.residuals:
            check_symmetric("moments of residuals", residual.moments)

    def _check_bounds(self, found: ReleasedBounds) -> None:
        """Refuse bounds that were not released of this schema, or not within this budget."""
        if self.table is None:
            raise InvalidInput("a moment matrix with released bounds must have a schema, got none")
        found.check_table(self.table)
        if isinstance(self.budget, ApproxDP):
            broken, rule, value = found.together(self.guarantee(), self.budget)
            if broken:
                raise InvalidInput(f"{rule}, got {value}")

    def _check_arrays(self) -> None:
        k = len(self.columns)
        for name, shape in {"matrix": (k + 2, k + 2), "middle": (k,), "scale": (k,)}.items():
            if (got := getattr(self, name).shape) != shape:
                raise InvalidInput(f"{name} must have shape {shape}, got {got}")
        if not np.all(self.scale > 0.0):
            raise InvalidInput(f"scale must be positive, got {self.scale.min()}")

    @property
    def place(self) -> Place:
        """Where the columns are."""
        return Place(**{part.name: getattr(self, part.name) for part in fields(Place)})

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
        return not rows_are_alike(self.persons, self.weights)

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

    @property
    def bounds(self) -> str:
        """The bounds that records have to obey, in words."""
        return f"an interval for each of {len(self.features)} columns" if self.rows is None else super().bounds

    @property
    def choices(self) -> dict[str, Any]:
        """Public choices, as :attr:`privacy` has them."""
        before = self.released_bounds
        return {"mechanism": _MATRIX, **({} if before is None else {"released_bounds": before.facts()})}

    @property
    def chosen(self) -> tuple[str, ...]:
        """Choices that must not depend on the data."""
        return tuple(chosen_beside(self.released_bounds, super().chosen))

    @property
    def own_budget(self) -> GaussianBudget:
        """The budget without that of the bounds of the schema: that of the matrix and what refines it."""
        found, budget = self.released_bounds, self.budget
        if found is None:
            return budget
        if isinstance(budget, GDP):
            raise InvalidInput(f"the budget of a release with its bounds must not be of Gaussian DP, got {budget}")
        return found.rest_of(budget, joint=self.are_joint)

    @property
    def are_joint(self) -> bool:
        """Whether bounds of the schema are accounted for jointly with the matrix."""
        return are_joint(self.budget, _MATRIX)

    def guarantee(self) -> Guarantee:
        """Return the guarantee of all steps and seals together."""
        own, found = self.own_guarantee(), self.released_bounds
        if found is None or isinstance(self.budget, GDP):
            return own
        return found.before(own, self.budget, joint=self.are_joint)

    def own_guarantee(self) -> Guarantee:
        """Return the guarantee without the bounds of the schema."""
        return replace(super().guarantee(), budget=self.own_budget)

    @property
    def constants(self) -> dict[str, Any]:
        """The public numbers that the theorem is about."""
        bounds, k = self.target_bounds(), len(self.features)
        return {
            **super().constants,
            "middle": self.middle[:k].tolist(),
            "scale": self.scale[:k].tolist(),
            "target_bounds": bounds if self.further else bounds[0],
        }

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

    @property
    def charge(self) -> Budget:
        """Budget that a ledger counts."""
        return charge_of(self.budget)


def charge_of(budget: GaussianBudget) -> Budget:
    """Return what a ledger counts: of Gaussian DP the zCDP that it implies, rounded up."""
    return ZCDP(budget.to_zcdp().rho * (1.0 + 2.0**-50)) if isinstance(budget, GDP) else budget
