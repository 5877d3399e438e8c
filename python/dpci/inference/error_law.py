"""The joint law of the errors of released parameters: normal given a mixing variable, from released values alone."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpci.errors import InvalidInput
from dpci.released.record import FitRecord

_F64 = NDArray[np.float64]

# Logarithms of what is left out of the mixing law on the left, where tails are least, and on the right, where they are
# greatest: nothing that a float can tell from 0.
_LEFT_CUT, _RIGHT_CUT = -38.0, -760.0
# Draws that are made at once.
_BLOCK = 4096


@dataclass(frozen=True)
class ErrorLaw:
    """Law of ``target - params``: ``N(0, sampling + Omega * noise @ noise)`` given Omega (docs/method.md, "Intervals").

    Attributes
    ----------
    sampling : numpy.ndarray of shape (k, k)
        Covariance of the sampling error; the seal's is kept apart because the noise, too, is independent of the data.
    noise : numpy.ndarray of shape (k, k)
        What the noise of the coefficients is multiplied with, symmetric: H⁻¹/n (objective) or I (output).
    seal_variance : float
        Variance that the seal adds to each parameter, as if it were normal.
    law : str
        "gaussian", where Omega is fixed, or "spherical_laplace", where it is Gamma((k+1)/2, scale 2 noise_scale²).
    scale : float
        Standard deviation, or 1/rate.
    """

    sampling: _F64
    noise: _F64
    seal_variance: float
    law: str
    scale: float

    @property
    def dim(self) -> int:
        """Number of parameters k."""
        return len(self.noise)

    @property
    def mean_omega(self) -> float:
        """Mean of Omega: the variance of one coordinate of the noise."""
        return self.scale**2 * (1 if self.law == "gaussian" else self.dim + 1)

    def parts(self, contrasts: _F64) -> tuple[_F64, _F64]:
        """Return the covariances (m, m) of contrasts (m, k) without the noise, and of the noise at the mean Omega."""
        with np.errstate(over="ignore", invalid="ignore"):
            fixed = contrasts @ self.sampling @ contrasts.T + self.seal_variance * (contrasts @ contrasts.T)
            half = contrasts @ self.noise
            mixed = self.mean_omega * (half @ half.T)
        if not (np.isfinite(fixed).all() and np.isfinite(mixed).all()):
            raise InvalidInput("the covariance of the contrasts must be finite, got one beyond the range of floats")
        return fixed, mixed

    def components(self, contrasts: _F64) -> tuple[_F64, _F64]:
        """Return each contrast's variance without the noise, and its multiplier of one coordinate of the noise."""
        with np.errstate(over="ignore", invalid="ignore"):
            variance = ((contrasts @ self.sampling) * contrasts).sum(axis=1)
            variance = np.maximum(variance, 0.0) + self.seal_variance * (contrasts**2).sum(axis=1)
            multiplier = np.linalg.norm(contrasts @ self.noise, axis=1)
        if not (np.isfinite(variance).all() and np.isfinite(multiplier).all()):
            raise InvalidInput("the variance of a contrast must be finite, got one beyond the range of floats")
        return variance, multiplier

    def draw(self, rng: np.random.Generator, contrasts: _F64, n: int) -> _F64:
        """Return n draws of the errors of contrasts, shape (n, m); nothing else of that size is held."""
        k = self.dim
        values, vectors = np.linalg.eigh(self.sampling + self.seal_variance * np.eye(k))
        root = contrasts @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        # No more normals than contrasts, and QR keeps each contrast's own relative accuracy.
        fixed, mixed = (np.linalg.qr(part.T, mode="r") for part in (root, contrasts @ self.noise))
        errors = np.empty((n, len(contrasts)))
        for first in range(0, n, _BLOCK):
            block = errors[first : first + _BLOCK]
            size = len(block)
            omega = np.full((size, 1), self.scale**2)
            if self.law != "gaussian":
                omega = 2.0 * self.scale**2 * rng.standard_gamma(0.5 * (k + 1), size=(size, 1))
            block[:] = rng.standard_normal((size, len(fixed))) @ fixed
            block += np.sqrt(omega) * (rng.standard_normal((size, len(mixed))) @ mixed)
        return errors


def error_law(record: FitRecord, hessian: _F64, gradient_cov: _F64, seal_variance: float) -> ErrorLaw:
    """Return the law of the errors of a fit from its released matrices.

    Raises
    ------
    InvalidInput
        If the Hessian, of a saved fit, is not positive definite.
    """
    try:
        root = np.linalg.solve(np.linalg.cholesky(hessian), np.eye(len(hessian)))
    except np.linalg.LinAlgError as error:
        raise InvalidInput("the released Hessian must be positive definite, got one that is not") from error
    with np.errstate(over="ignore", invalid="ignore"):
        inverse = root.T @ root
        sampling = inverse @ gradient_cov @ inverse / record.n_samples
    noise = inverse / record.n_samples if record.mechanism == "objective" else np.eye(len(hessian))
    return ErrorLaw(0.5 * (sampling + sampling.T), noise, seal_variance, record.noise_law, record.noise_scale)


def mixing_nodes(law: str, dim: int, *, far: Literal[1, 2, 4] = 2) -> tuple[_F64, _F64]:
    """Return nodes and weights of Omega over its mean: one node for Gaussian noise.

    The trapezoid rule in log W, in which the density of W ~ Gamma(k, rate k), k = (dim + 1)/2, is analytic and the rule
    converges geometrically. Steps of ``1/far`` of those that give tails of 1e-12 to 1e-11; 2 is enough for any tail.
    """
    if law == "gaussian":
        return np.ones(1), np.ones(1)
    shape = 0.5 * (dim + 1)
    step = 0.55 / math.sqrt(1.2 * shape + 26.0) / far
    # Left of -(1 + cut/shape), and right of log(1 + cut/shape) + 2, the exponent is below the cuts.
    low = -1.0 + _LEFT_CUT / shape
    high = math.log1p(-_RIGHT_CUT / shape) + 2.0
    log_w = step * np.arange(math.floor(low / step), math.ceil(high / step) + 1)
    log_weight = shape * (log_w - np.expm1(log_w))
    kept = log_weight > np.where(log_w < 0.0, _LEFT_CUT, _RIGHT_CUT)
    weights = np.exp(log_weight[kept])
    return np.exp(log_w[kept]), weights / weights.sum()
