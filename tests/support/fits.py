"""Rows and settings of the fits that the tests of the public interface share."""

import numpy as np

import dpci

N, D = 2000, 3
PURE = dpci.PureDP(epsilon=2.0)
SETTINGS = {"budget": PURE, "l2_strength": 0.02, "seed": 5}


def make_rows():
    rng = np.random.default_rng(11)
    X = rng.uniform(-0.5, 0.5, size=(N, D))
    y = (X @ [4.0, -2.0, 0.0] + rng.logistic(size=N) > 0).astype(int)
    return X, y
