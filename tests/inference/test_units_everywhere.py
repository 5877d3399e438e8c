"""Comparisons and pages in the units of the table, and files with targets beside them."""

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema

RNG = np.random.default_rng(3)
SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=18, upper=98, unit="year"),
        CategoricalColumn(name="sex", categories=("F", "M"), reference="F"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)


def fitted(seed, schema=SCHEMA, **keywords):
    age, sex = RNG.uniform(18, 98, 4000), RNG.choice(["F", "M"], 4000)
    odds = 0.05 * (age - 50) + (sex == "M")
    table = {"age": age, "sex": sex, "ill": np.where(odds + RNG.logistic(size=4000) > 0, "yes", "no")}
    return dpci.fit(table, schema=schema, budget=dpci.PureDP(4.0), l2_strength=0.002, seed=seed, **keywords)


def test_two_fits_with_a_schema_are_compared_in_its_units():
    one, other = fitted(1), fitted(2)
    found = dpci.compare(one, other)
    assert found.in_units
    assert "confidence intervals of the differences in the units of the table" in found.summary()
    np.testing.assert_allclose(found.estimate_a, one.params)
    np.testing.assert_allclose(found.difference, one.params - other.params)
    expected = np.hypot(one.std_errors, other.std_errors)
    np.testing.assert_allclose(found.std_errors, expected, rtol=1e-6)
    ten = dpci.compare(one, other, contrast={"age": 10})
    np.testing.assert_allclose(ten.difference, 10 * found.difference[:1])
    formula = Schema.from_formula("age*sex", SCHEMA)
    with pytest.raises(InvalidInput, match="the same names to be compared"):
        dpci.compare(one, fitted(3, formula))


def test_a_page_without_the_ridge():
    result = fitted(4)
    page = result.to_html(target="unregularised")
    assert "Coefficients without the ridge: 95% confidence intervals in the units of the table" in page
    assert "one Newton step" in page
    assert "Released parameters: 95% confidence intervals in the units of the table" in result.to_html()
    with pytest.raises(InvalidInput, match="target must be one of"):
        result.to_html(target="both")


def test_a_file_holds_its_targets(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age,sex,ill\n20,F,no\n30,M,yes\n")
    with pytest.raises(InvalidInput, match="y must be None where X is a file or chunks, which hold the target"):
        dpci.fit(path, [0, 1], schema=SCHEMA, budget=dpci.PureDP(1.0), l2_strength=10.0)
