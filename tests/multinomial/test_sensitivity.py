"""The sensitivities of multinomial fits, and the determinants, by brute force over pairs of records and of persons."""

import itertools

import numpy as np
import pytest
from scipy import stats

from dpci import _core
from dpci.budgets import ApproxDP, PureDP, core_budget
from support.core import specified

N, ROW_NORM = 50, 1.5
TRIALS = 1000


def specification(n_classes, budget, neighbors, moments, mechanism="output", **unit):
    return specified(
        _core.Spec, n_samples=N, n_columns=3, row_norm=ROW_NORM, loss=_core.Loss.multinomial(n_classes),
        l2_strength=0.1, budget=core_budget(budget), mechanism=mechanism, moments=moments, neighbors=neighbors, **unit,
    )  # fmt: skip


def records(rng, params, rows=None, labels=None):
    """Hessians and gradients of records at their bound, one at each of the parameters."""
    rows = rng.normal(size=(len(params), 3)) if rows is None else np.array(rows)
    rows *= ROW_NORM / np.linalg.norm(rows, axis=1, keepdims=True)
    u = np.column_stack([np.zeros(len(rows)), np.einsum("tkd,td->tk", params, rows)])
    p = np.exp(u - u.max(axis=1, keepdims=True))
    p = (p / p.sum(axis=1, keepdims=True))[:, 1:]
    k = p.shape[1]
    labels = rng.integers(k + 1, size=len(rows)) if labels is None else labels
    slopes = p - (np.arange(1, k + 1) == np.reshape(labels, (-1, 1)))
    curvatures = p[:, :, None] * np.eye(k) - p[:, :, None] * p[:, None, :]
    hessians = np.einsum("tkl,ti,tj->tkilj", curvatures, rows, rows).reshape(len(rows), 3 * k, 3 * k)
    return hessians, np.einsum("tk,td->tkd", slopes, rows).reshape(len(rows), 3 * k)


def persons(rng, params, weight_bound):
    """The same of persons with one to four rows, each with a weight."""
    n_rows = rng.integers(1, 5, size=len(params))
    # Rows that are alike come near the bound, and weights at their bound.
    alike = rng.integers(2, size=len(params)) == 0
    omega = np.where(alike[:, None], weight_bound, rng.uniform(0.0, weight_bound, (len(params), 4)))
    omega = omega * (np.arange(4) < n_rows[:, None]) / n_rows[:, None]
    rows = [records(rng, params) for _ in range(4)]
    hessians, gradients = 0.0, 0.0
    for w, (hessian, gradient) in zip(omega.T, rows, strict=True):
        hessians = hessians + w[:, None, None] * np.where(alike[:, None, None], rows[0][0], hessian)
        gradients = gradients + w[:, None] * np.where(alike[:, None], rows[0][1], gradient)
    return hessians, gradients


def random_params(rng, n_classes):
    return rng.normal(size=(TRIALS, n_classes - 1, 3)) * 10.0 ** rng.uniform(-1.0, 2.0, (TRIALS, 1, 1))


def squares(gradients):
    return gradients[:, :, None] * gradients[:, None, :]


def nuclear(matrices):
    return np.abs(np.linalg.eigvalsh(matrices)).sum(axis=1)


@pytest.mark.parametrize("n_classes", [3, 4, 5, 6])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("unit", [{}, {"persons": True, "weight_bound": 2.5}], ids=["rows", "persons"])
def test_no_pair_of_records_exceeds_the_sensitivity(n_classes, neighbors, unit):
    pure, gaussian = (
        next(
            s
            for s in specification(n_classes, budget, neighbors, "joint", **unit).plan()["steps"]
            if s.step == "moments"
        )
        for budget in (PureDP(1.0), ApproxDP(1.0, 1e-6))
    )
    separate = specification(n_classes, PureDP(1.0), neighbors, "separate", **unit).plan()["steps"][1:]
    # The weight of the Hessian is the ratio of the scales of the noise.
    weights = [step.scale / step.hessian_scale for step in (pure, gaussian)]
    assert weights == pytest.approx([2.0, 4.0], rel=1e-3)
    rng = np.random.default_rng(n_classes)
    params = random_params(rng, n_classes)
    # Every second time some classes are alike, the others impossible.
    shape = params[1::2].shape
    params[1::2] = 30.0 * rng.normal(size=(shape[0], 1, 3)) * rng.integers(0, 2, (*shape[:2], 1))
    weight_bound = unit.get("weight_bound", 1.0)
    first, other = (persons(rng, params, weight_bound) if unit else records(rng, params) for _ in range(2))
    hessian, cov = first[0], squares(first[1]) / weight_bound
    if neighbors == "replace_one":
        hessian, cov = hessian - other[0], cov - squares(other[1]) / weight_bound
    found = (
        weights[0] * nuclear(hessian) + nuclear(cov),
        np.hypot(weights[1] * np.linalg.norm(hessian, axis=(1, 2)), np.linalg.norm(cov, axis=(1, 2))),
        nuclear(hessian),
        nuclear(cov),
    )
    greatest = np.max(found, axis=1) / N
    claimed = np.array([step.sensitivity for step in (pure, gaussian, *separate)])
    assert (greatest <= claimed).all()
    # Random records reach less than a worst case; the joint Gaussian bound is not attained by any.
    assert (greatest > np.array([0.75, 0.5, 0.8, 0.75]) * claimed).all()


@pytest.mark.parametrize("n_classes", [3, 4, 5, 6])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("unit", [{}, {"persons": True, "weight_bound": 2.5}], ids=["rows", "persons"])
@pytest.mark.parametrize("budget", [PureDP(5.0), ApproxDP(5.0, 1e-6)], ids=["pure", "approx"])
def test_no_pair_of_records_moves_the_noise_by_more_than_the_sensitivity(n_classes, neighbors, unit, budget):
    step = specification(n_classes, budget, neighbors, "none", "objective", **unit).plan()["steps"][0]
    rng = np.random.default_rng(n_classes)
    params = random_params(rng, n_classes)
    first, other = ((persons(rng, params, 2.5)[1] / 2.5 if unit else records(rng, params)[1]) for _ in range(2))
    # Class 1 is sure for both rows, which are almost opposite and belong to class 2.
    params = np.zeros((1, n_classes - 1, 3))
    params[0, 0, 0], params[0, 1:, 0] = 1e3, -1e3
    first[:1], other[:1] = (records(rng, params, [[0.1, sign, 0.0]], 2)[1] for sign in (1.0, -1.0))
    greatest = np.linalg.norm(first - other if neighbors == "replace_one" else first, axis=1).max()
    assert 0.95 * step.sensitivity < greatest <= step.sensitivity


@pytest.mark.parametrize("n_classes", [3, 4, 5, 6])
@pytest.mark.parametrize("max_rows", [0, 1, 2, None], ids=["rows", "one", "two", "all"])
def test_no_unit_changes_the_determinant_by_more_than_the_bound(n_classes, max_rows):
    """0 rows stand for a single row without persons."""
    rng = np.random.default_rng(n_classes)
    trace, dim, one = (n_classes - 2) / (n_classes - 1), 3 * (n_classes - 1), np.full(n_classes, 1.0 / (n_classes - 1))
    one[0] = 0.0
    for kappa in (0.02, 1.0, 20.0):
        unit = {} if max_rows == 0 else {"persons": True, "max_rows": max_rows}
        # The curvature bound and the sign do not count where the number of classes is given.
        bound = _core.Testing.log_det(_core.ObjectiveProfile(
            n_samples=1.0, row_norm=1.0, intercept=None, curvature_bound=None, l2_strength=trace / kappa,
            one_signed=True, neighbors="replace_one", n_params=dim, n_classes=n_classes, **unit,
        ))  # fmt: skip
        rank = dim if max_rows is None else min(dim, max(max_rows, 1) * (n_classes - 1))
        assert bound == pytest.approx(rank * np.log1p(kappa / rank))
        greatest = 0.0
        for trial in range(60):
            n_rows = int(rng.integers(1, 5)) if max_rows is None else max(max_rows, 1)
            # First rows at right angles, where all classes but the reference are equally likely.
            rows = rng.normal(size=(n_rows, 3)) if trial else np.eye(3)[: 3 if max_rows is None else max(max_rows, 1)]
            n_rows = len(rows)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            chances = rng.dirichlet(np.full(n_classes, 0.3), n_rows) if trial else np.tile(one, (n_rows, 1))
            others = trace / kappa * np.eye(dim) + (trial > 30) * np.diag(rng.random(dim))
            hessian = (
                sum(
                    np.kron(np.diag(p) - np.outer(p, p), np.outer(row, row))
                    for p, row in zip(chances[:, 1:], rows, strict=True)
                )
                / n_rows
            )
            greatest = max(greatest, np.linalg.slogdet(others + hessian)[1] - np.linalg.slogdet(others)[1])
        assert greatest <= bound * (1.0 + 1e-9)
        assert kappa > 0.1 or greatest > 0.95 * bound


def hockey_stick(epsilon, mu):
    return stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)


def excess(epsilon, mu):
    at = mu / 2 - epsilon / mu
    return mu * (stats.norm.pdf(at) + at * stats.norm.cdf(at))


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("persons", [False, True])
def test_the_profile_sums_the_corners_of_the_worst_pair(neighbors, persons):
    """All K corners of a record, or K^2 of two opposite rows of one class, one by one."""
    epsilon, ratio, mu, of = 1.0, 0.3, 0.2, excess if persons else hockey_stick
    for n_classes in (3, 4, 6):
        profile = _core.ObjectiveProfile(
            n_samples=1.0, row_norm=1.0, intercept=None, curvature_bound=None, l2_strength=50.0, one_signed=False,
            neighbors=neighbors, n_params=4, n_classes=n_classes, persons=persons,
        )  # fmt: skip
        slopes = np.eye(n_classes) - np.eye(n_classes)[1]
        slopes[:, 0] = 0.0
        pairs = itertools.product(slopes, slopes) if neighbors == "replace_one" else ((r, 0.0 * r) for r in slopes)
        squares = [np.sum((one + other) ** 2) / 2.0 for one, other in pairs]
        left = epsilon - _core.Testing.log_det(profile)
        expected = sum(of(left, np.hypot(ratio * np.sqrt(square), mu)) for square in squares)
        assert profile.delta(epsilon, ratio, mu) == pytest.approx(expected, rel=1e-9)


def sums(params, rows, n_classes):
    """Gradient and Hessian of (row, label, number of records)."""
    gradient, hessian = 0.0, 0.0
    for row, label, count in rows:
        u = np.concatenate([[0.0], params.reshape(n_classes - 1, -1) @ row])
        p = np.exp(u - u.max())
        p = (p / p.sum())[1:]
        gradient = gradient + count * np.kron(p - (np.arange(1, n_classes) == label), row)
        hessian = hessian + count * np.kron(np.diag(p) - np.outer(p, p), np.outer(row, row))
    return gradient, hessian


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_the_densities_of_neighbouring_data_sets_differ_by_the_claim(n_classes, neighbors):
    """Short rows of class 1 hold its parameters far out, where a record of class 2 is surely taken for class 1."""
    n, strength, dim = 10**6, 1e-4, 2 * (n_classes - 1)
    spec = specified(
        _core.Spec, n_samples=n, n_columns=2, loss=_core.Loss.multinomial(n_classes), l2_strength=strength,
        budget=core_budget(PureDP(2.0)), mechanism="objective", neighbors=neighbors,
    )  # fmt: skip
    held = [(np.array([2.0 * np.sqrt(strength), 0.0]), 1, n - 1.0)]
    first, other = ([*held, (np.array([0.05, sign * np.sqrt(1.0 - 0.05**2)]), 2, 1.0)] for sign in (1.0, -1.0))
    other = other if neighbors == "replace_one" else held

    def noise(params, rows):
        """The noise that leads to the parameters, and the Jacobian of the map to it."""
        gradient, hessian = sums(params, rows, n_classes)
        ridge = n * strength
        return -(gradient + ridge * params), hessian + ridge * np.eye(dim)

    def log_density(params, rows):
        shift, jacobian = noise(params, rows)
        return np.linalg.slogdet(jacobian)[1] - np.linalg.norm(shift) / spec.noise_scale

    turn = np.zeros(dim)
    turn[1], turn[3] = 1.0, -1.0  # along which the gradients differ
    found = 0.0
    for size in (-9.0, -3.0, -1.0, 1.0, 3.0, 9.0):
        params = np.zeros(dim)
        for _ in range(100):
            shift, jacobian = noise(params, other)
            step = np.linalg.solve(jacobian, shift - size * turn)
            params = params + step / max(1.0, np.linalg.norm(step))
        assert np.linalg.norm(step) < 1e-9
        found = max(found, abs(log_density(params, first) - log_density(params, other)))
    claimed = spec.plan()["steps"][0].cost
    assert 0.95 * claimed < found <= claimed
