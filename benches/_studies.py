"""What the tables of interval quality are made of: data sets, settings, studies of several settings, Markdown."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import dpci

L2_STRENGTH = 0.002
BUDGETS = {"pure": dpci.PureDP(1.0), "zCDP": dpci.ZCDP(0.1875), "(ε,δ)": dpci.ApproxDP(1.0, 1e-6)}
# Shares of (.5, .25, .25) and of (.125, .03125, .03125), the budgets of the published tables.
SPLITS = {"pure": (0.5, 0.25, 0.25), "zCDP": (2 / 3, 1 / 6, 1 / 6)}
LOSSES = {"logistic": dpci.losses.Logistic(), "Huber": dpci.losses.HuberHinge(h=1.0)}
# From this many columns on most entries are zeros, and sparse rows are faster.
SPARSE_FROM = 30


@dataclass(frozen=True)
class Rows:
    """A prepared data set; d counts the columns before the column of ones."""

    title: str
    name: str
    n: int | None
    d: int

    def __str__(self) -> str:
        return f"{self.title}, d={self.d}"


def adult(d: int) -> Rows:
    return Rows("Adult", "adult", None, d)


def kdd(n: int, d: int) -> Rows:
    return Rows(f"KDD n={n:,}", "kddcup99", n, d)


@dataclass(frozen=True)
class Setting:
    """How the rows are fitted; method is "paper", "tight" (both at the published shares) or "default"."""

    notion: str
    mechanism: str
    loss: str
    method: str = "default"

    def keywords(self) -> dict[str, Any]:
        methods = {
            "paper": {"calibration": "paper", "split": SPLITS.get(self.notion)},
            "tight": {"projection": "floor", "split": SPLITS.get(self.notion)},
            "default": {},
        }
        common = {"budget": BUDGETS[self.notion], "mechanism": self.mechanism, "loss": LOSSES[self.loss]}
        return common | methods[self.method]

    def __str__(self) -> str:
        return f"{self.method}, {self.notion}, {self.mechanism}, {self.loss}"


@functools.cache
def load(rows: Rows) -> tuple[np.ndarray | csr_array, np.ndarray]:
    data = dpci.datasets.load_with_data_dependent_scaling(rows.name, rows.n, rows.d)
    return (csr_array(data.X) if rows.d >= SPARSE_FROM else data.X), data.y


def simulate(rows: Rows, configs: Sequence[dict[str, Any]], n_replicates: int, **options: Any) -> list[Any]:
    X, y = load(rows)
    common = {"l2_strength": L2_STRENGTH, "fit_intercept": False}
    return dpci.simulate.coverage(X, y, configs=configs, n_replicates=n_replicates, **common, **options)


def quality(study: Any) -> list[str]:
    numbers = (
        (study.coverage, ".4f"),
        (study.coverage_se, ".4f"),
        (study.mean_length, ".4g"),
        (study.length_ratio, ".3f"),
    )
    return [format(value, digits) for value, digits in numbers]


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    for row in (header, ["---"] * len(header), *rows):
        yield f"| {' | '.join(map(str, row))} |"
