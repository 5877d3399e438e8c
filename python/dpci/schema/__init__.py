"""Public description of a table, which turns records into bounded rows without looking at the data.

A range, a category list or a scale that is computed from the records is itself a statement about them. Here all of them
are written down beforehand: a `Schema` is known before any data, and what it does to one record does not depend on any
other record.
"""

from dpci.base.naming import name_publicly
from dpci.schema.check import Finding, SchemaCheck
from dpci.schema.columns import (
    CategoricalColumn,
    CategoricalTarget,
    ClassTarget,
    NumericColumn,
    NumericTarget,
    UnboundedColumn,
    UnboundedTarget,
    UnlistedColumn,
)
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Encoded, Schema, Table
from dpci.schema.terms import Levels, Power, Spline, Term

__all__ = [
    "CategoricalColumn",
    "CategoricalTarget",
    "ClassTarget",
    "Encoded",
    "Finding",
    "Levels",
    "NumericColumn",
    "NumericTarget",
    "PartialSchema",
    "Power",
    "Schema",
    "SchemaCheck",
    "Spline",
    "Table",
    "Term",
    "UnboundedColumn",
    "UnboundedTarget",
    "UnlistedColumn",
]

name_publicly(__name__, __all__)
