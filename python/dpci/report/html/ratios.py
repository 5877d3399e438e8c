"""Odds ratios of a model, or rate ratios of counts, as a section of its page."""

import re

import numpy as np

from dpci.base.tables import ERROR_DIGITS, format_percent, number_format
from dpci.inference.methods import Inference
from dpci.losses import COUNTS, LOG_ODDS, SEVERAL
from dpci.released.model import record_of
from dpci.report.html.elements import Html, breakable, data_table, join, section, tag
from dpci.report.view import View


def ratios_section(result: Inference, view: View) -> list[Html]:
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
        [
            join([breakable(name), tag("small", _change(unit))]),
            *(f"{number:{_digits(*bounds)}}" for number in (ratio, *bounds)),
        ]
        for name, unit, ratio, *bounds, refusal in columns
        if refusal is None and not unit.startswith("no unit")
    ]
    table = data_table(
        f"{format_percent(view.level)} confidence intervals of {what} ratios",
        ["", f"{what} ratio", "lower", "upper"],
        rows,
    )
    note = (
        f"{'A rate' if are_rates else 'An odds'} ratio is e to the power of a coefficient: the factor by which one "
        f"more unit, or the category instead of the reference, multiplies {multiplied}. 1 means no change."
    )
    notes = [tag("p", text) for text in (note, *_shrunken_ratios(result, view, what))]
    return [section(what, f"{what.capitalize()} ratios", table, *notes)] if rows else []


def _change(unit: str) -> str:
    """Return the unit of a ratio: that of log(1 + the number) is a change of the number itself."""
    return re.sub(r"\bper log [^,]+", "per 2.7-fold increase of 1 + the number", unit)


def _shrunken_ratios(result: Inference, view: View, what: str) -> list[str]:
    if not is_shrunken(result, view):
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


def is_shrunken(result: Inference, view: View) -> bool:
    """Return whether the numbers shown are those of the regularised model."""
    return view.target == "regularised" and result.l2_strength > 0.0
