"""Odd values and arrays that arguments may have: of any type, shape and size."""

import array
import datetime as dt
import decimal
import fractions
import math
import tempfile
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse

import dpci

NUMBERS = (
    0.0, -0.0, 0.25, 0.5, 1.0, 2.0, 1.0 + 2.0**-52, math.nan, math.inf, -math.inf, 5e-324, -5e-324, 1e-300, 1e-30, 1e-9,
    1e9, 1e17, 1e150, 1e300, 1.7976931348623157e308, -1.5, -1e-300, -1e308, 2.0**53 + 2, 2.0**-1022, 0.1, 10.0, 0, 1, 2,
    3, 7, -1, 100, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), 10**400, -(10**400),
)  # fmt: skip


class Subclass(np.ndarray):
    """An array with a class of its own."""


def odd_array(rng, value):
    """Return the array with other values, and every other time in another form."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        changed = rng.choice(_VALUES)(rng, np.asarray(value, dtype=np.float64))
        value = changed if changed is not None else value
    if rng.random() < 0.5:
        return value
    return rng.choice(_FORMS)(rng, value)


def _entries(rng, value):
    changed = value.copy()
    for _ in range(rng.choice((1, 1, 2, 10))):
        if changed.size:
            changed.flat[rng.randrange(changed.size)] = rng.choice(_ENTRIES)
    return changed


def _scaled(rng, value):
    return value * rng.choice((0.0, -0.0, -1.0, 1.0 + 2.0**-50, 1.5, 1e-320, 1e-160, 1e-8, 1e8, 1e154, 1e200, 1e308))


def _fewer(rng, value):
    return value[: rng.choice((0, 1, 2, max(value.shape[0] - 1, 0)))] if value.ndim else value


def _other_width(rng, value):
    if value.ndim != 2:
        return value
    return np.tile(value, (1, rng.choice((0, 2, 3)))) if rng.random() < 0.5 else value[:, : rng.choice((0, 1))]


def _equal_rows(_, value):
    return np.repeat(value[:1], value.shape[0], axis=0) if value.ndim and value.size else value


def _rounded(rng, value):
    return np.round(value, rng.choice((0, 1)))


def _one_sign(rng, value):
    return np.abs(value) * rng.choice((1.0, -1.0))


def _constant(rng, value):
    return np.full_like(value, rng.choice((0.0, -0.0, 1.0, -1.0, 0.5, math.nan, math.inf, 5e-324, 1e308)))


_ENTRIES = (*(number for number in NUMBERS if isinstance(number, float)), 0.999, -1.0, 1e154, 1e-160, 1e-308)
_VALUES = (_entries, _entries, _entries, _scaled, _fewer, _other_width, _equal_rows, _rounded, _one_sign, _constant)


def _strided(rng, value):
    if value.ndim == 0:
        return value
    wide = np.zeros((2 * value.shape[0], *value.shape[1:]))
    wide[::2] = value
    return wide[::2] if rng.random() < 0.5 else value[::-1]


def _unaligned(_, value):
    raw = np.zeros(value.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(np.float64).reshape(value.shape)
    view[...] = value
    return view


def _read_only(_, value):
    changed = value.copy()
    changed.flags.writeable = False
    return changed


def _dtype(rng, value):
    finite = np.nan_to_num(value, nan=0.0, posinf=1.0, neginf=-1.0)
    kinds = "? i1 u1 i2 i8 u8 f2 f4 >f4 >f8 >i8 g c16 O U8 S8 m8[s] M8[s] V8"
    name = rng.choice(kinds.split())
    if name in {"m8[s]", "M8[s]"}:
        finite = finite.clip(-1e9, 1e9).astype(np.int64)
    return (value if name in {"f2", "f4", "g", "c16", "O"} else finite).astype(name)


def _dimensions(rng, value):
    return rng.choice((value[np.newaxis], value[..., np.newaxis], value.reshape(-1), value.reshape(-1, 1), value.T))


def _masked(rng, value):
    return np.ma.masked_array(value, mask=rng.random() < 0.5)


def _structured(_, value):
    return np.rec.fromarrays(np.atleast_2d(value)) if value.size else value


def _as_list(rng, value):
    rows = value.tolist()
    if isinstance(rows, list) and rows and rng.random() < 0.5:
        rows[rng.randrange(len(rows))] = rng.choice((None, "x", [], [1.0], math.nan, {}, 10**400))
    return rows if rng.random() < 0.7 or not isinstance(rows, list) else tuple(rows)


def _iterator(_, value):
    return iter(value.tolist()) if value.ndim else value


def _frame(rng, value):
    if value.ndim == 1:
        return pd.Series(
            value, index=range(len(value), 0, -1), dtype=rng.choice(("f8", "Float64", "object", "category", "string"))
        )
    if value.ndim != 2:
        return value
    width = value.shape[1]
    columns = rng.choice(
        (
            list(range(width)),
            ["a"] * width,
            ["intercept", *range(width)][:width],
            [("a", i) for i in range(width)],
            [None, *range(width)][:width],
        )
    )
    frame = pd.DataFrame(value, columns=columns)
    if width and rng.random() < 0.4:
        frame.isetitem(rng.randrange(width), rng.choice(("text", None, pd.NA, True, 1 + 1j, pd.Timestamp(0), 3)))
    return frame if rng.random() < 0.7 else frame.convert_dtypes()


def _other_frame(rng, value):
    """A frame or a series of polars or pyarrow, of any numeric type, at times with something else in it."""
    numbers = [float(v) for v in value.flat]
    if numbers and rng.random() < 0.4:
        numbers[rng.randrange(len(numbers))] = None
    if value.ndim == 1:
        return rng.choice((pl.Series, pa.array, lambda v: pa.chunked_array([v])))(numbers)
    if value.ndim != 2 or not value.shape[1]:
        return value
    width = value.shape[1]
    names = rng.choice((list("abcdefgh"), ["intercept", *"bcdefgh"]))
    columns = {f"{names[j % 8]}{j // 8 or ''}": numbers[j::width] for j in range(width)}
    frame = pl.DataFrame(columns)
    if rng.random() < 0.5:
        dtype = rng.choice((pl.Float32, pl.Boolean, pl.Int128, pl.String, pl.Date, pl.Decimal(38, 9)))
        frame = frame.with_columns(pl.nth(rng.randrange(width)).cast(dtype, strict=False))
    if rng.random() < 0.1:
        return frame.lazy()
    return frame if rng.random() < 0.5 or pl.Int128 in frame.dtypes else frame.to_arrow()


def _mapped(rng, value):
    if not value.size:
        return value
    with tempfile.NamedTemporaryFile() as file:
        return _filled(np.memmap(file, rng.choice(("f4", "f8", ">f8", "i2")), "w+", shape=value.shape), value)


def _filled(target, value):
    with np.errstate(invalid="ignore", over="ignore"):
        target[...] = value
    return target


def _sparse(rng, value):
    if value.ndim != 2:
        return value
    kind = rng.choice(("csr", "csc", "coo", "bsr", "dia", "dok", "lil"))
    with_class = rng.choice((f"{kind}_array", f"{kind}_matrix"))
    with np.errstate(over="ignore"):
        return getattr(scipy.sparse, with_class)(value.astype(rng.choice(("f4", "f8"))))


def _damaged_sparse(rng, value):
    if value.ndim != 2 or not value.size:
        return value
    matrix = rng.choice((scipy.sparse.csr_array, scipy.sparse.csc_matrix))(value)
    part = rng.choice((matrix.indices, matrix.indptr))
    if len(part):
        part[rng.randrange(len(part))] = rng.choice((-1, 0, 1, 10**6, 2**31 - 1, -(2**31)))
    if rng.random() < 0.3:
        matrix.data = matrix.data.astype(rng.choice(("f4", "i8", "c16", "?")))
    return matrix


_FORMS = (
    _strided, _unaligned, _read_only, _dtype, _dtype, _dimensions, _masked, _structured, _as_list, _iterator, _frame,
    _other_frame, _mapped, _sparse, _damaged_sparse, lambda _, value: np.asfortranarray(value),
    lambda _, value: np.asmatrix(value) if value.ndim <= 2 else value, lambda _, value: value.view(Subclass),
    lambda _, value: memoryview(np.ascontiguousarray(value)), lambda _, value: value.tobytes(),
    lambda _, value: np.broadcast_to(value, (3, *value.shape)), lambda _, value: {"a": value},
)  # fmt: skip


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
    True, False, np.True_, np.float16(1.0), np.float32(0.3), np.float64(0.5), np.float64("nan"),
    np.longdouble("1e4000"), np.int8(-1), np.uint8(200), np.int32(5), np.uint64(2**64 - 1), np.complex128(1j), 1 + 0j,
    decimal.Decimal("0.5"), decimal.Decimal("NaN"), decimal.Decimal("sNaN"), fractions.Fraction(1, 3),
    fractions.Fraction(10**400, 3), AwkwardNumber(0.5), np.datetime64("NaT", "D"), np.timedelta64(1, "s"),
    dt.date(2020, 1, 1), np.ma.masked,
)  # fmt: skip
OTHERS = (
    None, "", "0.5", "nan", "logistic", "intercept", "x0", "a\0b", "\ud800", "é" * 1000, b"", b"0.5",
    bytearray(b"\xff"), (), (0.5,), (0, 1), (1, 0), ("a", "b"), (0.8, 0.1, 0.1), (math.nan, 0.5, 0.5), (0.0, 0.5, 0.5),
    (0.5, -0.5, 1.0), frozenset({1}), range(3), slice(None), Ellipsis, NotImplemented, float, dpci, pd.NA, pd.NaT,
    Stranger, Stranger(), NoArray(), len, np.float64, memoryview(b"abcd"), np.random.default_rng, dpci.InvalidInput,
    dpci.PureDP(1.0), dpci.PureDP(1e-300), dpci.PureDP(1e300), dpci.PureDP(50.0), dpci.ZCDP(0.5), dpci.ZCDP(1e-200),
    dpci.ApproxDP(1.0, 1e-6), dpci.ApproxDP(1e-9, 1e-300), dpci.ApproxDP(80.0, 0.5), dpci.ApproxDP(1e-3, 0.999),
    dpci.losses.Logistic(), dpci.losses.HuberHinge(h=0.5), dpci.losses.HuberHinge(h=1e-200),
    dpci.losses.SmoothHinge(s=0.1), dpci.losses.SmoothHinge(s=1e-6), dpci.losses.Hinge(),
    dpci.losses.Squared(target_bound=1.0), dpci.losses.SoftLogistic(), dpci.losses.Squared(target_bound=1e70),
    dpci.ObjectivePerturbation(), dpci.OutputPerturbation(), dpci.ObjectivePerturbation(noise="gaussian"),
    dpci.OutputPerturbation(noise="spherical_laplace"), "objective", "output", "joint", "separate", "none", "auto",
    "floor", "cautious", "tight", "paper", "error", "clip", "replace_one", "add_remove", "exact", "monte_carlo",
    "squared", "hinge", "huber_hinge", "smooth_hinge", "soft_logistic",
)  # fmt: skip
MADE_ANEW = (
    list, dict, set, object, recursive_list, lambda: [[]], lambda: [0.1, [0.2]], lambda: {"epsilon": 1.0},
    lambda: iter([0.5, 0.25, 0.25]), lambda: (0.5 for _ in range(3)), lambda: array.array("d", [0.5, 0.5]),
    lambda: lambda *arguments: arguments[0], lambda: np.array(0.5), lambda: np.array([0.5]), lambda: np.array([[0.5]]),
    lambda: np.array(["a", None], dtype=object), lambda: np.zeros((0,)), lambda: np.array([], dtype=object),
    lambda: pd.Series([0.5, 0.5]), lambda: pd.DataFrame({"a": [1.0]}), lambda: scipy.sparse.csr_array(np.eye(2)),
)  # fmt: skip


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
    # NumPy and pandas on what is done to the arrays here.
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and rng.random() < 0.85:
            return odd_array(rng, value)
        if isinstance(value, float) and rng.random() < 0.3:
            return value * rng.choice((-1.0, 1e-12, 1e-3, 0.5, 0.999, 1.0 + 2.0**-52, 1.5, 10.0, 1e6, 1e12))
        return odd_scalar(rng)
