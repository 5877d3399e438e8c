"""The experiments of Li et al., section 7: how well one fit predicts the losses at other values of epsilon."""

import time
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from papers.finding import Finding, Repeats, Report
from papers.li import figures as utility_figures
from papers.li.measure import (
    DELTA,
    MECHANISMS,
    ORDERS,
    REGULARISATION,
    SIZES,
    Case,
    Found,
    Losses,
    Mechanism,
    cases,
    measure,
)
from papers.sources import Sources

_NOTES = (
    (
        "LR: logistic loss, SVM: Huber hinge with h=.1. Under both mechanisms the coefficients receive the whole "
        "budget, one record is added or removed, and the noise is Gaussian. paper: Kifer, Smith & Thakurta's "
        "calibration, which adds 2t/epsilon to Lambda, t the curvature bound. tight: the library's, with a fixed "
        "lambda: Lambda/n plus what the paper's adds at the least epsilon of the range, which leaves noise there. "
        "first order: the tangent at the measuring point, as in the paper, with the sign of Eq. 6 corrected and one "
        "draw of the noise for all epsilons; two steps: two Newton steps from it. Error: |predicted - real| of one "
        "draw's mean loss."
    ),
    (
        "Differs from the paper: rows have norm at most 1 and the slope bound is L=1, where the paper sets 2 "
        "sqrt(p) and p for slope and curvature; delta is chosen by dpci, because the paper gives none; minimisers "
        "are exact, whereas the paper stops SGD after 100 iterations; Adult has the 30,162 complete rows of "
        "adult.data and KDD the 10% "
        "file, each with one column for each category and a column of ones; Wide is generated, in place of Gisette."
    ),
)
_NOT_PRIVATE = "NOT PRIVATE: losses and scales are computed from the data."


def curves(sources: Sources, run: Repeats) -> Finding:
    """Compare real and predicted losses at the paper's measuring points (figures 2 and 3).

    Parameters
    ----------
    sources : Sources
        Where the public data are.
    run : Repeats
        Draws of the noise, seed, threads.

    Returns
    -------
    Finding
        Not private.

    Raises
    ------
    DatasetUnavailable
        A file is not available.
    """
    start = time.perf_counter()
    found = _measure_all(cases(sources, run, wide=True), run)
    rows = [
        [
            case.panel,
            case.mechanism,
            case.span.title,
            f"{at:g}",
            f"{losses.real.mean(axis=0).max():.4f}",
            f"{losses.real.mean(axis=0).min():.4f}",
            *(f"{losses.mean_error(order, at):.1e}" for order in ORDERS),
            f"{np.median(losses.ratios(at)):.1e}",
        ]
        for case, losses in found
        for at in case.span.measured
    ]
    header = ["rows and loss", "mechanism", "range", "measured at", "greatest loss", "least loss"]
    header += ["first order", "two steps", "ratio"]
    title = "Figures 2 and 3 of Li et al.: real and predicted losses"
    notes = [
        (
            "Greatest and least loss: real losses in the range, means over the draws. First order, two steps: mean "
            "error of the predicted losses over the range and the draws. Ratio: median of the error of two steps "
            "over that of first order."
        )
    ]
    return Finding(
        _report(
            "curves",
            title=title,
            header=header,
            rows=rows,
            notes=notes,
            found=found,
            seconds=time.perf_counter() - start,
            run=run,
        ),
        partial(utility_figures.draw_curves, found),
    )


def measuring_points(sources: Sources, run: Repeats) -> Finding:
    """Measure at each epsilon and predict at all others: the second experiment of the paper; see :func:`curves`."""
    start = time.perf_counter()
    found = _measure_all(cases(sources, run, wide=False), run, everywhere=True)
    title = "Second experiment of Li et al.: mean error by measuring point"
    header, rows = _pivot(
        "measured at",
        [
            ((case.mechanism, case.span.title, f"{at:g}", case.panel), (losses, at))
            for case, losses in found
            for at in case.span.epsilons
        ],
    )
    notes = ["Each entry: mean error of the losses predicted at all other epsilons of the range."]
    return Finding(
        _report(
            "measuring_points",
            title=title,
            header=header,
            rows=rows,
            notes=notes,
            found=found,
            seconds=time.perf_counter() - start,
            run=run,
        ),
        partial(utility_figures.draw_measuring_points, header, rows),
    )


def sizes(sources: Sources, run: Repeats) -> Finding:
    """Vary the number of rows at the paper's measuring points (third experiment of the paper); see :func:`curves`."""
    start = time.perf_counter()
    varied = [case for n in SIZES for case in cases(sources, run, n=n, wide=False)]
    found = _measure_all(varied, run)
    title = "Third experiment of Li et al.: mean error by number of rows"
    header, rows = _pivot(
        "n",
        [
            ((case.mechanism, case.span.title, f"{len(case.data.X):,}", case.panel), (losses, None))
            for case, losses in found
        ],
    )
    notes = [
        (
            "Each entry: mean error over the measuring points and the range. Smaller data sets are the first rows of "
            "larger ones."
        )
    ]
    return Finding(
        _report(
            "sizes",
            title=title,
            header=header,
            rows=rows,
            notes=notes,
            found=found,
            seconds=time.perf_counter() - start,
            run=run,
        ),
        partial(utility_figures.draw_sizes, header, rows),
    )


def _measure_all(wanted: Sequence[Case], run: Repeats, *, everywhere: bool = False) -> Found:
    found = []
    for number, case in enumerate(wanted, start=1):
        run.announce(f"{number}/{len(wanted)} {case.data}, {case.loss}, {case.mechanism}, {case.span.title}")
        found.append((case, measure(case, case.span.epsilons if everywhere else case.span.measured, run)))
    return found


def _pivot(
    varied: str, entries: Iterable[tuple[tuple[Mechanism, str, str, str], tuple[Losses, float | None]]]
) -> tuple[list[str], list[list[str]]]:
    """Lay out mean errors: a line for each mechanism, range and value, two columns for each data set and loss."""
    lines: dict[tuple[str, str, str], list[str]] = {}
    panels: dict[str, None] = {}
    for (mechanism, span, value, panel), (losses, at) in entries:
        panels[panel] = None
        errors = [f"{losses.mean_error(order, at):.1e}" for order in ORDERS]
        lines.setdefault((mechanism, span, value), []).extend(errors)
    header = ["mechanism", "range", varied, *(name for panel in panels for name in (panel, "two steps"))]
    blocks = list(dict.fromkeys(line[:2] for line in lines))
    ordered = sorted(lines.items(), key=lambda item: blocks.index(item[0][:2]))
    return header, [[*line, *errors] for line, errors in ordered]


def _verdict(found: Found, mechanism: Mechanism) -> str:
    """Compare two steps with first order over all measuring points of a mechanism."""
    pairs = [(losses, at) for case, losses in found if case.mechanism == mechanism for at in losses.points]
    ratio = np.median(np.concatenate([losses.ratios(at).ravel() for losses, at in pairs]))
    worse = sum(losses.mean_error("newton", at) > losses.mean_error("first_order", at) for losses, at in pairs)
    return f"median error {ratio:.1e} of first order's; greater mean error at {worse} of {len(pairs)} measuring points"


def _report(
    name: str,
    *,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
    found: Found,
    seconds: float,
    run: Repeats,
) -> Report:
    data_sets = list(dict.fromkeys(str(case.data) for case, _ in found))
    facts = [("delta", f"{DELTA:g}"), ("Lambda", f"{REGULARISATION:g}"), ("rows", "; ".join(data_sets))]
    facts += [(f"two steps, {mechanism}", _verdict(found, mechanism)) for mechanism in MECHANISMS]
    cells = [
        {
            "rows": case.data.title,
            "n": case.data.X.shape[0],
            "d": case.data.X.shape[1],
            "loss": case.loss,
            "mechanism": case.mechanism,
            "l2_strength": case.l2_strength,
            "range": case.span.title,
            **losses.to_dict(),
        }
        for case, losses in found
    ]
    return Report(
        title=title,
        header=header,
        rows=rows,
        facts=[*facts, *run.facts(seconds)],
        notes=[*notes, *_NOTES, _NOT_PRIVATE],
        data={
            "paper": "li",
            "experiment": name,
            "private": False,
            "delta": DELTA,
            "Lambda": REGULARISATION,
            **run.to_dict(seconds),
            "cells": cells,
        },
    )
