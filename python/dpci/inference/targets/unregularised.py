"""The unregularised target: one Newton step off the ridge, given where released values say that it holds."""

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.errors import InvalidInput
from dpci.inference.error_law import ErrorLaw, is_likelihood, matrix_noise
from dpci.losses import LOG_ODDS
from dpci.released.fit_record import FitRecord

_F64 = NDArray[np.float64]

Target: TypeAlias = Literal["regularised", "unregularised"]
TARGETS: tuple[Target, ...] = ("regularised", "unregularised")

REASONS = {
    "hidden": "the noise in the released Hessian hides how far the ridge moved it",
    "ridge_too_strong": "the ridge is too strong: one step off it may not reach the target",
}
"""Why a contrast of the unregularised target is not given, in words."""


def newton_step(record: FitRecord) -> _core.NewtonStep:
    """Return the step off the ridge of a fit.

    Raises
    ------
    InvalidInput
        For losses other than the logistic and squared ones, and fits without a Hessian.
    """
    if record.hessian is None:
        raise InvalidInput("the unregularised target needs a released Hessian, got a fit with moments='none'")
    # Only for these losses is the check of the step's length known (docs/proofs/intervals.md).
    measured = record.loss["name"] in (*LOG_ODDS, "squared")
    if not (measured and is_likelihood(record)):
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
