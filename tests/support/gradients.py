"""Brute force for how far apart two gradients at one point of a ball are."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_F64 = NDArray[np.float64]


def farthest(slope: Callable[[_F64], _F64], radius: float) -> float:
    """Greatest distance of two gradients of rows of length 1 at parameters of length ``radius``, from a grid of angles.

    ``slope`` is its size at a margin. Rows of full length on either side of the parameters are farthest apart.
    """
    angles = np.linspace(0.0, np.pi, 1501)
    sizes = slope(radius * np.cos(angles))
    products = np.outer(sizes, sizes) * np.cos(angles[:, None] + angles)
    return float(np.sqrt((sizes[:, None] ** 2 + sizes**2 - 2.0 * products).max()))


def reach(slope: Callable[[_F64], _F64], l2_strength: float) -> float:
    """Bound on the norm of a minimiser: the root of the greatest margin times slope over lambda."""
    margins = np.linspace(0.0, 60.0, 600_001)
    return float(np.sqrt((margins * slope(margins)).max() / l2_strength))
