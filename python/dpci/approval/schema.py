"""Whether the schema in a released result is the one that was agreed on."""

import dataclasses
from collections.abc import Iterator

from dpci.approval.findings import Finding
from dpci.base.validation import broken
from dpci.released.bounds import RELEASED, numbers_of
from dpci.schema.columns import CategoricalColumn, Column
from dpci.schema.partial import PartialSchema
from dpci.schema.saved import essential
from dpci.schema.table import Schema, without_column


@dataclasses.dataclass(frozen=True)
class Strata:
    """The strata that a schema leaves out, as far as a file names them."""

    by: str | None = None
    """Their column; None: the file of one stratum, which does not name it."""
    names: tuple[str, ...] = ()


def against_schema(
    known: Schema | None, given: Schema | PartialSchema | None, strata: Strata | None = None
) -> Iterator[Finding]:
    """Yield what agrees, what does not and what cannot be checked.

    ``given`` None: no schema is given. ``strata`` are those of the release, or of which the file is a part: their
    models have the schema without the column that names them.
    """
    if not isinstance(given, Schema | PartialSchema | None):
        raise broken("schema", "a dpci.schema.Schema, a PartialSchema or None", given)
    if known is None:
        if given is None:
            yield Finding("not shown", "the schema: the model was fitted to encoded rows and holds none")
        else:
            yield Finding("FAILED", "the model was fitted to encoded rows and holds no schema, but one was given")
        return
    yield Finding("ok", f"the schema in the file has the hash that the file states for it: {known.digest}")
    if given is None:
        what = "that this is the schema that was agreed on: no agreed schema was given, repeat with --schema"
        yield Finding("not checked", what)
        return
    same = "the schema in the file has the columns, bounds and categories of the agreed one"
    if isinstance(given, PartialSchema):
        same = "the schema in the file is the agreed one; what the agreed one leaves open, the release found"
        given = _filled(given, known)
    given = dataclasses.replace(given, encoding=known.encoding)
    apart = _column_of_strata(known, given, strata)
    if apart is not None:
        given = without_column(given, apart.name)
    if given.digest == known.digest and given.persons == known.persons:
        yield from _agrees(same, apart, strata)
        yield from _texts(known, given)
    else:
        what = "the schema of the model differs from the agreed one (--schema)"
        yield Finding("FAILED", f"{what}: {_difference(known, given)}")


def _filled(given: PartialSchema, known: Schema) -> Schema:
    """Return the agreed schema with the bounds that were released, and where they come from, in its gaps."""
    bounds = {name: (column.lower, column.upper) for name, column in numbers_of(known).items()}
    levels = {column.name: column.categories for column in known.columns if isinstance(column, CategoricalColumn)}
    found = given.completed(bounds, levels, source="")
    gaps = {column.name for column in given.gaps}
    ours = {column.name: column for column in known.columns if column.source.startswith(RELEASED)}

    def released(column: Column) -> Column:
        if column.name not in gaps & ours.keys():
            return column
        own = ours[column.name]
        if isinstance(own, CategoricalColumn) and isinstance(column, CategoricalColumn) and column.reference is None:
            # Which category is the reference, and whether there is another one, may follow from the counts.
            taken = {name: getattr(own, name) for name in ("categories", "reference", "other", "missing")}
            column = dataclasses.replace(column, **taken)
        return dataclasses.replace(column, source=own.source)

    columns = map(released, found.columns)
    target = found.target
    if target.column in gaps and known.target.source.startswith(RELEASED):
        target = dataclasses.replace(target, source=known.target.source)
    return dataclasses.replace(found, columns=tuple(columns), target=target)


def _column_of_strata(known: Schema, given: Schema, strata: Strata | None) -> Column | None:
    """Return the column of the agreed schema that names the strata: the only one that the models leave out."""
    if strata is None:
        return None
    ours = {column.name for column in known.columns}
    further = [column for column in given.columns if column.name not in ours]
    if len(further) != 1 or len(given.columns) == 1:
        return None
    column = further[0]
    is_named = isinstance(column, CategoricalColumn) if strata.by is None else column.name == strata.by
    # Strata of a column that a term combines with another one are refused.
    combined = any(column.name in term.columns and len(term.columns) > 1 for term in given.terms)
    return column if is_named and not combined else None


def _agrees(same: str, apart: Column | None, strata: Strata | None) -> Iterator[Finding]:
    if apart is None:
        yield Finding("ok", same)
    elif strata is None or strata.by is None:
        yield Finding("ok", f"{same}, but for the column {apart.name!r}, which the models leave out")
        yield Finding("not shown", f"that the column {apart.name!r} names the strata: the file of the whole shows it")
    else:
        yield Finding("ok", f"{same}; its column {apart.name!r} names the strata")
        if isinstance(apart, CategoricalColumn) and strata.names != apart.categories:
            own, agreed = ", ".join(strata.names), ", ".join(apart.categories)
            yield Finding("FAILED", f"the strata are {own} in the file, {agreed} in the agreed schema (--schema)")


def _texts(known: Schema, given: Schema) -> Iterator[Finding]:
    """Yield in which column the source or the unit differs, which no hash of a schema covers."""
    own, others = (
        {schema.target.column: schema.target, **{column.name: column for column in schema.columns}}
        for schema in (known, given)
    )
    for name, part in own.items():
        for text in ("source", "unit"):
            ours, theirs = getattr(part, text, ""), getattr(others[name], text, "")
            if ours != theirs:
                what = f"column {name!r} has the {text} {ours!r} in the model, {theirs!r} in the agreed schema"
                harmless = "neither the guarantee nor a number depends on this text; the agreed one counts"
                yield Finding("stated", f"{what} ({harmless})")


_PARTS = {
    "lower": "the lower bound",
    "upper": "the upper bound",
    "categories": "the categories",
    "reference": "the reference",
    "kind": "the kind",
    "scale": "the scale",
    "transform": "the transform",
    "outside": "the rule for values beyond the bounds",
    "unknown": "the rule for values outside the list",
    "missing": "the rule for missing values",
}
"""Parts of a column, in words."""


def _difference(known: Schema, given: Schema) -> str:
    """Return the first thing in which two schemas differ, in words."""
    if essential(known.target) != essential(given.target):
        return f"the target is {known.target} in the model, {given.target} in the agreed one"
    if (of_columns := _difference_of_columns(known, given)) is not None:
        return of_columns
    if known.terms != given.terms or known.intercept != given.intercept:
        own, other = (", ".join(schema.names) for schema in (known, given))
        return f"the columns of the rows are {own} in the model, {other} in the agreed one"
    differ = [name for name in ("persons", "row_scale") if getattr(known, name) != getattr(given, name)]
    if differ:
        what = {"persons": "the column of persons", "row_scale": "the scale of the rows"}[differ[0]]
        own, other = (getattr(schema, differ[0]) or "none" for schema in (known, given))
        return f"{what} is {own} in the model, {other} in the agreed one"
    return "the columns are in another order"


def _difference_of_columns(known: Schema, given: Schema) -> str | None:
    ours, theirs = ({column.name: column for column in schema.columns} for schema in (known, given))
    for name in ours | theirs:
        if name not in ours or name not in theirs:
            return f"column {name!r} is only in {'the model' if name in ours else 'the agreed one'}"
        if (fields := _fields(ours[name])) != (others := _fields(theirs[name])):
            part = next(part for part in fields | others if fields.get(part) != others.get(part))
            own, other = fields.get(part), others.get(part)
            if isinstance(own, tuple) and isinstance(other, tuple):
                lists = f"{', '.join(own)} in the model, {', '.join(other)} in the agreed one"
                same = "the same categories in another order" if sorted(own) == sorted(other) else "the categories"
                return f"column {name!r} has {same}: {lists}"
            return f"column {name!r} has {_PARTS.get(part, part)} {own!r} in the model, {other!r} in the agreed one"
    return None


def _fields(column: Column) -> dict[str, object]:
    kept = {name: value for name, value in vars(column).items() if name not in {"source", "unit", "per"}}
    return {"kind": type(column).__name__, **kept}
