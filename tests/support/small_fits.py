"""A fit of few rows, for tests that change one thing about it."""

import numpy as np

import dpci
from support.keywords import assembled

N, D = 60, 3
INF, NAN = float("inf"), float("nan")
X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(N, D))
Y = np.arange(N) % 2
BUDGET = dpci.ZCDP(rho=5.0)


def fit(x=X, y=Y, **keywords):
    return dpci.fit(
        x, y, **assembled(**{"budget": BUDGET, "l2_strength": 0.5, "projection": "floor", "seed": 1, **keywords})
    )


def with_entry(value, row=7, column=2):
    changed = X.copy()
    changed[row, column] = value
    return changed
