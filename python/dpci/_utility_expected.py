"""The mean and the spread of a utility over the noise, and a bound on the mean: what one draw does not tell."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from dpci import _core
from dpci._utility_metrics import CallerMetric, RowMetric
from dpci._utility_path import BudgetPath

_F64: TypeAlias = NDArray[np.float64]

# Nodes of the mixture of Gaussians that is the spherical Laplace law.
_MIXTURE_NODES = 5


class ExpectedUtility(NamedTuple):
    """Mean and standard deviation of a utility over the noise, each in the shape of the budgets asked for."""

    mean: _F64
    std: _F64


class Quadratic(NamedTuple):
    """A metric around the minimiser without noise: ``Var F = a v + b v²`` for noise of coordinate variance v."""

    center: _core.UtilityCenter
    value: float
    gradient: _F64
    hessian: _F64
    """Of the metric, in coordinates where the parameters' covariance is v times the identity."""
    linear: float
    square: float


def expected_at(
    utility: _core.Utility, metric: RowMetric | CallerMetric, quadratic: Quadratic, spec: _core.Spec
) -> tuple[float, float]:
    """Return mean and standard deviation of the metric over the noise of a specification."""
    variances, weights = mixture(spec.noise_law, spec.noise_scale, len(quadratic.gradient))
    means = np.array([_mean(utility, metric, quadratic, variance) for variance in variances])
    mean = float(weights @ means)
    within = weights @ (quadratic.linear * variances + quadratic.square * variances**2)
    return mean, float(np.sqrt(within + weights @ (means - mean) ** 2))


def expand(
    utility: _core.Utility, metric: RowMetric | CallerMetric, path: BudgetPath, l2_strength: float, start: _F64 | None
) -> Quadratic:
    """Return the metric to second order around the minimiser without noise, at a λ."""
    center = utility.center(l2_strength, start=start)
    params = center.params
    gradient, hessian = metric.derivatives(params)
    if path.settings.checked_mechanism.name == "objective":
        # The parameters move by H⁻¹b/n.
        inverse = np.linalg.inv(center.hessian) / path.n_public
        gradient_seen, hessian_seen = inverse @ gradient, inverse @ hessian @ inverse
    else:
        gradient_seen, hessian_seen = gradient, hessian
    return Quadratic(
        center,
        float(metric.values(params[np.newaxis])[0]),
        gradient,
        hessian_seen,
        float(gradient_seen @ gradient_seen),
        float((hessian_seen**2).sum() / 2.0),
    )


def mixture(law: str, scale: float, dim: int) -> tuple[_F64, _F64]:
    """Return variances and weights of the Gaussians that make up a noise law.

    Spherical Laplace noise of rate γ is √Ω N(0, I) with Ω ~ Gamma((dim + 1)/2, rate γ²/2); the nodes are those of the
    Gauss quadrature for that law, whose Jacobi matrix is generalised Laguerre's.
    """
    if law == "gaussian":
        return np.array([scale**2]), np.array([1.0])
    k, alpha = np.arange(_MIXTURE_NODES), (dim - 1) / 2.0
    nodes, vectors = eigh_tridiagonal(2.0 * k + alpha + 1.0, np.sqrt(k[1:] * (k[1:] + alpha)))
    return 2.0 * scale**2 * nodes, vectors[0] ** 2


def coordinate_variance(spec: _core.Spec, dim: int) -> float:
    """Return the variance of one coordinate of a specification's noise."""
    return spec.noise_scale**2 * (1.0 if spec.noise_law == "gaussian" else dim + 1.0)


def worst_case_loss(path: BudgetPath, value: float, center: _core.UtilityCenter, loss: float) -> float:
    """Return a bound on the mean loss averaged over the noise, given the minimiser without noise and its mean loss.

    Objective perturbation: strong convexity bounds the perturbed minimiser's regularised risk by that of the minimiser
    plus ‖b/n‖²/(2λ), and Kifer et al.'s extra regulariser costs (Δ/2n)‖θ̂‖². Output perturbation: the noise has mean zero
    and the loss along a row at most the curvature t, so ½tR² times the variance of a coordinate.
    """
    params = center.params
    dim, n = len(params), path.n_public
    spec = path.spec(value)
    variance = coordinate_variance(spec, dim)
    if path.settings.checked_mechanism.name == "output":
        return loss + path.settings.core_loss.curvature_bound * path.row_norm**2 * variance / 2.0
    l2_strength = path.l2_strength(value)
    excess = l2_strength / 2.0 * float(params @ params) + dim * variance / (2.0 * n**2 * l2_strength)
    return loss + excess * n / path.n_samples


def _mean(utility: _core.Utility, metric: RowMetric | CallerMetric, quadratic: Quadratic, variance: float) -> float:
    """Mean of the metric over Gaussian noise of this variance."""
    shift = utility.mean_shift(quadratic.center, variance)
    if isinstance(metric, RowMetric):
        return utility.expected_mean(quadratic.center, variance, shift, width=metric.width)
    curved = variance * float(np.trace(quadratic.hessian)) / 2.0
    return quadratic.value + curved + float(quadratic.gradient @ shift)
