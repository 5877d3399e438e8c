"""Rows for the experiments on per-instance privacy and utility: generated, or public and scaled by their own values."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpci
from dpci.losses import Loss
from papers.sources import Sources

_F64 = NDArray[np.float64]

# Columns of the credit data that are left out: nominal codes, some of them undocumented. 21 remain.
NOMINAL = {"X3": "EDUCATION", "X4": "MARRIAGE"}

# A row of norm 1 may come out a few units in the last place above; divided by this it does not.
_ROUNDING_MARGIN = 1.0 + 2.0**-48


class DataSet(NamedTuple):
    """Rows of norm at most 1 and their targets, without an intercept."""

    title: str
    X: _F64
    y: _F64
    loss: Loss

    @property
    def has_classes(self) -> bool:
        """Whether the targets are classes, -1 and 1."""
        return self.loss.to_core().target_bounds is None

    def least_l2_strength(self, epsilon: float) -> float:
        """Return the smallest lambda of Kifer, Smith & Thakurta, 2t/(n epsilon) with t the curvature bound.

        epsilon here is the part of the given one that remains after the seal.
        """
        n_samples, n_features = self.X.shape
        return dpci.plan(
            n_samples=n_samples,
            n_features=n_features,
            budget=dpci.ApproxDP(epsilon=epsilon, delta=1e-6),
            loss=self.loss,
            l2_strength=100.0,  # great enough for a plan
            mechanism=dpci.ObjectivePerturbation(moments="none", calibration="paper"),
            rows=dpci.rows.Within(intercept=False),
            neighbors="add_remove",
        ).least_l2_strength

    def __str__(self) -> str:
        n, d = self.X.shape
        return f"{self.title}, n={n:,}, d={d}"


def separable_classes(rng: np.random.Generator, n: int, margin: float) -> tuple[_F64, _F64]:
    """Return points of the unit disc in two classes that a strip of width ``margin`` separates.

    They are uniform on the disc outside ``|x_1| < margin/2``; the class, -1 or 1, is the sign of x_1.
    """
    kept: list[_F64] = []
    while len(kept) < n:
        points = rng.uniform(-1.0, 1.0, size=(n, 2))
        kept += list(points[(np.abs(points[:, 0]) >= margin / 2.0) & (np.linalg.norm(points, axis=1) <= 1.0)])
    X = np.array(kept[:n])
    return X, np.sign(X[:, 0])


def soft_labels(rng: np.random.Generator, n: int, d: int) -> tuple[_F64, _F64]:
    """Return rows uniform on the unit sphere, and targets X theta, shifted and scaled to [0, 1]; theta is normal."""
    X = unit_rows(rng.standard_normal((n, d)))
    predictor = X @ rng.standard_normal(d)
    low, high = predictor.min(), predictor.max()
    return X, (predictor - low) / (high - low)


def wide_classes(rng: np.random.Generator, n: int, d: int, *, n_factors: int = 20) -> tuple[_F64, _F64]:
    """Return wide rows of norm 1 and classes -1 and 1.

    The rows are max(0, F W + E/2), F (n, n_factors) and E normal, W normal with rows of expected norm sqrt(d /
    n_factors): about half zeros, and correlated, as the pixels of handwritten digits are. The class is the sign of
    F v + e/2, v of norm 1.
    """
    factors = rng.standard_normal((n, n_factors))
    loadings = rng.standard_normal((n_factors, d)) / np.sqrt(n_factors)
    X = np.maximum(0.0, factors @ loadings + 0.5 * rng.standard_normal((n, d)))
    direction = rng.standard_normal(n_factors)
    direction /= np.linalg.norm(direction)
    return unit_rows(X), np.where(factors @ direction + 0.5 * rng.standard_normal(n) > 0.0, 1.0, -1.0)


def credit_default(sources: Sources) -> tuple[_F64, _F64]:
    """Return 21 columns of the credit data, each divided by its greatest absolute value, in rows of norm 1.

    The targets are -1 or 1.

    Raises
    ------
    DatasetUnavailable
        The file is not available.
    """
    table, layout = sources.table("credit_default")
    left_out = {*NOMINAL, *layout.ignored, layout.target}
    X = np.column_stack([table[name].astype(np.float64) for name in layout.columns if name not in left_out])
    X /= np.abs(X).max(axis=0)
    return unit_rows(X), np.where(np.isin(table[layout.target], layout.positive), 1.0, -1.0)


def unit_rows(X: _F64) -> _F64:
    """Return the rows scaled to norm 1, or slightly less by rounding, never more. A row of zeros is not changed."""
    norms = np.linalg.norm(X, axis=1)
    return X / (np.where(norms > 0.0, norms, 1.0) * _ROUNDING_MARGIN)[:, None]
