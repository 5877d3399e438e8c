"""The experiments of Wu, Fredrikson, Wu, Jha & Naughton, section 5: error and model inversion on warfarin doses."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpci
from papers.finding import Finding, Repeats, Report
from papers.sources import Sources
from papers.wu import figures as regression_figures
from papers.wu.methods import (
    METHODS,
    Method,
    candidates,
    chunk_size,
    paper_share,
    public_strength,
    sensitivity,
    without_noise,
)
from papers.wu.setup import EPSILONS, PRIOR, Patients, Split, noise_error, patients, score, standard_error

_F64: TypeAlias = NDArray[np.float64]
Cell: TypeAlias = tuple[str, float]
Found: TypeAlias = Mapping[Cell, _F64]
"""By mechanism and epsilon (or rate): mean squared error and inversion accuracy, shape (n_repeats, 2)."""

# Of the third experiment, and the share of it that is held out.
SIZE_EPSILONS = (0.5, 10.0)
RATES = tuple(k / 10 for k in range(1, 11))
SIZE_METHODS = ("output, R1", "output, R2", "data-independent, projected")
SIZE_HELD_OUT = 1.0 / 25.0

# Of the second: largest weekly dose in mg, and whether the rows have a column of ones.
SCALINGS = ((144.0, False), (144.0, True), (324.0, False), (324.0, True))
SCALING_EPSILONS = (0.1, 0.2, 0.5, 1.0)
SCALING_METHODS = (
    "non-private",
    "data-independent",
    "data-independent, 12W+8",
    "functional, printed",
    "functional, tight",
)

PUBLISHED: Final = {"oracle": (0.2, 1.82, 0.45), "functional": (0.2, 22.57, 0.35)}
"""Numbers in the text of the paper: epsilon, mean squared error, inversion accuracy."""

_NOT_PRIVATE = "NOT PRIVATE: all results are computed from patients' data."
_NO_FIGURE_3 = (
    "Figure 3 (risk of mortality, bleeding and stroke) is omitted, because it requires the physiological simulator "
    "of Fredrikson et al. (2014), which is not public."
)
_ROWS = (
    "Rows: the 3,450 patients with a stable dose and both genotypes, 14 columns scaled by public bounds to norm 1, "
    "no intercept. Target: square root of the weekly dose in mg, [0, 12] scaled to [-1, 1] (larger ones clipped). "
    "Each repeat holds out 10% of the rows for measurement. Errors are mean squared errors of that square root, the "
    "scale which the paper's figures must use, because predicting the mean has an error of about 2."
)
_ATTACK = (
    "Inversion: VKORC1 guessed for the rows held out, from the dose and all other columns. The prior, whose mode is "
    f"right for {max(PRIOR.values()):.1%}, and the residual variance 1.1, that of least squares, were counted and "
    "measured on the same 3,450 patients."
)


_NO_PRIVACY = "non-private"


def measure(
    source: Patients, cells: Iterable[tuple[str, Method, float]], run: Repeats, *, held_out: float | None = None
) -> dict[Cell, _F64]:
    """Measure mechanisms on the same splits. Each repeat has one split, whatever else is measured."""
    sizes = {} if held_out is None else {"held_out": held_out}
    splits = [source.split(run.generator("split", str(repeat)), **sizes) for repeat in range(run.n_repeats)]
    found = {}
    for name, method, epsilon in cells:
        run.announce(f"{name}, epsilon={epsilon:g}")
        found[name, epsilon] = _scores(splits, method, epsilon, run)
    return found


def _all_cells(methods: Mapping[str, Method], epsilons: Sequence[float]) -> list[tuple[str, Method, float]]:
    """Return every mechanism at every epsilon, and the model without privacy once."""
    cells = {_cell(name, epsilon): method for name, method in methods.items() for epsilon in epsilons}
    return [(name, method, epsilon) for (name, epsilon), method in cells.items()]


def _cell(name: str, epsilon: float) -> Cell:
    return name, math.inf if name == _NO_PRIVACY else epsilon


def _scores(splits: Sequence[Split], method: Method, epsilon: float, run: Repeats) -> _F64:
    # On one thread: fits of so few rows are too short to be shared out, and repeats on threads were no faster.
    return np.array(
        [score(split, method(split, epsilon, seed)) for split, seed in zip(splits, run.seeds(), strict=True)]
    )


def mechanisms(_: Sources, run: Repeats) -> Finding:
    """Compare all mechanisms at all values of epsilon: figures 1, 2 and 4 (errors), 5 and 6 (model inversion).

    Parameters
    ----------
    run : Repeats
        Splits and draws of the noise, seed.

    Returns
    -------
    Finding
        Not private.

    Raises
    ------
    DatasetUnavailable
        The file is not in ``DPCI_DATA``.
    """
    start = time.perf_counter()
    source = patients()
    found = measure(source, _all_cells(METHODS, EPSILONS), run)
    floor = float(found[_NO_PRIVACY, math.inf][:, 0].mean())
    rows = [
        [name, "any" if math.isinf(epsilon) else f"{epsilon:g}", *_cells(scores, floor)]
        for (name, epsilon), scores in found.items()
    ]
    header = ["mechanism", "epsilon", "error", "s.e.", "median", "/ non-private", "inversion", "s.e."]
    title = "Figures 1, 2, 4, 5 and 6 of Wu et al.: error and model inversion on warfarin doses"
    facts = [*_rules(found), *_chunk_facts(source, run), *_noise_facts(source, run)]
    notes = [
        (
            "non-private: least squares. oracle: output perturbation, W and lambda computed from the training rows, "
            "lambda from twenty, evenly spaced on a log scale from .001 to .5, and the data-independent one; "
            "arithmetic grid: from twenty evenly spaced. "
            "data-independent: W = 1, lambda = sqrt(d/(n epsilon)). output, objective: chosen by Algorithm 5 among "
            "R1 = {.25, .5, 1} or R2 = {.5, 1, 2} times lambda = .002 2^k, k = 0..7; every candidate is projected "
            "to its ball first, without which the selection is not private, on 24 chunks of equal size and one to "
            "validate; standard objective perturbation has those candidates whose lambda is large enough for the rows "
            "of a chunk, and leaves the chunks of the others unused. cms11: objective perturbation of Chaudhuri et "
            "al. 12W+8: the paper's noise; the others have at most 4(W+B), and by the exact diameter "
            "of the gradients on the ball 5.2 at W = 1. projected: the noisy parameters moved into the ball; the "
            "paper leaves them outside. functional: on the entries that Zhang et al. print, and with the least "
            "noise that is known to be enough. median: over the repeats, as some mechanisms have rare huge errors."
        ),
        _ROWS,
        _ATTACK,
        _NO_FIGURE_3,
    ]
    report = _report(
        "mechanisms",
        title=title,
        header=header,
        rows=rows,
        facts=facts,
        notes=notes,
        found=found,
        run=run,
        start=start,
    )
    return Finding(report, partial(regression_figures.draw_mechanisms, found, PUBLISHED))


def sizes(_: Sources, run: Repeats) -> Finding:
    """Tune on increasing shares of the rows (figure 7); see :func:`mechanisms`."""
    start = time.perf_counter()
    source = patients()
    found: dict[Cell, _F64] = {}
    for rate in RATES:
        run.announce(f"rate {rate:g}")
        splits = [
            source.split(run.generator("split", str(repeat)), held_out=SIZE_HELD_OUT, rate=rate)
            for repeat in range(run.n_repeats)
        ]
        for epsilon in SIZE_EPSILONS:
            for name in SIZE_METHODS:
                found[f"epsilon={epsilon:g}: {name}", rate] = _scores(splits, METHODS[name], epsilon, run)
    n_rows = len(source.y)
    rows = [
        [name, f"{rate:.0%}", f"{round(rate * n_rows * (1 - SIZE_HELD_OUT)):,}", *_cells(scores, None)]
        for (name, rate), scores in sorted(found.items(), key=lambda item: _order(item[0]))
    ]
    header = ["epsilon, mechanism", "rate", "rows", "error", "s.e.", "median", "inversion", "s.e."]
    facts = [("published, epsilon=.5, output", "error 5.05 at 10%, 2.9 at 90%; inversion 36% and 40%")]
    for name in dict.fromkeys(name for name, _ in found):
        ends = [found[name, rate].mean(axis=0) for rate in (0.1, 0.9)]
        errors, inversions = zip(*ends, strict=True)
        text = f"error {errors[0]:.2f} and {errors[1]:.2f}; inversion {inversions[0]:.1%} and {inversions[1]:.1%}"
        facts.append((name, text))
    notes = [
        (
            "24 candidates and so 25 chunks, sampled at the rate; the model is measured on a separate 25th of the "
            "rows. In the paper this part is the validation chunk of the tuning, and its size is fixed."
        ),
        _ROWS.replace("10%", "a 25th"),
        _ATTACK,
    ]
    title = "Figure 7 of Wu et al.: tuned output perturbation by number of rows"
    report = _report(
        "sizes",
        title=title,
        header=header,
        rows=rows,
        facts=facts,
        notes=notes,
        found=found,
        run=run,
        start=start,
    )
    return Finding(report, partial(regression_figures.draw_sizes, found))


def _order(cell: Cell) -> tuple[float, int, float]:
    """Sort rows of the table by epsilon, mechanism and rate."""
    epsilon, name = cell[0].removeprefix("epsilon=").split(": ")
    return float(epsilon), SIZE_METHODS.index(name), cell[1]


def scalings(_: Sources, run: Repeats) -> Finding:
    """Compare scales of the target and of the rows with the paper's numbers; see :func:`mechanisms`."""
    start = time.perf_counter()
    methods = {**{name: METHODS[name] for name in SCALING_METHODS}, "data-independent, no noise": without_noise}
    header = ["target up to", "column of ones", "epsilon", *methods, "noise alone", "noise alone, 12W+8"]
    rows: list[list[str]] = []
    every: dict[Cell, _F64] = {}
    for largest, constant in SCALINGS:
        source = patients(largest, constant=constant)
        label = f"{largest:g} mg{', ones' if constant else ''}"
        found = measure(source, _all_cells(methods, SCALING_EPSILONS), run)
        every |= {(f"{label}: {name}", epsilon): scores for (name, epsilon), scores in found.items()}
        for epsilon in SCALING_EPSILONS:
            means = [found[_cell(name, epsilon)][:, 0].mean() for name in methods]
            noise = [_noise_alone(source, epsilon, run, paper=paper) for paper in (False, True)]
            shown = [f"{largest:g} mg", "yes" if constant else "no", f"{epsilon:g}"]
            rows.append([*shown, *(f"{error:.2f}" for error in (*means, *noise))])
    title = "Scales of target and rows: mean squared errors, square root of mg"
    facts = [
        ("published", "oracle 1.82, functional 22.57, both at epsilon = .2; data-independent within .1 of the oracle")
    ]
    notes = [
        (
            "noise alone: E(x'b)² over the rows held out, b the noise of data-independent output perturbation; no "
            "mechanism of this kind can have a smaller mean squared error, however good the perturbed estimate is. "
            "no noise: the estimate before perturbation. The target's root is scaled to [-1, 1], so that the noise "
            "is multiplied by a "
            "quarter of the largest dose."
        ),
    ]
    report = _report(
        "scalings",
        title=title,
        header=header,
        rows=rows,
        facts=facts,
        notes=notes,
        found=every,
        run=run,
        start=start,
    )
    return Finding(report, partial(regression_figures.draw_scalings, every, PUBLISHED))


def _cells(scores: _F64, floor: float | None) -> list[str]:
    mean, error = scores.mean(axis=0), standard_error(scores)
    ratio = [] if floor is None else [f"{mean[0] / floor:.2f}"]
    shown = [f"{mean[0]:.3f}", f"{error[0]:.3f}", f"{np.median(scores[:, 0]):.3f}", *ratio]
    return [*shown, f"{mean[1]:.4f}", f"{error[1]:.4f}"]


def _rules(found: Found) -> list[tuple[str, str]]:
    """Tell where data-independent output perturbation has the smaller error, and how inversion depends on utility."""
    from scipy.stats import spearmanr  # noqa: PLC0415  # slow to import, and the command line lists these experiments

    facts = []
    low = [epsilon for epsilon in EPSILONS if epsilon <= 1.0]
    for ours in ("data-independent", "data-independent, projected"):
        for theirs in ("functional, printed", "functional, tight"):
            differences = [found[ours, epsilon][:, 0] - found[theirs, epsilon][:, 0] for epsilon in low]
            shown = [
                f"{epsilon:g}: {values.mean():+.2f} ({standard_error(values):.2f})"
                for epsilon, values in zip(low, differences, strict=True)
            ]
            won = sum(values.mean() < 0.0 for values in differences)
            clearly = sum(values.mean() < -2.0 * standard_error(values) for values in differences)
            medians = [np.median(found[ours, e][:, 0]) < np.median(found[theirs, e][:, 0]) for e in low]
            verdict = f"less at {won} of {len(low)}, {clearly} by more than 2 s.e.; lesser median at {sum(medians)}"
            facts.append((f"{ours} minus {theirs}", f"{', '.join(shown)}; {verdict}"))
    gap = max(found["data-independent", e][:, 0].mean() - found["oracle", e][:, 0].mean() for e in EPSILONS)
    facts.append(("data-independent minus oracle", f"at most {gap:.2f} (paper: .1)"))
    names = [name for name in METHODS if name != _NO_PRIVACY]
    means = np.array([[found[name, epsilon].mean(axis=0) for epsilon in EPSILONS] for name in names])
    ends = [(cell[np.argmax(cell[:, 0]), 1], cell[np.argmin(cell[:, 0]), 1]) for cell in means]
    across = spearmanr(-means[..., 0].ravel(), means[..., 1].ravel()).statistic
    rises = sum(at_least_error > at_greatest for at_greatest, at_least_error in ends)
    text = (
        f"rank correlation {across:.2f} over all mechanisms and epsilons; more at the least error than at the greatest "
        f"for {rises} of {len(names)} mechanisms"
    )
    return [*facts, ("inversion with utility", text)]


def _chunk_facts(source: Patients, run: Repeats) -> list[tuple[str, str]]:
    """Count the remaining candidates of standard objective perturbation, and their rows."""
    split, mechanism = source.split(run.generator("split", "0")), dpci.ObjectivePerturbation()
    left = [f"{epsilon:g}: {len(candidates(split, epsilon, 'R1', mechanism))}" for epsilon in EPSILONS]
    text = f"{', '.join(left)} of 24; {chunk_size(split)} rows a chunk for all"
    return [("candidates of objective, standard", text)]


def _noise_facts(source: Patients, run: Repeats) -> list[tuple[str, str]]:
    """State the error that the noise of data-independent output perturbation alone causes at the smallest epsilon."""
    least = EPSILONS[0]
    ours, paper = (_noise_alone(source, least, run, paper=paper) for paper in (False, True))
    text = f"{ours:.2f}, with 12W+8 {paper:.2f} (E(x'b)² in closed form)"
    return [(f"error by noise alone, epsilon={least:g}", text)]


def _noise_alone(source: Patients, epsilon: float, run: Repeats, *, paper: bool) -> float:
    split = source.split(run.generator("split", "0"))
    strength = public_strength(split, epsilon)
    share = paper_share(1.0, strength) if paper else 1.0
    scale = sensitivity(split, strength, 1.0) / (share * epsilon)
    return noise_error(split, scale)


def _report(
    name: str,
    *,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    facts: Sequence[tuple[str, str]],
    notes: Sequence[str],
    found: Found,
    run: Repeats,
    start: float,
) -> Report:
    seconds = time.perf_counter() - start
    cells: list[dict[str, Any]] = [
        {
            "mechanism": mechanism,
            "rate" if name == "sizes" else "epsilon": value if math.isfinite(value) else None,
            "error": scores[:, 0].tolist(),
            "inversion": scores[:, 1].tolist(),
        }
        for (mechanism, value), scores in found.items()
    ]
    return Report(
        title=title,
        header=header,
        rows=rows,
        facts=[*facts, *run.facts(seconds)],
        notes=[*notes, _NOT_PRIVATE],
        data={
            "paper": "wu",
            "experiment": name,
            "private": False,
            "rules": dict(facts),
            **run.to_dict(seconds),
            "cells": cells,
        },
    )
