"""The domain of the rows of a schema, in both encodings: it holds every row, and no smaller one does."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpci
from dpci.errors import InvalidInput
from dpci.rows import Blocks
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema

COLUMNS = (
    NumericColumn(name="age", lower=20, upper=60),
    CategoricalColumn(name="ward", categories=("A", "B", "C"), unknown="zeros"),
    CategoricalColumn(name="sex", categories=("F", "M"), reference="F", unknown="zeros"),
    NumericColumn(name="pay", lower=0, upper=1e6, scale="unit", transform="signed_log"),
    CategoricalColumn(name="job", categories=("x", "y", "z", "w"), reference="z", unknown="zeros"),
)
NORMED = Schema(columns=COLUMNS, target=ClassTarget(column="ill", negative=("no",), positive=("yes",)))
WHOLE = dataclasses.replace(NORMED, encoding="full_range")
TABLE = {
    "age": [20, 40, 60, 99],
    "ward": ["A", "B", "C", "?"],
    "sex": ["M", "F", "M", "F"],
    "pay": [0, 1e6, 999, 0],
    "job": ["z", "x", "w", "y"],
}
GROUPS = [(range(1, 4), 1.0), (range(6, 9), 1.0)]


def test_the_whole_range_is_one_unit():
    expected = [
        [-0.5, 1, 0, 0, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 1, 1, 0, 0],
        [0.5, 0, 0, 1, 1, math.log(1000) / math.log1p(1e6), 0, 0, 1],
        [0.5, 0, 0, 0, 0, 0, 0, 1, 0],
    ]
    np.testing.assert_allclose(WHOLE.features(TABLE), expected, rtol=1e-15)
    assert WHOLE.names == NORMED.names
    np.testing.assert_allclose(WHOLE.features(TABLE) * WHOLE.divisors, NORMED.features(TABLE) * NORMED.divisors)
    assert WHOLE.rows == Blocks([0.5, 1.0, 1.0], groups=GROUPS)
    assert WHOLE.row_norm == pytest.approx(math.sqrt(4.25))
    assert WHOLE.row_scale == 1.0


def test_unit_norm_is_as_it_was():
    bound = 1.0 / NORMED.row_scale
    assert NORMED.encoding == "unit_norm"
    assert NORMED.row_norm == 1.0
    assert NORMED.rows == Blocks([bound] * 3, groups=[(columns, bound) for columns, _ in GROUPS])
    assert 1.0 - 1e-11 < NORMED.rows.norm <= 1.0
    assert set(NORMED.divisors) == {NORMED.row_scale}


finite = st.floats(allow_nan=False, allow_infinity=False)
words = st.sampled_from(["A", "B", "C", "F", "M", "x", "y", "z", "w", ""])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(finite, words, words, finite, words), min_size=1))
def test_every_row_is_inside(rows):
    table = dict(zip(TABLE, zip(*rows, strict=True), strict=True))
    for schema in (NORMED, WHOLE):
        X, domain = schema.features(table), schema.rows
        for block, bound in enumerate(domain.block_bounds):
            columns = [j for j, member in enumerate(domain.members) if member == block]
            assert max(map(math.fsum, np.abs(X[:, columns]).tolist())) <= bound
        np.testing.assert_allclose(dpci.lowlevel.checked_rows(X, rows=domain), X, rtol=1e-12)


@pytest.mark.parametrize("schema", [NORMED, WHOLE], ids=lambda schema: schema.encoding)
def test_every_bound_is_reached(schema):
    X, domain = np.abs(schema.features(TABLE)), schema.rows
    found = [X[:, np.array(domain.members) == block].sum(axis=1).max() for block in range(len(domain.block_bounds))]
    assert found == list(domain.block_bounds)


def test_the_encoding_is_part_of_the_schema():
    assert Schema.from_dict(WHOLE.to_dict()) == WHOLE != NORMED
    assert WHOLE.to_dict()["encoding"] == "full_range"
    assert "encoding" not in NORMED.to_dict()
    with pytest.raises(InvalidInput, match="encoding must be one of 'unit_norm', 'full_range', got encoding='none'"):
        dataclasses.replace(NORMED, encoding="none")


@pytest.mark.parametrize("name", ["adult", "adult_demo", "bank", "credit_default", "kddcup99"])
def test_packaged_schemas(name):
    schema = dpci.datasets.load_schema(name)
    for each in (schema, dataclasses.replace(schema, encoding="full_range")):
        assert each.rows.n_columns == len(each.names) == len(each.divisors)
        assert len(each.rows.block_bounds) == len(each.columns)


def test_axes_of_a_histogram_follow_the_encoding():
    age, ward, sex, pay, job = dpci.baselines.axes_of(WHOLE, bins=4)
    assert (age.lower, age.upper, pay.lower, pay.upper) == (-0.5, 0.5, 0.0, 1.0)
    assert {ward.value, sex.value, job.value} == {1.0}


@pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning")
def test_a_fit_on_the_rows_of_a_schema():
    sample = dpci.datasets.load_adult_sample()
    schema = sample.schema
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.01, "classes": (-1, 1), "seed": 1}
    assert dpci.fit(sample.X, sample.y, rows=schema.rows, **keywords).rows == schema.rows
    whole = dataclasses.replace(schema, encoding="full_range")
    X = sample.X * schema.divisors / whole.divisors
    assert dpci.fit(X, sample.y, rows=whole.rows, **keywords).rows == whole.rows
    with pytest.raises(dpci.RowNormViolation):
        dpci.fit(X, sample.y, rows=schema.rows, **keywords)
