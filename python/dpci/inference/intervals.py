"""Confidence intervals as an object: bounds, level, and what each row is about."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpci.base.tables import ERROR_DIGITS, format_percent, new_frame, number_format
from dpci.shown.displayed import Displayed
from dpci.shown.document import Document, Paragraph, Table
from dpci.shown.text import table_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ConfidenceIntervals"]

# What the parameters of a fit with a schema are of: `conf_int` and `wald_test` of the fit, and of `in_units()`.
SCALED, OF_TABLE = "scaled columns", "units of the table"


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceIntervals(Displayed):
    """Confidence intervals; ``numpy.asarray`` gives an array of shape (m, 2).

    Attributes
    ----------
    names : tuple of str
        Parameters, contrasts or rows.
    estimate : numpy.ndarray of shape (m,)
        Released parameters or contrasts of them.
    lower, upper : numpy.ndarray of shape (m,)
        Bounds.
    level : float
        Probability, before the data and the noise are drawn, that an interval covers its target; for simultaneous
        intervals, that all of them do.
    method : str
        "exact" or "monte_carlo".
    simultaneous : str or None
        How the intervals cover together, "bonferroni" or "max_z"; None for intervals that cover one by one.
    refusals : tuple of str or None
        The reason why a row has no interval, but NaN; None for a row that has one. Used for the unregularised target
        only.
    units : str
        Unit of the parameters of a fit with a schema, "scaled columns" or "units of the table"; otherwise empty.
    """

    names: tuple[str, ...]
    estimate: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    level: float
    method: str
    simultaneous: str | None = None
    refusals: tuple[str | None, ...] = ()
    units: str = ""

    def __post_init__(self) -> None:
        if not self.refusals:
            object.__setattr__(self, "refusals", (None,) * len(self.names))
        for array in (self.estimate, self.lower, self.upper):
            array.flags.writeable = False

    @property
    def length(self) -> NDArray[np.float64]:
        """Length of each interval."""
        return self.upper - self.lower

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return iter([(float(low), float(high)) for low, high in zip(self.lower, self.upper, strict=True)])

    def __array__(
        self,
        dtype: DTypeLike | None = None,
        copy: bool | None = None,  # noqa: FBT001  # the signature is numpy's
    ) -> NDArray[np.float64]:
        if copy is False:
            raise ValueError("the bounds are stored apart, so an array of them is always a copy, got copy=False")
        return np.column_stack([self.lower, self.upper]).astype(np.float64 if dtype is None else dtype, copy=False)

    def __repr__(self) -> str:
        return "\n".join([table_text(self._table()), *self._refused()])

    def _document(self) -> Document:
        return Document(parts=[self._table(), *map(Paragraph, self._refused())])

    def _table(self) -> Table:
        given = np.isfinite(self.length)
        shown = number_format(self.length[given], self.estimate[given], digits=ERROR_DIGITS)
        rows = [
            [name, f"{estimate:{shown}}", f"{low:{shown}}", f"{high:{shown}}"]
            for name, estimate, (low, high) in zip(self.names, self.estimate, self, strict=True)
        ]
        kind = "intervals" if self.simultaneous is None else f"simultaneous intervals ({self.simultaneous})"
        title = f"{format_percent(self.level)} {kind}{f', {self.units}' if self.units else ''}"
        return Table([title, "estimate", "lower", "upper"], rows)

    def _refused(self) -> list[str]:
        return [f"{name}: {reason}" for name, reason in zip(self.names, self.refusals, strict=True) if reason]

    def to_frame(self) -> "pd.DataFrame":
        """Return estimate, lower and upper as a pandas frame indexed by name; needs pandas."""
        columns = {"estimate": self.estimate, "lower": self.lower, "upper": self.upper}
        return new_frame(columns, self.names)


def given_rows(intervals: ConfidenceIntervals) -> ConfidenceIntervals:
    """Return the intervals that are given."""
    given = np.array([reason is None for reason in intervals.refusals], dtype=bool)
    if given.all():
        return intervals
    return replace(
        intervals,
        names=tuple(compress(intervals.names, given)),
        estimate=intervals.estimate[given],
        lower=intervals.lower[given],
        upper=intervals.upper[given],
        refusals=(),
    )
