"""Mean lengths of intervals that a plan predicts from an earlier fit, over those of a study of other rows.

Not private. The earlier fit sees one half of a data set, the study the other half. Prints Markdown; exit code 1 if a
prediction is off by more than 15%. Needs the full data files (DPCI_DATA).
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import dpci
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


def main() -> int:
    warnings.simplefilter("ignore")
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
