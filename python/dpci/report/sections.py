"""Sections that pages of several kinds of release have in common."""

from collections.abc import Sequence

from dpci.inference.intervals import ConfidenceIntervals
from dpci.released.facts import CHOSEN
from dpci.released.record import CHOSEN_WITHOUT_DATA, Record
from dpci.schema.columns import NumericColumn
from dpci.schema.table import Schema
from dpci.shown.document import Bullets, Facts, Forest, Paragraph, Section

SHARED = (
    "Every number on this page is released or public. If the assumptions below hold and this release was approved, the "
    "page may be shared as it is. You may compute anything from it; no further budget is needed."
)
"""The last sentences of the first paragraph of every page of a private result."""


def budget_section(facts: Sequence[tuple[str, str]], caption: str = "The release") -> Section:
    """Return what was released and spent."""
    return Section("budget", "The release and its budget", [Facts(facts, caption)])


def assumptions_section(facts: Sequence[str], chosen: Sequence[str] = CHOSEN) -> Section:
    """Return what a guarantee rests on; ``chosen`` is what must not depend on the data."""
    independent = f"{', '.join(chosen[:-1])} and {chosen[-1]} were chosen without the data"
    shown = (independent if fact == CHOSEN_WITHOUT_DATA else fact for fact in facts)
    rests = Bullets([f"{fact[0].upper()}{fact[1:]}." for fact in shown])
    return Section("conditions", "Assumptions of the guarantee", [rests])


def provenance(record: Record, digest: str) -> Section:
    """Return what ties the page to a file, a ledger and a schema."""
    paid = record.paid
    facts = [
        ("hash of the model", digest),
        ("schema", "none: the rows were encoded by the caller" if record.table is None else record.table.digest),
        ("ledger", "none was named" if paid is None else f"entry {paid['entry']} of {paid['ledger']}"),
        ("date", "not recorded without a ledger" if paid is None else str(paid["time"])),
        ("made with", f"dpci {record.version}"),
    ]
    note = "The command dpci verify compares the file of the model with its hash, its schema and its ledger."
    return Section("provenance", "Where this comes from", [Facts(facts, "Provenance"), Paragraph(note)])


def forest_of(intervals: ConfidenceIntervals, axis: str) -> Forest:
    """Return the figure of intervals."""
    found = intervals
    return Forest(found.names, found.estimate, found.lower, found.upper, found.level, axis)


def drawn_note(schema: Schema) -> str:
    """Return what a plot of coefficients over full ranges shows."""
    from_lower = [part.name for part in schema.columns if isinstance(part, NumericColumn) and part.scale == "unit"]
    lower = f" (of {', '.join(from_lower)}: for the lower bound)" if from_lower else ""
    where = (
        " Where a column is part of a product, its coefficient is for the middle of the range of the other column"
        f"{lower}, and not for 0 as in the table; or for its reference."
    )
    return (
        "The plot shows the effect of the full range of each column, from the lower to the upper public bound, and of "
        f"each category against its reference.{where * has_products(schema)}"
    )


def has_products(schema: Schema) -> bool:
    """Whether terms of a schema combine columns."""
    return any(len(term.factors) > 1 for term in schema.terms)
