"""Specifications along a utility curve as its budget varies, and mean and spread of a utility over the noise there."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.budgets import Budget, budget_from_parameters
from dpci.errors import RegularizationTooSmall
from dpci.model.settings import Settings
from dpci.utility.metrics import CallerMetric, RowMetric

_F64: TypeAlias = NDArray[np.float64]

# Share of the coefficients with calibration="paper", where the caller names no split.
_PAPER_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class BudgetPath:
    """The specifications of a fit as the first number of its budget varies: epsilon, or rho under zCDP.

    Attributes
    ----------
    settings : Settings
        Keywords of the fit at the measuring point.
    n_samples, n_columns : int
        Numbers of records, rows or persons, and of columns.
    """

    settings: Settings
    n_samples: int
    n_columns: int

    @property
    def number(self) -> str:
        """Name of what varies."""
        return next(iter(self.settings.budget.parameters()))

    @property
    def at(self) -> float:
        """Its value at the measuring point."""
        return next(iter(self.settings.budget.parameters().values()))

    @property
    def divisor(self) -> float:
        """Number that divides noise and sums of losses: that of records, or the total of weights over their bound."""
        n, weights = self.settings.public_n(self.n_samples), self.settings.weights
        return n if weights is None else weights.divisor(n)

    @property
    def adds_regularisation(self) -> bool:
        """Whether l2_strength grows as the budget shrinks: Kifer et al.'s mechanism."""
        settings = self.settings
        return (
            settings.mechanism.calibration == "paper"
            and settings.budget.notion == "approx"
            and settings.mechanism.name == "objective"
        )

    @property
    def row_norm(self) -> float:
        """Bound on the norm of a row with its intercept."""
        return math.hypot(self.settings.row_norm, self.settings.intercept or 0.0)

    def budget(self, value: float) -> Budget:
        """Return the budget with another first number."""
        budget = self.settings.budget
        return budget_from_parameters(budget.notion, {**budget.parameters(), self.number: value})

    def l2_strength(self, value: float) -> float:
        """Return λ, with ``2tR²/(nε)`` added for Kifer et al. (Theorem 1 of Li et al.), ε the coefficients' share."""
        base = self.settings.strength
        if not self.adds_regularisation:
            return base
        square = self.settings.core_loss.curvature_bound * self.row_norm**2
        return base + 2.0 * square / (self.divisor * self._share * _core.unsealed(value))

    def l2_slope(self, value: float) -> float:
        """Return the derivative of :meth:`l2_strength`."""
        return (self.settings.strength - self.l2_strength(value)) / value

    def spec(self, value: float) -> _core.Spec:
        """Return the specification that :func:`dpci.fit` would use at that budget.

        Raises
        ------
        RegularizationTooSmall
            Where objective perturbation has no noise to offer at so small a budget.
        """
        return self.settings.spec(
            self.n_samples, self.n_columns, budget=self.budget(value), l2_strength=self.l2_strength(value)
        )

    def least_offered(self, least: float, greatest: float, *, loudest: float = math.inf) -> float:
        """Return ``least``, or the next budget up to ``greatest`` with noise to offer, of a scale up to ``loudest``.

        Raises
        ------
        RegularizationTooSmall
            Where there is none at ``greatest`` either.
        """
        self.spec(greatest)
        if self._offers(least, loudest):
            return least
        refused, offered = math.log(least), math.log(greatest)
        for _ in range(40):
            middle = (refused + offered) / 2.0
            if self._offers(math.exp(middle), loudest):
                offered = middle
            else:
                refused = middle
        return min(math.exp(offered), greatest)

    def _offers(self, value: float, loudest: float) -> bool:
        try:
            return self.spec(value).noise_scale <= loudest
        except RegularizationTooSmall:
            return False

    @property
    def _share(self) -> float:
        mechanism = self.settings.mechanism
        if self.settings.moments == "none":
            return 1.0
        return _PAPER_SHARE if mechanism.split is None else mechanism.split[0]


# Nodes of the mixture of Gaussians that is the spherical Laplace law.
_MIXTURE_NODES = 5


class ExpectedUtility(NamedTuple):
    """Mean and standard deviation of a utility over the noise, each in the shape of the budgets asked for."""

    mean: _F64
    std: _F64


@dataclass(frozen=True)
class NoiseAverage:
    """A metric averaged over the noise, around the minimiser without noise at one λ."""

    utility: _core.Utility
    metric: RowMetric | CallerMetric
    path: BudgetPath
    center: _core.UtilityCenter

    def at(self, spec: _core.Spec) -> tuple[float, float]:
        """Return mean and standard deviation of the metric over the noise of a specification."""
        variances, weights = mixture(spec.noise_law, spec.noise_scale, len(self.center.params))
        means, spreads = np.array([self._gaussian(variance) for variance in variances]).T
        mean = weights @ means
        return float(mean), float(np.sqrt(weights @ (spreads + (means - mean) ** 2)))

    @cached_property
    def value(self) -> float:
        """The metric without noise."""
        return float(self.metric.values(self.center.params[np.newaxis])[0])

    @cached_property
    def _derivatives(self) -> tuple[_F64, _F64]:
        return self.metric.derivatives(self.center.params)

    @cached_property
    def _response(self) -> _F64:
        """How the parameters follow the noise: H⁻¹/n, or the identity for output perturbation."""
        if self.path.settings.mechanism.name == "output":
            return np.eye(len(self.center.params))
        return np.asarray(np.linalg.inv(self.center.hessian) / self.path.divisor)

    def _gaussian(self, variance: float) -> tuple[float, float]:
        """Mean and variance of the metric over Gaussian noise whose coordinates have this variance."""
        shift = self.utility.mean_shift(self.center, variance)
        if isinstance(self.metric, RowMetric):
            mean, gradient, hessian = self.utility.smoothed(self.center, variance, shift, width=self.metric.width)
            seen = self._response @ hessian @ self._response
        else:
            gradient, hessian = self._derivatives
            seen = self._response @ hessian @ self._response
            mean = self.value + float(gradient @ shift) + variance * float(np.trace(seen)) / 2.0
        linear = self._response @ gradient
        return mean, variance * float(linear @ linear) + variance**2 * float((seen**2).sum()) / 2.0


def average(
    utility: _core.Utility, metric: RowMetric | CallerMetric, path: BudgetPath, l2_strength: float, start: _F64 | None
) -> NoiseAverage:
    """Return the average of a metric over the noise at a λ; ``start`` is near the minimiser, if anything is known."""
    return NoiseAverage(utility, metric, path, utility.center(l2_strength, start=start))


def mixture(law: str, scale: float, dim: int) -> tuple[_F64, _F64]:
    """Return variances and weights of the Gaussians that make up a noise law.

    Spherical Laplace noise of rate γ is √Ω N(0, I) with Ω ~ Gamma((dim + 1)/2, rate γ²/2); the nodes are those of the
    Gauss quadrature for that law, whose Jacobi matrix is generalised Laguerre's.
    """
    if law == "gaussian":
        return np.array([scale**2]), np.array([1.0])
    from scipy.linalg import eigh_tridiagonal  # noqa: PLC0415  # slow to import, and curves alone need it

    k, alpha = np.arange(_MIXTURE_NODES), (dim - 1) / 2.0
    nodes, vectors = eigh_tridiagonal(2.0 * k + alpha + 1.0, np.sqrt(k[1:] * (k[1:] + alpha)))
    return np.asarray(2.0 * scale**2 * nodes), np.asarray(vectors[0] ** 2)


def worst_case_loss(path: BudgetPath, value: float, plain: NoiseAverage) -> float:
    """Return a bound on the mean loss averaged over the noise, given the minimiser at the caller's λ without noise.

    Objective perturbation: strong convexity bounds the perturbed minimiser's regularised risk by that of the minimiser
    plus ‖b/n‖²/(2λ), and Kifer et al.'s extra regulariser costs (Δ/2n)‖θ̂‖². Output perturbation: the noise has mean
    zero and the loss of a row at most the curvature t, so ½tR² times the variance of a coordinate.
    """
    params = plain.center.params
    dim, n = len(params), path.divisor
    spec = path.spec(value)
    variance = spec.noise_scale**2 * (1.0 if spec.noise_law == "gaussian" else dim + 1.0)
    if path.settings.mechanism.name == "output":
        return plain.value + path.settings.core_loss.curvature_bound * path.row_norm**2 * variance / 2.0
    l2_strength = path.l2_strength(value)
    excess = l2_strength / 2.0 * float(params @ params) + dim * variance / (2.0 * n**2 * l2_strength)
    # The risk divides sums of losses by n, their mean by what the records count together.
    return plain.value + excess * n / plain.utility.total
