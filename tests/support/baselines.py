"""The functional mechanism in NumPy, the worst pairs of records for it, and small data for the baselines."""

import functools

import numpy as np

import dpci

WEIGHTS = {"squared": (1.0, 2.0), "logistic": (0.125, 0.5)}
"""Coefficients of (xθ)² and of y·xθ in the polynomial of a loss: q and k below."""

N, D = 400, 3
BUDGET = dpci.PureDP(1.0)


def make_rows(n=N, d=D, seed=3):
    """Rows of norm at most 1 with real targets within ±1 and labels."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, d)) / np.sqrt(d)
    u = X @ np.linspace(1.0, -0.5, d)
    y = np.clip(u + 0.1 * rng.standard_normal(n), -1.0, 1.0)
    return X, y, np.where(u + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)


def symmetric(d, coordinates, factor):
    """The symmetric matrix with this lower triangle, row by row, entries off the diagonal times ``factor``."""
    matrix = np.zeros((d, d))
    matrix[np.tril_indices(d)] = coordinates
    off = factor * np.tril(matrix, -1)
    return np.diag(np.diag(matrix)) + off + off.T


def minimize_polynomial(
    X, y, *, loss, quadratic_noise, linear_noise, std_dev, row_norm=1.0, target_bound=1.0, ridge=0.0
):
    """The minimiser over the directions that stay positive; noise in units of R² and RB, ``ridge`` = nλ/2."""
    q, k = WEIGHTS[loss]
    Q = q * X.T @ X + row_norm**2 * (quadratic_noise + 4.0 * std_dev * np.eye(X.shape[1])) + ridge * np.eye(X.shape[1])
    c = k * X.T @ y + row_norm * target_bound * linear_noise
    values, vectors = np.linalg.eigh(Q)
    keep = values > 0.0
    V = vectors[:, keep]
    return V @ ((V.T @ (c / 2.0)) / values[keep])


def varied_rows(d, loss, count=8):
    """Data sets whose models point in all directions."""
    for seed in range(count):
        rng = np.random.default_rng(1000 + seed)
        x = rng.uniform(-1.0, 1.0, size=(N, d)) * rng.uniform(0.2, 1.0, d) / np.sqrt(d)
        u = x @ rng.standard_normal(d)
        yield x, np.clip(u, -1.0, 1.0) if loss == "squared" else np.where(u > 0.0, 1.0, -1.0)


def recover_noise(models, *, loss, std_dev, row_norm=1.0, target_bound=1.0):
    """Noise M and l of the coefficients, in units of R² and RB, that models of one seed share; what stays unexplained.

    A model is (X, y, ridge, params) with no direction dropped: equations (Q + R²M)θ = (c + RB·l)/2, linear in M and l.
    """
    q, k = WEIGHTS[loss]
    d = models[0][0].shape[1]
    pairs = np.column_stack(np.tril_indices(d))
    left, right = [], []
    for x, y, ridge, theta in models:
        monomials = np.zeros((d, len(pairs)))
        for column, (i, j) in enumerate(pairs):
            monomials[j, column] = theta[i]
            monomials[i, column] = theta[j]
        Q = q * x.T @ x + (4.0 * row_norm**2 * std_dev + ridge) * np.eye(d)
        left.append(np.hstack([row_norm**2 * monomials, -0.5 * row_norm * target_bound * np.eye(d)]))
        right.append(0.5 * k * x.T @ y - Q @ theta)
    left, right = np.vstack(left), np.concatenate(right)
    found = np.linalg.lstsq(left, right)[0]
    unexplained = np.abs(left @ found - right).max() / np.abs(right).max()
    return symmetric(d, found[:-d], 1.0), found[-d:], unexplained


def coefficient_distance(x, y, z, w, loss):
    """L1 distance of the coefficients of two records, and L2 distance of their sums in isometric coordinates.

    Rows (..., d) and targets (..., 1), or numbers, give arrays of distances.
    """
    q, k = WEIGHTS[loss]
    gram, cross = x[..., :, None] * x[..., None, :] - z[..., :, None] * z[..., None, :], y * x - w * z
    l1 = q * np.abs(gram).sum(axis=(-2, -1)) + k * np.abs(cross).sum(axis=-1)
    return l1, np.sqrt((gram**2).sum(axis=(-2, -1)) + (cross**2).sum(axis=-1))


@functools.cache
def worst_pair(d, loss, *, n_starts=40, seed=0):
    """The greatest L1 distance that alternating maximisation over pairs of records finds, targets 1 and -1.

    Given the signs of all differences, the two records separate: each maximises a quadratic form on the ball, exactly.
    """
    q, k = WEIGHTS[loss]
    rng = np.random.default_rng(seed)
    best = 0.0
    for _ in range(n_starts):
        x, z = (v / np.linalg.norm(v) for v in rng.standard_normal((2, d)))
        reached = -1.0
        for _ in range(200):
            signs, linear = _sign(np.outer(x, x) - np.outer(z, z)), _sign(x + z)
            x, z = _maximizer(q * signs, k * linear), _maximizer(-q * signs, k * linear)
            value = coefficient_distance(x, 1.0, z, -1.0, loss)[0]
            if value <= reached + 1e-12:
                break
            reached = value
        best = max(best, reached)
    return best


def _sign(values):
    return np.where(values < 0.0, -1.0, 1.0)


def _maximizer(A, b):
    """The argmax of xᵀAx + bᵀx over the unit ball, by bisection in its multiplier."""
    values, vectors = np.linalg.eigh(A)
    g = vectors.T @ b / 2.0
    least = max(values[-1], 0.0) + 1e-12
    low, high = least, values[-1] + np.linalg.norm(b) + 1.0
    if np.sum((g / (least - values)) ** 2) < 1.0:
        x = g / (least - values)
        if (
            values[-1] > 0.0
        ):  # the rest of the norm goes along the top eigenvector, which the linear term is orthogonal to
            x[-1] += np.sqrt(1.0 - np.sum(x**2))
        return vectors @ x
    for _ in range(100):
        middle = 0.5 * (low + high)
        if np.sum((g / (middle - values)) ** 2) > 1.0:
            low = middle
        else:
            high = middle
    return vectors @ (g / (high - values))
