"""The mean and the spread of a utility over the noise against 10,000 refits for every mechanism.

Each check fails by chance with probability 1e-6: 4.9 standard errors of a normal mean.
"""

import numpy as np
import pytest
from scipy import stats

import dpci
from support.utility import MECHANISMS, curve, monte_carlo

pytestmark = pytest.mark.prove

N_DRAWS = 10_000
DEVIATIONS = stats.norm.isf(0.5e-6)
OTHERS = {
    "huber": {"at": dpci.ApproxDP(3.0, 1e-6), "loss": dpci.losses.HuberHinge(h=0.1)},
    "accuracy": {"at": dpci.ApproxDP(2.0, 1e-6), "metric": dpci.utility.SmoothedAccuracy(0.3)},
}
CASES = {name: keywords for name, keywords in MECHANISMS.items() if "any sign" not in name} | OTHERS


@pytest.mark.parametrize("name", sorted(CASES))
def test_mean_and_spread_over_refits(name):
    found = curve(**CASES[name])
    utilities = monte_carlo(found, N_DRAWS)
    expected = found.expected_utility(found.path.at)
    error = utilities.std(ddof=1) / np.sqrt(N_DRAWS)
    means = f"mean {utilities.mean():.7f} ± {error:.1e}, predicted {expected.mean:.7f}"
    spreads = f"standard deviation {utilities.std():.3e}, predicted {expected.std:.3e}"
    print(f"{name}: {means}; {spreads}")  # noqa: T201  # the log of `make prove` is the evidence
    assert abs(utilities.mean() - expected.mean) < DEVIATIONS * error
    squares = (utilities - utilities.mean()) ** 2
    error = squares.std(ddof=1) / np.sqrt(N_DRAWS) / (2 * utilities.std())
    assert abs(utilities.std(ddof=1) - expected.std) < DEVIATIONS * error
