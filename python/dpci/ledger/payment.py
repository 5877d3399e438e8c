"""``Payment``: what a release owes its ledger, which refuses it before anything is computed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from dpci.base.validation import broken
from dpci.base.warn import warn
from dpci.budgets import Budget, Neighbors, check_budget
from dpci.data.arrays import OnViolation
from dpci.data.parts import RowChoices
from dpci.errors import DpciWarning, InvalidInput, LedgerError
from dpci.ledger.composition import rounded_down
from dpci.ledger.entries import Entry, Unit
from dpci.ledger.ledger import Ledger, keep_model


class PublicChoices(RowChoices, Protocol):
    """Choices of a release that reading and paying depend on."""

    @property
    def on_violation(self) -> OnViolation:
        """Treatment of rows above the bound."""

    @property
    def n_public(self) -> int | None:
        """The public stand-in for the number of records."""

    @property
    def neighbors(self) -> Neighbors:
        """The neighbouring relation."""

    @property
    def seed(self) -> int | None:
        """The seed of the noise; None for a private release."""


@dataclass(frozen=True)
class Payment:
    """Payment of one release to its ledger; nothing if it has no ledger."""

    source: str
    ledger: Ledger | None
    charged: Budget
    neighbors: Neighbors
    unit: Unit = "row"

    @classmethod
    def due(
        cls,
        source: str,
        ledger: Ledger | None,
        *,
        budget: Budget,
        neighbors: Neighbors,
        seed: int | None,
        persons: bool = False,
    ) -> "Payment":
        """Return what is due, or raise what the ledger would raise."""
        budget = check_budget(budget)
        if ledger is not None:
            if not isinstance(ledger, Ledger):
                raise broken("ledger", f"a dpci.Ledger or None{_opened(ledger)}", ledger)
            if seed is not None:
                raise InvalidInput(
                    f"seed must be None with a ledger, because a ledger pays for private releases only, got seed={seed}"
                )
            ledger.check(budget, neighbors=neighbors, unit="person" if persons else "row")
        return cls(source, ledger, budget, neighbors, "person" if persons else "row")

    @classmethod
    def of(cls, source: str, ledger: Ledger | None, choices: PublicChoices, *, budget: Budget) -> "Payment":
        """Return what is due for a release of these choices; see :meth:`due`."""
        of_persons = choices.unit is not None
        return cls.due(
            source, ledger, budget=budget, neighbors=choices.neighbors, seed=choices.seed, persons=of_persons
        )

    @property
    def budget(self) -> Budget:
        """The budget of the release, rounded down: a ledger counts decimals, and a float may exceed its decimal."""
        return self.charged if self.ledger is None else rounded_down(self.charged)

    @property
    def private(self) -> bool:
        """Whether errors must not describe the data."""
        return self.ledger is not None and self.ledger.errors == "private"

    def settle(self) -> Entry | None:
        """Write the spend, if there is a ledger: after the data were checked, and before noise is drawn."""
        if self.ledger is None:
            return None
        return self.ledger.spend(self.charged, neighbors=self.neighbors, source=self.source, unit=self.unit)

    def receipt(self, entry: Entry | None) -> dict[str, Any] | None:
        """Return which entry of which ledger paid, as a record keeps it; None without a ledger."""
        if self.ledger is None or entry is None:
            return None
        return {"ledger": self.ledger.id, "entry": entry.number, "time": entry.time}

    def keep(self, entry: Entry | None, digest: Callable[[], str]) -> None:
        """Write the hash of what was released to the ledger; the release is not lost where that fails."""
        if self.ledger is None or entry is None:
            return
        try:
            keep_model(self.ledger, entry, digest())
        except LedgerError as error:
            message = f"the ledger must hold the hash of the model of entry {entry.number}, got none: {error}"
            warn(DpciWarning(message, code="model_not_kept", entry=entry.number))


def _opened(ledger: object) -> str:
    """Return how the ledger of a path is opened."""
    return f", such as dpci.Ledger.open({ledger!r})" if isinstance(ledger, str) else ""
