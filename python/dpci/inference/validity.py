"""Whether released values show that the bound on the parameters does not bind: only then are there intervals.

On the sphere ||params|| = radius the gradient of the risk is not zero, and the sandwich formula does not hold. Whether
the minimiser lies there is private; what can be said from the released parameters alone is tested here.
Post-processing.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpci import _core
from dpci.inference.error_law import (
    NOISE_AWARE,
    ErrorLaw,
    gradients_of_likelihood,
    matrix_noise,
    noise_blocks,
    raised_hessian,
    sealed_noise,
    strong_convexity,
    width_of_curvature,
)
from dpci.losses import LOG_ODDS, WITHOUT_INTERVALS, Hinge
from dpci.released.fit_record import FitRecord
from dpci.released.newton import Newton

FALSE_RATE = 1e-3
"""Probability of intervals where the bound binds, at most, by the normal approximation on which the intervals rest."""

TRUSTED_NOISE = 0.5
"""Greatest :func:`moment_noise` with which a joint test of several rows keeps its size, as measured in real fits."""

SEEN_CURVATURE = 1.5
"""Least mean eigenvalue of the Hessian of round rows over the edge of its noise, with which a fit has intervals."""

# Root mean square change of the predictor in the last step, over the width of the loss, beyond which steps have not
# ended.
_LONGEST = 0.6
# Root mean square of the predictor over round rows beyond which almost every record is told by its columns, or by the
# constant alone, as where one class has less than two in a hundred records.
_FARTHEST = 4.0
# Standard deviation of the predictor beyond which the columns tell almost every record of a rare class.
_STEEPEST = 3.0
# Mean squared residual of odds over the variance that the start of the last step predicts, below which the coefficients
# still grow: at the target the two agree where the model holds, and tables have .8 to 1.5.
_LEAST_ERRORS = 0.7

# Variance of the predictor over rows, over that over rows weighted by their curvature, at most.
_FEW = 10.0

# Beyond this noncentrality the one-dimensional bound is as good, and the series of the exact law long.
_GREATEST_NONCENTRALITY = 1e4
_NODES = 400


def refusal(record: FitRecord) -> str | None:
    """Return why a fit has no intervals; None if it has.

    With ``radius`` W, intervals need a test at level :data:`FALSE_RATE` to reject "the minimiser over the ball lies on
    its boundary". Output perturbation: on the boundary the released norm would be that of a vector of length W plus the
    noise, whose law is known. Objective perturbation: the parameters would have fallen short of W by an error of the
    size of the intervals. The noise in the released matrices is part of both (docs/proofs/domains.md, "Intervals").
    """
    if record.hessian is None or record.gradient_cov is None:
        if record.loss["name"] == Hinge.name:
            return f"intervals require a loss with a Hessian, and {WITHOUT_INTERVALS}"
        return "intervals require released moments, got a fit with moments='none'"
    if record.newton is not None:
        return _unfinished(record, record.newton)
    if record.radius is None:
        return None
    norm = record.params_norm
    if norm < record.radius and _shows_slack(record, record.hessian, record.gradient_cov, norm, record.radius):
        return None
    return (
        "intervals require released values which show that the radius does not bind, got parameters of norm "
        f"{norm:.4g} too close to radius={record.radius:.4g} for the noise (use a greater l2_strength or "
        "budget, or a greater radius, with which the noise of losses of unbounded slope grows)"
    )


def _unfinished(record: FitRecord, newton: Newton) -> str | None:
    """Return why the last of the Newton steps may not end near the target; None if it does (docs/proofs/newton.md)."""
    hessian = raised_hessian(record, newton)
    values = np.linalg.eigvalsh(hessian)
    mean = float(values.mean())
    if mean < SEEN_CURVATURE * newton.edge:
        return (
            f"intervals require a Hessian that the noise does not hide, got a mean eigenvalue of {mean:.3g} where the "
            f"noise reaches {newton.edge:.3g} (use a greater budget, more records or fewer columns)"
        )
    size = float(newton.step @ hessian @ newton.step)
    moved, width = math.sqrt(size / newton.mean_curvature(hessian)), width_of_curvature(record)
    far, spread = _predictor(record, newton)
    errors = _errors(record)
    is_steep = far > _FARTHEST and (spread**2 > mean / newton.edge if errors is None else spread > _STEEPEST)
    if spread > _FARTHEST or is_steep:
        return (
            "intervals require a predictor that does not separate the classes, got one of root mean square "
            f"{far:.3g} and standard deviation {spread:.3g} over the rows (the classes may be separable, or one "
            "of them may be too rare)"
        )
    if errors is not None and errors < _LEAST_ERRORS:
        return (
            f"intervals require that the steps end, got squared residuals of {errors:.2f} times the variance that the "
            "model predicts (the classes may be separable, or one of them may be too rare)"
        )
    if moved > _LONGEST * width:
        return (
            f"intervals require that the steps end, got a last step that moves the predictor by {moved:.2g}, above "
            f"{_LONGEST * width:.2g} (the classes may be separable, or the table may have too few records)"
        )
    return None


def _errors(record: FitRecord) -> float | None:
    """Return the squared residuals over their predicted variance, both weighted by the squared lengths of moved rows.

    Two standard deviations of the noise are added, so that chance does not make them few. None where the two need not
    agree: for other losses than those of odds, and persons and weights; and under pure DP, whose noise hides them.
    """
    is_shown = record.notion != "pure" and gradients_of_likelihood(record)
    if record.loss["name"] not in LOG_ODDS or not is_shown:
        return None
    noise = 2.0 * math.sqrt(len(record.params)) * sealed_noise(record, "gradient_cov")
    return (float(np.trace(np.asarray(record.gradient_cov))) + noise) / float(np.trace(np.asarray(record.hessian)))


def _predictor(record: FitRecord, newton: Newton) -> tuple[float, float]:
    """Return root mean square and standard deviation of the predictor over round rows, whose squares have the mean I.

    Along directions that second moments hide rows hardly vary, and noise moves the parameters far: there the Hessian
    tells the variance, as ten times its part of the mean curvature, for it may be that of few rows. Rows have the mean
    v/|v|^2 where zv = 1 for each.
    """
    hessian = np.asarray(record.hessian)
    values, vectors = np.linalg.eigh(hessian)
    variances = np.where(
        values > 2.0 * newton.edge, _FEW * values / newton.mean_curvature(raised_hessian(record, newton)), 0
    )
    directions = newton.further @ vectors
    parts = np.minimum(1.0, np.sqrt(variances) / np.linalg.norm(directions, axis=0))
    params = directions @ (parts * (vectors.T @ newton.params))
    far = float(np.linalg.norm(params))
    if record.intercept_scale is None:
        return far, far
    last = np.zeros(len(params))
    last[-1] = 1.0 / record.intercept_scale
    v = np.linalg.lstsq(newton.round_map, last, rcond=None)[0]
    return far, float(np.linalg.norm(params - v * (v @ params) / (v @ v)))


def _shows_slack(
    record: FitRecord,
    hessian: NDArray[np.float64],
    gradient_cov: NDArray[np.float64],
    norm: float,
    radius: float,
) -> bool:
    # A quarter of the level each: noise of both matrices, sampling error, noise of the parameters.
    level = FALSE_RATE / 4.0
    dim = len(record.params)
    try:
        convexity = least_curvature(record, hessian, level)
        variance = greatest_variance(record, gradient_cov, convexity, level)
        gain = 1.0 / (record.divisor * convexity)
    except (ArithmeticError, np.linalg.LinAlgError):
        return False
    # Saved records may hold any numbers; those beyond the range of floats show nothing.
    if not (math.isfinite(variance) and math.isfinite(gain)):
        return False
    if record.mechanism == "objective":
        shape = noise_blocks(record)
        if record.noise_law == "shaped_gaussian" and shape is not None:
            noise = (record.noise_scale * gain) ** 2 * float(shape.metric().max())
            return norm - float(special.ndtri(2.0 * level)) * math.sqrt(variance + noise) <= radius
        if shape is not None:
            # The error is symmetric and logarithmically concave: P(|X| >= t sd) <= exp(1 - t) (Lovász & Vempala 2007).
            noise = (record.noise_scale * gain) ** 2 * (dim + 1.0) * (dim + 2.0) * float(shape.variances().max())
            return norm + math.sqrt(variance + noise) * (1.0 - math.log(4.0 * level)) <= radius
        law = (record.noise_law, record.noise_scale, dim)
        error = _core.exact_half_widths(np.array([variance]), np.array([gain]), *law, 1.0 - 4.0 * level)
        return norm + float(error[0]) <= radius
    least = radius + float(special.ndtri(level)) * math.sqrt(variance)
    return least > 0.0 and shorter_probability(record, norm, least) <= level


def hessian_noise(record: FitRecord, hessian: NDArray[np.float64]) -> float:
    """Return a bound on the noise in the released Hessian, which one in twenty exceeds, over its least eigenvalue."""
    # A Hessian that keeps its noise can have eigenvalues below lambda, which the true one has not.
    least = max(float(np.linalg.eigvalsh(hessian)[0]), strong_convexity(record))
    return noise_norm(record, "hessian", 0.05) / least if least > 0.0 else math.inf


def gradient_noise(record: FitRecord, hessian: NDArray[np.float64], cov: NDArray[np.float64]) -> float:
    """Return the same bound for the gradient covariance, over the smallest eigenvalue of ``n hessian cov hessian``.

    That is the covariance of the gradient's error, noise of the coefficients included, on which joint tests rest.
    """
    noise = noise_norm(record, "gradient_cov", 0.05)
    if noise == 0.0:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        whole = record.divisor * (hessian @ cov @ hessian)
    least = float(np.linalg.eigvalsh(whole)[0]) if np.isfinite(whole).all() else 0.0
    return noise / least if least > 0.0 else math.inf


def moment_noise(record: FitRecord, law: ErrorLaw) -> float:
    """Return the greater of the noise ratios of both released matrices, from released values alone."""
    fixed, mixed = law.parts(np.eye(law.dim))
    cov, hessian = fixed + mixed, np.asarray(record.hessian)
    if record.newton is not None:
        # The Hessian is that of moved rows, and so is the covariance of their parameters.
        moved = np.linalg.solve(record.newton.map, np.linalg.solve(record.newton.map, cov).T)
        hessian = raised_hessian(record, record.newton)
        return max(hessian_noise(record, hessian), gradient_noise(record, hessian, moved))
    if record.projection == NOISE_AWARE:
        # The true Hessian has no eigenvalues below the strong convexity.
        values, vectors = np.linalg.eigh(hessian)
        hessian = vectors * np.maximum(values, strong_convexity(record)) @ vectors.T
    return max(hessian_noise(record, hessian), gradient_noise(record, hessian, cov))


def least_curvature(record: FitRecord, hessian: NDArray[np.float64], level: float) -> float:
    """Return a lower confidence bound on the smallest eigenvalue of the exact Hessian, which is at least lambda."""
    released = float(np.linalg.eigvalsh(hessian)[0])
    noise = noise_norm(record, "hessian", level)
    floor = record.l2_strength if record.l2_strength > 0.0 else released
    return max(floor, released - noise)


def greatest_variance(record: FitRecord, gradient_cov: NDArray[np.float64], convexity: float, level: float) -> float:
    """Return an upper confidence bound on the variance of the sampling error in any direction.

    From the released covariance of the gradient and the size of its noise; for the squared loss also
    L² / (8 lambda n) without any release, since the covariance is at most L² / 2 times the Hessian's data part.
    """
    greatest = float(np.linalg.eigvalsh(gradient_cov)[-1]) + noise_norm(record, "gradient_cov", level)
    variance = max(greatest, 0.0) / (convexity**2 * record.divisor)
    if record.loss["name"] == "squared":
        variance = min(variance, record.slope_bound**2 / (8.0 * record.l2_strength * record.divisor))
    return variance


def noise_norm(record: FitRecord, matrix: Literal["hessian", "gradient_cov"], level: float) -> float:
    """Return a bound on the spectral norm of the noise in a matrix that fails with probability at most ``level``."""
    noise = matrix_noise(record, matrix)
    if noise is None:
        return 0.0 if record.steps[1:] else math.inf
    name, scale = noise
    dim = len(record.params)
    tail = math.sqrt(2.0 * math.log(2.0 / level))
    if name == "gaussian":
        # Off the diagonal the standard deviation is scale / sqrt(2): a GOE matrix, by Gaussian concentration.
        return scale * (math.sqrt(2.0 * dim) + tail)
    if name == "matrix_laplace":
        # The greater of two Wishart matrices of dim + 1 degrees of freedom (Davidson & Szarek 2001, Theorem II.13), or
        # of their traces, which are chi-squares: in up to five dimensions or so that is less.
        greatest = (math.sqrt(dim + 1.0) + math.sqrt(dim) + tail) ** 2
        return 0.5 * scale * min(greatest, float(special.chdtri(dim * (dim + 1.0), 0.5 * level)))
    # Spherical Laplace in all entries: its length.
    return scale * float(special.gammainccinv(dim * dim, level))


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
    deviations = np.sqrt(variances)
    along_the_vector = special.ndtr((norm - length) / deviations)
    with np.errstate(over="ignore"):
        noncentrality, square = (length / deviations) ** 2, (norm / deviations) ** 2
    exact = special.chndtr(square, dim, np.minimum(noncentrality, _GREATEST_NONCENTRALITY))
    usable = (noncentrality <= _GREATEST_NONCENTRALITY) & np.isfinite(exact)
    # The first is an upper bound, because the other coordinates only lengthen the sum.
    return np.where(usable, np.minimum(exact, along_the_vector), along_the_vector)
