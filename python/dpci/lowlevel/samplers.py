"""Draws of the noise distributions from a seed, for other libraries and for tests; ``dpci.lowlevel`` exports them."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.base.validation import check_count, check_finite, check_positive, check_seed
from dpci.errors import InvalidInput

_F64: TypeAlias = NDArray[np.float64]


def spherical_laplace(n: int, dim: int, scale: float, seed: int) -> _F64:
    """Not private by itself. Draw vectors with density proportional to exp(-||b|| / scale).

    Parameters
    ----------
    n, dim : int
        Number of vectors and of coordinates.
    scale : float
        1/rate.
    seed : int
        Seed of the simulation generator.

    Returns
    -------
    numpy.ndarray of shape (n, dim)
    """
    return check_finite(
        "every draw", _core.spherical_laplace(*_sizes(n, dim), check_positive("scale", scale), _seed(seed))
    )


def gaussian(n: int, dim: int, std_dev: float, seed: int) -> _F64:
    """Not private by itself. Draw vectors of independent normal coordinates, shape (n, dim)."""
    return check_finite("every draw", _core.gaussian(*_sizes(n, dim), check_positive("std_dev", std_dev), _seed(seed)))


def laplace(n: int, dim: int, scale: float, seed: int) -> _F64:
    """Not private by itself. Draw vectors of independent Laplace coordinates, shape (n, dim)."""
    return check_finite("every draw", _core.laplace(*_sizes(n, dim), check_positive("scale", scale), _seed(seed)))


def symmetric_gaussian(n: int, dim: int, std_dev: float, seed: int) -> _F64:
    """Not private by itself. Draw symmetric matrices, normal in isometric coordinates, shape (n, dim, dim).

    The diagonal has standard deviation ``std_dev``, other entries ``std_dev / sqrt(2)``.
    """
    return check_finite(
        "every draw", _core.symmetric_gaussian(*_sizes(n, dim), check_positive("std_dev", std_dev), _seed(seed))
    )


def symmetric_matrix_laplace(n: int, dim: int, scale: float, seed: int) -> _F64:
    """Not private by itself. Draw differences of two Wishart matrices, shape (n, dim, dim).

    Their density changes by at most exp(t / scale) under a shift of nuclear norm t (docs/proofs/mechanisms.md,
    "Noise").
    """
    return check_finite(
        "every draw", _core.symmetric_matrix_laplace(*_sizes(n, dim), check_positive("scale", scale), _seed(seed))
    )


def _sizes(n: int, dim: int) -> tuple[int, int]:
    return check_count("n", n, least=0), check_count("dim", dim)


def _seed(value: object) -> int:
    seed = check_seed(value)
    if seed is None:
        raise InvalidInput("seed must be an integer in [0, 2**64), got seed=None")
    return seed
