"""Odd arguments: for a legal one, something of another type, shape, layout or size."""

import array
import datetime as dt
import decimal
import fractions
import math
import warnings

import numpy as np
import pandas as pd
import scipy.sparse

import dpci
from support.odd_arrays import NUMBERS, odd_array

HUGE_COUNT = 10**6


class Stranger:
    """An object that can be turned into nothing."""


class AwkwardNumber(float):
    """A number that is no plain float."""


class NoArray:
    """Says that it is an array, and fails."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("no array after all")


def recursive_list():
    itself = [0.5]
    itself.append(itself)
    return itself


# Numbers, then what looks like one, then what does not. All are immutable or made anew by `odd_scalar`.
LIKE_NUMBERS = (
    *(
        True,
        False,
        np.True_,
        np.float16(1.0),
        np.float32(0.3),
        np.float64(0.5),
        np.float64("nan"),
        np.longdouble("1e4000"),
    ),
    *(np.int8(-1), np.uint8(200), np.int32(5), np.uint64(2**64 - 1), np.complex128(1j), 1 + 0j, decimal.Decimal("0.5")),
    *(decimal.Decimal("NaN"), decimal.Decimal("sNaN"), fractions.Fraction(1, 3), fractions.Fraction(10**400, 3)),
    *(AwkwardNumber(0.5), np.datetime64("NaT", "D"), np.timedelta64(1, "s"), dt.date(2020, 1, 1), np.ma.masked),
)
OTHERS = (
    *(
        None,
        "",
        "0.5",
        "nan",
        "logistic",
        "intercept",
        "x0",
        "a\0b",
        "\ud800",
        "é" * 1000,
        b"",
        b"0.5",
        bytearray(b"\xff"),
    ),
    *((), (0.5,), (0, 1), (1, 0), ("a", "b"), (0.8, 0.1, 0.1), (math.nan, 0.5, 0.5), (0.0, 0.5, 0.5), (0.5, -0.5, 1.0)),
    *(
        frozenset({1}),
        range(3),
        slice(None),
        Ellipsis,
        NotImplemented,
        float,
        dpci,
        pd.NA,
        pd.NaT,
        Stranger,
        Stranger(),
    ),
    *(NoArray(), len, np.float64, memoryview(b"abcd"), np.random.default_rng, dpci.InvalidInput),
    *(dpci.PureDP(1.0), dpci.PureDP(1e-300), dpci.PureDP(1e300), dpci.PureDP(50.0), dpci.ZCDP(0.5), dpci.ZCDP(1e-200)),
    *(dpci.ApproxDP(1.0, 1e-6), dpci.ApproxDP(1e-9, 1e-300), dpci.ApproxDP(80.0, 0.5), dpci.ApproxDP(1e-3, 0.999)),
    *(
        dpci.losses.Logistic(),
        dpci.losses.HuberHinge(h=0.5),
        dpci.losses.HuberHinge(h=1e-200),
        dpci.losses.SmoothHinge(s=0.1),
    ),
    *(
        dpci.losses.SmoothHinge(s=1e-6),
        dpci.losses.Hinge(),
        dpci.losses.Squared(target_bound=1.0),
        dpci.losses.SoftLogistic(),
    ),
    *(dpci.losses.Squared(target_bound=1e70), dpci.ObjectivePerturbation(), dpci.OutputPerturbation()),
    *(dpci.ObjectivePerturbation(noise="gaussian"), dpci.OutputPerturbation(noise="spherical_laplace")),
    *(
        "objective",
        "output",
        "joint",
        "separate",
        "none",
        "auto",
        "floor",
        "cautious",
        "tight",
        "paper",
        "error",
        "clip",
    ),
    *(
        "replace_one",
        "add_remove",
        "exact",
        "monte_carlo",
        "squared",
        "hinge",
        "huber_hinge",
        "smooth_hinge",
        "soft_logistic",
    ),
)
MADE_ANEW = (
    list,
    dict,
    set,
    object,
    recursive_list,
    lambda: [[]],
    lambda: [0.1, [0.2]],
    lambda: {"epsilon": 1.0},
    lambda: iter([0.5, 0.25, 0.25]),
    lambda: (0.5 for _ in range(3)),
    lambda: array.array("d", [0.5, 0.5]),
    lambda: lambda *arguments: arguments[0],
    lambda: np.array(0.5),
    lambda: np.array([0.5]),
    lambda: np.array([[0.5]]),
    lambda: np.array(["a", None], dtype=object),
    lambda: np.zeros((0,)),
    lambda: np.array([], dtype=object),
    lambda: pd.Series([0.5, 0.5]),
    lambda: pd.DataFrame({"a": [1.0]}),
    lambda: scipy.sparse.csr_array(np.eye(2)),
)


def odd_scalar(rng):
    """Return something that is not, or hardly, what any argument should be."""
    pool = rng.random()
    if pool < 0.5:
        return rng.choice(NUMBERS)
    if pool < 0.65:
        return rng.choice(LIKE_NUMBERS)
    if pool < 0.9:
        return rng.choice(OTHERS)
    return rng.choice(MADE_ANEW)()


def odd_like(rng, value):
    """Return an odd stand-in for a legal argument: arrays are mostly changed, everything else is mostly replaced."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy and pandas on what is done to the arrays here
        with np.errstate(all="ignore"):
            if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and rng.random() < 0.85:
                return odd_array(rng, value)
            if isinstance(value, float) and rng.random() < 0.3:
                return value * rng.choice((-1.0, 1e-12, 1e-3, 0.5, 0.999, 1.0 + 2.0**-52, 1.5, 10.0, 1e6, 1e12))
            return odd_scalar(rng)
