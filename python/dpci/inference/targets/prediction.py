"""Intervals of what a released model predicts for many rows at once."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray
from scipy.special import expit

from dpci import _core
from dpci.base.validation import in_short
from dpci.data.arrays import Features
from dpci.errors import InvalidInput
from dpci.inference.intervals import (
    ConfidenceIntervals,
    ErrorLaw,
    Estimates,
    Simultaneous,
    estimates_of,
    refusal_of,
)
from dpci.inference.targets.units import Hidden
from dpci.losses import LOG_ODDS, response
from dpci.released.model import in_target_units
from dpci.released.record import FitRecord
from dpci.schema.cells import days_since
from dpci.schema.columns import NumericColumn
from dpci.schema.table import Schema
from dpci.schema.transforms import counted

_F64 = NDArray[np.float64]

# The quantile of an error in standard units depends on the share of noise in its variance alone, smoothly.
_DEGREE = 60
# Below it the quantile is no smooth function of the share where noise is all, in few dimensions: like a square root.
_LEAST_LEVEL = 0.5


def mean_intervals(record: FitRecord, estimates: Estimates, features: Features, level: float) -> ConfidenceIntervals:
    """Return intervals of the mean response of each row; see :meth:`dpci.PrivateFit.predict_conf_int`."""
    n, law = features.shape[0], estimates.law
    refusals: list[str | None] = []
    predictor, sampling, noise, half_width = (np.empty(n) for _ in range(4))
    for at, rows in _with_constant(record, features):
        predictor[at] = rows @ estimates.params
        if estimates.step is not None:
            refusals += estimates.mapped(rows, np.zeros(len(rows))).refusals()
        if law.blocks is None:
            sampling[at], noise[at] = law.components(rows)[0], law.noise_variance(rows)
        else:  # every contrast has a law of its own
            half_width[at] = law.half_widths(rows, level)
    if law.blocks is None:
        half_width = _half_widths(sampling, noise, law, level)
    names = tuple(f"row[{i}]" for i in range(n))
    predictor[[reason is not None for reason in refusals] or slice(0)] = np.nan
    columns = (predictor, predictor - half_width, predictor + half_width)
    estimate, lower, upper = (response(record.loss["name"], in_target_units(record, column)) for column in columns)
    found = ConfidenceIntervals(names, estimate, lower, upper, level, "exact", refusals=tuple(refusals))
    return without_rows(found, features.missing)


def without_rows(found: ConfidenceIntervals, missing: NDArray[np.bool_] | None) -> ConfidenceIntervals:
    """Return intervals of rows without those that miss a value."""
    if missing is None:
        return found
    columns = (np.where(missing, np.nan, column) for column in (found.estimate, found.lower, found.upper))
    estimate, lower, upper = columns
    reasons = zip(missing, found.refusals, strict=True)
    refusals = tuple("a value is missing" if gone else reason for gone, reason in reasons)
    return replace(found, estimate=estimate, lower=lower, upper=upper, refusals=refusals)


def _with_constant(record: FitRecord, features: Features) -> Iterator[tuple[slice, _F64]]:
    """Yield blocks of rows, each with its place, and with the constant that goes with the intercept."""
    for at, block in features.blocks():
        rows = block if isinstance(block, np.ndarray) else block.toarray()
        if record.intercept_scale is not None:
            rows = np.column_stack([rows, np.full(len(rows), record.intercept_scale)])
        yield at, rows


def check_predicted(record: FitRecord, features: Features) -> None:
    """Refuse rows whose linear predictor the noise hides, as in some fits by Newton steps."""
    if record.newton is None:
        return
    if (reason := refusal_of(record)) is not None:
        raise InvalidInput(f"predictions need coefficients, got none: {reason}")
    estimates = estimates_of(record)
    known = np.ones(features.shape[0], dtype=bool) if features.missing is None else ~features.missing
    blocks = (
        known[at] & ~estimates.mapped(rows, np.zeros(len(rows))).given()
        for at, rows in _with_constant(record, features)
    )
    n_hidden = sum(int(np.count_nonzero(hidden)) for hidden in blocks)
    if n_hidden:
        named = [name for name, given in zip(record.names, estimates.given(), strict=True) if not given]
        which = ", ".join(named) or "a combination of coefficients"
        raise InvalidInput(
            f"predictions must not depend on what the noise hides, got {n_hidden:,} of {features.shape[0]:,} rows that "
            f"need {which}: leave these rows out (predict_conf_int has NaN for them), or fit without the column, or "
            "with l2_strength, which is a new release"
        )


def _half_widths(sampling: _F64, noise: _F64, law: ErrorLaw, level: float) -> _F64:
    variance = sampling + noise
    share = np.divide(noise, variance, out=np.zeros_like(noise), where=variance > 0.0)
    low, high = share.min(initial=1.0), share.max(initial=0.0)
    if len(share) > 2 * _DEGREE and low < high and level >= _LEAST_LEVEL:
        units = Chebyshev.interpolate(lambda at: _unit_half_widths(at, law, level), _DEGREE, domain=[low, high])(share)
    else:
        units = _unit_half_widths(share, law, level)
    return np.asarray(np.sqrt(variance) * units)


def _unit_half_widths(share: _F64, law: ErrorLaw, level: float) -> _F64:
    """Half widths of errors of variance 1 of which noise has a share."""
    share = np.clip(share, 0.0, 1.0)
    multiplier = np.sqrt(share / law.mean_omega)
    shape = _core.ErrorShape(law.law, law.scale, law.dim, law.shape)
    return shape.half_widths(1.0 - share, multiplier, level)


# Of a column's range: splines and powers are polynomials, of which a central difference is exact to 1e-10.
_STEP = 1e-5

_LINEAR = 1.0
"""Greatest standard error of log odds between which the delta method takes a probability for a line."""
_UNCERTAIN = "the predicted probability is too uncertain: predict_conf_int has its interval"


class _Change(NamedTuple):
    """Two values of a column between which a prediction changes, and what the change is divided by."""

    name: str
    column: str
    values: tuple[Any, Any]
    over: float
    unit: str


def marginal_effects(
    record: FitRecord,
    estimates: Estimates | Hidden,
    at: Mapping[str, Any],
    *,
    level: float,
    simultaneous: Simultaneous | None,
) -> ConfidenceIntervals:
    """Return the intervals of :meth:`dpci.PrivateFit.marginal_effects`, by the delta method."""
    schema, name = record.table, record.loss["name"]
    if schema is None:
        raise InvalidInput("marginal effects need a fit with a schema (dpci.fit(..., schema=)), got one without")
    if name not in LOG_ODDS and name != "squared":
        raise InvalidInput(f"marginal effects need a logistic or squared loss, got {name!r}")
    at = _one_row(schema, at)
    # Dates are numbers of days from here on.
    in_days = (replace(c, since="") if isinstance(c, NumericColumn) else c for c in schema.columns)
    schema = replace(schema, columns=tuple(in_days))
    changes = list(_changes(schema, at))
    table = {
        column.name: [value for change in changes for value in _values(change, column.name, at)]
        for column in schema.columns
    }
    rows = schema.features(table)
    if record.intercept_scale is not None:
        rows = np.column_stack([rows, np.full(len(rows), record.intercept_scale)])
    predictor = rows @ estimates.params
    # The prediction and its derivative in the predictor.
    if name in LOG_ODDS:
        predicted = expit(predictor)
        slope = predicted * expit(-predictor)
    else:
        predicted = in_target_units(record, predictor)
        slope = np.full(len(rows), in_target_units(record, np.array([0.0, 1.0])) @ [-1.0, 1.0])
    over = np.array([change.over for change in changes])
    effects = (predicted[1::2] - predicted[::2]) / over
    weighted = slope[:, None] * rows
    gradients = (weighted[1::2] - weighted[::2]) / over[:, None]
    found = estimates.mapped(gradients, effects - gradients @ estimates.params)
    names, units = (tuple(getattr(change, what) for change in changes) for what in ("name", "unit"))
    intervals = replace(found.conf_int(names, level=level, simultaneous=simultaneous), per=units)
    return (
        intervals if name == "squared" else _without_uncertain(intervals, estimates.mapped(rows, np.zeros(len(rows))))
    )


def _without_uncertain(effects: ConfidenceIntervals, ends: Estimates | Hidden) -> ConfidenceIntervals:
    """Return effects without those between two probabilities of which one is hardly known: no line is near them."""
    errors = ends.std_errors()
    known = np.asarray((np.nan_to_num(errors, nan=np.inf) <= _LINEAR).reshape(-1, 2).all(axis=1))
    reasons = zip(effects.refusals, known, strict=True)
    refusals = tuple(reason if reason or is_known else _UNCERTAIN for reason, is_known in reasons)
    columns = (np.where(known, column, np.nan) for column in (effects.estimate, effects.lower, effects.upper))
    estimate, lower, upper = columns
    return replace(effects, estimate=estimate, lower=lower, upper=upper, refusals=refusals)


def _changes(schema: Schema, at: Mapping[str, Any]) -> Iterator[_Change]:
    for column in schema.columns:
        if isinstance(column, NumericColumn):
            step, value = _STEP * (column.upper - column.lower), at[column.name]
            low, high = max(column.lower, value - step), min(column.upper, value + step)
            unit = f"per {counted(column.per, column.unit or 'unit')}"
            yield _Change(column.name, column.name, (low, high), (high - low) / column.per, unit)
            continue
        reference = column.categories[0] if column.reference is None else column.reference
        for category in column.categories:
            if category != reference:
                unit = f"against {reference}"
                yield _Change(f"{column.name}={category}", column.name, (reference, category), 1.0, unit)


def _values(change: _Change, column: str, at: Mapping[str, Any]) -> tuple[Any, Any]:
    return change.values if column == change.column else (at[column], at[column])


def _one_row(schema: Schema, at: object) -> Mapping[str, Any]:
    """Return one value for each column, within its bounds; of a date the days since the public one."""
    if not isinstance(at, Mapping):
        raise InvalidInput(
            f"at must be a mapping from the columns of the schema to one public value each, got {in_short(at)}"
        )
    found = dict(at)
    for column in schema.columns:
        if column.name not in at:
            raise InvalidInput(f"at must have a value for each column of the schema, got none for {column.name!r}")
        value = at[column.name]
        if not isinstance(column, NumericColumn):
            if not isinstance(value, str | int | float | np.generic):
                raise InvalidInput(f"at must have one category for {column.name!r}, got {value!r}")
            continue
        if column.since:
            found[column.name] = float(days_since(column.since, np.array([value], dtype=object))[0])
        days = found[column.name]
        is_number = isinstance(days, int | float | np.integer | np.floating) and not isinstance(days, bool)
        if not is_number or not column.lower <= days <= column.upper:
            what = f"a date from {column.lower:g} to {column.upper:g} days after {column.since}"
            what = what if column.since else f"a number in [{column.lower:g}, {column.upper:g}]"
            raise InvalidInput(f"at must have {what} for {column.name!r}, got {value!r}")
    return found
