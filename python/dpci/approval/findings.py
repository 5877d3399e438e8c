"""``Finding``: one thing that a released result was held against, in words, and the outcome."""

from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """One thing that was looked at."""

    outcome: Literal["ok", "stated", "FAILED", "not checked", "not covered"]
    what: str
