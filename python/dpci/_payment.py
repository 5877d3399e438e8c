"""How a release pays: refused before anything is computed, written before any noise is drawn.

In this order (docs/ledger.md): ``due`` before the data are looked at; the checks of the data, in ``settle`` for rows in
memory and by whoever describes rows in parts before ``settle_checked``; the spend; then the release.
"""

from dataclasses import dataclass
from typing import Any

from dpci import _core
from dpci._composition import rounded_down
from dpci.budgets import Budget, check_budget
from dpci.errors import InvalidInput
from dpci.ledger import Ledger
from dpci.settings import Neighbors

_GREATEST_EXCESS = 16
"""As many times ``n_public`` records does the core take under add/remove."""


@dataclass(frozen=True)
class Payment:
    """What one release owes a ledger, or nothing where there is none."""

    source: str
    ledger: Ledger | None
    charged: Budget
    neighbors: Neighbors

    @classmethod
    def due(
        cls, source: str, ledger: Ledger | None, *, budget: Budget, neighbors: Neighbors, seed: int | None
    ) -> "Payment":
        """Return what is due, or raise what the ledger would raise.

        Raises
        ------
        InvalidInput
            For anything but a ledger, another relation or notion than its own, and a seed.
        BudgetExceeded
            If the total does not cover the budget.
        """
        budget = check_budget(budget)
        if ledger is not None:
            if not isinstance(ledger, Ledger):
                raise InvalidInput(f"ledger must be a dpci.Ledger or None, got ledger={ledger!r}")
            if seed is not None:
                raise InvalidInput(f"seed must be None with a ledger, which pays for private releases, got seed={seed}")
            ledger.check(budget, neighbors=neighbors)
        return cls(source, ledger, budget, neighbors)

    @property
    def budget(self) -> Budget:
        """At which the release has to run: a ledger counts decimals, and a float may be above its decimal."""
        return self.charged if self.ledger is None else rounded_down(self.charged)

    def settle(self, rows: Any, targets: Any, *, n_public: int | None = None, **bounds: Any) -> None:  # noqa: ANN401
        """Check the rows as the release will, then write the spend: refused data cost nothing, all else does.

        ``n_public`` is for releases that add up numbers of the records, whose rounding is bounded for so many only.

        Raises
        ------
        InvalidInput, RowNormViolation
            As the release.
        BudgetExceeded
            If others have spent meanwhile.
        LedgerError
            If the spend could not be written for certain.
        """
        if self.ledger is not None:
            _core.check_rows(rows, targets, **bounds)
            self.settle_checked(len(targets), n_public=n_public)

    def settle_checked(self, n_records: int, *, n_public: int | None = None) -> None:
        """Write the spend for rows that were checked as the release will check them; parameters and errors as above."""
        if self.ledger is not None:
            if n_public is not None and n_records > _GREATEST_EXCESS * n_public:
                raise InvalidInput(
                    "n_public must be at least a sixteenth of the number of rows, "
                    f"got n_public={n_public} for {n_records} rows"
                )
            self.ledger.spend(self.charged, neighbors=self.neighbors, source=self.source)
