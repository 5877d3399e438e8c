"""The choices of a moment matrix that the keywords of ``release`` and of ``dpci.fit`` make."""

from typing import Any

from numpy.typing import ArrayLike

from dpci.base.validation import broken
from dpci.errors import InvalidInput
from dpci.losses import Squared
from dpci.regression.choices.bounds import Bounds
from dpci.regression.choices.matrix import MatrixChoices
from dpci.regression.choices.targets import Targets
from dpci.rows import Ball, Blocks, RowDomain, row_domain
from dpci.schema.columns import NumericTarget
from dpci.schema.table import Schema


def matrix_choices(
    y: Any,  # noqa: ANN401  # whatever the caller has
    *,
    bounds: tuple[ArrayLike, ArrayLike] | None,
    row_norm: float | None,
    rows: RowDomain | None,
    target_bound: object,
    **keywords: Any,  # noqa: ANN401  # of MatrixChoices
) -> MatrixChoices:
    """Return the choices that the keywords of :func:`release` make; of y the number and names of columns are used.

    Raises
    ------
    InvalidInput
        For values out of range or that contradict each other.
    """
    targets = Targets.checked(y, target_bound)
    placed, domain = _place(bounds, row_norm, rows, several=targets.further > 0)
    return MatrixChoices(bounds=placed, domain=domain, targets=targets, **keywords)


def choices_of_fit(
    *,
    rows: RowDomain | None,
    row_norm: float | None,
    schema: Schema | None,
    loss: Squared,
    **keywords: Any,  # noqa: ANN401  # of MatrixChoices
) -> MatrixChoices:
    """Return the choices that the keywords of :func:`dpci.fit` make.

    Raises
    ------
    InvalidInput
        For values out of range, and rows and a loss that contradict the schema.
    """
    middle, half, name = 0.0, loss.target_bound, None
    if schema is None:
        placed, domain = _place(None, row_norm, rows)
    else:
        if not isinstance(schema.target, NumericTarget):
            raise InvalidInput("the target of the schema must be a number for the squared loss, got classes")
        given = None if rows is None and row_norm is None else row_domain(row_norm, rows)
        if given not in (None, Ball(schema.row_norm), schema.rows):
            raise InvalidInput(f"rows must be those of the schema, {schema.domain!r}, got {given!r}")
        if loss != Squared():
            raise InvalidInput(f"target_bound must be 1 with a schema, which scales the targets, got {loss!r}")
        placed, domain, name = Bounds.of_schema(schema), schema.rows, schema.target.column
        if schema.target.scale == "unit":
            middle, half = 0.5, 0.5
    return MatrixChoices(
        bounds=placed, domain=domain, targets=Targets.one(middle, half, name), schema=schema, **keywords
    )


def _place(
    bounds: tuple[ArrayLike, ArrayLike] | None,
    row_norm: float | None,
    rows: RowDomain | None,
    *,
    several: bool = False,
) -> tuple[Bounds | None, RowDomain | None]:
    """Return by what columns are moved and scaled, and the domain of the rows; one of the three says which."""
    if bounds is None:
        domain = row_domain(row_norm, rows)
        if several and not isinstance(domain, Blocks):
            raise InvalidInput(
                "several targets require bounds of the columns of X, or rows in blocks, got rows in a ball (pass "
                "bounds=(lower, upper), or pass further targets as columns of X)"
            )
        return (Bounds.of_blocks(domain, always=several) if isinstance(domain, Blocks) else None), domain
    for name, value in (("row_norm", row_norm), ("rows", rows)):
        if value is not None:
            raise broken(name, "None with bounds of the columns", value)
    return Bounds.checked(bounds), None
