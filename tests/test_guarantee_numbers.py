"""The numbers of a guarantee by hand: what a budget leaves, at both relations, near no epsilon at all."""

import math

import numpy as np
import pytest

import dpci
from dpci import _rules
from dpci.errors import InvalidInput


def plan(budget, **keywords):
    given = {"n_samples": 1000, "n_features": 3, "row_norm": 1.0, "l2_strength": 0.1}
    return dpci.plan(budget=budget, **(given | keywords))


def test_pure_guarantees_leave_nothing_beyond_their_epsilon():
    delta = plan(dpci.PureDP(1.0)).guarantee.delta([0.0, 0.5, 1.0, 1.5, 40.0])
    # (e^1 - e^epsilon)/(1 + e^1).
    expected = [(math.e - math.exp(epsilon)) / (1 + math.e) for epsilon in (0.0, 0.5)]
    np.testing.assert_allclose(delta, [*expected, 0.0, 0.0, 0.0], rtol=1e-12)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("moments", ["joint", "none"])
def test_the_whole_delta_is_spent_at_the_epsilon_of_the_budget(neighbors, mechanism, moments):
    budget = dpci.ApproxDP(1.0, 1e-6)
    guarantee = plan(budget, neighbors=neighbors, mechanism=mechanism, moments=moments).guarantee
    # Seals have a thousandth, of which (epsilon, delta) composition leaves some unspent.
    assert 0.99e-6 < guarantee.delta(1.0) <= 1e-6 * (1 + 1e-12)


def test_no_delta_is_above_one():
    guarantee = plan(dpci.ApproxDP(1.0, 1e-6), mechanism="objective").guarantee
    assert guarantee.delta(0.0) == 1.0
    assert np.all(guarantee.delta(np.linspace(0.0, 0.01, 50)) <= 1.0)


def test_intervals_have_two_different_ends():
    assert _rules.check_interval("bounds", [1, 2]) == (1.0, 2.0)
    for ends in ([1, 1], [2, 1], [1], [1, 2, 3]):
        with pytest.raises(InvalidInput, match="bounds"):
            _rules.check_interval("bounds", ends)
