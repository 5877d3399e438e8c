"""Sensitivities by brute force: no pair of neighbours exceeds what a calibration uses, and constructed pairs reach it.

A pair is (data, data with one record replaced) or (data, data without one record). What a record adds to the sums at
fixed params is known from its slope and curvature, so thousands of pairs are compared without the other records; the
minimiser needs all of them.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from dpci import _core
from dpci.losses import Custom
from support import custom_losses
from support.core import specified

ROW_NORM = 1.3
N = 40
DIM = 3
# Rounding of the differences compared here; the bounds themselves are rounded up.
ROUNDING = 1.0 + 1e-9


LOSSES = {
    "logistic": _core.Loss("logistic"),
    "huber_hinge": _core.Loss("huber_hinge", 0.5),
    "narrow_huber_hinge": _core.Loss("huber_hinge", 0.05),
    "smooth_hinge": _core.Loss("smooth_hinge", 0.3),
    "soft_logistic": _core.Loss("soft_logistic"),
    "soft_labels": custom_losses.soft_labels(),
    "pseudo_huber": custom_losses.pseudo_huber(3.0, target_bounds=(-1.0, 1.0)),
}
CUSTOM = {name: loss for name, loss in LOSSES.items() if isinstance(loss, Custom)}
# Once, because a custom loss of Python checks its declaration whenever it becomes one of the core.
LOSSES |= {name: loss.to_core() for name, loss in CUSTOM.items()}
by_loss = pytest.mark.parametrize("name", LOSSES)
by_relation = pytest.mark.parametrize("relation", ["replace_one", "add_remove"])

MOMENTS = {
    "joint_gaussian": {"moments": "joint", "notion": "zcdp"},
    "joint_laplace": {"moments": "joint", "notion": "pure"},
    "separate_gaussian": {"moments": "separate", "notion": "zcdp"},
    "separate_laplace": {"moments": "separate", "notion": "pure"},
    "paper_gaussian": {"moments": "separate", "notion": "zcdp", "calibration": "paper"},
    "paper_laplace": {"moments": "separate", "notion": "pure", "calibration": "paper"},
}


def make_spec(loss, relation, *, n=N, dim=DIM, l2_strength=0.5, notion="pure", **choices):
    keywords = {"n_samples": n, "n_columns": dim, "row_norm": ROW_NORM, "loss": loss, "l2_strength": l2_strength}
    keywords |= {"budget": {"pure": _core.Budget.pure(4.0), "zcdp": _core.Budget.zcdp(2.0)}[notion]}
    keywords |= {"moments": "joint", "projection": "floor", "neighbors": relation}
    return specified(_core.Spec, **{**keywords, **choices})


# Records, and pairs of them.


@dataclass
class Records:
    """Rows of shape (n_pairs, dim) within the bound, and their targets."""

    x: np.ndarray
    y: np.ndarray

    def weights(self, loss, params):
        """Slopes and curvatures at params of shape (dim,)."""
        u = np.einsum("ij,j->i", self.x, params)
        custom = next((custom for name, custom in CUSTOM.items() if LOSSES[name] is loss), None)
        # The core would call the functions number by number.
        return (custom.slope(u, self.y), custom.curvature(u, self.y)) if custom else loss.evaluate(u, self.y)[1:]


def random_rows(rng, n, dim):
    """Half of them on the sphere, the others within."""
    x = rng.standard_normal((n, dim))
    lengths = np.where(rng.uniform(size=n) < 0.5, 1.0, rng.uniform(size=n))
    return within_bound(1e9 * x) * lengths[:, None]


def within_bound(x):
    norms = np.sqrt((x**2).sum(axis=-1, keepdims=True))
    return x * np.minimum(1.0, ROW_NORM / np.maximum(norms, 1e-300))


def random_targets(rng, loss, n):
    bounds = loss.target_bounds
    return rng.choice([-1.0, 1.0] if bounds is None else np.linspace(*bounds, 5), n)


def random_records(rng, loss, n, dim=DIM):
    return Records(random_rows(rng, n, dim), random_targets(rng, loss, n))


def nothing(records):
    """Stand-in for a removed record: it adds nothing to any sum."""
    return Records(np.zeros_like(records.x), records.y)


def shift_of_noise(loss, params, old, new):
    """Norm of the change of n times the gradient, the noise that would give these params."""
    change = [r.x * r.weights(loss, params)[0][:, None] for r in (old, new)]
    return np.linalg.norm(change[0] - change[1], axis=1)


def changes_of_moments(loss, params, old, new):
    """Changes of the sums n H and n Sigma, each of shape (n_pairs, dim, dim)."""
    curvature, cov = [], []
    for records in (old, new):
        slopes, curvatures = records.weights(loss, params)
        squares = records.x[:, :, None] * records.x[:, None, :]
        curvature.append(curvatures[:, None, None] * squares)
        cov.append((slopes**2)[:, None, None] * squares)
    return curvature[0] - curvature[1], cov[0] - cov[1]


def frobenius(matrices):
    return np.sqrt((matrices**2).sum(axis=(1, 2)))


def nuclear(matrices):
    """Nuclear norms of differences of two terms a xxᵀ: two eigenvalues, by their sum and the sum of their squares."""
    trace = np.trace(matrices, axis1=1, axis2=2)
    return np.maximum(np.abs(trace), np.sqrt(np.maximum(2.0 * frobenius(matrices) ** 2 - trace**2, 0.0)))


def test_nuclear_norms_are_those_of_all_eigenvalues():
    x, z = np.random.default_rng(24).standard_normal((2, 1000, DIM))
    gaps = x[:, :, None] * x[:, None, :] - np.linspace(-1.0, 2.0, 1000)[:, None, None] * z[:, :, None] * z[:, None, :]
    np.testing.assert_allclose(nuclear(gaps), np.abs(np.linalg.eigvalsh(gaps)).sum(axis=1), rtol=1e-12)


def shares_of_moments(kind, steps, loss, params, old, new):
    """Change over the sensitivity of each step, in the norm of its noise."""
    hessian, cov = (change / N for change in changes_of_moments(loss, params, old, new))
    if kind.startswith("joint"):
        (step,) = steps
        if step.hessian_scale is None:
            assert not hessian.any()
        weight = step.scale / (step.hessian_scale or np.inf)
        if kind == "joint_gaussian":
            return [np.hypot(weight * frobenius(hessian), frobenius(cov)) / step.sensitivity]
        return [(weight * nuclear(hessian) + nuclear(cov)) / step.sensitivity]
    norm = nuclear if kind == "separate_laplace" else frobenius
    if steps[0].noise == "none":
        assert not hessian.any()
        return [norm(cov) / steps[1].sensitivity]
    return [norm(hessian) / steps[0].sensitivity, norm(cov) / steps[1].sensitivity]


def climb(rng, old, new, share, n_steps=25):
    """Improve every pair by random moves; its target stays."""
    best = share(old, new)
    for step in np.geomspace(0.5, 0.02, n_steps):
        moved = [Records(within_bound(r.x + step * rng.standard_normal(r.x.shape)), r.y) for r in (old, new)]
        moved = moved[0], moved[1] if new.x.any() else new
        tried = share(*moved)
        better = tried > best
        for record, candidate in zip((old, new), moved, strict=True):
            record.x = np.where(better[:, None], candidate.x, record.x)
        best = np.where(better, tried, best)
    return best


def pairs(rng, loss, relation, n, dim=DIM):
    old = random_records(rng, loss, n, dim)
    return old, random_records(rng, loss, n, dim) if relation == "replace_one" else nothing(old)


# No pair exceeds the bounds.


@by_loss
@by_relation
def test_noise_shift_is_bounded(name, relation):
    loss, rng = LOSSES[name], np.random.default_rng(20)
    bound = make_spec(loss, relation, mechanism="objective").plan()["steps"][0].sensitivity
    for size in (0.0, 1.0, 30.0):
        params = size * rng.standard_normal(DIM)
        share = lambda old, new, params=params: shift_of_noise(loss, params, old, new) / bound  # noqa: E731
        assert climb(rng, *pairs(rng, loss, relation, 1000), share).max() <= ROUNDING


@by_loss
@by_relation
@pytest.mark.parametrize("kind", MOMENTS)
def test_moments_are_bounded_at_the_released_params(name, relation, kind):
    """The steps of a fit carry the sensitivities for margins up to its own released params."""
    loss, rng = LOSSES[name], np.random.default_rng(21)
    data = random_records(rng, loss, N)
    sizes = []
    for l2_strength in (0.05, 5.0):
        spec = make_spec(loss, relation, l2_strength=l2_strength, **MOMENTS[kind])
        fit = _core.release(spec, _core.Records(data.x, data.y), on_violation="error", n_threads=1, seed=22)
        params, steps = fit["params"], fit["steps"][1:]
        sizes.append(np.linalg.norm(params))
        for index in range(len(shares_of_moments(kind, steps, loss, params, data, data))):
            share = lambda old, new, i=index: shares_of_moments(kind, steps, loss, params, old, new)[i]  # noqa: B023, E731
            reached = climb(rng, *pairs(rng, loss, relation, 500), share)
            assert reached.max() <= ROUNDING
    assert sizes[0] > 5.0 * sizes[1]


@by_loss
@pytest.mark.parametrize("kind", MOMENTS)
def test_moments_of_one_parameter_are_bounded(name, kind):
    """In one dimension the terms are numbers of one sign, and the separate sensitivities lose a factor."""
    loss, rng = LOSSES[name], np.random.default_rng(23)
    data = random_records(rng, loss, N, 1)
    fit = _core.release(
        make_spec(loss, "replace_one", dim=1, **MOMENTS[kind]),
        _core.Records(data.x, data.y),
        on_violation="error",
        n_threads=1,
        seed=3,
    )
    old, new = (random_records(rng, loss, 5000, 1) for _ in range(2))
    for share in shares_of_moments(kind, fit["steps"][1:], loss, fit["params"], old, new):
        assert share.max() <= ROUNDING


def minimiser(loss, x, y, n_public, l2_strength, tolerance=1e-9):
    """Minimiser of a fit under add/remove: of the sum of losses plus n_public * l2_strength / 2 times the square."""
    return _core.minimize_erm(
        _core.Records(x, y), loss=loss, l2_strength=n_public * l2_strength / len(y), intercept=None, linear_term=None,
        start=None, solver="newton", tolerance=tolerance, max_iterations=500, n_threads=1,
    )["params"]  # fmt: skip


@by_loss
@by_relation
def test_argmin_is_bounded(name, relation):
    """Rows 0 and -1 change into each other, or row 0 goes; then all rows move towards a greater change."""
    loss, rng = LOSSES[name], np.random.default_rng(24)
    greatest = 0.0
    for _ in range(60):
        n, dim = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        l2_strength = 10.0 ** rng.uniform(-2.0, 0.5)
        bound = make_spec(loss, relation, n=n, dim=dim, l2_strength=l2_strength).plan()["steps"][0].sensitivity
        y = random_targets(rng, loss, n + 1)

        def share(x, n=n, y=y, l2_strength=l2_strength, bound=bound):
            first, last = (slice(0, n), slice(1, n + 1)) if relation == "replace_one" else (slice(None), slice(1, None))
            change = [minimiser(loss, x[rows], y[rows], n, l2_strength) for rows in (first, last)]
            return np.linalg.norm(change[0] - change[1]) / bound, 2e-9 / bound

        best, x = 0.0, random_rows(rng, n + 1, dim)
        for step in [0.0, *np.geomspace(1.0, 0.05, 12)]:
            tried = within_bound(x + step * rng.standard_normal(x.shape))
            reached, error = share(tried)
            assert reached <= ROUNDING + error
            if reached > best:
                best, x = reached, tried
        greatest = max(greatest, best)
    assert greatest > 0.4


# The same changes through the sums that a fit computes.


@by_loss
@by_relation
def test_changes_through_the_sums_over_all_rows(name, relation):
    loss, rng = LOSSES[name], np.random.default_rng(25)
    # A regulariser that rounding swallows leaves the data parts.
    keywords = {"loss": loss, "l2_strength": 1e-30, "intercept": None, "n_threads": None}
    for _ in range(50):
        others, (old, new) = random_records(rng, loss, N - 1), pairs(rng, loss, relation, 1)
        params = rng.uniform(0.0, 5.0) * rng.standard_normal(DIM)
        sums = []
        for record in (old, new):
            kept = record.x.any()
            x = np.vstack([others.x, record.x]) if kept else others.x
            y = np.append(others.y, record.y) if kept else others.y
            records = _core.Records(x, y)
            gradient = _core.erm_value_and_gradient(records, params, **keywords)[1]
            moments = _core.hessian_and_gradient_cov(records, params, **keywords)
            sums.append([len(y) * part for part in (gradient, *moments)])
        gradient, hessian, cov = (a - b for a, b in zip(*sums, strict=True))
        expected_hessian, expected_cov = changes_of_moments(loss, params, old, new)
        assert np.linalg.norm(gradient) == pytest.approx(shift_of_noise(loss, params, old, new)[0], abs=1e-11)
        np.testing.assert_allclose(hessian, expected_hessian[0], rtol=0, atol=1e-10)
        np.testing.assert_allclose(cov, expected_cov[0], rtol=0, atol=1e-10)


# Constructed pairs reach them.


def steepest_target(loss):
    """A target for which the slope at very negative predictors is the negative bound."""
    bounds = loss.target_bounds
    return 1.0 if bounds is None else bounds[1]


def tilted(tilt, relation, target):
    """Rows nearly antipodal, leaning back along the first axis by ``tilt``."""
    side = np.sqrt(1.0 - tilt**2)
    old = Records(ROW_NORM * np.array([[-tilt, side, 0.0]]), np.array([target]))
    if relation == "add_remove":
        return old, nothing(old)
    return old, Records(ROW_NORM * np.array([[-tilt, -side, 0.0]]), np.array([target]))


@by_loss
@by_relation
def test_noise_shift_is_reached(name, relation):
    loss = LOSSES[name]
    bound = make_spec(loss, relation, mechanism="objective").plan()["steps"][0].sensitivity
    old, new = tilted(0.05, relation, steepest_target(loss))
    share = shift_of_noise(loss, np.array([1e4, 0.0, 0.0]), old, new)[0] / bound
    assert 0.99 <= share <= ROUNDING


@by_loss
@by_relation
def test_argmin_is_reached(name, relation):
    """Short rows along the first axis pull the params so far out that both changed rows are on the steepest part."""
    loss, n, l2_strength = LOSSES[name], 50_000, 4e-6
    bound = make_spec(loss, relation, n=n, l2_strength=l2_strength).plan()["steps"][0].sensitivity
    target = steepest_target(loss)
    x, y = np.zeros((n, DIM)), np.full(n, target)
    x[:, 0] = 3e-3
    found = []
    for record in tilted(0.1, relation, target):
        x[0] = record.x[0]
        rows = (x, y) if record.x.any() else (x[1:], y[1:])
        # A certificate counts how far the slopes of a custom loss may err, which this λ multiplies.
        found.append(minimiser(loss, *rows, n, l2_strength, tolerance=1e-7 * bound))
    share = np.linalg.norm(found[0] - found[1]) / bound
    assert 0.99 <= share <= ROUNDING


@by_loss
@by_relation
@pytest.mark.parametrize("kind", ["joint_gaussian", "joint_laplace", "separate_gaussian", "separate_laplace"])
def test_moments_are_reached(name, relation, kind):
    """Orthogonal rows, both at the worst margin, with params so long that this costs the rows hardly any length."""
    loss = LOSSES[name]
    steps = make_spec(loss, relation, **MOMENTS[kind]).plan()["steps"][1:]
    params = np.array([0.0, 0.0, 1e5])
    targets = loss.target_bounds or (-1.0, 1.0)
    greatest = np.zeros(len(steps))
    for target in np.linspace(*targets, 3 if loss.name == "custom" else 2):
        margins = np.concatenate([np.linspace(-80.0, 80.0, 1601), 1.0 + np.linspace(-0.6, 0.6, 121)])
        third = margins[:, None] / params[2] * [0.0, 0.0, 1.0]
        side = np.sqrt(ROW_NORM**2 - third[:, 2:] ** 2)
        y = np.full(len(margins), target)
        old, new = Records(third + side * [1.0, 0.0, 0.0], y), Records(third + side * [0.0, 1.0, 0.0], y)
        new = new if relation == "replace_one" else nothing(old)
        shares = shares_of_moments(kind, steps, loss, params, old, new)
        greatest = np.maximum(greatest, [share.max() for share in shares])
    assert (greatest <= ROUNDING).all()
    # The joint bound of a custom loss adds both declared bounds, which one margin may not reach together.
    if kind.startswith("separate") or loss.name != "custom":
        assert (greatest >= 0.99).all()


@by_loss
def test_paper_moments_are_looser_by_the_root_of_two(name):
    tight, paper = (
        make_spec(LOSSES[name], "replace_one", **MOMENTS[k]).plan() for k in ("separate_gaussian", "paper_gaussian")
    )
    for ours, theirs in zip(tight["steps"][1:], paper["steps"][1:], strict=True):
        assert theirs.sensitivity == pytest.approx(np.sqrt(2.0) * ours.sensitivity, rel=1e-12)


def test_the_intercept_lengthens_the_rows():
    plan = make_spec(LOSSES["logistic"], "replace_one", intercept=0.7, mechanism="objective").plan()
    assert plan["row_norm"] == pytest.approx(np.hypot(ROW_NORM, 0.7), rel=1e-14)
    assert plan["row_norm"] >= np.hypot(ROW_NORM, 0.7)
    assert plan["steps"][0].sensitivity == pytest.approx(2.0 * plan["row_norm"], rel=1e-14)
