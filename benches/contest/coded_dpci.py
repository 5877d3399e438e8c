"""dpci as a contestant on coded rows: minimisers, private fits and studies of rows coded, dense or sparse."""

from typing import Any

import numpy as np
from scipy import sparse

import dpci
from dpci.data.coded import CodedRows

L2_STRENGTH, TARGET = 0.002, 1e-5


def contestant(data: dict[str, Any], kind: str, n_threads: int) -> tuple[Any, int]:
    """A fit of dpci, and the bytes of its rows: "minimiser" or "private", of rows "coded", "dense" or "sparse"."""
    task, storage = kind.split(" ")
    starts = data["numbers"].shape[1] + np.concatenate([[0], np.cumsum(data["levels"])[:-1]])
    categories = tuple((int(a), int(m), 1.0) for a, m in zip(starts, data["levels"], strict=True))
    X: Any = CodedRows(data["numbers"], data["codes"], tuple(range(data["numbers"].shape[1])), categories)
    n_bytes = sum(array.nbytes for array in X.arrays)
    if storage == "dense":
        X = X.dense()
        n_bytes = X.nbytes
    elif storage == "sparse":
        X = sparse_rows(X)
        n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    poisson = str(data["loss"]) == "poisson"
    radius = 4.0 if poisson else None
    loss: Any = dpci.losses.Poisson(count_bound=10.0) if poisson else "logistic"
    problem: dict[str, Any] = {"l2_strength": L2_STRENGTH, "loss": loss}

    def minimiser() -> Any:
        asked = {"radius": radius, "tolerance": TARGET, "n_threads": n_threads}
        return dpci.lowlevel.minimize_erm(X, data["y"], **asked, **problem).params

    def private() -> Any:
        norm = float(np.sqrt(data["codes"].shape[1] + data["numbers"].shape[1]))
        classes = {} if poisson else {"classes": (-1, 1)}
        mechanism = dpci.ObjectivePerturbation(moments="none", radius=radius)
        options = {"mechanism": mechanism, "rows": dpci.rows.Within(norm, intercept=False), **classes}
        with dpci.threads(n_threads):
            return dpci.fit(X, data["y"], budget=dpci.PureDP(1.0), **problem, **options).params

    def replicates() -> Any:
        norm = float(np.sqrt(data["codes"].shape[1] + data["numbers"].shape[1]))
        options = {"rows": dpci.rows.Within(norm, intercept=False), "classes": (-1, 1), "l2_strength": 0.02}
        budget = dpci.PureDP(1.0)
        rows = {"n_replicates": 64, "n_variability": 0, "n_threads": n_threads, "budget": budget}
        return dpci.simulate.coverage(X, data["y"], **rows, **options).n_replicates

    return {"minimiser": minimiser, "private": private, "replicates": replicates}[task], n_bytes


def sparse_rows(X: Any) -> Any:
    """The same rows in CSR form, a block at a time."""
    height = 20_000
    blocks = [sparse.csr_array(X[slice(a, a + height)].dense()) for a in range(0, len(X), height)]
    rows = sparse.vstack(blocks, format="csr")
    return sparse.csr_array((rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int64)), shape=rows.shape)
