"""The opponent is checked, then run against dpci; where dpci's time goes; what a replicate costs as sizes change."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit

import dpci
from _breakdown import EPSILON, L2_STRENGTH, LANES, breakdown, cost, coverage, gradient_passes
from _cost_plot import Series, draw
from _opponent import Opponent, Resampling
from _opponent import opponent as make_opponent
from _timing import REPETITIONS, copy_rate, minimum, multiply_rate, over_threads, pin
from bench_fit import rows

# False positives of the agreement check: two-sided normal tail of 1e-6.
Z_ALLOWED = 4.9
OPPONENT_REPLICATES = 3


@dataclass(frozen=True)
class Scale:
    """Sizes and counts: those of the claims, or small ones for a trial run."""

    divisor: int
    replicates: int
    repetitions: int

    def size(self, n: int) -> int:
        return n // self.divisor


CLAIMED = Scale(divisor=1, replicates=256, repetitions=REPETITIONS)
TRIAL = Scale(divisor=20, replicates=64, repetitions=2)


def markdown(header: Sequence[str], body: Sequence[Sequence[object]]) -> list[str]:
    return ["", *(f"| {' | '.join(map(str, row))} |" for row in [header, ["---"] * len(header), *body])]


def verdict(reached: object) -> str:
    return "reached" if reached else "NOT reached"


def kdd(n: int, d: int = 10) -> tuple[np.ndarray, np.ndarray]:
    data = dpci.datasets.load_with_data_dependent_scaling("kddcup99", n, d)
    return data.X, data.y


def opponent(X: np.ndarray, y: np.ndarray, resampling: Resampling) -> Opponent:
    return make_opponent(X, y, resampling, epsilon=EPSILON, l2_strength=L2_STRENGTH)


def opponent_seconds(rival: Opponent, repetitions: int) -> dict[int, float]:
    """Seconds a replicate by the number of threads, over the same few replicates."""

    def run() -> None:
        for seed in range(OPPONENT_REPLICATES):
            rival.replicate(np.random.default_rng(seed))

    return {threads: t / OPPONENT_REPLICATES for threads, t in over_threads(run, repetitions).items()}


def agreement(scale: Scale) -> list[str]:
    """Check that the opponent computes what dpci does, on rows that repeat."""
    X, y = rows(20_000, 5)
    X = np.round(8 * X) / 16
    count = 20 * scale.replicates // 16 * 16 // 4
    ours = coverage(X, y, count)
    covered = ((ours.lower <= ours.target) & (ours.target <= ours.upper)).mean(axis=1)
    lengths = (ours.upper - ours.lower).mean(axis=1)
    body = []
    for resampling in ("plain", "rows", "weights", "distinct"):
        rival = opponent(X, y, resampling)
        generator = np.random.default_rng(1)
        drawn, b = rival.draw(generator), rival.coefficient_noise(generator)
        found, _ = rival.minimize(rival.sample(drawn), b)
        exact = dpci.lowlevel.minimize_erm(X[drawn], y[drawn], l2_strength=L2_STRENGTH, linear_term=b / len(y)).params
        distance = float(np.abs(found - exact).max())
        _, lower, upper = map(np.array, zip(*(rival.replicate(generator) for _ in range(count)), strict=True))
        theirs = [((lower <= rival.target) & (rival.target <= upper)).mean(axis=1), (upper - lower).mean(axis=1)]
        z = [
            float((a.mean() - b.mean()) / np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / count))
            for a, b in zip((covered, lengths), theirs, strict=True)
        ]
        if distance > 1e-8 or max(map(abs, z)) > Z_ALLOWED:
            sys.exit(f"the opponent ({resampling}) must agree with dpci, got distance {distance:.1e}, z {z}")
        body.append(
            [
                resampling,
                f"{distance:.1e}",
                f"{theirs[0].mean():.4f}",
                f"{z[0]:+.1f}",
                f"{theirs[1].mean():.5f}",
                f"{z[1]:+.1f}",
            ]
        )
    header = ["resampling", "distance of minimisers", "coverage", "z", "mean length", "z"]
    return [
        f"{len(y):,} x 5, {count} replicates; dpci: coverage {ours.coverage:.4f}, mean length {ours.mean_length:.5f}",
        *markdown(header, body),
    ]


def contest(X: np.ndarray, y: np.ndarray, asked: tuple[int, int], scale: Scale, *, repeats: bool) -> list[str]:
    """Ours against the opponents on one data set, then where our time goes."""
    n, dim = X.shape
    pin(1)
    rate, bandwidth = multiply_rate(), copy_rate()
    predictor = X @ np.ones(dim)
    loss_rate = n / minimum(lambda: expit(predictor), scale.repetitions)
    ours = {}
    for threads in (1, 2):
        pin(threads)
        ours[threads] = cost(lambda k, t=threads: coverage(X, y, k, t), scale.replicates, scale.repetitions)
    parts = breakdown(X, y, scale.replicates, scale.repetitions)
    passes = gradient_passes(X, y)
    n_distinct = coverage(X, y, LANES).n_distinct
    # The opponents last: their idle BLAS threads spin for a while.
    kinds: list[Resampling] = ["plain", "rows", "weights", *(["distinct"] if repeats else [])]
    theirs = {kind: opponent_seconds(opponent(X, y, kind), scale.repetitions) for kind in kinds}
    body = [
        [f"dpci, {t} thread{'s' * (t > 1)}", f"{1e3 * c.each:.3f}", f"{1e3 * c.marginal:.3f}", "", ""]
        for t, c in ours.items()
    ]
    for kind, times in theirs.items():
        best = min(times, key=times.__getitem__)
        body.append(
            [
                f"NumPy, {kind}, {best} BLAS thread{'s' * (best > 1)}",
                f"{1e3 * times[best]:.1f}",
                "",
                f"{times[best] / ours[1].each:.1f}",
                f"{times[best] / ours[2].each:.1f}",
            ]
        )
    ratio = min(theirs["plain"].values()) / min(ours[1].each, ours[2].each)
    lines = [
        f"{n:,} x {dim}, {n_distinct:,} distinct; {scale.replicates} replicates, set-up {ours[1].setup:.3f} s",
        *markdown(["what", "ms a replicate", "without set-up", "times ours on 1 thread", "on 2"], body),
        "",
        f"the plain opponent's best over ours on this machine: {ratio:.1f},",
        f"asked for {asked[0]} (goal {asked[1]}): {verdict(ratio >= asked[0])}",
    ]
    cells = n_distinct * dim
    work = {
        "weights": 0.0,
        "gradients": 4 * passes * cells,
        "moments": 2 * cells + 2 * cells * (dim + 1),
        "small": 0.0,
    }
    evaluations = {"gradients": passes * n_distinct, "moments": float(n_distinct)}
    traffic = {
        "gradients": passes * (8 * cells + 8 * n_distinct + 4 * LANES * n_distinct) / LANES,
        "moments": (8 * cells + 8 * n_distinct + 4 * LANES * n_distinct) / LANES,
    }
    body = []
    for name, flops in [*work.items(), ("total", sum(work.values()))]:
        seconds = getattr(parts, name)
        known = name in evaluations or name == "total"
        losses = evaluations.get(name, sum(evaluations.values()))
        moved = traffic.get(name, sum(traffic.values()))
        body.append(
            [
                name,
                f"{1e3 * seconds:.3f}",
                f"{seconds / parts.total:.0%}",
                f"{flops / seconds / rate:.0%}" if known else "",
                f"{moved / seconds / bandwidth:.0%}" if known else "",
                f"{losses / seconds / loss_rate:.2f}" if known else "",
            ]
        )
    header = [
        "part, one core",
        "ms",
        "share",
        "of the product's rate",
        "of the copy's bandwidth",
        "loss evaluations / SciPy's expit",
    ]
    return [
        *lines,
        *markdown(header, body),
        "",
        f"one core: square product {rate / 1e9:.1f} GFLOP/s, copy {bandwidth / 1e9:.1f} GB/s,",
        f"expit {loss_rate / 1e6:.0f} M/s; {passes:.2f} gradient passes a group of {LANES}",
    ]


def cost_figure(scale: Scale, target: Path) -> list[str]:
    """Cost against rows, columns and threads."""
    repetitions = min(3, scale.repetitions)

    def pair(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        pin(1)
        ours = cost(lambda k: coverage(X, y, k), scale.replicates, repetitions).each
        return ours, min(opponent_seconds(opponent(X, y, "plain"), repetitions).values())

    def speed_ups(X: np.ndarray, y: np.ndarray) -> list[float]:
        times = []
        for threads in (1, 2):
            pin(threads)
            times.append(cost(lambda k, t=threads: coverage(X, y, k, t), scale.replicates, repetitions).each)
        return [times[0] / each for each in times]

    by_n = {n: pair(*rows(n, 10)) for n in map(scale.size, (50_000, 100_000, 200_000, 450_000))}
    by_d = {d: pair(*rows(scale.size(50_000), d)) for d in (5, 10, 20, 45, 90)}
    data = {"dense, d=10": rows(scale.size(450_000), 10), "dense, d=90": rows(scale.size(100_000), 90)}
    data["KDD, d=10"] = kdd(scale.size(450_000))
    by_threads = {name: speed_ups(*each) for name, each in data.items()}
    pin(1)
    draw(target, Series("n, d = 10", by_n), Series(f"d, n = {scale.size(50_000):,}", by_d), by_threads)
    body = [
        [what, value, f"{1e3 * ours:.3f}", f"{1e3 * theirs:.1f}", f"{theirs / ours:.1f}"]
        for what, points in (("n (d=10)", by_n), (f"d (n={scale.size(50_000):,})", by_d))
        for value, (ours, theirs) in points.items()
    ]
    speed = "; ".join(f"{name} {values[1]:.2f}" for name, values in by_threads.items())
    return [
        *markdown(["what varies", "value", "dpci, ms a replicate", "NumPy (plain), ms", "ratio"], body),
        "",
        f"two threads against one: {speed}",
        "",
        f"![cost of a replicate]({target.name})",
    ]
