"""float32 rows: the result of their float64 copy, bit for bit and without that copy; mapped files, used in place."""

import functools
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci import baselines, lowlevel, per_instance, simulate, tuning, utility
from dpci.data.arrays import as_features
from support.keywords import assembled
from support.memory import PEAK_BYTES

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")

N, D = 1500, 5
_RNG = np.random.default_rng(8)
SINGLE = (_RNG.uniform(-0.43, 0.43, size=(N, D)) * (_RNG.random((N, D)) < 0.6)).astype(np.float32)
LABELS = SINGLE @ np.linspace(-6, 6, D) + _RNG.logistic(size=N) > 0
REALS = np.clip(SINGLE @ np.linspace(-1, 1, D) + 0.1 * _RNG.normal(size=N), -1, 1)
# So many, and so many equal ones, that a fit merges them.
MANY, MANY_LABELS = np.tile(SINGLE, (15, 1)), np.tile(LABELS, 15)

PURE = {"budget": dpci.PureDP(2.0), "l2_strength": 0.05, "seed": 5}
CLIP = {"rows": dpci.rows.Clipped(0.4)}
GRID = [{"l2_strength": 0.05}, {"l2_strength": 0.2}]


def released(result):
    return [result.params, result.hessian, result.gradient_cov]


def fit(X, y=LABELS, **keywords):
    return dpci.fit(X, y, **assembled(**{**PURE, **keywords}))


def coverage(X, **keywords):
    study = simulate.coverage(X, LABELS, n_replicates=8, n_variability=8, **{**PURE, **keywords})
    return [study.target, study.coverage_by_param, study.mean_length, study.variability_length]


def curve(X):
    found = utility.curve(X, LABELS, at=dpci.PureDP(1.0), l2_strength=0.05, n_draws=2, seed=1)
    return [found.params, found.predict_utility(np.array([0.5, 1.0, 3.0]))]


def report(X):
    budget = dpci.ApproxDP(1.0, 1e-5)
    found = per_instance.report(X, LABELS, budget=budget, l2_strength=0.2, n_public=N, seed=1)
    return [found.result.params, *found(X, LABELS)[:3]]


def grid(X):
    axes = [baselines.Bins(column=j, count=2) for j in range(D)]
    return [baselines.projected_histogram(X, REALS, budget=dpci.PureDP(2.0), axes=axes, l2_strength=0.1, seed=1).params]


def parts(X):
    cut = [slice(0, 300), slice(300, 301), slice(301, N)]
    return released(fit(dpci.Chunks([(X[rows], LABELS[rows]) for rows in cut]), None))


SIGNS = 2.0 * LABELS - 1.0
ENTRIES = {
    "fit": lambda X: released(fit(X)),
    "clipped": lambda X: released(fit(X, **CLIP)),
    "output perturbation": lambda X: released(fit(X, mechanism="output", intercept=False)),
    "huber": lambda X: released(fit(X, loss="huber_hinge", budget=dpci.ZCDP(1.0))),
    "hinge": lambda X: [fit(X, loss="hinge", mechanism="output", moments="none").params],
    "squared": lambda X: released(fit(X, REALS, loss="squared", radius=2.0, l2_strength=0.2)),
    "coverage": coverage,
    "coverage of clipped rows": lambda X: coverage(X, **CLIP),
    "curve": curve,
    "report": report,
    "tune": lambda X: released(tuning.tune(X, LABELS, candidates=GRID, validation_radius=2.0, **PURE).result),
    "tune by chunks": lambda X: released(
        tuning.tune(X, LABELS, candidates=GRID, method="chunks", validation_radius=2.0, **PURE).result
    ),
    "functional mechanism": lambda X: [
        baselines.functional_mechanism(X, REALS, budget=dpci.PureDP(2.0), l2_strength=0.1, seed=1).params
    ],
    "histogram": grid,
    "non-private": lambda X: [baselines.non_private(X, LABELS, loss="logistic", l2_strength=0.1).params],
    "minimize_erm": lambda X: [lowlevel.minimize_erm(X, SIGNS, l2_strength=0.01).params],
    "erm_value_and_gradient": lambda X: lowlevel.erm_value_and_gradient(X, SIGNS, np.ones(D), l2_strength=0.01),
    "moments": lambda X: lowlevel.hessian_and_gradient_cov(X, SIGNS, np.ones(D), l2_strength=0.01),
    "parts": parts,
    "intervals of predictions": lambda X: [np.asarray(fit(SINGLE).predict_conf_int(X[:200]))],
    "predictions": lambda X: [fit(SINGLE).decision_function(X)],
}


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ENTRIES)
def test_the_same_bits_as_float64(name, sparse):
    entry = ENTRIES[name]
    single = scipy.sparse.csr_array(SINGLE) if sparse else SINGLE
    for ours, expected in zip(entry(single), entry(single.astype(np.float64)), strict=True):
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("keywords", [{}, CLIP], ids=["as they are", "clipped"])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_merged_rows(kind, keywords):
    single, double = (kind(MANY.astype(dtype)) for dtype in (np.float32, np.float64))
    for ours, expected in zip(
        released(fit(single, MANY_LABELS, **keywords)), released(fit(double, MANY_LABELS, **keywords)), strict=True
    ):
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize(
    ("form", "shared"),
    [
        (lambda x: x, True),
        (lambda x: x[10:700], True),
        (lambda x: x.astype(">f4"), False),
        (np.asfortranarray, False),
        (lambda x: x[::2], False),
        (lambda x: np.broadcast_to(x[0], x.shape), False),
    ],
    ids=["plain", "part", "big-endian", "Fortran", "strided", "repeated"],
)
def test_layouts_stay_float32(form, shared):
    given = form(SINGLE)
    values = as_features(given).values
    assert values.dtype == np.dtype(np.float32)
    assert values.flags.c_contiguous
    assert np.shares_memory(values, SINGLE) == shared
    np.testing.assert_array_equal(values, given)


@pytest.mark.parametrize("dtype", ["f2", "?", "i1", "u8", "g", ">f8"])
def test_other_types_become_float64(dtype):
    assert as_features(SINGLE.astype(dtype)).values.dtype == np.dtype(np.float64)


def test_sparse_float32_is_not_copied():
    sparse = scipy.sparse.csr_array(SINGLE)
    assert np.shares_memory(as_features(sparse).values[2], sparse.data)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_what_is_not_finite_is_refused(kind, value):
    bad = SINGLE.copy()
    bad[7, 3] = value
    with pytest.raises(dpci.InvalidInput, match=r"X must be finite, got .* in row 7, column 3"):
        fit(kind(bad))
    with pytest.raises(dpci.InvalidInput, match=r"X must be finite, got .* at index \(7, 3\)"):
        fit(SINGLE).predict(kind(bad))


def test_a_prediction_goes_on_across_blocks():
    many = np.tile(SINGLE, (40, 1))
    result = fit(SINGLE)
    expected = np.tile(SINGLE, (40, 1)).astype(float) @ result.params[:-1] + result.params[-1]
    for kind in (np.asarray, scipy.sparse.csr_array):
        np.testing.assert_allclose(result.decision_function(kind(many)), expected, rtol=0, atol=1e-12)


def run(script, *arguments):
    command = [sys.executable, "-W", "ignore", "-c", PEAK_BYTES + textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


# Peaks count what is touched; the first fit loads the code and takes what does not depend on the rows.
PEAK = """
    import sys, numpy as np, dpci
    dtype, n = sys.argv[1], 500_000
    X = np.random.default_rng(0).random((n, 40), dtype=np.float32)
    X *= np.float32(0.15)
    y = np.where(X[:, 0] > 0.08, 1.0, -1.0)
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1}
    dpci.threads(2).__enter__()
    dpci.fit(X[:2000], y[:2000], **keywords).predict(X[:2000])
    peak = lambda: peak_bytes() / 2**20
    before = peak()
    result = dpci.fit(X if dtype == "f4" else X.astype(dtype), y, **keywords)
    fitted = peak()
    result.predict(X)
    print(fitted - before, peak() - before)
"""


def test_no_float64_copy_of_the_matrix():
    """80 MB of float32 need less than 40 MB more; a float64 copy would be 160 MB, and the test can see one."""
    fitted, predicted = map(float, run(PEAK, "f4"))
    assert fitted < 40
    assert predicted < 40
    # Less than the copy, as a busy machine may have put pages aside that are resident no more.
    assert float(run(PEAK, "f8")[0]) > 60


# Data that the process may write to, and that belong to no file, are limited: a copy of the matrix does not fit.
MAPPED = """
    import resource, sys, numpy as np, dpci
    path, mode, dtype, copy = sys.argv[1:]
    X = np.load(path, mmap_mode=mode)
    assert X.dtype == dtype and X.flags.writeable == (mode == "r+")
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1, "seed": 3}
    dpci.threads(1).__enter__()
    keywords["mechanism"] = dpci.ObjectivePerturbation(moments="none")
    y = np.resize([1.0, 1.0, -1.0], len(X))
    dpci.fit(X[:2000], y[:2000], **keywords).predict(X[:2000])
    status = dict(line.split(":") for line in open("/proc/self/status"))
    limit = int(status["VmData"].split()[0]) * 1024 + (38 << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    result = dpci.fit(np.array(X) if copy == "copy" else X, y, **keywords)
    result.predict(X)
    print(*map(float.hex, result.params))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Matrices of 160 MB, all rows of which occur four times: in memory they would be merged, which copies 40 MB."""
    folder = tmp_path_factory.mktemp("mapped")
    found = {}
    for dtype, n_distinct in (("float64", 16 * 1024), ("float32", 32 * 1024)):
        rows = _RNG.uniform(-0.08, 0.08, size=(n_distinct, 320)).astype(dtype)
        found[dtype] = folder / f"{dtype}.npy"
        np.save(found[dtype], np.tile(rows, (4, 1)))
    return found


@functools.cache
def fitted_in_memory(path):
    X = np.load(path)
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1, "seed": 3, "moments": "none"}
    return dpci.fit(X, np.resize([1.0, 1.0, -1.0], len(X)), **assembled(**keywords)).params


@pytest.mark.skipif(sys.platform != "linux", reason="limits of data are counted so on Linux alone")
@pytest.mark.parametrize(("dtype", "mode"), [("float64", "r"), ("float64", "r+"), ("float32", "r")])
def test_a_mapped_file_is_used_in_place(files, dtype, mode):
    params = run(MAPPED, files[dtype], mode, dtype, "in place")
    expected = fitted_in_memory(files[dtype])
    # In memory equal rows are merged, so that sums are rounded otherwise.
    np.testing.assert_allclose([float.fromhex(p) for p in params], expected, rtol=0, atol=1e-8)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of data are counted so on Linux alone")
def test_the_limit_sees_a_copy(files):
    with pytest.raises(AssertionError, match=r"MemoryError|Resource|memory"):
        run(MAPPED, files["float64"], "r", "float64", "copy")
