"""What a release tells someone who knows all other records, in sentences for pages and for approvers."""

import math

from dpci.base.tables import format_bound
from dpci.budgets import GaussianBudget, for_changes
from dpci.report.meaning import Meaning, meaning_of_budget

# Odds beyond this say no more to a reader.
_GREAT = 17.0


def best_guess(neighbors: str, unit: str, meaning: Meaning) -> str:
    """Return how well one can guess; ``unit`` is "record" or "person"."""
    doubt = (
        f"which of two equally likely versions of one {unit} is in the data"
        if neighbors == "replace_one"
        else f"whether a {unit} is in the data, which is as likely as not"
    )
    return (
        f"Someone who knows every other {unit} guesses {doubt}. The guess is right with probability at most "
        f"{format_bound(100.0 * meaning.best_guess, 4)}%. Without the release it is 50%."
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


def factor(exponent: float) -> str:
    """Return a factor of odds, as a power of e and as a number."""
    shown = f"e^{format_bound(exponent, 4)}"
    return shown if exponent >= _GREAT else f"{shown} = {power(exponent)}"


def power(exponent: float) -> str:
    """Return e to the power of a number, rounded up."""
    return format_bound(math.exp(exponent), 4) if exponent < _GREAT else "more than 10⁷"


def _change(meaning: Meaning) -> str:
    if not meaning.rare:
        return f"by at most a factor of {factor(meaning.odds_exponent)}, with certainty."
    rare = format_bound(meaning.rare, 3)
    return f"by more than a factor of {factor(meaning.odds_exponent)} with probability at most {rare}."
