"""Comparisons of two releases and intervals that cover together: against draws, quadrature and real fits."""

import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from scipy import integrate, special, stats
from scipy.special import expit

import dpci
from dpci import _core
from dpci.inference.intervals import ErrorLaw
from dpci.inference.simultaneous import FAILURE_PROBABILITY, order_statistic
from dpci.inference.targets.prediction import _half_widths
from support.fits import SETTINGS, make_rows
from support.keywords import assembled

FALSE_RATE = 1e-6
N_DRAWS = 400_000


def sample(seed, n=2000):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return X, X @ [4.0, -2.0, 0.0] + rng.logistic(size=n) > 0


def fit(rows, /, **keywords):
    X, y = rows
    return dpci.fit(X, y == 1, **assembled(**{**SETTINGS, **keywords}))


LAWS = {
    "laplace and laplace": ({"budget": dpci.PureDP(0.5)}, {"budget": dpci.PureDP(0.3), "mechanism": "output"}),
    "laplace and normal": ({"budget": dpci.PureDP(0.5)}, {"budget": dpci.ApproxDP(1.0, 1e-6)}),
    "normal and normal": ({"budget": dpci.ZCDP(0.1), "mechanism": "output"}, {"budget": dpci.ApproxDP(1.0, 1e-6)}),
}


@pytest.fixture(scope="module", params=list(LAWS))
def pair(request):
    first, second = LAWS[request.param]
    return fit(sample(1), **first, seed=1), fit(sample(2), **second, seed=2)


@pytest.fixture(scope="module")
def compared(pair):
    return dpci.compare(*pair)


def test_the_law_is_that_of_draws(pair):
    found = dpci.compare(*pair, level=0.9)
    errors = [r._error_law().draw(np.random.default_rng(i), np.eye(4), N_DRAWS) for i, r in enumerate(pair)]
    away = np.abs(errors[0] - errors[1])
    counts = [
        ((away <= found.intervals.length / 2).sum(axis=0), np.full(4, 0.9)),
        ((away >= np.abs(found.difference)).sum(axis=0), found.pvalues),
    ]
    for count, probability in counts:
        low, high = stats.binom.ppf([[FALSE_RATE / 2], [1 - FALSE_RATE / 2]], N_DRAWS, probability)
        assert (low <= count).all()
        assert (count <= high).all()
    np.testing.assert_allclose(found.std_errors**2, np.diag(pair[0].cov) + np.diag(pair[1].cov), rtol=1e-9)


def test_tails_and_half_widths_agree(pair, compared):
    for p, name, std_error in zip(compared.pvalues, compared.names, compared.std_errors, strict=True):
        if 1e-9 < p < 0.999:
            bounds = np.asarray(dpci.compare(*pair, contrast=name, level=1 - p).intervals)[0]
            assert np.abs(bounds).min() < 1e-6 * std_error


def test_two_laplace_noises_match_nested_quadrature():
    a, b = (fit(sample(i), budget=dpci.PureDP(0.2), mechanism="output", projection="floor", seed=i) for i in (3, 4))
    found = dpci.compare(a, b, contrast="x0")
    (va, aa), (vb, ab) = (r._error_law().components(np.eye(4)[:1]) for r in (a, b))
    scale = a.privacy["steps"][0]["scale"]
    law = stats.gamma(2.5, scale=2 * scale**2)

    def given(omega):
        exact = _core.ErrorShape("spherical_laplace", scale, 4)
        return law.pdf(omega) * exact.pvalues(va + vb + aa**2 * omega, ab, np.abs(found.difference))[0]

    tail = integrate.quad(given, 0.0, law.isf(1e-16), limit=400, epsabs=1e-13, points=[law.mean()])[0]
    assert found.pvalues[0] == pytest.approx(tail, rel=1e-7)


def test_normal_noises_are_closed_form():
    a, b = (fit(sample(i), budget=dpci.ApproxDP(1.0, 1e-6), projection="floor", seed=i) for i in (3, 4))
    rows = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]])
    found = dpci.compare(a, b, contrast=rows, level=0.99)
    std_errors = np.sqrt(np.diag(rows @ (a.cov + b.cov) @ rows.T))
    np.testing.assert_allclose(found.difference, rows @ (a.params - b.params))
    np.testing.assert_allclose(found.std_errors, std_errors, rtol=1e-9)
    np.testing.assert_allclose(found.pvalues, 2 * stats.norm.sf(np.abs(found.difference) / std_errors), rtol=1e-9)
    np.testing.assert_allclose(found.intervals.length / 2, stats.norm.ppf(0.995) * std_errors, rtol=1e-9)


def test_swapping_changes_the_sign(pair, compared):
    one, other = compared, dpci.compare(*reversed(pair))
    np.testing.assert_allclose(one.intervals.lower, -other.intervals.upper, rtol=1e-9)
    np.testing.assert_allclose(one.pvalues, other.pvalues, rtol=1e-9)


def test_shared_data_is_a_bound(pair, compared):
    apart, shared = compared, dpci.compare(*pair, shared_data=True)
    assert (shared.std_errors > apart.std_errors).all()
    assert (shared.pvalues > apart.pvalues).all()
    laws = [r._error_law() for r in pair]
    opposed = sum(np.sqrt(np.diag(law.sampling)) for law in laws) ** 2
    noise = sum(law.mean_omega * np.diag(law.noise @ law.noise) + law.seal_variance for law in laws)
    np.testing.assert_allclose(shared.std_errors**2, opposed + noise, rtol=1e-9)
    assert "upper bounds" in shared.summary()
    assert "declared as two samples without a person" in apart.summary()


@pytest.mark.parametrize(
    ("budget", "mechanism", "n_pairs"), [(dpci.PureDP(0.6), "objective", 80), (dpci.ApproxDP(1.0, 1e-6), "output", 300)]
)
def test_coverage_of_real_fits(budget, mechanism, n_pairs):
    # Two samples of one population: the targets are the same, and every interval should cover 0. A share is within 4.9
    # of its standard errors but for one in a million; what is beyond is room for the asymptotics.
    keywords = {"budget": budget, "mechanism": mechanism, "projection": "floor"}
    covered, together = np.zeros(4), np.zeros(4)
    for i in range(n_pairs):
        first, second = sample(10_000 + 2 * i, 1500), sample(10_001 + 2 * i, 1500)
        a, b, again = (fit(rows, **keywords, seed=3 * i + j) for j, rows in enumerate((first, second, first)))
        apart = dpci.compare(a, b).intervals
        shared = dpci.compare(a, again, shared_data=True).intervals
        covered += (apart.lower <= 0.0) & (apart.upper >= 0.0)
        together += (shared.lower <= 0.0) & (shared.upper >= 0.0)
    slack = 4.9 * math.sqrt(0.95 * 0.05 / n_pairs)
    assert (covered / n_pairs > 0.945 - slack).all()
    assert (together / n_pairs > 0.95 - slack).all()


def test_what_cannot_be_compared():
    rows = make_rows()
    a = fit(rows)
    refused = {
        "the same l2_strength to be compared, got 0.02 and 0.03": fit(rows, l2_strength=0.03),
        "the same loss to be compared": fit(rows, loss="huber_hinge"),
        "the same classes to be compared": fit(rows, classes=(1, 0)),
        "the same intercept_scale to be compared, got 1.0 and 2.0": fit(rows, intercept=2.0),
        "the same names to be compared": fit(rows, intercept=False),
        "the same rows, to which records were clipped, to be compared": fit(rows, rows="clip"),
        "got the same parameters twice": dpci.PrivateFit.from_json(a.to_json()),
        "moments='none'": fit(rows, moments="none"),
    }
    for message, b in refused.items():
        with pytest.raises(dpci.InvalidInput, match=message):
            dpci.compare(a, b)
    with pytest.raises(dpci.InvalidInput, match="result_b must be a PrivateFit or a LinearFit, got int"):
        dpci.compare(a, 1)
    b = fit(rows, seed=6)
    with pytest.raises(dpci.InvalidInput, match="shared_data must be True or False"):
        dpci.compare(a, b, shared_data=1)
    with pytest.raises(dpci.InvalidInput, match="level must be"):
        dpci.compare(a, b, level=95)


def test_custom_losses_are_the_same_only_by_word():
    def custom(scale):
        parts = (
            lambda u, y: scale * np.logaddexp(0, -u * y),
            lambda u, y: -scale * y * special.expit(-u * y),
            lambda u, y: scale * special.expit(u * y) * special.expit(-u * y),
        )
        return fit(
            make_rows(),
            loss=dpci.losses.Custom(*parts, slope_bound=1.0, curvature_bound=0.5),
            projection="floor",
            seed=int(2 * scale),
        )

    a, b = custom(1.0), custom(0.5)  # of equal declarations
    with pytest.raises(dpci.InvalidInput, match="same_loss must be True to compare two custom losses"):
        dpci.compare(a, b)
    assert len(dpci.compare(a, b, same_loss=True).pvalues) == 4
    with pytest.raises(dpci.InvalidInput, match="same_loss must be True or False"):
        dpci.compare(a, b, same_loss=1)


def test_targets_of_a_private_number_of_records():
    # Half of the records as n_public: half the ridge, so that two samples of one population have different targets.
    floor = {"projection": "floor"}
    a, b = fit(sample(5, 20_000), **floor), fit(sample(6, 20_000), neighbors=dpci.AddRemove(10_000), **floor)
    found = dpci.compare(a, b)
    assert found.pvalues[0] < 1e-6
    assert found.private_n_samples
    assert "lambda * n_public / (number of records, which is private)" in found.summary()
    assert "at lambda=0.02 * 10,000 / (number of records, which is private), parameter" in " ".join(b.summary().split())
    assert "records whose number is private (taken as 10,000)" in b.to_html()
    apart = dpci.compare(a, fit(sample(6, 20_000), **floor))
    assert not apart.private_n_samples
    assert "n_public" not in apart.summary() + a.summary()
    assert "Estimated from 20,000 records, with" in a.to_html()


def test_how_a_comparison_shows_itself():
    a, b, c = (fit(make_rows(), seed=seed, projection="floor") for seed in (None, 4, None))
    found = dpci.compare(a, b, contrast=["x0", {"x0": 1, "x1": -1}])
    assert not found.private
    assert repr(found).startswith("NOT PRIVATE (seeded)")
    assert found.names == ("x0", "x0 - x1")
    frame = found.to_frame()
    np.testing.assert_array_equal(frame["difference"], found.difference)
    assert list(frame.columns) == ["estimate_a", "estimate_b", "difference", "std_error", "pvalue", "lower", "upper"]
    assert dpci.compare(a, c).private
    assert len(dpci.compare(a, b, contrast=np.empty((0, 4))).pvalues) == 0


def test_without_the_ridge_two_fits_with_other_ridges_are_compared():
    """The law is that of both steps off the ridge; a regularised comparison refuses two ridges."""
    pair = [
        fit(sample(seed), budget=dpci.PureDP(1e7), l2_strength=strength, seed=seed)
        for seed, strength in ((1, 1e-4), (2, 3e-4))
    ]
    with pytest.raises(dpci.InvalidInput, match=r"the same l2_strength to be compared, got 0\.0001 and 0\.0003"):
        dpci.compare(*pair)
    found = dpci.compare(*pair, target="unregularised")
    each = [result.conf_int(target="unregularised") for result in pair]
    np.testing.assert_array_equal(found.difference, each[0].estimate - each[1].estimate)
    # Almost normal: squared lengths add up.
    np.testing.assert_allclose(found.intervals.length, np.hypot(each[0].length, each[1].length), rtol=1e-6)
    assert "coefficients without a ridge" in found.summary()
    # Three standard errors, of four differences of equal targets.
    assert (np.abs(found.difference) < 3 * found.std_errors).all()


def test_what_one_fit_does_not_give_has_no_difference():
    good, strong = (
        fit(sample(seed), budget=dpci.PureDP(1e7), l2_strength=strength, seed=seed)
        for seed, strength in ((1, 1e-4), (2, 1.0))
    )
    found = dpci.compare(good, strong, target="unregularised")
    assert all(reason.startswith("in b, the ridge is too strong") for reason in found.intervals.refusals)
    assert np.isnan([found.difference, found.std_errors, found.pvalues, found.intervals.length]).all()
    assert "No difference of x0: in b, the ridge is too strong" in found.summary()
    assert "nan" not in found.summary()
    with pytest.raises(dpci.InvalidInput, match=r"target must be one of .* got target='none'"):
        dpci.compare(good, strong, target="none")


@pytest.fixture(
    scope="module",
    params=[(dpci.PureDP(0.3), "output"), (dpci.ApproxDP(1.0, 1e-6), "objective")],
    ids=lambda pair: f"{pair[0].notion}-{pair[1]}",
)
def result(request):
    budget, mechanism = request.param
    return dpci.fit(*make_rows(), **{**SETTINGS, "budget": budget, "mechanism": mechanism})


# They depend on each other, so that the union bound is far from sharp.
CONTRASTS = np.array([[1, -1, 0, 0], [1, 0, -1, 0], [0, 1, -1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0.01]])


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_joint_coverage(result, level):
    contrasts = CONTRASTS
    errors = np.abs(result._error_law().draw(np.random.default_rng(8), contrasts, N_DRAWS))

    def covered(**keywords):
        half_width = result.conf_int(level=level, contrast=contrasts, **keywords).length / 2
        return half_width, int((errors <= half_width).all(axis=1).sum())

    (each, n_each), (joint, n_joint), (union, n_union) = (
        covered(simultaneous=kind) for kind in (None, "max_z", "bonferroni")
    )
    assert (each < joint).all()
    assert (joint < union).all()
    # Not below the level, and above it by no more than the bound on the quantile costs.
    low = stats.binom.ppf(FALSE_RATE, N_DRAWS, level)
    worst = (order_statistic(100_000, level) + 6.0 * math.sqrt(100_000 * level * (1 - level))) / 100_000
    assert low <= n_joint <= stats.binom.ppf(1 - FALSE_RATE, N_DRAWS, worst)
    assert n_each < low
    assert n_joint < n_union


def test_max_z_is_the_quantile_of_the_greatest_z():
    # Only under Gaussian noise, with the matrices taken as exact, are all marginal laws of one shape.
    result = dpci.fit(
        *make_rows(), **assembled(**{**SETTINGS, "budget": dpci.ApproxDP(1.0, 1e-6), "projection": "floor"})
    )
    rows = CONTRASTS[:4]
    cov = rows @ result.cov @ rows.T
    std_errors = np.sqrt(np.diag(cov))
    z = result.conf_int(simultaneous="max_z", contrast=rows, n_draws=400_000, seed=3).length / 2 / std_errors
    np.testing.assert_allclose(z, z[0], rtol=1e-9)
    box = stats.multivariate_normal(cov=cov / np.outer(std_errors, std_errors), allow_singular=True, seed=1)
    covers = box.cdf(np.full(4, z[0]), lower_limit=np.full(4, -z[0]))
    assert 0.95 < covers < 0.9535


def test_intervals_that_cover_together_are_repeatable_and_say_so(result):
    one, two = (result.conf_int(simultaneous="max_z", contrast=CONTRASTS) for _ in range(2))
    np.testing.assert_array_equal(np.asarray(one), np.asarray(two))
    other = result.conf_int(simultaneous="max_z", contrast=CONTRASTS, seed=1)
    assert not np.array_equal(np.asarray(one), np.asarray(other))
    assert one.simultaneous == "max_z"
    assert "simultaneous intervals (max_z)" in repr(one)
    # Too few draws to say anything: Šidák's inequality.
    few = result.conf_int(simultaneous="max_z", n_draws=10)
    np.testing.assert_array_equal(np.asarray(few), np.asarray(result.conf_int(level=0.95 ** (1 / 4))))
    single = result.conf_int(simultaneous="max_z", contrast="x0")
    np.testing.assert_array_equal(np.asarray(single), np.asarray(result.conf_int(contrast="x0")))


def test_bonferroni_is_a_level(result):
    union = result.conf_int(simultaneous="bonferroni", level=0.9)
    np.testing.assert_allclose(np.asarray(union), np.asarray(result.conf_int(level=1 - 0.1 / 4)), rtol=1e-12)
    assert union.level == 0.9


@pytest.mark.parametrize(("n", "level"), [(100, 0.5), (1000, 0.95), (100_000, 0.99)])
def test_order_statistics_bound_quantiles(n, level):
    j = order_statistic(n, level)
    assert stats.binom.sf(j - 1, n, level) <= FAILURE_PROBABILITY < stats.binom.sf(j - 2, n, level)


@pytest.mark.parametrize("kind", ["bonferroni", "max_z"])
def test_levels_next_to_1(result, kind):
    level = math.nextafter(1.0, 0.0)
    together = result.conf_int(level=level, simultaneous=kind)
    np.testing.assert_array_equal(np.asarray(together), np.asarray(result.conf_int(level=level)))


def test_draws_take_the_memory_of_their_contrasts():
    law = ErrorLaw(np.eye(300), np.eye(300), 0.0, "spherical_laplace", 0.7)
    tracemalloc.start()
    errors = law.draw(np.random.default_rng(0), np.eye(300)[:2] * [[1.0], [1e8]], 200_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6  # of which the draws are 3.2e6; a block of 300 parameters would be 9.8e6
    # Variances of 200,000 draws: within 6% but for less than one in a million.
    np.testing.assert_allclose(errors.var(axis=0), (1.0 + law.mean_omega) * np.array([1.0, 1e16]), rtol=0.06)


def test_bad_simultaneous(result):
    with pytest.raises(dpci.InvalidInput, match="must be one of 'bonferroni', 'max_z', got simultaneous='scheffe'"):
        result.conf_int(simultaneous="scheffe")
    with pytest.raises(dpci.InvalidInput, match="require method='exact', got method='monte_carlo'"):
        result.conf_int(simultaneous="max_z", method="monte_carlo")
    for name in ("n_draws", "seed"):
        for kind in (None, "bonferroni"):
            with pytest.raises(dpci.InvalidInput, match=f"{name} must be None unless .* got {name}=7"):
                result.conf_int(simultaneous=kind, **{name: 7})
    with pytest.raises(dpci.InvalidInput, match="the variance of a contrast must be finite"):
        result.conf_int(contrast=[1e200, 0, 0, 0])
    with pytest.raises(dpci.InvalidInput, match="n_draws must be at most 50000000 for 4 intervals"):
        result.conf_int(simultaneous="max_z", n_draws=10**9)


# Predictions.


def test_intervals_of_probabilities_are_those_of_contrasts(result):
    X = np.random.default_rng(9).uniform(-0.5, 0.5, size=(3000, 3))
    plain = result.conf_int(level=0.9, contrast=np.column_stack([X, np.ones(len(X))]))
    for rows in (X, X[:20], scipy.sparse.csr_array(X)):
        intervals = result.predict_conf_int(rows, level=0.9)
        n = rows.shape[0]
        np.testing.assert_allclose(intervals.lower, expit(plain.lower[:n]), rtol=1e-9)
        np.testing.assert_allclose(intervals.upper, expit(plain.upper[:n]), rtol=1e-9)
        np.testing.assert_allclose(intervals.estimate, result.predict_proba(rows)[:, 1], rtol=1e-12)
    assert len(result.predict_conf_int(X[:0])) == 0
    assert intervals.names[1] == "row[1]"


@pytest.mark.parametrize("dim", [1, 2, 30])
def test_the_table_of_quantiles_is_exact(dim):
    law = ErrorLaw(np.eye(dim), np.eye(dim), 0.0, "spherical_laplace", 0.7)
    rng = np.random.default_rng(10)
    sampling, noise = 10.0 ** rng.uniform(-6, 6, size=(2, 2000))
    sampling[:3], noise[3:5] = 0.0, 0.0
    for level in (1e-4, 0.05, 0.3, 0.5, 0.95, 0.9999):
        many = _half_widths(sampling, noise, law, level)
        few = np.concatenate([_half_widths(*part, law, level) for part in zip(
            np.array_split(sampling, 40), np.array_split(noise, 40), strict=True)])  # fmt: skip
        np.testing.assert_allclose(many, few, rtol=2e-6)


def test_regression_predicts_its_linear_predictor():
    X, _ = make_rows()
    y = np.clip(X @ [0.5, -0.3, 0.1], -1, 1)
    ridge = dpci.fit(
        X, y, budget=dpci.ZCDP(1.0), l2_strength=0.1, loss="squared", mechanism=dpci.ObjectivePerturbation(radius=20.0),
        seed=1,
    )  # fmt: skip
    intervals = ridge.predict_conf_int(X[:5])
    np.testing.assert_allclose(intervals.estimate, ridge.predict(X[:5]))
    hinge = dpci.fit(*make_rows(), **{**SETTINGS, "loss": "huber_hinge"})
    np.testing.assert_allclose(hinge.predict_conf_int(X[:5]).estimate, hinge.decision_function(X[:5]))


def test_bad_rows_to_predict(result):
    with pytest.raises(dpci.InvalidInput, match="3 columns"):
        result.predict_conf_int(np.ones((2, 4)))
    with pytest.raises(dpci.InvalidInput, match="X must be finite"):
        result.predict_conf_int([[0.0, math.nan, 0.0]])
    with pytest.raises(dpci.InvalidInput, match="beyond the range of floats"):
        result.predict_conf_int([[1e200, 0.0, 0.0]])
    with pytest.raises(dpci.InvalidInput, match="level must be"):
        result.predict_conf_int([[0.0, 0.0, 0.0]], level=2)


def test_frames(result):
    frame = result.conf_int().to_frame()
    assert list(frame.columns) == ["estimate", "lower", "upper"]
    assert list(frame.index) == list(result.names)
    table = result.summary_frame(level=0.9)
    np.testing.assert_array_equal(table["pvalue"], result.pvalues)
    np.testing.assert_array_equal(table[["lower", "upper"]], np.asarray(result.conf_int(level=0.9)))
