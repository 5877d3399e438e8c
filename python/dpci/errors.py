"""Exceptions and warnings: what they are called, and where everything else imports them from."""

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


class DpciError(Exception):
    """Base class of every error that dpci raises."""


class InvalidInput(DpciError, ValueError):
    """An argument breaks a rule; the message states the rule, then the value."""


class RowNormViolation(DpciError, ValueError):
    """A row of X is longer than the public bound ``row_norm``."""


class RegularizationTooSmall(DpciError, ValueError):
    """A mechanism or a bound does not work at this ``l2_strength`` and budget; the message names the least one."""


class NotConverged(DpciError):
    """The minimiser could not be certified; nothing was released."""


class BudgetExceeded(DpciError):
    """The requested spend exceeds the remaining budget. Nothing was computed."""


class ReleaseFailed(DpciError):
    """A release failed after its budget was spent from a ledger with private errors. The reason is not reported."""


class LedgerError(DpciError):
    """A ledger cannot be read or written: its file is damaged, foreign, locked or full. Nothing was released."""


class MissingExtra(DpciError, ImportError):
    """A package that dpci works without is missing or too old: ``name``; the message says what to install."""


class DpciWarning(UserWarning):
    """Base class of the warnings of dpci."""


class PrivacyLeakWarning(DpciWarning):
    """A value that must be public was computed from the data, or a computation is not private at all."""


class DpciDeprecationWarning(DpciWarning, FutureWarning):
    """Something that a later version will not have; the message says since when, until when, and what to use."""


class SeededNoiseWarning(DpciWarning):
    """The noise came from the caller's seed: whoever knows the seed can subtract it."""


class MomentNoiseWarning(DpciWarning):
    """The noise in the released matrices is large: coverage, or the size of a joint test, is less certain."""


class CurvatureWarning(DpciWarning):
    """The curvature of the loss may change within the errors of the released parameters.

    Intervals may then be too short.
    """
