"""Rows with a missing value, which ``missing="drop"`` leaves out: they weigh 0, whatever else they hold."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.cli.main import main
from dpci.errors import InvalidInput
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
    again = dpci.PrivateFit.from_json(fit.to_json())
    assert (again.schema, again._record.weights) == (fit.schema, dpci.Weights(bound=1.0))
    target = NumericTarget(column="visits", lower=0, upper=4)
    line = dpci.fit(TABLE, schema=replace(SCHEMA, target=target), **EXACT)
    ols = sm.OLS(2.0 + ILL[COMPLETE], rows).fit()
    np.testing.assert_allclose(line.params, ols.params, rtol=1e-3, atol=1e-4)


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
def test_a_file_has_the_fit_of_its_table(tmp_path, schema):
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    parts = dpci.Chunks(lambda: ((TABLE.iloc[i : i + 700], None) for i in range(0, N, 700)), schema=GAPS)
    sources = [TABLE, tmp_path / "table.csv", *([parts] if schema is GAPS else [])]
    fits = [dpci.fit(source, schema=schema, budget=dpci.ZCDP(1.0), seed=3) for source in sources]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.params, fits[0].params, rtol=0, atol=1e-10)


def test_weights_of_complete_rows_are_kept():
    weights = RNG.uniform(0.5, 2.0, N)
    fit = dpci.fit(TABLE, schema=SCHEMA, weights=dpci.Weights(weights, bound=2.0), **EXACT)
    filled = TABLE.assign(age=TABLE["age"].fillna(33.0), sex=TABLE["sex"].fillna("F"))
    known = dpci.fit(filled, schema=SCHEMA, weights=dpci.Weights(weights * COMPLETE, bound=2.0), **EXACT)
    np.testing.assert_array_equal(fit.params, known.params)


def test_unlisted_categories_and_a_category_of_that_name():
    sex = UnlistedColumn(name="sex", reference="other", missing="drop")
    schema = PartialSchema(columns=(sex, SCHEMA.columns[0]), target=CLASSES)
    fit = dpci.fit(TABLE, schema=schema, budget=dpci.ApproxDP(5.0, 1e-6), seed=1)
    assert fit.schema.columns[0].categories == ("F", "M", "other")
    assert fit.schema.drops == ("sex", "age")
    named = CategoricalColumn(name="sex", categories=("F", "M", "drop"), reference="F", missing="drop")
    assert not drops(named)
    assert named.codes(np.array(["F", None], dtype=object)).tolist() == [0, 2]


def test_what_has_no_weights_refuses():
    check = str(SCHEMA.check(TABLE))
    assert check.count("missing: the row weighs 0") == 2
    assert "nothing would be refused" in check
    with pytest.raises(InvalidInput, match='missing="drop"'):
        dpci.fit(TABLE, schema=SCHEMA, **EXACT).predict(TABLE)
    with pytest.raises(InvalidInput, match="rows in parts have weights"):
        dpci.fit(dpci.Chunks([(TABLE, None)]), schema=SCHEMA, weights=dpci.Weights("visits", bound=3.0), **EXACT)
    with pytest.raises(InvalidInput, match=r"strata, whose rows all count"):
        dpci.fit_strata(TABLE, schema=SCHEMA, by="sex", budget=dpci.PureDP(1.0), n_public={"F": 1500, "M": 1500})


def test_a_part_without_any_value_and_commands(tmp_path):
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


def test_a_released_category_of_that_name():
    column = UnlistedColumn(name="sex", reference="other", missing="drop")
    assert column.listed(["F", "drop"], source="").categories == ("F", "other")


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
