"""Scores of outputs by an attacker who knows both data sets: the log-ratio of the densities, or close to it."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.lowlevel.blocks import minimize_erm
from dpci.model.settings import Settings

_F64: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = tuple[_F64, _F64]

# Of a minimiser, far below the noise of any case.
_TOLERANCE = 1e-9


def fit_scores(settings: Settings, spec: _core.Spec, first: Rows, second: Rows, outputs: _F64) -> _F64:
    """Return the scores of releases of a fit, one a row: parameters, then lower triangles of the noisy matrices."""
    bounded = settings.radius is not None
    if bounded and (settings.mechanism.name == "objective" or settings.mechanism.project):
        # No density on the sphere: the parameters along the direction in which the neighbours pull.
        pull = np.subtract(*(_minimum(settings, spec, data) for data in (first, second)))
        return np.asarray(outputs[:, : len(pull)] @ (pull / np.linalg.norm(pull)))
    dim = first[0].shape[1]
    params, matrices = _parts(outputs, dim)
    # Noise is calibrated at the released norm. Taken at one point, because the score must be one function of an output,
    # whichever data set it came from: many scores lie at the end of their range, where the least difference tells.
    steps = _core.moment_steps(spec, float(np.linalg.norm(_minimum(settings, spec, first))))
    densities = [_fit_density(settings, spec, steps, data, (params, matrices)) for data in (first, second)]
    # Rounded, so that equal log-ratios are ties whatever the last bits.
    return np.asarray(np.round(densities[0] - densities[1], 9))


def report_scores(
    settings: Settings,
    scales: tuple[float, ...],
    target: float,
    count: float,
    outputs: _F64,
) -> _F64:
    """Log density of reports of one parameter, x = 1 so many times in the data: it, the gradient, the Hessian."""
    theta = np.ascontiguousarray(outputs[:, 0])
    n_public = settings.n_public or 0
    _, slopes, curvatures = settings.core_loss.evaluate(theta, np.full(len(theta), target))
    slope = count * slopes + n_public * settings.strength * theta
    curvature = count * curvatures + n_public * settings.strength
    # The noise that leads to these parameters is minus the gradient.
    total = np.log(curvature) - (slope / scales[0]) ** 2 / 2.0
    for released, exact, scale in zip(outputs.T[1:], (slope, curvature)[: len(scales) - 1], scales[1:], strict=True):
        total -= ((released - exact) / scale) ** 2 / 2.0
    return np.asarray(total)


def additive_scores(noise: str, scale: float, first: _F64, second: _F64, outputs: _F64) -> _F64:
    """Return the scores of known vectors plus independent noise: "laplace" or "gaussian"."""
    distances = [np.abs(outputs - center) / scale for center in (first, second)]
    sizes = [(d**2 / 2.0 if noise == "gaussian" else d).sum(axis=1) for d in distances]
    return np.asarray(sizes[1] - sizes[0])


def _parts(outputs: _F64, dim: int) -> tuple[_F64, list[_F64]]:
    """Parameters (n, d) and matrices (n, d, d) of rows."""
    params, *triangles = np.split(outputs, [dim, dim + dim * (dim + 1) // 2], axis=1)
    rows, columns = np.tril_indices(dim)
    matrices = []
    for triangle in triangles:
        if triangle.shape[1]:
            matrix = np.zeros((len(outputs), dim, dim))
            matrix[:, rows, columns] = matrix[:, columns, rows] = triangle
            matrices.append(matrix)
    return params, matrices


def _fit_density(
    settings: Settings,
    spec: _core.Spec,
    steps: list[_core.Step],
    data: Rows,
    parts: tuple[_F64, list[_F64]],
) -> _F64:
    """Log density on ``data``, up to what does not depend on the data; close to it for matrix Laplace noise."""
    (X, y), (theta, matrices) = data, parts
    n = settings.public_n(len(X))
    if settings.mechanism.name == "output":
        total = _log_noise(
            spec.noise_law, spec.noise_scale, np.linalg.norm(theta - _minimum(settings, spec, data), axis=1)
        )
    else:
        total = np.zeros(len(theta))
    if settings.mechanism.name == "output" and not matrices:
        return total
    u = theta @ X.T
    _, slopes, curvatures = settings.core_loss.evaluate(u.ravel(), np.tile(y, len(theta)))
    slopes, curvatures = slopes.reshape(u.shape), curvatures.reshape(u.shape)
    squares = X[:, :, None] * X[:, None, :]
    if settings.mechanism.name == "objective":
        ridge = n * spec.l2_strength
        jacobian = np.einsum("rn,nij->rij", curvatures, squares) + ridge * np.eye(X.shape[1])
        noise = np.linalg.norm(slopes @ X + ridge * theta, axis=1)
        total += np.linalg.slogdet(jacobian)[1] + _log_noise(spec.noise_law, spec.noise_scale, noise)
    if matrices:
        joint = len(steps) == 1
        scales = (steps[0].hessian_scale, steps[0].scale) if joint else tuple(s.scale for s in steps)
        for noisy, weights, scale in zip(matrices, (curvatures, slopes**2), scales, strict=True):
            if not scale:  # nothing was released
                continue
            error = noisy - np.einsum("rn,nij->rij", weights, squares) / n
            nuclear = steps[-1].noise == "matrix_laplace"
            size = np.abs(np.linalg.eigvalsh(error)).sum(axis=1) if nuclear else np.linalg.norm(error, axis=(1, 2))
            total += _log_noise(steps[-1].noise, scale, size)
    return total


def _minimum(settings: Settings, spec: _core.Spec, data: Rows) -> _F64:
    X, y = data
    return minimize_erm(
        X,
        y,
        loss=settings.loss,
        # Of the mean over the public number of records.
        l2_strength=spec.l2_strength * settings.public_n(len(X)) / len(X),
        radius=settings.radius,
        tolerance=_TOLERANCE,
    ).params


def _log_noise(law: str, scale: float, size: _F64) -> _F64:
    return -((size / scale) ** 2) / 2.0 if law == "gaussian" else -size / scale
