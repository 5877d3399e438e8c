"""A fit by Newton steps against solvers without privacy, and against a fit with a ridge, at 1,000,000 × 20.

Ours: parameters, matrices and 21 intervals, pinned to one core. Opponents at their best over one and two BLAS threads:
scikit-learn's newton-cholesky (tol 1e-10) and statsmodels' Logit with its covariance. Minimum of five. Run on an idle
machine.
"""

import warnings

import numpy as np
import statsmodels.api as sm
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import dpci
from _timing import minimum, pin, print_machine, table

N, D = 1_000_000, 20


@dpci.threads(1)
def main() -> None:
    """Print a table of times."""
    print_machine()
    warnings.simplefilter("ignore", dpci.DpciWarning)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (N, D)) / D**0.5
    y = rng.random(N) < expit(X @ np.linspace(-3.0, 3.0, D) - 1.0)
    X1 = np.column_stack([X, np.ones(N)])
    steps = lambda: dpci.fit(X, y, budget=dpci.ZCDP(0.5)).conf_int()  # noqa: E731
    ridge = lambda: dpci.fit(X, y, budget=dpci.ZCDP(0.5), l2_strength=0.001).conf_int()  # noqa: E731
    pin(1)
    steps()
    times = {"Newton steps, with intervals": minimum(steps), "objective perturbation, with intervals": minimum(ridge)}
    opponents = {
        "scikit-learn, newton-cholesky, parameters alone": lambda: LogisticRegression(
            C=np.inf, solver="newton-cholesky", tol=1e-10, fit_intercept=False
        ).fit(X1, y),
        "statsmodels, Logit, with intervals": lambda: sm.Logit(y.astype(float), X1).fit(disp=0).conf_int(),
    }
    for name, run in opponents.items():
        best = []
        for threads in (1, 2):
            pin(threads)
            with threadpool_limits(threads):
                best.append(minimum(run))
        times[name] = min(best)
    first = next(iter(times.values()))
    rows = [[name, f"{seconds:.2f}", f"{seconds / first:.2f}"] for name, seconds in times.items()]
    table(["fit", "seconds", "over ours"], rows)


if __name__ == "__main__":
    main()
