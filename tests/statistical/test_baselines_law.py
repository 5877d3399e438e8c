"""The laws of the baselines, and the density of symmetric matrix Laplace noise at d = 2."""

import numpy as np
import pytest
from scipy import integrate, special, stats

import dpci
from dpci import _core, baselines, lowlevel
from support.core import specified

EPSILON, N_RUNS = 1.0, 6000
SCALE = 4.0 / EPSILON  # one parameter: the linear coefficient moves by 4 where y changes sign
RIDGE = 4.0 * np.sqrt(2.0) * SCALE
ROWS = np.full((12, 1), 1.0)
# Neighbours at the sensitivity: the sum of yx is 6 and 4.
TARGETS = [np.where(np.arange(12) < k, 1.0, -1.0) for k in (9, 8)]


def cdf(t, y):
    """P(params <= t): with Q = 12 + ridge + noise and c/2 = sum(y) + noise/2, params is c/2Q where Q > 0, else 0.

    Given Q, c/2 <= tQ is an event of the Laplace noise on c; Q is integrated by the trapezoidal rule on both sides of
    its mode. On equal nodes the rule keeps the ratio of neighbours within that of the integrands.
    """
    t = np.atleast_1d(t)[:, np.newaxis]
    mode = 12.0 + RIDGE
    tail = np.linspace(0.0, 30.0, 3001)[1:] * SCALE
    total = np.zeros(len(t))
    for q in (np.concatenate([[mode], mode + tail]), np.linspace(mode, 0.0, 2001)):
        inside = stats.laplace.cdf((t * q - y.sum()) * 2.0, scale=SCALE) * stats.laplace.pdf(q, loc=mode, scale=SCALE)
        total += np.trapezoid(inside, x=np.abs(q - mode), axis=1)
    return total + (t[:, 0] >= 0.0) * stats.laplace.cdf(0.0, loc=mode, scale=SCALE)


@pytest.fixture(scope="module", name="runs")
def make_runs():
    def run(y, seed):
        return baselines.functional_mechanism(
            ROWS, y, budget=dpci.PureDP(EPSILON), rows=dpci.rows.Within(intercept=False), seed=seed
        ).params[0]

    return [np.array([run(y, seed + 10**6 * i) for seed in range(N_RUNS)]) for i, y in enumerate(TARGETS)]


@pytest.mark.parametrize("which", [0, 1])
def test_one_parameter_has_its_exact_law(runs, which, accept):
    # Few runs are exactly 0, where Q is not positive: their number is binomial, and the rest is continuous.
    zero = stats.laplace.cdf(0.0, loc=12.0 + RIDGE, scale=SCALE)
    n_zero = int((runs[which] == 0.0).sum())
    accept(stats.binomtest(n_zero, N_RUNS, zero).pvalue)
    grid = np.linspace(-3.0, 3.0, 401)
    table = cdf(grid, TARGETS[which])
    accept(stats.kstest(runs[which], lambda t: np.interp(t, grid, table)).pvalue)


def test_neighbours_are_within_epsilon_and_would_not_be_within_half():
    # All events "params <= t" and their complements, exactly.
    grid = np.linspace(-2.0, 3.0, 301)
    first, second = (np.concatenate([p, 1.0 - p]) for p in (cdf(grid, y) for y in TARGETS))
    keep = np.minimum(first, second) > 1e-7
    loss = np.abs(np.log(first[keep] / second[keep])).max()
    assert 0.5 * EPSILON < loss <= EPSILON + 1e-9


def test_laplace_noise(accept):
    draws = dpci.lowlevel.laplace(20_000, 4, 2.5, 77)
    accept(stats.kstest(draws.ravel(), stats.laplace(scale=2.5).cdf).pvalue)
    accept(min(stats.spearmanr(draws[:, 0], draws[:, j]).pvalue for j in (1, 2, 3)), n_tests=3)


def test_counts_of_empty_cells_have_the_noise_of_full_ones(accept):
    spec = specified(
        _core.HistogramSpec, axes=[([0], np.linspace(-1.0, 1.0, 2000).tolist())], n_columns=1, targets=[0.0],
        loss=_core.Loss("squared", 1.0), budget=_core.Budget.pure(0.5),
    )  # fmt: skip
    x = np.tile(np.linspace(-1.0, 1.0, 2000)[:1000, None], (3, 1))  # three records in each cell of the first half
    counts = _core.release(spec, _core.Records(x, np.zeros(3000)), on_violation="clip", n_threads=1, seed=None)[
        "counts"
    ]
    law = stats.laplace(scale=2.0 / 0.5)
    accept(stats.kstest(counts[:1000] - 3.0, law.cdf).pvalue)
    accept(stats.kstest(counts[1000:], law.cdf).pvalue)


RATE = 1.3


def trace_and_half_gap(matrices):
    n11, n12, n22 = np.moveaxis(matrices, -1, 0)
    return n11 + n22, np.hypot((n11 - n22) / 2.0, n12)


def log_density(trace, half_gap, rate=RATE, n_nodes=60):
    """Log of g(N) = C exp(rate tr N) * integral of exp(-2 rate tr P) over P >= 0, P >= N (r > 0).

    Of P, the trace is integrated out: it exceeds 2|p| and t + 2|p - p_N|. What is left is an integral over the plane of
    exp(-2 rate max(2|p|, t + 2|p - p_N|)) / (2 rate). In the elliptic coordinates (m, v) whose foci are 0 and p_N,
    2|p| and 2|p - p_N| are r (cosh m + cos v) and r (cosh m - cos v), and the area element is
    (r / 2)^2 (cosh^2 m - cos^2 v). The integral over m is a Bessel function, the one over v is done by Gauss-Legendre
    on both sides of its kink at cos v = t / 2r.
    """
    trace, half_gap = np.broadcast_arrays(np.asarray(trace, dtype=float), np.asarray(half_gap, dtype=float))
    z, kink = 2.0 * rate * half_gap, trace / (2.0 * half_gap)
    # Integrals of exp(-z (cosh m - 1)), times 1 and times cosh^2 m, from m = 0.
    one, cosh_squared = special.kve(0, z), (special.kve(0, z) + special.kve(2, z)) / 2.0
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    split = np.arccos(np.clip(kink, -1.0, 1.0))
    total = np.zeros_like(z)
    for start, half in ((0.0 * split, split / 2.0), (split, (np.pi - split) / 2.0)):
        cosine = np.cos(start[..., None] + half[..., None] * (1.0 + nodes))
        area = cosh_squared[..., None] - one[..., None] * cosine**2
        total += half * ((area * np.exp(-z[..., None] * np.abs(cosine - kink[..., None]))) @ weights)
    normalisation = 2.0 * np.log(2.0 * rate**3 / np.pi) - np.log(2.0 * rate)
    return normalisation - z + np.log(2.0 * (half_gap / 2.0) ** 2 * total)


@pytest.mark.parametrize(("trace", "half_gap"), [(0.3, 0.7), (-0.5, 1.2), (2.0, 0.4), (-3.0, 1.0)])
def test_density_is_the_integral(trace, half_gap):
    """In plain polar coordinates, slow and less exact."""

    def integrand(angle, radius):
        other = np.hypot(radius * np.cos(angle) - half_gap, radius * np.sin(angle))
        return radius * np.exp(-2.0 * RATE * max(2.0 * radius, trace + 2.0 * other))

    plane = 2.0 * integrate.dblquad(integrand, 0.0, 20.0 / RATE, 0.0, np.pi, epsabs=0.0, epsrel=1e-7)[0]
    expected = 2.0 * np.log(2.0 * RATE**3 / np.pi) + RATE * trace + np.log(plane / (2.0 * RATE))
    assert log_density(trace, half_gap) == pytest.approx(expected, abs=1e-6)


@pytest.fixture(scope="module")
def neighbours():
    """Matrices N and shifts D of all sizes and signs: log g(N + D) - log g(N), and the eigenvalues of D."""
    rng = np.random.default_rng(10)
    sizes = np.exp(rng.uniform([-3.0, -4.0], [4.0, 2.0], (40_000, 2)))
    matrices, shifts = rng.standard_normal((2, 40_000, 3)) * sizes.T[..., None]
    shifts[:2000, 1] = matrices[:2000, 1] = 0.0
    trace, half_gap = trace_and_half_gap(shifts)
    change = log_density(*trace_and_half_gap(matrices + shifts)) - log_density(*trace_and_half_gap(matrices))
    return change, np.stack([trace / 2.0 + half_gap, trace / 2.0 - half_gap])


def test_density_ratio_is_bounded_by_the_nuclear_norm(neighbours):
    change, eigenvalues = neighbours
    share = change / (RATE * np.abs(eigenvalues).sum(axis=0))
    indefinite = eigenvalues.prod(axis=0) < 0
    assert np.abs(share).max() <= 1.0 + 1e-9
    assert np.abs(share[indefinite]).max() <= 1.0 + 1e-9
    # The bound is not loose, for indefinite shifts neither.
    assert share.max() > 0.99
    assert share.min() < -0.99
    assert share[indefinite].max() > 0.99
    assert share[indefinite].min() < -0.99


def test_density_ratio_is_not_bounded_by_smaller_norms(neighbours):
    change, eigenvalues = neighbours
    assert (np.abs(change) / (RATE * np.sqrt((eigenvalues**2).sum(axis=0)))).max() > 1.3
    assert (np.abs(change) / (RATE * np.abs(eigenvalues).max(axis=0))).max() > 1.8


def cell_probabilities(edges):
    """Probability of each pair (i, j), i >= j, of cells of the greater and the lesser eigenvalue.

    The density of the eigenvalues is pi times their gap times g: 2 pi r dr dt in their coordinates. The edges hold 0,
    where g has its kinks.
    """
    nodes, weights = np.polynomial.legendre.leggauss(16)
    nodes, weights = (nodes + 1.0) / 2.0, weights / 2.0
    first, second = np.meshgrid(nodes, nodes, indexing="ij")
    starts, widths = edges[:-1], np.diff(edges)
    cells = {}
    for i in range(len(starts)):
        for j in range(i + 1):
            # On the diagonal the greater one spans the cell and the lesser one what is below it: a triangle.
            lesser_unit, jacobian = (first * second, first) if i == j else (second, 1.0)
            greater, lesser = starts[i] + widths[i] * first, starts[j] + widths[j] * lesser_unit
            gap = greater - lesser
            density = np.pi * gap * np.exp(log_density(greater + lesser, gap / 2.0, rate=1.0))
            cells[i, j] = widths[i] * widths[j] * (weights @ (jacobian * density) @ weights)
    return cells


def test_sampler_has_the_density(accept):
    """Chi-squared over the eigenvalues and the angle of the first eigenvector, that is over the whole matrix."""
    n, n_angles = 400_000, 4
    edges = np.array([-40, -20, -8, -4, -2.5, -1.5, -0.8, -0.3, 0, 0.3, 0.8, 1.5, 2.5, 4, 8, 20, 40], dtype=float)
    cells = cell_probabilities(edges)
    assert sum(cells.values()) == pytest.approx(1.0, abs=1e-6)

    draws = lowlevel.symmetric_matrix_laplace(n, 2, 1.0 / RATE, seed=600) * RATE
    trace, half_gap = trace_and_half_gap(draws[:, [0, 1, 1], [0, 0, 1]])
    angle = np.arctan2(draws[:, 1, 0], (draws[:, 0, 0] - draws[:, 1, 1]) / 2.0)
    accept(stats.kstest(angle, stats.uniform(-np.pi, 2.0 * np.pi).cdf, method="asymp").pvalue)

    columns = [trace / 2.0 + half_gap, trace / 2.0 - half_gap, angle]
    angles = np.linspace(-np.pi, np.pi, n_angles + 1)
    counts = np.histogramdd(np.column_stack(columns), bins=[edges, edges, angles])[0]
    observed, expected = [], []
    for (i, j), probability in cells.items():
        observed.extend(counts[i, j])
        expected.extend([n * probability / n_angles] * n_angles)
    observed, expected = np.array(observed), np.array(expected)
    # Cells too rare for the approximation are counted as one.
    rare = expected < 20.0
    observed = np.append(observed[~rare], observed[rare].sum() + n - observed.sum())
    expected = np.append(expected[~rare], n - expected[~rare].sum())
    assert len(expected) > 200
    accept(stats.chisquare(observed, expected).pvalue)
