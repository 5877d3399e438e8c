"""What a released file can be held against: itself, a schema, and the ledger that paid for it."""

import dataclasses
from collections.abc import Iterator
from json import loads as to_values
from pathlib import Path
from typing import Literal, NamedTuple

from dpci.budgets import Budget
from dpci.cli.saved import Saved
from dpci.ledger.entries import Entry
from dpci.ledger.ledger import Ledger
from dpci.model.result import PrivateFit
from dpci.multinomial.result import MultinomialFit, fit_of
from dpci.per_instance.record import ReportRecord
from dpci.regression.matrix import MomentMatrix
from dpci.regression.record import MomentRecord
from dpci.regression.result import record_of as release_of
from dpci.released.model import record_of
from dpci.released.record import FitRecord
from dpci.schema.columns import Column
from dpci.schema.table import Schema
from dpci.strata.result import StrataFit
from dpci.tuning.result import TuneResult

_WHOLES = {
    "dpci.tuning.tune": "a tuning, whose own file holds this fit",
    "dpci.per_instance.report": "a per-instance report, whose own file holds this fit",
    "dpci.fit_strata": "all strata of a table, whose own file holds this fit",
    "dpci.fit_many": "many tables together, of which the file says nothing",
}
"""Releases of which a fit can be a part, by the beginnings of the names of their entries."""
_SOURCES = {
    "strata": "dpci.fit_strata",
    "counted_strata": "dpci.fit_strata",
    "groups": "dpci.fit_many",
    "disjoint_groups": "dpci.fit_many",
    "tuning": "dpci.tuning.tune",
}
"""The names of the entries of such releases, by what a part says that it is of."""
_CHOSEN = "that the candidates were chosen without the data, and that the choice was made as the file says"
_VALUES = "bounds that someone computed for records: they are not in the file, and are private"
_OTHERS = "other regressions from the same matrix: they cost nothing, and nobody counts them"
_STRATA = "that the list of strata and n_public were chosen without the data"
_NEVER = (
    "that the noise was drawn as the model says: no file can show it",
    "that bounds, lists, formula and λ were chosen without the data, and that {unit}",
    "that nobody replaced the file and its hash: a hash is not a signature (sign the file, or keep its hash elsewhere)",
)


class Finding(NamedTuple):
    """One thing that was looked at."""

    outcome: Literal["ok", "FAILED", "not checked"]
    what: str


@dataclasses.dataclass(frozen=True)
class Held:
    """What a file holds, and its own statements."""

    kind: str
    digest: str
    record: FitRecord | MomentRecord
    charged: Budget
    """What the ledger counted."""
    neighbors: str
    paid_for: str | None
    """The hash that the ledger has: of the file, or of the release in it. None: the file is a part of a release."""
    private: bool
    never: tuple[str, ...] = ()

    @classmethod
    def of(cls, saved: Saved) -> "Held":
        """Return that of a saved result."""
        match saved:
            case PrivateFit():
                record = record_of(saved)
                whole, digest = record.whole, saved.digest
                if whole is not None:
                    return cls("a fit", digest, record, whole.budget, whole.neighbors, None, saved.private)
                return cls("a fit", digest, record, saved.budget, record.neighbors, digest, saved.private)
            case StrataFit():
                first, digest = record_of(next(iter(saved.values()))), saved.digest
                kind = f"the models of {len(saved)} strata"
                return cls(kind, digest, first, saved.charged, saved.neighbors, digest, saved.private, (_STRATA,))
            case TuneResult() | MultinomialFit():
                tuned, digest = isinstance(saved, TuneResult), saved.digest
                record = record_of(saved.result if isinstance(saved, TuneResult) else fit_of(saved))
                kind, never = ("a tuning", (_CHOSEN,)) if tuned else ("a multinomial fit", ())
                return cls(kind, digest, record, saved.budget, record.neighbors, digest, saved.private, never)
            case ReportRecord():
                record, digest = saved.fit, str(to_values(saved.to_json())["checksum"])
                kind, budget = "a per-instance report", record.total_budget()
                return cls(kind, digest, record, budget, record.neighbors, digest, record.private, (_VALUES,))
        matrix = release_of(saved)
        kind = "a moment matrix" if isinstance(saved, MomentMatrix) else "a regression from a moment matrix"
        return cls(
            kind, saved.digest, matrix, matrix.charge, matrix.neighbors, matrix.digest, matrix.private, (_OTHERS,)
        )

    @property
    def made_by(self) -> str:
        """By which mechanism, in words."""
        return f"{self.record.mechanism} perturbation" if isinstance(self.record, FitRecord) else "noise in the matrix"


def findings(held: Held, schema: Schema | None, ledger: Path | None) -> list[Finding]:
    """Return what agrees, what does not and what cannot be checked. The file has been read, so its checksum holds."""
    record = held.record
    unit = "each person is one row" if record.persons is None else "each person has one id"
    return [
        Finding("ok", f"the file is as it was written: {held.digest}"),
        Finding("ok", f"its fields agree with each other: {held.kind}, {held.made_by}, {_spent(held)}"),
        _seeded(held),
        *_against_schema(record, schema),
        *_against_ledger(held, ledger),
        *(Finding("not checked", what.format(unit=unit)) for what in (*_NEVER, *held.never)),
    ]


def _spent(held: Held) -> str:
    """Return what was spent; of a part of a release what the whole was charged too."""
    record, own = held.record, str(held.record.total_budget())
    if isinstance(record, MomentRecord):
        return own
    return str(held.charged) if held.paid_for is not None else f"{own}, of {held.charged} by {record.whole}"


def _seeded(held: Held) -> Finding:
    if held.private:
        return Finding("ok", "it says that its noise came from the operating system")
    return Finding("FAILED", "its noise came from a seed: NOT PRIVATE")


def _against_schema(record: FitRecord | MomentRecord, given: Schema | None) -> Iterator[Finding]:
    known = record.table
    if known is None:
        what = "the schema: the model was fitted to encoded rows and holds none"
        yield Finding("not checked" if given is None else "FAILED", what)
        return
    yield Finding("ok", f"the schema in the file has the digest in the file: {known.digest}")
    if given is None:
        yield Finding("not checked", "that this is the schema that was agreed on: --schema names it")
        return
    given = dataclasses.replace(given, encoding=known.encoding)
    if given.digest == known.digest:
        yield Finding("ok", "the schema is that of --schema")
    else:
        yield Finding("FAILED", f"the schema must be that of --schema, got another one: {_difference(known, given)}")


def _difference(known: Schema, given: Schema) -> str:
    """Return the first thing in which two schemas differ, in words."""
    if known.target != given.target:
        return f"the target is {known.target} in the model, {given.target} in --schema"
    ours, theirs = ({column.name: column for column in schema.columns} for schema in (known, given))
    for name in ours | theirs:
        if name not in ours or name not in theirs:
            return f"column {name!r} is only in {'the model' if name in ours else '--schema'}"
        if (fields := _fields(ours[name])) != (others := _fields(theirs[name])):
            part = next(part for part in fields | others if fields.get(part) != others.get(part))
            return f"column {name!r} has {part}={fields.get(part)!r} in the model, {others.get(part)!r} in --schema"
    if known.terms != given.terms or known.intercept != given.intercept:
        return (
            f"the columns of the rows are {', '.join(known.names)} in the model, {', '.join(given.names)} in --schema"
        )
    return "the columns are in another order"


def _fields(column: Column) -> dict[str, object]:
    kept = {name: value for name, value in vars(column).items() if name not in {"source", "unit"}}
    return {"kind": type(column).__name__, **kept}


def _against_ledger(held: Held, path: Path | None) -> Iterator[Finding]:
    paid = held.record.paid
    if paid is None:
        what = "that a ledger paid: the model names none"
        yield Finding("not checked" if path is None else "FAILED", what)
        return
    where = f"entry {paid['entry']} of ledger {paid['ledger']}, {paid['time']}"
    if path is None:
        yield Finding("not checked", f"that {where}, paid for it: --ledger names the file")
        return
    with Ledger.open(path) as ledger:
        yield Finding(
            "ok",
            f"the ledger is undamaged, with {len(ledger.history)} {'entry' if len(ledger.history) == 1 else 'entries'}",
        )
        if ledger.id != paid["ledger"]:
            yield Finding("FAILED", f"the ledger must be {paid['ledger']}, which the model names, got {ledger.id}")
            return
        entry = next((entry for entry in ledger.history if entry.number == paid["entry"]), None)
        if entry is None:
            yield Finding("FAILED", f"the ledger must have {where}, got none")
            return
        whole = next((what for name, what in _WHOLES.items() if entry.source.split(",")[0] == name), None)
        if held.kind == "a fit" and held.paid_for is not None and whole is not None:
            yield Finding("not checked", f"what paid for it: {where}, paid for {whole}")
            return
        yield from _against_entry(held, entry, ledger.neighbors, where)
        if held.paid_for is None:
            yield Finding("not checked", "the hash of this file: the ledger can only hold that of the whole")
            return
        kept = ledger.models.get(entry.number)
        if kept is None:
            yield Finding("FAILED", f"entry {entry.number} must hold the hash of the model, got none")
        elif kept != held.paid_for:
            yield Finding("FAILED", f"entry {entry.number} must hold the hash of this model, got another: {kept}")
        elif kept != held.digest:
            yield Finding("ok", f"{where}, holds the hash of the moment matrix in the file: {kept}")
        else:
            yield Finding("ok", f"{where}, holds the hash of this model")


def _against_entry(held: Held, entry: Entry, neighbors: str, where: str) -> Iterator[Finding]:
    record = held.record
    paid = {"time": entry.time, "budget": entry.budget, "neighbours": neighbors, "unit of privacy": entry.unit}
    own = {"time": (record.paid or {})["time"], "budget": held.charged, "neighbours": held.neighbors}
    own["unit of privacy"] = "row" if record.persons is None else "person"
    if isinstance(record, FitRecord) and record.whole is not None:
        source = entry.source.split(",")[0]
        paid["source"], own["source"] = source, _SOURCES[record.whole.kind]
    if other := next((name for name in paid if paid[name] != own[name]), None):
        yield Finding("FAILED", f"{where}, must have the {other} of the model, {own[other]}, got {paid[other]}")
    else:
        yield Finding("ok", f"{where}, paid {entry.budget}")
