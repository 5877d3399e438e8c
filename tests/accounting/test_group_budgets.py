"""Guarantees of a budget for one change, for several of them: against the definitions, step by step."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

import dpci
from dpci.base.codec import from_fields, plain_fields
from dpci.budgets import for_changes
from dpci.released.whole import Whole, cost_of_strata

COUNTS = (1, 2, 3, 10)


@pytest.mark.parametrize("count", COUNTS)
def test_epsilons_and_mus_add_up_and_rhos_grow_with_the_square(count):
    # A chain of Laplace or Gaussian laws, each one sensitivity further: its ends are neighbours at this budget.
    assert for_changes(dpci.PureDP(0.1), count) == dpci.PureDP(float(Fraction("0.1") * count))
    assert for_changes(dpci.ZCDP(0.1), count) == dpci.ZCDP(float(Fraction("0.1") * count**2))
    assert for_changes(dpci.GDP(0.3), count) == dpci.GDP(float(Fraction("0.3") * count))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_delta_follows_the_chain_of_inequalities(count, epsilon):
    found, lost = for_changes(dpci.ApproxDP(epsilon, 1e-20), count), 0.0
    for _ in range(count):  # P(S) <= e^epsilon Q(S) + delta, and Q(S) once more
        lost = math.exp(epsilon) * lost + 1e-20
    assert found.epsilon == pytest.approx(count * epsilon, rel=1e-15)
    assert lost <= found.delta * (1 + 1e-15)
    assert found.delta == pytest.approx(lost, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(5.0, 0.01), (800.0, 1e-306), (705.0, 1e-290)])
def test_what_is_no_guarantee_is_none(epsilon, delta):
    assert for_changes(dpci.ApproxDP(epsilon, delta), 2) is None
    with pytest.raises(dpci.errors.InvalidInput, match="must be below 1 for strata"):
        cost_of_strata(dpci.ApproxDP(epsilon, delta), "replace_one")


def test_the_gaussian_mechanism_is_within_the_group_guarantee():
    # Exact hockey-stick divergence of normal laws `count` sensitivities apart, against that of the group's budget.
    mu = 0.3
    delta = norm.cdf(mu / 2 - 1.0 / mu) - math.e * norm.cdf(-mu / 2 - 1.0 / mu)
    for count in (2, 3):
        found, far = for_changes(dpci.ApproxDP(1.0, delta), count), count * mu
        exact = norm.cdf(far / 2 - found.epsilon / far) - np.exp(found.epsilon) * norm.cdf(
            -far / 2 - found.epsilon / far
        )
        assert exact <= found.delta


@pytest.mark.parametrize(
    ("kind", "neighbors", "cost"),
    [
        ("strata", "add_remove", 1.0),
        ("strata", "replace_one", 2.0),
        ("counted_strata", "replace_one", 2.0),
        ("groups", "replace_one", 3.0),
        ("disjoint_groups", "replace_one", 1.0),
        ("tuning", "add_remove", 1.0),
    ],
)
def test_what_the_parts_of_a_release_cost_together(kind, neighbors, cost):
    besides = {"epsilon": 1e-300} if kind in {"counted_strata", "tuning"} else None
    whole = Whole(kind, 3, neighbors, dpci.PureDP(6.0), besides)
    assert whole.cost_of(dpci.PureDP(1.0)) == dpci.PureDP(cost)


@pytest.mark.parametrize(
    ("kind", "neighbors", "cost"), [("counted_strata", "replace_one", 3.0), ("tuning", "add_remove", 1.5)]
)
def test_what_counts_or_a_choice_spent_is_part_of_the_cost(kind, neighbors, cost):
    whole = Whole(kind, 3, neighbors, dpci.PureDP(6.0), {"epsilon": 0.5})
    assert whole.cost_of(dpci.PureDP(1.0)) == dpci.PureDP(cost)
    assert from_fields(Whole, "whole", plain_fields(whole)) == whole
