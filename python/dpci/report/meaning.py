"""Meaning of a guarantee for one person: the best guess of an attacker, and how far odds can change."""

import math
from dataclasses import dataclass

from scipy.special import expit

from dpci.accounting.guarantee import Guarantee
from dpci.budgets import GDP, ApproxDP, GaussianBudget, PureDP

SMALL_DELTA = 1e-6
# Points of the profile up to the own epsilon, and again as many beyond.
_N_POINTS = 16


@dataclass(frozen=True)
class Meaning:
    """Bounds that hold for every attacker who knows all other records (docs/inference_formulas.md)."""

    epsilon: float
    """ε of the budget; for a budget without one, a round place of its profile to look at."""
    delta: float
    """The profile at ``epsilon``."""
    distance: float
    """A bound on the total variation distance of neighbours."""

    @property
    def best_guess(self) -> float:
        """The largest probability of a right guess between two equally likely records."""
        return 0.5 * (1.0 + self.distance)

    @property
    def odds_exponent(self) -> float:
        """The exponent of the largest factor by which odds change, except with probability :attr:`rare`."""
        return self.epsilon if self.delta == 0.0 else 2.0 * self.epsilon

    @property
    def rare(self) -> float:
        """The probability of a larger change of the odds; 0 under pure DP."""
        if self.delta == 0.0:
            return 0.0
        # E (1 - e^(epsilon - loss))+ <= delta, and the expectation is at least (1 - e^-epsilon) P(loss > 2 epsilon).
        # Odds fall as far with e^(-2 epsilon) times the probability with which they rise under the other record.
        return min(1.0, (1.0 + math.exp(-2.0 * self.epsilon)) * self.delta / -math.expm1(-self.epsilon))

    def posterior(self, prior: float) -> tuple[float, float]:
        """Return the range of a probability after the release, except with probability :attr:`rare`."""
        logit = math.log(prior) - math.log1p(-prior)
        return float(expit(logit - self.odds_exponent)), float(expit(logit + self.odds_exponent))


def meaning_of(guarantee: Guarantee) -> Meaning:
    """Return what a guarantee means for one person."""
    epsilon = own_epsilon(guarantee.budget)
    return Meaning(epsilon, float(guarantee.delta([epsilon])[0]), _distance(guarantee, epsilon))


def meaning_of_budget(budget: GaussianBudget) -> Meaning:
    """Return what a budget means for one person where no more is known of the guarantee."""
    if isinstance(budget, ApproxDP):
        return Meaning(budget.epsilon, budget.delta, 1.0 - 2.0 * (1.0 - budget.delta) * float(expit(-budget.epsilon)))
    return meaning_of(Guarantee(budget, None, 0.0, budget.mu if isinstance(budget, GDP) else 0.0))


def own_epsilon(budget: GaussianBudget) -> float:
    """Return the epsilon of a budget, or a round place of its profile."""
    if isinstance(budget, PureDP | ApproxDP):
        return budget.epsilon
    if isinstance(budget, GDP):
        budget = budget.to_zcdp()
    # Bun and Steinke's conversion serves as a round place to look at; the delta there is the tight one.
    return budget.rho + 2.0 * math.sqrt(budget.rho * math.log(1.0 / SMALL_DELTA))


def _distance(guarantee: Guarantee, whole: float) -> float:
    """Return a bound on the total variation distance of neighbours, from every point of the profile.

    (ε, δ)-DP in both directions implies ``1 - 2 (1 - delta) / (1 + e^epsilon)`` (Kairouz, Oh & Viswanath 2015).
    """
    points = [whole * i / _N_POINTS for i in range(2 * _N_POINTS + 1)]
    bounds = [
        1.0 - 2.0 * (1.0 - delta) * expit(-eps) for eps, delta in zip(points, guarantee.delta(points), strict=True)
    ]
    return float(min(bounds))
