"""Schemas that express models: terms, their coding, bounds and units, and formulas that make them."""

import dataclasses
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from dpci.errors import InvalidInput
from dpci.schema import (
    CategoricalColumn,
    CategoricalTarget,
    ClassTarget,
    Levels,
    NumericColumn,
    NumericTarget,
    Power,
    Schema,
    Spline,
    Term,
)
from dpci.schema.formula import formula_text

N = 800
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(20, 60, N),
        "hours": RNG.uniform(-10, 30, N),
        "sex": RNG.choice(["F", "M"], N),
        "edu": RNG.choice(["a", "b", "c"], N),
        "y": RNG.normal(size=N),
    }
)
FRAME.loc[:3, "age"] = [20.0, 60.0, 20.0, 60.0]
FRAME.loc[:3, "hours"] = [-10.0, 30.0, 30.0, -10.0]
BASE = Schema(
    columns=(
        NumericColumn(name="age", lower=20, upper=60, unit="year"),
        NumericColumn(name="hours", lower=-10, upper=30, unit="hour", scale="unit"),
        CategoricalColumn(name="sex", categories=("F", "M")),
        CategoricalColumn(name="edu", categories=("a", "b", "c"), reference="b"),
    ),
    target=NumericTarget(column="y", lower=-100, upper=100),
)


SPLINE, ENDS = "bs(age, knots=[40], degree=2", "lower_bound=20, upper_bound=60"


def schema_of(formula: str, encoding: str = "unit_norm") -> Schema:
    return dataclasses.replace(Schema.from_formula(formula, BASE), encoding=encoding)


def least_squares(schema: Schema, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients in the units of the table and fitted values, by the rows of the schema."""
    X = schema.features(frame)
    D = np.column_stack([X, np.ones(len(X))]) if schema.has_constant else X
    assert np.linalg.matrix_rank(D) == D.shape[1]
    theta = np.linalg.lstsq(D, frame["y"], rcond=None)[0]
    units = schema.written[0] @ schema.from_units().T @ (theta if schema.has_constant else np.append(theta, 0.0))
    return (units if schema.has_constant else units[:-1]), D @ theta


@pytest.mark.parametrize("encoding", ["unit_norm", "full_range"])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("age + C(edu) + sex:age", "age + C(edu, Treatment('b')) + sex:age"),
        ("age*sex", "age*sex"),
        ("sex + sex:age", "sex + sex:age"),
        ("I(age**2)", "I(age**2)"),
        ("sex*poly(age, 2)", "sex*(age + I(age**2))"),
        ("poly(age, 3)*hours", "(age + I(age**2) + I(age**3))*hours"),
        ("(age + hours):sex", "(age + hours):sex"),
        ("hours:I(age**2) + hours", "hours:I(age**2) + hours"),
        ("age*hours*sex - age:hours:sex", "age*hours*sex - age:hours:sex"),
        ("age + hours - 1", "age + hours - 1"),
        ("0 + C(edu, ref='c') + sex", "0 + C(edu, Treatment('c')) + sex"),
        ("0 + age*edu", "0 + edu + age + C(edu, Treatment('b')):age"),
        (f"0 + {SPLINE})", f"0 + {SPLINE}, {ENDS})"),
        (f"{SPLINE}):sex + edu - 1", f"{SPLINE}, {ENDS}):sex + edu - 1"),
        ("C(edu, ref='c')*sex", "C(edu, Treatment('c'))*sex"),
    ],
)
def test_coefficients_in_table_units_are_those_of_statsmodels(ours: str, theirs: str, encoding: str) -> None:
    with warnings.catch_warnings(action="ignore"):
        reference = smf.ols(f"y ~ {theirs}", FRAME).fit()
    schema = schema_of(ours, encoding)
    found, fitted = least_squares(schema, FRAME)
    np.testing.assert_allclose(fitted, reference.fittedvalues, atol=1e-8)
    np.testing.assert_allclose(np.sort(found), np.sort(reference.params.to_numpy()), rtol=1e-5, atol=1e-9)
    # As the rows are bounded: each block by itself, and all together.
    X = schema.features(FRAME)
    assert np.linalg.norm(X, axis=1).max() <= schema.row_norm
    blocks = schema.rows
    sums = np.zeros((len(X), len(blocks.block_bounds)))
    np.add.at(sums.T, np.array(blocks.members), np.abs(X).T)
    assert (sums <= np.array(blocks.block_bounds)).all()
    assert len(schema.units) == len(schema.names) == X.shape[1]


def test_a_spline_is_a_group_of_functions_whose_sum_is_one() -> None:
    schema = schema_of("bs(age, df=5, degree=2) + sex:bs(age, df=5, degree=2)", "full_range")
    X = schema.features(FRAME)
    assert schema.names[:5] == tuple(f"bs(age)[{i}]" for i in range(2, 7))
    assert schema.units[0] == "no unit: function 2 of 6, for F"
    assert schema.rows.groups[0] == ((0, 1, 2, 3, 4), 1.0)
    assert X.min() >= 0.0
    for members, bound in schema.rows.groups:
        total = X[:, members].sum(axis=1)
        assert bound * (1 - 1e-9) < total.max() <= bound
    # A straight line lies in the span, also at both ends.
    D = np.column_stack([X, np.ones(N)])
    line = D @ np.linalg.lstsq(D, FRAME["age"], rcond=None)[0]
    np.testing.assert_allclose(line, FRAME["age"], atol=1e-9)


def test_knots_are_in_the_units_of_the_table() -> None:
    money = NumericColumn(name="gain", lower=0, upper=99_999, transform="signed_log")
    target = ClassTarget(column="t", negative=("0",), positive=("1",))
    base = Schema(columns=(money,), target=target)
    schema = Schema.from_formula("bs(gain, knots=[100, 1e4], degree=1)", base)
    X = schema.features({"gain": [0, 100, 1e4, 99_999]}) * schema.divisors
    np.testing.assert_allclose(X, [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], atol=1e-12)
    assert Schema.from_formula("bs(gain, df=1, degree=1)", base).names == ("bs(gain)[2]",)


def test_a_missing_number_has_a_public_value_and_an_indicator() -> None:
    column = NumericColumn(name="age", lower=20, upper=60, missing=30, unit="year")
    target = NumericTarget(column="y", lower=-100, upper=100)
    ward = CategoricalColumn(name="ward", categories=("A", "none"), missing="none", reference="A")
    base = Schema(columns=(column, ward), target=target)
    table = {"age": [20, None, float("nan"), "", "NA", 60], "ward": ["A", None, "", "A", "none", float("nan")]}
    for schema in (base, Schema.from_formula("age + ward", base), Schema.from_formula("ward + poly(age, 2)", base)):
        assert "age=missing" in schema.names
        z = schema.features(table) * schema.divisors
        gaps = z[:, schema.names.index("age=missing")]
        assert gaps.tolist() == [0, 1, 1, 1, 1, 0]
        assert z[:, schema.names.index("ward=none")].tolist() == [0, 1, 1, 0, 1, 1]
        np.testing.assert_allclose(z[1:5, schema.names.index("age")], -0.5)
        assert schema.units[schema.names.index("age=missing")] == "against 30 year"
        assert np.linalg.norm(schema.features(table), axis=1).max() <= 1.0
        again = Schema.from_dict(json.loads(json.dumps(schema.to_dict(defaults=True))))
        assert again == schema
    what = [(finding.column, finding.what, finding.n_rows) for finding in base.check(table).findings]
    assert ("age", "missing: replaced by 30", 4) in what
    assert ("ward", "missing: replaced by none", 3) in what
    assert not base.check(table).refused
    with pytest.raises(InvalidInput, match="must hold finite numbers, got 'x' in row 0"):
        base.features({"age": ["x"], "ward": ["A"]})
    for wrong in (10, "zero", float("nan"), True):
        with pytest.raises(InvalidInput, match="missing must be 'error', 'drop' or a number within the bounds"):
            dataclasses.replace(column, missing=wrong)
    with pytest.raises(InvalidInput, match="missing must be a category"):
        dataclasses.replace(ward, missing="?")


def test_terms_are_kept_by_files_and_counted_by_the_digest() -> None:
    one, other = schema_of("age*sex + bs(hours, df=4)"), schema_of("age*sex + bs(hours, df=5)")
    assert one.digest != other.digest != BASE.digest
    assert Schema.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert pickle.loads(pickle.dumps(one)) == one
    bare = schema_of("age + hours - 1")
    assert Schema.from_dict(json.loads(json.dumps(bare.to_dict()))) == bare
    assert bare.digest != schema_of("age + hours").digest
    # A file may hold the formula itself, and terms by hand are those of a formula.
    text = {**BASE.to_dict(), "formula": "age*sex + bs(hours, df=4)"}
    assert Schema.from_dict(text) == one
    hand = Schema(
        columns=BASE.columns[:1] + BASE.columns[2:3],
        target=BASE.target,
        terms=(Term((Power(column="age"),)), Term((Levels(column="sex"), Power(column="age")))),
    )
    assert hand == schema_of("age + sex:age")
    with pytest.raises(InvalidInput, match="terms and intercept, or a formula, got both"):
        Schema.from_dict({**one.to_dict(), "formula": "age"})


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ age + sex:age",
        "edu ~ bs(age, df=6) + C(sex, ref='M')*hours - 1",
        "y ~ poly(age, 3) + bs(hours, knots=[-0.1, 7e-3], degree=1)",
    ],
)
def test_the_text_of_a_formula_is_read_as_the_same_terms(formula) -> None:
    schema = Schema.from_formula(formula, BASE)
    text = formula_text(schema.target.column, schema.terms, intercept=schema.intercept)
    assert Schema.from_formula(text, BASE) == schema


def test_the_text_of_a_formula_has_knots_degrees_and_references() -> None:
    terms = Schema.from_formula("bs(age, df=4):sex", BASE).terms
    text = formula_text("high income", terms, intercept=True)
    assert text == '`high income` ~ bs(age, knots=[40], degree=3):C(sex, ref="F")'


@pytest.mark.parametrize(
    ("formula", "units"),
    [
        ("age + sex", ["per year", "against F"]),
        ("age*sex", ["per year, for F", "against F, at age 0", "per year, against F"]),
        ("age:sex", ["per year", "per year"]),
        ("poly(age, 2)", ["per year, at age 0", "per year^2"]),
        ("sex*bs(age, knots=[], degree=1)", ["against F, at age 20", "no unit: function 2 of 2, for F", None]),
        ("age*hours*sex", ["per year, at hours 0, for F", *[None] * 3, "per year, against F, at hours 0", None, None]),
    ],
)
def test_a_coefficient_beside_a_product_says_where_it_holds(formula, units) -> None:
    schema = Schema.from_formula(formula, BASE)
    assert len(schema.units) == len(units)
    assert all(wanted in (None, unit) for wanted, unit in zip(units, schema.units, strict=True)), schema.units


@pytest.mark.parametrize(("formula", "at"), [("age*sex", 0.0), ("sex*bs(age, knots=[35], degree=2)", 20.0)])
def test_it_is_the_difference_of_predictors_there(formula, at) -> None:
    schema = Schema.from_formula(formula, BASE)
    theta = RNG.normal(size=len(schema.names))
    women, men = (schema.features({"age": [20.0, 60.0], "sex": [sex] * 2}) @ theta for sex in "FM")
    near, far = men - women
    expected = near + (near - far) / 40.0 * (20.0 - at)  # along a line, beyond the bounds too
    coefficients = schema.from_units().T @ np.append(theta, 0.0)
    assert coefficients[schema.names.index("sex=M")] == pytest.approx(expected)


def test_products_that_are_not_in_a_model_do_not_matter() -> None:
    schema = Schema.from_formula("age*sex", BASE)
    assert schema._units_of([True, True, False])[:2] == ("per year", "against F")


def test_the_target_of_a_formula() -> None:
    assert Schema.from_formula("age", BASE).target == BASE.target
    assert Schema.from_formula("~ age", BASE).target == BASE.target
    assert Schema.from_formula("hours ~ age", BASE).target == NumericTarget(
        column="hours", lower=-10, upper=30, scale="unit", unit="hour"
    )
    found = Schema.from_formula("sex ~ age", BASE).target
    assert found == ClassTarget(column="sex", negative=("F",), positive=("M",))
    found = Schema.from_formula("edu ~ age", BASE).target
    assert found == CategoricalTarget(column="edu", classes=("b", "a", "c"))
    for wrong, why in (("weight ~ age", "got 'weight'"), ("age ~ age", "once")):
        with pytest.raises(InvalidInput, match=why):
            Schema.from_formula(wrong, BASE)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ ", "a term must follow, not the end"),
        ("", "formula must be text"),
        (3, "formula must be text"),
        ("y ~ 1", "at least one term besides the intercept"),
        ("y ~ age - age", "at least one term"),
        ("y ~ weight", r"columns of the schema \(age, hours, sex, edu\), not 'weight'"),
        ("y ~ log(age)", "a call must be one of C, I, poly, bs, not 'log'"),
        ("y ~ __import__('os')", "a call must be one of"),
        ("y ~ age sex", "joined by"),
        ("y ~ hour-per-week", r"not 'hour' \(a name that contains - must be in backticks\)"),
        ("y ~ age + 2", "must be 0 or 1"),
        ("y ~ 1:age", "an intercept must not be multiplied"),
        ("y ~ age:age", "a term must name a column once"),
        ("y ~ I(age + 2)", "must be a power"),
        ("y ~ I(age**2.5)", "a whole number, not '2.5'"),
        ("y ~ I(age**20)", "must be at most 10"),
        ("y ~ I(sex**2)", "numeric columns"),
        ("y ~ C(age)", "categorical column of the schema, not 'age'"),
        ("y ~ C(sex, ref='X')", "reference must be a category of 'sex', got 'X'"),
        ("y ~ bs(age)", "one of df= and knots="),
        ("y ~ bs(age, df=4, knots=[30])", "one of df= and knots="),
        ("y ~ bs(age, df=2)", "df must be at least the degree, 3"),
        ("y ~ bs(age, df=9999)", "at most 1000"),
        ("y ~ bs(age, knots=[10])", "knots of the spline of 'age' must increase between its bounds"),
        ("y ~ bs(age, knots=[40, 30])", "must increase"),
        ("y ~ (age", r"'\)' must follow, not the end"),
        ("y ~ age + sex $ edu", "must be in backticks"),
        ("y ~ " + "(" * 60 + "age" + ")" * 60, "at most 50 deep"),
        ("y ~ " + "*".join(["(poly(age,10)+sex+edu)"] * 6), "at most 1000 terms"),
        ("age" * 10_000, "formula must be text"),
    ],
)
def test_what_is_no_formula(formula: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        Schema.from_formula(formula, BASE)
    assert len(str(caught.value)) < 500


def test_names_in_backticks_and_duplicates() -> None:
    column = NumericColumn(name="hours-per week", lower=0, upper=99)
    base = Schema(columns=(*BASE.columns, column), target=BASE.target)
    schema = Schema.from_formula("y ~ age + `hours-per week` + age", base)
    assert schema.names == ("age", "hours-per week")
    with pytest.raises(InvalidInput, match=r"not 'per' \(write `hours-per week` in backticks\)"):
        Schema.from_formula("y ~ age + hours-per week", base)
    assert Schema.from_formula("I(`hours-per week`^2)", base).names == ("hours-per week^2",)


def test_terms_that_are_none() -> None:
    age = Term((Power(column="age"),))
    with pytest.raises(InvalidInput, match="every column must be in a term"):
        dataclasses.replace(BASE, terms=(age,))
    small = dataclasses.replace(BASE, columns=BASE.columns[:1])
    with pytest.raises(InvalidInput, match="terms must differ, got age twice"):
        dataclasses.replace(small, terms=(age, age))
    with pytest.raises(InvalidInput, match="terms must be a sequence of Term"):
        dataclasses.replace(small, terms=("age",))
    with pytest.raises(InvalidInput, match="intercept must be True for a schema without terms"):
        dataclasses.replace(small, intercept=False)
    for wrong in ({"factors": []}, {"factors": [{"kind": "power"}]}, {"factors": [{"kind": "log", "column": "a"}]}, 3):
        with pytest.raises(InvalidInput, match=r"term|factor"):
            Term.from_dict(wrong)
    with pytest.raises(InvalidInput, match="a factor must name a column"):
        Term((Power(column=["age"]),))
    with pytest.raises(InvalidInput, match="must be numbers"):
        Spline(column="age", knots=("a",))


def test_check_names_products_without_a_row() -> None:
    schema = schema_of("sex*edu + bs(age, df=6)")
    some = FRAME[(FRAME["sex"] == "F") | (FRAME["edu"] == "b")]
    found = schema.check(some[some["age"] < 40]).findings
    assert [f.column for f in found] == ["sex=M:edu=a", "sex=M:edu=c", "bs(age)[6]", "bs(age)[7]"]
    assert {f.what for f in found} == {"0 in every row"}


def test_numbers_of_numpy_are_bounds() -> None:
    column = NumericColumn(name="a", lower=np.int64(0), upper=np.float32(2))
    assert (type(column.lower), type(column.upper)) == (int, float)
    assert json.loads(json.dumps(dataclasses.asdict(column)))["upper"] == 2.0


def test_nearly_coincident_knots_are_refused():
    base = Schema(
        columns=[NumericColumn(name="a", lower=0, upper=1)], target=NumericTarget(column="y", lower=0, upper=1)
    )
    with pytest.raises(InvalidInput, match="apart"):
        Schema.from_formula("y ~ bs(a, knots=[1e-320, 1e-310])", base)
