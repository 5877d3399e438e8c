"""Hands over what a fit has released: writes, prints and draws it, and never loses a model that was paid for."""

import contextlib
import sys
from pathlib import Path
from typing import Any, TextIO

import typer

from dpci.approval.approvable import Approvable, statement_of
from dpci.approval.statement import verified
from dpci.cli.app import note, show_json
from dpci.cli.documents import Delivered, result_document
from dpci.cli.output import NoCoefficients, NotDelivered, new_file
from dpci.model.result import PrivateFit
from dpci.multinomial.result import MultinomialFit
from dpci.regression.result import LinearFit
from dpci.report.plot import figure_height
from dpci.report.style import WIDTH
from dpci.report.view import View
from dpci.schema.table import Schema
from dpci.strata.result import StrataFit
from dpci.tuning.result import TuneResult


def deliver(
    result: Delivered,
    *,
    output: Path | None,
    plot: Path | None,
    page: Path | None,
    view: View,
    force: bool,
    json: bool,
    quiet: bool,
) -> None:
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
    is_saved = False
    streams: tuple[TextIO, ...] = (sys.stdout, sys.stderr)
    try:
        if output is not None:
            _save(result, output, force=force)
            is_saved = True
            note(f"wrote {output}", quiet=quiet)
        streams = (sys.stderr,)  # the other may hold half a document
        show(result, view, json=json)
        if not isinstance(result, TuneResult | StrataFit):
            draw(result, plot, view, force=force, quiet=quiet)
            write_page(result, page, view, force=force, quiet=quiet)
    except BaseException as error:
        if is_saved and isinstance(error, BrokenPipeError):
            raise
        where = f"in {output}" if is_saved else _print(result, streams)
        if not isinstance(error, Exception):
            raise
        msg = f"released and spent, but not written in full: {str(error) or repr(error)}; the model is {where}"
        raise NotDelivered(msg) from error
    if isinstance(result, LinearFit) and result.interval_refusal is not None:
        where = f"in {output}" if is_saved else _print(result, (sys.stderr,))
        msg = f"released and spent, but without coefficients: {result.interval_refusal}; the release is {where}"
        raise NoCoefficients(msg)


def show(result: Delivered, view: View | None = None, *, json: bool = False) -> None:
    """Print the parameters with their intervals, or the reason why there are none."""
    view = view or View()
    if json:
        show_json(result_document(result, view))
    else:
        typer.echo(result.summary(**_shown(result, view)))


def _shown(result: Delivered, view: View) -> dict[str, Any]:
    """Return the keywords of what is shown, for a summary, a plot or a page of a result."""
    if isinstance(result, PrivateFit):
        return vars(view)
    if isinstance(result, MultinomialFit):
        return {name: value for name, value in vars(view).items() if name != "target"}
    return {"level": view.level}


def draw(
    result: PrivateFit | MultinomialFit | LinearFit,
    plot: Path | None,
    view: View | None = None,
    *,
    force: bool = False,
    quiet: bool = False,
) -> None:
    """Write the forest plot, if it is wanted and there are intervals."""
    if plot is None:
        return
    if result.interval_refusal is not None:
        # Known only after the release, so it cannot be refused before.
        note(f"no plot: {result.interval_refusal}")
        return
    from matplotlib.figure import Figure  # noqa: PLC0415  # optional; found to be there before the fit

    # Not from pyplot, which keeps its figures open.
    figure = Figure(figsize=(WIDTH, figure_height(len(result.names))), layout="constrained")
    result.plot(**_shown(result, view or View()), ax=figure.subplots())
    with new_file("--plot", plot, force=force) as path:
        figure.savefig(path, dpi=150, bbox_inches="tight")
    note(f"wrote {plot}", quiet=quiet)


def write_page(
    result: PrivateFit | MultinomialFit | LinearFit | StrataFit | TuneResult,
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
    if isinstance(result, LinearFit) and result.interval_refusal is not None:
        note(f"no page: {result.interval_refusal}")
        return
    text = result.to_html(**_shown(result, view), title=title)
    with new_file(option, page, force=force) as path:
        path.write_text(text, encoding="utf-8")
    note(f"wrote {page}", quiet=quiet)


def _save(result: Delivered, output: Path, *, force: bool) -> None:
    with new_file("--output", output, force=force) as path:
        path.write_text(result.to_json(), encoding="utf-8")


def _print(result: Delivered, streams: tuple[TextIO, ...]) -> str:
    """Print the model to the first stream that takes it, and say which."""
    for stream in streams:
        with contextlib.suppress(OSError):
            typer.echo(result.to_json(), file=stream)
            return "on stdout" if stream is sys.stdout else "on stderr"
    return "lost, because neither stdout nor stderr can be written"


def write_officer_report(
    result: Approvable[Any],
    output: Path | None,
    *,
    ledger: Path | None,
    schema: Schema | None,
    force: bool,
    quiet: bool,
) -> None:
    """Write the report for approval to a file, or print it; exit code 1 if a check in it failed."""
    text = result.officer_report(ledger=ledger, schema=schema)
    if output is None:
        typer.echo(text, nl=False)
    else:
        with new_file("--output", output, force=force) as path:
            path.write_text(text, encoding="utf-8")
        note(f"wrote {output}", quiet=quiet)
    if any(finding.outcome == "FAILED" for finding in verified(statement_of(result), ledger=ledger, schema=schema)):
        raise typer.Exit(1)
