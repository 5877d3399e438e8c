"""The exact ex-post privacy losses of a released model, by which its bounds are judged. Never private."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.base.validation import check_threads
from dpci.data.arrays import Table
from dpci.errors import InvalidInput, PrivacyLeakWarning

if TYPE_CHECKING:
    from dpci.per_instance.bounds import Report


@dataclass(frozen=True, eq=False)
class ExPostLosses:
    """Exact losses of the released parameters by record. Not private: they read the training data.

    Attributes
    ----------
    signed : numpy.ndarray of shape (n_records,)
        log p_D(params) / p_D'(params): positive where the parameters are likelier on the data as they are, negative
        where they are likelier without (a member) or with (another) the record.
    member : numpy.ndarray of shape (n_records,)
        Whether the record was taken to be in the data.
    """

    signed: NDArray[np.float64]
    member: NDArray[np.bool_]
    private: ClassVar[bool] = False

    @property
    def absolute(self) -> NDArray[np.float64]:
        """Absolute losses, shape (n_records,), which ``eps1`` of a report bounds."""
        return np.abs(self.signed)


def ex_post_losses_not_private(
    report: "Report",
    X: Table,
    y: ArrayLike,
    records: Table,
    targets: ArrayLike,
    *,
    member: ArrayLike,
    n_threads: int | None = None,
    stacklevel: int = 2,
) -> ExPostLosses:
    """Compute the exact privacy losses of the released parameters for records. NOT PRIVATE: reads the training data.

    Parameters
    ----------
    report : Report
        Made from ``X`` and ``y`` by :func:`dpci.per_instance.report`.
    X, y
        The training data, as for the report.
    records : array-like of shape (n_records, n_features)
        The records whose losses are wanted.
    targets : array-like of shape (n_records,)
        Their targets.
    member : bool or array-like of bool of shape (n_records,)
        Whether each record is in the training data: it is then compared with being removed, otherwise with being added.
    n_threads : int, optional
        Threads; None: all cores.
    stacklevel : int
        Where the warning points: 1 is this function, 2 its caller.

    Returns
    -------
    ExPostLosses
        ``signed`` and ``absolute``, each of shape (n_records,).

    Raises
    ------
    InvalidInput
        For malformed data, or a record taken for a member that the data cannot hold.

    Warns
    -----
    PrivacyLeakWarning
        Always.
    """
    # The compiled function behind the report is no part of its face.
    bounds = getattr(report, "_bounds", None)
    if not isinstance(bounds, _core.RecordBounds):
        raise InvalidInput(f"report must be a Report of dpci.per_instance, got {report!r}")
    n_threads = check_threads(n_threads)
    features, labels = report.encoded(X, y)
    rows, row_targets = report.encoded(records, targets)
    inside = _flags(member, rows.shape[0])
    warnings.warn(
        "exact privacy losses are NOT PRIVATE: they read the training data", PrivacyLeakWarning, stacklevel=stacklevel
    )
    if rows.shape[0] == 0:
        return ExPostLosses(np.empty(0), inside)
    signed = bounds.ex_post_losses_not_private(
        features.values, labels, rows.values, row_targets, inside, n_threads=n_threads
    )
    return ExPostLosses(signed, inside)


def _flags(member: ArrayLike, n_records: int) -> NDArray[np.bool_]:
    try:
        flags = np.asarray(member)
    except ValueError as error:
        raise InvalidInput(f"member must be True, False or an array of them, got {member!r}") from error
    if flags.dtype != np.bool_ or flags.shape not in {(), (n_records,)}:
        raise InvalidInput(
            f"member must be True, False or an array of them of shape ({n_records},), "
            f"got dtype {flags.dtype} and shape {flags.shape}"
        )
    return np.array(np.broadcast_to(flags, n_records))
