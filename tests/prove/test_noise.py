"""Ten million discrete draws a law against its exact probabilities, and bounded draws against 50 digits."""

import datetime as dt
import math
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from dpci import _core
from support.exact_noise import ELEMENTARY, LAWS, distances, worst_error

pytestmark = pytest.mark.prove
ROOT = Path(__file__).parents[2]
N_DRAWS, BATCH = 10_000_000, 500_000
SCALES = (1, 2, 30, 1000)
FALSE_POSITIVE_RATE = 1e-6
CRITICAL = stats.norm.isf(FALSE_POSITIVE_RATE / 2.0)
# The log of a weight, and after how many scales less than 1e-40 is left.
EXPONENTS = {
    "laplace": (lambda k, scale: -mpf(k) / scale, 95),
    "gaussian": (lambda k, s: -mpf(k * k) / (2 * s * s), 14),
}


def exact_law(name, scale):
    """The integers around 0, and their probabilities."""
    exponent, reach = EXPONENTS[name]
    with mp.workdps(30):
        weights = [mp.exp(exponent(k, scale)) for k in range(reach * scale + 1)]
        total = weights[0] + 2 * mp.fsum(weights[1:])
        half = [float(w / total) for w in weights]
    return np.arange(-reach * scale, reach * scale + 1), np.array(half[:0:-1] + half)


def cells(probabilities, least=1000.0):
    """Where runs of integers start of which each expects at least so many draws."""
    starts, room = [0], 0.0
    rest = np.cumsum(probabilities[::-1])[::-1] * N_DRAWS
    for i, expected in enumerate(probabilities * N_DRAWS):
        if room >= least and rest[i] >= least:
            starts.append(i)
            room = 0.0
        room += expected
    return np.array(starts)


def examine(name, scale):
    """One row of the table; no two rows share random words."""
    k, p = exact_law(name, scale)
    starts = cells(p)
    counts = np.zeros(len(starts))
    squares = greatest = odd = 0
    first = 10_000 * scale + (0 if name == "laplace" else 5000)
    for batch in range(N_DRAWS // BATCH):
        draws = np.array(_core.Testing.discrete_noise(name, BATCH, scale, first + batch))
        counts += np.bincount(np.searchsorted(k[starts], draws, side="right") - 1, minlength=len(starts))
        squares += int((draws * draws).sum())
        odd += int((draws & 1).sum())
        greatest = max(greatest, int(np.abs(draws).max()))
    expected = N_DRAWS * np.add.reduceat(p, starts)
    pvalue = stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(starts) - 1)
    variance, fourth = (p * k**2.0).sum(), (p * k**4.0).sum()
    z_variance = (squares / N_DRAWS - variance) / math.sqrt((fourth - variance**2) / N_DRAWS)
    share = p[k % 2 == 1].sum()
    z_odd = (odd - N_DRAWS * share) / math.sqrt(N_DRAWS * share * (1.0 - share))
    # Passed by any of the draws with probability 1e-6.
    limit = -k[np.searchsorted(np.cumsum(p), FALSE_POSITIVE_RATE / (2.0 * N_DRAWS)) - 1]
    assert pvalue > FALSE_POSITIVE_RATE
    assert max(abs(z_variance), abs(z_odd)) < CRITICAL
    assert greatest <= limit
    return (
        f"| discrete {name} | {scale} | {len(starts)} | {pvalue:.3f} | {squares / N_DRAWS / variance:.5f} | "
        f"{z_variance:+.2f} | {z_odd:+.2f} | {greatest} | {limit} |"
    )


def publish(name, title, text, table):
    git = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    head = f"# {title}\n\n`make prove`, commit {commit}, {dt.datetime.now(dt.UTC).date()}. {text}"
    page = "\n".join([head, "", *table, ""])
    print(f"\n{page}")  # noqa: T201  # the log of `make prove` is the evidence
    if os.environ.get("DPCI_EVIDENCE") == "1":
        (ROOT / "docs" / "evidence" / f"{name}.md").write_text(page, encoding="utf-8")


def test_discrete_draws_have_the_exact_law():
    header = "| law | scale | cells | p-value | variance | z | z of odd | greatest | limit |"
    rows = [examine(name, scale) for name in EXPONENTS for scale in SCALES]
    text = (
        f"{N_DRAWS:,} draws of each law, in batches of {BATCH:,}, each with its own seed: chi-square against the "
        "exact probabilities; the variance over that of the law, and its z-score; that of the share of odd ones; the "
        f"greatest size, and the size that any draw passes with probability {FALSE_POSITIVE_RATE}."
    )
    publish("discrete_noise", "Discrete noise", text, [header, "|---" * 9 + "|", *rows])


def test_bounded_draws_lie_within_their_distance():
    table, worst = ["| law | dimension | draws | distance / bound | for its size |", "|---" * 5 + "|"], []
    for name in LAWS:
        for dim, n in [(1, 50_000), (2, 20_000), (5, 4_000), (20, 100)]:
            found = distances(name, dim, n, seed=77).max(axis=0)
            table.append(f"| {name} | {dim} | {n:,} | {found[0]:.2g} | {found[1]:.2g} |")
            worst.append(found.max())
    table += ["", "| function | arguments | error / assumed |", "|---|---|---|"]
    for name in ("cos", "log", "log1p", "sin"):
        error = worst_error(name, 1_000_000) / ELEMENTARY
        table.append(f"| {name} | 1,000,000 | {error:.3f} |")
        worst.append(error)
    text = (
        "Draws against 50 digits from the same random words, seed 77: the greatest distance over the stated bound, and "
        "over its share for a draw of that size. Then the greatest error of the elementary functions over the two "
        "units in the last place that are assumed."
    )
    publish("bounded_noise", "Bounded noise", text, table)
    assert max(worst) < 1.0
