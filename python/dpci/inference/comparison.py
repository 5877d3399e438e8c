"""Comparison of two released models: differences of their parameters with intervals and p-values."""

from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpci.base.tables import (
    ERROR_DIGITS,
    format_percent,
    format_pvalue,
    new_frame,
    number_format,
    printable,
)
from dpci.base.validation import check_choice, check_flag, check_fraction
from dpci.errors import InvalidInput
from dpci.inference.contrasts import Contrast, contrast_rows
from dpci.inference.intervals import TARGETS, ConfidenceIntervals, Target, estimates_of
from dpci.inference.methods import FitInference
from dpci.inference.targets.differences import Difference, SimulatedDifference
from dpci.inference.targets.units import UnitMap, unit_map
from dpci.released.bounds import RELEASED
from dpci.released.choices import given_weights
from dpci.released.model import record_of
from dpci.released.record import Record
from dpci.schema.table import Schema, same_columns
from dpci.shown.displayed import Displayed
from dpci.shown.document import BANNER, Document, Paragraph, Table
from dpci.shown.text import as_text
from dpci.unit import has_far_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare"]

_F64 = NDArray[np.float64]
_CODED_APART = "two that scale or code them, or count missing values, in other ways (fit both with the same columns)"
_RELEASED_APART = (
    "two whose bounds or lists were released separately, so that their coefficients have other targets (fit the second "
    "with schema=first.schema, in a shell --schema first.json; of nested models fit the larger one alone, and test its "
    "further columns by wald_test)"
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Displayed):
    """Differences between two released models, a minus b; made by :func:`dpci.compare`, post-processing of both.

    Attributes
    ----------
    names : tuple of str
        Parameters or contrasts, m of them.
    estimate_a, estimate_b : numpy.ndarray of shape (m,)
        Estimate that each model released.
    std_errors : numpy.ndarray of shape (m,)
        Standard deviation of the error of each difference; on shared data an upper bound.
    pvalues : numpy.ndarray of shape (m,)
        Two-sided p-values of "the two targets are the same"; on shared data upper bounds.
    intervals : ConfidenceIntervals
        Intervals of the differences.
    shared_data : bool
        Whether the two models may have been fitted to the same records.
    private : bool
        False if the noise of either was seeded.
    private_n_samples : bool
        Whether the number of records of either is private (add/remove). The ridge of its target is ``l2_strength``
        times ``n_public`` over that number, so that targets differ where these ratios do.
    in_units : bool
        Whether the numbers are in the units of the table: True if both fits had a schema.
    target : {"regularised", "unregularised"}
        The target that is compared. NaN stands for a row that one of the results refuses, with the reason in
        ``intervals.refusals``.
    """

    names: tuple[str, ...]
    estimate_a: _F64
    estimate_b: _F64
    std_errors: _F64
    pvalues: _F64
    intervals: ConfidenceIntervals
    shared_data: bool
    private: bool
    private_n_samples: bool
    in_units: bool = False
    target: Target = "regularised"

    def __post_init__(self) -> None:
        for array in (self.estimate_a, self.estimate_b, self.std_errors, self.pvalues):
            array.flags.writeable = False

    @property
    def difference(self) -> _F64:
        """``estimate_a - estimate_b``, shape (m,)."""
        return self.intervals.estimate

    def to_frame(self) -> "pd.DataFrame":
        """One row for each parameter or contrast, indexed by name; needs pandas."""
        return new_frame(self._columns(), self.names)

    def summary(self) -> str:
        """Return a table of the differences, and what it rests on."""
        return as_text(self._document())

    def _document(self) -> Document:
        header = ["name", "a", "b", "a - b", "std error", "p-value", "lower", "upper"]
        columns = self._columns()
        given = np.isfinite(self.std_errors)
        # Coefficients of a table have sizes of their own.
        one = [slice(i, i + 1) for i in range(len(self.names))] if self.in_units else [given] * len(self.names)
        both = np.stack([self.estimate_a, self.estimate_b])
        digits = [number_format(self.std_errors[at], both[:, at], digits=ERROR_DIGITS) for at in one]
        shown = [
            [
                "-" if not np.isfinite(x) else format_pvalue(x) if c == "pvalue" else f"{x:{d}}"
                for x, d in zip(columns[c], digits, strict=True)
            ]
            for c in columns
        ]
        rows = [list(row) for row in zip(self.names, *shown, strict=True)]
        units = " in the units of the table" if self.in_units else ""
        data = (
            "Data: may be shared. The dependence of the sampling errors is unknown, so std errors, p-values "
            "and intervals are upper bounds."
            if self.shared_data
            else "Data: declared as two samples without a person or record in common (shared_data=False, in a shell "
            "without --shared-data)."
        )
        title = f"{format_percent(self.intervals.level)} confidence intervals of the differences{units}"
        parts = [Table(header, rows, title), *map(Paragraph, [data, *self._target_notes()])]
        return Document(parts=parts, banner=BANNER[self.private])

    def _target_notes(self) -> list[str]:
        if self.target == "unregularised":
            refused = zip(self.names, self.intervals.refusals, strict=True)
            return [
                "Target: the coefficients without a ridge.",
                *(f"No difference of {printable(name)}: {reason}." for name, reason in refused if reason),
            ]
        ridge = (
            "Add/remove: the ridge of a target is lambda * n_public / (number of records, which is private). "
            "A difference may come from these numbers."
        )
        return [ridge] if self.private_n_samples else []

    def __repr__(self) -> str:
        return self.summary()

    def _columns(self) -> dict[str, _F64]:
        return {
            "estimate_a": self.estimate_a,
            "estimate_b": self.estimate_b,
            "difference": self.difference,
            "std_error": self.std_errors,
            "pvalue": self.pvalues,
            "lower": self.intervals.lower,
            "upper": self.intervals.upper,
        }


class Comparable(Protocol):
    """A released result that may be compared with another of its kind."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""

    @property
    def params(self) -> _F64:
        """The parameters."""

    @property
    def private(self) -> bool:
        """Whether the noise was drawn for privacy."""


class DifferenceLaw(Protocol):
    """The law of the errors of differences."""

    @property
    def std_errors(self) -> _F64:
        """Standard deviation of each error."""

    def tails(self, distance: _F64, /) -> _F64:
        """Return P(|error| >= distance) for each error."""

    def half_widths(self, level: float, /) -> _F64:
        """Return the q with P(|error| <= q) = level for each error."""


class Estimated(NamedTuple):
    """Linear functions of what a result estimates, and why some are not given."""

    found: _F64
    refusals: tuple[str | None, ...]


class ComparedFacts(NamedTuple):
    """Facts that two results must have in common, and those that tell one release from another."""

    facts: dict[str, Any]
    released: _F64
    schema: Schema | None
    private_n_samples: bool
    units: UnitMap | None = None
    """From the parameters to coefficients in the units of a table, where these are compared."""
    custom_loss: bool = False
    """Whether the loss is a function of the caller's, which a release does not hold."""


def compare(
    result_a: Comparable,
    result_b: Comparable,
    *,
    contrast: Contrast | None = None,
    level: float = 0.95,
    shared_data: bool = False,
    same_loss: bool = False,
    target: Target = "regularised",
) -> Comparison:
    """Compare two released models, parameter by parameter: differences with intervals and p-values.

    Both must have comparable targets: equal names, loss, regularisation, classes, intercept and ``max_rows``, and the
    same public bounds if rows or weights were clipped to them, or rows beyond them weigh less. With
    ``target="unregularised"`` λ may differ. Under add/remove targets are comparable only if ``n_public`` over the
    private number of records is the same in both fits, and with weights only if the total over the private sum of the
    weights is; a row that ``missing="drop"`` leaves out weighs 0. No release can show these ratios
    (:attr:`Comparison.private_n_samples`). The comparison reads no data and uses no budget.

    On independent samples the errors of both add up, sampling and noise alike, and the law of their sum is exact:
    with two spherical Laplace noises a normal law with two mixing variables. (Unless the projection is "floor" or
    "cautious", its tails are computed to a few percent.) On shared records the sampling errors depend on each other in
    an unknown way. Their difference has at most the standard deviation of perfectly opposed errors, the sum of both, so
    the result is conservative. The noises are independent in both cases, unless two fits have equal seeds. With noise
    in the shape of the rows of a fit, the law is that of 200,000 simulated errors, always the same.

    Parameters
    ----------
    result_a, result_b : PrivateFit or LinearFit
        Two releases of one kind, each with intervals.
    contrast : array-like of shape (k,) or (m, k), or names, optional
        Linear combinations to compare, as in :meth:`PrivateFit.conf_int`; None: each parameter.
    level : float
        Strictly between 0 and 1; of each interval by itself.
    shared_data : bool
        True if a record may have entered both fits. With False in that case the intervals are wrong, and nothing in two
        releases can show it.
    same_loss : bool
        Only for two fits with custom losses. A release holds their declared bounds and not their functions: True
        declares that both functions are the same. Without it such fits are refused.
    target : {"regularised", "unregularised"}
        See :meth:`PrivateFit.conf_int`; for two results of :func:`dpci.fit`. Rows that one of them does not give are
        NaN, and ``intervals.refusals`` has the reasons.

    Returns
    -------
    Comparison
        Differences, standard errors, p-values and intervals; prints itself.

    Raises
    ------
    InvalidInput
        For results without intervals, or with targets that are not comparable; the message names what differs.
    """
    level = check_fraction("level", level)
    shared_data = check_flag("shared_data", shared_data)
    same_loss = check_flag("same_loss", same_loss)
    for name, result in (("result_a", result_a), ("result_b", result_b)):
        if compared_facts.dispatch(type(result)) is compared_facts.dispatch(object):
            raise InvalidInput(f"{name} must be a PrivateFit or a LinearFit, got {type(result).__name__}")
    check_choice("target", target, TARGETS)
    facts = compared_facts(result_a), compared_facts(result_b)
    _check_comparable(result_a, result_b, facts, target)
    if facts[0].custom_loss and not same_loss:
        raise InvalidInput(
            "same_loss must be True to compare two custom losses, because a release does not contain their "
            "functions, got same_loss=False"
        )
    units = _common_units(*facts)
    rows, names = contrast_rows(contrast, facts[0].facts["names"] if units is None else units.names)
    shift = np.zeros(len(rows)) if units is None else rows @ units.shift
    rows = rows if units is None else rows @ units.matrix
    estimates = estimated(result_a, rows, shift, target), estimated(result_b, rows, shift, target)
    refusals = tuple(
        next((f"in {name}, {reason}" for name, reason in zip("ab", pair, strict=True) if reason is not None), None)
        for pair in zip(*(each.refusals for each in estimates), strict=True)
    )
    given = np.array([reason is None for reason in refusals], dtype=bool)
    difference = estimates[0].found - estimates[1].found
    error = difference_law(result_a, result_b, rows[given], shared_data, target)
    columns = np.full((3, len(rows)), np.nan)
    columns[:, given] = error.half_widths(level), error.std_errors, error.tails(np.abs(difference[given]))
    half_width, std_errors, pvalues = columns
    intervals = ConfidenceIntervals(
        names,
        difference,
        difference - half_width,
        difference + half_width,
        level,
        "monte_carlo" if isinstance(error, SimulatedDifference) else "exact",
        refusals=refusals,
    )
    return Comparison(
        names,
        estimates[0].found,
        estimates[1].found,
        std_errors,
        pvalues,
        intervals,
        shared_data,
        private=result_a.private and result_b.private,
        private_n_samples=any(each.private_n_samples for each in facts),
        in_units=units is not None,
        target=target,
    )


@singledispatch
def compared_facts(result: object) -> ComparedFacts:
    """Return the facts of a result; each kind of result registers its own."""
    raise NotImplementedError  # compare refuses results of other kinds


@compared_facts.register
def _(result: FitInference) -> ComparedFacts:
    record = record_of(result)
    facts = {
        "names": record.names,
        "loss": record.loss,
        "l2_strength": record.l2_strength,
        "classes": record.classes,
        "intercept_scale": record.intercept_scale,
        "rows, to which records were clipped,": record.rows if record.on_violation == "clip" else None,
        "rows, beyond which records weigh less,": record.rows if has_far_rows(record.weights) else None,
        **facts_of_counts(record),
    }
    units = None if result.schema is None else unit_map(record)
    add_remove, custom = record.neighbors == "add_remove", record.loss["name"] == "custom"
    return ComparedFacts(facts, record.params, result.schema, add_remove, units, custom)


def _common_units(one: ComparedFacts, two: ComparedFacts) -> UnitMap | None:
    """Return the map to the units of the table of two results; None unless both had a schema."""
    if one.units is None or two.units is None:
        return None
    same = np.array_equal(one.units.matrix, two.units.matrix) and np.array_equal(one.units.shift, two.units.shift)
    if not same or one.units.units != two.units.units:
        raise InvalidInput(
            "results to be compared must have coefficients in the same units, got schemas that differ in unit=, per= "
            "or the bounds of the target: fit both with the same schema"
        )
    return one.units


def facts_of_counts(record: Record) -> dict[str, object]:
    """Return what two targets must have in common of how much records count.

    A row of its own is a person with one row, so that means over the rows of persons and over rows are comparable. The
    first m rows with weight 1/m each are another sum for each m.
    """
    persons = record.persons
    lowered = None if record.on_violation == "error" else given_weights(record.weights, record.table)
    return {
        "max_rows": None if persons is None else persons.max_rows,
        "bound of weights, to which they were lowered,": None if lowered is None else lowered.bound,
    }


@singledispatch
def estimated(result: object, rows: _F64, shift: _F64, target: Target) -> Estimated:
    """Return linear functions of the parameters of a result; each kind of result registers its own."""
    raise NotImplementedError  # compare refuses results of other kinds


@estimated.register
def _(result: FitInference, rows: _F64, shift: _F64, target: Target) -> Estimated:
    found = estimates_of(record_of(result), target).mapped(rows, shift)
    return Estimated(found.values(), found.refusals())


@singledispatch
def difference_law(result: object, other: object, rows: _F64, shared: bool, target: Target) -> DifferenceLaw:  # noqa: FBT001  # as registered
    """Return the law of the errors of the differences of two results; each kind of result registers its own."""
    raise NotImplementedError  # compare refuses results of other kinds


@difference_law.register
def _(result: FitInference, other: FitInference, rows: _F64, shared: bool, target: Target) -> DifferenceLaw:  # noqa: FBT001
    laws = tuple(estimates_of(record_of(each), target).law for each in (result, other))
    simulated = any(law.blocks is not None for law in laws)
    return (SimulatedDifference if simulated else Difference)(laws, rows, shared=shared)


def _check_comparable(
    result_a: Comparable, result_b: Comparable, facts: tuple[ComparedFacts, ComparedFacts], target: Target
) -> None:
    one, two = facts
    if set(one.facts) != set(two.facts):
        kinds = type(result_a).__name__, type(result_b).__name__
        raise InvalidInput(f"two results must be of one kind to be compared, got {kinds[0]} and {kinds[1]}")
    given = [facts.schema for facts in (one, two) if facts.schema is not None]
    differ = len(given) == 2 and not same_columns(*given)
    rule = "two results must have schemas of equal columns to be compared, got "
    # Released bounds differ by themselves, and with them the names of listed categories.
    if differ and any(column.source.startswith(RELEASED) for schema in given for column in schema.columns):
        raise InvalidInput(rule + _RELEASED_APART)
    for name, value in one.facts.items():
        other = two.facts[name]
        # Without the ridge it does not matter how strong each was.
        if value != other and not (name == "l2_strength" and target == "unregularised"):
            raise InvalidInput(f"two results must have the same {name} to be compared, got {value!r} and {other!r}")
    if differ:
        raise InvalidInput(rule + _CODED_APART)
    if result_a is result_b or np.array_equal(one.released, two.released):
        raise InvalidInput("the two results must be different releases, got the same parameters twice")
