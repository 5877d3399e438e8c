"""Contrasts, hypotheses and their values with labels are read by them, never by position against them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpci
from support.fits import SETTINGS, make_rows

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")

NAMES = ["age", "hours", "rate", "intercept"]


@pytest.fixture(scope="module")
def result():
    X, y = make_rows()
    return dpci.fit(pd.DataFrame(X, columns=NAMES[:3]), y, **SETTINGS)


SERIES = pd.Series({"intercept": 1.0, "hours": -2.0})
FRAME = pd.DataFrame([[0.5, 0.0, 3.0, -1.0], [1.0, 1.0, 0.0, 0.0]], columns=["rate", "age", "intercept", "hours"])


@pytest.mark.parametrize(
    ("contrast", "rows"),
    [
        (SERIES, [[0, -2, 0, 1]]),
        ([SERIES, SERIES[:1]], [[0, -2, 0, 1], [0, 0, 0, 1]]),
        (FRAME, [[0, -1, 0.5, 3], [1, 0, 1, 0]]),
        (pl.DataFrame(FRAME.to_dict("list")), [[0, -1, 0.5, 3], [1, 0, 1, 0]]),
        (pa.table(FRAME.to_dict("list")), [[0, -1, 0.5, 3], [1, 0, 1, 0]]),
        # Without names there is nothing but the position.
        (pd.DataFrame(np.eye(4)), np.eye(4)),
        (pd.Series([1.0, 0.0, 0.0, 0.0]), [[1, 0, 0, 0]]),
    ],
)
def test_numbers_stand_at_the_parameters_of_their_labels(result, contrast, rows):
    expected = result.conf_int(contrast=np.array(rows, dtype=float))
    for got in (result.conf_int(contrast=contrast), result.conf_int(contrast=contrast, simultaneous="max_z")):
        np.testing.assert_array_equal(got.estimate, expected.estimate)
        assert got.names == expected.names
    np.testing.assert_array_equal(result.wald_test(contrast).estimate, expected.estimate)


@pytest.mark.parametrize(
    "names",
    [
        pd.Index(["hours", "age"]),
        np.array(["hours", "age"]),
        np.array(["hours", "age"], dtype=object),
        pd.Series(["hours", "age"], index=["a", "b"]),
        pl.Series(["hours", "age"]),
    ],
    ids=lambda names: f"{type(names).__module__}.{type(names).__name__}-{names.dtype}",
)
def test_names_may_be_in_an_array(result, names):
    assert result.conf_int(contrast=names).names == ("hours", "age")
    assert result.wald_test(names).hypothesis == ("hours", "age")


def test_labels_that_name_no_parameter_are_refused(result):
    with pytest.raises(dpci.InvalidInput, match=r"labels of contrast must be names .* got 'Age' \(use to_numpy\(\)"):
        result.conf_int(contrast=pd.Series([1.0, 0, 0, 0], index=["Age", *NAMES[1:]]))
    with pytest.raises(dpci.InvalidInput, match="the labels of hypothesis must differ, got age, age"):
        result.wald_test(pd.Series([1.0, 2.0], index=["age", "age"]))


def test_values_go_with_their_rows(result):
    value = pd.Series({"age": 1.0, "rate": 2.0})
    assert result.wald_test(["age", "rate"], value).value.tolist() == [1.0, 2.0]
    assert result.wald_test(np.eye(4)[:2], value).value.tolist() == [1.0, 2.0]
    with pytest.raises(dpci.InvalidInput, match=r"of the hypothesis \(rate, age\), got age, rate"):
        result.wald_test(["rate", "age"], value)
