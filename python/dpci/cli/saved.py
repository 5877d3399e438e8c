"""Files of released results, read as whatever they hold: fits, strata, tunings, regressions, per-instance reports."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from dpci.base.reading import open_at_once
from dpci.errors import InvalidInput
from dpci.model.result import PrivateFit
from dpci.multinomial.record import MultinomialRecord
from dpci.multinomial.result import MultinomialFit
from dpci.per_instance.record import ReportRecord, SavedReport
from dpci.regression.matrix import MomentMatrix, whole_regression
from dpci.regression.record import MomentRecord
from dpci.regression.result import LinearFit, RegressionRecord
from dpci.strata.record import StrataRecord
from dpci.strata.result import StrataFit
from dpci.tuning.record import TuneRecord
from dpci.tuning.result import TuneResult

Saved: TypeAlias = PrivateFit | MultinomialFit | StrataFit | TuneResult | LinearFit | MomentMatrix | SavedReport

_KINDS: Final[dict[str, Callable[[bytes], Saved]]] = {
    TuneRecord.KIND: TuneResult.from_json,
    RegressionRecord.KIND: LinearFit.from_json,
    MomentRecord.KIND: MomentMatrix.from_json,
    StrataRecord.KIND: StrataFit.from_json,
    MultinomialRecord.KIND: MultinomialFit.from_json,
    ReportRecord.KIND: SavedReport.from_json,
}
# The matrices of about 5,000 parameters.
_MOST: Final = 2**30


def read_saved_result(path: Path) -> Saved:
    """Return what a file holds; whatever names no other kind is read as a fit.

    Raises
    ------
    InvalidInput
        For a file that cannot be read, or that is damaged or no result.
    """
    try:
        # A device has no end.
        with open_at_once(path) as file:
            text = file.read(_MOST + 1)
    except OSError as error:
        msg = f"a model must be a file that can be read, got {str(path)!r}: {error.strerror}"
        raise InvalidInput(msg) from error
    if len(text) > _MOST:
        msg = f"a model must be a file of at most {_MOST:,} bytes, got {str(path)!r}"
        raise InvalidInput(msg)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None  # the reader says what is wrong
    kind = document.get("schema") if isinstance(document, dict) else None
    read = _KINDS.get(kind) if isinstance(kind, str) else None
    return PrivateFit.from_json(text) if read is None else read(text)


def read_predictor(path: Path) -> PrivateFit | LinearFit | MultinomialFit:
    """Return the released model of a file that predicts: a fit, a regression or a fit of several classes.

    Raises
    ------
    InvalidInput
        See :func:`read_model`.
    """
    found = read_saved_result(path)
    return found if isinstance(found, MultinomialFit) else read_model_or_regression(path)


def read_model_or_regression(path: Path) -> PrivateFit | LinearFit:
    """Return the released fit of a file, or its regression: of a moment matrix, that of its target on all columns.

    Raises
    ------
    InvalidInput
        See :func:`read_model`.
    """
    found = read_saved_result(path)
    if isinstance(found, MomentMatrix):
        if len(found.targets) > 1:
            msg = (
                f"the command line shows moment matrices of one target, got {', '.join(found.targets)}: "
                f"{str(path)!r} (in Python: dpci.regression.MomentMatrix.from_json(text).fit(target))"
            )
            raise InvalidInput(msg)
        return whole_regression(found, fit_intercept=True, l2_strength=0.0)
    return found if isinstance(found, LinearFit) else read_model(path)


def read_earlier(path: Path) -> PrivateFit | LinearFit | MomentMatrix:
    """Return what a plan may resemble: a released fit, a regression or a moment matrix.

    Raises
    ------
    InvalidInput
        See :func:`read_model`.
    """
    found = read_saved_result(path)
    return found if isinstance(found, LinearFit | MomentMatrix) else read_model(path)


def read_model(path: Path) -> PrivateFit:
    """Return the released fit of a file: of a tuning, that which was fitted with the choice.

    Raises
    ------
    InvalidInput
        See :func:`read_saved_result`; also for a result of another kind.
    """
    found = read_saved_result(path)
    if isinstance(found, TuneResult) and isinstance(found.result, PrivateFit):
        return found.result
    if isinstance(found, PrivateFit):
        return found
    kind = {
        TuneResult: "a model that was selected by its own score",
        LinearFit: "a regression",
        MomentMatrix: "a moment matrix",
        MultinomialFit: "a multinomial fit",
        StrataFit: "the models of several strata (StrataFit in Python has each)",
        SavedReport: "a per-instance report",
    }[type(found)]
    msg = f"the file must hold a model of dpci fit or dpci tune, got {kind}: {str(path)!r}"
    raise InvalidInput(msg)
