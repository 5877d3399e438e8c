"""Command that repeats the experiments of four papers and prints the published numbers beside them. NOT PRIVATE.

python benches/papers wang --table 3 --replicates 20 --variability 0 --format markdown
python benches/papers redberg rotation --repeats 1 --format json
"""

import argparse
import errno
import json
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import dpci
from dpci.errors import DpciError, InvalidInput
from papers import catalogue
from papers.finding import Calibration, Repeats, Report, silent
from papers.sources import Sources
from papers.wang import figures
from papers.wang.experiments import FIGURES, TABLES, TITLES
from papers.wang.report import run_figure, run_table
from papers.wang.studies import Run

Format: TypeAlias = Literal["text", "markdown", "json"]
_WIDTH = 100
_CALIBRATIONS: dict[str, tuple[Calibration, ...]] = {
    "paper": ("paper",),
    "tight": ("tight",),
    "both": ("paper", "tight"),
}
_TITLES = {"wu": "Wu et al.", "redberg": "Redberg & Wang (2021)", "li": "Li et al."}
_DRAWINGS = (".png", ".svg", ".pdf")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiments that the words of the command name; return its exit code."""
    options = _parser().parse_args(argv)
    announce = _note if options.progress else silent
    try:
        with warnings.catch_warnings():
            # The output says the same.
            warnings.simplefilter("ignore", dpci.PrivacyLeakWarning)
            warnings.simplefilter("ignore", dpci.SeededNoiseWarning)
            if options.paper == "wang":
                _coverage(options, announce)
            else:
                _experiments(options, announce)
    except DpciError as error:
        _note(f"papers: {error}")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    papers = parser.add_subparsers(dest="paper", required=True, metavar="PAPER")
    wang = papers.add_parser("wang", allow_abbrev=False, help="Wang, Kifer & Lee (2019): tables 2 to 6, figures 1 to 4")
    which = wang.add_mutually_exclusive_group(required=True)
    which.add_argument("--table", type=int, metavar="NUMBER", help="table of the paper, 2 to 6")
    which.add_argument("--figure", type=int, metavar="NUMBER", help="figure of the paper, 1 to 4; requires --output")
    for name in ("us", "br"):
        text = f"your extract of {TITLES[name]} as CSV with the target in the last column"
        wang.add_argument(f"--{name}", type=Path, metavar="FILE", help=text)
    wang.add_argument(
        "--calibration", choices=tuple(_CALIBRATIONS), help="default: both for a table, paper for a figure"
    )
    wang.add_argument("--replicates", type=int, default=1000, help="replicates with intervals (default: 1000)")
    wang.add_argument(
        "--variability", type=int, default=10_000, help="replicates for variability lengths (default: 10000); 0: none"
    )
    wang.add_argument("--checkpoint", type=Path, metavar="FOLDER", help="files from which a killed run resumes")
    for paper, experiments in catalogue.EXPERIMENTS.items():
        names = tuple(experiments)
        other = papers.add_parser(paper, allow_abbrev=False, help=f"{_TITLES[paper]}: {', '.join(names)}")
        other.add_argument("experiment", nargs="?", choices=names, help="default: all of the paper")
        repeats = catalogue.REPEATS[paper]
        other.add_argument("--repeats", type=_count, default=repeats, help=f"draws of the noise (default: {repeats})")
    for each in papers.choices.values():
        each.add_argument("--seed", type=_seed, default=0, help="seed of replicates, noise and generated rows")
        each.add_argument("--format", choices=("text", "markdown", "json"), default="text")
        text = "file for the table, or with .png, .svg or .pdf for the drawing of one figure or experiment"
        each.add_argument("--output", type=Path, metavar="FILE", help=text)
        each.add_argument("--threads", type=_count, help="number of threads (default: all cores)")
        each.add_argument("--progress", action="store_true", help="say on stderr which part is run")
    return parser


def _count(text: str) -> int:
    """Return a number of repeats or threads."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if not (0 <= value < 2**64):
        raise argparse.ArgumentTypeError(f"must be an integer in [0, 2**64), got {text}")
    return value


def _coverage(options: argparse.Namespace, announce: Callable[[str], None]) -> None:
    """Print or write a table of Wang, Kifer & Lee, or draw a figure."""
    table, figure, output = options.table, options.figure, options.output
    extracts = {"us": options.us, "br": options.br}
    _check_files(table, figure, extracts)
    calibrations = _CALIBRATIONS[options.calibration or ("both" if figure is None else "paper")]
    if figure is not None:
        if output is None:
            raise InvalidInput("--figure requires --output FILE, got none")
        if output.suffix not in _DRAWINGS:
            raise InvalidInput(f"--output of a figure must end in one of {_DRAWINGS}, got {str(output)!r}")
        if len(calibrations) > 1:
            msg = "--calibration must be paper or tight with --figure, because a figure shows one of them, got both"
            raise InvalidInput(msg)
    _check_output(output, [file for file in extracts.values() if file is not None])
    sources = Sources(**extracts)
    run = Run(
        n_replicates=options.replicates,
        n_variability=options.variability,
        seed=options.seed,
        n_threads=options.threads,
        progress=options.progress,
        checkpoint=options.checkpoint,
        announce=announce,
    )
    if figure is None:
        _publish(render(run_table(table, calibrations, sources, run), options.format), output)
        return
    data = run_figure(figure, calibrations[0], sources, run)
    # The numbers first: they are not lost when the drawing fails.
    print(render(data.report, options.format))
    _write(output, partial(figures.save, data))


def _experiments(options: argparse.Namespace, announce: Callable[[str], None]) -> None:
    """Print, write or draw experiments of one of the other papers."""
    paper, output = options.paper, options.output
    known = catalogue.EXPERIMENTS[paper]
    names = tuple(known) if options.experiment is None else (options.experiment,)
    is_drawn = output is not None and output.suffix in _DRAWINGS
    if is_drawn and len(names) > 1:
        msg = f"a drawing requires one experiment of {', '.join(names)}, got --output {output} and no experiment"
        raise InvalidInput(msg)
    _check_output(output, [])
    run = Repeats(n_repeats=options.repeats, seed=options.seed, n_threads=options.threads, announce=announce)
    sources = Sources()
    findings = {}
    for name in names:
        announce(f"{paper} {name}")
        findings[name] = known[name](sources, run)
    if options.format == "json":
        text = json.dumps({name: found.report.data for name, found in findings.items()}, indent=2, allow_nan=False)
    else:
        text = "\n\n\n".join(render(found.report, options.format) for found in findings.values())
    if not is_drawn:
        _publish(text, output)
        return
    print(text)
    _write(output, findings[names[0]].save)


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


def _check_output(output: Path | None, inputs: Sequence[Path]) -> None:
    """Refuse, before the run, a file that could not be written after it, and one that the run reads."""
    if output is None:
        return
    if any(output.resolve() == file.resolve() for file in inputs):
        raise InvalidInput(f"--output must not be a file that the run reads, got {str(output)!r}")
    try:
        if output.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        part = _part(output)
        part.touch()
        part.unlink()
    except OSError as error:
        raise _unwritable(output, error) from error


def render(report: Report, shape: Format) -> str:
    """Return a report as aligned text, Markdown or JSON."""
    if shape == "json":
        return json.dumps(report.data, indent=2, allow_nan=False)
    if shape == "markdown":
        lines = (report.header, ["---", *["---:"] * (len(report.header) - 1)], *report.rows)
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        facts = "\n".join(f"- {name}: {value}" for name, value in report.facts)
        return "\n\n".join([f"## {report.title}", table, facts, *report.notes])
    notes = [textwrap.fill(note, _WIDTH) for note in report.notes]
    return "\n\n".join([report.title, _aligned(report.header, report.rows), _facts(report.facts), *notes])


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first column is aligned left and the others right, with a rule under the header."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, ["-" * width for width in widths], *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    """Return names and values below each other, long values on several lines."""
    width = max(len(name) for name, _ in facts)
    lines = []
    for name, value in facts:
        first, *rest = textwrap.wrap(value, _WIDTH - width - 2, break_on_hyphens=False)
        lines += [f"{name:<{width}}  {first}", *(" " * (width + 2) + line for line in rest)]
    return "\n".join(lines)


def _publish(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file."""
    if output is None:
        print(text)
    else:
        _write(output, lambda path: path.write_text(f"{text}\n", encoding="utf-8"), otherwise=text)


def _write(output: Path, save: Callable[[Path], object], *, otherwise: str = "") -> None:
    """Save a file whole. If that fails, print the content before the error, because it may have taken hours."""
    part = _part(output)
    try:
        save(part)
        part.replace(output)
    except OSError as error:
        part.unlink(missing_ok=True)
        print(otherwise, end="\n" if otherwise else "")
        raise _unwritable(output, error) from error
    # What was printed may be JSON, and stdout a file.
    _note(f"wrote {output}")


def _part(output: Path) -> Path:
    """Return the file beside an output that becomes it when it is complete."""
    return output.with_name(f".part.{output.name}")


def _unwritable(output: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"--output must name a file that can be written, got {str(output)!r}: {error.strerror}")


def _note(line: str) -> None:
    print(line, file=sys.stderr)
