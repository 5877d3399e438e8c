"""diffprivlib as a contestant: logistic regression by objective perturbation, linear regression by noisy moments."""

from collections.abc import Callable

from diffprivlib.models import LinearRegression, LogisticRegression
from problem import Problem
from scipy import sparse


def contestant(problem: Problem, solver: str) -> Callable[[float, int], dict]:
    X, y, terms = problem.X, problem.y, problem.terms
    if sparse.issparse(X):
        X = sparse.csr_matrix(X)

    def logistic(tolerance: float, _: int) -> dict:
        model = LogisticRegression(
            epsilon=terms.epsilon,
            data_norm=terms.row_norm,
            C=1 / (len(y) * terms.l2_strength),
            tol=tolerance,
            fit_intercept=False,
            max_iter=20_000,
        )
        return {"params": model.fit(X, y).coef_[0]}

    def linear(_: float, __: int) -> dict:
        bounds = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0)}
        return {"params": LinearRegression(epsilon=terms.epsilon, fit_intercept=False, **bounds).fit(X, y).coef_}

    return {"linear": linear}.get(solver, logistic)
