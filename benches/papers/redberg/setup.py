"""Shared parts of the experiments of Redberg & Wang (2021): rows, constants, regularisation, the report."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import dpci
from papers.finding import Calibration, Repeats, Report
from papers.rows import NOMINAL, DataSet, credit_default, soft_labels
from papers.sources import Sources

DELTA = 1e-6
"""delta of one release, and the failure probability of a bound."""
SHARES: Final = (0.2, 0.7, 0.1)
"""epsilon of the coefficients, the gradient and the Hessian in the data-dependent report."""
CALIBRATIONS: Final[tuple[Calibration, ...]] = ("paper", "tight")

# Rows and columns of the generated data.
SOFT: Final = {"n": 10_000, "d": 20}

# Strictly above the least strength, at which no noise is allowed.
_ABOVE = 1.0 + 1e-9

_COMMON = (
    "One record is added or removed; the noise is Gaussian. Lambda = n lambda is the strength of the regularisation "
    "of the sum of the losses, the paper's lambda. paper: Kifer, Smith & Thakurta's noise for the coefficients, as "
    "in the paper's Theorem 5 (which prints the square of its standard deviation for it); tight: the library's."
)
ROW_NOTES: Final = (
    (
        "Soft labels: x uniform on the sphere, y = x theta moved and scaled to [0, 1]; n and d are chosen by dpci, "
        "because the paper gives none."
    ),
    (
        "Credit default: 21 of the file's 23 features; the paper does not say which. "
        f"{' and '.join(NOMINAL.values())}, nominal codes with undocumented values, are omitted; each column is "
        "divided by its greatest absolute value and each row by its norm."
    ),
)
_NOT_PRIVATE = "NOT PRIVATE: losses, minimisers and scales are computed from the data."


def data_sets(sources: Sources, run: Repeats) -> list[DataSet]:
    """Return the generated and the public rows; raises ``DatasetUnavailable`` without the file."""
    return [
        DataSet("soft labels", *soft_labels(run.generator("soft labels"), **SOFT), dpci.losses.SoftLogistic()),
        DataSet("credit default", *credit_default(sources), dpci.losses.Logistic()),
    ]


def fit_keywords(data: DataSet, epsilon: float, ridge: float, calibration: Calibration) -> dict[str, Any]:
    """Return the keywords of :func:`dpci.fit` for the coefficients alone."""
    n_samples = len(data.X)
    return {
        "budget": dpci.ApproxDP(epsilon=epsilon, delta=DELTA),
        "loss": data.loss,
        "l2_strength": ridge / n_samples,
        "mechanism": dpci.ObjectivePerturbation(moments="none", calibration=calibration),
        "rows": dpci.rows.Within(intercept=False),
        "neighbors": dpci.AddRemove(n_samples),
    }


def std_dev(data: DataSet, epsilon: float, ridge: float, calibration: Calibration) -> float:
    """Return the standard deviation of the coefficients' noise."""
    n_samples, n_features = data.X.shape
    plan = dpci.plan(n_samples=n_samples, n_features=n_features, **fit_keywords(data, epsilon, ridge, calibration))
    return float(plan.steps[0].scale)


def least_ridge(data: DataSet, epsilon: float) -> float:
    """Return the smallest Lambda of Theorem 5."""
    return len(data.X) * data.least_l2_strength(epsilon) * _ABOVE


def required_ridge(data: DataSet, run: Repeats) -> float:
    """Return the least Lambda for the data-dependent report: twice the radius of its Hessian's noise at (.1, 1e-6)."""
    keywords = report_keywords(data, "paper", epsilon=1.0, ridge=least_ridge(data, SHARES[0]))
    with dpci.threads(run.n_threads):
        report = dpci.per_instance.report(data.X, data.y, **keywords, seed=run.seed)
    if report.hessian_radius is None:
        raise AssertionError("a data-dependent report has a radius")
    return 2.0 * report.hessian_radius * _ABOVE


def report_keywords(data: DataSet, calibration: Calibration, *, epsilon: float, ridge: float) -> dict[str, Any]:
    """Return the keywords of a data-dependent report. In the paper each release has delta = 1e-6."""
    return {
        "budget": dpci.ApproxDP(epsilon=epsilon, delta=3.0 * DELTA if calibration == "paper" else DELTA),
        "loss": data.loss,
        "l2_strength": ridge / len(data.X),
        "n_public": len(data.X),
        "shares": SHARES,
        "calibration": calibration,
        "failure_probability": DELTA,
        "rows": dpci.rows.Within(intercept=False),
    }


def write_report(
    name: str,
    *,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    facts: Sequence[tuple[str, str]],
    notes: Sequence[str],
    found: Mapping[str, Any],
    seconds: float,
    run: Repeats,
) -> Report:
    """Return a report with the facts and notes that all experiments share."""
    return Report(
        title=title,
        header=header,
        rows=rows,
        facts=[*facts, *run.facts(seconds)],
        notes=[*notes, _COMMON, _NOT_PRIVATE],
        data={
            "paper": "redberg",
            "experiment": name,
            "private": False,
            "delta": DELTA,
            **run.to_dict(seconds),
            **found,
        },
    )
