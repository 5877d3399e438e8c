"""Whether public numbers leave a regression any chance: how much its regressors can vary, against the noise.

docs/proofs/linear_regression.md has the bound and its proof.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.budgets import ApproxDP, GaussianBudget
from dpci.errors import InvalidInput
from dpci.regression.choices.matrix import MatrixChoices
from dpci.regression.choices.model import PRIVATE, Model, Place, combinations
from dpci.rows import Ball

_F64 = NDArray[np.float64]

# Coordinates are among the combinations of the regressors where rounding alone says that they are not.
_WITHIN = 1e-9
# Budgets are searched up to this many times the one that is refused, and stated with three digits.
_GREATEST = 1e12
_HALVINGS = 60


@dataclass(frozen=True)
class Case:
    """The public numbers on which a release is judged before it is paid."""

    choices: MatrixChoices
    columns: tuple[str, ...]
    n_samples: int
    budget: GaussianBudget
    """Budget of the payment."""

    @cached_property
    def spec(self) -> _core.MomentMatrixSpec:
        """The calibrated specification."""
        return self.choices.spec(self.n_samples, len(self.columns), self.budget, self.columns)

    @cached_property
    def place(self) -> Place:
        """Where the columns will be."""
        middle, scale = self.choices.place(len(self.columns))
        return Place(
            columns=self.columns,
            target=self.choices.all_names(self.columns, len(self.columns))[1],
            middle=middle,
            scale=scale / self.spec.weights,
            constant=self.spec.intercept,
            target_middle=float(self.choices.targets.middle[-1]),
            target_weight=self.spec.target_weight,
        )

    @property
    def n(self) -> str:
        """The public number of records, by the name that the caller gave it, and what their weights add up to."""
        given = f"{self._n_name}={self.choices.public_n(self.n_samples)}"
        weights = self.choices.weights
        return given if weights is None else f"{given} with weights {weights}"

    @property
    def _n_name(self) -> str:
        return "n" if self.choices.n_public is None else "n_public"

    def _too_few(self, n_coefficients: int, *, planned: bool) -> str:
        weights = self.choices.weights
        if weights is not None and weights.total is not None:
            return (
                "the total over the bound of weights must be above the number of coefficients, got "
                f"{weights.total:g} / {weights.bound:g} and {n_coefficients} coefficients"
            )
        records = "records" if self.choices.unit is None else "persons"
        private = "" if planned else " (l2_strength='private' does not)"
        got = f"{self.n} and {n_coefficients} coefficients{private}"
        return f"a regression needs more {records} than coefficients, got {got}"

    @property
    def mass(self) -> float:
        """The most that all records together can count, as a share of what their sums are divided by."""
        if self.choices.weights is None:
            return 1.0
        return max(1.0, self.choices.public_n(self.n_samples) / self.choices.divisor(self.n_samples))

    def greatest(self, model: Model) -> float:
        """Return a bound on the smallest eigenvalue of the second moments of orthonormal regressors, without noise.

        With the ridge of the model. No table within the public bounds has a larger one. Regressors are of X.
        """
        mass = self.mass
        rows = combinations(self.place, model)[0]
        strength = 0.0 if model.l2_strength == PRIVATE else 0.5 * model.l2_strength
        q, r = np.linalg.qr(rows.T)
        half = q @ np.linalg.inv(r).T
        # The ridge as a form in the coordinates of a record, which are (row, constant, target).
        ridge = strength * half @ half.T if strength else np.zeros((len(q), len(q)))
        within = np.einsum("ij,ij->i", q, q) > 1.0 - _WITHIN
        hit = np.einsum("ij,ij->i", q, q) > _WITHIN
        k, constant = len(self.columns), self.spec.intercept
        squares = _squares(self.choices, k)
        # Of the form of a direction on rows of length 1.
        order = None if isinstance(self.choices.core_domain(k), Ball) else np.inf
        # The mean of all eigenvalues: at most the squared length of a record in the span of the regressors.
        whole = sum(bound for bound, members in squares if hit[members].any()) + constant**2 * hit[k]
        found = [(mass * whole + np.trace(ridge)) / len(rows)]
        if hit[k]:
            # The direction that is next to the constant: the constant itself where there is an intercept.
            direction = q @ q[k] / np.linalg.norm(q[k])
            reach = sum(math.sqrt(bound) * np.linalg.norm(direction[members], order) for bound, members in squares)
            found.append(mass * (reach + constant * abs(direction[k])) ** 2 + direction @ ridge @ direction)
        schema = self.choices.schema
        one_sided = np.zeros(k, dtype=bool) if schema is None else ~schema.both_signs
        for bound, members in squares:
            used = [j for j in members if within[j]]
            if not used:
                continue
            # The mean over these coordinates alone.
            found.append((mass * bound + ridge[used, used].sum()) / len(used))
            if within[k] and len(used) > 1 and one_sided[used].all():
                found.append(_beside_constant(used, k, math.sqrt(mass * bound), math.sqrt(mass) * constant, ridge))
        return float(min(found))

    def needed(self, n_regressors: int) -> float:
        """Return what so many regressors must vary more than."""
        return _core.clear_of_noise(self.spec.noise_std_dev, n_regressors=n_regressors)

    def check_possible(self, model: Model) -> None:
        """Refuse a regression that no table within the public bounds could lift above the noise."""
        if model.l2_strength == PRIVATE:
            return
        k, is_planned = len(model.names), model.covariance == "robust"
        if self.choices.divisor(self.n_samples) <= k and model.l2_strength == 0.0:
            raise InvalidInput(self._too_few(k, planned=is_planned))
        bound, needed = self.greatest(model), self.needed(k)
        if bound > needed:
            return
        raise InvalidInput(
            "the regressors must be able to vary more than the noise in the matrix: within their bounds they vary by "
            f"at most {bound:.3g} in the weakest direction, but {k} coefficients need more than {needed:.3g}, "
            f"got {self.n} and {self.choices.budget} ({self.remedies(bound, k)}, "
            + ("or leave out columns)" if is_planned else "leave out columns, or use l2_strength='private')")
        )

    def hopeless(self) -> str | None:
        """Return why no regression with an intercept can exceed the noise, not even on one column."""
        bound, needed = self.mass * self.spec.intercept**2, self.needed(2)
        if bound > needed:
            return None
        # With persons and weights every regression must be planned, which a private ridge cannot be.
        others = "; regressions with l2_strength='private' follow from this matrix"
        private = "" if self.choices.needs_robust else others
        return (
            "no regression with an intercept and without a ridge can exceed the noise in the matrix: the constant "
            f"varies by {bound:.3g}, but with one column more than {needed:.3g} is needed, got {self.n} and "
            f"{self.choices.budget} ({self.remedies(bound, 2)}{private})"
        )

    def remedies(self, bound: float, n_regressors: int) -> str:
        """Return the number of records, or the budget, with which a variation of this bound exceeds the noise."""
        count, spent = self.least_n(bound, n_regressors), self.least_budget(bound, n_regressors)
        parts = [] if count is None else [f"{self._n_name}={count}"]
        parts += [] if spent is None else [str(spent)]
        return f"give at least {' or '.join(parts)}" if parts else "no budget suffices"

    def least_n(self, bound: float, n_regressors: int) -> int | None:
        """Return the smallest number of records, from this one, at which what varies by this bound is clear.

        None where no number suffices, and where it does not matter because weights have a public total.
        """
        if self.choices.weights is not None and self.choices.weights.total is not None:
            return None

        def clear(count: int) -> bool:
            choices = self.choices if self.choices.n_public is None else replace(self.choices, n_public=count)
            return bound > replace(self, choices=choices, n_samples=count).needed(n_regressors)

        low, high = 0, self.choices.public_n(self.n_samples)
        greatest = high * _GREATEST
        while not clear(high):
            low, high = high, 2 * high
            if high > greatest:
                return None
        while low and high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if clear(middle) else (middle, high)
        return high

    def least_budget(self, bound: float, n_regressors: int, *, least: float = 1.0) -> GaussianBudget | None:
        """Return the smallest budget of this delta, from ``least`` times this one, at which it is clear."""

        def clear(factor: float) -> bool:
            try:
                budget = scaled(self.choices.budget, factor)
                found = replace(self, choices=replace(self.choices, budget=budget), budget=budget).needed(n_regressors)
            except InvalidInput:  # above the greatest budget that there is
                return False
            return bound > found

        low, high = 0.0, least
        while not clear(high):
            low, high = high, 2.0 * high
            if high > _GREATEST:
                return None
        if not low:
            return scaled(self.choices.budget, least)
        for _ in range(_HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if clear(middle) else (middle, high)
        return scaled(self.choices.budget, high, digits=3)


def scaled(budget: GaussianBudget, factor: float, *, digits: int | None = None) -> GaussianBudget:
    """Return a budget times a factor, of the same delta; rounded up to so many digits."""
    if isinstance(budget, ApproxDP):
        return ApproxDP(_rounded_up(budget.epsilon * factor, digits), budget.delta)
    (value,) = budget.parameters().values()
    return type(budget)(_rounded_up(value * factor, digits))


def _squares(choices: MatrixChoices, n_columns: int) -> list[tuple[float, list[int]]]:
    """Return the squared bound of each block of columns, as the core sees them, and its columns."""
    domain = choices.core_domain(n_columns)
    if isinstance(domain, Ball):
        return [(domain.norm**2, list(range(n_columns)))]
    members = domain.members
    found: list[tuple[float, list[int]]] = [(bound**2, []) for bound in domain.block_bounds]
    for column, block in enumerate(members):
        found[block][1].append(column)
    return found


def _beside_constant(used: list[int], k: int, bound: float, constant: float, ridge: _F64) -> float:
    """Return a bound from one direction: the sum T of a group's columns, from 0 to the bound, against the constant.

    (cos·T/√m - sin·s)² is greatest at one end: the best angle is that at which both ends are alike.
    """
    size = len(used)
    tangent = bound / (2.0 * constant * math.sqrt(size))
    direction = np.zeros(len(ridge))
    direction[used], direction[k] = 1.0 / math.sqrt(size), -tangent
    direction /= math.hypot(1.0, tangent)
    return float(direction[k] ** 2 * constant**2 + direction @ ridge @ direction)


def _rounded_up(value: float, digits: int | None) -> float:
    if digits is None:
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.{digits}g}")
