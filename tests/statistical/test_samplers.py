"""The samplers have the laws that proofs and intervals rest on: directions, and matrices as a whole."""

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci import lowlevel
from dpci.model.settings import Settings

SCALE = 0.7
# Largest first dimension: the isometric coordinates of a 91 x 91 matrix.
SIZES = {1: 200_000, 2: 200_000, 11: 100_000, 66: 20_000, 4186: 2_000}


@pytest.fixture(scope="module", params=SIZES, ids=lambda dim: f"dim{dim}")
def spherical(request):
    dim = request.param
    return lowlevel.spherical_laplace(SIZES[dim], dim, SCALE, seed=100 + dim)


def unit_vectors(dim, count):
    """A coordinate and fixed mixtures of all of them, as columns of norm 1."""
    mixtures = np.random.default_rng(7).standard_normal((dim, count))
    mixtures[:, 0] = np.arange(dim) == dim - 1
    return mixtures / np.linalg.norm(mixtures, axis=0)


def pvalue_of_law(sample, cdf):
    return stats.kstest(sample, cdf, method="asymp").pvalue


def pvalue_of_same_law(first, second):
    return stats.ks_2samp(first, second, method="asymp").pvalue


def isometric(matrices):
    """Coordinates of symmetric matrices in which the Euclidean norm is the Frobenius norm."""
    rows, columns = np.tril_indices(matrices.shape[1])
    return matrices[:, rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))


def least_pvalue_of_covariances(coordinates, variance):
    """Least p-value over all second moments of centred coordinates, which should be ``variance`` times the identity."""
    n, dim = coordinates.shape
    moments = coordinates.T @ coordinates / n
    squares = coordinates**2
    errors = np.sqrt((squares.T @ squares / n - moments**2) / n)
    z = np.abs(moments - variance * np.eye(dim)) / errors
    return {"pvalue": 2.0 * stats.norm.sf(z.max()), "n_tests": dim * (dim + 1) // 2}


# Spherical Laplace.


def test_directions_are_uniform(spherical, accept):
    n, dim = spherical.shape
    radius = np.linalg.norm(spherical, axis=1)
    directions = spherical / radius[:, None]
    # The product of consecutive directions has the same law, which would show a generator that repeats itself.
    cosines = [*(directions @ unit_vectors(dim, 4)).T, np.einsum("ij,ij->i", directions[1::2], directions[::2])]
    for cosine in cosines:
        if dim == 1:
            accept(stats.binomtest(int((cosine > 0).sum()), len(cosine)).pvalue)
        else:
            accept(pvalue_of_law((1.0 + cosine) / 2.0, stats.beta((dim - 1) / 2, (dim - 1) / 2).cdf))
    far = radius > np.median(radius)
    if dim > 1:
        accept(pvalue_of_same_law(cosines[0][far], cosines[0][~far]))
    if n > dim > 1:
        accept(**least_pvalue_of_covariances(directions, 1.0 / dim))


# Gaussian.


@pytest.mark.parametrize("dim", [1, 2, 11])
def test_symmetric_gaussian(dim, accept):
    draws = lowlevel.symmetric_gaussian(50_000, dim, SCALE, seed=300 + dim)
    assert np.array_equal(draws, draws.transpose(0, 2, 1))
    coordinates = isometric(draws)
    accept(**least_pvalue_of_covariances(coordinates, SCALE**2))
    accept(pvalue_of_law(draws[:, 0, 0], stats.norm(scale=SCALE).cdf))
    for contrast in (coordinates @ unit_vectors(coordinates.shape[1], 3)).T:
        accept(pvalue_of_law(contrast, stats.norm(scale=SCALE).cdf))
    if dim > 1:
        accept(pvalue_of_law(draws[:, 1, 0], stats.norm(scale=SCALE / np.sqrt(2.0)).cdf))


# Symmetric matrix Laplace.


@pytest.fixture(scope="module", params=[2, 5, 20], ids=lambda dim: f"dim{dim}")
def matrices(request):
    dim = request.param
    return lowlevel.symmetric_matrix_laplace(30_000, dim, SCALE, seed=400 + dim)


def rotation(dim):
    return np.linalg.qr(np.random.default_rng(8).standard_normal((dim, dim)))[0]


def test_matrix_laplace_entries_are_variance_gamma(matrices, accept, variance_gamma_cdf):
    """u'Pu is chi-squared with dim + 1 degrees of freedom times scale / 2, a gamma variable.

    So u'Nu is a difference of two gamma variables. An off-diagonal entry is, turned by 45 degrees, half the difference
    of two diagonal entries, and the trace a sum of all of them, which are independent.
    """
    dim = matrices.shape[1]
    diagonal = variance_gamma_cdf((dim + 1) / 2, 1.0 / SCALE)
    for u in unit_vectors(dim, 4).T:
        accept(pvalue_of_law(np.einsum("i,nij,j->n", u, matrices, u, optimize=True), diagonal))
    off_diagonal = variance_gamma_cdf(dim + 1.0, 2.0 / SCALE)
    accept(pvalue_of_law(matrices[:, 1, 0], off_diagonal))
    u, w = rotation(dim)[:, :2].T
    accept(pvalue_of_law(np.einsum("i,nij,j->n", u, matrices, w, optimize=True), off_diagonal))
    trace = variance_gamma_cdf(dim * (dim + 1) / 2, 1.0 / SCALE)
    accept(pvalue_of_law(np.trace(matrices, axis1=1, axis2=2), trace))


def test_matrix_laplace_is_rotation_invariant(matrices, accept):
    dim, half = matrices.shape[1], len(matrices) // 2
    q = rotation(dim)
    plain, rotated = matrices[:half], q @ matrices[half:] @ q.T
    # The greatest entry depends on the axes unless the law does not; its negative compares N with -N.
    for entries in (
        lambda m: np.abs(m).max(axis=(1, 2)),
        lambda m: m.max(axis=(1, 2)),
        lambda m: m[:, 0, 0] * m[:, 1, 1],
    ):
        accept(pvalue_of_same_law(entries(plain), entries(rotated)))
    accept(pvalue_of_same_law(plain.max(axis=(1, 2)), (-rotated).max(axis=(1, 2))))


def test_matrix_laplace_has_the_spectrum_of_a_difference_of_wisharts(matrices, accept):
    dim, n = matrices.shape[1], 10_000
    factors = np.random.default_rng(9).standard_normal((2, n, dim + 1, dim)) * np.sqrt(SCALE / 2.0)
    p, q = factors.transpose(0, 1, 3, 2) @ factors
    ours, theirs = np.linalg.eigvalsh(matrices[:n]), np.linalg.eigvalsh(p - q)
    for functional in (lambda e: e[:, 0], lambda e: e[:, -1], lambda e: (e**2).sum(axis=1), lambda e: e.prod(axis=1)):
        accept(pvalue_of_same_law(functional(ours), functional(theirs)))


# The paper's law: spherical Laplace on all d**2 entries, symmetrised.


def test_paper_noise_is_a_symmetrised_spherical_laplace_matrix(accept, variance_gamma_cdf):
    """Released value, before the regulariser is added, less its exact value at the released parameters."""
    dim, n_runs = 3, 40_000
    X = np.array([[0.6, -0.3, 0.1], [0.0, 0.5, -0.8]])
    y = np.array([1.0, -1.0])
    settings = Settings.checked(
        budget=dpci.PureDP(8.0),
        l2_strength=0.5,
        mechanism=dpci.ObjectivePerturbation(calibration="paper"),
        rows=dpci.rows.Within(intercept=False),
    )
    spec = settings.spec(len(X), dim)
    releases = dpci._core.simulate(spec, dpci._core.Records(X, y), n_runs=n_runs, seed=500, n_threads=1)
    params, hessian = releases[:, :dim], releases[:, dim : dim + dim * (dim + 1) // 2]
    rows, columns = np.tril_indices(dim)
    positive = 1.0 / (1.0 + np.exp(-params @ X.T))
    exact = np.einsum("ni,ij,ik->njk", positive * (1.0 - positive), X, X) / len(X)
    noise = hessian - exact[:, rows, columns]

    # The Hessian has a quarter of the budget, and the paper's Lemma 2 the sensitivity 2 sup(curvature) / n.
    rate = 2.0 / (2.0 * 0.25 / len(X))
    raw_entry = variance_gamma_cdf((dim**2 + 1) / 2, rate)
    accept(pvalue_of_law(noise[:, 0], raw_entry))
    accept(pvalue_of_law(noise[:, -1], raw_entry))
    # The mean of two entries is a unit contrast of both over the root of 2.
    accept(pvalue_of_law(noise[:, 1] * np.sqrt(2.0), raw_entry))
    coordinates = noise * np.where(rows == columns, 1.0, np.sqrt(2.0))
    accept(**least_pvalue_of_covariances(coordinates, (dim**2 + 1) / rate**2))
    accept(pvalue_of_law(coordinates @ unit_vectors(coordinates.shape[1], 2)[:, 1], raw_entry))
