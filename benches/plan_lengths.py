"""Mean lengths of intervals that a plan predicts from an earlier fit, over those of a study of other rows.

Not private. The earlier fit sees one half of a data set, the study the other half. Prints Markdown; exit code 1 if a
prediction is off by more than 15%. Needs the full data files (DPCI_DATA). ``--newton`` compares plans of Newton steps
with docs/evidence/newton.md instead, and needs no data.
"""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path

import numpy as np

import dpci
import newton as cells
from _environments import now
from _studies import BUDGETS, L2_STRENGTH, Rows, adult, kdd, load, markdown
from _timing import commit

REPLICATES = 200
CASES = [
    (dpci.PureDP(1.0), "objective"),
    (dpci.PureDP(0.3), "objective"),
    (BUDGETS["zCDP"], "output"),
    (BUDGETS["(ε,δ)"], "objective"),
]
ALLOWED = 0.15


NEWTON = Path(__file__).parents[1] / "docs" / "evidence" / "newton.md"


WORDS = {2: "expected", 1: "likely", 0: "not expected"}


def newton() -> None:
    """Print promises of plans of Newton steps beside the cells of their evidence."""
    table = []
    for line in NEWTON.read_text(encoding="utf-8").splitlines():
        values = [value.strip() for value in line.strip("|").split("|")]
        if len(values) < 9 or values[3] not in cells.BUDGETS:
            continue
        name, n, columns, label, length, *_, refused = values
        sizes = {"n_samples": int(n.replace(",", "")), "n_features": int(columns)}
        plan = dpci.plan(**sizes, budget=cells.BUDGETS[label], mechanism="newton")
        even, heavy = plan.length
        mean = float(length.split(" / ")[0] or "nan")
        where = "shorter" if mean < 0.95 * even else "longer" if mean > 1.05 * heavy else "within"
        found = ["", ""] if math.isnan(mean) else [f"{mean:.2f}", where]
        table.append(
            [name, n, columns, label, f"{even:.2f} to {heavy:.2f}", *found, sum(plan.gives_intervals), refused]
        )
    header = "table,n,columns,budget,planned length,length,it is,kinds of rows with intervals,fits refused"
    print(*markdown(header.split(","), [row for row in table if row[6] in {"shorter", "longer"}]), sep="\n")
    within = sum(row[6] == "within" for row in table)
    print(f"\nOf {sum(row[6] != '' for row in table)} cells {within} are within the planned lengths.\n")
    refused = {words: [float(row[8].strip("%")) for row in table if row[7] == kinds] for kinds, words in WORDS.items()}
    rows = [[w, len(each), *(f"{np.quantile(each, q):.0f}%" for q in (0.25, 0.5, 0.75))] for w, each in refused.items()]
    print(*markdown(["intervals", "cells", "fits refused: lower quartile", "median", "upper quartile"], rows), sep="\n")


def main() -> int:
    warnings.simplefilter("ignore")
    if "--newton" in sys.argv:
        newton()
        return 0
    table, worst = [], 0.0
    for rows in (adult(10), adult(50), Rows("Bank", "bank", None, 30), kdd(50_000, 10)):
        X, y = load(rows)
        order = np.random.default_rng(0).permutation(len(y))
        ours, others = order[: len(y) // 2], order[len(y) // 2 :]
        for budget, mechanism in CASES:
            keywords = {
                "mechanism": mechanism,
                "l2_strength": L2_STRENGTH,
                "rows": dpci.rows.Within(intercept=False),
                "classes": (-1, 1),
            }
            study = dpci.simulate.coverage(
                X[others], y[others], budget=budget, n_replicates=REPLICATES, n_variability=0, seed=1, **keywords
            )
            ratios = []
            for earlier in (dpci.PureDP(1e6), budget):
                like = dpci.fit(X[ours], y[ours], budget=earlier, seed=5, **keywords)
                sizes = {"n_samples": len(others), "n_features": X.shape[1]}
                planned = dpci.plan(**sizes, budget=budget, like=like, **keywords)
                ratios.append(planned.interval_length / study.mean_length)
            worst = max(worst, *(abs(ratio - 1.0) for ratio in ratios))
            table.append([rows, budget, mechanism, f"{study.mean_length:.4g}", *(f"{ratio:.3f}" for ratio in ratios)])
    print("# Lengths that a plan predicts\n")
    print(f"`python benches/plan_lengths.py`, commit {commit()}, {now()}.\n")
    print(f"λ={L2_STRENGTH}, logistic loss, {REPLICATES} replicates of each study.\n")
    header = "data,budget,mechanism,length in a study,predicted over it: exact earlier fit,private earlier fit"
    print(*markdown(header.split(","), table), sep="\n")
    print(f"\nGreatest error {worst:.1%}; {ALLOWED:.0%} are allowed.")
    return int(worst > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
