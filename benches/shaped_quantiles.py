"""Quantiles of errors under Laplace noise in the shape of blocks, by their cumulants: makes the table, and checks it.

An error is sqrt(v) Z + r S, r ~ Gamma(D + 1), S a weighted sum over a uniform point of blocks. Its cumulants are exact.
``--make`` draws many such laws, regresses the logarithm of their quantiles (over the normal ones) on three standardised
cumulants and writes rust/dpci-core/src/interval/shaped/table.rs. Without it, other laws are compared with
``dpci.lowlevel.exact_half_widths``: prints Markdown; exit code 1 if a quantile is further off than the rule says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc, gammaincc
from scipy.stats import norm

from _studies import Run, changed_options, markdown, parser, report, started
from dpci import _core

Array = NDArray[np.float64]

DEGREE = 5
SCALES = (1.0, 5.0, 40.0)
"""Scales of the cumulants of order 4, 6 and 8, which enter as asinh(cumulant / scale)."""
Z = np.append(0.125, np.arange(1, 17) * 0.25)
"""Normal scores of the quantiles."""
TARGET = Path(__file__).parent.parent / "rust/dpci-core/src/interval/shaped/table.rs"
GRID = np.append(np.linspace(0.0, 4.0, 101), np.linspace(4.05, 14.0, 130))
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
CHUNK = 1_000_000
GREATEST = (0.01, 0.01, 0.01, 0.01, 0.01, 0.02)
"""Greatest relative error of a quantile at each level, and three standard errors of the draws."""


def cumulants(moments: list[float]) -> list[float]:
    """Return cumulants of even order from moments of even order."""
    found = [0.0]
    for p in range(1, len(moments)):
        terms = (math.comb(2 * p - 1, 2 * j - 1) * found[j] * moments[p - j] for j in range(1, p))
        found.append(moments[p] - sum(terms))
    return found


def moments(of: list[float]) -> list[float]:
    """Return moments of even order from cumulants of even order."""
    found = [1.0]
    for p in range(1, len(of)):
        found.append(sum(math.comb(2 * p - 1, 2 * j - 1) * of[j] * found[p - j] for j in range(1, p + 1)))
    return found


def standardised(members: NDArray[np.int64], weights: Array, dim: int, share: float) -> Array:
    """Return the cumulants of order 4, 6, 8 of an error whose noise has this share of the variance."""
    total = np.zeros(5)
    for block in np.unique(members):
        squares = weights[members == block] ** 2
        size, powers = len(squares), [float(np.sum(squares**p)) for p in range(5)]
        symmetric = [1.0]  # complete homogeneous symmetric polynomials
        for p in range(1, 5):
            symmetric.append(sum(powers[i] * symmetric[p - i] for i in range(1, p + 1)) / p)
        of_block = [math.prod(q / (size + q) for q in range(1, 2 * p + 1)) * symmetric[p] for p in range(5)]
        total += cumulants(of_block)
    noise = [m * math.prod(dim + q for q in range(1, 2 * p + 1)) for p, m in enumerate(moments(list(total)))]
    of_noise = cumulants([m / noise[1] ** p for p, m in enumerate(noise)])
    return np.array([k * share**p for p, k in enumerate(of_noise)][2:])


def sizes_of(rng: np.random.Generator) -> list[int]:
    """Return sizes of blocks."""
    ones, kind = [1] * int(rng.integers(1, 12)), rng.integers(6)
    if kind == 0:
        return [1] * int(rng.integers(1, 30))
    if kind == 1:
        return rng.integers(1, 9, size=rng.integers(1, 8)).tolist()
    if kind == 2:
        return ones + rng.integers(2, 43, size=rng.integers(1, 4)).tolist()
    if kind == 3:
        return [int(rng.integers(1, 60)), *[1] * int(rng.integers(3))]
    if kind == 4:
        return ones + rng.integers(2, 12, size=rng.integers(2, 8)).tolist()
    return [1] * int(rng.integers(1, 4)) + rng.integers(1, 5, size=rng.integers(4)).tolist()


def weights_of(rng: np.random.Generator, std_devs: Array, count: int) -> Array:
    """Return weights: all alike, of very different sizes, and with one or three that are great."""
    found = []
    for _ in range(count):
        kind = int(rng.integers(4))
        spread = np.exp(rng.choice([0.0, 0.7, 1.5, 3.0]) * rng.normal(size=len(std_devs)))
        weights = rng.normal(size=len(std_devs)) * spread / std_devs
        size = float(np.linalg.norm(weights * std_devs))
        for j in rng.integers(len(std_devs), size=(0, 1, 1, 3)[kind]):
            weights[j] = size * rng.uniform(0.3, 5.0) / std_devs[j] * rng.choice([-1, 1])
        if kind == 2:
            weights *= np.where(rng.random(len(std_devs)) < 0.7, 1e-2, 1.0)
        found.append(weights / np.linalg.norm(weights * std_devs))
    return np.array(found)


def uniform(rng: np.random.Generator, sizes: list[int], count: int) -> NDArray[np.float32]:
    """Return draws of a uniform point of blocks of bound 1: coordinates by draws."""
    blocks = []
    for size in sizes:
        exponential = rng.standard_exponential((size, count), dtype=np.float32)
        total = exponential.sum(axis=0) + rng.standard_exponential(count, dtype=np.float32)
        blocks.append(exponential * (rng.integers(0, 2, size=(size, count), dtype=np.int8) * 2 - 1) / total)
    return np.concatenate(blocks)


def quantiles(sums: Array, dim: int, share: float, tails: Array) -> Array:
    """Return where the error has these tails: draws of S, the gamma and the normal number integrated."""
    sizes = np.sort(np.abs(sums)) / math.sqrt(float(np.mean(sums**2)))
    count = len(sizes)
    ends = np.unique(np.geomspace(1, count / 1500, 150).astype(int))
    cuts = np.unique(np.concatenate([np.linspace(0, count, 1500).astype(int)[:-1], count - ends, [count]]))
    size, probability = np.add.reduceat(sizes, cuts[:-1]) / np.diff(cuts), np.diff(cuts) / count
    root = math.sqrt((dim + 1.0) * (dim + 2.0))
    if share >= 1.0:
        found = gammaincc(dim + 1, GRID[:, None] * root / size) @ probability
    else:
        step = 0.8 / math.sqrt(1.2 * (dim + 1) + 26.0)
        at = np.arange(-400, 401) * step
        log_weight = (dim + 1) * (at - np.expm1(at))
        at, weight = at[log_weight > -32], np.exp(log_weight[log_weight > -32])
        radius = np.exp(at) * (dim + 1) / root
        whole, mass = (radius[:, None] * size).ravel(), (weight[:, None] / weight.sum() * probability).ravel()
        cell = np.digitize(whole, np.append(np.linspace(0.0, 6.0, 300), np.geomspace(6.05, 60.0, 120)))
        masses, moment = np.bincount(cell, mass), np.bincount(cell, mass * whole)
        full = masses > 1e-14
        centre, width = math.sqrt(share) * moment[full] / masses[full], math.sqrt(2.0 * (1.0 - share))
        both = erfc((GRID[:, None] - centre) / width) + erfc((GRID[:, None] + centre) / width)
        found = 0.5 * both @ masses[full]
    positive = found > 0.0
    return np.interp(np.log(tails), np.log(found[positive])[::-1], GRID[positive][::-1])


def laws(rng: np.random.Generator, n_shapes: int, n_draws: int) -> Iterator[tuple[Any, ...]]:
    """Yield sizes, members, weights, number of coordinates, share of the noise, and draws of the sum."""
    for _ in range(n_shapes):
        sizes = sizes_of(rng)
        members = np.repeat(np.arange(len(sizes)), sizes)
        size = np.array(sizes)[members]
        # Coordinates without weight change the law of the radius alone.
        dim = len(members) + int(rng.choice([0, 0, 0, 20, 200, 5000]))
        first = uniform(rng, sizes, min(n_draws, CHUNK))
        weights = weights_of(rng, np.sqrt(2.0 / ((size + 1.0) * (size + 2.0))), 8)
        rest = (uniform(rng, sizes, CHUNK) for _ in range(CHUNK, n_draws, CHUNK))
        of_all = [weights.astype(np.float32) @ points for points in itertools.chain([first], rest)]
        for one, sums in zip(weights, np.concatenate(of_all, axis=1), strict=True):
            for share in (1.0, float(rng.uniform(0.7, 0.99)), float(rng.uniform(0.1, 0.7))):
                yield sizes, members, one, dim, share, sums.astype(np.float64)


def features(found: Array) -> Array:
    """Return all products of one to DEGREE of the transformed cumulants."""
    base = np.arcsinh(found / np.array(SCALES))
    columns = []
    for degree in range(1, DEGREE + 1):
        sets = itertools.combinations_with_replacement(range(3), degree)
        columns += [np.prod(base[:, list(of)], axis=1) for of in sets]
    return np.array(columns).T


def make(run: Run) -> None:
    """Write the table."""
    tails = 2.0 * norm.sf(Z)
    rng = np.random.default_rng(run.seed)
    known, logs = [], []
    for _, members, weights, dim, share, sums in laws(rng, 4 if run.quick else 180, 100_000):
        known.append(standardised(members, weights, dim, share))
        logs.append(np.log(quantiles(sums, dim, share, tails) / Z))
    cumulant = np.array(known)
    coefficients, *_ = np.linalg.lstsq(features(cumulant), np.array(logs), rcond=1e-10)
    base = np.arcsinh(cumulant / np.array(SCALES))
    rows = ["    [" + ", ".join(f"{c:.6e}" for c in column) + "]," for column in coefficients.T]
    text = f"""\
//! Quantiles by cumulants, made by `benches/shaped_quantiles.py --make --seed {run.seed}`, which also checks them.

#![expect(clippy::unreadable_literal, reason = "fitted numbers")]

/// Normal scores of the quantiles.
pub(super) const SCORES: [f64; {len(Z)}] = [{", ".join(repr(float(z)) for z in Z)}];

/// Degree of the polynomials.
pub(super) const DEGREE: usize = {DEGREE};

/// What the cumulants of order 4, 6 and 8 are divided by before their inverse hyperbolic sine is taken.
pub(super) const SCALES: [f64; 3] = [{", ".join(repr(s) for s in SCALES)}];

/// Least and greatest of each among the laws that the polynomials were fitted to.
pub(super) const RANGES: [[f64; 2]; 3] = [
{chr(10).join(f"    [{low:.6e}, {high:.6e}]," for low, high in zip(base.min(0), base.max(0), strict=True))}
];

/// The logarithm of a quantile over the normal one: coefficients of the products of degree 1, 2, ... for each score.
#[rustfmt::skip]
pub(super) const COEFFICIENTS: [[f64; {coefficients.shape[0]}]; {len(Z)}] = [
{chr(10).join(rows)}
];
"""
    TARGET.write_text(text, encoding="utf-8")


def check(run: Run) -> Iterator[str]:
    """Compare half widths with draws."""
    yield "## Half widths against draws\n"
    n_draws = 1_000_000 if run.quick else 10_000_000
    yield f"Laws with other blocks, weights and shares than those of the table; {n_draws:,} draws each.\n"
    rng = np.random.default_rng(run.seed + 1)
    errors = []
    for sizes, members, weights, dim, share, sums in laws(rng, 4 if run.quick else 10, n_draws):
        bounds, blocks = [1.0] * len(sizes), members.tolist()
        for block in range(dim - len(members)):
            bounds.append(1.0)
            blocks.append(len(sizes) + block)
        domain = _core.RowDomain.blocks(bounds, blocks)
        row = np.zeros(dim)
        row[: len(weights)] = weights * math.sqrt(share / ((dim + 1.0) * (dim + 2.0)))
        law, v = _core.ErrorShape("shaped_laplace", 1.0, dim, rows=domain), np.array([1.0 - share])
        widths = [float(law.half_widths(v, row, level)[0]) for level in LEVELS]
        exact = quantiles(sums, dim, share, 1.0 - np.array(LEVELS))
        errors.append(np.abs(np.array(widths) / exact - 1.0))
    table = np.array(errors)
    rows = []
    for level, greatest, column in zip(LEVELS, GREATEST, table.T, strict=True):
        rows.append([level, f"{np.median(column):.2%}", f"{np.quantile(column, 0.99):.2%}", f"{column.max():.2%}"])
        run.check(f"level {level}", [(column.max() <= greatest, f"at most {greatest:.0%}, got {column.max():.2%}")])
    yield f"{len(table)} laws.\n"
    yield from markdown(["level", "median error", "99th percentile", "greatest"], rows)


def main() -> None:
    options = parser(__doc__.splitlines()[0], ("check",))
    options.add_argument("--make", action="store_true", help="write the table")
    arguments = options.parse_args()
    changed = changed_options(options, arguments)
    if arguments.make:
        make(started(arguments))
    else:
        report(
            "Half widths under noise in the shape of blocks",
            started(arguments),
            changed,
            {"check": check},
            arguments.only,
        )


if __name__ == "__main__":
    main()
