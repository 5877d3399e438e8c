"""How a release pays: it is refused before anything is computed, or recorded before any noise is drawn.

The order (docs/ledger.md): ``Payment.due`` comes before any access to the data; ``with payment.release(...)`` encloses
all access to them, and ``till.read`` reads them. With detailed errors it checks the data and then records the spend.
With private errors the spend is recorded on entry, before any data are read, and every error inside the context becomes
the same error.
"""

import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from dpci import _core
from dpci.base.startup import EndedBySignal
from dpci.base.validation import broken
from dpci.base.warn import warn
from dpci.budgets import Budget, Neighbors, check_budget
from dpci.data.arrays import OnViolation
from dpci.data.dask import is_dask
from dpci.data.labels import warn_of_inferred
from dpci.data.parts import PartRules
from dpci.data.rows import ModelChoices, Rows, known_shape, read
from dpci.errors import DpciWarning, InvalidInput, LedgerError, ReleaseFailed
from dpci.ledger.composition import rounded_down
from dpci.ledger.entries import Entry, Unit
from dpci.ledger.ledger import Ledger, keep_model
from dpci.unit import NOTHING_BESIDE, Beside

_FAILED = "the release failed after its budget was spent; a ledger with errors='private' does not report the reason"

_REQUESTS_TO_END = (KeyboardInterrupt, SystemExit, GeneratorExit, EndedBySignal)

_Resolved = TypeVar("_Resolved")


class PublicChoices(ModelChoices, Protocol):
    """Choices of a release that reading and paying depend on."""

    @property
    def on_violation(self) -> OnViolation:
        """Treatment of rows above the bound."""

    @property
    def n_public(self) -> int | None:
        """The public stand-in for the number of records."""

    @property
    def seed(self) -> int | None:
        """The seed of the noise; None for a private release."""

    def row_bounds(self) -> dict[str, Any]:
        """Return the bounds that the rows are checked against, as the core takes them."""


@dataclass(frozen=True)
class Payment:
    """Payment of one release to its ledger; nothing if it has no ledger."""

    source: str
    ledger: Ledger | None
    charged: Budget
    neighbors: Neighbors
    unit: Unit = "row"

    @classmethod
    def due(
        cls,
        source: str,
        ledger: Ledger | None,
        *,
        budget: Budget,
        neighbors: Neighbors,
        seed: int | None,
        persons: bool = False,
    ) -> "Payment":
        """Return what is due, or raise what the ledger would raise.

        Raises
        ------
        InvalidInput
            For anything but a ledger, another relation, unit or notion than its own, and a seed.
        BudgetExceeded
            If the total does not cover the budget.
        """
        budget = check_budget(budget)
        if ledger is not None:
            if not isinstance(ledger, Ledger):
                raise broken("ledger", "a dpci.Ledger or None", ledger)
            if seed is not None:
                raise InvalidInput(
                    f"seed must be None with a ledger, because a ledger pays for private releases only, got seed={seed}"
                )
            ledger.check(budget, neighbors=neighbors, unit="person" if persons else "row")
        return cls(source, ledger, budget, neighbors, "person" if persons else "row")

    @property
    def budget(self) -> Budget:
        """The budget of the release, rounded down: a ledger counts decimals, and a float may exceed its decimal."""
        return self.charged if self.ledger is None else rounded_down(self.charged)

    @property
    def private(self) -> bool:
        """Whether errors must not describe the data."""
        return self.ledger is not None and self.ledger.errors == "private"

    def settle(self) -> Entry | None:
        """Write the spend, if there is a ledger: after the data were checked, and before noise is drawn."""
        if self.ledger is None:
            return None
        return self.ledger.spend(self.charged, neighbors=self.neighbors, source=self.source, unit=self.unit)

    def receipt(self, entry: Entry | None) -> dict[str, Any] | None:
        """Return which entry of which ledger paid, as a record keeps it; None without a ledger."""
        if self.ledger is None or entry is None:
            return None
        return {"ledger": self.ledger.id, "entry": entry.number, "time": entry.time}

    def keep(self, entry: Entry | None, digest: Callable[[], str]) -> None:
        """Write the hash of what was released to the ledger; the release is not lost where that fails."""
        if self.ledger is None or entry is None:
            return
        try:
            keep_model(self.ledger, entry, digest())
        except LedgerError as error:
            message = f"the ledger must hold the hash of the model of entry {entry.number}, got none: {error}"
            warn(DpciWarning(message, code="model_not_kept", entry=entry.number))

    def release(
        self,
        X: Any,  # noqa: ANN401  # whatever the caller has
        y: Any,  # noqa: ANN401
        choices: PublicChoices,
        resolve: Callable[[int, int], _Resolved],
        *,
        parts: PartRules | None = None,
        persons: bool = False,
    ) -> "Till[_Resolved]":
        """Return the context in which the data are read and the release is made.

        Parameters
        ----------
        X : table
            The rows. Only their type and shape are used here.
        y : array-like or None
            The targets. Only whether they are given is used here.
        choices : PublicChoices
            Public choices of the release.
        resolve : callable
            Calibrates for a number of records and columns, and refuses impossible public choices. With private errors
            it is called before anything is spent, if both numbers are public and known.
        parts : PartRules, optional
            How rows in parts are understood; None: the release takes rows in memory only.
        persons : bool
            Whether the records are persons, whose number is not that of the rows.
        """
        return Till(self, X, y, choices, resolve, parts=parts, persons=persons)


class Till(Generic[_Resolved]):
    """The context of one release: reads the data, ensures that it is paid for and that private errors stay private.

    ``entry`` is that of the ledger, once it is written.
    """

    def __init__(
        self,
        payment: Payment,
        X: Any,  # noqa: ANN401  # whatever the caller has
        y: Any,  # noqa: ANN401
        choices: PublicChoices,
        resolve: Callable[[int, int], _Resolved],
        *,
        parts: PartRules | None,
        persons: bool = False,
    ) -> None:
        self._payment = payment
        self._choices = choices
        self._resolve = resolve
        self._parts = parts
        self._persons = persons
        self._is_paid = False
        self.entry: Entry | None = None
        if payment.private:
            self._check_public(X, y)

    def __enter__(self) -> Self:
        if self._payment.private:
            self._pay()
            _Silence.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._payment.private:
            if error is None and self._payment.ledger is not None and not self._is_paid:
                raise RuntimeError("a release must be settled before it ends, got one that was not")
            return
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

    def read(
        self,
        X: Any,  # noqa: ANN401  # whatever the caller has
        y: Any,  # noqa: ANN401
        beside: Beside = NOTHING_BESIDE,
        *,
        sums: bool = True,
        by_name: Callable[[Rows], _Resolved] | None = None,
    ) -> tuple[Rows, _Resolved]:
        """Read the data and check them as the release will, then write the spend, unless it is written.

        Parameters
        ----------
        X, y
            Rows and targets as the caller gave them.
        beside : Beside
            Ids and weights of the rows.
        sums : bool
            Whether the release sums over the records: the rounding of sums is bounded only up to a number of them.
        by_name : callable, optional
            Calibrates again, before the spend is written, for choices that depend on names which only the rows have.

        Returns
        -------
        rows : Rows
            The rows.
        resolved : object
            Choices that were calibrated for their numbers of rows and columns.

        Raises
        ------
        InvalidInput, RowNormViolation
            See the release.
        BudgetExceeded
            If others have spent meanwhile.
        LedgerError
            If the spend could not be written for certain.
        """
        choices = self._choices
        rows, resolved = read(X, y, choices, self._resolve, parts=self._parts, beside=beside)
        if rows.classes_inferred and rows.classes is not None and choices.seed is None:
            warn_of_inferred(rows.classes)
        if by_name is not None:
            resolved = by_name(rows)
        if self._payment.ledger is not None and not self._is_paid:
            if rows.parts is None:  # those in parts were checked when they were described
                rows.records.check(**choices.row_bounds())
            if sums and choices.n_public is not None:
                _core.check_excess(choices.n_public, rows.n_records)
            self._pay()
        return rows, resolved

    def receipt(self) -> dict[str, Any] | None:
        """Return which entry of which ledger paid, as a record keeps it; None without a ledger."""
        return self._payment.receipt(self.entry)

    def keep(self, digest: Callable[[], str]) -> None:
        """Write the hash of the released model to the ledger; the model is not lost where that fails."""
        self._payment.keep(self.entry, digest)

    def _check_public(self, X: Any, y: Any) -> None:  # noqa: ANN401  # whatever the caller has
        """Refuse public choices under which failures could reveal facts about the data, and impossible ones."""
        ledger, choices = self._payment.ledger, self._choices
        assert ledger is not None  # noqa: S101  # for the type checker
        rule = "with a ledger that has errors='private'"
        if choices.two_classes and choices.classes is None:
            raise InvalidInput(f"classes=(negative, positive) must be given {rule}, got classes=None")
        if choices.on_violation != "clip":
            raise broken("on_violation", f"'clip' {rule}", choices.on_violation)
        if choices.n_public != ledger.n_public:
            raise InvalidInput(
                f"n_public must equal the ledger's n_public={ledger.n_public} {rule}, got n_public={choices.n_public}"
            )
        rows, columns = known_shape(X)
        if self._parts is None and (rows is None or columns is None or is_dask(X)):
            raise InvalidInput(f"X must have all rows in memory for this function, got {type(X).__name__}")
        if self._parts is None and y is None:
            raise InvalidInput("y must be given with rows in memory, got y=None")
        # The number of rows is private exactly where there is a stand-in for it.
        n_rows = None if self._persons else rows
        n_records = n_rows if choices.n_public is None else choices.n_public
        if n_records is not None and columns is not None:
            self._resolve(n_records, columns)

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
