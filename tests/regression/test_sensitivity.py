"""How far one record moves a moment matrix, and the law of the errors against simulation."""

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci import _core
from dpci.regression.law import ErrorParts, Noise, hidden, positive_part
from support.core import specified

N = 50


def spec(d, *, notion="zcdp", neighbors="replace_one", row_norm=2.0, bound=3.0):
    budget = {"zcdp": _core.Budget.zcdp(0.5), "pure": _core.Budget.pure(1.0)}[notion]
    return specified(
        _core.MomentMatrixSpec, n_samples=N, n_columns=d, row_norm=row_norm, target_bound=bound, budget=budget,
        neighbors=neighbors, residuals=[([*range(d + 1)], [0.0] * (d + 1) ** 2, [0.0] * (d + 1) + [1.0])],
        residual_share=0.1,
    )  # fmt: skip


def sensitivity(d, **keywords):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, d)) / np.sqrt(d)
    made = spec(d, **keywords)
    found = _core.release(made, _core.Records(X, np.zeros(N)), on_violation="error", n_threads=1, seed=1)
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


def parts(sampling, plus, minus, degrees, df=np.inf):
    variance = sampling + plus**2 + minus**2
    one = np.ones(1)
    return ErrorParts(
        sampling=sampling * one, sampling_variance=2 * variance**2 / df * one,
        noises=(Noise(plus * one, minus * one, degrees),),
    )  # fmt: skip


@pytest.mark.parametrize("dim", [2, 5, 30])
@pytest.mark.parametrize("sampling", [0.0, 0.5])
def test_matrix_laplace_noise_has_this_law(dim, sampling):
    # w'(P - Q)v for Wishart P and Q with dim + 1 degrees and scale I/2γ.
    rng = np.random.default_rng(dim)
    w, v = np.array([1.0, 0.3]), np.array([-0.4, 2.0])
    runs = 400_000
    shape = (dim + 1) / 2
    half = np.sqrt((w @ w) * (v @ v))
    lambdas = 0.5 * np.array([w @ v + half, w @ v - half])
    total = np.zeros(runs)
    for sign in (1, -1):
        for _ in range(dim + 1):
            g = rng.standard_normal((runs, 2))
            total += sign * 0.5 * (g @ w) * (g @ v)
    total += np.sqrt(sampling) * rng.standard_normal(runs)
    plus, minus = np.sqrt(dim + 1.0) * lambdas  # γ = 1
    law = parts(sampling, plus, minus, shape)
    assert law.variance[0] == pytest.approx(total.var(), rel=0.02)
    for level in (0.5, 0.9, 0.95, 0.99, 0.999):
        inside = np.mean(np.abs(total) <= law.half_width(level)[0])
        assert abs(inside - level) < 5 * np.sqrt(level * (1 - level) / runs) + 1e-4
        assert law.tail(law.half_width(level))[0] == pytest.approx(1 - level, rel=1e-6)


def test_normal_noise_and_t():
    law = parts(1.0, 0.5, -0.5, np.inf)
    assert law.half_width(0.95)[0] == pytest.approx(np.sqrt(1.5) * stats.norm.ppf(0.975), rel=1e-9)
    law = parts(1.0, 0.0, 0.0, np.inf, df=7.0)
    assert law.half_width(0.95)[0] == pytest.approx(stats.t.ppf(0.975, 7), rel=1e-12)
    assert law.tail(np.array([2.0]))[0] == pytest.approx(2 * stats.t.sf(2.0, 7), rel=1e-12)


@pytest.mark.parametrize("seen", [-30.0, -3.0, 0.0, 0.5, 10.0])
def test_a_positive_number_seen_with_noise(seen):
    law = stats.truncnorm(-seen, np.inf, loc=seen, scale=1.0)
    mean, variance = positive_part(np.array([seen]), np.ones(1))
    assert mean[0] == pytest.approx(law.mean(), rel=1e-6)
    assert mean[0] > 0
    assert variance[0] == pytest.approx(law.var(), rel=1e-3)
    assert positive_part(np.array([seen]), np.zeros(1))[0] == seen


def test_far_below_zero_no_digits_are_lost():
    seen = -np.geomspace(10, 1e9, 50)
    mean, variance = positive_part(seen, np.ones(50))
    assert np.all(np.diff(mean) < 0)
    np.testing.assert_allclose(mean * -seen, 1, rtol=2e-2)
    np.testing.assert_allclose(variance[10:], mean[10:] ** 2, rtol=1e-2)
    below, above = positive_part(np.array([-39.99, -40.01]), np.ones(2))
    np.testing.assert_allclose(below[0] / below[1], 40.01 / 39.99, rtol=1e-5)
    np.testing.assert_allclose(above[0] / above[1], (40.01 / 39.99) ** 2, rtol=1e-5)
    assert positive_part(np.array([1e160]), np.ones(1)) == (1e160, 1.0)


@pytest.mark.parametrize("chance", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("seen", "std_dev"), [(1.0, 3.0), (40.0, 3.0), (40.0, 20.0), (-5.0, 3.0), (5.0, 1e6)])
def test_what_noise_hides_is_the_usual_or_by_chance_what_is_greatest(seen, std_dev, chance):
    usual, greatest = 1.0, 50.0
    likely, means, squares = [], [], []
    for reach in (usual, greatest):
        of_both = [stats.norm(usual, reach), stats.norm(seen, std_dev)]
        scale = (reach**-2 + std_dev**-2) ** -0.5
        middle = scale**2 * (usual / reach**2 + seen / std_dev**2)
        law = stats.truncnorm(-middle / scale, np.inf, loc=middle, scale=scale)
        # Bayes' rule at one value: the joint density is the marginal one times the posterior one.
        joint = [each.logpdf(middle) for each in of_both]
        likely.append(np.exp(sum(joint) - stats.norm(middle, scale).logpdf(middle)))
        means.append(law.mean())
        squares.append(law.var() + law.mean() ** 2)
    odds = np.array(likely) * [1.0 - chance, chance]
    odds /= odds.sum()
    mean, variance = hidden(*(np.array([number]) for number in (seen, std_dev, usual, greatest)), chance)
    assert mean[0] == pytest.approx(odds @ means, rel=1e-6)
    # Never less than four degrees of freedom.
    expected = min(odds @ squares - (odds @ means) ** 2, 0.5 * (odds @ means) ** 2)
    assert variance[0] == pytest.approx(expected, rel=1e-3)


def test_what_was_seen_without_noise_is_kept():
    usual = np.array([1.0])
    mean, variance = hidden(np.array([5.0]), np.array([1e-12]), usual, 50.0 * usual, 0.1)
    assert mean[0] == pytest.approx(5.0, rel=1e-12)
    assert variance[0] == pytest.approx(0.0, abs=1e-20)
