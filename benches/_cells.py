"""Cells drawn at random: their tables, the records that a fit draws, what it warns of, and the report of all cells."""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import dpci
from _timing import commit

LEVEL = 0.95
# Coverage below which a cell is low: on average, and of one parameter.
MEAN, WORST = 0.90, 0.80
# A warning, or a note, that most fits of a cell give speaks for the cell.
SPOKEN = 0.5

Numbers = np.ndarray[Any, np.dtype[np.float64]]


@dataclasses.dataclass(frozen=True)
class Drawn:
    """One way to fit one table."""

    number: int
    title: str
    X: Numbers
    y: Numbers
    # Numbers of rows of the persons, whose rows follow each other; None: one row a record.
    persons: Numbers | None
    weights: Numbers | None
    n: int
    keywords: dict[str, Any]


def columns(rng: np.random.Generator, n: int, d: int) -> tuple[str, Numbers]:
    """Columns within [-1, 1], of which the data may fill little."""
    kind = str(rng.choice(["uniform", "normal", "student", "lognormal", "binary", "rare", "correlated", "mixed"]))
    shape = (n, d)
    if kind == "mixed":
        return kind, np.hstack([columns(rng, n, 1)[1] for _ in range(d)])
    draws = {
        "uniform": lambda: rng.uniform(-1.0, 1.0, shape),
        "normal": lambda: np.clip(rng.normal(0.0, 0.3, shape), -1.0, 1.0),
        "student": lambda: np.clip(rng.standard_t(2.0, shape) / 8.0, -1.0, 1.0),
        "lognormal": lambda: np.clip(rng.lognormal(0.0, 1.0, shape) / 10.0, 0.0, 1.0),
        "binary": lambda: rng.choice([-1.0, 1.0], shape),
        "rare": lambda: (rng.random(shape) < 0.03).astype(float),
        "correlated": lambda: np.clip(0.25 * (rng.normal(size=shape) + rng.normal(size=(n, 1))), -1.0, 1.0),
    }
    return kind, draws[kind]() / rng.choice([1.0, 1.0, 3.0])


def real_targets(rng: np.random.Generator, signal: Numbers) -> tuple[str, Numbers]:
    """Targets within [-1, 1]: a linear model with errors of one kind and size."""
    kind = str(rng.choice(["normal", "skewed", "student", "bimodal", "spiked", "uneven"]))
    n = len(signal)
    errors = {
        "normal": lambda: rng.normal(size=n),
        "skewed": lambda: (rng.lognormal(0.0, 1.0, n) - np.exp(0.5)) / 2.0,
        "student": lambda: rng.standard_t(3.0, n) / 1.7,
        "bimodal": lambda: rng.choice([-1.0, 1.0], n) + 0.2 * rng.normal(size=n),
        "spiked": lambda: np.where(rng.random(n) < 0.9, 0.1, 3.0) * rng.normal(size=n),
        "uneven": lambda: rng.normal(size=n) * (0.3 + np.abs(signal) / (np.abs(signal).mean() + 1e-9)),
    }[kind]()
    scale = float(np.exp(rng.uniform(np.log(0.03), np.log(0.4))))
    spread = float(rng.choice([0.0, 0.1, 0.3]))
    return kind, np.clip(spread * signal + scale * errors, -1.0, 1.0)


def record_weights(counts: Numbers | None, weights: Numbers | None, n: int) -> Numbers:
    """Weights of the rows of a table in its mean loss, not normalised."""
    if counts is not None:
        return np.repeat(1.0 / counts, counts)
    return np.ones(n) if weights is None else weights


def sample(made: Drawn, rng: np.random.Generator) -> tuple[Numbers, Numbers, dict[str, Any]]:
    """Records drawn with replacement, and the keywords that go with them."""
    drawn = rng.integers(made.n, size=made.n)
    if made.persons is None:
        weights = None if made.weights is None else made.weights[drawn]
        return made.X[drawn], made.y[drawn], extra_of(made, weights, None)
    first = np.cumsum(made.persons) - made.persons
    sizes = made.persons[drawn]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.repeat(first[drawn], sizes) + within
    return made.X[rows], made.y[rows], extra_of(made, None, sizes)


def extra_of(made: Drawn, weights: Numbers | None, sizes: Numbers | None) -> dict[str, Any]:
    """Keywords of a fit to records with these weights, or to persons of these sizes."""
    public = {"neighbors": dpci.AddRemove(made.n)} if made.keywords["neighbors"] == "add_remove" else {}
    if sizes is not None:
        ids = np.repeat(np.arange(made.n), sizes.astype(int))
        return {"persons": ids} | public
    if weights is not None:
        total = made.n * float(np.mean(made.weights))
        return {"weights": dpci.Weights(weights, bound=1.0, total=total)} | public
    return public


def heard(caught: list[warnings.WarningMessage], names: Sequence[str]) -> tuple[set[str], Numbers]:
    """The names of the warnings of a fit, and whether one of them names each parameter."""
    said = {w.category.__name__ for w in caught if issubclass(w.category, dpci.DpciWarning)} - {"SeededNoiseWarning"}
    parameters = {name for w in caught for name in getattr(w.message, "parameters", ())}
    return said, np.array([name in parameters for name in names])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """Study of many cells in several processes, with what is printed of them."""

    script: str
    title: str
    introduction: str
    # The JSON object of a cell; None if its settings are refused.
    study: Callable[[int], dict[str, Any] | None]
    lines: Callable[[list[dict[str, Any]]], Iterator[str]]
    verdict: Callable[[dict[str, Any]], str]
    # Key of the objects of cells that are judged.
    given: str

    def run(self, description: str | None, *, cells: int) -> int:
        """Study the cells that the command line names, and print the report; 1 if one is low and nothing names why."""
        options = argparse.ArgumentParser(description=description)
        options.add_argument("--cells", type=int, default=cells, help="numbers of cells that are tried")
        options.add_argument("--first", type=int, default=0, help="the first of these numbers")
        options.add_argument("--workers", type=int, default=2)
        options.add_argument(
            "--kept", type=Path, help="file of the studied cells, one JSON object a line, which are kept"
        )
        chosen = options.parse_args()
        found = chosen.kept.read_text().splitlines() if chosen.kept and chosen.kept.exists() else []
        rows = [json.loads(line) for line in found]
        numbers = sorted({*range(chosen.first, chosen.first + chosen.cells)} - {row["number"] for row in rows})
        with ProcessPoolExecutor(chosen.workers) as pool:
            for row in filter(None, pool.map(self.study, numbers)):
                rows.append(row)
                if chosen.kept:
                    with chosen.kept.open("a") as kept:
                        print(json.dumps(row), file=kept)
        rows.sort(key=lambda row: int(row["number"]))
        print(f"# {self.title}\n")
        now, last = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}", chosen.first + chosen.cells - 1
        command = f"`python benches/{self.script}`"
        print(f"{command}, commit {commit()}, {now}, cells {chosen.first}-{last}, level {LEVEL:g}.\n")
        print(self.introduction)
        print("\n".join(self.lines(rows)))
        return 1 if any(self.verdict(row) in {"warned", "silent"} for row in rows if self.given in row) else 0
