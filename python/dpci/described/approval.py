"""Approval of a released schema."""

from collections.abc import Iterator

from dpci.approval.noise import finding_of_noise
from dpci.approval.of_bounds import contents_of, drawn_by, found_of, laws_of, proofs_of, range_values, what_of
from dpci.approval.of_fit import PROGRAM_PROOF, count_proofs, public_number
from dpci.approval.statement import Statement
from dpci.described.record import SchemaRecord
from dpci.released.calibration import differences_of_bounds
from dpci.released.sources import PublicValue, table_values
from dpci.schema.columns import CategoricalColumn, NumericColumn, NumericTarget
from dpci.shown.document import Words, joined, names


def approval_of_schema(record: SchemaRecord) -> Statement:
    """Return what an approver must know of a release of bounds."""
    add, bounds = record.neighbors == "add_remove", record.found
    known = [PublicValue("n_public", f"{record.n_samples:,}", "")] if add else []
    known += [] if record.persons is None else [PublicValue("persons", record.persons.kept, "")]
    return Statement.of(
        record,
        kind="a released schema",
        contents=tuple(contents_of(bounds, record.n_samples)),
        made_by=laws_of(bounds),
        adds_noise=drawn_by(bounds),
        noise=laws_of(bounds),
        proofs=(*proofs_of(bounds), *count_proofs(record.persons, None), PROGRAM_PROOF),
        audits=("schema_audit",),
        sealed=None,
        public=(*known, *range_values(bounds), *table_values(record.table)),
        found=found_of(bounds),
        exact=tuple(_exact(record)),
        chosen=(*(public_number(record.persons) if add else ()), *record.chosen),
        covers=(
            f"It covers the {what_of(bounds)} of the columns above.",
            "It does not cover a model that uses this schema. Such a model pays for itself.",
        ),
        reads=f"only the columns whose {what_of(bounds)} are released are read, as the table has them",
        beyond_bounds=_beyond(record),
        fails_at=_fails_at(record),
        from_data=(f"the {what_of(bounds)} of some columns, which the budget covers",),
        findings=(finding_of_noise(record.version, lambda: _other_noise(record)),),
    )


def _exact(record: SchemaRecord) -> Iterator[str]:
    """Yield what of the schema is public as it is."""
    columns, target = record.table.columns, record.table.target
    found = record.found.columns
    others = [column for column in columns if column.name not in found]
    yield "the names of the columns"
    if any(isinstance(column, NumericColumn) for column in others):
        yield "the bounds of the other columns"
    if any(isinstance(column, CategoricalColumn) for column in others):
        yield "the categories of the other columns"
    if not isinstance(target, NumericTarget):
        yield "the classes"
    elif target.column not in found:
        yield "the bounds of the target"


def _beyond(record: SchemaRecord) -> Words:
    """Return what is done with values beyond a range, and with missing ones."""
    numbers = [column for column in record.table.columns if column.name in record.ranges]
    skipped = [column.name for column in numbers if column.missing != "error"]
    rules: list[Words] = []
    if record.ranges:
        rules.append("a value beyond the public range of its column counts as the end of the range")
    if skipped:
        rules.append(("missing values do not count: ", names(skipped)))
    if record.listed:
        rules.append(("values that are not listed count as one category: ", names(record.listed)))
    return joined(rules, "; ")


def _fails_at(record: SchemaRecord) -> tuple[Words, ...]:
    """Return the values at which a release of bounds fails."""
    numbers = [column for column in record.table.columns if column.name in record.ranges]
    refused = [column.name for column in numbers if column.missing == "error"]
    if record.table.target.column in record.ranges:
        refused.append(record.table.target.column)
    found: list[Words] = []
    if record.ranges:
        found.append(("values other than finite numbers of ", names(tuple(record.ranges))))
    if refused:
        found.append(("missing values of ", names(refused)))
    return tuple(found)


def _other_noise(record: SchemaRecord) -> str | None:
    """Return the first number in which the choice is not that of the public choices, in words."""
    return next(differences_of_bounds(record.found, record.n_samples, record.persons, record.neighbors), None)
