"""The public values of a release, each with the source that its schema states."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dpci.losses import SEVERAL
from dpci.released.bounds import RELEASED
from dpci.released.choices import given_weights
from dpci.released.record import FitRecord, Record
from dpci.rows import Ball, Blocks
from dpci.schema.cells import drops, stand_in
from dpci.schema.columns import CategoricalColumn, ClassTarget, NumericColumn, NumericTarget
from dpci.schema.formula import formula_text
from dpci.schema.table import Schema

_OF_CUSTOM = ("slope_bound", "curvature_bound", "predictor_bound", "strong_convexity")


class PublicValue(NamedTuple):
    """A value that must not depend on the data, and why it is public."""

    name: str
    value: str
    source: str
    """Empty where none is stated."""


def public_values(record: FitRecord) -> list[PublicValue]:
    """Return what was chosen for a release: bounds, classes, lists of categories, regularisation."""
    table, loss = record.table, record.loss
    found = [
        PublicValue("rows", _rows_text(record.rows), "" if table is None else "follows from the columns"),
    ]
    if record.newton is None:
        found.append(PublicValue("l2_strength", f"{record.l2_strength:g}", ""))
    found += [PublicValue(name, value, "") for name, value in record.made_choices]
    if record.neighbors == "add_remove":
        source = "released with noise, as a part of the whole" if record.n_is_released else ""
        found.append(PublicValue("n_public", f"{record.n_samples:,}", source))
    found += count_values(record)
    if loss["name"] == "custom":
        found += [PublicValue(name, f"{loss[name]:g}", "") for name in _OF_CUSTOM if loss[name]]
    if table is None:
        found.append(PublicValue("columns", ", ".join(record.columns), ""))
    if record.classes is not None:
        source = "INFERRED FROM THE DATA" if record.classes_inferred else source_of_classes(table)
        found.append(PublicValue("classes", ", ".join(_classes(record.classes, table)), source))
    elif table is None and loss["target_bounds"] is not None and loss["name"] != SEVERAL:
        found.append(interval_value("target", *loss["target_bounds"]))
    return found + ([] if table is None else list(table_values(table)))


def _rows_text(rows: Ball | Blocks) -> str:
    """Return the domain of the rows, as a sentence has it."""
    if isinstance(rows, Ball):
        return f"a length of at most {rows.norm:.4g}"
    alone, grouped = len(rows.bounds), rows.n_columns - len(rows.bounds)
    parts = [f"{alone} {'column' if alone == 1 else 'columns, each'} within its own bound"] if alone else []
    if rows.groups:
        parts.append(f"{grouped} columns in {len(rows.groups)} group{'s'[: len(rows.groups) > 1]} with a bound each")
    return ", and ".join(parts)


def _classes(classes: Iterable[object], table: Schema | None) -> Iterator[str]:
    """Yield the classes, each with the further spellings that a schema gives it."""
    if table is None or not isinstance(table.target, ClassTarget):
        yield from map(str, classes)
        return
    for first, *others in (table.target.negative, table.target.positive):
        yield first + (f" (also written {', '.join(others)})" if others else "")


def source_of_classes(table: Schema | None) -> str:
    """Return what a schema states about its classes; empty where it states nothing."""
    return "" if table is None else table.target.source


def interval_value(name: str, lower: float, upper: float, source: str = "") -> PublicValue:
    """Return the bounds of a column or a target."""
    return PublicValue(name, f"{lower:g} to {upper:g}", source)


def count_values(record: Record) -> Iterator[PublicValue]:
    """Yield the public values that determine how much rows count."""
    weights = given_weights(record.weights, record.table)
    if record.persons is not None:
        yield PublicValue("persons", str(record.persons), "")
    if weights is not None:
        yield PublicValue("bound of weights", f"{weights.bound:g}", "")
    if weights is not None and weights.total is not None:
        yield PublicValue("total of weights", f"{weights.total:g}", "")


def weights_words(record: Record) -> str:
    """Return how much records weigh; empty where each counts once."""
    if record.weights is None:
        return ""
    left_out = "0 for rows that miss a value and are left out"
    if record.weights.left_out:
        return f"1 for each record, {left_out}"
    drops = record.table is not None and record.table.drops
    return f"{record.weights}, {left_out}" if drops else str(record.weights)


def table_values(table: Schema) -> Iterator[PublicValue]:
    """Yield the formula, the bounds and the lists of a schema with their sources."""
    if table.terms:
        text = formula_text(table.target.column, table.terms, intercept=table.intercept)
        yield PublicValue("formula", text, "")
    if isinstance(target := table.target, NumericTarget):
        yield _bounds_value(f"target {target.column}", target)
    for column in table.columns:
        if isinstance(column, CategoricalColumn):
            yield PublicValue(f"column {column.name}", ", ".join(column.categories), column.source)
        else:
            found = _bounds_value(f"column {column.name}", column)
            by = f" days since {column.since}" if column.since else ""
            by += "" if column.transform == "none" else f" (transform {column.transform})"
            yield found._replace(value=found.value + by)


def _bounds_value(name: str, part: NumericColumn | NumericTarget) -> PublicValue:
    found = interval_value(name, part.lower, part.upper, part.source)
    if not part.source.startswith(RELEASED):
        return found
    # Further digits of released bounds say nothing to a reader.
    lower, upper = (float(f"{bound:.4g}") for bound in (part.lower, part.upper))
    return found._replace(value=f"{lower:.15g} to {upper:.15g}")


def exceptions(table: Schema) -> list[tuple[list[str], str]]:
    """Return what happens to values that are missing, beyond the bounds or not in the list.

    Each rule stands once, after the names of the columns that it is for, the target among them.
    """
    columns: dict[str, list[str]] = {}
    for column in table.columns:
        columns.setdefault(_exception(column), []).append(column.name)
    target = "moved to the nearer bound" if isinstance(table.target, NumericTarget) else _FAILS
    what = "beyond the bounds" if isinstance(table.target, NumericTarget) else "not in the list"
    columns.setdefault(f"{what}, {target}; missing, {_FAILS}", []).append(table.target.column)
    return [(names, rule) for rule, names in columns.items()]


def failures(table: Schema) -> dict[str, list[str]]:
    """Return the columns at whose values a release fails, the target among them, by what these values are."""
    found: dict[str, list[str]] = {}
    for column in table.columns:
        if isinstance(column, NumericColumn):
            if column.outside == "error":
                found.setdefault("values beyond the bounds of", []).append(column.name)
            is_refused = column.missing == "error"
        else:
            if column.refuses:
                found.setdefault("values outside the list of", []).append(column.name)
            is_refused = column.missing is None and column.refuses
        if is_refused:
            found.setdefault("missing values of", []).append(column.name)
    if not isinstance(table.target, NumericTarget):
        found.setdefault("values outside the list of", []).append(table.target.column)
    found.setdefault("missing values of", []).append(table.target.column)
    return found


_FAILS, _LEFT_OUT = "the release fails", "its row weighs 0"


def _exception(column: NumericColumn | CategoricalColumn) -> str:
    if isinstance(column, NumericColumn):
        beyond = {"clip": "moved to the nearer bound", "weight": "kept, and the row weighs less"}.get(
            column.outside, _FAILS
        )
        value = stand_in(column)
        missing = _FAILS if value is None else f"replaced by {value:g}, which a further column marks"
        return f"beyond the bounds, {beyond}; missing, {_LEFT_OUT if drops(column) else missing}"
    other = _FAILS if column.refuses else "counted as none of the list"
    other = other if column.other is None else f"counted as {column.other}"
    missing = other if stand_in(column) is None else f"counted as {stand_in(column)}"
    return f"not in the list, {other}; missing, {_LEFT_OUT if drops(column) else missing}"
