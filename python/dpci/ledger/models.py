"""The hashes of the models that the entries of a ledger paid for, in a table of its file that only grows.

A spend is written before its release, and the hash of the model after it, so they are apart; an entry whose release
failed has none.
"""

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

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
