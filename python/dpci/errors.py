"""Exceptions and warnings: what they are called, and where everything else imports them from."""

from typing import Any

__all__ = [
    "BudgetExceeded",
    "CommonLevelWarning",
    "CurvatureWarning",
    "DpciError",
    "DpciWarning",
    "FarRowsWarning",
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
    """Part of an exception that programs read: a stable ``code``, and the values that broke the rule as attributes.

    The attributes survive pickling. They are None where they do not apply.
    """

    code: str = "dpci"

    def __init__(self, message: str = "", **values: object) -> None:
        super().__init__(message)
        for name, value in values.items():
            setattr(self, name, value)


class DpciError(_Described):
    """Base class of every error that dpci raises.

    Attributes
    ----------
    code
        The broken rule. Releases that fail for reasons of the machine or of the noise have the codes ``"no_entropy"``,
        ``"no_resources"``, ``"noise_tail"``, ``"not_positive_definite"`` and ``"release_not_finite"``; a Dask cluster
        without workers ``"no_workers"``, and a distribution function that could not be computed ``"not_converged"``.
    name
        The argument or the released matrix that breaks the rule, where it is one.
    value
        Its value, where that is a number, a string or a flag.
    """

    code = "error"
    name: str | None = None
    value: float | int | str | None = None


class InvalidInput(DpciError, ValueError):
    """An argument breaks a rule; the message states the rule, then the value.

    Attributes
    ----------
    code
        ``"invalid_input"``, or more precisely ``"out_of_range"``, ``"wrong_length"``, ``"no_data"``,
        ``"row_not_finite"``, ``"row_too_long"``, ``"row_too_short"``, ``"rows_changed"``,
        ``"target_not_allowed"``, ``"weight_not_allowed"``, ``"too_many_records"``,
        ``"too_many_rows"``, ``"unsupported"``, ``"invalid_loss"``, ``"different_contents"``.
    name
        The argument, where the message begins with one.
    value
        Its value, where that is a number, a string or a flag; for ``"wrong_length"`` its length, for ``"row_too_long"``
        and ``"row_too_short"`` the norm of the row, for ``"too_many_rows"`` the number of rows.
    rule
        Rule of the argument, in words: of ``"out_of_range"`` and ``"target_not_allowed"``.
    row, column
        Where in the table the value stands, from 0.
    bound
        Greatest value allowed: of ``"weight_not_allowed"`` and ``"too_many_rows"``.
    expected
        The length that it must have: of ``"wrong_length"``.
    shape
        Numbers of rows and of parameters: of ``"no_data"``.
    n_records
        The number of records: of ``"too_many_records"``.
    """

    code = "invalid_input"
    rule: str | None = None
    row: int | None = None
    column: int | None = None
    bound: float | int | None = None
    expected: int | None = None
    shape: tuple[int, int] | None = None
    n_records: float | None = None

    def __init__(self, message: str = "", **values: object) -> None:
        # Messages begin with the argument that breaks the rule, if it is one.
        name, must, _ = message.partition(" must ")
        found: dict[str, object] = {"name": name} if must and name.isidentifier() else {}
        super().__init__(message, **found | values)


class RowNormViolation(DpciError, ValueError):
    """A row of X is longer than its public bound, or a block of it than its bound.

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
    column, size
        The first column of the block, and the number of its columns.
    """

    code = "row_norm_exceeded"
    row: int | None = None
    norm: float | None = None
    bound: float | None = None
    column: int | None = None
    size: int | None = None


class RegularizationTooSmall(DpciError, ValueError):
    """A mechanism or a bound does not work at this ``l2_strength`` and budget; the message names the smallest one.

    Attributes
    ----------
    code
        ``"regularization_too_small"``, ``"ridge_below_noise"``, ``"ill_conditioned"`` or ``"too_few_digits"``.
    least
        The smallest ``l2_strength``; None for ``"too_few_digits"``.
    value
        The ``l2_strength`` given.
    epsilon
        The part of epsilon that limits it: of ``"regularization_too_small"``.
    tolerance, certificate
        The distance to the minimiser that has to be certified, and the least that can be certified for every data set:
        of ``"too_few_digits"``.
    """

    code = "regularization_too_small"
    name = "l2_strength"
    least: float | None = None
    value: float | None = None
    epsilon: float | None = None
    tolerance: float | None = None
    certificate: float | None = None


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
    reason
        Why there were no more, in words.
    """

    code = "not_converged"
    tolerance: float | None = None
    certificate: float | None = None
    iterations: int | None = None
    reason: str | None = None


class BudgetExceeded(DpciError):
    """The requested spend exceeds the remaining budget. Nothing was computed, and nothing is spent.

    Attributes
    ----------
    code
        ``"budget_exceeded"``.
    requested
        The budget that was asked for, as one of ``dpci.Budget``.
    remaining
        Part of the ledger's total that remains; None if nothing does.
    total
        The ledger's total.
    """

    code = "budget_exceeded"
    requested: Any = None
    remaining: Any = None
    total: Any = None


class ReleaseFailed(DpciError):
    """A release failed after its budget was spent from a ledger with private errors. The reason is not reported."""

    code = "release_failed"


class LedgerError(DpciError):
    """A ledger cannot be read or written: its file is damaged, foreign, locked or full. Nothing was released.

    Attributes
    ----------
    code
        ``"ledger"``, or more precisely ``"ledger_missing"`` for a file that does not exist, ``"ledger_damaged"``,
        ``"ledger_foreign"`` for a file that is not a ledger or is another one, and ``"ledger_closed"``.
    path
        The file; None of a ledger in memory.
    """

    code = "ledger"
    path: str | None = None


class MissingExtra(DpciError, ImportError):
    """A package that dpci works without is missing or too old; the message says what to install.

    Attributes
    ----------
    code
        ``"missing_extra"``.
    name
        The package, by the name under which it is imported.
    extra
        The extra of dpci that installs it.
    """

    code = "missing_extra"
    extra: str | None = None


class DpciWarning(_Described, UserWarning):
    """Base class of the warnings of dpci; each has a stable ``code``.

    Attributes
    ----------
    code
        A warning of no further kind has ``"model_not_kept"``, where a ledger could not note the hash of a model,
        ``"nothing_to_publish"``, where no coefficient of a fit by Newton steps has an interval, or ``"no_reference"``,
        where a schema gives an estimator without a ridge indicators of all categories.
    entry
        The number of the ledger's entry that paid for that model.
    """

    code = "warning"
    entry: int | None = None


class PrivacyLeakWarning(DpciWarning):
    """A value that must be public was computed from the data, or a computation is not private at all."""

    code = "privacy_leak"


class SeededNoiseWarning(DpciWarning):
    """The noise came from the caller's seed: whoever knows the seed can subtract it.

    Attributes
    ----------
    code
        ``"seeded_noise"``.
    what
        Name of what is not private: "result", "counts" and the like.
    """

    code = "seeded_noise"
    what: str | None = None


class MomentNoiseWarning(DpciWarning):
    """The noise in the released matrices is large: coverage, or the size of a joint test, is less certain.

    At a fit it is large beside the ridge (the noise ratio) or beside the mean curvature that the Hessian shows (of a
    loss that is not a likelihood), or it leaves the variance of single estimates open; single intervals are then less
    certain. At a test of several parameters it is large beside the least eigenvalue (the moment noise), and single
    intervals account for it. Of moment matrices: the noise hides a regression, or public numbers show before the
    release that it would.

    Attributes
    ----------
    code
        ``"moment_noise"``, or ``"hidden_by_noise"`` of moment matrices.
    ratio
        The noise over the smallest eigenvalue or the mean curvature, or the share of a variance that is open, as the
        message states it; None of moment matrices.
    parameters
        At a fit, the parameters along which the noise can hide the curvature, the most hidden one first; None
        elsewhere.
    """

    code = "moment_noise"
    ratio: float | None = None
    parameters: tuple[str, ...] | None = None


class CommonLevelWarning(DpciWarning):
    """Single intervals are too short for levels that most records have, and the release names them or hides which.

    Attributes
    ----------
    code
        ``"common_level"``.
    parameters, columns, coverage
        Values of ``result.common_levels``.
    """

    code = "common_level"
    parameters: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    coverage: float | None = None


class FarRowsWarning(DpciWarning):
    """Some rows are so far out that a fit by Newton steps limits what they pull at coefficients (docs/newton.md).

    Intervals of coefficients that depend on these rows alone may be too short.

    Attributes
    ----------
    code
        ``"far_rows"``.
    radius
        The released norm beyond which moved rows weigh less.
    """

    code = "far_rows"
    radius: float | None = None


class CurvatureWarning(DpciWarning):
    """The curvature of the loss may change within the errors of the released parameters.

    Intervals may then be too short.

    Attributes
    ----------
    code
        ``"curvature"``.
    room
        ``result.curvature_room``.
    parameters
        The parameters whose errors move the rows with curvature, the one that moves them most first. If the released
        Hessian shows no such rows, those along which its noise can hide the curvature. All of them, where Newton steps
        may not have ended, or noise hides the rarer class.
    """

    code = "curvature"
    room: float | None = None
    parameters: tuple[str, ...] | None = None
