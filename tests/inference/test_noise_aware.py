"""Intervals that count the noise in the released matrices: their law, what uses it, and what it covers."""

import contextlib
import dataclasses
import math
import warnings

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci import _core
from dpci.inference.intervals import ErrorLaw
from dpci.inference.quadratic_tail import ratio_nodes
from support.keywords import assembled

N, D = 3000, 6
NOTIONS = {
    "pure": {"budget": dpci.PureDP(1.0)},
    "pure, output": {"budget": dpci.PureDP(1.0), "mechanism": "output"},
    "zCDP, separate": {"budget": dpci.ZCDP(0.1), "moments": "separate"},
    "approximate": {"budget": dpci.ApproxDP(1.0, 1e-6)},
    "add/remove": {"budget": dpci.PureDP(1.0), "neighbors": dpci.AddRemove(N)},
}


def sample(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.4, 0.4, size=(n, D - 1))
    return X, X @ [4.0, -2.0, 0.0, 0.0, 1.0] + rng.logistic(size=n) > 0


def fit(seed=1, **keywords):
    X, y = sample()
    return dpci.fit(
        X,
        y,
        **assembled(
            **{"budget": dpci.PureDP(1.0), "l2_strength": 0.02, "projection": "noise_aware", "seed": seed, **keywords}
        ),
    )


@pytest.fixture(scope="module", params=list(NOTIONS))
def result(request):
    return fit(**NOTIONS[request.param])


def test_everything_that_is_inferred_has_one_law(result):
    intervals = result.conf_int(level=0.9)
    assert (intervals.lower < result.params).all()
    assert (result.params < intervals.upper).all()
    # A p-value of the distance to an end of the interval is 1 - level.
    law = result._error_law()
    ends = law.pvalues(np.eye(D), intervals.length / 2)
    np.testing.assert_allclose(ends, 0.1, rtol=1e-9)
    np.testing.assert_allclose(law.pvalues(np.eye(D), result.params), result.pvalues, rtol=1e-12)
    one = result.wald_test(result.names[0])
    np.testing.assert_allclose(one.pvalue, result.pvalues[0], rtol=1e-9)
    row = sample(3, 1)[0]
    predicted = result.predict_conf_int(row, level=0.9)
    by_contrast = result.conf_int(contrast=np.append(row, 1.0), level=0.9)
    np.testing.assert_allclose(np.asarray(predicted), 1 / (1 + np.exp(-np.asarray(by_contrast))), rtol=1e-9)
    v, a = law.components(np.eye(D))
    np.testing.assert_allclose(result.std_errors**2, v + a**2 * law.mean_omega, rtol=1e-12)


def test_draws_have_the_law(result):
    law, n = result._error_law(), 200_000
    errors = np.abs(law.draw(np.random.default_rng(2), np.eye(D), n))
    away = (errors <= result.conf_int(level=0.9).length / 2).sum(axis=0)
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], n, 0.9)
    # The variance of a contrast may be raised to its least; that of all together is then a bit greater. Where two gamma
    # laws mix, one with their first three moments stands for them.
    slack = 0.003 * n
    assert (low - slack <= away).all()
    assert (away <= high + slack).all()


def test_monte_carlo_intervals_converge(result):
    exact = result.conf_int(level=0.9)
    drawn = result.conf_int(level=0.9, method="monte_carlo", n_draws=400_000, seed=3)
    np.testing.assert_allclose(np.asarray(drawn), np.asarray(exact), rtol=0.0, atol=0.02 * exact.length.max())


def test_simultaneous_intervals_are_wider_than_single_ones_and_narrower_than_bonferroni(result):
    single, joint, safe = (result.conf_int(simultaneous=kind).length for kind in (None, "max_z", "bonferroni"))
    assert (single < joint).all()
    assert (joint <= safe * 1.001).all()


def test_a_saved_fit_has_the_same_intervals(result, tmp_path):
    path = tmp_path / "fit.json"
    path.write_text(result.to_json())
    again = dpci.PrivateFit.from_json(path.read_text())
    assert np.array_equal(np.asarray(again.conf_int()), np.asarray(result.conf_int()))
    assert again.privacy == result.privacy
    assert "noise_aware" in str(again.summary(full=True))


def test_the_matrices_are_kept_as_they_were_released():
    noisy, floored = fit(), fit(projection="floor")
    assert np.array_equal(noisy.params, floored.params)
    values = np.linalg.eigvalsh(floored.hessian)
    assert values[0] >= 0.02 * (1 - 1e-9)
    released, vectors = np.linalg.eigh(noisy.hessian)
    raised = vectors * np.maximum(released, 0.02) @ vectors.T
    np.testing.assert_allclose(raised, floored.hessian, rtol=1e-9, atol=1e-12)
    with pytest.raises(dpci.errors.InvalidInput, match='got projection="noise_aware"'):
        fit(calibration="paper")


def test_a_comparison_of_two_fits_has_the_law_of_draws():
    other = dpci.fit(
        *sample(5),
        l2_strength=0.02,
        mechanism=dpci.ObjectivePerturbation(projection="noise_aware"),
        seed=6,
        budget=dpci.PureDP(1.0),
    )
    pair = fit(budget=dpci.PureDP(0.5)), other
    found = dpci.compare(*pair, level=0.9)
    n = 200_000
    errors = [r._error_law().draw(np.random.default_rng(i), np.eye(D), n) for i, r in enumerate(pair)]
    away = (np.abs(errors[0] - errors[1]) <= found.intervals.length / 2).sum(axis=0)
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], n, 0.9)
    assert (low - 0.003 * n <= away).all()
    assert (away <= high + 0.003 * n).all()


@pytest.mark.parametrize("shape", [1.0, 2.5, 40.0, 5000.0, np.inf])
def test_nodes_have_the_moments_of_the_gamma_law(shape):
    nodes, weights = ratio_nodes(shape)
    moments = [weights @ nodes**p for p in range(4)]
    second = 1.0 + 1.0 / shape
    np.testing.assert_allclose(moments, [1.0, 1.0, second, second * (1.0 + 2.0 / shape)], rtol=1e-9)


@pytest.mark.parametrize("shape", [1.5, 4.0, 30.0])
@pytest.mark.parametrize("dim", [1, 3, 30])
@pytest.mark.parametrize("share", [0.2, 0.7, 1.0])
def test_quantiles_where_two_laws_mix_the_variance(shape, dim, share):
    """The law with three moments in place of a product of two gamma laws, against the product by quadrature."""
    w = stats.gamma.ppf((np.arange(400) + 0.5) / 400, shape, scale=1.0 / shape)
    k = 0.5 * (dim + 1)
    omega = stats.gamma.ppf((np.arange(400) + 0.5) / 400, k, scale=1.0 / k)
    std_devs = np.sqrt(np.outer(w, 1.0 - share + share * omega).ravel())
    a = np.array([np.sqrt(share / (dim + 1.0))])
    for level in (0.8, 0.95, 0.99):
        (q,) = _core.ErrorShape("spherical_laplace", 1.0, dim, shape).half_widths(np.array([1.0 - share]), a, level)
        covered = (2.0 * stats.norm.cdf(q / std_devs) - 1.0).mean()
        assert abs(covered - level) < 0.006


def test_gaussian_noise_and_a_gamma_ratio_are_exact():
    shape = 2.0
    for level in (0.1, 0.5, 0.95, 0.9999):
        (q,) = _core.ErrorShape("gaussian", np.sqrt(2.0), 3, shape).half_widths(np.array([0.5]), np.array([0.5]), level)
        density = stats.gamma(shape, scale=1.0 / shape)
        grid = density.ppf((np.arange(200_000) + 0.5) / 200_000)
        assert abs((2.0 * stats.norm.cdf(q / np.sqrt(grid)) - 1.0).mean() - level) < 1e-5
    # A normal number whose variance is exponentially distributed, Gamma(1), has the Laplace law.
    (p,) = _core.ErrorShape("gaussian", 1.0, 3, 1.0).pvalues(np.array([1.0]), np.array([0.0]), np.array([3.0]))
    np.testing.assert_allclose(p, np.exp(-3.0 * np.sqrt(2.0)), rtol=1e-6)


def test_bad_shapes_are_refused():
    for shape in (0.0, 0.99, -1.0, np.nan):
        with pytest.raises(dpci.errors.InvalidInput, match="shape must be at least 1"):
            _core.ErrorShape("gaussian", 1.0, 2, shape)


def test_a_least_covariance_raises_every_direction():
    least = np.diag([1.0, 4.0])
    law = ErrorLaw(np.diag([-3.0, 9.0]), np.zeros((2, 2)), 0.0, "gaussian", 1.0, least, np.inf)
    np.testing.assert_allclose(law.parts(np.eye(2))[0], np.diag([1.0, 9.0]), atol=1e-12)
    np.testing.assert_allclose(law.components(np.eye(2))[0], [1.0, 9.0])
    # Dependent contrasts.
    rows = np.array([[1.0, 0.0], [2.0, 0.0]])
    np.testing.assert_allclose(law.parts(rows)[0], [[1.0, 2.0], [2.0, 4.0]], atol=1e-9)
    assert dataclasses.replace(law, least_sampling=None).components(np.eye(2))[0][0] == 0.0


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
def test_intervals_cover_and_are_shorter_than_those_of_projected_matrices():
    """500 replicates of 12 parameters: the standard error of the coverage is below .005."""
    rng = np.random.default_rng(8)
    X = rng.uniform(-0.3, 0.3, size=(1000, 11))
    y = np.where(X @ np.linspace(-3, 3, 11) + rng.logistic(size=1000) > 0, 1.0, -1.0)
    configs = [assembled(projection=p, split=(0.9, 0.05, 0.05)) for p in ("floor", "noise_aware")]
    floored, aware = dpci.simulate.coverage(
        X, y, configs=configs, budget=dpci.PureDP(3.0), l2_strength=0.01, classes=(-1, 1), n_replicates=500, seed=9
    )
    # Of 1,000 records the sum of the hidden eigenvalues is expected too long rather than too short.
    assert 0.92 <= aware.coverage <= 0.992
    assert aware.mean_length < 0.9 * floored.mean_length


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
@pytest.mark.parametrize("columns", [1, 2])
def test_intervals_of_few_parameters_cover(columns):
    """400 replicates: coverage of one parameter has a standard error of .011, and .9 is 4.9 of them below .953."""
    rng = np.random.default_rng(columns)
    X = rng.uniform(-0.7, 0.7, size=(1000, columns))
    y = np.where(X.sum(axis=1) + rng.logistic(size=1000) > 0, 1.0, -1.0)
    study = dpci.simulate.coverage(
        X, y, budget=dpci.PureDP(1.0), l2_strength=0.002, rows=dpci.rows.Within(intercept=False), classes=(-1, 1),
        n_replicates=400, seed=3,
    )  # fmt: skip
    assert 0.9 <= study.coverage <= 0.99


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_notes_say_that_the_noise_is_counted_and_joint_tests_are_by_rows():
    noisy = fit(budget=dpci.PureDP(0.3))
    assert noisy.moment_noise > 0.5
    assert (
        "account for it. A joint test of several parameters may reject too often: wald_test tests them one at a time"
        in (" ".join(noisy.summary(full=True).split()))
    )
    assert "as well as for the noise in the two matrices" in noisy.to_html()
    assert noisy.wald_test(["x0", "x1"]).method == "by_rows"


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_noise_that_hides_the_rows_with_curvature_is_no_silence():
    loss = dpci.losses.HuberHinge(h=0.5)
    X, y = sample()
    with pytest.warns(dpci.CurvatureWarning):
        fits = [
            dpci.fit(
                X, y, budget=dpci.PureDP(0.3), l2_strength=0.02, loss=loss,
                mechanism=dpci.ObjectivePerturbation(projection="noise_aware"), seed=seed,
            )
            for seed in range(20)
        ]  # fmt: skip
    assert 0.0 in [result.curvature_room for result in fits]


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_the_stretch_is_the_length_over_that_of_the_first_estimate():
    result = fit(budget=dpci.PureDP(0.5))
    law = result._error_law()
    unscaled = dataclasses.replace(
        law,
        sampling=law.sampling / law.factor,
        noise=law.noise / math.sqrt(law.factor),
        least_sampling=law.least_sampling / law.factor,
        shape=math.inf,
    )
    length = 2.0 * unscaled.half_widths(np.eye(law.dim), 0.95)
    np.testing.assert_allclose(result.interval_stretch, result.conf_int().length / length, rtol=1e-12)
    assert law.factor != 1.0
    shown = f"On average they are {result.interval_stretch.mean():.2f} times as long"
    for text in (result.summary(full=True), result.to_html(), str(result.privacy)):
        assert shown in " ".join(text.split())
    floored = fit(budget=dpci.PureDP(0.5), projection="floor")
    np.testing.assert_array_equal(floored.interval_stretch, 1.0)
    assert not any("times as long" in note for note in floored.privacy["interval_notes"])


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_the_noise_of_the_parameters_is_never_more_than_the_strong_convexity_lets_through():
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.5, 0.5, size=(300, 2))
    y = rng.random(300) < 0.5
    for seed in range(40):
        keywords = {
            "budget": dpci.PureDP(0.2),
            "l2_strength": 0.02,
            "rows": dpci.rows.Within(intercept=False),
            "seed": seed,
        }
        law = dpci.fit(X, y, classes=(False, True), **keywords)._error_law()
        assert np.linalg.eigvalsh(law.noise).max() <= (1.0 + 1e-12) / (300 * 0.02)


@pytest.mark.parametrize(
    "damage",
    [
        {"rows": dpci.rows.Ball(1e160)},
        {"hessian": [[1.0, 1e154], [1e154, -1e154]]},
        {"hessian": [[1e300, 0.0], [0.0, -1e300]], "l2_strength": 1.7e308},
        {"gradient_cov": [[1e308, 1e308], [1e308, 1e308]]},
    ],
    ids=str,
)
def test_records_with_absurd_numbers_are_refused_in_words(damage):
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-0.5, 0.5, size=(200, 1)), rng.random(200) < 0.5
    record = dpci.fit(X, y, classes=(False, True), budget=dpci.PureDP(1.0), l2_strength=0.1, seed=1)._record
    arrays = {name: np.array(value) for name, value in damage.items() if isinstance(value, list)}
    result = dpci.PrivateFit(dataclasses.replace(record, **{**damage, **arrays}))
    with warnings.catch_warnings(action="error"):
        assert result.privacy["notion"] == "pure"
        with contextlib.suppress(dpci.InvalidInput):
            assert np.isfinite(result.conf_int().length).all()
