"""Intervals of what a released model predicts for many rows at once."""

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from dpci import _core
from dpci.data.arrays import Features
from dpci.inference.error_law import ErrorLaw
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.targets.estimates import Estimates
from dpci.losses import response
from dpci.released.fit_record import FitRecord
from dpci.released.model import in_target_units

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
    for at, block in features.blocks():
        rows = block if isinstance(block, np.ndarray) else block.toarray()
        if record.intercept_scale is not None:
            rows = np.column_stack([rows, np.full(len(rows), record.intercept_scale)])
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
    estimate, lower, upper = (in_target_units(record, response(record.loss["name"], column)) for column in columns)
    return ConfidenceIntervals(names, estimate, lower, upper, level, "exact", refusals=tuple(refusals))


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
    return _core.exact_half_widths(1.0 - share, multiplier, law.law, law.scale, law.dim, level, law.shape)
