"""What the seal leaves of a budget, exactly as the core splits it: expectations of costs, rates and scales start from that."""

import math

from dpci.budgets import budget_from_parameters

SHARE = 1e-3


def left_of(whole):
    """One parameter of a budget without the share of the seal."""
    return math.nextafter(whole - whole * SHARE, 0.0)


def unsealed(budget):
    """The budget that is left for the mechanism."""
    return budget_from_parameters(budget.notion, {name: left_of(v) for name, v in budget.parameters().items()})


def total(seals):
    """What seals spent together, by parameter of the budget; ``seals`` as objects or as mappings."""
    costs = [seal["cost"] if isinstance(seal, dict) else seal.cost for seal in seals]
    return {name: math.fsum(cost[name] for cost in costs) for name in costs[0]} if costs else {}
