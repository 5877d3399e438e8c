"""Whether the curvature of a loss with a flat part can change within the errors of a fit, from released values alone.

Below margin 1 - h the Huber hinge is a straight line, and the smooth hinge nearly one. Where classes balance, the
minimiser is pushed to where the curvature begins; the Hessian at the released parameters then is not the one between
them and their target, and intervals can be too short (docs/method.md, "Losses with a flat part"). Post-processing.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpci.losses import describe
from dpci.released.record import FitRecord

__all__ = ["TRUSTED_ROOM", "curvature_room", "shown", "validity_notes"]

TRUSTED_ROOM = 3.0
"""Least :func:`curvature_room` without a warning: what nearly all misses of a study had less of."""


def curvature_room(record: FitRecord, hessian: NDArray[np.float64], cov: NDArray[np.float64]) -> float | None:
    """Return how far the rows that curve the risk are from where the curvature changes, in errors of their predictors.

    The data part of the released Hessian is a sum over those rows alone, weighted by their curvature: of it and of the
    released parameters follow the root mean square of their predictors and, with the covariance of the errors, that of
    the errors of these predictors. The Huber hinge begins to curve at margin 1 - h, the smooth hinge changes its
    curvature by a factor e over s. For losses with a flat part; None where the released Hessian has no data part.
    """
    scale, loss = record.intercept_scale, record.loss
    # Saved records may hold any numbers; those beyond the range of floats show nothing.
    with np.errstate(all="ignore"):
        curved = hessian - record.l2_strength * np.eye(len(hessian))
        # The weight of the rows: exact where each ends in a constant; otherwise no row is longer than the bound.
        greatest, unit = (np.trace(curved), record.row_norm) if scale is None else (curved[-1, -1], scale)
        weight = float(greatest / unit / unit)
        error, square = float((curved * cov).sum()), float(record.params @ curved @ record.params)
    if not (weight > 0.0 and error > 0.0 and square > 0.0) or not math.isfinite(weight + error + square):
        return None
    distance = float(loss["s"]) if "s" in loss else math.sqrt(square / weight) - (1.0 - float(loss["h"]))
    return distance / math.sqrt(error / weight)


def shown(room: float) -> str:
    """Return a room in words, rounded down to a tenth; below 0 it is that of noise alone."""
    return f"{max(math.floor(10.0 * room), 0.0) / 10.0:g}"


def has_flat_part(record: FitRecord) -> bool:
    """Return whether the loss has next to no curvature around margin 0, where rows without any signal are."""
    name = record.loss["name"]
    if name == "huber_hinge":
        return float(record.loss["h"]) < 1.0
    # With a greater s the curvature at margin 0 is at least 4/10 of the greatest.
    return name == "smooth_hinge" and float(record.loss["s"]) < 0.5


def validity_notes(record: FitRecord, room: float | None) -> list[str]:
    """Return what the intervals of a fit rest on besides large samples, in sentences."""
    notes = []
    if record.neighbors == "add_remove":
        notes.append(
            "The intervals do not use the number of records, which is private. They are valid for any number that is "
            "fixed, and then on the long side, or that varies no more than a Poisson number."
        )
    if has_flat_part(record):
        if room is None:
            size = "The released Hessian shows no rows that curve it."
        elif room < TRUSTED_ROOM:
            size = f"Here the rows that curve it are {shown(room)} standard errors of a predictor from there: too near."
        else:
            size = (
                f"Here the rows that curve it are on average {shown(room)} standard errors of a predictor from there."
            )
        notes.append(
            f"The {describe(record.loss)} is flat around margin 0. Where many rows lie where its curvature changes, as "
            f"balanced classes do, intervals can be too short, and for a group of rows no release shows it. {size}"
        )
    if record.loss["name"] == "custom":
        notes.append(
            "The intervals rest on a curvature of the custom loss that changes little within the errors of the "
            "predictors. Where it jumps or vanishes they can be too short, and no release shows it."
        )
    return notes
