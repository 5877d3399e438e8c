"""Losses of a caller's own functions that several tests fit."""

import numpy as np

from dpci.losses import Custom


def sigmoid():
    """The logistic function as a local one of NumPy's: a pickle of SciPy's looks for it in every module."""
    return lambda u: np.exp(-np.logaddexp(0.0, -u))


def logistic(factor=1.0, **declared):
    """The logistic loss of labels -1 and 1, or a part of it; local functions travel to other processes by value."""
    expit = sigmoid()
    return Custom(
        lambda u, y: factor * np.logaddexp(0.0, -y * u), lambda u, y: -factor * y * expit(-y * u),
        lambda u, _y: factor * expit(u) * expit(-u), slope_bound=1.0, curvature_bound=0.25, **declared,
    )  # fmt: skip


def soft_labels():
    """The logistic loss of targets between 0 and 1."""
    expit = sigmoid()
    return Custom(
        lambda u, y: np.logaddexp(0.0, u) - y * u, lambda u, y: expit(u) - y, lambda u, _y: expit(u) * expit(-u),
        slope_bound=1.0, curvature_bound=0.25, target_bounds=(0.0, 1.0),
    )  # fmt: skip


def pseudo_huber(scale=1.0, **declared):
    """A smooth absolute value of the residual."""
    return Custom(
        lambda u, y: scale * (np.hypot(1.0, u - y) - 1.0), lambda u, y: scale * (u - y) / np.hypot(1.0, u - y),
        lambda u, y: scale * np.hypot(1.0, u - y) ** -3, **{"slope_bound": scale, "curvature_bound": scale, **declared},
    )  # fmt: skip
