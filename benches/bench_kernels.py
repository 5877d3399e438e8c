"""Intervals and the weighted Gram matrix against NumPy.

Monte Carlo: 10,000 draws for 91 parameters. NumPy runs the published algorithm (draws of the whole error vector) and,
apart, the marginal law that dpci draws from; both at their best over one and two BLAS threads. Gram: n=500,000, d=91,
against XᵀWX as a product and as a symmetric product of scaled rows. Minimum of five, one run, ours pinned to one core.
Use an idle machine.
"""

import numpy as np
from threadpoolctl import threadpool_limits

import dpci
from _timing import minimum, multiply_rate, pin, print_machine, table
from dpci import _core

DIM, DRAWS, LEVEL = 91, 10_000, 0.95


def released() -> tuple[np.ndarray, np.ndarray]:
    """A Hessian and a gradient covariance as a fit would release them."""
    generator = np.random.default_rng(1)
    a = generator.standard_normal((DIM, 4 * DIM)) / np.sqrt(4 * DIM)
    b = generator.standard_normal((DIM, 4 * DIM)) / np.sqrt(4 * DIM)
    return 0.002 * np.eye(DIM) + 0.01 * a @ a.T, 0.01 * b @ b.T


def numpy_published(hessian: np.ndarray, gradient_cov: np.ndarray, n: int, scale: float) -> np.ndarray:
    """Algorithm 3 of Wang, Kifer and Lee: draws of G and b, mapped by the inverse Hessian, quantiles by coordinate."""
    generator = np.random.default_rng(2)
    root = np.linalg.cholesky(gradient_cov)
    inverse = np.linalg.inv(hessian)
    b = generator.standard_normal((DRAWS, DIM))
    b *= (generator.gamma(DIM, scale, size=DRAWS) / np.linalg.norm(b, axis=1))[:, None]
    errors = (generator.standard_normal((DRAWS, DIM)) @ root.T + b / np.sqrt(n)) @ inverse / np.sqrt(n)
    return np.quantile(errors, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], axis=0)


def numpy_marginal(v: np.ndarray, a: np.ndarray, scale: float) -> np.ndarray:
    """The marginal law of each coordinate: a normal mixed over one gamma variable, draws shared by the coordinates."""
    generator = np.random.default_rng(2)
    omega = generator.gamma((DIM + 1) / 2, 2 * scale**2, size=DRAWS)
    errors = np.sqrt(v[:, None] + (a**2)[:, None] * omega) * generator.standard_normal(DRAWS)
    return np.quantile(errors, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], axis=1)


def best_over_threads(run: object) -> float:
    timings = []
    for threads in (1, 2):
        pin(threads)
        with threadpool_limits(threads):
            timings.append(minimum(run))
    pin(1)
    return min(timings)


def intervals() -> None:
    hessian, gradient_cov = released()
    n, scale = 100_000, 4.0
    v, a = _core.error_components(hessian, gradient_cov, n, "objective", np.eye(DIM))
    law = _core.ErrorShape("spherical_laplace", scale, DIM)
    pin(1)
    exact = minimum(lambda: law.half_widths(v, a, LEVEL))
    ours = minimum(lambda: _core.monte_carlo_interval(law, v, a, LEVEL, n_draws=DRAWS, seed=0))
    published = best_over_threads(lambda: numpy_published(hessian, gradient_cov, n, scale))
    marginal = best_over_threads(lambda: numpy_marginal(v, a, scale))
    print(f"\nintervals, {DIM} parameters, milliseconds on one core")
    table(
        ["what", "ms", "times ours"],
        [
            ["exact half widths", f"{1e3 * exact:.3f}", ""],
            [f"Monte Carlo, {DRAWS:,} draws", f"{1e3 * ours:.3f}", ""],
            ["NumPy, published algorithm", f"{1e3 * published:.2f}", f"{published / ours:.1f}"],
            ["NumPy, marginal law", f"{1e3 * marginal:.2f}", f"{marginal / ours:.1f}"],
        ],
    )


def gram() -> None:
    n = 500_000
    generator = np.random.default_rng(3)
    X, w = generator.standard_normal((n, DIM)), generator.random(n)
    pin(1)
    rate = multiply_rate()
    ours = minimum(lambda: dpci.lowlevel.weighted_gram(X, w, n_threads=1))

    def symmetric() -> np.ndarray:
        scaled = X * np.sqrt(w)[:, None]
        return scaled.T @ scaled

    product = best_over_threads(lambda: X.T @ (X * w[:, None]))
    squared = best_over_threads(symmetric)
    pin(2)
    ours2 = minimum(lambda: dpci.lowlevel.weighted_gram(X, w, n_threads=2))
    share = n * DIM * (DIM + 1) / ours / rate
    print(f"\nweighted Gram matrix, n={n:,}, d={DIM}, seconds")
    table(
        ["what", "s", "times ours on 1 core"],
        [
            ["dpci, 1 core", f"{ours:.3f}", ""],
            ["dpci, 2 cores", f"{ours2:.3f}", f"{ours2 / ours:.2f}"],
            ["NumPy X.T @ (w * X), best", f"{product:.3f}", f"{product / ours:.2f}"],
            ["NumPy A.T @ A, A = sqrt(w) * X, best", f"{squared:.3f}", f"{squared / ours:.2f}"],
        ],
    )
    print(f"share of the square product's {rate / 1e9:.0f} GFLOP/s, counting d(d+1)/2 products a row: {share:.0%}")


if __name__ == "__main__":
    print_machine()
    intervals()
    gram()
