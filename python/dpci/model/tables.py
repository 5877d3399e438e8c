"""Checks of a schema that a fit or a plan is given."""

from dpci.base.validation import check_count
from dpci.errors import InvalidInput
from dpci.losses import COUNTS
from dpci.schema.columns import NumericTarget
from dpci.schema.table import Schema
from dpci.sources.described import check_schema


def check_counts(loss: str, schema: Schema) -> None:
    """Refuse a loss of counts for a target that a schema encodes as anything but a share of its upper bound."""
    target = schema.target
    if loss in COUNTS and isinstance(target, NumericTarget) and (target.scale, target.lower) != ("unit", 0.0):
        raise InvalidInput(
            f"the target of a schema must have scale='unit' and lower=0 for the {loss} loss, which then models counts "
            f"in units of its upper bound (count_bound=1), got scale={target.scale!r} and lower={target.lower:g}"
        )


def n_planned_columns(n_features: object, schema: Schema | None) -> int:
    """Return the number of columns that a plan is given, or that of its schema."""
    if schema is None:
        if n_features is None:
            raise InvalidInput("n_features must be given for a plan without a schema, got None")
        return check_count("n_features", n_features, least=0)
    n_columns = len(check_schema(schema).names)
    if n_features is not None and check_count("n_features", n_features, least=0) != n_columns:
        raise InvalidInput(f"n_features must be that of the schema, {n_columns}, or None, got n_features={n_features}")
    return n_columns
