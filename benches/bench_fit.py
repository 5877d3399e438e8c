"""A whole private fit against the time that non-private solvers need for the parameters alone.

n=100,000, d=90 dense. Ours: parameters, moments, 91 exact intervals. Opponents at their best over one and two BLAS
threads: scikit-learn's newton-cholesky (tol 1e-10) and SciPy's L-BFGS-B (gtol 1e-10). Minimum of five, one run, ours
pinned to one core; scaling to two cores apart. Also prints the peak memory of a fit, and what a ledger adds to one of
1,000,000 x 20. Run on an idle machine. Interpreters of other environments may follow, such as one in which an older
commit is installed (`git worktree add OLD COMMIT; OLD/.venv/bin/python` after `make -C OLD build`): the fits with a
ledger are then timed there too.
"""

import os
import subprocess
import sys
import warnings

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import dpci
from _timing import minimum, pin, print_machine, table

N, D, L2_STRENGTH = 100_000, 90, 0.002


def rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlated features in the unit ball and labels of a logistic model."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((n, d)) * np.linspace(0.3, 1.5, d) + generator.standard_normal((n, 1))
    X /= np.linalg.norm(X, axis=1).max() * (1 + 1e-12)
    margin = X @ generator.standard_normal(d) * 10
    y = np.where(generator.random(n) < expit(margin), 1.0, -1.0)
    return np.ascontiguousarray(X), y


def private_fit(X: np.ndarray, y: np.ndarray, n_threads: int | None) -> dpci.ConfidenceIntervals:
    with warnings.catch_warnings(), dpci.threads(n_threads):
        warnings.simplefilter("ignore", dpci.errors.MomentNoiseWarning)
        result = dpci.fit(X, y, budget=dpci.PureDP(1.0), l2_strength=L2_STRENGTH, classes=(-1, 1))
    return result.conf_int()


def scipy_lbfgs(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    def risk(params: np.ndarray) -> tuple[float, np.ndarray]:
        margin = y * (X @ params)
        gradient = -(X.T @ (y * expit(-margin))) / len(y) + L2_STRENGTH * params
        return float(np.logaddexp(0, -margin).mean() + L2_STRENGTH / 2 * params @ params), gradient

    options = {"gtol": 1e-10, "ftol": 0.0, "maxiter": 10_000, "maxfun": 10_000}
    return np.asarray(minimize(risk, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options=options).x)


def newton_cholesky(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    model = LogisticRegression(C=1 / (len(y) * L2_STRENGTH), solver="newton-cholesky", tol=1e-10, fit_intercept=False)
    return np.asarray(model.fit(X, y).coef_[0])


def peak_memory() -> None:
    """Peak memory of a fit over what the rows take, in a process of its own."""
    code = (
        "import resource, numpy as np, dpci\n"
        "X = np.full((500_000, 91), 0.05); X[::2, :45] *= -1; y = X[:, 0] > 0\n"
        "dpci.fit(X[:1000], y[:1000], budget=dpci.PureDP(1.0), l2_strength=0.01).conf_int()\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "dpci.fit(X, y, budget=dpci.PureDP(1.0), l2_strength=0.01).conf_int()\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print((after - before) * 1024 / X.nbytes)"
    )
    share = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    print(f"\npeak memory of a fit of 500,000 x 91: input plus {float(share):.1%}")


# Names that every commit has: one that is compared may be old.
_WITH_LEDGER = """
import time, warnings, numpy as np, dpci
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (1_000_000, 20)) / np.sqrt(20.0)
y = np.where(rng.random(len(X)) < 1.0 / (1.0 + np.exp(-3.0 * X[:, 0])), 1.0, -1.0)
def seconds(**ledger):
    start = time.perf_counter()
    dpci.fit(X, y, budget=dpci.PureDP(1.0), l2_strength=0.01, classes=(-1, 1), **ledger)
    return time.perf_counter() - start
ledger = dpci.Ledger(dpci.PureDP(1000.0))
rounds = [(seconds(), seconds(ledger=ledger)) for _ in range(6)][1:]
print(*map(min, zip(*rounds)))
"""


def ledger_cost(interpreters: list[str]) -> None:
    """Least times of fits with and without a ledger, which take turns, on the one core of the process."""
    found = {}
    for python in interpreters:
        # Others have a package of their own.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" or python == interpreters[0]}
        command = [python, "-W", "ignore", "-c", _WITH_LEDGER]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        alone, paid = map(float, ran.stdout.split())
        found[python] = [f"{alone:.3f}", f"{paid:.3f}", f"{paid / alone:.2f}", paid]
    ours = found[interpreters[0]][-1]
    print("\nfit of 1,000,000 x 20 on one core, seconds")
    table(
        ["environment", "alone", "with a ledger", "ratio", "with a ledger over ours"],
        [[python, *shown, f"{paid / ours:.2f}"] for python, (*shown, paid) in found.items()],
    )


def main() -> None:
    print_machine()
    X, y = rows(N, D)
    X1 = np.column_stack([X, np.ones(N)])
    pin(1)
    private_fit(X, y, 1)
    ours = minimum(lambda: private_fit(X, y, 1))
    # Before the opponents: their idle BLAS threads spin for a while.
    pin(2)
    ours2 = minimum(lambda: private_fit(X, y, 2))
    opponents = {}
    for name, opponent in (("scikit-learn newton-cholesky", newton_cholesky), ("SciPy L-BFGS-B", scipy_lbfgs)):
        timings = []
        for threads in (1, 2):
            pin(threads)
            with threadpool_limits(threads):
                timings.append(minimum(lambda opponent=opponent: opponent(X1, y)))
        opponents[name] = timings
    print(f"\nfit of {N:,} x {D} + intercept, seconds")
    table(
        ["what", "1 core", "2 cores", "ours on 1 core / its best"],
        [["dpci.fit + 91 intervals", f"{ours:.3f}", f"{ours2:.3f}", ""]]
        + [[k, f"{v[0]:.3f}", f"{v[1]:.3f}", f"{ours / min(v):.2f}"] for k, v in opponents.items()],
    )
    peak_memory()
    pin(1)
    ledger_cost([sys.executable, *sys.argv[1:]])


if __name__ == "__main__":
    main()
