"""The mean of a utility over the noise, and its bound: Monte Carlo over refits, formulas with third derivatives, laws.

A Monte Carlo check fails by chance with probability 1e-6: 4.9 standard errors of a normal mean.
"""

import functools

import numpy as np
import pytest
from scipy import special, stats

import dpci
from dpci import _core
from dpci.utility.expected import mixture
from support.utility import APPROX, KIFER, L2_STRENGTH, MECHANISMS, ROWS, curve, monte_carlo, refits

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


def test_many_budgets_agree_with_few():
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
