"""Common levels: intervals with level totals and without, and what the warning names without. Not private.

Each table is a sample of records with a public schema, which serves as the population of a bootstrap study. Coverage
comes from the study, what is named from separate fits of bootstrap samples. The limits of the warning were chosen on
the first two of its tables, the numbers of the law of level totals on all; "held out" has other tables, other samples
and other seeds. Prints Markdown. Needs the full data files (DPCI_DATA).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpci
from _studies import Run, changed_options, markdown, parser, report, started
from papers.wu.warfarin import SCHEMA, load_warfarin
from row_shapes import ALL, encoded, schema_of

FITS = 20
Setting = tuple[str, int, int, float, float]
"""Table, records, seed of their sample, λ and ε."""
CHOSEN: list[Setting] = [
    (name, 5_000, 5, 0.01, epsilon) for name in ("adult", "bank") for epsilon in (0.5, 1.0, 2.0, 5.0)
]
CHECK: list[Setting] = [
    *(("adult", 10_000, 7, 0.005, epsilon) for epsilon in (0.5, 2.0)),
    *(("bank", 10_000, 7, 0.005, epsilon) for epsilon in (0.5, 2.0)),
    *(("credit_default", 5_000, 5, 0.01, epsilon) for epsilon in (0.5, 2.0)),
]
LOW, WELL = 0.90, 0.93
BUDGETS: dict[str, dpci.Budget] = {
    **{f"ε = {epsilon:g}": dpci.PureDP(epsilon) for epsilon in (0.5, 1.0, 3.0, 5.0)},
    "ρ = .1": dpci.ZCDP(0.1),
    "(1, 1e-6)": dpci.ApproxDP(1.0, 1e-6),
}
OTHERS: dict[str, dict[str, Any]] = {
    "smooth hinge": {"loss": "smooth_hinge"},
    "Huber hinge": {"loss": "huber_hinge"},
    "probit": {"loss": "probit", "radius": 5.0},
    "logistic, persons of two rows": {"persons": 2},
    "logistic, weights from .25 to 1.75": {"weights": 1.75},
}
"""Other losses, the radius of their parameters, rows of each person, and the greatest weight, where the mean is 1."""
LENGTH = 1.05
"""Greatest mean length with level totals over that without."""


Rows = tuple[np.ndarray, np.ndarray, dpci.rows.Blocks]
"""Rows, classes and the public domain of the rows."""


def rows_of(name: str) -> Rows:
    """Return all columns of a table by its public schema."""
    return *encoded(name, ALL), schema_of(name, ALL).rows


def warfarin() -> Rows:
    """Return who needs more than 35 mg a week."""
    data = load_warfarin()
    return np.asarray(data.X), np.where(np.asarray(data.y) > 2.0 * 35.0**0.5 / 18.0 - 1.0, 1.0, -1.0), SCHEMA.rows


def generated(n: int = 30_000) -> Rows:
    """Return four categories of 4 to 30 levels, many of them rare, and three numbers, bound by a hidden class."""
    rng = np.random.default_rng(17)
    hidden = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    columns, groups, start = [], [], 0
    predictor = np.full(n, -0.8) + 0.5 * (hidden == 2)
    norm = 7.0**0.5 * (1.0 + 1e-9)
    for size in (4, 8, 15, 30):
        shares = np.array([rng.dirichlet(3.0 / np.arange(1.0, size + 1.0) ** 1.6) for _ in range(3)])
        codes = (rng.random(n)[:, None] > shares[hidden].cumsum(axis=1)).sum(axis=1).clip(max=size - 1)
        columns.append(np.eye(size)[codes])
        groups.append((range(start, start + size), 1.0 / norm))
        start += size
        predictor += 0.7 * rng.standard_normal(size)[codes]
    for shape in ((2.0, 2.0), (1.0, 6.0), (5.0, 1.5)):
        number = np.clip(2.0 * rng.beta(*shape, n) - 1.0 + 0.2 * (hidden - 0.5), -1.0, 1.0)
        columns.append(number[:, None])
        predictor += rng.normal() * number
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-predictor)), 1.0, -1.0)
    return np.hstack(columns) / norm, y, dpci.rows.Blocks([1.0 / norm] * 3, groups)


def totals(run: Run) -> Iterator[str]:
    """Coverage and length of all parameters, without level totals and with them."""
    yield "## Level totals: all columns of three tables\n"
    names = ("adult", "bank", "credit_default")
    cells = [(name, size, strength) for name in names for size, strength in ((5_000, 0.01), (10**6, 0.002))]
    yield from compared(run, cells, BUDGETS, sample=5, seed=run.seed, replicates=600)


def held_out(run: Run) -> Iterator[str]:
    """The same for tables that nothing was chosen on, and for other samples and seeds."""
    yield "## Level totals: tables that nothing was chosen on\n"
    cells = [
        ("warfarin", 3_450, 0.01),
        *(("kddcup99", size, strength) for size, strength in ((5_000, 0.01), (50_000, 0.002))),
        *(("generated", size, strength) for size, strength in ((5_000, 0.01), (30_000, 0.002))),
        *((name, 10_000, 0.005) for name in ("adult", "bank", "credit_default")),
    ]
    pure = {title: budget for title, budget in BUDGETS.items() if isinstance(budget, dpci.PureDP)}
    yield from compared(run, cells, pure, sample=11, seed=run.seed + 1, replicates=run.large[0])


def losses(run: Run) -> Iterator[str]:
    """The same for other losses, for persons with two rows each, and for weighted records."""
    pure = {title: BUDGETS[title] for title in ("ε = 0.5", "ε = 3")}
    for title, keywords in OTHERS.items():
        yield f"## Level totals: {title}\n"
        cells = [("bank", 5_000, 0.01)]
        replicates, seed = run.large[0], run.seed + 3
        yield from compared(run, cells, pure, sample=5, seed=seed, replicates=replicates, keywords=keywords)
        yield ""


def compared(
    run: Run,
    cells: list[tuple[str, int, float]],
    budgets: dict[str, dpci.Budget],
    *,
    sample: int,
    seed: int,
    replicates: int,
    keywords: dict[str, Any] | None = None,
) -> Iterator[str]:
    """Compare both releases on samples of so many records, at λ, under each budget."""
    coverage = [f"{moments}: mean; worst" for moments in ("joint", "levels")]
    header = ["data and records", "λ", "budget", *coverage, "below .90", "length", "ratio"]
    rows: list[list[object]] = []
    makers = {"warfarin": warfarin, "generated": generated}
    for name, most, strength in cells:
        X, y, domain = makers[name]() if name in makers else rows_of(name)
        size = min(most, len(y))
        chosen = np.random.default_rng(sample).permutation(len(y))[:size] if size < len(y) else slice(None)
        X, y = X[chosen], y[chosen]
        others = dict(keywords or {})
        radius = others.pop("radius", None)
        if "persons" in others:
            others["persons"] = np.arange(size) // others["persons"]
        if "weights" in others:
            bound = others["weights"]
            drawn = np.random.default_rng(sample + 1).uniform(2.0 - bound, bound, size)
            others["weights"] = dpci.Weights(drawn, bound=bound)
        for title, budget in budgets.items():
            found = [
                dpci.simulate.coverage(
                    X,
                    y,
                    budget=budget,
                    rows=domain,
                    mechanism=dpci.ObjectivePerturbation(moments=moments, radius=radius),
                    l2_strength=strength,
                    classes=(-1, 1),
                    n_replicates=40 if run.quick else replicates,
                    n_variability=0,
                    seed=seed,
                    n_threads=run.threads,
                    **others,
                )
                for moments in ("joint", *(["levels"] if isinstance(budget, dpci.PureDP) else []))
            ]
            by_parameter = [np.asarray(study.coverage_by_param) for study in found]
            ratio = found[-1].mean_length / found[0].mean_length
            shown = [f"{each.mean():.3f}; {each.min():.3f}" for each in by_parameter]
            counts = [
                " → ".join(str((each < LOW).sum()) for each in by_parameter),
                " → ".join(f"{study.mean_length:.3f}" for study in found),
            ]
            pure = [shown[1], *counts, f"{ratio:.3f}"] if len(found) > 1 else ["", *counts, ""]
            rows.append([f"{name}, {size:,}", strength, title, shown[0], *pure])
            slack = 2.0 * (LOW * (1.0 - LOW) / replicates) ** 0.5
            rules = [
                (by_parameter[-1].min() >= LOW - slack, f"the worst must be at least {LOW}, got {shown[-1]}"),
                (ratio <= LENGTH, f"the length must be at most {LENGTH} times, got {ratio:.3f}"),
            ]
            run.check(f"{name}, {size}, {title}", [] if run.quick else rules)
    yield from markdown(header, rows)


@dpci.threads(1)
def cell(run: Run, setting: Setting) -> list[object]:
    """One row: how many parameters are covered below .90, and what the warning names."""
    name, size, sample, strength, epsilon = setting
    X, y = encoded(name, ALL)
    schema = schema_of(name, ALL)
    chosen = np.random.default_rng(sample).permutation(len(y))[:size]
    X, y = X[chosen], y[chosen]
    without_totals = dpci.ObjectivePerturbation(moments="joint")
    common = {"budget": dpci.PureDP(epsilon), "mechanism": without_totals, "l2_strength": strength}
    keywords = {**common, "rows": schema.rows, "classes": (-1, 1)}
    study = dpci.simulate.coverage(
        X, y, n_replicates=run.large[0], n_variability=0, seed=run.seed, n_threads=run.threads, **keywords
    )
    covered = np.asarray(study.coverage_by_param)
    low = covered < LOW
    groups = [list(columns) for columns, _ in schema.rows.groups]
    grouped = np.zeros(len(covered), dtype=bool)
    grouped[[j for group in groups for j in group]] = True
    labels = [f"x{group[0]} to x{group[-1]}" for group in groups]
    rng = np.random.default_rng(run.seed + 1)
    direct = np.zeros((FITS, len(covered)), dtype=bool)
    hidden = np.zeros((FITS, len(groups)), dtype=bool)
    names = [f"x{j}" for j in range(X.shape[1])]
    for i in range(FITS):
        rows = rng.integers(0, size, size)
        result = dpci.fit(X[rows], y[rows], seed=i, **keywords)
        found = result.common_levels
        if found is not None:
            direct[i, [names.index(parameter) for parameter in found.parameters]] = True
            hidden[i, [labels.index(column) for column in found.columns]] = True
    by_column = np.zeros_like(direct)
    for k, group in enumerate(groups):
        by_column[:, group] = hidden[:, k, None]
    bad_groups = np.array([low[group].any() for group in groups])
    plan = dpci.plan(n_samples=size, schema=schema, **common)

    def share(part: np.ndarray, of: np.ndarray) -> str:
        return f"{part.sum() / of.sum():.2f}" if of.sum() else ""

    everywhere = np.ones_like(direct)
    bad = everywhere & (low & grouped)
    well = everywhere & (covered >= WELL)
    return [
        f"{name}, {size:,}",
        epsilon,
        f"{covered.mean():.3f}; {covered.min():.3f}",
        f"{(low & grouped).sum()} in {bad_groups.sum()} of {len(groups)}; {(low & ~grouped).sum()}",
        f"{len(plan.hidden_columns)}",
        f"{hidden.sum(axis=1).mean():.1f}",
        share(hidden & bad_groups, hidden),
        f"{direct.sum(axis=1).mean():.1f}",
        share(direct & low, direct),
        share((direct | by_column) & bad, bad),
        share(direct & well, well),
    ]


def table(run: Run, cells: list[Setting], title: str) -> Iterator[str]:
    yield f"## {title}\n"
    header = [
        "data, records",
        "ε",
        "coverage: mean; worst",
        "below .90: levels in columns of all; other parameters",
        "columns a plan names",
        "columns named",
        "of them with a level below .90",
        "levels named",
        "of them below .90",
        "of the levels below .90: named, or their column",
        "of the parameters at .93 or more: named as levels",
    ]
    yield from markdown(header, [cell(run, each) for each in cells])


def main() -> None:
    sections = {
        "totals": totals,
        "held_out": held_out,
        "losses": losses,
        "chosen": functools.partial(table, cells=CHOSEN, title="Tables that the limits were chosen on"),
        "check": functools.partial(table, cells=CHECK, title="Tables that nothing was chosen on"),
    }
    options = parser(__doc__.splitlines()[0], list(sections))
    arguments = options.parse_args()
    report(
        "Common levels: intervals with and without level totals",
        started(arguments),
        changed_options(options, arguments),
        sections,
        arguments.only,
        model=f"logistic loss, all columns, blocks, pure ε-DP; {FITS} fits for what is named",
    )


if __name__ == "__main__":
    sys.exit(main())
