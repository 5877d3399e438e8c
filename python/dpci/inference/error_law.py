"""The joint law of the errors of released parameters: normal given a mixing variable, from released values alone."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.costs import Step
from dpci.errors import DpciError, InvalidInput
from dpci.released.calibration import newton_spec
from dpci.released.fit_record import FitRecord
from dpci.released.newton import Newton
from dpci.rows import core_blocks, core_rows

_F64 = NDArray[np.float64]

NOISE_AWARE = "noise_aware"
"""The projection of fits whose matrices are kept as they were released, with the noise in them counted."""

# Logarithms of what is left out of the mixing law on the left, where tails are least, and on the right, where they are
# greatest: nothing that a float can tell from 0.
_LEFT_CUT, _RIGHT_CUT = -38.0, -760.0
# Eigenvalues of a covariance that rounding alone could have made.
_DEPENDENT = 1e-12
# Draws that are made at once.
_BLOCK = 4096


@dataclass(frozen=True)
class ErrorLaw:
    """Law of ``target - params``: ``N(0, W (sampling + Omega * noise @ noise))`` given Omega and W.

    Noise in the shape of blocks is not a normal mixture: there it is ``sqrt(W) (N(0, sampling) + noise b)`` with b a
    gamma number times a uniform point of the blocks.

    W is the true variance over the estimated one, which noise in the released matrices leaves open
    (docs/proofs/intervals.md, "Intervals" and "Noise in the matrices").

    Attributes
    ----------
    sampling : numpy.ndarray of shape (k, k)
        Covariance of the sampling error; the seal's is kept apart because the noise, too, is independent of the data.
        Noise in the matrices can make it indefinite.
    noise : numpy.ndarray of shape (k, k)
        Matrix that multiplies the noise of the coefficients: H⁻¹/n (objective), I (output), or that of Newton steps.
    seal_variance : float
        Variance that the seal adds to each parameter, as if it were normal.
    law : str
        "gaussian", where Omega is fixed, "spherical_laplace", where it is Gamma((k+1)/2, scale 2 noise_scale²), or
        "shaped_laplace".
    scale : float
        Standard deviation, or 1/rate.
    least_sampling : numpy.ndarray of shape (k, k), or None
        A covariance that the sampling error has at least, along every contrast.
    factor : float
        Factor by which simulated releases multiplied both covariances by; 1 where the matrices are taken as they are.
    shape : float
        Shape of the gamma law of W, whose mean is 1; infinite where the matrices are taken as they are, and W is 1.
    blocks : RowDomain of the core, or None
        Blocks of the rows and their constant, of the law "shaped_laplace".
    metric : numpy.ndarray of shape (k,), or None
        Variances of the coordinates of Gaussian noise over ``scale``², if they differ.
    """

    sampling: _F64
    noise: _F64
    seal_variance: float
    law: str
    scale: float
    least_sampling: _F64 | None = None
    factor: float = 1.0
    shape: float = math.inf
    blocks: _core.RowDomain | None = None
    metric: _F64 | None = None

    @property
    def dim(self) -> int:
        """Number of parameters k."""
        return len(self.noise)

    @property
    def core_shape(self) -> _core.ErrorShape:
        """The laws of Omega and W as the core takes them."""
        return _core.ErrorShape(self.law, self.scale, self.dim, self.shape, self.blocks)

    @property
    def mean_omega(self) -> float:
        """Mean of Omega: the variance of one coordinate of the noise."""
        return self.scale**2 * (1 if self.law == "gaussian" else self.dim + 1)

    @property
    def noise_variances(self) -> _F64 | float:
        """Variance of each coordinate of the noise, or one number for all."""
        if self.metric is not None:
            return self.scale**2 * self.metric
        if self.blocks is None:
            return self.mean_omega
        return self.scale**2 * (self.dim + 1.0) * (self.dim + 2.0) * self.blocks.variances()

    def noise_variance(self, contrasts: _F64) -> _F64:
        """Return the variance of each contrast that the noise of the coefficients alone causes."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(((contrasts @ self.noise) ** 2 * self.noise_variances).sum(axis=1))

    def parts(self, contrasts: _F64) -> tuple[_F64, _F64]:
        """Return the covariances (m, m) of contrasts (m, k) without the noise, and of the noise at the mean Omega."""
        with np.errstate(over="ignore", invalid="ignore"):
            fixed = self._sampling(contrasts) + self.seal_variance * (contrasts @ contrasts.T)
            half = contrasts @ self.noise
            mixed = (half * self.noise_variances) @ half.T
        if not (np.isfinite(fixed).all() and np.isfinite(mixed).all()):
            raise InvalidInput("the covariance of the contrasts must be finite, got one beyond the range of floats")
        return fixed, mixed

    def components(self, contrasts: _F64) -> tuple[_F64, _F64]:
        """Return each contrast's variance without the noise, and its multiplier of one coordinate of the noise.

        Of noise in the shape of blocks the multipliers of all coordinates, by contrast, as the core takes them.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            variance = ((contrasts @ self.sampling) * contrasts).sum(axis=1)
            least = 0.0 if self.least_sampling is None else ((contrasts @ self.least_sampling) * contrasts).sum(axis=1)
            variance = np.maximum(variance, least) + self.seal_variance * (contrasts**2).sum(axis=1)
            half = self._half(contrasts)
            multiplier = np.linalg.norm(half, axis=1) if self.blocks is None else half.ravel()
        if not (np.isfinite(variance).all() and np.isfinite(multiplier).all()):
            raise InvalidInput("the variance of a contrast must be finite, got one beyond the range of floats")
        return variance, multiplier

    def _half(self, contrasts: _F64) -> _F64:
        """Return the multipliers of the coordinates of the noise, which all have one variance or are in blocks."""
        half = contrasts @ self.noise
        return half if self.metric is None else half * np.sqrt(self.metric)

    def _sampling(self, contrasts: _F64) -> _F64:
        """Return the covariance (m, m) of the sampling error of contrasts, nowhere below the smallest one."""
        found = contrasts @ self.sampling @ contrasts.T
        if self.least_sampling is None:
            return found
        least = contrasts @ self.least_sampling @ contrasts.T
        if not (np.isfinite(found).all() and np.isfinite(least).all()):
            raise InvalidInput("the covariance of the contrasts must be finite, got one beyond the range of floats")
        # In coordinates in which the least covariance is I, eigenvalues below 1 become 1.
        values, vectors = np.linalg.eigh(least)
        kept = values > _DEPENDENT * max(float(values[-1]), 0.0)
        root = vectors[:, kept] * np.sqrt(values[kept])
        inverse = vectors[:, kept] / np.sqrt(values[kept])
        ratios, axes = np.linalg.eigh(inverse.T @ found @ inverse)
        half = root @ axes * np.sqrt(np.maximum(ratios, 1.0))
        return np.asarray(half @ half.T)

    def draw(self, rng: np.random.Generator, contrasts: _F64, n: int) -> _F64:
        """Return n draws of the errors of contrasts, shape (n, m); nothing else of that size is held."""
        k = self.dim
        values, vectors = np.linalg.eigh(self._sampling(np.eye(k)) + self.seal_variance * np.eye(k))
        root = contrasts @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        # No more normals than contrasts, and QR keeps each contrast's own relative accuracy.
        fixed = np.linalg.qr(root.T, mode="r")
        noise = self._half(contrasts)
        mixed = np.linalg.qr(noise.T, mode="r")
        errors = np.empty((n, len(contrasts)))
        for first in range(0, n, _BLOCK):
            block = errors[first : first + _BLOCK]
            size = len(block)
            block[:] = rng.standard_normal((size, len(fixed))) @ fixed
            if self.blocks is not None:
                block += shaped_draws(rng, self.blocks, self.scale, size) @ noise.T
            else:
                omega = np.full((size, 1), self.scale**2)
                if self.law != "gaussian":
                    omega = 2.0 * self.scale**2 * rng.standard_gamma(0.5 * (k + 1), size=(size, 1))
                block += np.sqrt(omega) * (rng.standard_normal((size, len(mixed))) @ mixed)
            if math.isfinite(self.shape):
                block *= np.sqrt(rng.standard_gamma(self.shape, size=(size, 1)) / self.shape)
        return errors

    def half_widths(self, contrasts: _F64, level: float) -> _F64:
        """Return the half width of the interval of each contrast, without Monte Carlo error."""
        return self.half_widths_of(self.components(contrasts), level)

    def half_widths_of(self, components: tuple[_F64, _F64], level: float) -> _F64:
        """Return the same from what :meth:`components` gives."""
        v, a = components
        return self.core_shape.half_widths(v, a, level)

    def stretch(self, contrasts: _F64, level: float) -> _F64:
        """Return the length of each interval over that from the same estimated matrices, taken as exact."""
        if math.isinf(self.shape):
            return np.ones(len(contrasts))
        with np.errstate(all="ignore"):
            exact = replace(
                self,
                sampling=self.sampling / self.factor,
                noise=self.noise / math.sqrt(self.factor),
                least_sampling=None if self.least_sampling is None else self.least_sampling / self.factor,
                factor=1.0,
                shape=math.inf,
            )
        return self.half_widths(contrasts, level) / exact.half_widths(contrasts, level)

    @property
    def spread(self) -> float:
        """Standard deviation of W: how far the variance of a single error may be from its estimate, as a share."""
        return 0.0 if math.isinf(self.shape) else self.shape**-0.5

    def coverage_of_greater(self, contrasts: _F64, level: float) -> _F64:
        """Return the coverage of each interval if the variance of its error is above its estimate by :attr:`spread`."""
        times = 1.0 + self.spread
        with np.errstate(over="ignore"):
            greater = replace(
                self,
                sampling=times * self.sampling,
                noise=math.sqrt(times) * self.noise,
                seal_variance=times * self.seal_variance,
                least_sampling=None if self.least_sampling is None else times * self.least_sampling,
                shape=math.inf,
            )
        return 1.0 - greater.pvalues(contrasts, self.half_widths(contrasts, level))

    def pvalues(self, contrasts: _F64, statistic: _F64) -> _F64:
        """Return the probability of an error at least as far from 0 as the statistic of each contrast."""
        v, a = self.components(contrasts)
        return self.core_shape.pvalues(v, a, statistic)


def error_law(record: FitRecord) -> ErrorLaw:
    """Return the law of the errors of a fit from its released matrices.

    Raises
    ------
    InvalidInput
        If the Hessian, of a saved fit, is not positive definite, or a matrix is beyond the range of floats.
    """
    try:
        return _new_law(record) if record.newton is None else _newton_law(record, record.newton)
    except InvalidInput:
        raise
    except DpciError as error:
        raise InvalidInput(
            "the law of the errors must be within the range of floats, got matrices or scales beyond it"
        ) from error


def _new_law(record: FitRecord) -> ErrorLaw:
    hessian, gradient_cov = _released_matrices(record)
    if record.projection == NOISE_AWARE:
        law = _core.ErrorLaw.noise_aware(_noisy_matrices(record, hessian, gradient_cov))
    else:
        law = _core.ErrorLaw.plug_in(hessian, gradient_cov, record.divisor, record.mechanism)
    blocks, gaussian = noise_blocks(record), record.noise_law == "shaped_gaussian"
    return ErrorLaw(
        law.sampling,
        law.noise,
        sum(seal.std_dev**2 for seal in record.seals if seal.release == "params"),
        "gaussian" if gaussian else record.noise_law,
        record.noise_scale,
        law.least_sampling,
        law.factor,
        law.shape,
        None if gaussian else blocks,
        blocks.metric() if gaussian and blocks is not None else None,
    )


def estimated_matrices(record: FitRecord) -> tuple[_F64, _F64]:
    """Return the Hessian and the gradient covariance as estimated from the released ones."""
    hessian, gradient_cov = _released_matrices(record)
    if record.projection == NOISE_AWARE:
        return _core.estimated_matrices(_noisy_matrices(record, hessian, gradient_cov))
    return hessian, gradient_cov


def _released_matrices(record: FitRecord) -> tuple[_F64, _F64]:
    if record.hessian is None or record.gradient_cov is None:
        raise InvalidInput("a law of the errors needs released moments, got a record without them")
    return record.hessian, record.gradient_cov


def _noisy_matrices(record: FitRecord, hessian: _F64, gradient_cov: _F64) -> "_core.NoisyMatrices":
    noise = matrix_noise(record, "gradient_cov")
    if noise is None:
        raise InvalidInput("the gradient covariance of a noise-aware fit must have noise, got a record without it")
    return {
        "hessian": hessian,
        "gradient_cov": gradient_cov,
        "n_samples": record.divisor,
        "mechanism": record.mechanism,
        "noise_law": record.noise_law,
        "noise_scale": record.noise_scale,
        "l2_strength": record.l2_strength,
        "strong_convexity": strong_convexity(record),
        "hessian_noise": matrix_noise(record, "hessian"),
        "gradient_cov_noise": noise,
        "is_likelihood": gradients_of_likelihood(record),
        "may_be_flat": record.loss_facts.may_be_flat,
        "rows": core_blocks(record.rows, record.intercept_scale),
        "gradients": _gradients(record),
        "levels_scale": levels_scale(record),
    }


def _gradients(record: FitRecord) -> tuple[_F64, tuple[float, float], _core.RowDomain, float | None] | None:
    """Return the bounds on gradients of single records; None for the multinomial loss, which has several predictors."""
    if record.loss["name"] == "multinomial" or record.curvature_bound is None:
        return None
    rows = core_rows(record.rows)
    domain = rows if isinstance(rows, _core.RowDomain) else _core.RowDomain.ball(rows)
    return record.params, (record.slope_bound, record.curvature_bound), domain, record.intercept_scale


def last_step(record: FitRecord, newton: Newton) -> _core.LastStep:
    """Return the last step of a fit by Newton steps, which has the rules of its errors (docs/proofs/newton.md)."""
    return newton_spec(record).last_step(newton, *_released_matrices(record))


def hides_class(record: FitRecord, newton: Newton) -> bool:
    """Return whether noise hides the rarer class under pure DP, by the best constant predictor of the fit."""
    constant = float((newton.map @ newton.centre)[-1]) * (record.intercept_scale or 0.0)
    return newton_spec(record).hides_class(constant)


def _newton_law(record: FitRecord, newton: Newton) -> ErrorLaw:
    """Return the law of a fit by Newton steps: that of the last step from its start, and the map of the rows."""
    law = last_step(record, newton).law()
    return ErrorLaw(law.sampling, law.noise.T, 0.0, record.noise_law, record.noise_scale, law.least_sampling)


def noise_blocks(record: FitRecord) -> _core.RowDomain | None:
    """Return the blocks in whose shape the noise of the coefficients is, with their constant; None for other laws."""
    return core_blocks(record.rows, record.intercept_scale) if record.noise_law.startswith("shaped") else None


def shaped_draws(rng: np.random.Generator, blocks: _core.RowDomain, scale: float, n: int) -> _F64:
    """Return simulated noise in the shape of blocks, shape (n, k): never for a release."""
    members, bounds = np.array(blocks.members), np.array(blocks.bounds)
    dim = len(members)
    # A uniform point of an l1 ball of k dimensions: exponentials with random signs over the sum of k + 1 of them.
    size = rng.standard_exponential((n, dim))
    total = rng.standard_exponential((n, len(bounds))) + size @ (members[:, None] == np.arange(len(bounds)))
    signs = 2.0 * rng.integers(0, 2, (n, dim)) - 1.0
    radius = scale * rng.standard_gamma(dim + 1.0, (n, 1))
    return np.asarray(radius * signs * size * (bounds / total)[:, members])


def strong_convexity(record: FitRecord) -> float:
    """Return the least eigenvalue that the true Hessian can have: lambda, and what a loss of one parameter declares."""
    # A saved record may hold any norm: its square overflows to infinity, not to an error.
    declared = float(record.loss["strong_convexity"])
    return record.l2_strength + (declared * record.row_norm * record.row_norm if declared else 0.0)


def gradients_of_likelihood(record: FitRecord) -> bool:
    """Return whether the gradients are those of a likelihood: not with weights, or persons, whose rows depend."""
    # The multinomial loss, which has no declaration of one predictor, is one.
    likelihood = record.loss_facts.is_likelihood or record.loss["name"] == "multinomial"
    return likelihood and record.persons is None and record.weights is None


def matrix_noise(record: FitRecord, matrix: Literal["hessian", "gradient_cov"]) -> tuple[str, float] | None:
    """Return the name and the scale of the noise in a released matrix; None without noise."""
    return noise_of(record.steps, matrix)


def levels_scale(record: FitRecord) -> float | None:
    """Return the scale of the noise in the level totals; None without them."""
    return next((step.levels_scale for step in record.steps if step.step == "moments"), None)


def noise_of(taken: Iterable[Step], matrix: Literal["hessian", "gradient_cov"]) -> tuple[str, float] | None:
    """Return the same of the steps of a fit or of a plan."""
    steps = {step.step: step for step in taken}
    step = steps.get(matrix, steps.get("moments"))
    if step is None or step.noise == "none":
        return None
    scale = step.hessian_scale if step.step == "moments" and matrix == "hessian" else step.scale
    return None if scale is None else (step.noise, scale)


def mixing_nodes(law: str, dim: int, *, far: float = 2.0) -> tuple[_F64, _F64]:
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


def ratio_nodes(shape: float, n_nodes: int = 8) -> tuple[_F64, _F64]:
    """Return nodes and weights of W: Gauss's rule for its gamma law, exact for polynomials up to degree 2n - 1.

    From the eigenvalues of the Jacobi matrix of the generalised Laguerre polynomials (Golub & Welsch 1969).
    """
    if math.isinf(shape):
        return np.ones(1), np.ones(1)
    i = np.arange(n_nodes)
    off = np.sqrt(i[1:] * (i[1:] + shape - 1.0))
    nodes, vectors = np.linalg.eigh(np.diag(2.0 * i + shape) + np.diag(off, 1) + np.diag(off, -1))
    return nodes / shape, vectors[0] ** 2
