"""Models as commands show them: their numbers for programs to read, and their predictions for tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci.data.arrays import NamedRows
from dpci.errors import InvalidInput
from dpci.inference.intervals import ConfidenceIntervals, estimates_of
from dpci.inference.methods import FitInference
from dpci.losses import COUNTS, LOCATIONS, PROBABILISTIC
from dpci.released.model import Released, record_of
from dpci.released.result import Shown
from dpci.report.summary import Numbers, View, ratio_intervals, ratios_of
from dpci.report.summary import numbers_of as answered
from dpci.rows import Blocks
from dpci.schema.columns import NumericTarget, class_labels
from dpci.schema.table import Schema
from dpci.shown.document import Document


class ShownModel(Shown):
    """A linear model as commands show it."""

    PREDICTS = True
    result: Released[Any, Any]

    def numbers(self, view: View) -> dict[str, Any]:
        """Return the facts of the summary for programs to read."""
        return numbers_of(self.result, view, parameters=parameters_of(self.result), classes=self.result.classes)

    def encoding(self, given: Schema | None) -> Schema:
        """Return the schema that encodes tables for the model: rows in blocks come from the one that is not divided."""
        schema = super().encoding(given)
        if self.result.schema is not None:
            return schema
        whole, rows = replace(schema, encoding="full_range"), record_of(self.result).rows
        if rows in (whole.rows, schema.rows):
            return whole if rows == whole.rows else schema
        if isinstance(rows, Blocks):
            raise InvalidInput(f"--schema must bound the rows like the schema of the fit, {rows!r}, got {whole.rows!r}")
        return schema

    def predicted(self, rows: NamedRows, schema: Schema) -> list[Any]:
        """Return predictions as the table has its target: labels instead of -1 and 1, and units instead of [-1, 1]."""
        fitted, target = self.result, schema.target
        if not isinstance(target, NumericTarget):
            predicted = super().predicted(rows, schema)
            if fitted.classes != (-1, 1):
                return predicted
            # A model of Python, of encoded targets.
            labels = class_labels(target) or fitted.classes
            return [None if sign is None else labels[sign > 0] for sign in predicted]
        name = fitted.loss["name"]
        if name in (*LOCATIONS, *COUNTS):
            found = fitted.predict(rows)
            return list((found if fitted.schema is not None else target.decode(found)).tolist())
        scaled = fitted.predict_proba(rows)[:, 1] if name in PROBABILISTIC else fitted.decision_function(rows)
        return list(target.decode(scaled).tolist())

    def probable(self, rows: NamedRows) -> Sequence[list[float]]:
        """Return the probability of the positive class."""
        return super().probable(rows)[1:]


class ShownFit(ShownModel):
    """A fit with intervals as commands show it."""

    result: FitInference

    def document(self, view: View, *, full: bool = False) -> Document:
        """Return the summary as a document."""
        from dpci.report.page import summary_of  # noqa: PLC0415  # most programs show nothing

        return summary_of(record_of(self.result), view, full=full)

    def sheet(self, view: View, **given: Any) -> Document:  # noqa: ANN401  # keywords of page_of
        """Return the page as a document."""
        from dpci.report.page import page_of  # noqa: PLC0415  # most programs write no page

        return page_of(record_of(self.result), view, **given)

    def numbers(self, view: View) -> dict[str, Any]:
        """Return the facts of the summary for programs to read."""
        result = self.result
        parameters = table_rows({"name": record_of(result).names, "estimate": or_null(result.scaled.params)})
        if result.interval_refusal is None:
            estimates = estimates_of(record_of(result), view.target)
            names = record_of(result).names
            intervals = estimates.conf_int(names, level=view.level, simultaneous=view.simultaneous)
            parameters = interval_rows(intervals, estimates.std_errors(), estimates.pvalues())
        in_units = self._in_units(view)
        found = numbers_of(result, view, parameters=parameters, in_units=in_units, classes=result.classes)
        return {**found, **self._ratios(view)}

    def _ratios(self, view: View) -> dict[str, Any]:
        """Return odds or rate ratios with intervals, where there are some."""
        numbers = answered(record_of(self.result), view)
        found = None if numbers is None else ratio_intervals(numbers)
        if numbers is None or found is None:
            return {}
        columns = {"estimate": found.estimate, "lower": found.lower, "upper": found.upper}
        shown = {name: or_null(values) for name, values in columns.items()}
        return {f"{ratios_of(numbers)}_ratios": table_rows({"name": found.names, "unit": found.per, **shown})}

    def _in_units(self, view: View) -> list[dict[str, Any]] | None:
        """Return the coefficients in the units of the table, where there are some."""
        result = self.result
        if result.schema is None:
            return None
        if result.interval_refusal is not None:
            return table_rows({"name": result.names, "unit": result.units, "estimate": or_null(result.params)})
        found = Numbers(record_of(result), replace(view, units="table"))
        return interval_rows(found.intervals, found.std_errors, found.estimates.pvalues(), units=found.units)


def numbers_of(
    result: Any,  # noqa: ANN401  # of any kind with estimates
    view: View,
    *,
    parameters: list[dict[str, Any]],
    in_units: list[dict[str, Any]] | None = None,
    classes: object = None,
) -> dict[str, Any]:
    """Return estimates with their intervals, or why there are none, and the record of the guarantee.

    ``parameters``: those of the columns as the fit saw them; ``in_units``: the same in the units of a table.
    """
    return {
        "private": result.private,
        "coefficients": parameters if in_units is None else in_units,
        "scaled": None if in_units is None else parameters,
        "level": view.level,
        "target": view.target,
        "simultaneous": view.simultaneous,
        "interval_refusal": result.interval_refusal,
        "n_samples": result.n_samples,
        "classes": classes,
        # The winner of a selection has none: that of the tuning stands there.
        "privacy": getattr(result, "privacy", None),
    }


def parameters_of(result: Released[Any, Any]) -> list[dict[str, Any]]:
    """Return the parameters without intervals."""
    record = record_of(result)
    return table_rows({"name": record.names, "estimate": record.params.tolist()})


def interval_rows(
    intervals: ConfidenceIntervals,
    errors: NDArray[np.float64],
    pvalues: NDArray[np.float64],
    *,
    units: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Return one row for each interval; null and the reason where one is not given."""
    rows = table_rows(
        {
            "name": intervals.names,
            **({} if units is None else {"unit": units}),
            "estimate": or_null(intervals.estimate),
            "std_error": or_null(errors),
            "p_value": or_null(pvalues),
            "lower": or_null(intervals.lower),
            "upper": or_null(intervals.upper),
        }
    )
    reasons = zip(rows, intervals.refusals, strict=True)
    return [row if reason is None else {**row, "refusal": reason} for row, reason in reasons]


def or_null(values: NDArray[np.float64]) -> list[float | None]:
    """Return numbers, and None in the place of NaN."""
    return [None if np.isnan(value) else value for value in values.tolist()]


def table_rows(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
