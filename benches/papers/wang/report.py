"""Tables and figures as text, Markdown or JSON: the results and the published numbers."""

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpci.errors import InvalidInput
from papers.finding import Calibration, Report
from papers.sources import Sources
from papers.wang.experiments import FIGURES, TABLES, TITLES, Cell, FigurePlan, Panel
from papers.wang.published import COVERAGE, LOSSES, SETTINGS, Setting
from papers.wang.studies import Lengths, Outcome, Outcomes, Run, row_notes

_WORDS = (
    "LR: logistic regression, SVM: Huber hinge with h=1; obj and output: perturbation of the objective and of the "
    "minimiser; lambda=.002. Under zCDP a step spends rho = epsilon^2/2."
)
_METHODS = {
    "paper": "paper: the published method",
    "tight": "tight: that of the library at the published budgets, with joint moments, which spend the sum of the last "
    "two",
}
_RATIO = "Ratio: mean length of the intervals over that of the variability intervals."
_ROWS = {
    "kddcup99": "The paper samples from the full file of KDD Cup 1999; dpci uses the 10% file of 494,021 records.",
    "us": "The paper's extract of IPUMS-US is not public, so agreement depends on your file.",
    "br": "The paper's extract of IPUMS-BR is not public, so agreement depends on your file.",
}
_NOT_PRIVATE = "NOT PRIVATE: scales, targets and lengths are computed from the data."


def run_table(number: int, calibrations: tuple[Calibration, ...], sources: Sources, run: Run) -> Report:
    """Repeat a published table, cell by cell.

    Parameters
    ----------
    number : {2, 3, 4, 5, 6}
        Number of a table of Wang, Kifer & Lee (2019). Tables 5 and 6 need the user's extracts of IPUMS.
    calibrations : tuple of {"paper", "tight"}
        Methods to compare with the table: one of them, or both in this order.
    sources : Sources
        The data sets.
    run : Run
        Numbers of replicates, seed, threads, checkpoints.

    Returns
    -------
    Report
        Not private.

    Raises
    ------
    InvalidInput, DatasetUnavailable
        If the number is not that of a table, and as for :meth:`papers.wang.studies.Run.outcomes`.
    """
    _check("table", number, TABLES)
    _check("calibrations", calibrations, (("paper",), ("tight",), ("paper", "tight")))
    start = time.perf_counter()
    sweep = TABLES[number]
    published = {
        sweep.cell(value, setting): (value, COVERAGE[number][setting][column])
        for setting in SETTINGS
        for column, value in enumerate(sweep.values)
    }
    outcomes = run.outcomes(f"table {number}", published, calibrations, sources)
    seconds = time.perf_counter() - start
    rows, data = [], []
    for cell, (value, known) in published.items():
        found: dict[str, Outcome] = {calibration: outcomes[cell, calibration] for calibration in calibrations}
        shown = [text for outcome in found.values() for text in _quality(outcome)]
        rows.append([str(cell.setting), sweep.show(value), f"{known:.4f}", *shown])
        plain = _plain(cell, next(iter(found.values())))
        data.append({**plain, "published": known, **{name: one.to_dict() for name, one in found.items()}})
    ratio = ["ratio"] if run.n_variability else []
    header = ["setting", sweep.varied, "published"]
    for calibration in calibrations:
        header += [calibration, "(s.e.)", *ratio]
    n_samples = next(iter(outcomes.values())).n_samples
    columns = _columns(published, sources)
    title = f"Table {number} of Wang, Kifer & Lee (2019): coverage of 95% intervals, {TITLES[sweep.dataset]}"
    return Report(
        title=title,
        header=header,
        rows=rows,
        facts=[("fixed", sweep.fixed(n_samples)), *_column_facts(columns), *run.facts(seconds)],
        notes=[
            _WORDS,
            f"Coverage with its standard error. {'; '.join(_METHODS[name] for name in calibrations)}.",
            *([_RATIO] if ratio else []),
            *_row_notes([sweep.dataset], outcomes),
            _NOT_PRIVATE,
        ],
        data={"table": number, "private": False, "columns": columns, **run.to_dict(seconds), "cells": data},
    )


@dataclass(frozen=True)
class FigureData:
    """Data of a figure: the panels whose data are available, and lengths by letter of the panel and label of the curve.

    If d varies, lengths are those of the first coordinate; otherwise they are averages over the coordinates, as in the
    paper. ``n_samples`` is by data set, and has no meaning if n varies.
    """

    plan: FigurePlan
    panels: Sequence[Panel]
    calibration: Calibration
    lengths: Mapping[tuple[str, str], Sequence[Lengths]]
    n_samples: Mapping[str, int]
    report: Report


def run_figure(number: int, calibration: Calibration, sources: Sources, run: Run) -> FigureData:
    """Repeat the studies of a published figure. Panels without a named extract of IPUMS are left out.

    Parameters
    ----------
    number : {1, 2, 3, 4}
        Number of a figure of Wang, Kifer & Lee (2019).
    calibration, sources, run
        See :func:`run_table`.

    Returns
    -------
    FigureData
        Not private. ``report`` has the numbers, and :func:`papers.wang.figures.draw` draws them.

    Raises
    ------
    InvalidInput, DatasetUnavailable
        See :func:`run_table`.
    """
    _check("figure", number, FIGURES)
    _check("calibration", calibration, ("paper", "tight"))
    start = time.perf_counter()
    plan = FIGURES[number]
    panels = [panel for panel in plan.panels if sources.has(panel.sweep.dataset)]
    cells = {
        (panel, curve, value): panel.sweep.cell(value, Setting(curve.notion, curve.mechanism, panel.loss))
        for panel in panels
        for curve in plan.curves
        for value in panel.sweep.values
    }
    outcomes = run.outcomes(f"figure {number}", cells.values(), [calibration], sources)
    seconds = time.perf_counter() - start
    rows, data = [], []
    lengths: dict[tuple[str, str], list[Lengths]] = {}
    for (panel, curve, value), cell in cells.items():
        outcome = outcomes[cell, calibration]
        length = outcome.first if panel.sweep.varied == "d" else outcome.average
        lengths.setdefault((panel.letter, curve.label), []).append(length)
        where = f"({panel.letter}) {TITLES[panel.sweep.dataset]} {LOSSES[panel.loss]}"
        rows.append([where, curve.label, panel.sweep.varied, panel.sweep.show(value), *_length(length)])
        plain = _plain(cell, outcome)
        data.append({"panel": panel.letter, "curve": curve.label, **plain, calibration: outcome.to_dict()})
    left_out = [panel.letter for panel in plan.panels if panel not in panels]
    notes = [
        _WORDS,
        "If d varies, lengths are those of the first coordinate; otherwise they are the average over coordinates.",
    ]
    if left_out:
        notes.append(f"Omitted without --us or --br: panels {', '.join(left_out)}.")
    datasets = list(dict.fromkeys(panel.sweep.dataset for panel in panels))
    variability = ["variability"] if run.n_variability else []
    columns = _columns(cells.values(), sources)
    report = Report(
        title=f"Figure {number} of Wang, Kifer & Lee (2019): length of 95% intervals, {plan.title}",
        header=["panel", "curve", "varied", "value", "mean length", "std", *variability],
        rows=rows,
        facts=[("calibration", calibration), *_column_facts(columns), *run.facts(seconds)],
        notes=[*notes, *_row_notes(datasets, outcomes), _NOT_PRIVATE],
        data={
            "figure": number,
            "private": False,
            "left_out": left_out,
            "calibration": calibration,
            "columns": columns,
            **run.to_dict(seconds),
            "points": data,
        },
    )
    n_samples = {cell.rows.dataset: outcome.n_samples for (cell, _), outcome in outcomes.items()}
    return FigureData(plan, panels, calibration, lengths, n_samples, report)


def _check(name: str, value: object, known: Collection[object]) -> None:
    if value not in known:
        msg = f"{name} must be one of {', '.join(map(str, known))}, got {name}={value}"
        raise InvalidInput(msg)


def _quality(outcome: Outcome) -> list[str]:
    ratio = [] if outcome.length_ratio is None else [f"{outcome.length_ratio:.2f}"]
    # One replicate has no standard error.
    error = "-" if math.isnan(outcome.coverage_se) else f"{outcome.coverage_se:.4f}"
    return [f"{outcome.coverage:.4f}", f"({error})", *ratio]


def _length(length: Lengths) -> list[str]:
    numbers = (length.mean, length.std, length.variability)
    return [f"{number:.4g}" for number in numbers if number is not None]


def _plain(cell: Cell, outcome: Outcome) -> dict[str, Any]:
    rows = {**cell.rows._asdict(), "n": outcome.n_samples}  # a user's file may have fewer rows than the paper's
    return {**rows, **cell.setting._asdict(), "epsilons": list(cell.epsilons)}


def _columns(cells: Iterable[Cell], sources: Sources) -> dict[str, list[str]]:
    """Return the used columns by data set; if d varies, those of the largest d."""
    most: dict[str, int] = {}
    for cell in cells:
        most[cell.rows.dataset] = max(cell.rows.d, most.get(cell.rows.dataset, 0))
    return {name: list(sources.columns(name, d)) for name, d in most.items()}


def _column_facts(columns: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    # A name may hold line breaks, which would end the line of the fact.
    return [
        (f"columns of {TITLES[name]}", ", ".join(" ".join(column.split()) for column in used))
        for name, used in columns.items()
    ]


def _row_notes(datasets: Iterable[str], outcomes: Outcomes) -> list[str]:
    return [*(_ROWS[name] for name in datasets if name in _ROWS), *row_notes(outcomes)]
