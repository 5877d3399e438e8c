"""The public values of a release, each with the source that its schema states."""

from typing import NamedTuple

from dpci.released.record import FitRecord
from dpci.schema.columns import CategoricalColumn, NumericTarget


class PublicValue(NamedTuple):
    """A value that must not depend on the data, and why it is public."""

    name: str
    value: str
    source: str
    """Empty where none is stated."""


def public_values(record: FitRecord) -> list[PublicValue]:
    """Return what was chosen for a release: bounds, classes, lists of categories, regularisation."""
    found = [
        PublicValue("rows", str(record.rows), "" if record.table is None else "follows from the columns"),
        PublicValue("l2_strength", f"{record.l2_strength:g}", ""),
    ]
    if record.radius is not None:
        found.append(PublicValue("radius", f"{record.radius:g}", ""))
    if record.neighbors == "add_remove":
        source = "released with noise, as a part of the whole" if record.n_is_released else ""
        found.append(PublicValue("n_public", f"{record.n_samples:,}", source))
    if record.classes is not None:
        source = "INFERRED FROM THE DATA" if record.classes_inferred else ""
        found.append(PublicValue("classes", ", ".join(map(str, record.classes)), source))
    if record.table is None:
        return found
    if isinstance(target := record.table.target, NumericTarget):
        found.append(PublicValue(f"target {target.column}", f"{target.lower:g} to {target.upper:g}", target.source))
    for column in record.table.columns:
        if isinstance(column, CategoricalColumn):
            value = ", ".join(column.categories)
        else:
            value = f"{column.lower:g} to {column.upper:g}"
        found.append(PublicValue(f"column {column.name}", value, column.source))
    return found
