"""The command ``tables``: the tables and figures of Wang, Kifer & Lee (2019), repeated beside what was published."""

import warnings
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dpci._commands import app
from dpci.budgets import Calibration
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.plotting import check_plot_file
from dpci.reproduce import figures
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
        elif figure is not None and output is not None:
            data = run_figure(figure, calibrations[0], sources, run)
            figures.save(data, output)
            text = data.report.render(shape)
    if table is not None and output is not None:
        output.write_text(f"{text}\n", encoding="utf-8")
    else:
        typer.echo(text)
    if output is not None:
        # The drawing's numbers may be JSON on stdout.
        typer.echo(f"wrote {output}", err=True)


def _check_what(table: int | None, figure: int | None) -> None:
    if (table is None) == (figure is None):
        given = [f"--{name} {value}" for name, value in (("table", table), ("figure", figure)) if value is not None]
        msg = f"one of --table and --figure must be given, got {' and '.join(given) or 'none'}"
        raise InvalidInput(msg)


def _check_output(output: Path | None, figure: int | None, calibrations: tuple[Calibration, ...]) -> None:
    """Refuse a file that could not be written once the studies are done."""
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        msg = f"--output must name a file in a folder that exists, got {str(output)!r}"
        raise InvalidInput(msg)
    if figure is None:
        return
    if output is None:
        msg = "--figure needs --output FILE, got none"
        raise InvalidInput(msg)
    check_plot_file(output)
    if len(calibrations) > 1:
        msg = "--calibration must be paper or tight with --figure, which draws one of them, got both"
        raise InvalidInput(msg)
