"""A problem that all contestants solve: rows, targets and the objective, kept in a folder of plain NumPy files.

Imported in every environment, so it uses the standard library, NumPy and SciPy only.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Terms:
    """Problem on the rows: mean loss + (l2_strength / 2) ||params||², the last column being the constant if any.

    ``task`` is "erm" (the minimiser), "errors" (with standard errors) or "private" (released at ``epsilon``).
    ``row_norm`` is the public bound on the rows, the constant included; ``radius`` one on the parameters.
    """

    task: str
    loss: str
    l2_strength: float
    row_norm: float
    epsilon: float = 1.0
    radius: float | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Problem:
    """Rows of shape (n, k), dense or CSR; targets -1 and 1; and what to solve."""

    X: np.ndarray | sparse.csr_array
    y: np.ndarray
    terms: Terms

    @property
    def labels(self) -> np.ndarray:
        """The targets as 0 and 1."""
        return (self.y > 0).astype(float)


def save_rows(folder: Path, part: str, X: np.ndarray | sparse.csr_array, y: np.ndarray) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"{part}_y.npy", y)
    if isinstance(X, np.ndarray):
        np.save(folder / f"{part}_X.npy", X)
    else:
        sparse.save_npz(folder / f"{part}_X.npz", X, compressed=False)


def load_rows(folder: Path, part: str) -> tuple[np.ndarray | sparse.csr_array, np.ndarray]:
    dense = folder / f"{part}_X.npy"
    X = np.load(dense) if dense.exists() else sparse.csr_array(sparse.load_npz(folder / f"{part}_X.npz"))
    return X, np.load(folder / f"{part}_y.npy")
