"""The answer of a fit, with which summaries and pages begin: a table of intervals, and a sentence on each magnitude."""

import re
from dataclasses import replace

import numpy as np

from dpci.base.tables import ERROR_DIGITS, change_text, format_percent, number_format, positive_class, printable
from dpci.inference.common_levels import levels_of, note
from dpci.inference.contrasts import contrast_rows
from dpci.inference.curvature import curvature_note, room_of, trusted_room
from dpci.inference.error_law import NOISE_AWARE, noise_blocks
from dpci.inference.intervals import ConfidenceIntervals, Estimates, law_of
from dpci.inference.targets.units import odds_ratios, rate_ratios
from dpci.losses import COUNTS, LOG_ODDS, SEVERAL
from dpci.released.fit_record import FitRecord
from dpci.report.summary import (
    TRUSTED_COVERAGE,
    Numbers,
    View,
    bare_table,
    custom_note,
    estimate_rows,
    full_summary,
    has_ridge,
    interval_note,
    numbers_of,
    refusal_notes,
    target_note,
)
from dpci.shown.document import BANNER, Document, Facts, Table

_FIRST = ("estimate", "ordinary", "regularised", "lower", "upper", "odds ratio", "rate ratio", "std error", "p-value")
"""Columns in the order in which a narrow screen shows them."""
_ORDINARY = "The coefficients without a ridge, one Newton step from the regularised ones."
_MORE = "summary(full=True) or dpci report --full: ratios, bounds, every step, and the assumptions"


def summary_of(record: FitRecord, view: View, *, full: bool = False) -> Document:
    """Return the summary of a fit: its answer, or all that a reader needs to judge it."""
    numbers = numbers_of(record, view)
    if full:
        document = full_summary(record, view, numbers)
        ratios = None if numbers is None else ratio_table(numbers)
        return document if ratios is None else replace(document, parts=[ratios, *document.parts])
    table = _bare(record, view) if numbers is None else answer_table(numbers)
    facts = [*_what(record), *answer_facts(record, view, numbers), ("more", _MORE)]
    return Document(parts=[table, Facts(facts)], banner=BANNER[record.private])


def answer_table(numbers: Numbers) -> Table:
    """Return the intervals: of ordinary coefficients, beside the regularised ones where a ridge was needed.

    The ratio is e to the power of the coefficient.
    """
    record, units = numbers.record, numbers.units if numbers.in_units else ()
    ordinary = numbers.ordinary
    if ordinary is None:
        header = ["name", "estimate", "lower", "upper", "std error", "p-value"]
        # Names, estimates, errors, p-values and bounds.
        rows = [[row[0], row[1], row[4], row[5], row[2], row[3]] for row in estimate_rows(numbers)]
    else:
        header = ["name", "ordinary", "regularised"]
        columns = (_with_intervals(numbers, ordinary), _with_intervals(numbers, numbers.estimates))
        rows = [list(row) for row in zip(numbers.names, *columns, strict=True)]
    if (ratio := ratios_of(numbers)) is not None and ordinary is None:
        header.append(f"{ratio} ratio")
        rows = [[*row, cell] for row, cell in zip(rows, _ratio_column(numbers), strict=True)]
    if units:
        header.insert(1, "unit")
        rows = [[row[0], unit, *row[1:]] for row, unit in zip(rows, units, strict=True)]
    return Table(header, rows, numbers.view.title(record), first=_FIRST)


def answer_facts(record: FitRecord, view: View, numbers: Numbers | None) -> list[tuple[str, str]]:
    """Return the target, the shrinkage and the noise, a sentence each, and what a reader must not overlook."""
    target = target_note(record, view.target).removeprefix("Target: ")
    facts = [("target", f"{target[0].upper()}{target[1:]}")]
    if numbers is not None and numbers.ordinary is not None:
        facts = [("ordinary", _ORDINARY), ("regularised", facts[0][1])]
    cautions = [interval_note(record), custom_note(record)]
    if numbers is not None:
        if has_ridge(record):
            facts.append(("ridge", ridge_size(numbers)))
        facts += [("noise", share) for share in noise_shares(numbers)]
        cautions += [*refusal_notes(numbers), _short_intervals(numbers), _levels(record), _curvature(record)]
    return [*facts, *(("caution", said) for said in cautions if said is not None)]


def ratios_of(numbers: Numbers) -> str | None:
    """Return "odds" or "rate" where e to the power of a coefficient in the units of the table is such a ratio."""
    if not numbers.in_units or numbers.record.loss["name"] not in (*LOG_ODDS, SEVERAL, *COUNTS):
        return None
    return "rate" if numbers.record.loss["name"] in COUNTS else "odds"


def ratio_intervals(numbers: Numbers) -> ConfidenceIntervals | None:
    """Return the odds or rate ratios of all coefficients but the intercept, where there are such ratios."""
    record, schema, kind = numbers.record, numbers.record.table, ratios_of(numbers)
    if schema is None or kind is None:
        return None
    wanted, labels = contrast_rows(record.by_predictor(record.columns), numbers.names)
    found = numbers.view.conf_int(labels, numbers.estimates.mapped(wanted, np.zeros(len(wanted))))
    per = tuple(map(_change, schema.units)) * len(record.prefixes)
    return replace((rate_ratios if kind == "rate" else odds_ratios)(record, found), per=per)


def ratio_table(numbers: Numbers) -> Table | None:
    """Return the odds or rate ratios that have a unit, with intervals; None where there are none."""
    found, what = ratio_intervals(numbers), ratios_of(numbers)
    if found is None:
        return None
    columns = zip(found.names, found.per, found.estimate, found.lower, found.upper, found.refusals, strict=True)
    rows = [
        [name, unit, *(f"{number:{_digits(*bounds)}}" for number in (ratio, *bounds))]
        for name, unit, ratio, *bounds, refusal in columns
        if refusal is None and not unit.startswith("no unit")
    ]
    caption = f"{format_percent(found.level)} confidence intervals of {what} ratios"
    return Table(["name", "unit", f"{what} ratio", "lower", "upper"], rows, caption) if rows else None


def _change(unit: str) -> str:
    """Return the unit of a ratio: that of log(1 + the number) is a change of the number itself."""
    return re.sub(r"\bper log [^,]+", "per 2.7-fold increase of 1 + the number", unit)


def _digits(lower: float, upper: float) -> str:
    """Return the format of a positive number of which only an interval is known."""
    width = upper - lower
    return number_format(width / 4.0, upper, digits=ERROR_DIGITS) if np.isfinite(width) else ".3g"


def model_words(record: FitRecord) -> str:
    """Return the kind of model and its outcome, if a schema names it."""
    kind = "logistic regression" if record.loss["name"] == "logistic" else f"{record.loss_facts.words} loss"
    if record.table is None:
        return kind + positive_class(record.shown_classes, inferred=record.classes_inferred)
    outcome = record.table.target.column
    if (classes := record.shown_classes) is not None:
        outcome += f", {classes[1]} against {classes[0]}"
    return f"{kind} of {outcome}"


def noise_shares(numbers: Numbers) -> list[str]:
    """Return what share of the error variance the noise in the parameters has, or that in the gradients of steps."""
    estimates, total = numbers.estimates, numbers.std_errors**2
    noise = estimates.law.noise_variance(estimates.map)
    with np.errstate(all="ignore"):
        shares = noise / total
    shares = shares[np.isfinite(shares)]
    if not len(shares):
        return []
    low, high = f"{shares.min():.0%}", f"{shares.max():.0%}"
    span = low if low == high else f"{low} to {high}"
    where, whose = ("parameters", "their") if numbers.record.newton is None else ("gradients", "the")
    share = f"The noise in the {where} makes up {span} of the variance of {whose} errors."
    matrices = " Noise in the matrices can lengthen the intervals further."
    return [share + matrices * (numbers.record.projection == NOISE_AWARE)]


def ridge_size(numbers: Numbers) -> str:
    """Return the largest distance by which the ridge moves an estimate, in standard errors."""
    unknown = "How far the ridge moves the estimates is unknown: the released values do not show it."
    if numbers.moved is None:
        return unknown
    names, (distance, _, errors) = numbers.names, numbers.moved
    moved = distance / errors
    known = np.isfinite(moved)
    if not known.any():
        return unknown
    most = int(np.nanargmax(np.abs(np.where(known, moved, np.nan))))
    text = f"The ridge moves the estimates by at most {abs(moved[most]):.2g} standard errors ({printable(names[most])})"
    hidden = int((~known).sum())
    return f"{text}; for {hidden} of {len(names)} the released values do not show it." if hidden else f"{text}."


def _bare(record: FitRecord, view: View) -> Table:
    """Return the estimates of a fit without intervals."""
    table = bare_table(record, view)
    n_columns = len(table.header) - (table.header[-1] == "scaled")
    return replace(table, header=table.header[:n_columns], rows=[row[:n_columns] for row in table.rows])


def _what(record: FitRecord) -> list[tuple[str, str]]:
    """Return what was fitted, to how many, and what it cost."""
    unit = "record" if record.persons is None else "person"
    count = f"{record.n_samples:,} {unit}s"
    if record.neighbors == "add_remove":
        count = f"{unit}s whose number is private, taken as {record.n_samples:,}"
    spent = str(record.spent) if record.whole is None else f"{record.whole.budget} by {record.whole}"
    return [
        ("model", f"{model_words(record)}; {count}"),
        ("budget", f"{spent}; {change_text(record.neighbors, unit)}"),
    ]


def _with_intervals(numbers: Numbers, estimates: Estimates) -> list[str]:
    """Return estimates, each with its interval behind it; dashes where there is none."""
    intervals, errors = numbers.view.conf_int(numbers.names, estimates), estimates.std_errors()
    columns = zip(estimates.values(), errors, intervals.lower, intervals.upper, strict=True)
    cells = []
    for value, error, lower, upper in columns:
        shown = number_format(error, value, digits=ERROR_DIGITS) if np.isfinite(error) else ""
        cells.append(f"{value:{shown}} ({lower:{shown}} to {upper:{shown}})" if shown else "-")
    return cells


def _ratio_column(numbers: Numbers) -> list[str]:
    cells = []
    for value, error, unit in zip(numbers.estimates.values(), numbers.std_errors, numbers.units, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = float(np.exp(value))
        shown = np.isfinite(error) and np.isfinite(ratio) and not unit.startswith(("at ", "no unit"))
        cells.append(f"{ratio:{number_format(error * ratio, ratio, digits=ERROR_DIGITS)}}" if shown else "")
    return cells


def _short_intervals(numbers: Numbers) -> str | None:
    """Return that single intervals can be too short, where the noise in the matrices hides by how much."""
    given = np.isfinite(numbers.std_errors).any()
    if not given or numbers.covered is None or not numbers.covered < TRUSTED_COVERAGE:
        return None
    return (
        f"The intervals hold on average. The noise leaves the variance of an estimate uncertain by about "
        f"{law_of(numbers.record).spread:.0%}, so that a single {format_percent(0.95)} interval can be too short."
    )


def _curvature(record: FitRecord) -> str | None:
    """Return what the curvature of a loss with a flat part may do to the intervals, if a fit warns of it."""
    if not (record.loss_facts.is_flat or record.loss_facts.width is not None):
        return None
    room = room_of(record)
    return None if room is not None and room >= trusted_room(record) else curvature_note(record)


def _levels(record: FitRecord) -> str | None:
    found = levels_of(record) if noise_blocks(record) is not None else None
    return None if found is None else note(found)
