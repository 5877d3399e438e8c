"""Warnings about a fit, and the same as notes for its readers, from released values alone."""

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.costs import noise_of
from dpci.errors import (
    CommonLevelWarning,
    CurvatureWarning,
    DpciError,
    DpciWarning,
    FarRowsWarning,
    MomentNoiseWarning,
)
from dpci.inference.common_levels import levels_of, note
from dpci.inference.curvature import moved_parameters, room_of, shown, trusted_room
from dpci.inference.intervals import estimates_of, gradients_of_likelihood, law_of, refusal_of
from dpci.released.calibration import hides_class, last_step
from dpci.released.newton import Newton
from dpci.released.record import NOISE_AWARE, FitRecord

TRUSTED_RATIO = 10.0
"""Noise in the Hessian over the strong convexity up to which coverage was measured to be near the level."""

TRUSTED_SPREAD = 0.4
"""Greatest share by which noise may leave the variance of single estimates open without a warning.

In a study of random settings, intervals that were too short for single parameters had more (docs/intervals.md).
"""

TRUSTED_LEVERAGE = 0.75
"""Greatest change of the predictor in the step off a ridge, times its root mean square, without a warning."""

TRUSTED_GROWTH = 0.3
"""Greatest growth of the predictor of classes in the last of several Newton steps without a warning."""

TRUSTED_HIDING = 1.0
"""Greatest :func:`curvature_noise` without a warning."""

_CLEAR = 2.0
"""Standard deviations of the noise above which the curvature along a parameter is seen."""

_NAMED = 5
"""Most parameters that a warning names."""


NOTHING = "No coefficient has an interval: there is nothing to publish. The budget is spent."
"""Note on a fit whose noise hides everything."""


class Remark(NamedTuple):
    """A fact about the intervals of a fit."""

    note: str
    """The fact, for readers of the numbers."""
    warning: DpciWarning
    """The same with what to do, for whoever fits."""

    @classmethod
    def of(cls, kind: type[DpciWarning], said: str, advice: str, **values: Any) -> "Remark":  # noqa: ANN401  # of a kind
        """Return a fact and the advice that follows from it."""
        return cls(f"{said[0].upper()}{said[1:]}.", kind(f"{said}; {advice}", **values))


def remarks(record: FitRecord) -> Iterator[DpciWarning]:
    """Yield what a caller should know about the intervals of a fit."""
    yield from (remark.warning for remark in _newton(record))
    yield from (remark.warning for remark in _on_noise(record))
    yield from _on_curvature(record)
    yield from _on_levels(record)


def notes(record: FitRecord) -> list[str]:
    """Return the same for readers of the numbers, without curvature and levels, on which a summary has notes anyway."""
    return [remark.note for remark in (*_newton(record), *_on_noise(record))]


def may_not_have_ended(record: FitRecord) -> bool:
    """Return whether the steps of a fit of classes may not have come near the minimum."""
    return record.newton is not None and any(_on_steep_classes(record, record.newton))


def publishes_nothing(record: FitRecord) -> bool:
    """Return whether a fit by Newton steps has no interval at all."""
    if record.newton is None:
        return False
    return refusal_of(record) is not None or None not in estimates_of(record).refusals()


def _newton(record: FitRecord) -> Iterator[Remark]:
    if record.newton is None:
        return
    if publishes_nothing(record):
        why = refusal_of(record) or "the noise hides all of them"
        message = f"no coefficient has an interval: there is nothing to publish, and the budget is spent; {why}"
        yield Remark(NOTHING, DpciWarning(message, code="nothing_to_publish"))
        return
    # What noise hides is not given.
    yield from _on_far_rows(record.newton)
    yield from _on_steep_classes(record, record.newton)


def _on_far_rows(newton: Newton) -> Iterator[Remark]:
    if newton.is_bounded:
        said = (
            "some rows are farther out than six times the typical row, and weigh less: intervals of coefficients that "
            "depend on few rows, such as functions of a spline or rare categories, may be too short"
        )
        advice = "merge rare categories, use a polynomial in place of a spline, or pass l2_strength"
        yield Remark.of(FarRowsWarning, said, advice, radius=float(newton.radii[-1]))


def _on_steep_classes(record: FitRecord, newton: Newton) -> Iterator[Remark]:
    if record.classes is None:
        return
    step = last_step(record, newton)
    # A step off a ridge shows less of the way that is left than one that follows others.
    found, most, words = (
        (step.leverage(), TRUSTED_LEVERAGE, "the change of the predictor in the last step times its root mean square")
        if newton.ridge > 0.0
        else (step.growth(), TRUSTED_GROWTH, "the growth of the predictor in the last step")
    )
    if found > most:
        said = (
            "the calculation may not have converged: all intervals may be too short, do not publish them "
            f"({words} is {found:.2f}, above {most:g})"
        )
        advice = "use more records, a greater budget or fewer columns, or pass l2_strength"
        yield Remark.of(CurvatureWarning, said, advice, parameters=record.names)
    elif hides_class(record, newton):
        said = (
            "the noise hides the rarer class, and intervals of all coefficients may be too short: the released share "
            "of that class cannot be distinguished from 0"
        )
        advice = "use more records or a greater budget, or pass l2_strength"
        yield Remark.of(CurvatureWarning, said, advice, parameters=record.names)


def _on_noise(record: FitRecord) -> Iterator[Remark]:
    if record.newton is not None or record.projection != NOISE_AWARE or refusal_of(record) is not None:
        return
    other = " or a zCDP or (epsilon, delta) budget" if record.notion == "pure" else ""
    parameters = hidden_parameters(record)
    found = curvature_noise(record)
    if found is not None and found > TRUSTED_HIDING:
        said = (
            f"the noise in the Hessian is {found:.1f} times the mean curvature that it shows, a ratio above "
            f"{TRUSTED_HIDING:g}, so the intervals rest on an assumption about the curvature and their coverage is "
            "less certain"
        )
        advice = (
            f"use a greater l2_strength, a greater budget{other}, larger moment shares in split, or a loss with a "
            f"wider curved part{_on_hidden(parameters)}"
        )
        yield Remark.of(MomentNoiseWarning, said, advice, ratio=found, parameters=parameters)
        return
    ratio = record.noise_spectral_radius / record.strong_convexity
    # With output perturbation the Hessian enters the sampling error alone.
    if ratio > TRUSTED_RATIO and record.mechanism == "objective":
        said = (
            f"the noise in the Hessian is {ratio:.0f} times the strong convexity of the objective, a noise ratio above "
            f"{TRUSTED_RATIO:g}, so the coverage of the intervals is less certain"
        )
        advice = (
            f"to reduce the noise, use a greater l2_strength, a greater budget{other}; larger moment shares in split "
            f"usually lengthen intervals{_on_hidden(parameters)}"
        )
        yield Remark.of(MomentNoiseWarning, said, advice, ratio=ratio, parameters=parameters)
        return
    if record.loss_facts.is_likelihood or record.loss["name"] == "multinomial":
        # Either matrix tells much of the other: few single intervals are too short.
        return
    try:
        spread = law_of(record).spread
    except DpciError:
        # Matrices beyond the range of floats have no intervals.
        return
    if spread > TRUSTED_SPREAD:
        parameters = hidden_parameters(record, variances=True)
        said = (
            f"the noise in the released matrices leaves the variance of single estimates uncertain by about "
            f"{spread:.0%}, which is more than {TRUSTED_SPREAD:.0%}: intervals hold on average over the parameters, "
            "but may be too short for some of them"
        )
        advice = (
            f"use a greater budget{other}, larger moment shares in split, or a greater l2_strength"
            f"{_on_hidden(parameters, 'curvature or the variance of the gradients')}"
        )
        yield Remark.of(MomentNoiseWarning, said, advice, ratio=spread, parameters=parameters)


def curvature_noise(record: FitRecord) -> float | None:
    """Return the spectral radius of the noise in the Hessian over the mean curvature that the released Hessian shows.

    The mean curvature is the strong convexity and the mean eigenvalue of the data part, which is at least 0. It is for
    losses that are not a likelihood, and for persons and weights, if the intervals count the noise; None for other
    fits. The gradients' covariance of a likelihood is a multiple of the data part, so that less depends on the
    curvature.
    """
    if record.projection != NOISE_AWARE or gradients_of_likelihood(record) or noise_of(record.steps, "hessian") is None:
        return None
    hessian = record.hessian
    if hessian is None:
        return None
    convexity = record.strong_convexity
    with np.errstate(all="ignore"):
        mean = max(float(np.trace(hessian)) / len(hessian) - convexity, 0.0) + convexity
    return record.noise_spectral_radius / mean if mean > 0.0 else math.inf


def hidden_parameters(record: FitRecord, *, variances: bool = False) -> tuple[str, ...]:
    """Return the parameters along which the noise can hide the curvature of the data, the most hidden one first.

    Along these the released Hessian exceeds the strong convexity by less than two standard deviations of its noise;
    with ``variances`` also those along which the released variance of the gradients is less than two of its own.
    Nothing is returned where the intervals do not count the noise.
    """
    seen = _seen(record, "hessian")
    if seen is not None and variances:
        variance = _seen(record, "gradient_cov")
        seen = seen if variance is None else np.minimum(seen, variance)
    if seen is None:
        return ()
    return tuple(record.names[j] for j in np.argsort(seen) if seen[j] < _CLEAR)


def _seen(record: FitRecord, matrix: Literal["hessian", "gradient_cov"]) -> NDArray[np.float64] | None:
    """Return what a released matrix shows of the data along each parameter, in standard deviations of its noise."""
    noise = noise_of(record.steps, matrix) if record.projection == NOISE_AWARE else None
    released = record.hessian if matrix == "hessian" else record.gradient_cov
    if noise is None or released is None:
        return None
    law, size = noise
    deviation = _core.sealed_std_dev(law, scale=size, dim=len(record.names), seal_std_dev=0.0)
    shown_along = np.diag(released) - (record.strong_convexity if matrix == "hessian" else 0.0)
    with np.errstate(all="ignore"):
        return shown_along / deviation


def _on_curvature(record: FitRecord) -> Iterator[DpciWarning]:
    if record.newton is not None:
        return
    room, least = room_of(record), trusted_room(record)
    if room is None or not room < least:
        return
    moved = moved_parameters(record, estimates_of(record).cov())
    parameters = moved or hidden_parameters(record)
    least_certain = _on_moved(moved) if moved else _on_hidden(parameters)
    loss = record.loss["name"].replace("_", " ")
    if (width := record.loss_facts.width) is not None:
        message = (
            f"the width {record.loss_facts.width_words} at which the {loss} loss has curvature must be at least "
            f"{least:g} standard errors of the predictors, got {shown(room)}: intervals may be too short unless the "
            f"residuals are spread smoothly around 0; use more records, a greater {width}, or a greater l2_strength"
            f"{least_certain}"
        )
    else:
        message = (
            f"the rows with curvature under the {loss} must be at least {least:g} standard errors of their "
            f"predictors from the point where its curvature changes, got {shown(room)}: intervals may be too short; "
            f"use more records, a loss with a wider curved part, or a greater l2_strength{least_certain}"
        )
    yield CurvatureWarning(message, room=room, parameters=parameters)


def _on_moved(parameters: tuple[str, ...]) -> str:
    """Return the end of a sentence that names the parameters whose errors move the rows with curvature."""
    *others, last = parameters
    named = f"{', '.join(others)} and {last}" if others else last
    return f"; these rows move most with the errors of {named}, whose intervals are the least certain"


def _on_hidden(parameters: tuple[str, ...], hidden: str = "curvature") -> str:
    """Return the end of a sentence that names the parameters along which noise can hide the curvature."""
    if not parameters:
        return ""
    more = len(parameters) - _NAMED
    named = [*parameters[:_NAMED], *([f"{more} more"] if more > 0 else [])]
    last = f" and {named.pop()}" if len(named) > 1 else ""
    return f"; the noise can hide the {hidden} along {', '.join(named)}{last}, whose intervals are the least certain"


def _on_levels(record: FitRecord) -> Iterator[DpciWarning]:
    found = None if record.newton is not None else levels_of(record)
    if found is not None:
        message = (
            f"{note(found)} Where the columns of a group are indicators, pass "
            "mechanism=dpci.ObjectivePerturbation(moments='levels'); or give a level that is publicly known to be the "
            "most common as the reference of its column, use an (epsilon, delta) budget, more records, or "
            "rows=dpci.rows.Ball(...)"
        )
        values = {"parameters": found.parameters, "columns": found.columns, "coverage": found.coverage}
        yield CommonLevelWarning(message, **values)
