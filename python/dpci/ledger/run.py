"""``run``: the way of a release from its payment to its warnings, in the order of docs/ledger.md.

``Payment.due`` comes before any access to the data, and everything that looks at them happens in ``run``. With detailed
errors it checks the data and then records the spend. With private errors the spend is recorded before any data are
read, and every error from then on becomes the same error.
"""

import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar

from dpci import _core
from dpci.base.progress import hidden
from dpci.base.startup import EndedBySignal
from dpci.base.warn import warn, warn_of_seed
from dpci.data.labels import warn_of_inferred
from dpci.data.parts import PartRules
from dpci.data.rows import (
    Rows,
    Source,
    check_beside_parts,
    check_index_beside,
    check_source,
    is_dask,
    known_shape,
    read,
)
from dpci.errors import DpciWarning, InvalidInput, ReleaseFailed
from dpci.ledger.entries import Entry
from dpci.ledger.payment import Payment, PublicChoices

_FAILED = "the release failed after its budget was spent; a ledger with errors='private' does not report the reason"

_REQUESTS_TO_END = (KeyboardInterrupt, SystemExit, GeneratorExit, EndedBySignal)

Paid: TypeAlias = dict[str, Any] | None
"""Which entry of which ledger paid, as a record keeps it; None without a ledger."""


class Released(Protocol):
    """The result of a release."""

    @property
    def private(self) -> bool:
        """Whether all noise came from the operating system."""

    @property
    def digest(self) -> str:
        """The hash of the result, which the ledger keeps."""


_Spec = TypeVar("_Spec")
_Result = TypeVar("_Result", bound=Released)

Outcome: TypeAlias = tuple[_Result, Iterable[DpciWarning]]
"""A result, and warnings of what a caller should know about it, which depend on released values alone."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind(Generic[_Spec, _Result]):
    """Declaration of one kind of release; all else is the same for every kind."""

    choices: PublicChoices
    """Public choices of the release."""
    resolve: Callable[[int, int], _Spec]
    """Calibrates for a number of records and columns, and refuses impossible public choices. With private errors it is
    called before anything is spent, if both numbers are public and known."""
    release: Callable[[Rows, _Spec, Paid], Outcome[_Result]]
    """Draws the noise, and makes the result with its record."""
    parts: PartRules | None = None
    """How rows in parts are understood; None: the release takes rows in memory only."""
    arrange: Callable[[Source], Source] | None = None
    """From a source that is prepared to that which is read."""
    by_name: Callable[[Rows], _Spec] | None = None
    """Calibrates again, before the spend is written, for choices that depend on names which only the rows have."""
    sums: bool = True
    """Whether the release sums over the records: the rounding of sums is bounded only up to a number of them."""
    any_rows: bool = False
    """Whether the release takes any rows, so that none are checked before they are paid for."""
    what: str = "result"
    """Name of what is not private with a seed."""


def run(payment: Payment, kind: Kind[_Spec, _Result], source: Source) -> _Result:
    """Check, pay, read, calibrate, release, record, keep and warn.

    Parameters
    ----------
    payment : Payment
        The payment that is due.
    kind : Kind
        The declaration of what is released.
    source : Source
        Rows and targets as the caller gave them; only types and shapes are looked at before the ``with`` block.

    Raises
    ------
    InvalidInput, RowNormViolation
        See the release.
    BudgetExceeded
        If others have spent meanwhile.
    LedgerError
        If the spend could not be written for certain.
    ReleaseFailed
        With private errors, for whatever happens once the spend is written.
    """
    if kind.parts is not None:
        check_beside_parts(source)
        if source.prepare is None:
            check_source(source, kind.parts.loss.to_core())
    with Till(payment, kind, source) as till:
        check_index_beside(source.X, source.beside)
        if source.prepare is not None:
            source = source.prepare(source)
        if kind.arrange is not None:
            source = kind.arrange(source)
        rows, spec = till.read(source)
        result, remarks = kind.release(rows, spec, payment.receipt(till.entry))
    payment.keep(till.entry, lambda: result.digest)
    if not result.private:
        warn_of_seed(kind.what)
    for remark in remarks:
        warn(remark)
    return result


def check_as_released(rows: Rows, choices: PublicChoices, *, sums: bool = True) -> None:
    """Check rows as the release of them will, so that it refuses none after it is paid."""
    if rows.parts is None:  # those in parts were checked when they were described
        rows.records.check(**PartRules.of(choices).bounds)
    if sums and choices.n_public is not None:
        _core.check_excess(choices.n_public, rows.n_records)


class Till(Generic[_Spec, _Result]):
    """The context of one release: reads the data, ensures that it is paid for and that private errors stay private.

    ``entry`` is that of the ledger, once it is written.
    """

    def __init__(self, payment: Payment, kind: Kind[_Spec, _Result], source: Source) -> None:
        self._payment = payment
        self._kind = kind
        self._is_paid = False
        self._hidden = ExitStack()
        self.entry: Entry | None = None
        if payment.private:
            self._check_public(source)

    def __enter__(self) -> Self:
        if self._payment.private:
            self._pay()
            _Silence.begin()
            self._hidden.enter_context(hidden())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._payment.private:
            if error is None and self._payment.ledger is not None and not self._is_paid:
                raise RuntimeError("a release must be settled before it ends, got one that was not")
            return
        self._hidden.close()
        _Silence.end()
        # Interrupts and requests to end come from outside and pass; all else may tell about the data, panics of other
        # libraries included, which need not be an ``Exception``.
        is_failure = error is not None and not isinstance(error, _REQUESTS_TO_END)
        # A frame keeps its variables, and some programs print them with the traceback.
        del kind, error, traceback
        if is_failure:
            failed = ReleaseFailed(_FAILED)
            try:
                raise failed
            finally:
                # What happened would be printed as its context.
                failed.__context__ = None

    def read(self, source: Source) -> tuple[Rows, _Spec]:
        """Read the data and check them as the release will, then write the spend, unless it is written."""
        kind = self._kind
        rows, spec = read(source, kind.choices, kind.resolve, parts=kind.parts)
        if rows.classes_inferred and rows.classes is not None and kind.choices.seed is None:
            warn_of_inferred(rows.classes)
        if kind.by_name is not None:
            spec = kind.by_name(rows)
        if self._payment.ledger is not None and not self._is_paid:
            if not kind.any_rows:
                check_as_released(rows, kind.choices, sums=kind.sums)
            self._pay()
        return rows, spec

    def _check_public(self, source: Source) -> None:
        """Refuse public choices under which failures could reveal facts about the data, and impossible ones."""
        ledger, choices = self._payment.ledger, self._kind.choices
        assert ledger is not None  # noqa: S101  # for the type checker
        rule = "with a ledger that has errors='private'"
        if choices.two_classes and choices.classes is None:
            raise InvalidInput(f"classes=(negative, positive) must be given {rule}, got classes=None")
        if choices.on_violation == "error":
            raise InvalidInput(
                f"rows must be clipped {rule}, got rows that are refused beyond their bounds (pass rows='clip', or "
                "dpci.rows.Clipped with bounds)"
            )
        if choices.n_public != ledger.n_public:
            raise InvalidInput(
                f"n_public must equal the ledger's n_public={ledger.n_public} {rule}, got n_public={choices.n_public}"
            )
        rows, columns = known_shape(source.X)
        if self._kind.parts is None and (rows is None or columns is None or is_dask(source.X)):
            raise InvalidInput(f"X must have all rows in memory for this function, got {type(source.X).__name__}")
        if self._kind.parts is None and source.y is None:
            raise InvalidInput("y must be given with rows in memory, got y=None")
        # The number of rows is private exactly where there is a stand-in for it.
        n_rows = None if self._payment.unit == "person" else rows
        n_records = n_rows if choices.n_public is None else choices.n_public
        if n_records is not None and columns is not None:
            self._kind.resolve(n_records, columns)

    def _pay(self) -> None:
        self.entry = self._payment.settle()
        self._is_paid = True


class _OfProcess:
    """How many releases with private errors run, and the filters of warnings that they replaced."""

    running = 0
    filters: "warnings.catch_warnings[None] | None" = None


class _OfThread(_OfProcess, threading.local):
    """The same for each thread."""


class _Silence:
    """Suppresses warnings of other libraries about the data while releases with private errors run.

    Filters belong to the process, so those of threads that overlap are one: the last to end restores them. Since Python
    3.14 they can belong to the thread, and do without the interpreter's lock.
    """

    _lock: ClassVar = threading.Lock()
    _now: ClassVar = _OfThread() if getattr(sys.flags, "context_aware_warnings", False) else _OfProcess()

    @classmethod
    def begin(cls) -> None:
        with cls._lock:
            now = cls._now
            now.running += 1
            if now.running == 1:
                now.filters = warnings.catch_warnings()
                now.filters.__enter__()
                warnings.simplefilter("ignore")

    @classmethod
    def end(cls) -> None:
        with cls._lock:
            now = cls._now
            now.running -= 1
            if now.running == 0 and now.filters is not None:
                now.filters.__exit__(None, None, None)
                now.filters = None
