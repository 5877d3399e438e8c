"""Coverage of the default intervals with 5,000 records. Not private.

Each table is a sample of 5,000 records with a public schema, or is generated, and serves as the population of a
bootstrap study. The rule for hidden eigenvalues was chosen on Adult, normal columns and indicators; the others are a
check. Prints Markdown. Needs the full data files (DPCI_DATA).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import dpci
from _studies import Run, changed_options, markdown, parser, report, started
from dpci.mechanisms import check_mechanism
from row_shapes import ALL, NUMBERS, encoded, schema_of

RECORDS = 5_000
STRENGTH = 0.01
EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
REAL = {"Adult": "adult", "Bank": "bank", "Credit": "credit_default"}
GENERATED = ("uniform columns", "normal columns", "indicators")


def sample(name: str, columns: str) -> tuple[np.ndarray, np.ndarray, dpci.rows.Blocks]:
    """Records of a real table, in public blocks."""
    X, y = encoded(name, columns)
    chosen = np.random.default_rng(5).permutation(len(y))[:RECORDS]
    return X[chosen], y[chosen], schema_of(name, columns).rows


def generated(kind: str) -> tuple[np.ndarray, np.ndarray, dpci.rows.Blocks]:
    """Twelve independent columns of one kind and a column of ones, each a block; labels of a logistic model."""
    rng = np.random.default_rng(11)
    size = (RECORDS, 12)
    columns = {
        "uniform columns": lambda: rng.uniform(-1.0, 1.0, size),
        "normal columns": lambda: np.clip(rng.normal(0.0, 0.25, size), -1.0, 1.0),
        "indicators": lambda: (rng.random(size) < rng.uniform(0.1, 0.5, 12)).astype(float),
    }[kind]()
    X = np.column_stack([columns, np.ones(RECORDS)]) / 13**0.5
    signal = X @ rng.normal(0.0, 2.0, 13) - 0.8
    y = np.where(signal + rng.logistic(size=RECORDS) > 0.0, 1.0, -1.0)
    return X, y, dpci.rows.Blocks([13**-0.5] * 13)


def studies(
    run: Run, titles: tuple[str, ...], *, columns: str = NUMBERS, projection: str = "noise_aware", delta: float = 0.0
) -> Iterator[str]:
    replicates, spread = run.small
    notion = f"(ε, {delta:g})-DP" if delta else "pure ε-DP"
    yield f"## Mean coverage; worst parameter: {notion}, projection {projection}, {columns}\n"
    header = ["data", "rows", "mechanism", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "without noise"]
    budgets = [dpci.ApproxDP(epsilon, delta) if delta else dpci.PureDP(epsilon) for epsilon in EPSILONS]
    budgets.append(dpci.PureDP(1e6))
    table: list[list[object]] = []
    found: list[float] = []
    ratios: list[float] = []
    for title in titles:
        X, y, blocks = sample(REAL[title], columns) if title in REAL else generated(title)
        ball = dpci.rows.Ball(1.0)
        for rows, mechanism in ((blocks, "objective"), (ball, "objective"), (ball, "output")):
            keywords: dict[str, Any] = {
                "rows": rows,
                "mechanism": replace(check_mechanism(mechanism), projection=projection),
                "l2_strength": STRENGTH,
            }
            results = dpci.simulate.coverage(
                X,
                y,
                classes=(-1, 1),
                budget=budgets[0],
                configs=[{"budget": budget} for budget in budgets],
                n_replicates=replicates,
                n_variability=spread,
                seed=run.seed,
                n_threads=run.threads,
                **keywords,
            )
            found += [study.coverage for study in results[:-1]]
            ratios += [study.length_ratio for study in results[:-1]]
            cells = [f"{study.coverage:.3f}; {min(study.coverage_by_param):.3f}" for study in results]
            table.append([title, "blocks" if rows is blocks else "ball", mechanism, *cells])
    yield from markdown(header, table)
    low, middle, high = np.quantile(found, [0.0, 0.5, 1.0])
    below = sum(coverage < 0.94 for coverage in found)
    yield (
        f"\nMean coverage of the {len(found)} settings with noise: {low:.3f} to {high:.3f}, median {middle:.3f}; "
        f"below .940 in {below} of them. "
        f"Lengths are {np.median(ratios):.2f} times those that the errors call for (median)."
    )


def parameters(run: Run) -> Iterator[str]:
    """Yield the parameters of Adult that are covered least, with all columns and noise in the shape of its blocks."""
    yield "## The least covered parameters: Adult, all columns, blocks, objective perturbation, pure ε-DP\n"
    X, y, blocks = sample("adult", ALL)
    names = schema_of("adult", ALL).names
    budgets = [*EPSILONS[:1], EPSILONS[2], EPSILONS[4], 1e6]
    studies = dpci.simulate.coverage(
        X,
        y,
        classes=(-1, 1),
        rows=blocks,
        budget=dpci.PureDP(budgets[0]),
        configs=[{"budget": dpci.PureDP(epsilon)} for epsilon in budgets],
        l2_strength=STRENGTH,
        n_replicates=run.large[0],
        n_variability=0,
        seed=run.seed,
        n_threads=run.threads,
    )
    counts = np.asarray((X > 0.0).sum(axis=0)).ravel()
    table: list[list[object]] = []
    for epsilon, study in zip(budgets, studies, strict=True):
        covered = np.asarray(study.coverage_by_param)
        length = (study.upper - study.lower).mean(axis=0)
        for j in np.argsort(covered, kind="stable")[:5]:
            name, records = (names[j], counts[j]) if j < len(counts) else ("intercept", RECORDS)
            shown = "without noise" if epsilon > EPSILONS[-1] else f"{epsilon:g}"
            table.append([shown, name, records, f"{covered[j]:.3f}", f"{length[j] / np.median(length):.2f}"])
    header = ["ε", "parameter", "records above 0", "coverage", "length over the median of all parameters"]
    yield from markdown(header, table)


def main() -> None:
    sections = {
        "default": functools.partial(studies, titles=(*REAL, *GENERATED)),
        "floor": functools.partial(studies, titles=(*REAL, *GENERATED), projection="floor"),
        "delta": functools.partial(studies, titles=(*REAL, *GENERATED), delta=1e-6),
        "all-columns": functools.partial(studies, titles=("Adult", "Bank"), columns=ALL),
        "all-columns-floor": functools.partial(studies, titles=("Adult", "Bank"), columns=ALL, projection="floor"),
        "all-columns-delta": functools.partial(studies, titles=("Adult", "Bank"), columns=ALL, delta=1e-6),
        "parameters": parameters,
    }
    options = parser(__doc__.splitlines()[0], list(sections))
    arguments = options.parse_args()
    report(
        "Intervals with 5,000 records",
        started(arguments),
        changed_options(options, arguments),
        sections,
        arguments.only,
        model=f"logistic loss, λ={STRENGTH}, default shares; the counts at d=10 for all",
    )


if __name__ == "__main__":
    sys.exit(main())
