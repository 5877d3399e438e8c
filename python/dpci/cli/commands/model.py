"""The commands that take released models, ``predict``, ``report`` and ``compare``: no training data, and no cost."""

import csv
import dataclasses
import itertools
import json as json_format
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from dpci.base.progress import progress_bar
from dpci.base.validation import composed
from dpci.cli import options
from dpci.cli.app import Command, app, note, show_json, wants_progress
from dpci.cli.delivery import show, write_officer_report, write_page
from dpci.cli.options import INPUT, INTERVALS, OUTPUT, find_schema, option, schema_files
from dpci.cli.output import PAGES, TEXTS, check_form, check_new, check_text, new_file
from dpci.cli.rows import TableRows
from dpci.cli.saved import load, read_model, read_whole
from dpci.errors import InvalidInput
from dpci.inference import comparison
from dpci.inference.comparison import Comparison
from dpci.released.result import Shown
from dpci.report.commands import interval_rows, or_null
from dpci.report.summary import View
from dpci.schema.table import Schema, same_columns
from dpci.sources.files import open_text
from dpci.sources.find import find_tables

_PREDICT_EXAMPLES = """\
dpci predict model.json people.csv --schema people.toml --output predicted.csv
dpci predict model.json people.csv --schema people.toml --proba --keep age --json
dpci predict model.json - --schema people.toml --proba < people.csv
"""

_REPORT_EXAMPLES = """\
dpci report model.json
dpci report model.json --level 0.99 --json
dpci report model.json --without-ridge --simultaneous max_z
dpci report model.json --output report.html
dpci report model.json --officer --output approval.html
dpci report model.json --officer --ledger people.ledger --schema people.toml
"""

_COMPARE_EXAMPLES = """\
dpci compare model.json other.json
dpci compare model.json other.json --shared-data --without-ridge --json
"""

Model = Annotated[
    Path, typer.Argument(metavar=("MODEL"), help="File of a released model, as written by dpci fit --output.")
]


@app.command(cls=Command, epilog=_PREDICT_EXAMPLES)
@options.with_options()
def predict(
    model: Model,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="TABLE", help="Table as for fit, with or without the target; - reads CSV from stdin."),
    ],
    *,
    schema: options.ModelSchema = None,
    form: options.FormatOptions,
    chunk_rows: options.ChunkRows = None,
    proba: Annotated[
        bool,
        option(
            OUTPUT,
            "Add the probability of the positive class, or of each of several (logistic losses only).",
            "--proba",
        ),
    ] = False,
    keep: Annotated[
        list[str] | None, option(OUTPUT, "Column to copy next to the predictions; may be repeated.")
    ] = None,
    output: Annotated[
        Path | None, option(OUTPUT, "Write to this new file (compressed if its name ends in .gz) instead of stdout.")
    ] = None,
    force: options.Force = False,
    json: Annotated[bool, option(OUTPUT, "Write one JSON object for each row instead of CSV.", "--json")] = False,
    quiet: options.Quiet = False,
    progress: options.Progress = None,
) -> None:
    """Predict for every row of a table.

    Predictions are in the order of the rows, as labels or in units of the schema's target. Rows are read and written
    in chunks, so memory does not grow with the table.
    """
    kept = tuple(map(composed, keep or ()))
    fitted = read_model(model)
    description = _schema_of(fitted, schema)
    tables = find_tables(files)
    check_text("--output", output)
    check_new(
        "--output", output, force=force, sources=[model, *([] if schema is None else schema_files(schema)), *tables]
    )
    probabilities = fitted.probabilities if proba else ()
    if overlap := {"prediction", "probability", *probabilities} & set(kept):
        raise InvalidInput(f"--keep must not name a column that the output has already, got --keep {min(overlap)}")
    if repeated := [name for i, name in enumerate(kept) if name in kept[:i]]:
        raise InvalidInput(f"--keep must name each column once, got --keep {repeated[0]} twice")
    rows = TableRows(files=tables, schema=description, form=form.read(), **options.given(chunk_rows=chunk_rows))
    # A bar between the predictions would spoil them.
    shown = output is None and sys.stdout.isatty()
    names = (*kept, "prediction", *probabilities)
    with (
        _destination(output, force=force) as file,
        progress_bar(None, "rows", what="predicted", wanted=wants_progress(progress, quiet=quiet or shown)) as advance,
    ):
        # No header before an error of the first rows.
        predicted = _started(_predicted(fitted, description, rows, kept, proba=proba))
        write = _json_lines(file, names) if json else _csv_lines(file, names)
        for columns in predicted:
            write(zip(*columns, strict=True))
            advance(len(columns[-1]))
    if output is not None:
        note(f"wrote {output}", quiet=quiet)


@app.command(cls=Command, epilog=_REPORT_EXAMPLES)
def report(
    model: Model,
    *,
    level: options.Level = 0.95,
    simultaneous: options.Simultaneous = None,
    without_ridge: options.WithoutRidge = False,
    units: options.Units = "table",
    full: Annotated[
        bool,
        option(
            OUTPUT,
            "Add intervals of odds or rate ratios, released bounds, every step, and what the intervals assume.",
            "--full",
        ),
    ] = False,
    title: Annotated[str | None, option(OUTPUT, "Heading of the page.")] = None,
    output: Annotated[
        Path | None,
        option(
            OUTPUT,
            "Write one self-contained HTML page to this new file; with --officer HTML (.html) or Markdown (.md).",
        ),
    ] = None,
    officer: Annotated[
        bool,
        option(
            OUTPUT,
            "The report for approval, with a checklist to sign; printed as Markdown without --output.",
            "--officer",
        ),
    ] = False,
    ledger: Annotated[Path | None, option(INPUT, "With --officer: the ledger that paid, to compare with.")] = None,
    schema: Annotated[str | None, option(INPUT, "With --officer: the agreed schema.")] = None,
    formula: Annotated[str | None, option(INPUT, "With --schema: the agreed formula, as for fit.")] = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show a released model, or write it as one HTML page.

    The page is one self-contained file with the table, odds or rate ratios (of a logistic or count model with a
    schema), a plot, the budget and the caveats. With --officer the report is for whoever has to approve the release:
    who is protected, what the budget means, what is assumed, what was checked, the points of NIST SP 800-226, a
    checklist.
    Exit code 1 with --officer: a check failed, and the document says which. Exit code 6: it lacks the ledger, the
    agreed schema, or the version of dpci that made the file.
    """
    target = options.target_of(without_ridge)
    view = options.view(level=level, simultaneous=simultaneous, target=target, units=units)
    check_new("--output", output, force=force, sources=[model])
    check_form("--output", output, TEXTS if officer else PAGES)
    _check_for_officer(
        officer,
        shown=title is not None or json or full or view != View(level=level),
        held=(ledger, schema, formula) != (None, None, None),
    )
    if officer:
        agreed, names = options.agreed_schema(schema, formula), (str(model), schema or "")
        write_officer_report(load(model), output, ledger=ledger, schema=agreed, names=names, force=force, quiet=quiet)
        return
    if output is None and title is not None:
        raise InvalidInput(f"--title requires --output, because it is the heading of the page, got --title {title!r}")
    shown = read_whole(model)
    _check_view(shown, view)
    if output is not None:
        write_page(shown, output, view, title=title, option="--output", force=force, quiet=quiet)
    if json or output is None:
        show(shown, view, json=json, full=full)


@app.command(cls=Command, epilog=_COMPARE_EXAMPLES)
def compare(
    model: Model,
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="File of the released model to compare it with.")],
    *,
    shared_data: Annotated[
        bool,
        option(
            INPUT,
            "The two fits may share records; the lengths of the intervals are then upper bounds.",
            "--shared-data",
        ),
    ] = False,
    contrast: Annotated[
        list[str] | None, option(INTERVALS, "Coefficient to compare; may be repeated. Default: all.")
    ] = None,
    level: options.Level = 0.95,
    without_ridge: options.WithoutRidge = False,
    json: options.Json = False,
) -> None:
    """Compare two released models.

    Prints the differences of their coefficients with intervals and p-values. Costs nothing and reads no data. Without
    --shared-data, the two models must come from different people, which no file can show.
    """
    first, second = (read_model(path).result for path in (model, other))
    found = comparison.compare(
        first,
        second,
        contrast=contrast or None,
        level=level,
        shared_data=shared_data,
        target=options.target_of(without_ridge),
    )
    if json:
        show_json(_comparison_numbers(found))
    else:
        typer.echo(found.summary())


def _check_for_officer(officer: bool, *, shown: bool, held: bool) -> None:  # noqa: FBT001  # private
    """Refuse options of the page with --officer, and those of --officer without it."""
    if officer and shown:
        raise InvalidInput(
            "--officer takes no --title, --json, --full, --simultaneous, --without-ridge or --units, got one of them"
        )
    if held and not officer:
        raise InvalidInput(
            "--ledger, --schema and --formula require --officer, which compares the file with them, got none"
        )


def _check_view(shown: Shown, view: View) -> None:
    """Refuse options that a result of this kind does not have."""
    options_of = {"target": "--without-ridge"}
    for name, value in vars(view).items():
        if name not in shown.options and value != getattr(View(), name):
            option = options_of.get(name, f"--{name}")
            raise InvalidInput(f"{option} must not be given for {shown.what}, got {value}")


def _schema_of(fitted: Shown, schema: str | None) -> Schema:
    """Return the schema of a model, or the one that is given for a model of encoded rows."""
    given = None if schema is None else find_schema(schema, None)
    found, known = fitted.encoding(given), fitted.result.schema
    # The target may have another name: it need not be there.
    if given is not None and known and not same_columns(known, dataclasses.replace(given, encoding=known.encoding)):
        raise InvalidInput(f"--schema must have the columns of the schema in the model, got others: {schema}")
    return found


def _started(columns: Iterator[list[Sequence[Any]]]) -> Iterator[list[Sequence[Any]]]:
    """Read the first chunk at once: what is wrong with the whole table is found before a header is written."""
    first = next(columns, None)
    return columns if first is None else itertools.chain([first], columns)


def _predicted(
    fitted: Shown, schema: Schema, rows: TableRows, kept: Sequence[str], *, proba: bool
) -> Iterator[list[Sequence[Any]]]:
    """Yield the columns of the output, chunk by chunk."""
    for table, found in rows.features(kept):
        predicted = [fitted.predicted(found, schema), *(fitted.probable(found) if proba else ())]
        if found.missing is not None:  # an empty field, and null
            predicted = [
                [None if gone else value for value, gone in zip(column, found.missing, strict=True)]
                for column in predicted
            ]
        yield [*(table[name] for name in kept), *predicted]


@contextmanager
def _destination(output: Path | None, *, force: bool) -> Iterator[TextIO]:
    """Give the screen, or a file that is complete or absent."""
    if output is None:
        yield sys.stdout
        return
    with new_file("--output", output, force=force) as path, open_text(path, "wt") as file:
        yield file


def _csv_lines(file: TextIO, names: Sequence[str]) -> Callable[[Iterable[Sequence[Any]]], None]:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    return writer.writerows


def _json_lines(file: TextIO, names: Sequence[str]) -> Callable[[Iterable[Sequence[Any]]], None]:
    def write(rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            document = dict(zip(names, row, strict=True))
            try:
                file.write(json_format.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")
            except ValueError as error:
                raise InvalidInput(
                    f"--json requires finite numbers in the columns of --keep, got {document}"
                ) from error

    return write


def _comparison_numbers(found: Comparison) -> dict[str, Any]:
    """Return the differences of two models with their intervals, null where one is not given, and why."""
    rows = interval_rows(found.intervals, found.std_errors, found.pvalues)
    pairs = zip(rows, or_null(found.estimate_a), or_null(found.estimate_b), strict=True)
    return {
        "private": found.private,
        "differences": [{"a": a, "b": b, **row} for row, a, b in pairs],
        "level": found.intervals.level,
        "target": found.target,
        "in_units": found.in_units,
        "shared_data": found.shared_data,
        "private_n_samples": found.private_n_samples,
    }
