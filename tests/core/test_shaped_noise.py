"""Noise in the shape of rows in blocks: what a row can change, exact privacy losses, and the density of the law."""

import numpy as np
import pytest
from scipy import stats

from dpci import _core
from dpci.errors import RowNormViolation
from support.blocks import gauge
from support.core import specified

N = 8
BOUNDS, MEMBERS = [0.5, 2.0, 1.0], [1, 0, 2, 2, 2]
BLOCKS = _core.RowDomain.blocks(BOUNDS, MEMBERS)
INTERCEPT = 0.7
LOSSES = {
    "logistic": _core.Loss("logistic"),
    "huber_hinge": _core.Loss("huber_hinge", 0.5),
    "soft_logistic": _core.Loss("soft_logistic"),
    "squared": _core.Loss("squared", 1.0),
}
BUDGETS = {"pure": _core.Budget.pure(1.0), "zcdp": _core.Budget.zcdp(0.3)}
CHANGED = {"replace_one": 2.0, "add_remove": 1.0}
by_relation = pytest.mark.parametrize("relation", CHANGED)


def make_spec(rows, relation, *, budget=BUDGETS["pure"], loss="logistic", **choices):
    keywords = {"n_samples": N, "n_columns": 5, "row_norm": rows, "loss": LOSSES[loss], "budget": budget}
    keywords |= {"radius": 2.0 if loss == "squared" else None, "mechanism": "objective", "neighbors": relation}
    return specified(_core.Spec, **keywords | choices)


def extreme_rows(rng, count):
    """Rows of the domain: corners of every block, and points inside."""
    rows, every = np.zeros((count, len(MEMBERS))), np.arange(count)
    for block, bound in enumerate(BOUNDS):
        columns = np.flatnonzero(np.equal(MEMBERS, block))
        corners = np.zeros((count, len(columns)))
        corners[every, rng.integers(len(columns), size=count)] = rng.choice([-1.0, 1.0], count)
        inside = rng.dirichlet(np.ones(len(columns)), count) * rng.choice([-1.0, 1.0], corners.shape)
        rows[:, columns] = bound * np.where(rng.random((count, 1)) < 0.7, corners, inside)
    return rows


def derivative(name, u, y):
    """Slopes by predictor and target, not those of the core."""
    if name == "logistic":
        return -y / (1.0 + np.exp(y * u))
    if name == "soft_logistic":
        return 1.0 / (1.0 + np.exp(-u)) - y
    if name == "squared":
        return 2.0 * (u - y)
    return np.where(y * u < 0.5, -y, np.where(y * u > 1.5, 0.0, -y * (1.5 - y * u) / 1.0))


@by_relation
@pytest.mark.parametrize("loss", LOSSES)
def test_no_change_of_a_gradient_is_greater_than_the_sensitivity(loss, relation):
    rng = np.random.default_rng(5)
    spec = make_spec(BLOCKS, relation, loss=loss, intercept=INTERCEPT, l2_strength=10.0)
    whole = BLOCKS.with_constant(INTERCEPT)
    step = spec.plan()["steps"][0]
    assert step.noise == "shaped_laplace"
    if loss != "squared":
        assert step.sensitivity == pytest.approx(CHANGED[relation], rel=1e-12)
    count, worst = 4000, 0.0
    rows = np.column_stack([extreme_rows(rng, count), np.full(count, INTERCEPT)])
    targets = rng.choice(LOSSES[loss].target_bounds or (-1.0, 1.0), count)
    for scale in (0.0, 1.0, 30.0):
        theta = rng.normal(size=6)
        theta *= (spec_radius := 2.0 if loss == "squared" else scale * 3.0) / np.linalg.norm(theta)
        assert spec_radius <= 2.0 or loss != "squared"
        if scale == 30.0:
            # Along a corner of the domain, where slopes are greatest.
            theta = 2.0 * rows[0] / np.linalg.norm(rows[0]) if loss == "squared" else scale * rows[0]
        gradients = derivative(loss, rows @ theta, targets)[:, None] * rows
        others = gradients[rng.permutation(count)] if relation == "replace_one" else 0.0
        changes = gradients - others
        worst = max(worst, *(gauge(whole, change) for change in changes))
        # A record and its mirror image, the worst pair.
        i = int(np.argmax([gauge(whole, g) for g in gradients]))
        mirrored = np.append(-rows[i, :-1], INTERCEPT)
        for y in set(targets):
            other = derivative(loss, mirrored @ theta, y) * mirrored if relation == "replace_one" else 0.0
            worst = max(worst, gauge(whole, gradients[i] - other))
    assert worst <= step.sensitivity * (1.0 + 1e-12)
    assert worst >= 0.99 * step.sensitivity or loss == "squared"


@by_relation
@pytest.mark.parametrize("notion", BUDGETS)
def test_the_rate_is_what_the_jacobian_leaves(notion, relation):
    spec = make_spec(BLOCKS, relation, budget=BUDGETS[notion], intercept=INTERCEPT)
    epsilon = spec.plan()["steps"][0].cost
    left = epsilon if notion == "pure" else _core.zcdp_to_pure(epsilon, "tight")
    kappa = 0.25 * (sum(b**2 for b in BOUNDS) + INTERCEPT**2) / (N * 1.0)
    assert 1.0 / spec.noise_scale == pytest.approx((left - np.log1p(kappa)) / CHANGED[relation], rel=1e-9)
    # The zCDP cost is that of the pure guarantee, and the ball of the same rows gets the noise of its norm.
    ball = make_spec(BLOCKS.norm, relation, budget=BUDGETS[notion], intercept=INTERCEPT)
    norm = np.sqrt(sum(b**2 for b in BOUNDS) + INTERCEPT**2)
    assert ball.noise_law == "spherical_laplace"
    assert ball.noise_scale == pytest.approx(spec.noise_scale * norm, rel=1e-9)


def sigmoid(u):
    return 1.0 / (1.0 + np.exp(-u))


@by_relation
@pytest.mark.parametrize("variant", ["standard", "cms11"])
@pytest.mark.parametrize("radius", [None, 0.4])
def test_one_dimensional_losses_are_exact(relation, variant, radius):
    """The released number has the density of its noise times that noise's slope; with a ball, masses at its ends."""
    rng, bound, worst = np.random.default_rng(7), 1.7, 0.0
    rows = _core.RowDomain.blocks([bound], [0])
    epsilon = 1.0
    least = 0.25 * bound**2 / (N * np.expm1(0.7 * epsilon))
    spec = make_spec(
        rows, relation, n_columns=1, loss="soft_logistic", l2_strength=least, radius=radius, variant=variant
    )
    reach = 60.0 if radius is None else radius
    theta = np.linspace(-reach, reach, 5001)
    family = stats.laplace(scale=bound * spec.noise_scale)

    def law(x, y):
        mean = sigmoid(np.outer(x, theta))
        noise = -(x @ (mean - y[:, None]) + N * spec.l2_strength * theta)
        slope = (x**2) @ (mean * (1.0 - mean)) + N * spec.l2_strength
        ends = [] if radius is None else [family.logsf(noise[0]), family.logcdf(noise[-1])]
        return np.append(family.logpdf(noise) + np.log(slope), ends)

    for i in range(60):
        x = bound * rng.choice([-1.0, 1.0, *rng.uniform(-1, 1, 2)], N + 1)
        y = rng.choice([0.0, 1.0], N + 1)
        if i % 3 == 0:
            x[:], y[:] = bound, 1.0
            x[0], y[0] = -bound if i % 2 else bound, 0.0
        second = slice(1, N + 1) if relation == "replace_one" else slice(1, N)
        loss = np.abs(law(x[:N], y[:N]) - law(x[second], y[second]))
        worst = max(worst, loss.max())
    assert worst <= epsilon
    assert worst >= {"standard": 0.35, "cms11": 0.2}[variant] * epsilon


def test_the_density_is_that_of_the_gauge_and_falls_no_faster_than_the_claim():
    """At two coordinates: draws in cells, against the integral of exp(-gauge / scale) over them."""
    rows, scale = _core.RowDomain.blocks([2.0, 0.5], [0, 1]), 0.7
    draws, bound = _core.Testing.bounded_noise("shaped_laplace", 200_000, 2, scale, 11, rows)
    assert 0.0 < bound < 1e-9
    # Mass 1: the area of the ball times the integral of 2 r exp(-r / scale).
    total = 4.0 * 2.0 * 0.5 * 2.0 * scale**2
    edges = [np.linspace(-4.0, 4.0, 9), np.linspace(-1.0, 1.0, 9)]
    counts, *_ = np.histogram2d(draws[:, 0], draws[:, 1], bins=edges)
    fine = [np.linspace(e[0], e[-1], 8 * 60 + 1) for e in edges]
    x, y = np.meshgrid(*((f[1:] + f[:-1]) / 2.0 for f in fine), indexing="ij")
    sizes = np.maximum(np.abs(x) / 2.0, np.abs(y) / 0.5)
    area = np.prod([f[1] - f[0] for f in fine])
    cells = (np.exp(-sizes / scale) / total * area).reshape(8, 60, 8, 60).sum(axis=(1, 3))
    expected = np.append(cells.ravel(), 1.0 - cells.sum()) * len(draws)
    observed = np.append(counts.ravel(), len(draws) - counts.sum())
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-6
    # Between two cells the log ratio is at most their distance in the gauge over the scale.
    shift = 60
    ratio = np.abs(sizes[shift:] - sizes[:-shift]) / scale
    assert ratio.max() <= gauge(rows, np.array([fine[0][shift] - fine[0][0], 0.0])) / scale * (1.0 + 1e-12)


@pytest.mark.parametrize("members", [[0, 1, 2, 3], [0, 0, 0, 1], [0, 0, 0, 0]])
def test_ratios_of_densities_on_shifts_stay_below_the_claim(members):
    rng = np.random.default_rng(13)
    rows = _core.RowDomain.blocks([0.5, 1.0, 2.0, 4.0][: max(members) + 1], members)
    points, _ = _core.Testing.bounded_noise("shaped_laplace", 2000, 4, 1.3, 17, rows)
    shifts = rng.normal(size=points.shape)
    losses = [abs(gauge(rows, b) - gauge(rows, b + s)) / gauge(rows, s) for b, s in zip(points, shifts, strict=True)]
    # Along the point itself the claim is attained.
    along = [abs(gauge(rows, b) - gauge(rows, 1.5 * b)) / gauge(rows, 0.5 * b) for b in points[:50]]
    assert max(losses) <= 1.0 + 1e-12
    np.testing.assert_allclose(along, 1.0, rtol=1e-12)


def test_rows_are_checked_or_clipped_block_by_block():
    spec = make_spec(BLOCKS, "replace_one")
    x = extreme_rows(np.random.default_rng(19), N)
    y = np.ones(N)
    _core.release(spec, _core.Records(x, y), on_violation="error", n_threads=1, seed=1)
    bad = x.copy()
    bad[3] *= 1.5
    with pytest.raises(RowNormViolation, match=r"every row of X, the absolute values .* the block"):
        _core.release(spec, _core.Records(bad, y), on_violation="error", n_threads=1, seed=1)
    _core.release(spec, _core.Records(bad, y), on_violation="clip", n_threads=1, seed=1)
    kept = _core.checked_rows(_core.Records(bad, y), row_norm=BLOCKS, on_violation="clip", intercept=None, n_threads=1)
    assert max(gauge(BLOCKS, row) for row in kept) <= 1.0
    np.testing.assert_allclose(kept[:3], x[:3], rtol=1e-12)
    with pytest.raises(ValueError, match="each row of X must have length"):
        _core.release(spec, _core.Records(np.ascontiguousarray(x[:, :4]), y), on_violation="clip", n_threads=1, seed=1)


def test_noise_in_the_shape_of_rows_is_refused_where_it_is_not_proved():
    refusals = [
        (BLOCKS.norm, {}),
        (BLOCKS, {"mechanism": "output"}),
        (BLOCKS, {"budget": _core.Budget.approx(1.0, 1e-6)}),
        (BLOCKS, {"calibration": "paper"}),
    ]
    for rows, choices in refusals:
        with pytest.raises(ValueError, match="noise="):
            make_spec(rows, "replace_one", noise="shaped_laplace", **choices)
        make_spec(rows, "replace_one", **choices)
    assert make_spec(BLOCKS, "replace_one", noise="spherical_laplace").noise_law == "spherical_laplace"


@by_relation
def test_no_change_of_a_gradient_is_longer_in_the_metric_than_gaussian_noise_hides(relation):
    rng = np.random.default_rng(23)
    budget = _core.Budget.approx(1.0, 1e-6)
    spec = make_spec(BLOCKS, relation, budget=budget, intercept=INTERCEPT, l2_strength=10.0)
    step = spec.plan()["steps"][0]
    assert step.noise == spec.noise_law == "shaped_gaussian"
    assert step.sensitivity == pytest.approx(CHANGED[relation], rel=1e-12)
    metric = BLOCKS.with_constant(INTERCEPT).metric()
    rows = np.column_stack([extreme_rows(rng, 4000), np.full(4000, INTERCEPT)])
    assert ((rows**2 / metric).sum(axis=1)).max() == pytest.approx(1.0, rel=1e-9)
    theta = 40.0 * rows[0]
    targets = rng.choice([-1.0, 1.0], 4000)
    gradients = derivative("logistic", rows @ theta, targets)[:, None] * rows
    changes = gradients - gradients[rng.permutation(4000)] if relation == "replace_one" else gradients
    lengths = np.sqrt((changes**2 / metric).sum(axis=1))
    assert 0.8 * step.sensitivity < lengths.max() <= step.sensitivity * (1.0 + 1e-12)


@by_relation
def test_one_column_has_the_gaussian_noise_of_its_ball(relation):
    budget = _core.Budget.approx(1.0, 1e-6)
    for radius in (None, 3.0):
        one, ball = (
            make_spec(rows, relation, budget=budget, n_columns=1, radius=radius)
            for rows in (_core.RowDomain.blocks([2.0], [0]), 2.0)
        )
        assert 2.0 * one.noise_scale == pytest.approx(ball.noise_scale, rel=1e-9)


def test_a_radius_makes_gaussian_noise_less_in_the_metric_too():
    budget = _core.Budget.approx(1.0, 1e-6)
    scales = [make_spec(BLOCKS, "replace_one", budget=budget, radius=r).noise_scale for r in (None, 1.0, 0.3)]
    assert scales[0] > scales[1] > scales[2]
