"""``Finding``: one thing that a released result was held against, in words, and the outcome."""

from collections.abc import Iterable
from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """One thing that was looked at."""

    outcome: Literal["ok", "stated", "FAILED", "not checked", "not covered"]
    what: str


AGREES = "Result: nothing differs"


def conclusion(findings: Iterable[Finding]) -> str:
    """Return what the findings come to, for whoever cannot see an exit code."""
    n_failed = sum(finding.outcome == "FAILED" for finding in findings)
    if n_failed:
        return f"Result: {n_failed} {'check' if n_failed == 1 else 'checks'} FAILED (exit code 1). Refuse."
    return f"{AGREES} (exit code 0). This is not an approval."
