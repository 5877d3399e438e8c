"""Parts of the reports of interval quality: data sets, settings, studies, rules, the report in Markdown."""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import scipy
from scipy.sparse import csr_array

import dpci
from _timing import commit, machine
from dpci.mechanisms import check_mechanism
from papers.scaling import load_with_data_dependent_scaling

L2_STRENGTH = 0.002
BUDGETS = {"pure": dpci.PureDP(1.0), "zCDP": dpci.ZCDP(0.1875), "(ε,δ)": dpci.ApproxDP(1.0, 1e-6)}
# Shares of (.5, .25, .25) and of (.125, .03125, .03125), the budgets of the published tables; they have no (ε,δ).
SPLITS = {"pure": (0.5, 0.25, 0.25), "zCDP": (2 / 3, 1 / 6, 1 / 6), "(ε,δ)": (0.5, 0.25, 0.25)}
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
        kind = check_mechanism(self.mechanism)
        methods = {
            "paper": {"mechanism": replace(kind, calibration="paper", split=SPLITS.get(self.notion))},
            "tight": {"mechanism": replace(kind, projection="floor", split=SPLITS.get(self.notion))},
            "default": {"mechanism": kind},
        }
        common = {"budget": BUDGETS[self.notion], "loss": LOSSES[self.loss]}
        return common | methods[self.method]

    def __str__(self) -> str:
        return f"{self.method}, {self.notion}, {self.mechanism}, {self.loss}"


@functools.cache
def load(rows: Rows) -> tuple[np.ndarray | csr_array, np.ndarray]:
    data = load_with_data_dependent_scaling(rows.name, rows.n, rows.d)
    return (csr_array(data.X) if rows.d >= SPARSE_FROM else data.X), data.y


def simulate(rows: Rows, configs: Sequence[dict[str, Any]], n_replicates: int, **options: Any) -> list[Any]:
    X, y = load(rows)
    common = {"l2_strength": L2_STRENGTH, "rows": dpci.rows.Within(intercept=False)}
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
    for row in chain((header, ["---"] * len(header)), rows):
        yield f"| {' | '.join(map(str, row))} |"


@dataclass
class Run:
    """How the studies are run, and which rules they broke."""

    seed: int
    threads: int | None
    # Replicates with intervals and replicates for the variability length, at d = 10 and at larger d.
    small: tuple[int, int]
    large: tuple[int, int]
    quick: bool
    checked: int = 0
    broken: list[str] = field(default_factory=list)

    def counts(self, rows: Rows) -> tuple[int, int]:
        return self.small if rows.d <= 10 else self.large

    def kept(self, cells: Iterable[Rows]) -> list[Rows]:
        """A quick run leaves out the large data set and the large dimensions."""
        return [rows for rows in cells if not self.quick or (rows.name == "adult" and rows.d <= 30)]

    def check(self, what: str, rules: Iterable[tuple[bool, str]]) -> str:
        """Count the rules, keep those that are broken, and return the verdict on all of them."""
        before = len(self.broken)
        for holds, rule in rules:
            self.checked += 1
            if not holds:
                self.broken.append(f"{what}: {rule}")
        verdict = "holds" if len(self.broken) == before else "broken"
        return "not judged" if self.quick else verdict

    def coverage(
        self, rows: Rows, configs: Sequence[dict[str, Any]], *, variability: bool = True
    ) -> list[dpci.simulate.CoverageStudy]:
        """Studies of several settings, which share their replicates."""
        print(f"{rows}: {len(configs)} settings", file=sys.stderr, flush=True)
        replicates, spread = self.counts(rows)
        return simulate(
            rows, configs, replicates, n_variability=spread * variability, seed=self.seed, n_threads=self.threads
        )


def parser(description: str, sections: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser of the options that all reports have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--replicates", type=int, default=1000, help="with intervals, at d=10")
    options.add_argument("--variability", type=int, default=4000, help="for the variability length, at d=10")
    options.add_argument("--large-replicates", type=int, default=300, help="the same for d > 10")
    options.add_argument("--large-variability", type=int, default=1000, help="the same for d > 10")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--threads", type=int, help="of the studies; default: all cores")
    options.add_argument("--only", choices=sections)
    options.add_argument("--quick", action="store_true", help="a few replicates on Adult; rules are not judged")
    return options


def started(arguments: argparse.Namespace) -> Run:
    small = (arguments.replicates, arguments.variability)
    large = (arguments.large_replicates, arguments.large_variability)
    if arguments.quick:
        small = large = (8, 16)
    return Run(arguments.seed, arguments.threads, small, large, arguments.quick)


def head(title: str, run: Run, options: str, model: str) -> list[str]:
    """Options, commit, date, machine and counts, read before anything is computed, when the load is that of others."""
    threads = run.threads or len(os.sched_getaffinity(0))
    (k, m), (large_k, large_m) = run.small, run.large
    return [
        f"# {title}\n",
        f"- options: {options or 'the defaults'}; commit {commit()}, {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC",
        f"- {machine()}, SciPy {scipy.__version__}, dpci {dpci.__version__}; threads: {threads}",
        f"- {model}, level .95, seed {run.seed}",
        f"- replicates with intervals and for the variability length: {k}, {m} at d=10; {large_k}, {large_m} above",
    ]


def changed_options(options: argparse.ArgumentParser, arguments: argparse.Namespace, *hidden: str) -> str:
    """Return as text the options that differ from the defaults, but for those that hold a path of the user."""
    changed = {
        name: value
        for name, value in vars(arguments).items()
        if name not in hidden and value != options.get_default(name)
    }
    flags = [f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}") for name, value in changed.items()]
    return " ".join(flags)


def report(
    title: str,
    run: Run,
    options: str,
    sections: Mapping[str, Callable[[Run], Iterable[str]]],
    only: str | None,
    *,
    model: str = f"λ={L2_STRENGTH}, Huber h=1",
) -> None:
    """Print the report with all sections, or one; leave with exit code 1 if a rule is broken."""
    lines, times = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpci.errors.DpciWarning)
        beginning = head(title, run, options, model)
        for name in [only] if only else sections:
            began = time.perf_counter()
            lines += ["", *sections[name](run)]
            times.append(f"{name} {time.perf_counter() - began:.0f} s")
    print("\n".join([*beginning, f"- run time: {', '.join(times)}", *lines, "\n## Rules\n"]))
    if run.quick:
        print("A quick run: rules are not judged.")
        return
    print(f"{run.checked} rules checked, {len(run.broken)} broken.\n")
    print("\n".join(f"- {rule}" for rule in run.broken))
    sys.exit(bool(run.broken))
