"""Audits per-instance reports of persons: one with ten rows is taken away, with persons= and as ten people.

The argument is the number of runs. Prints docs/evidence/person_report_audit.md.
"""

import sys

import numpy as np
from scipy import stats

import dpci
from _environments import now
from _timing import commit
from dpci import _core
from dpci.model.settings import Settings

N, N_ROWS, L2_STRENGTH = 10, 10, 1.0
BUDGET = dpci.ApproxDP(1.0, 0.05)
SHARES = {"data dependent": (0.3, 0.4, 0.3), "data independent": None}
ERROR = 1e-6


def spec_of(shares: tuple[float, ...] | None, *, persons: bool) -> _core.ReportSpec:
    """Return the choices of a report on rows of one column without an intercept."""
    settings = Settings.checked(
        budget=BUDGET,
        l2_strength=L2_STRENGTH,
        fit_intercept=False,
        moments="none",
        neighbors="add_remove",
        n_public=N,
        contribution="mean" if persons else None,
    )
    claim = {"failure_probability": 0.01, "simultaneous": False, "bound": "interpolated"}
    return _core.ReportSpec(settings.spec(N, 1), shares=shares, **claim)


def losses(runs: list[dict], weight: float) -> np.ndarray:
    """Return log p_D / p_D' of whole releases; D has N_ROWS rows of 1 that count by ``weight`` beside rows of 0."""
    steps, ridge = runs[0]["steps"], N * L2_STRENGTH
    params = np.array([run["params"][0] for run in runs])
    p = 1 / (1 + np.exp(-params))
    gradient, hessian = weight * N_ROWS * (p - 1), weight * N_ROWS * p * (1 - p)

    def normal(values: np.ndarray, means: list[np.ndarray | float], scale: float) -> np.ndarray:
        return np.subtract(*(stats.norm.logpdf(values, mean, scale) for mean in means))

    found = np.log1p(hessian / ridge)
    found += stats.norm.logpdf(ridge * params + gradient, 0, steps[0].scale)
    found -= stats.norm.logpdf(ridge * params, 0, steps[0].scale)
    if runs[0]["gradient"] is not None:
        released = np.array([run["gradient"][0] for run in runs])
        found += normal(released, [ridge * params + gradient, ridge * params], steps[1].scale)
        released = np.array([run["hessian"][0, 0] for run in runs])
        found += normal(released, [ridge + hessian, ridge + 0 * hessian], steps[2].scale)
    return found


def least_delta(n_runs: int, shares: tuple[float, ...] | None, *, persons: bool) -> float:
    """Return a lower bound on delta at the epsilon of the budget, by a threshold on the loss."""
    spec = spec_of(shares, persons=persons)
    zeros = np.zeros(N - 1)
    x, y = np.append(zeros, np.ones(N_ROWS)), np.ones(N - 1 + N_ROWS)
    ids = np.minimum(np.arange(len(x)), N - 1)
    exceed = []
    for inside in (True, False):
        kept = slice(None) if inside else slice(N - 1)
        keywords = {"persons": ids[kept]} if persons else {}
        runs = [
            _core.release_report(
                spec, np.ascontiguousarray(x[kept, None]), y[kept], clip=False, n_threads=1, seed=seed, **keywords
            )
            for seed in range((not inside) * n_runs, (2 - inside) * n_runs)
        ]
        exceed.append(int((losses(runs, 1 / N_ROWS if persons else 1.0) > BUDGET.epsilon).sum()))
    with_person = stats.beta.ppf(ERROR / 2, exceed[0], n_runs - exceed[0] + 1) if exceed[0] else 0.0
    without = stats.beta.ppf(1 - ERROR / 2, exceed[1] + 1, n_runs - exceed[1])
    return float(max(0.0, with_person - np.exp(BUDGET.epsilon) * without))


def main() -> None:
    """Print docs/evidence/person_report_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("# Audits of per-instance reports of persons\n")
    print(f"`python benches/person_report_audit.py {n_runs}`, commit {commit()}, {now()}, seeds from 0.\n")
    print(
        f"{n_runs:,} reports from each of two neighbouring data sets: {N - 1} persons with a row of 0 each, with\n"
        f"and without one who has {N_ROWS} rows of 1. Lower bounds on δ at ε = {BUDGET.epsilon:g}, at confidence\n"
        "1 - 1e-6, by a threshold on the privacy loss of the whole report: parameters, gradient and Hessian.\n"
    )
    print("| report | claim | persons: at least | rows as people: at least |")
    print("|---|---|---|---|")
    for name, shares in SHARES.items():
        person, rows = (least_delta(n_runs, shares, persons=persons) for persons in (True, False))
        print(f"| {name} | δ = {BUDGET.delta:g} | {person:.3g} | {rows:.3g} |", flush=True)
        if not person <= BUDGET.delta < rows:
            sys.exit(f"{name}: the audit found {person} at the claim {BUDGET.delta}, and {rows} of rows")


if __name__ == "__main__":
    main()
