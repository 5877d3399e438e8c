"""The command ``data``: lists the public data sets, or exports one as CSV."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dpci.cli import options
from dpci.cli.app import Command, app, show_json
from dpci.cli.options import OUTPUT, option
from dpci.cli.output import check_new, check_text, new_file
from dpci.datasets.catalogue import CATALOGUE
from dpci.datasets.files import find, is_intact
from dpci.datasets.tables import Table, load_sample_table, load_table
from dpci.errors import InvalidInput
from dpci.sources.files import write_csv

SAMPLE = "adult_sample"
NAMES = (SAMPLE, *CATALOGUE)
_HEADER = ("name", "split", "rows", "sha256", "licence", "where")

_EXAMPLES = """\
dpci data                                        # what is here, with checksums and licences
dpci data --json
dpci data adult_sample --export sample.csv       # a table to try the other commands on
"""


@app.command(cls=Command, epilog=_EXAMPLES)
def data(
    name: Annotated[
        str | None,
        typer.Argument(help=f"Data set to export; {SAMPLE} is included.", autocompletion=options.completes(*NAMES)),
    ] = None,
    *,
    export: Annotated[
        Path | None, option(OUTPUT, "Write the table to this new CSV file (.csv, .csv.gz).", "--export", "--output")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help=("File of the data set, if it has several: train, test or all."))
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the public data sets, or export one as CSV.

    The list says where the files were found, whether they are intact, and their licences.
    """
    if name is None:
        if export is not None:
            raise InvalidInput(f"--export requires the name of a data set, one of {list(NAMES)}, got none")
        _list(_inventory(), json=json)
        return
    if export is None:
        raise InvalidInput(f"dpci data {name} requires --export FILE, got none")
    if not is_public(name):
        raise InvalidInput(f"a data set must be one of {list(NAMES)}, got {name!r}")
    if split is not None and name == SAMPLE:
        raise InvalidInput(f"--split requires a data set of several files, got --split {split} for {name}")
    check_text("--export", export)
    check_new("--export", export, force=force, sources=public_files())
    table = public_table(name, split)
    n_rows = len(next(iter(table.values())))
    with new_file("--export", export, force=force) as path:
        write_csv(path, table)
    if json:
        show_json({"name": name, "rows": n_rows, "columns": list(table), "file": str(export)})
    elif not quiet:
        typer.echo(f"{export}: {n_rows} rows of {name}")


def public_table(name: str, split: str | None = None) -> Table:
    """Return the columns of a public data set, the packaged sample among them."""
    return load_sample_table() if name == SAMPLE else load_table(name, split)


def public_files() -> list[Path]:
    """Return the copies of public data files that are here."""
    files = [file for entry in CATALOGUE.values() for file in entry.files.values()]
    return [found.path for file in files if (found := find(file)) is not None]


def is_public(name: str) -> bool:
    """Whether a name is that of a public data set rather than of a file."""
    return name in NAMES


def _list(rows: list[dict[str, Any]], *, json: bool) -> None:
    """Print one document, or aligned lines under a heading."""
    if json:
        show_json(rows)
        return
    lines = [_HEADER, *([str(row[field] or "") for field in _HEADER] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADER))]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _inventory() -> list[dict[str, Any]]:
    """Return the packaged sample, and each file of the catalogue."""
    rows: list[tuple[object, ...]] = [(SAMPLE, None, 4000, "-", "CC BY 4.0", "in the package")]
    for entry in CATALOGUE.values():
        for split, file in entry.files.items():
            found = find(file)
            status = "-" if found is None else ("ok" if is_intact(file, found) else "WRONG")
            where = "not here" if found is None else f"{found.place}: {found.path}"
            rows.append((entry.name, split, entry.n_rows[split], status, entry.licence, where))
    return [dict(zip(_HEADER, row, strict=True)) for row in rows]
