"""Reasons why a single estimate is not given."""

import numpy as np
from numpy.typing import NDArray

from dpci.released.calibration import last_step
from dpci.released.newton import Newton
from dpci.released.record import FitRecord
from dpci.schema.columns import NumericColumn
from dpci.schema.table import Schema

_F64 = NDArray[np.float64]

REASONS = {
    "hidden": "the noise in the released Hessian hides how far the ridge moved it",
    "ridge_too_strong": "the ridge is too strong: one step off it may not reach the target",
}
"""Why a contrast is not given, in words."""
_HIDDEN = "at this budget the noise hides it"
_NOT_SEEN = f"{_HIDDEN}; if it is nearly a sum of others, leave one out"


class NewtonObstacles:
    """Directions of a fit by Newton steps along which the noise hides the Hessian."""

    def __init__(self, record: FitRecord, newton: Newton) -> None:
        self._last_step = last_step(record, newton)
        self._table, self._names = record.table, record.columns

    def refusals(self, contrasts: _F64) -> tuple[str | None, ...]:
        """Return why each contrast is not given, None for each that is."""
        shown = self._last_step.shows(np.ascontiguousarray(contrasts))
        return tuple(None if seen else self._reason(row) for seen, row in zip(shown, contrasts, strict=True))

    def _reason(self, contrast: _F64) -> str:
        """Return what hides a contrast: of one column of a table that which its kind makes likely."""
        places = np.flatnonzero(contrast)
        if len(places) != 1 or places[0] >= len(self._names) or self._table is None:
            return _NOT_SEEN
        return _hidden(self._table, self._names[places[0]])


def _hidden(table: Schema, name: str) -> str:
    """Return why a coefficient of a column of the matrix is not given, without a claim about the rows."""
    for column in table.columns:
        if isinstance(column, NumericColumn):
            if name == f"{column.name}=missing":
                return _HIDDEN
            if name == column.name:
                bounds = f"{column.lower:,.6g} to {column.upper:,.6g}"
                return f"{_HIDDEN}; narrower public bounds than {bounds} may help, or leaving out a sum of others"
        elif name in column.names:
            return _HIDDEN
    return _NOT_SEEN
