"""Bad input has its own clear error, and odd input that is legal the right answer; nothing panics or hangs."""

import fractions

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import dpci
from dpci import InvalidInput, RegularizationTooSmall, RowNormViolation
from dpci.losses import HuberHinge, SmoothHinge
from support.small_fits import BUDGET, INF, NAN, D, N, X, Y, fit, with_entry


def broken_csr():
    """Indices changed behind SciPy's back."""
    rows = scipy.sparse.csr_array(X)
    rows.indices[5] = 10**6
    return rows


ROWS = {
    "nan": (with_entry(NAN), r"X must be finite, got NaN in row 7, column 2"),
    "inf": (with_entry(INF), r"X must be finite, got inf in row 7, column 2"),
    "minus inf": (with_entry(-INF), r"X must be finite, got -inf in row 7"),
    "beyond clipping": (with_entry(1e308), r"norm at most 1e150, even with"),
    "huge": (with_entry(1e100), r"every row of X must have Euclidean norm at most row_norm=1\b.* in row 7"),
    "above the bound": (with_entry(1.5), r"every row of X must have Euclidean norm at most row_norm=1\b.* in row 7"),
    "one-dimensional": (X[:, 0], r"X must be two-dimensional.*got shape \(60,\)"),
    "three-dimensional": (X[None], r"X must be two-dimensional.*got shape \(1, 60, 3\)"),
    "scalar": (3.0, r"X must be two-dimensional.*got shape \(\)"),
    "None": (None, r"X must hold booleans, integers or floats, got dtype object"),
    "strings": (X.astype(str), r"X must hold booleans, integers or floats, got dtype <U"),
    "bytes": (X.astype("S4"), r"X must hold booleans, integers or floats, got dtype \|S4"),
    "objects": (X.astype(object), r"X must hold booleans, integers or floats, got dtype object"),
    "complex": (X.astype(complex), r"X must hold booleans, integers or floats, got dtype complex128"),
    "dates": (np.zeros((N, D), "M8[s]"), r"X must hold booleans, integers or floats, got dtype datetime64"),
    "ragged": ([[1.0, 2.0], [3.0]], r"X must be a rectangular array of numbers, got list"),
    "list of strings": ([["a", "b"]] * N, r"X must hold booleans, integers or floats, got dtype <U1"),
    "sparse complex": (scipy.sparse.csr_array(X.astype(complex)), r"X must hold .* floats, got dtype complex128"),
    "sparse nan": (scipy.sparse.csc_array(with_entry(NAN)), r"X must be finite, got NaN in row 7, column 2"),
    "sparse above the bound": (
        scipy.sparse.coo_array(with_entry(1.5)),
        r"must have Euclidean norm at most .* in row 7",
    ),
    "sparse one-dimensional": (scipy.sparse.coo_array(X[:, 0]), r"X must be two-dimensional.*got shape \(60,\)"),
    "sparse without rows": (scipy.sparse.csr_array(X[:0]), r"at least one row and one parameter"),
    "sparse broken": (broken_csr(), r"a sparse X must have valid indices, got csr"),
    "masked": (np.ma.masked_greater(X, 0.4), r"X must have no masked values"),
    "no rows": (X[:0], r"at least one row and one parameter, got 0 rows and 4 parameters"),
    "frame of strings": (pd.DataFrame({"a": ["x"] * N}), r"columns of X must be numeric, got dtype .* in column 'a'"),
    "frame of categories": (
        pd.DataFrame({"a": pd.Categorical([1, 2] * 30)}),
        r"columns of X must be numeric, got dtype category in column 'a'",
    ),
    "frame with missing": (
        pd.DataFrame({"a": pd.array([1, None] * 30, dtype="Int64")}),
        r"X must have no missing values, got one in row 1 of column 'a'",
    ),
    "repeated column": (pd.DataFrame(X, columns=["a", "b", "a"]), r"must have different names, got 'a' twice"),
    "column called intercept": (pd.DataFrame(X, columns=["a", "b", "intercept"]), r"must not be called 'intercept'"),
}

TARGETS = {
    "two-dimensional": (Y[:, None], {}, r"y must be one-dimensional, got shape \(60, 1\)"),
    "scalar": (1, {}, r"y must be one-dimensional, got shape \(\)"),
    "None": (None, {}, r"y must be given unless X holds the targets, got y=None"),
    "short": (Y[:-1], {}, r"y must have one entry for each row of X, got 59 entries and 60 rows"),
    "long": (np.append(Y, 0), {}, r"y must have one entry for each row of X, got 61 entries and 60 rows"),
    "empty": ([], {}, r"y must have one entry for each row of X, got 0 entries"),
    "nan": (np.where(Y == 1, NAN, 0.0), {}, r"y must have no missing values, got nan in row 1"),
    "missing among objects": ([None, "a"] * 30, {}, r"y must have no missing values, got None in row 0"),
    "missing in a series": (pd.Series([pd.NA, "a"] * 30), {}, r"y must have no missing values, got .* in row 0"),
    "masked": (np.ma.masked_equal(Y, 1), {}, r"y must have no masked values"),
    "complex": (Y.astype(complex), {}, r"y must hold booleans, numbers or strings, got dtype complex128"),
    "ragged": ([[1], [2, 3]], {}, r"y must be a one-dimensional array, got list"),
    "one class": (np.ones(N), {}, r"y must hold two classes unless classes=.* is given, got one class, 1.0"),
    "one class of strings": (["a"] * N, {}, r"y must hold two classes unless classes=.* is given, got one class, 'a'"),
    "three classes": (np.arange(N) % 3, {}, r"y must hold two classes, got 3: 0, 1, 2"),
    "mixed types": (["a", 1] * 30, {"dtype": object}, r"y must hold labels of one type|y must hold two classes"),
    "undeclared": (np.arange(N) % 3, {"classes": (0, 1)}, r"y must hold only classes=\(0, 1\), got 2 in row 2"),
    "numbers for strings": (Y, {"classes": ("0", "1")}, r"y must hold only classes=\('0', '1'\), got 0 in row 0"),
    "strings for numbers": (Y.astype(str), {"classes": (0, 1)}, r"y must hold only classes=\(0, 1\), got '0' in row 0"),
}

KEYWORDS = {
    "budget missing": ({"budget": None}, r"budget must be dpci.PureDP, .* got budget=None"),
    "budget a number": ({"budget": 1.0}, r"budget must be dpci.PureDP, .* got budget=1.0"),
    "l2_strength zero": ({"l2_strength": 0}, r"l2_strength must be finite and > 0, got l2_strength=0.0"),
    "l2_strength negative": ({"l2_strength": -1}, r"l2_strength must be finite and > 0, got .*=-1.0"),
    "l2_strength nan": ({"l2_strength": NAN}, r"l2_strength must be finite and > 0, got .*=nan"),
    "l2_strength infinite": ({"l2_strength": INF}, r"l2_strength must be finite and > 0, got .*=inf"),
    "l2_strength beyond floats": ({"l2_strength": 10**400}, r"l2_strength must be finite and > 0"),
    "l2_strength text": ({"l2_strength": "1"}, r"must be a real number or 'auto', got l2_strength='1'"),
    "l2_strength boolean": ({"l2_strength": True}, r"l2_strength must be a real number, got .*=True"),
    "l2_strength None": ({"l2_strength": None}, "l2_strength must be a real number or 'auto', got l2_strength=None"),
    "l2_strength an array": ({"l2_strength": np.ones(1)}, r"l2_strength must be a real number"),
    "l2_strength too small": (
        {"l2_strength": 1e-9, "budget": dpci.PureDP(0.1)},
        r"l2_strength must be greater than 0\.\d+ .* got l2_strength=1e-9",
    ),
    "rows zero": ({"rows": 0.0}, r"rows must be finite and > 0, got rows=0.0"),
    "rows nan": ({"rows": NAN}, r"rows must be finite and > 0, got rows=nan"),
    "intercept": ({"intercept": -1.0}, r"intercept must be finite and > 0, got .*=-1.0"),
    "no intercept": ({"intercept": 0}, r"intercept must be finite and > 0, got .*=0"),
    "loss name": ({"loss": "cauchit"}, r"loss must be one of 'logistic', .* got loss='cauchit'"),
    "loss class": ({"loss": HuberHinge}, r"loss must be one of 'logistic'"),
    "moments": ({"moments": "no"}, r"moments must be one of 'joint', 'levels', 'separate', 'none', got moments='no'"),
    "projection": ({"projection": "no"}, r"projection must be one of 'auto', .* got projection='no'"),
    "calibration": ({"calibration": 1}, r"calibration must be one of 'tight', 'paper', got calibration=1"),
    "paper and cautious": (
        {"calibration": "paper", "projection": "cautious"},
        r'calibration="paper" requires projection="floor", got projection="cautious"',
    ),
    "rows by name": ({"rows": "drop"}, r"rows must be a number, 'clip', 'weight' or .* got rows='drop'"),
    "rows a flag": ({"rows": True}, r"rows must be a number, Ball or Blocks .* got rows=True"),
    "rows an array": ({"rows": np.ones(2)}, r"rows must be a number, Ball or Blocks"),
    "neighbors": ({"neighbors": "swap"}, r"neighbors must be 'replace_one' or dpci.AddRemove\(n_p"),
    "n_public missing": (
        {"neighbors": "add_remove"},
        r"neighbors must be 'replace_one' or dpci.AddRemove.* is then private, got",
    ),
    "split too short": ({"split": (0.5, 0.5)}, r"split must be a sequence of 3 numbers, got"),
    "split text": ({"split": "abc"}, r"split must be a sequence of 3 numbers, got split='abc'"),
    "split a number": ({"split": 0.5}, r"split must be a sequence of 3 numbers, got split=0.5"),
    "split of text": ({"split": ("a", 0.5, 0.5)}, r"split\[0\] must be a real number"),
    "split sum": ({"split": (0.5, 0.3, 0.3)}, r"split must"),
    "split zero": ({"split": (1.0, 0.0, 0.0)}, r"split must"),
    "split negative": ({"split": (1.2, -0.1, -0.1)}, r"split must"),
    "split nan": ({"split": (NAN, 0.5, 0.5)}, r"split must"),
    "split without moments": ({"split": (0.8, 0.1, 0.1), "moments": "none"}, r"split must be None"),
    "classes same": ({"classes": (1, 1)}, r"classes must be two different .* got 1 twice"),
    "classes three": ({"classes": (0, 1, 2)}, r"classes must be two different .* got classes=\(0, 1, 2\)"),
    "classes text": ({"classes": "01"}, r"classes must be two different .* got classes='01'"),
    "classes nan": ({"classes": (0, NAN)}, r"classes must be two different .* got nan"),
    "classes None inside": ({"classes": (None, 1)}, r"classes must be two different .* got None"),
    "classes a set": ({"classes": {0, 1}}, r"classes must be two different .* got classes=\{0, 1\}"),
    "seed negative": ({"seed": -1}, r"seed must be None or an integer in \[0, 2\*\*64\), got seed=-1"),
    "seed too big": ({"seed": 2**64}, r"seed must be None or an integer in \[0, 2\*\*64\)"),
    "seed boolean": ({"seed": True}, r"seed must be an integer, got seed=True"),
    "seed a float": ({"seed": 1.0}, r"seed must be an integer, got seed=1.0"),
    "objective, approximate and Laplace": (
        {"budget": dpci.ApproxDP(1.0, 1e-6), "mechanism": dpci.ObjectivePerturbation(noise="spherical_laplace")},
        r'objective perturbation under ApproxDP takes noise="gaussian", got noise="spherical_laplace"',
    ),
    "objective, approximate and the paper's": (
        {"budget": dpci.ApproxDP(1.0, 1e-6), "calibration": "paper"},
        r'calibration="paper" of Gaussian objective perturbation .* is proved for one record added or removed',
    ),
    "objective and Gaussian": (
        {"mechanism": dpci.ObjectivePerturbation(noise="gaussian")},
        r'objective perturbation .* takes noise="spherical_laplace", .* got noise="gaussian"',
    ),
    "output, pure and Gaussian": (
        {"mechanism": dpci.OutputPerturbation(noise="gaussian"), "budget": dpci.PureDP(1.0)},
        r'output perturbation under PureDP takes noise="spherical_laplace"',
    ),
    "output, zCDP and Laplace": (
        {"mechanism": dpci.OutputPerturbation(noise="spherical_laplace")},
        r'output perturbation under ZCDP and ApproxDP takes noise="gaussian"',
    ),
    "unknown keyword": ({"sample_weight": None}, r"unexpected keyword argument 'sample_weight'"),
    "misspelt keyword": ({"l2_strenght": 1.0}, r"unexpected keyword argument 'l2_strenght'"),
}

OBJECTS = {
    "noise": (lambda: dpci.OutputPerturbation(noise="cauchy"), r"noise must be one of .* got noise='cauchy'"),
    "Huber width": (lambda: HuberHinge(h=0.0), r"h must be finite and > 0, got h=0.0"),
    "smooth width": (lambda: SmoothHinge(s=-0.1), r"s must be finite and > 0, got s=-0.1"),
    "saved, not JSON": (lambda: dpci.PrivateFit.from_json("{"), r"a saved fit must be JSON"),
    "saved, other JSON": (
        lambda: dpci.PrivateFit.from_json("[1]"),
        r"must be a JSON object with schema='dpci.PrivateFit'",
    ),
    "saved, other version": (
        lambda: dpci.PrivateFit.from_json('{"schema": "dpci.PrivateFit", "schema_version": 99}'),
        r"must have schema_version=1, got schema_version=99",
    ),
    "saved, incomplete": (
        lambda: dpci.PrivateFit.from_json('{"schema": "dpci.PrivateFit", "schema_version": 1}'),
        r"must match its hash, got different contents",
    ),
    "saved, not text": (lambda: dpci.PrivateFit.from_json(None), r"a saved fit must be JSON"),
    "plan n": (
        lambda: dpci.plan(n_samples=0, n_features=1, budget=BUDGET, l2_strength=1.0),
        r"n_samples must be at least 1",
    ),
    "plan d": (
        lambda: dpci.plan(n_samples=1, n_features=-1, budget=BUDGET, l2_strength=1.0),
        r"n_features must be at least 0",
    ),
    "plan no parameters": (
        lambda: dpci.plan(
            n_samples=1, n_features=0, budget=BUDGET, l2_strength=1.0, rows=dpci.rows.Within(intercept=False)
        ),
        r"at least one row and one parameter",
    ),
}

ASKED = {
    "level zero": (lambda r: r.conf_int(level=0), r"level must be > 0 and < 1, such as 0.95 for 95%, got level=0.0"),
    "level one": (lambda r: r.conf_int(level=1.0), r"level must be > 0 and < 1, such as 0.95 for 95%, got level=1.0"),
    "level percent": (lambda r: r.conf_int(level=95), r"< 1, such as 0.95 for 95%, got level=95.0"),
    "level nan": (lambda r: r.conf_int(level=NAN), r"level must be > 0 and < 1, such as 0.95 for 95%, got level=nan"),
    "summary level": (lambda r: r.summary(level=2), r"level must be > 0 and < 1, such as 0.95 for 95%, got level=2.0"),
    "method": (lambda r: r.conf_int(method="bootstrap"), r"method must be one of 'exact', 'monte_carlo', got"),
    "contrast short": (
        lambda r: r.conf_int(contrast=[1.0]),
        r"contrast must have shape \(4,\) or \(m, 4\), got shape \(1,\)",
    ),
    "contrast deep": (lambda r: r.conf_int(contrast=np.ones((1, 1, 4))), r"contrast must have shape"),
    "contrast nan": (lambda r: r.conf_int(contrast=[NAN, 0, 0, 0]), r"contrast must be finite, got nan"),
    "contrast text": (
        lambda r: r.conf_int(contrast="abcd"),
        r"contrast must name parameters \(x0, x1, x2, intercept\), got 'abcd'",
    ),
    "n_draws zero": (
        lambda r: r.conf_int(method="monte_carlo", n_draws=0),
        r"n_draws must be at least 1, got n_draws=0",
    ),
    "n_draws huge": (lambda r: r.conf_int(method="monte_carlo", n_draws=10**12), r"n_draws must be"),
    "draw seed": (lambda r: r.conf_int(method="monte_carlo", seed=-1), r"seed must be None or an integer"),
    "predict width": (lambda r: r.predict(X[:, :2]), r"X must have the 3 columns of the fit, got 2"),
    "predict nan": (lambda r: r.predict(with_entry(NAN)), r"X must be finite, got nan at index \(7, 2\)"),
    "predict text": (lambda r: r.predict(X.astype(str)), r"X must hold booleans, integers or floats"),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows(case):
    x, message = ROWS[case]
    error = RowNormViolation if "Euclidean" in message else InvalidInput
    with pytest.raises(error, match=message):
        fit(x, np.arange(np.shape(x)[0]) % 2 if isinstance(x, np.ndarray) and x.ndim else Y)


@pytest.mark.parametrize("case", TARGETS)
def test_targets(case):
    y, keywords, message = TARGETS[case]
    keywords = dict(keywords)
    if "dtype" in keywords:
        y = np.array(y, dtype=keywords.pop("dtype"))
    with pytest.raises(InvalidInput, match=message):
        fit(X, y, **keywords)


@pytest.mark.parametrize("case", KEYWORDS)
def test_keywords(case):
    keywords, message = KEYWORDS[case]
    error = {"l2_strength too small": RegularizationTooSmall}.get(case, InvalidInput)
    with pytest.raises(TypeError if "unexpected" in message else error, match=message):
        fit(**keywords)


@pytest.mark.parametrize("case", OBJECTS)
def test_objects(case):
    make, message = OBJECTS[case]
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.fixture(scope="module")
def result():
    return fit()


@pytest.mark.parametrize("case", ASKED)
def test_asked_of_a_result(case, result):
    ask, message = ASKED[case]
    with pytest.raises(InvalidInput, match=message):
        ask(result)


def test_every_error_is_an_error_of_dpci_and_a_value_error():
    for error in (InvalidInput, RowNormViolation, RegularizationTooSmall):
        assert issubclass(error, dpci.DpciError)
        assert issubclass(error, ValueError)
    for error in (dpci.NotConverged, dpci.BudgetExceeded):
        assert issubclass(error, dpci.DpciError)


def test_keywords_are_checked_before_the_data():
    with pytest.raises(InvalidInput, match="seed"):
        fit(with_entry(NAN), Y, seed=-1)


def test_mechanisms_of_other_names_are_refused():
    with pytest.raises(InvalidInput, match=r"mechanism must be 'objective', .* got mechanism='laplace'"):
        dpci.fit(X, Y, budget=BUDGET, mechanism="laplace")


def test_positional_settings_are_refused():
    with pytest.raises(TypeError):
        dpci.fit(X, Y, BUDGET, 0.5)


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
    "list": np.ndarray.tolist, "tuple of rows": lambda x: tuple(map(tuple, x)), "read-only": read_only,
    "Fortran order": np.asfortranarray, "every other row": every_other_row,
    "reversed twice": lambda x: x[::-1].copy()[::-1], "big-endian": lambda x: x.astype(">f8"), "unaligned": unaligned,
    "long double": lambda x: x.astype(np.longdouble), "matrix": np.asmatrix, "frame": pd.DataFrame,
    "frame of column blocks": lambda x: pd.DataFrame({str(i): x[:, i].copy() for i in range(D)}),
}  # fmt: skip


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
    found = fit(l2_strength=fractions.Fraction(1, 2), seed=np.uint64(1), rows=np.float32(1))
    np.testing.assert_array_equal(found.params, fit().params)
