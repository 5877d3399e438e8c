"""``Finding``: an outcome of holding a released result against something; ``Claim``: what it states of itself."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from dpci.budgets import Budget


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Statements of a released result about itself and about what paid for it."""

    kind: str
    """Kind of result, in words: "a fit"."""
    digest: str
    """The hash of its file."""
    kept: str | None
    """The hash that the ledger has: of the file, or of the release in it. None: the file is a part of a release."""
    charged: Budget
    """Budget that the ledger counted."""
    neighbors: str
    unit: str
    """"row" or "person"."""
    paid: Mapping[str, Any] | None
    """The ledger's id, the number and the time of the entry that paid; None without a ledger."""
    source: str | None = None
    """Name of the release in the entry, or its beginning where this ends in a space; None: nothing is said about it."""

    def is_of(self, source: str) -> bool:
        """Whether an entry with this source paid for it."""
        wanted = self.source
        return wanted is None or (source.startswith(wanted) if wanted.endswith(" ") else source == wanted)


class Finding(NamedTuple):
    """One thing that was looked at."""

    outcome: Literal["ok", "stated", "FAILED", "not checked", "not shown", "not covered"]
    what: str


AGREES = "Result: nothing differs"
DAMAGED = "Result: the file does not match its hash: it was altered or damaged (exit code 2). Refuse."
UNREAD = "Result: nothing was checked, for the reason in the message (exit code 2). Do not approve."
MISSING = "Result: {} not found (exit code 2). Nothing was checked."
"""Sentence in the place of a conclusion."""
FAILED, INCOMPLETE = 1, 6
"""Exit codes of findings that differ, and of checks that were left out."""


def conclusion(findings: Iterable[Finding]) -> str:
    """Return what the findings come to, for whoever cannot see an exit code."""
    count = Counter(finding.outcome for finding in findings)
    if n_failed := count["FAILED"]:
        return f"Result: {n_failed} {'check' if n_failed == 1 else 'checks'} FAILED (exit code 1). Refuse."
    if n_left := count["not checked"]:
        left = f"{n_left} {'check was' if n_left == 1 else 'checks were'} left out"
        return f'Result: incomplete, {left} (exit code {INCOMPLETE}). Repeat with what the lines "not checked" name.'
    left = "".join(f", {count[outcome]} {outcome}" for outcome in ("not shown", "not covered") if count[outcome])
    return f"{AGREES}{left} (exit code 0). This is not an approval."


def exit_code(findings: Iterable[Finding]) -> int:
    """Return the exit code of a command that shows findings."""
    seen = {finding.outcome for finding in findings}
    return FAILED if "FAILED" in seen else INCOMPLETE if "not checked" in seen else 0
