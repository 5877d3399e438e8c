"""``Finding``: one thing that a released result was held against, in words, and the outcome."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """One thing that was looked at."""

    outcome: Literal["ok", "stated", "FAILED", "not checked", "not covered"]
    what: str


AGREES = "Result: nothing differs"
DAMAGED = "Result: the file does not match its hash: it was altered or damaged (exit code 2). Refuse."
UNREAD = "Result: nothing was checked, for the reason in the message (exit code 2). Do not approve."
"""Sentence in the place of a conclusion."""


def conclusion(findings: Iterable[Finding]) -> str:
    """Return what the findings come to, for whoever cannot see an exit code."""
    count = Counter(finding.outcome for finding in findings)
    if n_failed := count["FAILED"]:
        return f"Result: {n_failed} {'check' if n_failed == 1 else 'checks'} FAILED (exit code 1). Refuse."
    left = "".join(f", {count[outcome]} {outcome}" for outcome in ("not checked", "not covered") if count[outcome])
    return f"{AGREES}{left} (exit code 0). This is not an approval."
