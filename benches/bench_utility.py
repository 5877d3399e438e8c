"""A utility curve of 200 budgets against one private fit with moments of the same data, on one and two cores.

n=45,000, d=104 (the shape of Adult with one-hot columns), dense; the curve includes its measuring fit. Minimum of five
in one run. Run on an idle machine.
"""

import os
import warnings
from typing import Any

import numpy as np

import dpci
from _timing import minimum, pin, print_machine, table

N, D, L2_STRENGTH, N_BUDGETS = 45_000, 103, 0.004, 200
APPROX = dpci.ApproxDP(1.0, 1e-6)
CASES: dict[str, tuple[dpci.Budget, dict[str, Any]]] = {
    "Gaussian": (APPROX, {}),
    "Gaussian, Huber h=0.1": (APPROX, {"loss": dpci.losses.HuberHinge(h=0.1)}),
    "Kifer et al.": (
        APPROX,
        {
            "mechanism": dpci.ObjectivePerturbation(moments="none", calibration="paper"),
            "neighbors": dpci.AddRemove(N),
        },
    ),
    "spherical Laplace": (dpci.PureDP(1.0), {}),
    "output, Gaussian": (APPROX, {"mechanism": "output"}),
}


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Six numbers and one-hot columns of twelve categories in each row, scaled into the unit ball."""
    generator = np.random.default_rng(0)
    X = np.zeros((N, D))
    X[:, :6] = generator.random((N, 6))
    sizes = [9, 16, 7, 15, 6, 5, 2, 37]
    start = 6
    for size in sizes:
        level = generator.choice(size, N, p=generator.dirichlet(np.ones(size)))
        X[np.arange(N), start + level] = 1.0
        start += size
    X /= np.linalg.norm(X, axis=1).max() * (1 + 1e-12)
    margin = X @ generator.standard_normal(D) * 8
    y = margin - np.median(margin) + generator.logistic(size=N) > 0
    return np.ascontiguousarray(X), y


def timed(X: np.ndarray, y: np.ndarray, at: dpci.Budget, keywords: dict[str, Any]) -> list[str]:
    """Seconds of a fit, of the measuring point, of the curve, their ratio, and what interpolation costs."""
    values = np.geomspace(0.1, 10.0, N_BUDGETS)
    common = {"l2_strength": L2_STRENGTH, **keywords}
    fit = minimum(lambda: dpci.fit(X, y, budget=at, **common))
    measured = minimum(lambda: dpci.utility.curve(X, y, at=at, **common))
    whole = minimum(lambda: dpci.utility.curve(X, y, at=at, **common).predict_utility(values))
    found = dpci.utility.curve(X, y, at=at, **common)
    utilities = found.predict_utility(values)
    error = np.abs(utilities[::20] - found.predict_utility(values[::20])).max() / np.ptp(utilities)
    return [f"{fit:.3f}", f"{measured:.3f}", f"{whole:.3f}", f"{whole / fit:.2f}", f"{error:.0e}"]


def main() -> None:
    print_machine()
    X, y = rows()
    results = []
    for cores in (1, 2)[: os.cpu_count() or 1]:
        pin(cores)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpci.DpciWarning)
            results += [[name, str(cores), *dpci.threads(cores)(timed)(X, y, *case)] for name, case in CASES.items()]
    print(f"\n{N:,} x {D} + intercept, {N_BUDGETS} budgets from 0.1 to 10, seconds")
    table(["mechanism", "cores", "fit", "measuring", "curve", "curve / fit", "interpolation error / range"], results)


if __name__ == "__main__":
    main()
