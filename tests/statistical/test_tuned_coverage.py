"""Coverage after a private choice: the refit's intervals cover the target of the candidate that was chosen."""

import numpy as np
import pytest

import dpci

N, DIM, RUNS, LEVEL = 6000, 3, 300, 0.9
BETA = np.array([0.5, -0.4, 0.2])
BALL = dpci.ObjectivePerturbation(radius=2.0)
CANDIDATES = [{"l2_strength": strength, "mechanism": BALL} for strength in (0.05, 0.2, 0.8)]
pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")


def sample(rng):
    """Rows uniform on the sphere, so that E[x xT] = I / 3."""
    X = rng.standard_normal((N, DIM))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ BETA + 0.3 * rng.uniform(-1.0, 1.0, N)


def target(l2_strength):
    """Minimiser of E(xT theta - y)² + lambda/2 |theta|²."""
    return BETA * (2.0 / 3.0) / (2.0 / 3.0 + l2_strength)


@pytest.mark.parametrize("method", ["repeat", "chunks"])
def test_coverage_of_the_chosen_target(method):
    """Choice and intervals see the same records; the share of covered coordinates stays within 5 s.e. of the level.

    False-positive rate 6e-7; two hundredths above the level for the noise of the matrices, which lengthens intervals.
    """
    rng = np.random.default_rng(62)
    covered, chosen = [], []
    for seed in range(RUNS):
        tuned = dpci.tuning.tune(
            *sample(rng), budget=dpci.PureDP(4.0), candidates=CANDIDATES, method=method, loss="squared",
            rows=dpci.rows.Within(intercept=False), seed=seed,
        )  # fmt: skip
        intervals = tuned.result.conf_int(level=LEVEL)
        goal = target(tuned.params["l2_strength"])
        covered.append(((intervals.lower <= goal) & (goal <= intervals.upper)).mean())
        chosen.append(tuned.index)
    assert len(set(chosen)) > 1
    error = np.std(covered) / np.sqrt(RUNS)
    assert LEVEL - 5.0 * error <= np.mean(covered) <= LEVEL + 0.02 + 5.0 * error
