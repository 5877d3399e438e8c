"""Bounds on the error where records are persons or have weights: their limits, and one that is attained."""

import numpy as np
import pytest
from scipy.stats import binom

import dpci
from support.keywords import assembled

ASKED = {"n_samples": 3000, "n_features": 4, "budget": dpci.PureDP(1.0), "l2_strength": 0.05}
RISKS = ("training", "empirical", "regularized", "population")


def bound(**keywords):
    return dpci.utility.bound(**assembled(**{"mechanism": "output", **keywords}))


@pytest.mark.parametrize("of", RISKS)
def test_records_that_count_one_have_the_bound_of_rows(of):
    plain = bound(of=of, radius=1.0, **ASKED)
    for unit in (
        {"persons": dpci.Persons()},
        {"persons": dpci.Persons(max_rows=3)},
        {"weights": dpci.Weights(bound=3.0, total=9000.0)},
        {"persons": dpci.Persons(), "weights": dpci.Weights(bound=1.0)},
    ):
        found = bound(of=of, radius=1.0, **ASKED, **unit)
        assert found.value == pytest.approx(plain.value, rel=1e-12)
        is_of_persons = "persons" in unit and of in {"regularized", "population"}
        assert ("persons are independent" in found.assumes[0]) is is_of_persons
    found = bound(of=of, neighbors="add_remove", persons=dpci.Persons(max_rows=2), radius=1.0, **ASKED)
    assert found.assumes[-1] == "the number of persons is n_public"


def test_weights_multiply_what_records_count():
    """The half of Lemma 22 with a curvature W/N times as great for each record."""
    found = bound(of="training", weights=dpci.Weights(bound=3.0), intercept=False, **ASKED)
    assert found.value == pytest.approx(0.5 * (3.0 * 0.25 + 0.05) * found.noise_norm**2, rel=1e-12)
    with pytest.raises(dpci.InvalidInput, match="weights must have no values"):
        bound(weights=dpci.Weights([1.0], bound=3.0), **ASKED)


@pytest.mark.filterwarnings("ignore::dpci.errors.SeededNoiseWarning")
def test_the_bound_of_weighted_persons_is_attained():
    """Rows of both classes at the end of the ball, of the greatest weight: the loss is most curved at 0."""
    n, runs, strength = 50, 400, 2.0
    keywords = {"budget": dpci.PureDP(4.0), "l2_strength": strength, "intercept": False, "mechanism": "output"}
    stated = bound(
        n_samples=n,
        n_features=1,
        of="training",
        failure_probability=0.5,
        persons=dpci.Persons(),
        weights=dpci.Weights(bound=2.0, total=60.0),
        **keywords,
    )
    X, y, persons = np.ones((2 * n, 1)), np.tile([-1, 1], n), np.repeat(np.arange(n), 2)
    counts = {
        "persons": persons,
        "weights": dpci.Weights(np.full(2 * n, 2.0), bound=2.0, total=60.0),
    }
    above = 0
    for seed in range(runs):
        theta = dpci.fit(X, y, **assembled(classes=(-1, 1), moments="none", seed=seed, **counts, **keywords)).params[0]
        losses = np.logaddexp(0.0, -y * theta)
        excess = 2.0 * losses.sum() / (2.0 * 60.0) - 2.0 * n * np.log(2.0) / 60.0 + 0.5 * strength * theta**2
        above += excess > stated.value
    # By the curvature's fall away from 0 and the room for rounding a little less than half.
    assert binom.sf(above - 1, runs, 0.5) > 1e-6
    assert binom.cdf(above, runs, 0.45) > 1e-6
