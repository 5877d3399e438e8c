"""Success does not depend on the data: parameters that fail for some are refused, and no accepted ones fail."""

import numpy as np
import pytest

import dpci
from dpci.errors import RegularizationTooSmall
from support.extreme import attempt, attempt_far_out

# At these, 0 of 50 fits of rows at the bound converged if one target is negative, and 50 of 50 if none is.
SETTINGS = {
    "budget": dpci.PureDP(1.0),
    "loss": dpci.losses.HuberHinge(0.1),
    "mechanism": dpci.OutputPerturbation(moments="none"),
    "l2_strength": 1.8e-6,
    "rows": dpci.rows.Within(6e4, intercept=False),
    "classes": (-1, 1),
}


def test_parameters_that_fail_for_some_data_are_refused():
    with pytest.raises(RegularizationTooSmall, match="for this loss, row_norm and number of parameters") as refusal:
        dpci.plan(n_samples=9, n_features=1, **SETTINGS)
    least = float(str(refusal.value).split()[5])
    X = np.full((9, 1), 6e4 * (1.0 - 1e-12))
    for y in (np.ones(9), np.where(np.arange(9) == 0, -1.0, 1.0)):
        with pytest.raises(RegularizationTooSmall, match=f"l2_strength must be at least {least}"):
            dpci.fit(X, y, seed=1, **SETTINGS)
        with pytest.warns(dpci.SeededNoiseWarning):
            dpci.fit(X, y, seed=1, **SETTINGS | {"l2_strength": 1.01 * least})


def test_no_accepted_parameters_fail():
    found = [attempt(seed) for seed in range(150)]
    outcomes = [outcome for outcome, _ in found]
    assert [facts for outcome, facts in found if outcome == "failed"] == []
    assert outcomes.count("fitted") > 30


def test_no_accepted_parameters_fail_where_the_minimiser_lies_far_out():
    """In up to 80 parameters (docs/evidence/far_minimisers.md)."""
    found = [attempt_far_out(seed) for seed in range(20)]
    outcomes = [outcome for outcome, _ in found]
    assert [facts for outcome, facts in found if outcome == "failed"] == []
    assert outcomes.count("fitted") > 8
