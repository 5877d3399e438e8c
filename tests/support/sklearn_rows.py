"""Rows, estimators and warnings that the tests of dpci.sklearn share."""

import warnings

import numpy as np

import dpci
from dpci.errors import DpciWarning

N, D = 2000, 3
# The checks have 1 to 200 rows: at this budget none is refused, and all noise is far above 1e-7. Some compare two fits,
# to .01 for instance: that is not left to chance.
CHECKED = {"epsilon": 1e5, "weights": dpci.Weights(bound=3.0), "seed": 1}
WEIGHTED = {
    "check_sample_weight_equivalence_on_dense_data": "its noise is that of one record",
    "check_sample_weight_equivalence_on_sparse_data": "its noise is that of one record",
    "check_all_zero_sample_weights_error": "which weights are 0 is private",
}


def make_rows(seed=11):
    """Rows, and labels whose type makes their classes public."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(N, D))
    y = X @ [4.0, -2.0, 0.0] + 0.5 + rng.logistic(size=N) > 0
    return X, y


def make_targets(X, seed=12):
    return np.clip(X @ [0.5, -0.3, 0.0] + 0.2 + np.random.default_rng(seed).normal(0, 0.1, size=len(X)), -1, 1)


def warnings_of(call):
    """Result of a call, and the warnings of dpci that it gave."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        value = call()
    return value, [warning for warning in caught if issubclass(warning.category, DpciWarning)]
