"""Coverage under losses with a flat part, and what ``curvature_room`` shows of it: a report in Markdown."""

import argparse
import datetime as dt
import functools
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

import dpci
from _studies import markdown
from _timing import commit, machine
from dpci import lowlevel
from dpci.inference.curvature import TRUSTED_ROOM
from dpci.losses import HuberHinge, SmoothHinge
from papers.scaling import load_with_data_dependent_scaling

_F64 = NDArray[np.float64]
Flat = HuberHinge | SmoothHinge
LOSSES: tuple[Flat, ...] = (HuberHinge(0.5), HuberHinge(0.1), SmoothHinge(0.5), SmoothHinge(0.3), SmoothHinge(0.1))
LOUD = dpci.PureDP(1e7)
LEVEL = 0.95
Z = 1.959963984540054
NOTES = f"""- pure DP, objective perturbation, λ=.01 (Adult .002); samples with replacement (seed 3), seeded noise
- coverage: mean over the parameters, and the worst; length: mean length over twice the .95 quantile of the absolute
  errors, which intervals of a fixed length would need; room: the median of `curvature_room`
- warned: share of the fits with a room below {TRUSTED_ROOM:g}, of all and of those that miss a target; not warned:
  coverage of the others
- averaged: coverage with a Hessian whose curvatures are averaged over 1 or 2 standard errors of the predictor either
  way, from the exact rows"""


@dataclass(frozen=True, eq=False)
class Population:
    """Records with their shares, from which samples are drawn."""

    title: str
    X: _F64
    y: _F64
    share: _F64
    l2_strength: float = 0.01
    intercept: bool = True

    @functools.cache  # noqa: B019  # the few populations live as long as the report
    def target(self, loss: Flat) -> _F64:
        """Return the minimiser of the population's regularised risk."""
        unit = self.share.min() if len(self.y) > 100 else 2e-5
        counts = np.round(self.share / unit).astype(int)
        X, y = np.repeat(self.X, counts, axis=0), np.repeat(self.y, counts)
        found = lowlevel.minimize_erm(X, y, loss=loss, l2_strength=self.l2_strength, intercept=self.intercept)
        return np.asarray(found.params)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[_F64, _F64]:
        """Draw records with replacement."""
        rows = rng.choice(len(self.y), n, p=self.share)
        return self.X[rows], self.y[rows]


def _cells(title: str, X: _F64, positive: _F64, share: _F64) -> Population:
    """Few distinct rows with their shares of positives."""
    signs = np.repeat([1.0, -1.0], len(X))
    return Population(title, np.tile(X, (2, 1)), signs, np.concatenate([share * positive, share * (1.0 - positive)]))


def constant(positive: float) -> Population:
    """The intercept alone."""
    return _cells(f"{positive:.0%} positives, no columns", np.zeros((1, 1)), np.array([positive]), np.ones(1))


def groups(*positive: float) -> Population:
    """Indicators of groups of equal size."""
    shares = "/".join(f"{p:.0%}" for p in positive)
    m = len(positive)
    return _cells(f"groups, {shares} positives", np.eye(m)[:, :-1], np.array(positive), np.full(m, 1.0 / m))


def indicators(slope: float) -> Population:
    """Three columns of 0 and 1."""
    X = np.array(list(product([0.0, 1.0], repeat=3))) / np.sqrt(3.0)
    positive = 1.0 / (1.0 + np.exp(-(X @ np.array([slope, -slope, 0.0]))))
    return _cells(f"three indicators, slope {slope:g}", X, positive, np.full(8, 0.125))


def uniform(slope: float) -> Population:
    """Three uniform columns; without a slope every row occurs with both classes."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, size=(20_000, 3)) / np.sqrt(3.0)
    if slope == 0.0:
        X, y = np.concatenate([X, X]), np.repeat([1.0, -1.0], len(X))
        title = "balanced classes that do not depend on X"
    else:
        y = np.where(X @ np.array([slope, -slope / 2.0, 0.0]) + rng.logistic(size=len(X)) > 0, 1.0, -1.0)
        title = f"uniform columns, slope {slope:g}"
    return Population(title, X, y, np.full(len(y), 1.0 / len(y)))


def sphere(d: int, l2_strength: float) -> Population:
    """Rows on the unit sphere, each with both classes, for fits without an intercept."""
    X = np.random.default_rng(2).standard_normal((10_000, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1.0 + 1e-12)
    X, y = np.concatenate([X, X]), np.repeat([1.0, -1.0], len(X))
    title = f"on the sphere, {d} columns, λ={l2_strength:g}"
    return Population(title, X, y, np.full(len(y), 1.0 / len(y)), l2_strength, intercept=False)


def adult(d: int) -> Population:
    """Adult, as prepared for the published tables."""
    data = load_with_data_dependent_scaling("adult", None, d)
    y = np.where(np.asarray(data.y) > 0, 1.0, -1.0)
    return Population(f"Adult, d={d}", data.X, y, np.full(len(y), 1.0 / len(y)), 0.002)


def _depth(loss: Flat, margin: _F64) -> _F64:
    """Minus the slope in the margin."""
    if isinstance(loss, HuberHinge):
        return np.clip((1.0 - margin + loss.h) / (2.0 * loss.h), 0.0, 1.0)
    return 1.0 / (1.0 + np.exp(np.minimum((margin - 1.0) / loss.s, 700.0)))


def averaged(result: dpci.PrivateFit, loss: Flat, X: _F64, y: _F64, width: float) -> _F64:
    """Half widths with each row's curvature averaged over ``width`` standard errors of its predictor, either way."""
    rows = np.column_stack([X, np.ones(len(y))])
    margin = y * (rows @ result.params)
    room = width * np.sqrt(np.einsum("ij,jk,ik->i", rows, np.asarray(result.cov), rows))
    curvature = (_depth(loss, margin - room) - _depth(loss, margin + room)) / (2.0 * room)
    hessian = (rows * curvature[:, None]).T @ rows / len(y) + result.l2_strength * np.eye(rows.shape[1])
    influence = np.linalg.inv(hessian)
    return Z * np.sqrt(np.diag(influence @ np.asarray(result.gradient_cov) @ influence) / len(y))


@dataclass(frozen=True)
class Setting:
    """One cell: what is fitted, and how often."""

    population: Population
    loss: Flat
    n: int
    runs: int
    budget: dpci.PureDP = LOUD

    @dpci.threads(1)
    def row(self) -> list[str]:
        """Fit the samples; coverage, length, room, and coverage with averaged curvatures where there is no noise."""
        target, rng = self.population.target(self.loss), np.random.default_rng(3)
        varies = np.abs(self.population.X).max(axis=0) > 0.0
        kept = np.concatenate([np.flatnonzero(varies), [len(varies)] * self.population.intercept]).astype(int)
        errors, widths, rooms, others = [], [], [], []
        for seed in range(self.runs):
            X, y = self.population.sample(self.n, rng)
            norm = max(1.0, float(np.linalg.norm(self.population.X, axis=1).max()))
            result = dpci.fit(
                X, y, budget=self.budget, l2_strength=self.population.l2_strength, loss=self.loss, classes=(-1, 1),
                rows=dpci.rows.Within(norm, intercept=self.population.intercept), seed=seed,
            )  # fmt: skip
            errors.append(np.abs(result.params - target)[kept])
            widths.append(result.conf_int(level=LEVEL).length[kept] / 2.0)
            rooms.append(np.nan if result.curvature_room is None else result.curvature_room)
            if self.budget is LOUD:
                others.append([averaged(result, self.loss, X, y, width)[kept] for width in (1.0, 2.0)])
        error, width, room = np.array(errors), np.array(widths), np.array(rooms)
        hits = error <= width
        near = np.nan_to_num(room, nan=np.inf) < TRUSTED_ROOM
        missed = ~hits.all(axis=1)
        ideal = np.quantile(error, LEVEL, axis=0)
        found = [
            f"{hits.mean():.3f}",
            f"{hits.mean(axis=0).min():.3f}",
            f"{np.mean(width.mean(axis=0) / ideal):.2f}",
            "none" if np.isnan(room).all() else f"{np.nanmedian(room):.2g}",
            f"{near.mean():.2f}",
            f"{near[missed].mean():.2f}" if missed.any() else "",
            f"{hits[~near].mean():.3f}" if (~near).any() else "",
        ]
        if self.budget is LOUD:
            half = np.array(others)
            found += [f"{(error <= half[:, i]).mean():.3f}" for i in range(2)]
        return [self.population.title, f"{self.n:,}", repr(self.loss), *found]


def _header(*more: str) -> list[str]:
    common = ["population", "n", "loss", "coverage", "worst", "length", "room", "warned", "of misses", "not warned"]
    return [*common, *more]


def quiet(runs: int, *, quick: bool) -> Iterator[str]:
    """Next to no noise: what the curvature alone does."""
    populations = [
        constant(0.5), constant(0.51), constant(0.55), constant(0.7), uniform(0.0), uniform(2.0), indicators(1.0),
        groups(0.5, 0.9), groups(0.6, 0.9),
    ]  # fmt: skip
    yield f"\n## Next to no noise: ε = {LOUD.epsilon:g}\n"
    sizes = (2000,) if quick else (500, 2000, 20_000)
    cells = [
        Setting(population, loss, n, runs if n < 20_000 else runs // 2)
        for population in populations
        for n in sizes
        for loss in (LOSSES if n == 2000 else LOSSES[:2])
    ]
    if not quick:
        settings = product((10, 50), (3000, 30_162), LOSSES[:2])
        cells += [Setting(adult(d), loss, n, runs // 4) for d, n, loss in settings]
    yield from markdown(_header("averaged, 1 s.e.", "2 s.e."), [cell.row() for cell in cells])


def noisy(runs: int) -> Iterator[str]:
    """Default settings at epsilon 1, and the cells in which the Hessian is lambda in all directions."""
    budget = dpci.PureDP(1.0)
    yield "\n## Default settings at ε = 1\n"
    cells = [
        Setting(population, loss, 30_000, runs // 2, budget)
        for population in (constant(0.5), constant(0.7), uniform(0.0), uniform(2.0), adult(10))
        for loss in LOSSES[:2]
    ]
    yield from markdown(_header(), [cell.row() for cell in cells])
    yield "\n## The Hessian is all but λ in every direction\n"
    yield "The rows lie on the sphere, the classes are balanced and independent of the rows, and there is no"
    yield "intercept. Then almost no row reaches the curved part of the loss, and no public bound excludes this."
    yield "The default intervals account for the noise in the Hessian. The room is 0 where the noise hides all"
    yield "curvature.\n"
    cells = [
        Setting(sphere(10, strength), HuberHinge(h), 30_000, runs // 2, spent)
        for spent in (budget, dpci.PureDP(4.0))
        for strength, h in ((0.01, 0.5), (0.005, 0.1))
    ]
    rows = [[f"{cell.budget.epsilon:g}", *cell.row()[:10]] for cell in cells]
    yield from markdown(["ε", *_header()], rows)


def main() -> None:
    """Print the report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=300, help="samples in a cell of n=2,000")
    options.add_argument("--quick", action="store_true", help="n=2,000 without noise alone")
    arguments = options.parse_args()
    began, lines = time.perf_counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpci.errors.DpciWarning)
        lines += quiet(arguments.runs, quick=arguments.quick)
        if not arguments.quick:
            lines += noisy(arguments.runs)
    print("# Losses with a flat part\n")
    print(f"- `python benches/flat_losses.py`; commit {commit()}, {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC")
    print(f"- {machine()}, dpci {dpci.__version__}; {time.perf_counter() - began:.0f} s")
    print(f"- level {LEVEL}; {arguments.runs} samples at n=2,000 and below, half of them above, a quarter for Adult")
    print(NOTES)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
