"""The command ``tables``: repeats the experiments of four papers and prints the published numbers beside them."""

import textwrap
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from json import dumps as to_json
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from dpci.base.optional import optional
from dpci.base.tables import format_facts, format_table
from dpci.base.validation import check_choice, check_count, check_seed, check_threads
from dpci.budgets import Calibration
from dpci.cli import options
from dpci.cli.app import Command, app, note, wants_progress
from dpci.cli.commands.data import public_files
from dpci.cli.output import check_new, check_unread, new_file
from dpci.errors import InvalidInput, PrivacyLeakWarning, SeededNoiseWarning
from dpci.papers import catalogue
from dpci.papers.finding import Repeats, Report, silent
from dpci.papers.sources import Sources
from dpci.papers.wang import figures
from dpci.papers.wang.experiments import FIGURES, TABLES, TITLES
from dpci.papers.wang.report import run_figure, run_table
from dpci.papers.wang.studies import Run
from dpci.report.plot import check_plot_file

Format: TypeAlias = Literal["text", "markdown", "json"]
_FORMATS: tuple[Format, ...] = ("text", "markdown", "json")
_WIDTH = 100
_CALIBRATIONS: dict[str, tuple[Calibration, ...]] = {
    "paper": ("paper",),
    "tight": ("tight",),
    "both": ("paper", "tight"),
}
_PAPERS = ("S1", "S2", "S3", "S4")
_DRAWINGS = (".png", ".svg", ".pdf")


_EXAMPLES = """\
dpci tables --table 3 --replicates 20 --variability 0 --format markdown
dpci tables --paper S2 --experiment rotation --repeats 1 --json
"""


@app.command(cls=Command, epilog=_EXAMPLES)
def tables(
    *,
    paper: Annotated[
        str, typer.Option(help="S1: Wu et al., S2: Redberg & Wang (2021), S3: Wang, Kifer & Lee (2019), S4: Li et al.")
    ] = "S3",
    table: Annotated[int | None, typer.Option(help="S3: table of the paper, 2 to 6.")] = None,
    figure: Annotated[int | None, typer.Option(help="S3: figure of the paper, 1 to 4; requires --output.")] = None,
    experiment: Annotated[
        str | None, typer.Option(help=f"{catalogue.NAMES}. Default: all of the paper.", show_default=False)
    ] = None,
    us: Annotated[
        Path | None, typer.Option(help="S3: your extract of IPUMS-US as CSV with the target in the last column.")
    ] = None,
    br: Annotated[
        Path | None, typer.Option(help="S3: your extract of IPUMS-BR as CSV with the target in the last column.")
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(help="S3: paper, tight or (tables only) both. Default: both for a table, paper for a figure."),
    ] = None,
    replicates: Annotated[
        int | None, typer.Option(help=("S3: number of replicates with intervals. Default: 1000."))
    ] = None,
    variability: Annotated[
        int | None,
        typer.Option(help=("S3: number of replicates for the variability lengths; 0 for none. Default: 10000.")),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help=("S1, S2, S4: number of draws of the noise. Default: 100 (S1), 10 (S2, S4)."))
    ] = None,
    seed: Annotated[
        int, typer.Option(help=("Seed of replicates, noise and generated rows; public rows do not depend on it."))
    ] = 0,
    output_format: Annotated[str, typer.Option("--format", help="Format: text, markdown or json.")] = "text",
    output: Annotated[
        Path | None,
        typer.Option(
            help=("Write the table to this file, or with .png, .svg or .pdf the drawing of one figure or experiment.")
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="S3: folder of files from which a killed run resumes.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Number of threads. Default: all cores.")] = None,
    progress: options.Progress = None,
    json: Annotated[bool, typer.Option("--json", help="Same as --format json; errors are JSON too.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Repeat the experiments of four papers. NOT PRIVATE.

    The papers are Wu et al., Redberg & Wang (2021), Wang, Kifer & Lee (2019) and Li et al. The published numbers are
    printed next to the results.
    """
    paper = check_choice("--paper", paper, _PAPERS)
    only_s3 = {"table": table, "figure": figure, "us": us, "br": br, "calibration": calibration}
    only_s3 |= {"replicates": replicates, "variability": variability, "checkpoint": checkpoint}
    if json:
        output_format = "json"
    check_unread("--output", output, [*public_files(), *_user_files(us, br, checkpoint)])
    shows_progress = wants_progress(progress, quiet=quiet)
    announce: Callable[[str], None] = note if shows_progress else silent
    with warnings.catch_warnings():
        # The output says the same.
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        warnings.simplefilter("ignore", SeededNoiseWarning)
        if paper == "S3":
            _refuse_options({"experiment": experiment, "repeats": repeats}, "S1, S2 and S4", paper)
            _check_what(table, figure)
            _check_files(table, figure, {"us": us, "br": br})
            shape = check_choice("--format", output_format, _FORMATS)
            default = "both" if figure is None else "paper"
            calibrations = _CALIBRATIONS[check_choice("--calibration", calibration or default, tuple(_CALIBRATIONS))]
            _check_output(output, figure, calibrations)
            run = Run(
                n_replicates=1000 if replicates is None else replicates,
                n_variability=10_000 if variability is None else variability,
                seed=seed,
                n_threads=threads,
                progress=shows_progress,
                checkpoint=checkpoint,
                announce=announce,
            )
            _coverage(
                table,
                figure,
                calibrations=calibrations,
                sources=Sources(us=us, br=br),
                run=run,
                shape=shape,
                output=output,
            )
        else:
            _refuse_options(only_s3, "S3", paper)
            known = catalogue.EXPERIMENTS[paper]
            shape = check_choice("--format", output_format, _FORMATS)
            names = tuple(known) if experiment is None else (check_choice("--experiment", experiment, tuple(known)),)
            _check_drawing(output, names)
            run_of = Repeats(
                n_repeats=catalogue.REPEATS[paper] if repeats is None else check_count("repeats", repeats),
                seed=check_seed(seed) or 0,
                n_threads=check_threads(threads),
                announce=announce,
            )
            _experiments(paper, names, run_of, shape, output)


def _coverage(
    table: int | None,
    figure: int | None,
    *,
    calibrations: tuple[Calibration, ...],
    sources: Sources,
    run: Run,
    shape: Format,
    output: Path | None,
) -> None:
    """Print or write a table of Wang, Kifer & Lee, or draw a figure."""
    if table is not None:
        _publish(render(run_table(table, calibrations, sources, run), shape), output)
    elif figure is not None and output is not None:
        data = run_figure(figure, calibrations[0], sources, run)
        # The numbers first: they are not lost when the drawing fails.
        typer.echo(render(data.report, shape))
        _write(output, partial(figures.save, data))


def _experiments(paper: str, names: tuple[str, ...], run: Repeats, shape: Format, output: Path | None) -> None:
    """Print, write or draw experiments of one of the other papers."""
    sources = Sources()
    findings = {}
    for name in names:
        run.announce(f"{paper} {name}")
        findings[name] = catalogue.EXPERIMENTS[paper][name](sources, run)
    if shape == "json":
        text = to_json({name: found.report.data for name, found in findings.items()}, indent=2, allow_nan=False)
    else:
        text = "\n\n\n".join(render(found.report, shape) for found in findings.values())
    if output is None or output.suffix not in _DRAWINGS:
        _publish(text, output)
        return
    typer.echo(text)
    _write(output, findings[names[0]].save)


def _user_files(us: Path | None, br: Path | None, checkpoint: Path | None) -> list[Path]:
    """Return the user's own files: extracts, and the results of an earlier run from which to continue."""
    left = [] if checkpoint is None or not checkpoint.is_dir() else list(checkpoint.iterdir())
    return [*(file for file in (us, br, checkpoint) if file is not None), *left]


def _refuse_options(given: Mapping[str, object], papers: str, paper: str) -> None:
    """Refuse options of other papers; an option that was not given is None."""
    for name, value in given.items():
        if value is not None:
            msg = f"--{name} requires --paper {papers}, got --paper {paper} --{name} {value}"
            raise InvalidInput(msg)


def _check_drawing(output: Path | None, names: tuple[str, ...]) -> None:
    """Refuse a drawing of several experiments, and a file that could not be written after them."""
    if output is None:
        return
    if output.suffix in _DRAWINGS:
        if len(names) > 1:
            msg = (
                f"a drawing requires one --experiment of {', '.join(names)}, got --output {output} and no --experiment"
            )
            raise InvalidInput(msg)
        check_plot_file(output)
    check_new("--output", output, force=True)


def _check_what(table: int | None, figure: int | None) -> None:
    if (table is None) == (figure is None):
        given = [f"--{name} {value}" for name, value in (("table", table), ("figure", figure)) if value is not None]
        msg = f"exactly one of --table and --figure must be given, got {' and '.join(given) or 'none'}"
        raise InvalidInput(msg)


def _check_files(table: int | None, figure: int | None, files: Mapping[str, Path | None]) -> None:
    """Refuse a file that would not be read. An invalid number of a table or figure is refused when it is run."""
    if table in TABLES:
        experiment, used = f"table {table}", {TABLES[table].dataset}
    elif figure in FIGURES:
        experiment, used = f"figure {figure}", {panel.sweep.dataset for panel in FIGURES[figure].panels}
    else:
        return
    for name, file in files.items():
        if file is not None and name not in used:
            msg = f"--{name} must be given only where {TITLES[name]} is used, got {str(file)!r} for {experiment}"
            raise InvalidInput(msg)


def _check_output(output: Path | None, figure: int | None, calibrations: tuple[Calibration, ...]) -> None:
    """Refuse a file that could not be written after the studies."""
    if figure is not None:
        if output is None:
            msg = "--figure requires --output FILE, got none"
            raise InvalidInput(msg)
        check_plot_file(output)
        if len(calibrations) > 1:
            msg = "--calibration must be paper or tight with --figure, because a figure shows one of them, got both"
            raise InvalidInput(msg)
    if output is not None:
        check_new("--output", output, force=True)


def render(report: Report, shape: Format) -> str:
    """Return a report as aligned text, Markdown or JSON."""
    if shape == "json":
        return to_json(report.data, indent=2, allow_nan=False)
    if shape == "markdown":
        lines = (report.header, ["---", *["---:"] * (len(report.header) - 1)], *report.rows)
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        facts = "\n".join(f"- {name}: {value}" for name, value in report.facts)
        return "\n\n".join([f"## {report.title}", table, facts, *report.notes])
    notes = [textwrap.fill(note, _WIDTH) for note in report.notes]
    return "\n\n".join([report.title, format_table(report.header, report.rows), format_facts(report.facts), *notes])


def _publish(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file."""
    if output is None:
        typer.echo(text)
    else:
        _write(output, lambda path: path.write_text(f"{text}\n", encoding="utf-8"), otherwise=text)


def _write(output: Path, save: Callable[[Path], object], *, otherwise: str | None = None) -> None:
    """Save a file. If that fails, print the content before the error, because it may have taken hours."""
    try:
        # What it replaces follows from its seed, and stays until the new one is complete.
        with new_file("--output", output, force=True) as path, optional("matplotlib", extra="plot", what="a drawing"):
            save(path)
    except InvalidInput:
        if otherwise is not None:
            typer.echo(otherwise)
        raise
    # What was printed may be JSON, and stdout a file.
    typer.echo(f"wrote {output}", err=True)
