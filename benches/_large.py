"""Measurements that need a process of their own, for its peak memory: the full KDD Cup 1999 shape, and one large fit.

Run by bench_replicates.py as ``python _large.py NAME ARGUMENTS``; the last line of the output is JSON.
"""

import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import dpci
from _breakdown import CountingLogistic, coverage, passes
from _timing import Timed, copy_rate, interleaved, multiply_rate, pin, unpin
from dpci._core import LANES

L2_STRENGTH = 0.002
# Small, as the temporaries of making the rows must not hide the memory of a fit.
_CHUNK = 2_000
# Rounds of the large fit, each of four fits.
FIT_ROUNDS = 3
# A value and its column number.
_BYTES_A_NONZERO = 8 + 4


def measure(name: str, *arguments: object) -> dict[str, Any]:
    """Run one of the measurements below in a process of its own and return what it found."""
    command = [sys.executable, "-W", "ignore", __file__, name, *map(str, arguments)]
    unpin()  # a child inherits the cores
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def peak() -> int:
    """Peak resident memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident() -> int:
    """Resident memory of this process now, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def make_kdd(folder: str, n: str, n_distinct: str) -> dict[str, Any]:
    """Simulate the rows and leave them in a folder, so that making them does not count as a study's memory."""
    began = time.perf_counter()
    data = dpci.datasets.simulate_kddcup99(n=int(n), n_distinct=int(n_distinct), seed=0)
    sparse.save_npz(Path(folder) / "X.npz", sparse.csr_matrix(data.X), compressed=False)
    np.save(Path(folder) / "y.npy", data.y)
    return {"seconds": time.perf_counter() - began, "peak": peak()}


def study_kdd(folder: str, few: str, many: str, n_threads: str) -> dict[str, Any]:
    """Time two studies with intervals, of few and of many replicates; the rows stay sparse.

    Afterwards, when the peak is known: the passes that a group of replicates shares, what one reads, and the
    bandwidth of as many cores.
    """
    X, y = sparse.load_npz(Path(folder) / "X.npz"), np.load(Path(folder) / "y.npy")
    loaded = peak()
    pin(int(n_threads))
    seconds = []
    for count in (int(few), int(many)):
        began = time.perf_counter()
        study = dpci.simulate.coverage(
            X,
            y,
            budget=dpci.PureDP(1.0),
            l2_strength=L2_STRENGTH,
            classes=(-1, 1),
            n_replicates=count,
            n_variability=0,
            n_threads=int(n_threads),
        )
        seconds.append(time.perf_counter() - began)
    found = {
        "seconds": seconds,
        "loaded": loaded,
        "peak": peak(),
        "shape": X.shape,
        "nonzeros": X.nnz,
        "n_distinct": study.n_distinct,
        "coverage": study.coverage,
    }
    row_bytes = X.nnz / len(y) * _BYTES_A_NONZERO
    pass_bytes = study.n_distinct * (row_bytes + 8 + 4 * LANES)  # values, target, weights of the group
    counted = passes(coverage, X, y, study.n_distinct, intercept=True)
    return {**found, "passes": counted, "pass_bytes": pass_bytes, "bandwidth": copy_rate(int(n_threads))}


def rows_in_place(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlated features in the unit ball and labels of a logistic model, made a chunk at a time."""
    generator = np.random.default_rng(0)
    params = generator.standard_normal(d) * 10
    X, y = np.empty((n, d)), np.empty(n)
    for start in range(0, n, _CHUNK):
        chunk = X[start : start + _CHUNK]
        generator.standard_normal(out=chunk)
        chunk *= np.linspace(0.3, 1.5, d) / (2 * np.sqrt(d))
        chunk += generator.standard_normal((len(chunk), 1)) / (2 * np.sqrt(d))
        chunk /= np.maximum(np.linalg.norm(chunk, axis=1, keepdims=True) * (1 + 1e-12), 1.0)
        odds = np.exp(-np.clip(chunk @ params, -30, 30))
        y[start : start + _CHUNK] = np.where(generator.random(len(chunk)) * (1 + odds) < 1, 1.0, -1.0)
    return X, y


def large_fit(n: str, d: str, rounds: str) -> dict[str, Any]:
    """Memory and time of one private fit with intervals, and the time of scikit-learn's L-BFGS on the same rows."""
    X, y = rows_in_place(int(n), int(d))
    counting = CountingLogistic()

    def private(X: np.ndarray, y: np.ndarray, n_threads: int, **keywords: Any) -> dpci.ConfidenceIntervals:
        budget = dpci.PureDP(1.0)
        options = {"budget": budget, "l2_strength": L2_STRENGTH, "classes": (-1, 1), **keywords}
        with dpci.threads(n_threads):
            return dpci.fit(X, y, rows=dpci.rows.Within(intercept=False), **options).conf_int()

    def lbfgs() -> LogisticRegression:
        # tol is scikit-learn's own default, 1e-4 on the gradient.
        return LogisticRegression(solver="lbfgs", C=1 / (len(y) * L2_STRENGTH), fit_intercept=False).fit(X, y)

    pin(2)
    private(X[:2000], y[:2000], 2)  # whatever is loaded once
    # From what is resident now to the peak: an earlier and higher peak can only make this larger.
    before = resident()
    private(X, y, 2)
    extra = peak() - before
    contestants = {
        **{f"ours{k}": Timed(lambda k=k: private(X, y, k), k) for k in (1, 2)},
        **{f"lbfgs{k}": Timed(lbfgs, k, blas=True) for k in (1, 2)},
    }
    times = interleaved(contestants, int(rounds))
    pin(2)
    private(X, y, 2, loss=counting.loss)
    pin(1)
    rates = {"multiply": multiply_rate(), "bandwidth": copy_rate()}
    return {**times, **rates, "passes": counting.slopes / len(y), "extra": extra / X.nbytes, "bytes": X.nbytes}


if __name__ == "__main__":
    warnings.simplefilter("ignore", dpci.errors.DpciWarning)
    measurements = {"make_kdd": make_kdd, "study_kdd": study_kdd, "large_fit": large_fit}
    print(json.dumps(measurements[sys.argv[1]](*sys.argv[2:])))
