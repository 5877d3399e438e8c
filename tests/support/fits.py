"""Rows and settings of the fits that the tests of the public interface share."""

import numpy as np

import dpci

N, D = 2000, 3
PURE = dpci.PureDP(epsilon=2.0)
BOUND, LEVELS, SIZE = 0.3, 30, 4000
SETTINGS = {"budget": PURE, "l2_strength": 0.02, "seed": 5}


def make_rows():
    rng = np.random.default_rng(11)
    X = rng.uniform(-0.5, 0.5, size=(N, D))
    y = (X @ [4.0, -2.0, 0.0] + rng.logistic(size=N) > 0).astype(int)
    return X, y


def make_levels(common=0.9):
    """A number and the indicators of one category, of which most records have the level at position 3."""
    rng = np.random.default_rng(3)
    level = np.where(rng.random(SIZE) < common, 2, rng.integers(0, LEVELS, SIZE))
    X = np.zeros((SIZE, 1 + LEVELS))
    X[:, 0] = rng.uniform(-0.5, 0.5, SIZE)
    X[np.arange(SIZE), 1 + level] = BOUND
    return X, np.where(2.0 * X[:, 0] - 0.5 + rng.logistic(size=SIZE) > 0.0, 1, -1)
