"""What commands print of a released model and of a plan for programs to read: the facts of their summaries."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from dpci.model.plan import Plan
from dpci.model.result import PrivateFit
from dpci.regression.result import LinearFit
from dpci.rows import Blocks

Delivered: TypeAlias = PrivateFit | LinearFit


def result_document(result: Delivered, *, level: float) -> dict[str, Any]:
    """Return estimates with their intervals, or why there are none, and the record of the guarantee."""
    has_params = result.interval_refusal is None or isinstance(result, PrivateFit)
    columns: dict[str, Sequence[Any]] = {"name": result.names if has_params else ()}
    columns["estimate"] = result.params.tolist() if has_params else ()
    if result.interval_refusal is None:
        intervals = result.conf_int(level=level)
        columns |= {
            "std_error": result.std_errors.tolist(),
            "p_value": result.pvalues.tolist(),
            "lower": intervals.lower.tolist(),
            "upper": intervals.upper.tolist(),
        }
    return {
        "private": result.private,
        "parameters": _rows(columns),
        "in_units": None if result.schema is None or result.interval_refusal is not None else _in_units(result, level),
        "level": level,
        "interval_refusal": result.interval_refusal,
        "n_samples": result.n_samples,
        "classes": result.classes if isinstance(result, PrivateFit) else None,
        "privacy": result.privacy,
    }


def _in_units(result: Delivered, level: float) -> list[dict[str, Any]]:
    """Return the coefficients in the units of the table."""
    found = result.in_units()
    intervals = found.conf_int(level=level)
    return _rows(
        {
            "name": found.names,
            "unit": found.units,
            "estimate": found.params.tolist(),
            "std_error": found.std_errors.tolist(),
            "p_value": found.pvalues.tolist(),
            "lower": intervals.lower.tolist(),
            "upper": intervals.upper.tolist(),
        }
    )


def _rows(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return what a fit will cost by step, and what decides how precise it can be."""
    has_moments = len(plan.steps) > 1
    return {
        "title": plan.title,
        "n_params": plan.n_params,
        "row_norm": plan.row_norm,
        "blocks": plan.rows.to_dict() if isinstance(plan.rows, Blocks) else None,
        "cost_unit": plan.cost_unit,
        "steps": [step.to_dict() for step in plan.steps],
        "seals": [seal.to_dict() for seal in plan.seals],
        "least_l2_strength": plan.least_l2_strength,
        "noise_spectral_radius": plan.noise_spectral_radius,
        "noise_ratio": plan.noise_ratio,
        "projection": plan.projection,
        "privacy_length": list(plan.privacy_length) if has_moments else None,
        "interval_length": plan.interval_length,
        "tolerance": plan.tolerance,
    }
