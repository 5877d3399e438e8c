"""Habits of users of R, statsmodels, scikit-learn and diffprivlib: names work, or a refusal says what to type."""

import copy
import dataclasses
import pickle
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.base.habits import INTERVALS, KEYWORDS, LINEAR, NAMES, PLANS
from dpci.model.keywords import KEYWORDS as OF_A_FIT
from dpci.schema import (
    CategoricalColumn,
    ClassTarget,
    NumericColumn,
    NumericTarget,
    Schema,
    UnboundedColumn,
    UnboundedTarget,
)
from dpci.shown.document import Document, Table
from dpci.shown.latex import as_latex

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")

N = 3000
_rng = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": _rng.integers(18, 90, N), "sex": _rng.choice(["F", "M_<%"], N)})
TABLE["ill"] = np.where(_rng.logistic(size=N) < 0.05 * (TABLE["age"] - 55), "yes", "no")
TABLE["cost"] = 0.1 * TABLE["age"] + _rng.uniform(-1.0, 1.0, N)
COLUMNS = (
    NumericColumn(name="age", lower=18, upper=90, unit="year"),
    CategoricalColumn(name="sex", categories=("F", "M_<%"), reference="F"),
)
SCHEMA = Schema(columns=COLUMNS, target=ClassTarget(column="ill", negative=("no",), positive=("yes",)))
BUDGET = dpci.ZCDP(rho=5.0)


@pytest.fixture(scope="module")
def result():
    return dpci.fit(TABLE, schema=SCHEMA, budget=BUDGET, seed=1)


@pytest.fixture(scope="module")
def linear():
    schema = Schema(columns=COLUMNS, target=NumericTarget(column="cost", lower=0, upper=12))
    return dpci.fit(TABLE, schema=schema, budget=BUDGET, seed=1)


def test_a_keyword_of_another_library_is_refused_with_ours():
    calls = {
        "fit": lambda **given: dpci.fit(TABLE, schema=SCHEMA, budget=BUDGET, **given),
        "fit_strata": lambda **given: dpci.fit_strata(
            TABLE, by="sex", schema=SCHEMA, budget=BUDGET, n_public="private", **given
        ),
        "plan": lambda **given: dpci.plan(n_samples=N, schema=SCHEMA, budget=BUDGET, **given),
    }
    for name, call in calls.items():
        for keyword, advice in (PLANS if name == "plan" else KEYWORDS).items():
            wanted = f"{name}() got an unexpected keyword argument '{keyword}': {advice}"
            with pytest.raises(TypeError, match=re.escape(wanted)):
                call(**{keyword: None})
        with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'nonsense'$"):
            call(nonsense=1)
    with pytest.raises(TypeError, match=r"missing .* 'budget': pass budget=dpci.PureDP"):
        dpci.fit(TABLE, schema=SCHEMA)
    assert not set(KEYWORDS) & {*OF_A_FIT, "budget", "schema", "persons", "weights", "ledger"}


@pytest.mark.parametrize(
    ("name", "call"),
    {
        "release_schema": lambda **given: dpci.release_schema({}, budget=BUDGET, **given),
        "fit_many": lambda **given: dpci.fit_many({"a": ([[0.1]], [True])}, budget=BUDGET, **given),
        "release": lambda **given: dpci.regression.release([[0.1]], [0.1], budget=BUDGET, **given),
        "tune": lambda **given: dpci.tuning.tune([[0.1]], [True], budget=BUDGET, candidates=[{}], **given),
    }.items(),
)
def test_other_releases_give_the_same_advice(name, call):
    for keyword in ("epsilon", "sample_weight", "n_jobs", "cluster_id"):
        with pytest.raises(TypeError, match=re.escape(f"{name}() got an unexpected keyword argument '{keyword}': ")):
            call(**{keyword: 1})


def test_threads_change_nothing_and_are_a_number(result):
    with dpci.threads(1):
        assert dpci.fit(TABLE, schema=SCHEMA, budget=BUDGET, seed=1).to_json() == result.to_json()
    for number in (0, -1, 1.5, True):
        with pytest.raises(dpci.InvalidInput, match="threads must be"), dpci.threads(number):
            pass


def test_rsquared_of_a_linear_fit_is_that_of_its_moments(linear):
    """Against NumPy, at a budget that moves the residual variance by less than a hundredth."""
    X = np.column_stack([TABLE["age"], TABLE["sex"] == "M_<%", np.ones(N)])
    left = TABLE["cost"] - X @ np.linalg.lstsq(X, TABLE["cost"], rcond=None)[0]
    assert linear.rsquared == pytest.approx(1.0 - left.var(ddof=3) / TABLE["cost"].var(), abs=0.01)


def test_keywords_of_intervals_are_refused_with_ours(result, linear):
    for owner in (result, result.scaled, linear):
        for keyword, advice in (LINEAR if owner is linear else INTERVALS).items():
            with pytest.raises(TypeError, match=re.escape(f"argument '{keyword}': {advice}")):
                owner.conf_int(**{keyword: 0.05})


def test_a_name_of_another_library_is_refused_with_ours(result, linear):
    for name, advice in NAMES.items():
        for owner in (result, linear):
            if hasattr(type(owner), name):
                continue
            with pytest.raises(AttributeError, match=re.escape(f"has no attribute {name!r}: {advice}")) as refused:
                getattr(owner, name)
            assert (refused.value.name, refused.value.obj) == (name, owner)
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        result.nonsense  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute 'coef_'$"):
        SCHEMA.coef_  # noqa: B018


def test_what_is_advised_exists(result):
    """Every name that advice tells to use is one of a fit."""
    named = {word for advice in NAMES.values() for word in re.findall(r"(?:use|or|,) (\w+)(?=[,(]|$)", advice)}
    assert {"std_errors", "conf_int", "tidy", "wald_test", "to_json"} <= named
    assert [name for name in named - {"the"} if not hasattr(result, name)] == []


HABITS = {
    "conf_int() got too many arguments without a name: write level=": lambda fit, _: fit.conf_int(0.1),
    "use to_frame(), a pandas frame": lambda fit, _: fit.conf_int().loc,
    "(age, sex=M_<%, intercept), got 'height'": lambda fit, _: fit.params["height"],
    "a summary is a text; use tidy()": lambda fit, _: fit.summary().tables,
    "(write 'age', and what it equals as value=)": lambda fit, _: fit.wald_test("age = 0"),
    "(all categories: ['sex=M_<%'])": lambda fit, _: fit.wald_test({"sex": 2.0}),
    "'at': pass a public value for each column": lambda fit, _: fit.marginal_effects(),
    "'X': pass a table, such as {'age': [40]": lambda fit, _: fit.predict(),
    "(one row is a table too: 'age': [40])": lambda fit, _: fit.predict({"age": 40, "sex": "F"}),
    "linear regression are differences": lambda _, linear: linear.plot(exponentiate=True),
    "import it from dpci.schema": lambda *_: dpci.NumericTarget,
    "(use dpci.losses.Poisson(count_bound=15))": lambda *_: dpci.losses.check_loss("poisson:15"),
    "PureDP: missing a required argument: 'epsilon'; type dpci.PureDP(epsilon=1.0)": lambda *_: dpci.PureDP(eps=1),
    "such as dpci.PureDP(epsilon=1.0), got": lambda *_: dpci.fit(TABLE, schema=SCHEMA, budget=1.0),
    "got a schema (pass it by its name: schema=...)": lambda *_: dpci.fit(TABLE, SCHEMA, budget=BUDGET),
    "got 'mean': a statistic of the data is private": lambda *_: UnboundedColumn("age", missing="mean"),
    "'missing': nothing can stand for a target": lambda *_: UnboundedTarget("age", missing="drop"),
    "use PrivateRidge": lambda *_: dpci.sklearn.Ridge,
    "from 'dpci.sklearn': use PrivateRidge": lambda *_: __import__("dpci.sklearn", fromlist=["Ridge"]),
    "from 'dpci': import it from dpci.schema": lambda *_: __import__("dpci", fromlist=["Schema"]),
    "'coef_': not fitted: call fit(X, y) first": lambda *_: dpci.sklearn.PrivateRidge().coef_,
    "'params': not fitted: call fit(X, y) first, then use result_": lambda *_: dpci.sklearn.PrivateRidge().params,
    "pass the column: persons=frame['id']": lambda *_: dpci.sklearn.PrivateRidge().fit([[1]], [1], persons="id"),
    "'n_samples': pass n_samples=, the public number": lambda *_: dpci.plan(TABLE, schema=SCHEMA, budget=BUDGET),
    "such as dpci.ApproxDP(epsilon=2, delta=1e-06)": lambda *_: dpci.fit(TABLE, schema=SCHEMA, budget=(2, 1e-6)),
    "type dpci.Ledger(dpci.ApproxDP": lambda *_: dpci.Ledger(budget=BUDGET),
    "such as dpci.Ledger.open('q')": lambda *_: dpci.fit(TABLE, schema=SCHEMA, budget=BUDGET, ledger="q"),
    "'labels': pass negative= and positive=": lambda *_: ClassTarget("ill", labels=(0, 1)),
    "(pass persons=dpci.Persons('id', max_rows=3))": lambda *_: dpci.fit(
        TABLE, schema=dataclasses.replace(SCHEMA, persons="id"), budget=BUDGET, persons=dpci.Persons(max_rows=3)
    ),
    "got '2010-01-01' (dates need since=": lambda *_: NumericColumn("day", lower="2010-01-01", upper="2020-01-01"),
    "'C' of PrivateRidge: pass l2_strength=": lambda *_: dpci.sklearn.PrivateRidge().set_params(C=1),
}


@pytest.mark.parametrize("advice", HABITS)
def test_a_habit_is_refused_with_what_to_type(advice, result, linear):
    with pytest.raises((TypeError, ValueError, LookupError, AttributeError, ImportError)) as refused:
        HABITS[advice](result, linear)
    assert advice in str(refused.value)


def test_numbers_have_names(result, linear):
    for fit in (result, linear):
        assert fit.params["age"] == fit.params[0]
        assert fit.conf_int()["age"] == next(iter(fit.conf_int()))
        assert {type(fit.params * 2), type(fit.params[1:]), type(pickle.loads(pickle.dumps(fit.pvalues)))} == {
            np.ndarray
        }


def test_copies_and_pickles_are_not_in_the_way(result):
    assert copy.deepcopy(result).to_json() == result.to_json()
    intervals = pickle.loads(pickle.dumps(result.conf_int()))
    np.testing.assert_array_equal(intervals.estimate, result.params)
    assert not hasattr(result, "__array_interface__")


@pytest.mark.parametrize("kind", ["result", "linear"])
def test_the_default_frame_is_that_of_the_summary(kind, request):
    made = request.getfixturevalue(kind)
    frame = made.summary_frame(level=0.9)
    np.testing.assert_array_equal(frame["estimate"], made.params)
    np.testing.assert_array_equal(frame[["lower", "upper"]], made.conf_int(level=0.9))
    assert tuple(frame["unit"]) == made.units == ("per year", "against F", "at 0")
    assert f"{made.params[0]:.4f}" in made.summary()
    assert not np.isclose(made.params[0], made.scaled.params[0], rtol=0.5)


BROOM = ["term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high"]


@pytest.mark.parametrize("kind", ["result", "linear"])
def test_tidy_has_the_columns_of_broom(kind, request):
    made = request.getfixturevalue(kind)
    tidy = made.tidy(level=0.9)
    assert list(tidy) == BROOM
    assert list(tidy["term"]) == ["age", "sex=M_<%", "intercept"]
    frame = made.summary_frame(level=0.9)
    np.testing.assert_array_equal(
        tidy[["estimate", "std.error", "p.value"]], frame[["estimate", "std_error", "pvalue"]]
    )
    np.testing.assert_array_equal(tidy[["conf.low", "conf.high"]], made.conf_int(level=0.9))
    np.testing.assert_allclose(tidy["statistic"], made.params / made.std_errors, rtol=1e-12)


def test_tidy_of_odds_ratios(result):
    raised = result.tidy(exponentiate=True)
    np.testing.assert_allclose(raised[["conf.low", "conf.high"]][:2], result.odds_ratios(), rtol=1e-12)
    np.testing.assert_array_equal(raised["std.error"], result.tidy()["std.error"])
    with pytest.raises(dpci.InvalidInput, match="exponentiate must be True or False"):
        result.tidy(exponentiate=1)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tidy_is_a_frame_of_the_library_of_a_table(library, result):
    module = pytest.importorskip(library)
    empty = module.table({}) if library == "pyarrow" else module.DataFrame()
    for like in (library, empty):
        made = result.tidy(like=like)
        assert type(made) is type(empty)
        columns = made.to_pydict() if library == "pyarrow" else {name: list(made[name]) for name in BROOM}
        assert columns["conf.high"] == list(result.tidy()["conf.high"])
    with pytest.raises(dpci.InvalidInput, match="like must be one of 'pandas', 'polars', 'pyarrow'"):
        result.tidy(like=[1])


def test_tables_as_markdown(result):
    lines = result.odds_ratios().to_markdown().splitlines()
    assert lines[0] == "| name | unit | estimate | lower | upper |"
    assert len(lines) == 4
    assert "sex=M\\_" not in lines[3]
    whole = result.to_markdown()
    assert whole.startswith("# Logistic regression of ill (yes against no), with seeded noise")
    assert "NOT PRIVATE" in whole
    assert "Odds ratios" in whole
    assert "Assumptions of the guarantee" not in whole  # a page folds it


def test_tables_as_latex(result, tmp_path):
    text = result.odds_ratios().to_latex()
    assert "sex=M\\_\\textless{}\\% & against F &" in text
    assert text.count("\\\\\n") == 3
    whole = result.to_latex(tmp_path / "table.tex", caption="Odds & ends", label="tab:a_b")
    assert (tmp_path / "table.tex").read_text(encoding="utf-8") == whole
    head = "\\begin{table}\n\\centering\n\\caption{Odds \\& ends}\n\\label{tab:a_b}\n"
    assert whole == f"{head}{result.to_latex()}\\end{{table}}\n"
    with pytest.raises(dpci.InvalidInput, match="label must be letters"):
        result.to_latex(label="a}b")
    assert "\\textbf{NOT PRIVATE (seeded)}" in whole
    assert whole.count("\\begin{tabular}") == whole.count("\\end{tabular}") == 2
    if (program := shutil.which("pdflatex")) is None:
        return
    (tmp_path / "page.tex").write_text(
        f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}{whole}\\end{{document}}"
    )
    subprocess.run([program, "-interaction=batchmode", "page.tex"], cwd=tmp_path, check=True, capture_output=True)


def test_tables_of_great_tables(result, linear):
    pytest.importorskip("great_tables")
    made = result.to_great_tables().as_raw_html()
    assert "Logistic regression of ill" in made
    assert "NOT PRIVATE (seeded)" in made
    assert "sex=M_&lt;%" in made
    assert "sex=M_<%" not in made
    for owner in (result.odds_ratios(), result.scaled, linear, SCHEMA):
        assert owner.to_great_tables().as_raw_html().count("<td") >= 6
    with pytest.raises(dpci.InvalidInput, match="requires an object that shows a table"):
        dpci.Ledger(BUDGET).to_great_tables()


def test_text_of_a_file_stays_text():
    hostile = "a\n\\input{secrets}"
    text = as_latex(Document(parts=[Table(["name", "value"], [[hostile, "1"]], hostile)]))
    outside = [line for line in text.splitlines() if not line.startswith("%")]
    assert "\\input" not in "\n".join(outside)
