"""Whether the steps and seals of a saved release spend the budget that it states."""

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import ndtri_exp

from dpci.accounting.guarantee import Guarantee
from dpci.accounting.seals import Seal, seal_cost
from dpci.accounting.steps import Step
from dpci.budgets import GDP, ZCDP, ApproxDP, GaussianBudget, PureDP
from dpci.errors import InvalidInput

# Of the budget: what rounding may do to a sum of costs.
_ROUNDING = 1e-9
# Of the budget: what the decimals of a ledger may leave, and a step that is not calibrated to the last digit.
_UNSPENT = 1e-6


def spending_contradictions(
    budget: GaussianBudget,
    steps: tuple[Step, ...],
    seals: tuple[Seal, ...],
    guarantee: Callable[[], Guarantee],
) -> Iterator[tuple[bool, str, str]]:
    """Yield, for each rule of the costs, whether it is broken, the rule and the value; stop at the first broken one.

    Pure and zero-concentrated DP add up. Gaussian DP adds the squares of mu, with a pure epsilon of a seal at the mu of
    randomised response (Dong, Roth & Su 2022). Approximate DP composes steps and seals in the profile of ``guarantee``,
    which is called for it alone.
    """
    unit = ("epsilon",) if isinstance(budget, GDP) else tuple(budget.parameters())
    for seal in seals:
        other = tuple(seal.cost) != unit
        yield other, f"the cost of a seal must be in {' and '.join(unit)}, as the budget", f"cost={seal.cost}"
    # Whoever stops at the first contradiction never gets here with a cost in another unit.
    spent = seal_cost(seals, steps)
    together = sum(step.cost for step in steps)
    if isinstance(budget, ApproxDP):
        for name, whole in budget.parameters().items():
            yield _beyond(name, spent[name], whole)
        delta = float(guarantee().delta(budget.epsilon))
        rule = f"the steps and seals must spend at most the budget delta={budget.delta:g} at epsilon={budget.epsilon:g}"
        yield not delta <= budget.delta * (1.0 + _ROUNDING), rule, f"delta={delta:g}"
        return
    if isinstance(budget, GDP):
        of_seals = sum((2.0 * float(ndtri_exp(-np.logaddexp(0.0, seal.cost["epsilon"])))) ** 2 for seal in seals)
        yield _beyond("mu", math.sqrt(together + of_seals), budget.mu)
        return
    for name, whole in budget.parameters().items():
        found = together + spent[name]
        yield _beyond(name, found, whole)
        rule = f"the steps and seals must spend the whole budget {name}={whole:g}"
        yield not found >= whole * (1.0 - _UNSPENT), rule, f"{found:g}"


def check_spending(
    budget: GaussianBudget,
    steps: tuple[Step, ...],
    seals: tuple[Seal, ...],
    guarantee: Callable[[], Guarantee],
) -> None:
    """Refuse steps of additive noise that cost something else than their noise, and what exceeds the budget.

    Raises
    ------
    InvalidInput
        For the first contradiction.
    """
    for step in steps:
        ratio = step.sensitivity / step.scale
        cost = ratio if isinstance(budget, PureDP) else ratio**2 / (2.0 if isinstance(budget, ZCDP) else 1.0)
        if not math.isclose(step.cost, cost, rel_tol=_ROUNDING):
            rule = f"the cost of the step {step.step!r} must be that of its noise, {cost:g}"
            raise InvalidInput(f"{rule}, got {step.cost:g}")
    for broken, rule, value in spending_contradictions(budget, steps, seals, guarantee):
        if broken:
            raise InvalidInput(f"{rule}, got {value}")


def _beyond(name: str, spent: float, whole: float) -> tuple[bool, str, str]:
    rule = f"the steps and seals must spend at most the budget {name}={whole:g}"
    return not spent <= whole * (1.0 + _ROUNDING), rule, f"{spent:g}"
