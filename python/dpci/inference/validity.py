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
from dpci.accounting.costs import noise_of
from dpci.losses import COUNTS, WITHOUT_INTERVALS, Hinge
from dpci.released.calibration import last_step
from dpci.released.newton import Newton
from dpci.released.record import NOISE_AWARE, FitRecord

FALSE_RATE = 1e-3
"""Probability of intervals where the bound binds, at most, by the normal approximation on which the intervals rest."""

TRUSTED_NOISE = 0.5
"""Greatest :func:`moment_noise` with which a joint test of several rows keeps its size, as measured in real fits."""

_FEW = "the table may have too few records for this budget"
_ENDLESS_CLASSES = "the noise may be too great, the classes separable, or one of them too rare"
_ENDLESS_COUNTS = f"counts above 0 may be too rare, or {_FEW}"
_MORE = (
    "a new fit, with a greater budget, more records or fewer columns, must be approved and paid again; a column that "
    "is the sum of others can never be estimated"
)
_TOO_LITTLE = (
    f"too few records for this budget and these columns: the noise hides the coefficients. {_MORE.capitalize()}"
)
_UNFINISHED = {
    "hidden": _TOO_LITTLE,
    "half_hidden": _TOO_LITTLE,
    "separated": (
        "a predictor of ordinary size, got one of root mean square {:.3g} and standard deviation {:.3g} over the rows "
        "({ends})"
    ),
    "steep": (
        "that the steps end, got {:.2g} for the change of the predictor in the last step, times the predictor's root "
        "mean square, above {:.2g} ({ends}; or " + _MORE + ")"
    ),
    "growing": ("that the steps end, got a predictor that grew by {:.2g} in the last one, above {:.2g} ({ends})"),
    "moving": ("that the steps end, got a last step that moves the predictor by {:.2g}, above {:.2g} ({ends})"),
}
"""Why Newton steps may not have ended, by the names of the core, with the numbers that show it."""
_HIDING = {
    "hidden": "mean eigenvalue {:.3g}, where the noise reaches {:.3g}",
    "half_hidden": "the noise hides {:.0f} of {:.0f} directions",
}
"""The numbers behind :data:`_TOO_LITTLE`, for a full summary."""

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
    found = last_step(record, newton).unfinished()
    if found is None:
        return None
    name, numbers = found
    ends = _ENDLESS_CLASSES if record.classes else _ENDLESS_COUNTS if record.loss["name"] in COUNTS else _FEW
    text = _UNFINISHED[name].format(*numbers, ends=ends)
    return text if name in _HIDING else f"intervals require {text}"


def hiding(record: FitRecord) -> list[tuple[str, str]]:
    """Return the numbers which show that the noise hides a fit by Newton steps, as a fact of a full summary."""
    found = None if record.newton is None else last_step(record, record.newton).unfinished()
    if found is None or found[0] not in _HIDING:
        return []
    return [("  Hessian", _HIDING[found[0]].format(*found[1]))]


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
        shape = record.noise_blocks
        if record.noise_law == "shaped_gaussian" and shape is not None:
            noise = (record.noise_scale * gain) ** 2 * float(shape.metric().max())
            return norm - float(special.ndtri(2.0 * level)) * math.sqrt(variance + noise) <= radius
        if shape is not None:
            # The error is symmetric and logarithmically concave: P(|X| >= t sd) <= exp(1 - t) (Lovász & Vempala 2007).
            noise = (record.noise_scale * gain) ** 2 * (dim + 1.0) * (dim + 2.0) * float(shape.variances().max())
            return norm + math.sqrt(variance + noise) * (1.0 - math.log(4.0 * level)) <= radius
        law = _core.ErrorShape(record.noise_law, record.noise_scale, dim)
        error = law.half_widths(np.array([variance]), np.array([gain]), 1.0 - 4.0 * level)
        return norm + float(error[0]) <= radius
    least = radius + float(special.ndtri(level)) * math.sqrt(variance)
    return least > 0.0 and shorter_probability(record, norm, least) <= level


def hessian_noise(record: FitRecord, hessian: NDArray[np.float64]) -> float:
    """Return a bound on the noise in the released Hessian, which one in twenty exceeds, over its least eigenvalue."""
    # A Hessian that keeps its noise can have eigenvalues below lambda, which the true one has not.
    least = max(float(np.linalg.eigvalsh(hessian)[0]), record.strong_convexity)
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


def moment_noise(record: FitRecord, cov: NDArray[np.float64]) -> float:
    """Return the greater of the noise ratios of both released matrices; ``cov`` is that of the parameters' errors."""
    hessian = np.asarray(record.hessian)
    if record.newton is not None:
        # The Hessian is that of moved rows, and so is the covariance of their parameters.
        moved = np.linalg.solve(record.newton.map, np.linalg.solve(record.newton.map, cov).T)
        hessian = last_step(record, record.newton).raised_hessian
        return max(hessian_noise(record, hessian), gradient_noise(record, hessian, moved))
    if record.projection == NOISE_AWARE:
        # The true Hessian has no eigenvalues below the strong convexity.
        values, vectors = np.linalg.eigh(hessian)
        hessian = vectors * np.maximum(values, record.strong_convexity) @ vectors.T
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
    noise = noise_of(record.steps, matrix)
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
