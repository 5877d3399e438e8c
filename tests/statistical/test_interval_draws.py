"""Exact half widths against two million simulated errors in NumPy, and Monte Carlo intervals against the exact law."""

import numpy as np
import pytest
from scipy import stats

from dpci import _core, lowlevel

SCALE = 0.7
LEVELS = np.array([0.5, 0.95, 0.999])
RATIOS = np.array([0.0, 1e-6, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999999, 1.0])
N_DRAWS, CHUNK = 2_000_000, 250_000


def parts(dim):
    """Sampling variances and multipliers of errors of variance 1 of which noise makes up the ratios."""
    return 1.0 - RATIOS, np.sqrt(RATIOS / (dim + 1)) / SCALE


def binomial_pvalue(count, n, probability):
    """Twice the lesser tail."""
    law = stats.binom(n, probability)
    return 2.0 * np.minimum(law.cdf(count), law.sf(count - 1))


@pytest.mark.parametrize("dim", [1, 2, 10, 91, 1000])
def test_half_widths_cover_simulated_errors(dim, accept):
    """Errors are drawn as sqrt(v) Z + a b for one coordinate of spherical Laplace noise: radius times direction."""
    v, a = parts(dim)
    law = {"noise_law": "spherical_laplace", "noise_scale": SCALE, "dim": dim}
    widths = np.array([lowlevel.exact_half_widths(v, a, **law, level=level) for level in LEVELS])
    rng = np.random.default_rng(700 + dim)
    covered = np.zeros(widths.shape, dtype=int)
    for _ in range(N_DRAWS // CHUNK):
        first, rest = rng.standard_normal(CHUNK), 2.0 * rng.standard_gamma((dim - 1) / 2.0, CHUNK)
        noise = SCALE * rng.standard_gamma(dim, CHUNK) * first / np.sqrt(first**2 + rest)
        sampling = rng.standard_normal(CHUNK)
        for j in range(len(RATIOS)):
            error = np.abs(np.sqrt(v[j]) * sampling + a[j] * noise)
            for i in range(len(LEVELS)):
                covered[i, j] += np.count_nonzero(error <= widths[i, j])
    for i, level in enumerate(LEVELS):
        for count in covered[i]:
            accept(binomial_pvalue(count, N_DRAWS, level))


@pytest.mark.parametrize("noise_law", ["spherical_laplace", "gaussian"])
@pytest.mark.parametrize("dim", [1, 10, 1000])
def test_monte_carlo_bounds_are_order_statistics_of_the_exact_law(dim, noise_law, accept):
    """A bound lies between order statistics j and j + 1; the law at the j-th of n is Beta(j, n - j + 1)."""
    n = 1_000_000
    v, a = parts(dim)
    law = {"noise_law": noise_law, "noise_scale": SCALE, "dim": dim}
    for level in LEVELS:
        bounds = lowlevel.monte_carlo_interval(v, a, **law, level=level, n_draws=n, seed=800 + dim)
        for side in (-bounds[0], bounds[1]):
            assert (side > 0).all()
            # Mass beyond the bound, counted from the outside.
            beyond = _core.ErrorShape(noise_law, SCALE, dim).pvalues(v, a, side) / 2.0
            j = int(np.floor((1.0 - level) / 2.0 * (n - 1))) + 1
            for mass in beyond:
                accept(2.0 * min(stats.beta(j, n - j + 1).sf(mass), stats.beta(j + 1, n - j).cdf(mass)))
                accept(2.0 * min(stats.beta(j, n - j + 1).cdf(mass), stats.beta(j + 1, n - j).sf(mass)))


def test_monte_carlo_intervals_of_small_samples_have_the_right_level(accept):
    """The 0.95 quantile of 101 draws is their sixth from outside, whose mass beyond has the law Beta(6, 96)."""
    n_runs, v, a, dim = 4000, [0.5], [0.3], 5
    law = {"noise_law": "spherical_laplace", "noise_scale": SCALE, "dim": dim}
    runs = [lowlevel.monte_carlo_interval(v, a, **law, level=0.9, n_draws=101, seed=seed) for seed in range(n_runs)]
    lower, upper = np.array(runs)[..., 0].T.copy()
    accept(stats.ks_2samp(upper, -lower, method="asymp").pvalue)
    exact = _core.ErrorShape("spherical_laplace", SCALE, dim)
    tails = exact.pvalues(np.repeat(v, n_runs), np.repeat(a, n_runs), upper)
    accept(stats.kstest(tails / 2.0, stats.beta(6, 96).cdf, method="asymp").pvalue)
