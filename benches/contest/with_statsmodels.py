"""statsmodels as a contestant: penalised fits, and fits without a penalty with HC0 standard errors; not private."""

from collections.abc import Callable

import numpy as np
import statsmodels.api as sm
from problem import Problem
from scipy import sparse


def contestant(problem: Problem, solver: str) -> Callable[[float, int], dict]:
    X, terms = problem.X, problem.terms
    if sparse.issparse(X):
        raise TypeError("statsmodels takes dense rows only")
    labels = problem.labels

    def penalised(_: float, __: int) -> dict:
        # Its tolerances are those of scipy.optimize.minimize, which it does not let one set.
        model = sm.GLM(labels, X, family=sm.families.Binomial())
        return {"params": model.fit_regularized(alpha=terms.l2_strength, L1_wt=0, opt_method=solver).params}

    def ridge(_: float, __: int) -> dict:
        return {"params": sm.OLS(problem.y, X).fit_regularized(alpha=terms.l2_strength / 2, L1_wt=0).params}

    def robust(_: float, __: int) -> dict:
        if solver == "GLM":
            found = sm.GLM(labels, X, family=sm.families.Binomial()).fit(cov_type="HC0")
        else:
            found = sm.Logit(labels, X).fit(method="newton", cov_type="HC0", disp=0)
        errors = np.asarray(found.bse)
        if not np.isfinite(errors).all():
            raise ArithmeticError(f"{np.count_nonzero(~np.isfinite(errors))} of {len(errors)} standard errors are NaN")
        return {"params": found.params, "std_errors": errors}

    return robust if terms.task == "errors" else {"logistic": penalised, "squared": ridge}[terms.loss]
