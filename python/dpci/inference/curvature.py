"""Checks whether the curvature of a loss can change within the errors of a fit.

The Huber hinge is linear below margin 1 - h, and the smooth hinge nearly so. With balanced classes the minimiser moves
to the point where the curvature begins. The Hessian at the released parameters can then differ from the mean Hessian
between them and their target, and intervals can be too short (docs/proofs/intervals.md, "Losses with a flat part"). The
curvature of Huber's loss and of the quantile loss is that of residuals within the width k or s of 0. The checks use
released values only, so they are post-processing.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.costs import noise_of
from dpci.errors import DpciError
from dpci.inference.intervals import estimates_of, law_of, refusal_of
from dpci.released.record import NOISE_AWARE, FitRecord

TRUSTED_ROOM = 3.0
"""Least :func:`curvature_room` without a warning. In a study, nearly all intervals that missed had a smaller one."""

TRUSTED_WIDTH = 1.0
"""The same for losses of real targets, whose residuals are spread more evenly than margins."""

_PART = 0.5
"""Least part of the mean squared errors that the first parameter causes in predictors, with which others are named."""


def moved_parameters(record: FitRecord, cov: NDArray[np.float64]) -> tuple[str, ...]:
    """Return the parameters whose errors move the rows with curvature, the one that moves them most first.

    The mean squared error of these rows' predictors, by which :func:`curvature_room` divides, is a sum over pairs of
    parameters. Returned are those whose own terms are at least half of the greatest, and the intercept, whose error
    moves all rows at once.
    """
    if record.hessian is None or record.gradient_cov is None:
        return ()
    with np.errstate(all="ignore"):
        rows = _curved_rows(record, record.hessian, record.gradient_cov)
        parts = np.maximum(np.diag(rows), 0.0) * np.diag(cov)
        least = _PART * parts.max()
        moved = parts >= least
    if not least > 0.0:
        return ()
    moved[-1] |= record.intercept_scale is not None
    return tuple(record.names[j] for j in np.argsort(-parts) if moved[j])


def _curved_rows(
    record: FitRecord, hessian: NDArray[np.float64], gradient_cov: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the released sum over the rows with curvature; for losses of real targets over all, by squared slopes."""
    return gradient_cov if record.loss_facts.width is not None else hessian - record.l2_strength * np.eye(len(hessian))


def curvature_room(record: FitRecord) -> float | None:
    """Return the distance of the rows with curvature from the point where the curvature changes, in standard errors.

    The data part of the released Hessian is a sum over the rows with curvature, weighted by their curvature. Together
    with the released parameters it determines the root mean square of these rows' predictors. Together with the
    covariance of the errors it determines the root mean square error of these predictors. The curvature of the Huber
    hinge begins at margin 1 - h; that of the smooth hinge changes by a factor e over a distance s.

    Of Huber's loss and the quantile loss, whose curvature is that of residuals around 0, the distance is the width k or
    s. The errors are those of all rows' predictors, weighted by their squared slopes in the released covariance of the
    gradients, which the noise hides less.

    The function returns None for other losses and if the released matrix shows no rows, and 0 if noise in a matrix that
    was not projected hides them.
    """
    law_of(record)  # refused without intervals
    if not record.has_changes or record.hessian is None or record.gradient_cov is None:
        return None
    cov = estimates_of(record).cov()
    scale, loss = record.intercept_scale, record.loss
    # Saved records may hold any numbers; those beyond the range of floats show nothing.
    with np.errstate(all="ignore"):
        rows = _curved_rows(record, record.hessian, record.gradient_cov)
        # The weight of the rows: exact where each ends in a constant; otherwise no row is longer than the bound.
        greatest, unit = (np.trace(rows), record.row_norm) if scale is None else (rows[-1, -1], scale)
        weight = float(greatest / unit / unit)
        error, square = float((rows * cov).sum()), float(record.params @ rows @ record.params)
    needs = (weight, error) if record.loss_facts.width is not None else (weight, error, square)
    if not (min(needs) > 0.0 and math.isfinite(sum(needs))):
        # Noise that was not projected away can hide the rows; nothing then shows that there is room.
        is_hidden = record.projection == NOISE_AWARE and noise_of(record.steps, "hessian") is not None
        return 0.0 if is_hidden else None
    if "s" in loss or "k" in loss:
        distance = float(loss["s"] if "s" in loss else loss["k"])
    else:
        distance = math.sqrt(square / weight) - (1.0 - float(loss["h"]))
    return distance / math.sqrt(error / weight)


def trusted_room(record: FitRecord) -> float:
    """Return the least room of this loss without a warning."""
    return TRUSTED_WIDTH if record.loss_facts.width is not None else TRUSTED_ROOM


def shown(room: float) -> str:
    """Return a room as text, rounded down to a tenth. A negative room, which is due to noise, is shown as 0."""
    return f"{max(math.floor(10.0 * room), 0.0) / 10.0:g}"


def room_of(record: FitRecord) -> float | None:
    """Return :func:`curvature_room`, or None if there are no intervals."""
    try:
        return None if refusal_of(record) is not None else curvature_room(record)
    except DpciError:
        return None


def curvature_note(record: FitRecord) -> str:
    """Return what the intervals of a fit assume of the changes of the curvature, as sentences."""
    room, width = room_of(record), record.loss_facts.width
    if width is not None:
        note = (
            "The intervals assume that the errors of the predictors are small against "
            f"{record.loss_facts.width_words}, the width of the residuals at which the loss has curvature, or that "
            "residuals are spread smoothly there."
        )
        return note + (
            "" if room is None else f" In this fit the width is {shown(room)} standard errors of the predictors."
        )
    if room is None:
        size = "The released Hessian shows no rows with curvature."
    elif room < TRUSTED_ROOM:
        size = (
            f"In this fit the rows with curvature are {shown(room)} standard errors of their predictors from that "
            f"point, which is less than {TRUSTED_ROOM:g}."
        )
    else:
        size = (
            f"In this fit the rows with curvature are on average {shown(room)} standard errors of their predictors "
            "from that point."
        )
    return (
        f"The {record.loss_facts.words} is flat around margin 0. Intervals can be too short if many rows lie near "
        "the point where its curvature changes, as they do with balanced classes. Released values cannot show "
        f"whether this affects only a group of rows. {size}"
    )
