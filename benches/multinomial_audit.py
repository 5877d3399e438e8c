"""Audits multinomial fits on a worst case, a surely misclassified row turned around; the argument is how many runs."""

import sys

import numpy as np

import dpci
from _environments import now
from _timing import commit
from dpci import _core
from dpci.audit.bounds import epsilon_at, lower_bound
from dpci.budgets import core_budget

N_RECORDS, STRENGTH, TILT = 500, 2e-3, 0.25
CONFIDENCE = 1.0 - 1e-6


def data(sign: float) -> tuple[np.ndarray, np.ndarray]:
    """Return short rows of class 1, which hold its parameters far out, and one of class 2 that is taken for class 1."""
    rows = np.tile([2.0 * np.sqrt(STRENGTH), 0.0], (N_RECORDS, 1))
    rows[-1] = [TILT, sign * np.sqrt(1.0 - TILT**2)]
    return rows, np.append(np.ones(N_RECORDS - 1), 2.0)


def specification(n_classes: int, epsilon: float) -> _core.Spec:
    """Return the fit that is attacked."""
    return _core.Spec(
        n_samples=N_RECORDS,
        n_columns=2,
        intercept=None,
        row_norm=1.0,
        loss=_core.Loss.multinomial(n_classes),
        l2_strength=STRENGTH,
        radius=None,
        budget=core_budget(dpci.PureDP(epsilon)),
        mechanism="output",
        noise=None,
        variant="standard",
        project=False,
        split=None,
        moments="none",
        projection="auto",
        calibration="tight",
        neighbors="replace_one",
    )


def params(spec: _core.Spec, sign: float, seeds: range) -> np.ndarray:
    """Return the parameters of every seed."""
    rows, classes = data(sign)
    fits = (_core.fit(spec, rows, classes, clip=False, n_threads=1, seed=seed) for seed in seeds)
    return np.array([fit["params"] for fit in fits])


def bound(n_classes: int, n_runs: int, *, first_seed: int = 0) -> tuple[float, float]:
    """Return a lower bound on ε from so many runs on either data set, and the minimiser's move over the sensitivity."""
    exact = specification(n_classes, 1e9)
    first, other = (params(exact, sign, range(1))[0] for sign in (1.0, -1.0))
    moved = first - other
    spec = specification(n_classes, 1.0)
    sensitivity = spec.plan()["steps"][0].sensitivity
    starts = (first_seed, first_seed + n_runs)
    drawn = [params(spec, sign, range(start, start + n_runs)) for sign, start in zip((1.0, -1.0), starts, strict=True)]
    # The likelihood ratio of spherical Laplace noise around the two minimisers: no other statistic tells more.
    found = [np.linalg.norm(p - other, axis=1) - np.linalg.norm(p - first, axis=1) for p in drawn]
    least = lower_bound(*found, epsilon_at(0.0), quantity="epsilon", at=0.0, confidence=CONFIDENCE).value
    return least, float(np.linalg.norm(moved)) / sensitivity


def main() -> None:
    """Print the table of docs/evidence/multinomial_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    runs = f"{n_runs:,} runs on either data set, confidence 1 - 1e-6"
    print(f"`python benches/multinomial_audit.py {n_runs}`, commit {commit()}, {now()}, seeds from 0, {runs}.\n")
    print("| classes | parameters | claim | the minimiser moves by | at least |")
    print("|---|---|---|---|---|")
    for n_classes in (3, 4):
        least, moved = bound(n_classes, n_runs)
        cells = f"{n_classes} | {2 * (n_classes - 1)} | ε = 1 | {moved:.3f} of the sensitivity | ε {least:.3g}"
        print(f"| {cells} |", flush=True)


if __name__ == "__main__":
    main()
