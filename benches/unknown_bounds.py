"""Lengths and coverage of fits that release the bounds of six columns first, beside bounds that are known. Not private.

A uniform, a lognormal, a normal and a Student column with three degrees of freedom, a column of 12 categories, and a
number that is missing in one row of ten. Prints Markdown.
"""

import argparse
import datetime as dt
import math
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpci
from _studies import markdown
from _timing import commit
from dpci.schema import (
    CategoricalColumn,
    ClassTarget,
    NumericColumn,
    PartialSchema,
    Schema,
    UnboundedColumn,
    UnlistedColumn,
)
from newton import ordinary

BUDGETS = {"ε = 1": dpci.PureDP(1.0), "ρ = .5": dpci.ZCDP(0.5), "(1, 1e-6)": dpci.ApproxDP(1.0, 1e-6)}
NUMBERS = ("uniform", "lognormal", "normal", "t3", "gaps")
LEVELS = tuple("abcdefghijkl")
SHARES = 0.85 ** np.arange(12) / np.sum(0.85 ** np.arange(12))
RANGES = {"uniform": (-1.0, 2.0), "lognormal": (-10.0, 100.0), "normal": (-6.0, 6.0), "t3": (-50.0, 50.0),
          "gaps": (-6.0, 6.0)}  # fmt: skip
TARGET = ClassTarget(column="y", negative=(False,), positive=(True,))
SIZE = 100_000
Table = dict[str, NDArray[Any]]


def population() -> tuple[Table, NDArray[np.float64]]:
    """Return a population, and the probability of each person's positive class."""
    rng = np.random.default_rng(41)
    uniform, lognormal = rng.uniform(0.0, 1.0, SIZE), rng.lognormal(0.0, 1.0, SIZE)
    normal, t3, gaps = rng.normal(size=SIZE), rng.standard_t(3, SIZE), rng.normal(size=SIZE)
    level = rng.choice(12, SIZE, p=SHARES)
    missing = rng.random(SIZE) < 0.1
    odds = uniform + 0.3 * np.minimum(lognormal, 4.0) + 0.5 * normal + 0.3 * np.clip(t3, -4.0, 4.0)
    odds += np.where(missing, 0.3, 0.4 * gaps) + 0.1 * (level - 5.0) - 1.2
    columns = (uniform, lognormal, normal, t3, np.where(missing, np.nan, gaps))
    table: Table = {**dict(zip(NUMBERS, columns, strict=True)), "level": np.array(LEVELS)[level]}
    return table, 1.0 / (1.0 + np.exp(-odds))


def gaps_of(budget: Any, width: float | None) -> PartialSchema:
    """Return the schema with gaps; ``width``: how many times too wide public ranges are, None: there are none."""
    columns: list[Any] = []
    for name in NUMBERS:
        lower, upper = (None, None) if width is None else (width * end for end in RANGES[name])
        missing: Any = "middle" if name == "gaps" else "error"
        columns.append(UnboundedColumn(name=name, lower=lower, upper=upper, missing=missing))
    if isinstance(budget, dpci.ApproxDP):
        columns.append(UnlistedColumn(name="level", categories=("a",), reference="a"))
    else:
        columns.append(CategoricalColumn(name="level", categories=LEVELS, reference="a"))
    return PartialSchema(columns=tuple(columns), target=TARGET)


def oracle(table: Table) -> Schema:
    """Return the schema of who knows the 2% and 98% quantiles of all columns."""
    columns: list[Any] = []
    for name in NUMBERS:
        lower, upper = np.nanquantile(table[name], [0.02, 0.98])
        middle = {"missing": 0.5 * (lower + upper)} if name == "gaps" else {}
        columns.append(NumericColumn(name=name, lower=lower, upper=upper, outside="clip", **middle))
    columns.append(CategoricalColumn(name="level", categories=LEVELS, reference="a"))
    return Schema(columns=tuple(columns), target=TARGET)


def coefficients(schema: Schema, table: Table, chances: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return the population's coefficients, and the standard deviations of its columns."""
    whole = schema.transform({**table, "y": chances > 0.5})
    X = np.asarray(whole.X.toarray() if hasattr(whole.X, "toarray") else whole.X)
    rows = np.column_stack([X, np.ones(len(X))])
    start, _ = ordinary(rows[:5_000], chances[:5_000], np.zeros(rows.shape[1]))
    truth, _ = ordinary(rows, chances, start)
    return truth, np.r_[X.std(axis=0), 1.0]


def halves(fit: Any, population: tuple[Any, Any]) -> dict[str, tuple[float, bool]]:
    """Return half the length of each interval in standard deviations, and whether it holds the population's."""
    (truth, spread), interval = population, fit.scaled.conf_int()
    lower, upper = np.asarray(interval.lower), np.asarray(interval.upper)
    return {
        name: (0.5 * (upper[j] - lower[j]) * spread[j], bool(lower[j] <= truth[j] <= upper[j]))
        for j, name in enumerate(interval.names)
        if np.isfinite(lower[j])
    }


def touched(schema: Schema, people: Table) -> float:
    """Return the share of the records with a number beyond its bounds."""
    numbers = [column for column in schema.columns if isinstance(column, NumericColumn)]
    with np.errstate(invalid="ignore"):
        beyond = [(people[c.name] < c.lower) | (people[c.name] > c.upper) for c in numbers]
    return float(np.any(beyond, axis=0).mean())


def replicates(label: str, widths: list[float | None], n: int, seeds: range) -> dict[float | None, list[Any]]:
    """Return the outcome of each seed and of each width of the public ranges; key -1: that of known quantiles."""
    warnings.simplefilter("ignore")
    table, chances = population()
    budget = BUDGETS[label]
    known = oracle(table)
    partial = {width: gaps_of(budget, width) for width in widths}
    of_known = coefficients(known, table, chances)
    found: dict[float | None, list[Any]] = {width: [] for width in (*widths, -1.0)}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, SIZE, n)
        people: Table = {**{name: values[rows] for name, values in table.items()}, "y": rng.random(n) < chances[rows]}
        ideal = dpci.fit(people, schema=known, budget=budget, seed=seed)
        found[-1.0].append("unusable" if ideal.interval_refusal else halves(ideal, of_known))
        for width in widths:
            try:
                fit = dpci.fit(people, schema=partial[width], budget=budget, seed=seed)
            except dpci.InvalidInput:
                found[width].append("refused")
                continue
            if fit.interval_refusal:
                found[width].append("unusable")
                continue
            own = halves(fit, coefficients(fit.schema, table, chances))
            found[width].append((own, touched(fit.schema, people)))
    return found


def lengths(own: list[Any], ideal: list[Any], names: Iterable[str]) -> float:
    """Return the geometric mean of the ratios of median lengths."""
    ratios = []
    for name in names:
        pair = [[run[name][0] for run in runs if name in run] for runs in (own, ideal)]
        if all(pair):
            ratios.append(np.median(pair[0]) / np.median(pair[1]))
    return math.exp(np.mean(np.log(ratios))) if ratios else math.nan


def rows(label: str, widths: list[float | None], n: int, seeds: range) -> list[list[str]]:
    """Return the rows of the table for one budget and one number of records."""
    found = replicates(label, widths, n, seeds)
    known = found.pop(-1.0)
    ideal = [run for run in known if not isinstance(run, str)]
    table = []
    for width, runs in found.items():
        ranges = "none" if width is None else f"{width:,.0f} times"
        shares = [f"{runs.count('refused') / len(runs):.1%}",
                  f"{runs.count('unusable') / len(runs):.1%} ({known.count('unusable') / len(runs):.1%})"]  # fmt: skip
        usable = [run for run in runs if not isinstance(run, str)]
        line = [f"{n:,}", label, ranges, *shares]
        if usable:
            own = [run for run, _ in usable]
            names = {name for run in own for name in run}
            both = [lengths(own, ideal, which) for which in (names, names & set(NUMBERS))]
            hits = [np.mean([hit for run in which for _, hit in run.values()]) if which else math.nan
                    for which in (own, ideal)]  # fmt: skip
            beyond = np.mean([share for _, share in usable])
            line += [f"{beyond:.1%}", *(f"{length:.2f}" for length in both), f"{hits[0]:.3f} ({hits[1]:.3f})"]
        else:
            line += [""] * 4
        table.append([cell.replace("nan", "-") for cell in line])
    return table


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="*", default=[5_000, 30_000, 300_000])
    options.add_argument("--runs", type=int, nargs="*", default=[200, 200, 100], help="of each size")
    options.add_argument("--widths", type=float, nargs="*", default=[0.0, 1.0, 10.0, 1000.0], help="0: no ranges")
    options.add_argument("--seed", type=int, default=410_000)
    options.add_argument("--workers", type=int, default=2)
    given = options.parse_args()
    today = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    print("# Fits of six columns whose bounds nobody knows\n")
    print(
        f"`benches/unknown_bounds.py --sizes {' '.join(map(str, given.sizes))} --runs {' '.join(map(str, given.runs))}`"
        f", commit {commit()}, {today}, seeds from {given.seed:,}.\n"
    )
    print(
        "`ranges`: how many times too wide the public ranges are. `refused`: before anything is paid. `unusable`: fits "
        "without intervals, in brackets with known quantiles. `beyond`: records with a number beyond the released "
        "bounds. `length`: of the intervals, in standard deviations of their columns, over those of a fit that knows "
        "the 2% and 98% quantiles and the categories, geometric mean of all coefficients; `numbers`: of those of "
        "numbers. `covered`: by 95% intervals, of the coefficients of the population at the released bounds; in "
        "brackets with known quantiles. Under pure DP and zCDP the 12 categories are public.\n"
    )
    cells = [
        (label, [width or None for width in given.widths], n, range(given.seed, given.seed + runs))
        for n, runs in zip(given.sizes, given.runs, strict=True)
        for label in BUDGETS
    ]
    with ProcessPoolExecutor(given.workers) as pool:
        tables = pool.map(rows, *zip(*cells, strict=True))
        header = ("n", "budget", "ranges", "refused", "unusable", "beyond", "length", "numbers", "covered")
        for line in markdown(header, (line for table in tables for line in table)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
