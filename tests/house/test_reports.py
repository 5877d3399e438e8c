"""Inputs of public reports about other libraries: each works here, or its refusal names the way."""

import re

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, NumericTarget, Schema

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")

N = 600
_rng = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": _rng.integers(18, 90, N), "sex": _rng.choice(["F", "M"], N)})
FRAME["ill"] = np.where(_rng.logistic(size=N) < 0.05 * (FRAME["age"] - 55), "yes", "no")
CSV = FRAME.to_csv(index=False)
TARGET = ClassTarget(column="ill", negative=("no",), positive=("yes",))
SEX = CategoricalColumn(name="sex", categories=("F", "M"), reference="F")
PLAN = {"budget": dpci.PureDP(4.0), "l2_strength": 0.05}
KEYWORDS = {**PLAN, "seed": 1}


def number(name="age"):
    return NumericColumn(name=name, lower=18, upper=90)


def schema(*columns):
    return Schema(columns=columns or (number(), SEX), target=TARGET)


def fit(table, *columns):
    return dpci.fit(table, schema=schema(*columns), **KEYWORDS)


@pytest.fixture(scope="module")
def made():
    return fit(FRAME)


def file_of(text, **options):
    def read(folder):
        path = folder / "people.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return dpci.read(path, schema=schema(), **options)

    return read


# The same people in other files: the model is the same.
FILES = {
    "pandas 13497: a byte order mark before a quoted name": file_of("\ufeff" + FRAME.to_csv(index=False, quoting=1)),
    "q 337: tabs and decimal commas": file_of(
        FRAME.assign(age=FRAME["age"].astype(float)).to_csv(index=False, sep="\t", decimal=","),
        delimiter="\t",
        decimal=",",
    ),
    "empty lines at the end": file_of(CSV + "\n\n"),
    "lines that end as on old Macs": file_of(CSV.replace("\n", "\r")),
}


@pytest.mark.parametrize("report", FILES)
def test_files(report, tmp_path, made):
    assert (fit(FILES[report](tmp_path)).params == made.params).all()


FILES_REFUSED = {
    "pandas 22584: a thousands separator": (
        CSV + '"1,018",F,no\n',
        "no thousands separator; in a file pass decimal=','",
    ),
    "a line of totals": (CSV + "Total,,\n", "must hold finite numbers, got 'Total' in row 600"),
    "a title above the names": ("Report 2024\n" + CSV, "the first line of a file must hold the names of the columns"),
    "no names": (CSV.split("\n", 1)[1], "the first line of a file must hold the names of the columns"),
    "a line with too few fields": (CSV + "30,F\n", "must have 3 fields, got 2 in line 602"),
    "a quote that is never closed": (CSV + '30,"F,no\n', "pass quote='none' to dpci.read"),
    "semicolons that nobody named": (CSV.replace(",", ";"), "pass delimiter=';' to dpci.read"),
    "Latin-1 that nobody named": ((CSV + "30,ü,no\n").encode("latin-1"), "pass encoding='cp1252' to dpci.read"),
}


@pytest.mark.parametrize("report", FILES_REFUSED)
def test_files_are_refused(report, tmp_path):
    text, way = FILES_REFUSED[report]
    with pytest.raises(dpci.InvalidInput, match=re.escape(way)):
        fit(file_of(text)(tmp_path))


@pytest.mark.parametrize("several", [False, True])
def test_a_wrong_cell_is_found_by_its_line(several, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(CSV + "1018x,F,no\n")
    (first := tmp_path / "first.csv").write_text(CSV)
    for table in [dpci.read([first, path])] if several else [dpci.read(path), dpci.read(path, schema=schema()), path]:
        with pytest.raises(dpci.InvalidInput, match="column 'age' must hold finite numbers, got '1018x'") as refusal:
            fit(table)
        assert refusal.value.__notes__ == [f"row {1200 if several else 600}, counted from 0, is line 602 of {path}"]


SPACED, DASHED, DOTTED = "Depth rel. skull [mm]", "size-average", "var.abc"
FORMULAS = {
    "statsmodels 4783, patsy 37: a name with spaces": (f"ill ~ `{SPACED}`", (number(SPACED),), (SPACED,)),
    "pingouin 169: a name with a dash": (f"ill ~ `{DASHED}`", (number(DASHED),), (DASHED,)),
    "pingouin 107: a name with a dot": (f"ill ~ {DOTTED}", (number(DOTTED),), (DOTTED,)),
    "cogstat 136: columns called C and Q": (
        "ill ~ C + C(Q)",
        (number("C"), CategoricalColumn(name="Q", categories=("a", "b"), reference="a")),
        ("C", "Q=b"),
    ),
}


@pytest.mark.parametrize("report", FORMULAS)
def test_formulas(report):
    formula, columns, names = FORMULAS[report]
    assert Schema.from_formula(formula, schema(*columns)).names == names


FORMULAS_REFUSED = {
    "statsmodels 4783: Q around a name": ("ill ~ Q('age')", "a name of a column stands in backticks"),
    "R: a dot for all columns": ("ill ~ .", "name every column"),
    "lme4: a random effect": ("ill ~ age + (1|sex)", "random effects are missing"),
    "patsy: Treatment in C": ("ill ~ C(sex, Treatment('M'))", r"ref= must follow the comma: write C\(edu, ref="),
    "R: a power without I": ("ill ~ age^2", r"write I\(age\*\*2\) for a power"),
    "R: nesting": ("ill ~ sex/age", "write a \\+ a:b for a/b"),
    "R: a comparison": ("ill ~ I(age>40)", "add that column to the table first"),
    "patsy: a product in I": ("ill ~ I(age*sex)", "write age:b or age\\*b for products"),
    "patsy: a natural spline": ("ill ~ cr(age, df=3)", r"write bs\(age, df=5\)"),
    "R: a number as classes": ("ill ~ C(age)", "describe it as a CategoricalColumn"),
    "another target": ("wage ~ age", r"dataclasses.replace\(schema, target="),
}


@pytest.mark.parametrize("report", FORMULAS_REFUSED)
def test_formulas_are_refused(report):
    formula, way = FORMULAS_REFUSED[report]
    with pytest.raises(dpci.InvalidInput, match=way):
        Schema.from_formula(formula, schema())


def test_pda_7_a_level_with_a_blank():
    renamed = FRAME.assign(sex=FRAME["sex"].map({"F": "F F", "M": "M"}))
    column = CategoricalColumn(name="sex", categories=("F F", "M"), reference="F F")
    np.testing.assert_array_equal(fit(renamed, number(), column).params, fit(FRAME, number(), SEX).params)


def test_ml_foundations_14_columns_of_get_dummies():
    dummies = pd.get_dummies(FRAME, columns=["sex"])
    assert dummies["sex_M"].dtype == bool
    found = fit(dummies, number(), NumericColumn(name="sex_M", lower=0, upper=1))
    assert found.names == ("age", "sex_M", "intercept")


CELLS_REFUSED = {
    "scikit-learn 26890: pd.NA among categories": (
        {"sex": FRAME["sex"].astype("string").where(FRAME["age"] > 30)},
        "which leaves its row out, or the category",
    ),
    "imbalanced-learn 1055: durations": (
        {"age": pd.to_timedelta(FRAME["age"], unit="D")},
        "make a time or a duration a number first",
    ),
    "periods": ({"age": pd.period_range("2020", periods=N, freq="D")}, "dates need since= of the column"),
    "arnio 716: complex numbers": ({"age": FRAME["age"] + 0j}, "must hold finite numbers, got (79+0j) in row 0"),
    "an infinite number": ({"age": FRAME["age"].where(FRAME["age"] > 20, np.inf)}, "must hold finite numbers, got inf"),
    "numbers with their unit": ({"age": FRAME["age"].astype(str) + " years"}, "a cell must hold a number alone"),
    "shares in per cent": ({"age": FRAME["age"].astype(str) + "%"}, "a cell must hold a number alone"),
}


@pytest.mark.parametrize("report", CELLS_REFUSED)
def test_cells_are_refused(report):
    cells, way = CELLS_REFUSED[report]
    with pytest.raises(dpci.InvalidInput, match=re.escape(way)):
        fit(FRAME.assign(**cells))


def test_scikit_learn_12018_a_missing_category_at_prediction(made):
    with pytest.raises(dpci.InvalidInput, match=r"got nan in row 0 .*filter these rows first"):
        made.predict(FRAME.assign(sex=[np.nan] * N))


def test_category_encoders_154_all_categories_unseen(made):
    with pytest.raises(dpci.InvalidInput, match=r"must hold one of \['F', 'M'\], got 'X' in row 0"):
        made.predict(FRAME.assign(sex="X"))
    others = CategoricalColumn(name="sex", categories=("F", "M"), reference="F", unknown="zeros")
    lenient = fit(FRAME, number(), others)
    # Unknown ones count as the reference does, by its zeros.
    np.testing.assert_array_equal(
        lenient.predict_proba(FRAME.assign(sex="X")), lenient.predict_proba(FRAME.assign(sex="F"))
    )


X, Y = FRAME[["age"]].to_numpy() / 100.0, (FRAME["ill"] == "yes").to_numpy()
ARRAYS_REFUSED = {
    "a vector for X": ((X[:, 0], Y), "for a single column pass X[:, None]"),
    "a column for y": ((X, Y[:, None]), "pass y[:, 0]"),
    "statsmodels 516: three classes": ((X, np.arange(N) % 3), "dpci.multinomial.fit takes several"),
    "columns with numbers for names": ((FRAME.rename(columns={"age": 0}), None), "frame.columns.astype(str)"),
}


@pytest.mark.parametrize("report", ARRAYS_REFUSED)
def test_arrays_are_refused(report):
    (rows, y), way = ARRAYS_REFUSED[report]
    described = {"schema": schema(number("0"), SEX)} if y is None else {}
    with pytest.raises(dpci.InvalidInput, match=re.escape(way)):
        dpci.fit(rows, y, **described, **KEYWORDS)


def test_numbers_without_bounds():
    with pytest.raises(TypeError, match="if nobody knows them, take UnboundedColumn"):
        NumericColumn(name="age")
    with pytest.raises(TypeError, match="if nobody knows them, take UnboundedTarget"):
        NumericTarget(column="age", lower=0)


def test_delta_of_zero():
    with pytest.raises(dpci.InvalidInput, match=r"a guarantee without delta is dpci\.PureDP"):
        dpci.ApproxDP(1.0, 0.0)


def test_dpart_1_a_column_of_zeros():
    made = dpci.fit(np.zeros((N, 2)), Y, **KEYWORDS)
    assert np.isfinite(made.params).all()
    assert np.isfinite(made.conf_int().length).all()


def test_statsmodels_39_and_1705_a_column_that_separates_the_classes():
    """No estimate runs away and nothing is refused: a fit must succeed for every table, or its success tells."""
    apart = FRAME.assign(ill=np.where(FRAME["age"] > 50, "yes", "no"))
    assert np.isfinite(fit(apart).params).all()
    assert np.isfinite(fit(FRAME.assign(ill="yes")).params).all()


def test_diffprivlib_105_noise_does_not_vanish_with_the_lower_bound():
    scales = [
        dpci.plan(n_samples=N, schema=schema(NumericColumn(name="age", lower=low, upper=100)), **PLAN).steps[0].scale
        for low in (0, 99)
    ]
    assert scales[0] == scales[1] > 0.0


def test_diffprivlib_97_noise_shrinks_with_the_budget():
    plans = [dpci.plan(n_samples=N, schema=schema(), l2_strength=0.05, budget=dpci.PureDP(eps)) for eps in (0.1, 1, 9)]
    scales = [plan.steps[0].scale for plan in plans]
    assert scales == sorted(scales, reverse=True)
