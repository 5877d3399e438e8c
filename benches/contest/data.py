"""The rows of the contest, for training and for testing, written once to folders that all contestants read."""

import functools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from problem import save_rows
from scipy import linalg, sparse

import dpci
from papers.scaling import load_with_data_dependent_scaling, scale_by_the_data

sys.path.insert(0, str(Path(__file__).parents[1]))

from _large import rows_in_place

SEED = 0
# Rows of a trial run.
QUICK = 20_000
_N_ADULT, _N_KDD, _N_GENERATED, _N_TEST = 30_162, 450_000, 1_000_000, 100_000
Part = tuple[np.ndarray | sparse.csr_array, np.ndarray]


def with_constant(X: np.ndarray | sparse.csr_array) -> np.ndarray | sparse.csr_array:
    """Append the column of ones, penalised like every other, to the rows."""
    ones = np.ones((X.shape[0], 1))
    return np.hstack([X, ones]) if isinstance(X, np.ndarray) else sparse.csr_array(sparse.hstack([X, ones]))


def cut(X: np.ndarray | sparse.csr_array, y: np.ndarray, n: int) -> tuple[Part, Part]:
    """The first n rows, and the others."""
    return (X[:n], y[:n]), (X[n:], y[n:])


@functools.cache
def adult() -> tuple[Part, Part]:
    # Both published halves, prepared as in the published tables of Wang, Kifer & Lee and divided at random.
    table = dpci.datasets.load_table("adult", "all", drop_missing=True)
    X, y, _ = scale_by_the_data(table, dpci.datasets.load_layout("adult"), seed=SEED)
    return cut(X, y, _N_ADULT)


def adult_full_rank() -> tuple[Part, Part]:
    """Without the columns that depend on others, which leave an objective without a penalty no minimiser."""
    (X, y), (X_test, y_test) = adult()
    triangle, order = linalg.qr(X.T @ X, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    kept = np.sort(order[diagonal > 1e-7 * diagonal[0]])
    return (np.ascontiguousarray(X[:, kept]), y), (X_test[:, kept], y_test)


def credit() -> tuple[Part, Part]:
    data = dpci.datasets.load_credit_default()
    order = np.random.default_rng(SEED).permutation(len(data.y))
    return cut(with_constant(data.X)[order], data.y[order], 24_000)


def kdd_dense(d: int) -> tuple[Part, Part]:
    data = load_with_data_dependent_scaling("kddcup99", d=d, seed=SEED)
    return cut(data.X, data.y, _N_KDD)


def kdd_sparse() -> tuple[Part, Part]:
    data = dpci.datasets.load_kddcup99(sparse=True)
    order = np.random.default_rng(SEED).permutation(len(data.y))
    return cut(with_constant(data.X)[order], data.y[order], _N_KDD)


def generated() -> tuple[Part, Part]:
    return cut(*rows_in_place(_N_GENERATED + _N_TEST, 20), _N_GENERATED)


ROOT_TWO = float(np.sqrt(2))
# How the rows are made, and the public bound on them with their constant.
DATA: dict[str, tuple[Callable[[], tuple[Part, Part]], float]] = {
    "Adult": (adult, 1.0),
    "Adult, full rank": (adult_full_rank, 1.0),
    "credit default": (credit, ROOT_TWO),
    "KDD 10%, 10 columns": (lambda: kdd_dense(10), 1.0),
    "KDD 10%, 90 columns": (lambda: kdd_dense(90), 1.0),
    "KDD 10%, CSR": (kdd_sparse, ROOT_TWO),
    "generated": (generated, 1.0),
}


def written(name: str, cache: Path, *, quick: bool) -> Path:
    """Folder of the rows, made if it is not there."""
    folder = cache / f"contest-{name.replace(' ', '_').replace(',', '').replace('%', '')}{'-quick' * quick}"
    ready = folder / "ready"
    if not ready.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpci.errors.PrivacyLeakWarning)
            parts = DATA[name][0]()
        for part, (X, y) in zip(("train", "test"), parts, strict=True):
            n = min(len(y), QUICK) if quick else len(y)
            save_rows(folder, part, X[:n], y[:n])
        ready.touch()
    return folder
