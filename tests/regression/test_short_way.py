"""``dpci.fit`` of the squared loss by moments, and what its results do as all others."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import dpci
from dpci import regression
from dpci.regression.law import ErrorParts, Noise
from dpci.schema import CategoricalColumn, Levels, NumericColumn, NumericTarget, Power, Schema, Term
from support.keywords import assembled

N = 4000
_rng = np.random.default_rng(5)
X = _rng.uniform(-0.5, 0.5, (N, 3))
Y = np.clip(X @ [0.8, -0.5, 0.2] + 0.1 * _rng.normal(size=N), -1, 1)
SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=18, upper=98, unit="year"),
        CategoricalColumn(name="sex", categories=("F", "M"), reference="F"),
        CategoricalColumn(name="region", categories=("a", "b", "c"), reference="a"),
    ),
    target=NumericTarget(column="income", lower=0, upper=100),
)
TABLE = {"age": _rng.uniform(18, 98, N), "sex": _rng.choice(["F", "M"], N), "region": _rng.choice(["a", "b", "c"], N)}
TABLE["income"] = 10 + 0.5 * TABLE["age"] + 5 * (TABLE["sex"] == "M") + 5 * _rng.normal(size=N)
TABLE["income"] = np.clip(TABLE["income"], 0, 100)


def fitted(x=X, y=Y, **keywords):
    return dpci.fit(x, y, **assembled(**{"budget": dpci.ZCDP(1.0), "loss": "squared", "seed": 1, **keywords}))


def test_collinear_indicators_are_refused_before_anything_is_spent():
    whole = [replace(column, reference=None) for column in SCHEMA.columns[1:]]
    ledger = dpci.Ledger(dpci.ZCDP(2.0))
    keywords = {"schema": replace(SCHEMA, columns=(SCHEMA.columns[0], *whole))}
    with pytest.raises(dpci.InvalidInput, match=r"reference category .* 'sex'"):
        fitted(TABLE, None, ledger=ledger, seed=None, **keywords)
    assert ledger.remaining == dpci.ZCDP(2.0)
    fitted(TABLE, None, l2_strength="private", **keywords)


@pytest.mark.parametrize("keywords", [{}, {"rows": 2.0}, {"rows": dpci.rows.Blocks([0.5, 0.6, 0.7])}])
def test_it_is_the_default_without_a_radius_and_the_release_it_says(keywords):
    fit = fitted(**keywords)
    release = regression.release(X, Y, budget=dpci.ZCDP(1.0), seed=1, **keywords)
    assert fit.to_json() == release.fit().to_json() == fitted(mechanism="moments", **keywords).to_json()
    assert regression.MomentMatrix.of(fit).to_json() == release.to_json()
    assert fitted(l2_strength=0.1).l2_strength == 0.1
    assert isinstance(fitted(radius=2.0, l2_strength=0.1), dpci.PrivateFit)
    with pytest.raises(dpci.InvalidInput, match="radius"):
        fitted(mechanism="objective", l2_strength=0.1)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"classes": (0, 1)}, "classes"),
        ({"persons": dpci.Persons(max_rows=2)}, "max_rows"),
        ({"intercept": np.ones(3)}, "intercept"),
        ({"loss": "logistic", "mechanism": "moments"}, "loss must be 'squared'"),
        ({"l2_strength": -1.0}, "l2_strength"),
        ({"intercept": "no"}, "intercept"),
        ({"mechanism": "moment"}, "mechanism"),
        ({"rows": dpci.rows.Blocks([0.5] * 4)}, "bound every column"),
        ({"rows": "blocks"}, "rows must be a number"),
        ({"y": Y + 9}, "target"),
    ],
)
def test_what_it_does_not_use_is_refused_before_anything_is_spent(keywords, message):
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    y = keywords.pop("y", Y)
    with pytest.raises(dpci.DpciError, match=message):
        fitted(y=y, seed=None, ledger=ledger, **keywords)
    assert ledger.spent == {"rho": 0.0}


def test_a_regression_that_noise_hides_keeps_the_matrix():
    twice = np.column_stack([X, X[:, 0]])
    with pytest.warns(dpci.MomentNoiseWarning, match=r"'x0', 'x3' vary together.*MomentMatrix.of"):
        hidden = fitted(twice, seed=2)
    again = pickle.loads(pickle.dumps(hidden))
    assert "vary together" in again.interval_refusal
    assert "no coefficients" in hidden.summary()
    for numbers in (again.params, again.std_errors, again.conf_int(), again.tidy()["estimate"]):
        assert np.isnan(numbers).all()
    assert "vary together" in repr(again.conf_int())
    assert "vary together" in again.to_html()
    for call in (lambda: again.wald_test("x0"), lambda: again.predict(twice)):
        with pytest.raises(dpci.InvalidInput, match="vary together"):
            call()
    some = regression.MomentMatrix.of(again).fit(features=["x0", "x1"])
    assert some.interval_refusal is None


def test_rows_that_blocks_bound_need_less_noise_and_groups_are_one_block():
    indicators = np.eye(3)[_rng.integers(0, 3, N)][:, :2]
    rows = np.column_stack([X, indicators])
    domain = dpci.rows.Blocks([0.5] * 3, groups=[((3, 4), 1.0)])
    blocks = fitted(rows, rows=domain)
    ball = fitted(rows, rows=domain.norm)
    assert np.all(blocks.std_errors[:3] < 0.8 * ball.std_errors[:3])
    exact = fitted(rows, rows=domain, budget=dpci.ZCDP(1e13))
    expected = np.linalg.lstsq(np.column_stack([rows, np.ones(N)]), Y, rcond=None)[0]
    np.testing.assert_allclose(exact.params, expected, atol=1e-4)
    saved = json.loads(exact.to_json())
    assert saved["release"]["rows"] == domain.to_dict()
    beyond = rows.copy()
    beyond[7] = [0, 0, 0, 0.8, 0.8]
    with pytest.raises(dpci.DpciError, match="row 7"):
        fitted(beyond, rows=domain)
    tame = rows.copy()
    tame[7] = [0, 0, 0, 0.5, 0.5]
    clipped = fitted(beyond, rows=dpci.rows.Clipped(domain))
    np.testing.assert_allclose(clipped.params, fitted(tame, rows=domain).params, rtol=1e-6)
    parts = fitted(dpci.Chunks([(rows[:99], Y[:99]), (rows[99:], Y[99:])]), None, rows=domain)
    np.testing.assert_allclose(parts.params, blocks.params, rtol=1e-9)


@pytest.mark.parametrize("encoding", ["unit_norm", "full_range"])
@pytest.mark.parametrize("scale", ["symmetric", "unit"])
def test_a_schema_gives_numbers_in_the_units_of_the_table(encoding, scale):
    target = NumericTarget(column="income", lower=0, upper=100, scale=scale)
    schema = Schema(columns=SCHEMA.columns, target=target, encoding=encoding)
    fit = dpci.fit(TABLE, schema=schema, loss="squared", budget=dpci.ZCDP(1e13), seed=1)
    dummies = [TABLE["sex"] == "M", TABLE["region"] == "b", TABLE["region"] == "c"]
    design = np.column_stack([TABLE["age"], *dummies, np.ones(N)])
    expected, squares, *_ = np.linalg.lstsq(design, TABLE["income"], rcond=None)
    np.testing.assert_allclose(fit.params, expected, rtol=1e-3)
    spread = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * squares[0] / (N - 5))
    np.testing.assert_allclose(fit.std_errors, spread, rtol=1e-3)
    assert fit.names == fit.scaled.names
    assert fit.units[:2] == ("per year", "against F")
    some = {name: values[:3] for name, values in TABLE.items()}
    predicted = fit.predict(some)
    np.testing.assert_allclose(predicted, design[:3] @ expected, rtol=1e-3)
    assert "per year" in fit.summary()
    assert "per year" in fit.to_html()
    again = regression.LinearFit.from_json(fit.to_json())
    assert again.wald_test({"age": 10}, 5.0).pvalue == fit.wald_test({"age": 10}, 5.0).pvalue
    one = regression.MomentMatrix.of(fit).fit(features=["sex=M"])
    gap = TABLE["income"][TABLE["sex"] == "M"].mean() - TABLE["income"][TABLE["sex"] == "F"].mean()
    assert one.params[0] == pytest.approx(gap, rel=1e-3)
    other = regression.MomentMatrix.of(fit).fit("age", features=["sex=M"])
    assert other.scaled.params.shape == (2,)
    assert len(other.predict(other.scaled.params[None, :1])) == 1
    for ask in (lambda: other.params, other.conf_int, other.tidy, lambda: other.wald_test("sex=M")):
        with pytest.raises(dpci.InvalidInput, match=r"got 'age' on sex=M, intercept \(scaled has its coefficients\)"):
            ask()


def test_a_schema_is_obeyed():
    other = Schema(columns=SCHEMA.columns[:2], target=SCHEMA.target)
    fit = dpci.fit(TABLE, schema=SCHEMA, loss="squared", budget=dpci.ZCDP(100.0), seed=1)
    with pytest.raises(dpci.InvalidInput, match="schema must be that"):
        fit.predict(TABLE, schema=other)
    with pytest.raises(dpci.InvalidInput, match="rows must be those of the schema"):
        dpci.fit(TABLE, schema=SCHEMA, loss="squared", budget=dpci.ZCDP(1.0), rows=9.0)
    with pytest.raises(dpci.InvalidInput, match="target_bound"):
        dpci.fit(TABLE, schema=SCHEMA, loss=dpci.losses.Squared(3.0), budget=dpci.ZCDP(1.0))


def test_simultaneous_intervals_are_between_single_ones_and_the_union_bound():
    fit = fitted()
    single, joint, union = (fit.conf_int(simultaneous=kind).length for kind in (None, "max_z", "bonferroni"))
    assert np.all(single < joint)
    assert np.all(joint <= union)
    pure = fitted(budget=dpci.PureDP(20.0))
    np.testing.assert_array_equal(
        pure.conf_int(simultaneous="max_z").length, pure.conf_int(simultaneous="bonferroni").length
    )
    for keywords in ({"seed": 1}, {"n_draws": 10}, {"simultaneous": "all"}):
        with pytest.raises(dpci.InvalidInput):
            fit.conf_int(**keywords)


def test_max_z_is_the_quantile_of_the_greatest_error():
    fit = fitted(budget=dpci.ZCDP(1e12))
    errors = np.random.default_rng(0).multivariate_normal(np.zeros(4), fit.cov, 100_000) / fit.std_errors
    quantile = np.quantile(np.abs(errors).max(axis=1), 0.95)
    found = fit.conf_int(simultaneous="max_z", n_draws=100_000).length / fit.std_errors / 2
    np.testing.assert_allclose(found, quantile, rtol=0.02)


@pytest.mark.parametrize("budget", [dpci.ZCDP(1.0), dpci.PureDP(20.0)])
def test_comparison_of_two_halves(budget):
    one = fitted(X[: N // 2], Y[: N // 2], budget=budget)
    two = fitted(X[N // 2 :], Y[N // 2 :], budget=budget, seed=2)
    found = dpci.compare(one, two)
    np.testing.assert_allclose(found.std_errors, np.hypot(one.std_errors, two.std_errors), rtol=1e-9)
    np.testing.assert_allclose(found.difference, one.params - two.params)
    shared = dpci.compare(one, two, shared_data=True)
    sampling = [np.sqrt((1 - fit.noise_shares) * fit.std_errors**2) for fit in (one, two)]
    expected = found.std_errors**2 + 2 * sampling[0] * sampling[1]
    np.testing.assert_allclose(shared.std_errors**2, expected, rtol=1e-9)
    assert np.all(shared.intervals.length > found.intervals.length)
    assert np.all(found.pvalues > 1e-6)
    # A p-value of 5% is a bound of the interval.
    moved = dpci.compare(one, two, level=1 - found.pvalues[0])
    np.testing.assert_allclose(moved.intervals.lower[0] * moved.intervals.upper[0], 0.0, atol=1e-6)
    for other, message in (
        (one, "different releases"),
        (regression.MomentMatrix.of(one).fit(l2_strength=0.1), "l2_strength"),
        (fitted(radius=2.0, l2_strength=0.1), "of one kind"),
        (regression.MomentMatrix.of(two).fit("x0"), "names"),
        (1, "result_b"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            dpci.compare(one, other)


def test_two_laplace_noises_have_the_law_of_their_sum():
    rng = np.random.default_rng(0)
    one, zero = np.ones(1), np.zeros(1)
    parts = ErrorParts(0.3 * one, zero, (Noise(1.0 * one, -0.4 * one, 2.5), Noise(0.7 * one, 0.2 * one, 3.0)))
    draws = np.sqrt(0.3) * rng.standard_normal(10**6)
    for amplitude, degrees in ((1.0, 2.5), (0.4, 2.5), (0.7, 3.0), (0.2, 3.0)):
        draws += amplitude * np.sqrt(rng.standard_gamma(degrees, 10**6) / degrees) * rng.standard_normal(10**6)
    for level in (0.8, 0.95, 0.99):
        assert parts.half_width(level)[0] == pytest.approx(np.quantile(np.abs(draws), level), rel=0.01)
    assert parts.tail(np.array([2.5]))[0] == pytest.approx(np.mean(np.abs(draws) > 2.5), rel=0.02)


def test_pages_and_plots_and_tests():
    fit = fitted(budget=dpci.ApproxDP(5.0, 1e-6))
    page = fit.to_html(title="a <title>")
    assert "a &lt;title&gt;" in page
    assert "NOT PRIVATE" in page
    private = fitted(seed=None)
    assert "What someone can learn about one record" in private.to_html()
    test = fit.wald_test(["x0", "x1"])
    assert "F statistic" in test.summary()
    assert test.pvalue == test.pvalue_joint
    assert test.pvalue_by_rows >= min(fit.pvalues[:2])
    pytest.importorskip("matplotlib")
    assert fit.plot(order="estimate", simultaneous="bonferroni").get_xlabel()
    for bad in ({"level": 2.0}, {"title": 3}):
        with pytest.raises(dpci.InvalidInput):
            fit.to_html(**bad)


def test_powers_and_products_of_a_schema_have_units_too():
    schema = Schema(
        columns=SCHEMA.columns[:2],
        target=NumericTarget(column="income", lower=0, upper=100),
        terms=(Term((Power(column="age"),)), Term((Power(column="age", exponent=2),)), Term((Levels(column="sex"),))),
    )
    fit = dpci.fit(TABLE, schema=schema, loss="squared", budget=dpci.ZCDP(1e13), seed=1)
    age = TABLE["age"]
    design = np.column_stack([age, age**2, TABLE["sex"] == "M", np.ones(N)])
    expected = np.linalg.lstsq(design, TABLE["income"], rcond=None)[0]
    np.testing.assert_allclose(fit.params, expected, rtol=0.01)
