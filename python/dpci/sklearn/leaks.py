"""Warnings of what scikit-learn does with a private model that is not private, or that costs more than one fit."""

import inspect
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sklearn.model_selection import FixedThresholdClassifier
from sklearn.utils import get_tags

from dpci.base.warn import is_within, warn_at
from dpci.errors import PrivacyLeakWarning

_FITS = (
    "{package} fits private models: each fit spends the whole budget again, and more for a record that it contains "
    "several times (bootstrap); what {package} itself computes from records or labels, such as classes, is NOT PRIVATE"
)
# Packages of scikit-learn that fit estimators which they are given, with what is to be said of them.
_FITTING = {
    "sklearn.model_selection": (
        "scikit-learn's model selection scores records without noise: its scores and its choice are NOT PRIVATE, "
        "whatever each fit spent (PrivateGridSearch chooses within one budget)"
    ),
    "sklearn.calibration": _FITS,
    "sklearn.ensemble": _FITS,
    "sklearn.feature_selection": _FITS,
    "sklearn.impute": _FITS,
    "sklearn.multiclass": _FITS,
    "sklearn.multioutput": _FITS,
    "sklearn.semi_supervised": _FITS,
}
# The package that looks into fitted estimators.
_INSPECTING = "sklearn.inspection"
# What the messages that were given during a call are kept under, in the locals of its frame.
_TOLD = "__dpci_told__"


def warn_of_fitting() -> None:
    """Warn where a package of scikit-learn that fits estimators for its own purposes is running.

    Each fit is private, but what compares fits on held-out records reads these without noise, and many fits cost many
    budgets. Called when an estimator is fitted and when it is cloned: most clones are made where the caller is, also if
    worker processes fit them.
    """
    frames = [frame for frame in _stack() if not _sets_threshold(frame)]
    for package, message in _FITTING.items():
        if any(is_within(frame, package) for frame in frames):
            _warn(message.format(package=package))
    for frame in frames:
        steps = getattr(frame.f_locals.get("self"), "steps", ()) if is_within(frame, "sklearn.pipeline") else ()
        for name in dict.fromkeys(name for _, step in list(steps)[:-1] for name in _learning(step)):
            _warn(
                f"{name} is fitted to the records without noise: what it learns, such as means and ranges, and with it "
                "the model, is NOT PRIVATE (PublicScaler takes public bounds; docs/sklearn.md, Which step leaks)"
            )


def _learning(step: Any) -> Iterator[str]:  # noqa: ANN401  # any transformer
    """Yield the names of what learns from the records in a step of a pipeline, and was not told it beforehand."""
    parts = getattr(step, "transformers", getattr(step, "transformer_list", getattr(step, "steps", None)))
    if parts is not None:
        for part in parts:
            yield from _learning(part[1])
    elif hasattr(step, "fit") and get_tags(step).requires_fit:
        told = not isinstance(getattr(step, "categories", "auto"), str) or getattr(step, "strategy", "") == "constant"
        yield from () if told else (type(step).__name__,)


def warn_of_inspection() -> None:
    """Warn where ``sklearn.inspection`` is running; called when an estimator predicts."""
    if any(is_within(frame, _INSPECTING) for frame in _stack()):
        _warn(
            f"{_INSPECTING} averages over rows and labels without noise: its results are NOT PRIVATE unless these "
            "records are public"
        )


def warn_of_score() -> None:
    """Warn that a score is a function of the labels that no noise covers."""
    _warn("a score is computed from rows and labels without noise: it is NOT PRIVATE unless these records are public")


def _warn(message: str) -> None:
    """Give a ``PrivacyLeakWarning``, once a call, that points to the line whose call led into scikit-learn or dpci."""
    *_, last = (frame for frame in _stack() if is_within(frame, "sklearn", "dpci"))
    # Python forgets which warnings it has shown whenever scikit-learn changes the filters, so the frame of the call
    # remembers: what is told dies with it.
    told = last.f_locals.setdefault(_TOLD, set())
    if message in told:
        return
    told.add(message)
    warn_at(last.f_back or last, PrivacyLeakWarning(message))


def _stack() -> Iterator[FrameType]:
    """Yield the frames on the stack, that of the caller first."""
    here = inspect.currentframe()
    return (frame for frame, _ in traceback.walk_stack(here.f_back if here else None))


def _sets_threshold(frame: FrameType) -> bool:
    """Whether this is a method of the one estimator of ``sklearn.model_selection`` that compares nothing."""
    # Only those of that package are asked: reading the locals of a frame keeps them alive as long as it runs.
    return is_within(frame, "sklearn.model_selection") and isinstance(
        frame.f_locals.get("self"), FixedThresholdClassifier
    )
