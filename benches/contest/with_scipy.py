"""SciPy as a contestant: the objective written in NumPy, its minimisers, and a Cholesky factor for least squares."""

from collections.abc import Callable

import numpy as np
from problem import Problem
from scipy import linalg, optimize

_MAX_ITER = 20_000


def logistic(margin: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, slope and curvature of the logistic loss."""
    # NumPy's exp and log are vectorised, which logaddexp and SciPy's expit are not.
    small = np.exp(-np.abs(margin))
    odds = np.where(margin > 0, small, 1.0) / (1 + small)
    return np.log(1 + small) - np.minimum(margin, 0), -odds, odds * (1 - odds)


def huber_hinge(margin: np.ndarray, h: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The hinge, quadratic where the margin is within h of 1."""
    gap = 1 + h - margin
    near = np.clip(gap, 0, 2 * h)
    return near**2 / (4 * h) + np.maximum(gap - 2 * h, 0), -near / (2 * h), (near == gap) / (2 * h)


def contestant(problem: Problem, solver: str) -> Callable[[float, int], dict]:
    X, y, terms = problem.X, problem.y, problem.terms
    n, k = X.shape
    strength = terms.l2_strength

    if terms.loss == "squared":

        def normal_equations(_: float, __: int) -> dict:
            gram = X.T @ X
            gram[np.diag_indices(k)] += n * strength / 2
            return {"params": linalg.solve(gram, X.T @ y, assume_a="pos", overwrite_a=True)}

        return normal_equations

    loss = {"logistic": logistic, "huber_hinge": huber_hinge}[terms.loss]

    def risk(params: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope, _ = loss(y * (X @ params))
        return value.mean() + strength / 2 * params @ params, X.T @ (y * slope) / n + strength * params

    def hessian(params: np.ndarray) -> np.ndarray:
        root = np.sqrt(loss(y * (X @ params))[2] / n)
        # NumPy sees the symmetry of a matrix times its own transpose, which halves the work.
        scaled = X * root[:, None]
        return scaled.T @ scaled + strength * np.eye(k)

    def product(params: np.ndarray, direction: np.ndarray) -> np.ndarray:
        curvature = loss(y * (X @ params))[2]
        return X.T @ (curvature * (X @ direction)) / n + strength * direction

    second = {"trust-exact": {"hess": hessian}, "trust-krylov": {"hessp": product}}.get(solver, {})

    def minimise(tolerance: float, _: int) -> dict:
        options = {"gtol": tolerance, "maxiter": _MAX_ITER}
        if solver == "L-BFGS-B":
            options |= {"ftol": 0.0, "maxfun": _MAX_ITER}
        found = optimize.minimize(risk, np.zeros(k), jac=True, method=solver, options=options, **second)
        return {"params": found.x}

    return minimise
