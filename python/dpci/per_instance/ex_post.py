"""The exact ex-post privacy losses of a released model, by which its bounds are judged. Never private."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.errors import InvalidInput
from dpci.per_instance.records import Encoded


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


def ex_post_losses(
    bounds: _core.RecordBounds,
    rows: Encoded,
    records: Encoded,
    member: NDArray[np.bool_],
    n_threads: int | None,
) -> ExPostLosses:
    """Compute the exact losses of records from encoded rows. NOT PRIVATE: reads the training data."""
    if records.n_records == 0:
        return ExPostLosses(np.empty(0), member)
    signed = bounds.ex_post_losses_not_private(rows.for_core, records.for_core, member, n_threads=n_threads)
    return ExPostLosses(signed, member)


def check_member(member: ArrayLike, n_records: int) -> NDArray[np.bool_]:
    """Return a flag for each record."""
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
