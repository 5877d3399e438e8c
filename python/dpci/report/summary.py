"""Numbers of a fit in tables, and the facts and notes that a reader needs to judge them: parts of its documents."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.base.tables import (
    ERROR_DIGITS,
    estimates_as_text,
    format_percent,
    number_format,
    positive_class,
    printable,
    row_of_text,
)
from dpci.base.validation import check_choice, check_fraction
from dpci.errors import DpciError
from dpci.inference.common_levels import levels_of, note
from dpci.inference.contrasts import contrast_rows
from dpci.inference.curvature import curvature_note, room_of, trusted_room
from dpci.inference.intervals import (
    TARGETS,
    ConfidenceIntervals,
    ErrorLaw,
    Estimates,
    Simultaneous,
    Target,
    estimates_of,
    given_rows,
    law_of,
    refusal_of,
)
from dpci.inference.remarks import may_not_have_ended, notes
from dpci.inference.targets.units import odds_ratios, rate_ratios, slopes, unit_map
from dpci.inference.validity import TRUSTED_NOISE, moment_noise
from dpci.losses import COUNTS, LOG_ODDS, SEVERAL, WITHOUT_INTERVALS, Hinge
from dpci.released.bounds import RELEASED
from dpci.released.calibration import last_step
from dpci.released.choices import rows_are_alike
from dpci.released.record import NOISE_AWARE, FitRecord
from dpci.schema.cells import stand_in
from dpci.schema.columns import NumericColumn, NumericTarget
from dpci.schema.table import Schema
from dpci.shown.document import Table

_F64 = NDArray[np.float64]

Units: TypeAlias = Literal["table", "scaled"]
UNITS: tuple[Units, ...] = ("table", "scaled")


@dataclass(frozen=True, kw_only=True)
class View:
    """Parts of a model that are shown: which intervals, in the units of the table where the fit had a schema."""

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

    def in_units(self, record: FitRecord) -> bool:
        """Whether a fit is shown in the units of its table."""
        return self.units == "table" and record.table is not None

    def conf_int(self, names: tuple[str, ...], estimates: Estimates) -> ConfidenceIntervals:
        """Return the intervals of estimates."""
        return estimates.conf_int(names, level=self.level, simultaneous=self.simultaneous)


class Numbers:
    """Numbers of a fit with intervals that are shown: estimates and the law of their errors, each computed once."""

    def __init__(self, record: FitRecord, view: View) -> None:
        self.record, self.view, self.in_units = record, view, view.in_units(record)
        self.parameters = estimates_of(record, view.target)
        self.names, self.estimates, self._map = record.names, self.parameters, None
        self.units: tuple[str, ...] = ()
        if self.in_units:
            matrix, shift, self.names, self.units = unit_map(record)
            self.estimates, self._map = self.parameters.mapped(matrix, shift), (matrix, shift)
        self.refusals = self.estimates.refusals()
        self.std_errors = self.estimates.std_errors()

    @cached_property
    def intervals(self) -> ConfidenceIntervals:
        """The intervals of the table."""
        return self.view.conf_int(self.names, self.estimates)

    @cached_property
    def differences(self) -> ConfidenceIntervals:
        """The intervals of all coefficients in the units of the table but the intercept, which is no difference."""
        wanted, labels = contrast_rows(slopes(self.record, self.names), self.names)
        found = self.view.conf_int(labels, self.estimates.mapped(wanted, np.zeros(len(wanted))))
        per = [unit for name, unit in zip(self.names, self.units, strict=True) if name in labels] if self.units else []
        return replace(found, per=tuple(per))

    @cached_property
    def drawn(self) -> ConfidenceIntervals:
        """The intervals of a plot."""
        return with_units(self.differences) if self.in_units else self.intervals

    @cached_property
    def moved(self) -> tuple[_F64, _F64, _F64] | None:
        """How far the ridge moves each estimate, and the regularised estimates with their standard errors.

        None where numbers of a saved fit are beyond the range of floats, and show nothing.
        """
        try:
            regularised = self.estimates if self.view.target == "regularised" else self._of("regularised")
            values, without = regularised.values(), self.without_ridge
            return None if without is None else (values - without.values(), values, regularised.std_errors())
        except DpciError:
            return None

    @cached_property
    def covered(self) -> float | None:
        """See :func:`mean_coverage`; None for intervals that do not count the noise in the matrices."""
        record = self.record
        if record.projection != NOISE_AWARE or record.newton is not None:
            return None
        try:
            return mean_coverage(law_of(record))
        except DpciError:
            # Saved records may hold any numbers; those beyond the range of floats have no intervals.
            return None

    @cached_property
    def ordinary(self) -> Estimates | None:
        """The estimates without the ridge where they stand beside the regularised ones; None where none is given."""
        if self.view.target != "regularised" or not has_ridge(self.record):
            return None
        found = self.without_ridge
        try:
            return found if found is not None and any(reason is None for reason in found.refusals()) else None
        except DpciError:
            return None

    @cached_property
    def without_ridge(self) -> Estimates | None:
        """The estimates without the ridge; None as for :attr:`moved`."""
        try:
            return self.estimates if self.view.target == "unregularised" else self._of("unregularised")
        except DpciError:
            return None

    def table(self, columns: Mapping[str, Sequence[str]]) -> Table:
        """Return the table of columns of text beside the names, and the units where there are some."""
        units = {"unit": self.units} if self.in_units else {}
        whole = {"name": self.names, **units, **columns}
        return Table(list(whole), list(zip(*whole.values(), strict=True)), self._title, first=INTERVALS_FIRST)

    @property
    def _title(self) -> str:
        view = self.view
        together = "" if view.simultaneous is None else f" simultaneous ({view.simultaneous})"
        units = " in the units of the table" if self.in_units else ""
        return f"{format_percent(view.level)}{together} confidence intervals{units}"

    def _of(self, target: Target) -> Estimates:
        found = estimates_of(self.record, target)
        return found if self._map is None else found.mapped(*self._map)


INTERVALS_FIRST = (
    *("estimate", "ordinary", "regularised", "lower", "upper", "odds ratio", "rate ratio"),
    *("std error", "p-value", "ridge", "noise", "scaled"),
)
"""Columns of a table of estimates, in the order in which a narrow screen shows them."""
_ORDINARY = "The coefficients without a ridge, one Newton step from the regularised ones."
_UNKNOWN = "unknown"
_NO_UNIT = "no unit"
_NORMAL = 1.959964
_NO_LONGER = 1.05
_MUCH_LONGER = 1.5
NOT_GIVEN = "not estimable"
_COUNTED = "Intervals of single parameters account for it."
_PRIVATE_NUMBER = (
    "The intervals do not use the number of records, which is private. They are conservative if that number is "
    "fixed, and valid if it varies no more than a Poisson number."
)
_CUSTOM = (
    "The intervals assume that the curvature of the custom loss changes little within the errors of the predictors. "
    "They can be too short if the curvature jumps or vanishes. Released values cannot show this."
)
TRUSTED_COVERAGE = 0.94
"""Least :func:`mean_coverage` of which the notes on the intervals of a fit say nothing."""
_TESTS = "A joint test of several parameters may reject too often: wald_test tests them one at a time by default."


def numbers_of(record: FitRecord, view: View) -> Numbers | None:
    """Return the numbers of a fit that are shown; None for a fit without intervals."""
    return Numbers(record, view) if refusal_of(record) is None else None


def answer_table(numbers: Numbers) -> Table:
    """Return the intervals: of ordinary coefficients, beside the regularised ones where a ridge was needed.

    The ratio is e to the power of the coefficient.
    """
    if (ordinary := numbers.ordinary) is not None:
        both = {"ordinary": ordinary, "regularised": numbers.estimates}
        return numbers.table({name: _with_intervals(numbers, found) for name, found in both.items()})
    found = _estimate_columns(numbers)
    columns = {name: found[name] for name in ("estimate", "lower", "upper", "std error", "p-value")}
    if (ratio := ratios_of(numbers)) is not None:
        columns[f"{ratio} ratio"] = _ratio_column(numbers)
    return numbers.table(columns)


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


def estimates_table(numbers: Numbers) -> Table:
    """Return the table of estimates: in the units of the table, where it has some.

    The column "ridge" is how far the ridge moves the target; "scaled" has the released parameters.
    """
    record, columns = numbers.record, _estimate_columns(numbers)
    if has_ridge(record):
        columns["ridge"] = _ridge_column(numbers)
    if numbers.in_units:
        columns["scaled"] = _scaled_column(numbers)
    return numbers.table(columns)


def _scaled_column(numbers: Numbers) -> list[str]:
    """Return the released parameters, of the scaled columns; dashes where the noise hides the row."""
    record, own = numbers.record, estimates_of(numbers.record)
    # A regularised parameter is given, whether or not that without a ridge is.
    hidden = np.array([reason is not None for reason in numbers.refusals]) & (record.newton is not None)
    errors = own.std_errors()
    shown = number_format(_finite(errors), _finite(own.values()), digits=ERROR_DIGITS)
    scaled = [f"{value:{shown}}" if np.isfinite(value) else "-" for value in own.values()]
    beside = _beside(numbers.names, scaled, record)
    return ["-" if refused else value for value, refused in zip(beside, hidden, strict=True)]


def without_results(record: FitRecord) -> bool:
    """Return whether released values show that the noise has made the parameters, or that steps have not ended."""
    return record.newton is not None and refusal_of(record) is not None


def bare_table(record: FitRecord, view: View, *, full: bool = True) -> Table:
    """Return the table of a fit without intervals: estimates alone, in full with the scaled ones beside them.

    Dashes where the fit has no results, but noise.
    """
    shown = number_format(np.abs(record.params).max(), record.params)
    scaled = [f"{value:{shown}}" for value in record.params]
    if without_results(record):
        scaled = ["-"] * len(scaled)
    columns: dict[str, Sequence[str]] = {"name": record.names, "estimate": scaled}
    if view.in_units(record):
        matrix, shift, names, units = unit_map(record)
        estimates = estimates_as_text(np.asarray(matrix @ record.params + shift))
        if without_results(record):
            estimates = ["-"] * len(estimates)
        columns = {"name": names, "unit": units, "estimate": estimates}
        columns |= {"scaled": _beside(names, scaled, record)} if full else {}
    return Table(list(columns), list(zip(*columns.values(), strict=True)))


def _beside(names: tuple[str, ...], scaled: list[str], record: FitRecord) -> list[str]:
    """Return the scaled parameters beside coefficients in the units of the table; nothing beside a sum of two."""
    assert record.table is not None  # noqa: S101  # for the type checker: in the units of a table
    n, (matrix, _, _) = len(record.prefixes), record.table.written
    width, rows = len(scaled) // n, matrix[: len(names) // n]
    return [scaled[i * width + int(row.argmax())] if row.sum() == 1.0 else "" for i in range(n) for row in rows]


def _estimate_columns(numbers: Numbers) -> dict[str, list[str]]:
    """Return estimates, standard errors, p-values and bounds."""
    found, intervals = numbers.estimates, numbers.intervals
    columns = (found.values(), numbers.std_errors, found.pvalues(), intervals.lower, intervals.upper)
    # Coefficients of a table have sizes of their own.
    common = None if numbers.in_units else number_format(_finite(columns[1]), _finite(columns[0]), digits=ERROR_DIGITS)
    rows = [row_of_text(*row, shown=common) for row in zip(*columns, strict=True)]
    header = ("estimate", "std error", "p-value", "lower", "upper")
    return {name: [row[at] for row in rows] for at, name in enumerate(header)}


def _ridge_column(numbers: Numbers) -> list[str]:
    if numbers.moved is None:
        return [_UNKNOWN] * len(numbers.names)
    moved, values, errors = numbers.moved
    common = None if numbers.in_units else number_format(errors, values, digits=ERROR_DIGITS)
    return [
        f"{value:{common or number_format(error, value, digits=ERROR_DIGITS)}}" if np.isfinite(value) else _UNKNOWN
        for value, error in zip(moved, errors, strict=True)
    ]


def _finite(values: _F64) -> _F64:
    return values[np.isfinite(values)]


def model_words(record: FitRecord) -> str:
    """Return the kind of model and its outcome, if a schema names it."""
    kind = "logistic regression" if record.loss["name"] == "logistic" else f"{record.loss_facts.words} loss"
    if record.table is None:
        return kind + positive_class(record.shown_classes, inferred=record.classes_inferred)
    return f"{kind} of {outcome_words(record)}"


def outcome_words(record: FitRecord) -> str:
    """Return the outcome of a model of one predictor."""
    classes = record.shown_classes
    if record.table is None:
        return "a number" if classes is None else positive_class(classes, inferred=False).removeprefix(", ")
    column = record.table.target.column
    return column if classes is None else f"{column} ({classes[1]} against {classes[0]})"


def answer_facts(record: FitRecord, view: View, numbers: Numbers | None) -> list[tuple[str, str]]:
    """Return the target, the shrinkage and the noise, a sentence each, and what a reader must not overlook."""
    target = target_note(record, view.target).removeprefix("Target: ")
    facts = [("target", f"{target[0].upper()}{target[1:]}")]
    if numbers is not None and numbers.ordinary is not None:
        facts = [("ordinary", _ORDINARY), ("regularised", facts[0][1])]
    if record.table is None and record.on_violation == "clip":
        facts.append(("rows", f"Rows beyond their bounds ({record.rows}) were moved to them; how many is private."))
    if record.loss["name"] in COUNTS and (said := _lowered(record.table)) is not None:
        facts.append(("counts", said))
    if (said := _missing(record.table)) is not None:
        facts.append(("missing", said))
    cautions = [custom_note(record)]
    if numbers is not None:
        if has_ridge(record):
            facts.append(("ridge", ridge_size(numbers)))
        facts += [("noise", " ".join(noises))] if (noises := noise_size(numbers)) else []
        remarked = notes(record)
        short = None if record.newton is None and remarked else _short_intervals(numbers)
        cautions += [*remarked, *refusal_notes(numbers), short, _levels(record), _curvature(record)]
    return [*facts, *(("caution", said) for said in cautions if said is not None)]


def _missing(table: Schema | None) -> str | None:
    """Return which values stand for missing cells, a public rule that changes estimates; None where none does."""
    stand_ins = []
    for column in () if table is None else table.columns:
        if isinstance(value := stand_in(column), str):
            stand_ins.append(f"{column.name} as {value}")
        elif value is not None:
            stand_ins.append(f"{column.name} as {value:,.6g} {getattr(column, 'unit', '')}".strip())
    if not stand_ins:
        return None
    return f"Missing cells count as a value by a public rule: {', '.join(stand_ins)}. Their number is private."


def _lowered(table: Schema | None) -> str | None:
    """Return to which number counts of a table are lowered; None without a target that is a number."""
    if table is None or not isinstance(target := table.target, NumericTarget):
        return None
    why = "released" if target.source.startswith(RELEASED) else "public"
    bound = f"{target.upper:,.4g}, the {why} bound"
    return f"Counts of {target.column} above {bound}, are lowered to it, which moves rate ratios towards 1."


def noise_size(numbers: Numbers) -> list[str]:
    """Return how much the noise lengthens the intervals, where released values show it; otherwise its share."""
    few = ", ".join(map(printable, rare_marks(numbers)))
    rare = [f"Few records have {few}: noise makes up most of the interval."] if few else []
    longer = longer_by(numbers)
    if longer is None:
        return [*(share.partition(". ")[0].removesuffix(".") + "." for share in noise_shares(numbers)), *rare]
    typical, most = longer
    times = "" if typical < _NO_LONGER else f"{typical:.2g} times "
    longest = "" if most < _MUCH_LONGER * typical else f", and the longest is {most:.2g} times as long"
    return [f"A typical interval is about {times}as long as without privacy noise{longest}.", *rare]


def rare_marks(numbers: Numbers) -> list[str]:
    """Return the categories, and marks of missing numbers, of few records for this budget that have an interval."""
    record = numbers.record
    if record.newton is None or record.table is None or record.table.terms or not numbers.in_units:
        return []
    known = {*record.table.names} - {
        column.name for column in record.table.columns if isinstance(column, NumericColumn)
    }
    shown = [i for i in np.flatnonzero(numbers.estimates.given()) if numbers.names[i] in known]
    if not shown:
        return []
    few = record.newton.marks_few(numbers.estimates.map[shown], record.divisor, record.steps)
    return [numbers.names[i] for i, is_rare in zip(shown, few, strict=True) if is_rare]


def longer_by(numbers: Numbers) -> tuple[float, float] | None:
    """Return how many times as long as without noise intervals are: geometric mean and greatest of the table's rows.

    The variance without noise is that of maximum likelihood: the inverse of the released Hessian, over the number of
    records. None where this is not known: for other losses and mechanisms, persons, and weights.
    """
    record, estimates = numbers.record, numbers.estimates
    if record.newton is None or record.loss["name"] != "logistic":
        return None
    if not rows_are_alike(record.persons, record.weights) or record.on_violation == "weight":
        return None
    rows = estimates.map[estimates.given()]
    if not len(rows):
        return None
    with np.errstate(all="ignore"):
        moved = rows @ record.newton.map
        hessian = last_step(record, record.newton).raised_hessian
        variances = (moved @ np.linalg.pinv(hessian) * moved).sum(axis=1) / record.divisor
        lengths = estimates.law.half_widths(rows, 0.95) / (_NORMAL * np.sqrt(variances))
        longer = float(np.exp(np.log(lengths).mean())), float(lengths.max())
    return longer if math.isfinite(sum(longer)) else None


def noise_shares(numbers: Numbers) -> list[str]:
    """Return what share of the error variance the noise in the parameters has, or that in the gradients of steps."""
    estimates, total = numbers.estimates, numbers.std_errors**2
    with np.errstate(all="ignore"):
        shares = estimates.law.noise_variance(estimates.map) / total
    shares = shares[np.isfinite(shares)]
    if not len(shares):
        return []
    low, high = f"{shares.min():.0%}", f"{shares.max():.0%}"
    span = low if low == high else f"{low} to {high}"
    where = "parameters" if numbers.record.newton is None else "gradients"
    share = f"The noise in the {where} makes up {span} of the variance of the estimates."
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


def has_ridge(record: FitRecord) -> bool:
    """Return whether there is a ridge off which a step leads."""
    return record.newton is None and record.loss_facts.is_likelihood


WEIGHED = "rows with extreme values weigh less, which changes no coefficient where the model holds for all rows"


def target_note(record: FitRecord, target: Target = "regularised") -> str:
    """Return a note on the target of the estimates."""
    if record.newton is not None:
        return f"Target: {ordinary_coefficients(record)}, {_clipped(record)}. {WEIGHED[0].upper()}{WEIGHED[1:]}."
    if target == "unregularised":
        return (
            "Target: the minimiser of the population's risk without a ridge, parameter by parameter, one Newton step "
            "from the released parameters; given where released values show that the step holds."
        )
    domain = "" if record.radius is None else f" over the ball ||params|| <= {record.radius:g}"
    domain += _weighed(record)
    ridge = f"lambda={record.l2_strength:g}"
    if record.neighbors == "add_remove":
        units = "records" if record.persons is None else "persons"
        ridge += f" * {record.n_samples:,} / (number of {units}, which is private)"
    return (
        f"Target: the minimiser of the population's regularised risk{_complete(record)} at {ridge}{domain}, "
        "parameter by parameter; it is not the unregularised coefficient."
    )


def ordinary_coefficients(record: FitRecord) -> str:
    """Return what a fit without a ridge estimates."""
    population = f"population{_complete(record)}{_weighed(record)}"
    if record.loss["name"] == "logistic":
        return f"the ordinary logistic regression coefficients of the {population}"
    return f"the coefficients with the smallest {record.loss_facts.words} loss in the {population}, without a ridge"


def _complete(record: FitRecord) -> str:
    """Return which records count, where missing values leave some out."""
    if record.table is None or not record.table.drops:
        return ""
    return f", of records with {', '.join(map(printable, record.table.drops))}"


def _weighed(record: FitRecord) -> str:
    """Return that records count by weights of the caller."""
    if record.weights is None or record.weights.left_out:
        return ""
    return ", in which rows beyond the bounds weigh less" if record.weights.far_rows else ", each record by its weight"


def _clipped(record: FitRecord) -> str:
    """Return which bounds rows or numbers are moved to."""
    if record.on_violation == "weight":
        within = "" if record.classes else " and targets lie within their bounds"
        return f"with {'rows' if record.table is None else 'numbers'} as they are, where the model holds{within}"
    if record.table is None:
        return "with rows moved to their bounds" if record.on_violation == "clip" else "of rows within their bounds"
    return f"with numbers clipped to the {'public' if record.released_bounds is None else 'released'} bounds"


def ridge_note(record: FitRecord, numbers: Numbers | None) -> str | None:
    """Return what the column "ridge" is, if there is one."""
    if numbers is None or not has_ridge(record):
        return None
    return "Ridge: the regularised minus the unregularised coefficient; unknown where released values do not show it."


def refusal_notes(numbers: Numbers | None) -> list[str]:
    """Return why rows of the table have no numbers, each reason with its rows."""
    rows: dict[str, list[str]] = {}
    if numbers is not None:
        for name, reason in zip(numbers.names, numbers.refusals, strict=True):
            if reason is not None:
                rows.setdefault(reason, []).append(printable(name))
    return [f"No estimate of {', '.join(refused)}: {reason}." for reason, refused in rows.items()]


def interval_note(record: FitRecord) -> str | None:
    """Return the reason why there are no intervals, or None if there are intervals."""
    if record.loss["name"] == Hinge.name:
        return f"No intervals: noise was added to the parameters, and {WITHOUT_INTERVALS}."
    if record.hessian is None:
        whole = len(record.steps) == 1
        spent = (
            ("the whole budget was spent on the coefficients")
            if whole
            else "the rest of the budget was spent on a report"
        )
        return f"No intervals: {spent} (moments='none')."
    reason = refusal_of(record)
    return None if reason is None else no_intervals(reason)


def no_intervals(reason: str) -> str:
    """Return a sentence of why there are no intervals."""
    return f"No intervals: {reason.replace(' for intervals', '').replace('intervals require', 'they require')}."


def noise_note(numbers: Numbers) -> str | None:
    """Return a note on the noise in the released matrices, or None if it is small."""
    if (ratio := moment_noise(numbers.record, law_of(numbers.record).cov)) <= TRUSTED_NOISE:
        return None
    size = f"{ratio:.2g} times" if math.isfinite(ratio) else "any multiple of"
    counted = numbers.record.projection == NOISE_AWARE
    return (
        f"Moment noise: the noise in the released matrices may be {size} their least eigenvalue. "
        f"{_COUNTED if counted else 'The intervals do not account for it.'} {_TESTS}"
    )


def interval_notes(record: FitRecord, covered: float | None = None) -> list[str]:
    """Return warnings, and the assumptions of the intervals besides large samples; none where there are no intervals.

    ``covered``: :attr:`Numbers.covered`, where it is known already.
    """
    if refusal_of(record):
        return []
    found = [
        *notes(record),
        *_stretch_notes(record, covered),
        _levels(record),
        _PRIVATE_NUMBER if record.neighbors == "add_remove" else None,
        curvature_note(record) if record.has_changes else None,
        _CUSTOM if record.loss["name"] == "custom" else None,
    ]
    return [said for said in found if said is not None]


def _levels(record: FitRecord) -> str | None:
    found = levels_of(record) if record.noise_law.startswith("shaped") else None
    return None if found is None else note(found)


def _stretch_notes(record: FitRecord, covered: float | None) -> list[str]:
    """Return a sentence on how much the noise in the released matrices lengthens the intervals, if they count it."""
    if record.projection != NOISE_AWARE:
        return []
    if record.newton is not None:
        if may_not_have_ended(record):
            return ["The intervals account for sampling and the noise in gradients and matrices alone."]
        counted = "sampling, the noise in gradients and matrices, and the distance from the last step to the minimum"
        return [f"The intervals account for {counted}."]
    try:
        law = law_of(record)
        stretch = law.stretch(np.eye(law.dim), 0.95)
        covered = mean_coverage(law) if covered is None else covered
    except DpciError:
        # Saved records may hold any numbers; those beyond the range of floats have no intervals.
        return []
    said = (
        "The intervals account for the noise in the released matrices. On average they are "
        f"{stretch.mean():.2f} times as long as intervals that treat the same estimates of the matrices as exact."
    )
    if not covered < TRUSTED_COVERAGE:
        return [said]
    spread = law.spread
    single = (
        "They hold on average over the parameters. Averaged over directions, the noise leaves the variance of an "
        f"estimate uncertain by about {spread:.0%} (one standard deviation); single parameters differ. Where the true "
        f"variance is {spread:.0%} above its estimate, a 95% interval covers in {covered:.1%} of repetitions."
    )
    return [f"{said} {single}"]


def mean_coverage(law: ErrorLaw) -> float:
    """Return the mean coverage of 95% intervals of single parameters where the noise hides a greater variance.

    There the true variance of an error is above the estimated one by a standard deviation of their ratio
    (docs/proofs/intervals.md, "Noise in the matrices").
    """
    return float(law.coverage_of_greater(np.eye(law.dim), 0.95).mean())


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
    if not record.has_changes:
        return None
    room = room_of(record)
    return None if room is not None and room >= trusted_room(record) else curvature_note(record)


def custom_note(record: FitRecord) -> str | None:
    """Return what the privacy claim of a custom loss relies on; None for other losses."""
    loss = record.loss
    if loss["name"] != "custom":
        return None
    further = "".join(f", {name}={loss[name]:g}" for name in ("predictor_bound", "strong_convexity") if loss[name])
    return (
        "The privacy claim relies on the declared bounds of the custom loss: "
        f"slope_bound={loss['slope_bound']:g}, curvature_bound={loss['curvature_bound']:g}{further}."
    )


def ratios_of(numbers: Numbers) -> str | None:
    """Return "odds" or "rate" where e to the power of a coefficient in the units of the table is such a ratio."""
    if not numbers.in_units or numbers.record.loss["name"] not in (*LOG_ODDS, SEVERAL, *COUNTS):
        return None
    return "rate" if numbers.record.loss["name"] in COUNTS else "odds"


def ratio_intervals(numbers: Numbers) -> ConfidenceIntervals | None:
    """Return the odds or rate ratios of all coefficients but the intercept, where there are such ratios."""
    kind = ratios_of(numbers)
    if kind is None:
        return None
    return (rate_ratios if kind == "rate" else odds_ratios)(numbers.record, numbers.differences)


def drawn_ratios(numbers: Numbers) -> ConfidenceIntervals | None:
    """Return the ratios of the table that are given, with their units behind their names, or None."""
    found = ratio_intervals(numbers)
    if found is None:
        return None
    has_unit = [not unit.startswith(_NO_UNIT) for unit in found.per]
    refusals = [refusal if known else _NO_UNIT for refusal, known in zip(found.refusals, has_unit, strict=True)]
    given = given_rows(replace(found, refusals=tuple(refusals)))
    return with_units(given) if given.names else None


def with_units(found: ConfidenceIntervals) -> ConfidenceIntervals:
    """Return intervals with their units behind their names."""
    names = (f"{name}, {unit}" if unit else name for name, unit in zip(found.names, found.per, strict=True))
    return replace(found, names=tuple(names))


def ratio_table(numbers: Numbers) -> Table | None:
    """Return the odds or rate ratios that have a unit, with intervals; None where there are none."""
    found, what = ratio_intervals(numbers), ratios_of(numbers)
    if found is None:
        return None
    columns = zip(found.names, found.per, found.estimate, found.lower, found.upper, found.refusals, strict=True)
    rows = [
        [name, unit, *_ratio_cells(ratio, lower, upper, refused=refusal is not None)]
        for name, unit, ratio, lower, upper, refusal in columns
        if not unit.startswith(_NO_UNIT)
    ]
    caption = f"{format_percent(found.level)} confidence intervals of {what} ratios"
    return Table(["name", "unit", f"{what} ratio", "lower", "upper"], rows, caption) if rows else None


def _ratio_cells(ratio: float, lower: float, upper: float, *, refused: bool) -> list[str]:
    if refused:
        return [NOT_GIVEN, "-", "-"]
    return [f"{number:{_digits(lower, upper)}}" for number in (ratio, lower, upper)]


def _digits(lower: float, upper: float) -> str:
    """Return the format of a positive number of which only an interval is known."""
    width = upper - lower
    return number_format(width / 4.0, upper, digits=ERROR_DIGITS) if np.isfinite(width) else ".3g"
