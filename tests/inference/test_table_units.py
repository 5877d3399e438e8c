"""Coefficients in the units of a table, and marginal effects: against statsmodels, and against their definitions."""

import dataclasses
import html
import json
import re

import numpy as np
import pytest
from scipy.special import expit

import dpci
from dpci.errors import InvalidInput
from dpci.schema import CategoricalColumn, NumericColumn, NumericTarget, Schema
from support.commands import ran
from support.ill import SCHEMA, people
from support.keywords import assembled

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
KEYWORDS = {"budget": dpci.PureDP(1.0), "l2_strength": 0.02, "seed": 1}
TABLE = people()


@pytest.fixture(scope="module")
def result():
    return dpci.fit(TABLE, schema=SCHEMA, **KEYWORDS)


def design(table):
    """Return what the coefficients multiply."""
    columns = [table.age, table.sex == "M", table.dose, np.ones(len(table))]
    return np.column_stack(columns).astype(float)


def test_the_predictor_is_the_same(result):
    assert result.names == result.scaled.names
    assert result.units == ("per year", "against F", "per unit", "at 0")
    np.testing.assert_allclose(design(TABLE) @ result.params, result.decision_function(TABLE), atol=1e-12)
    # With everything that the scaled map has: errors, levels, tests.
    rows = design(TABLE[:4])
    of_rows, predicted = result.conf_int(contrast=rows, level=0.9), result.predict_conf_int(TABLE[:4], level=0.9)
    np.testing.assert_allclose(expit(np.asarray(of_rows)), np.asarray(predicted), rtol=1e-9)
    scaled = result.scaled
    np.testing.assert_allclose(result.std_errors, np.sqrt(np.diag(result.cov)), rtol=1e-9)
    for j, name in enumerate(result.names[:-1]):
        assert result.pvalues[j] == pytest.approx(scaled.pvalues[j], rel=1e-9), name
        ratio = result.params[j] / scaled.params[j]
        assert result.conf_int().length[j] == pytest.approx(ratio * scaled.conf_int().length[j], rel=1e-9)
        other = result.params[1] / scaled.params[1]
        assert result.cov[j, 1] / ratio == pytest.approx(other * scaled.cov[j, 1], rel=1e-9)


def test_coefficients_are_per_as_many_units_as_the_schema_says(result):
    columns = tuple(
        dataclasses.replace(column, per=10.0) if column.name == "age" else column for column in SCHEMA.columns
    )
    by_ten = dataclasses.replace(SCHEMA, columns=columns)
    assert by_ten.digest == SCHEMA.digest
    assert by_ten == Schema.from_dict(by_ten.to_dict())
    fit = dpci.fit(TABLE, schema=by_ten, **KEYWORDS)
    # The rows and the noise are the same; the numbers are of ten years.
    np.testing.assert_array_equal(fit.scaled.params, result.scaled.params)
    np.testing.assert_allclose(
        fit.odds_ratios(contrast="age").estimate, result.odds_ratios(contrast={"age": 10}).estimate, rtol=1e-12
    )
    assert fit.units[0] == "per 10 years"
    for shown in (fit.summary(), repr(fit.odds_ratios()), fit.to_html(), fit.summary(full=True)):
        assert "per 10 years" in shown
    again = dpci.PrivateFit.from_json(fit.to_json())
    assert again.units == fit.units
    # A comparison with a schema that agrees is as it was.
    assert fit.to_html().count("<svg") == result.to_html().count("<svg")
    assert "the schema of the model differs" not in fit.officer_report(schema=SCHEMA)
    curved = Schema.from_formula("ill ~ poly(age, 2) + sex:age + sex + dose", by_ten)
    model = dpci.fit(TABLE, schema=curved, **KEYWORDS)
    ages = TABLE.age / 10.0
    named = {"age": ages, "age^2": ages**2, "sex=M": TABLE.sex == "M", "dose": TABLE.dose, "intercept": 1.0}
    named["sex=M:age"] = named["age:sex=M"] = named["sex=M"] * ages
    assert "per (10 years)^2" in model.units
    predicted = sum(
        value * np.asarray(named[name], dtype=float) for name, value in zip(model.names, model.params, strict=True)
    )
    np.testing.assert_allclose(predicted, model.decision_function(TABLE), atol=1e-9)
    for wrong in ({"per": 0}, {"per": "10"}, {"per": 2, "transform": "signed_log"}):
        with pytest.raises(InvalidInput, match="per must be"):
            NumericColumn(name="age", lower=0, upper=1, **wrong)


def test_a_contrast_names_its_unit():
    """Ten times a coefficient per 10 years is for 100 years, and the row says it."""
    columns = tuple(
        dataclasses.replace(column, per=10.0) if column.name == "age" else column for column in SCHEMA.columns
    )
    decades = dpci.fit(TABLE, schema=dataclasses.replace(SCHEMA, columns=columns), **KEYWORDS)
    found, sex = decades, decades.names[1]
    each, other = decades.odds_ratios(contrast={"age": 10}), decades.odds_ratios(contrast=[{"age": 1, sex: -1}, "age"])
    assert each.per == ("per 100 years",)
    assert each.estimate == pytest.approx(np.exp(10 * found.params[0]))
    assert other.per == ("combination", "per 10 years")
    assert found.conf_int(contrast={"age": -0.5}).per == ("per 5 years less",)
    assert found.conf_int(contrast={sex: 2}).per == ("combination",)
    at = {"age": 40, "sex": "F", "dose": 1}
    at = {name: at[name] for name in (column.name for column in columns)}
    effects = decades.marginal_effects(at)
    plain = dpci.fit(TABLE, schema=SCHEMA, **KEYWORDS).marginal_effects(at)
    assert effects.per[:2] == ("per 10 years", "against F")
    assert plain.per[0] == "per year"
    assert (effects.estimate / plain.estimate)[:2] == pytest.approx([10, 1])


def test_a_fit_without_intervals_has_estimates_and_says_why_there_is_no_more(capsys, tmp_path):
    bare = dpci.fit(TABLE, **assembled(schema=SCHEMA, moments="none", **KEYWORDS))
    np.testing.assert_allclose(design(TABLE) @ bare.params, bare.decision_function(TABLE), atol=1e-12)
    assert bare.names == bare.scaled.names
    reason = "intervals require released moments, got a fit with moments='none'"
    assert bare.interval_refusal == reason == bare.scaled.interval_refusal
    scaled = bare.scaled
    shown = [line.split() for line in str(scaled).splitlines()]
    assert shown[1:3] == [["name", "estimate"], shown[2]]
    assert shown[3] == ["age", f"{scaled.params[0]:.4f}"]
    assert f"no intervals: {reason}" in str(scaled)
    assert f"per year    {bare.params[0]:.4f}" in bare.summary()
    assert "<small>per year</small>" in bare.to_html()
    (tmp_path / "bare.json").write_text(bare.to_json())
    document = json.loads(ran(capsys, "report", tmp_path / "bare.json", "--json").out)
    assert document["interval_refusal"] == reason
    assert document["coefficients"][0] == {"name": "age", "unit": "per year", "estimate": bare.params[0]}
    for ask in (bare.conf_int, bare.odds_ratios, lambda: bare.cov, lambda: bare.wald_test(["age"]), scaled.conf_int):
        with pytest.raises(InvalidInput, match="intervals require released moments"):
            ask()


def test_titles_name_the_units(result):
    """The contrast of ten years is 10 times a parameter that has another size in each."""
    ten = {"age": 10}
    scaled, of_table = result.scaled.conf_int(contrast=ten), result.conf_int(contrast=ten)
    assert repr(scaled).startswith("95% intervals, scaled columns\n")
    assert repr(of_table).startswith("95% intervals, units of the table\n")
    assert np.log(result.odds_ratios(contrast=ten).estimate) == pytest.approx(of_table.estimate)
    assert scaled.estimate[0] != pytest.approx(of_table.estimate[0])
    assert "hypothesis, scaled columns " in result.scaled.wald_test("age").summary()
    assert "hypothesis, units of the table " in result.wald_test("age").summary()
    assert repr(result.odds_ratios()).startswith("95% intervals, odds ratios\n")


def test_intervals_name_the_unit_of_each_row(result):
    units, of_table = result, result.conf_int()
    assert of_table.per == units.units
    assert result.odds_ratios().per == units.units[:-1]
    shown = repr(result.odds_ratios()).splitlines()
    assert shown[1].split()[:2] == ["name", "unit"]
    assert all(unit in line for unit, line in zip(units.units, shown[3:], strict=False))
    assert result.odds_ratios(contrast=[{"age": 10}, "age"]).per == ("per 10 years", "per year")
    assert result.scaled.conf_int().per == ("",) * len(result.names)


def test_the_page_has_odds_ratios_with_their_units(result):
    page = result.to_html(level=0.9)
    ratios = result.odds_ratios(level=0.9)
    odds = page.split('id="odds"')[1].split("</section>")[0]
    assert [f"{number:.4f}" for number in (ratios.estimate[0], ratios.lower[0], ratios.upper[0])] == re.findall(
        r"<td>([0-9.]+)</td>", odds.split("age")[1]
    )[:3]
    assert "<small>against F</small>" in odds
    assert "intercept" not in odds
    assert "odds ratios of a regularised model (lambda = " in odds
    assert 'id="odds"' not in result.to_html(units="scaled")


def test_the_page_names_the_outcome_and_the_bounds_of_the_columns(result):
    page = result.to_html()
    # Of several spellings of a class the first names it.
    assert result.classes == ("no", "yes|probably")
    assert page.count(f"Logistic regression of {result.schema.target.column} (yes against no), with") == 2
    assert "raises the odds of 'yes'." in html.unescape(page)
    assert "positive class 'yes'\n" in result.summary(full=True)
    columns = page.split('id="columns"')[1].split("</section>")[0]
    for column in result.schema.columns:
        assert f'dir="auto">{column.name}</th>' in columns
        bounds = f"{column.lower:g} to {column.upper:g}" if isinstance(column, NumericColumn) else column.categories[0]
        assert bounds in columns


def test_tests_and_many_at_once(result):
    tested = result.wald_test({"age": 10}, 0.5)
    assert tested.hypothesis == ("10 × age",)
    assert tested.estimate == pytest.approx(10 * result.params[0])
    assert tested.pvalue == pytest.approx(
        result.scaled.wald_test({"age": 1}, 0.5 / 10 * result.scaled.params[0] / result.params[0]).pvalue
    )
    several = result.wald_test(["age", "dose"])
    assert several.statistic == pytest.approx(result.wald_test(["age", "dose"], method="by_rows").statistic)
    together = result.conf_int(simultaneous="bonferroni")
    assert together.simultaneous == "bonferroni"
    assert (together.length > result.conf_int().length).all()
    frame = result.summary_frame()
    assert list(frame.columns) == ["unit", "estimate", "std_error", "pvalue", "lower", "upper"]
    assert "confidence intervals of the scaled columns" in repr(result.scaled)


def test_odds_ratios(result):
    found = result.odds_ratios(level=0.9)
    assert found.names == result.names[:-1]
    np.testing.assert_allclose(np.log(np.asarray(found)), np.asarray(result.conf_int(level=0.9))[:-1], rtol=1e-12)
    decade = result.odds_ratios(contrast={"age": 10})
    assert decade.estimate == pytest.approx(np.exp(10 * result.params[0]))
    without = dpci.fit(*SCHEMA.transform(TABLE)[:2], classes=(-1, 1), rows=SCHEMA.rows, **KEYWORDS)
    np.testing.assert_allclose(np.log(without.odds_ratios().estimate), result.scaled.params[:-1])
    np.testing.assert_array_equal(without.scaled.params, without.params)
    hinge = dpci.fit(TABLE, schema=SCHEMA, loss="huber_hinge", **KEYWORDS)
    with pytest.raises(InvalidInput, match="odds ratios need a logistic loss"):
        hinge.odds_ratios()


def test_every_kind_of_column():
    columns = (
        NumericColumn(name="age", lower=20, upper=60),
        NumericColumn(name="dose", lower=-1, upper=6, scale="unit", transform="signed_log"),
        CategoricalColumn(name="sex", categories=("F", "M")),
    )
    schema = Schema(columns=columns, target=SCHEMA.target)
    result = dpci.fit(TABLE, schema=schema, rows=dpci.rows.Within(intercept=0.5), **KEYWORDS)
    assert result.names == ("age", "dose", "sex=F", "sex=M", "intercept")
    assert result.units[1:4] == ("per log unit", "against no category", "against no category")
    rows = np.column_stack([TABLE.age, np.log1p(TABLE.dose), TABLE.sex == "F", TABLE.sex == "M", np.ones(len(TABLE))])
    np.testing.assert_allclose(rows.astype(float) @ result.params, result.decision_function(TABLE), atol=1e-12)
    assert result.params.shape == result.std_errors.shape == (5,)
    assert "in the units of the table" in result.summary()
    page = result.to_html()
    assert "per log unit" in page
    # An odds ratio is for a change of the number itself.
    odds = page.split('id="odds"')[1].split("</section>")[0]
    assert "<small>per 2.7-fold increase of 1 + the number</small>" in odds
    assert "per log" not in odds
    assert "about a factor of 2.7" in result.to_html()
    single = CategoricalColumn(name="sex", categories=("F",), unknown="zeros")
    found = dpci.fit(TABLE, schema=Schema(columns=(columns[0], single), target=SCHEMA.target), **KEYWORDS)
    assert found.units[1] == "against all other values"
    assert "about a factor of 2.7" not in found.to_html()


WITHOUT = {
    "0 + dose": (["dose"], lambda t: [t.dose]),
    "0 + dose + C(sex, ref='M')": (["dose", "sex=F", "sex=M"], lambda t: [t.dose, t.sex == "F", t.sex == "M"]),
    "0 + sex:dose": (["sex=F:dose", "sex=M:dose"], lambda t: [t.dose * (t.sex == sex) for sex in "FM"]),
}


@pytest.mark.parametrize("formula", WITHOUT)
@pytest.mark.parametrize("outcome", ["ill", "age", "visits"])
def test_a_formula_without_an_intercept_is_the_model_of_r(formula, outcome):
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is what is compared with")
    names, columns = WITHOUT[formula]
    count = NumericTarget(column="visits", lower=0, upper=8, scale="unit")
    years = NumericTarget(column="age", lower=10, upper=70)
    target, loss, y, family = {
        "ill": (SCHEMA.target, "logistic", COUNTED.ill != "no", sm.families.Binomial()),
        "age": (years, dpci.losses.Huber(k=90.0), COUNTED.age, sm.families.Gaussian()),
        "visits": (count, "poisson", COUNTED.visits, sm.families.Poisson()),
    }[outcome]
    described = (NumericColumn(name="dose", lower=-5, upper=10), SCHEMA.columns[1])
    schema = Schema.from_formula(f"~ {formula}", Schema(columns=described, target=target))
    if outcome == "visits" and not schema.has_constant:
        with pytest.raises(InvalidInput, match="must have an intercept, or a categorical column"):
            dpci.plan(n_samples=9, schema=schema, loss=loss, budget=dpci.ZCDP(1.0))
        return
    design = np.column_stack(columns(COUNTED)).astype(float)
    expected = sm.GLM(y.astype(float), design, family=family).fit().params
    for more in ({}, {"loss": "squared"})[: 1 + (outcome == "age")]:
        found = dpci.fit(COUNTED, schema=schema, budget=dpci.ZCDP(1e9), seed=1, **{"loss": loss, **more})
        assert list(found.names) == names == list(found.conf_int().names)
        np.testing.assert_allclose(found.params, expected, rtol=1e-3, atol=1e-3)
        mean = found.predict_proba(COUNTED)[:, 1] if outcome == "ill" else found.predict(COUNTED)
        link = {"ill": lambda u: 1 / (1 + np.exp(-u)), "age": np.asarray, "visits": np.exp}[outcome]
        np.testing.assert_allclose(mean, link(design @ found.params), rtol=1e-6)
        if isinstance(found, dpci.PrivateFit):
            np.testing.assert_allclose(found.decision_function(COUNTED), design @ found.params, rtol=1e-6)
        assert all(name in found.summary() for name in names)


def test_rows_of_a_schema_keep_its_intercept():
    with pytest.raises(InvalidInput, match="write a model without one as a formula"):
        dpci.plan(n_samples=9, schema=SCHEMA, rows=dpci.rows.Within(intercept=False), budget=dpci.ZCDP(1.0))


@pytest.mark.parametrize(("scale", "middle", "width"), [("symmetric", 40.0, 30.0), ("unit", 10.0, 60.0)])
def test_a_huber_regression_is_that_of_rows_encoded_by_hand(scale, middle, width):
    target = NumericTarget(column="age", lower=10, upper=70, scale=scale)
    schema = Schema(columns=(NumericColumn(name="dose", lower=-5, upper=10),), target=target)
    common = {"budget": dpci.ZCDP(0.5), "l2_strength": 0.01, "seed": 1, "rows": 1.0}
    found = dpci.fit(COUNTED, schema=schema, loss=dpci.losses.Huber(k=9.0), **common)
    X, y = (COUNTED.dose.to_numpy()[:, None] - 2.5) / 7.5, (COUNTED.age - middle) / width
    hand = dpci.fit(X, y, loss=dpci.losses.Huber(k=9.0 / width, target_bound=1.0), **common)
    slope, constant = width * hand.params / [7.5, 1.0]
    np.testing.assert_allclose(found.params, [slope, middle + constant - 2.5 * slope], rtol=1e-6)
    np.testing.assert_allclose(found.std_errors[0], width * hand.std_errors[0] / 7.5, rtol=1e-6)
    np.testing.assert_allclose(found.predict(COUNTED), middle + width * hand.predict(X), rtol=1e-6)


@pytest.mark.parametrize("scale", ["symmetric", "unit"])
def test_a_squared_loss_has_the_units_of_its_target(scale):
    target = NumericTarget(column="dose", lower=-5, upper=10, scale=scale)
    schema = Schema(columns=SCHEMA.columns[:2], target=target)
    table = TABLE.assign(dose=2.0 + 0.05 * TABLE.age)
    result = dpci.fit(
        table,
        schema=schema,
        loss="squared",
        mechanism=dpci.ObjectivePerturbation(radius=100.0),
        budget=dpci.PureDP(1e9),
        l2_strength=1e-8,
        seed=1,
    )
    np.testing.assert_allclose(result.params, [0.05, 0.0, 2.0], atol=1e-4)
    tested = result.wald_test("intercept", 2.0)
    assert tested.estimate == pytest.approx(2.0, abs=1e-4)
    assert tested.value == 2.0


VISITS = dataclasses.replace(SCHEMA, target=NumericTarget(column="visits", lower=0, upper=8, scale="unit"))
COUNTED = TABLE.assign(visits=np.minimum(np.random.default_rng(5).poisson(np.exp(0.3 + 0.02 * (TABLE.age - 40))), 8))
COUNT_LOSSES = [dpci.losses.NegativeBinomial(dispersion=0.5), dpci.losses.Poisson(count_bound=8)]


def count_fit(loss, **keywords):
    radius = 5.0 if loss.name == "poisson" else None
    return dpci.fit(COUNTED, **assembled(schema=VISITS, loss=loss, radius=radius, **{**KEYWORDS, **keywords}))


def test_rate_ratios_are_quotients_of_predicted_counts():
    found = count_fit(COUNT_LOSSES[0])
    ratios = found.rate_ratios(level=0.9)
    assert ratios.names == found.names[:-1]
    np.testing.assert_allclose(np.log(np.asarray(ratios)), np.asarray(found.conf_int(level=0.9))[:-1])
    older, younger = (found.predict(COUNTED.iloc[:1].assign(age=age))[0] for age in (50, 40))
    assert found.rate_ratios(contrast={"age": 10}).estimate[0] == pytest.approx(older / younger, rel=1e-9)
    loss = dpci.losses.NegativeBinomial(count_bound=1, dispersion=4.0)
    encoded = dpci.fit(*VISITS.transform(COUNTED)[:2], loss=loss, rows=VISITS.rows, **KEYWORDS)
    np.testing.assert_allclose(np.log(encoded.rate_ratios().estimate), found.scaled.params[:-1])
    page = found.to_html(level=0.9)
    rates = page.split('id="rate"')[1].split("</section>")[0]
    assert f"<td>{ratios.estimate[0]:.4f}</td>" in rates
    assert "increase by the unit below the name, or the category instead of the reference, multiplies the mean" in rates
    assert "rate ratios of a regularised model" in rates
    assert 'id="odds"' not in page
    with pytest.raises(InvalidInput, match="odds ratios need a logistic loss"):
        found.odds_ratios()


def test_rate_ratios_need_counts(result):
    with pytest.raises(InvalidInput, match="rate ratios need a loss for counts"):
        result.rate_ratios()


def test_with_a_huge_budget_those_of_counts_are_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is what is compared with")
    found = count_fit(COUNT_LOSSES[0], budget=dpci.PureDP(1e8), l2_strength=1e-9, projection="floor")
    family = sm.families.NegativeBinomial(alpha=0.5)
    expected = sm.GLM(COUNTED.visits, design(COUNTED), family=family).fit(cov_type="HC0")
    np.testing.assert_allclose(found.params, expected.params, rtol=0.01, atol=1e-3)
    np.testing.assert_allclose(found.std_errors, expected.bse, rtol=0.01)
    np.testing.assert_allclose(found.rate_ratios().estimate, np.exp(expected.params[:-1]), rtol=1e-3)


def test_a_schema_says_what_it_scales_by():
    scaled = SCHEMA.from_units()
    X = SCHEMA.features(TABLE)
    np.testing.assert_allclose(design(TABLE) @ scaled.T, np.column_stack([X, np.ones(len(X))]), atol=1e-14)
    wider = dataclasses.replace(SCHEMA, columns=(NumericColumn(name="age", lower=0, upper=100), *SCHEMA.columns[1:]))
    assert wider.from_units()[0, 0] == pytest.approx(scaled[0, 0] * 40 / 100)


AT = {"age": 50, "sex": "M", "dose": 2.0}
SETTING = {"budget": dpci.PureDP(1e8), "l2_strength": 1e-6, "seed": 1}


@pytest.fixture(scope="module")
def effects_of():
    return dpci.fit(TABLE, schema=SCHEMA, **SETTING)


def test_effects_of_numbers_are_those_of_statsmodels(effects_of):
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is what is compared with")
    design = np.column_stack([TABLE.age, TABLE.sex == "M", TABLE.dose, np.ones(len(TABLE))]).astype(float)
    logit = sm.Logit((TABLE.ill != "no").astype(float), design).fit(disp=0, cov_type="HC0")
    # By position: columns 0 to 2, the constant is the last.
    expected = logit.get_margeff(atexog={0: 50.0, 1: 1.0, 2: 2.0}, at="mean")
    found = effects_of.marginal_effects(AT)
    assert found.names == ("age", "sex=M", "dose")
    bounds = expected.conf_int()
    for i in (0, 2):
        np.testing.assert_allclose(found.estimate[i], expected.margeff[i], rtol=0.01)
        np.testing.assert_allclose(np.asarray(found)[i], bounds[i], rtol=0.01)


def test_effects_are_differences_of_predictions(effects_of):
    """A category against the reference, and a curve with a product by its slope in the prediction."""
    male, female = ({**AT, "sex": [sex], "age": [50], "dose": [2.0]} for sex in ("M", "F"))
    change = effects_of.predict_proba(male)[0, 1] - effects_of.predict_proba(female)[0, 1]
    assert effects_of.marginal_effects(AT).estimate[1] == pytest.approx(change, rel=1e-9)
    curved = dpci.fit(TABLE, schema=Schema.from_formula("ill ~ bs(age, df=5)*sex + poly(dose, 2)", SCHEMA), **SETTING)
    found = curved.marginal_effects({**AT, "age": 60}, simultaneous="bonferroni")
    near = {"age": [60.0, 59.99], "sex": ["M", "M"], "dose": [2.0, 2.0]}
    ahead, behind = curved.predict_proba(near)[:, 1]
    assert found.estimate[0] == pytest.approx((ahead - behind) / 0.01, rel=1e-2)
    assert found.simultaneous == "bonferroni"
    assert (found.length > curved.marginal_effects({**AT, "age": 60}).length).all()


def test_of_a_mean_they_are_the_coefficients_in_units():
    target = NumericTarget(column="score", lower=0.0, upper=200.0)
    table = TABLE.assign(score=100 + 0.7 * TABLE.age - 3 * TABLE.dose)
    schema = dataclasses.replace(SCHEMA, target=target)
    fit = dpci.fit(table, **assembled(schema=schema, loss="squared", radius=20.0, **SETTING))
    found = fit.marginal_effects(AT)
    np.testing.assert_allclose(found.estimate, fit.params[:3], rtol=1e-6)
    np.testing.assert_allclose(found.length, fit.conf_int().length[:3], rtol=1e-6)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ({"age": 50, "sex": "M"}, "a value for each column of the schema, got none for 'dose'"),
        ({**AT, "age": 70}, r"a number in \[20, 60\] for 'age', got 70"),
        ({**AT, "age": [50]}, r"a number in \[20, 60\] for 'age', got \[50\]"),
        ({**AT, "dose": float("nan")}, "for 'dose', got nan"),
        ({**AT, "age": True}, "for 'age', got True"),
        ({**AT, "sex": ["M"]}, r"at must have one category for 'sex', got \['M'\]"),
        ({**AT, "sex": None}, "at must have one category for 'sex', got None"),
        ({**AT, "sex": "other"}, r"hold one of \['F', 'M'\], got 'other'"),
        (None, "at must be a mapping"),
    ],
)
def test_values_that_are_refused(effects_of, at, message):
    with pytest.raises(InvalidInput, match=message):
        effects_of.marginal_effects(at)


def test_models_that_have_none():
    X, y, _ = SCHEMA.transform(TABLE)
    with pytest.raises(InvalidInput, match="need a fit with a schema"):
        dpci.fit(X, y, classes=(-1, 1), **SETTING).marginal_effects(AT)
    hinge = dpci.fit(TABLE, schema=SCHEMA, loss="huber_hinge", **{**SETTING, "l2_strength": 1e-3})
    with pytest.raises(InvalidInput, match="a logistic or squared loss, got 'huber_hinge'"):
        hinge.marginal_effects(AT)
    strong = dpci.fit(TABLE, schema=SCHEMA, **{**SETTING, "l2_strength": 1.0})
    refused = strong.marginal_effects(AT, target="unregularised")
    assert all("ridge is too strong" in reason for reason in refused.refusals)


def test_marginal_effects_at_a_date():
    rng = np.random.default_rng(0)
    days = rng.integers(0, 1000, 4000)
    table = {"day": np.datetime64("2019-01-01") + days, "y": rng.random(4000) < expit(-1.0 + 0.002 * days)}
    column = NumericColumn("day", lower=0, upper=1000, since="2019-01-01", per=30, unit="day")
    schema = Schema(columns=(column,), target=dpci.schema.ClassTarget("y", negative=(False,), positive=(True,)))
    fit = dpci.fit(table, schema=schema, budget=dpci.ZCDP(1e6), seed=1)
    day = np.datetime64("2020-05-01")
    change = np.diff(fit.predict_proba({"day": day + np.array([-5, 5])})[:, 1])[0] * 3.0
    for at in ("2020-05-01", day, day.astype(object)):
        assert fit.marginal_effects({"day": at}).estimate[0] == pytest.approx(change, rel=1e-4)
    with pytest.raises(InvalidInput, match="a date from 0 to 1000 days after 2019-01-01 for 'day', got 100"):
        fit.marginal_effects({"day": 100})


def test_a_regression_of_another_target_says_whose_units_it_has():
    rng = np.random.default_rng(0)
    table = {"age": rng.uniform(18, 80, 2000), "dose": rng.uniform(0, 100, 2000)}
    age, dose = NumericColumn("age", lower=18, upper=100), NumericTarget("dose", lower=0, upper=100)
    fit = dpci.fit(table, schema=Schema(columns=(age,), target=dose), loss="squared", budget=dpci.ZCDP(1e6), seed=1)
    other = dpci.regression.MomentMatrix.of(fit).fit("age", features=["dose"])
    assert ["those of the encoded columns" in each.summary() for each in (fit, other)] == [False, True]


def test_no_line_leads_through_a_probability_that_nobody_knows():
    rough = dpci.fit(TABLE, **{**KEYWORDS, "schema": SCHEMA, "budget": dpci.PureDP(0.02)})
    found = rough.marginal_effects(AT)
    assert np.isnan(found.estimate).all()
    assert "too uncertain" in found.refusals[0]
