"""Lengths of intervals with noise in the shape of the rows, against noise for the ball around them. Not private.

Both fits have the same encoded rows, the same lambda, the same budget and so the same target: rows=Ball(1) against the
blocks of the public schema, which lie in that ball. Prints Markdown; exit code 1 if a rule is broken. Needs the full
data files (DPCI_DATA).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpci
from _studies import BUDGETS, L2_STRENGTH, Run, changed_options, markdown, parser, report, started
from dpci.schema import NumericColumn, Schema

NUMBERS, SOME, ALL = "numbers", "numbers, sex, race, marital status", "all columns"
GREATEST = {NUMBERS: 0.80, SOME: 0.60, ALL: 0.40}
"""Greatest ratio of the lengths on Adult at pure epsilon 1, geometric mean over the parameters."""
COVERAGE = (0.942, 0.968)
TABLES = [
    ("adult", NUMBERS),
    ("adult", SOME),
    ("adult", ALL),
    *((name, ALL) for name in ("bank", "credit_default", "kddcup99")),
]
CASES = [("pure", "objective"), ("zCDP", "objective"), ("(ε,δ)", "objective"), ("pure", "output")]


def schema_of(name: str, columns: str) -> Schema:
    whole = dpci.datasets.load_schema(name)
    kept = {
        NUMBERS: lambda c: isinstance(c, NumericColumn),
        SOME: lambda c: isinstance(c, NumericColumn) or c.name in {"sex", "race", "marital-status"},
        ALL: lambda _: True,
    }[columns]
    return dataclasses.replace(whole, columns=tuple(column for column in whole.columns if kept(column)))


@functools.cache
def encoded(name: str, columns: str) -> tuple[np.ndarray, np.ndarray]:
    X, y, _ = schema_of(name, columns).transform(dpci.datasets.load_table(name))
    return X, y


def studies(run: Run, name: str, columns: str, case: tuple[str, str]) -> list[Any]:
    """Return the studies with the ball and, where there is noise in its shape, with the blocks."""
    notion, mechanism = case
    X, y = encoded(name, columns)
    n_replicates = 40 if run.quick else (400 if X.shape[1] <= 30 else 150)
    domains: list[Any] = [dpci.rows.Ball(1.0)]
    if mechanism == "objective":
        domains.append(schema_of(name, columns).rows)
    return [
        dpci.simulate.coverage(
            X,
            y,
            classes=(-1, 1),
            rows=rows,
            budget=BUDGETS[notion],
            mechanism=mechanism,
            l2_strength=L2_STRENGTH,
            n_replicates=n_replicates,
            n_variability=0,
            seed=run.seed,
            n_threads=run.threads,
        )
        for rows in domains
    ]


def lengths(run: Run) -> Iterator[str]:
    yield "## Lengths at the same budget\n"
    yield (
        f"Logistic loss, λ={L2_STRENGTH}, default settings. The ratio is the mean length with blocks divided by the "
        "mean length with the ball, as a geometric mean over the parameters. d counts the parameters.\n"
    )
    table = []
    for name, columns in TABLES:
        for case in CASES:
            found = studies(run, name, columns, case)
            ball = found[0]
            row = [name, columns, ball.lower.shape[1], *case, f"{ball.mean_length:.4g}", f"{ball.coverage:.3f}"]
            if len(found) == 1:
                table.append([*row, "", "", ""])
                continue
            blocks = found[1]
            by_parameter = [(study.upper - study.lower).mean(axis=0) for study in found]
            ratio = float(np.exp(np.log(by_parameter[1] / by_parameter[0]).mean()))
            table.append([*row, f"{blocks.mean_length:.4g}", f"{blocks.coverage:.3f}", f"{ratio:.3f}"])
            what, slack = f"{name}, {columns}, {case}", 2.0 * blocks.coverage_se
            low, high = COVERAGE[0] - slack, COVERAGE[1] + slack
            rules = [(low <= blocks.coverage <= high, f"coverage must be in {COVERAGE}, got {blocks.coverage:.4f}")]
            if (name, *case) == ("adult", "pure", "objective"):
                greatest = GREATEST[columns]
                rules.append((ratio <= greatest, f"the ratio must be at most {greatest}, got {ratio:.3f}"))
            run.check(what, rules)
    header = "data,columns,d,notion,mechanism,length with the ball,coverage,length with blocks,coverage,ratio"
    yield from markdown(header.split(","), table)


def noise(run: Run) -> Iterator[str]:
    yield "## Noise of the coefficients at the same budget\n"
    yield (
        "These ratios come from plans alone: the standard deviation of the noise with blocks divided by that with the "
        "ball, as a geometric mean over the parameters. Objective perturbation.\n"
    )
    table = []
    for name, columns in TABLES:
        X, _ = encoded(name, columns)
        row: list[object] = [name, columns, X.shape[1] + 1]
        for notion in ("pure", "zCDP", "(ε,δ)"):
            plans = [
                dpci.plan(
                    n_samples=len(X),
                    n_features=X.shape[1],
                    rows=rows,
                    budget=BUDGETS[notion],
                    mechanism="objective",
                    l2_strength=L2_STRENGTH,
                )
                for rows in (dpci.rows.Ball(1.0), schema_of(name, columns).rows)
            ]
            ball, blocks = (np.log(plan.noise_std_devs).mean() for plan in plans)
            ratio = float(np.exp(blocks - ball))
            row.append(f"{ratio:.3f}")
            run.check(f"{name}, {columns}, {notion}", [(ratio <= 1.0, f"the ratio must be at most 1, got {ratio:.3f}")])
        table.append(row)
    yield from markdown(["data", "columns", "d", "pure", "zCDP", "(ε,δ)"], table)


def main() -> None:
    sections = {"lengths": lengths, "noise": noise}
    options = parser(__doc__.splitlines()[0], tuple(sections))
    arguments = options.parse_args()
    changed = changed_options(options, arguments)
    report("Noise in the shape of the rows", started(arguments), changed, sections, arguments.only)


if __name__ == "__main__":
    main()
