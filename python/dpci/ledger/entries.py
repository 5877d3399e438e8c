"""Entries of a ledger, and the hashes of the models that they paid for."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from dpci.base.validation import broken, check_count
from dpci.budgets import Budget
from dpci.errors import InvalidInput
from dpci.ledger.composition import Reserve

if TYPE_CHECKING:
    import sqlite3

Unit: TypeAlias = Literal["row", "person"]
"""Unit that a release may protect: rows, or persons with all of their rows."""
UNITS: tuple[Unit, ...] = get_args(Unit)

_LONGEST_TEXT = 1000


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Purpose of a ledger; fixed when it is created."""

    id: str
    created: str
    total: Budget
    neighbors: str
    errors: str
    n_public: int | None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One spend of a ledger.

    Attributes
    ----------
    number : int
        1, 2, ... in the order of the spends, whatever the clock says.
    time : str
        UTC time by the clock of the machine, ISO 8601; for people to read, and not used otherwise.
    source : str
        The function that released, such as "dpci.fit".
    label : str or None
        The caller's words, see :meth:`dpci.Ledger.labelled`.
    budget : PureDP, ZCDP or ApproxDP
        Budget that was spent.
    reserve : Reserve or None
        Part of an (epsilon, delta) total that the first zCDP spend set aside.
    unit : {"row", "person"}
        Unit that the budget protects.
    """

    number: int
    time: str
    source: str
    label: str | None
    budget: Budget
    reserve: Reserve | None = None
    unit: Unit = "row"

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values."""
        return {
            "number": self.number,
            "time": self.time,
            "source": self.source,
            "label": self.label,
            "unit": self.unit,
            "notion": self.budget.notion,
            "budget": self.budget.parameters(),
            "reserve": None if self.reserve is None else self.reserve.parameters(),
        }


Next: TypeAlias = Callable[[Sequence[Entry]], Entry]
"""From the entries so far to the next one, or an error; called where nobody else can add one."""


def check_text(name: str, value: object) -> str:
    """Return a text that an entry may hold."""
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or not value.isprintable():
        raise broken(name, f"printable text of at most {_LONGEST_TEXT} characters", value)
    return value


def check_n_public(n_public: int | None, neighbors: str, errors: str) -> int | None:
    """Return the public number of records that a ledger fixes."""
    if errors == "private" and neighbors == "add_remove":
        if n_public is None:
            raise InvalidInput(
                "n_public must be given for a ledger with errors='private' and neighbors='add_remove', "
                "got n_public=None"
            )
        return check_count("n_public", n_public)
    if n_public is not None:
        raise broken("n_public", "None unless a ledger has errors='private' and neighbors='add_remove'", n_public)
    return None


def check_same_unit(entries: Sequence[Entry], unit: str) -> None:
    """Refuse a total over two units: what releases of rows cost a person depends on the number of his rows."""
    if entries and entries[0].unit != unit:
        raise InvalidInput(
            f"the entries of a ledger must protect the same unit, got a release that protects a {unit} after entry 1, "
            f"which protects a {entries[0].unit} (use a ledger of its own)"
        )


def now() -> str:
    """Return the time of an entry."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


_STATEMENTS = """
CREATE TABLE IF NOT EXISTS models (number INTEGER PRIMARY KEY, digest TEXT NOT NULL, sum TEXT NOT NULL);

CREATE TRIGGER IF NOT EXISTS no_other_model BEFORE UPDATE ON models
    BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;

CREATE TRIGGER IF NOT EXISTS no_second_model BEFORE INSERT ON models
    WHEN EXISTS (SELECT 1 FROM models WHERE number = NEW.number)
    BEGIN SELECT RAISE(ABORT, 'an entry has one model'); END;

CREATE TRIGGER IF NOT EXISTS no_lost_model BEFORE DELETE ON models
    BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
"""


def write_model(connection: "sqlite3.Connection", ledger: str, number: int, digest: str) -> None:
    """Add a hash; the table is made with the first one."""
    for statement in _STATEMENTS.split("\n\n"):
        connection.execute(statement)
    connection.execute("INSERT INTO models VALUES (?, ?, ?)", (number, digest, _sum(ledger, number, digest)))


def read_models(connection: "sqlite3.Connection", ledger: str, n_entries: int) -> dict[int, str] | None:
    """Return the hashes by the numbers of their entries; None if they are damaged."""
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'models'").fetchone()
    rows = (
        [] if there is None else connection.execute("SELECT number, digest, sum FROM models ORDER BY number").fetchall()
    )
    if any(check != _sum(ledger, number, digest) or not 1 <= number <= n_entries for number, digest, check in rows):
        return None
    return {number: digest for number, digest, _ in rows}


def _sum(ledger: str, number: int, digest: str) -> str:
    """Hash of a line: it finds damage, not a forger who can write the file."""
    return hashlib.blake2b(f"{ledger} {number} {digest}".encode(), digest_size=16).hexdigest()
