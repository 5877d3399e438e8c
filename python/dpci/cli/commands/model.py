"""The commands that take a released model, ``predict`` and ``report``: they see no training data, and cost nothing."""

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

from dpci.base.validation import check_fraction
from dpci.cli import options
from dpci.cli.app import Command, app, note, show_json, wants_progress
from dpci.cli.delivery import write_page
from dpci.cli.documents import Delivered, result_document
from dpci.cli.options import find_schema, schema_files
from dpci.cli.output import check_new, check_text, new_file
from dpci.cli.rows import TableRows, find_tables, progress_bar
from dpci.data.arrays import NamedRows
from dpci.errors import InvalidInput
from dpci.model.result import PrivateFit
from dpci.regression.matrix import MomentMatrix, whole_regression
from dpci.regression.record import SCHEMA as MATRIX
from dpci.regression.result import SCHEMA as REGRESSION
from dpci.regression.result import LinearFit
from dpci.released.rules import saved_schema
from dpci.rows import Blocks
from dpci.schema.columns import ClassTarget, NumericTarget, class_labels
from dpci.schema.table import Schema, same_columns
from dpci.sources.files import open_text

_PREDICT_EXAMPLES = """\
dpci predict model.json people.csv --schema people.toml --output predicted.csv
dpci predict model.json people.csv --schema people.toml --proba --keep age --json
dpci predict model.json - --schema people.toml --proba < people.csv
"""

_REPORT_EXAMPLES = """\
dpci report model.json
dpci report model.json --level 0.99 --json
dpci report model.json --output report.html
"""

Model = Annotated[
    Path, typer.Argument(metavar=("MODEL"), help="File of a released model, as written by dpci fit --output.")
]


@app.command(cls=Command, epilog=_PREDICT_EXAMPLES)
def predict(
    model: Model,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="TABLE", help="Table as for fit, with or without the target; - reads CSV from stdin."),
    ],
    *,
    schema: options.ModelSchema = None,
    delimiter: options.Delimiter = ",",
    chunk_rows: options.ChunkRows = None,
    proba: Annotated[
        bool,
        typer.Option(
            "--proba",
            help="Add the probability of the positive class (logistic losses only).",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column to copy next to the predictions; may be repeated.", rich_help_panel=options.OUTPUT),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write to this new file (compressed if its name ends in .gz) instead of stdout.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    force: options.Force = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Write one JSON object for each row instead of CSV.", rich_help_panel=options.OUTPUT
        ),
    ] = False,
    quiet: options.Quiet = False,
    progress: options.Progress = None,
) -> None:
    """Predict for every row of a table.

    Predictions are in the order of the rows, as labels or in units of the schema's target. Rows are read and written
    in chunks, so memory does not grow with the table.
    """
    kept = tuple(keep or ())
    fitted = _read(model)
    description = _schema_of(fitted, schema)
    tables = find_tables(files)
    check_text("--output", output)
    check_new(
        "--output", output, force=force, sources=[model, *([] if schema is None else schema_files(schema)), *tables]
    )
    if overlap := {"prediction", "probability"} & set(kept):
        msg = f"--keep must not name a column that the output has already, got --keep {min(overlap)}"
        raise InvalidInput(msg)
    if repeated := [name for i, name in enumerate(kept) if name in kept[:i]]:
        msg = f"--keep must name each column once, got --keep {repeated[0]} twice"
        raise InvalidInput(msg)
    rows = TableRows(files=tables, schema=description, delimiter=delimiter, **options.given(chunk_rows=chunk_rows))
    # A bar between the predictions would spoil them.
    shown = output is None and sys.stdout.isatty()
    names = (*kept, "prediction", *(("probability",) if proba else ()))
    with (
        _destination(output, force=force) as file,
        progress_bar("predicted", None, wanted=wants_progress(progress, quiet=quiet or shown)) as advance,
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
    title: Annotated[str | None, typer.Option(help="Heading of the page.", rich_help_panel=options.OUTPUT)] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Write one self-contained HTML page to this new file.", rich_help_panel=options.OUTPUT),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show a released model, or write it as one HTML page.

    The page is one self-contained file with the table, a forest plot, the budget and the caveats.
    """
    level = check_fraction("level", level)
    check_new("--output", output, force=force, sources=[model])
    fitted = _read(model)
    if output is not None:
        write_page(fitted, output, level=level, title=title, option="--output", force=force, quiet=quiet)
    elif title is not None:
        msg = f"--title requires --output, because it is the heading of the page, got --title {title!r}"
        raise InvalidInput(msg)
    if json:
        show_json(result_document(fitted, level=level))
    elif output is None:
        typer.echo(fitted.summary(level=level))


def read_model(path: Path) -> PrivateFit:
    """Return the released model of a file."""
    return PrivateFit.from_json(_contents(path))


def _read(path: Path) -> Delivered:
    """Return a released model or regression: of a moment matrix that of its target on all columns."""
    text = _contents(path)
    kind = saved_schema(text)
    if kind == MATRIX:
        return whole_regression(MomentMatrix.from_json(text), fit_intercept=True, l2_strength=0.0)
    return LinearFit.from_json(text) if kind == REGRESSION else PrivateFit.from_json(text)


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        msg = f"a model must be a file that can be read, got {str(path)!r}: {error.strerror}"
        raise InvalidInput(msg) from error


def _schema_of(fitted: Delivered, schema: str | None) -> Schema:
    """Return the schema of a model, or the one that is given for a model of encoded rows."""
    given = None if schema is None else find_schema(schema, None)
    if isinstance(fitted, LinearFit):
        _check_predicts(fitted)
    elif given is not None and fitted.schema is None:
        return _encoded_as(fitted, given)
    known = fitted.schema
    if known is None:
        msg = "--schema must be given for a model that holds no schema, got none"
        raise InvalidInput(msg)
    # The target may have another name: it need not be there.
    if given is not None and not same_columns(known, dataclasses.replace(given, encoding=known.encoding)):
        msg = f"--schema must have the columns of the model's own, got other ones: {schema}"
        raise InvalidInput(msg)
    return known


def _check_predicts(fitted: LinearFit) -> None:
    """Refuse regressions that say nothing about the target of a table."""
    if fitted.schema is None or fitted.target != MomentMatrix.of(fitted).target:
        msg = (
            "a regression must have a schema and be of its target, to predict for a table, got one "
            f"{'without a schema' if fitted.schema is None else f'of {fitted.target}'} (LinearFit.predict in Python "
            "takes the regressors)"
        )
        raise InvalidInput(msg)
    if fitted.interval_refusal is not None:
        raise InvalidInput(fitted.interval_refusal)


def _started(columns: Iterator[list[Sequence[Any]]]) -> Iterator[list[Sequence[Any]]]:
    """Read the first chunk at once: what is wrong with the whole table is found before a header is written."""
    first = next(columns, None)
    return columns if first is None else itertools.chain([first], columns)


def _predicted(
    fitted: Delivered, schema: Schema, rows: TableRows, kept: Sequence[str], *, proba: bool
) -> Iterator[list[Sequence[Any]]]:
    """Yield the columns of the output, chunk by chunk."""
    for table, values in rows.features(kept):
        named = NamedRows(values, schema.names)
        columns: list[Sequence[Any]] = [table[name] for name in kept]
        columns.append(_in_table_terms(fitted, schema, named))
        if proba:
            if isinstance(fitted, LinearFit):
                msg = "--proba must not be given for a linear regression, which predicts no probabilities"
                raise InvalidInput(msg)
            columns.append(fitted.predict_proba(named)[:, 1].tolist())
        yield columns


def _in_table_terms(fitted: Delivered, schema: Schema, rows: NamedRows) -> list[Any]:
    """Return predictions as the table has its target: labels in place of -1 and 1, and units in place of [-1, 1]."""
    target = schema.target
    if isinstance(fitted, LinearFit):
        assert isinstance(target, NumericTarget)  # noqa: S101  # for the type checker: the schema is of the release
        offset, slope = target.scaling
        return list(((fitted.predict(rows) - offset) / slope).tolist())
    if isinstance(target, ClassTarget):
        predicted = fitted.predict(rows).tolist()
        if fitted.classes != (-1, 1):
            return list(predicted)
        # A model of Python, of encoded targets.
        labels = class_labels(target) or fitted.classes
        return [labels[sign > 0] for sign in predicted]
    soft = fitted.loss["name"] == "soft_logistic"
    scaled = fitted.predict_proba(rows)[:, 1] if soft else fitted.predict(rows)
    share = scaled if target.scale == "unit" else (scaled + 1.0) / 2.0
    return list((target.lower + share * (target.upper - target.lower)).tolist())


def _encoded_as(fitted: PrivateFit, schema: Schema) -> Schema:
    """Return the schema in the encoding of a fit: rows in blocks come of the one that is not divided."""
    whole = dataclasses.replace(schema, encoding="full_range")
    if fitted.rows in (whole.rows, schema.rows):
        return whole if fitted.rows == whole.rows else schema
    if isinstance(fitted.rows, Blocks):
        msg = f"--schema must bound the rows as that of the fit, {fitted.rows!r}, got {whole.rows!r}"
        raise InvalidInput(msg)
    return schema


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
                msg = f"--json requires finite numbers in the columns of --keep, got {document}"
                raise InvalidInput(msg) from error

    return write
