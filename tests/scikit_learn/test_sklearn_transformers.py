"""The transformers of dpci.sklearn: what they do to a row depends on public values and on that row alone."""

import dataclasses
import re
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import dpci
from dpci.errors import DpciWarning
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema
from dpci.sklearn.classifiers import PrivateLogisticRegression
from dpci.sklearn.transformers import PublicScaler, RowNormClipper
from support.sklearn_rows import make_rows

SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=18, upper=100),
        CategoricalColumn(name="sex", categories=("F", "M"), reference="F"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)
TABLE = {"age": [18, 59, 150], "sex": ["M", "F", "F"], "ill": ["no", "yes", "no"]}


def exact_square(row):
    """The squared norm of a row of floats without any rounding."""
    return sum(Fraction(float(value)) ** 2 for value in row)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bound", [1.0, 0.1, 7.3, 1e-30, 1e30])
def test_no_row_is_longer_than_the_bound(dtype, bound):
    rng = np.random.default_rng(3)
    rows = (rng.normal(size=(300, 7)) * 10.0 ** rng.uniform(-4, 6, size=(300, 1))).astype(dtype)
    rows[:50] /= np.linalg.norm(rows[:50], axis=1, keepdims=True)  # within rounding of 1
    for clipped in (
        RowNormClipper(bound).transform(rows),
        RowNormClipper(bound).transform(scipy.sparse.csr_array(rows)).toarray(),
    ):
        assert clipped.dtype == dtype
        assert max(exact_square(row) for row in clipped) <= Fraction(bound) ** 2
        norms = np.linalg.norm(rows.astype(float), axis=1)
        expected = rows * np.minimum(1.0, bound / norms)[:, None]
        np.testing.assert_allclose(clipped, expected, rtol=50 * np.finfo(dtype).eps)
        short = norms < bound * (1 - 1e-6)
        np.testing.assert_array_equal(clipped[short], rows[short])


def test_extreme_rows_neither_overflow_nor_vanish():
    rows = np.array([[1e308, 1e308], [5e-324, 0.0], [0.0, 0.0], [1.0, 0.0]])
    clipped = RowNormClipper(1.0).transform(rows)
    np.testing.assert_allclose(clipped[0], np.sqrt([0.5, 0.5]))
    np.testing.assert_array_equal(clipped[1:], rows[1:])


def test_a_clipped_table_passes_the_check_of_a_fit():
    X, y = make_rows()
    clipped = RowNormClipper(0.3).transform(X)
    dpci.fit(clipped, y, budget=dpci.PureDP(1.0), l2_strength=0.2, rows=0.3)
    with pytest.raises(dpci.RowNormViolation):
        dpci.fit(X, y, budget=dpci.PureDP(1.0), l2_strength=0.2, rows=0.3)


def test_tables_of_several_blocks():
    rows = np.random.default_rng(4).normal(size=(70_000, 8))
    expected = rows * np.minimum(1.0, 1.0 / np.linalg.norm(rows, axis=1))[:, None]
    for table in (rows, np.asfortranarray(rows)):
        np.testing.assert_allclose(RowNormClipper().transform(table), expected, rtol=1e-13)


def test_the_input_is_not_written_to():
    for rows in (np.full((2, 2), 3.0), scipy.sparse.csr_matrix(np.full((2, 2), 3.0))):
        before = rows.copy()
        RowNormClipper().transform(rows)
        assert abs(rows - before).max() == 0.0


def test_entries_of_sparse_rows_that_repeat_count_together():
    rows = scipy.sparse.csr_array((np.array([3.0, -3.0, 0.6]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    np.testing.assert_array_equal(RowNormClipper().transform(rows).toarray(), [[0.0, 0.6]])


@pytest.mark.parametrize("row_norm", [0.0, -1.0, np.nan, np.inf, "1", None])
def test_bounds_are_checked(row_norm):
    clipper = RowNormClipper(row_norm=row_norm)
    for call in (clipper.fit, clipper.transform):
        with pytest.raises(dpci.InvalidInput, match="row_norm must be"):
            call([[1.0]])


def test_names_pass_through_the_clipper():
    pd = pytest.importorskip("pandas", reason="no frames to be named")
    frame = pd.DataFrame({"a": [3.0, 0.1], "b": [4.0, 0.1]}, index=[7, 8])
    out = RowNormClipper().set_output(transform="pandas").fit_transform(frame)
    assert out.columns.tolist() == ["a", "b"]
    assert out.index.tolist() == [7, 8]


def test_the_clipper_takes_frames_without_a_fit():
    pd = pytest.importorskip("pandas", reason="no frames to be clipped")
    with warnings.catch_warnings(action="error"):  # scikit-learn's, of a fit without names
        out = RowNormClipper().transform(pd.DataFrame({"a": [3.0], "b": [4.0]}))
    np.testing.assert_allclose(out, [[0.6, 0.8]])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        RowNormClipper().transform([[np.nan]])


def test_the_scaler_is_the_schema_and_needs_no_fit():
    expected = SCHEMA.features(TABLE)
    np.testing.assert_array_equal(PublicScaler(SCHEMA).transform(TABLE), expected)
    np.testing.assert_array_equal(PublicScaler(SCHEMA).fit().transform(TABLE), expected)
    whole = dataclasses.replace(SCHEMA, columns=(dataclasses.replace(SCHEMA.columns[1], reference=None),))
    with pytest.warns(DpciWarning, match="an estimator without a ridge, .* got none for 'sex'") as caught:
        PublicScaler(whole).fit()
    assert caught[0].message.code == "no_reference"
    # A row is treated alike in any company.
    alone = {name: values[1:2] for name, values in TABLE.items()}
    np.testing.assert_array_equal(PublicScaler(SCHEMA).transform(alone), expected[1:2])
    assert clone(PublicScaler(SCHEMA)).schema == SCHEMA
    assert PublicScaler(SCHEMA).get_feature_names_out().tolist() == ["age", "sex=M"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_in_numbers_out(library):
    frames = pytest.importorskip(library, reason="no frames of this library")
    frame = frames.DataFrame(TABLE)
    expected = SCHEMA.features(TABLE)
    np.testing.assert_array_equal(PublicScaler(SCHEMA).fit_transform(frame), expected)
    out = PublicScaler(SCHEMA).set_output(transform=library).fit_transform(frame)
    assert list(out.columns) == ["age", "sex=M"]
    np.testing.assert_array_equal(out.to_numpy(), expected)
    estimator = PrivateLogisticRegression(l2_strength=9.0, classes=("no", "yes"))
    model = make_pipeline(PublicScaler(SCHEMA).set_output(transform=library), estimator).fit(frame, TABLE["ill"])
    assert model[-1].conf_int().names == ("age", "sex=M", "intercept")
    assert model[:-1].get_feature_names_out().tolist() == ["age", "sex=M"]


def test_the_scaler_beside_other_columns():
    pd = pytest.importorskip("pandas", reason="no frames to take columns of")
    both = make_column_transformer((PublicScaler(SCHEMA), ["age", "sex"]), remainder="drop")
    out = both.fit_transform(pd.DataFrame(TABLE))
    np.testing.assert_array_equal(out, SCHEMA.features(TABLE))
    assert both.get_feature_names_out().tolist() == ["publicscaler__age", "publicscaler__sex=M"]


def test_steps_that_the_page_calls_private_learn_nothing():
    page = (Path(__file__).parents[2] / "docs" / "sklearn.md").read_text(encoding="utf-8")
    (steps,) = re.findall(r"^\| (.*) \| nothing beyond what it was given \| yes \|$", page, re.MULTILINE)
    _, imputer = re.findall(r"`([^`]*)`", steps)
    fill = eval(imputer, {"SimpleImputer": SimpleImputer})
    # A column without any value stays: which columns are such is a fact about the data.
    np.testing.assert_array_equal(fill.fit_transform([[1.0, np.nan], [2.0, np.nan]]), [[1.0, 0.0], [2.0, 0.0]])


@pytest.mark.parametrize(
    ("schema", "table", "message"),
    [
        ("people.toml", TABLE, "schema must be a dpci.schema.Schema, got schema='people.toml'"),
        (SCHEMA, {"age": [1]}, "the table must have the column 'sex'"),
        (SCHEMA, np.ones((2, 2)), "a table must be a mapping of columns or a data frame"),
        (SCHEMA, {"age": ["x"], "sex": ["M"]}, "column 'age' must hold finite numbers"),
    ],
    ids=str,
)
def test_refusals(schema, table, message):
    with pytest.raises(dpci.InvalidInput, match=message):
        PublicScaler(schema).transform(table)
