"""Audits per-instance reports of persons: one with ten rows is taken away, with one id, two ids, and as ten people.

The argument is the number of runs. Prints docs/evidence/person_report_audit.md.
"""

import sys

import numpy as np

import dpci
from _audits import LOSS, N_RECORDS, RIDGE, least_delta, origin, row, rows_of, seeds_of
from dpci import _core
from dpci.audit.cases import report_scores
from dpci.model.settings import Settings
from person_audit import IDS, N_ROWS, persons_of, runs_of

BUDGET = dpci.ApproxDP(1.0, 0.1)
SHARES = {"data dependent": (0.6, 0.35, 0.05), "data independent": None}
ABOUT = (
    f"{N_RECORDS - 1} persons have a row of 0 each. One more, who is in one data set only, has {N_ROWS} rows of 1,\n"
    "each of which has the greatest gradient. The table has lower bounds on δ at the ε of the claim, by a\n"
    "threshold on the privacy loss of the whole report (parameters, gradient and Hessian): with `persons=`,\n"
    "where that person has two ids, which is as much as half the noise, and where rows are taken for people.\n"
    "The last two have a tenth of the runs.\n"
)


def bound(kind: str, n_runs: int, *, ids: str = "person", first_seed: int = 0) -> float:
    """Return a lower bound on δ at the ε of the budget from so many runs on either data set."""
    own = IDS[ids]
    settings = Settings.checked(
        budget=BUDGET,
        loss=LOSS,
        l2_strength=RIDGE / N_RECORDS,
        rows=dpci.rows.Within(intercept=False),
        mechanism=dpci.ObjectivePerturbation(moments="none"),
        neighbors=dpci.AddRemove(N_RECORDS),
        persons=dpci.Persons() if own < N_ROWS else None,
    )
    claim = {"failure_probability": 0.01, "simultaneous": False, "bound": "interpolated"}
    spec = _core.ReportSpec(settings.spec(N_RECORDS, 1), shares=SHARES[kind], **claim)
    found = []
    for copies, seeds in zip((N_ROWS, 0), seeds_of(n_runs, first_seed), strict=True):
        x = rows_of(1.0, copies)
        columns = {"persons": persons_of(own)[: len(x)]} if own < N_ROWS else {}
        runs = (
            _core.release(
                spec, _core.Records(x, np.ones(len(x)), **columns), on_violation="error", n_threads=1, seed=seed
            )
            for seed in seeds
        )
        outputs = np.array([[run["params"][0], *_derivatives(run)] for run in runs])
        scales = tuple(step.scale for step in spec.steps)
        scores = [report_scores(settings, scales, 1.0, count, outputs) for count in (own, 0)]
        found.append(scores[0] - scores[1])
    return least_delta(found, BUDGET.epsilon)


def _derivatives(run: dict) -> list[float]:
    return [] if run["gradient"] is None else [run["gradient"][0], run["hessian"][0, 0]]


def main() -> None:
    """Print docs/evidence/person_report_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("# Audits of per-instance reports of persons\n")
    print(origin("person_report_audit.py", n_runs))
    print(ABOUT)
    print("| report | claim | persons: at least | two ids: at least | rows as people: at least |")
    print("|---|---|---|---|---|")
    for kind in SHARES:
        found = {ids: bound(kind, runs_of(ids, n_runs), ids=ids) for ids in IDS}
        row([kind, str(BUDGET)], "δ ", found, BUDGET.delta)


if __name__ == "__main__":
    main()
