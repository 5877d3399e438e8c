"""Lengths and coverage of default intervals for the cases of docs/ridge_lengths.md. Not private.

Each table serves as the population of a bootstrap study, so its minimiser is known. All fits have the defaults: an
intercept, the default shares, moments and projection. Prints Markdown. Needs the full Adult data (DPCI_DATA).
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array

import dpci
from _environments import now
from _studies import SPARSE_FROM, markdown
from _timing import commit, machine
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema
from row_shapes import ALL, encoded, schema_of

DELTA = 1e-6
RECORDS = 5_000
FITS = (1, 2, 4, 8, 16)
ENOUGH = 200
"""Replicates from which the least covered parameter is named: with fewer it shows chance."""
PURE, APPROX = dpci.PureDP(1.0), dpci.ApproxDP(1.0, DELTA)
WITHIN = APPROX.zcdp_within()
EXACT = dpci.PureDP(1e6)
LEVELS = {"A": 0.1, "B": 0.6, "C": 0.15, "D": 0.1, "E": 0.05}
"""Categories of a generated column and their probabilities; the first is the reference."""


@dataclass(frozen=True)
class Case:
    """A table, the strengths of the ridge, and how often it is sampled."""

    title: str
    n: int
    numbers: int
    categories: int
    strengths: tuple[float, float]
    replicates: int


CASES = (
    Case("6 numbers", RECORDS, 6, 0, (0.01, 0.05), 400),
    Case("2 numbers, a category of five", RECORDS, 2, 1, (0.01, 0.05), 400),
    Case("50 numbers", RECORDS, 50, 0, (0.01, 0.05), 300),
    Case("10 numbers, 10 categories of five", RECORDS, 10, 10, (0.01, 0.05), 300),
    Case("6 numbers", 30_000, 6, 0, (0.002, 0.01), 200),
    Case("50 numbers", 30_000, 50, 0, (0.002, 0.01), 50),
    Case("Adult, all columns", 0, 0, 0, (0.002, 0.01), 50),
)


def simulated(case: Case) -> tuple[Schema, np.ndarray, np.ndarray]:
    """Return a public schema and encoded rows within it; numbers vary as Beta(3, 3) between their bounds."""
    rng = np.random.default_rng(7)
    columns: list[Any] = [NumericColumn(name=f"x{j}", lower=0.0, upper=1.0) for j in range(case.numbers)]
    columns += [
        CategoricalColumn(name=f"c{j}", categories=tuple(LEVELS), reference="A") for j in range(case.categories)
    ]
    table: dict[str, Any] = {f"x{j}": rng.beta(3.0, 3.0, case.n) for j in range(case.numbers)}
    score = np.full(case.n, -1.0)
    for j in range(case.numbers):
        score += rng.normal(0.0, 1.5) * (table[f"x{j}"] - 0.5)
    for j in range(case.categories):
        codes = rng.choice(len(LEVELS), case.n, p=list(LEVELS.values()))
        table[f"c{j}"] = np.array(list(LEVELS))[codes]
        score += rng.normal(0.0, 0.4, len(LEVELS))[codes]
    table["ill"] = np.where(score + rng.logistic(size=case.n) > 0.0, "yes", "no")
    schema = Schema(columns=tuple(columns), target=ClassTarget(column="ill", negative=("no",), positive=("yes",)))
    X, y, _ = schema.transform(table)
    return schema, X, y


def table_of(case: Case) -> tuple[Schema, Any, np.ndarray]:
    if case.numbers:
        schema, X, y = simulated(case)
    else:
        schema = schema_of("adult", ALL)
        X, y = encoded("adult", ALL)
    return schema, (csr_array(X) if X.shape[1] >= SPARSE_FROM else X), y


def best_guess(budget: dpci.ApproxDP, case: Case) -> float:
    """Return the greatest probability of a right guess between two records (docs/inference_formulas.md)."""
    plan = dpci.plan(
        n_samples=case.n, n_features=case.numbers, budget=budget, l2_strength=case.strengths[0], classes=(-1, 1)
    )
    points = [budget.epsilon * i / 16 for i in range(33)]
    distance = min(1 - 2 * (1 - float(plan.guarantee.delta(point))) / (1 + math.exp(point)) for point in points)
    return (1 + distance) / 2


def equal_guess(case: Case) -> dpci.ApproxDP:
    """Return the (ε, δ) budget with the greatest ε whose best guess is at most that of pure ε = 1."""
    greatest = math.e / (1 + math.e)
    root = brentq(lambda epsilon: best_guess(dpci.ApproxDP(epsilon, DELTA), case) - greatest, 1.0, 9.0, xtol=1e-3)
    return dpci.ApproxDP(math.floor(root * 10) / 10, DELTA)


def length(study: dpci.simulate.CoverageStudy) -> tuple[float, float]:
    """Return the median over the parameters of the mean length, and the mean length for the intercept."""
    lengths = (study.upper - study.lower).mean(axis=0)
    return float(np.median(lengths[:-1])), float(lengths[-1])


def studies(case: Case, domain: Any, configs: list[dict[str, Any]]) -> list[dpci.simulate.CoverageStudy]:
    _, X, y = table_of(case)
    return dpci.simulate.coverage(
        X,
        y,
        classes=(-1, 1),
        rows=domain,
        budget=PURE,
        l2_strength=case.strengths[0],
        configs=configs,
        n_replicates=case.replicates,
        n_variability=0,
        seed=0,
        n_threads=1,
    )


def domains(schema: Schema) -> dict[tuple[str, str], Any]:
    """Return the rows of each way to fit: output perturbation has no noise in the shape of blocks."""
    ball = dpci.rows.Ball(1.0)
    return {("ball", "objective"): ball, ("ball", "output"): ball, ("blocks", "objective"): schema.rows}


def cells(study: dpci.simulate.CoverageStudy) -> list[str]:
    middle, intercept = length(study)
    covered = np.asarray(study.coverage_by_param)
    worst = f"; {covered.min():.3f}" if len(study.upper) >= ENOUGH else ""
    return [f"{middle:.3g}", f"{intercept:.3g}", f"{covered.mean():.3f}{worst}"]


def one_release(case: Case) -> Iterator[str]:
    schema, X, y = table_of(case)
    d, blocks = X.shape[1], len(schema.columns)
    yield f"## {case.title}, n = {len(y):,}\n"
    yield (
        f"{d} columns and an intercept; {case.replicates} replicates. The range of a number is "
        f"{2 / math.sqrt(blocks):.3g} scaled units, and an indicator is 0 or {1 / math.sqrt(blocks):.3g}.\n"
    )
    notions = {"pure ε = 1": PURE, "(1, 10⁻⁶)": APPROX, f"ρ = {WITHIN.rho:.4f}": WITHIN, "ρ = 1": dpci.ZCDP(1.0)}
    if case.n == RECORDS:
        equal = equal_guess(case)
        notions[f"({equal.epsilon:g}, 10⁻⁶)"] = equal
    found: dict[tuple[str, str, str], list[str]] = {}
    for way, domain in domains(schema).items():
        budgets = notions | ({"without noise": EXACT} if not found else {})
        configs = [
            {"budget": budget, "mechanism": way[1], "l2_strength": strength}
            for budget in budgets.values()
            for strength in case.strengths
        ]
        results = iter(studies(case, domain, configs))
        for notion in budgets:
            found[notion, *way] = [*cells(next(results)), *cells(next(results))]
    order = [*notions, "without noise"]
    table = [[*key, *found[key]] for key in sorted(found, key=lambda key: order.index(key[0]))]
    named = [f"λ = {value:g}: length" for value in case.strengths]
    header = ["budget", "rows", "mechanism"]
    for name in named:
        header += [name, "intercept", "coverage: mean; worst"]
    yield from markdown(header, table)
    yield ""


def several(case: Case) -> Iterator[str]:
    """Yield the lengths of each of k fits that share one total."""
    schema, _, _ = table_of(case)
    totals: dict[str, list[Any]] = {
        "pure ε = 1": [dpci.PureDP(1.0 / k) for k in FITS],
        "(1, 10⁻⁶)": [dpci.ApproxDP(1.0 / k, DELTA / k) for k in FITS],
        f"ρ = {WITHIN.rho:.4f}": [dpci.ZCDP(WITHIN.rho / k) for k in FITS],
    }
    table = []
    for way, domain in domains(schema).items():
        for total, budgets in totals.items():
            configs = [{"budget": budget, "mechanism": way[1]} for budget in budgets]
            found = studies(case, domain, configs)
            table.append([case.title, total, *way, *(f"{length(study)[0]:.3g}" for study in found)])
    table.sort(key=lambda row: list(totals).index(str(row[1])))
    yield from markdown(["columns", "total", "rows", "mechanism", *(f"k = {k}" for k in FITS)], table)
    yield ""


def main() -> None:
    """Print docs/evidence/choose_lengths.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="eight replicates of the tables with 5,000 records")
    quick = parser.parse_args().quick
    cases = [dataclasses.replace(case, replicates=8) for case in CASES if case.n == RECORDS] if quick else CASES
    began = time.process_time()
    warnings.simplefilter("ignore", dpci.errors.DpciWarning)
    print("# Default intervals for the cases of the page on choosing\n")
    print(f"- `python benches/choose_lengths.py{' --quick' if quick else ''}`, commit {commit()}, {now()}")
    print(f"- {machine()}, dpci {dpci.__version__}; one thread")
    print("- logistic loss, level .95, seed 0; generated tables from seed 7")
    print(ABOUT)
    for case in cases:
        print(*one_release(case), sep="\n", flush=True)
    print(f"## Several fits from one total, n = {RECORDS:,}\n\n{SEVERAL}")
    for case in cases:
        if case.n == RECORDS and not case.categories:
            print(*several(dataclasses.replace(case, replicates=30)), sep="\n", flush=True)
    print(f"Run time: {time.process_time() - began:.0f} s of one core.")


ABOUT = """
All fits have the **defaults**: an intercept, which is not counted in the norm of a row, default shares, moments and
projection. A table serves as the population of a bootstrap study: a replicate draws as many rows as there are, with
replacement, and the target is the minimiser on the table. The generated numbers follow a Beta(3, 3) law between their
bounds, and the five categories have the probabilities .1 (the reference), .6, .15, .1 and .05.

- *Length* is the mean length of the 95% intervals in log odds per unit of the scaled column, as a median over the
  parameters without the intercept. *Intercept* is that of the intercept.
- *Ball*: the encoded rows with `rows=Ball(1)`, all that is known of arrays without a schema. *Blocks*: the same rows
  with `rows=schema.rows`, the default for tables. Output perturbation has no noise in the shape of blocks.
- *Worst* is the parameter covered least, where there are enough replicates. With many parameters it is below the level
  by chance: of 50 parameters covered .95 with 300 replicates it is about .92.
- ρ = 0.0244 is the greatest zCDP budget within (1, 10⁻⁶). (4.2, 10⁻⁶) has the best guess of pure ε = 1: an attacker
  rightly guesses which of two equally likely records is in the data with probability .732 at most. ρ = 1 is for
  comparison, and protects less.
"""
SEVERAL = """Lengths of each of k fits that divide the total equally, λ = 0.01: ε/k, (ε/k, δ/k) or ρ/k, as a
[ledger](../ledger.md) adds them. 30 replicates.
"""


if __name__ == "__main__":
    main()
