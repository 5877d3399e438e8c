"""Bounds of columns as they are released: how many are useless, how much they leave out, how wide they are."""

import sys
import warnings

import numpy as np

import dpci
from _environments import now
from _timing import commit
from dpci.schema import ClassTarget, PartialSchema, UnboundedColumn

ABOUT = """# Released bounds

`python benches/released_bounds.py {n_releases}`, commit {commit}, {date}, seeded noise.

Five columns: uniform on [0, 1], log-normal (10, 1), normal (170, 10), t with three degrees of freedom, and one that is
0 in nine of ten rows and exponential with mean 100 in the others. "known" ranges are [-1000, 1000], [0, 1e9], [0, 300],
[-1e4, 1e4] and [0, 1e6]; "wide" ones are a thousand times as wide, and "none" is no range. "wide" is the share of
the first four columns whose bounds are more than three times as far apart as the 2% and 98% quantiles, "narrow" that of
those that leave out more than half of the values, "left out" the mean share of the values beyond the bounds, and
"width" the median width over that of the quantiles. The last column is "wide" of the rare one, by its values other than
0.

| n | budget | ranges | q | wide | narrow | left out | width | rare |
|---|---|---|---|---|---|---|---|---|"""
RANGES = ((-1e3, 1e3), (0.0, 1e9), (0.0, 300.0), (-1e4, 1e4), (0.0, 1e6))
NAMES = "abcde"
TARGET = ClassTarget(column="y", negative=(0,), positive=(1,))


def columns(width: float | None) -> tuple[UnboundedColumn, ...]:
    """Return the columns with ranges that are so many times too wide; None: no ranges."""
    if width is None:
        return tuple(UnboundedColumn(name=name, zeros=name == "e") for name in NAMES)
    given = zip(NAMES, RANGES, strict=True)
    return tuple(
        UnboundedColumn(name=name, lower=width * low, upper=width * high, zeros=name == "e")
        for name, (low, high) in given
    )


def table(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Draw a table."""
    rare = np.where(rng.uniform(size=n) < 0.9, 0.0, rng.exponential(100, n))
    drawn = (rng.uniform(size=n), rng.lognormal(10, 1, n), rng.normal(170, 10, n), rng.standard_t(3, n), rare)
    return dict(zip(NAMES, drawn, strict=True))


def main(n_releases: int) -> None:
    """Print a row for each number of records, budget and knowledge of the ranges."""
    warnings.simplefilter("ignore", dpci.DpciWarning)
    print(ABOUT.format(n_releases=n_releases, commit=commit(), date=now()))
    for n in (5_000, 30_000, 300_000):
        data = table(np.random.default_rng(0), n)
        for budget in (dpci.PureDP(0.1), dpci.ZCDP(0.025), dpci.ApproxDP(0.1, 1e-7)):
            for title, width in (("known", 1.0), ("wide", 1e3), ("none", None)):
                row = measure(data, budget, columns(width), n_releases)
                print(f"| {n:,} | {budget} | {title} | {row} |", flush=True)


def measure(
    data: dict[str, np.ndarray], budget: dpci.PureDP | dpci.ZCDP | dpci.ApproxDP,
    wanted: tuple[UnboundedColumn, ...], n_releases: int,
) -> str:  # fmt: skip
    """Return the columns of one row."""
    widths, left, share = [], [], 0.0
    for seed in range(n_releases):
        try:
            partial = PartialSchema(columns=wanted, target=TARGET)
            found = dpci.release_schema(data, schema=partial, budget=budget, seed=seed)
        except dpci.InvalidInput:
            return "- | refused | | | | "
        share = found.share
        bounds = [(data[name][data[name] != 0.0], *limits) for name, limits in found.bounds.items()]
        widths.append([(high - low) / np.subtract(*np.quantile(x, [0.98, 0.02])) for x, low, high in bounds])
        left.append([np.mean((x < low) | (x > high)) for x, low, high in bounds[:4]])
    width = np.array(widths)
    wide, rare = np.mean(width[:, :4] > 3.0), np.mean(width[:, 4] > 3.0)
    narrow, out = np.mean(np.array(left) > 0.5), np.mean(left)
    return f"{share:.3f} | {wide:.4f} | {narrow:.4f} | {out:.3f} | {np.median(width[:, :4]):.2f} | {rare:.3f}"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
