"""The opponent is checked, then run against dpci; where dpci's time goes; what a replicate costs as sizes change."""

import functools
import json
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.special import expit

import dpci
from _breakdown import (
    EPSILON,
    L2_STRENGTH,
    STUDY_REPLICATES,
    Breakdown,
    Cost,
    breakdown,
    breakdown_studies,
    cost,
    coverage,
    passes,
    timed_studies,
    variability,
)
from _cost_plot import SPEED_UPS, Series, draw
from _opponent import Opponent, Resampling
from _opponent import opponent as make_opponent
from _timing import REPETITIONS, OthersWatch, Timed, copy_rate, interleaved, minimum, multiply_rate, pin
from bench_fit import rows
from dpci._core import LANES
from papers.scaling import load_with_data_dependent_scaling

# False positives of the agreement check: two-sided normal tail of 1e-6.
Z_ALLOWED = 4.9
OPPONENT_REPLICATES = 3
# Two timings of one thing in the same rounds, and a speed-up and the number of threads, may differ by these shares.
PARTS_ALLOWED, SPEED_UP_ALLOWED = 0.2, 0.15


@dataclass(frozen=True)
class Scale:
    """Sizes and counts: those of the claims, or small ones for a trial run."""

    divisor: int
    replicates: int
    rounds: int
    # Whether timings that contradict each other end the run.
    strict: bool = True
    # Folder of rounds that earlier runs have timed.
    kept: Path | None = None

    def size(self, n: int) -> int:
        return n // self.divisor

    def insist(self, holds: object, rule: str) -> None:
        """End the run before anything is printed if the timings break a rule; for development say so and go on."""
        if not holds and self.strict:
            sys.exit(f"{rule}; see --busy-ok")
        if not holds:
            print(f"INCONSISTENT: {rule}", file=sys.stderr, flush=True)

    def insist_speed_up(self, what: str, found: float) -> None:
        """Refuse two threads that are more than twice as fast as one, but for noise."""
        most = 2 * (1 + SPEED_UP_ALLOWED)
        self.insist(
            found <= most, f"{what}: two threads must be at most {most:g} times faster than one, got {found:.2f}"
        )


CLAIMED = Scale(divisor=1, replicates=256, rounds=REPETITIONS)
TRIAL = Scale(divisor=20, replicates=64, rounds=2)


def markdown(header: Sequence[str], body: Sequence[Sequence[object]]) -> list[str]:
    return ["", *(f"| {' | '.join(map(str, row))} |" for row in [header, ["---"] * len(header), *body])]


def verdict(reached: object) -> str:
    return "reached" if reached else "NOT reached"


def kdd(n: int, d: int = 10) -> tuple[np.ndarray, np.ndarray]:
    data = load_with_data_dependent_scaling("kddcup99", n, d)
    return data.X, data.y


def opponent(X: np.ndarray, y: np.ndarray, resampling: Resampling) -> Opponent:
    return make_opponent(X, y, resampling, epsilon=EPSILON, l2_strength=L2_STRENGTH)


@dataclass(frozen=True)
class Duel:
    """Times of the same rounds: ours and the opponents' seconds a replicate by the number of threads."""

    ours: dict[int, Cost]
    theirs: dict[Resampling, dict[int, float]]
    # A second timing of ours on one core, by part.
    parts: Breakdown | None

    def best(self, kind: Resampling) -> tuple[int, float]:
        """Number of threads with which an opponent is fastest, and its seconds."""
        return min(self.theirs[kind].items(), key=lambda item: item[1])

    @property
    def speed_ups(self) -> list[float]:
        """Over one thread, by threads, set-up left out."""
        return [self.ours[1].marginal / each.marginal for each in self.ours.values()]


def time_duel(
    X: np.ndarray, y: np.ndarray, kinds: Sequence[Resampling], scale: Scale, *, in_parts: bool = False
) -> Duel:
    """Time ours on one and two threads and the opponents, round by round, and check that the times agree."""

    def replicates(rival: Opponent) -> None:
        for seed in range(OPPONENT_REPLICATES):
            rival.replicate(np.random.default_rng(seed))

    contestants: dict[tuple[Hashable, str], Timed] = {}
    for threads in (1, 2):
        pair = timed_studies(lambda k, t=threads: coverage(X, y, k, t), scale.replicates, threads)
        contestants |= {(threads, size): timed for size, timed in pair.items()}
    studies = breakdown_studies(X, y) if in_parts else {}
    for name, study in studies.items():
        contestants |= {(name, size): timed for size, timed in timed_studies(study, scale.replicates).items()}
    for kind in kinds:
        rival = opponent(X, y, kind)
        for threads in (1, 2):
            run = functools.partial(replicates, rival)
            contestants[kind, str(threads)] = Timed(run, threads, blas=True)
    kept = scale.kept and scale.kept / f"rounds-{len(y)}x{X.shape[1]}-{len(contestants)}.json"
    seconds = interleaved(contestants, scale.rounds, kept)

    def cost_of(name: Hashable) -> Cost:
        return cost({size: seconds[name, size] for size in ("few", "many")}, scale.replicates)

    duel = Duel(
        ours={threads: cost_of(threads) for threads in (1, 2)},
        theirs={kind: {t: seconds[kind, str(t)] / OPPONENT_REPLICATES for t in (1, 2)} for kind in kinds},
        parts=breakdown({name: cost_of(name).marginal for name in studies}) if in_parts else None,
    )
    name = f"{len(y):,} x {X.shape[1]}"
    scale.insist_speed_up(name, duel.speed_ups[1])
    if duel.parts is not None:
        whole, total = duel.ours[1].marginal, duel.parts.total
        scale.insist(
            abs(total / whole - 1) <= PARTS_ALLOWED,
            f"{name}: the parts must add up to the cost but for {PARTS_ALLOWED:.0%}, got {1e3 * total:.3f} ms "
            f"against {1e3 * whole:.3f} ms",
        )
    return duel


Name = Literal["kdd", "dense10", "dense90"]


@functools.cache
def data(name: Name, scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets of a contest."""
    if name == "kdd":
        return kdd(scale.size(450_000))
    return rows(scale.size(450_000), 10) if name == "dense10" else rows(scale.size(100_000), 90)


@functools.cache
def main_duel(name: Name, scale: Scale) -> Duel:
    """The duel of a contest, which the figure shows again: timed once, so that one report has one number for it."""
    kinds: list[Resampling] = ["plain", "rows", "weights", *(["distinct"] if name == "kdd" else [])]
    return time_duel(*data(name, scale), kinds, scale, in_parts=True)


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


def limits(scale: Scale) -> tuple[float, float, float]:
    """Return the limits of one core: operations and bytes a second, and evaluations of SciPy's expit."""
    file = scale.kept and scale.kept / "limits.json"
    if file and file.exists():
        rate, bandwidth, loss_rate = json.loads(file.read_text())
        return rate, bandwidth, loss_rate
    pin(1)
    watch, predictor = OthersWatch(), np.linspace(-4, 4, 450_000)
    found = multiply_rate(), copy_rate(), len(predictor) / minimum(lambda: expit(predictor), scale.rounds)
    if file:
        watch.refuse_if_busy("while the limits of the machine were measured")
        file.write_text(json.dumps(found))
    return found


def contest(name: Name, target: tuple[int, int], scale: Scale) -> list[str]:
    """Ours against the opponents on one data set, then where our time goes."""
    X, y = data(name, scale)
    n, dim = X.shape
    duel = main_duel(name, scale)
    ours, parts = duel.ours, duel.parts
    rate, bandwidth, loss_rate = limits(scale)
    n_distinct = coverage(X, y, LANES).n_distinct
    solving = passes(variability, X, y, n_distinct)
    # Fewer than one where the last gradients and the moments share a pass.
    counted = {"gradients": solving, "moments": passes(coverage, X, y, n_distinct) - solving}
    body = [
        [f"dpci, {t} thread{'s' * (t > 1)}", f"{1e3 * c.each:.3f}", f"{1e3 * c.marginal:.3f}", "", ""]
        for t, c in ours.items()
    ]
    for kind in duel.theirs:
        best, seconds = duel.best(kind)
        body.append(
            [
                f"NumPy, {kind}, {best} BLAS thread{'s' * (best > 1)}",
                f"{1e3 * seconds:.1f}",
                "",
                f"{seconds / ours[1].each:.1f}",
                f"{seconds / ours[2].each:.1f}",
            ]
        )
    ratio = duel.best("plain")[1] / min(ours[1].each, ours[2].each)
    lines = [
        f"{n:,} x {dim}, {n_distinct:,} distinct; timed with {scale.replicates} replicates;",
        f"set-up {ours[1].setup:.3f} s, shared by {STUDY_REPLICATES:,} replicates",
        *markdown(["what", "ms a replicate", "without set-up", "times ours on 1 thread", "on 2"], body),
        "",
        f"the plain opponent's best over ours on this machine: {ratio:.1f},",
        f"target {target[0]} (goal {target[1]}): {verdict(ratio >= target[0])}",
    ]
    cells = n_distinct * dim
    work = {
        "weights": 0.0,
        "gradients": 4 * solving * cells,
        "moments": 2 * counted["moments"] * cells + 2 * cells * (dim + 1),
        "small": 0.0,
    }
    evaluations = {part: count * n_distinct for part, count in counted.items()}
    traffic = {
        part: count * (8 * cells + 8 * n_distinct + 4 * LANES * n_distinct) / LANES for part, count in counted.items()
    }
    body = []
    for part, flops in [*work.items(), ("total", sum(work.values()))]:
        seconds = getattr(parts, part)
        known = part in evaluations or part == "total"
        losses = evaluations.get(part, sum(evaluations.values()))
        moved = traffic.get(part, sum(traffic.values()))
        body.append(
            [
                part,
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
        f"expit {loss_rate / 1e6:.0f} M/s; a group of {LANES} makes {solving:.2f} passes for gradients",
        f"and {counted['moments']:.2f} more for the moments",
    ]


def cost_figure(scale: Scale, target: Path) -> list[str]:
    """Cost against rows, columns and threads; the contests' own numbers where they are points of the figure."""

    def pair(duel: Duel) -> tuple[float, float]:
        return duel.ours[1].each, duel.best("plain")[1]

    def point(n: int, d: int) -> tuple[float, float]:
        return pair(time_duel(*rows(n, d), ["plain"], scale))

    few = scale.size(50_000)
    titles: dict[Name, str] = {"dense10": "dense, d=10", "dense90": "dense, d=90", "kdd": "KDD, d=10"}
    duels = {name: main_duel(name, scale) for name in titles}
    by_n = {n: point(n, 10) for n in map(scale.size, (50_000, 100_000, 200_000))}
    by_d = {d: by_n[few] if d == 10 else point(few, d) for d in (5, 10, 20, 45, 90)}
    by_n[scale.size(450_000)] = pair(duels["dense10"])
    by_threads = {titles[name]: duel.speed_ups for name, duel in duels.items()}
    series = Series("n (d=10)", by_n), Series(f"d (n={few:,})", by_d)
    draw(target, *series, by_threads)
    body = [
        [one.label, value, f"{1e3 * ours:.3f}", f"{1e3 * theirs:.1f}", f"{theirs / ours:.1f}"]
        for one in series
        for value, (ours, theirs) in one.points.items()
    ]
    speed = "; ".join(f"{name} {values[1]:.2f}" for name, values in by_threads.items())
    return [
        *markdown(["what varies", "value", "dpci, ms a replicate", "NumPy (plain), ms", "ratio"], body),
        "",
        f"{SPEED_UPS}{speed}",
        "",
        (
            "![Three panels: milliseconds a replicate rise with rows and with columns, dpci below NumPy; the "
            f"speed-up of two threads]({target.name})"
        ),
        "",
        "*Left and right: time of one bootstrap replicate with intervals against the rows and against the columns of",
        "simulated dense data, on logarithmic axes. Below: how many times faster two threads are than one.*",
    ]
