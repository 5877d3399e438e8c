"""Fits of tables through a schema: the same release from every kind of table, and a model that knows its schema."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.errors import InvalidInput, ReleaseFailed
from dpci.released import model as released_model
from dpci.schema import CategoricalColumn, NumericColumn, NumericTarget, Schema
from support.ill import SCHEMA, people
from support.keywords import assembled
from support.saved import rewritten

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
KEYWORDS = {"budget": dpci.PureDP(1.0), "l2_strength": 0.05, "seed": 1}
TABLE = people()
OTHER = dataclasses.replace(
    SCHEMA, columns=(NumericColumn(name="age", lower=0, upper=100, unit="year"), *SCHEMA.columns[1:])
)


@pytest.fixture(scope="module")
def result():
    return dpci.fit(TABLE, schema=SCHEMA, **KEYWORDS)


def test_a_schema_gives_what_its_encoded_rows_give(result):
    X, y, names = SCHEMA.transform(TABLE)
    encoded = dpci.fit(X, y, classes=(-1, 1), rows=SCHEMA.rows, **KEYWORDS)
    np.testing.assert_array_equal(result.scaled.params, encoded.params)
    assert result.names == (*names, "intercept")
    assert result.classes == ("no", "yes|probably")
    assert not result.privacy["classes_inferred"]
    assert result.schema == SCHEMA
    assert encoded.schema is None


def test_every_kind_of_table_gives_the_same_release(result, tmp_path):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    dask = pytest.importorskip("dask.dataframe")
    TABLE.to_csv(tmp_path / "people.csv", index=False)
    TABLE.to_parquet(tmp_path / "people.parquet")
    for table in (
        dict(TABLE),
        TABLE.to_records(index=False),
        polars.from_pandas(TABLE),
        pyarrow.table(TABLE),
        tmp_path / "people.csv",
        str(tmp_path / "people.parquet"),
        dpci.Chunks.from_csv(tmp_path / "people.csv", schema=SCHEMA),
        dpci.Chunks([(TABLE[:700], None), (TABLE[700:].drop(columns="ill"), TABLE.ill[700:])]),
        dask.from_pandas(TABLE, npartitions=2),
    ):
        found = dpci.fit(table, schema=SCHEMA, **KEYWORDS)
        np.testing.assert_allclose(found.params, result.params, atol=1e-8, err_msg=str(type(table)))
        assert found.classes == result.classes
        assert found.schema == SCHEMA
    apart = dpci.fit(TABLE.drop(columns="ill"), TABLE.ill, schema=SCHEMA, **KEYWORDS)
    np.testing.assert_array_equal(apart.params, result.params)


def test_a_model_encodes_tables_by_its_own_schema(result):
    X = SCHEMA.features(TABLE)
    read = dpci.PrivateFit.from_json(result.to_json())
    for model in (result, read):
        # Some columns, in another order, are enough.
        for table in (TABLE, TABLE[["dose", "sex", "age"]], dict(TABLE)):
            np.testing.assert_array_equal(model.decision_function(table), result.decision_function(X))
            np.testing.assert_array_equal(model.predict_proba(table), result.predict_proba(X))
        assert set(model.predict(TABLE)) == {"no", "yes|probably"}
        bounds = np.asarray(model.predict_conf_int(TABLE[:5]))
        np.testing.assert_array_equal(bounds, np.asarray(result.predict_conf_int(X[:5])))
    assert read.schema == SCHEMA
    assert read.to_json() == result.to_json()


def test_a_model_predicts_for_files(result, tmp_path, monkeypatch):
    monkeypatch.setattr(released_model, "_ROWS", 700)  # several parts
    table = TABLE.drop(columns=["ill", "other"])
    table.to_csv(tmp_path / "people.csv", index=False)
    np.testing.assert_allclose(result.predict_proba(tmp_path / "people.csv"), result.predict_proba(TABLE), rtol=1e-12)
    bounds = [np.asarray(result.predict_conf_int(rows)) for rows in (str(tmp_path / "people.csv"), TABLE)]
    np.testing.assert_allclose(*bounds, rtol=1e-9)
    table.drop(columns="dose").to_csv(tmp_path / "short.csv", index=False)
    with pytest.raises(InvalidInput, match=r"column 'dose'"):
        result.predict(tmp_path / "short.csv")
    for path in ("-", tmp_path):
        with pytest.raises(InvalidInput, match="the path of a table must be that of a file"):
            result.predict(path)
    without = dpci.fit(*SCHEMA.transform(TABLE)[:2], classes=(-1, 1), **KEYWORDS)
    with pytest.raises(InvalidInput, match="X must hold rows if the model has no schema, got the path"):
        without.predict(tmp_path / "people.csv")


def test_numbers_are_predicted_in_the_unit_of_the_target(tmp_path):
    """Predictions of both ways to fit a squared loss, from tables and from files, with their intervals."""
    table = TABLE.assign(score=100 + 0.7 * TABLE.age - 3 * TABLE.dose)
    table.to_csv(tmp_path / "people.csv", index=False)
    schema = dataclasses.replace(SCHEMA, target=NumericTarget(column="score", lower=0.0, upper=200.0))
    for keywords in ({"mechanism": dpci.ObjectivePerturbation(radius=20.0), "l2_strength": 1e-6}, {}):
        fitted = dpci.fit(table, schema=schema, loss="squared", budget=dpci.PureDP(1e8), seed=1, **keywords)
        predicted = fitted.predict(tmp_path / "people.csv")
        np.testing.assert_allclose(predicted, table.score, atol=0.1)
        # Every row has intervals of its own to compute.
        intervals = fitted.predict_conf_int(table[:100])
        np.testing.assert_allclose(intervals.estimate, predicted[:100], rtol=1e-9)
        assert (intervals.length > 0).all()
        assert intervals.length.max() < 1.0
    again = dpci.fit(table, schema=schema, loss="squared", budget=dpci.PureDP(1e8), seed=2)
    with pytest.raises(InvalidInput, match="target must be 'regularised' for results of LinearFit"):
        dpci.compare(fitted, again, target="unregularised")


def test_chunks_hand_their_schema_to_the_fit(result, tmp_path):
    TABLE.to_csv(tmp_path / "people.csv", index=False)
    found = dpci.fit(dpci.Chunks.from_csv(tmp_path / "people.csv", schema=SCHEMA), **KEYWORDS)
    np.testing.assert_allclose(found.params, result.params, atol=1e-8)
    assert (found.schema, found.classes) == (SCHEMA, result.classes)


def test_another_schema_is_an_error(result, tmp_path):
    relabelled = dataclasses.replace(
        SCHEMA, target=dataclasses.replace(SCHEMA.target, column="was_ill"), title="People"
    )
    for use in (result.decision_function, result.predict, result.predict_proba, result.predict_conf_int):
        use(TABLE[:3], schema=relabelled)
        with pytest.raises(InvalidInput, match="schema must be that of the fit, or one of equal columns"):
            use(TABLE[:3], schema=OTHER)
    without = dpci.fit(*SCHEMA.transform(TABLE)[:2], classes=(-1, 1), **KEYWORDS)
    with pytest.raises(InvalidInput, match="schema must be None for a model without a schema"):
        without.predict(SCHEMA.features(TABLE), schema=SCHEMA)
    TABLE.to_csv(tmp_path / "people.csv", index=False)
    chunks = dpci.Chunks.from_csv(tmp_path / "people.csv", schema=OTHER)
    with pytest.raises(InvalidInput, match="schema must be the one that the chunks were made with"):
        dpci.fit(chunks, schema=SCHEMA, **KEYWORDS)


def test_models_of_two_schemas_are_not_compared(result):
    other = dpci.fit(TABLE, schema=OTHER, **{**KEYWORDS, "seed": 2})
    with pytest.raises(InvalidInput, match="two results must have schemas of equal columns"):
        dpci.compare(result, other)
    same = dpci.fit(TABLE, schema=SCHEMA, **{**KEYWORDS, "seed": 2})
    assert dpci.compare(result, same, shared_data=True).names == result.names


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"schema": "people.toml"}, "schema must be a dpci.schema.Schema or None, got schema='people.toml'"),
        (
            {"schema": SCHEMA, "classes": ("yes", "no")},
            r"classes must be those of the schema, \('no', 'yes\|probably'\)",
        ),
        ({"schema": SCHEMA, "rows": 2.0}, r"rows must be those of the schema, Ball\(norm=1.0\), got Ball\(norm=2.0\)"),
        (
            {"schema": SCHEMA, "loss": "squared", "radius": 1.0},
            "loss must take two classes where the schema's target has two classes",
        ),
    ],
)
def test_contradictions(keywords, message):
    with pytest.raises(InvalidInput, match=message):
        dpci.fit(TABLE, **assembled(**KEYWORDS, **keywords))


def test_a_number_as_target():
    dosed = Schema(columns=SCHEMA.columns[:2], target=NumericTarget(column="dose", lower=0, upper=5))
    with pytest.raises(InvalidInput, match=r"target is a number: pass loss='squared' \(dpci fit --loss squared\)"):
        dpci.fit(TABLE, schema=dosed, loss="logistic", **KEYWORDS)
    usual = dpci.fit(TABLE, schema=dosed, **KEYWORDS)
    assert isinstance(usual, dpci.regression.LinearFit)
    result = dpci.fit(TABLE, **assembled(schema=dosed, loss="squared", radius=5.0, **KEYWORDS))
    assert result.classes is None


def test_tables_that_do_not_fit():
    with pytest.raises(InvalidInput, match="the table must have the column 'dose'"):
        dpci.fit(TABLE.drop(columns="dose"), schema=SCHEMA, **KEYWORDS)
    with pytest.raises(
        InvalidInput, match=r"X must be a table with named columns where there is a schema .*got ndarray"
    ):
        dpci.fit(SCHEMA.features(TABLE), TABLE.ill, schema=SCHEMA, **KEYWORDS)
    with pytest.raises(InvalidInput, match="the index of y must be that of X"):
        dpci.fit(TABLE.drop(columns="ill"), TABLE.ill[::-1], schema=SCHEMA, **KEYWORDS)


def test_private_errors_cover_the_encoding():
    """Mistakes in a value are found after the budget is spent, and is not told."""
    ledger = dpci.Ledger(dpci.PureDP(5.0), errors="private")
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.05, "rows": "clip", "ledger": ledger}
    wrong = TABLE.assign(age=["?", *TABLE.age[1:]])
    with pytest.raises(ReleaseFailed):
        dpci.fit(wrong, schema=SCHEMA, **keywords)
    assert ledger.spent["epsilon"] == pytest.approx(1.0)
    assert dpci.fit(TABLE, schema=SCHEMA, **keywords).private


def test_the_digest_is_of_what_a_schema_does():
    assert SCHEMA.digest == dataclasses.replace(SCHEMA, title="People", source="a census").digest
    floats = (NumericColumn(name="age", lower=20.0, upper=60.0, source="known", unit="month"), *SCHEMA.columns[1:])
    assert SCHEMA.digest == dataclasses.replace(SCHEMA, columns=floats).digest
    different = [
        OTHER,
        dataclasses.replace(SCHEMA, columns=SCHEMA.columns[::-1]),
        dataclasses.replace(SCHEMA, target=dataclasses.replace(SCHEMA.target, positive=("yes",))),
        *(
            dataclasses.replace(SCHEMA, columns=(SCHEMA.columns[0], column, SCHEMA.columns[2]))
            for column in (
                CategoricalColumn(name="sex", categories=("F", "M"), reference="M"),
                CategoricalColumn(name="sex", categories=("M", "F"), reference="F"),
                CategoricalColumn(name="sex", categories=("F", "M"), reference="F", unknown="zeros"),
            )
        ),
    ]
    assert len({schema.digest for schema in (SCHEMA, *different)}) == 1 + len(different)


def test_saved_models_that_contradict_their_schema(result):
    saved = json.loads(result.to_json())
    changed = dict(saved["table"], schema=OTHER.to_dict(defaults=True))
    with pytest.raises(InvalidInput, match="table must have the digest of its schema"):
        dpci.PrivateFit.from_json(rewritten({**saved, "table": changed}))
    with pytest.raises(InvalidInput, match="the columns must be those of the schema"):
        dpci.PrivateFit.from_json(rewritten({**saved, "names": ["a", "b", "c", "intercept"]}))
    numeric = Schema(columns=SCHEMA.columns, target=NumericTarget(column="bill", lower=0, upper=5))
    table = {"digest": numeric.digest, "schema": numeric.to_dict(defaults=True)}
    with pytest.raises(InvalidInput, match="the target of the schema must be of two classes"):
        dpci.PrivateFit.from_json(rewritten({**saved, "table": table}))


def test_frames_without_a_schema_are_still_matrices():
    X, y, names = SCHEMA.transform(TABLE)
    result = dpci.fit(pd.DataFrame(X, columns=names), y, classes=(-1, 1), **KEYWORDS)
    np.testing.assert_array_equal(result.decision_function(pd.DataFrame(X, columns=names)), result.decision_function(X))
