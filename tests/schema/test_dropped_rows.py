"""Rows with a missing value, which ``missing="drop"`` leaves out: they weigh 0, whatever else they hold."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import dpci
from dpci.cli.main import main
from dpci.errors import InvalidInput
from dpci.released.sources import public_values
from dpci.schema import (  # fmt: skip
    CategoricalColumn,
    ClassTarget,
    NumericColumn,
    NumericTarget,
    PartialSchema,
    Schema,
    UnboundedColumn,
    UnlistedColumn,
)
from dpci.schema.cells import drops
from dpci.schema.parts import encode_table

RNG = np.random.default_rng(41)
N = 3000
AGE, SEX = RNG.uniform(20.0, 80.0, N), RNG.choice(["F", "M"], N)
ILL = RNG.uniform(size=N) < 1.0 / (1.0 + np.exp(-0.05 * (AGE - 50.0) - 0.8 * (SEX == "M")))
WHOLE = pd.DataFrame({"age": AGE, "sex": SEX.astype(object), "ill": np.where(ILL, "yes", "no"), "visits": 2.0 + ILL})
EMPTY = {"age": RNG.uniform(size=N) < 0.1, "sex": RNG.uniform(size=N) < 0.05}
TABLE = WHOLE.assign(**{name: WHOLE[name].mask(gaps) for name, gaps in EMPTY.items()})
COMPLETE = ~(EMPTY["age"] | EMPTY["sex"])
SEXES = CategoricalColumn(name="sex", categories=("F", "M"), reference="F", missing="drop")
CLASSES = ClassTarget(column="ill", negative=("no",), positive=("yes",))
SCHEMA = Schema(columns=(NumericColumn(name="age", lower=20, upper=80, missing="drop"), SEXES), target=CLASSES)
GAPS = PartialSchema(columns=(UnboundedColumn(name="age", missing="drop"), SEXES), target=CLASSES)
EXACT = {"budget": dpci.PureDP(1e9), "seed": 1}


def test_a_fit_is_that_of_the_complete_rows():
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is what is compared with")
    fit = dpci.fit(TABLE, schema=SCHEMA, **EXACT)
    rows = np.column_stack([AGE, SEX == "M", np.ones(N)])[COMPLETE].astype(float)
    expected = sm.Logit(ILL[COMPLETE].astype(float), rows).fit(disp=0)
    np.testing.assert_allclose(fit.params, expected.params, rtol=1e-3)
    np.testing.assert_allclose(fit.std_errors, expected.bse, rtol=0.05)
    assert "of records with age, sex" in " ".join(fit.summary().split())
    assert "1 for each record, 0 for rows that miss a value and are left out" in fit.summary(full=True)
    again = dpci.PrivateFit.from_json(fit.to_json())
    assert (again.schema, again._record.weights) == (fit.schema, dpci.Weights(bound=1.0, left_out=True))
    target = NumericTarget(column="visits", lower=0, upper=4)
    line = dpci.fit(TABLE, schema=replace(SCHEMA, target=target), **EXACT)
    ols = sm.OLS(2.0 + ILL[COMPLETE], rows).fit()
    np.testing.assert_allclose(line.params, ols.params, rtol=1e-3, atol=1e-4)
    # Rows that count are records of one variance: the classical covariance holds, of other regressions too.
    np.testing.assert_allclose(line.std_errors, ols.bse, rtol=1e-3)
    assert dpci.regression.MomentMatrix.of(line).fit(features=["age"]).conf_int().names == ("age", "intercept")


@pytest.mark.parametrize("schema", [SCHEMA, GAPS])
@pytest.mark.parametrize(
    "keywords", [{}, {"l2_strength": 0.01}, {"persons": dpci.Persons(np.arange(N) // 2, max_rows=2)}]
)
def test_rows_that_are_left_out_may_hold_anything(schema, keywords):
    given = {"schema": schema, "budget": dpci.ZCDP(1.0), "seed": 3, **keywords}
    # Ages that are missing do not count for bounds; other cells of their rows are of no column with bounds.
    other = TABLE.assign(
        sex=TABLE["sex"].mask(EMPTY["age"] & (SEX == "M"), "F"), ill=TABLE["ill"].mask(~COMPLETE, "no")
    )
    fits = [dpci.fit(table, **given) for table in (TABLE, other)]
    np.testing.assert_array_equal(*(fit.params for fit in fits))
    assert fits[0].digest == fits[1].digest


@pytest.mark.parametrize("schema", [SCHEMA, GAPS])
@pytest.mark.parametrize("weights", [None, dpci.Weights("w", bound=2.0)])
def test_files_and_parts_have_the_fit_of_their_table(tmp_path, schema, weights):
    # Nobody looks at the weight of a row that is left out.
    table = TABLE.assign(w=np.where(COMPLETE, 2.0 - 0.01 * (AGE % 70), np.where(EMPTY["age"], np.nan, 9.0)))
    table.to_csv(tmp_path / "table.csv", index=False)
    parts = dpci.Chunks(lambda: ((table.iloc[i : i + 700], None) for i in range(0, N, 700)), schema=schema)
    given = {"schema": schema, "budget": dpci.ZCDP(1.0), "seed": 3, "weights": weights}
    sources = (table, tmp_path / "table.csv", dpci.read(tmp_path / "table.csv"), parts)
    found, *others = [dpci.fit(source, **given) for source in sources]
    for fit in others:
        np.testing.assert_allclose(fit.params, found.params, rtol=0, atol=1e-10)
    assert ("bound of weights" in {value.name for value in public_values(found._record)}) is (weights is not None)
    if weights is not None and schema is SCHEMA:
        filled = table.assign(
            age=table["age"].fillna(33.0), sex=table["sex"].fillna("F"), w=table["w"].where(COMPLETE, 0.0)
        )
        np.testing.assert_array_equal(dpci.fit(filled, **given).params, found.params)


@pytest.mark.parametrize("unit", ["ns", "s"])
def test_dates_and_a_listed_text_for_missing_values(unit):
    days = pd.Series(pd.to_datetime("2024-01-01") + pd.to_timedelta(AGE.round(), unit="D")).astype(
        f"datetime64[{unit}]"
    )
    land = np.where(EMPTY["sex"], "", np.where(SEX == "M", "NA", "US"))
    table = TABLE.assign(day=days.mask(EMPTY["age"]), land=land)
    columns = (
        NumericColumn(name="day", since="2024-01-01", lower=20, upper=80, missing="drop"),
        CategoricalColumn(name="land", categories=("US", "NA"), reference="US", missing="drop"),
    )
    schema = Schema.from_formula("ill ~ day*land", replace(SCHEMA, columns=columns))
    assert [finding.n_rows for finding in schema.check(table).findings] == [EMPTY[n].sum() for n in ("age", "sex")]
    same = dpci.fit(
        TABLE.assign(age=TABLE["age"].round()), schema=Schema.from_formula("ill ~ age*sex", SCHEMA), **EXACT
    )
    np.testing.assert_allclose(dpci.fit(table, schema=schema, **EXACT).params, same.params, rtol=0, atol=1e-9)


def test_a_comparison_with_a_table_without_gaps():
    whole = replace(SCHEMA, columns=(replace(SCHEMA.columns[0], missing="error"), replace(SEXES, missing=None)))
    given = {"budget": dpci.PureDP(50.0), "rows": "clip"}
    fits = [dpci.fit(WHOLE, schema=whole, seed=1, **given), dpci.fit(TABLE, schema=SCHEMA, seed=2, **given)]
    assert (dpci.compare(*fits, shared_data=True).pvalues > 0.5).all()
    counted = replace(SCHEMA, columns=(SCHEMA.columns[0], replace(SEXES, missing="F")))
    with pytest.raises(InvalidInput, match=r"count missing values, in other ways \(fit both with the same columns"):
        dpci.compare(fits[0], dpci.fit(TABLE, schema=counted, seed=3, **given))


def test_unlisted_categories_and_a_category_of_that_name():
    sex = UnlistedColumn(name="sex", reference="other", missing="drop")
    schema = PartialSchema(columns=(sex, SCHEMA.columns[0]), target=CLASSES)
    fit = dpci.fit(TABLE, schema=schema, budget=dpci.ApproxDP(5.0, 1e-6), seed=1)
    assert fit.schema.columns[0].categories == ("F", "M", "other")
    assert fit.schema.drops == ("sex", "age")
    exact = {"budget": dpci.ApproxDP(1e4, 1e-6), "seed": 1}
    counted = dpci.release_schema(TABLE, schema=replace(schema, counts_share=0.5), **exact)
    np.testing.assert_allclose(counted.counts.cells["sex"], [*((TABLE["sex"] == sex).sum() for sex in "FM"), 0], atol=9)
    named = CategoricalColumn(name="sex", categories=("F", "M", "drop"), reference="F", missing="drop")
    assert not drops(named)
    assert named.codes(np.array(["F", None], dtype=object)).tolist() == [0, 2]


def test_what_has_no_weights_refuses():
    check = str(SCHEMA.check(TABLE))
    assert check.count("missing: the row weighs 0") == 2
    assert "nothing would be refused" in check
    refusing = replace(SCHEMA, columns=(SCHEMA.columns[0], replace(SEXES, missing=None)))
    strict = dpci.fit(WHOLE, schema=refusing, **EXACT)
    for encode in (strict.predict, strict.predict_conf_int, SCHEMA.features, refusing.features):
        with pytest.raises(InvalidInput, match=r"filter these rows first, because only a fit leaves [^;]*\);"):
            encode(TABLE if encode == SCHEMA.features else TABLE.assign(age=AGE))
    with pytest.raises(InvalidInput, match=r"strata, whose rows all count"):
        dpci.fit_strata(TABLE, schema=SCHEMA, by="sex", budget=dpci.PureDP(1.0), n_public={"F": 1500, "M": 1500})


@pytest.mark.parametrize("target", [CLASSES, NumericTarget(column="visits", lower=0, upper=4)])
def test_a_prediction_of_an_incomplete_row_is_nan(target, tmp_path):
    fit = dpci.fit(TABLE, schema=replace(SCHEMA, target=target), **EXACT)
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    whole = fit.predict(WHOLE)
    for source in (TABLE, tmp_path / "table.csv"):
        predicted = pd.Series(fit.predict(source))
        np.testing.assert_array_equal(predicted.isna(), ~COMPLETE)
        assert (predicted[COMPLETE] == whole[COMPLETE]).mean() > 0.999
    intervals, known = fit.predict_conf_int(TABLE), fit.predict_conf_int(WHOLE)
    for found, all_rows in ((intervals.estimate, known.estimate), (intervals.lower, known.lower)):
        np.testing.assert_allclose(found, np.where(COMPLETE, all_rows, np.nan), rtol=1e-9)
    assert intervals.refusals[int(np.argmin(COMPLETE))] == "a value is missing"
    (tmp_path / "fit.json").write_text(fit.to_json(), encoding="utf-8")
    out = tmp_path / "predicted.csv"
    assert main(["predict", *(str(tmp_path / name) for name in ("fit.json", "table.csv")), "--output", str(out)]) == 0
    np.testing.assert_array_equal(pd.read_csv(out).iloc[:, 0].isna(), ~COMPLETE)
    if target is CLASSES:
        np.testing.assert_array_equal(np.isnan(fit.predict_proba(TABLE)[:, 1]), ~COMPLETE)
        integers = ClassTarget(column="ill", negative=0, positive=1)
        ill = TABLE.assign(ill=ILL.astype(int))
        numbered = dpci.fit(ill, schema=replace(SCHEMA, target=integers), **EXACT)
        assert numbered.classes == (0, 1)
        assert (numbered.predict(WHOLE) == ill["ill"]).mean() > 0.5
        assert (numbered.predict(WHOLE).dtype.kind, whole.dtype.kind) == ("i", "U")


def test_a_part_without_any_value_and_commands(tmp_path, capsys):
    empty = TABLE.assign(age=TABLE["age"].where(np.arange(N) >= 1000))
    parts = dpci.Chunks(lambda: ((empty.iloc[i : i + 1000], None) for i in range(0, N, 1000)))
    fits = [dpci.fit(rows, schema=SCHEMA, budget=dpci.ZCDP(1.0), seed=3) for rows in (empty, parts)]
    np.testing.assert_allclose(*(fit.params for fit in fits), rtol=0, atol=1e-10)
    empty.to_csv(tmp_path / "table.csv", index=False)
    SCHEMA.to_file(tmp_path / "schema.json")
    table, schema, out = (str(tmp_path / name) for name in ("table.csv", "schema.json", "fit.json"))
    assert main(["fit", table, "--schema", schema, "--rho", "1e9", "--output", out]) == 0
    exact = dpci.fit(empty, schema=SCHEMA, budget=dpci.ZCDP(1e9), seed=3)
    np.testing.assert_allclose(dpci.load(out).params, exact.params, rtol=1e-3)
    exact = dpci.fit(
        empty, schema=SCHEMA, budget=dpci.ZCDP(1e9), seed=3, l2_strength=0.1, weights=dpci.Weights("visits", bound=3)
    )
    options = "--rho 1e9 --l2-strength 0.1 --replicates 2 --variability 0 --weights visits --weight-bound 3 --json"
    capsys.readouterr()
    assert main(["coverage", table, "--schema", schema, *options.split()]) == 0
    target = json.loads(capsys.readouterr().out)["by_param"]["target"]
    np.testing.assert_allclose(target, exact._record.params, rtol=0, atol=1e-3)


def test_a_released_category_of_that_name():
    column = UnlistedColumn(name="sex", reference="other", missing="drop")
    assert column.listed(["F", "drop"], source="").categories == ("F", "other")


KINDS = [
    {"age": age, "sex": sex, "ill": ill, "visits": visits}
    for age in (20.0, 80.0, None) for sex in ("F", "M", None) for ill, visits in (("no", 0.0), ("yes", 4.0))
]  # fmt: skip


def _terms(z, y, weights, params):
    """Gradient and Hessian of the logistic loss of each row, weighted."""
    s = expit(-y * (z @ params))
    return (-weights * y * s)[:, None] * z, (weights * s * (1.0 - s))[:, None, None] * z[:, :, None] * z[:, None, :]


def _minimiser(records, l2_strength):
    params = np.zeros(3)
    for _ in range(30):
        gradient, hessian = (part.mean(axis=0) for part in _terms(*records, params))
        step = np.linalg.solve(hessian + l2_strength * np.eye(3), gradient + l2_strength * params)
        params = params - step
    return params


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("budget", [dpci.PureDP(1e7), dpci.ZCDP(1e9), dpci.ApproxDP(1e7, 1e-6)])
def test_a_row_that_is_filled_emptied_or_replaced_moves_no_sum_beyond_its_sensitivity(budget, relation):
    tables = [pd.DataFrame([kind, *KINDS, *KINDS]) for kind in KINDS]
    records = [encode_table(table, None, SCHEMA) for table in tables]
    records = [(np.pad(X.values, ((0, 0), (0, 1)), constant_values=1.0), np.asarray(y), w) for X, y, w in records]
    empty, n = np.array([w[0] == 0.0 for _, _, w in records]), len(tables[0])
    # A row that weighs 0 is one that was removed.
    pairs = np.array([p for p in itertools.product(range(len(KINDS)), repeat=2) if relation[0] == "r" or empty[p[1]]]).T
    given = {"budget": budget, "seed": 1, "neighbors": "replace_one" if relation[0] == "r" else dpci.AddRemove(n)}
    fits = [
        dpci.fit(tables[0], schema=SCHEMA, l2_strength=0.3, rows=1.0, mechanism=name, **given)._record
        for name in ("objective", "output")
    ]
    lines = replace(SCHEMA, target=NumericTarget(column="visits", lower=0, upper=4))
    released = [dpci.regression.release(table, schema=lines, **given)._record for table in tables]

    def moved(values, kind):
        a, b = (np.array(values)[side] for side in pairs)
        return np.linalg.norm(a - b, axis=-1) if kind is None else np.linalg.norm(a - b, kind, axis=(1, 2))

    pure = isinstance(budget, dpci.PureDP)
    of = "nuc" if pure else "fro"
    attained = [
        (moved([_minimiser(record, 0.3) for record in records], None) / fits[1].steps[0].sensitivity).max(),
        (moved([one.matrix for one in released], of) / released[0].steps[0].sensitivity).max(),
    ]
    shifts, moments = [], []
    # The noise in moments is for all parameters as long as the released ones.
    for toward in np.random.default_rng(1).normal(size=(40, 3)):
        params = toward * np.linalg.norm(fits[0].params) / np.linalg.norm(toward)
        g, h = zip(*((part[0] for part in _terms(*record, params)) for record in records), strict=True)
        steep = [_terms(*record, 50.0 * params)[0][0] for record in records]
        shifts.append(moved(steep, None) / fits[0].steps[0].sensitivity)
        moment = fits[0].steps[1]
        both = moment.scale / moment.hessian_scale * moved(h, of), moved([np.outer(one, one) for one in g], of)
        moments.append((sum(both) if pure else np.hypot(*both)) / (n * moment.sensitivity))
    attained += [np.max(shifts), np.max(moments)]
    assert max(attained) <= 1.0 + 1e-6, attained
    assert (np.array(attained) >= [0.35, 0.95, 0.65, 0.85]).all(), attained


def test_counts_are_those_of_the_complete_rows():
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is what is compared with")
    # Means far below their bound, and two rows in three without an age: steps that took all rows for complete would
    # begin at ten times the mean count, and not end.
    rng = np.random.default_rng(5)
    known = rng.uniform(size=N) < 1 / 3
    table = WHOLE.assign(age=WHOLE["age"].where(known), visits=rng.poisson(np.exp(0.01 * AGE)))
    target = NumericTarget(column="visits", lower=0, upper=60, scale="unit")
    fit = dpci.fit(table, schema=replace(SCHEMA, target=target), loss="poisson", budget=dpci.ZCDP(1e9), seed=1)
    rows = np.column_stack([AGE, SEX == "M", np.ones(N)]).astype(float)
    expected = sm.GLM(table["visits"], rows, family=sm.families.Poisson(), freq_weights=known.astype(float)).fit()
    assert (np.abs(fit.params - expected.params) < 0.05 * expected.bse).all()
    np.testing.assert_allclose(fit.std_errors, expected.bse, rtol=0.1)
