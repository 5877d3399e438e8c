"""Messages for users of other libraries: advice that is true, and no rows or long descriptions of objects."""

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.base.validation import in_short
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, PartialSchema, Schema, UnboundedColumn

BUDGET = dpci.PureDP(1.0)
ILL = ClassTarget("ill", negative="no", positive="yes")
AGE = NumericColumn("age", lower=0, upper=100)
SEX = CategoricalColumn("sex", categories=("F", "M"))
PARTIAL = PartialSchema(columns=(UnboundedColumn("age"), UnboundedColumn("bmi"), UnboundedColumn("income")), target=ILL)
TABLE = {"age": [20, 30] * 50, "sex": ["F", "M"] * 50, "ill": ["no", "yes"] * 50}


@pytest.mark.parametrize(
    "schema", [Schema(columns=(AGE, SEX), target=ILL), PartialSchema(columns=(UnboundedColumn("age"), SEX), target=ILL)]
)
def test_collinear_indicators_are_refused_before_payment(schema):
    ledger = dpci.Ledger(BUDGET)
    for release in (
        lambda: dpci.fit(TABLE, schema=schema, budget=BUDGET, ledger=ledger),
        lambda: dpci.plan(n_samples=100, schema=schema, budget=BUDGET),
    ):
        with pytest.raises(dpci.InvalidInput, match=r"none for 'sex': set reference= of the column.*reference='F'"):
            release()
    assert not ledger.history


def test_a_ridge_and_a_formula_need_no_reference():
    schema = Schema(columns=(AGE, SEX), target=ILL)
    dpci.plan(n_samples=100, schema=schema, budget=BUDGET, l2_strength=1.0)
    for formula in ("ill ~ age + sex", "ill ~ 0 + age + sex"):
        dpci.plan(n_samples=100, schema=Schema.from_formula(formula, schema), budget=BUDGET)


def test_robust_errors_are_asked_for_where_they_are():
    with pytest.raises(TypeError, match=r"but for linear regressions, .*release\(\.\.\., robust=True\)"):
        dpci.fit(TABLE, schema=Schema(columns=(AGE,), target=ILL), budget=BUDGET, cov_type="HC0")
    with pytest.raises(TypeError, match="pass robust=True"):
        dpci.regression.release(np.zeros((9, 1)), np.zeros(9), budget=BUDGET, cov_type="HC0")


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: dpci.fit(pd.DataFrame(TABLE), budget=BUDGET), "pass schema="),
        (lambda: dpci.fit("ill ~ age", pd.DataFrame(TABLE), budget=BUDGET), r"Schema\.from_formula"),
        (lambda: dpci.fit(pd.DataFrame(TABLE), "ill ~ age", budget=BUDGET), r"Schema\.from_formula"),
        (lambda: Schema.from_formula("ill ~ age", PARTIAL), "an object of PartialSchema .*PartialSchema.from_formula"),
        (lambda: Schema.from_formula("log(age) ~ age", Schema(columns=(AGE,), target=ILL)), "a column of logarithms"),
        (lambda: dpci.schema.UnboundedTarget("wage", transform="log"), "a column of logarithms"),
        (lambda: UnboundedColumn("wage", transform="log"), "a column of logarithms"),
        (lambda: NumericColumn("age", 0, 100), "write lower= and upper="),
        (lambda: dpci.schema.NumericTarget("wage"), "take UnboundedTarget"),
        (lambda: dpci.fit(np.zeros((9, 1)), [0, 1, 0] * 3, budget=BUDGET, loss="logit"), "use 'logistic'"),
        (lambda: dpci.Logit, r"use dpci\.fit\("),
    ],
)
def test_a_habit_is_answered_in_one_line(call, advice):
    with pytest.raises((dpci.DpciError, TypeError, AttributeError), match=advice) as raised:
        call()
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    "value", [pd.DataFrame(TABLE), pd.Series([7.25]), np.array([7.25]), ["x" * 100], "y" * 100, np.ndarray]
)
def test_a_value_is_shown_in_short(value):
    shown = in_short(value)
    assert len(shown) <= 82
    assert "7.25" not in shown
    assert in_short(-1.0) == "-1.0"
