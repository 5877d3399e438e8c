"""Measures of a utility curve: the loss, the accuracy with its step made smooth, or the caller's own function."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.base.validation import broken, check_positive
from dpci.errors import InvalidInput

_F64: TypeAlias = NDArray[np.float64]

# Step of the finite differences of a gradient, relative to the size of a parameter (or to 1): the cube root of the
# rounding error, which balances it against the truncation of a central difference.
_STEP = 6e-6

_LEAST_WIDTH = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True)
class SmoothedAccuracy:
    """Mean of ``1 / (1 + exp(-margin / width))``, with the weights of rows: a differentiable accuracy.

    Parameters
    ----------
    width : float
        Width of the step on the scale of margins, finite and above zero. In the limit 0 it is the accuracy itself.
    """

    width: float = 0.1

    def __post_init__(self) -> None:
        width = check_positive("width", self.width)
        if width < _LEAST_WIDTH:  # one over it overflows
            raise InvalidInput(f"width must be at least {_LEAST_WIDTH:.4g}, got width={width}")
        object.__setattr__(self, "width", width)


@dataclass(frozen=True, slots=True)
class Metric:
    """A utility from the caller: any smooth function of the parameters.

    Parameters
    ----------
    value : callable
        ``f(params)`` for parameters of shape (k,), a finite number.
    gradient : callable
        Its gradient, shape (k,).
    hessian : callable, optional
        Its Hessian, shape (k, k). None: central differences of the gradient, where the expected utility needs it.
    """

    value: Callable[[_F64], Any]
    gradient: Callable[[_F64], Any]
    hessian: Callable[[_F64], Any] | None = field(default=None)

    def __post_init__(self) -> None:
        for name in ("value", "gradient"):
            if not callable(getattr(self, name)):
                raise broken(name, "callable", getattr(self, name))
        if self.hessian is not None and not callable(self.hessian):
            raise broken("hessian", "None or callable", self.hessian)


MetricLike: TypeAlias = Literal["loss", "smoothed_accuracy"] | SmoothedAccuracy | Metric


@dataclass(frozen=True)
class RowMetric:
    """A mean of a function of predictor and target, in which each row counts as in the fit; the core evaluates it."""

    name: str
    utility: _core.Utility
    width: float | None

    def values(self, params: _F64) -> _F64:
        """Values at each row of ``params``, shape (m,)."""
        return self.utility.means(np.ascontiguousarray(params), width=self.width)

    def gradient(self, params: _F64) -> _F64:
        """Gradient at parameters of shape (k,)."""
        return self.derivatives(params)[0]

    def derivatives(self, params: _F64) -> tuple[_F64, _F64]:
        """Gradient and Hessian there."""
        return self.utility.mean_derivatives(params, width=self.width)


@dataclass(frozen=True)
class CallerMetric:
    """A :class:`Metric`, its answers checked; it is shown copies, which it may write into."""

    metric: Metric
    name: str = "metric"

    def values(self, params: _F64) -> _F64:
        """Values at each row of ``params``, shape (m,)."""
        return np.array([float(_checked("value", self.metric.value(row.copy()), ())) for row in params])

    def gradient(self, params: _F64) -> _F64:
        """Gradient at parameters of shape (k,)."""
        return _checked("gradient", self.metric.gradient(params.copy()), params.shape)

    def derivatives(self, params: _F64) -> tuple[_F64, _F64]:
        """Gradient and Hessian there."""
        if self.metric.hessian is not None:
            hessian = _checked("hessian", self.metric.hessian(params.copy()), (len(params), len(params)))
        else:
            hessian = np.empty((len(params), len(params)))
            for j, value in enumerate(params):
                step = np.zeros(len(params))
                step[j] = _STEP * max(1.0, abs(value))
                hessian[j] = (self.gradient(params + step) - self.gradient(params - step)) / (2.0 * step[j])
        return self.gradient(params), (hessian + hessian.T) / 2.0


def check_metric(metric: object) -> SmoothedAccuracy | Metric | None:
    """Return the metric as an object; None is the loss."""
    if isinstance(metric, SmoothedAccuracy | Metric):
        return metric
    if isinstance(metric, str) and metric == "loss":
        return None
    if isinstance(metric, str) and metric == "smoothed_accuracy":
        return SmoothedAccuracy()
    raise broken(
        "metric", "'loss', 'smoothed_accuracy', dpci.utility.SmoothedAccuracy() or dpci.utility.Metric()", metric
    )


def evaluator(metric: SmoothedAccuracy | Metric | None, utility: _core.Utility) -> RowMetric | CallerMetric:
    """Return the metric on a data set."""
    if metric is None:
        return RowMetric("loss", utility, None)
    if isinstance(metric, SmoothedAccuracy):
        return RowMetric("smoothed_accuracy", utility, metric.width)
    return CallerMetric(metric)


def _checked(name: str, answer: object, shape: tuple[int, ...]) -> _F64:
    try:
        array = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} must return numbers of shape {shape}, got {answer!r}") from error
    if array.shape != shape:
        raise InvalidInput(f"{name} must return numbers of shape {shape}, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name} must return finite numbers, got {array[~np.isfinite(array)].flat[0]}")
    return array
