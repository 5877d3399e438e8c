"""``Meaning``: what a guarantee means for one person, as numbers and in sentences."""

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Protocol

import numpy as np
from scipy.special import expit

from dpci.accounting.guarantee import Guarantee
from dpci.base.tables import format_bound
from dpci.budgets import GDP, ApproxDP, GaussianBudget, PureDP, for_changes
from dpci.released.whole import Whole
from dpci.shown.document import Bullets, Paragraph, Section, Table

SMALL_DELTA = 1e-6
# Points of the profile up to the own epsilon, and again as many beyond.
_N_POINTS = 16
# A probability that a reader takes for an exception: one release in 20.
_SELDOM = 0.05


@dataclass(frozen=True)
class Meaning:
    """Bounds that hold for every attacker who knows all other records (docs/inference_formulas.md)."""

    epsilon: float
    """ε of the budget; for a budget without one, a round place of its profile to look at."""
    delta: float
    """The profile at ``epsilon``."""
    distance: float
    """A bound on the total variation distance of neighbours."""
    usual: float | None
    """Exponent of the factor by which odds change at most in 19 of 20 releases; None where none is known."""

    @property
    def best_guess(self) -> float:
        """The largest probability of a right guess between two equally likely records."""
        return 0.5 * (1.0 + self.distance)

    @property
    def odds_exponent(self) -> float:
        """The exponent of the largest factor by which odds change, except with probability :attr:`rare`."""
        return self.epsilon if self.delta == 0.0 else 2.0 * self.epsilon

    @property
    def shown_exponent(self) -> float:
        """The exponent of the factor for readers: of all releases under pure DP, otherwise of 19 in 20 if known."""
        return self.odds_exponent if self.usual is None else self.usual

    @property
    def rare(self) -> float:
        """The probability of a larger change of the odds; 0 under pure DP."""
        if self.delta == 0.0:
            return 0.0
        return _beyond(2.0 * self.epsilon, self.epsilon, self.delta)

    def posterior(self, prior: float) -> tuple[float, float]:
        """Return the range of a probability after the release, with :attr:`shown_exponent`."""
        logit = math.log(prior) - math.log1p(-prior)
        return float(expit(logit - self.shown_exponent)), float(expit(logit + self.shown_exponent))


def _beyond(exponent: float, epsilon: float, delta: float) -> float:
    """Return a bound on the probability that odds change by a factor of more than e^exponent, of exponent > epsilon."""
    # E (1 - e^(epsilon - loss))+ <= delta, and the expectation is at least (1 - e^(epsilon - t)) P(loss > t).
    # Odds fall as far with e^-t times the probability with which they rise under the other record.
    return min(1.0, (1.0 + math.exp(-exponent)) * delta / -math.expm1(epsilon - exponent))


def _usual(epsilons: list[float], deltas: list[float]) -> float | None:
    """Return the least exponent that the pairs of a profile show for 19 of 20 releases; None if they show none."""

    def chance_beyond(exponent: float) -> float:
        pairs = zip(epsilons, deltas, strict=True)
        return min((_beyond(exponent, epsilon, delta) for epsilon, delta in pairs if epsilon < exponent), default=1.0)

    low, high = 0.0, 2.0 * max(epsilons)
    if chance_beyond(high) > _SELDOM:
        return None
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if chance_beyond(middle) > _SELDOM else (low, middle)
    return high


def meaning_of(guarantee: Guarantee) -> Meaning:
    """Return what a guarantee means for one person."""
    epsilon = own_epsilon(guarantee.budget)
    points = [epsilon * i / _N_POINTS for i in range(2 * _N_POINTS + 1)]
    deltas = guarantee.delta(points).tolist()
    certain = isinstance(guarantee.budget, PureDP)
    usual = epsilon if certain else _usual(points, deltas)
    return Meaning(epsilon, deltas[_N_POINTS], _distance(points, deltas), usual)


def meaning_of_budget(budget: GaussianBudget) -> Meaning:
    """Return what a budget means for one person where no more is known of the guarantee."""
    if isinstance(budget, ApproxDP):
        pair = [budget.epsilon], [budget.delta]
        return Meaning(budget.epsilon, budget.delta, _distance(*pair), _usual(*pair))
    return meaning_of(Guarantee(budget, None, 0.0, budget.mu if isinstance(budget, GDP) else 0.0))


def own_epsilon(budget: GaussianBudget) -> float:
    """Return the epsilon of a budget, or a round place of its profile."""
    if isinstance(budget, PureDP | ApproxDP):
        return budget.epsilon
    if isinstance(budget, GDP):
        budget = budget.to_zcdp()
    # Bun and Steinke's conversion serves as a round place to look at; the delta there is the tight one.
    return budget.rho + 2.0 * math.sqrt(budget.rho * math.log(1.0 / SMALL_DELTA))


def _distance(epsilons: list[float], deltas: list[float]) -> float:
    """Return a bound on the total variation distance of neighbours, from pairs of the profile.

    (ε, δ)-DP in both directions implies ``1 - 2 (1 - delta) / (1 + e^epsilon)`` (Kairouz, Oh & Viswanath 2015).
    """
    pairs = zip(epsilons, deltas, strict=True)
    return min(1.0 - 2.0 * (1.0 - delta) * float(expit(-epsilon)) for epsilon, delta in pairs)


# Odds beyond this say no more to a reader.
_GREAT = 17.0
# Shares of the budget's own epsilon at which the guarantee is shown.
_SHARES = (0.25, 0.5, 1.0, 2.0)
_AMONG = ((100, "hundred"), (10**3, "thousand"), (10**6, "million"), (10**9, "billion"), (10**12, "trillion"))


class Protected(Protocol):
    """Facts of a record about the change of data that a release protects."""

    @property
    def neighbors(self) -> str:
        """The neighbouring relation."""

    @property
    def persons(self) -> object | None:
        """How much the rows of a person count; None where records are protected."""


def attacker_section(record: Protected, guarantee: Guarantee, whole: Whole | None = None) -> Section:
    """Return what someone can learn about one record or person from a release, or from the whole it is a part of."""
    unit = "record" if record.persons is None else "person"
    heading = f"What someone can learn about one {unit}"
    if whole is not None:
        together = Paragraph(f"This is what {whole} reveal together.")
        learns = _attack(whole.neighbors, unit, meaning_of_budget(whole.budget), whole.budget)
        return Section("attacker", heading, [together, learns], folded=True)
    meaning = meaning_of(guarantee)
    learns = _attack(record.neighbors, unit, meaning, guarantee.budget)
    # The curve of pure DP is 0 from its own ε on; deltas at less would be read as chances of disclosure.
    profile = [] if isinstance(guarantee.budget, PureDP) else [_profile(guarantee, meaning)]
    return Section("attacker", heading, [learns, *profile], folded=True)


def _profile(guarantee: Guarantee, meaning: Meaning) -> Table:
    points = [meaning.epsilon * share for share in _SHARES]
    # No profile exceeds the total variation distance.
    deltas = np.minimum(guarantee.delta(points), meaning.distance).tolist()
    # Upwards, epsilon too: with a greater epsilon or delta the guarantee holds all the more.
    rows = [
        [format_bound(eps, 4), power(eps), format_bound(delta, 3)] for eps, delta in zip(points, deltas, strict=True)
    ]
    caption = (
        "The guarantee as pairs: the release has (ε, δ)-differential privacy for each row of this table. All rows "
        "describe the same release, so a row with a greater δ adds no further risk"
    )
    return Table(["ε", "e^ε, rounded up", "δ"], rows, caption)


def _attack(neighbors: str, unit: str, meaning: Meaning, budget: GaussianBudget) -> Bullets:
    """Say what the guarantee means."""
    says = what_it_says(neighbors, unit, budget)
    group = "A person with m records has weaker protection: m records change together."
    if isinstance(budget, PureDP):
        group = "A person with m records has the weaker guarantee of m times the ε."
    population = (
        "Facts about the population are not hidden, because the model exists to show them. They may reveal something "
        "even about a person who is not in the data."
    )
    pair = implied(budget, meaning)
    found = [
        best_guess(neighbors, unit, meaning),
        None if pair is None else f"The budget {budget} implies {pair}.",
        odds(neighbors, unit, meaning),
        says,
        group if unit == "record" else None,
        population,
        "Other releases from the same records add to the budget spent here.",
    ]
    return Bullets([sentence for sentence in found if sentence is not None])


def best_guess(neighbors: str, unit: str, meaning: Meaning) -> str:
    """Return how well one can guess; ``unit`` is "record" or "person"."""
    versions = "versions of one record" if unit == "record" else "sets of rows of one person"
    doubt = (
        f"which of two equally likely {versions} is in the data"
        if neighbors == "replace_one"
        else f"whether a {unit} is in the data, which is as likely as not"
    )
    return (
        f"Someone who knows every other {unit} guesses {doubt}. The guess is right with probability at most "
        f"{percent_up(meaning.best_guess)}. Without the release it is 50%."
    )


def odds(neighbors: str, unit: str, meaning: Meaning) -> str:
    """Return how far the odds change of what one change of the data decides."""
    about = f"any statement about that {unit}" if neighbors == "replace_one" else f"that {unit} being in the data"
    return f"For the same attacker, the odds of {about} change {_change(meaning)}"


def what_it_says(neighbors: str, unit: str, budget: GaussianBudget) -> str | None:
    """Return how far the odds change of what a record says, where two changes of the data decide it; None elsewhere."""
    if neighbors == "replace_one":
        return None
    says = "what it says" if unit == "record" else "what the person's rows say"
    asks = f"Someone may know that the {unit} is in the data and ask {says}."
    two = f"Two versions of a {unit} differ by two changes: one is removed, and the other is added."
    of_two = for_changes(budget, 2)
    if of_two is None:
        return f"{asks} {two} The budget bounds nothing there."
    return f"{asks} {two} The odds of any statement about it change {_change(meaning_of_budget(of_two))}"


def implied(budget: GaussianBudget, meaning: Meaning) -> str | None:
    """Return the pair of epsilon and delta that a budget without an epsilon implies; None for others."""
    if isinstance(budget, PureDP | ApproxDP):
        return None
    exact = f"the exact δ at this ε is at most {format_bound(meaning.delta, 3)}"
    return f"(ε, δ) = ({format_bound(own_epsilon(budget), 4)}, {SMALL_DELTA:g}); {exact}"


def power(exponent: float) -> str:
    """Return e to the power of a number, rounded up."""
    return f"{float(format_bound(math.exp(exponent), 3)):,.12g}" if exponent < _GREAT else "more than 10⁷"


def percent_up(probability: float) -> str:
    """Return a probability as a percentage, rounded up: to one decimal, or to two digits below 1%."""
    percent = 100.0 * probability
    digits = 2 if percent < 10.0 else 3 if percent < 100.0 else 4  # of the three lengths before the point
    return f"{format_bound(percent, digits)}%"


def percent_down(probability: float) -> str:
    """Return a probability as a percentage, rounded down as :func:`percent_up` rounds it up."""
    percent = Decimal(repr(100.0 * probability))
    digits = 2 if percent < 10 else 3
    return f"{float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(percent)):.{digits}g}%"


def chance(probability: float) -> str:
    """Return a small probability in words, rounded up: 1.8e-06 is "1.8 in a million"."""
    for among, name in _AMONG:
        if probability * among >= 1.0:
            return f"{float(format_bound(probability * among, 2)):g} in a {name}"
    return format_bound(probability, 2)


def _factor(exponent: float) -> str:
    return power(exponent) if exponent < _GREAT else f"e^{format_bound(exponent, 4)}"


def _change(meaning: Meaning) -> str:
    if not meaning.rare:
        exactly = f" (e^{format_bound(meaning.epsilon, 4)}, rounded up)" * (meaning.epsilon < _GREAT)
        return f"by a factor of at most {_factor(meaning.epsilon)}{exactly}, in every release."
    if meaning.rare >= 1.0:
        return "by a factor that this budget does not bound."
    usual = (
        "" if meaning.usual is None else f"by a factor of at most {_factor(meaning.usual)} in 19 of 20 releases, and "
    )
    most = f"with probability at most {chance(meaning.rare)}"
    return f"{usual}by a factor of more than {_factor(meaning.odds_exponent)} (e^(2ε)) {most}."
