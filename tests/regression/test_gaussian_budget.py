"""Gaussian DP as the budget of a moment matrix: its noise, its guarantee, and what a ledger counts."""

import numpy as np
import pytest

import dpci
from dpci import regression

N = 4000
_rng = np.random.default_rng(7)
X = _rng.uniform(-0.5, 0.5, (N, 2))
Y = np.clip(X @ [0.8, -0.5] + 0.1 * _rng.normal(size=N), -1, 1)


@pytest.mark.parametrize("robust", [False, True])
def test_noise_is_that_of_mu_but_for_the_seal(robust):
    release = regression.release(X, Y, budget=dpci.GDP(0.8), robust=robust, seed=1)
    ratios = [step["sensitivity"] / step["scale"] for step in release.privacy["steps"]]
    whole = np.sum(np.square(ratios))
    assert 0.998 * 0.64 < whole < 0.64 * (1 - 0.99e-3)
    assert release.budget == dpci.GDP(0.8)
    assert release.privacy["cost_unit"] == "mu_squared"
    seals = [seal["cost"]["epsilon"] for seal in release.privacy["seal"]["releases"]] if robust else []
    assert all(epsilon > 0 for epsilon in seals)


def test_the_guarantee_is_exact():
    release = regression.release(X, Y, budget=dpci.GDP(1.0), seed=1)
    assert release.guarantee.delta(1.0) == pytest.approx(0.126936737, rel=1e-6)
    assert release.guarantee.rdp(4.0) == pytest.approx(2.0)
    assert dpci.GDP(1.0).delta(1.0) == release.guarantee.delta(1.0)
    fit = dpci.fit(X, Y, budget=dpci.GDP(1.0), loss="squared")
    assert "Gaussian DP" in fit.summary()
    assert "ε, δ" in fit.to_html()
    again = regression.LinearFit.from_json(fit.to_json())
    assert again.budget == dpci.GDP(1.0)
    np.testing.assert_array_equal(again.cov, fit.cov)


def test_a_ledger_counts_the_zcdp_that_it_implies():
    for total in (dpci.ZCDP(1.0), dpci.ApproxDP(5.0, 1e-6)):
        ledger = dpci.Ledger(total)
        regression.release(X, Y, budget=dpci.GDP(0.5), ledger=ledger)
        if isinstance(total, dpci.ZCDP):
            assert 0.125 <= ledger.spent["rho"] < 0.125 * (1 + 1e-12)
    with pytest.raises(dpci.InvalidInput, match="implies no pure DP"):
        regression.release(X, Y, budget=dpci.GDP(0.5), ledger=dpci.Ledger(dpci.PureDP(5.0)))
    with pytest.raises(dpci.BudgetExceeded):
        regression.release(X, Y, budget=dpci.GDP(2.0), ledger=dpci.Ledger(dpci.ZCDP(1.0)))


@pytest.mark.parametrize("mu", [0.0, -1.0, np.nan, np.inf, "1"])
def test_bad_mu(mu):
    with pytest.raises(dpci.InvalidInput, match="mu must be"):
        dpci.GDP(mu)


def test_other_functions_refuse_it_in_words():
    for call in (
        lambda: dpci.fit(X, Y > 0, budget=dpci.GDP(1.0), l2_strength=0.1),
        lambda: dpci.Ledger(dpci.GDP(1.0)),
        lambda: dpci.plan(n_samples=100, n_features=2, budget=dpci.GDP(1.0), l2_strength=0.1),
    ):
        with pytest.raises(dpci.InvalidInput, match="not Gaussian"):
            call()
    for mu in (1e-40, 1e20):
        with pytest.raises(dpci.InvalidInput, match="mu must be"):
            regression.release(X, Y, budget=dpci.GDP(mu))
