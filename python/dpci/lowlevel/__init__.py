"""Typed building blocks for other libraries and for tests; none of them is private by itself."""

from dpci.base.naming import name_publicly
from dpci.lowlevel.blocks import (
    Minimum,
    checked_rows,
    erm_value_and_gradient,
    error_components,
    exact_half_widths,
    gaussian,
    gaussian_delta,
    gaussian_mu,
    hessian_and_gradient_cov,
    laplace,
    minimize_erm,
    monte_carlo_interval,
    spherical_laplace,
    symmetric_gaussian,
    symmetric_matrix_laplace,
    weighted_gram,
)

__all__ = [
    "Minimum",
    "checked_rows",
    "erm_value_and_gradient",
    "error_components",
    "exact_half_widths",
    "gaussian",
    "gaussian_delta",
    "gaussian_mu",
    "hessian_and_gradient_cov",
    "laplace",
    "minimize_erm",
    "monte_carlo_interval",
    "spherical_laplace",
    "symmetric_gaussian",
    "symmetric_matrix_laplace",
    "weighted_gram",
]

name_publicly(__name__, __all__)
