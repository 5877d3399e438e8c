"""Add/remove: intervals hold whatever the private number of records is beside ``n_public``."""

import numpy as np
import pytest
from scipy import optimize, special, stats

import dpci
from dpci import lowlevel
from support.fits import make_rows
from support.keywords import assembled

LOUD = dpci.PureDP(1e5)
pytestmark = pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning")


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_the_mean_gradient_stays_in_the_covariance_under_add_remove(mechanism, calibration):
    """Next to no noise: the matrices are sums over the rows that ``lowlevel`` has too, divided by the public number."""
    X, y = make_rows()
    strength, n_public = 0.3, 1200
    keywords = {"budget": LOUD, "l2_strength": strength, "mechanism": mechanism, "calibration": calibration, "seed": 2}
    for relation, n in ((None, len(X)), ("add_remove", n_public)):
        added = {} if relation is None else {"neighbors": dpci.AddRemove(n_public)}
        result = dpci.fit(X, y, **assembled(classes=(0, 1), projection="floor", **keywords, **added))
        hessian, centred = lowlevel.hessian_and_gradient_cov(
            X, 2.0 * y - 1.0, result.params, loss="logistic", l2_strength=strength, intercept=1.0
        )
        mean_gradient = strength * result.params
        data = (centred + np.outer(mean_gradient, mean_gradient)) * len(X) / n
        expected = data if relation else data - np.outer(mean_gradient, mean_gradient)
        if calibration == "paper":
            values, vectors = np.linalg.eigh(expected)
            expected = (vectors * np.maximum(values, strength)) @ vectors.T
        # With any rows, more than twenty times the tolerance is at stake.
        assert np.outer(mean_gradient, mean_gradient).max() > 0.002
        np.testing.assert_allclose(result.gradient_cov, expected, atol=1e-4)
        identity = np.eye(len(hessian))
        expected = (hessian - strength * identity) * len(X) / n + strength * identity
        np.testing.assert_allclose(result.hessian, expected, atol=1e-4)


def test_a_rare_class_is_covered_with_more_records_than_n_public():
    """One positive in a hundred and half as many records again: the intercept's share of misses, at a rate of 1e-6."""
    runs, n_public, share, strength, level = 120, 2000, 0.01, 0.1, 0.95
    n_records = 3 * n_public // 2

    def slope(intercept):
        return special.expit(intercept) - share + strength * n_public / n_records * intercept

    target = optimize.brentq(slope, -10.0, 0.0)
    rng = np.random.default_rng(4)
    X, hits = np.zeros((n_records, 1)), 0
    for seed in range(runs):
        y = np.where(rng.uniform(size=n_records) < share, 1, -1)
        result = dpci.fit(
            X, y, budget=LOUD, l2_strength=strength, classes=(-1, 1), neighbors=dpci.AddRemove(n_public),
            seed=seed, n_threads=1,
        )  # fmt: skip
        intervals = result.conf_int(level=level)
        hits += intervals.lower[-1] <= target <= intervals.upper[-1]
    assert hits >= stats.binom.ppf(1e-6, runs, level)
    assert "do not use the number of records" in " ".join(result.summary(full=True).split())
