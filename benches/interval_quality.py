"""How good the intervals are: reference cells, lengths at an equal budget, and how quality moves with d.

Bootstrap replicates of public data sets, prepared as by Wang, Kifer & Lee (2019), section 7, stand for samples of a
population with known parameters: the minimiser on the full data. A length ratio is the mean length of the intervals
over the span of the released parameters themselves. Not private: the noise is seeded and the target is read off the
data. Prints Markdown; exit code 1 if a rule is broken. Needs the full data files (DPCI_DATA).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dpci
from _panels import grid, head, label, legend, save
from _studies import (
    BUDGETS,
    L2_STRENGTH,
    LOSSES,
    Rows,
    Run,
    Setting,
    adult,
    changed_options,
    kdd,
    load,
    markdown,
    parser,
    quality,
    report,
    started,
)
from _tables import read_table
from dpci.report.style import BLUE, GREEN, GREY, VERMILION, symbols

# Standard error of a coverage of the reference, which has 200 replicates.
REFERENCE_SE = 0.006


# Reference cells.

# Coverage in the published tables; then coverage and length ratio of an independent implementation with 200
# replicates, of the paper's method and of the tight one.
REFERENCE = {
    (adult(10), "pure", "objective", "logistic"): (0.9713, (0.967, 1.26), (0.947, 1.05)),
    (adult(10), "pure", "objective", "Huber"): (0.9724, (0.968, 1.29), (0.945, 1.05)),
    (adult(10), "zCDP", "output", "logistic"): (0.9715, (0.985, 1.31), (0.947, 1.00)),
    (kdd(50_000, 10), "pure", "objective", "logistic"): (0.9680, (0.969, 1.21), (0.943, 0.98)),
    (kdd(50_000, 10), "zCDP", "output", "logistic"): (0.9915, (0.991, 2.26), (0.963, 1.07)),
    (kdd(450_000, 10), "pure", "objective", "logistic"): (0.9951, (0.993, 2.10), (0.950, 1.00)),
    (kdd(450_000, 10), "pure", "output", "Huber"): (0.9867, (0.989, 1.95), (0.956, 1.05)),
    (kdd(450_000, 10), "zCDP", "output", "logistic"): (0.9984, (0.995, 5.23), (0.966, 1.12)),
}
ALL_PARTS = tuple(itertools.product(("pure", "zCDP"), ("objective", "output"), LOSSES))


def reference(run: Run) -> Iterator[str]:
    """The cells of the reference, all settings on Adult at the published shares, then at the default ones."""
    yield "## Reference cells\n"
    yield (
        "`paper` is the published method, `tight` ours at the published shares with the floor projection, `default` "
        "ours with every default. Reference: coverage / length ratio of an independent implementation of `paper` and "
        "`tight` with 200 replicates, standard errors about .006 and .05. The published coverages (Wang, Kifer & Lee "
        "2019, tables 2 and 3) are from the full KDD file and another preprocessing: only their size is comparable.\n"
    )
    cells: list[tuple[Rows, list[Setting]]] = []
    for rows in run.kept(dict.fromkeys(key[0] for key in REFERENCE)):
        known = ALL_PARTS if rows.name == "adult" else [key[1:] for key in REFERENCE if key[0] == rows]
        cells.append((rows, [Setting(*parts, method) for method in ("paper", "tight") for parts in known]))
    cells += [(rows, [Setting(*parts) for parts in ALL_PARTS]) for rows in run.kept(map(adult, (10, 50, 104)))]
    table = []
    for rows, settings in cells:
        for setting, study in zip(settings, run.coverage(rows, [s.keywords() for s in settings]), strict=True):
            run.check(f"{rows}, {setting}", reference_rules(rows, setting, study))
            published, *found = REFERENCE.get((rows, setting.notion, setting.mechanism, setting.loss), ("", "", ""))
            known_pair = dict(zip(("paper", "tight"), found, strict=True)).get(setting.method)
            table.append(
                [
                    rows,
                    *str(setting).split(", "),
                    *quality(study),
                    "{:.3f} / {:.2f}".format(*known_pair) if known_pair else "",
                    published if setting.method == "paper" else "",
                ]
            )
    header = "data,method,notion,mechanism,loss,coverage,s.e.,mean length,length ratio,reference,published coverage"
    yield from markdown(header.split(","), table)


def reference_rules(rows: Rows, setting: Setting, study: Any) -> Iterator[tuple[bool, str]]:
    coverage, se, ratio = study.coverage, study.coverage_se, study.length_ratio
    known = REFERENCE.get((rows, setting.notion, setting.mechanism, setting.loss))
    got = f"got coverage {coverage:.4f} (s.e. {se:.4f}), length ratio {ratio:.3f}"
    if setting.method == "paper" and known:
        near = abs(coverage - known[1][0]) <= 3 * np.hypot(se, REFERENCE_SE)
        yield near, f"coverage must be within 3 standard errors of {known[1][0]}, {got}"
    if setting.method == "tight" and known:
        inside = 0.945 - 3.5 * se <= coverage <= 0.97 + 3.5 * se
        yield inside, f"coverage must be in [.945, .97] but for 3.5 standard errors, {got}"
        yield ratio <= 1.15, f"the length ratio must be at most 1.15, {got}"
    if setting.method == "tight" and rows.name == "adult":
        yield 0.935 <= coverage <= 0.975, f"coverage must be in [.935, .975], {got}"
        yield ratio <= 1.12, f"the length ratio must be at most 1.12, {got}"
    if setting.method == "default":
        yield coverage >= 0.93, f"coverage must be at least .93, {got}"
        if rows.d == 10:
            yield ratio <= 1.40, f"the length ratio must be at most 1.40, {got}"


# Equal budget.

# Greatest mean length over that of the paper's method, for pure DP and objective perturbation.
GREATEST_RATIO = {
    ("Adult", "logistic"): 0.68,
    ("Adult", "Huber"): 0.76,
    ("KDD n=450,000", "logistic"): 0.40,
    ("KDD n=450,000", "Huber"): 0.40,
}


def budget(run: Run) -> Iterator[str]:
    """Our defaults against the paper's method at its shares, for the same total budget."""
    yield "## Equal total budget\n"
    yield (
        f"Our defaults against the published method at the published shares; both spend {BUDGETS['pure']} or "
        f"{BUDGETS['zCDP']} in all. The ratio is our mean length over the other, on the same samples.\n"
    )
    table = []
    for rows in run.kept([adult(10), kdd(50_000, 10), kdd(450_000, 10)]):
        settings = [Setting(*parts, method) for parts in ALL_PARTS for method in ("default", "paper")]
        found = run.coverage(rows, [s.keywords() for s in settings], variability=False)
        for setting, ours, paper in zip(settings[::2], found[::2], found[1::2], strict=True):
            ratio = ours.mean_length / paper.mean_length
            run.check(f"equal budget, {rows}, {setting}", budget_rules(rows, setting, ours, ratio))
            table.append(
                [
                    rows,
                    *str(setting).split(", ")[1:],
                    *(f"{study.mean_length:.4g}" for study in (ours, paper)),
                    f"{ratio:.3f}",
                    *(f"{study.coverage:.4f} ({study.coverage_se:.4f})" for study in (ours, paper)),
                ]
            )
    header = "data,notion,mechanism,loss,our length,paper's length,ratio,our coverage (s.e.),paper's coverage (s.e.)"
    yield from markdown(header.split(","), table)


def budget_rules(rows: Rows, setting: Setting, ours: Any, ratio: float) -> Iterator[tuple[bool, str]]:
    if (setting.notion, setting.mechanism) != ("pure", "objective"):
        return
    greatest = GREATEST_RATIO.get((rows.title, setting.loss))
    if greatest is not None:
        yield ratio <= greatest, f"the ratio of lengths must be at most {greatest}, got {ratio:.3f}"
    enough = ours.coverage >= 0.945 - 3.5 * ours.coverage_se
    yield enough, f"coverage must be at least .945 but for 3.5 standard errors, got {ours.coverage:.4f}"


# Quality against d.

DIMENSIONS = (10, 30, 50, 90)
# Objective perturbation at an (ε,δ) budget has a report of its own, approx_quality.py.
DIMENSION_SETTINGS = tuple(
    Setting(*parts, "logistic")
    for parts in (
        ("pure", "objective"),
        ("pure", "output"),
        ("zCDP", "objective"),
        ("zCDP", "output"),
        ("(ε,δ)", "output"),
    )
)


@dataclass(frozen=True)
class Point:
    """Results of one setting on one data set."""

    rows: Rows
    setting: Setting
    study: dpci.simulate.CoverageStudy
    noise_ratio: float


DIMENSION_TITLE = "Quality against the number of columns"


def dimension(run: Run, figure: Path | None) -> Iterator[str]:
    """Coverage and length with the defaults as columns are added."""
    yield f"## {DIMENSION_TITLE}\n"
    yield (
        f"Our defaults, logistic loss; {', '.join(map(str, BUDGETS.values()))}. r_H/λ is the spectral radius of the "
        "noise in the Hessian over λ for parameters of any norm, as `dpci.plan` reports it.\n"
    )
    points = []
    for rows in run.kept(make(d) for make in (adult, functools.partial(kdd, 450_000)) for d in DIMENSIONS):
        points += dimension_points(run, rows)
    table = [
        [
            p.rows,
            p.setting.notion,
            p.setting.mechanism,
            *quality(p.study),
            f"{p.noise_ratio:.2f}",
        ]
        for p in points
    ]
    header = "data,notion,mechanism,coverage,s.e.,mean length,length ratio,r_H/λ"
    yield from markdown(header.split(","), table)
    if figure is not None:
        draw([list(map(str, row)) for row in table], figure)
        yield (
            "\n![Two panels for each data set: coverage near the dotted line at 0.95, and the ratio of lengths near "
            f"1, from 10 to 90 columns]({figure.name})\n"
        )
        yield (
            "*Coverage of the 95% intervals with bars of two standard errors, and mean length over the span of the "
            "released parameters, as columns are added. A line is a notion of privacy and a mechanism. Dotted: what "
            "ideal intervals have.*"
        )


def dimension_points(run: Run, rows: Rows) -> Iterator[Point]:
    configs = [setting.keywords() for setting in DIMENSION_SETTINGS]
    found = run.coverage(rows, configs)
    X, y = load(rows)
    for setting, config, study in zip(DIMENSION_SETTINGS, configs, found, strict=True):
        plan = dpci.plan(
            n_samples=len(y),
            n_features=X.shape[1],
            l2_strength=L2_STRENGTH,
            rows=dpci.rows.Within(intercept=False),
            **config,
        )
        yield Point(rows, setting, study, plan.noise_ratio)


NOTIONS = {"pure": BLUE, "zCDP": VERMILION, "(ε,δ)": GREEN}


def draw(table: Sequence[Sequence[str]], path: Path) -> None:
    """Draw the rows of the table: coverage, then length ratio, in rows of panels with a column for each data set."""
    places = [row[0].rsplit(", d=", 1) for row in table]
    titles = list(dict.fromkeys(title for title, _ in places))
    figure, axes = grid(2, len(titles), height=2.6)
    for (i, what), (column, title) in itertools.product(enumerate(("coverage", "length ratio")), enumerate(titles)):
        ax = axes[i][column]
        if column:
            ax.sharey(axes[i][0])
        for setting in DIMENSION_SETTINGS:
            chosen = [
                (int(d), *map(float, (row[3], row[4], row[6])))
                for (name, d), row in zip(places, table, strict=True)
                if (name, *row[1:3]) == (title, setting.notion, setting.mechanism)
            ]
            d, coverage, se, ratio = zip(*chosen, strict=True)
            ax.errorbar(
                d,
                ratio if i else coverage,
                yerr=None if i else 2.0 * np.array(se),
                color=NOTIONS[setting.notion],
                marker="o" if setting.mechanism == "objective" else "s",
                markersize=4,
                linestyle="-" if setting.mechanism == "objective" else "--",
                label=f"{setting.notion}, {setting.mechanism}",
                capsize=3,
            )
        ax.axhline(1.0 if i else 0.95, color=GREY, linewidth=1, linestyle=":")
        ax.set_xticks(sorted({int(d) for _, d in places}))
        label(ax, title, "columns d", "" if column else what)
    legend(figure, *axes[0][0].get_legend_handles_labels())
    budgets = symbols(", ".join(map(str, BUDGETS.values())))
    head(
        figure,
        "Coverage of 95% intervals (± 2 standard errors) and length ratio against the number of columns; logistic "
        f"loss, {budgets}.\nNOT PRIVATE",
    )
    save(figure, path)


def main() -> None:
    options = parser(__doc__.splitlines()[0], ("reference", "budget", "dimension"))
    options.add_argument("--figure", type=Path, help="file (.svg, .png) of the figure, beside the Markdown")
    options.add_argument("--draw-again", type=Path, metavar="REPORT", help="draw --figure from this report; no run")
    arguments = options.parse_args()
    if arguments.draw_again:
        draw(read_table(arguments.draw_again.read_text("utf-8"), DIMENSION_TITLE)[1], arguments.figure)
        return
    sections = {
        "reference": reference,
        "budget": budget,
        "dimension": functools.partial(dimension, figure=arguments.figure),
    }
    changed = changed_options(options, arguments, "figure", "draw_again")
    report("Quality of the intervals", started(arguments), changed, sections, arguments.only)


if __name__ == "__main__":
    main()
