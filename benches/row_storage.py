"""Times fits of sparse rows, which schemas of splines and products make, against those of the same rows, dense.

``python benches/row_storage.py`` prints the tables of docs/performance.md. One core; the least time of five rounds.
"""

import itertools
import os
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import dpci
from dpci.data.arrays import NamedRows
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, NumericTarget, Schema
from dpci.schema.table import encoded_rows

sys.path.insert(0, str(Path(__file__).parent))

from _timing import machine

N, ROUNDS = 100_000, 5
FORMULA = "~ bs(x, df=20)*g + w + a + b"
SIZES = {"g": 8, "a": 20, "b": 50}


def table() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, size, N) for name, size in SIZES.items()}
    x = rng.uniform(0.0, 100.0, N)
    predictor = np.sin(x / 10.0) * (1.0 + codes["g"] / 8.0) - 1.0 + codes["a"] / 20.0
    return {
        **{name: np.char.add(name, place.astype(str)) for name, place in codes.items()},
        "x": x,
        "w": rng.uniform(size=N),
        "y": np.where(predictor + rng.logistic(size=N) > 0.0, "yes", "no"),
        "count": np.minimum(rng.poisson(np.exp(predictor - 1.0)), 5.0),
    }


def described(target: Any) -> Schema:
    lists = (
        CategoricalColumn(name=name, categories=tuple(f"{name}{i}" for i in range(size)))
        for name, size in SIZES.items()
    )
    numbers = (NumericColumn(name="x", lower=0, upper=100), NumericColumn(name="w", lower=0, upper=1))
    return Schema.from_formula(FORMULA, Schema(columns=(*numbers, *lists), target=target, encoding="full_range"))


def seconds(work: Callable[[], Any]) -> float:
    """The least time of the rounds, of this process alone: others may use the machine."""
    found = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def fits() -> list[str]:
    lines = ["| fit | dense | sparse | ratio |", "|---|---|---|---|"]
    data = table()
    signs = described(ClassTarget(column="y", negative=("no",), positive=("yes",)))
    counts = described(NumericTarget(column="count", lower=0, upper=5, scale="unit"))

    def line(name: str, works: list[Callable[[], Any]]) -> None:
        dense, thin = map(seconds, works)
        lines.append(f"| {name} | {dense:.3f} s | {thin:.3f} s | {dense / thin:.1f} |")

    line("rows of the schema", [lambda: signs.features(data), lambda: encoded_rows(signs, data)])
    rows = [signs.features(data), encoded_rows(signs, data)]
    lines[0] = lines[0].replace("sparse", f"sparse, {rows[1].nbytes / 1e6:.0f} MB")
    lines[0] = lines[0].replace("dense", f"dense, {rows[0].nbytes / 1e6:.0f} MB")
    named = [NamedRows(each, signs.names) for each in rows]
    for loss, schema in (("logistic", signs), ("poisson", counts)):
        y = schema.targets(data)
        radius = None if loss == "logistic" else 3.0
        options = (
            {"loss": loss, "classes": (-1, 1)} if radius is None else {"loss": dpci.losses.Poisson(count_bound=1.0)}
        )
        for moments, domain in (("none", "ball"), ("joint", "ball"), ("joint", "blocks")):
            bound = dpci.rows.Ball(signs.row_norm) if domain == "ball" else signs.rows
            mechanism = dpci.ObjectivePerturbation(radius=radius, moments=moments)
            settings = {**options, "mechanism": mechanism, "rows": bound, "l2_strength": 0.1, "seed": 1}
            works = [partial(dpci.fit, X, y, budget=dpci.ZCDP(50.0), **settings) for X in named]
            line(f"{loss}, {'with' if moments == 'joint' else 'without'} matrices, {domain}", works)
    y = signs.targets(data)
    newton = {"mechanism": "newton", "l2_strength": "auto", "rows": signs.rows, "classes": (-1, 1), "seed": 1}
    line(
        "logistic, steps of Newton, blocks", [partial(dpci.fit, X, y, budget=dpci.ZCDP(50.0), **newton) for X in named]
    )
    return lines


def widths() -> list[str]:
    """Times per row of matrices and minimisers where one column in so many is not 0."""
    lines = ["| columns | not 0 | bytes | matrices | minimiser |", "|---|---|---|---|---|"]
    rng = np.random.default_rng(0)
    n = N // 4
    for k, share in itertools.product((48, 240), (4, 6, 8, 12, 20)):
        m = k // share
        places = np.arange(m) * share + rng.integers(0, share, (n, m))
        values = rng.uniform(-1.0, 1.0, (n, m)) / np.sqrt(m)
        starts = np.arange(0, n * m + 1, m)
        thin = sparse.csr_array((values.ravel(), places.ravel().astype(np.int32), starts), shape=(n, k))
        y = np.where(values[:, 0] + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)
        params, problem = 0.1 * rng.normal(size=k), {"loss": "logistic", "l2_strength": 0.01, "n_threads": 1}
        works = [
            lambda X: dpci.lowlevel.hessian_and_gradient_cov(X, y, params, **problem),  # noqa: B023
            lambda X: dpci.lowlevel.minimize_erm(X, y, **problem),  # noqa: B023
        ]
        both = thin.toarray(), thin
        times = [[seconds(partial(work, X)) for X in both] for work in works]
        ratios = (f"{dense / few:.2f}" for dense, few in times)
        lines.append(f"| {k} | {m} | {(12 * m + 8) / (8 * k):.2f} | {' | '.join(ratios)} |")
    return lines


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(f"{machine(load=False)}, load {os.getloadavg()[2]:.1f}, {N:,} rows\n")
    with dpci.threads(1):
        print("\n".join([*fits(), "", *widths()]))
