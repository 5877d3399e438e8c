"""Exceptions and warnings: what they are called, and where everything else imports them from."""

from typing import Any

__all__ = [
    "BudgetExceeded",
    "CurvatureWarning",
    "DpciDeprecationWarning",
    "DpciError",
    "DpciWarning",
    "InvalidInput",
    "LedgerError",
    "MissingExtra",
    "MomentNoiseWarning",
    "NotConverged",
    "PrivacyLeakWarning",
    "RegularizationTooSmall",
    "ReleaseFailed",
    "RowNormViolation",
    "SeededNoiseWarning",
]


class _Described(Exception):
    """What a program reads of an exception: a stable ``code``, and the values that broke the rule as attributes.

    The attributes survive pickling. They are None where they do not apply.
    """

    code: str = "dpci"

    def __init__(self, message: str = "", **values: object) -> None:
        super().__init__(message)
        for name, value in values.items():
            setattr(self, name, value)


class DpciError(_Described):
    """Base class of every error that dpci raises.

    ``code`` names the broken rule. Releases that fail for reasons of the machine or of the noise have the codes
    ``"no_entropy"``, ``"no_resources"``, ``"noise_tail"``, ``"not_positive_definite"`` and ``"release_not_finite"``.
    """

    code = "error"


class InvalidInput(DpciError, ValueError):
    """An argument breaks a rule; the message states the rule, then the value.

    Attributes
    ----------
    code
        ``"invalid_input"``, or more precisely ``"out_of_range"``, ``"wrong_length"``, ``"no_data"``,
        ``"row_not_finite"``, ``"row_too_long"``, ``"row_too_short"``, ``"rows_changed"``,
        ``"target_not_allowed"``, ``"weight_not_allowed"``, ``"too_many_records"``,
        ``"too_many_rows"``, ``"unsupported"``, ``"invalid_loss"``.
    name
        The argument, where one argument breaks the rule.
    value
        Its value, where that is a number, a string or a flag; for ``"wrong_length"`` its length.
    row, column
        Where in the table the value stands, from 0.
    """

    code = "invalid_input"
    name: str | None = None
    value: float | int | str | None = None
    row: int | None = None
    column: int | None = None


class RowNormViolation(DpciError, ValueError):
    """A row of X is longer than the public bound ``row_norm``, or a block of it than its bound.

    Attributes
    ----------
    code
        ``"row_norm_exceeded"`` or ``"row_block_exceeded"``.
    row
        The first such row, from 0.
    norm
        Its norm, or the sum of the block's absolute values.
    bound
        The public bound.
    column
        The first column of the block.
    """

    code = "row_norm_exceeded"
    row: int | None = None
    norm: float | None = None
    bound: float | None = None
    column: int | None = None


class RegularizationTooSmall(DpciError, ValueError):
    """A mechanism or a bound does not work at this ``l2_strength`` and budget; the message names the least one.

    Attributes
    ----------
    code
        ``"regularization_too_small"``, ``"ridge_below_noise"``, ``"ill_conditioned"`` or ``"too_few_digits"``.
    least
        The least ``l2_strength``; None for ``"too_few_digits"``.
    value
        The ``l2_strength`` given.
    """

    code = "regularization_too_small"
    least: float | None = None
    value: float | None = None


class NotConverged(DpciError):
    """The minimiser could not be certified; nothing was released.

    Attributes
    ----------
    code
        ``"not_converged"``.
    tolerance
        The distance to the minimiser that has to be certified.
    certificate
        The distance that was certified.
    iterations
        The number of iterations.
    """

    code = "not_converged"
    tolerance: float | None = None
    certificate: float | None = None
    iterations: int | None = None


class BudgetExceeded(DpciError):
    """The requested spend exceeds the remaining budget. Nothing was computed.

    Attributes
    ----------
    code
        ``"budget_exceeded"``.
    requested
        The budget that was asked for, as one of ``dpci.Budget``.
    remaining
        What remains of the ledger's total; None if nothing does.
    """

    code = "budget_exceeded"
    requested: Any = None
    remaining: Any = None


class ReleaseFailed(DpciError):
    """A release failed after its budget was spent from a ledger with private errors. The reason is not reported."""

    code = "release_failed"


class LedgerError(DpciError):
    """A ledger cannot be read or written: its file is damaged, foreign, locked or full. Nothing was released."""

    code = "ledger"


class MissingExtra(DpciError, ImportError):
    """A package that dpci works without is missing or too old: ``name``; the message says what to install."""

    code = "missing_extra"


class DpciWarning(_Described, UserWarning):
    """Base class of the warnings of dpci; each has a stable ``code``."""

    code = "warning"


class PrivacyLeakWarning(DpciWarning):
    """A value that must be public was computed from the data, or a computation is not private at all."""

    code = "privacy_leak"


class DpciDeprecationWarning(DpciWarning, FutureWarning):
    """Something that a later version will not have; the message says since when, until when, and what to use."""

    code = "deprecated"


class SeededNoiseWarning(DpciWarning):
    """The noise came from the caller's seed: whoever knows the seed can subtract it."""

    code = "seeded_noise"


class MomentNoiseWarning(DpciWarning):
    """The noise in the released matrices is large: coverage, or the size of a joint test, is less certain.

    Of moment matrices: the noise hides a regression, or public numbers show before the release that it would.

    Attributes
    ----------
    ratio
        The noise over the least eigenvalue, as the message states it.
    """

    code = "moment_noise"
    ratio: float | None = None


class CurvatureWarning(DpciWarning):
    """The curvature of the loss may change within the errors of the released parameters.

    Intervals may then be too short.

    Attributes
    ----------
    room
        ``result.curvature_room``.
    """

    code = "curvature"
    room: float | None = None
