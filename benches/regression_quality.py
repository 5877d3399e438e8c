"""How good the intervals of private ridge regression on a ball are: simulated linear models and warfarin.

Bootstrap studies: the target is the minimiser of the data at hand, which is read off them. Not private: the noise is
seeded. Prints Markdown; exit code 1 if a rule is broken. The section on warfarin needs DPCI_DATA.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import dpci
from _studies import BUDGETS, Run, changed_options, markdown, parser, quality, report, started
from dpci.mechanisms import check_mechanism
from papers.wu.warfarin import load_warfarin

N, DIM, RADIUS, L2_STRENGTH = 100_000, 10, 1.0, 0.02
SHARES = {"default": None, "(.5, .25, .25)": (0.5, 0.25, 0.25)}
MECHANISMS = ("output", "objective")
# Of warfarin, (radius, strength): sqrt(d / (n epsilon)) gives .064; the free minimiser there has norm 1.
WARFARIN = ((2.0, 0.064), (3.0, 0.064), (2.0, 0.2))
# Fits of the data at hand by which the share is measured that are given intervals.
GIVEN_OF = 50
Cell = tuple[str, str, str]
Studies = Mapping[Cell, "dpci.simulate.CoverageStudy"]
Judge = Callable[[Cell, Studies], Iterator[tuple[bool, str]]]
HEADER = ("budget", "mechanism", "shares", "coverage", "s.e.", "mean length", "length ratio", "given", "verdict")


def linear_model() -> tuple[np.ndarray, np.ndarray]:
    """Rows with correlated columns and norm at most 1, targets in [-1, 1]: a line plus bounded, uneven noise."""
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((DIM, DIM)) / np.sqrt(DIM) + np.eye(DIM)
    X = rng.standard_normal((N, DIM)) @ mix
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    params = rng.standard_normal(DIM)
    signal = X @ (0.6 * params / np.linalg.norm(params))
    spread = 0.1 + 0.2 * np.abs(X[:, 0])
    return X, np.clip(signal + spread * rng.uniform(-1.0, 1.0, N), -1.0, 1.0)


def table(
    run: Run, what: str, data: tuple[Any, Any], *, radius: float, l2_strength: float, judge: Judge
) -> Iterator[str]:
    """One row for each budget, mechanism and shares."""
    cells = list(itertools.product(BUDGETS, MECHANISMS, SHARES))
    mechanisms = {m: replace(check_mechanism(m), radius=radius) for m in MECHANISMS}
    configs = [{"budget": BUDGETS[b], "mechanism": replace(mechanisms[m], split=SHARES[s])} for b, m, s in cells]
    replicates, spread = run.small
    found = dpci.simulate.coverage(
        *data, configs=configs, n_replicates=replicates, n_variability=spread, seed=run.seed, n_threads=run.threads,
        loss="squared", rows=dpci.rows.Within(intercept=False), l2_strength=l2_strength,
    )  # fmt: skip
    studies = dict(zip(cells, found, strict=True))
    rows = []
    for cell, study in studies.items():
        verdict = run.check(f"{what}, {', '.join(cell)}", judge(cell, studies))
        given = f"{given_of(data, {**configs[len(rows)], 'l2_strength': l2_strength}):.2f}"
        rows.append([*cell, *quality(study), given, verdict])
    yield from markdown(HEADER, rows)


def given_of(data: tuple[Any, Any], keywords: Mapping[str, Any]) -> float:
    """Share of fits of the data that show that the radius does not bind, and so have intervals."""
    fits = (
        dpci.fit(*data, loss="squared", rows=dpci.rows.Within(intercept=False), seed=seed, **keywords)
        for seed in range(GIVEN_OF)
    )  # fmt: skip
    return sum(one.interval_refusal is None for one in fits) / GIVEN_OF


def at_least(study: dpci.simulate.CoverageStudy, least: float) -> tuple[bool, str]:
    holds = study.coverage >= least - 3.5 * study.coverage_se
    return holds, f"coverage must be at least {least}, got {study.coverage:.4f}"


def near_the_level(cell: Cell, studies: Studies) -> Iterator[tuple[bool, str]]:
    study = studies[cell]
    yield at_least(study, 0.945)
    greatest = study.coverage <= 0.97 + 3.5 * study.coverage_se
    yield greatest, f"coverage must be at most .97, got {study.coverage:.4f}"
    ratio = study.length_ratio
    yield ratio is not None and ratio <= 1.15, f"the length ratio must be at most 1.15, got {ratio:.3f}"


def covers(cell: Cell, studies: Studies) -> Iterator[tuple[bool, str]]:
    yield at_least(studies[cell], 0.94)


def simulated(run: Run) -> Iterator[str]:
    """Ridge on the simulated linear model."""
    yield f"## Linear model, n={N:,}, d={DIM}, W={RADIUS:g}, λ={L2_STRENGTH:g}\n"
    yield (
        "A cell holds if coverage is in [.945, .97] but for 3.5 standard errors and the length ratio (mean length over "
        "the span of the released parameters) at most 1.15. The gradients of the squared loss are far below their "
        "bound, so the noise in their covariance, which small shares make large, lengthens the intervals.\n"
    )
    yield from table(run, "linear model", linear_model(), radius=RADIUS, l2_strength=L2_STRENGTH, judge=near_the_level)


def warfarin(run: Run) -> Iterator[str]:
    """Ridge on warfarin."""
    yield "## Warfarin"
    data = load_warfarin()
    yield (
        "\nA cell holds if coverage is at least .94 but for 3.5 standard errors; every interval of the formula counts. "
        f'"given": the share of {GIVEN_OF} fits of the data whose released values show that the radius does not bind; '
        "the others are refused intervals.\n"
    )
    for radius, strength in WARFARIN:
        yield f"\n### Warfarin, n={len(data.y):,}, d={data.X.shape[1]}, W={radius:g}, λ={strength:g}\n"
        what = f"warfarin, W={radius:g}, λ={strength:g}"
        yield from table(run, what, (data.X, data.y), radius=radius, l2_strength=strength, judge=covers)


def main() -> None:
    sections = {"simulated": simulated, "warfarin": warfarin}
    options = parser(__doc__.splitlines()[0], tuple(sections))
    arguments = options.parse_args()
    changed = changed_options(options, arguments)
    report(
        "Quality of the intervals of ridge regression",
        started(arguments),
        changed,
        sections,
        arguments.only,
        model="squared loss",
    )


if __name__ == "__main__":
    main()
