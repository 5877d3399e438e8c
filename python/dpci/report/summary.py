"""The summary of a fit: a view of estimates in a table, followed by the facts that a reader needs to judge them."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.costs import describe_seals
from dpci.base.tables import (
    ERROR_DIGITS,
    change_text,
    estimates_as_text,
    format_percent,
    number_format,
    positive_class,
    printable,
    row_of_text,
)
from dpci.base.validation import check_choice, check_fraction
from dpci.errors import DpciError
from dpci.inference.error_law import NOISE_AWARE, is_likelihood
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.methods import Inference, estimates_of, full_range_of, interval_notes, parameter_estimates
from dpci.inference.targets.estimates import TARGETS, Estimates, Simultaneous, Target
from dpci.inference.validity import TRUSTED_NOISE
from dpci.losses import describe
from dpci.released.fit_record import FitRecord
from dpci.released.model import record_of, shown_classes
from dpci.shown.document import Document, Facts, Paragraph, Table, seeded

Units: TypeAlias = Literal["table", "scaled"]
UNITS: tuple[Units, ...] = ("table", "scaled")


@dataclass(frozen=True, kw_only=True)
class View:
    """Parts of a model that are shown.

    Parameters
    ----------
    level : float
        Level of the intervals.
    target : {"regularised", "unregularised"}
        Target of the estimates.
    simultaneous : {"bonferroni", "max_z"}, optional
        How the intervals cover together; None: each by itself.
    units : {"table", "scaled"}
        Coefficients in the units of the table, where the fit had a schema, or parameters of the scaled columns.
    """

    level: float = 0.95
    target: Target = "regularised"
    simultaneous: Simultaneous | None = None
    units: Units = "table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", check_fraction("level", self.level))
        check_choice("target", self.target, TARGETS)
        check_choice("units", self.units, UNITS)
        if self.simultaneous is not None:
            check_choice("simultaneous", self.simultaneous, ("bonferroni", "max_z"))

    def in_units(self, result: Inference) -> bool:
        """Whether a result is shown in the units of its table."""
        return self.units == "table" and result.schema is not None

    def estimates(self, result: Inference, target: Target | None = None) -> tuple[tuple[str, ...], Estimates]:
        """Return the names of what is shown and their estimates, of another target if one is named."""
        target = self.target if target is None else target
        if self.in_units(result):
            return estimates_of(result, target)
        return result.names, parameter_estimates(result, target)

    def title(self, result: Inference) -> str:
        """Return what a table of the intervals is called."""
        together = "" if self.simultaneous is None else f" simultaneous ({self.simultaneous})"
        units = " in the units of the table" if self.in_units(result) else ""
        return f"{format_percent(self.level)}{together} confidence intervals{units}"

    def drawn(self, result: Inference) -> ConfidenceIntervals:
        """Return the intervals of a plot: coefficients over the full range of each column, which share an axis."""
        names, estimates = self.estimates(result)
        if self.in_units(result):
            names, estimates = full_range_of(result, self.target)
        return estimates.conf_int(names, level=self.level, simultaneous=self.simultaneous)


INTERVALS_FIRST = ("estimate", "lower", "upper", "std error", "p-value", "ridge", "noise", "scaled")
"""Columns of a table of estimates, in the order in which a narrow screen shows them."""
_UNKNOWN = "unknown"
_COUNTED = "Intervals of single parameters account for it."
_TESTS = "A joint test of several parameters may reject too often: wald_test tests them one at a time by default."


def summary_of(result: Inference, view: View) -> Document:
    """Return the summary of a fit; without moments it has no errors and no intervals."""
    parts = [estimates_table(result, view), Facts(fact_lines(result)), *map(Paragraph, _notes(result, view))]
    return Document(parts=parts, banner=seeded(private=result.private))


def estimates_table(result: Inference, view: View) -> Table:
    """Return the table of estimates: in the units of the table, where it has some.

    The column "ridge" is how far the ridge moves the target; "scaled" has the released parameters.
    """
    if result.interval_refusal is not None:
        return _bare_table(result, view)
    coefficients = _Columns(result, view)
    header = ["name", "estimate", "std error", "p-value", "lower", "upper"]
    rows = coefficients.rows()
    if has_ridge(record_of(result)):
        header.append("ridge")
        rows = [[*row, moved] for row, moved in zip(rows, coefficients.ridge(), strict=True)]
    if view.in_units(result):
        units, shown = result.in_units().units, number_format(result.std_errors, result.params, digits=ERROR_DIGITS)
        scaled = _beside(coefficients.found[0], [f"{value:{shown}}" for value in result.params], result)
        rows = [[row[0], unit, *row[1:], value] for row, unit, value in zip(rows, units, scaled, strict=True)]
        header = [header[0], "unit", *header[1:], "scaled"]
    return Table(header, rows, view.title(result), first=INTERVALS_FIRST)


def _bare_table(result: Inference, view: View) -> Table:
    """Return the table of a fit without intervals: estimates alone."""
    shown = number_format(np.abs(result.params).max(), result.params)
    scaled = [f"{value:{shown}}" for value in result.params]
    if not view.in_units(result):
        return Table(["name", "estimate"], list(zip(result.names, scaled, strict=True)))
    found = result.in_units()
    columns = (found.names, found.units, estimates_as_text(found.params), _beside(found.names, scaled, result))
    return Table(["name", "unit", "estimate", "scaled"], list(zip(*columns, strict=True)))


def _beside(names: tuple[str, ...], scaled: list[str], result: Inference) -> list[str]:
    """Return the scaled parameters beside coefficients in the units of the table.

    A model without an intercept can have one in the units of the table.
    """
    n = len(record_of(result).prefixes)
    width, wanted = len(scaled) // n, len(names) // n
    blocks = [scaled[i * width : (i + 1) * width] for i in range(n)]
    return [value for block in blocks for value in [*block, ""][:wanted]]


class _Columns:
    """The numbers of a table of estimates."""

    def __init__(self, result: Inference, view: View) -> None:
        self.result, self.view = result, view
        self.found = view.estimates(result)

    def rows(self) -> list[list[str]]:
        names, estimates = self.found
        intervals = estimates.conf_int(names, level=self.view.level, simultaneous=self.view.simultaneous)
        columns = (estimates.values(), estimates.std_errors(), estimates.pvalues(), intervals.lower, intervals.upper)
        # Coefficients of a table have sizes of their own.
        own = self.view.in_units(self.result)
        shown = None if own else number_format(_finite(columns[1]), _finite(columns[0]), digits=ERROR_DIGITS)
        numbers = zip(*columns, strict=True)
        return [[name, *row_of_text(*row, shown=shown)] for name, row in zip(names, numbers, strict=True)]

    def ridge(self) -> list[str]:
        try:
            (_, regularised), (_, without) = (self.view.estimates(self.result, target) for target in TARGETS)
            errors, moved = regularised.std_errors(), regularised.values() - without.values()
        except DpciError:
            # Saved records may hold any numbers; those beyond the range of floats show nothing.
            return [_UNKNOWN] * len(self.found[0])
        own = self.view.in_units(self.result)
        common = None if own else number_format(errors, regularised.values(), digits=ERROR_DIGITS)
        return [
            f"{value:{common or number_format(error, value, digits=ERROR_DIGITS)}}" if np.isfinite(value) else _UNKNOWN
            for value, error in zip(moved, errors, strict=True)
        ]


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[np.isfinite(values)]


def fact_lines(result: Inference) -> list[tuple[str, str]]:
    """Return names and values of the public facts; details of a fact are indented below it."""
    record = record_of(result)
    unit = record.cost_unit.replace("_", " ")
    steps = [
        (f"  {step.step.replace('_', ' ')}", f"{unit} {step.cost:.4g}, {step.noise.replace('_', ' ')} noise")
        for step in record.steps
    ]
    unit_of_privacy = "record" if record.persons is None else "person"
    public = "n (released)" if record.n_is_released else "n (public)"
    n_name = public if record.neighbors == "add_remove" else "n"
    classes = shown_classes(record.classes, record.table)
    return [
        ("mechanism", _mechanism(record)),
        ("loss", describe(record.loss) + positive_class(classes, inferred=record.classes_inferred)),
        ("budget spent", str(result.spent)),
        *([] if record.whole is None else [("  together", f"{record.whole.budget} by {record.whole}")]),
        *bounds_lines(record),
        *steps,
        ("  rounding seal", describe_seals(record.seals)),
        ("neighbours", change_text(record.neighbors, unit_of_privacy)),
        *([] if record.persons is None else [("persons", str(record.persons))]),
        *([] if record.weights is None else [("weights", str(record.weights))]),
        ("rows", _rows(record)),
        (n_name, f"{result.n_samples:,}"),
        *([] if record.newton is not None else [("lambda", _ridge(record))]),
        *([] if record.radius is None else [("radius", f"{record.radius:g}")]),
        ("moments", "none released" if result.hessian is None else _moments(record)),
    ]


def bounds_lines(record: FitRecord) -> list[tuple[str, str]]:
    """Return what bounds of the schema cost that were released with the fit, and how much they leave out."""
    found = record.released_bounds
    if found is None:
        return []
    columns = "a column" if len(found.columns) == 1 else f"{len(found.columns)} columns"
    if found.share is None:
        return [("  categories", f"{found.budget}, a choice for each: of {columns}")]
    left_out = f"up to about {found.share:.1%} of the values on either side left out"
    what = "bounds and categories" if found.listed else "bounds"
    return [(f"  {what}", f"{found.budget}, exponential mechanism: of {columns}, {left_out}")]


def _rows(record: FitRecord) -> str:
    without = "" if record.intercept_scale is None else ", without the intercept"
    return f"{record.rows}{without}{', clipped' if record.on_violation == 'clip' else ''}"


def _moments(record: FitRecord) -> str:
    if record.newton is not None:
        return "Hessian and gradient covariance of the round rows, joint"
    return f"Hessian and gradient covariance, {record.moments}; projection {record.projection}"


def _mechanism(record: FitRecord) -> str:
    if record.newton is not None:
        return f"{record.newton.made_by}, on rows made round"
    variant = "" if record.variant == "standard" else f", variant {record.variant}"
    project = ", params projected onto the ball" if record.project else ""
    calibration = "" if record.calibration == "tight" else f", calibration {record.calibration}"
    return f"{record.mechanism} perturbation{variant}{calibration}{project}"


def _ridge(record: FitRecord) -> str:
    return f"{record.l2_strength:g}" + (", raised by cms11" if _was_raised(record) else "")


def has_ridge(record: FitRecord) -> bool:
    """Return whether there is a ridge off which a step leads."""
    return record.newton is None and is_likelihood(record)


def _was_raised(record: FitRecord) -> bool:
    """Return whether cms11 raised lambda."""
    if record.variant != "cms11":
        return False
    step = next(step for step in record.steps if step.step == "coefficients")
    epsilon = _core.zcdp_to_pure(step.cost, record.calibration) if record.notion == "zcdp" else step.cost
    return _core.cms11_raised(epsilon, step.sensitivity, step.scale)


def target_note(result: Inference, target: Target = "regularised") -> str:
    """Return a note on the target of the estimates."""
    record = record_of(result)
    if record.newton is not None:
        return (
            "Target: the coefficients that minimise the population's mean loss, without a ridge. The few rows that are "
            "farthest out weigh less."
        )
    if target == "unregularised":
        return (
            "Target: the minimiser of the population's risk without a ridge, parameter by parameter, one Newton step "
            "from the released parameters; given where released values show that the step holds."
        )
    domain = "" if record.radius is None else f" over the ball ||params|| <= {record.radius:g}"
    ridge = f"lambda={result.l2_strength:g}"
    if record.neighbors == "add_remove":
        units = "records" if record.persons is None else "persons"
        ridge += f" * {result.n_samples:,} / (number of {units}, which is private)"
    return (
        f"Target: the minimiser of the population's regularised risk at {ridge}{domain}, "
        "parameter by parameter; it is not the unregularised coefficient."
    )


def ridge_note(result: Inference) -> str | None:
    """Return what the column "ridge" is, if there is one."""
    if result.interval_refusal is not None or not has_ridge(record_of(result)):
        return None
    return "Ridge: the regularised minus the unregularised coefficient; unknown where released values do not show it."


def refusal_notes(result: Inference, view: View) -> list[str]:
    """Return why rows of the table have no numbers, each reason with its rows."""
    if result.interval_refusal is not None:
        return []
    names, estimates = view.estimates(result)
    rows: dict[str, list[str]] = {}
    for name, reason in zip(names, estimates.refusals(), strict=True):
        if reason is not None:
            rows.setdefault(reason, []).append(printable(name))
    return [f"No estimate of {', '.join(refused)}: {reason}." for reason, refused in rows.items()]


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
        f"Moment noise: the noise in the released matrices may be {size} their least eigenvalue. "
        f"{_COUNTED if counted else 'The intervals do not account for it.'} {_TESTS}"
    )


def _notes(result: Inference, view: View) -> list[str]:
    ridge = ridge_note(result) if view.target == "regularised" else None
    notes = [
        " ".join(filter(None, [target_note(result, view.target), ridge])),
        *refusal_notes(result, view),
        interval_note(result),
        noise_note(result),
        *interval_notes(result),
    ]
    loss = record_of(result).loss
    if loss["name"] == "custom":
        notes.append(
            "The privacy claim relies on the declared bounds of the custom loss: "
            f"slope_bound={loss['slope_bound']:g}, curvature_bound={loss['curvature_bound']:g}"
            + "".join(f", {name}={loss[name]:g}" for name in ("predictor_bound", "strong_convexity") if loss[name])
            + "."
        )
    return [note for note in notes if note is not None]
