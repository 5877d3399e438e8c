"""``Ledger``: one total budget shared by many releases and processes. A crash does not lose recorded spends."""

import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, get_args

from dpci.base.tables import change_text
from dpci.base.validation import broken, check_choice, usage
from dpci.budgets import Budget, Neighbors, check_budget, numbers_text, remaining_text
from dpci.errors import BudgetExceeded, LedgerError
from dpci.ledger.composition import Account, check_accepted, check_size
from dpci.ledger.entries import UNITS, Entry, Identity, Unit, check_n_public, check_same_unit, check_text, now
from dpci.ledger.store import FileStore, MemoryStore, Store, check_path, shown_path
from dpci.shown.displayed import Displayed
from dpci.shown.document import Code, Document, Facts, Paragraph, Part, Table, Words
from dpci.shown.text import as_text

__all__ = ["Ledger"]

PathLike: TypeAlias = str | os.PathLike[str]
Errors: TypeAlias = Literal["detailed", "private"]
_RELATIONS: tuple[Neighbors, ...] = get_args(Neighbors)
_ERRORS: tuple[Errors, ...] = get_args(Errors)


class _Accounts:
    """The account after the entries of one store, which are only ever added: each is counted once."""

    def __init__(self, total: Budget) -> None:
        # One pair, read and written at once: threads that race count some entries again, and none wrongly.
        self._last = 0, Account(total)

    def after(self, entries: Sequence[Entry]) -> Account:
        counted, account = self._last
        if counted > len(entries):  # another thread has seen later ones
            counted, account = 0, Account(account.total)
        if counted < len(entries):
            account = account.after((entry.budget, entry.reserve) for entry in entries[counted:])
            self._last = len(entries), account
        return account


@usage('dpci.Ledger(dpci.ApproxDP(epsilon=2.0, delta=1e-6), path="FILE")')
class Ledger(Displayed):
    """A total budget for all releases from one data set.

    Pass it to :func:`dpci.fit` and to the other functions that release. Each function records its spend before it draws
    any noise. If the remaining budget is too small, it raises :class:`~dpci.errors.BudgetExceeded` before anything is
    computed. A recorded spend stays spent, even if the call then fails or the process is killed.

    A ledger is shared, never copied: ``copy.deepcopy`` and scikit-learn's ``clone`` give the same ledger, and a pickle
    of one with a file opens that file. Threads may share one. Processes share a file; a ledger without one refuses to
    be used by another process. See docs/ledger.md for the rules of addition and for what the file promises.

    Parameters
    ----------
    total : PureDP, ZCDP or ApproxDP
        Total that all releases may spend. A PureDP total takes PureDP; ZCDP takes PureDP and ZCDP; ApproxDP takes
        all three. Numbers count as the decimals that Python prints, so ten times 0.1 is 1.
    neighbors : {"replace_one", "add_remove"}
        The neighbouring relation, one for all releases.
    path : str or path-like, optional
        SQLite file. It is created if it does not exist; an existing file must have this total and this relation. It
        holds names of functions, budgets, times and labels, but no data. None: in the memory of this process.
    errors : {"detailed", "private"}
        Report and cost of a failed release. "detailed": error messages may describe the data, so they are for the
        holder of the data; refused data cost nothing. "private", for services: the budget is spent before the data are
        read. Every later failure raises the same :class:`~dpci.errors.ReleaseFailed`, and the budget stays spent.
        Releases must then be given ``classes`` and ``rows="clip"``.
    n_public : int, optional
        The ``n_public`` of all releases. Required for ``errors="private"`` with "add_remove", and must be None
        otherwise. A client who could choose it could learn the number of rows by observing which releases fail.

    Raises
    ------
    InvalidInput
        For arguments out of range, or a file with another total, relation, ``errors`` or ``n_public``.
    LedgerError
        If the file is damaged, foreign, or cannot be read and written. It is never overwritten.

    Examples
    --------
    >>> import numpy as np, dpci
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> y = X[:, 0] > 0
    >>> ledger = dpci.Ledger(dpci.PureDP(1.0))
    >>> result = dpci.fit(X, y, budget=dpci.PureDP(0.3), l2_strength=0.01, ledger=ledger)
    >>> ledger.spent, ledger.remaining
    ({'epsilon': 0.3}, PureDP(epsilon=0.7))
    """

    __slots__ = ("_accounts", "_label", "_store")

    def __init__(
        self,
        total: Budget,
        neighbors: Neighbors = "replace_one",
        path: PathLike | None = None,
        *,
        errors: Errors = "detailed",
        n_public: int | None = None,
    ) -> None:
        total = check_budget(total)
        check_size("total", total)
        neighbors = check_choice("neighbors", neighbors, _RELATIONS)
        errors = check_choice("errors", errors, _ERRORS)
        fixed: dict[str, Any] = {
            "neighbors": neighbors,
            "errors": errors,
            "n_public": check_n_public(n_public, neighbors, errors),
        }
        identity = Identity(id=secrets.token_hex(16), created=now(), total=total, **fixed)
        self._label: str | None = None
        self._store: Store
        self._accounts = _Accounts(total)
        if path is None:
            self._store = MemoryStore(identity)
            return
        file = check_path(path)
        FileStore.create(file, identity)
        store = FileStore.open(file)
        for name, given in {"total": total, **fixed}.items():
            found = getattr(store.identity, name)
            if found != given:
                raise broken(name, f"{found!r}, the value in the ledger file {str(file)!r}", given)
        self._store = store

    @classmethod
    def open(cls, path: PathLike) -> Self:
        """Return the ledger of an existing file, whatever its total and relation.

        Raises
        ------
        LedgerError
            If the file is missing, damaged or foreign.
        """
        store = FileStore.open(check_path(path))
        return cls._around(store, _Accounts(store.identity.total), None)

    @classmethod
    def _around(cls, store: Store, accounts: _Accounts, label: str | None) -> Self:
        ledger = cls.__new__(cls)
        ledger._store, ledger._accounts, ledger._label = store, accounts, label  # noqa: SLF001  # a constructor
        return ledger

    def labelled(self, label: str) -> Self:
        """Return the same ledger, whose entries made through what is returned carry this text.

        Parameters
        ----------
        label : str
            At most 1000 characters. Public: the text must not depend on the data.
        """
        return self._around(self._store, self._accounts, check_text("label", label))

    @property
    def total(self) -> Budget:
        """Total that all releases may spend."""
        return self._store.identity.total

    @property
    def neighbors(self) -> str:
        """The neighbouring relation."""
        return self._store.identity.neighbors

    @property
    def errors(self) -> str:
        """Report and cost of a failed release: "detailed" or "private"."""
        return self._store.identity.errors

    @property
    def n_public(self) -> int | None:
        """The ``n_public`` of all releases, or None if the ledger does not fix it."""
        return self._store.identity.n_public

    @property
    def id(self) -> str:
        """Random identifier, drawn when the ledger was created."""
        return self._store.identity.id

    @property
    def created(self) -> str:
        """UTC time of its creation by the clock of the machine, ISO 8601."""
        return self._store.identity.created

    @property
    def path(self) -> str | None:
        """The file, or None."""
        return str(self._store.path) if isinstance(self._store, FileStore) else None

    @property
    def history(self) -> tuple[Entry, ...]:
        """All entries in the order in which they were made."""
        return tuple(self._store.entries())

    @property
    def models(self) -> dict[int, str]:
        """Hashes of the released models, ``PrivateFit.digest``, by the numbers of the entries that paid for them."""
        return self._store.models()

    @property
    def spent(self) -> dict[str, float]:
        """Sum of all spends in the notion of the total, by the names of its numbers; rounded up.

        Under an ApproxDP total delta includes what the first zCDP spend sets aside for all of them.
        """
        return self._account().spent_as_floats()

    @property
    def remaining(self) -> Budget | None:
        """A budget that can still be spent, rounded down; None if nothing is left."""
        return self._account().remaining()

    def can_afford(self, budget: Budget) -> bool:
        """Whether the total covers this budget now; another thread or process may spend in between.

        Raises
        ------
        InvalidInput
            For a notion that does not imply that of the total.
        """
        budget = check_budget(budget)
        check_accepted(self.total, budget)
        return self._account().affords(budget)

    def spend(self, budget: Budget, *, neighbors: Neighbors, source: str = "external", unit: Unit = "row") -> Entry:
        """Record the spend of a release by another tool; the functions of dpci record their own.

        Call it before the noise of that release is drawn.

        Parameters
        ----------
        budget : PureDP, ZCDP or ApproxDP
            Budget that the release spends.
        neighbors : {"replace_one", "add_remove"}
            The relation for which this holds; it must be that of the ledger.
        source : str
            Name of the function that releases.
        unit : {"row", "person"}
            Unit that the release protects; must be that of the entries before.

        Returns
        -------
        Entry
            The entry, which is now in the file.

        Raises
        ------
        InvalidInput
            For another relation or unit, or a notion that does not imply the notion of the total.
        BudgetExceeded
            If the total does not cover it. Nothing is written.
        LedgerError
            If it is not certain that the spend was written.
        """
        budget = self._check(budget, neighbors)
        source, unit = check_text("source", source), check_choice("unit", unit, UNITS)

        def make(entries: Sequence[Entry]) -> Entry:
            check_same_unit(entries, unit)
            account = self._account(entries)
            self._check_covered(account, budget)
            return Entry(
                number=len(entries) + 1,
                time=now(),
                source=source,
                label=self._label,
                unit=unit,
                budget=budget,
                reserve=account.reserve_for(budget),
            )

        return self._store.append(make)

    def check(self, budget: Budget, *, neighbors: Neighbors, unit: Unit = "row") -> None:
        """Raise what :meth:`spend` would raise now, and write nothing."""
        budget, entries = self._check(budget, neighbors), self._store.entries()
        check_same_unit(entries, check_choice("unit", unit, UNITS))
        self._check_covered(self._account(entries), budget)

    def to_json(self) -> str:
        """Return the ledger with its history as JSON."""
        entries = self._store.entries()
        models = self._store.models()
        account = self._account(entries)
        remaining = account.remaining()
        return json.dumps(
            {
                "schema": "dpci.Ledger",
                "version": 1,
                "id": self.id,
                "created": self.created,
                "neighbors": self.neighbors,
                "errors": self.errors,
                "n_public": self.n_public,
                "notion": self.total.notion,
                "total": self.total.parameters(),
                "spent": account.spent_as_floats(),
                "remaining": None
                if remaining is None
                else {"notion": remaining.notion, "budget": remaining.parameters()},
                "entries": [entry.to_dict() for entry in entries],
                "models": models,
            },
            indent=2,
            ensure_ascii=False,
        )

    def summary(self) -> str:
        """Table of the entries, with id, total, what is spent and what remains, and the hashes of the models."""
        return as_text(self._document())

    def _document(self) -> Document:
        entries = self._store.entries()
        account = self._account(entries)
        private = ", private errors" if self.errors == "private" else ""
        of_persons = any(entry.unit == "person" for entry in entries)
        unit = "person" if of_persons else "record" if entries else "record or person"
        relation = change_text(self.neighbors, unit) + ("" if self.n_public is None else f", n_public={self.n_public}")
        title = f"Ledger of {self.total}, {relation}{private}" + (f", {shown_path(self.path)}" if self.path else "")
        unit = "persons, each with all rows" if of_persons else "rows" if entries else "the first entry decides"
        facts: list[tuple[str, Words]] = [
            ("id", Code(self.id)),
            ("created", self.created),
            ("spent", numbers_text(account.spent_as_floats())),
            ("remaining", remaining_text(account.remaining())),
            ("unit", unit),
        ]
        rows = [
            [str(entry.number), entry.time, entry.source, str(entry.budget), entry.label or ""] for entry in entries
        ]
        header = ["number", "time", "source", "budget", "label"]
        entered = Table(header, rows, of_words=True) if rows else Paragraph("no entries")
        hashes = [(f"model of entry {number}", Code(digest)) for number, digest in self._store.models().items()]
        parts: list[Part] = [Facts(facts), entered, *([Facts(hashes)] if hashes else [])]
        return Document(title=title, parts=parts)

    def close(self) -> None:
        """Refuse later uses, here and through every label and copy of it in this process. What is written stays."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # Two copies of one budget would be spent twice.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if not isinstance(self._store, FileStore):
            raise LedgerError(
                "a ledger shared with other processes must have a file (path=...), got one without a file"
            )
        return _reopened, (type(self), self._store.path, self._store.identity, self._label)

    def __repr__(self) -> str:
        where = f", path={self.path!r}" if self.path else ""
        try:
            entries = self._store.entries()
            spent = self._account(entries).spent_as_floats()
            state = f"spent={spent}, {len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
        except LedgerError as error:
            state = str(error)
        return f"<dpci.Ledger total={self.total!r}, neighbors={self.neighbors!r}{where}: {state}>"

    def _check(self, budget: Budget, neighbors: Neighbors) -> Budget:
        budget = check_budget(budget)
        neighbors = check_choice("neighbors", neighbors, _RELATIONS)
        check_accepted(self.total, budget)
        if neighbors != self.neighbors:
            raise broken("neighbors", f"{self.neighbors!r}, the relation of the ledger", neighbors)
        return budget

    def _check_covered(self, account: Account, budget: Budget) -> None:
        if not account.affords(budget):
            remaining = account.remaining()
            left = "nothing" if remaining is None else repr(remaining)
            smaller = "" if remaining is None else "pass a budget within what remains; "
            raise BudgetExceeded(
                f"the ledger cannot pay for this release: requested {budget!r}, remaining {left}, total {self.total!r} "
                f"({smaller}for more, the person responsible for the data must approve a new total; a new ledger must "
                "first record what is already spent)",
                requested=budget,
                remaining=remaining,
                total=self.total,
            )

    def _account(self, entries: Sequence[Entry] | None = None) -> Account:
        return self._accounts.after(self._store.entries() if entries is None else entries)


def keep_model(ledger: Ledger, entry: Entry, digest: str) -> None:
    """Write the hash of the model that an entry paid for.

    Raises
    ------
    LedgerError
        If it could not be written for certain.
    """
    ledger._store.keep_model(entry.number, digest)  # noqa: SLF001  # of this module's own class


def _reopened(kind: type[Ledger], path: Path, identity: Identity, label: str | None) -> Ledger:
    return kind._around(FileStore(path, identity), _Accounts(identity.total), label)  # noqa: SLF001  # what a pickle calls
