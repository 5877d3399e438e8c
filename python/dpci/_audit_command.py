"""The command ``audit``: attacks on every mechanism, and a table of what they show."""

from pathlib import Path
from typing import Annotated

import typer

from dpci import audit as tool
from dpci._commands import app
from dpci.budgets import ZCDP, ApproxDP, Budget, PureDP


@app.command()
def audit(
    *,
    mechanism: Annotated[
        list[str] | None, typer.Option(help=f"May be repeated; by default all: {', '.join(tool.MECHANISMS)}.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Claim under pure and under approximate DP.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Claim under approximate DP; runs in the thousands need 0.01.")] = 0.01,
    rho: Annotated[float, typer.Option(help="Claim under zero-concentrated DP.")] = 0.5,
    runs: Annotated[int, typer.Option(help="On each of two neighbouring data sets.")] = 100_000,
    confidence: Annotated[float, typer.Option(help="Of each bound.")] = 0.999,
    seed: Annotated[int | None, typer.Option(help="Of the noise; by default a fresh one.")] = None,
    threads: Annotated[int | None, typer.Option(help="By default all cores.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the report as JSON.")] = None,
) -> None:
    """Attack every mechanism on its worst cases; exit code 1 if one refutes a claim. Reads no data."""
    budgets: tuple[Budget, ...] = (PureDP(epsilon), ZCDP(rho), ApproxDP(epsilon, delta))
    found = tool.report(
        budgets=budgets,
        mechanisms=tuple(mechanism or tool.MECHANISMS),
        n_runs=runs,
        confidence=confidence,
        seed=seed,
        n_threads=threads,
    )
    typer.echo(found.summary())
    if output is not None:
        output.write_text(found.to_json(), encoding="utf-8")
    if found.refuted:
        raise typer.Exit(1)
