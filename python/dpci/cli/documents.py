"""Facts of a released model and of a plan that commands print for programs to read: those of their summaries."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.inference.comparison import Comparison
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.targets.coefficients import parameter_estimates
from dpci.inference.targets.units import TableUnits
from dpci.model.plan import Plan
from dpci.model.result import PrivateFit
from dpci.multinomial.result import MultinomialFit, fit_of
from dpci.regression.plan import MomentPlan
from dpci.regression.result import LinearFit
from dpci.report.view import View
from dpci.rows import Blocks
from dpci.strata.result import StrataFit
from dpci.tuning.candidates import plain_params
from dpci.tuning.result import SelectedFit, TuneResult

Delivered: TypeAlias = PrivateFit | MultinomialFit | LinearFit | StrataFit | TuneResult


def result_document(result: Delivered | SelectedFit, view: View) -> dict[str, Any]:
    """Return estimates with their intervals, or why there are none, and the record of the guarantee."""
    if isinstance(result, TuneResult):
        # What the whole tuning spent stands in the place of what its fit did.
        chosen = plain_params(result.params)
        return {
            **result_document(result.result, view),
            "chosen": chosen,
            "method": result.method,
            "privacy": result.privacy,
        }
    if isinstance(result, StrataFit):
        return {
            "private": result.private,
            "by": result.by,
            "neighbors": result.neighbors,
            "charged": result.charged.parameters(),
            "strata": {name: result_document(fit, view) for name, fit in result.items()},
        }
    if isinstance(result, MultinomialFit):
        return {**result_document(fit_of(result), view), "classes": result.classes, "privacy": result.privacy}
    return {
        "private": result.private,
        "parameters": _parameters(result, view),
        "in_units": _in_units(result, view),
        "level": view.level,
        "target": view.target,
        "simultaneous": view.simultaneous,
        "interval_refusal": result.interval_refusal,
        "n_samples": result.n_samples,
        "classes": None if isinstance(result, LinearFit) else result.classes,
        "privacy": None if isinstance(result, SelectedFit) else result.privacy,
    }


def _parameters(result: PrivateFit | LinearFit | SelectedFit, view: View) -> list[dict[str, Any]]:
    if isinstance(result, PrivateFit) and result.interval_refusal is None:
        estimates = parameter_estimates(result, view.target)
        intervals = estimates.conf_int(result.names, level=view.level, simultaneous=view.simultaneous)
        return _estimates(intervals, estimates.std_errors(), estimates.pvalues())
    if isinstance(result, LinearFit):
        if result.interval_refusal is not None:
            return []
        return _estimates(result.conf_int(level=view.level), result.std_errors, result.pvalues)
    return _rows({"name": result.names, "estimate": result.params.tolist()})


def _in_units(result: PrivateFit | LinearFit | SelectedFit, view: View) -> list[dict[str, Any]] | None:
    """Return the coefficients in the units of the table, where there are some."""
    if isinstance(result, SelectedFit) or result.schema is None:
        return None
    if result.interval_refusal is not None:
        if isinstance(result, LinearFit):
            return None
        bare = result.in_units()
        return _rows({"name": bare.names, "unit": bare.units, "estimate": bare.params.tolist()})
    found: TableUnits = result.in_units() if isinstance(result, LinearFit) else result.in_units(target=view.target)
    together = None if isinstance(result, LinearFit) else view.simultaneous
    intervals = found.conf_int(level=view.level, simultaneous=together)
    rows = _estimates(intervals, found.std_errors, found.pvalues)
    return [{"name": row["name"], "unit": unit, **row} for row, unit in zip(rows, found.units, strict=True)]


def comparison_document(found: Comparison) -> dict[str, Any]:
    """Return the differences of two models with their intervals, null where one is not given, and why."""
    rows = _estimates(found.intervals, found.std_errors, found.pvalues)
    pairs = zip(rows, _numbers(found.estimate_a), _numbers(found.estimate_b), strict=True)
    return {
        "private": found.private,
        "differences": [{"a": a, "b": b, **row} for row, a, b in pairs],
        "level": found.intervals.level,
        "target": found.target,
        "in_units": found.in_units,
        "shared_data": found.shared_data,
        "private_n_samples": found.private_n_samples,
    }


def _estimates(
    intervals: ConfidenceIntervals, errors: NDArray[np.float64], pvalues: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """Return one row for each interval; null and the reason where one is not given."""
    rows = _rows(
        {
            "name": intervals.names,
            "estimate": _numbers(intervals.estimate),
            "std_error": _numbers(errors),
            "p_value": _numbers(pvalues),
            "lower": _numbers(intervals.lower),
            "upper": _numbers(intervals.upper),
        }
    )
    reasons = zip(rows, intervals.refusals, strict=True)
    return [row if reason is None else {**row, "refusal": reason} for row, reason in reasons]


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def _rows(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plan_document(plan: Plan | MomentPlan) -> dict[str, Any]:
    """Return what a fit will cost by step, and what decides how precise it can be."""
    if isinstance(plan, MomentPlan):
        return _moment_plan_document(plan)
    has_moments = len(plan.steps) > 1
    return {
        "title": plan.title,
        "unit": "row" if plan.persons is None else "person",
        "persons": None if plan.persons is None else plan.persons.to_dict(),
        "weights": None if plan.weights is None else plan.weights.to_dict(),
        "n_params": plan.n_params,
        "row_norm": plan.row_norm,
        "blocks": plan.rows.to_dict() if isinstance(plan.rows, Blocks) else None,
        "cost_unit": plan.cost_unit,
        "steps": [step.to_dict() for step in plan.steps],
        "seals": [seal.to_dict() for seal in plan.seals],
        "least_l2_strength": plan.least_l2_strength,
        "recommended_l2_strength": plan.recommended_l2_strength,
        "noise_spectral_radius": plan.noise_spectral_radius,
        "noise_ratio": plan.noise_ratio,
        "projection": plan.projection,
        "privacy_length": list(plan.privacy_length) if has_moments else None,
        "interval_length": plan.interval_length,
        "tolerance": plan.tolerance,
    }


def _moment_plan_document(plan: MomentPlan) -> dict[str, Any]:
    columns: dict[str, Sequence[Any]] = {"name": plan.names, "unit": plan.units}
    if plan.std_errors is not None and plan.half_widths is not None and plan.noise_shares is not None:
        columns |= {
            "std_error": plan.std_errors.tolist(),
            "half_width": plan.half_widths.tolist(),
            "noise_share": plan.noise_shares.tolist(),
        }
    budget = plan.least_budget
    return {
        "title": plan.title,
        "n_samples": plan.n_samples,
        "cost_unit": plan.cost_unit,
        "steps": [step.to_dict() for step in plan.steps],
        "seals": [seal.to_dict() for seal in plan.seals],
        "noise_std_dev": plan.noise_std_dev,
        "noise_std_devs": plan.noise_std_devs.tolist(),
        "greatest_variation": plan.greatest_variation,
        "expected_variation": plan.expected_variation,
        "needed_variation": plan.needed_variation,
        "assumptions": None if plan.assumptions is None else asdict(plan.assumptions),
        "coefficients": _rows(columns),
        "refusal": plan.refusal,
        "least_n_samples": plan.least_n_samples,
        "least_budget": None if budget is None else {"notion": budget.notion, **budget.parameters()},
    }
