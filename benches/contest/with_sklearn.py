"""scikit-learn as a contestant: logistic regression, ridge and linear support vector machines, not private."""

from collections.abc import Callable

from problem import Problem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

_MAX_ITER = 20_000


def contestant(problem: Problem, solver: str) -> Callable[[float, int], dict]:
    X, y, terms = problem.X, problem.y, problem.terms
    weight = 1 / (len(y) * terms.l2_strength)  # scikit-learn minimises C sum of losses + ||params||² / 2

    def logistic(tolerance: float, _: int) -> dict:
        model = LogisticRegression(C=weight, solver=solver, tol=tolerance, fit_intercept=False, max_iter=_MAX_ITER)
        return {"params": model.fit(X, y).coef_[0]}

    def ridge(tolerance: float | None, _: int) -> dict:
        # The sum of squares + alpha ||params||². Without its copy of the rows it is faster; without an intercept it
        # does not write to them.
        # A direct solver has no tolerance, but scikit-learn checks the argument.
        settings = {} if tolerance is None else {"tol": tolerance}
        model = Ridge(alpha=1 / (2 * weight), solver=solver, fit_intercept=False, copy_X=False, **settings)
        return {"params": model.fit(X, y).coef_}

    def hinge(tolerance: float, _: int) -> dict:
        # Its order of the rows is random: with a seed, the fits that count are the one that was found accurate.
        settings = {"fit_intercept": False, "max_iter": _MAX_ITER, "random_state": 0}
        model = LinearSVC(C=weight, loss="hinge", tol=tolerance, **settings)
        return {"params": model.fit(X, y).coef_[0]}

    return {"logistic": logistic, "squared": ridge, "hinge": hinge}[terms.loss]
