"""How far one record moves the gradient of squared losses on a ball: closed form against brute force, and reached."""

import numpy as np
import pytest
from scipy import optimize

import dpci
from dpci import _core
from support.core import specified

CASES = [(1.0, 1.0, 1.0), (1.0, 0.1, 1.0), (1.0, 10.0, 1.0), (2.0, 0.7, 0.3), (0.5, 3.0, 4.0)]
by_case = pytest.mark.parametrize(("row_norm", "radius", "target_bound"), CASES)
N = 50


def shift(row_norm, radius, target_bound, *, neighbors="replace_one", calibration="tight", dim=2):
    spec = specified(_core.Spec,
        n_samples=N, n_columns=dim, intercept=None, row_norm=row_norm, loss=_core.Loss("squared", target_bound),
        l2_strength=100.0, radius=radius, budget=_core.Budget.pure(1.0), mechanism="objective", noise=None,
        variant="standard", project=False, split=None, moments="none", projection="floor", calibration=calibration,
        neighbors=neighbors,
    )  # fmt: skip
    return spec.plan()["steps"][0].sensitivity


def gradient(x, theta, y):
    return 2.0 * ((x * theta).sum(axis=-1, keepdims=True) - y) * x


@by_case
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_pair_exceeds_it(row_norm, radius, target_bound, dim):
    rng = np.random.default_rng(9)
    n = 200_000
    x, z = rng.standard_normal((2, n, dim))
    inside = rng.choice([1.0, 1.0, 0.6], (2, n, 1))
    x, z = (row_norm * k * v / np.linalg.norm(v, axis=1, keepdims=True) for k, v in zip(inside, (x, z), strict=True))
    theta = radius * np.eye(dim)[0] * rng.choice([1.0, 1.0, 0.5], (n, 1))
    ends = target_bound * rng.choice([-1.0, 1.0], (2, n, 1))
    distance = np.linalg.norm(gradient(x, theta, ends[0]) - gradient(z, theta, ends[1]), axis=1)
    bound = shift(row_norm, radius, target_bound, dim=dim)
    assert distance.max() <= bound
    if dim == 2:
        assert distance.max() > 0.999 * bound


@by_case
def test_it_is_the_maximum_over_two_rows(row_norm, radius, target_bound):
    """By numerical optimisation over the angles of both rows."""

    def distance(angles):
        rows = row_norm * np.column_stack([np.cos(angles), np.sin(angles)])
        theta = np.array([radius, 0.0])
        return -np.linalg.norm(gradient(rows[0], theta, -target_bound) - gradient(rows[1], theta, -target_bound))

    starts = np.random.default_rng(10).uniform(-np.pi, np.pi, (30, 2))
    best = max(-optimize.minimize(distance, start).fun for start in starts)
    assert shift(row_norm, radius, target_bound) == pytest.approx(best, rel=1e-9)
    assert shift(row_norm, radius, target_bound) >= best * (1.0 - 1e-12)


def test_other_relations_and_calibrations_keep_the_slope_bound():
    assert shift(1.0, 1.0, 1.0, neighbors="add_remove") == pytest.approx(4.0, rel=1e-12)
    assert shift(1.0, 1.0, 1.0, calibration="paper") == pytest.approx(8.0, rel=1e-12)
    assert shift(1.0, 1.0, 1.0) == pytest.approx(3.0 * np.sqrt(3.0), rel=1e-12)
    assert shift(1.0, 1e60, 1.0) >= 2e60


@by_case
@pytest.mark.parametrize("binding", [False, True])
def test_minimisers_of_a_constructed_pair_reach_it(row_norm, radius, target_bound, binding):
    """With many short rows that hold the minimiser near (W, 0), the two extreme rows pull it to both sides.

    Where the bound binds, the pull along the sphere alone remains, and the sphere is what holds the minimiser.
    """
    n, l2_strength = 4000, 20.0 * row_norm**2
    low, high = 0.0, np.pi / 2.0
    found = optimize.minimize_scalar(
        lambda s: -(2.0 * row_norm * radius * row_norm * np.sin(2 * s) + 4.0 * row_norm * target_bound * np.cos(s)),
        bounds=(low, high), method="bounded",
    )  # fmt: skip
    # cos of the angle to theta is sin s.
    extreme = row_norm * np.array([[np.sin(found.x), np.cos(found.x)], [np.sin(found.x), -np.cos(found.x)]])
    # Rows along the first axis whose targets would put the minimiser at, or beyond, the sphere by themselves.
    short, push = 1e-4 * row_norm, (3.0 if binding else 1.0)
    need = l2_strength * radius / (2.0 * short)
    rows = np.zeros((n, 2))
    rows[:, 0] = short
    y = np.full(n, push * need)
    loss = dpci.losses.Squared(max(target_bound, push * need))
    minima = []
    for x in extreme:
        rows[0], y[0] = x, -target_bound
        minima.append(
            dpci.lowlevel.minimize_erm(
                rows, y, l2_strength=l2_strength, loss=loss, radius=radius, tolerance=1e-12
            ).params
        )
    moved = np.linalg.norm(minima[0] - minima[1])
    bound = shift(row_norm, radius, target_bound) / (n * l2_strength)
    assert moved <= bound * (1.0 + 1e-6)
    # At the sphere the multiplier adds to the curvature, so a pair reaches less there.
    assert moved >= (0.3 if binding else 0.95) * bound
