"""The summary of a fit: a table of estimates, followed by the facts that a reader needs to judge them."""

import math
import textwrap

import numpy as np

from dpci import _core
from dpci.accounting.seals import describe_seals
from dpci.base.tables import (
    format_facts,
    format_percent,
    format_pvalue,
    format_table,
    number_format,
    positive_class,
)
from dpci.inference.error_law import NOISE_AWARE
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.methods import Inference, interval_notes
from dpci.inference.validity import TRUSTED_NOISE
from dpci.losses import describe
from dpci.released.model import record_of
from dpci.released.record import FitRecord

_WIDTH = 100


def summary_text(result: Inference, *, level: float) -> str:
    """Return the summary of a fit; without moments it has no errors and no intervals."""
    parts = [_table(result, level), format_facts(fact_lines(result)), *_notes(result)]
    if not result.private:
        banner = "NOT PRIVATE (seeded)"
        parts = [banner, *parts, banner]
    return "\n\n".join(parts)


def _table(result: Inference, level: float) -> str:
    header = ["name", "estimate", "std error", "p-value", "lower", "upper"]
    if result.interval_refusal is not None:
        shown = number_format(np.abs(result.params).max(), result.params)
        return format_table(header[:2], [[n, f"{p:{shown}}"] for n, p in zip(result.names, result.params, strict=True)])
    intervals = result.conf_int(level=level)
    rows = estimate_rows(result, intervals)
    return f"{format_percent(intervals.level)} confidence intervals\n{format_table(header, rows)}"


def estimate_rows(result: Inference, intervals: ConfidenceIntervals) -> list[list[str]]:
    """Return name, estimate, standard error, p-value and bounds of each parameter as text."""
    errors = result.std_errors
    shown = number_format(errors, result.params)
    columns = zip(result.params, errors, result.pvalues, intervals.lower, intervals.upper, strict=True)
    return [
        [name, f"{estimate:{shown}}", f"{error:{shown}}", format_pvalue(pvalue), f"{lower:{shown}}", f"{upper:{shown}}"]
        for name, (estimate, error, pvalue, lower, upper) in zip(result.names, columns, strict=True)
    ]


def fact_lines(result: Inference) -> list[tuple[str, str]]:
    """Return names and values of the public facts; details of a fact are indented below it."""
    record = record_of(result)
    unit = record.cost_unit.replace("_", " ")
    steps = [
        (f"  {step.step.replace('_', ' ')}", f"{unit} {step.cost:.4g}, {step.noise.replace('_', ' ')} noise")
        for step in record.steps
    ]
    relation = {"replace_one": "replace one record", "add_remove": "add or remove one record"}[record.neighbors]
    n_name = "n (public)" if record.neighbors == "add_remove" else "n"
    return [
        ("mechanism", _mechanism(record)),
        ("loss", describe(record.loss) + positive_class(record.classes, inferred=record.classes_inferred)),
        ("budget spent", str(result.spent)),
        *steps,
        ("  seal", describe_seals(record.seals)),
        ("neighbours", relation),
        (n_name, f"{result.n_samples:,}"),
        ("lambda", f"{result.l2_strength:g}" + (", raised by cms11" if _was_raised(record) else "")),
        *([] if record.radius is None else [("radius", f"{record.radius:g}")]),
        ("moments", "none released" if result.hessian is None else f"{record.moments}, projection {record.projection}"),
    ]


def _mechanism(record: FitRecord) -> str:
    variant = "" if record.variant == "standard" else f", variant {record.variant}"
    project = ", params projected onto the ball" if record.project else ""
    return f"{record.mechanism} perturbation{variant}, calibration {record.calibration}{project}"


def _was_raised(record: FitRecord) -> bool:
    """Return whether cms11 raised lambda."""
    if record.variant != "cms11":
        return False
    step = next(step for step in record.steps if step.step == "coefficients")
    epsilon = _core.zcdp_to_pure(step.cost, record.calibration) if record.notion == "zcdp" else step.cost
    return _core.cms11_raised(epsilon, step.sensitivity, step.scale)


def target_note(result: Inference) -> str:
    """Return a note on the target of the estimates."""
    record = record_of(result)
    domain = "" if record.radius is None else f" over the ball ||params|| <= {record.radius:g}"
    ridge = f"lambda={result.l2_strength:g}"
    if record.neighbors == "add_remove":
        ridge += f" * {result.n_samples:,} / (number of records, which is private)"
    return (
        f"Target: the minimiser of the population's regularised risk at {ridge}{domain}, "
        "parameter by parameter; it is not the unregularised coefficient."
    )


def interval_note(result: Inference) -> str | None:
    """Return the reason why there are no intervals, or None if there are intervals."""
    if result.hessian is None:
        whole = len(record_of(result).steps) == 1
        spent = (
            ("the whole budget was spent on the coefficients")
            if whole
            else "the rest of the budget was spent on a report"
        )
        return f"No intervals: {spent} (moments='none')."
    if result.interval_refusal is not None:
        return f"No intervals: they {result.interval_refusal.removeprefix('intervals ')}."
    return None


def noise_note(result: Inference) -> str | None:
    """Return a note on the noise in the released matrices, or None if it is small or there are no matrices."""
    if result.interval_refusal is not None or (ratio := result.moment_noise) <= TRUSTED_NOISE:
        return None
    size = f"{ratio:.2g} times" if math.isfinite(ratio) else "any multiple of"
    counted = record_of(result).projection == NOISE_AWARE
    return (
        f"The noise in the released matrices may be {size} their least eigenvalue. "
        f"{'A' if counted else 'The intervals do not account for it; a'} joint test of several parameters may reject "
        "too often."
    )


def _notes(result: Inference) -> list[str]:
    notes = [target_note(result), interval_note(result), noise_note(result), *interval_notes(result)]
    loss = record_of(result).loss
    if loss["name"] == "custom":
        notes.append(
            "The privacy claim relies on the declared bounds of the custom loss: "
            f"slope_bound={loss['slope_bound']:g}, curvature_bound={loss['curvature_bound']:g}"
            + "".join(f", {name}={loss[name]:g}" for name in ("predictor_bound", "strong_convexity") if loss[name])
            + "."
        )
    return [textwrap.fill(note, _WIDTH) for note in notes if note is not None]
