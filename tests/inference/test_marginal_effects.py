"""Marginal effects at public values: against statsmodels, against differences of predictions, and what is refused."""

import dataclasses

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.schema import NumericTarget, Schema
from support.ill import SCHEMA, people
from support.keywords import assembled

pytestmark = pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning")
TABLE = people()
AT = {"age": 50, "sex": "M", "dose": 2.0}
KEYWORDS = {"budget": dpci.PureDP(1e8), "l2_strength": 1e-6, "seed": 1}


@pytest.fixture(scope="module")
def result():
    return dpci.fit(TABLE, schema=SCHEMA, **KEYWORDS)


def test_effects_of_numbers_are_those_of_statsmodels(result):
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is what is compared with")
    design = np.column_stack([TABLE.age, TABLE.sex == "M", TABLE.dose, np.ones(len(TABLE))]).astype(float)
    logit = sm.Logit((TABLE.ill != "no").astype(float), design).fit(disp=0, cov_type="HC0")
    # By position: columns 0 to 2, the constant is the last.
    expected = logit.get_margeff(atexog={0: 50.0, 1: 1.0, 2: 2.0}, at="mean")
    found = result.marginal_effects(AT)
    assert found.names == ("age", "sex=M", "dose")
    bounds = expected.conf_int()
    for i in (0, 2):
        np.testing.assert_allclose(found.estimate[i], expected.margeff[i], rtol=0.01)
        np.testing.assert_allclose(np.asarray(found)[i], bounds[i], rtol=0.01)


def test_effects_are_differences_of_predictions(result):
    """A category against the reference, and a curve with a product by its slope in the prediction."""
    male, female = ({**AT, "sex": [sex], "age": [50], "dose": [2.0]} for sex in ("M", "F"))
    change = result.predict_proba(male)[0, 1] - result.predict_proba(female)[0, 1]
    assert result.marginal_effects(AT).estimate[1] == pytest.approx(change, rel=1e-9)
    curved = dpci.fit(TABLE, schema=Schema.from_formula("ill ~ bs(age, df=5)*sex + poly(dose, 2)", SCHEMA), **KEYWORDS)
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
    fit = dpci.fit(table, **assembled(schema=schema, loss="squared", radius=20.0, **KEYWORDS))
    found, units = fit.marginal_effects(AT), fit.in_units()
    np.testing.assert_allclose(found.estimate, units.params[:3], rtol=1e-6)
    np.testing.assert_allclose(found.length, units.conf_int().length[:3], rtol=1e-6)


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
def test_values_that_are_refused(result, at, message):
    with pytest.raises(InvalidInput, match=message):
        result.marginal_effects(at)


def test_models_that_have_none():
    X, y, _ = SCHEMA.transform(TABLE)
    with pytest.raises(InvalidInput, match="need a fit with a schema"):
        dpci.fit(X, y, classes=(-1, 1), **KEYWORDS).marginal_effects(AT)
    hinge = dpci.fit(TABLE, schema=SCHEMA, loss="huber_hinge", **{**KEYWORDS, "l2_strength": 1e-3})
    with pytest.raises(InvalidInput, match="a logistic or squared loss, got 'huber_hinge'"):
        hinge.marginal_effects(AT)
    strong = dpci.fit(TABLE, schema=SCHEMA, **{**KEYWORDS, "l2_strength": 1.0})
    refused = strong.marginal_effects(AT, target="unregularised")
    assert all("ridge is too strong" in reason for reason in refused.refusals)
