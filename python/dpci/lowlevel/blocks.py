"""Typed building blocks for other libraries and for tests, and draws of noise; none of them is private by itself."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.base.threads import check_threads
from dpci.base.validation import (
    broken,
    check_choice,
    check_count,
    check_finite,
    check_fraction,
    check_intercept,
    check_positive,
    check_real,
    check_seed,
)
from dpci.data.arrays import Table, as_features, as_matrix, as_square, as_vector
from dpci.data.frames import check_same_index
from dpci.data.parts import DescribedParts, Partitions, PartRules, describe
from dpci.data.rows import Source, as_partitions
from dpci.errors import InvalidInput
from dpci.losses import LossLike, check_loss
from dpci.rows import Ball, RowsLike, core_rows, read_bounds

__all__ = [
    "Minimum",
    "checked_rows",
    "erm_value_and_gradient",
    "error_components",
    "exact_half_widths",
    "gaussian_delta",
    "gaussian_mu",
    "hessian_and_gradient_cov",
    "minimize_erm",
    "monte_carlo_interval",
    "weighted_gram",
]


_F64: TypeAlias = NDArray[np.float64]


NoiseLaw: TypeAlias = Literal["spherical_laplace", "gaussian"]
_LAWS: tuple[NoiseLaw, ...] = ("spherical_laplace", "gaussian")
Solver: TypeAlias = Literal["auto", "newton", "preconditioned", "lbfgs", "ball"]


@dataclass(frozen=True, eq=False)
class Minimum:
    """Not private by itself. A minimiser with its certificate.

    Attributes
    ----------
    params : numpy.ndarray of shape (k,)
        The minimiser, the intercept last.
    certificate : float
        Upper bound on the distance of ``params`` to the exact minimiser.
    n_iterations : int
        Number of iterations.
    solver : str
        "newton", "preconditioned" (L-BFGS with a Cholesky factor), "lbfgs", "ball" (Newton over a ball), or
        "multipliers" (always for the hinge).
    """

    params: _F64
    certificate: float
    n_iterations: int
    solver: str


def minimize_erm(
    X: Table | Partitions,
    y: ArrayLike | None = None,
    *,
    l2_strength: float,
    radius: float | None = None,
    loss: LossLike = "logistic",
    intercept: bool | float = False,
    linear_term: ArrayLike | None = None,
    start: ArrayLike | None = None,
    solver: Solver = "auto",
    tolerance: float = 1e-10,
    max_iterations: int = 1000,
    n_threads: int | None = None,
) -> Minimum:
    """Not private by itself. Minimise mean loss + (l2_strength / 2) ||params||² + linear_term · params.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_columns)
        Rows, of any norm; SciPy's sparse matrices and arrays stay sparse. Or rows in parts, such as
        :class:`dpci.Chunks`, or a Dask array or frame.
    y : array-like of shape (n_samples,)
        Targets: -1 and 1, or real numbers within the bounds of "squared", "soft_logistic" and custom losses with
        ``target_bounds``. For ``X`` in parts as in :func:`dpci.fit`.
    l2_strength : float
        Regularisation, above zero.
    radius : float, optional
        Minimise over ||params|| <= radius only. A custom loss with ``predictor_bound`` needs one that keeps the linear
        predictor of every row within it.
    loss : str or object of dpci.losses
        Loss.
    intercept : bool or float
        Whether a constant is appended to every row, or its size.
    linear_term : array-like of shape (k,), optional
        Perturbation of the mean objective.
    start : array-like of shape (k,), optional
        Starting point; None: zero.
    solver : {"auto", "newton", "preconditioned", "lbfgs", "ball"}
        "auto" chooses by size. With a radius it chooses "ball", which is for problems with a radius only.
    tolerance : float
        Bound on the certified distance to the minimiser.
    max_iterations : int
        Greatest number of steps in double precision. If the point then misses ``tolerance``, up to 200 further steps
        refine it in doubled precision, for losses that support this: all built-in ones. With ``solver="auto"``, no
        radius, a smooth built-in loss and at most 2048 parameters, the solver then continues until it finds a
        minimiser.
    n_threads : int, optional
        Threads; None: all cores.

    Raises
    ------
    InvalidInput
        For arguments out of range, or a loss that is not declared for all of the domain.
    NotConverged
        If the certificate does not reach the tolerance.
    """
    checked_loss, constant, n_threads = check_loss(loss), check_intercept(intercept), check_threads(n_threads)
    problem: dict[str, Any] = {
        "loss": checked_loss.to_core(),
        "l2_strength": check_positive("l2_strength", l2_strength),
        "radius": None if radius is None else check_positive("radius", radius),
        "intercept": constant,
        "linear_term": None if linear_term is None else _vector("linear_term", linear_term),
        "start": None if start is None else _vector("start", start),
        "solver": check_choice("solver", solver, ("auto", "newton", "preconditioned", "lbfgs", "ball")),
        "tolerance": check_positive("tolerance", tolerance),
        "max_iterations": check_count("max_iterations", max_iterations),
    }
    rows = _rows(X, y, PartRules.unbounded(checked_loss, constant, n_threads))
    found = _core.minimize_erm(rows, n_threads=n_threads, **problem)
    return Minimum(found["params"], found["certificate"], found["n_iterations"], found["solver"])


def erm_value_and_gradient(
    X: Table,
    y: ArrayLike,
    params: ArrayLike,
    *,
    l2_strength: float,
    loss: LossLike = "logistic",
    intercept: bool | float = False,
    n_threads: int | None = None,
) -> tuple[float, _F64]:
    """Not private by itself. Value and gradient, shape (k,), of the regularised mean objective at ``params``.

    A custom loss with ``predictor_bound`` is refused if a linear predictor exceeds it.
    """
    value, gradient = _core.erm_value_and_gradient(
        _core.Records(as_features(X).values, as_vector("y", y)),
        _vector("params", params),
        loss=check_loss(loss).to_core(),
        l2_strength=check_positive("l2_strength", l2_strength),
        intercept=check_intercept(intercept),
        n_threads=check_threads(n_threads),
    )
    check_finite("the risk", np.array([value]))
    return value, check_finite("the gradient", gradient)


def hessian_and_gradient_cov(
    X: Table | Partitions,
    y: ArrayLike | None,
    params: ArrayLike,
    *,
    l2_strength: float,
    loss: LossLike = "logistic",
    intercept: bool | float = False,
    n_threads: int | None = None,
) -> tuple[_F64, _F64]:
    """Not private by itself. Hessian of the regularised mean objective and covariance of one record's gradient.

    Both have shape (k, k); the covariance is mean(slope² x xᵀ) - l2_strength² params paramsᵀ, the covariance where the
    gradient of the objective vanishes. The hinge, which has no Hessian, is refused. So is a custom loss with
    ``predictor_bound`` if a linear predictor exceeds it. Rows in parts as in :func:`minimize_erm`.
    """
    checked_loss, constant, n_threads = check_loss(loss), check_intercept(intercept), check_threads(n_threads)
    point, core_loss = _vector("params", params), checked_loss.to_core()
    strength = check_positive("l2_strength", l2_strength)
    rows = _rows(X, y, PartRules.unbounded(checked_loss, constant, n_threads))
    hessian, gradient_cov = _core.hessian_and_gradient_cov(
        rows, point, loss=core_loss, l2_strength=strength, intercept=constant, n_threads=n_threads
    )
    return check_finite("the Hessian", hessian), check_finite("the gradient covariance", gradient_cov)


def _rows(X: Any, y: Any, rules: PartRules) -> _core.Records | DescribedParts:  # noqa: ANN401  # the caller's
    """Return rows and targets in memory, or rows in parts that were read once."""
    partitions = as_partitions(Source(X, y))
    if partitions is not None:
        return describe(partitions, rules)
    records = _core.Records(as_features(X).values, as_vector("y", y))
    check_same_index(X, y)
    return records


def checked_rows(
    X: Table,
    *,
    rows: RowsLike | None = None,
    intercept: bool | float = False,
    n_threads: int | None = None,
) -> _F64:
    """Not private by itself. The rows as a fit uses them, none longer than the bound (docs/certificates.md, "Rows").

    Parameters
    ----------
    X : array-like of shape (n_samples, n_columns)
        Rows; SciPy's sparse matrices and arrays are checked as such.
    rows : float, "clip", or object of dpci.rows, optional
        Public bounds of the rows: a number for their norm, or :class:`dpci.rows.Blocks`. None: norm 1. Rows, or blocks
        of rows, that exceed their bound by more than 1e-9 of it are refused; "clip", and ``dpci.rows.Clipped(bounds)``,
        scales them to the bound. Smaller excesses are always scaled.
    intercept : bool or float
        Whether a constant is appended to every row, or its size. It does not count towards the bound.

    Returns
    -------
    numpy.ndarray of shape (n_samples, k)

    Raises
    ------
    InvalidInput
        For entries that are not finite, for rows longer than 1e150, and for "weight".
    RowNormViolation
        For a row beyond the bound that is not clipped.
    """
    given, on_violation, _ = read_bounds(rows)
    if on_violation == "weight":
        raise broken("rows", "bounds that all returned rows obey, because they come without weights", rows)
    domain = given or Ball()
    features = as_features(X)
    domain.check_columns(features.shape[1])
    return _core.checked_rows(
        _core.Records(features.values, np.ones(features.shape[0])),
        row_norm=core_rows(domain),
        on_violation=on_violation,
        intercept=check_intercept(intercept),
        n_threads=check_threads(n_threads),
    )


def weighted_gram(X: Table, weights: ArrayLike, *, n_threads: int | None = None) -> _F64:
    """Not private by itself. XᵀWX for a diagonal W of ``weights`` (n_samples,), shape (n_columns, n_columns)."""
    gram = _core.weighted_gram(as_matrix(X).values, _vector("weights", weights), n_threads=check_threads(n_threads))
    return check_finite("the Gram matrix", gram)


def error_components(
    hessian: ArrayLike,
    gradient_cov: ArrayLike,
    n_samples: int,
    contrast: ArrayLike,
    *,
    mechanism: Literal["objective", "output"],
) -> tuple[_F64, _F64]:
    """Not private by itself. Sampling variance and noise multiplier of each row of ``contrast`` (m, k).

    Pass released matrices only. The error of a contrast is a sum of two independent parts: a normal variable with that
    variance, and the multiplier times one coordinate of the coefficients' noise (Wang, Kifer & Lee, section 4).
    """
    variance, multiplier = _core.error_components(
        as_square("hessian", hessian),
        as_square("gradient_cov", gradient_cov),
        check_count("n_samples", n_samples),
        check_choice("mechanism", mechanism, ("objective", "output")),
        as_matrix(contrast).values,
    )
    return check_finite("the variance", variance), check_finite("the multiplier", multiplier)


def exact_half_widths(
    variance: ArrayLike,
    multiplier: ArrayLike,
    *,
    noise_law: NoiseLaw,
    noise_scale: float,
    dim: int,
    level: float = 0.95,
) -> _F64:
    """Not private by itself. Half-widths of the exact intervals for the errors of :func:`error_components`.

    ``dim`` is the number of parameters. ``noise_scale`` is 1/rate of spherical Laplace noise, or the standard deviation
    of Gaussian noise.
    """
    v, a = _vector("variance", variance), _vector("multiplier", multiplier)
    widths = _shape(noise_law, noise_scale, dim).half_widths(v, a, check_fraction("level", level))
    return check_finite("every half width", widths)


def monte_carlo_interval(
    variance: ArrayLike,
    multiplier: ArrayLike,
    *,
    noise_law: NoiseLaw,
    noise_scale: float,
    dim: int,
    level: float = 0.95,
    n_draws: int = 10_000,
    seed: int | None = None,
) -> tuple[_F64, _F64]:
    """Not private by itself. Empirical lower and upper quantiles of the errors of :func:`error_components`.

    Add both to the estimate. All contrasts share the draws; each interval holds by itself.
    """
    v, a = _vector("variance", variance), _vector("multiplier", multiplier)
    shape, level = _shape(noise_law, noise_scale, dim), check_fraction("level", level)
    n_draws, seed = check_count("n_draws", n_draws), check_seed(seed)
    lower, upper = _core.monte_carlo_interval(shape, v, a, level, n_draws=n_draws, seed=seed)
    return check_finite("every quantile", lower), check_finite("every quantile", upper)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Not private by itself. Least delta of a Gaussian mechanism with sensitivity/std_dev = mu at ``epsilon`` >= 0.

    Exact (Balle & Wang 2018, Theorem 8).
    """
    return _core.gaussian_delta(check_real("epsilon", epsilon), check_positive("mu", mu))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Not private by itself. Greatest sensitivity/std_dev of a Gaussian mechanism that is (epsilon, delta)-DP."""
    return _core.gaussian_mu(check_real("epsilon", epsilon), check_fraction("delta", delta))


def _shape(noise_law: NoiseLaw, noise_scale: float, dim: int) -> _core.ErrorShape:
    law, scale = check_choice("noise_law", noise_law, _LAWS), check_positive("noise_scale", noise_scale)
    return _core.ErrorShape(law, scale, check_count("dim", dim))


def _vector(name: str, values: ArrayLike) -> _F64:
    return check_finite(name, as_vector(name, values))


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
