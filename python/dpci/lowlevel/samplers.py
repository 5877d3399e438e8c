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
    return _draws("spherical_laplace", n, dim, check_positive("scale", scale), seed)


def gaussian(n: int, dim: int, std_dev: float, seed: int) -> _F64:
    """Not private by itself. Draw vectors of independent normal coordinates, shape (n, dim)."""
    return _draws("gaussian", n, dim, check_positive("std_dev", std_dev), seed)


def laplace(n: int, dim: int, scale: float, seed: int) -> _F64:
    """Not private by itself. Draw vectors of independent Laplace coordinates, shape (n, dim)."""
    return _draws("laplace", n, dim, check_positive("scale", scale), seed)


def symmetric_gaussian(n: int, dim: int, std_dev: float, seed: int) -> _F64:
    """Not private by itself. Draw symmetric matrices, normal in isometric coordinates, shape (n, dim, dim).

    The diagonal has standard deviation ``std_dev``, other entries ``std_dev / sqrt(2)``.
    """
    return _draws("symmetric_gaussian", n, dim, check_positive("std_dev", std_dev), seed).reshape(n, dim, dim)


def symmetric_matrix_laplace(n: int, dim: int, scale: float, seed: int) -> _F64:
    """Not private by itself. Draw differences of two Wishart matrices, shape (n, dim, dim).

    Their density changes by at most exp(t / scale) under a shift of nuclear norm t (docs/proofs/mechanisms.md,
    "Noise").
    """
    return _draws("matrix_laplace", n, dim, check_positive("scale", scale), seed).reshape(n, dim, dim)


def _draws(law: str, n: int, dim: int, scale: float, seed: object) -> _F64:
    n, dim, checked = check_count("n", n, least=0), check_count("dim", dim), check_seed(seed)
    if checked is None:
        raise InvalidInput("seed must be an integer in [0, 2**64), got seed=None")
    return check_finite("every draw", _core.draw_noise(law, n=n, dim=dim, scale=scale, seed=checked))
