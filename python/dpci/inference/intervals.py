"""Estimates of linear functions of a target: the law of their errors, and their intervals as an object."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from dpci import _core
from dpci.base.tables import ERROR_DIGITS, format_percent, new_frame, number_format
from dpci.base.validation import check_choice, check_count, check_fraction, check_seed
from dpci.errors import InvalidInput
from dpci.inference.error_law import ErrorLaw, error_law, last_step, matrix_noise
from dpci.inference.simultaneous import bonferroni_level, joint_level
from dpci.inference.validity import refusal
from dpci.inference.wald import Method, WaldTest, hypothesis_values, wald_test
from dpci.losses import LOG_ODDS
from dpci.released.fit_record import FitRecord
from dpci.released.newton import Newton
from dpci.shown.displayed import Displayed
from dpci.shown.document import Document, Paragraph, Table
from dpci.shown.text import table_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ConfidenceIntervals"]

_F64 = NDArray[np.float64]

# What the parameters of a fit with a schema are of: `conf_int` and `wald_test` of the fit, and of `in_units()`.
SCALED, OF_TABLE = "scaled columns", "units of the table"


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceIntervals(Displayed):
    """Confidence intervals; ``numpy.asarray`` gives an array of shape (m, 2).

    Attributes
    ----------
    names : tuple of str
        Parameters, contrasts or rows.
    estimate : numpy.ndarray of shape (m,)
        Released parameters or contrasts of them.
    lower, upper : numpy.ndarray of shape (m,)
        Bounds.
    level : float
        Probability, before the data and the noise are drawn, that an interval covers its target; for simultaneous
        intervals, that all of them do.
    method : str
        "exact" or "monte_carlo".
    simultaneous : str or None
        How the intervals cover together, "bonferroni" or "max_z"; None for intervals that cover one by one.
    refusals : tuple of str or None
        The reason why a row has no interval, but NaN; None for a row that has one. Used for the unregularised target
        only.
    units : str
        Kind of the rows: "scaled columns" or "units of the table" for parameters of a fit with a schema, "odds ratios"
        or "rate ratios"; otherwise empty.
    per : tuple of str
        Unit or reference of each row, such as "per year" or "against F"; empty where none is known.
    """

    names: tuple[str, ...]
    estimate: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    level: float
    method: str
    simultaneous: str | None = None
    refusals: tuple[str | None, ...] = ()
    units: str = ""
    per: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.per:
            object.__setattr__(self, "per", ("",) * len(self.names))
        if not self.refusals:
            object.__setattr__(self, "refusals", (None,) * len(self.names))
        for array in (self.estimate, self.lower, self.upper):
            array.flags.writeable = False

    @property
    def length(self) -> NDArray[np.float64]:
        """Length of each interval."""
        return self.upper - self.lower

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return iter([(float(low), float(high)) for low, high in zip(self.lower, self.upper, strict=True)])

    def __array__(
        self,
        dtype: DTypeLike | None = None,
        copy: bool | None = None,  # noqa: FBT001  # the signature is numpy's
    ) -> NDArray[np.float64]:
        if copy is False:
            raise ValueError("the bounds are stored apart, so an array of them is always a copy, got copy=False")
        return np.column_stack([self.lower, self.upper]).astype(np.float64 if dtype is None else dtype, copy=False)

    def __repr__(self) -> str:
        return "\n".join([table_text(self._table()), *self._refused()])

    def _document(self) -> Document:
        return Document(parts=[self._table(), *map(Paragraph, self._refused())])

    def _table(self) -> Table:
        given = np.isfinite(self.length)
        common = None if any(self.per) else number_format(self.length[given], self.estimate[given], digits=ERROR_DIGITS)
        header, heads = ["name"], [[name] for name in self.names]
        if any(self.per):
            header, heads = ["name", "unit"], [list(head) for head in zip(self.names, self.per, strict=True)]
        rows = [
            [*head, *_row_text(numbers, common)]
            for head, *numbers in zip(heads, self.estimate, self.lower, self.upper, strict=True)
        ]
        kind = "intervals" if self.simultaneous is None else f"simultaneous intervals ({self.simultaneous})"
        title = f"{format_percent(self.level)} {kind}{f', {self.units}' if self.units else ''}"
        return Table([*header, "estimate", "lower", "upper"], rows, title)

    def _refused(self) -> list[str]:
        return [f"{name}: {reason}" for name, reason in zip(self.names, self.refusals, strict=True) if reason]

    def to_frame(self) -> "pd.DataFrame":
        """Return unit (where known), estimate, lower and upper as a pandas frame indexed by name; needs pandas."""
        unit = {"unit": np.array(self.per, dtype=object)} if any(self.per) else {}
        return new_frame({**unit, "estimate": self.estimate, "lower": self.lower, "upper": self.upper}, self.names)


def _row_text(numbers: Sequence[float], common: str | None) -> list[str]:
    """Return an estimate and its bounds as text; without a common format with one of their own."""
    estimate, lower, upper = numbers
    if common is None and np.isnan(estimate):
        return ["-", "-", "-"]
    shown = common or number_format((upper - lower) / 4.0, estimate, digits=ERROR_DIGITS)
    return [f"{number:{shown}}" for number in numbers]


def given_rows(intervals: ConfidenceIntervals) -> ConfidenceIntervals:
    """Return the intervals that are given."""
    given = np.array([reason is None for reason in intervals.refusals], dtype=bool)
    if given.all():
        return intervals
    return replace(
        intervals,
        names=tuple(compress(intervals.names, given)),
        estimate=intervals.estimate[given],
        lower=intervals.lower[given],
        upper=intervals.upper[given],
        refusals=(),
        per=tuple(compress(intervals.per, given)),
    )


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


Target: TypeAlias = Literal["regularised", "unregularised"]
TARGETS: tuple[Target, ...] = ("regularised", "unregularised")

REASONS = {
    "hidden": "the noise in the released Hessian hides how far the ridge moved it",
    "ridge_too_strong": "the ridge is too strong: one step off it may not reach the target",
    "not_seen": (
        "the noise hides it, because too few rows tell its column apart from the others, or none do if it is a sum of "
        "other columns (then leave one of them out)"
    ),
}
"""Why a contrast is not given, in words."""


class Obstacles(Protocol):
    """Whether contrasts of parameters are given."""

    def obstacles(self, contrasts: _F64, std_errors: _F64) -> list[str | None]:
        """Return the key of :data:`REASONS` for each contrast, None where it is given."""


class NewtonObstacles:
    """Directions of a fit by Newton steps along which the noise hides the Hessian."""

    def __init__(self, record: FitRecord, newton: Newton) -> None:
        self._last_step = last_step(record, newton)

    def obstacles(self, contrasts: _F64, std_errors: _F64) -> list[str | None]:  # noqa: ARG002  # as of other steps
        """Return what stands in the way of each contrast."""
        return [None if shown else "not_seen" for shown in self._last_step.shows(np.ascontiguousarray(contrasts))]


def newton_step(record: FitRecord) -> _core.NewtonStep:
    """Return the step off the ridge of a fit."""
    if record.hessian is None:
        raise InvalidInput("the unregularised target needs a released Hessian, got a fit with moments='none'")
    # Only for these losses is the check of the step's length known (docs/proofs/intervals.md).
    measured = record.loss["name"] in (*LOG_ODDS, "squared")
    if not (measured and record.loss_facts.is_likelihood):
        raise InvalidInput(
            f"the unregularised target needs loss='squared' or one of {', '.join(map(repr, LOG_ODDS))}, got "
            f"{record.loss['name']!r}"
        )
    return _core.NewtonStep(
        record.hessian,
        record.params,
        l2_strength=record.l2_strength,
        hessian_noise=matrix_noise(record, "hessian"),
        curvature=None if record.loss["name"] == "squared" else mean_curvature(record, record.hessian),
        longest_row=float(np.hypot(record.row_norm, record.intercept_scale or 0.0)),
        mechanism=record.mechanism,
    )


def mean_curvature(record: FitRecord, hessian: _F64) -> float:
    """Return the mean second derivative of the loss, as the released Hessian shows it; at least a little.

    Exact but for noise where every row ends in a constant. Otherwise no row is longer than the bound.
    """
    scale = record.intercept_scale
    data_part = hessian - record.l2_strength * np.eye(len(hessian))
    # Divided twice: a square may be beyond the range of floats.
    greatest, length = (np.trace(data_part), record.row_norm) if scale is None else (data_part[-1, -1], scale)
    found = greatest / length / length
    # A tenth of the greatest is what a model with rare cases has; below it the noise may have made it.
    return float(max(found, 0.1 * (record.curvature_bound or 0.0), np.finfo(float).tiny))


def without_ridge(law: ErrorLaw, step: _core.NewtonStep) -> ErrorLaw:
    """Return the law of the error of the parameters after the step."""
    moved = step.sampling_map
    with np.errstate(over="ignore", invalid="ignore"):
        released = sum(law.parts(np.eye(law.dim)))
        added = step.covariance + law.seal_variance * (moved @ moved.T) + step.chance(np.ascontiguousarray(released))
        least = None if law.least_sampling is None else moved @ law.least_sampling @ moved.T + added
        return replace(
            law,
            sampling=moved @ law.sampling @ moved.T + added,
            noise=step.noise_map @ law.noise,
            least_sampling=least,
            seal_variance=0.0,
        )


Simultaneous: TypeAlias = Literal["bonferroni", "max_z"]

_MONTE_CARLO_DRAWS = 10_000


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates ``map @ params + shift``, and the law of the error of ``params``.

    Parameters
    ----------
    law : ErrorLaw
        Law of ``target - params``.
    params : ndarray of shape (k,)
        Released parameters, or what follows from them.
    map : ndarray of shape (m, k)
        Functions of the parameters that are estimated.
    shift : ndarray of shape (m,)
        Constants.
    step : Obstacles, optional
        Object that says which estimates are given, such as the step off the ridge that made ``params``; None: all are.
    """

    law: ErrorLaw
    params: _F64
    map: _F64
    shift: _F64
    step: Obstacles | None = None

    @classmethod
    def of_parameters(cls, law: ErrorLaw, params: _F64) -> "Estimates":
        """Return those of the parameters themselves."""
        k = len(params)
        return cls(law, params, np.eye(k), np.zeros(k))

    @classmethod
    def off_ridge(cls, law: ErrorLaw, params: _F64, step: _core.NewtonStep) -> "Estimates":
        """Return those of the unregularised parameters, from the law of the regularised ones."""
        return replace(cls.of_parameters(without_ridge(law, step), step.map @ params), step=step)

    def refusals(self) -> tuple[str | None, ...]:
        """Return why an estimate is not given, None for each that is."""
        if self.step is None:
            return (None,) * len(self.map)
        found = self.step.obstacles(np.ascontiguousarray(self.map), self._all_std_errors())
        return tuple(None if obstacle is None else REASONS[obstacle] for obstacle in found)

    def given(self) -> NDArray[np.bool_]:
        """Return which estimates are given."""
        return np.array([refusal is None for refusal in self.refusals()], dtype=bool)

    def check_given(self, labels: tuple[str, ...]) -> None:
        """Refuse estimates that are not given."""
        for label, reason in zip(labels, self.refusals(), strict=True):
            if reason is not None:
                raise InvalidInput(f"the unregularised target must be given for {label!r}, got none: {reason}")

    def mapped(self, matrix: _F64, shift: _F64) -> "Estimates":
        """Return those of linear functions of these."""
        return replace(self, map=matrix @ self.map, shift=matrix @ self.shift + shift)

    def values(self) -> _F64:
        """Return the estimates, shape (m,); NaN where one is not given."""
        return self._shown(self._all_values())

    def std_errors(self) -> _F64:
        """Return the standard deviation of the error of each estimate, shape (m,); NaN where one is not given."""
        return self._shown(self._all_std_errors())

    def _shown(self, numbers: _F64) -> _F64:
        return numbers if self.step is None else np.where(self.given(), numbers, np.nan)

    def _all_values(self) -> _F64:
        return np.asarray(self.map @ self.params + self.shift)

    def _all_std_errors(self) -> _F64:
        variance, _ = self.law.components(self.map)
        return np.asarray(np.sqrt(variance + self.law.noise_variance(self.map)))

    def cov(self) -> _F64:
        """Return the covariance of the errors, shape (m, m); NaN where an estimate is not given."""
        fixed, mixed = self.law.parts(self.map)
        if self.step is None:
            return fixed + mixed
        given = self.given()
        return np.where(np.outer(given, given), fixed + mixed, np.nan)

    def pvalues(self) -> _F64:
        """Return two-sided p-values of "its target is 0", shape (m,); NaN where an estimate is not given."""
        found = self.law.pvalues(self.map, self._all_values())
        # What public bounds alone decide is no estimate, and nothing is tested about it.
        return self._shown(np.where(self._all_std_errors() > 0.0, found, np.nan))

    def conf_int(
        self,
        names: tuple[str, ...],
        *,
        level: float,
        method: Literal["exact", "monte_carlo"] = "exact",
        simultaneous: Simultaneous | None = None,
        n_draws: int | None = None,
        seed: int | None = None,
    ) -> ConfidenceIntervals:
        """Return one interval for each estimate; see :meth:`dpci.PrivateFit.conf_int`."""
        level = check_fraction("level", level)
        method = check_choice("method", method, ("exact", "monte_carlo"))
        if simultaneous is not None:
            check_choice("simultaneous", simultaneous, ("bonferroni", "max_z"))
            if method != "exact":
                raise InvalidInput(f"simultaneous intervals require method='exact', got method={method!r}")
        n_draws = None if n_draws is None else check_count("n_draws", n_draws)
        seed = check_seed(seed)
        if method == "exact" and simultaneous != "max_z":
            for name, given in (("n_draws", n_draws), ("seed", seed)):
                if given is not None:
                    raise InvalidInput(
                        f"{name} must be None unless method='monte_carlo' or simultaneous='max_z', which use random "
                        f"draws, got {name}={given}"
                    )
        shown = self.given()
        if not shown.all():
            # Of those that are given, each by itself or all together.
            kept = replace(self, map=self.map[shown], shift=self.shift[shown])
            some = kept.conf_int(
                tuple(compress(names, shown)),
                level=level,
                method=method,
                simultaneous=simultaneous,
                n_draws=n_draws,
                seed=seed,
            )
            columns = np.full((3, len(names)), np.nan)
            columns[:, shown] = some.estimate, some.lower, some.upper
            estimate, lower, upper = columns
            return replace(some, names=names, estimate=estimate, lower=lower, upper=upper, refusals=self.refusals())
        law, contrasts, estimate = self.law, self.map, self._all_values()
        if method == "monte_carlo":
            draws = _MONTE_CARLO_DRAWS if n_draws is None else n_draws
            parts = law.components(contrasts)
            lower, upper = _core.monte_carlo_interval(law.core_shape, *parts, level, n_draws=draws, seed=seed)
        else:
            each = level
            if simultaneous == "bonferroni":
                each = bonferroni_level(level, len(contrasts))
            elif simultaneous == "max_z":
                each = joint_level(law, contrasts, level, n_draws=n_draws, seed=seed)
            half_width = law.half_widths(contrasts, each)
            lower, upper = -half_width, half_width
        return ConfidenceIntervals(names, estimate, estimate + lower, estimate + upper, level, method, simultaneous)

    def wald_test(self, labels: tuple[str, ...], value: ArrayLike, *, method: Method, private: bool) -> WaldTest:
        """Test that the estimates' targets are these values."""
        self.check_given(labels)
        values = hypothesis_values(value, labels)
        tested = wald_test(self.law, self.params, self.map, labels, values - self.shift, method=method, private=private)
        return replace(tested, estimate=self.values(), value=values) if self.shift.any() else tested


# A record never changes, and one fit's law serves its intervals, tests and summary.
_REFUSALS: "WeakKeyDictionary[FitRecord, str | None]" = WeakKeyDictionary()
_LAWS: "WeakKeyDictionary[FitRecord, ErrorLaw]" = WeakKeyDictionary()


def refusal_of(record: FitRecord) -> str | None:
    """Return why a fit has no intervals; None if it has."""
    if record not in _REFUSALS:
        _REFUSALS[record] = refusal(record)
    return _REFUSALS[record]


def law_of(record: FitRecord) -> ErrorLaw:
    """Return the law of the errors of a fit, and refuse one without intervals."""
    if (reason := refusal_of(record)) is not None:
        raise InvalidInput(reason)
    if record not in _LAWS:
        _LAWS[record] = error_law(record)
    return _LAWS[record]


def estimates_of(record: FitRecord, target: Target = "regularised") -> Estimates:
    """Return the parameters of a fit with the law of their errors, and refuse one without intervals."""
    check_choice("target", target, TARGETS)
    law, newton = law_of(record), record.newton
    if newton is not None:
        # Without a ridge both targets are one.
        return replace(Estimates.of_parameters(law, record.params), step=NewtonObstacles(record, newton))
    if target == "regularised":
        return Estimates.of_parameters(law, record.params)
    return Estimates.off_ridge(law, record.params, newton_step(record))
