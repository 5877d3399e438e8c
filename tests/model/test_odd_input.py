"""Odd input that is legal: other layouts, types and classes, very few rows, rows far out; all get right answers."""

import fractions

import numpy as np
import pandas as pd
import pytest

from dpci import InvalidInput
from support.small_fits import NAN, D, N, X, Y, fit, with_entry


@pytest.fixture(scope="module")
def result():
    return fit()


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def every_other_row(x):
    wide = np.zeros((2 * N, D))
    wide[::2] = x
    return wide[::2]


def unaligned(x):
    raw = np.zeros(x.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(np.float64).reshape(x.shape)
    view[:] = x
    return view


LAYOUTS = {
    "list": np.ndarray.tolist,
    "tuple of rows": lambda x: tuple(map(tuple, x)),
    "read-only": read_only,
    "Fortran order": np.asfortranarray,
    "every other row": every_other_row,
    "reversed twice": lambda x: x[::-1].copy()[::-1],
    "big-endian": lambda x: x.astype(">f8"),
    "unaligned": unaligned,
    "long double": lambda x: x.astype(np.longdouble),
    "matrix": np.asmatrix,
    "frame": pd.DataFrame,
    "frame of column blocks": lambda x: pd.DataFrame({str(i): x[:, i].copy() for i in range(D)}),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_answer(layout, result):
    np.testing.assert_array_equal(fit(LAYOUTS[layout](X)).params, result.params)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8"])
def test_every_numeric_type_gives_the_same_answer(dtype):
    ones = np.round(np.abs(X))
    expected = fit(ones, rows=2.0).params
    np.testing.assert_array_equal(fit(ones.astype(dtype), Y.astype(dtype), rows=2.0).params, expected)


def test_input_is_left_as_it_was():
    x, y = with_entry(3.0), Y.copy()
    fit(x, y, rows="clip")
    np.testing.assert_array_equal(x, with_entry(3.0))
    np.testing.assert_array_equal(y, Y)


@pytest.mark.parametrize("n", [1, 2])
def test_very_few_rows(n):
    found = fit(X[:n], Y[:n], classes=(0, 1))
    assert np.isfinite(np.asarray(found.conf_int())).all()


def test_intercept_alone():
    found = fit(X[:, :0])
    assert found.names == ("intercept",)
    assert np.isfinite(found.params).all()


def test_clip_takes_rows_far_out(result):
    big = fit(X * 1e100, rows="clip")
    assert np.isfinite(big.params).all()
    with pytest.raises(InvalidInput, match="X must be finite"):
        fit(with_entry(NAN), rows="clip")
    # Rows within the bound are not touched.
    np.testing.assert_array_equal(fit(rows="clip").params, result.params)


def test_numbers_of_other_classes():
    found = fit(l2_strength=fractions.Fraction(1, 2), seed=np.uint64(1), n_threads=np.int8(1), rows=np.float32(1))
    np.testing.assert_array_equal(found.params, fit().params)
