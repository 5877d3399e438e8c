"""How a regression is shown: the table of its coefficients, its facts, and its page."""

import math

import numpy as np
from numpy.typing import NDArray

from dpci.base.tables import format_percent, format_pvalue, number_format
from dpci.base.validation import check_fraction
from dpci.errors import InvalidInput
from dpci.inference.targets.units import TableUnits
from dpci.regression.equations import Model, Solution
from dpci.regression.estimates import LinearEstimates
from dpci.regression.record import MomentRecord, ReleaseFacts, conditions, release_lines
from dpci.report.html.elements import bullets, data_table, section, tag
from dpci.report.html.forest import forest_figure
from dpci.report.html.page import document, guarantee_section
from dpci.schema.columns import NumericTarget

_F64 = NDArray[np.float64]

NOTE = "The intervals count the sampling and the noise; the column noise has its part of the error variance."


def units_of(record: MomentRecord, model: Model, solution: Solution) -> TableUnits:
    """Return the coefficients in the units of the table.

    A column x of the release is a + b z of the column z of the table; so is the target.

    Raises
    ------
    InvalidInput
        For a release without a schema.
    """
    schema = record.table
    if schema is None or not isinstance(schema.target, NumericTarget):
        raise InvalidInput("units of a table need a release with a schema (dpci.fit(..., schema=)), got one without")
    scaled, (offset, slope) = schema.from_units(), schema.target.scaling
    places = {name: (scaled[i, -1], scaled[i, i]) for i, name in enumerate(record.columns)}
    places[record.target] = (offset, slope)
    units = {**dict(zip(record.columns, schema.units, strict=True)), record.target: schema.target.unit or "per unit"}
    start, scale = places[model.target]
    k = len(model.names)
    d = len(model.features)
    matrix, shift = np.zeros((d + 1, k)), np.zeros(d + 1)
    for i, name in enumerate(model.features):
        matrix[i, i] = places[name][1] / scale
        matrix[d, i] = places[name][0] / scale
    shift[d] = -start / scale
    if model.fit_intercept:
        matrix[d, d] = 1.0 / scale
    # Without an intercept the encoded columns have one in the units of the table, unless none of them is moved.
    kept = slice(None) if model.fit_intercept or matrix[d].any() or shift[d] else slice(d)
    names, per = (*model.features, "intercept"), (*(units[name] for name in model.features), "at 0")
    estimates = LinearEstimates.of(solution).mapped(matrix[kept], shift[kept])
    return TableUnits(estimates, names[kept], per[kept], joint_method="joint", private=record.private)


def coefficient_table(
    record: MomentRecord, model: Model, solution: Solution, level: float
) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the table of the coefficients, in the units of the table where there is a schema."""
    shown: TableUnits | None = None if record.table is None else units_of(record, model, solution)
    if shown is None:
        estimates = LinearEstimates.of(solution)
        parts = estimates.parts()
        values, errors, pvalues = estimates.values(), estimates.std_errors(), estimates.pvalues()
        intervals = estimates.conf_int(model.names, level=level)
        shares = [f"{share:.0%}" for share in 1.0 - parts.sampling / parts.variance]
        heads, last = [[name] for name in model.names], ["noise"]
    else:
        values, errors, pvalues = shown.params, shown.std_errors, shown.pvalues
        intervals = shown.conf_int(level=level)
        heads = [list(head) for head in zip(shown.names, shown.units, strict=True)]
        shares, last = [""] * len(values), []
    digits = [number_format(error, value) for error, value in zip(errors, values, strict=True)]
    if shown is None:
        digits = [number_format(errors, values)] * len(values)
    columns = zip(heads, digits, values, errors, pvalues, intervals.lower, intervals.upper, shares, strict=True)
    rows = [
        [*head, f"{b:{x}}", f"{e:{x}}", format_pvalue(p), f"{lo:{x}}", f"{hi:{x}}", *([share] if last else [])]
        for head, x, b, e, p, lo, hi, share in columns
    ]
    unit = [] if shown is None else ["unit"]
    return ["name", *unit, "estimate", "std error", "p-value", "lower", "upper", *last], rows


def fact_lines(record: MomentRecord, model: Model, solution: Solution) -> list[tuple[str, str]]:
    """Return the facts that a reader needs to judge the coefficients."""
    spread = math.sqrt(solution.residual_variance)
    if record.table is not None and isinstance(record.table.target, NumericTarget) and model.target == record.target:
        spread /= record.table.target.scaling[1]
    return [
        ("regression", f"of {model.target}, {model.covariance} covariance"),
        ("budget spent", f"{record.total_budget()}, by the moment matrix"),
        ("n (public)" if record.neighbors == "add_remove" else "n", f"{record.n_samples:,}"),
        ("residual std dev", f"{spread:.4g}"),
        *([("lambda", f"{model.l2_strength:g}")] if model.l2_strength else []),
    ]


def regression_page(
    facts: ReleaseFacts, record: MomentRecord, model: Model, solution: Solution, *, level: float, title: str | None
) -> str:
    """Return the page of a regression; see :meth:`LinearFit.to_html`.

    Raises
    ------
    InvalidInput
        For arguments out of range.
    """
    level = check_fraction("level", level)
    if title is not None and not isinstance(title, str):
        raise InvalidInput(f"title must be a string or None, got title={title!r}")
    kind = "A private linear regression" if record.private else "A linear regression with seeded noise"
    percent = format_percent(level)
    header, rows = coefficient_table(record, model, solution, level)
    unit = "" if record.table is None else " in the units of the table"
    intervals = LinearEstimates.of(solution).conf_int(model.names, level=level)
    lines = [*fact_lines(record, model, solution), *release_lines(record)]
    target = "the regularised coefficient" if model.l2_strength else "the coefficient of ordinary least squares"
    caveats = [
        f"Each interval covers its target, {target} in the population, in {percent} of such studies.",
        NOTE if record.table is None else "The intervals count the sampling and the noise.",
        "Each of them is valid by itself, for a model that was chosen before the data were seen.",
        *(["Numbers beyond the public bounds were moved to the bounds."] if record.on_violation == "clip" else []),
    ]
    table = data_table(f"Coefficients{unit}, {percent} intervals", header, rows)
    release = data_table("The release", ["what", "value"], [[name.strip(), value] for name, value in lines])
    content = [
        tag("p", f"Regression of {model.target} from one released moment matrix, {facts.spent}.", class_="lead"),
        section("numbers", "Coefficients", table, forest_figure(intervals)),
        section("budget", "The release and its budget", release),
        *([guarantee_section(facts.guarantee, record.neighbors)] if record.private else []),
        section("caveats", "What to keep in mind", bullets(list(caveats))),
        section(
            "conditions",
            "Assumptions of the guarantee",
            bullets([f"{fact[0].upper()}{fact[1:]}." for fact in conditions(record)]),
        ),
    ]
    heading = f"{kind} of {model.target}" if title is None else title
    return document(heading, content, private=record.private, version=record.version)
