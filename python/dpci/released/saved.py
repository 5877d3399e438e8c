"""Reads the saved record of a fit: every field by its rule, then all of them together. A file can hold anything."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dpci.base.validation import broken, check_count, check_flag, check_not_negative, check_positive
from dpci.errors import InvalidInput
from dpci.losses import NAMES, PARAMETERS, declaration, from_declaration
from dpci.released.consistency import check_consistent
from dpci.released.record import SCHEMA, SCHEMA_VERSION, FitRecord
from dpci.released.rules import (
    Rule,
    built,
    check_array,
    check_interval,
    check_labels,
    check_names,
    check_paid,
    check_seals,
    check_table,
    check_version,
    one_of,
    optional,
    read_saved,
    steps_by,
)
from dpci.released.whole import Whole
from dpci.rows import Blocks
from dpci.unit import Persons, Weights


def read_record(text: str | bytes, *, selected: bool = False, rules: Mapping[str, Rule] | None = None) -> FitRecord:
    """Rebuild a record from :meth:`FitRecord.to_json`.

    ``selected``: that of a model that won a selection; ``rules``: those of fields that differ from the rules of a fit.

    Raises
    ------
    InvalidInput
        If the text is not such a record, or of another schema version.
    """
    values = read_saved(text, what="a saved fit", schema=SCHEMA, version=SCHEMA_VERSION)
    names = [part.name for part in fields(FitRecord)]
    missing = [name for name in names if name not in values]
    if missing or len(values) > len(names):
        got = f"none called {missing[0]!r}" if missing else f"{next(n for n in values if n not in names)!r} too"
        raise InvalidInput(f"a saved fit must hold every field of its schema and no other, got {got}")
    record = built(FitRecord, values, {**_RULES, **(rules or {})}, what="a saved fit")
    check_consistent(record, selected=selected)
    return record


def _check_loss(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise broken(name, "an object", value)
    for key, rule in _LOSS_RULES.items():
        if key not in value:
            raise InvalidInput(f"{name} must have {key}, got {name}={value!r}")
        rule(f"{name}.{key}", value[key])
    for key in PARAMETERS:
        check_positive(f"{name}.{key}", value.get(key, 1.0))
    built_in = from_declaration(value)
    if built_in is not None and value != declaration(built_in, built_in.to_core()):
        raise InvalidInput(f"{name} must have the declaration of {built_in!r}, got {name}={value!r}")
    return value


# What a saved record has to obey, field by field.
_LOSS_RULES: dict[str, Rule] = {
    "name": one_of(*NAMES),
    "slope_bound": optional(check_positive),
    "curvature_bound": optional(check_positive),
    "predictor_bound": optional(check_positive),
    "strong_convexity": check_not_negative,
    "one_signed": check_flag,
    "target_bounds": optional(check_interval),
}
_STEP_RULES: dict[str, Rule] = {
    "step": one_of("coefficients", "hessian", "gradient_cov", "moments", "report_gradient", "report_hessian"),
    "noise": one_of("spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian", "matrix_laplace", "none"),
    "cost": check_positive,
    "scale": check_not_negative,
    "hessian_scale": optional(check_positive),
    "sensitivity": check_not_negative,
}
_RULES: dict[str, Rule] = {
    "params": check_array,
    "hessian": optional(check_array),
    "gradient_cov": optional(check_array),
    "names": check_names,
    "named_columns": check_flag,
    "classes": optional(check_labels),
    "classes_inferred": check_flag,
    "n_samples": check_count,
    "l2_strength": check_not_negative,
    "radius": optional(check_positive),
    "loss": _check_loss,
    "slope_bound": check_positive,
    "curvature_bound": optional(check_not_negative),
    "mechanism": one_of("objective", "output"),
    "variant": one_of("standard", "cms11"),
    "project": check_flag,
    "moments": one_of("joint", "separate", "none"),
    "projection": one_of("floor", "cautious", "noise_aware", "none"),
    "calibration": one_of("tight", "paper"),
    "row_norm": check_positive,
    "on_violation": one_of("error", "clip"),
    "neighbors": one_of("replace_one", "add_remove"),
    "intercept_scale": optional(check_positive),
    "noise_law": one_of("spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian"),
    "noise_scale": check_positive,
    "noise_spectral_radius": check_not_negative,
    "steps": steps_by(_STEP_RULES, least=1),
    "seals": check_seals,
    "private": check_flag,
    "version": check_version,
    "blocks": optional(lambda _, value: Blocks.from_dict(value)),
    "persons": optional(lambda _, value: Persons.from_dict(value)),
    "weights": optional(lambda _, value: Weights.from_dict(value)),
    "table": optional(check_table),
    "paid": optional(check_paid),
    "whole": optional(lambda _, value: Whole.from_dict(value)),
}
