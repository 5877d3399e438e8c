"""Whether released values show that the bound on the parameters does not bind: only then are there intervals.

On the sphere ||params|| = radius the gradient of the risk is not zero, and the sandwich formula does not hold. Whether
the minimiser lies there is private; what can be said from the released parameters alone is tested here.
Post-processing.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpci import _core
from dpci.record import FitRecord

FALSE_RATE = 1e-3
"""Probability of intervals where the bound binds, at most, by the normal approximation on which the intervals rest."""

# Beyond this noncentrality the one-dimensional bound is as good, and the series of the exact law long.
_GREATEST_NONCENTRALITY = 1e4
_NODES = 400


def refusal(record: FitRecord) -> str | None:
    """Return why a fit has no intervals; None if it has.

    With ``radius`` W, intervals need a test at level :data:`FALSE_RATE` to reject "the minimiser over the ball lies on
    its boundary". Output perturbation: on the boundary the released norm would be that of a vector of length W plus the
    noise, whose law is known. Objective perturbation: the parameters would have fallen short of W by an error of the
    size of the intervals (docs/domains.md).
    """
    if record.hessian is None or record.gradient_cov is None:
        return "intervals need released moments, got a fit with moments='none'"
    if record.radius is None:
        return None
    norm = float(np.linalg.norm(record.params))
    if norm < record.radius and _shows_slack(record, record.hessian, record.gradient_cov, norm, record.radius):
        return None
    return (
        "intervals need a radius that does not bind, which the released values must show, got parameters of norm "
        f"{norm:.4g} with noise too near to radius={record.radius:.4g} (a greater radius, or a greater l2_strength, "
        "leaves room)"
    )


def _shows_slack(
    record: FitRecord,
    hessian: NDArray[np.float64],
    gradient_cov: NDArray[np.float64],
    norm: float,
    radius: float,
) -> bool:
    dim = len(record.params)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            inverse = np.linalg.inv(hessian)
            # Of the sampling error in the worst direction.
            worst = float(np.linalg.eigvalsh(inverse @ gradient_cov @ inverse.T)[-1])
    except np.linalg.LinAlgError:  # a Hessian so near to singular shows nothing
        return False
    variance = max(worst / record.n_samples, 0.0)
    if record.mechanism == "objective":
        gain = float(np.linalg.norm(inverse, 2)) / record.n_samples
        law = (record.noise_law, record.noise_scale, dim)
        error = _core.exact_half_widths(np.array([variance]), np.array([gain]), *law, 1.0 - 2.0 * FALSE_RATE)
        return norm + float(error[0]) <= radius
    least = radius - float(special.ndtri(1.0 - FALSE_RATE / 2.0)) * math.sqrt(variance)
    return least > 0.0 and shorter_probability(record, norm, least) <= FALSE_RATE / 2.0


def shorter_probability(record: FitRecord, norm: float, length: float) -> float:
    """Return the probability that a vector of this length plus the noise of the parameters is at most ``norm`` long."""
    dim = len(record.params)
    if record.noise_law == "gaussian":
        return float(_shorter_given_variance(np.array([record.noise_scale**2]), dim, norm, length)[0])
    # Given its mixing variable the spherical Laplace law is normal: a trapezoid rule in the logarithm of the variance.
    shape = 0.5 * (dim + 1)
    low, high = np.log(special.gammaincinv(shape, 1e-14)), np.log(special.gammainccinv(shape, 1e-14))
    nodes = np.linspace(low, high, _NODES)
    log_density = shape * nodes - np.exp(nodes)
    weights = np.exp(log_density - log_density.max())
    given = _shorter_given_variance(2.0 * record.noise_scale**2 * np.exp(nodes), dim, norm, length)
    return float(weights @ given / weights.sum())


def _shorter_given_variance(
    variances: NDArray[np.float64], dim: int, norm: float, length: float
) -> NDArray[np.float64]:
    """Return the same given the variance of each coordinate: a noncentral chi-square law."""
    along_the_vector = special.ndtr((norm - length) / np.sqrt(variances))
    noncentrality = length**2 / variances
    exact = special.chndtr(norm**2 / variances, dim, np.minimum(noncentrality, _GREATEST_NONCENTRALITY))
    usable = (noncentrality <= _GREATEST_NONCENTRALITY) & np.isfinite(exact)
    # The first is an upper bound, because the other coordinates only lengthen the sum.
    return np.where(usable, np.minimum(exact, along_the_vector), along_the_vector)
