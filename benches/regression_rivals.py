"""Linear regression from one moment matrix beside other private methods, on the same data at the same budget.

BinAgg (Lin, Slavković & Bhoomireddy 2026) is its authors' package, from a checkout (``--binagg FOLDER/src``);
diffprivlib and OpenDP's Theil-Sen run in an interpreter that has them (``--interpreter``). AdaSSP (Wang 2018, Algorithm
2) is written here from its paper, with Gaussian noise calibrated to μ-GDP. Rivals that are not given are left out.
Every run draws new data, and noise from seeds: not private. Prints Markdown.
"""

# ruff: noqa: PLC0415  # each process has some of the packages

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

Result = tuple[np.ndarray, "np.ndarray | None"]
"""Slopes, and their intervals of shape (d, 2) where the method has any."""

N, WIDTH, Y_BOUND = 2000, 10.0, 30.0
BETA = {1: np.array([1.5]), 3: np.array([1.5, -2.0, 0.5])}
MUS, EPSILONS = (1.0, 5.0), (1.0, 5.0)


def design(seed: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """X uniform on (0, 10)^d, unit errors, no intercept."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, WIDTH, (N, d))
    return X, X @ BETA[d] + rng.standard_normal(N)


def moment_matrix(X: np.ndarray, y: np.ndarray, seed: int, *, budget: object, intercept: bool) -> Result:
    """This library, under add/remove, as the others count."""
    import dpci

    matrix = dpci.regression.release(
        X, y, budget=budget, bounds=(0.0, WIDTH), target_bound=Y_BOUND, rows="clip",
        neighbors=dpci.AddRemove(len(y)), seed=seed,
    )  # fmt: skip
    fit = matrix.fit(intercept=intercept)
    d = X.shape[1]
    return fit.params[:d], np.asarray(fit.conf_int())[:d]


def gdp_of_binagg(d: int) -> float:
    """True μ of BinAgg over its nominal one, for one record more or less.

    Its shares are (1, 3, 3, 3)/√28. The sums of a bin over d columns have noise for the sensitivity of each column by
    itself, but a record changes all of them: d μ_s² in place of μ_s².
    """
    return float(np.sqrt((1 + 9 + 9 * d + 9) / 28))


def binagg(X: np.ndarray, y: np.ndarray, seed: int, *, mu: float) -> Result:
    """The authors' package with its defaults; it has no intercept."""
    from binagg import dp_linear_regression

    found = dp_linear_regression(X, y, [(0.0, WIDTH)] * X.shape[1], (-Y_BOUND, Y_BOUND), mu=mu, random_state=seed)
    return found.coefficients, found.confidence_intervals


def adassp(X: np.ndarray, y: np.ndarray, seed: int, *, mu: float) -> Result:
    """Sufficient statistics with a ridge that adapts to the least eigenvalue; μ/√3 for each of three releases."""
    rng = np.random.default_rng([seed, 1])
    n, d = X.shape
    norm, failure, chance = WIDTH * np.sqrt(d), 0.05, np.log(6.0 * n**2)
    noise = norm**2 * np.sqrt(3.0) / mu
    gram = X.T @ X
    least = max(np.linalg.eigvalsh(gram)[0] + noise * (rng.standard_normal() - np.sqrt(chance)), 0.0)
    ridge = max(0.0, np.sqrt(d * np.log(2.0 * d**2 / failure)) * noise - least)
    upper = np.triu(rng.standard_normal((d, d)))
    gram = gram + noise * (upper + np.triu(upper, 1).T) + ridge * np.eye(d)
    cross = X.T @ np.clip(y, -Y_BOUND, Y_BOUND) + noise * Y_BOUND / norm * rng.standard_normal(d)
    return np.linalg.solve(gram, cross), None


def diffprivlib(X: np.ndarray, y: np.ndarray, seed: int, *, epsilon: float) -> Result:
    """The functional mechanism."""
    from diffprivlib.models import LinearRegression

    d = X.shape[1]
    bounds = {"bounds_X": (np.zeros(d), np.full(d, WIDTH)), "bounds_y": (-Y_BOUND, Y_BOUND)}
    model = LinearRegression(epsilon=epsilon, random_state=seed, **bounds)
    return model.fit(X, np.clip(y, -Y_BOUND, Y_BOUND)).coef_.ravel(), None


def theil_sen(X: np.ndarray, y: np.ndarray, _seed: int, *, epsilon: float) -> Result:
    """OpenDP's, for one column; its noise takes no seed."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious", "private-selection-v2")

    def made(scale: float) -> object:
        return dp.sklearn.linear_model.LinearRegression(
            dp.max_divergence(),
            x_bounds=[(0.0, WIDTH)],
            y_bounds=(-Y_BOUND, Y_BOUND),
            scale=scale,
            candidates_count=2000,
        )

    scale = made(1.0).measurement.map(1) / epsilon
    return made(scale).fit(X, np.clip(y, -Y_BOUND, Y_BOUND)).coef_, None


ELSEWHERE = {"diffprivlib": diffprivlib, "theil_sen": theil_sen}


def here(method: Callable[..., Result], d: int, runs: int) -> list[Result | None]:
    """Results of a method in this process; None where it gives none."""
    found: list[Result | None] = []
    for seed in range(runs):
        try:
            found.append(method(*design(seed, d), seed))
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            found.append(None)
    return found


def there(interpreter: str, name: str, d: int, runs: int, epsilon: float) -> list[Result | None]:
    """Results of a method that another interpreter has."""
    command = [interpreter, __file__, "--work", json.dumps([name, d, runs, epsilon])]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return [None if slopes is None else (np.array(slopes), None) for slopes in json.loads(answer.stdout)]


def work(name: str, d: int, runs: int, epsilon: float) -> None:
    """Print the slopes of another library's method as JSON."""
    found = here(partial(ELSEWHERE[name], epsilon=epsilon), d, runs)
    print(json.dumps([None if one is None else list(map(float, one[0])) for one in found]))


def cells(found: list[Result | None], beta: np.ndarray) -> str:
    """Error, coverage, length and share of runs with a result, as cells of a table."""
    given = [one for one in found if one is not None]
    if not given:
        return "- | - | - | - | 0.00"
    errors = np.array([slopes - beta for slopes, _ in given])
    size, typical = np.sqrt(np.mean(errors**2)), np.median(np.abs(errors))
    shown = f"{size:.3g} | {typical:.3g}"
    intervals = [bounds for _, bounds in given if bounds is not None]
    if intervals:
        inside = np.mean([(bounds[:, 0] <= beta) & (beta <= bounds[:, 1]) for bounds in intervals])
        shown += f" | {inside:.3f} | {np.mean([np.diff(bounds) for bounds in intervals]):.3g}"
    else:
        shown += " | - | -"
    return f"{shown} | {len(given) / len(found):.2f}"


def gaussian_methods(d: int, *, with_binagg: bool) -> Iterator[tuple[float, str, Callable[..., Result]]]:
    """Methods under μ-GDP."""
    import dpci

    for mu in MUS:
        budget = dpci.ZCDP(mu**2 / 2)  # of Gaussian noise: μ-GDP
        yield mu, "dpci", partial(moment_matrix, budget=budget, intercept=False)
        yield mu, "dpci, with an intercept", partial(moment_matrix, budget=budget, intercept=True)
        if with_binagg:
            yield mu, "BinAgg at its true μ", partial(binagg, mu=mu / gdp_of_binagg(d))
            if d > 1:
                yield mu, f"BinAgg as stated (true μ {mu * gdp_of_binagg(d):.2f})", partial(binagg, mu=mu)
        yield mu, "AdaSSP, own implementation", partial(adassp, mu=mu)


def pure_methods(
    interpreter: str | None, d: int, runs: int, epsilon: float
) -> Iterator[tuple[str, list[Result | None]]]:
    """Methods under pure DP, with their results."""
    import dpci

    ours = partial(moment_matrix, budget=dpci.PureDP(epsilon), intercept=True)
    yield "dpci, with an intercept", here(ours, d, runs)
    if interpreter is not None:
        yield "diffprivlib LinearRegression", there(interpreter, "diffprivlib", d, runs, epsilon)
        if d == 1:
            yield "OpenDP Theil-Sen", there(interpreter, "theil_sen", d, runs, epsilon)


def table(head: str) -> None:
    """Print the head of a table."""
    names = [head, "d", "method", "RMSE", "median error", "coverage", "mean length", "given"]
    print(f"| {' | '.join(names)} |\n|{' --- |' * len(names)}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--binagg", help="the folder of the package's source")
    options.add_argument("--interpreter", help="Python with diffprivlib and opendp")
    options.add_argument("--work", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    warnings.simplefilter("ignore")
    if arguments.work:
        work(*json.loads(arguments.work))
        return
    import dpci

    if arguments.binagg:
        sys.path.insert(0, arguments.binagg)
    runs, started = arguments.runs, time.perf_counter()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print("# Linear regression beside other private methods\n")
    print(f"- {runs} runs of a cell, seeds from 0; commit {commit.stdout.strip()}")
    print(f"- numpy {np.__version__}, dpci {dpci.__version__}, Python {platform.python_version()}; level .95\n")
    print(f"X uniform on (0, 10)^d, unit errors, no intercept, n = {N:,}, |y| ≤ 30; one record added or removed.\n")
    print("## Gaussian differential privacy\n")
    table("μ")
    for d, beta in BETA.items():
        for mu, name, method in gaussian_methods(d, with_binagg=arguments.binagg is not None):
            print(f"| {mu:g} | {d} | {name} | {cells(here(method, d, runs), beta)} |", flush=True)
    print("\n## Pure differential privacy\n")
    table("ε")
    for d, beta in BETA.items():
        for epsilon in EPSILONS:
            for title, found in pure_methods(arguments.interpreter, d, runs, epsilon):
                print(f"| {epsilon:g} | {d} | {title} | {cells(found, beta)} |", flush=True)
    print(f"\nRun time: {time.perf_counter() - started:.0f} s.")


if __name__ == "__main__":
    main()
