"""Changes with the budget along a utility curve: the noise scale, and the regularisation that Kifer et al. add."""

import math
from dataclasses import dataclass

from dpci import _core
from dpci.budgets import Budget, budget_from_parameters
from dpci.errors import RegularizationTooSmall
from dpci.model.settings import Settings

# Share of the coefficients with calibration="paper", where the caller names no split.
_PAPER_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class BudgetPath:
    """The specifications of a fit as the first number of its budget varies: epsilon, or rho under zCDP.

    Attributes
    ----------
    settings : Settings
        Keywords of the fit at the measuring point.
    n_samples, n_columns : int
        Numbers of records, rows or persons, and of columns.
    """

    settings: Settings
    n_samples: int
    n_columns: int

    @property
    def number(self) -> str:
        """Name of what varies."""
        return next(iter(self.settings.budget.parameters()))

    @property
    def at(self) -> float:
        """Its value at the measuring point."""
        return next(iter(self.settings.budget.parameters().values()))

    @property
    def divisor(self) -> float:
        """Number that divides noise and sums of losses: that of records, or the total of weights over their bound."""
        n, weights = self.settings.public_n(self.n_samples), self.settings.weights
        return n if weights is None else weights.divisor(n)

    @property
    def adds_regularisation(self) -> bool:
        """Whether l2_strength grows as the budget shrinks: Kifer et al.'s mechanism."""
        settings = self.settings
        return (
            settings.mechanism.calibration == "paper"
            and settings.budget.notion == "approx"
            and settings.mechanism.name == "objective"
        )

    @property
    def row_norm(self) -> float:
        """Bound on the norm of a row with its intercept."""
        return math.hypot(self.settings.row_norm, self.settings.intercept or 0.0)

    def budget(self, value: float) -> Budget:
        """Return the budget with another first number."""
        budget = self.settings.budget
        return budget_from_parameters(budget.notion, {**budget.parameters(), self.number: value})

    def l2_strength(self, value: float) -> float:
        """Return λ, with ``2tR²/(nε)`` added for Kifer et al. (Theorem 1 of Li et al.), ε the coefficients' share."""
        base = self.settings.strength
        if not self.adds_regularisation:
            return base
        square = self.settings.core_loss.curvature_bound * self.row_norm**2
        return base + 2.0 * square / (self.divisor * self._share * _core.unsealed(value))

    def l2_slope(self, value: float) -> float:
        """Return the derivative of :meth:`l2_strength`."""
        return (self.settings.strength - self.l2_strength(value)) / value

    def spec(self, value: float) -> _core.Spec:
        """Return the specification that :func:`dpci.fit` would use at that budget.

        Raises
        ------
        RegularizationTooSmall
            Where objective perturbation has no noise to offer at so small a budget.
        """
        return self.settings.spec(
            self.n_samples, self.n_columns, budget=self.budget(value), l2_strength=self.l2_strength(value)
        )

    def least_offered(self, least: float, greatest: float, *, loudest: float = math.inf) -> float:
        """Return ``least``, or the next budget up to ``greatest`` with noise to offer, of a scale up to ``loudest``.

        Raises
        ------
        RegularizationTooSmall
            Where there is none at ``greatest`` either.
        """
        self.spec(greatest)
        if self._offers(least, loudest):
            return least
        refused, offered = math.log(least), math.log(greatest)
        for _ in range(40):
            middle = (refused + offered) / 2.0
            if self._offers(math.exp(middle), loudest):
                offered = middle
            else:
                refused = middle
        return min(math.exp(offered), greatest)

    def _offers(self, value: float, loudest: float) -> bool:
        try:
            return self.spec(value).noise_scale <= loudest
        except RegularizationTooSmall:
            return False

    @property
    def _share(self) -> float:
        mechanism = self.settings.mechanism
        if self.settings.moments == "none":
            return 1.0
        return _PAPER_SHARE if mechanism.split is None else mechanism.split[0]
