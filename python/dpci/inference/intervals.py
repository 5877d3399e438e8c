"""Estimates of linear functions of a target: the law of their errors, normal given a mixing variable, and intervals.

Everything follows from released values.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from dpci import _core
from dpci.accounting.costs import levels_scale, noise_of
from dpci.base.habits import OF_INTERVALS
from dpci.base.tables import ERROR_DIGITS, format_percent, new_frame, number_format
from dpci.base.validation import check_choice, check_count, check_fraction, check_seed, place_of
from dpci.errors import DpciError, InvalidInput
from dpci.inference.simultaneous import bonferroni_level, joint_level, shaped_draws
from dpci.inference.targets.obstacles import REASONS, NewtonObstacles
from dpci.inference.validity import refusal
from dpci.inference.wald import Method, WaldTest, hypothesis_values, wald_test
from dpci.losses import LOG_ODDS
from dpci.released.calibration import last_step
from dpci.released.newton import Newton
from dpci.released.record import NOISE_AWARE, FitRecord
from dpci.rows import core_blocks, core_rows
from dpci.shown.displayed import Displayed
from dpci.shown.document import Document, Paragraph, Table
from dpci.shown.text import table_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ConfidenceIntervals"]

_F64 = NDArray[np.float64]

# What the parameters of a fit with a schema are of: of its `scaled`, and of the fit.
SCALED, OF_TABLE = "scaled columns", "units of the table"
# Eigenvalues of a covariance that rounding alone could have made.
_DEPENDENT = 1e-12
# Draws that are made at once.
_BLOCK = 4096


@dataclass(frozen=True)
class ErrorLaw:
    """Law of ``target - params``: ``N(0, W (sampling + Omega * noise @ noise))`` given Omega and W.

    Noise in the shape of blocks is not a normal mixture: there it is ``sqrt(W) (N(0, sampling) + noise b)`` with b a
    gamma number times a uniform point of the blocks.

    W is the true variance over the estimated one, which noise in the released matrices leaves open
    (docs/proofs/intervals.md, "Intervals" and "Noise in the matrices").
    """

    sampling: _F64
    """Covariance of the sampling error, shape (k, k). Noise in the matrices can make it indefinite.

    The seal's is kept apart because the noise, too, is independent of the data.
    """
    noise: _F64
    """Matrix that multiplies the noise of the coefficients: H⁻¹/n (objective), I (output), or that of Newton steps."""
    seal_variance: float
    """Variance that the seal adds to each parameter, as if it were normal."""
    law: str
    """"gaussian" with a fixed Omega, "spherical_laplace" (Gamma((k+1)/2, scale 2 scale²)), or "shaped_laplace"."""
    scale: float
    """Standard deviation, or 1/rate."""
    least_sampling: _F64 | None = None
    """A covariance that the sampling error has at least, along every contrast."""
    factor: float = 1.0
    """Factor by which simulated releases multiplied both covariances; 1 where the matrices are taken as they are."""
    shape: float = math.inf
    """Shape of the gamma law of W, whose mean is 1; infinite where the matrices are taken as they are, and W is 1."""
    blocks: _core.RowDomain | None = None
    """Blocks of the rows and their constant, of the law "shaped_laplace"."""
    metric: _F64 | None = None
    """Variances of the coordinates of Gaussian noise over ``scale``², if they differ, shape (k,)."""

    @property
    def dim(self) -> int:
        """Number of parameters k."""
        return len(self.noise)

    @property
    def core_shape(self) -> _core.ErrorShape:
        """The laws of Omega and W as the core takes them."""
        return _core.ErrorShape(self.law, self.scale, self.dim, self.shape, self.blocks)

    @property
    def mean_omega(self) -> float:
        """Mean of Omega: the variance of one coordinate of the noise."""
        return self.scale**2 * (1 if self.law == "gaussian" else self.dim + 1)

    @property
    def noise_variances(self) -> _F64 | float:
        """Variance of each coordinate of the noise, or one number for all."""
        if self.metric is not None:
            return self.scale**2 * self.metric
        if self.blocks is None:
            return self.mean_omega
        return self.scale**2 * (self.dim + 1.0) * (self.dim + 2.0) * self.blocks.variances()

    def noise_variance(self, contrasts: _F64) -> _F64:
        """Return the variance of each contrast that the noise of the coefficients alone causes."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(((contrasts @ self.noise) ** 2 * self.noise_variances).sum(axis=1))

    def parts(self, contrasts: _F64) -> tuple[_F64, _F64]:
        """Return the covariances (m, m) of contrasts (m, k) without the noise, and of the noise at the mean Omega."""
        with np.errstate(over="ignore", invalid="ignore"):
            fixed = self._sampling(contrasts) + self.seal_variance * (contrasts @ contrasts.T)
            half = contrasts @ self.noise
            mixed = (half * self.noise_variances) @ half.T
        if not (np.isfinite(fixed).all() and np.isfinite(mixed).all()):
            raise InvalidInput("the covariance of the contrasts must be finite, got one beyond the range of floats")
        return fixed, mixed

    @property
    def cov(self) -> _F64:
        """Covariance of the errors of all parameters, shape (k, k)."""
        fixed, mixed = self.parts(np.eye(self.dim))
        return fixed + mixed

    def components(self, contrasts: _F64) -> tuple[_F64, _F64]:
        """Return each contrast's variance without the noise, and its multiplier of one coordinate of the noise.

        Of noise in the shape of blocks the multipliers of all coordinates, by contrast, as the core takes them.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            variance = ((contrasts @ self.sampling) * contrasts).sum(axis=1)
            least = 0.0 if self.least_sampling is None else ((contrasts @ self.least_sampling) * contrasts).sum(axis=1)
            variance = np.maximum(variance, least) + self.seal_variance * (contrasts**2).sum(axis=1)
            half = self._half(contrasts)
            multiplier = np.linalg.norm(half, axis=1) if self.blocks is None else half.ravel()
        if not (np.isfinite(variance).all() and np.isfinite(multiplier).all()):
            raise InvalidInput("the variance of a contrast must be finite, got one beyond the range of floats")
        return variance, multiplier

    def _half(self, contrasts: _F64) -> _F64:
        """Return the multipliers of the coordinates of the noise, which all have one variance or are in blocks."""
        half = contrasts @ self.noise
        return half if self.metric is None else half * np.sqrt(self.metric)

    def _sampling(self, contrasts: _F64) -> _F64:
        """Return the covariance (m, m) of the sampling error of contrasts, nowhere below the smallest one."""
        found = contrasts @ self.sampling @ contrasts.T
        if self.least_sampling is None:
            return found
        least = contrasts @ self.least_sampling @ contrasts.T
        if not (np.isfinite(found).all() and np.isfinite(least).all()):
            raise InvalidInput("the covariance of the contrasts must be finite, got one beyond the range of floats")
        # In coordinates in which the least covariance is I, eigenvalues below 1 become 1.
        values, vectors = np.linalg.eigh(least)
        kept = values > _DEPENDENT * max(float(values[-1]), 0.0)
        root = vectors[:, kept] * np.sqrt(values[kept])
        inverse = vectors[:, kept] / np.sqrt(values[kept])
        ratios, axes = np.linalg.eigh(inverse.T @ found @ inverse)
        half = root @ axes * np.sqrt(np.maximum(ratios, 1.0))
        return np.asarray(half @ half.T)

    def draw(self, rng: np.random.Generator, contrasts: _F64, n: int) -> _F64:
        """Return n draws of the errors of contrasts, shape (n, m); nothing else of that size is held."""
        k = self.dim
        values, vectors = np.linalg.eigh(self._sampling(np.eye(k)) + self.seal_variance * np.eye(k))
        root = contrasts @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        # No more normals than contrasts, and QR keeps each contrast's own relative accuracy.
        fixed = np.linalg.qr(root.T, mode="r")
        noise = self._half(contrasts)
        mixed = np.linalg.qr(noise.T, mode="r")
        errors = np.empty((n, len(contrasts)))
        for first in range(0, n, _BLOCK):
            block = errors[first : first + _BLOCK]
            size = len(block)
            block[:] = rng.standard_normal((size, len(fixed))) @ fixed
            if self.blocks is not None:
                block += shaped_draws(rng, self.blocks, self.scale, size) @ noise.T
            else:
                omega = np.full((size, 1), self.scale**2)
                if self.law != "gaussian":
                    omega = 2.0 * self.scale**2 * rng.standard_gamma(0.5 * (k + 1), size=(size, 1))
                block += np.sqrt(omega) * (rng.standard_normal((size, len(mixed))) @ mixed)
            if math.isfinite(self.shape):
                block *= np.sqrt(rng.standard_gamma(self.shape, size=(size, 1)) / self.shape)
        return errors

    def half_widths(self, contrasts: _F64, level: float) -> _F64:
        """Return the half width of the interval of each contrast, without Monte Carlo error."""
        return self.half_widths_of(self.components(contrasts), level)

    def half_widths_of(self, components: tuple[_F64, _F64], level: float) -> _F64:
        """Return the same from what :meth:`components` gives."""
        v, a = components
        return self.core_shape.half_widths(v, a, level)

    def stretch(self, contrasts: _F64, level: float) -> _F64:
        """Return the length of each interval over that from the same estimated matrices, taken as exact."""
        if math.isinf(self.shape):
            return np.ones(len(contrasts))
        with np.errstate(all="ignore"):
            exact = replace(
                self,
                sampling=self.sampling / self.factor,
                noise=self.noise / math.sqrt(self.factor),
                least_sampling=None if self.least_sampling is None else self.least_sampling / self.factor,
                factor=1.0,
                shape=math.inf,
            )
        return self.half_widths(contrasts, level) / exact.half_widths(contrasts, level)

    @property
    def spread(self) -> float:
        """Standard deviation of W: how far the variance of a single error may be from its estimate, as a share."""
        return 0.0 if math.isinf(self.shape) else self.shape**-0.5

    def coverage_of_greater(self, contrasts: _F64, level: float) -> _F64:
        """Return the coverage of each interval if the variance of its error is above its estimate by :attr:`spread`."""
        times = 1.0 + self.spread
        with np.errstate(over="ignore"):
            greater = replace(
                self,
                sampling=times * self.sampling,
                noise=math.sqrt(times) * self.noise,
                seal_variance=times * self.seal_variance,
                least_sampling=None if self.least_sampling is None else times * self.least_sampling,
                shape=math.inf,
            )
        return 1.0 - greater.pvalues(contrasts, self.half_widths(contrasts, level))

    def pvalues(self, contrasts: _F64, statistic: _F64) -> _F64:
        """Return the probability of an error at least as far from 0 as the statistic of each contrast."""
        v, a = self.components(contrasts)
        return self.core_shape.pvalues(v, a, statistic)


def error_law(record: FitRecord) -> ErrorLaw:
    """Return the law of the errors of a fit from its released matrices."""
    try:
        return _new_law(record) if record.newton is None else _newton_law(record, record.newton)
    except InvalidInput:
        raise
    except DpciError as error:
        raise InvalidInput(
            "the law of the errors must be within the range of floats, got matrices or scales beyond it"
        ) from error


def _new_law(record: FitRecord) -> ErrorLaw:
    hessian, gradient_cov = record.matrices
    if record.projection == NOISE_AWARE:
        law = _core.ErrorLaw.noise_aware(_noisy_matrices(record, hessian, gradient_cov))
    else:
        law = _core.ErrorLaw.plug_in(hessian, gradient_cov, record.divisor, record.mechanism)
    blocks, gaussian = record.noise_blocks, record.noise_law == "shaped_gaussian"
    return ErrorLaw(
        law.sampling,
        law.noise,
        sum(seal.std_dev**2 for seal in record.seals if seal.release == "params"),
        "gaussian" if gaussian else record.noise_law,
        record.noise_scale,
        law.least_sampling,
        law.factor,
        law.shape,
        None if gaussian else blocks,
        blocks.metric() if gaussian and blocks is not None else None,
    )


def estimated_matrices(record: FitRecord) -> tuple[_F64, _F64]:
    """Return the Hessian and the gradient covariance as estimated from the released ones."""
    hessian, gradient_cov = record.matrices
    if record.projection == NOISE_AWARE:
        return _core.estimated_matrices(_noisy_matrices(record, hessian, gradient_cov))
    return hessian, gradient_cov


def _noisy_matrices(record: FitRecord, hessian: _F64, gradient_cov: _F64) -> "_core.NoisyMatrices":
    noise = noise_of(record.steps, "gradient_cov")
    if noise is None:
        raise InvalidInput("the gradient covariance of a noise-aware fit must have noise, got a record without it")
    return {
        "hessian": hessian,
        "gradient_cov": gradient_cov,
        "n_samples": record.divisor,
        "mechanism": record.mechanism,
        "noise_law": record.noise_law,
        "noise_scale": record.noise_scale,
        "l2_strength": record.l2_strength,
        "strong_convexity": record.strong_convexity,
        "hessian_noise": noise_of(record.steps, "hessian"),
        "gradient_cov_noise": noise,
        "is_likelihood": gradients_of_likelihood(record),
        "may_be_flat": record.loss_facts.may_be_flat,
        "rows": core_blocks(record.rows, record.intercept_scale),
        "gradients": _gradients(record),
        "levels_scale": levels_scale(record.steps),
    }


def _gradients(record: FitRecord) -> tuple[_F64, tuple[float, float], _core.RowDomain, float | None] | None:
    """Return the bounds on gradients of single records; None for the multinomial loss, which has several predictors."""
    if record.loss["name"] == "multinomial" or record.curvature_bound is None:
        return None
    rows = core_rows(record.rows)
    domain = rows if isinstance(rows, _core.RowDomain) else _core.RowDomain.ball(rows)
    return record.params, (record.slope_bound, record.curvature_bound), domain, record.intercept_scale


def _newton_law(record: FitRecord, newton: Newton) -> ErrorLaw:
    """Return the law of a fit by Newton steps: that of the last step from its start, and the map of the rows."""
    law = last_step(record, newton).law()
    return ErrorLaw(law.sampling, law.noise.T, 0.0, record.noise_law, record.noise_scale, law.least_sampling)


def gradients_of_likelihood(record: FitRecord) -> bool:
    """Return whether the gradients are those of a likelihood: not with weights, or persons, whose rows depend."""
    # The multinomial loss, which has no declaration of one predictor, is one.
    likelihood = record.loss_facts.is_likelihood or record.loss["name"] == "multinomial"
    return likelihood and record.persons is None and record.weights is None


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

    _HABITS: ClassVar[Mapping[str, str]] = OF_INTERVALS

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

    def __getitem__(self, name: str) -> tuple[float, float]:
        """Return the bounds of the row of this name."""
        place = place_of(name, self.names)
        if place is None:
            raise KeyError(f"intervals must be asked for by the name of a row ({', '.join(self.names)}), got {name!r}")
        return float(self.lower[place]), float(self.upper[place])

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
        names: dict[str, list[str]] = {}
        for name, reason in zip(self.names, self.refusals, strict=True):
            if reason is not None:
                names.setdefault(reason, []).append(name)
        everything = len(names) == 1 and None not in self.refusals
        return [f"{'no interval' if everything else ', '.join(rows)}: {reason}" for reason, rows in names.items()]

    def to_frame(self) -> "pd.DataFrame":
        """Return unit (where known), estimate, lower and upper as a pandas frame indexed by name; needs pandas."""
        unit = {"unit": np.array(self.per, dtype=object)} if any(self.per) else {}
        return new_frame({**unit, "estimate": self.estimate, "lower": self.lower, "upper": self.upper}, self.names)


def _row_text(numbers: Sequence[float], common: str | None) -> list[str]:
    """Return an estimate and its bounds as text; without a common format with one of their own."""
    estimate, lower, upper = numbers
    error = (upper - lower) / 4.0
    shown = common or number_format(estimate if np.isnan(error) else error, estimate, digits=ERROR_DIGITS)
    return ["-" if np.isnan(number) else f"{number:{shown}}" for number in numbers]


def given_rows(intervals: ConfidenceIntervals) -> ConfidenceIntervals:
    """Return the intervals that are given."""
    given = np.array([reason is None for reason in intervals.refusals], dtype=bool)
    kept: dict[str, Any] = {name: getattr(intervals, name)[given] for name in ("estimate", "lower", "upper")}
    kept |= {name: tuple(compress(getattr(intervals, name), given)) for name in ("names", "per")}
    return replace(intervals, **kept, refusals=())


Target: TypeAlias = Literal["regularised", "unregularised"]
TARGETS: tuple[Target, ...] = ("regularised", "unregularised")


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
        hessian_noise=noise_of(record.steps, "hessian"),
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
        added = step.covariance + law.seal_variance * (moved @ moved.T) + step.chance(np.ascontiguousarray(law.cov))
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
    """Estimates ``map @ params + shift``, and the law of the error of ``params``."""

    law: ErrorLaw
    """Law of ``target - params``."""
    params: _F64
    """Released parameters, or what follows from them, shape (k,)."""
    map: _F64
    """Functions of the parameters that are estimated, shape (m, k)."""
    shift: _F64
    """Constants, shape (m,)."""
    step: _core.NewtonStep | NewtonObstacles | None = None
    """Object that says which estimates are given, such as the step off the ridge; None: all are."""

    @classmethod
    def of_parameters(cls, law: ErrorLaw, params: _F64) -> "Estimates":
        """Return those of the parameters themselves."""
        k = len(params)
        return cls(law, params, np.eye(k), np.zeros(k))

    @classmethod
    def off_ridge(cls, law: ErrorLaw, params: _F64, step: _core.NewtonStep) -> "Estimates":
        """Return those of the unregularised parameters, from the law of the regularised ones."""
        with np.errstate(over="ignore", invalid="ignore"):  # parameters of saved records may be any numbers
            moved = step.map @ params
        return replace(cls.of_parameters(without_ridge(law, step), moved), step=step)

    def refusals(self) -> tuple[str | None, ...]:
        """Return why an estimate is not given, None for each that is."""
        if self.step is None:
            return (None,) * len(self.map)
        if isinstance(self.step, NewtonObstacles):
            return self.step.refusals(self.map)
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
        with np.errstate(over="ignore", invalid="ignore"):  # parameters of saved records may be any numbers
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
