"""``Claim``: what a released result says about itself and about what paid for it, to compare with a ledger."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
