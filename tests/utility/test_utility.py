"""Utility curves against refits: noise, derivatives, predictions, the mean over the noise and its bound."""

import functools

import numpy as np
import pytest
from scipy import special, stats
from scipy.optimize import brentq

import dpci
from dpci import _core
from dpci.errors import InvalidInput, RegularizationTooSmall
from dpci.utility.expected import mixture
from support.keywords import assembled
from support.seal import SHARE, left_of
from support.utility import (
    APPROX,
    KIFER,
    L2_STRENGTH,
    MECHANISMS,
    OBJECTIVE,
    ROWS,
    curve,
    make_adult_rows,
    monte_carlo,
    refit,
    refit_utility,
    refits,
)

MANY = pytest.mark.parametrize("name", sorted(MECHANISMS))


def difference(function, at):
    """Central difference of fourth order, with an error far below 1e-6 of the value."""
    h = 1e-3 * at
    return (8 * (function(at + h) - function(at - h)) - (function(at + 2 * h) - function(at - 2 * h))) / (12 * h)


@MANY
def test_measuring_point_is_the_minimiser_under_the_draw_of_the_seed(name):
    """Whose law is that of a fit at this budget (below); a fit's own draw of a seed is another, and sealed."""
    found = curve(**MECHANISMS[name])
    expected = refit(found, found.path.at)
    np.testing.assert_allclose(found.params[0], expected, rtol=0, atol=2e-5 * np.abs(expected).max())
    assert found.utility == pytest.approx(found.evaluator.values(expected[np.newaxis])[0], rel=1e-5)
    assert not found.private


@MANY
def test_noise_is_that_of_a_fit_at_every_budget(name):
    found = curve(**MECHANISMS[name])
    settings, path = found.path.settings, found.path
    for value in np.array([0.3, 1.0, 4.0]) * path.at:
        budget = path.budget(value)
        numbers = budget.parameters().values()
        assert next(iter(numbers)) == value
        plan = dpci.plan(
            **assembled(
                n_samples=len(ROWS[1]), n_features=ROWS[0].shape[1], budget=budget, l2_strength=path.l2_strength(value),
                loss=settings.loss, mechanism=settings.mechanism, neighbors=settings.neighbors,
            )
        )  # fmt: skip
        spec = path.spec(value)
        assert plan.steps[0].scale == spec.noise_scale
        assert plan.steps[0].noise == spec.noise_law
        if path.adds_regularisation:
            # Theorem 1 of Li et al.: 2tR²/ε on the scale of the sum, ε the coefficients' share.
            added = (path.l2_strength(value) - L2_STRENGTH) * len(ROWS[1])
            assert added == pytest.approx(2 * 0.25 * 2.0 / spec.plan()["steps"][0].cost, rel=1e-12)


def test_kifers_noise_is_the_published_formula():
    found = curve(**KIFER)
    for value in (0.1, 1.0, 7.0):
        epsilon, delta = left_of(value), left_of(1e-6)
        expected = np.sqrt(2.0) * np.sqrt(8 * np.log(2 / delta) + 4 * epsilon) / epsilon
        assert found.path.spec(value).noise_scale == pytest.approx(expected, rel=1e-12)


@MANY
def test_slope_of_the_noise_is_a_finite_difference(name):
    path = curve(**MECHANISMS[name]).path
    for value in np.array([0.5, 1.0, 3.0]) * path.at:
        fixed = path.l2_strength(value)

        def scale(v, fixed=fixed):
            return path.settings.spec(len(ROWS[1]), 8, budget=path.budget(v), l2_strength=fixed * 1.01).noise_scale

        spec = path.settings.spec(len(ROWS[1]), 8, budget=path.budget(value), l2_strength=fixed * 1.01)
        assert spec.noise_scale_slope == pytest.approx(difference(scale, value), rel=1e-7)
        assert path.l2_slope(value) == pytest.approx(difference(path.l2_strength, value), rel=1e-8, abs=1e-15)


@MANY
def test_derivative_is_a_finite_difference_of_refits(name):
    found = curve(**MECHANISMS[name])
    expected = difference(lambda value: refit(found, value), found.path.at)
    assert np.abs(found.params_derivative[0] - expected).max() < 1e-5 * np.abs(expected).max()
    expected = difference(lambda value: refit_utility(found, value), found.path.at)
    assert found.derivative == pytest.approx(expected, rel=1e-5)


def test_published_sign_of_the_noise_is_wrong():
    # Eq. 6 of Li et al. has b' = +(4q + ε)/... u: its derivative points away from the refits.
    found = curve(at=APPROX)
    expected = difference(lambda value: refit(found, value), 1.0)
    assert np.abs(-found.params_derivative[0] - expected).max() > np.abs(expected).max()


@pytest.mark.parametrize("metric", ["smoothed_accuracy", dpci.utility.SmoothedAccuracy(0.5)])
def test_smoothed_accuracy_and_its_derivative(metric):
    found = curve(at=APPROX, metric=metric)
    width = 0.1 if isinstance(metric, str) else metric.width
    X = np.column_stack([ROWS[0], np.ones(len(ROWS[1]))])
    margins = (2 * ROWS[1] - 1) * (X @ found.params[0])
    assert found.utility == pytest.approx(np.mean(1 / (1 + np.exp(-margins / width))), rel=1e-12)
    expected = difference(lambda value: refit_utility(found, value), 1.0)
    assert found.derivative == pytest.approx(expected, rel=1e-5)


@MANY
def test_prediction_at_the_measuring_point_is_the_measurement(name):
    found = curve(**MECHANISMS[name])
    assert found.predict_utility(found.path.at) == pytest.approx(found.utility, rel=1e-13)
    assert found.predict_utility(found.path.at, "first_order") == found.utility


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - set(OBJECTIVE)))
def test_output_perturbation_is_predicted_exactly(name):
    found = curve(**MECHANISMS[name])
    for factor in (0.2, 5.0):
        value = factor * found.path.at
        assert found.predict_utility(value) == pytest.approx(refit_utility(found, value), rel=1e-8)


# Measuring points and targets of the paper's first experiment.
GRID = [((0.1, 0.25, 0.75), np.linspace(0.05, 1.0, 7)), ((1.0, 2.5, 7.5), np.linspace(1.0, 10.0, 7))]


@pytest.mark.parametrize("loss", [dpci.losses.Logistic(), dpci.losses.HuberHinge(h=0.1)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("l2_strength", [0.02, 0.002])
def test_two_steps_have_a_twentieth_of_the_first_order_error(loss, l2_strength):
    X, y = make_adult_rows()
    ratios = []
    for measuring, targets in GRID:
        for at in measuring:
            keywords = {**KIFER, "at": dpci.ApproxDP(at, 1e-6), "loss": loss, "l2_strength": l2_strength}
            found = curve((X, y), **keywords)
            others = targets[np.abs(targets - at) > 1e-9]
            truth = np.array([refit_utility(found, value, (X, y)) for value in others])
            newton = np.abs(found.predict_utility(others) - truth)
            ratios.extend(newton / np.abs(found.predict_utility(others, "first_order") - truth))
    assert np.median(ratios) < 1 / 20


def test_more_steps_are_better_and_one_step_needs_no_data():
    truth = refit_utility(curve(at=APPROX), 0.1)
    errors = [abs(curve(at=APPROX, n_steps=k).predict_utility(0.1) - truth) for k in (1, 2, 3, 4)]
    assert errors[1] < errors[0] / 10
    assert errors[3] < 1e-8


@pytest.mark.parametrize("name", ["gaussian", "kifer", "pure", "output, pure"])
def test_many_budgets_agree_with_few(name):
    found = curve(**MECHANISMS[name])
    values = np.geomspace(0.1, 10.0, 200) * found.path.at
    table = found.predict_utility(values)
    alone = np.array([found.predict_utility(value) for value in values[::9]])
    assert np.abs(table[::9] - alone).max() < 2e-4 * np.ptp(table)
    shaped = found.predict_utility(values.reshape(4, 50))
    np.testing.assert_array_equal(shaped.ravel(), table)


@pytest.mark.parametrize("name", ["gaussian", "kifer", "pure", "zcdp", "output, gaussian"])
@pytest.mark.parametrize("factor", [0.4, 3.0])
def test_epsilon_for_is_the_budget_of_a_refit(name, factor):
    found = curve(**MECHANISMS[name])
    target = refit_utility(found, factor * found.path.at)
    got = found.epsilon_for(target)
    # A draw may lead past the minimum of the mean loss, which is below that of the regularised risk: then two budgets
    # have the same utility, and the least one is the answer.
    by_refits = brentq(lambda value: refit_utility(found, value) - target, got / 1.3, got * 1.3)
    assert got == pytest.approx(by_refits, rel=0.05)
    assert got <= factor * found.path.at * 1.05
    near = found.utility + found.derivative * 0.01 * found.path.at
    assert found.epsilon_for(near, "first_order") == pytest.approx(1.01 * found.path.at, rel=1e-9)
    assert found.epsilon_for(found.utility, "first_order") == found.path.at


def test_targets_out_of_reach_are_refused_with_what_is_reached():
    found = curve(at=APPROX)
    for target in (-1.0, 1e9):
        for method in ("newton", "first_order"):
            with pytest.raises(
                InvalidInput, match=r"target must be a utility between .* and .*, which budgets of epsilon"
            ):
                found.epsilon_for(target, method)
    target = refit_utility(found, 0.5)
    assert found.epsilon_for(target, within=(0.2, 2.0)) == pytest.approx(0.5, rel=1e-3)
    with pytest.raises(InvalidInput, match="target must be a utility between"):
        found.epsilon_for(target, within=(0.6, 2.0))


def test_budgets_without_noise_are_refused_and_left_out_of_a_search():
    found = curve(at=dpci.PureDP(1.0))
    least = np.log1p(0.25 * 2 / (len(ROWS[1]) * L2_STRENGTH)) / (1 - SHARE)
    with pytest.raises(RegularizationTooSmall, match="l2_strength must be greater than"):
        found.predict_utility(least * 0.9)
    target = refit_utility(found, least * 5)
    assert found.epsilon_for(target, within=(least / 10, 2.0)) == pytest.approx(least * 5, rel=1e-3)
    # The message names a budget that was asked for, not one between.
    for ask in (found.predict_utility, found.expected_utility):
        with pytest.raises(RegularizationTooSmall, match=r"\(epsilon=0.001\)"):
            ask(np.geomspace(0.001, 100.0, 200))
    with pytest.raises(RegularizationTooSmall, match=r"\(epsilon=1e-5\)"):
        found.epsilon_for(target, within=(1e-6, 1e-5))


def test_draws_are_averaged():
    found = curve(at=APPROX, n_draws=5)
    assert found.params.shape == (5, 9)
    assert len({tuple(row) for row in found.params}) == 5
    draws = found.predict_draws([0.5, 2.0, 3.0])
    assert draws.shape == (5, 3)
    np.testing.assert_allclose(found.predict_utility([0.5, 2.0, 3.0]), draws.mean(axis=0), rtol=1e-14)
    expected = draws.std(axis=0, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(found.standard_error([0.5, 2.0, 3.0]), expected, rtol=1e-14)
    np.testing.assert_array_equal(draws[:1], curve(at=APPROX).predict_draws([0.5, 2.0, 3.0]))
    assert np.isnan(curve(at=APPROX).standard_error(0.5))
    # Draw 2 is the second stream of the seed, whatever the others are.
    np.testing.assert_allclose(found.params[2], refit(found, 1.0, draw=2), rtol=0, atol=1e-5)


def test_parameters_that_are_no_minimiser():
    fitted = curve(at=APPROX)
    same = curve(at=APPROX, params=fitted.params[0])
    np.testing.assert_allclose(same.predict_utility([0.3, 3.0]), fitted.predict_utility([0.3, 3.0]), rtol=1e-9)
    odd = fitted.params[0] + 0.3
    found = curve(at=APPROX, params=odd)
    np.testing.assert_array_equal(found.params[0], odd)
    assert found.predict_utility(1.0) == pytest.approx(found.utility, rel=1e-12)
    # The first step is the minimiser of the quadratic model: K = ∇²J at `odd`, gradient only the change of the noise.
    X = np.column_stack([ROWS[0], np.ones(len(ROWS[1]))])
    p = 1 / (1 + np.exp(-X @ odd))
    K = X.T @ (X * (p * (1 - p))[:, np.newaxis]) / len(X) + L2_STRENGTH * np.eye(9)
    spec, other = found.path.spec(1.0), found.path.spec(0.5)
    u = refit_noise(found)
    step = -np.linalg.solve(K, u * (other.noise_scale - spec.noise_scale) / len(X))
    one = curve(at=APPROX, params=odd, n_steps=1).predict_params(0.5)[0]
    np.testing.assert_allclose(one, odd + step, rtol=0, atol=1e-10)


def refit_noise(found):
    return dpci._core.Utility.draw_noise(found.path.spec(found.path.at), found.seed, 0)


@pytest.mark.parametrize("name", ["gaussian", "kifer", "pure", "output, pure"])
def test_storage_and_threads_change_nothing_that_matters(name):
    import scipy.sparse  # noqa: PLC0415

    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(3000, 4)) / 8.0 * (rng.random((3000, 4)) < 0.5)
    y = (rng.random(3000) < 0.4).astype(float)
    values = [0.3, 1.0, 4.0]
    plain = curve((X, y), **MECHANISMS[name], n_threads=1)
    sparse = curve((scipy.sparse.csr_array(X), y), **MECHANISMS[name])
    threads = curve((X, y), **MECHANISMS[name], n_threads=2)
    np.testing.assert_allclose(sparse.predict_utility(values), plain.predict_utility(values), rtol=1e-7)
    np.testing.assert_array_equal(threads.predict_utility(values), plain.predict_utility(values))
    repeated = np.tile(X, (8, 1)), np.tile(y, 8)  # merged by the core
    apart = curve(repeated, **MECHANISMS[name])
    expected = refit_utility(apart, 0.5 * apart.path.at, repeated)
    assert apart.predict_utility(0.5 * apart.path.at) == pytest.approx(expected, rel=1e-4)
    for other in (sparse, threads, apart):
        assert np.isfinite(other.expected_utility(1.0).mean)


def test_public_n_other_than_the_rows():
    # The noise and the sum of the losses are divided by n_public, the metric by the rows that there are.
    keywords = {"at": APPROX, "neighbors": dpci.AddRemove(1500)}
    found = curve(**keywords)
    X = np.column_stack([ROWS[0], np.ones(len(ROWS[1]))])
    margin = (2 * ROWS[1] - 1) * (X @ found.params[0])
    assert found.utility == pytest.approx(np.logaddexp(0, -margin).mean(), rel=1e-12)
    noise = found.path.spec(1.0).noise_scale * refit_noise(found)
    slope = -(2 * ROWS[1] - 1) / (1 + np.exp(margin))
    gradient = X.T @ slope / 1500 + L2_STRENGTH * found.params[0] + noise / 1500
    assert np.abs(gradient).max() < 1e-6


N_DRAWS = 1000
DEVIATIONS = stats.norm.isf(0.5e-6)

CASES = {
    "gaussian": {"at": APPROX},
    "kifer": KIFER,
    "spherical laplace": {"at": dpci.PureDP(1.0)},
    "output, spherical laplace": {"at": dpci.PureDP(1.0), "mechanism": "output"},
    "output, gaussian": {"at": dpci.ZCDP(0.3), "mechanism": "output"},
    "huber": {"at": dpci.ApproxDP(3.0, 1e-6), "loss": dpci.losses.HuberHinge(h=0.1)},
    "accuracy": {"at": dpci.ApproxDP(2.0, 1e-6), "metric": dpci.utility.SmoothedAccuracy(0.3)},
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_mean_and_spread_over_refits(name):
    found = curve(**CASES[name])
    utilities = monte_carlo(found, N_DRAWS)
    expected = found.expected_utility(found.path.at)
    assert abs(utilities.mean() - expected.mean) < DEVIATIONS * utilities.std(ddof=1) / np.sqrt(N_DRAWS)
    # The standard error of a standard deviation, by the fourth moment.
    squares = (utilities - utilities.mean()) ** 2
    error = squares.std(ddof=1) / np.sqrt(N_DRAWS) / (2 * utilities.std())
    assert abs(utilities.std(ddof=1) - expected.std) < DEVIATIONS * error
    if found.metric == "loss":
        assert utilities.mean() - DEVIATIONS * utilities.std() / np.sqrt(N_DRAWS) < found.worst_case(found.path.at)


@functools.cache
def refits_of(epsilon):
    return refits(curve(at=dpci.ApproxDP(epsilon, 1e-6), metric=dpci.utility.SmoothedAccuracy(0.3)), N_DRAWS)


@pytest.mark.parametrize("width", [0.3, 0.03, 0.003, 1e-5, 1e-200])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_narrow_accuracy(width, epsilon):
    # Steps far narrower than the spread of the predictors, down to the accuracy itself.
    metric = dpci.utility.SmoothedAccuracy(width)
    found = curve(at=dpci.ApproxDP(epsilon, 1e-6), metric=metric)
    utilities = found.evaluator.values(refits_of(epsilon))
    mean, std = found.expected_utility(epsilon)
    # The second order in the noise is not the whole mean: two thousandths are allowed for the rest.
    assert abs(utilities.mean() - mean) < DEVIATIONS * utilities.std(ddof=1) / np.sqrt(N_DRAWS) + 2e-3
    # Two terms of the expansion of the variance, all of whose terms are positive.
    assert 0.5 * utilities.std() < std < 1.2 * utilities.std()
    many = found.expected_utility(np.geomspace(0.1, 10.0, 50))
    assert np.all((many.mean >= 0.0) & (many.mean <= 1.0))
    assert np.all((many.std >= 0.0) & (many.std <= 0.5))
    assert np.isfinite([found.utility, found.derivative]).all()


@pytest.mark.parametrize("width", [1.0, 0.1, 0.01, 1e-4, 1e-200])
def test_mean_accuracy_is_an_integral_over_every_row(width):
    # Output perturbation: x'b is normal with variance v‖x‖², so that the mean is one integral a row, by a fine sum.
    found = curve(at=dpci.ApproxDP(1.0, 1e-6), mechanism="output", metric=dpci.utility.SmoothedAccuracy(width))
    center = found.core.center(L2_STRENGTH, start=None).params
    whole = np.column_stack([ROWS[0], np.ones(len(ROWS[1]))])
    margins = (2 * ROWS[1] - 1) * (whole @ center)
    spread = found.path.spec(1.0).noise_scale * np.linalg.norm(whole, axis=1)
    z = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    with np.errstate(over="ignore"):
        sums = sum(special.expit((margins + spread * node) / width).mean() for node in z) / len(z)
    assert found.expected_utility(1.0).mean == pytest.approx(sums, abs=2e-5)
    if width < 1e-100:
        assert found.expected_utility(1.0).mean == pytest.approx(stats.norm.cdf(margins / spread).mean(), abs=1e-8)


def test_noise_changes_the_mean_by_more_than_chance():
    # Without a correction for the noise the same check fails: the excess is many standard errors.
    found = curve(at=dpci.ApproxDP(0.3, 1e-6))
    utilities = monte_carlo(found, N_DRAWS)
    plain = found.expected_utility(1e6).mean
    assert utilities.mean() - plain > DEVIATIONS * utilities.std() / np.sqrt(N_DRAWS)


@pytest.mark.parametrize("name", ["gaussian", "kifer", "output, zcdp", "pure"])
def test_small_noise_gives_the_formula_with_third_derivatives(name):
    """F + tr(∇²F C)/2 - ∇F'H⁻¹T/2 with T = Σ ∂³J C, all written out for the logistic loss."""
    found = curve(**MECHANISMS[name])
    value = 40.0 * found.path.at
    path = found.path
    spec, lam = path.spec(value), path.l2_strength(value)
    X = np.column_stack([ROWS[0], np.ones(len(ROWS[1]))])
    signs = 2 * ROWS[1] - 1
    n, d = X.shape
    center = _core.minimize_erm(
        _core.Records(ROWS[0], signs), loss=path.settings.core_loss, l2_strength=lam, intercept=1.0, linear_term=None,
        start=None, solver="newton", tolerance=1e-13, max_iterations=100, n_threads=1,
    )["params"]  # fmt: skip
    p = 1 / (1 + np.exp(-X @ center))
    hessian = X.T @ (X * (p * (1 - p))[:, np.newaxis]) / n
    inverse = np.linalg.inv(hessian + lam * np.eye(d))
    variance = spec.noise_scale**2 * (1 if spec.noise_law == "gaussian" else d + 1)
    objective = path.settings.mechanism.name == "objective"
    C = variance * (inverse @ inverse / n**2 if objective else np.eye(d))
    gradient = X.T @ (p - ROWS[1]) / n
    third = X.T @ (p * (1 - p) * (1 - 2 * p) * np.einsum("ij,jk,ik->i", X, C, X)) / n
    bias = np.trace(hessian @ C) / 2 - (gradient @ inverse @ third / 2 if objective else 0.0)
    plain = np.logaddexp(0, -signs * (X @ center)).mean()
    got = found.expected_utility(value)
    assert got.mean - plain == pytest.approx(bias, rel=2e-2)
    assert got.std == pytest.approx(np.sqrt(gradient @ C @ gradient), rel=2e-2)


def test_callers_metric_agrees_with_the_cores():
    X = np.column_stack([ROWS[0], np.ones(len(ROWS[1]))])
    signs = 2 * ROWS[1] - 1

    def value(params):
        return np.logaddexp(0, -signs * (X @ params)).mean()

    def gradient(params):
        return -X.T @ (signs / (1 + np.exp(signs * (X @ params)))) / len(X)

    def hessian(params):
        p = 1 / (1 + np.exp(-X @ params))
        return X.T @ (X * (p * (1 - p))[:, np.newaxis]) / len(X)

    ours = curve(at=APPROX)
    values = [0.5, 1.0, 5.0]
    for metric in (dpci.utility.Metric(value, gradient), dpci.utility.Metric(value, gradient, hessian)):
        theirs = curve(at=APPROX, metric=metric)
        assert theirs.metric == "metric"
        assert theirs.derivative == pytest.approx(ours.derivative, rel=1e-9)
        np.testing.assert_allclose(theirs.predict_utility(values), ours.predict_utility(values), rtol=1e-10)
        mean, std = theirs.expected_utility(values)
        # A quadratic in place of the smoothing of every row.
        np.testing.assert_allclose(mean, ours.expected_utility(values).mean, rtol=1e-3)
        np.testing.assert_allclose(std, ours.expected_utility(values).std, rtol=1e-2)


def test_means_at_many_budgets_agree_with_few():
    for keywords in ({"at": APPROX}, KIFER, {"at": dpci.PureDP(1.0)}):
        found = curve(**keywords)
        values = np.geomspace(0.3, 5.0, 60)
        table = found.expected_utility(values)
        alone = found.expected_utility(values[::10])
        np.testing.assert_allclose(table.mean[::10], alone.mean, rtol=0, atol=3e-4 * np.ptp(table.mean))
        np.testing.assert_allclose(table.std[::10], alone.std, rtol=0, atol=3e-4 * np.ptp(table.std))
        assert np.isscalar(found.expected_utility(1.0).mean)


@pytest.mark.parametrize("dim", [1, 2, 9, 400, 5000])
def test_mixture_has_the_moments_of_the_law(dim):
    # ‖b‖ ~ Gamma(dim, scale): E b₁² = (dim+1) scale², E‖b‖⁴ = dim(dim+1)(dim+2)(dim+3) scale⁴.
    variances, weights = mixture("spherical_laplace", 0.3, dim)
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert weights @ variances == pytest.approx((dim + 1) * 0.09, rel=1e-12)
    fourth = dim * (dim + 2) * (weights @ variances**2)
    assert fourth == pytest.approx(dim * (dim + 1) * (dim + 2) * (dim + 3) * 0.3**4, rel=1e-12)
    assert mixture("gaussian", 0.3, dim) == ([0.09], [1.0])


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_worst_case_bounds_the_mean(name):
    found = curve(**MECHANISMS[name])
    values = np.array([0.3, 1.0, 10.0]) * found.path.at
    bound = found.worst_case(values)
    assert np.all(np.diff(bound) < 0)
    assert np.all(bound > found.expected_utility(values).mean)


def test_worst_case_is_its_formula():
    found = curve(**KIFER)
    spec, lam = found.path.spec(0.5), found.path.l2_strength(0.5)
    plain = found.core.center(L2_STRENGTH, start=None).params
    loss = found.evaluator.values(plain[np.newaxis])[0]
    d, n = 9, len(ROWS[1])
    expected = loss + lam / 2 * plain @ plain + d * spec.noise_scale**2 / (2 * n**2 * lam)
    assert found.worst_case(0.5) == pytest.approx(expected, rel=1e-9)


def test_worst_case_holds_for_any_noise():
    # Not the mean alone: the bound with ‖b‖² in place of its mean holds for every draw, here for noise in the worst of
    # many directions.
    found = curve(at=APPROX)
    spec = found.path.spec(0.2)
    center = found.core.center(L2_STRENGTH, start=None)
    vectors = np.linalg.eigh(center.hessian)[1]
    loss = found.evaluator.values(center.params[np.newaxis])[0]
    for direction in [*vectors.T, *-vectors.T]:
        noise = 3.0 * direction
        params = found.core.anchor(spec, noise, params=None, start=None).params
        reached = found.evaluator.values(params[np.newaxis])[0]
        size = (spec.noise_scale * 3.0) ** 2
        bound = loss + L2_STRENGTH / 2 * center.params @ center.params + size / (2 * len(ROWS[1]) ** 2 * L2_STRENGTH)
        assert reached <= bound
