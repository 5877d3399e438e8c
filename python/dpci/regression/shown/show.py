"""How a regression is shown: the table of its coefficients, its facts, and its page."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.costs import describe_seals
from dpci.base.tables import ERROR_DIGITS, change_text, format_percent, number_format, row_of_text
from dpci.base.validation import check_fraction
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.targets.units import UnitMap
from dpci.regression.choices.model import PRIVATE, Model
from dpci.regression.equations import Solution, r_squared
from dpci.regression.estimates import LinearEstimates
from dpci.regression.record import MomentRecord
from dpci.released.sources import weights_words
from dpci.report.meaning import attacker_section
from dpci.report.page import (
    SHARED,
    assumptions_section,
    bounds_lines,
    budget_section,
    forest_of,
    provenance,
    released_table,
    titled,
)
from dpci.report.summary import INTERVALS_FIRST, with_units
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


def unit_map(record: MomentRecord, model: Model) -> UnitMap | None:
    """Return the map from the coefficients to those in the units of the table; None for a regression without units."""
    schema = record.table
    if schema is None or not isinstance(schema.target, NumericTarget) or not has_units(record, model):
        return None
    matrix, shift = _unit_map(record, model, schema, schema.target)
    k = len(record.columns)
    if not schema.intercept and model.fit_intercept and model.features == record.columns:
        as_written, names, per = schema.written
        return UnitMap(as_written @ matrix, as_written @ shift, names, per)
    # Of columns that are left out, those whose products are in the model have coefficients.
    kept = matrix.any(axis=1) | np.array([name in model.features for name in record.columns] + [model.fit_intercept])
    kept[k] |= shift[k] != 0.0
    names = tuple(name for name, used in zip((*record.columns, "intercept"), kept, strict=True) if used)
    units = schema._units_of(kept[:k].tolist())  # noqa: SLF001  # of this package
    per = tuple(unit for unit, used in zip((*units, "at 0"), kept, strict=True) if used)
    return UnitMap(matrix[kept], shift[kept], names, per)


def shown_estimates(
    record: MomentRecord, model: Model, solution: Solution
) -> tuple[LinearEstimates, tuple[str, ...], tuple[str, ...]]:
    """Return the coefficients, in the units of the table where they have some, with their names and units."""
    found, units = LinearEstimates.of(solution), unit_map(record, model)
    if units is None:
        return found, model.names, ("",) * len(model.names)
    return found.mapped(units.matrix, units.shift), units.names, units.units


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
    """Return the intervals of a plot: with a schema, without the intercept, which is no difference."""
    estimates, names, units = shown_estimates(record, model, solution)
    if not any(units):
        return estimates.conf_int(names, level=level)
    kept = [i for i, name in enumerate(names) if name != "intercept"] or [0]
    found = estimates.mapped(np.eye(len(names))[kept], np.zeros(len(kept)))
    intervals = found.conf_int(tuple(names[i] for i in kept), level=level)
    return with_units(replace(intervals, per=tuple(units[i] for i in kept)))


def drawn_label(record: MomentRecord, model: Model) -> str:
    """Return the label of the axis of :func:`drawn`."""
    return f"difference of {target_name(record, model)}" if has_units(record, model) else "estimate"


def target_name(record: MomentRecord, model: Model) -> str:
    """Return what is explained, by the name that the schema has for it."""
    known = record.table is not None and model.target == record.target
    return record.table.target.column if known and record.table is not None else model.target


def has_units(record: MomentRecord, model: Model) -> bool:
    """Whether the coefficients have units of a table."""
    return record.table is not None and model.target == record.target and record.target not in model.features


def in_target_units(record: MomentRecord, model: Model, predicted: _F64) -> _F64:
    """Return predictions of the schema's target in its unit; those of another target as they are."""
    target = _own_target(record, model)
    return predicted if target is None else target.decode(predicted)


def scaled_by(record: MomentRecord, model: Model) -> float:
    """Return the factor by which the schema scales its target; 1 for another target."""
    target = _own_target(record, model)
    return 1.0 if target is None else target.scaling[1]


def _own_target(record: MomentRecord, model: Model) -> NumericTarget | None:
    found = None if record.table is None or model.target != record.target else record.table.target
    return found if isinstance(found, NumericTarget) else None


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
    estimates, names, units = shown_estimates(record, model, solution)
    values, errors, pvalues = estimates.values(), estimates.std_errors(), estimates.pvalues()
    intervals = estimates.conf_int(names, level=level)
    shares: list[list[str]]
    if any(units):
        heads = [list(head) for head in zip(names, units, strict=True)]
        shares, digits = [[] for _ in values], None  # each has a size of its own
    else:
        parts = estimates.parts()
        shares = [[f"{share:.0%}"] for share in 1.0 - parts.sampling / parts.variance]
        heads, digits = [[name] for name in names], number_format(errors, values, digits=ERROR_DIGITS)
    columns = zip(heads, shares, values, errors, pvalues, intervals.lower, intervals.upper, strict=True)
    rows = [[*head, *row_of_text(*numbers, shown=digits), *share] for head, share, *numbers in columns]
    unit, last = (["unit"], []) if any(units) else ([], ["noise"])
    header = ["name", *unit, "estimate", "std error", "p-value", "lower", "upper", *last]
    return Table(header, rows, f"{format_percent(level)} confidence intervals", first=INTERVALS_FIRST)


def fact_lines(record: MomentRecord, model: Model, solution: Solution) -> list[tuple[str, str]]:
    """Return the facts that a reader needs to judge the coefficients."""
    spread, unit = math.sqrt(solution.residual_variance), scaled_by(record, model)
    explained = r_squared(record, model, solution) if model.fit_intercept else None
    # A robust covariance of persons lets their rows be alike.
    kind = "cluster-robust" if record.persons is not None else model.covariance
    refined = "" if solution.gradient is None else ", refined by the released gradient"
    return [
        ("regression", f"of {target_name(record, model)}, {kind} covariance{refined}"),
        *([("units", "those of the encoded columns")] if record.table and not has_units(record, model) else []),
        ("budget spent", f"{record.budget}, by the moment matrix"),
        *bounds_lines(record.released_bounds, record),
        *([] if record.persons is None else [("persons", str(record.persons))]),
        *([] if record.weights is None else [("weights", weights_words(record))]),
        ("n (public)" if record.neighbors == "add_remove" else "n", f"{record.n_samples:,}"),
        ("residual std dev", f"{spread / unit:.4g}"),
        *([("R squared", f"{explained:.3f}")] if isinstance(explained, float) else []),
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
        *([] if record.weights is None else [("weights", weights_words(record))]),
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
