"""Linear regression without any known bound beside TukeyEM (Amin, Joseph, Ribero & Vassilvitskii 2023). Not private.

Their synthetic set: 22,000 records, ten normal columns, noise of standard deviation 10, at (ln 3, 1e-5). TukeyEM is
written here from their paper. Their published code (google-research/dp_regression/tukey.py) draws the Laplace noise of
its test with the scale ε/2; here it has 2/ε, which the proof needs. Prints Markdown.
"""

import argparse
import datetime as dt
import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_regression

import dpci
from _studies import markdown
from _timing import commit
from dpci.schema import PartialSchema, UnboundedColumn, UnboundedTarget

EPSILON, DELTA = math.log(3.0), 1e-5
N, WIDTH = 22_000, 10
_F64 = NDArray[np.float64]
Outside = Literal["clip", "weight"]
NAMES = tuple(f"x{j}" for j in range(WIDTH))


def tukey(X: _F64, y: _F64, n_models: int, rng: np.random.Generator, *, inverted: bool) -> _F64 | None:
    """Return a model of great depth among those of disjoint parts; None where the test fails.

    ``inverted``: the noise of the test has the scale of the published code.
    """
    rows = np.column_stack([X, np.ones(len(y))])
    parts = rng.permutation(len(y))[: len(y) // n_models * n_models].reshape(n_models, -1)
    models = np.array([np.linalg.lstsq(rows[part], y[part], rcond=None)[0] for part in parts])
    ends = np.sort(models, axis=0)
    deepest = n_models // 2
    # Logarithm of the volume of the box of points of depth i + 1 at least.
    volumes = np.log(ends[::-1][:deepest] - ends[:deepest]).sum(axis=1)
    each, middle = EPSILON / 2.0, deepest // 2

    def is_safe(k: int) -> bool:
        inner = volumes[middle + k + 1 : -1]
        falls = volumes[middle - k - 2] - inner - 0.5 * each * np.arange(1, len(inner) + 1)
        return bool(len(inner)) and falls.min() <= math.log(DELTA / 8.0) - each

    distance = next((k - 1 for k in range(middle - 1) if not is_safe(k)), middle - 2)
    scale = each if inverted else 1.0 / each
    if not distance + rng.laplace(scale=scale) > math.log(0.5 / DELTA) / each:
        return None
    outer = volumes[middle - 1 :]
    inner = np.r_[outer[1:], -np.inf]
    weights = outer + np.log1p(-np.exp(inner - outer)) + each * np.arange(len(outer))
    depth = middle - 1 + int(np.argmax(weights + rng.gumbel(size=len(weights))))
    lower, upper = ends[depth], ends[-1 - depth]
    while True:
        model = rng.uniform(lower, upper)
        if depth + 1 >= deepest or np.any((model < ends[depth + 1]) | (model > ends[-2 - depth])):
            return np.asarray(model)


def ours(X: _F64, y: _F64, seed: int, *, outside: Outside = "clip", refine: bool = False) -> _F64:
    """Return slopes and constant of a regression whose bounds are released within its budget; ``outside``: of columns.

    The matrix serves one regression alone where it is to ``refine`` it.
    """
    columns = tuple(UnboundedColumn(name=name, outside=outside) for name in NAMES)
    schema = PartialSchema(columns=columns, target=UnboundedTarget(column="y"))
    table = {**dict(zip(NAMES, X.T, strict=True)), "y": y}
    budget = dpci.ApproxDP(EPSILON, DELTA)
    matrix = dpci.regression.release(table, schema=schema, budget=budget, refine=refine, seed=seed)
    return np.asarray(matrix.fit("y").params)


def r_squared(X: _F64, y: _F64, model: _F64) -> float:
    residuals = y - X @ model[:-1] - model[-1]
    return float(1.0 - residuals @ residuals / np.sum((y - y.mean()) ** 2))


def least_squares(X: _F64, y: _F64) -> _F64:
    return np.linalg.lstsq(np.column_stack([X, np.ones(len(y))]), y, rcond=None)[0]


def row(name: str, fit: Callable[[_F64, _F64, int], _F64 | None], runs: int, seed: int) -> list[str]:
    found, errors, failed = [], [], 0
    started = time.perf_counter()
    for run in range(seed, seed + runs):
        X, y = make_regression(N, n_features=WIDTH, n_informative=WIDTH, noise=10.0, random_state=run)
        model = fit(X, y, run)
        if model is None:
            failed += 1
            continue
        found.append(r_squared(X, y, model))
        errors.append(np.linalg.norm(model - least_squares(X, y)) / math.sqrt(len(model)))
    seconds = (time.perf_counter() - started) / runs
    if not found:
        return [name, "", "", "", f"{failed / runs:.0%}", f"{seconds:.1f}"]
    low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
    return [name, f"{middle:.5f}", f"{low:.5f} to {high:.5f}", f"{np.median(errors):.3f}", f"{failed / runs:.0%}",
            f"{seconds:.1f}"]  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=50)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    today = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    print("# Regression without any known bound, beside TukeyEM\n")
    print(f"`benches/tukey.py --runs {given.runs} --seed {given.seed}`, commit {commit()}, {today}.\n")
    print(
        "22,000 records of `make_regression` with ten columns and noise 10, new ones in each run, at (ln 3, 1e-5). No "
        "method knows a bound. TukeyEM (Amin, Joseph, Ribero & Vassilvitskii 2023) is written from the paper. Its "
        "published code draws the noise of its safety test with scale ε/2 in place of 2/ε: such a test costs more than "
        "it says, and passes more often. `R²`: median, and quartiles, on the records themselves. `error`: median root "
        "mean square of the distances of the coefficients from least squares, whose own standard error is .067. "
        "`nothing`: runs whose test fails, so that nothing is released.\n\n"
        "TukeyEM is far more precise here. Its noise is in proportion to how far the models of its parts lie apart, "
        "that of a moment matrix to the bounds of the target, which varies 18 times as much as its errors. "
        "Coefficients of dpci are also those of columns and a target that are clipped. TukeyEM has no intervals, and "
        "needs about 1,000 parts with more records than columns.\n"
    )

    def rival(n_models: int, *, inverted: bool = False) -> Callable[[_F64, _F64, int], _F64 | None]:
        return lambda X, y, seed: tukey(X, y, n_models, np.random.default_rng([seed, n_models]), inverted=inverted)

    methods: dict[str, Callable[[_F64, _F64, int], _F64 | None]] = {
        "no privacy": lambda X, y, _: least_squares(X, y),
        "dpci, all bounds released": ours,
        "dpci, all bounds released, far rows weigh less": partial(ours, outside="weight"),
        "dpci, all bounds released, refined": partial(ours, refine=True),
        **{f"TukeyEM, {m:,} models": rival(m) for m in (1000, 1250, 1500, 1750, 2000)},
        **{f"TukeyEM, {m:,} models, scale as published": rival(m, inverted=True) for m in (1000, 2000)},
    }
    header = ("method", "R²", "quartiles", "error", "nothing", "seconds")
    for line in markdown(header, (row(name, fit, given.runs, given.seed) for name, fit in methods.items())):
        print(line, flush=True)


if __name__ == "__main__":
    main()
