"""The page of a released model: numbers, plot, budget, guarantee and caveats."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpci.base.tables import ERROR_DIGITS, format_percent, number_format, printable
from dpci.errors import DpciError
from dpci.inference.error_law import NOISE_AWARE
from dpci.inference.intervals import TARGETS, Estimates, given_rows
from dpci.inference.methods import Inference, interval_notes
from dpci.losses import COUNTS, LOG_ODDS, SEVERAL, describe, scale_of
from dpci.released.model import record_of, shown_classes
from dpci.released.sources import exceptions, table_values
from dpci.report.sections import (
    SHARED,
    assumptions_section,
    attacker_section,
    budget_section,
    drawn_note,
    forest_of,
    has_products,
    provenance,
)
from dpci.report.summary import (
    View,
    estimates_table,
    fact_lines,
    has_ridge,
    interval_note,
    noise_note,
    refusal_notes,
    ridge_note,
    target_note,
)
from dpci.shown.document import Bullets, Document, Paragraph, Part, Section, Table, seeded

_SHRUNKEN = (
    "Regularisation shrinks the coefficients together, possibly several-fold. A column without an effect that is "
    "correlated with one that has an effect gets a coefficient other than 0: an interval that leaves out 0 is no "
    "evidence of an adjusted effect. Compare coefficients only with those of models with the same lambda."
)

_CHANGES = {
    ("replace_one", "record"): "the replacement of one record",
    ("replace_one", "person"): "the replacement of one person with all rows",
    ("add_remove", "record"): "the addition or removal of one record",
    ("add_remove", "person"): "the addition or removal of one person with all rows",
}


def page_of(
    result: Inference, view: View, *, title: str | None, digest: str | None = None, before: Sequence[Section] = ()
) -> Document:
    """Return the page; see :meth:`dpci.PrivateFit.to_html`.

    ``digest``: the hash of the file that holds the fit; ``before``: sections above that of the budget.
    """
    record = record_of(result)
    parts = [
        Paragraph(_lead(result), "lead"),
        *_numbers(result, view),
        *_magnitudes(result, view),
        *_quotable(result, view),
        *before,
        budget_section(fact_lines(result)),
        *([attacker_section(record, result.guarantee, record.whole)] if result.private else []),
        *caveats(result, [target_note(result, view.target), *refusal_notes(result, view), *_shrunken(result, view)]),
        provenance(record, digest or record.digest),
    ]
    heading = _heading(result) if title is None else title
    return Document(title=heading, parts=parts, banner=seeded(private=result.private), version=record.version)


def _heading(result: Inference) -> str:
    """Return the heading of a page without a title: the outcome, if a schema names it, and the kind of model."""
    kind = "A private model" if result.private else "A model with seeded noise"
    if result.schema is not None:
        kind += f" of {result.schema.target.column}"
        if (classes := shown_classes(result.classes, result.schema)) is not None:
            negative, positive = classes
            kind += f" ({positive} against {negative})"
    logistic = result.loss["name"] == "logistic"
    return f"{kind}: {'logistic regression' if logistic else f'{describe(result.loss)} loss'}"


def _lead(result: Inference) -> str:
    units = "records" if record_of(result).persons is None else "persons"
    records = f"{result.n_samples:,} {units}"
    if record_of(result).neighbors == "add_remove":
        records = f"{units} whose number is private (taken as {result.n_samples:,})"
    if not result.private:
        return f"Estimated from {records}, with noise as for {result.spent}."
    inferred = record_of(result).classes_inferred
    whole = record_of(result).whole
    together = "" if whole is None else f" One part of a release that spends {whole.budget} in total: {whole}."
    estimated = f"Estimated from {records} under differential privacy, {result.spent}.{together} "
    if inferred:
        return estimated + (
            "The class labels are not protected, because they were inferred from the data. Share this page only "
            "if the labels were public before the fit. Every other number on it is released or public."
        )
    return estimated + SHARED


def _numbers(result: Inference, view: View) -> list[Section]:
    table = estimates_table(result, view)
    if result.interval_refusal is not None:
        note = Paragraph(interval_note(result) or "", "note")
        return [Section("numbers", "Parameters", [replace(table, caption="Released parameters"), note])]
    kind = "Released parameters" if view.target == "regularised" else "Coefficients without the ridge"
    parts: list[Part] = [replace(table, caption=f"{kind}: {table.caption}")]
    intervals = given_rows(view.drawn(result))
    if len(intervals) and result.schema is not None and view.in_units(result):
        parts.append(Paragraph(drawn_note(result.schema)))
    if len(intervals):
        parts.append(forest_of(intervals, scale_of(result.loss["name"])))
    return [
        Section("numbers", "Parameters", parts),
        *_ratios(result, view),
        *_columns(result),
        Section("read", "How to read the numbers", [Bullets(_reading(result, view))]),
    ]


def _columns(result: Inference) -> list[Section]:
    """Return the public bounds of the columns of the table, where a schema states them."""
    if (schema := result.schema) is None:
        return []
    rows = [
        [value.name.removeprefix("column "), value.value, value.source or "not stated"]
        for value in table_values(schema)
    ]
    header = ["", "counted from ... to ..., or categories", "source"]
    table = Table(header, rows, "Public bounds and categories", of_words=True)
    rules = Bullets([f"{', '.join(names)}: {rule}." for names, rule in exceptions(schema)])
    return [Section("columns", "Columns of the table", [table, rules])]


def _reading(result: Inference, view: View) -> list[str]:
    percent = format_percent(view.level)
    sign = "A positive parameter raises the predicted target."
    if (classes := shown_classes(result.classes, result.schema)) is not None:
        sign = f"A positive parameter favours the class {classes[1]!r}."
    elif result.loss["name"] == SEVERAL:
        sign = "A positive parameter favours the class in its name against the reference class."
    elif result.loss["name"] == "soft_logistic":
        sign = "A positive parameter raises the predicted probability."
    spread = (
        "the typical distance of the estimate from its target, because the records are a sample and noise was added."
    )
    bounds = (
        f"in about {percent} of repetitions of the study the interval covers its target, as a mean over parameters."
    )
    bounds += " Among many intervals some will miss their targets; simultaneous intervals are longer."
    if view.simultaneous is not None:
        bounds = f"in at least {percent} of repetitions of the study all intervals cover their targets at once."
    return [
        f"Estimate: the released parameter, noise included. {sign}",
        f"Std error: {spread}",
        "P-value: the probability of an estimate at least this far from 0 if its target were 0.",
        f"Lower and upper: {bounds}",
        *_reading_units(result, view),
    ]


def _reading_units(result: Inference, view: View) -> list[str]:
    """Return how to read the columns that some tables have."""
    ridge = ridge_note(result)
    unit = "Below a name: what an estimate is per, or against. Scaled: the released parameter, of the scaled column."
    log = (
        "Per log: per unit of log(1 + the number), about a factor of 2.7 in the number. Below 0 it is the same with "
        "the other sign."
    )
    schema = result.schema if view.in_units(result) else None
    product = (
        "At a number, or for a category: the column is part of a product, and the row holds there only. Do not quote "
        "such a row alone."
    )
    return [
        *([] if ridge is None else [ridge]),
        *([] if schema is None else [unit]),
        *([product] if schema is not None and has_products(schema) else []),
        *([log] if schema is not None and any(name.startswith("per log ") for name in schema.units) else []),
    ]


def _magnitudes(result: Inference, view: View) -> list[Section]:
    """Return how much of the errors is noise, and how far the ridge reaches, as released values tell."""
    if result.interval_refusal is not None:
        return []
    items = [*_noise_shares(view.estimates(result)[1])]
    if record_of(result).projection != NOISE_AWARE and (noise := noise_note(result)) is not None:
        items.append(noise)
    items += interval_notes(result)
    if has_ridge(record_of(result)):
        items.append(_ridge_size(result, view))
    title = "How much the noise does" if record_of(result).newton is not None else "How much the noise and the ridge do"
    return [Section("magnitudes", title, [Bullets(items)])]


def _noise_shares(estimates: Estimates) -> list[str]:
    """Return what share of the error variance the noise of the parameters has."""
    total = estimates.std_errors() ** 2
    noise = estimates.law.noise_variance(estimates.map)
    with np.errstate(all="ignore"):
        shares = noise / total
    shares = shares[np.isfinite(shares)]
    if not len(shares):
        return []
    low, high = f"{shares.min():.0%}", f"{shares.max():.0%}"
    span = low if low == high else f"{low} to {high}"
    return [f"The noise that was added to the parameters makes up {span} of the variance of their errors."]


def _ridge_size(result: Inference, view: View) -> str:
    """Return the largest distance by which the ridge moves an estimate, in standard errors."""
    unknown = "How far the ridge moves the estimates is unknown: the released values do not show it."
    try:
        (names, regularised), (_, without) = (view.estimates(result, target) for target in TARGETS)
        moved = (regularised.values() - without.values()) / regularised.std_errors()
    except DpciError:
        return unknown
    known = np.isfinite(moved)
    if not known.any():
        return unknown
    most = int(np.nanargmax(np.abs(np.where(known, moved, np.nan))))
    text = f"The ridge moves the estimates by at most {abs(moved[most]):.2g} standard errors ({printable(names[most])})"
    hidden = int((~known).sum())
    return f"{text}; for {hidden} of {len(names)} the released values do not show it." if hidden else f"{text}."


def _quotable(result: Inference, view: View) -> list[Section]:
    """Return what belongs beside the numbers wherever they are quoted: guarantee, ridge, purpose of the intervals."""
    if not result.private:
        return []
    record = record_of(result)
    spent, neighbors = result.spent, record.neighbors
    if record.whole is not None:
        spent, neighbors = record.whole.budget, record.whole.neighbors
    change = _CHANGES[neighbors, "record" if record.persons is None else "person"]
    found = [f"The model was fitted with differential privacy, {spent}, for {change}."]
    if view.target == "regularised" and result.l2_strength > 0.0:
        kind = "log odds ratios" if record.loss["name"] in LOG_ODDS else "those"
        found.append(
            f"Coefficients are {kind} of a regularised model ({describe(record.loss)} loss, "
            f"lambda={result.l2_strength:g}): the penalty shrinks them together, possibly several-fold, and an "
            "interval that leaves out 0 is no evidence of an adjusted effect."
        )
    if result.interval_refusal is None:
        which = "one coefficient at a time" if view.simultaneous is None else "all coefficients together"
        found.append(
            f"{format_percent(view.level)} intervals are for {which}. They count sampling error and privacy noise, and "
            "rest on a large-sample approximation."
        )
    return [Section("quote", "Sentences to publish beside the numbers", [Bullets(found)])]


def _ratios(result: Inference, view: View) -> list[Section]:
    """Return odds or rate ratios with intervals, where a coefficient is the log of one that has a unit."""
    schema, record = result.schema, record_of(result)
    if schema is None or not view.in_units(result) or record.loss["name"] not in (*LOG_ODDS, SEVERAL, *COUNTS):
        return []
    are_rates = record.loss["name"] in COUNTS
    if are_rates:
        what, multiplied = "rate", "the mean count"
        found = result.rate_ratios(level=view.level, simultaneous=view.simultaneous)
    else:
        what, multiplied = "odds", "the odds"
        found = result.odds_ratios(level=view.level, simultaneous=view.simultaneous, target=view.target)
    units = schema.units * len(record.prefixes)
    columns = zip(found.names, units, found.estimate, found.lower, found.upper, found.refusals, strict=True)
    rows = [
        [name, _change(unit), *(f"{number:{_digits(*bounds)}}" for number in (ratio, *bounds))]
        for name, unit, ratio, *bounds, refusal in columns
        if refusal is None and not unit.startswith("no unit")
    ]
    caption = f"{format_percent(view.level)} confidence intervals of {what} ratios"
    table = Table(["", "unit", f"{what} ratio", "lower", "upper"], rows, caption)
    note = (
        f"{'A rate' if are_rates else 'An odds'} ratio is e to the power of a coefficient: the factor by which one "
        f"more unit, or the category instead of the reference, multiplies {multiplied}. 1 means no change."
    )
    notes = map(Paragraph, (note, *_shrunken_ratios(result, view, what)))
    return [Section(what, f"{what.capitalize()} ratios", [table, *notes])] if rows else []


def _change(unit: str) -> str:
    """Return the unit of a ratio: that of log(1 + the number) is a change of the number itself."""
    return re.sub(r"\bper log [^,]+", "per 2.7-fold increase of 1 + the number", unit)


def _shrunken_ratios(result: Inference, view: View, what: str) -> list[str]:
    if not _is_shrunken(result, view):
        return []
    of_what = f"These are {what} ratios of a regularised model (lambda = {result.l2_strength:g})."
    moved = "Those of large effects are nearer to 1 than without a ridge, possibly several-fold."
    other = (
        "A column without an effect that is correlated with one that has an effect gets a ratio other than 1: an "
        "interval that leaves out 1 is no evidence of an adjusted effect."
    )
    return [f"{of_what} {moved} {other}"]


def _digits(lower: float, upper: float) -> str:
    """Return the format of a positive number of which only an interval is known."""
    width = upper - lower
    return number_format(width / 4.0, upper, digits=ERROR_DIGITS) if np.isfinite(width) else ".3g"


def _is_shrunken(result: Inference, view: View) -> bool:
    """Return whether the numbers shown are those of the regularised model."""
    return view.target == "regularised" and result.l2_strength > 0.0


def _shrunken(result: Inference, view: View) -> list[str]:
    return [_SHRUNKEN] if _is_shrunken(result, view) else []


def caveats(result: Inference, targets: list[str]) -> list[Section]:
    """Return what to keep in mind of models whose ``targets`` are told, and what their guarantee assumes."""
    record = record_of(result)
    items = [*targets]
    if result.interval_refusal is None:
        matrices = "as well as" if record.projection == NOISE_AWARE else "but not"
        accounted = (
            "Intervals and p-values rely on the normal approximation of sampling errors, for large samples. They "
            f"account for sampling, for the noise in the parameters and for their rounding, {matrices} for the noise "
            "in the two matrices from which they are computed."
        )
        items += [
            accounted,
            _laws(result),
            "P-values, and intervals unless they are simultaneous, are for one parameter at a time.",
        ]
    if record.on_violation == "clip":
        items.append(
            f"Records beyond the public bounds ({record.rows}) were moved to the bounds. The target is "
            "that of the moved records."
        )
    return [Section("caveats", "What to keep in mind", [Bullets(items)]), assumptions_section(record.conditions)]


def _laws(result: Inference) -> str:
    """Return why an interval is not estimate ± 1.96 standard errors."""
    matrices = (
        ", and allow for the noise in the standard error itself" if record_of(result).projection == NOISE_AWARE else ""
    )
    return (
        "P-values and intervals are not those of estimate ± 1.96 standard errors. They use the distribution of the "
        f"noise{matrices}."
    )
