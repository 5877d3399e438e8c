"""Losses of records: the exact ones against densities by brute force, the bounds against an independent computation."""

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci import _core
from support import per_instance as ours
from support.core import specified

by_loss = pytest.mark.parametrize("name", ours.LOSSES)


def joined(X, x):
    return np.vstack([X, x]) if np.ndim(x) == 2 else np.append(X, x)


@by_loss
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_exact_losses_are_ratios_of_densities(name, intercept, seed):
    """For records of the data and others, of both signs: log p_D / p_D' from Gaussian densities and Jacobians."""
    soft = name == "soft_logistic"
    X, y = ours.make_rows(soft=soft)
    others, targets = ours.make_rows(12, soft=soft, seed=4)
    budget = dpci.ApproxDP(8.0, 1e-3)  # little noise: log-determinants and products count as much as each other
    report = ours.report(X, y, loss=ours.LOSSES[name], budget=budget, seed=seed, intercept=intercept)
    record = report.result
    ridge, params = record.n_samples * record.l2_strength, record.params
    extended, extended_others = (np.column_stack([x, np.ones(len(x))]) if intercept else x for x in (X, others))

    def log_density(rows, labels):
        return ours.log_density(name, rows, labels, params, ridge, record.privacy["steps"][0]["scale"])

    inside = ours.exact_losses(report, X, y, X, y, member=True).signed
    outside = ours.exact_losses(report, X, y, others, targets, member=False).signed
    here = log_density(extended, y)
    for i in range(len(X)):
        without = log_density(np.delete(extended, i, axis=0), np.delete(y, i))
        assert inside[i] == pytest.approx(here - without, rel=1e-8, abs=1e-10)
    for i in range(len(others)):
        added = log_density(joined(extended, extended_others[i : i + 1]), joined(y, targets[i]))
        assert outside[i] == pytest.approx(here - added, rel=1e-8, abs=1e-10)
    assert (inside > 0.01).any()
    assert (inside < -0.01).any()
    assert (outside < -0.01).any()


def test_members_and_others_in_one_call():
    X, y = ours.make_rows()
    report = ours.report(X, y)
    member = np.arange(len(X)) % 2 == 0
    both = ours.exact_losses(report, X, y, X, y, member=member)
    inside, outside = (ours.exact_losses(report, X, y, X, y, member=flag).signed for flag in (True, False))
    np.testing.assert_array_equal(both.signed, np.where(member, inside, outside))
    np.testing.assert_array_equal(both.absolute, np.abs(both.signed))
    assert both.private is False


def expected_bounds(report, X, y, name="logistic"):
    """eps1, eps2 and eps3 recomputed with SciPy from what the report publishes."""
    result, dim, phi = report.result, X.shape[1], report.failure_probability
    std_dev, ridge = result.privacy["steps"][0]["scale"], result.n_samples * result.l2_strength

    def reach(p):
        # A thousandth more, for the noise of the seals.
        return 1.001 * (stats.chi.isf(p, dim) if report.simultaneous else stats.norm.isf(p / 2))

    rows = []
    for x, u, target in zip(X, X @ result.params, y, strict=True):
        slope, curvature = ours.derivatives(name, u, target)
        g, norm = slope * x, abs(slope) * np.linalg.norm(x)
        log_det = np.log1p(curvature * (x @ x) / ridge)
        cross, eps2, eps3 = std_dev * norm * reach(phi), 0.0, 0.0
        if report.kind == "data_dependent":
            q, radius = reach(phi / 4), 1.001 * (2 * np.sqrt(dim) + 2 * np.sqrt(np.log(2 / phi)))
            cross = min(abs(report.gradient @ g) + report.gradient_std_dev * norm * q, std_dev * norm * q)
            if report.bound == "interpolated":
                m = ours.least_leverage(report.hessian, report.hessian_std_dev * radius, ridge, x)
            else:
                m = 1.5 * x @ np.linalg.solve(report.hessian, x)
            log_det = min(log_det, -np.log1p(-min(curvature * m, 1 - 1e-15)))
            half = result.budget.delta / 2
            eps2 = ours.gaussian_epsilon(norm / report.gradient_std_dev, half)
            eps3 = ours.gaussian_epsilon(curvature * (x @ x) / (np.sqrt(2) * report.hessian_std_dev), half)
        rows.append((log_det + norm**2 / (2 * std_dev**2) + cross / std_dev**2, eps2, eps3))
    return np.array(rows).T


@by_loss
@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize(
    "keywords",
    [
        {"kind": "data_independent"},
        {"kind": "data_dependent"},
        {"shares": (0.5, 0.1, 0.4), "budget": dpci.ApproxDP(6.0, 1e-4), "failure_probability": 0.01},
        {"bound": "paper", "l2_strength": 4.0, "budget": dpci.ApproxDP(5.0, 1e-3)},
    ],
    ids=["independent", "dependent", "precise", "paper"],
)
def test_bounds_equal_an_independent_computation(name, simultaneous, keywords):
    X, y = ours.make_rows(400, soft=name == "soft_logistic")
    report = ours.report(X, y, loss=ours.LOSSES[name], simultaneous=simultaneous, **keywords)
    records, targets = X[:25], y[:25]
    got, expected = report(records, targets), expected_bounds(report, records, targets, name)
    np.testing.assert_allclose(got.eps1, expected[0], rtol=2e-6)
    assert (got.eps1 >= expected[0] * (1 - 1e-8)).all() or report.bound == "interpolated"
    for found, exact in zip(got[1:3], expected[1:], strict=True):
        assert (found >= exact * (1 - 1e-9)).all()
        np.testing.assert_allclose(found, exact, rtol=2e-4, atol=1e-6)
    np.testing.assert_array_equal(got.delta, report.result.budget.delta)
    np.testing.assert_array_equal(got.total, got.eps1 + got.eps2 + got.eps3)


def leverage_bounds(noisy, std_dev, ridge, X, **keywords):
    """x'H^-1 x as the report bounds it: at the parameters 0 the curvature is 1/4; huge noise hides the gradient."""
    dim = len(noisy)
    claim = {"failure_probability": 0.1, "simultaneous": False, "bound": "interpolated", **keywords}
    bounds = specified(
        _core.RecordBounds, loss=_core.Loss("logistic"), params=np.zeros(dim), n_samples=1, l2_strength=ridge,
        std_dev=1e14, delta=1e-6, derivatives=(np.zeros(dim), 1.0, np.ascontiguousarray(noisy), np.sqrt(2.0) * std_dev),
        **claim,
    )  # fmt: skip
    eps1 = bounds.evaluate(_core.Records(np.ascontiguousarray(X), np.ones(len(X))), n_threads=1)[0]
    return -4.0 * np.expm1(-eps1), bounds.hessian_radius


@pytest.mark.parametrize("dim", [1, 2, 5, 21])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_interpolated_bounds_hold_and_are_the_best(dim, scale):
    """While the noise keeps within its radius no exact value is above its bound, and the bound is the least over s."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((20, dim))
    X /= 1.01 * np.linalg.norm(X, axis=1, keepdims=True)
    for _ in range(4):
        root = rng.standard_normal((dim, dim)) * rng.exponential(3.0, dim)
        ridge = 10 ** rng.uniform(-1, 1)
        hessian = root @ root.T + ridge * np.eye(dim)
        noise = rng.standard_normal((dim, dim))
        noise = scale * (noise + noise.T) / np.sqrt(2)
        got, radius = leverage_bounds(hessian + noise, scale, ridge, X)
        # The cap for records of the data stands beside the bound.
        squares = (X**2).sum(axis=1)
        cap = squares / (ridge + squares / 4)
        expected = np.array([ours.least_leverage(hessian + noise, radius, ridge, x) for x in X])
        np.testing.assert_allclose(got, np.minimum(expected, cap), rtol=3e-6)
        exact = np.einsum("ij,jk,ik->i", X, np.linalg.inv(hessian), X)
        if np.linalg.eigvalsh(noise)[-1] <= radius:
            assert (got >= np.minimum(exact, cap) * (1 - 1e-12)).all()
        else:
            pytest.fail("the noise of this seed must keep within its radius")


def test_worst_noise_within_the_radius_attains_the_bound():
    """Noise of r I in every direction: the published matrix less r is the exact one."""
    hessian, X = np.diag([40.0, 8.0, 3.0]), np.eye(3) * 0.9
    _, radius = leverage_bounds(hessian, 1.0, 0.5, X)
    got, _ = leverage_bounds(hessian + radius * np.eye(3), 1.0, 0.5, X)
    np.testing.assert_allclose(got, 0.81 / np.diag(hessian), rtol=1e-7)


def test_paper_bound_holds_at_twice_the_radius():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((20, 4))
    X /= 1.01 * np.linalg.norm(X, axis=1, keepdims=True)
    for _ in range(50):
        noise = rng.standard_normal((4, 4))
        noise = (noise + noise.T) / np.sqrt(2)
        ridge = 2.0 * np.abs(np.linalg.eigvalsh(noise)).max()
        root = rng.standard_normal((4, 4)) * rng.exponential(3.0, 4)
        hessian = root @ root.T + ridge * np.eye(4)
        got, _ = leverage_bounds(hessian + noise, 1.0, ridge, X, bound="paper")
        squares, exact = (X**2).sum(axis=1), np.einsum("ij,jk,ik->i", X, np.linalg.inv(hessian), X)
        assert (got >= np.minimum(exact, squares / (ridge + squares / 4)) * (1 - 1e-12)).all()
