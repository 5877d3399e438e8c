"""Tests diffprivlib by property; run with the interpreter of requirements_diffprivlib.txt, one JSON line a finding."""

import copy
import pickle
import pkgutil
import warnings

import diffprivlib
import numpy as np
from _probe import (
    after_kill,
    distinct_after_fork,
    epsilon_bound,
    exactly_longer,
    in_processes,
    in_threads,
    report,
    support_attack,
    verdict,
)
from diffprivlib import BudgetAccountant
from diffprivlib.mechanisms import Gaussian, Laplace, Snapping, Vector
from diffprivlib.models import LinearRegression, LogisticRegression
from diffprivlib.validation import clip_to_norm
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

warnings.simplefilter("ignore")


def basic_noise() -> None:
    for name, mechanism, n_draws in (
        ("Laplace", Laplace(epsilon=1.0, sensitivity=1.0), 100_000),
        ("Gaussian", Gaussian(epsilon=1.0, delta=1e-5, sensitivity=1.0), 100_000),
        ("Snapping", Snapping(epsilon=1.0, sensitivity=1.0, lower=-10.0, upper=10.0), 100_000),
    ):
        counts = support_attack(lambda m=mechanism: m.randomise(0.0), lambda m=mechanism: m.randomise(1.0), n_draws)
        report("low bits, basic noise", f"{name}: {verdict(counts)}", counts)


def linear_regression() -> None:
    """The noisy coefficients of the loss stay on the model; sum of x y is 0 or 1 for the two neighbours."""

    def noisy_sum(record: float) -> float:
        X, y = np.array([[0.0], [record]]), np.array([0.0, record])
        model = LinearRegression(epsilon=1.0, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0), fit_intercept=False)
        return float(model.fit(X, y)._obj_coefs[1][0, 0])  # noqa: SLF001 - pickled with the model, so released with it

    counts = support_attack(lambda: noisy_sum(0.0), lambda: noisy_sum(1.0), 3_000)
    report("low bits, regression", f"LinearRegression (stored noisy coefficients): {verdict(counts)}", counts)

    X, y = np.array([[0.25], [0.5], [0.75]]), np.array([0.1, 0.2, 0.3])
    fits = [
        LinearRegression(epsilon=1.0, bounds_X=(0.0, 1.0), bounds_y=(0.0, 1.0), fit_intercept=False).fit(X, y)
        for _ in range(500)
    ]
    exact = sum(float(fit._obj_coefs[2][0, 0]) == float((X**2).sum()) for fit in fits)  # noqa: SLF001 - as above
    report(
        "audit of its regression",
        f"LinearRegression, bounds_X=(0, 1), no intercept: the sum of x² has no noise in {exact:,} of 500 fits",
        exact,
    )


class _Fixed(np.random.RandomState):
    """A generator that makes the vector mechanism's noise in one dimension equal a given number."""

    def __init__(self, noise: float) -> None:
        super().__init__(0)
        self._noise = noise

    def standard_normal(self, size=None):
        return np.full(size, np.sign(self._noise))

    def gamma(self, _shape, _scale=None, size=None):
        return np.concatenate([[abs(self._noise)], np.zeros(size - 1)])


def logistic_low_bits(strength: float = 3.0, n_tries: int = 200, reach: int = 32) -> None:
    """Find doubles that rows of zeros cannot give: their model is -noise / strength up to ulps, after one step."""
    zeros, one = np.zeros((3, 1)), np.array([[1.0], [0.0], [0.0]])
    y = np.array([1, 0, 1])

    def model(X, random_state=None) -> float:
        keywords = {"epsilon": 1.0, "data_norm": 1.0, "C": 1 / strength, "fit_intercept": False}
        return float(LogisticRegression(**keywords, random_state=random_state).fit(X, y).coef_[0, 0])

    def ulps(noise: float) -> float:
        params = model(zeros, _Fixed(noise))
        return abs(params + noise / strength) / np.spacing(abs(params))

    # Outside of this range of models the solver takes further steps or none, and the attacker says nothing.
    low, high = 0.1, 0.99
    error = max(ulps(strength * theta) for theta in np.random.default_rng(0).uniform(low, high, 1_000))

    def excluded(params: float) -> bool:
        noise = -strength * params
        near = noise + np.spacing(abs(noise)) * np.arange(-reach, reach + 1)
        return low < abs(params) < high and all(model(zeros, _Fixed(b)) != params for b in near)

    true, false = (sum(excluded(model(X)) for _ in range(n_tries)) for X in (one, zeros))
    report(
        "low bits, regression",
        f"LogisticRegression: neighbour excluded in {true / n_tries:.0%} of {n_tries} fits: no noise gives that model "
        f"({false} false exclusions in {n_tries}; the solver errs by {error:.1f} ulps at most, {reach} are tried)",
        {"excluded": true, "false": false, "tries": n_tries, "ulps": float(error)},
    )


def repeated_noise() -> None:
    laplace = Laplace(epsilon=1.0, sensitivity=1.0)
    report("repeated noise", distinct_after_fork(lambda: laplace.randomise(0.0)))

    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * 1.01
    y = np.tile([0, 1, 2], 100)

    def fit():
        return LogisticRegression(epsilon=1e-3, data_norm=1.0, n_jobs=2).fit(X, y).coef_

    first, second = fit(), fit()
    same = bool(np.array_equal(first, second))
    spread = float(np.ptp(first, axis=0).max() / np.abs(first).max())
    report(
        "repeated noise",
        f"LogisticRegression, three classes, n_jobs=2: two unseeded fits {'equal' if same else 'differ'}; "
        f"the classes' coefficients differ by {spread:.1e} of their size, so they share one noise vector",
        {"equal": same, "spread": spread},
    )


def minimiser(X, signs, strength, slope) -> np.ndarray:
    """Exact minimiser of the mean loss plus strength / 2 ‖θ‖² plus slope · θ, by Newton's method."""
    params = np.zeros(X.shape[1])
    for _ in range(60):
        margins = signs * (X @ params)
        gradient = -X.T @ (signs * expit(-margins)) / len(X) + strength * params + slope
        curvature = expit(margins) * expit(-margins)
        step = np.linalg.solve((X.T * curvature) @ X / len(X) + strength * np.eye(X.shape[1]), gradient)
        params -= step
        if np.linalg.norm(step) < 1e-14 * max(1.0, np.linalg.norm(params)):
            break
    return params


def solver_error() -> None:
    """Relate the distance to the minimiser that the proof speaks of to the noise in a coefficient."""
    dim, l2_strength = 10, 1e-3
    defaults = [(n, {}) for n in (1_000, 10_000, 100_000)]
    for n, keywords in (*defaults, (10_000, {"max_iter": 1}), (100_000, {"tol": 1e-12})):
        generator = np.random.default_rng(1)
        X = generator.normal(size=(n, dim))
        X /= np.linalg.norm(X, axis=1, keepdims=True) * 1.001
        y = (generator.uniform(size=n) < expit(3 * X[:, 0])).astype(int)
        exact, released, messages = [], [], set()
        for seed in range(10):
            vector = Vector(
                epsilon=1.0,
                dimension=dim,
                alpha=l2_strength * n,
                function_sensitivity=0.25,
                data_sensitivity=1.0,
                n=n,
                random_state=np.random.RandomState(seed),
            )
            slope = vector.randomise(lambda w: (0.0, np.zeros_like(w)))(np.zeros(dim))[1]
            exact.append(minimiser(X, 2.0 * y - 1.0, l2_strength, slope))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = LogisticRegression(
                    epsilon=1.0,
                    data_norm=1.0,
                    C=1 / (l2_strength * n),
                    fit_intercept=False,
                    random_state=seed,
                    **keywords,
                )
                released.append(model.fit(X, y).coef_[0])
            messages |= {w.category.__name__ for w in caught if w.category is not DeprecationWarning}
        distance = np.linalg.norm(np.array(released) - np.array(exact), axis=1)
        noise = np.sqrt(np.var(exact, axis=0, ddof=1).mean())
        report(
            "solver error",
            f"LogisticRegression, n={n:,}, {keywords or 'defaults'}: up to {distance.max() / noise:.2g} standard "
            f"deviations of the noise from the minimiser, released with {sorted(messages) or 'no warning'}",
            {"worst": float(distance.max() / noise), "median": float(np.median(distance) / noise)},
        )


def seeds() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Laplace(epsilon=1.0, sensitivity=1.0, random_state=0).randomise(0.0)
        model = LogisticRegression(epsilon=1.0, data_norm=1.0, random_state=0).fit([[0.5], [-0.5]], [1, 0])
    messages = [w for w in caught if "seed" in str(w.message) or "random" in str(w.message)]
    report(
        "seed policy",
        f"random_state=0 is accepted for releases with {len(messages)} warnings; the model keeps the parameter "
        f"({model.get_params()['random_state']}), nothing says that it is not private",
        len(messages),
    )
    np.random.seed(0)  # noqa: NPY002 - whether it has an effect is the question
    first = LogisticRegression(epsilon=1.0, data_norm=1.0).fit([[0.5], [-0.5]], [1, 0]).coef_
    np.random.seed(0)  # noqa: NPY002 - as above
    second = LogisticRegression(epsilon=1.0, data_norm=1.0).fit([[0.5], [-0.5]], [1, 0]).coef_
    same = bool(np.array_equal(first, second))
    report("seed policy", f"without a seed, numpy.random.seed has {'an' if same else 'no'} effect on one process", same)


def accountant() -> None:
    X, y = np.tile([[0.5], [-0.5]], (20, 1)), np.tile([1, 0], 20)

    def estimator(account, epsilon=1.0):
        return LogisticRegression(epsilon=epsilon, data_norm=1.0, accountant=account)

    findings = {}
    account = BudgetAccountant(epsilon=1.0, delta=0.0)
    cross_val_score(estimator(account), X, y, cv=5)
    findings["cross_val_score, 5 fits of ε=1 under a total of 1"] = f"none refused, {account.total()[0]:g} recorded"
    for name, duplicate in (
        ("copy.deepcopy", copy.deepcopy),
        ("sklearn.base.clone", clone),
        ("pickle", lambda model: pickle.loads(pickle.dumps(model))),
    ):
        account = BudgetAccountant(epsilon=1.0, delta=0.0)
        duplicate(estimator(account)).fit(X, y)
        findings[f"fit of a {name}"] = f"{account.total()[0]:g} recorded of 1"
    account = BudgetAccountant(epsilon=1.0, delta=0.0)
    findings["8 forked processes, budget for one fit"] = (
        f"{in_processes(lambda: estimator(account).fit(X, y))} released"
    )
    account = BudgetAccountant(epsilon=1.0, delta=0.0)
    models = []

    def in_thread() -> None:
        models.append(estimator(account))
        models[-1].fit(X, y)

    released = in_threads(in_thread)
    fitted = sum(hasattr(model, "coef_") and len(np.shape(model.coef_)) == 2 for model in models)
    findings["8 threads, budget for one fit"] = f"{released} returned, {fitted} models hold coefficients"
    account = BudgetAccountant(epsilon=1.0, delta=0.0)
    findings["kill -9"] = after_kill(lambda: estimator(account).fit(X, y))
    for name, found in findings.items():
        report("ledger", f"{name}: {found}", found)


def rows() -> None:
    generator = np.random.default_rng(0)
    clipped = clip_to_norm(generator.normal(size=(10_000, 10)) * 10, 1.0)
    longer = exactly_longer(clipped, 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LogisticRegression(epsilon=1.0, data_norm=1.0).fit([[5.0], [-5.0]], [1, 0])
    said = [w for w in caught if "norm" in str(w.message)]
    report(
        "rows beyond the bound",
        f"clipped with {len(said)} warnings; {longer:,} of 10,000 clipped rows stay above it exactly",
        longer,
    )


def audit(n_runs: int = 2_500) -> None:
    """Rows of norm 100 at C = 1/100: the density at zero tells one such row from none."""

    def hits(first_row: float) -> int:
        X, y = np.array([[first_row], [0.0], [0.0]]), np.array([1, 0, 1])
        keywords = {"epsilon": 1.0, "data_norm": 100.0, "C": 0.01, "fit_intercept": False, "tol": 1e-10}
        return int(sum(abs(LogisticRegression(**keywords).fit(X, y).coef_[0, 0]) < 0.01 for _ in range(n_runs)))

    counts = hits(100.0), hits(0.0)
    bound = epsilon_bound(*counts, n_runs)
    report(
        "audit of its regression",
        f"LogisticRegression at ε=1, data_norm=100, C=0.01: ε is at least {bound:.2f} with confidence 99.9%",
        {"hits": counts, "runs": n_runs, "epsilon at least": bound},
    )


def shipped() -> None:
    names = [m.name for m in pkgutil.walk_packages(diffprivlib.__path__, "diffprivlib.")]
    report("audit tool", f"none ({sum('audit' in name for name in names)} of {len(names)} modules)")
    has = hasattr(LogisticRegression, "conf_int") or hasattr(LinearRegression, "conf_int")
    report("intervals", "intervals" if has else "none for models")


if __name__ == "__main__":
    noise_checks = (basic_noise, linear_regression, logistic_low_bits, repeated_noise)
    for check in (*noise_checks, solver_error, seeds, accountant, rows, audit, shipped):
        check()
