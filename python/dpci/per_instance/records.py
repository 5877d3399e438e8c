"""Records that a report is asked about, the bounds that it gives, and their losses after the release."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.data.arrays import Floats
from dpci.data.coded import CodedRows
from dpci.data.persons import count_records
from dpci.data.storage import Csr
from dpci.errors import InvalidInput

_F64 = NDArray[np.float64]


class Encoded(NamedTuple):
    """Records as the core takes them."""

    rows: Floats | Csr | CodedRows
    targets: _F64
    persons: NDArray[np.int64] | None
    """The number of the person of each row."""
    weights: _F64 | None

    @property
    def for_core(self) -> _core.Records:
        """The records as one object of the core."""
        return _core.Records(self.rows, self.targets, persons=self.persons, weights=self.weights)

    @property
    def n_records(self) -> int:
        """Number of rows, or of persons."""
        return count_records(len(self.targets), self.persons)


class Beside(TypedDict, total=False):
    """Values beside the rows and targets of records: the person to whom each row belongs, and its weight."""

    persons: ArrayLike | None
    weights: ArrayLike | None


class RecordLosses(NamedTuple):
    """Bounds on the privacy losses of records, each of shape (n_records,).

    A record is a row or, in a report of persons, a person; persons come in the order of their first rows.

    Attributes
    ----------
    eps1 : numpy.ndarray
        Bound on the absolute ex-post loss of the released parameters: how much likelier they are with the record than
        without it, or the other way round, as a logarithm.
    eps2 : numpy.ndarray
        Epsilon of the released gradient for this record, at half of ``delta``; 0 for a data-independent report.
    eps3 : numpy.ndarray
        Epsilon of the released Hessian for this record, at half of ``delta``; 0 for a data-independent report.
    delta : numpy.ndarray
        δ of the budget, of which ``eps2`` and ``eps3`` have one half each. ``eps1`` has none, so the bounds of a
        data-independent report hold without it.
    """

    eps1: _F64
    eps2: _F64
    eps3: _F64
    delta: _F64

    @property
    def total(self) -> _F64:
        """The sum eps1 + eps2 + eps3, shape (n_records,)."""
        return np.asarray(self.eps1 + self.eps2 + self.eps3)


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
