"""How far one record moves the gradient of a loss on a ball: closed forms against brute force, and reached."""

import functools

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit

import dpci
from dpci import _core
from support.core import specified

ROW_NORM, N = 1.3, 60
LOSSES = {
    "logistic": dpci.losses.Logistic(),
    "soft_logistic": dpci.losses.SoftLogistic(),
    "smooth_hinge": dpci.losses.SmoothHinge(s=1.5),
    "huber_hinge": dpci.losses.HuberHinge(h=2.5),
}
# |slope| at a margin, not that of the core.
SLOPES = {
    "logistic": lambda z: expit(-z),
    "soft_logistic": lambda z: expit(-z),
    "smooth_hinge": lambda z: expit((1.0 - z) / 1.5),
    "huber_hinge": lambda z: np.clip((3.5 - z) / 5.0, 0.0, 1.0),
}
by_loss = pytest.mark.parametrize("name", LOSSES)
by_radius = pytest.mark.parametrize("radius", [0.2, 1.0, 3.0, 8.0])


def make_spec(name, radius, *, n=N, mechanism="objective", budget=None, l2_strength=10.0, intercept=None, dim=3):
    return specified(
        _core.Spec, n_samples=n, n_columns=dim, intercept=intercept, row_norm=ROW_NORM, loss=LOSSES[name].to_core(),
        l2_strength=l2_strength, radius=radius, budget=budget or _core.Budget.pure(1.0), mechanism=mechanism,
        projection="floor",
    )  # fmt: skip


def sensitivity(name, radius, **keywords):
    return make_spec(name, radius, **keywords).plan()["steps"][0].sensitivity


def distance(name, theta, a, b):
    """Between the gradients of records with y x = a and y x = b."""
    of_a, of_b = (SLOPES[name]((row * theta).sum(axis=-1))[..., None] * row for row in (a, b))
    return np.sqrt(((of_a - of_b) ** 2).sum(axis=-1))


def within(vectors, length):
    norms = np.sqrt((vectors**2).sum(axis=-1, keepdims=True))
    return vectors * np.minimum(1.0, length / np.maximum(norms, 1e-300))


@functools.cache
def triples(dim):
    """Parameters and pairs of rows in the unit ball, many on its sphere."""
    rng = np.random.default_rng(40)
    return [within(3.0 * rng.standard_normal((200_000, dim)), 1.0) for _ in range(3)]


@by_loss
@by_radius
@pytest.mark.parametrize("dim", [1, 2, 4])
def test_no_pair_exceeds_it(name, radius, dim):
    theta, a, b = triples(dim)
    bound = sensitivity(name, radius, dim=dim)
    assert distance(name, radius * theta, ROW_NORM * a, ROW_NORM * b).max() <= bound


@by_loss
@by_radius
@pytest.mark.parametrize("constant", [None, 0.6])
def test_the_best_pair_of_an_optimiser_reaches_it(name, radius, constant):
    """Over rows and parameters, with two columns or with two and a constant one, of either class."""
    rng, dim = np.random.default_rng(41), 2 if constant is None else 3

    lengths = np.array([[radius], [ROW_NORM], [ROW_NORM]])

    def vectors(numbers, signs):
        if constant is None:
            return within(numbers.reshape(3, dim), lengths)
        theta, *rows = numbers.reshape(3, dim)
        rows = np.column_stack([within(np.array(rows)[:, :2], ROW_NORM), np.multiply(signs, constant)])
        return within(theta, radius), *rows

    bound, best = sensitivity(name, radius, intercept=constant, dim=2), 0.0
    for signs in [(1.0, 1.0), (1.0, -1.0)] * 6:
        start = 2.0 * rng.standard_normal(3 * dim)
        found = optimize.minimize(
            lambda numbers, signs=signs: -distance(name, *vectors(numbers, signs)), start, method="Powell"
        )
        best = max(best, -found.fun)
        # An optimiser that comes so near has found the greatest distance, or one beyond the bound.
        if best > 0.9999 * bound:
            break
    assert 0.99 * bound <= best <= bound


def mirrored(name, radius):
    """The angle to -theta at which two mirror images have the most distant gradients, and that distance."""
    found = optimize.minimize_scalar(
        lambda s: -2.0 * ROW_NORM * SLOPES[name](-radius * ROW_NORM * np.sin(s)) * np.cos(s),
        bounds=(0.0, np.pi / 2.0), method="bounded",
    )  # fmt: skip
    return found.x, -found.fun


@by_loss
@pytest.mark.parametrize("radius", [1.0, 3.0, 8.0])
def test_the_exact_privacy_loss_reaches_epsilon_and_no_more(name, radius):
    """Pure objective perturbation: log-ratio of the densities at points of the ball, in closed form."""
    epsilon, n, l2_strength = 1.0, 100_000, 5e-4
    spec = make_spec(name, radius, n=n, l2_strength=l2_strength, dim=2)
    angle, _ = mirrored(name, radius)
    # Mirror images across the first axis; all other records are equal and turn the noise towards the second.
    pair = ROW_NORM * np.array([[np.sin(angle), np.cos(angle)], [np.sin(angle), -np.cos(angle)]])
    rng, step = np.random.default_rng(42), 1e-6
    theta = np.vstack([[[-radius * (1.0 - 1e-9), 0.0]], within(radius * rng.standard_normal((20_000, 2)), radius)])

    def noise_at(row, theta):
        rows, counts = np.array([[0.0, ROW_NORM], row]), np.array([n - 1.0, 1.0])
        return (counts * SLOPES[name](theta @ rows.T)) @ rows - n * l2_strength * theta

    def log_density(row):
        columns = [(noise_at(row, theta + d) - noise_at(row, theta - d)) / (2.0 * step) for d in step * np.eye(2)]
        log_det = np.log(np.abs(np.linalg.det(np.stack(columns, axis=-1))))
        return log_det - np.linalg.norm(noise_at(row, theta), axis=1) / spec.noise_scale

    losses = np.abs(log_density(pair[0]) - log_density(pair[1]))
    assert losses.max() <= epsilon
    # The determinants and the seal have a share of epsilon that these rows do not need.
    assert losses.max() >= 0.98 * epsilon


@by_loss
@pytest.mark.parametrize("l2_strength", [1e-3, 0.02, 0.4])
def test_minimisers_lie_in_the_ball_of_the_regulariser(name, l2_strength):
    """One row pulls as far as it can: the bound on the norm is nearly reached, and so no sensitivity looks further."""
    row, target = np.array([[ROW_NORM, 0.0]]), np.ones(1)
    greatest = 0.0
    # Shorter rows have less curvature: the best one has the margin of the greatest pull.
    for length in np.geomspace(0.01, 1.0, 60):
        found = dpci.lowlevel.minimize_erm(
            length * row, target, l2_strength=l2_strength, loss=LOSSES[name], intercept=False
        )
        greatest = max(greatest, np.linalg.norm(found.params))
    margins = np.linspace(0.0, 60.0, 600_001)
    pull = (margins * SLOPES[name](margins)).max()
    reach = np.sqrt(pull / l2_strength)
    assert greatest <= reach * (1.0 + 1e-6)
    # Rows no longer than R cannot have every margin.
    if reach * ROW_NORM > 3.0:
        assert greatest >= 0.99 * reach
    # Without a radius output perturbation takes this ball; with one, the smaller of the two.
    free = sensitivity(name, None, mechanism="output", l2_strength=l2_strength)
    as_radius = sensitivity(name, reach, l2_strength=l2_strength + 10.0) / (N * l2_strength)
    assert free == pytest.approx(as_radius, rel=1e-6)
    smaller = sensitivity(name, 0.5 * reach, mechanism="output", l2_strength=l2_strength)
    assert smaller < free or name == "huber_hinge"
    assert sensitivity(name, 2.0 * reach, mechanism="output", l2_strength=l2_strength) == pytest.approx(free, rel=1e-12)


@pytest.mark.parametrize("radius", [1.0, 3.0, 5.0])
def test_gaussian_corners_hold_every_pair_of_slopes(radius):
    """The corners of the region and its claim: no pair of slopes of two rows at one theta lies outside."""
    approx = _core.Budget.approx(1.0, 1e-6)
    spec = make_spec("logistic", radius, budget=approx)
    longest, steepest = spec.plan()["steps"][0].sensitivity, spec.slope_bound
    assert sensitivity("logistic", radius) <= longest <= 1.02 * sensitivity("logistic", radius)
    rng = np.random.default_rng(43)
    for _ in range(40):
        a, b = ROW_NORM * within(3.0 * rng.standard_normal((2, 3)), 1.0)
        theta = within(radius * rng.standard_normal((20_000, 3)), radius)
        s, t = (SLOPES["logistic"](theta @ row) for row in (a, b))
        # The region: both at most the steepest, and their sum at most its value where theta turns against both.
        greatest = 2.0 * SLOPES["logistic"](-0.5 * radius * np.linalg.norm(a + b))
        assert (s + t).max() <= greatest * (1.0 + 1e-12)
        other = min(greatest - steepest, steepest)
        for corner in [steepest * a - other * b, other * a - steepest * b]:
            assert np.linalg.norm(corner) <= longest
    # Labels between the classes have slopes of both signs, for which the corners are others.
    soft = make_spec("soft_logistic", radius, budget=approx)
    assert soft.plan()["steps"][0].sensitivity == pytest.approx(2.0 * ROW_NORM * steepest, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_the_profile_of_gaussian_noise_holds_in_two_dimensions(epsilon):
    """The hockey-stick divergence of the laws of mirror images, by integration, at a point near the sphere."""
    radius, delta, n, place = 3.0, 1e-3, 20_000, 2.8
    l2_strength = ROW_NORM * expit(-ROW_NORM * place) / place
    keywords = {"n": n, "budget": _core.Budget.approx(epsilon, delta), "l2_strength": l2_strength, "dim": 2}
    spec = make_spec("logistic", radius, **keywords)
    assert spec.noise_scale < 0.9 * make_spec("logistic", None, **keywords).noise_scale
    angle, farthest = mirrored("logistic", radius)
    # Other records hold theta at the place, where mirror images have the most distant gradients.
    axes = -place + np.linspace(-0.2, 0.2, 501), np.linspace(-0.3, 0.3, 501)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    theta = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    laws = []
    for side in (np.cos(angle), -np.cos(angle)):
        rows = ROW_NORM * np.array([[-1.0, 0.0], [np.sin(angle), side]])
        counts = np.array([n - 1.0, 1.0])
        slopes = expit(-theta @ rows.T)
        noise = (counts * slopes) @ rows - n * l2_strength * theta
        curvatures = counts * slopes * (1.0 - slopes)
        hessian = np.einsum("ij,jk,jl->ikl", curvatures, rows, rows) + n * l2_strength * np.eye(2)
        density = np.exp(-0.5 * ((noise / spec.noise_scale) ** 2).sum(axis=1)) / (2.0 * np.pi * spec.noise_scale**2)
        laws.append(density * np.linalg.det(hessian))
    assert cell * laws[0].sum() == pytest.approx(1.0, abs=1e-3)
    for p, q in [laws, laws[::-1]]:
        reached = cell * np.maximum(p - np.exp(epsilon) * q, 0.0).sum()
        # The claim adds up four corners, two of which are equally far.
        assert 0.2 * delta <= reached <= 0.5 * delta
    assert farthest == pytest.approx(sensitivity("logistic", radius, dim=2), rel=1e-3)


CASES = [(1.0, 1.0, 1.0), (1.0, 0.1, 1.0), (1.0, 10.0, 1.0), (2.0, 0.7, 0.3), (0.5, 3.0, 4.0)]
by_case = pytest.mark.parametrize(("row_norm", "radius", "target_bound"), CASES)
N_PAIRS = 50


def shift(row_norm, radius, target_bound, *, neighbors="replace_one", calibration="tight", dim=2):
    spec = specified(
        _core.Spec, n_samples=N_PAIRS, n_columns=dim, row_norm=row_norm, loss=_core.Loss("squared", target_bound),
        l2_strength=100.0, radius=radius, budget=_core.Budget.pure(1.0), mechanism="objective", projection="floor",
        calibration=calibration, neighbors=neighbors,
    )  # fmt: skip
    return spec.plan()["steps"][0].sensitivity


def gradient(x, theta, y):
    return 2.0 * ((x * theta).sum(axis=-1, keepdims=True) - y) * x


@by_case
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_pair_exceeds_that_of_the_squared_loss(row_norm, radius, target_bound, dim):
    rng = np.random.default_rng(9)
    n = 200_000
    x, z = rng.standard_normal((2, n, dim))
    inside = rng.choice([1.0, 1.0, 0.6], (2, n, 1))
    x, z = (row_norm * k * v / np.linalg.norm(v, axis=1, keepdims=True) for k, v in zip(inside, (x, z), strict=True))
    theta = radius * np.eye(dim)[0] * rng.choice([1.0, 1.0, 0.5], (n, 1))
    ends = target_bound * rng.choice([-1.0, 1.0], (2, n, 1))
    distance = np.linalg.norm(gradient(x, theta, ends[0]) - gradient(z, theta, ends[1]), axis=1)
    bound = shift(row_norm, radius, target_bound, dim=dim)
    assert distance.max() <= bound
    if dim == 2:
        assert distance.max() > 0.999 * bound


@by_case
def test_it_is_the_maximum_over_two_rows(row_norm, radius, target_bound):
    """By numerical optimisation over the angles of both rows."""

    def distance(angles):
        rows = row_norm * np.column_stack([np.cos(angles), np.sin(angles)])
        theta = np.array([radius, 0.0])
        return -np.linalg.norm(gradient(rows[0], theta, -target_bound) - gradient(rows[1], theta, -target_bound))

    starts = np.random.default_rng(10).uniform(-np.pi, np.pi, (30, 2))
    best = max(-optimize.minimize(distance, start).fun for start in starts)
    assert shift(row_norm, radius, target_bound) == pytest.approx(best, rel=1e-9)
    assert shift(row_norm, radius, target_bound) >= best * (1.0 - 1e-12)


def test_other_relations_and_calibrations_keep_the_slope_bound():
    assert shift(1.0, 1.0, 1.0, neighbors="add_remove") == pytest.approx(4.0, rel=1e-12)
    assert shift(1.0, 1.0, 1.0, calibration="paper") == pytest.approx(8.0, rel=1e-12)
    assert shift(1.0, 1.0, 1.0) == pytest.approx(3.0 * np.sqrt(3.0), rel=1e-12)
    assert shift(1.0, 1e60, 1.0) >= 2e60


@by_case
@pytest.mark.parametrize("binding", [False, True])
def test_minimisers_of_a_constructed_pair_reach_it(row_norm, radius, target_bound, binding):
    """With many short rows that hold the minimiser near (W, 0), the two extreme rows pull it to both sides.

    Where the bound binds, the pull along the sphere alone remains, and the sphere is what holds the minimiser.
    """
    n, l2_strength = 4000, 20.0 * row_norm**2
    low, high = 0.0, np.pi / 2.0
    found = optimize.minimize_scalar(
        lambda s: -(2.0 * row_norm * radius * row_norm * np.sin(2 * s) + 4.0 * row_norm * target_bound * np.cos(s)),
        bounds=(low, high), method="bounded",
    )  # fmt: skip
    # cos of the angle to theta is sin s.
    extreme = row_norm * np.array([[np.sin(found.x), np.cos(found.x)], [np.sin(found.x), -np.cos(found.x)]])
    # Rows along the first axis whose targets would put the minimiser at, or beyond, the sphere by themselves.
    short, push = 1e-4 * row_norm, (3.0 if binding else 1.0)
    need = l2_strength * radius / (2.0 * short)
    rows = np.zeros((n, 2))
    rows[:, 0] = short
    y = np.full(n, push * need)
    loss = dpci.losses.Squared(max(target_bound, push * need))
    minima = []
    for x in extreme:
        rows[0], y[0] = x, -target_bound
        minima.append(
            dpci.lowlevel.minimize_erm(
                rows, y, l2_strength=l2_strength, loss=loss, radius=radius, tolerance=1e-12
            ).params
        )
    moved = np.linalg.norm(minima[0] - minima[1])
    bound = shift(row_norm, radius, target_bound) / (n * l2_strength)
    assert moved <= bound * (1.0 + 1e-6)
    # At the sphere the multiplier adds to the curvature, so a pair reaches less there.
    assert moved >= (0.3 if binding else 0.95) * bound
