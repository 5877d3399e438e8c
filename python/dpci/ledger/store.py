"""Content of a ledger, an identity and entries that are only ever added, and its place: memory or an SQLite file."""

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dpci.base.threads import lock_across_forks
from dpci.base.validation import check_choice
from dpci.budgets import Budget, budget_from_parameters
from dpci.errors import DpciError, LedgerError
from dpci.ledger.composition import reserve_from
from dpci.ledger.entries import UNITS, Entry, Identity, Next, read_models, write_model

if TYPE_CHECKING:
    import sqlite3


from dpci.base.validation import broken


def sync_folder(folder: Path) -> None:
    """Write the entries of a folder to the disk."""
    if os.name == "nt":  # where folders cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_path(path: object) -> Path:
    """Return the absolute path of a file, through links, whatever the working folder becomes later."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or not name or "\0" in name or not _is_encodable(name):
        raise broken("path", "the name of a file", path)
    file = Path(os.path.realpath(name))
    if not file.name:
        raise broken("path", "the name of a file", path)
    return file


def shown_path(path: str) -> str:
    """Return a path as texts name it: from the working folder, for a file within it."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or the working folder is gone
        return path


def _is_encodable(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True


_APPLICATION = int.from_bytes(b"dpci", "big")
_FORMAT = 1
_NUMBERS = ("epsilon", "rho", "delta")
BUSY_SECONDS = 30.0
"""How long a spend waits for other processes before it gives up."""

_SCHEMA = """
CREATE TABLE ledger (
    id TEXT NOT NULL, created TEXT NOT NULL, neighbors TEXT NOT NULL, errors TEXT NOT NULL, n_public INTEGER,
    notion TEXT NOT NULL, epsilon REAL, rho REAL, delta REAL, head TEXT NOT NULL
);
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, source TEXT NOT NULL, label TEXT, notion TEXT NOT NULL,
    epsilon REAL, rho REAL, delta REAL, reserve TEXT, unit TEXT NOT NULL
);
CREATE TRIGGER no_change BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER no_replacement BEFORE INSERT ON entries WHEN EXISTS (SELECT 1 FROM entries WHERE number = NEW.number)
    BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER no_removal BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
"""
_MARKS = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_FORMAT};"


class Store(Protocol):
    """Where a ledger is kept."""

    identity: Identity

    def entries(self) -> Sequence[Entry]:
        """Return all entries."""

    def append(self, make: Next) -> Entry:
        """Add one entry for good before returning it, or none if ``make`` raises."""

    def models(self) -> dict[int, str]:
        """Return the hashes of the models that entries paid for, by their numbers."""

    def keep_model(self, number: int, digest: str) -> None:
        """Add the hash of the model that an entry paid for, once."""

    def close(self) -> None:
        """Refuse every later use."""


class MemoryStore:
    """Entries in the memory of one process."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self._entries: list[Entry] = []
        self._models: dict[int, str] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False

    def entries(self) -> Sequence[Entry]:
        """Return all entries."""
        with self._locked():
            return tuple(self._entries)

    def append(self, make: Next) -> Entry:
        """Add one entry for good before returning it, or none if ``make`` raises."""
        with self._locked():
            entry = make(tuple(self._entries))
            self._entries.append(entry)
            return entry

    def models(self) -> dict[int, str]:
        """Return the hashes of the models that entries paid for, by their numbers."""
        with self._locked():
            return dict(self._models)

    def keep_model(self, number: int, digest: str) -> None:
        """Add the hash of the model that an entry paid for, once."""
        with self._locked():
            if self._models.setdefault(number, digest) != digest:
                raise LedgerError(f"an entry of a ledger must have one model, got another for entry {number}")

    def close(self) -> None:
        """Refuse every later use."""
        self._closed = True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # Before the lock, which a fork may have left locked for ever.
        if os.getpid() != self._process:
            raise LedgerError(
                "a ledger shared with other processes must have a file (path=...), got one without a file"
            )
        _check_open(self._closed)
        with self._lock:
            yield


_IN_PROCESS = lock_across_forks()
"""Held while a file of this process is open, and across a fork: a child must not inherit locks half-taken."""


class FileStore:
    """Entries in an SQLite file; every use opens it again, so threads and forked children share no connection."""

    def __init__(self, path: Path, identity: Identity) -> None:
        self.path = path
        self.identity = identity
        self._closed = False
        # What has been read before, with its checksum; entries never change, so only later ones are read again.
        self._known: tuple[tuple[Entry, ...], str] = (), _first_head(identity)

    @classmethod
    def create(cls, path: Path, identity: Identity) -> None:
        """Write a new file unless there is one; it appears complete or not at all.

        Raises
        ------
        LedgerError
            If the file cannot be written.
        """
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        head = _first_head(identity)
        try:
            if path.exists():
                return
            try:
                with _connection(fresh, "rwc") as connection:
                    connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} {_MARKS}")
                    total = identity.total.parameters()
                    connection.execute(
                        "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        (
                            identity.id,
                            identity.created,
                            identity.neighbors,
                            identity.errors,
                            identity.n_public,
                            identity.total.notion,
                            *(total.get(name) for name in _NUMBERS),
                            head,
                        ),
                    )
                    connection.execute("COMMIT")
                # Unlike a rename, a link never replaces what another process has just created.
                with suppress(FileExistsError):
                    os.link(fresh, path)
                sync_folder(path.parent)
            finally:
                fresh.unlink(missing_ok=True)
        except OSError as error:
            raise LedgerError(
                f"the file of a ledger must be writable, got {str(path)!r}: {error.strerror or error}", path=str(path)
            ) from error

    @classmethod
    def open(cls, path: Path) -> "FileStore":
        """Return the ledger of an existing file, checked from end to end.

        Raises
        ------
        LedgerError
            If the file is damaged, no ledger, or cannot be read.
        """
        if path.is_fifo():  # which SQLite would wait for
            raise _foreign(path, f"a file, got the pipe {str(path)!r}")
        # Without locks or journals, so that nothing happens to a file that is not ours: a write-ahead log stays one.
        with _connection(path, "ro&immutable=1"):
            pass
        with _connection(path, "rw") as connection:
            connection.execute("BEGIN")
            if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise _damaged(path, "SQLite's integrity check failed")
            identity, _ = _read_identity(connection, path)
            store = cls(path, identity)
            store._read(connection)
        return store

    def entries(self) -> Sequence[Entry]:
        """Return all entries."""
        _check_open(self._closed)
        with _connection(self.path, "rw") as connection:
            connection.execute("BEGIN")
            entries, _ = self._read(connection)
            return entries

    def append(self, make: Next) -> Entry:
        """Add one entry for good before returning it, or none if ``make`` raises."""
        _check_open(self._closed)
        with _connection(self.path, "rw") as connection:
            connection.execute("BEGIN IMMEDIATE")
            entries, head = self._read(connection)
            entry = make(entries)
            numbers = entry.budget.parameters()
            connection.execute(
                "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    entry.number,
                    entry.time,
                    entry.source,
                    entry.label,
                    entry.budget.notion,
                    *(numbers.get(name) for name in _NUMBERS),
                    None if entry.reserve is None else json.dumps(entry.reserve.parameters()),
                    entry.unit,
                ),
            )
            head = _next_head(head, entry.to_dict())
            connection.execute("UPDATE ledger SET head = ?", (head,))
            connection.execute("COMMIT")
            self._known = (*entries, entry), head
            return entry

    def models(self) -> dict[int, str]:
        """Return the hashes of the models that entries paid for, by their numbers."""
        _check_open(self._closed)
        with _connection(self.path, "rw") as connection:
            connection.execute("BEGIN")
            entries, _ = self._read(connection)
            found = read_models(connection, self.identity.id, len(entries))
            if found is None:
                raise _damaged(self.path, "the hashes of its models do not match their checksums")
            return found

    def keep_model(self, number: int, digest: str) -> None:
        """Add the hash of the model that an entry paid for, once."""
        _check_open(self._closed)
        with _connection(self.path, "rw") as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._read(connection)
            write_model(connection, self.identity.id, number, digest)
            connection.execute("COMMIT")

    def close(self) -> None:
        """Refuse every later use."""
        self._closed = True

    def _read(self, connection: "sqlite3.Connection") -> tuple[tuple[Entry, ...], str]:
        """Take up the entries that are new, and return all with their checksum, which must be the one in the file."""
        identity, written = _read_identity(connection, self.path)
        if identity != self.identity:
            raise LedgerError(
                f"the ledger file must not be replaced while it is open, got another ledger in {str(self.path)!r}",
                code="ledger_foreign",
                path=str(self.path),
            )
        entries, head = self._known
        fresh = _read_entries(connection, self.path, after=len(entries))
        for entry in fresh:
            head = _next_head(head, entry.to_dict())
        if head != written:
            raise _damaged(self.path, "its entries do not match their checksum")
        self._known = (*entries, *fresh), head
        return self._known


@contextmanager
def _connection(path: Path, mode: str) -> Iterator["sqlite3.Connection"]:
    """Open a file for one transaction, which is rolled back unless it was committed."""
    import sqlite3  # noqa: PLC0415  # a ledger in memory does without

    with _IN_PROCESS:
        try:
            uri = f"{path.as_uri()}?mode={mode}"
            with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
                if mode != "rwc":
                    _check_kind(connection, path)
                # A rollback journal needs no shared memory; EXTRA also syncs the folder, so that a commit is for good.
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA trusted_schema = OFF")
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the second: SQLite's message quotes damaged bytes
            if mode != "rwc" and not os.path.exists(path):  # noqa: PTH110  # which never raises
                raise LedgerError(
                    f"the file of a ledger must exist, got {str(path)!r}, which does not; create it with "
                    "dpci.Ledger(total, path=...) or, in a shell, dpci ledger create FILE --epsilon ...",
                    code="ledger_missing",
                    path=str(path),
                ) from error
            raise LedgerError(
                f"the file of a ledger must be a ledger of dpci that can be read and written, got {str(path)!r}: "
                f"{error}",
                path=str(path),
            ) from error


def _check_kind(connection: "sqlite3.Connection", path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise _foreign(path, f"a ledger of dpci, got another file in {str(path)!r}")
    if version != _FORMAT:
        raise _foreign(path, f"of format {_FORMAT}, got format {version} in {str(path)!r}")


def _read_identity(connection: "sqlite3.Connection", path: Path) -> tuple[Identity, str]:
    """Return what the ledger is for, and the checksum of all entries."""
    try:
        ((id_, created, neighbors, errors, n_public, notion, *numbers, head),) = connection.execute(
            "SELECT * FROM ledger"
        ).fetchall()
        facts = {"neighbors": neighbors, "errors": errors, "n_public": n_public}
        return Identity(id=id_, created=created, total=_budget(notion, numbers), **facts), head
    except (DpciError, TypeError, ValueError) as error:
        raise _damaged(path, str(error)) from error


def _read_entries(connection: "sqlite3.Connection", path: Path, *, after: int) -> list[Entry]:
    rows = connection.execute("SELECT * FROM entries WHERE number > ? ORDER BY number", (after,))
    try:
        return [
            Entry(
                number=number,
                time=time,
                source=source,
                label=label,
                unit=check_choice("unit", unit, UNITS),
                budget=_budget(notion, numbers),
                reserve=None if reserve is None else reserve_from(json.loads(reserve)),
            )
            for number, time, source, label, notion, *numbers, reserve, unit in rows
        ]
    except (DpciError, TypeError, ValueError) as error:
        raise _damaged(path, str(error)) from error


def _budget(notion: str, numbers: Sequence[float | None]) -> Budget:
    given = {name: value for name, value in zip(_NUMBERS, numbers, strict=True) if value is not None}
    return budget_from_parameters(notion, given)


def _first_head(identity: Identity) -> str:
    """Hash of the identity: the checksum of a ledger without entries."""
    facts = {**vars(identity), "total": identity.total.parameters(), "notion": identity.total.notion}
    return _next_head("", facts)


def _next_head(head: str, part: Any) -> str:  # noqa: ANN401  # JSON
    """Hash of everything so far and the next part: it finds damage, not a forger who can write the file."""
    # A damaged text may come back as bytes, of which no JSON is: it has another hash.
    text = json.dumps(part, sort_keys=True, default=repr)
    return hashlib.blake2b(head.encode() + text.encode(), digest_size=16).hexdigest()


def _damaged(path: Path, reason: str) -> LedgerError:
    message = f"the ledger file must be undamaged, got {str(path)!r}: {reason}"
    return LedgerError(message, code="ledger_damaged", path=str(path))


def _foreign(path: Path, rule: str) -> LedgerError:
    return LedgerError(f"the file of a ledger must be {rule}", code="ledger_foreign", path=str(path))


def _check_open(closed: bool) -> None:  # noqa: FBT001  # its only argument
    if closed:
        raise LedgerError("the ledger must be open, got a closed one", code="ledger_closed")
