"""Hands over what a fit has released: writes, prints and draws it, and never loses a model that was paid for."""

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import typer

from dpci.approval.approvable import approval_of, statement_of
from dpci.approval.findings import exit_code
from dpci.approval.statement import verified
from dpci.cli import options
from dpci.cli.app import note, show_json, wants_progress
from dpci.cli.options import schema_files
from dpci.cli.output import PAGES, NoCoefficients, NotDelivered, check_all_new, check_form, ledger_files, new_file
from dpci.errors import InvalidInput
from dpci.ledger.ledger import Ledger
from dpci.released.result import Result, Shown, shown_of
from dpci.report.plot import check_plot_file, figure_height
from dpci.report.style import WIDTH
from dpci.report.summary import View
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The options of a command that releases: who pays, what is written and printed, and how the command runs."""

    ledger: options.PayingLedger = None
    label: options.Label = None
    output: options.Model = None
    plot: options.Plot = None
    page: options.Page = None
    force: options.Force = False
    json: options.Json = False
    quiet: options.Quiet = False
    progress: options.Progress = None
    threads: options.Threads = None

    def check(self, tables: Sequence[Path], schema: str) -> None:
        """Refuse files that could not be written, or that are read, before budget is spent."""
        read = [*tables, *schema_files(schema), *([] if self.ledger is None else ledger_files(self.ledger))]
        outputs = {"--output": self.output, "--plot": self.plot, "--page": self.page}
        check_all_new(outputs, force=self.force, sources=read)
        check_form("--page", self.page, PAGES)
        if self.plot is not None:
            check_plot_file(self.plot)

    def payer(self) -> Ledger | None:
        """Return the ledger that pays, if one is named."""
        if self.ledger is None:
            if self.label is not None:
                raise InvalidInput(
                    f"--label requires --ledger, because it labels the entry in the ledger, got --label {self.label!r}"
                )
            return None
        opened = Ledger.open(self.ledger)
        return opened if self.label is None else opened.labelled(self.label)

    def shows_progress(self, *, is_private: bool) -> bool:
        """Return whether to show the number of rows that were read, which private errors hide."""
        if is_private and self.progress:
            raise InvalidInput(
                "--progress must not be given with a ledger that has errors='private', because it shows the number of "
                "rows"
            )
        return not is_private and wants_progress(self.progress, quiet=self.quiet)


def deliver(result: Result[Any], wanted: Delivery, view: View) -> None:
    """Write the model, print its intervals and draw them; print the model when any of it fails before it is written.

    Raises
    ------
    NotDelivered
        Whatever goes wrong: that it does so after the release is what matters most.
    BrokenPipeError
        Whoever read the output has stopped, and the model is in its file.
    NoCoefficients
        The noise hides the linear regression. All that can be written of the release is written then.
    """
    is_saved, shown, output = False, shown_of(result), wanted.output
    streams: tuple[TextIO, ...] = (sys.stdout, sys.stderr)
    try:
        if output is not None:
            _save(result, output, force=wanted.force)
            is_saved = True
            note(f"wrote {output}", quiet=wanted.quiet)
        streams = (sys.stderr,)  # the other may hold half a document
        show(shown, view, json=wanted.json)
        draw(shown, wanted.plot, view, force=wanted.force, quiet=wanted.quiet)
        write_page(shown, wanted.page, view, force=wanted.force, quiet=wanted.quiet)
    except BaseException as error:
        if is_saved and isinstance(error, BrokenPipeError):
            raise
        where = f"in {output}" if is_saved else _print(result, streams)
        if not isinstance(error, Exception):
            raise
        raise NotDelivered(
            f"released and spent, but not written in full: {str(error) or repr(error)}; the model is {where}"
        ) from error
    if shown.hidden is not None:
        where = f"in {output}" if is_saved else _print(result, (sys.stderr,))
        raise NoCoefficients(f"released and spent, but without coefficients: {shown.hidden}; the release is {where}")


def show(shown: Shown, view: View | None = None, *, json: bool = False, full: bool = False) -> None:
    """Print the parameters with their intervals, or the reason why there are none."""
    view = view or View()
    if json:
        show_json(shown.numbers(view))
    else:
        typer.echo(shown.text(view, full=full))


def draw(
    shown: Shown, plot: Path | None, view: View | None = None, *, force: bool = False, quiet: bool = False
) -> None:
    """Write the forest plot, if it is wanted and there are intervals."""
    if plot is None:
        return
    result = shown.result
    if result.interval_refusal is not None:
        # Known only after the release, so it cannot be refused before.
        note(f"no plot: {result.interval_refusal}")
        return
    from matplotlib.figure import Figure  # noqa: PLC0415  # optional; found to be there before the fit

    # Not from pyplot, which keeps its figures open.
    figure = Figure(figsize=(WIDTH, figure_height(len(result.names))), layout="constrained")
    result.plot(**shown.keywords(view or View()), ax=figure.subplots())
    with new_file("--plot", plot, force=force) as path:
        figure.savefig(path, dpi=150, bbox_inches="tight")
    note(f"wrote {plot}", quiet=quiet)


def write_page(
    shown: Shown,
    page: Path | None,
    view: View,
    *,
    title: str | None = None,
    option: str = "--page",
    force: bool = False,
    quiet: bool = False,
) -> None:
    """Write the result as one HTML page, if it is wanted."""
    if page is None:
        return
    if shown.hidden is not None:
        note(f"no page: {shown.hidden}")
        return
    text = shown.page(view, title)
    with new_file(option, page, force=force) as path:
        path.write_text(text, encoding="utf-8")
    note(f"wrote {page}", quiet=quiet)


def _save(result: Result[Any], output: Path, *, force: bool) -> None:
    with new_file("--output", output, force=force) as path:
        path.write_text(result.to_json(), encoding="utf-8")


def _print(result: Result[Any], streams: tuple[TextIO, ...]) -> str:
    """Print the model to the first stream that takes it, and say which."""
    for stream in streams:
        with contextlib.suppress(OSError):
            typer.echo(result.to_json(), file=stream)
            return "on stdout" if stream is sys.stdout else "on stderr"
    return "lost, because neither stdout nor stderr can be written"


def write_officer_report(
    result: Result[Any],
    output: Path | None,
    *,
    ledger: Path | None,
    schema: Schema | PartialSchema | None,
    names: tuple[str, str],
    force: bool,
    quiet: bool,
) -> None:
    """Write the report for approval to a file, or print it; the exit code is that of its checks."""
    text = approval_of(result, output, ledger=ledger, schema=schema, names=names)
    if output is None:
        typer.echo(text, nl=False)
    else:
        with new_file("--output", output, force=force) as path:
            path.write_text(text, encoding="utf-8")
        note(f"wrote {output}", quiet=quiet)
    if code := exit_code(verified(statement_of(result), ledger=ledger, schema=schema)):
        raise typer.Exit(code)
