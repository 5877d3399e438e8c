"""How a regression is shown: the table of its coefficients, its facts, and its page."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.costs import describe_seals
from dpci.base.tables import ERROR_DIGITS, change_text, format_percent, number_format, row_of_text
from dpci.base.validation import check_fraction
from dpci.errors import InvalidInput
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.targets.units import TableUnits
from dpci.regression.choices.model import PRIVATE, Model
from dpci.regression.equations import Solution
from dpci.regression.estimates import LinearEstimates
from dpci.regression.record import MomentRecord
from dpci.report.meaning import attacker_section
from dpci.report.page import (
    SHARED,
    assumptions_section,
    bounds_lines,
    budget_section,
    drawn_note,
    forest_of,
    provenance,
    released_table,
    titled,
)
from dpci.report.summary import INTERVALS_FIRST
from dpci.schema.columns import NumericTarget
from dpci.schema.table import Schema
from dpci.shown.document import BANNER, Bullets, Document, Facts, Paragraph, Part, Section, Table

_F64 = NDArray[np.float64]

_ACCOUNTED = "The intervals account for sampling and noise."
_ASSUMED = (
    " The classical covariance assumes errors of equal variance; if some records have larger ones, intervals can be "
    "too short."
)
_MOVED = (
    " Coefficients are those of columns and targets within the released bounds: values beyond are moved to them, which "
    "moves the coefficient of a column with a long tail."
)

_WEIGHED = (
    " Coefficients are those of the columns as they are, where the model holds and targets lie within their bounds: "
    "records with other numbers beyond the bounds weigh less, and targets beyond theirs are moved to them."
)
_WEIGHED_MOVED = (
    " Records with numbers beyond the bounds weigh less. Targets beyond the released bounds are moved to them, and "
    "coefficients are those of the moved targets in a regression with these weights."
)
_WEIGHED_BY_OTHERS = (
    " Records with numbers beyond the bounds of any column weigh less, regressor or not: coefficients are those of a "
    "regression with these weights."
)
_BEYOND = {
    "clip": "Numbers beyond the public bounds were moved to the bounds.",
    "weight": "Records with numbers beyond the public bounds weigh less. Targets beyond them were moved to the bounds.",
}


def units_of(record: MomentRecord, model: Model, solution: Solution) -> TableUnits:
    """Return the coefficients in the units of the table."""
    estimates, names, per = unit_estimates(record, model, solution)
    return TableUnits(estimates, names, per, joint_method="joint", private=record.private)


def unit_estimates(
    record: MomentRecord, model: Model, solution: Solution
) -> tuple[LinearEstimates, tuple[str, ...], tuple[str, ...]]:
    """Return the coefficients in the units of the table, with their names and units."""
    schema = record.table
    if schema is None or not isinstance(schema.target, NumericTarget):
        raise InvalidInput("units of a table need a release with a schema (dpci.fit(..., schema=)), got one without")
    if model.target != record.target or record.target in model.features:
        raise InvalidInput(
            f"units of the table are those of regressions of {record.target!r} on other columns, got {model.target!r} "
            f"on {', '.join(model.names)}"
        )
    matrix, shift = _unit_map(record, model, schema, schema.target)
    k = len(record.columns)
    # Of columns that are left out, those whose products are in the model have coefficients.
    kept = matrix.any(axis=1) | np.array([name in model.features for name in record.columns] + [model.fit_intercept])
    kept[k] |= shift[k] != 0.0
    names = [name for name, used in zip((*record.columns, "intercept"), kept, strict=True) if used]
    units = schema._units_of(kept[:k].tolist())  # noqa: SLF001  # of this package
    per = [unit for unit, used in zip((*units, "at 0"), kept, strict=True) if used]
    estimates = LinearEstimates.of(solution).mapped(matrix[kept], shift[kept])
    return estimates, tuple(names), tuple(per)


def _unit_map(record: MomentRecord, model: Model, schema: Schema, target: NumericTarget) -> tuple[_F64, _F64]:
    """Return matrix and shift from the coefficients to those of all columns, and of 1, in the units of the table."""
    k = len(record.columns)
    # From the coefficients to those of the encoded columns and of 1.
    spread = np.zeros((k + 1, len(model.names)))
    for i, name in enumerate(model.features):
        spread[record.columns.index(name), i] = 1.0
    if model.fit_intercept:
        spread[k, -1] = 1.0
    offset, slope = target.scaling
    matrix, shift = schema.from_units().T @ spread / slope, np.zeros(k + 1)
    shift[k] = -offset / slope
    return matrix, shift


def drawn(record: MomentRecord, model: Model, solution: Solution, level: float) -> ConfidenceIntervals:
    """Return the intervals of a plot: with a schema, the effect of the full range of each column on the target."""
    estimates, schema = LinearEstimates.of(solution), record.table
    if schema is None or not isinstance(schema.target, NumericTarget) or not has_units(record, model):
        return estimates.conf_int(model.names, level=level)
    matrix, shift = _unit_map(record, model, schema, schema.target)
    whole = replace(schema, encoding="full_range").from_units().T
    over, at = np.asarray(np.linalg.solve(whole, matrix)), np.asarray(np.linalg.solve(whole, shift))
    # The intercept is a mean of the target, far from the differences that the others are.
    kept = [i for i, name in enumerate(record.columns) if name in model.features] or [len(record.columns)]
    names = tuple((*record.columns, "intercept")[i] for i in kept)
    return estimates.mapped(over[kept], at[kept]).conf_int(names, level=level)


def drawn_label(record: MomentRecord, model: Model) -> str:
    """Return the label of the axis of :func:`drawn`."""
    return f"difference of {target_name(record, model)} over the full range" if has_units(record, model) else "estimate"


def target_name(record: MomentRecord, model: Model) -> str:
    """Return what is explained, by the name that the schema has for it."""
    known = record.table is not None and model.target == record.target
    return record.table.target.column if known and record.table is not None else model.target


def has_units(record: MomentRecord, model: Model) -> bool:
    """Whether the coefficients have units of a table."""
    return record.table is not None and model.target == record.target and record.target not in model.features


def in_target_units(record: MomentRecord, model: Model, predicted: _F64) -> _F64:
    """Return predictions of the schema's target in its unit; those of another target as they are."""
    target = None if record.table is None or model.target != record.target else record.table.target
    return target.decode(predicted) if isinstance(target, NumericTarget) else predicted


def note_of(record: MomentRecord, model: Model) -> str:
    """Return for what the intervals account; only coefficients without units of a table have a column of the noise."""
    assumed = _ASSUMED if model.covariance == "classical" else ""
    share = "" if has_units(record, model) else " Noise: its share of the error variance."
    bounds = record.released_bounds
    moved = "" if bounds is None or bounds.share is None else _MOVED
    if record.on_violation == "weight":
        # Weights that depend on regressors alone do not move the coefficients of a model that holds.
        is_whole = model.target in record.targets and set(record.features) <= {*model.features}
        moved = _WEIGHED if is_whole else _WEIGHED_BY_OTHERS
        if is_whole and bounds is not None and record.table is not None and record.table.target.column in bounds.ranges:
            moved = _WEIGHED_MOVED
    return f"{_ACCOUNTED}{assumed}{moved}{share}"


def coefficient_table(record: MomentRecord, model: Model, solution: Solution, level: float) -> Table:
    """Return the table of the coefficients, in the units of the table where there is a schema."""
    shown = units_of(record, model, solution) if has_units(record, model) else None
    if shown is None:
        estimates = LinearEstimates.of(solution)
        parts = estimates.parts()
        values, errors, pvalues = estimates.values(), estimates.std_errors(), estimates.pvalues()
        intervals = estimates.conf_int(model.names, level=level)
        shares = [[f"{share:.0%}"] for share in 1.0 - parts.sampling / parts.variance]
        heads, digits = [[name] for name in model.names], number_format(errors, values, digits=ERROR_DIGITS)
    else:
        values, errors, pvalues = shown.params, shown.std_errors, shown.pvalues
        intervals = shown.conf_int(level=level)
        heads = [list(head) for head in zip(shown.names, shown.units, strict=True)]
        shares, digits = [[]] * len(values), None  # each has a size of its own
    columns = zip(heads, shares, values, errors, pvalues, intervals.lower, intervals.upper, strict=True)
    rows = [[*head, *row_of_text(*numbers, shown=digits), *share] for head, share, *numbers in columns]
    unit, last = ([], ["noise"]) if shown is None else (["unit"], [])
    header = ["name", *unit, "estimate", "std error", "p-value", "lower", "upper", *last]
    return Table(header, rows, f"{format_percent(level)} confidence intervals", first=INTERVALS_FIRST)


def fact_lines(record: MomentRecord, model: Model, solution: Solution) -> list[tuple[str, str]]:
    """Return the facts that a reader needs to judge the coefficients."""
    spread, unit = math.sqrt(solution.residual_variance), 1.0
    if record.table is not None and isinstance(record.table.target, NumericTarget) and model.target == record.target:
        unit = record.table.target.scaling[1]
    # A robust covariance of persons lets their rows be alike.
    kind = "cluster-robust" if record.persons is not None else model.covariance
    refined = "" if solution.gradient is None else ", refined by the released gradient"
    return [
        ("regression", f"of {target_name(record, model)}, {kind} covariance{refined}"),
        ("budget spent", f"{record.budget}, by the moment matrix"),
        *bounds_lines(record.released_bounds, record),
        *([] if record.persons is None else [("persons", str(record.persons))]),
        *([] if record.weights is None else [("weights", str(record.weights))]),
        ("n (public)" if record.neighbors == "add_remove" else "n", f"{record.n_samples:,}"),
        ("residual std dev", f"{spread / unit:.4g}"),
        *cap_line(record, solution, unit),
        *ridge_line(model, solution),
    ]


def release_lines(record: MomentRecord) -> list[tuple[str, str]]:
    """Return what was released and what it cost, a fact a line."""
    return [
        ("released", f"second moments of {len(record.features)} columns, a constant and {', '.join(record.targets)}"),
        ("columns", ", ".join(record.features)),
        ("budget spent", str(record.budget)),
        *bounds_lines(record.released_bounds, record),
        *((f"  {step.step}", f"{step.noise} noise of scale {step.scale:.4g}") for step in record.steps),
        ("  rounding seal", describe_seals(record.seals)),
        ("neighbours", change_text(record.neighbors, "record" if record.persons is None else "person")),
        *([] if record.persons is None else [("persons", str(record.persons))]),
        *([] if record.weights is None else [("weights", str(record.weights))]),
        ("n (public)" if record.neighbors == "add_remove" else "n", f"{record.n_samples:,}"),
    ]


def cap_line(record: MomentRecord, solution: Solution, unit: float) -> list[tuple[str, str]]:
    """Return the fact of the cap on the residuals behind a refined regression, and how many outliers it may miss."""
    gradient = solution.gradient
    if gradient is None:
        return []
    cap = gradient.cap / unit
    if gradient.cut_off == 0.0:
        return [("residual cap", f"{cap:.4g}, which clips none")]
    few, more = (math.ceil(share * record.divisor) for share in (gradient.seen, gradient.seen_together))
    outliers = f"up to about {few:,} outliers of one size, {more:,} of sizes within a factor of two"
    return [("residual cap", f"{cap:.4g}; {outliers}, or the longer tail of a rare group, may go unseen")]


def ridge_line(model: Model, solution: Solution) -> list[tuple[str, str]]:
    """Return the fact of the ridge, where there is one."""
    if model.l2_strength == PRIVATE:
        text = f"{solution.l2_strength:.4g}, from the released matrix, on coefficients in units of the bounds"
    else:
        text = f"{solution.l2_strength:g}"
    return [("lambda", text)] if solution.l2_strength else []


def summary_of_regression(record: MomentRecord, model: Model, solution: Solution, level: float) -> Document:
    """Return the summary of a regression."""
    parts = [
        coefficient_table(record, model, solution, level),
        *released_table(record.released_bounds, record.table),
        Facts(fact_lines(record, model, solution)),
        Paragraph(note_of(record, model)),
    ]
    return Document(parts=parts, banner=BANNER[record.private])


def summary_of_release(record: MomentRecord, refusal: str | None = None) -> Document:
    """Return the summary of a matrix, or of a regression without coefficients: ``refusal`` says why."""
    why = [] if refusal is None else [Paragraph(f"no coefficients: {refusal}")]
    table = released_table(record.released_bounds, record.table)
    return Document(parts=[*why, *table, Facts(release_lines(record))], banner=BANNER[record.private])


def page_of_regression(
    record: MomentRecord, model: Model, solution: Solution, *, level: float, title: str | None, digest: str
) -> Document:
    """Return the page of a regression; see :meth:`LinearFit.to_html`."""
    percent = format_percent(check_fraction("level", level))
    in_units = has_units(record, model)
    explained = target_name(record, model)
    lines = fact_lines(record, model, solution)
    said = {name for name, _ in lines}
    lines += [line for line in release_lines(record) if line[0] not in said]
    figure: list[Part] = [forest_of(drawn(record, model, solution, level), drawn_label(record, model))]
    if record.table is not None and in_units:
        figure = [Paragraph(drawn_note(record.table)), *figure]
    target = (
        "the regularised coefficient at this lambda"
        if solution.l2_strength
        else "the coefficient of ordinary least squares"
    )
    caveats = [
        f"In {percent} of repetitions of the study an interval covers its target, {target} in the population.",
        note_of(record, model),
        "Each of them is valid by itself, for a model that was chosen before the data were seen.",
        *([] if record.on_violation == "error" else [_BEYOND[record.on_violation]]),
    ]
    caption = f"Coefficients{' in the units of the table' * in_units}, {percent} intervals"
    table = replace(coefficient_table(record, model, solution, level), caption=caption)
    lead = f"Regression of {explained} from one released moment matrix, {record.spent}."
    parts = [
        Paragraph(f"{lead} {SHARED}" if record.private else lead, "lead"),
        Section("numbers", "Coefficients", [table, *figure, *released_table(record.released_bounds, record.table)]),
        budget_section([(name.replace("_", " "), value) for name, value in lines]),
        *([attacker_section(record, record.guarantee())] if record.private else []),
        Section("caveats", "What to keep in mind", [Bullets(caveats)]),
        assumptions_section(record.conditions),
        provenance(record, digest),
    ]
    heading = titled(f"linear regression of {explained}", private=record.private) if title is None else title
    return Document(title=heading, parts=parts, banner=BANNER[record.private], version=record.version)
