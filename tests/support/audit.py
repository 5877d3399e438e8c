"""Lower bounds on what a mechanism leaks, from scores of many releases on two neighbouring data sets."""

import datetime as dt
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).parents[2]
CONFIDENCE = 0.999


def event_probabilities(hits, others, n):
    """Least probability of an event that came ``hits`` times in ``n``, and the greatest of one that came ``others``."""
    alpha = (1.0 - CONFIDENCE) / 2.0
    least = np.where(hits > 0, stats.beta.ppf(alpha, np.maximum(hits, 1), n - hits + 1), 0.0)
    most = np.where(others < n, stats.beta.ppf(1.0 - alpha, others + 1, np.maximum(n - others, 1)), 1.0)
    return least, most


@dataclass(frozen=True)
class EpsilonBound:
    """Epsilon at ``delta`` that an event of probability p, and q < p on the other data set, refutes."""

    delta: float

    def __call__(self, p, q):
        return np.log(np.maximum(p - self.delta, 1e-300) / q)


@dataclass(frozen=True)
class RhoBound:
    """Rho likewise: the greatest D_alpha / alpha of the two yes/no laws, in both directions."""

    def __call__(self, p, q):
        p, q = np.asarray(p)[..., None], np.asarray(q)[..., None]
        with np.errstate(divide="ignore"):
            logs = [np.log(x) for x in (p, q, 1.0 - p, 1.0 - q)]
        alpha = np.array([1.001, 1.1, 1.3, 1.6, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0])
        rho = [
            np.logaddexp(alpha * a + (1.0 - alpha) * b, alpha * c + (1.0 - alpha) * d) / (alpha - 1.0) / alpha
            for a, b, c, d in (logs, [logs[i] for i in (1, 0, 3, 2)])
        ]
        return np.where(p[..., 0] > q[..., 0], np.nan_to_num(np.max(rho, axis=(0, -1)), posinf=0.0), 0.0)


def lower_bound(first, second, bound):
    """Chosen on the even runs, measured on the odd ones."""
    # The event is a score of at least the threshold; with its sign changed, the data sets change places.
    candidates = []
    for ours, theirs in ((first, second), (-second, -first)):
        chosen, others = np.sort(ours[::2]), np.sort(theirs[::2])
        thresholds = np.unique(np.quantile(chosen, np.linspace(0.0, 0.999, 1000), method="higher"))
        hits, misses = (len(x) - np.searchsorted(x, thresholds) for x in (chosen, others))
        found = bound(*event_probabilities(hits, misses, len(chosen)))
        best = int(np.argmax(found))
        candidates.append((found[best], thresholds[best], ours[1::2], theirs[1::2]))
    _, threshold, ours, theirs = max(candidates, key=lambda candidate: candidate[0])
    counts = (ours >= threshold).sum(), (theirs >= threshold).sum()
    return max(0.0, float(bound(*event_probabilities(*counts, len(ours)))))


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
            f"them to choose the event, half to measure it; confidence {CONFIDENCE:.1%}. Twice the budget is 2ε, or "
            f"2ρ. {note}"
        ).strip()
        (ROOT / "docs" / "evidence" / f"{name}.md").write_text(f"{head}\n\n{table}\n", encoding="utf-8")
