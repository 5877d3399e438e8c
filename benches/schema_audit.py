"""Audits releases of bounds, lists and counts: one record, or a person with three rows, is replaced or taken away.

The arguments are the number of runs, and releases if not all. Prints docs/evidence/schema_audit.md.
"""

import itertools
import shlex
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import dpci
from _audits import CONFIDENCE, least, seeds_of
from _environments import now
from _timing import commit
from dpci import _core
from dpci.audit.bounds import delta_at, epsilon_at, probability_bounds
from dpci.described.counts import count_rows
from dpci.schema import ClassTarget, PartialSchema, UnboundedColumn, UnlistedColumn

N_ROWS = 3
N, LOWER, UPPER = 100, 0.0, 8.0
"""Records and public range of the column with bounds."""
WITHOUT_RANGE, FAR = 240, 4.0**28
"""Records of the column without a range, and the size of those far out."""
PURE, APPROX, COUNTED = dpci.PureDP(4.0), dpci.ApproxDP(1.0, 0.05), dpci.PureDP(0.5)
PARTIAL = PartialSchema(
    columns=(UnboundedColumn(name="number", missing="middle"), UnlistedColumn(name="level", categories=("a", "b"))),
    target=ClassTarget(column="class", negative=("no",), positive=("yes",)),
)
COMPLETE = PARTIAL.completed({"number": (LOWER, UPPER)}, {}, source="")
Budget = dpci.PureDP | dpci.ApproxDP
Law = dict[Hashable, float]
_F64 = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Way:
    """Neighbours that differ by so many rows, and a release that is calibrated rightly, or not."""

    neighbors: str
    rows: int
    times: float = 1.0
    """Budget of the release over that of the claim."""
    as_people: bool = False
    """Whether the rows of the person are taken for people."""

    @property
    def moves(self) -> int:
        """Rows for which the release is calibrated."""
        return 1 if self.as_people else self.rows

    @property
    def unit(self) -> dict[str, int]:
        """Persons as the core takes them."""
        return {"persons": True, "max_rows": self.rows} if self.moves > 1 else {}

    @property
    def sides(self) -> int:
        """Counts of one column that a record changes."""
        return 2 if self.neighbors == "replace_one" else 1

    def released(
        self, columns: Sequence[_F64], others: int, release: str, spec: object, n_runs: int
    ) -> list[list[object]]:
        """Return the releases from each of two columns, all but ``others`` of whose rows are one person's."""
        draws = []
        for values, seeds in zip(columns, seeds_of(n_runs, 0), strict=True):
            ids = np.minimum(np.arange(len(values)), others)
            records = _core.Records(values[:, None], np.zeros(len(values)), persons=ids if self.unit else None)
            run = getattr(_core, f"release_{release}")
            draws.append([run(spec, records, n_threads=1, seed=seed)[0] for seed in seeds])
        return draws


def cells_law(
    values: _F64, points: _F64, epsilon: float, moves: int, n: int = N, *, sizes: bool = False
) -> tuple[_F64, float, int]:
    """Return the probability of each pair of cells, or of each cell of the sizes, the rank error and the rank."""
    rank_error, counts = preferred(len(points) - 1, 2.0 * moves / epsilon, n, 1 if sizes else 2)
    m = len(values)
    rank = min(int(max(0.02 * m, rank_error, 1.0)), m // 3)
    below = np.array([(values < g).sum() for g in points])
    above = np.array([(values > g).sum() for g in points])
    lower = np.maximum(0, np.maximum(below[:-1] - rank, rank - np.append(below[1:-1], m)))
    upper = np.maximum(0, np.maximum(above[1:] - rank, rank - np.append(m, above[1:-1])))
    errors = upper if sizes else np.maximum(lower[:, None], upper[None, :])
    weights = np.exp(-epsilon * errors / (2.0 * moves)) * (counts if sizes else np.outer(counts[::-1], counts))
    return weights / weights.sum(), rank_error, rank


def bounds_law(values: _F64, share: float, way: Way) -> tuple[Law, int]:
    """Return the probability of each pair of bounds within the public range, and their rank."""
    chances, _, rank = cells_law(values, public_points(), way.times * PURE.epsilon, way.moves)
    names, places = cells_named(share)
    return dict(zip(names, np.bincount(places, chances.ravel()).tolist(), strict=True)), rank


def stages_law(values: _F64, way: Way) -> tuple[Law, int]:
    """Return the probability of each pair of bounds that two stages find without a range, and the rank of sizes."""
    half, sizes = 0.5 * way.times * PURE.epsilon, np.append(0.0, 4.0 ** np.arange(-20, 31))
    first, error, rank = cells_law(np.abs(values), sizes, half, way.moves, WITHOUT_RANGE, sizes=True)
    law: Law = {}
    for end, chance in zip(sizes[1:], first, strict=True):
        points = np.linspace(-end, end, 65)
        second, own, _ = cells_law(np.clip(values, -end, end), points, half, way.moves, WITHOUT_RANGE)
        stretch = normal_stretch(max(0.02, error / WITHOUT_RANGE, own / WITHOUT_RANGE))
        lower, upper = np.meshgrid(points[:-1], points[1:], indexing="ij")
        # The cells on both sides of one point; where cells cross, the range that the first stage found.
        step = np.where(lower == upper, points[1] - points[0], 0.0)
        middle, reach = 0.5 * (lower + upper), stretch * (0.5 * (upper - lower) + step)
        found = np.where(lower > upper, [[[-end]], [[end]]], [middle - reach, middle + reach])
        for name, p in zip(
            map(named, found.reshape(2, -1).T.tolist()), (chance * second).ravel().tolist(), strict=True
        ):
            law[name] = law.get(name, 0.0) + p
    return law, rank


def named(ends: Sequence[float]) -> tuple[str, ...]:
    """Return bounds to nine figures, which computed ones have in common."""
    return tuple(f"{end + 0.0:.9g}" for end in ends)


def normal_stretch(share: float) -> float:
    """Return how much wider bounds are than their cells: as those of a normal column, 2.2 standard deviations."""
    return float(2.2 / stats.norm.ppf(1.0 - share))


@cache
def cells_named(share: float) -> tuple[list[Hashable], NDArray[np.intp]]:
    """Return the bounds that pairs of cells stand for, and which of them each pair does."""
    grid, places = public_points(), {}
    for i, j in itertools.product(range(len(grid) - 1), repeat=2):
        # The range where the cells cross, those on both sides of one point.
        ends = (grid[j], grid[i + 1]) if i == j + 1 else (grid[i], grid[j + 1])
        places[i, j] = widened(ends, share) if ends[0] < ends[1] else (LOWER, UPPER)
    names = list(dict.fromkeys(places.values()))
    return list(names), np.array([names.index(name) for name in places.values()])


def public_points() -> _F64:
    """Return the ends of the cells."""
    powers = UPPER * 2.0 ** (-np.arange(48) / 2)
    return np.unique(np.concatenate([np.linspace(LOWER, UPPER, 33), powers, [0.0]]))


def preferred(n_cells: int, scale: float, n: int, n_bounds: int) -> tuple[float, _F64]:
    """Return the rank error of the bounds of a column, and how much cells count, the innermost first.

    Inner cells count as much more as .6 of the records outweigh, so that the rank error is least.
    """
    ratios = np.array([1.0 + 1.0 / k for k in (16, 8, 4, 2)])
    inward, outward = (n_cells - 1) * np.log(ratios), np.log((1.0 - ratios**-n_cells) / (1.0 - 1.0 / ratios))
    errors = np.where(scale * (n_bounds * inward + 6.9) <= 0.6 * n, scale * (n_bounds * outward + 6.9), np.inf)
    best, counts = int(np.argmin(errors)), [64]
    while len(counts) < n_cells:
        counts.append(counts[-1] + counts[-1] // (16, 8, 4, 2)[best])
    return float(errors[best]), np.array(counts[::-1], dtype=float)


def widened(ends: tuple[float, float], share: float) -> tuple[float, float]:
    """Return the bounds of two cells: those of a normal column, within the range."""
    half = (ends[1] - ends[0]) / 2.0 * normal_stretch(share)
    middle = (ends[0] + ends[1]) / 2.0
    return round(max(middle - half, LOWER), 9), round(min(middle + half, UPPER), 9)


def of_bounds(way: Way, n_runs: int) -> float:
    """Return the lower bound for the bounds of one column, of the tables whose bounds tell most."""
    budget = _core.Budget.pure(way.times * PURE.epsilon)
    spec = _core.BoundsSpec(_core.Terms(N, way.neighbors, **way.unit), columns=[((LOWER, UPPER), False)], budget=budget)
    _, rank = bounds_law(np.zeros(N), spec.share, way)
    new = np.full(way.rows if way.sides == 2 else 0, UPPER)
    # Rows at 0 up to the lower rank and a few further in: what a person takes away moves the cells between them.
    lowest = {max(rank - k * way.rows, 0) for k in (1, 2, 4)}
    tables = []
    for n_low, k, inner in itertools.product(lowest, (2, 4), (2.2, 6.1)):
        counts = [n_low, k * way.rows, 60]
        rest = np.repeat([0.0, inner, 7.9, UPPER], [*counts, N - way.rows - sum(counts)])
        columns = [np.concatenate([rest, own]) for own in (np.zeros(way.rows), new)]
        tables.append((columns, [bounds_law(values, spec.share, way)[0] for values in columns]))
    columns, laws = max(tables, key=lambda table: telling_event(table[1], PURE, n_runs)[0])
    draws = way.released(columns, N - way.rows, "bounds", spec, n_runs)
    named = [[(LOWER, UPPER) if one is None else tuple(np.round(one, 9).tolist()) for one in side] for side in draws]
    return audited(named, laws, PURE)


def of_stages(way: Way, n_runs: int) -> float:
    """Return the lower bound for the bounds of a column without a range, of the tables whose bounds tell most."""
    budget, n = _core.Budget.pure(way.times * PURE.epsilon), WITHOUT_RANGE
    spec = _core.BoundsSpec(_core.Terms(n, way.neighbors, **way.unit), columns=[(None, False)], budget=budget)
    _, rank = stages_law(np.zeros(n), way)
    own = (np.full(way.rows, 0.01 if way.sides == 2 else FAR), np.full(way.rows if way.sides == 2 else 0, FAR))
    tables = []
    # So many values lie far out that those of the person take all sizes between from too great to right, or back.
    for far, near, few in itertools.product((1, 2, 3), (1, 2), (0, 1, 2, 4)):
        counts = [few * way.rows, near * way.rows, max(0, rank - far * way.rows)]
        rest = np.repeat([0.01, 0.06, 0.24, FAR], [n - way.rows - sum(counts), *counts])
        columns = [np.concatenate([rest, values]) for values in own]
        tables.append((columns, [stages_law(values, way)[0] for values in columns]))
    columns, laws = max(tables, key=lambda table: telling_event(table[1], PURE, n_runs)[0])
    draws = way.released(columns, n - way.rows, "bounds", spec, n_runs)
    return audited([[named(one) for one in side] for side in draws], laws, PURE)


def kept(count: int, epsilon: float, delta: float) -> float:
    """Return the probability that a level with so many rows is listed."""
    p = 0.0
    for _ in range(count):
        p = min(np.exp(epsilon) * p + delta, 1.0 - np.exp(-epsilon) * (1.0 - p - delta), 1.0)
    return p


def levels_law(counts: tuple[int, int], way: Way) -> Law:
    """Return the probability of each set of two levels."""
    epsilon = way.times * APPROX.epsilon / (way.sides * way.moves)
    delta = way.times * APPROX.delta / (way.sides * sum(np.exp(i * epsilon) for i in range(way.moves)))
    each = [kept(count, epsilon, delta) for count in counts]
    sets = itertools.product([0, 1], repeat=2)
    return {
        tuple(np.flatnonzero(one).tolist()): float(np.prod([p if x else 1 - p for x, p in zip(one, each, strict=True)]))
        for one in sets
    }


def of_levels(way: Way, n_runs: int) -> float:
    """Return the lower bound for a list of two levels, whose counts are those that tell most."""
    budget = _core.Budget.approx(way.times * APPROX.epsilon, way.times * APPROX.delta)
    spec = _core.LevelsSpec(_core.Terms(N, way.neighbors, **way.unit), n_columns=1, budget=budget)
    new = way.rows if way.sides == 2 else 0

    tables = ((a, b) for a in range(way.rows, 20) for b in range(20))
    each = (((a, b), (a - way.rows, b + new)) for a, b in tables)
    counts = max(each, key=lambda pair: telling_event([levels_law(one, way) for one in pair], APPROX, n_runs)[0])
    rest = np.repeat([0.0, 1.0], [counts[0][0] - way.rows, counts[0][1]])
    columns = [np.concatenate([rest, own]) for own in (np.zeros(way.rows), np.ones(new))]
    draws = way.released(columns, len(rest), "levels", spec, n_runs)
    return audited([[tuple(one) for one in side] for side in draws], [levels_law(one, way) for one in counts], APPROX)


def of_counts(way: Way, n_runs: int, *, beyond: bool = False) -> float:
    """Return the lower bound for the counts of a number and a level, or for the records beyond their bounds.

    The rows of one person are in the middle and have the level a; those of the other one have no number, or one beyond
    the bounds, and the level b.
    """
    epsilon = way.times * COUNTED.epsilon
    terms = _core.Terms(N, way.neighbors, **way.unit)
    spec = _core.CountsSpec(terms, n_columns=None if beyond else 2, budget=_core.Budget.pure(epsilon))
    new = way.rows if way.sides == 2 else 0
    far = 2.0 * UPPER
    # Of records that are added or removed it is the one beyond the bounds.
    own = (far if beyond and not new else 1.0, far if beyond else np.nan)
    tables = []
    for value, level, rows in ((own[0], "a", way.rows), (own[1], "b", new)):
        numbers, levels = np.append(np.ones(N), np.full(rows, value)), np.append(np.full(N, "a"), np.full(rows, level))
        ids = np.minimum(np.arange(len(numbers)), N) if way.unit or way.rows == 1 else np.arange(len(numbers))
        found = count_rows(PARTIAL, COMPLETE, {"number": numbers, "level": levels}, ids, way.rows)
        tables.append([found.beyond] if beyond else np.concatenate(found.cells).tolist())
    draws = [np.array([_core.release_counts(spec, counts, seed=seed) for seed in seeds])
             for counts, seeds in zip(tables, seeds_of(n_runs, 0), strict=True)]  # fmt: skip
    scale = np.ceil((1.0 if beyond else way.sides * 2.0 * way.moves) / epsilon)
    first, second = map(np.array, tables)
    losses = [(np.abs(side - second) - np.abs(side - first)).sum(axis=1) / scale for side in draws]
    return least([loss[:, None] for loss in losses], COUNTED)


def of_beyond(way: Way, n_runs: int) -> float:
    """Return the lower bound for the number of records, or persons, beyond their bounds."""
    return of_counts(way, n_runs, beyond=True)


def telling_event(laws: Sequence[Law], budget: Budget, n_runs: int) -> tuple[float, int, set[Hashable]]:
    """Return the greatest lower bound to expect, on which side, and of which releases."""
    keys = list({key: None for law in laws for key in law})
    p = np.array([[law.get(key, 0.0) for key in keys] for law in laws])
    best: tuple[float, int, set[Hashable]] = (0.0, 0, set())
    for side in (0, 1):
        order = np.argsort(np.log(np.maximum(p[1 - side], 1e-300)) - np.log(np.maximum(p[side], 1e-300)), kind="stable")
        # Fewer decimals than a sum of probabilities has, so that none is above 1.
        hits, others = (np.floor(n_runs * np.minimum(p[i, order].cumsum(), 1.0)) for i in (side, 1 - side))
        found = bounds_of(hits, others, budget, n_runs)
        at = int(np.argmax(found))
        if found[at] > best[0]:
            best = float(found[at]), side, {keys[k] for k in order[: at + 1]}
    return best


def bounds_of(hits: _F64, others: _F64, budget: Budget, n_runs: int) -> _F64:
    """Return lower bounds on ε, or on δ at the ε of the budget, from how often events are on either side."""
    inversion = epsilon_at(0.0) if isinstance(budget, dpci.PureDP) else delta_at(budget.epsilon)
    return np.maximum(inversion(*probability_bounds(hits, others, n_runs, CONFIDENCE)), 0.0)


def audited(draws: Sequence[Sequence[Hashable]], laws: Sequence[Law], budget: Budget) -> float:
    """Return a lower bound on ε, or on δ at the ε of the budget, from the event that the laws say shows most."""
    n_runs = len(draws[0])
    _, side, event = telling_event(laws, budget, n_runs)
    hits, others = (np.array(sum(one in event for one in draws[i])) for i in (side, 1 - side))
    return float(bounds_of(hits, others, budget, n_runs))


def main() -> None:
    """Print docs/evidence/schema_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("# Audits of released schemas\n")
    chosen = sys.argv[2:]
    asked = " ".join(map(shlex.quote, [str(n_runs), *chosen]))
    print(f"`python benches/schema_audit.py {asked}`, commit {commit()}, {now()}, seeds from 0.\n")
    print(
        f"This audit makes {n_runs:,} releases from each of two neighbouring tables. One record, or a person with\n"
        f"{N_ROWS} rows, is replaced or removed. Bounds are those of one column of {N} rows with a public range, and\n"
        f"of one of {WITHOUT_RANGE} rows without a range, which two stages find, at a claim of ε = 4. Lists are those\n"
        "of one column with two categories, at a claim of δ = .05 at ε = 1. Counts are those of a number, which\n"
        "goes missing, and of its level, and of the records beyond bounds, at a claim of ε = .5. The lower bounds\n"
        "have confidence 1 - 1e-6. They come from a threshold on the privacy loss of a\n"
        "release, which other code computes from the law. They are also given for a release with twice the budget of\n"
        "the claim, and for one that takes the rows of the person for people.\n"
    )
    print("| release | neighbours | rows | claim | at least | twice the budget: at least | rows as people: at least |")
    print("|---|---|---|---|---|---|---|")
    kinds = {
        of_bounds: ("bounds", PURE.epsilon, "ε = 4"),
        of_stages: ("bounds without a range", PURE.epsilon, "ε = 4"),
        of_levels: ("lists", APPROX.delta, "δ = .05"),
        of_counts: ("counts of columns", COUNTED.epsilon, "ε = .5"),
        of_beyond: ("records beyond bounds", COUNTED.epsilon, "ε = .5"),
    }
    asked_for = [run for run, (name, *_) in kinds.items() if not chosen or name in chosen]
    for run, neighbors, rows in itertools.product(asked_for, ("replace_one", "add_remove"), (1, N_ROWS)):
        ways = [Way(neighbors=neighbors, rows=rows), Way(neighbors=neighbors, rows=rows, times=2.0)]
        ways += [Way(neighbors=neighbors, rows=rows, as_people=True)] if rows > 1 else []
        found = [run(way, n_runs) for way in ways]
        what, claim, name = kinds[run]
        cells = (what, neighbors, str(rows), name, *(f"{v:.3g}" for v in found), *([""] if rows == 1 else []))
        print(f"| {' | '.join(cells)} |", flush=True)
        if not found[0] <= claim < min(found[1:]):
            sys.exit(f"{what}, {neighbors}, {rows} rows: the audit found {found} at the claim {claim}")


if __name__ == "__main__":
    main()
