"""The opponent of the replicate benchmark: one bootstrap replicate with intervals in plain NumPy and SciPy.

Logistic loss, objective perturbation with spherical Laplace noise, joint moments, eigenvalue floor: what dpci.fit does
under pure differential privacy (docs/method.md). What can be done once is done once and costs a replicate nothing: the
full-data minimiser, the noise scales (from dpci.plan) and a table of interval quantiles.
"""

import functools
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.interpolate import CubicSpline
from scipy.special import erf, expit, roots_genlaguerre

import dpci

F64: TypeAlias = NDArray[np.float64]
Resampling: TypeAlias = Literal["plain", "rows", "weights", "distinct"]

LEVEL = 0.95
# Weight of the Hessian against the gradient covariance in the joint release under pure differential privacy.
_HESSIAN_WEIGHT = 2.0
_QUANTILE_KNOTS = 65
_MIXING_NODES = 100


@functools.cache
def quantile_table(dim: int) -> CubicSpline:
    """Quantile of |sqrt(1 - t + t W) N| with W gamma of shape (dim + 1) / 2 and mean 1, as a function of t in [0, 1].

    An interval's half width is its standard deviation times this, where t is the noise's share of the variance.
    """
    shape = (dim + 1) / 2
    nodes, masses = roots_genlaguerre(_MIXING_NODES, shape - 1)
    mixing, masses = nodes / shape, masses / masses.sum()

    def excess(q: float, t: float) -> float:
        return float(masses @ erf(q / np.sqrt(2 * (1 - t + t * mixing)))) - LEVEL

    knots = np.linspace(0, 1, _QUANTILE_KNOTS)
    return CubicSpline(knots, [optimize.brentq(excess, 0.5, 8.0, args=(t,), xtol=1e-12) for t in knots])


@dataclass(frozen=True)
class Sample:
    """A bootstrap sample: signed rows y x as columns, and how often each counts (None: once)."""

    columns: F64
    weights: F64 | None

    def weighted(self, values: F64) -> F64:
        """Multiply one value of each row by its weight, in place."""
        return values if self.weights is None else np.multiply(values, self.weights, out=values)


class Opponent:
    """Bootstrap replicates of one data set.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows of norm at most 1.
    y : ndarray of shape (n,)
        -1 and 1.
    epsilon : float
        Budget of a replicate, shared out as dpci.fit does.
    l2_strength : float
        Regularisation.
    resampling : {"plain", "rows", "weights", "distinct"}
        "plain" is written as usual: see :class:`PlainOpponent`. The others are tuned: "rows" copies the rows that were
        drawn into one buffer; "weights" counts how often each row was drawn and weights all rows, one column each, over
        which NumPy's loops are long and fast; "distinct" does so with the distinct rows.
    """

    def __init__(self, X: F64, y: F64, *, epsilon: float, l2_strength: float, resampling: Resampling) -> None:
        self.n, self.dim = X.shape
        self.l2_strength = l2_strength
        self.resampling = resampling
        keywords = {
            "budget": dpci.PureDP(epsilon),
            "l2_strength": l2_strength,
            "rows": dpci.rows.Within(intercept=False),
        }
        keywords["mechanism"] = dpci.ObjectivePerturbation(projection="floor")
        plan = dpci.plan(n_samples=self.n, n_features=self.dim, **keywords)
        coefficients, moments = plan.steps
        self.tolerance, self.noise_scale = plan.tolerance, coefficients.scale
        self.moments_epsilon = moments.cost
        self.target = dpci.lowlevel.minimize_erm(X, y, l2_strength=l2_strength, tolerance=self.tolerance).params
        self.quantiles = quantile_table(self.dim)
        # The logistic loss of a record, and everything made of it, depends on y x alone.
        rows = X * y[:, None]
        self._owner: NDArray[np.intp] | None = None
        if resampling == "distinct":
            rows, owner = np.unique(rows, axis=0, return_inverse=True)
            self._owner = owner.ravel()
        self.n_rows = len(rows)
        # Both are (d, rows); the copy that "rows" makes is one contiguous row for each record.
        self._columns = rows.T if resampling in {"plain", "rows"} else np.ascontiguousarray(rows.T)
        self._copy = np.empty_like(rows) if resampling == "rows" else None
        self._scaled = np.empty_like(self._columns)

    def draw(self, generator: np.random.Generator) -> NDArray[np.intp]:
        """Draw the numbers of the records of a sample."""
        return generator.integers(self.n, size=self.n)

    def sample(self, drawn: NDArray[np.intp]) -> Sample:
        """Return the sample that consists of these records."""
        if self._copy is not None:
            # The indices are in range, and "clip" spares the buffer that mode="raise" needs.
            return Sample(np.take(self._columns.T, drawn, axis=0, out=self._copy, mode="clip").T, None)
        counted = drawn if self._owner is None else self._owner[drawn]
        return Sample(self._columns, np.bincount(counted, minlength=self.n_rows).astype(float))

    def coefficient_noise(self, generator: np.random.Generator) -> F64:
        """Draw b of the density proportional to exp(-||b|| / scale)."""
        direction = generator.standard_normal(self.dim)
        return direction * (generator.gamma(self.dim, self.noise_scale) / np.linalg.norm(direction))

    def minimize(self, sample: Sample, b: F64) -> tuple[F64, F64]:
        """Newton's method from the full-data minimiser: the perturbed minimiser, and -slope of each row there.

        It stops at dpci's certificate, a gradient of norm at most lambda times the tolerance.
        """
        params = self.target.copy()
        for _ in range(50):
            slopes = expit(-(params @ sample.columns))
            gradient = self.l2_strength * params + b / self.n
            gradient -= sample.columns @ sample.weighted(slopes.copy()) / self.n
            if np.linalg.norm(gradient) <= self.l2_strength * self.tolerance:
                return params, slopes
            hessian = self._mean_products(sample, slopes * (1 - slopes)) + self.l2_strength * np.eye(self.dim)
            params -= np.linalg.solve(hessian, gradient)
        raise RuntimeError("Newton's method must meet the certificate within 50 steps")

    def replicate(self, generator: np.random.Generator) -> tuple[F64, F64, F64]:
        """Draw a sample, fit it privately, and return the parameters and the bounds of their intervals."""
        sample = self.sample(self.draw(generator))
        params, slopes = self.minimize(sample, self.coefficient_noise(generator))
        hessian = self._mean_products(sample, slopes * (1 - slopes))
        gradient_cov = self._mean_products(sample, slopes**2)
        half_widths = self._half_widths(params, hessian, gradient_cov, generator)
        return params, params - half_widths, params + half_widths

    def _mean_products(self, sample: Sample, values: F64) -> F64:
        """Mean of value · x xᵀ over the sample's records; ``values`` is overwritten."""
        root = np.sqrt(sample.weighted(values), out=values)
        scaled = np.multiply(sample.columns, root, out=self._scaled)
        return scaled @ scaled.T / self.n  # NumPy sees the symmetry, which halves the work

    def _half_widths(self, params: F64, hessian: F64, gradient_cov: F64, generator: np.random.Generator) -> F64:
        # Joint release by matrix Laplace noise, calibrated to the greatest slope within the released norm.
        steepest = expit(np.linalg.norm(params))
        greatest = _HESSIAN_WEIGHT * steepest * (1 - steepest) + steepest**2
        scale = 2 * greatest / (self.n * self.moments_epsilon)
        hessian = (
            hessian + self._matrix_laplace(scale / _HESSIAN_WEIGHT, generator) + self.l2_strength * np.eye(self.dim)
        )
        gradient_cov = (
            gradient_cov + self._matrix_laplace(scale, generator) - self.l2_strength**2 * np.outer(params, params)
        )
        values, vectors = np.linalg.eigh(hessian)
        inverse = (vectors / np.maximum(values, self.l2_strength)) @ vectors.T
        values, vectors = np.linalg.eigh(gradient_cov)
        root = inverse @ (vectors * np.sqrt(np.maximum(values, 0)))
        sampling = (root**2).sum(axis=1) / self.n
        # One coordinate of b has variance E[W] = (d + 1) scale².
        noise = (inverse**2).sum(axis=1) / self.n**2 * (self.dim + 1) * self.noise_scale**2
        variance = sampling + noise
        return np.sqrt(variance) * self.quantiles(noise / variance)

    def _matrix_laplace(self, scale: float, generator: np.random.Generator) -> F64:
        """Difference of two Wishart matrices with d + 1 degrees of freedom."""
        plus, minus = generator.standard_normal((2, self.dim + 1, self.dim))
        return (plus.T @ plus - minus.T @ minus) * (scale / 2)


class PlainOpponent(Opponent):
    """The same replicate as one would write it at first: index the rows, then Newton's method as in a textbook."""

    def __init__(self, X: F64, y: F64, *, epsilon: float, l2_strength: float) -> None:
        super().__init__(X, y, epsilon=epsilon, l2_strength=l2_strength, resampling="plain")
        self._X, self._y = X, y

    def sample(self, drawn: NDArray[np.intp]) -> Sample:
        """Return the sample that consists of these records, as signed rows."""
        X, y = self._X[drawn], self._y[drawn]
        return Sample((X * y[:, None]).T, None)

    def minimize(self, sample: Sample, b: F64) -> tuple[F64, F64]:
        """Newton's method as in the other opponents."""
        rows, params = sample.columns.T, self.target.copy()
        for _ in range(50):
            slopes = expit(-(rows @ params))
            gradient = -(rows.T @ slopes) / self.n + self.l2_strength * params + b / self.n
            if np.linalg.norm(gradient) <= self.l2_strength * self.tolerance:
                return params, slopes
            hessian = self._mean_products(sample, slopes * (1 - slopes)) + self.l2_strength * np.eye(self.dim)
            params -= np.linalg.solve(hessian, gradient)
        raise RuntimeError("Newton's method must meet the certificate within 50 steps")

    def _mean_products(self, sample: Sample, values: F64) -> F64:
        rows = sample.columns.T
        return (rows * values[:, None]).T @ rows / self.n


def opponent(X: F64, y: F64, resampling: Resampling, *, epsilon: float, l2_strength: float) -> Opponent:
    """Return the opponent of this kind."""
    if resampling == "plain":
        return PlainOpponent(X, y, epsilon=epsilon, l2_strength=l2_strength)
    return Opponent(X, y, epsilon=epsilon, l2_strength=l2_strength, resampling=resampling)
