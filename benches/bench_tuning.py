"""Private tuning of 24 candidates on a million records: the choice beside one private fit, on one and two cores.

n=1,000,000, d=14 (13 columns and the intercept), dense, squared loss; λ = 0.002, 0.004, ..., 0.256 on balls of radius
0.25, 0.5 and 1, as Wu et al. search. The choice alone (selection_share=1). Minimum of three for parts; the median of
five seeds for repeated runs, whose number is random. Run on an idle machine.
"""

import os
import time
import warnings

import numpy as np

import dpci
from _timing import minimum, pin, print_machine, table

N, D = 1_000_000, 13
GRID = [
    {"l2_strength": 0.002 * 2**i, "mechanism": dpci.OutputPerturbation(moments="none", radius=radius)}
    for radius in (0.25, 0.5, 1.0)
    for i in range(8)
]
COMMON = {"budget": dpci.PureDP(1.0), "loss": "squared"}


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows in the unit ball, and targets in [-1, 1] that depend on them."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((N, D))
    X /= np.linalg.norm(X, axis=1).max() * (1 + 1e-12)
    y = np.clip(X @ generator.standard_normal(D) + 0.2 * generator.standard_normal(N), -1.0, 1.0)
    return X, y


def timed(X: np.ndarray, y: np.ndarray) -> list[str]:
    """Seconds of a fit, of the choice by parts, and of the choice by repeated runs, the middle of five seeds."""
    common = COMMON
    fit = minimum(lambda: dpci.fit(X, y, **common, **GRID[-1]), 3)
    tune = {**common, "candidates": GRID, "selection_share": 1.0}
    chunks = minimum(lambda: dpci.tuning.tune(X, y, method="chunks", **tune), 3)
    repeats = []
    for seed in range(5):
        start = time.perf_counter()
        dpci.tuning.tune(X, y, method="repeat", seed=seed, **tune)
        repeats.append(time.perf_counter() - start)
    return [f"{fit:.3f}", f"{chunks:.3f}", f"{np.median(repeats):.2f}"]


def main() -> None:
    print_machine()
    warnings.simplefilter("ignore", dpci.SeededNoiseWarning)
    X, y = rows()
    found = []
    for n_cores in (1, 2):
        if n_cores <= (os.cpu_count() or 1):
            pin(n_cores)
            found.append([str(n_cores), *dpci.threads(n_cores)(timed)(X, y)])
    table(["cores", "fit", "chunks", "repeat (median)"], found)


if __name__ == "__main__":
    main()
