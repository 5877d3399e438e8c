"""Whether the ledger that paid for a released result agrees with what the result says about it."""

from collections.abc import Iterator
from os import PathLike
from typing import NamedTuple

from dpci.approval.findings import Claim, Finding
from dpci.base.validation import broken
from dpci.budgets import numbers_text, remaining_text
from dpci.errors import LedgerError
from dpci.ledger.entries import Entry
from dpci.ledger.ledger import Ledger
from dpci.shown.document import Code, Facts, Part, Table

_WHOLES = {"dpci.fit_strata": "all strata of a table", "dpci.fit_many": "many groups together"}
"""Releases of which every fit says that it is a part."""
_AROUND = {
    "dpci.tuning.tune": "a tuning, whose own file holds this fit",
    "dpci.per_instance.report": "a per-instance report, whose own file holds this fit",
}
"""Releases that hold a fit, of which it need not say so."""


_OF_PERSONS = "protects persons, each with all rows"
_NOT_OF_PERSONS = (
    "that rows were told apart by their persons: the noise shows it hardly or not at all. The ledger and the holder of "
    "the data know it"
)
TOTAL = "Total of the ledger, which equals the approved total"
SPENT = "Spent in the ledger today, all entries"


def against_ledger(claim: Claim, ledger: "Ledger | str | PathLike[str] | None") -> list[Finding]:
    """Return what agrees, what does not and what cannot be checked; None: no ledger is given."""
    found = _held(claim, ledger)
    if claim.unit == "person" and not any(finding.what.endswith(_OF_PERSONS) for finding in found):
        found.append(Finding("not shown", _NOT_OF_PERSONS))
    return found


def _held(claim: Claim, ledger: "Ledger | str | PathLike[str] | None") -> list[Finding]:
    if not isinstance(ledger, Ledger | str | PathLike | None):
        raise broken("ledger", "a dpci.Ledger, the path of one or None", ledger)
    if claim.paid is None:
        if ledger is not None:
            return [Finding("FAILED", "the model names no ledger, but one was given")]
        return [Finding("not shown", "that a ledger paid: the model names none")]
    where = f"entry {claim.paid['entry']} of ledger {claim.paid['ledger']}, {claim.paid['time']}"
    if ledger is None:
        return [Finding("not checked", f"that {where}, paid for it: no ledger was given, repeat with --ledger")]
    if isinstance(ledger, Ledger):
        return list(_against(claim, ledger, where))
    with _opened(ledger) as opened:
        return list(_against(claim, opened, where))


def _opened(path: "str | PathLike[str]") -> Ledger:
    """Open the file of a ledger to compare with."""
    try:
        return Ledger.open(path)
    except LedgerError as error:
        if error.code != "ledger_missing":
            raise
        message = (
            f"the ledger must be a file that exists, got {str(path)!r} (check the path, or ask the analyst for it)"
        )
        raise LedgerError(message, code=error.code, path=str(path)) from error


class Account(NamedTuple):
    """Contents of the ledger that a result names."""

    items: tuple[str, ...]
    """The total, what is spent and what remains, for a checklist."""
    parts: tuple[Part, ...]
    """When it was created, and its entries."""


def account_of(claim: Claim, ledger: "Ledger | str | PathLike[str]") -> Account | None:
    """Return what a ledger holds; None where it is not the ledger that the result names."""
    if isinstance(ledger, Ledger):
        return _account(claim, ledger)
    with _opened(ledger) as opened:
        return _account(claim, opened)


def _account(claim: Claim, ledger: Ledger) -> Account | None:
    if claim.paid is None or ledger.id != claim.paid["ledger"]:
        return None
    spent, remaining = numbers_text(ledger.spent), remaining_text(ledger.remaining)
    entries, models = ledger.history, ledger.models
    items = (
        f"{TOTAL}: {ledger.total}",
        f"{SPENT}: {spent} ({len(entries)} {'entry' if len(entries) == 1 else 'entries'})",
        f"Remaining: {remaining}",
    )
    rows = [
        (f"{entry.number}", entry.time, f"{entry.budget}", entry.label or "", Code(models.get(entry.number, "none")))
        for entry in entries
    ]
    parts: list[Part] = [Facts([("id", Code(ledger.id)), ("created", ledger.created)])]
    if len(rows) > 1:
        parts.append(Table(("entry", "time", "budget", "label", "hash of the model"), rows, of_words=True))
    return Account(items, tuple(parts))


def _against(claim: Claim, ledger: Ledger, where: str) -> Iterator[Finding]:
    assert claim.paid is not None  # noqa: S101  # for the type checker
    entries, number = ledger.history, claim.paid["entry"]
    n_entries = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    yield Finding("ok", f"the ledger is undamaged, with {n_entries}")
    if ledger.id != claim.paid["ledger"]:
        yield Finding("FAILED", f"the model names ledger {claim.paid['ledger']}, but this is ledger {ledger.id}")
        return
    entry = next((entry for entry in entries if entry.number == number), None)
    if entry is None:
        yield Finding("FAILED", f"the ledger does not have {where}, which the model names")
        return
    kept, source = ledger.models.get(number), entry.source.split(",")[0]
    is_fit = claim.kind == "a fit" and claim.kept is not None
    if is_fit and source in _WHOLES:
        yield Finding("FAILED", f"the fit does not say that it is a part of {_WHOLES[source]}, for which {where}, paid")
        return
    yield from _against_entry(claim, entry, ledger.neighbors, where)
    if claim.kept is None:
        yield Finding("not shown", "the hash of this file: the ledger can only hold that of the whole")
    elif is_fit and source in _AROUND:
        yield Finding("not shown", f"the hash of this file: {where}, paid for {_AROUND[source]}")
    elif kept is None:
        yield Finding("FAILED", f"entry {number} of the ledger holds no hash of a model")
    elif kept != claim.kept:
        yield Finding("FAILED", f"entry {number} of the ledger holds the hash of another model: {kept}")
    elif kept != claim.digest:
        yield Finding("ok", f"{where}, holds the hash of the moment matrix in the file: {kept}")
    else:
        yield Finding("ok", f"{where}, holds the hash of this model")


def _against_entry(claim: Claim, entry: Entry, neighbors: str, where: str) -> Iterator[Finding]:
    assert claim.paid is not None  # noqa: S101  # for the type checker
    compared = {
        "time": (claim.paid["time"], entry.time),
        # Exactly: two budgets may be equal in the digits that texts show.
        "budget": (repr(claim.charged), repr(entry.budget)),
        "neighbours": (claim.neighbors, neighbors),
        "unit of privacy": (claim.unit, entry.unit),
    }
    differ = [(name, own, paid) for name, (own, paid) in compared.items() if own != paid]
    if not claim.is_of(entry.source):
        differ.append(("source", str(claim.source).strip(), entry.source))
    for name, own, paid in differ[:1]:
        yield Finding("FAILED", f"{where}, has another {name} than the model: {paid} in the ledger, {own} in the model")
    if not differ:
        yield Finding("ok", f"{where}, paid {entry.budget}")
        if entry.unit == "person":
            yield Finding("ok", f"{where}, {_OF_PERSONS}")
