"""Coefficients in the units of a table, by a linear map of released values, and the parameters of scaled columns."""

import math
import re
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci.base.habits import INTERVALS
from dpci.base.tables import (
    estimates_as_text,
    format_percent,
    frame_by,
    new_frame,
    row_of_text,
)
from dpci.base.validation import advised, check_choice, check_flag, check_fraction
from dpci.data.arrays import read_only
from dpci.errors import InvalidInput
from dpci.inference.contrasts import Contrast, contrast_rows
from dpci.inference.intervals import (
    OF_TABLE,
    SCALED,
    TARGETS,
    ConfidenceIntervals,
    Estimates,
    Simultaneous,
    Target,
    estimates_of,
    refusal_of,
)
from dpci.inference.wald import Method, WaldTest
from dpci.losses import COUNTS, LOCATIONS, LOG_ODDS, SEVERAL
from dpci.released.record import FitRecord
from dpci.schema.columns import NumericTarget
from dpci.schema.table import Schema
from dpci.schema.transforms import counted
from dpci.shown.displayed import Displayed
from dpci.shown.document import Document, Paragraph, Table
from dpci.shown.text import as_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ScaledColumns"]

_F64 = NDArray[np.float64]
INTERCEPT = "intercept"


@dataclass(frozen=True, eq=False)
class Bare:
    """Released values and linear functions of them, without the law of their errors."""

    params: _F64
    reason: str
    """Why there are no intervals."""

    def values(self) -> _F64:
        """Return the estimates."""
        return self.params.copy()

    def mapped(self, matrix: _F64, shift: _F64) -> "Bare":
        """Return those of linear functions of these."""
        return Bare(np.asarray(matrix @ self.params + shift), self.reason)

    def std_errors(self) -> NoReturn:
        """Raise ``InvalidInput`` with the reason."""
        raise InvalidInput(self.reason)

    cov = pvalues = std_errors

    def conf_int(self, *_names: object, **_keywords: object) -> NoReturn:
        """Raise ``InvalidInput`` with the reason."""
        raise InvalidInput(self.reason)

    wald_test = conf_int


@dataclass(frozen=True, eq=False)
class Hidden:
    """Estimates of a release that was paid for and has no intervals: tables show dashes, and why."""

    params: _F64
    """Estimates, shape (m,); NaN where the noise hides them, too."""
    reason: str
    """Why there are no intervals."""

    @classmethod
    def by_noise(cls, k: int, reason: str) -> "Hidden":
        """Return k estimates that are hidden themselves."""
        return cls(np.full(k, np.nan), reason)

    def values(self) -> _F64:
        """Return the estimates."""
        return self.params.copy()

    def std_errors(self) -> _F64:
        """Return NaN for each."""
        return np.full(len(self.params), np.nan)

    pvalues = std_errors

    def cov(self) -> _F64:
        """Return NaN for each pair."""
        return np.full((len(self.params), len(self.params)), np.nan)

    def mapped(self, matrix: _F64, shift: _F64) -> "Hidden":
        """Return those of linear functions of these."""
        return Hidden(np.asarray(matrix @ self.params + shift), self.reason)

    def conf_int(
        self, names: tuple[str, ...], *, level: float, simultaneous: Simultaneous | None = None, **_drawn: object
    ) -> ConfidenceIntervals:
        """Return one row for each with the reason in place of an interval."""
        level, reasons = check_fraction("level", level), (self.reason,) * len(names)
        return ConfidenceIntervals(
            names, self.values(), self.std_errors(), self.std_errors(), level, "exact", simultaneous, reasons
        )

    def wald_test(self, *_asked: object, **_keywords: object) -> NoReturn:
        """Raise ``InvalidInput`` with the reason."""
        raise InvalidInput(self.reason)


def estimates_to_show(record: FitRecord, target: Target = "regularised") -> Estimates | Hidden:
    """Return the parameters of a fit for its tables, also where its released values show that there is no interval.

    A fit whose choices exclude intervals is refused.
    """
    reason = refusal_of(record)
    if reason is None or record.hessian is None or record.gradient_cov is None:
        return estimates_of(record, target)
    check_choice("target", target, TARGETS)
    given = record.newton is None and target == "regularised"
    return Hidden(record.params, reason) if given else Hidden.by_noise(len(record.params), reason)


class LinearMaps(Protocol):
    """Estimates with the law of their errors."""

    def values(self) -> _F64:
        """Return the estimates."""

    def std_errors(self) -> _F64:
        """Return the standard deviations of their errors."""

    def cov(self) -> _F64:
        """Return the covariance of their errors."""

    def pvalues(self) -> _F64:
        """Return two-sided p-values."""

    def mapped(self, matrix: _F64, shift: _F64) -> Self:
        """Return those of linear functions of these."""

    def conf_int(
        self,
        names: tuple[str, ...],
        *,
        level: float,
        simultaneous: Simultaneous | None = None,
        n_draws: int | None = None,
        seed: int | None = None,
    ) -> ConfidenceIntervals:
        """Return one interval for each."""

    def wald_test(self, labels: tuple[str, ...], value: ArrayLike, *, method: Method, private: bool) -> WaldTest:
        """Test that their targets are these values."""


class Estimated:
    """Numbers of a result that follow from its estimates, k of them."""

    __slots__ = ()

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of what is estimated."""

    @property
    def units(self) -> tuple[str, ...]:
        """Unit or reference of each estimate, such as "per year" or "against F"; empty texts without a schema."""
        return ("",) * len(self.names)

    @abstractmethod
    def _estimates(self) -> LinearMaps:
        """Return the estimates."""

    @property
    def std_errors(self) -> _F64:
        """Standard deviation of the error of each estimate, sampling and noise together, shape (k,)."""
        return read_only(self._estimates().std_errors(), self.names)

    @property
    def cov(self) -> _F64:
        """Covariance of the errors, sampling and noise together, shape (k, k)."""
        return read_only(self._estimates().cov())

    @property
    def pvalues(self) -> _F64:
        """Two-sided p-values of "the target of the estimate is 0", shape (k,); of a fit the regularised target."""
        return read_only(self._estimates().pvalues(), self.names)

    def summary_frame(self, *, level: float = 0.95) -> "pd.DataFrame":
        """Return estimate, std_error, pvalue, lower and upper as a pandas frame indexed by name; needs pandas.

        With a schema the first column is the unit of each.
        """
        return self._frame(self._estimates(), level)

    def _frame(self, estimates: LinearMaps, level: float) -> "pd.DataFrame":
        intervals = estimates.conf_int(self.names, level=level)
        units = {"unit": np.array(self.units, dtype=object)} if any(self.units) else {}
        numbers = {
            "estimate": intervals.estimate,
            "std_error": estimates.std_errors(),
            "pvalue": estimates.pvalues(),
            "lower": intervals.lower,
            "upper": intervals.upper,
        }
        return new_frame({**units, **numbers}, self.names)

    @advised(INTERVALS)
    def tidy(self, *, level: float = 0.95, exponentiate: bool = False, like: object = "pandas") -> Any:  # noqa: ANN401  # a frame
        """Return a row for each coefficient with the columns of broom's ``tidy`` in R.

        They are term, estimate, std.error, statistic, p.value, conf.low and conf.high.

        Parameters
        ----------
        level : float
            Level of the intervals, strictly between 0 and 1.
        exponentiate : bool
            Whether estimates and intervals are those of odds ratios or rate ratios: e to the power of the coefficients.
            The other columns stay as they are.
        like : {"pandas", "polars", "pyarrow"} or table
            Library of the frame, or a table of that library.
        """
        estimates = self._estimates()
        found, errors = estimates.conf_int(self.names, level=level), estimates.std_errors()
        scale = np.exp if check_flag("exponentiate", exponentiate) else np.asarray
        columns = {
            "term": list(self.names),
            "estimate": scale(found.estimate),
            "std.error": errors,
            "statistic": found.estimate / errors,
            "p.value": estimates.pvalues(),
            "conf.low": scale(found.lower),
            "conf.high": scale(found.upper),
        }
        return frame_by(like, columns)

    def _with_units(self, intervals: ConfidenceIntervals, rows: _F64) -> ConfidenceIntervals:
        """Return intervals of linear combinations with the unit of each."""
        if not any(self.units):
            return intervals
        return replace(intervals, units=OF_TABLE, per=tuple(_unit_of(row, self.units) for row in rows))


class ScaledColumns(Estimated, Displayed):
    """Parameters of the columns as a fit saw them, made by ``scaled``: encoded and divided by the schema.

    They serve a comparison with fits of encoded rows. All other results are in the units of the table.
    """

    __slots__ = ("_found", "_interval_refusal", "_joint_method", "_names", "_params", "_private")

    def __init__(
        self,
        params: _F64,
        estimates: LinearMaps,
        names: tuple[str, ...],
        *,
        joint_method: Method,
        private: bool,
        interval_refusal: str | None = None,
    ) -> None:
        self._params = params
        self._found = estimates
        self._names = names
        self._joint_method = joint_method
        self._private = private
        self._interval_refusal = interval_refusal

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, the intercept last."""
        return self._names

    @property
    def interval_refusal(self) -> str | None:
        """Why there are parameters alone; None where there are intervals."""
        return self._interval_refusal

    @property
    def params(self) -> _F64:
        """Parameters as released, shape (k,)."""
        return read_only(self._params)

    @advised(INTERVALS)
    def conf_int(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
        n_draws: int | None = None,
        seed: int | None = None,
    ) -> ConfidenceIntervals:
        """Confidence intervals of the parameters, or of linear combinations, as :meth:`dpci.PrivateFit.conf_int`."""
        rows, names = contrast_rows(contrast, self._names)
        estimates = self._found.mapped(rows, np.zeros(len(rows)))
        found = estimates.conf_int(names, level=level, simultaneous=simultaneous, n_draws=n_draws, seed=seed)
        return replace(found, units=SCALED)

    def wald_test(self, hypothesis: Contrast, value: ArrayLike = 0.0) -> WaldTest:
        """Test a linear hypothesis about the parameters, as :meth:`dpci.PrivateFit.wald_test` with method "auto"."""
        rows, labels = contrast_rows(hypothesis, self._names, what="hypothesis")
        estimates = self._found.mapped(rows, np.zeros(len(rows)))
        method: Method = "joint" if len(rows) == 1 else self._joint_method
        return replace(estimates.wald_test(labels, value, method=method, private=self._private), units=SCALED)

    def _estimates(self) -> LinearMaps:
        return self._found

    def __repr__(self) -> str:
        return as_text(self._document())

    def _document(self) -> Document:
        if self._interval_refusal is not None:
            bare = list(zip(self._names, estimates_as_text(self.params), strict=True))
            table = Table(["name", "estimate"], bare, f"parameters of the {SCALED}")
            return Document(parts=[table, Paragraph(f"no intervals: {self._interval_refusal}")])
        intervals = self.conf_int()
        columns = zip(intervals.estimate, self.std_errors, self.pvalues, intervals.lower, intervals.upper, strict=True)
        rows = [[name, *row_of_text(*row)] for name, row in zip(self._names, columns, strict=True)]
        header = ["name", "estimate", "std error", "p-value", "lower", "upper"]
        title = f"{format_percent(intervals.level)} confidence intervals of the {SCALED}"
        return Document(parts=[Table(header, rows, title)])


def _unit_of(contrast: _F64, units: tuple[str, ...]) -> str:
    """Return the unit of a combination of coefficients: "per 10 years" of ten times one per year."""
    (places,) = np.nonzero(contrast)
    return _times(float(contrast[places[0]]), units[places[0]]) if len(places) == 1 else _COMBINATION


_COMBINATION = "combination"
"""Unit of what is none of one coefficient."""


def _times(number: float, unit: str) -> str:
    """Return the unit of a multiple of a coefficient."""
    if number == 1.0:
        return unit
    found = re.fullmatch(r"per (?:([\d,]+(?:\.\d+)?) )?([^,]+)(.*)", unit)
    if found is None:  # of a category, or the intercept
        return _COMBINATION
    amount, what, where = found.groups()
    return f"per {counted(number * float((amount or '1').replace(',', '')), what)}{where}"


class UnitMap(NamedTuple):
    """The linear map from parameters to coefficients in the units of a table, their names and units."""

    matrix: _F64
    shift: _F64
    names: tuple[str, ...]
    units: tuple[str, ...]


# A record never changes.
_MAPS: "WeakKeyDictionary[FitRecord, UnitMap]" = WeakKeyDictionary()


def unit_map(record: FitRecord) -> UnitMap:
    """Return the map from the parameters of a fit with a schema to coefficients in the units of the table."""
    if record not in _MAPS:
        schema, matrix, shift = _coefficients(record)
        as_written, names, units = schema.written
        if record.intercept_scale is None:  # no column is moved then, nor is the target
            as_written, names, units = as_written[:-1], names[:-1], units[:-1]
        mapped = _of_each_predictor(record, as_written @ matrix, as_written @ shift, names)
        _MAPS[record] = UnitMap(*mapped, units * len(record.prefixes))
    return _MAPS[record]


def slopes(record: FitRecord, names: tuple[str, ...]) -> list[str]:
    """Return the names of the coefficients but those of intercepts."""
    intercepts = record.by_predictor((INTERCEPT,)) if record.intercept_scale is not None else ()
    return [name for name in names if name not in intercepts]


def _of_each_predictor(
    record: FitRecord, matrix: _F64, shift: _F64, names: tuple[str, ...]
) -> tuple[_F64, _F64, tuple[str, ...]]:
    """Return a map of the parameters of one linear predictor as that of all of them, and its names."""
    n = len(record.prefixes)
    return np.asarray(np.kron(np.eye(n), matrix), dtype=np.float64), np.tile(shift, n), record.by_predictor(names)


def _coefficients(record: FitRecord) -> tuple[Schema, _F64, _F64]:
    """Return the schema, and the map from the parameters of one linear predictor to coefficients in units of the table.

    The last coefficient is that of 1.
    """
    schema = record.table
    if schema is None:
        raise InvalidInput("units of a table need a fit with a schema (dpci.fit(..., schema=)), got one without")
    k = len(record.columns)
    # From parameters to the coefficients of the encoded columns and of 1.
    constant = np.zeros((k + 1, len(record.names) // len(record.prefixes)))
    constant[:k, :k] = np.eye(k)
    if record.intercept_scale is not None:
        constant[k, k] = record.intercept_scale
    matrix = schema.from_units().T @ constant
    shift = np.zeros(k + 1)
    if isinstance(schema.target, NumericTarget):
        offset, slope = schema.target.scaling
        if record.loss["name"] in LOCATIONS:
            matrix /= slope
            shift[k] = -offset / slope
        elif record.loss["name"] in COUNTS:  # the log of the mean of slope times the count
            shift[k] = -math.log(slope)
    return schema, matrix, shift


def odds_ratios(record: FitRecord, intervals: ConfidenceIntervals) -> ConfidenceIntervals:
    """Return intervals of odds ratios from those of differences of log odds."""
    name = record.loss["name"]
    if name not in (*LOG_ODDS, SEVERAL):
        raise InvalidInput(f"odds ratios need a logistic loss, which models log odds, got {name!r}")
    return _exponentials(intervals, "odds ratios")


def rate_ratios(record: FitRecord, intervals: ConfidenceIntervals) -> ConfidenceIntervals:
    """Return intervals of rate ratios, quotients of means, from those of differences of log means."""
    name = record.loss["name"]
    if name not in COUNTS:
        raise InvalidInput(f"rate ratios need a loss for counts, which models the log of a mean, got {name!r}")
    return _exponentials(intervals, "rate ratios")


def _exponentials(intervals: ConfidenceIntervals, what: str) -> ConfidenceIntervals:
    with np.errstate(over="ignore"):
        estimate, lower, upper = map(np.exp, (intervals.estimate, intervals.lower, intervals.upper))
    per = tuple(map(_change, intervals.per))
    return replace(intervals, estimate=estimate, lower=lower, upper=upper, units=what, per=per)


def _change(unit: str) -> str:
    """Return the unit of a ratio: that of log(1 + the number) is a change of the number itself."""
    of_log = re.search(r"\bper log [^,]+", unit)
    change = "decrease" if of_log is not None and of_log[0].endswith(" less") else "increase"
    return re.sub(r"\bper log [^,]+", f"per 2.7-fold {change} of 1 + the number", unit)
