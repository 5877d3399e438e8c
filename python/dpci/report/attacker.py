"""Statements of a release to someone who knows all other records, in sentences for pages and for approvers."""

import math
from decimal import ROUND_FLOOR, Context, Decimal

from dpci.base.tables import format_bound
from dpci.budgets import ApproxDP, GaussianBudget, PureDP, for_changes
from dpci.report.meaning import SMALL_DELTA, Meaning, meaning_of_budget, own_epsilon

# Odds beyond this say no more to a reader.
_GREAT = 17.0
_AMONG = ((100, "hundred"), (10**3, "thousand"), (10**6, "million"), (10**9, "billion"), (10**12, "trillion"))


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


def implied(budget: GaussianBudget) -> str | None:
    """Return the pair of epsilon and delta that a budget without an epsilon implies; None for others."""
    if isinstance(budget, PureDP | ApproxDP):
        return None
    return f"(ε, δ) = ({format_bound(own_epsilon(budget), 4)}, {SMALL_DELTA:g})"


def factor(exponent: float) -> str:
    """Return a factor of odds, as a number that is rounded up and as a power of e."""
    shown = f"e^{format_bound(exponent, 4)}"
    return shown if exponent >= _GREAT else f"{power(exponent)} ({shown}, rounded up)"


def power(exponent: float) -> str:
    """Return e to the power of a number, rounded up."""
    return f"{float(format_bound(math.exp(exponent), 3)):g}" if exponent < _GREAT else "more than 10⁷"


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


def _change(meaning: Meaning) -> str:
    if not meaning.rare:
        return f"by at most a factor of {factor(meaning.odds_exponent)}, with certainty."
    most = f"with probability at most {chance(meaning.rare)}"
    return f"by more than a factor of {factor(meaning.odds_exponent)} {most}."
