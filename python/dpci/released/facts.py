"""The facts of a released model: what was released, what is public about it, and what the guarantee rests on."""

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.guarantee import GUARANTEE_FACTS, Guarantee, guarantee_of
from dpci.accounting.seals import seal_cost, seal_facts
from dpci.budgets import Budget, budget_from_parameters
from dpci.data.labels import CLASSES_READ_OFF, Classes
from dpci.released.model import LinearModel
from dpci.released.record import FitRecord

# Steps add up to the budget except for rounding.
_ROUNDING = 1e-9


class Released(LinearModel):
    """A linear model with the facts of its release; k is the number of parameters."""

    __slots__ = ()

    _record: FitRecord

    @property
    def _facts(self) -> FitRecord:
        return self._record

    # What was released.

    @property
    def hessian(self) -> NDArray[np.float64] | None:
        """Released and projected Hessian of the mean objective, shape (k, k); None without moments."""
        return self._record.hessian

    @property
    def gradient_cov(self) -> NDArray[np.float64] | None:
        """Released and projected covariance of the gradient of one record, shape (k, k); None without moments.

        Under add/remove its second moment over ``n_samples``, from which no mean is subtracted.
        """
        return self._record.gradient_cov

    # What is public about it.

    @property
    def budget(self) -> Budget:
        """The budget that was asked for."""
        return self._record.total_budget()

    @property
    def spent(self) -> Budget:
        """What the steps spent together, in the notion of the budget; never more than the budget."""
        record = self._record
        total = self.budget
        if record.notion == "approx":
            return total
        name, whole = next(iter(record.budget.items()))
        cost = sum(step.cost for step in record.steps) + seal_cost(record.seals, record.steps).get(name, 0.0)
        return total if cost >= whole * (1 - _ROUNDING) else budget_from_parameters(record.notion, {name: cost})

    @property
    def n_samples(self) -> int:
        """The public number of samples: ``n_public`` under add/remove."""
        return self._record.n_samples

    @property
    def l2_strength(self) -> float:
        """The regularisation λ, which is part of the definition of the target."""
        return self._record.l2_strength

    @property
    def loss(self) -> dict[str, Any]:
        """Name, parameter and public bounds of the loss."""
        return deepcopy(self._record.loss)

    @property
    def mechanism(self) -> str:
        """Where the noise enters: "objective" or "output"."""
        return self._record.mechanism

    @property
    def classes(self) -> Classes | None:
        """(negative, positive) in the caller's labels; None for real targets."""
        return self._record.classes

    @property
    def private(self) -> bool:
        """Whether the noise came from the operating system; False for seeded fits."""
        return self._record.private

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, spent by step, constants, conditions, version."""
        record = self._record
        return {
            "private": record.private,
            "classes_inferred": record.classes_inferred,
            "relation": record.neighbors,
            "notion": record.notion,
            "budget": dict(record.budget),
            "spent": self.spent.parameters(),
            "cost_unit": record.cost_unit,
            "steps": [step.to_dict() for step in record.steps],
            "seal": seal_facts(record.seals),
            "mechanism": record.mechanism,
            "variant": record.variant,
            "project": record.project,
            "calibration": record.calibration,
            "moments": record.moments,
            "projection": record.projection,
            "constants": {
                "n_public": record.n_samples,
                "l2_strength": record.l2_strength,
                "radius": record.radius,
                "slope_bound": record.slope_bound,
                "curvature_bound": record.curvature_bound,
                "row_norm": record.row_norm,
                "intercept_scale": record.intercept_scale,
                "on_violation": record.on_violation,
                "loss": deepcopy(record.loss),
            },
            "conditions": conditions(record),
            "version": record.version,
        }

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) profile and the Renyi curve of all steps together; void for a seeded fit."""
        record = self._record
        facts = {name: getattr(record, name) for name in GUARANTEE_FACTS}
        return guarantee_of(self.budget, record.steps, record.seals, n_samples=record.n_samples, **facts)


def conditions(record: FitRecord) -> list[str]:
    """Return what the guarantee rests on besides the theorem."""
    rests_on = []
    if not record.private:
        rests_on.append("none: the noise is seeded, so whoever knows the seed can subtract it")
    if record.loss["name"] == "custom":
        rests_on.append("the declared bounds of the custom loss hold for every predictor and target")
    if record.classes_inferred:
        rests_on.append(CLASSES_READ_OFF)
    if record.on_violation == "error":
        rests_on.append("every possible record obeys the public bounds; errors are seen by the holder of the data only")
    if record.private:
        rests_on.append("the noise is as good as random: ChaCha20 seeded by the operating system")
    rests_on.append("elementary functions err by no more than docs/noise.md assumes")
    return rests_on
