"""Many threads on one ledger, one result and one array: at once without the interpreter's lock, in turns with it."""

import json
import re
import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dpci
from dpci.schema import ClassTarget, NumericColumn, Schema

THREADS = 8
N, K = 2000, 4
_RNG = np.random.default_rng(17)
X = _RNG.uniform(-0.5, 0.5, (N, K))
Y = X @ np.array([3.0, -2.0, 1.0, 0.0]) + _RNG.logistic(size=N) > 0
SEEDED = {"budget": dpci.ZCDP(0.5), "l2_strength": 0.05, "seed": 3}
WITHOUT_LOCK = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.fixture(autouse=True)
def _many_turns():
    """Threads change places after a few instructions where they run in turns."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work, n_threads=THREADS):
    """Call ``work(k)`` on so many threads, which begin together, and return what they return."""
    barrier = threading.Barrier(n_threads)

    def begin(k):
        barrier.wait(30)
        return work(k)

    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(begin, range(n_threads)))


def run_script(script, *options):
    return subprocess.run(
        [sys.executable, *options, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.skipif(not WITHOUT_LOCK, reason="this Python always has its lock")
def test_imports_leave_the_lock_off():
    names = "[getattr(dpci, name) for name in dpci.__all__]"
    done = run_script(f"import sys, dpci\n{names}\nprint(sys._is_gil_enabled())", "-W", "error")
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


def test_names_are_loaded_by_the_first_of_many_threads():
    """All threads ask for all names at once, each in an order of its own, in a process that has loaded none of them."""
    script = f"""
import random, sys, threading
from concurrent.futures import ThreadPoolExecutor
import dpci
sys.setswitchinterval(1e-6)
barrier = threading.Barrier({THREADS})
def load(k):
    names = list(dpci.__all__)
    random.Random(k).shuffle(names)
    barrier.wait(30)
    return {{name: id(getattr(dpci, name)) for name in names}}
with ThreadPoolExecutor({THREADS}) as pool:
    first, *others = pool.map(load, range({THREADS}))
assert len(first) == len(dpci.__all__) and all(other == first for other in others)
"""
    done = run_script(script)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["memory", "file", "file opened by each"])
@pytest.mark.parametrize("errors", ["detailed", "private"])
def test_a_ledger_is_never_overspent(kind, errors, tmp_path):
    """Every thread spends until it is refused; a check apart from its spend would let more than the total through."""
    paid = 24
    path = None if kind == "memory" else tmp_path / "shared.ledger"
    ledger = dpci.Ledger(dpci.PureDP(paid * 0.125), path=path, errors=errors)

    def spend(k):
        mine = ledger if kind != "file opened by each" else dpci.Ledger.open(path)
        entries = []
        try:
            while True:
                entries.append(mine.labelled(f"thread {k}").spend(dpci.PureDP(0.125), neighbors="replace_one").number)
                mine.check(dpci.PureDP(0.125), neighbors="replace_one")
        except dpci.BudgetExceeded as refused:
            assert refused.remaining is None  # noqa: PT017  # in a thread
        return entries

    numbers = sorted(number for entries in at_once(spend) for number in entries)
    assert numbers == [entry.number for entry in ledger.history] == list(range(1, paid + 1))
    assert ledger.remaining is None


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_releases_of_many_threads_are_paid_once_each(kind, tmp_path):
    """Fits with private errors, which replace the filters of warnings, and fits that are refused before they pay."""
    path = None if kind == "memory" else tmp_path / "shared.ledger"
    ledger = dpci.Ledger(dpci.ZCDP(0.3), path=path, errors="private")
    keywords = {"budget": dpci.ZCDP(0.025), "l2_strength": 0.1, "classes": (False, True), "rows": "clip"}
    filters = sys.modules["warnings"].filters[:]

    def release(_):
        results = []
        try:
            while True:
                results.append(dpci.fit(X, Y, ledger=ledger, **keywords))
        except dpci.BudgetExceeded:
            return results

    results = [result for results in at_once(release) for result in results]
    assert len(results) == 12
    assert ledger.remaining is None
    assert ledger.models == {json.loads(result.to_json())["paid"]["entry"]: result.digest for result in results}
    assert len({tuple(result.params) for result in results}) == 12
    assert sys.modules["warnings"].filters == filters


def results_of_all_kinds():
    """Each kind of release and computation on the same arrays, as text."""
    table = dict(zip("abcd", X.T, strict=True)) | {"ill": np.where(Y, "yes", "no")}
    columns = tuple(NumericColumn(name=name, lower=-0.5, upper=0.5) for name in "abcd")
    schema = Schema(columns=columns, target=ClassTarget(column="ill", negative="no", positive="yes"))
    chunks = dpci.Chunks(lambda: ((X[k : k + 500], Y[k : k + 500]) for k in range(0, N, 500)))
    classes = np.digitize(X[:, 0], [-0.2, 0.2])
    moments = {"bounds": (-0.5, 0.5), "target_bound": (-2.0, 2.0), "budget": dpci.PureDP(5.0), "seed": 3}
    return {
        "fit": lambda: dpci.fit(X, Y, **SEEDED).to_json(),
        "output": lambda: dpci.fit(X, Y, mechanism="output", **SEEDED).summary(),
        "schema": lambda: str(dpci.fit(table, schema=schema, **SEEDED).conf_int()),
        "parts": lambda: dpci.fit(chunks, **SEEDED).to_json(),
        "persons": lambda: dpci.fit(X, Y, persons=np.arange(N) // 2, **SEEDED).to_json(),
        "multinomial": lambda: dpci.multinomial.fit(
            X, classes, classes=(0, 1, 2), **SEEDED | {"budget": dpci.PureDP(5.0)}
        ).to_json(),
        "moments": lambda: dpci.regression.release(X, X @ np.ones(K), **moments).fit().summary(),
        "plan": lambda: dpci.plan(n_samples=N, n_features=K, budget=dpci.ZCDP(0.5), l2_strength=0.05).summary(),
    }


@pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")
def test_releases_of_all_kinds_at_once_are_those_of_one_thread():
    work = results_of_all_kinds()
    expected = {name: make() for name, make in work.items()}

    def in_another_order(k):
        names = list(work)[k:] + list(work)[:k]
        return {name: work[name]() for name in names}

    for found in at_once(in_another_order):
        assert found == expected


def test_one_result_answers_many_threads():
    """Many threads may be the first to ask for what a result computes once."""
    saved = dpci.fit(X, Y, **SEEDED).to_json()

    def asked(result):
        return (
            result.conf_int(level=0.9).lower.tolist(),
            result.conf_int(simultaneous="max_z", n_draws=2000, seed=1).upper.tolist(),
            result.wald_test([1.0, -1.0, 0.0, 0.0, 0.0]).pvalue,
            result.predict(X[:50]).tolist(),
            result.summary(),
            result.digest,
            result.to_json(),
        )

    expected = asked(dpci.PrivateFit.from_json(saved))
    for _ in range(3):
        fresh = dpci.PrivateFit.from_json(saved)
        for found in at_once(lambda _, fresh=fresh: asked(fresh)):
            assert found == expected


def test_rows_that_change_during_fits_end_in_numbers_or_errors():
    """Nobody may change rows while they are read; whoever does gets no promise of privacy, and no crash."""
    script = """
import faulthandler, threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np, scipy.sparse as sp
import dpci
from dpci import lowlevel
faulthandler.enable()
rng = np.random.default_rng(5)
n, k = 30_000, 12
X = rng.uniform(-0.2, 0.2, (n, k)); y = np.where(X @ rng.normal(size=k) > 0, 1.0, -1.0)
S = sp.random_array((n, 400), density=0.01, format="csr", rng=rng); S.data *= 0.1
ids, weights = np.arange(n) // 3, np.ones(n)
done = threading.Event()
def disturb(k):
    rng = np.random.default_rng(k)
    while not done.is_set():
        at = rng.integers(n)
        X[at] = rng.choice([np.nan, np.inf, 1e300, 0.1, -0.1])
        y[at] = rng.choice([np.nan, 7.0, -1.0, 1.0])
        ids[at], weights[at] = rng.integers(-5, n), rng.choice([-1.0, np.nan, 1.0])
        entry = rng.integers(S.nnz)
        S.indices[entry] = rng.integers(-(2**31), 2**31)
        S.data[entry] = rng.choice([np.nan, 1e300, 0.1])
        S.indptr[at] = rng.integers(0, 2**30)
        X[at], y[at], S.data[entry], S.indices[entry] = 0.1, 1.0, 0.01, rng.integers(400)
        S.indptr[:] = good
good = S.indptr.copy()
keywords = dict(budget=dpci.ZCDP(0.5), l2_strength=0.1, classes=(-1, 1), rows="clip")
def fit(k):
    try:
        rows = S if k % 2 else X
        more = dict(persons=ids) if k % 4 == 0 else dict()
        more = dict(weights=dpci.Weights(weights, bound=1.0)) if k % 4 == 2 else more
        result = dpci.fit(rows, y, **more, **keywords)
    except dpci.DpciError as error:
        return type(error).__name__
    assert np.isfinite(result.params).all()
    return "result"
threads = [threading.Thread(target=disturb, args=(k,)) for k in range(2)]
[thread.start() for thread in threads]
try:
    with ThreadPoolExecutor(4) as pool:
        print(sorted(set(pool.map(fit, range(40)))))
finally:
    done.set()
    [thread.join() for thread in threads]
"""
    done = run_script(script)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "InvalidInput" in done.stdout or "result" in done.stdout


SUB_INTERPRETER = """
import importlib, sys
import numpy as np
import dpci

X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (500, 1))
fit = lambda: dpci.fit(X, X[:, 0] > 0, budget=dpci.ZCDP(0.5), l2_strength=0.1, seed=1).to_json()
before = fit()
code = "import warnings; warnings.simplefilter('ignore'); import dpci; dpci.fit"
if sys.version_info >= (3, 13):
    interpreters = importlib.import_module("_interpreters")
    error = interpreters.run_string(interpreters.create(), code)
    print(error.type.__name__, error.msg)
else:
    interpreters = importlib.import_module("_xxsubinterpreters")
    try:
        interpreters.run_string(interpreters.create(), code)
    except Exception as error:
        print(error)
sys.stdout.flush()
assert fit() == before
"""


def test_a_sub_interpreter_gets_an_error_and_leaves_the_first_one_whole():
    """The position of docs/versioning.md: it is NumPy's, whose error comes first."""
    done = run_script(SUB_INTERPRETER)
    assert done.returncode == 0, done.stderr
    assert "ImportError" in done.stdout
    assert re.search("once per process|subinterpreter", done.stdout)
