"""Joint tests of hypotheses and contrasts by label: against closed forms, quadrature and draws."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import integrate, special, stats

import dpci
from dpci.inference.quadratic_tail import chi2_sum_tail, mixing_nodes
from dpci.inference.validity import gradient_noise, hessian_noise
from dpci.inference.wald import statistic_tail
from dpci.report import summary
from support.fits import SETTINGS, make_rows
from support.keywords import assembled

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")

# Of each comparison with draws.
FALSE_RATE = 1e-6
N_DRAWS = 1_000_000
LAPLACE = {"budget": dpci.PureDP(0.3), "l2_strength": 0.02}


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(
    scope="module",
    params=[(dpci.PureDP(0.3), "objective"), (dpci.PureDP(0.3), "output"), (dpci.ApproxDP(1.0, 1e-6), "objective")],
    ids=lambda pair: f"{pair[0].notion}-{pair[1]}",
)
def result(rows, request):
    budget, mechanism = request.param
    # By one mixing variable, as the closed forms below.
    return dpci.fit(*rows, **assembled(**{**SETTINGS, "budget": budget, "mechanism": mechanism, "projection": "floor"}))


class Law:
    """Fields of a law that `statistic_tail` reads."""

    def __init__(self, law, dim):
        self.law, self.dim, self.shape = law, dim, np.inf


@pytest.mark.parametrize("m", [1, 2, 3, 30, 400])
def test_equal_weights_are_chi_square(m):
    for p in (0.9999, 0.5, 0.1, 1e-3, 1e-12, 1e-100):
        q = stats.chi2.isf(p, m)
        for scale in (1e-6, 1.0, 1e7):
            (tail,) = chi2_sum_tail(np.full((1, m), scale), q * scale)
            assert tail == pytest.approx(special.chdtrc(m, q), rel=1e-9)


def test_pairs_of_weights_are_sums_of_exponentials():
    weights = np.array([3.0, 1.0, 0.2])
    for q in (0.01, 1.0, 20.0, 500.0):
        shares = [w**2 / np.prod([w - other for other in weights if other != w]) for w in weights]
        expected = sum(share * math.exp(-q / (2 * w)) for share, w in zip(shares, weights, strict=True))
        assert chi2_sum_tail(np.repeat(weights, 2)[None], q)[0] == pytest.approx(expected, rel=1e-11, abs=0.0)


def imhof(weights, q):
    """Imhof (1961), equation 3.2."""

    def integrand(u):
        angle = 0.5 * (np.arctan(weights * u).sum() - q * u)
        return math.sin(angle) / (u * math.exp(0.25 * np.log1p((weights * u) ** 2).sum()))

    return 0.5 + integrate.quad(integrand, 0.0, np.inf, limit=2000, epsabs=1e-9)[0] / math.pi


def test_unequal_weights_match_imhof():
    rng = np.random.default_rng(3)
    for m in (5, 9):
        weights = rng.uniform(0.05, 2.0, size=m)
        for q in (0.2 * m, m, 3.0 * m):
            assert chi2_sum_tail(weights[None], q)[0] == pytest.approx(imhof(weights, q), abs=1e-7)


def test_weights_of_any_ratio_are_between_their_bounds():
    weights = 10.0 ** np.random.default_rng(4).uniform(-12, 0, size=(300, 6))
    weights[:, 0] = 1.0
    for q in (1e-3, 1.0, 30.0, 600.0):
        tails = chi2_sum_tail(weights, q)
        assert (tails >= special.chdtrc(1, q) * (1 - 1e-9)).all()
        assert (tails <= special.chdtrc(6, q) * (1 + 1e-9)).all()
    np.testing.assert_array_equal(chi2_sum_tail(np.zeros((2, 3)), 1.0), 0.0)
    np.testing.assert_array_equal(chi2_sum_tail(weights, np.float64(1e300)), 0.0)
    # Next to 0, where the other tail is no float or one with few digits.
    for q in (5e-324, 1e-200, 1e-60, 1e-34, 1e-32, 1e-20):
        for m in (1, 20, 31, 300):
            np.testing.assert_array_equal(chi2_sum_tail(np.full((1, m), 0.5), q), special.chdtrc(m, 2.0 * q))


def test_many_weights_are_those_of_an_independent_sum_of_logarithms():
    """The argument of a product passes pi again and again: one logarithm for each weight has no such turns."""
    rng = np.random.default_rng(8)
    for m in (6, 7, 12, 40):
        weights = rng.uniform(0.0, 1.0, (5, m)) ** 4
        q = 1.3 * float(weights.sum(axis=1).mean())
        expected = [imhof_of_many(row, q) for row in weights]
        np.testing.assert_allclose(chi2_sum_tail(weights, q), expected, rtol=0.0, atol=1e-8)


def imhof_of_many(weights, q):
    """Return Imhof's integral by the trapezoid rule in the logarithm of u, with a real angle for each weight."""
    log_u = np.linspace(-40.0, 12.0, 200_001)
    u = np.exp(log_u)
    angle = 0.5 * (np.arctan(weights[:, None] * u).sum(axis=0) - q * u)
    values = np.sin(angle) * np.exp(-0.25 * np.log1p((weights[:, None] * u) ** 2).sum(axis=0))
    return 0.5 + values.sum() * (log_u[1] - log_u[0]) / math.pi


@pytest.mark.parametrize("dim", [1, 2, 9, 60])
def test_pure_noise_along_two_axes_is_a_bessel_function(dim):
    # E exp(-q / 2W) for W ~ Gamma(k, rate k).
    k = 0.5 * (dim + 1)
    for q in (0.5, 5.0, 40.0, 120.0):
        x = 0.5 * k * q
        expected = 2.0 * x ** (k / 2) * special.kv(k, 2.0 * math.sqrt(x)) / special.gamma(k)
        got = statistic_tail(q, np.ones(2), Law("spherical_laplace", dim))
        assert got == pytest.approx(expected, rel=1e-8)
    assert statistic_tail(900.0, np.ones(2), Law("spherical_laplace", 1)) == pytest.approx(
        2.0 * math.sqrt(450.0) * special.kv(1, 2.0 * math.sqrt(450.0)), rel=1e-8
    )


def test_mixing_nodes_have_the_moments_of_their_law():
    for dim in (1, 2, 10, 100, 5000):
        w, weights = mixing_nodes("spherical_laplace", dim)
        k = 0.5 * (dim + 1)
        for power in (0, 1, 2, 5):
            expected = math.exp(math.lgamma(k + power) - math.lgamma(k) - power * math.log(k))
            assert float(weights @ w**power) == pytest.approx(expected, rel=1e-10)


def test_pvalues_are_those_of_draws(result):
    names = result.names[:3]
    contrasts = np.eye(4)[:3]
    errors = result._error_law().draw(np.random.default_rng(6), contrasts, N_DRAWS)
    cov = contrasts @ result.cov @ contrasts.T
    statistics = np.einsum("ni,ij,nj->n", errors, np.linalg.inv(cov), errors)
    root = np.linalg.cholesky(cov)
    for statistic in (0.3, 2.0, 7.0, 14.0):
        away = root @ (math.sqrt(statistic) * np.array([0.6, 0.0, 0.8]))
        test = result.wald_test(list(names), result.params[:3] - away)
        assert test.statistic == pytest.approx(statistic, rel=1e-9)
        beyond = int((statistics >= statistic).sum())
        low, high = stats.binom.ppf([FALSE_RATE / 2, 1 - FALSE_RATE / 2], N_DRAWS, test.pvalue_joint)
        assert low <= beyond <= high


def test_draws_have_the_covariance_of_the_result(result):
    errors = result._error_law().draw(np.random.default_rng(7), np.eye(4), 200_000)
    np.testing.assert_allclose(np.cov(errors.T), result.cov, atol=0.02 * result.cov.max())
    fixed, mixed = result._error_law().parts(np.eye(4))
    np.testing.assert_allclose(fixed + mixed, result.cov, rtol=1e-9, atol=1e-12 * result.cov.max())


def test_one_row_is_the_pvalue_of_a_parameter(result):
    for i, name in enumerate(result.names):
        test = result.wald_test(name)
        assert test.pvalue == test.pvalue_by_rows == pytest.approx(result.pvalues[i], rel=1e-10)
        law = result._error_law()
        fixed, mixed = (part[0] for part in law.parts(np.eye(4)[[i]]))
        assert statistic_tail(test.statistic, mixed / (fixed + mixed), law) == pytest.approx(test.pvalue, rel=1e-8)
    interval = result.conf_int(level=0.9, contrast={"x0": 1, "x1": -1})
    assert interval.names == ("x0 - x1",)
    assert result.wald_test({"x0": 1, "x1": -1}, interval.upper).pvalue == pytest.approx(0.1, rel=1e-8)


def test_gaussian_noise_is_chi_square(rows):
    result = dpci.fit(
        *rows,
        budget=dpci.ApproxDP(1.0, 1e-6),
        l2_strength=0.02,
        mechanism=dpci.ObjectivePerturbation(projection="floor"),
        seed=1,
    )
    test = result.wald_test(np.eye(4)[:3], [3.0, -1.0, 0.1], method="joint")
    away = result.params[:3] - [3.0, -1.0, 0.1]
    assert test.statistic == pytest.approx(away @ np.linalg.solve(result.cov[:3, :3], away), rel=1e-10)
    assert test.df == 3
    assert test.pvalue == pytest.approx(stats.chi2.sf(test.statistic, 3), rel=1e-11)


def test_laplace_noise_is_not_chi_square(rows):
    result = dpci.fit(*rows, **LAPLACE, mechanism="output", seed=2)
    away = 6.0 * np.linalg.cholesky(result.cov)[:, 0]
    test = result.wald_test(np.eye(4), result.params - away)
    assert test.pvalue_joint > 3 * stats.chi2.sf(test.statistic, 4)


def test_the_form_of_a_hypothesis_does_not_matter(rows):
    result = dpci.fit(*rows, **LAPLACE, seed=3)
    plain = result.wald_test([[1, 0, 0, 0], [0, 1, 0, 0]], [2.0, -1.0])
    turned = result.wald_test([[1, 1, 0, 0], [-1e150, 1e150, 0, 0]], [1.0, -3e150])
    named = result.wald_test(["x0", "x1"], [2.0, -1.0])
    for other in (turned, named):
        assert other.statistic == pytest.approx(plain.statistic, rel=1e-8)
        assert other.pvalue_joint == pytest.approx(plain.pvalue_joint, rel=1e-7)
    assert named.hypothesis == ("x0", "x1")
    assert "x0 = 2" in named.summary()
    assert "NOT PRIVATE" in repr(named)
    assert result.wald_test([{"x0": 2, "x2": -0.5}, "x1"]).hypothesis == ("2 × x0 - 0.5 × x2", "x1")
    assert result.wald_test(["x0", "x1"], result.params[:2]).pvalue == 1.0
    assert 0.0 <= result.wald_test(["x0", "x1"], 1e150).pvalue < 1e-300


def test_rows_one_by_one(rows):
    result = dpci.fit(*rows, **SETTINGS)
    test = result.wald_test(["x1", "x2", "intercept"])
    least = min(result.pvalues[1:])
    assert test.pvalue_by_rows == pytest.approx(1 - (1 - least) ** 3, rel=1e-9)
    assert "from the least p-value of 3 separate tests" in repr(test)
    assert "Wald statistic" not in repr(test)


# The noise of the first is in the Hessian, that of the second in the gradient covariance alone.
NOISY = {
    "Hessian": {"budget": dpci.PureDP(0.4), "projection": "floor"},
    "covariance": {"budget": dpci.PureDP(20.0), "moments": "separate", "split": (0.6, 0.399, 0.001)},
}


@pytest.mark.filterwarnings("error::dpci.MomentNoiseWarning")
@pytest.mark.parametrize("matrix", NOISY)
def test_noise_in_either_matrix_makes_a_test_by_rows(rows, matrix):
    result = dpci.fit(*rows, **assembled(**{**SETTINGS, **NOISY[matrix]}))
    assert (hessian_noise(result._record, result.hessian) > 0.5) == (matrix == "Hessian")
    assert result.moment_noise > 0.5
    with pytest.warns(
        dpci.MomentNoiseWarning, match=r"too noisy for a joint test of several rows: .*\(method='by_rows'\)"
    ):
        auto = result.wald_test(["x0", "x1"])
    with pytest.warns(dpci.MomentNoiseWarning, match="the joint test may reject true hypotheses too often"):
        joint = result.wald_test(["x0", "x1"], method="joint")
    by_rows = result.wald_test(["x0", "x1"], method="by_rows")
    assert (auto.method, joint.method, by_rows.method) == ("by_rows", "joint", "by_rows")
    assert auto.pvalue == by_rows.pvalue == joint.pvalue_by_rows
    assert joint.pvalue == auto.pvalue_joint
    assert result.wald_test("x0").method == "joint"
    assert "Moment noise: the noise in the released matrices may be" in result.summary(full=True).replace("\n", " ")
    # The page has single intervals only, and says where they leave this noise out.
    assert ("The intervals do not account for it." in result.to_html()) == (matrix == "Hessian")


def test_noise_over_nothing_is_infinite(monkeypatch, rows):
    result = dpci.fit(*rows, **SETTINGS)
    nothing = np.zeros_like(result.cov)
    assert gradient_noise(result._record, result.hessian, nothing) == math.inf
    monkeypatch.setattr(summary, "moment_noise", lambda *_: math.inf)
    shown = summary.Numbers(result._record, summary.View())
    assert "may be any multiple of their least eigenvalue" in summary.noise_note(shown)


@pytest.mark.filterwarnings("error::dpci.MomentNoiseWarning")
def test_little_noise_leaves_a_joint_test(rows):
    result = dpci.fit(*rows, **{**SETTINGS, "budget": dpci.PureDP(100.0)})
    assert result.moment_noise < 0.5
    test = result.wald_test(["x0", "x1"])
    assert (test.method, test.pvalue) == ("joint", test.pvalue_joint)
    assert "(joint)" in repr(test)
    assert "p-value by rows" in repr(test)
    assert "The noise in the released matrices" not in result.summary()


def test_the_bound_on_the_noise_is_its_quantile(rows):
    # Of matrices with the noise of the moments one in twenty exceeds the bound at most: below 0.05 + 4.9 sqrt(.05/4000)
    # but for one in a million. The bound is no more than twice the quantile.
    result = dpci.fit(*rows, **{**SETTINGS, "budget": dpci.ApproxDP(3.0, 1e-6)})
    (step,) = [s for s in result.privacy["steps"] if s["step"] == "moments"]
    noise = np.random.default_rng(5).normal(size=(4000, 4, 4)) * step["scale"]
    norms = np.abs(np.linalg.eigvalsh(0.5 * (noise + noise.transpose(0, 2, 1)))).max(axis=1)
    whole = result.n_samples * result.hessian @ result.cov @ result.hessian
    bound = gradient_noise(result._record, result.hessian, result.cov) * np.linalg.eigvalsh(whole)[0]
    assert (norms > bound).mean() < 0.05 + 4.9 * math.sqrt(0.05 / 4000)
    assert bound < 2.0 * np.quantile(norms, 0.95)


@pytest.mark.parametrize("dim", [1, 2, 5, 12])
def test_the_bound_on_matrix_laplace_noise_is_near_its_quantile(dim):
    # As above, of 4000 differences of two Wishart matrices; one parameter has the Laplace law.
    rng = np.random.default_rng(8)
    X = rng.uniform(-1, 1, (500, dim)) / math.sqrt(dim)
    keywords = {
        **SETTINGS,
        "budget": dpci.PureDP(1.0),
        "l2_strength": 0.1,
        "moments": "separate",
        "projection": "floor",
    }
    result = dpci.fit(X, (rng.random(500) < 0.5).astype(int), **assembled(**keywords, intercept=False))
    (step,) = [s for s in result.privacy["steps"] if s["step"] == "hessian"]
    draws = rng.normal(size=(2, 4000, dim + 1, dim))
    first, second = 0.5 * step["scale"] * (draws.transpose(0, 1, 3, 2) @ draws)
    norms = np.abs(np.linalg.eigvalsh(first - second)).max(axis=1)
    bound = hessian_noise(result._record, result.hessian) * np.linalg.eigvalsh(result.hessian)[0]
    assert (norms > bound).mean() < 0.05 + 4.9 * math.sqrt(0.05 / 4000)
    assert bound < 2.5 * np.quantile(norms, 0.95)


def test_the_size_of_a_test_of_many_parameters():
    # Real fits at the true value, 21 parameters, level 5%. benches/joint_inference.py measured joint .89, by rows
    # .05 of 150 samples. Fewer than 5 joint rejections of 20 with .75, and more than 10 of 20 or 7 of 12 by rows with
    # .08, have probabilities of 1e-6 together. Noise-aware tests take half a second each.
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (60_000, 20)) / math.sqrt(20)
    y = (X @ (2.0 * rng.normal(size=20)) + rng.logistic(size=len(X)) > 0).astype(int)
    target = dpci.fit(
        X, y, budget=dpci.ApproxDP(1e8, 1e-6), mechanism=dpci.ObjectivePerturbation(moments="none"), l2_strength=0.02,
        seed=0,
    ).params  # fmt: skip
    tests = {"floor": [], "noise_aware": []}
    for i in range(20):
        at = rng.integers(0, len(X), 5000)
        for projection, of_it in tests.items():
            if projection == "noise_aware" and i >= 12:
                continue
            keywords = {"budget": dpci.PureDP(10.0), "l2_strength": 0.02, "projection": projection, "seed": i}
            of_it.append(dpci.fit(X[at], y[at], **assembled(**keywords)).wald_test(np.eye(21), target))
    # Matrices that are taken as exact.
    assert sum(test.pvalue_joint < 0.05 for test in tests["floor"]) >= 5
    for of_it, most in zip(tests.values(), (10, 7), strict=True):
        assert sum(test.pvalue < 0.05 for test in of_it) <= most
        assert {test.method for test in of_it} == {"by_rows"}


@pytest.mark.parametrize(
    ("hypothesis", "value", "message"),
    [
        ([[1, 0, 0, 0], [2, 0, 0, 0]], 0.0, "linearly independent, got 2 rows"),
        (np.ones((5, 4)), 0.0, "linearly independent"),
        ([[0, 0, 0, 0]], 0.0, "coefficient other than 0"),
        (np.empty((0, 4)), 0.0, "coefficient other than 0"),
        ([1.0, 2.0], 0.0, r"hypothesis must have shape \(4,\) or \(m, 4\), got shape"),
        ([[math.nan, 0, 0, 0]], 0.0, "hypothesis must be finite, got nan"),
        ("age", 0.0, r"must name parameters \(x0, x1, x2, intercept\), got 'age'"),
        (["x0", 3], 0.0, "must hold names of parameters, or mappings .* got 3"),
        ({}, 0.0, "must hold names of parameters, or mappings"),
        ({"x0": "1"}, 0.0, r"hypothesis\['x0'\] must be a real number"),
        ({"x0": math.inf}, 0.0, "hypothesis must be finite, got inf"),
        (["x0", "x1"], [1.0, 2.0, 3.0], r"value must be a number or have shape \(2,\), got shape \(3,\)"),
        ("x0", math.inf, "value must be finite, got inf"),
        ({"x0": 1e-300}, 1e100, r"got value=1e\+100 for a row whose greatest coefficient is 1e-300"),
        ([[1.5e308, 0, 0, 0]], 0.0, r"within the range of floats, got value=0 .* coefficient is 1.5e\+308"),
        (["x0", {"x1": 1e-160}], 1.0, r"got value=1 for a row whose greatest coefficient is 1e-160"),
    ],
)
def test_bad_hypotheses(rows, hypothesis, value, message):
    with pytest.raises(dpci.InvalidInput, match=message):
        dpci.fit(*rows, **SETTINGS).wald_test(hypothesis, value)


def test_bad_methods(rows):
    with pytest.raises(dpci.InvalidInput, match="must be one of 'auto', 'joint', 'by_rows', got method='exact'"):
        dpci.fit(*rows, **SETTINGS).wald_test("x0", method="exact")


def test_no_test_where_there_are_no_intervals(rows):
    with pytest.raises(dpci.InvalidInput, match="moments='none'"):
        dpci.fit(*rows, **assembled(**SETTINGS, moments="none")).wald_test("x0")


NAMES = ["age", "hours", "rate", "intercept"]


@pytest.fixture(scope="module")
def labelled():
    X, y = make_rows()
    return dpci.fit(pd.DataFrame(X, columns=NAMES[:3]), y, **SETTINGS)


SERIES = pd.Series({"intercept": 1.0, "hours": -2.0})
FRAME = pd.DataFrame([[0.5, 0.0, 3.0, -1.0], [1.0, 1.0, 0.0, 0.0]], columns=["rate", "age", "intercept", "hours"])


@pytest.mark.parametrize(
    ("contrast", "rows"),
    [
        (SERIES, [[0, -2, 0, 1]]),
        ([SERIES, SERIES[:1]], [[0, -2, 0, 1], [0, 0, 0, 1]]),
        (FRAME, [[0, -1, 0.5, 3], [1, 0, 1, 0]]),
        (pl.DataFrame(FRAME.to_dict("list")), [[0, -1, 0.5, 3], [1, 0, 1, 0]]),
        (pa.table(FRAME.to_dict("list")), [[0, -1, 0.5, 3], [1, 0, 1, 0]]),
        # Without names there is nothing but the position.
        (pd.DataFrame(np.eye(4)), np.eye(4)),
        (pd.Series([1.0, 0.0, 0.0, 0.0]), [[1, 0, 0, 0]]),
    ],
)
def test_numbers_stand_at_the_parameters_of_their_labels(labelled, contrast, rows):
    expected = labelled.conf_int(contrast=np.array(rows, dtype=float))
    for got in (labelled.conf_int(contrast=contrast), labelled.conf_int(contrast=contrast, simultaneous="max_z")):
        np.testing.assert_array_equal(got.estimate, expected.estimate)
        assert got.names == expected.names
    np.testing.assert_array_equal(labelled.wald_test(contrast).estimate, expected.estimate)


@pytest.mark.parametrize(
    "names",
    [
        pd.Index(["hours", "age"]),
        np.array(["hours", "age"]),
        np.array(["hours", "age"], dtype=object),
        pd.Series(["hours", "age"], index=["a", "b"]),
        pl.Series(["hours", "age"]),
    ],
    ids=lambda names: f"{type(names).__module__}.{type(names).__name__}-{names.dtype}",
)
def test_names_may_be_in_an_array(labelled, names):
    assert labelled.conf_int(contrast=names).names == ("hours", "age")
    assert labelled.wald_test(names).hypothesis == ("hours", "age")


def test_labels_that_name_no_parameter_are_refused(labelled):
    with pytest.raises(dpci.InvalidInput, match=r"labels of contrast must be names .* got 'Age' \(use to_numpy\(\)"):
        labelled.conf_int(contrast=pd.Series([1.0, 0, 0, 0], index=["Age", *NAMES[1:]]))
    with pytest.raises(dpci.InvalidInput, match="the labels of hypothesis must differ, got age, age"):
        labelled.wald_test(pd.Series([1.0, 2.0], index=["age", "age"]))


def test_values_go_with_their_rows(labelled):
    value = pd.Series({"age": 1.0, "rate": 2.0})
    assert labelled.wald_test(["age", "rate"], value).value.tolist() == [1.0, 2.0]
    assert labelled.wald_test(np.eye(4)[:2], value).value.tolist() == [1.0, 2.0]
    with pytest.raises(dpci.InvalidInput, match=r"of the hypothesis \(rate, age\), got age, rate"):
        labelled.wald_test(["rate", "age"], value)


def test_a_column_of_categories_stands_for_all_of_them():
    rng = np.random.default_rng(0)
    table = {"region": rng.choice(["a", "b", "c"], 500), "x": rng.random(500), "y": rng.random(500) < 0.5}
    region = dpci.schema.CategoricalColumn(name="region", categories=("a", "b", "c"), reference="b")
    columns = (region, dpci.schema.NumericColumn(name="x", lower=0, upper=1))
    target = dpci.schema.ClassTarget(column="y", negative=(False,), positive=(True,))
    schema = dpci.schema.Schema(columns=columns, target=target)
    fit = dpci.fit(table, schema=schema, budget=dpci.PureDP(3.0), l2_strength=0.1, seed=0)
    test, expected = fit.wald_test("region"), fit.wald_test(["region=a", "region=c"])
    assert (test.hypothesis, test.pvalue) == (expected.hypothesis, expected.pvalue)
    assert fit.conf_int(contrast=["x", "region"]).names == ("x", "region=a", "region=c")
