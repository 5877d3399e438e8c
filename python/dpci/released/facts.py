"""The facts of a private fit: what was released, what is public about it, and what the guarantee rests on."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.guarantee import GUARANTEE_FACTS, Guarantee, guarantee_of
from dpci.accounting.seals import seal_cost, seal_facts
from dpci.budgets import Budget, budget_from_parameters
from dpci.data.labels import CLASSES_READ_OFF
from dpci.released.fit_record import FitRecord
from dpci.released.model import Released
from dpci.rows import Ball, Blocks

# A regression from a moment matrix has its formula, loss and λ after the release, at no cost.
CHOSEN_OF_MATRIX = ("budget", "bounds", "categories", "columns")
CHOSEN = (*CHOSEN_OF_MATRIX, "classes", "formula", "loss", "mechanism", "λ", "radius", "split")
"""Choices that must not depend on the data, as pages and reports list it; a source is asked for each."""
CHOSEN_WITHOUT_DATA = "bounds, lists of categories, the formula, λ and all other settings were chosen without the data"
OBEYS_BOUNDS = "every possible record obeys the public bounds"
# Steps add up to the budget except for rounding.
_ROUNDING = 1e-9


class FitFacts(Released[FitRecord]):
    """A linear model with the facts of its release; k is the number of parameters."""

    __slots__ = ()

    # What was released.

    @property
    def hessian(self) -> NDArray[np.float64] | None:
        """Released Hessian of the mean objective, shape (k, k); None without moments.

        As released, and perhaps indefinite, unless :attr:`privacy` says that it was projected.
        """
        return self._record.hessian

    @property
    def gradient_cov(self) -> NDArray[np.float64] | None:
        """Released covariance of the gradient of one record, shape (k, k); None without moments.

        As released or projected, like the Hessian.
        Under add/remove its second moment over ``n_samples``, from which no mean is subtracted.
        """
        return self._record.gradient_cov

    # What is public about it.

    @property
    def budget(self) -> Budget:
        """The budget that was asked for."""
        return self._record.budget

    @property
    def spent(self) -> Budget:
        """Budget that the steps spent together, in the notion of the budget; never more than the budget."""
        record = self._record
        total = self.budget
        if record.budget.notion == "approx":
            return total
        name, whole = next(iter(record.budget.parameters().items()))
        cost = sum(step.cost for step in record.steps) + seal_cost(record.seals, record.steps).get(name, 0.0)
        return total if cost >= whole * (1 - _ROUNDING) else budget_from_parameters(record.budget.notion, {name: cost})

    @property
    def rows(self) -> Ball | Blocks:
        """Public domain of the rows, without the intercept."""
        return self._record.rows

    @property
    def mechanism(self) -> str:
        """Where the noise enters: "objective" or "output"."""
        return self._record.mechanism

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, spent by step, constants, conditions, version."""
        record = self._record
        return {
            "private": record.private,
            "classes_inferred": record.classes_inferred,
            "relation": record.neighbors,
            "unit": "row" if record.persons is None else "person",
            "notion": record.budget.notion,
            "budget": record.budget.parameters(),
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
            "constants": constants(record),
            "conditions": conditions(record),
            "version": record.version,
        }

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) profile and the Renyi curve of all steps together; void for a seeded fit."""
        return guarantee_of_record(self._record)


def guarantee_of_record(record: FitRecord) -> Guarantee:
    """Return the guarantee of all steps and seals of a fit together."""
    facts = {name: getattr(record, name) for name in GUARANTEE_FACTS}
    n_params, budget = len(record.names), record.budget
    return guarantee_of(budget, record.steps, record.seals, divisor=record.divisor, n_params=n_params, **facts)


def constants(record: FitRecord) -> dict[str, Any]:
    """Return the public numbers that the theorem is about."""
    return {
        "n_public": record.n_samples,
        "persons": None if record.persons is None else record.persons.to_dict(),
        "weights": None if record.weights is None else record.weights.to_dict(),
        "l2_strength": record.l2_strength,
        "radius": record.radius,
        "slope_bound": record.slope_bound,
        "curvature_bound": record.curvature_bound,
        "row_norm": record.row_norm,
        "blocks": None if record.blocks is None else record.blocks.to_dict(),
        "intercept_scale": record.intercept_scale,
        "on_violation": record.on_violation,
        "loss": deepcopy(record.loss),
    }


def conditions(record: FitRecord) -> list[str]:
    """Return what the guarantee rests on besides the theorem."""
    special = []
    if record.loss["name"] == "custom":
        special.append("the declared bounds of the custom loss hold for every predictor and target")
    if record.classes_inferred:
        special.append(CLASSES_READ_OFF)
    bounds = str(record.rows) if record.on_violation == "error" else None
    return conditions_of_release(private=record.private, bounds=bounds, special=special)


def conditions_of_release(*, private: bool, bounds: str | None, special: Sequence[str] = ()) -> list[str]:
    """Return what the guarantee of any release rests on; ``bounds`` are those that records have to obey, or None."""
    rests_on = [] if private else ["none: the noise is seeded, so whoever knows the seed can subtract it"]
    rests_on += special
    if bounds is not None:
        rests_on.append(f"{OBEYS_BOUNDS} ({bounds}); only the holder of the data sees errors")
    if private:
        rests_on.append(CHOSEN_WITHOUT_DATA)
        rests_on.append("the noise is indistinguishable from random: ChaCha20 seeded by the operating system")
    rests_on.append(
        'logarithms and other elementary functions err by at most two units in the last place (the page "Noise")'
    )
    return rests_on
