"""The command ``audit``: attacks on every mechanism, and a table of what they show."""

from pathlib import Path
from typing import Annotated

import typer

from dpci import audit as tool
from dpci.budgets import ZCDP, ApproxDP, Budget, PureDP
from dpci.cli import options
from dpci.cli.app import Command, app, note, wants_progress
from dpci.cli.output import check_new, new_file

_EXAMPLES = """\
dpci audit --mechanism output --runs 2000
dpci audit --mechanism output --mechanism histogram --runs 2000 --epsilon 0.5 --json
"""


@app.command(cls=Command, epilog=_EXAMPLES)
def audit(
    *,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(help=(f"Mechanism to audit; may be repeated. Default: all of {', '.join(tool.MECHANISMS)}.")),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Claimed epsilon under pure and approximate DP.")] = 1.0,
    delta: Annotated[
        float, typer.Option(help=("Claimed delta under approximate DP; use 0.01 for some thousand runs."))
    ] = 0.01,
    rho: Annotated[float, typer.Option(help="Claimed rho under zero-concentrated DP.")] = 0.5,
    runs: Annotated[int, typer.Option(help="Runs on each of two neighbouring data sets.")] = 100_000,
    confidence: Annotated[float, typer.Option(help="Confidence of each bound.")] = 0.999,
    seed: Annotated[int | None, typer.Option(help="Seed of the noise. Default: a fresh one.")] = None,
    threads: Annotated[int | None, typer.Option(help="Number of threads. Default: all cores.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the report as JSON to this new file.")] = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    progress: options.Progress = None,
) -> None:
    """Attack every mechanism on its worst cases. Reads no data.

    Exit code 1 if an attack refutes a claim.
    """
    budgets: tuple[Budget, ...] = (PureDP(epsilon), ZCDP(rho), ApproxDP(epsilon, delta))
    check_new("--output", output, force=force)
    found = tool.report(
        budgets=budgets,
        mechanisms=tuple(mechanism or tool.MECHANISMS),
        n_runs=runs,
        confidence=confidence,
        seed=seed,
        n_threads=threads,
        progress=_say if wants_progress(progress, quiet=quiet) else None,
    )
    # The table first: it is not lost when the file fails.
    typer.echo(found.to_json() if json else found.summary())
    if output is not None:
        with new_file("--output", output, force=force) as path:
            path.write_text(found.to_json(), encoding="utf-8")
        note(f"wrote {output}", quiet=quiet)
    if found.refuted:
        raise typer.Exit(1)


def _say(bound: tool.LowerBound) -> None:
    """Say that a case is done: how long each takes is told by how often this comes."""
    note(f"audited {bound.name}")
