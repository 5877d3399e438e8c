"""The certified minimiser of hinge risks: against exact arithmetic, also on a sphere, and on hard rows."""

import mpmath
import numpy as np
import pytest
from scipy import sparse

import dpci
from dpci import lowlevel
from dpci.losses import Hinge
from papers.scaling import load_with_data_dependent_scaling
from support.exact_risk import distance, exact_minimum, unoptimality
from support.kddcup99 import needs_percent10


def minimize(X, y, l2_strength, **keywords):
    return lowlevel.minimize_erm(X, y, loss=Hinge(), l2_strength=l2_strength, **keywords)


def classes(n, d, seed):
    """Rows of norm at most 1 in two classes that overlap."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) / rng.uniform(0.2, 1.0, (n, 1))
    return X, np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n) > 0.0, 1.0, -1.0)


def one_hot(n, seed):
    """Rows from three categorical columns, unscaled: many equal ones, and x1 + x2 = x3 + x4 for many four of them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, [2, 3, 4], size=(n, 3))
    X = np.hstack([np.eye(size)[codes[:, k]] for k, size in enumerate((2, 3, 4))])
    return X, np.where(codes.sum(axis=1) + rng.integers(-2, 3, n) > 3, 1.0, -1.0)


# Against exact arithmetic.


@pytest.mark.parametrize("bounded", [False, True], ids=["free", "ball"])
def test_certificate_bounds_the_distance_to_the_exact_minimiser(bounded):
    n_kinks = n_on_sphere = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(1, 13), rng.integers(1, 5)
        (X, y), l2_strength = classes(n, d, seed), 10.0 ** rng.uniform(-5, 1)
        radius = 10.0 ** rng.uniform(-1, 1) if bounded else None
        found = minimize(X, y, l2_strength, radius=radius)
        exact = exact_minimum(X, y, l2_strength, found.params, radius=radius)
        assert exact is not None, seed
        assert distance(found.params, exact) <= found.certificate <= 1e-10, seed
        n_kinks += np.any(np.abs(y * (X @ found.params) - 1.0) < 1e-12)
        n_on_sphere += bounded and abs(np.linalg.norm(found.params) - radius) < 1e-12
    # Not only easy problems: the point lies at kinks, and on the sphere, in many of them.
    assert n_kinks >= 30
    assert n_on_sphere >= 30 * bounded


# Degenerate data.


@pytest.mark.parametrize("l2_strength", [1.0, 0.01, 1e-4, 1e-7])
@pytest.mark.parametrize("radius", [None, 1.3])
def test_dependent_and_repeated_rows(l2_strength, radius):
    X, y = one_hot(3_000, seed=1)
    found = minimize(X, y, l2_strength, radius=radius)
    assert found.certificate <= 1e-10
    assert unoptimality(X, y, l2_strength, found.params, radius or np.inf) < 1e-8


ROWS = {
    "zeros": (np.zeros((5, 3)), np.array([1.0, -1.0, 1.0, 1.0, -1.0])),
    "one row": (np.array([[0.6, 0.8]]), np.array([1.0])),
    "one class": (classes(30, 3, seed=2)[0], np.ones(30)),
    "contradictions": (np.repeat(classes(10, 3, seed=3)[0], 2, axis=0), np.tile([1.0, -1.0], 10)),
    "separable": (np.array([[1.0, 0.1], [0.9, 0.0], [-1.0, 0.1]]), np.array([1.0, 1.0, -1.0])),
    "nearly equal rows": (1.0 - 1e-9 * np.arange(20.0)[:, None] * [1.0, 0.3], np.ones(20)),
    "long and short rows": (classes(40, 3, seed=4)[0] * np.logspace(-6, 3, 40)[:, None], classes(40, 3, seed=4)[1]),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("total", [1e-3, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("radius", [None, 1e-8, 1.0])
def test_odd_rows_and_strengths(rows, total, radius):
    X, y = rows
    l2_strength = total / len(y)
    found = minimize(X, y, l2_strength, radius=radius)
    assert np.all(np.isfinite(found.params))
    assert found.certificate <= 1e-10
    assert np.linalg.norm(found.params) <= (radius or np.inf) * (1.0 + 1e-15)


def test_contradictions_leave_nothing():
    assert minimize(*ROWS["contradictions"], 0.1).params == pytest.approx(0.0, abs=1e-15)


def test_what_cannot_be_certified_is_refused():
    X, y = classes(50, 3, seed=6)
    with pytest.raises(dpci.NotConverged, match="certified to within 1e-30"):
        minimize(X, y, 0.1, tolerance=1e-30)
    for radius in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(dpci.InvalidInput, match="radius"):
            minimize(X, y, 0.1, radius=radius)


def test_linear_terms_starts_intercepts_and_sparse_rows():
    X, y = classes(200, 4, seed=7)
    plain = minimize(X, y, 0.01, intercept=0.5)
    for other in (
        minimize(np.column_stack([X, np.full(200, 0.5)]), y, 0.01),
        minimize(sparse.csr_array(X), y, 0.01, intercept=0.5),
        minimize(X, y, 0.01, intercept=0.5, start=np.full(5, 9.0)),
    ):
        assert np.linalg.norm(other.params - plain.params) <= 1e-12
    # A linear term moves the minimiser as if it moved the centre of the ridge, here without any kink in reach.
    linear = np.array([0.01, 0.0, -0.02, 0.0])
    moved = minimize(X, y, 10.0, linear_term=linear).params - minimize(X, y, 10.0).params
    assert moved == pytest.approx(-linear / 10.0, abs=1e-15)


# Many rows, which are not all handled one by one.


@pytest.mark.parametrize("radius", [None, 2.0])
@pytest.mark.parametrize("l2_strength", [0.01, 1e-5])
def test_many_rows(l2_strength, radius):
    X, y = classes(40_000, 8, seed=8)
    found = minimize(X, y, l2_strength, radius=radius, n_threads=1)
    assert found.certificate <= 1e-10
    assert unoptimality(X, y, l2_strength, found.params, radius or np.inf) < 1e-8
    again = minimize(X, y, l2_strength, radius=radius, n_threads=2)
    assert np.array_equal(found.params, again.params)
    assert np.linalg.norm(minimize(sparse.csr_array(X), y, l2_strength, radius=radius).params - found.params) < 1e-11


@pytest.mark.parametrize("l2_strength", [0.002, 1e-5])
def test_the_packaged_census_sample(l2_strength):
    data = dpci.datasets.load_adult_sample()
    X, y = np.asarray(data.X), np.where(np.asarray(data.y) == np.max(data.y), 1.0, -1.0)
    found = minimize(X, y, l2_strength)
    assert found.certificate <= 1e-10
    assert unoptimality(X, y, l2_strength, found.params) < 1e-8


@pytest.fixture(scope="module")
def connections():
    with pytest.warns(dpci.PrivacyLeakWarning):
        return load_with_data_dependent_scaling("kddcup99", 30_000, 40)


@needs_percent10
@pytest.mark.parametrize("d", [10, 20, 40])
def test_network_connections(connections, d):
    # Rows that differ by 1e-8 and less, thousands of them at their kink to the digits of f64.
    X = np.ascontiguousarray(connections.X[:, :d])
    for l2_strength in (0.002, 1e-5):
        assert minimize(X, connections.y, l2_strength).certificate <= 1e-10


# How far one record moves the minimiser.


@pytest.mark.parametrize("radius", [None, 0.7])
def test_no_neighbour_moves_the_minimiser_beyond_its_sensitivity(radius):
    greatest = 0.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 8)), int(rng.integers(1, 4))
        (X, y), l2_strength = classes(n, d, seed), 10.0 ** rng.uniform(-2, 0.5)
        X /= np.linalg.norm(X, axis=1, keepdims=True) * (1.0 + 1e-15)
        base = minimize(X, y, l2_strength, radius=radius).params
        directions = [*np.eye(d), *-np.eye(d), base, -base, X[0], -X[0], *rng.standard_normal((4, d))]
        for direction in directions:
            if np.linalg.norm(direction) == 0.0:
                continue
            other = X.copy()
            other[0] = direction / np.linalg.norm(direction)
            for label in (-1.0, 1.0):
                moved = minimize(other, np.append(label, y[1:]), l2_strength, radius=radius).params - base
                greatest = max(greatest, np.linalg.norm(moved) * n * l2_strength / 2.0)
    assert greatest <= 1.0 + 1e-9
    # The bound 2LR/(n l2_strength) is attained where no margin reaches 1 and the ball does not bind.
    assert greatest >= 0.95


OFFSETS = [0.0, *(s * 10.0**-k for k in (16, 15, 13, 11, 9, 8, 6) for s in (1.0, -1.0))]


def minimize_on_sphere(X, y, l2_strength, radius):
    return lowlevel.minimize_erm(X, y, loss=Hinge(), l2_strength=l2_strength, radius=radius)


def along_axes(rng):
    """Records along axes: kinks at 1/length on the first, none in reach on the others; a sphere that touches some."""
    d, n = int(rng.integers(1, 6)), int(10.0 ** rng.uniform(0.5, 4.5))
    n_tangent = int(rng.integers(1, d + 1))
    length = rng.choice([1.0, 0.5**0.5, rng.uniform(0.1, 2.0)])
    lengths = np.where(np.arange(d) < n_tangent, length, length * 10.0 ** rng.uniform(-9, -3, d))
    axes = rng.choice(d, n, p=rng.dirichlet(np.full(d, rng.choice([0.3, 3.0]))))
    X = np.zeros((n, d))
    X[np.arange(n), axes] = lengths[axes]
    y = np.where(rng.random(n) < rng.uniform(0.5, 1.0, d)[axes], 1.0, -1.0)
    radius = np.sqrt(rng.integers(1, n_tangent + 1)) / length * (1.0 + rng.choice(OFFSETS))
    return X, y, lengths, 10.0 ** rng.uniform(-5, 1), radius


def minimum_along_axes(X, y, lengths, l2_strength, radius):
    """The minimiser to 60 digits, and whether both a kink and the sphere hold it.

    With the ridge r of the ball's multiplier the coordinates part: each is pull/r or at its kink, whichever is less.
    The norm falls with r, and between the values of r where coordinates reach their kinks it is a closed form of r.
    """
    with mpmath.workdps(80):
        kinks = [1 / mpmath.mpf(float(h)) for h in lengths]
        pulls = [int(s) / kink for s, kink in zip(np.where(X > 0.0, y[:, None], 0.0).sum(axis=0), kinks, strict=True)]
        square = mpmath.mpf(float(radius)) ** 2
        point = lambda r: [mpmath.sign(p) * min(abs(p) / r, kink) for p, kink in zip(pulls, kinks, strict=True)]  # noqa: E731
        norm = lambda r: sum(t**2 for t in point(r))  # noqa: E731
        free = len(y) * mpmath.mpf(float(l2_strength))
        ridge = free
        if norm(free) > square:
            breaks = sorted(b for p, kink in zip(pulls, kinks, strict=True) if (b := abs(p) / kink) > free)
            low = max([free, *(b for b in breaks if norm(b) > square)])
            held = [abs(p) / kink > low for p, kink in zip(pulls, kinks, strict=True)]
            room = square - sum(kink**2 for kink, at in zip(kinks, held, strict=True) if at)
            pull = sum(p**2 for p, at in zip(pulls, held, strict=True) if not at)
            ridge = mpmath.sqrt(pull / room)
        params = point(ridge)
        at_kink = any(abs(t) == kink for t, kink in zip(params, kinks, strict=True))
        return params, at_kink and ridge > free


def any_direction(rng):
    """Up to four directions and their reverses, some of them nearly equal, with rows of length 1."""
    d, n = int(rng.integers(1, 6)), int(10.0 ** rng.uniform(0.5, 4.5))
    kinds = rng.standard_normal((int(rng.integers(1, 5)), d))
    if rng.random() < 0.5:
        kinds = np.vstack([kinds, kinds + rng.choice([1e-12, 1e-9, 1e-6]) * rng.standard_normal(kinds.shape)])
    kinds /= np.linalg.norm(kinds, axis=1, keepdims=True)
    X = kinds[rng.integers(0, len(kinds), n)] * rng.choice([-1.0, 1.0], (n, 1))
    y = np.where(rng.random(n) < rng.uniform(0.5, 1.0), 1.0, -1.0) * np.where(X[:, 0] > 0.0, 1.0, -1.0)
    return X, y, 10.0 ** rng.uniform(-5, 0), (1.0 + rng.choice(OFFSETS)) / np.linalg.norm(X, axis=1).max()


def test_rows_along_axes_against_a_closed_form():
    n_held = 0
    for seed in range(400):
        X, y, lengths, l2_strength, radius = along_axes(np.random.default_rng(seed))
        exact, held = minimum_along_axes(X, y, lengths, l2_strength, radius)
        for rows in (X, sparse.csr_array(X)):
            found = minimize_on_sphere(rows, y, l2_strength, radius)
            assert distance(found.params, exact) <= found.certificate <= 1e-10, seed
        n_held += held
    # Not only easy problems: in many of them both a kink and the sphere hold the point.
    # Of other seeds 50 to 60: less than 20 have a chance of 1e-6.
    assert n_held >= 20


def test_rows_in_any_direction():
    n_touching = 0
    for seed in range(400):
        X, y, l2_strength, radius = any_direction(np.random.default_rng(seed))
        found = minimize_on_sphere(X, y, l2_strength, radius)
        assert found.certificate <= 1e-10, seed
        again = minimize_on_sphere(sparse.csr_array(X), y, l2_strength, radius)
        assert np.linalg.norm(found.params - again.params) <= found.certificate + again.certificate, seed
        at_kink = np.abs(y * (X @ found.params) - 1.0) < 1e-12
        n_touching += np.any(at_kink) and np.linalg.norm(found.params) > radius * (1.0 - 1e-12)
        if not 0.0 < abs(radius - 1.0) < 1e-5:
            assert unoptimality(X, y, l2_strength, found.params, radius) < 1e-8, seed
    assert n_touching >= 50


@pytest.mark.parametrize(("length", "extra"), [(1.0, 0), (1.0, 1), (0.5**0.5, 0)])
def test_fits_with_the_radius_of_the_rows_reciprocal(length, extra):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.zeros((20_000, 1 + extra))
        X[:, 0] = length * rng.choice([-1.0, 1.0], 20_000)
        y = np.where(rng.random(20_000) < 0.8, np.sign(X[:, 0]), -np.sign(X[:, 0]))
        fitted = dpci.fit(
            X, y, budget=dpci.PureDP(1.0), l2_strength=0.01, classes=(-1, 1), loss=Hinge(),
            mechanism=dpci.OutputPerturbation(moments="none", radius=1.0 if length == 1.0 else 2.0**0.5),
            rows=dpci.rows.Within(intercept=False),
        )  # fmt: skip
        assert np.all(np.isfinite(fitted.params))


def test_radii_and_rows_beyond_the_range_of_numbers_are_refused():
    X, y = np.eye(3), np.ones(3)
    for radius in (1e-100, 1e-61, 1e61, 1e200):
        with pytest.raises(dpci.InvalidInput, match="radius must be between 1e-60 and 1e60 with the hinge, got"):
            minimize_on_sphere(X, y, 0.1, radius)
    for radius in (1e-60, 1e60):
        assert minimize_on_sphere(X, y, 0.1, radius).certificate <= 1e-10
    for scale, l2_strength in ((1.0, 1e300), (1e160, 1.0), (1e-160, 1e-300)):
        with pytest.raises(dpci.NotConverged, match=r"got ([0-9]|inf)"):
            minimize_on_sphere(scale * X, y, l2_strength, 1.0)
