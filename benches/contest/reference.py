"""The exact answers that contestants are held against: minimisers, sandwich standard errors, errors on test rows.

Newton's method in NumPy, which shares no code with dpci.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from problem import Terms, load_rows
from scipy import sparse
from with_scipy import huber_hinge, logistic

import dpci

_STEPS = 100
# The certified distance to the minimiser, ||gradient|| / l2_strength, at which the reference stops if it can.
_CERTIFICATE = 1e-11


def squared(u: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (u - y) ** 2, 2 * (u - y), np.full(len(u), 2.0)


def derivatives(loss: str, u: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, slope and curvature of the loss in the linear predictor."""
    if loss == "squared":
        return squared(u, y)
    if loss == "hinge":
        near = y * u < 1
        return np.maximum(1 - y * u, 0), -y * near, np.zeros(len(u))
    value, slope, curvature = {"logistic": logistic, "huber_hinge": huber_hinge}[loss](y * u)
    return value, y * slope, curvature


def gram(X: np.ndarray | sparse.csr_array, weights: np.ndarray) -> np.ndarray:
    """Sum of weight x xᵀ."""
    if isinstance(X, np.ndarray):
        scaled = X * np.sqrt(weights)[:, None]
        return scaled.T @ scaled
    return (X.T @ (sparse.diags_array(weights) @ X)).toarray()


@dataclass(frozen=True)
class Reference:
    """Truth about a problem: minimiser, bound on its own error, sandwich standard errors, test rows."""

    params: np.ndarray
    certificate: float
    std_errors: np.ndarray | None
    test: tuple[np.ndarray | sparse.csr_array, np.ndarray]
    loss: str

    def distance(self, params: np.ndarray) -> float:
        return float(np.linalg.norm(np.asarray(params) - self.params))

    def on_test(self, params: np.ndarray) -> tuple[float, float]:
        """Mean loss, and share of right answers, on the test rows."""
        X, y = self.test
        u = X @ np.asarray(params)
        return float(derivatives(self.loss, u, y)[0].mean()), float((u * y > 0).mean())


def reference(folder: Path, terms: Terms) -> Reference:
    """Minimise, then form the sandwich; the hinge, which has no Hessian, is left to dpci's certificate."""
    X, y = load_rows(folder, "train")
    test = load_rows(folder, "test")
    if terms.loss == "hinge":
        found = dpci.lowlevel.minimize_erm(X, y, loss="hinge", l2_strength=terms.l2_strength, tolerance=1e-9)
        return Reference(found.params, found.certificate, None, test, terms.loss)
    n, k = X.shape
    strength, params = terms.l2_strength, np.zeros(k)

    def risk(params: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        value, slope, curvature = derivatives(terms.loss, X @ params, y)
        gradient = X.T @ slope / n + strength * params
        return value.mean() + strength / 2 * params @ params, gradient, slope, curvature

    value, gradient, slope, curvature = risk(params)
    best = params, gradient, slope, curvature
    for _ in range(_STEPS):
        step = np.linalg.solve(gram(X, curvature / n) + strength * np.eye(k), gradient)
        size = 1.0
        # Halved until the value falls, but for rounding.
        while risk(params - size * step)[0] > value + 1e-14 * abs(value):
            size /= 2
        params = params - size * step
        value, gradient, slope, curvature = risk(params)
        if np.linalg.norm(best[1]) <= np.linalg.norm(gradient) < 1e-13:
            break  # rounding is all that is left
        best = params, gradient, slope, curvature
        if np.linalg.norm(gradient) <= strength * _CERTIFICATE:
            break
    params, gradient, slope, curvature = best
    hessian = gram(X, curvature / n) + strength * np.eye(k)
    scores = gram(X, slope**2 / n) - strength**2 * np.outer(params, params)
    half = np.linalg.solve(hessian, scores)
    variance = np.diag(np.linalg.solve(hessian, half.T)) / n
    certificate = float(np.linalg.norm(gradient)) / strength
    return Reference(params, certificate, np.sqrt(variance), test, terms.loss)
