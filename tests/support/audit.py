"""Lower bounds on what a mechanism leaks, from scores of many runs on two neighbours, and their evidence."""

import dataclasses
import datetime as dt
import os
import subprocess
from pathlib import Path

import dpci
from dpci.audit.bounds import epsilon_at, rho
from dpci.audit.bounds import lower_bound as bound

ROOT = Path(__file__).parents[2]
# One false alarm in a million bounds.
CONFIDENCE = 1.0 - 1e-6
# Where no delta is claimed, one that some hundred thousand runs can measure.
DELTA = 0.01
PURE, ZCDP, APPROX = dpci.PureDP(1.0), dpci.ZCDP(0.5), dpci.ApproxDP(1.0, DELTA)
TWICE = {PURE: dpci.PureDP(2.0), ZCDP: dpci.ZCDP(1.0), APPROX: dpci.ApproxDP(2.0, DELTA)}


def epsilon_of(first, second, delta=0.0):
    """The epsilon that scores show."""
    return bound(first, second, epsilon_at(delta), quantity="epsilon", at=delta, confidence=CONFIDENCE).value


def statements(budget):
    """Promises of a budget: name, inversion, quantity, delta and value, the sharpest first."""
    if budget.notion == "zcdp":
        implied = budget.to_approx(DELTA).epsilon
        return [("ρ", rho, "rho", 0.0, budget.rho), (f"ε at δ={DELTA}", epsilon_at(DELTA), "epsilon", DELTA, implied)]
    delta = budget.parameters().get("delta", 0.0)
    return [(f"ε at δ={delta}" if delta else "ε", epsilon_at(delta), "epsilon", delta, budget.epsilon)]


def check(case, *, n_runs, n_twice, seed, twice=None):
    """Audit a case and the same at twice its budget: lines of the table, the sharpest claim, and the latter's bound."""
    twice = dataclasses.replace(case, budget=TWICE[case.budget]) if twice is None else twice
    scores = case.simulate(n_runs=n_runs, seed=seed), twice.simulate(n_runs=n_twice, seed=seed)
    lines, found = [], []
    for name, invert, quantity, at, claim in statements(case.budget):
        one, other = (bound(*pair, invert, quantity=quantity, at=at, confidence=CONFIDENCE).value for pair in scores)
        lines.append(f"| {case.title} | {name} | {claim:.3f} | {one:.3f} | {other:.3f} |")
        assert one <= claim, lines[-1]
        found.append((claim, other))
    return lines, found[0]


def publish(name, lines, runs, note=""):
    """Print a table of audits, and keep it as evidence where that is asked for."""
    header = ["| mechanism | statement | claim | lower bound | at twice the budget |", "|---|---|---|---|---|"]
    table = "\n".join([*header, *lines])
    print(f"\n{table}")  # noqa: T201  # the log of `make prove` is the evidence
    if os.environ.get("DPCI_EVIDENCE") == "1":
        git = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
        commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        date = dt.datetime.now(dt.UTC).date()
        head = (
            f"# Audit\n\n`make prove`, commit {commit}, {date}, {runs} on each of two neighbouring data sets, half of "
            "them to choose the event, half to measure it; a bound exceeds the truth by one chance in a million. Twice "
            f"the budget is 2ε, or 2ρ. {note}"
        ).strip()
        (ROOT / "docs" / "evidence" / f"{name}.md").write_text(f"{head}\n\n{table}\n", encoding="utf-8")
