"""With a huge budget and almost no ridge, a formula with a product and a spline gives what statsmodels gives."""

import os
import warnings

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.datasets.loaders import load_schema
from dpci.datasets.tables import load_sample_table, load_table
from dpci.schema import Schema

sm = pytest.importorskip("statsmodels.api", reason="statsmodels is what is compared with")
bspline = pytest.importorskip("scipy.interpolate").BSpline
LIMIT = 0.01
FORMULA = "income ~ bs(age, df=4) + `education-num` + sex*`hours-per-week` + C(race, ref='White')"


def design(people: pd.DataFrame) -> pd.DataFrame:
    """The columns of the formula in the units of the table, without any code of dpci."""
    knots = np.concatenate([[17.0] * 4, [53.5], [90.0] * 4])
    spline = bspline.design_matrix(np.clip(people["age"].to_numpy(float), 17, 90), knots, 3).toarray()
    columns = {f"bs(age)[{i + 1}]": spline[:, i] for i in range(1, 5)}
    columns["education-num"] = people["education-num"]
    male, hours = (people["sex"] == "Male").to_numpy(float), np.clip(people["hours-per-week"].to_numpy(float), 1, 99)
    columns |= {"sex=Male": male, "hours-per-week": hours, "sex=Male:hours-per-week": male * hours}
    for race in ("Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"):
        columns[f"race={race}"] = (people["race"] == race).to_numpy(float)
    return pd.DataFrame({name: np.asarray(column, dtype=float) for name, column in columns.items()})


@pytest.fixture(scope="module", params=["sample", "all rows"])
def people(request):
    if request.param == "all rows" and "DPCI_DATA" not in os.environ:
        pytest.skip("DPCI_DATA does not name the folder of data")
    return pd.DataFrame(load_sample_table() if request.param == "sample" else load_table("adult"))


def test_a_formula_gives_the_coefficients_of_statsmodels(people):
    schema = Schema.from_formula(FORMULA, load_schema("adult"))
    with warnings.catch_warnings(action="ignore"):
        result = dpci.fit(people, schema=schema, budget=dpci.PureDP(1e10), l2_strength=1e-9, seed=1)
    Z = sm.add_constant(design(people), prepend=False)
    y = (people["income"] == ">50K").to_numpy(float)
    reference = sm.Logit(y, Z).fit(disp=0, cov_type="HC0", maxiter=100)
    assert result.names == (*Z.columns[:-1], "intercept")
    np.testing.assert_allclose(result.params, reference.params, rtol=LIMIT)
    np.testing.assert_allclose(result.std_errors, reference.bse, rtol=LIMIT)
    np.testing.assert_allclose(result.conf_int().lower, reference.conf_int()[0], rtol=LIMIT, atol=0.001)
    odds = result.odds_ratios(contrast={"hours-per-week": 10, "sex=Male:hours-per-week": 10})
    ten = np.zeros(len(Z.columns))
    ten[6:8] = 10.0
    test = reference.t_test(ten)
    np.testing.assert_allclose(odds.estimate, np.exp(test.effect), rtol=LIMIT)
    np.testing.assert_allclose(np.ravel(odds), np.exp(np.ravel(test.conf_int())), rtol=LIMIT)
    # Predictions of raw tables, and after a file.
    again = dpci.PrivateFit.from_json(result.to_json())
    np.testing.assert_allclose(again.predict_proba(people)[:, 1], reference.predict(Z), atol=0.001)
    assert again.schema == schema
