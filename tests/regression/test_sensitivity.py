"""How far one record moves a moment matrix: brute force against what the noise was calibrated to."""

import numpy as np
import pytest

import dpci
from dpci import _core
from support.core import specified

N = 50


def spec(d, *, notion="zcdp", neighbors="replace_one", row_norm=2.0, bound=3.0):
    budget = {"zcdp": _core.Budget.zcdp(0.5), "pure": _core.Budget.pure(1.0)}[notion]
    return specified(_core.MomentMatrixSpec,
        n_samples=N, n_columns=d, row_norm=row_norm, target_bound=bound, budget=budget, neighbors=neighbors,
        residuals=[([*range(d + 1)], [0.0] * (d + 1) ** 2, [0.0] * (d + 1) + [1.0])], residual_share=0.1,
    )  # fmt: skip


def sensitivity(d, **keywords):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, d)) / np.sqrt(d)
    made = spec(d, **keywords)
    found = _core.release(made, _core.Records(X, np.zeros(N)), clip=False, n_threads=1, seed=1)
    return made, found["steps"][0].sensitivity


def terms(made, count, d, rng, row_norm=2.0, bound=3.0):
    """Terms (count, d + 2, d + 2) of random records of the domain, most of them on its edge."""
    x = rng.standard_normal((count, d))
    lengths = row_norm * rng.uniform(size=(count, 1)) ** (rng.integers(2, size=(count, 1)) / d)
    x *= lengths / np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.choice([-bound, bound], count) * np.where(rng.integers(2, size=count), rng.uniform(size=count), 1.0)
    z = np.column_stack([x, np.full(count, made.intercept), made.target_weight * y])
    return z[:, :, None] * z[:, None, :] / N


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("notion", ["zcdp", "pure"])
def test_no_pair_of_records_exceeds_it_and_the_worst_nearly_attains_it(d, notion):
    norm = "fro" if notion == "zcdp" else "nuc"
    made, replaced = sensitivity(d, notion=notion)
    alone = sensitivity(d, notion=notion, neighbors="add_remove")[1]
    rng = np.random.default_rng(d)
    first, second = (terms(made, 4000, d, rng) for _ in range(2))
    assert np.linalg.norm(first - second, norm, axis=(1, 2)).max() <= replaced * (1 + 1e-12)
    assert np.linalg.norm(first, norm, axis=(1, 2)).max() <= alone * (1 + 1e-12)
    # z and z' at right angles: rows (r, 0, ...) and (-r, 0, ...) with targets of one sign and their squares balanced.
    if d > 1:
        r, s, t = 2.0, made.intercept, made.target_weight * 3.0
        # cos: x'x̃ + s² + t² = 0
        cosine = -(s**2 + t**2) / r**2
        z = np.array([r, *[0.0] * (d - 1), s, t])
        other = np.array([r * cosine, r * np.sqrt(1 - cosine**2), *[0.0] * (d - 2), s, t])
        found = np.linalg.norm(np.outer(z, z) - np.outer(other, other), norm) / N
        assert found == pytest.approx(replaced, rel=1e-12)
    z = np.array([2.0, *[0.0] * (d - 1), made.intercept, made.target_weight * 3.0])
    assert z @ z / N == pytest.approx(alone, rel=1e-12)


def test_replacing_a_record_in_the_data_moves_the_matrix_by_no_more():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (N, 3))
    y = rng.uniform(-3, 3, N)
    keywords = {"budget": dpci.ZCDP(1e12), "bounds": (-1, 1), "target_bound": 3.0, "seed": 1}
    base = dpci.regression.release(X, y, **keywords)
    step = base.privacy["steps"][0]
    for corner in ([1, 1, 1, 3], [-1, 1, -1, -3], [1, -1, -1, 3]):
        other, targets = X.copy(), y.copy()
        other[7], targets[7] = corner[:3], corner[3]
        moved = dpci.regression.release(other, targets, **keywords)
        gap = np.linalg.norm(moved._record.matrix - base._record.matrix)
        assert 0 < gap <= step["sensitivity"] * (1 + 1e-6)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_residual_moments_obey_their_cap(neighbors):
    rng = np.random.default_rng(5)
    n = 2000
    X = rng.uniform(-1, 1, (n, 2))
    y = np.clip(X @ [0.5, -0.3] + rng.normal(size=n) * 0.1, -1, 1)
    relation = dpci.AddRemove(n) if neighbors == "add_remove" else neighbors
    matrix = dpci.regression.release(
        X, y, budget=dpci.ZCDP(1e9), bounds=(-1, 1), robust=True, neighbors=relation, seed=1
    )
    record = matrix._record
    step = record.steps[1]
    # sensitivity = factor · cap² (R² + s²)/n
    factor = np.sqrt(2) if neighbors == "replace_one" else 1.0
    square = step.sensitivity / factor * n / (2 + record.constant**2)
    design = np.column_stack([X, np.full(n, record.constant)])
    residuals = y - design @ record.residuals[0].point
    assert np.sqrt(square) == pytest.approx(8 * np.sqrt(np.mean(residuals**2)), rel=1e-3)
    # One residual beyond the cap counts as the cap.
    y[0] = -1.0 if residuals[0] > 0 else 1.0
    far = dpci.regression.release(
        X, y, budget=dpci.ZCDP(1e9), bounds=(-1, 1), robust=True, neighbors=relation, seed=1
    )._record
    residuals = y - design @ far.residuals[0].point
    cap = np.sqrt(far.steps[1].sensitivity / factor * n / (2 + far.constant**2))
    capped = np.clip(residuals, -cap, cap)
    expected = (design * capped[:, None] ** 2).T @ design / n
    np.testing.assert_allclose(far.residuals[0].moments, expected, atol=1e-4 * cap**2)
    assert np.abs(residuals).max() > cap
