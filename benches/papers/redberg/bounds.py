"""The comparison of Redberg & Wang (2021), section 4.2: bounds on privacy losses and the true losses."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpci
from dpci.per_instance import Report, ex_post_losses_not_private
from papers.finding import Calibration, Finding, Repeats
from papers.redberg import figures as per_instance_figures
from papers.redberg.figures import MethodLosses
from papers.redberg.setup import (
    DELTA,
    ROW_NOTES,
    SHARES,
    data_sets,
    least_ridge,
    report_keywords,
    required_ridge,
    write_report,
)
from papers.rows import DataSet
from papers.sources import Sources

_F64: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Method:
    """One of the compared reports.

    Parameters
    ----------
    name : str
        Name in the tables.
    ridge : float
        Lambda.
    dependent : bool
        Whether the report is data-dependent.
    calibration : {"paper", "tight"}
        Calibration of the noise; it also determines the bound of a data-dependent report.
    epsilon : float
        The whole budget, which is the worst case for a record.
    """

    name: str
    ridge: float
    dependent: bool
    calibration: Calibration
    epsilon: float = 1.0

    def report(self, data: DataSet, seed: int, n_threads: int | None) -> Report:
        """Return the report with the noise of a seed."""
        keywords = report_keywords(data, self.calibration, epsilon=self.epsilon, ridge=self.ridge)
        if self.dependent:
            keywords["bound"] = "paper" if self.calibration == "paper" else "interpolated"
        else:
            keywords |= {"kind": "data_independent", "budget": dpci.ApproxDP(epsilon=self.epsilon, delta=DELTA)}
        with dpci.threads(n_threads):
            return dpci.per_instance.report(data.X, data.y, **keywords, seed=seed)


@dataclass
class Records:
    """Losses of all records under one method; each array has shape (n_repeats, n).

    ``true`` is the exact ex-post loss of the coefficients, ``bound`` the report's bound on it, and ``total`` the
    bound plus the privacy loss of the other two releases for the record.
    """

    data: DataSet
    method: Method
    true: list[_F64] = field(default_factory=list)
    bound: list[_F64] = field(default_factory=list)
    total: list[_F64] = field(default_factory=list)

    def add(self, report: Report, n_threads: int | None) -> None:
        """Evaluate a report on the records from which it was made."""
        X, y = self.data.X, self.data.y
        found = report(X, y, n_threads=n_threads)
        exact = ex_post_losses_not_private(report, X, y, X, y, member=True, n_threads=n_threads)
        self.true.append(exact.absolute)
        self.bound.append(found.eps1)
        self.total.append(found.total)

    @property
    def ratio(self) -> list[_F64]:
        """The bound over the true loss."""
        return [bound / true for bound, true in zip(self.bound, self.true, strict=True)]

    def quantiles(self, values: Sequence[_F64]) -> list[float]:
        """Return the quartiles over the records, averaged over the repeats."""
        quartiles = np.mean([np.quantile(one, (0.25, 0.5, 0.75)) for one in values], axis=0)
        return [float(quartile) for quartile in quartiles]

    @property
    def below_worst_case(self) -> float:
        """Share of the records whose total bound is below the budget's epsilon."""
        return float(np.mean(np.array(self.total) < self.method.epsilon))

    @property
    def broken(self) -> int:
        """Records whose true loss exceeds their bound, over all repeats."""
        return int(np.sum(np.array(self.true) > np.array(self.bound)))

    def drawn(self) -> MethodLosses:
        """Return what a figure shows for the first repeat."""
        method = self.method
        label = f"{method.name}, ε = {method.epsilon:.2g}"
        total = self.total[0] if method.dependent else None
        return MethodLosses(
            self.data.title, label, method.ridge, method.calibration, self.bound[0], self.true[0], total
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "rows": self.data.title,
            "method": self.method.name,
            "epsilon": self.method.epsilon,
            "Lambda": self.method.ridge,
            "true_quartiles": self.quantiles(self.true),
            "bound_quartiles": self.quantiles(self.bound),
            "ratio_quartiles": self.quantiles(self.ratio),
            "total_quartiles": self.quantiles(self.total),
            "below_worst_case": self.below_worst_case,
            "broken": self.broken,
        }


def bounds(sources: Sources, run: Repeats) -> Finding:
    """Compare data-independent and data-dependent bounds with true losses, record by record: section 4.2.

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
        The file is not available.
    """
    start = time.perf_counter()
    cells, costs = [], []
    for data in data_sets(sources, run):
        required = required_ridge(data, run)
        costs.append([tight_cost(data, required, run, delta) for delta in (DELTA, 3.0 * DELTA)])
        for method in _methods(data, required, costs[-1][0]):
            run.announce(f"{data}, {method.name}")
            records = Records(data, method)
            for seed in run.seeds():
                records.add(method.report(data, seed, run.n_threads), run.n_threads)
            cells.append(records)
    found = [cell.to_dict() for cell in cells]
    rows = [
        [
            one["rows"],
            one["method"],
            f"{one['epsilon']:.3g}",
            f"{one['Lambda']:.4g}",
            f"{one['true_quartiles'][1]:.2e}",
            *(f"{bound:.4f}" for bound in one["bound_quartiles"]),
            *(f"{ratio:.3g}" for ratio in one["ratio_quartiles"]),
            f"{one['total_quartiles'][1]:.3f}",
            f"{one['below_worst_case']:.3f}",
            f"{one['broken']}",
        ]
        for one in found
    ]
    quartiles = ("25%", "50%", "75%")
    header = ["rows", "report", "epsilon", "Lambda", "true 50%", *(f"bound {q}" for q in quartiles)]
    header += [*(f"ratio {q}" for q in quartiles), "total 50%", "below epsilon", "broken"]
    facts = [
        ("rows", "; ".join(dict.fromkeys(str(cell.data) for cell in cells))),
        (
            "delta",
            f"{DELTA:g} in total; each of the three releases of the paper's data-dependent report also has this delta",
        ),
        (
            "(.2, .7, .1) costs",
            f"epsilon {_range(costs, 0)} at delta={DELTA:g}, {_range(costs, 1)} at {3 * DELTA:g} (tight)",
        ),
    ]
    notes = [
        (
            "Statistics over the training records, averaged over the repeats. True: |log p(with the "
            "record)/p(without it)| of the coefficients. Bound: the bound of the report (eps1). Ratio: bound over "
            "true. Total: eps1 + eps2 + eps3, which includes the cost of the other two releases for the record. "
            "Below "
            "epsilon: share of the records whose total is below the worst case. Broken: number of records, over all "
            "repeats, whose true loss is above its bound."
        ),
        (
            "independent: the whole budget is spent on the coefficients. dependent: shares (.2, .7, .1); of epsilon in "
            "the paper's, with the bound 3/2 of the inverse; of the squared ratios of sensitivity to noise in the "
            "tight one, with the interpolated bound, which needs no least Lambda."
        ),
        (
            "A data-dependent report spends a fifth of its budget on the coefficients, which already makes their "
            "losses and bounds smaller; the ratio compares the tightness of the bounds."
        ),
        *_verdicts(cells),
        *ROW_NOTES,
    ]
    report = write_report(
        "bounds",
        title="Section 4.2 of Redberg & Wang (2021): bounds on the privacy losses of records",
        header=header,
        rows=rows,
        facts=facts,
        notes=notes,
        found={"tight_costs": costs, "cells": found},
        seconds=time.perf_counter() - start,
        run=run,
    )
    return Finding(report, partial(per_instance_figures.draw_bounds, [cell.drawn() for cell in cells]))


def tight_cost(data: DataSet, required: float, run: Repeats, delta: float) -> float:
    """Return epsilon at delta of the paper's three releases, each (.2, .7, .1) at 1e-6, taken together."""
    from scipy.optimize import brentq  # noqa: PLC0415  # slow to import, and the command line lists these experiments

    method = Method("", required, dependent=True, calibration="paper")
    guarantee = method.report(data, run.seed, run.n_threads).result.guarantee
    return float(brentq(lambda epsilon: math.log(guarantee.delta(epsilon) / delta), 0.01, sum(SHARES), xtol=1e-6))


def _methods(data: DataSet, required: float, cost: float) -> Iterator[Method]:
    """Yield the compared reports, the two of the paper first."""
    least = least_ridge(data, 1.0)
    yield Method("independent, paper", required, dependent=False, calibration="paper")
    yield Method("dependent, paper", required, dependent=True, calibration="paper")
    yield Method("independent, tight", required, dependent=False, calibration="tight")
    yield Method("dependent, tight", required, dependent=True, calibration="tight")
    yield Method("dependent, tight", required, dependent=True, calibration="tight", epsilon=cost)
    yield Method("independent, paper", least, dependent=False, calibration="paper")
    yield Method("independent, tight", least, dependent=False, calibration="tight")
    yield Method("dependent, tight", least, dependent=True, calibration="tight")


def _range(costs: Sequence[Sequence[float]], which: int) -> str:
    found = sorted({f"{cost[which]:.3f}" for cost in costs})
    return " to ".join(dict.fromkeys((found[0], found[-1])))


def _verdicts(cells: Sequence[Records]) -> Iterator[str]:
    """List the data sets, Lambdas and calibrations for which the data-dependent report has the smaller median."""
    independent = {
        (cell.data.title, cell.method.calibration, cell.method.ridge): cell
        for cell in cells
        if not cell.method.dependent
    }
    pairs = [
        (cell, independent[key])
        for cell in cells
        if cell.method.dependent
        and (key := (cell.data.title, cell.method.calibration, cell.method.ridge)) in independent
    ]
    names = {"bound": "bound on the loss of the coefficients", "ratio": "ratio", "total": "total of all its releases"}
    for what, name in names.items():
        better: list[str] = []
        worse: list[str] = []
        for mine, its in pairs:
            medians = [cell.quantiles(getattr(cell, what))[1] for cell in (mine, its)]
            method = mine.method
            pair = f"{mine.data.title}, {method.calibration}, Lambda={method.ridge:.3g}, epsilon={method.epsilon:.3g}"
            (better if medians[0] < medians[1] else worse).append(pair)
        if better and worse:
            where = f"at {'; '.join(better)}; it is not at {'; '.join(worse)}"
        else:
            where = f"at {'all' if better else 'none'} of the {len(pairs)} pairs"
        yield f"The median {name} is smaller in the data-dependent report than in the data-independent one {where}."
