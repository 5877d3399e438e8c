"""What a ledger is for, and one spend of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dpci.base.validation import check_count
from dpci.budgets import Budget
from dpci.errors import InvalidInput
from dpci.ledger.composition import Reserve

_LONGEST_TEXT = 1000


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a ledger is for; fixed when it is created."""

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
        What was spent.
    reserve : Reserve or None
        What the first zCDP spend set aside from an (epsilon, delta) total.
    """

    number: int
    time: str
    source: str
    label: str | None
    budget: Budget
    reserve: Reserve | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values."""
        return {
            "number": self.number,
            "time": self.time,
            "source": self.source,
            "label": self.label,
            "notion": self.budget.notion,
            "budget": self.budget.parameters(),
            "reserve": None if self.reserve is None else self.reserve.parameters(),
        }


Next: TypeAlias = Callable[[Sequence[Entry]], Entry]
"""From the entries so far to the next one, or an error; called where nobody else can add one."""


def check_text(name: str, value: object) -> str:
    """Return a text that an entry may hold."""
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or not value.isprintable():
        raise InvalidInput(f"{name} must be printable text of at most {_LONGEST_TEXT} characters, got {name}={value!r}")
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
        raise InvalidInput(
            "n_public must be None unless a ledger has errors='private' and neighbors='add_remove', "
            f"got n_public={n_public!r}"
        )
    return None
