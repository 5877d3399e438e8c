"""Looks in the installed packages for what docs/features.md and docs/migration.md say of them: a line for each fact.

``python benches/check_features.py`` checks what is installed and names what is not. diffprivlib needs scikit-learn
below 1.8, so it takes an environment of its own: ``pip install 'diffprivlib==0.6.6' 'scikit-learn<1.8' statsmodels
'opendp==0.16.0' polars``.
"""

# ruff: noqa: PLC0415  # none of the packages is needed by the others

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

import numpy as np
import scipy.sparse
from scipy.optimize import minimize


def lacks(owner: object, *words: str) -> bool:
    """Return whether no public name of a module or class contains one of the words."""
    return not [name for name in dir(owner) if not name.startswith("_") and any(word in name.lower() for word in words)]


def public_modules(package: ModuleType) -> list[str]:
    """Names of all public modules of a package, without its own name."""
    names = [found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [name.split(".", 1)[1] for name in names if "._" not in name]


def with_method(module: ModuleType, method: str) -> list[str]:
    """Names of the public classes of a module that have a method."""
    classes = inspect.getmembers(module, inspect.isclass)
    return [name for name, each in classes if not name.startswith("_") and hasattr(each, method)]


def rows(n: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X /= np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None]
    return X, (X @ [2, -1, 0] + 0.5 + rng.logistic(size=n) > 0).astype(int)


def regularised(X: np.ndarray, y: np.ndarray, l2_strength: float, intercept_share: float) -> np.ndarray:
    """Minimiser of the mean logistic loss, by SciPy; the share says how much of the penalty the intercept gets."""

    def objective(params: np.ndarray) -> float:
        z = X @ params[:-1] + params[-1]
        penalty = params[:-1] @ params[:-1] + intercept_share * params[-1] ** 2
        return float(np.mean(np.logaddexp(0, z) - y * z) + l2_strength / 2 * penalty)

    return minimize(objective, np.zeros(X.shape[1] + 1), tol=1e-12).x


def refuses(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:  # noqa: BLE001  # whatever it says is the finding
        return f"{type(error).__name__}: {str(error).splitlines()[0][:70]}"
    return "accepted"


def diffprivlib_facts() -> dict[str, object]:
    import diffprivlib
    from diffprivlib import mechanisms, models, tools
    from diffprivlib.mechanisms import Binary
    from diffprivlib.models import LinearRegression, LogisticRegression
    from sklearn.base import BaseEstimator

    X, y = rows()
    C = 0.05
    model = LogisticRegression(epsilon=1e9, data_norm=1.0, C=C, tol=1e-12, max_iter=10_000).fit(X, y)
    params = np.append(model.coef_[0], model.intercept_)
    free, penalised = (regularised(X, y, 1 / (len(X) * C), share) for share in (0.0, 1.0))
    three = LogisticRegression(epsilon=10.0, data_norm=1.0).fit(X, (X[:, 0] > 0.3) + 1 * (X[:, 0] > -0.3))
    sparse = scipy.sparse.csr_array(X)
    modules = public_modules(diffprivlib)
    names = {name for module in (mechanisms, models, tools) for name in dir(module)} | set(modules)
    answer = Binary(epsilon=1.0, value0="no", value1="yes", random_state=0)
    return {
        "modules": modules,
        "models": [name for name in dir(models) if name[0].isupper()],
        "queries": [name for name in dir(tools) if not name.startswith("_") and callable(getattr(tools, name))],
        "keywords of LogisticRegression": list(inspect.signature(LogisticRegression).parameters),
        "keywords of LinearRegression": list(inspect.signature(LinearRegression).parameters),
        "huge budget, against l2_strength = 1/(n C), intercept not penalised": f"{np.abs(params - free).max():.1e}",
        "the same, intercept penalised": f"{np.abs(params - penalised).max():.1e}",
        "three classes": three.coef_.shape,
        "sparse rows": refuses(lambda: LogisticRegression(data_norm=1.0).fit(sparse, y)),
        "no intervals": lacks(LogisticRegression, "conf_int", "std_err", "bse", "pvalue"),
        "mechanisms": [name for name in dir(mechanisms) if name[0].isupper()],
        "randomised response, 1000 times yes": sum(answer.randomise("yes") == "yes" for _ in range(1000)),
        "partial_fit": with_method(models, "partial_fit"),
        "scikit-learn's": isinstance(model, BaseEstimator),
        **{
            f"nothing named {word}": not [name for name in names if word in name.lower()]
            for word in ("tun", "search", "coverage", "simul", "utility", "instance", "audit", "synth", "federat")
        },
    }


def opendp_facts() -> dict[str, object]:
    import opendp.prelude as dp
    from opendp.extras.sklearn import decomposition, linear_model

    return {
        "models": [n for m in (linear_model, decomposition) for n in dir(m) if n in {"LinearRegression", "PCA"}],
        "keywords of LinearRegression": list(inspect.signature(linear_model.LinearRegression).parameters),
        "measurements": len([name for name in dir(dp.m) if name.startswith("make_")]),
        "odometers, filters": not lacks(dp.c, "odometer", "filter"),
        "approximate, Renyi, zCDP": not lacks(importlib.import_module("opendp.measures"), "approximate"),
        "synthetic data (extras.mbi)": importlib.util.find_spec("opendp.extras.mbi") is not None,
        "queries on Polars frames": importlib.util.find_spec("opendp.extras.polars") is not None,
        "no logistic regression": lacks(linear_model, "logistic"),
    }


def statsmodels_facts() -> dict[str, object]:
    import statsmodels.api as sm
    from statsmodels.base import distributed_estimation
    from statsmodels.discrete.discrete_model import LogitResults
    from statsmodels.regression.linear_model import RegressionResults
    from statsmodels.sandbox.stats.multicomp import TukeyHSDResults
    from statsmodels.stats import multitest

    X, y = rows()
    fitted = sm.Logit(y, sm.add_constant(X, prepend=False)).fit(disp=0, cov_type="HC0")
    wanted = ("summary", "conf_int", "wald_test", "t_test", "get_prediction", "predict", "pvalues", "bse", "cov_params")
    return {
        "models": [
            name
            for name in ("Logit", "OLS", "RLM", "GLM", "Poisson", "MNLogit", "PHReg", "MixedLM")
            if hasattr(sm, name)
        ],
        "results of Logit": [name for name in wanted if hasattr(LogitResults, name)],
        "results of OLS": [name for name in wanted if hasattr(RegressionResults, name)],
        "cov_type": fitted.cov_type,
        "columns of get_prediction": list(fitted.get_prediction(np.ones((1, 4))).summary_frame().columns),
        "sparse rows": refuses(lambda: sm.Logit(y, scipy.sparse.csr_array(X)).fit(disp=0)),
        "comparisons, of OLS": [name for name in dir(RegressionResults) if name.startswith("compare_")],
        "comparisons, of Logit": [name for name in dir(LogitResults) if name.startswith("compare_")],
        "several at once": [
            name
            for owner in (RegressionResults, TukeyHSDResults, multitest)
            for name in ("t_test_pairwise", "plot_simultaneous", "multipletests")
            if hasattr(owner, name)
        ],
        "rows in parts": [name for name in dir(distributed_estimation) if name == "DistributedModel"],
        "no privacy": lacks(sm, "privacy", "private", "epsilon"),
    }


def sklearn_facts() -> dict[str, object]:
    from sklearn import linear_model
    from sklearn.linear_model import LogisticRegression

    X, y = rows()
    C = 0.05
    model = LogisticRegression(C=C, tol=1e-12, max_iter=10_000).fit(X, y)
    params = np.append(model.coef_[0], model.intercept_)
    expected = regularised(X, y, 1 / (len(X) * C), 0.0)
    three = LogisticRegression().fit(scipy.sparse.csr_array(X), (X[:, 0] > 0.3) + 1 * (X[:, 0] > -0.3))
    return {
        "linear models": len([name for name in linear_model.__all__ if name[0].isupper()]),
        "l2_strength = 1/(n C), intercept not penalised": f"{np.abs(params - expected).max():.1e}",
        "three classes, sparse": three.coef_.shape,
        "no intervals": lacks(LogisticRegression, "conf_int", "std_err", "bse", "pvalue"),
        "Poisson, Gamma, Tweedie": [
            name
            for name in linear_model.__all__
            if name.endswith(("PoissonRegressor", "GammaRegressor", "TweedieRegressor"))
        ],
        "no privacy": lacks(linear_model, "privacy", "private", "epsilon"),
    }


FACTS = {
    "diffprivlib": diffprivlib_facts,
    "opendp": opendp_facts,
    "statsmodels": statsmodels_facts,
    "scikit-learn": sklearn_facts,
}


def main() -> None:
    warnings.simplefilter("ignore")
    for package, facts in FACTS.items():
        try:
            print(f"\n{package} {version(package)}")
            for name, value in facts().items():
                print(f"  {name}: {value}")
        except (PackageNotFoundError, ImportError) as error:
            print(f"  not checked here: {error}")


if __name__ == "__main__":
    main()
