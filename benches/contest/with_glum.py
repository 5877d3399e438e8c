"""glum as a contestant: penalised generalised linear models, with robust standard errors where asked; not private."""

from collections.abc import Callable

import numpy as np
import tabmat
from glum import GeneralizedLinearRegressor
from problem import Problem
from scipy import sparse


def contestant(problem: Problem, solver: str) -> Callable[[float, int], dict]:
    terms = problem.terms
    # glum's own matrices, made beforehand: dense rows column by column, sparse ones by column.
    if sparse.issparse(problem.X):
        X = tabmat.SparseMatrix(sparse.csc_matrix(problem.X))
    else:
        X = tabmat.DenseMatrix(np.asfortranarray(problem.X))
    n, k = X.shape
    logistic = terms.loss == "logistic"
    # glum minimises half the mean deviance, so half the mean square.
    alpha = terms.l2_strength if logistic else terms.l2_strength / 2
    y = problem.labels if logistic else problem.y

    def fit(tolerance: float, _: int) -> dict:
        model = GeneralizedLinearRegressor(
            family="binomial" if logistic else "normal",
            alpha=alpha,
            l1_ratio=0,
            fit_intercept=False,
            solver=solver,
            gradient_tol=tolerance,
            max_iter=20_000,
            copy_X=False,
            check_input=False,
        ).fit(X, y)
        found = {"params": model.coef_}
        if terms.task == "errors":
            cov = model.covariance_matrix(X, y, robust=True, expected_information=False)
            # glum gives HC1, which is HC0 times n / (n - k).
            found["std_errors"] = np.sqrt(np.diag(cov) * (n - k) / n)
        return found

    return fit
