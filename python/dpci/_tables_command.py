"""The command ``tables``: the tables and figures of Wang, Kifer & Lee (2019), repeated beside what was published."""

import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dpci._commands import app
from dpci.budgets import Calibration
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.plotting import check_plot_file
from dpci.reproduce import figures
from dpci.reproduce.experiments import FIGURES, TABLES, TITLES
from dpci.reproduce.report import Format, run_figure, run_table
from dpci.reproduce.sources import Sources
from dpci.reproduce.studies import Run, silent
from dpci.validation import check_choice

_FORMATS: tuple[Format, ...] = ("text", "markdown", "json")
_CALIBRATIONS: dict[str, tuple[Calibration, ...]] = {
    "paper": ("paper",),
    "tight": ("tight",),
    "both": ("paper", "tight"),
}


@app.command()
def tables(
    *,
    table: Annotated[int | None, typer.Option(help="Table of the paper, 2 to 6.")] = None,
    figure: Annotated[int | None, typer.Option(help="Figure of the paper, 1 to 4; needs --output.")] = None,
    us: Annotated[Path | None, typer.Option(help="Your extract of IPUMS-US: CSV, target in the last column.")] = None,
    br: Annotated[Path | None, typer.Option(help="Your extract of IPUMS-BR: CSV, target in the last column.")] = None,
    calibration: Annotated[
        str | None, typer.Option(help="paper, tight or, for a table, both. By default both, in a figure paper.")
    ] = None,
    replicates: Annotated[int, typer.Option(help="Replicates with intervals.")] = 1000,
    variability: Annotated[int, typer.Option(help="Replicates for the variability lengths; 0: none.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the replicates; the rows are always the same.")] = 0,
    output_format: Annotated[str, typer.Option("--format", help="text, markdown or json.")] = "text",
    output: Annotated[
        Path | None, typer.Option(help="Write the table, or the drawing (.png, .svg, .pdf), to this file.")
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder of files from which a killed run goes on.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; by default all cores.")] = None,
    progress: Annotated[bool, typer.Option(help="Say which call runs, and show a progress bar.")] = False,
) -> None:
    """Repeat a table or a figure of Wang, Kifer & Lee (2019) beside the published numbers. NOT PRIVATE."""
    _check_what(table, figure)
    _check_files(table, figure, {"us": us, "br": br})
    shape = check_choice("--format", output_format, _FORMATS)
    default = "both" if figure is None else "paper"
    calibrations = _CALIBRATIONS[check_choice("--calibration", calibration or default, tuple(_CALIBRATIONS))]
    _check_output(output, figure, calibrations)
    sources = Sources(us=us, br=br)
    run = Run(
        n_replicates=replicates,
        n_variability=variability,
        seed=seed,
        n_threads=threads,
        progress=progress,
        checkpoint=checkpoint,
        announce=partial(typer.echo, err=True) if progress else silent,
    )
    with warnings.catch_warnings():
        # The output says the same.
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        if table is not None:
            text = run_table(table, calibrations, sources, run).render(shape)
            if output is None:
                typer.echo(text)
            else:
                _write(output, lambda path: path.write_text(f"{text}\n", encoding="utf-8"), otherwise=text)
        elif figure is not None and output is not None:
            data = run_figure(figure, calibrations[0], sources, run)
            # The numbers first: they are not lost when the drawing fails.
            typer.echo(data.report.render(shape))
            _write(output, partial(figures.save, data))


def _check_what(table: int | None, figure: int | None) -> None:
    if (table is None) == (figure is None):
        given = [f"--{name} {value}" for name, value in (("table", table), ("figure", figure)) if value is not None]
        msg = f"one of --table and --figure must be given, got {' and '.join(given) or 'none'}"
        raise InvalidInput(msg)


def _check_files(table: int | None, figure: int | None, files: Mapping[str, Path | None]) -> None:
    """Refuse a file that would not be read; another number of a table or figure is refused when it is run."""
    if table in TABLES:
        experiment, used = f"table {table}", {TABLES[table].dataset}
    elif figure in FIGURES:
        experiment, used = f"figure {figure}", {panel.sweep.dataset for panel in FIGURES[figure].panels}
    else:
        return
    for name, file in files.items():
        if file is not None and name not in used:
            msg = f"--{name} is for what uses {TITLES[name]}, and {experiment} does not, got {str(file)!r}"
            raise InvalidInput(msg)


def _check_output(output: Path | None, figure: int | None, calibrations: tuple[Calibration, ...]) -> None:
    """Refuse a file that could not be written once the studies are done."""
    if figure is not None:
        if output is None:
            msg = "--figure needs --output FILE, got none"
            raise InvalidInput(msg)
        check_plot_file(output)
        if len(calibrations) > 1:
            msg = "--calibration must be paper or tight with --figure, which draws one of them, got both"
            raise InvalidInput(msg)
    if output is not None:
        _check_writable(output)


def _check_writable(output: Path) -> None:
    """Open a file as if to add to it, which leaves one that is there as it is."""
    try:
        is_new = not output.exists()
        with output.open("ab"):
            pass
        if is_new:
            Path(os.path.realpath(output)).unlink()  # of a link to nothing, the link stays
    except OSError as error:
        raise _unwritable(output, error) from error


def _write(output: Path, save: Callable[[Path], object], *, otherwise: str | None = None) -> None:
    """Save a file, or print what it would have held before the error: it may have taken hours."""
    try:
        save(output)
    except OSError as error:
        if otherwise is not None:
            typer.echo(otherwise)
        raise _unwritable(output, error) from error
    # What was printed may be JSON, and stdout a file.
    typer.echo(f"wrote {output}", err=True)


def _unwritable(output: Path, error: OSError) -> InvalidInput:
    reason = error.strerror or error
    return InvalidInput(f"--output must name a file that can be written, got {str(output)!r}: {reason}")
