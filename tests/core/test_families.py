"""Response families and certificates: values within what the seal allows, pairs that reach bounds, exact minimisers."""

import itertools

import mpmath
import numpy as np
import pytest

import dpci
from dpci import losses, lowlevel
from dpci.errors import InvalidInput
from dpci.losses import check_loss
from support import custom_losses
from support.exact_risk import LOSSES, Problem, certified, derivatives, distance_to_minimum, random_problem

UNIT = 2.0**-53
FAMILIES = {
    "poisson": (losses.Poisson(count_bound=6.0), 1.5),
    "rare": (losses.Poisson(count_bound=1.0), 2.0),
    "negative_binomial": (losses.NegativeBinomial(count_bound=6.0, dispersion=0.4), 1.5),
    "probit": (losses.Probit(), 2.0),
    "cloglog": (losses.CLogLog(), 1.2),
    "huber": (losses.Huber(target_bound=1.0, k=0.3), 0.8),
    "quantile": (losses.Quantile(quantile=0.8, target_bound=1.0, s=0.2), 0.8),
}
by_family = pytest.mark.parametrize(("loss", "radius"), FAMILIES.values(), ids=FAMILIES)


def targets(loss):
    bounds = loss.to_core().target_bounds
    return [-1.0, 1.0] if bounds is None else np.linspace(*bounds, 9).tolist()


@pytest.mark.parametrize("reach", [1e-3, 0.3, 1.0, 8.0])
@by_family
def test_values_err_by_what_the_seal_allows(loss, radius, reach):
    """Squared slopes and curvatures within 256 roundings of their suprema, which bound the exact ones."""
    del radius
    core = loss.to_core()
    beyond = 64.0 * reach**2 if loss.name == "probit" else 0.0
    steepest, sharpest = core.sup_slope(reach), core.sup_curvature(reach)
    with mpmath.workdps(50):
        for u, y in itertools.product(np.linspace(-reach, reach, 41), targets(loss)):
            _, (slope,), (curvature,) = core.evaluate(np.array([u]), np.array([y]))
            l1, l2 = derivatives(loss, mpmath.mpf(u), mpmath.mpf(y))
            assert abs(l1) <= steepest
            assert l2 <= sharpest
            assert abs(mpmath.mpf(slope) ** 2 - l1**2) <= 256.0 * UNIT * steepest**2, (u, y)
            assert abs(mpmath.mpf(curvature) - l2) <= (256.0 + beyond) * UNIT * sharpest, (u, y)


def test_probit_far_below():
    """Where m and -z cancel all but 1/|z|, and where everything vanishes."""
    core = losses.Probit().to_core()
    with mpmath.workdps(50):
        for u in [-1e5, -1e3, -40.0, -7.0, -1.0, 0.0, 1.0, 7.0, 30.0, 39.0]:
            (value,), (slope,), (curvature,) = core.evaluate(np.array([u]), np.ones(1))
            l1, l2 = derivatives(losses.Probit(), mpmath.mpf(u), 1)
            beyond = 32.0 + 200.0 * max(u, 0.0) ** 2
            assert abs(mpmath.mpf(slope) - l1) <= beyond * UNIT * abs(l1) + 1e-300
            assert abs(mpmath.mpf(curvature) - l2) <= (256.0 + 64.0 * u**2) * UNIT
            expected = -mpmath.log1p(-mpmath.ncdf(-u)) if u > 0 else -mpmath.log(mpmath.ncdf(u))
            assert abs(mpmath.mpf(value) - expected) <= 1e-13 * expected + 1e-300


def sensitivity(loss, radius, strength, n):
    plan = dpci.plan(
        n_samples=n, n_features=2, budget=dpci.PureDP(1.0), l2_strength=strength, loss=loss,
        mechanism=dpci.OutputPerturbation(radius=radius, moments="none"), rows=dpci.rows.Within(intercept=False),
    )  # fmt: skip
    return plan.steps[0].sensitivity


@by_family
def test_a_pair_reaches_the_sensitivity(loss, radius):
    """One record turns round: λ is so great that slopes stay what they are at 0."""
    core, strength = loss.to_core(), 1e5
    slopes = [abs(core.evaluate(np.zeros(1), np.array([y]))[1][0]) for y in targets(loss)]
    y = np.array([targets(loss)[int(np.argmax(slopes))]] * 2)
    found = [
        lowlevel.minimize_erm(X, y, loss=loss, l2_strength=strength, radius=radius, tolerance=1e-13).params
        for X in ([[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]])
    ]
    reached = np.linalg.norm(found[0] - found[1]) / sensitivity(loss, radius, strength, 2)
    assert 0.95 <= reached <= 1.0 + 1e-9


@by_family
def test_no_random_pair_exceeds_the_sensitivity(loss, radius):
    rng, greatest = np.random.default_rng(7), 0.0
    for _ in range(25):
        strength = 10.0 ** rng.uniform(-1.5, 1.0)
        X = rng.standard_normal((5, 2))
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)) * (1.0 + 1e-12)
        y = rng.choice(targets(loss), 5)
        found = [
            lowlevel.minimize_erm(X[rows], y[rows], loss=loss, l2_strength=strength, radius=radius, tolerance=1e-9)
            for rows in ([0, 1, 2, 3], [1, 2, 3, 4])
        ]
        moved = np.linalg.norm(found[0].params - found[1].params)
        greatest = max(greatest, moved / sensitivity(loss, radius, strength, 4))
    assert 0.05 < greatest <= 1.0 + 1e-6


@by_family
@pytest.mark.parametrize("share", [0.5, 3.0], ids=["on the sphere", "inside"])
def test_no_minimiser_is_farther_than_its_certificate(loss, radius, share):
    rng = np.random.default_rng(11)
    rows = rng.standard_normal((60, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * (1.0 + 1e-12)
    problem = Problem(rows, rng.choice(targets(loss), 60), rng.integers(1, 4, 60), loss, 0.02, 0.1 * np.ones(3), radius)
    free = np.linalg.norm(problem.minimize(1e-8).params)
    problem.radius = min(radius, share * free)
    # The probit loss has no more digits than f64.
    for tolerance in (1e-4, 1e-9, 1e-11 if loss.name == "probit" else 1e-13):
        minimum = problem.minimize(tolerance)
        assert minimum.certificate <= tolerance
        assert distance_to_minimum(problem, minimum) <= minimum.certificate


BAD = [
    (losses.Poisson, {"count_bound": 0.0}),
    (losses.Poisson, {"count_bound": float("nan")}),
    (losses.Poisson, {"count_bound": 1e71}),
    (losses.Poisson, {"count_bound": "many"}),
    (losses.NegativeBinomial, {"dispersion": 0.0}),
    (losses.NegativeBinomial, {"dispersion": 1e7}),
    (losses.NegativeBinomial, {"count_bound": -1.0}),
    (losses.Huber, {"k": 0.0}),
    (losses.Huber, {"target_bound": float("inf")}),
    (losses.Quantile, {"quantile": 0.0}),
    (losses.Quantile, {"quantile": 1.0}),
    (losses.Quantile, {"s": 2.0, "target_bound": 1.0}),
    (losses.Quantile, {"s": 1e-9, "target_bound": 1.0}),
    (losses.Quantile, {"quantile": None}),
]


@pytest.mark.parametrize(("kind", "parameters"), BAD)
def test_bad_parameters_are_refused(kind, parameters):
    with pytest.raises(InvalidInput, match=next(iter(parameters))):
        kind(**parameters)


def compare(n_problems, seed):
    """Distances, certificates and notes of random problems whose minimiser is known."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_problems):
        problem = random_problem(rng)
        minimum, missed = certified(problem, rng)
        distance = distance_to_minimum(problem, minimum)
        if distance is not None:
            found.append((distance, minimum.certificate, missed, problem))
    return found


def assert_bounded(found):
    for distance, certificate, _, problem in found:
        assert distance <= certificate, f"{distance} is more than {certificate}: {problem}"


def test_no_minimiser_of_exact_rows_is_farther_than_its_certificate():
    found = compare(200, seed=20)
    assert_bounded(found)
    # The exact minimum of some hinge problems with dependent rows is not known.
    assert len(found) >= 190
    ratios = [distance / certificate for distance, certificate, _, _ in found]
    # The bound is no empty one: some distances come near to it, most are within a few powers of ten.
    assert max(ratios) > 0.1
    assert np.median(ratios) > 1e-4


def hard_problem(radius=None):
    """A tiny λ, so that the rounding of a gradient in f64 is far from the tolerance."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((200, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    targets = np.where(rows @ [1.0, -2.0, 0.5] + rng.standard_normal(200) > 0, 1.0, -1.0)
    counts = np.ones(200, dtype=int)
    return Problem(rows, targets, counts, losses.Logistic(), 1e-9, np.zeros(3), radius)


def test_the_gradient_alone_would_not_bound_the_distance():
    # Far out every slope is flat, and λθ meets the linear term to the last bit: the computed gradient says that this is
    # the minimiser. So the comparison of this file fails for a certificate without rounding.
    exceeded = 0
    rng = np.random.default_rng(8)
    for _ in range(12):
        problem = hard_problem()
        problem.l2_strength = 1e-3
        problem.linear_term = 30.0 * rng.standard_normal(3)
        found = problem.minimize(1e-8)
        data = problem.rows, problem.targets, found.params
        _, gradient = lowlevel.erm_value_and_gradient(*data, l2_strength=problem.l2_strength)
        plain = np.linalg.norm(gradient + problem.linear_term) / problem.l2_strength
        distance = distance_to_minimum(problem, found)
        assert distance <= found.certificate
        exceeded += distance > plain
    assert exceeded > 2


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not isinstance(loss, losses.Hinge)], ids=repr)
@pytest.mark.parametrize("radius", [None, 0.3])
def test_refinement_meets_what_f64_cannot(loss, radius):
    problem = hard_problem(radius)
    problem.loss = loss
    if loss == "soft_logistic":
        problem.targets = 0.5 + 0.4 * problem.targets
    # Rounding of the parameters alone is about this.
    tolerance = 1e-14
    minimum = problem.minimize(tolerance)
    assert minimum.certificate <= tolerance
    assert distance_to_minimum(problem, minimum) <= minimum.certificate
    assert radius is None or mpmath.norm([mpmath.mpf(float(t)) for t in minimum.params]) <= radius
    with pytest.raises(dpci.NotConverged):
        problem.minimize(1e-18)


def test_a_loss_in_f64_alone_is_refused_below_its_rounding():
    problem = hard_problem()
    problem.loss = custom_losses.logistic()
    with pytest.raises(dpci.NotConverged, match="rounding"):
        problem.minimize(1e-12)
    minimum = problem.minimize(1e-3)
    assert distance_to_minimum(hard_problem(), minimum) <= minimum.certificate <= 1e-3


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not isinstance(loss, losses.Hinge)], ids=repr)
def test_slopes_err_by_less_than_twenty_roundings(loss):
    """In every position of a batch, where reciprocals are shared and where not."""
    rng = np.random.default_rng(5)
    core = check_loss(loss).to_core()
    scale = 1e-3 if isinstance(loss, losses.HuberHinge) and loss.h < 1e-2 else 1.0
    u = np.concatenate(
        [1.0 + scale * rng.standard_normal(300), rng.standard_normal(300) * 10.0 ** rng.uniform(-8, 3, 300)]
    )
    y = rng.choice([-1.0, 1.0], len(u))
    if loss == "soft_logistic":
        y = rng.uniform(0, 1, len(u))
    _, slope, _ = core.evaluate(u, y)
    bound = core.slope_bound if np.isfinite(core.slope_bound) else 2.0 * (np.abs(u).max() + 1.0)
    with mpmath.workdps(40):
        for got, a, b in zip(slope, u, y, strict=True):
            exact, _ = derivatives(loss, mpmath.mpf(float(a)), mpmath.mpf(float(b)))
            assert abs(mpmath.mpf(float(got)) - exact) <= 20 * 2.0**-53 * bound
