"""Rest of a budget beside the seal, exactly as the core splits it: tests compute costs, rates and scales from that."""

import functools
import math

from dpci import _core
from dpci.budgets import budget_from_parameters

SHARE = 1e-3


def left_of(whole):
    """One parameter of a budget without the share of the seal."""
    return math.nextafter(whole - whole * SHARE, 0.0)


@functools.cache
def unsealed(budget):
    """The budget that is left for the mechanism."""
    return budget_from_parameters(budget.notion, {name: left_of(v) for name, v in budget.parameters().items()})


def std_dev(result):
    """Standard deviation of the seal's noise in a parameter."""
    (seal,) = [seal for seal in result.privacy["seal"]["releases"] if seal["release"] == "params"]
    return seal["std_dev"]


def ratios(seals):
    """Sensitivity over noise of Gaussian releases whose Renyi curves are those of seals under approximate DP."""
    return [math.sqrt(2.0 * _core.approx_to_zcdp(**seal.cost, calibration="tight")) for seal in seals]


def total(seals):
    """Total spend of seals, by parameter of the budget; ``seals`` as objects or as mappings."""
    costs = [seal["cost"] if isinstance(seal, dict) else seal.cost for seal in seals]
    return {name: math.fsum(cost[name] for cost in costs) for name in costs[0]} if costs else {}
