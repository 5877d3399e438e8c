"""One record moves a minimiser over a ball by no more than a fit assumes, and constructed pairs move it that far."""

import numpy as np
import pytest

from dpci import _core
from support.core import specified
from support.gradients import farthest, reach

ROW_NORM = 1.3
LOSSES = {"logistic": _core.Loss("logistic"), "squared": _core.Loss("squared", 0.8)}
# Greatest |slope| at a margin, not that of the core.
SLOPES = {"logistic": lambda z: 1.0 / (1.0 + np.exp(z)), "squared": lambda z: np.maximum(0.0, 2.0 * (0.8 - z))}
by_loss = pytest.mark.parametrize("name", LOSSES)
ALL_LOSSES = LOSSES | {
    "hinge": _core.Loss("hinge"),
    "huber_hinge": _core.Loss("huber_hinge", 0.5),
    "smooth_hinge": _core.Loss("smooth_hinge", 0.3),
    "soft_logistic": _core.Loss("soft_logistic"),
}


def sensitivity(name, n, dim, l2_strength, radius):
    """Sensitivity to which a fit calibrates its noise."""
    spec = specified(
        _core.Spec, n_samples=n, n_columns=dim, row_norm=ROW_NORM, loss=ALL_LOSSES[name], l2_strength=l2_strength,
        radius=radius, budget=_core.Budget.pure(1.0),
    )  # fmt: skip
    return spec.plan()["steps"][0].sensitivity


def minimiser(name, x, y, l2_strength, radius, tolerance=1e-9):
    return _core.minimize_erm(
        _core.Records(x, y), loss=ALL_LOSSES[name], l2_strength=l2_strength, radius=radius, intercept=None,
        linear_term=None, start=None, solver="auto", tolerance=tolerance, max_iterations=200, n_threads=1,
    )["params"]  # fmt: skip


def within_bound(x):
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    return x * np.minimum(1.0, ROW_NORM * (1.0 - 1e-12) / np.maximum(norms, 1e-300))


def random_targets(rng, name, n):
    return rng.choice([-1.0, 1.0], n) if name == "logistic" else rng.choice([-0.8, 0.8, 0.1], n)


@by_loss
@pytest.mark.parametrize("radius", [0.01, 0.3, 1.0, 30.0])
def test_the_sensitivity_is_that_of_the_most_distant_gradients(name, radius):
    """On the ball, or on that of the regulariser where that is smaller; nearer than the steepest slopes would be."""
    slope, n, l2_strength = SLOPES[name], 50, 0.2
    greatest = ROW_NORM * min(radius, reach(slope, l2_strength))
    expected = ROW_NORM * farthest(slope, greatest) / (n * l2_strength)
    assumed = sensitivity(name, n, 3, l2_strength, radius)
    assert expected * (1.0 - 1e-6) <= assumed <= expected * 1.002
    steepest = 2.0 * slope(-greatest) * ROW_NORM / (n * l2_strength)
    assert assumed < (1.0 if radius < 0.1 else 0.9) * steepest


@by_loss
@pytest.mark.parametrize("share", [0.3, 0.9, 3.0])
def test_no_pair_exceeds_it(name, share):
    """Rows 0 and -1 change into each other, and all rows move towards a greater change; ``share`` of the free norm."""
    rng, greatest, n_active = np.random.default_rng(31), 0.0, 0
    for _ in range(40):
        n, dim = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        l2_strength = 10.0 ** rng.uniform(-1.5, 2.0)
        x, y = within_bound(3.0 * rng.standard_normal((n + 1, dim))), random_targets(rng, name, n + 1)
        radius = share * max(1e-3, np.linalg.norm(minimiser(name, x[:n], y[:n], l2_strength, None)))
        bound = sensitivity(name, n, dim, l2_strength, radius)
        best = 0.0
        for step in [0.0, *np.geomspace(1.0, 0.05, 12)]:
            tried = within_bound(x + step * rng.standard_normal(x.shape))
            first, last = (minimiser(name, tried[s], y[s], l2_strength, radius) for s in (slice(n), slice(1, n + 1)))
            reached = np.linalg.norm(first - last) / bound
            n_active += np.linalg.norm(first) >= radius * (1.0 - 1e-12)
            assert reached <= 1.0 + 1e-9 + 2e-9 / bound
            if reached > best:
                best, x = reached, tried
        greatest = max(greatest, best)
    # The pairs are no strangers to the bound, and the constraint matters as it should.
    assert greatest > 0.5
    assert (n_active > 100) == (share < 1.0)


@pytest.mark.parametrize("name", ALL_LOSSES)
@pytest.mark.parametrize("share", [0.99, 1.01], ids=["active", "inactive"])
def test_a_pair_reaches_it(name, share):
    """Two orthogonal rows, one of which changes its target: λ is so great that slopes stay what they are at 0."""
    x, l2_strength = ROW_NORM * np.eye(2), 1e4
    low, high = ALL_LOSSES[name].target_bounds or (-1.0, 1.0)
    ends = [np.array([high, high]), np.array([high, low])]
    free = [minimiser(name, x, y, l2_strength, None, 1e-13) for y in ends]
    radius = share * np.linalg.norm(free[0])
    found = [minimiser(name, x, y, l2_strength, radius, 1e-13) for y in ends]
    on_sphere = [np.linalg.norm(point) >= radius * (1.0 - 1e-12) for point in found]
    assert on_sphere == [share < 1.0] * 2
    reached = np.linalg.norm(found[0] - found[1]) / sensitivity(name, 2, 2, l2_strength, radius)
    assert 0.95 <= reached <= 1.0 + 1e-9
