"""A table of audits: the claim of each mechanism, and the lower bound from an attack."""

import json
from dataclasses import dataclass

from dpci.audit.bounds import LowerBound
from dpci.base.tables import format_percent
from dpci.budgets import ZCDP, Budget
from dpci.shown.displayed import Displayed
from dpci.shown.document import NOT_PRIVATE, Document, Table
from dpci.shown.text import as_text


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditReport(Displayed):
    """Lower bounds of many audits; returned by :func:`dpci.audit.report`. Not private.

    Attributes
    ----------
    bounds : tuple of LowerBound
        In the order of :data:`dpci.audit.MECHANISMS`.
    n_runs : int
        Runs on each of the two data sets of a case.
    seed : int
        Seed of the noise.
    """

    bounds: tuple[LowerBound, ...]
    n_runs: int
    seed: int

    @property
    def private(self) -> bool:
        """False, as for each bound."""
        return False

    @property
    def refuted(self) -> tuple[LowerBound, ...]:
        """The bounds that refute their claims. A true claim is refuted with probability at most 1 - confidence."""
        return tuple(bound for bound in self.bounds if bound.refutes())

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return mechanism, statement, claim, lower bound and verdict of each audit as texts."""
        found = []
        for bound in self.bounds:
            statement = "ρ" if bound.quantity == "rho" else f"ε at δ={bound.at:g}" if bound.at else "ε"
            verdict = "REFUTED" if bound.refutes() else "not refuted"
            claim = "" if bound.claim is None else f"{_number(bound.claim):.3f}"
            found.append((bound.name or "", statement, claim, f"{bound.value:.3f}", verdict))
        return found

    def summary(self) -> str:
        """Aligned table."""
        return as_text(self._document())

    def _document(self) -> Document:
        header = ("mechanism", "statement", "claim", "lower bound", "verdict")
        confidence = ", ".join(sorted({format_percent(bound.confidence) for bound in self.bounds}))
        head = f"Audit: {self.n_runs:,} runs on each data set, confidence {confidence}, seed {self.seed}. {NOT_PRIVATE}"
        return Document(title=head, parts=[Table(header, self.rows())])

    def to_json(self) -> str:
        """Return all bounds as JSON."""
        bounds = [bound.to_dict() for bound in self.bounds]
        return json.dumps({"n_runs": self.n_runs, "seed": self.seed, "private": self.private, "bounds": bounds})

    def __repr__(self) -> str:
        return self.summary()


def _number(claim: Budget) -> float:
    return claim.rho if isinstance(claim, ZCDP) else claim.epsilon
