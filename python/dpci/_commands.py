"""The commands of the command line: ``fit``, ``coverage``, ``data`` and ``demo``."""

import warnings
from json import dumps as to_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np
import typer

import dpci
from dpci import _options as options
from dpci._options import find_schema, model_keywords
from dpci._table_io import read_table, write_csv
from dpci.arrays import NamedRows
from dpci.datasets import load_adult_sample, load_table
from dpci.datasets._catalogue import CATALOGUE, SOURCES, WARFARIN
from dpci.datasets._files import find, is_intact
from dpci.datasets._tables import Table, load_sample_table, without_missing
from dpci.datasets._warfarin import warfarin_table
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.plotting import check_plot_file
from dpci.results import PrivateFit
from dpci.schema import Table as SchemaTable
from dpci.validation import check_fraction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

app = typer.Typer(
    help="Differentially private models with confidence intervals.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

SAMPLE = "adult_sample"

DEMO_NOTES = """\
Logistic regression on the packaged sample of Adult: 4,000 people of the US census of 1994.
A positive parameter raises the odds of an income above 50,000 dollars a year.

  age                                17 to 67 years
  education-num                      1 (preschool) to 16 (doctorate)
  hours-per-week                     20 to 60 hours of work
  capital-gain                       gains from capital, on a logarithmic scale
  marital-status=Married-civ-spouse  lives with a spouse
  sex=Male                           against female

Every column is scaled by public bounds, so that each row has norm at most 1 whatever the data are.
"""
# Chosen on the public sample: large enough for intervals that tell the columns apart.
DEMO_BUDGET = dpci.PureDP(epsilon=1.0)
DEMO_L2_STRENGTH = 0.01


def _version(wanted: bool) -> None:  # noqa: FBT001  # typer calls it
    if wanted:
        typer.echo(f"dpci {dpci.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def fit(
    file: Annotated[Path, typer.Argument(help="Table: .csv, .csv.gz or .parquet.")],
    *,
    schema: Annotated[
        str, typer.Option(help="File of public bounds (.toml, .json), or the name of a packaged schema.")
    ],
    l2_strength: options.L2Strength,
    target: options.Target = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    loss: options.LossText = None,
    radius: options.Radius = None,
    mechanism: options.Mechanism = None,
    split: options.Split = None,
    moments: options.Moments = None,
    projection: options.Projection = None,
    calibration: options.Calibration = None,
    neighbors: options.Neighbors = None,
    n_public: options.NPublic = None,
    on_violation: options.OnViolation = None,
    intercept: options.Intercept = True,
    intercept_scale: options.InterceptScale = None,
    level: options.Level = 0.95,
    delimiter: options.Delimiter = ",",
    ledger: Annotated[Path | None, typer.Option(help="Ledger that pays; see dpci ledger create.")] = None,
    label: Annotated[str | None, typer.Option(help="Text for the entry in the ledger.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the released result to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a forest plot to this file.")] = None,
) -> None:
    """Fit a private model to a table and print its parameters with confidence intervals."""
    # Whatever can be refused is refused before budget is spent.
    check_fraction("level", level)
    _check_outputs(json, plot, moments)
    payer = _payer(ledger, label)
    description = find_schema(schema, target)
    keywords = model_keywords(
        description,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        l2_strength=l2_strength,
        loss=loss,
        radius=radius,
        mechanism=mechanism,
        split=split,
        moments=moments,
        projection=projection,
        calibration=calibration,
        intercept=intercept,
        intercept_scale=intercept_scale,
        on_violation=on_violation,
        neighbors=neighbors,
        n_public=n_public,
    )
    X, y, names = description.transform(read_table(file, delimiter=delimiter))
    result = dpci.fit(NamedRows(X, names), y, ledger=payer, **keywords)
    _show(result, level=level, json=json, plot=plot)


@app.command()
def coverage(
    source: Annotated[str, typer.Argument(metavar="FILE|NAME", help="Table, or the name of a public data set.")],
    *,
    l2_strength: options.L2Strength,
    schema: Annotated[
        str | None, typer.Option(help="As for fit; a public data set has its own, if none is given.")
    ] = None,
    target: options.Target = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    loss: options.LossText = None,
    radius: options.Radius = None,
    mechanism: options.Mechanism = None,
    split: options.Split = None,
    moments: options.Moments = None,
    projection: options.Projection = None,
    calibration: options.Calibration = None,
    on_violation: options.OnViolation = None,
    intercept: options.Intercept = True,
    intercept_scale: options.InterceptScale = None,
    level: options.Level = 0.95,
    replicates: Annotated[int, typer.Option(help="Replicates with intervals.")] = 1000,
    variability: Annotated[int, typer.Option(help="Replicates for the variability lengths; 0: none.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Every number of the study follows from it.")] = 0,
    checkpoint: Annotated[Path | None, typer.Option(help="File (.npz) from which a killed run goes on.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; by default all cores.")] = None,
    progress: Annotated[bool, typer.Option(help="Show a progress bar.")] = False,
    delimiter: options.Delimiter = ",",
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Repeat a fit on bootstrap samples of a table and print how often its intervals cover. NOT PRIVATE."""
    is_name = source in {SAMPLE, *CATALOGUE}
    if schema is None and not is_name:
        msg = f"--schema must be given for a table of your own, got none for {source!r} (names: {[SAMPLE, *CATALOGUE]})"
        raise InvalidInput(msg)
    description = find_schema(schema or {SAMPLE: "adult_demo"}.get(source, source), target)
    keywords = model_keywords(
        description,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        l2_strength=l2_strength,
        loss=loss,
        radius=radius,
        mechanism=mechanism,
        split=split,
        moments=moments,
        projection=projection,
        calibration=calibration,
        intercept=intercept,
        intercept_scale=intercept_scale,
        on_violation=on_violation,
    )
    if is_name:
        table: SchemaTable = without_missing(_public_table(source))
    else:
        table = read_table(Path(source), delimiter=delimiter)
    X, y, names = description.transform(table)
    with warnings.catch_warnings():
        # The output says the same.
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        study = dpci.simulate.coverage(
            NamedRows(X, names),
            y,
            n_replicates=replicates,
            n_variability=variability,
            level=level,
            seed=seed,
            progress=progress,
            checkpoint=checkpoint,
            n_threads=threads,
            **keywords,
        )
    typer.echo(to_json(study.to_dict(), indent=2) if json else study.summary())


@app.command()
def data(
    name: Annotated[str | None, typer.Argument(help=f"Data set to be exported, also {SAMPLE}.")] = None,
    export: Annotated[Path | None, typer.Option(help="Write the table to this CSV file (.csv, .csv.gz).")] = None,
    split: Annotated[str | None, typer.Option(help="train, test or all, where there are several files.")] = None,
) -> None:
    """List the public data sets and where they were found, or export one as CSV with a header."""
    if name is None:
        if export is not None:
            names = [SAMPLE, *(source.name for source in SOURCES)]
            msg = f"--export needs the name of a data set, one of {names}, got none"
            raise InvalidInput(msg)
        typer.echo("\n".join(_inventory()))
        return
    if export is None:
        msg = f"dpci data {name} needs --export FILE, got none"
        raise InvalidInput(msg)
    table = _public_table(name, split)
    write_csv(export, table)
    typer.echo(f"{export}: {len(next(iter(table.values())))} rows of {name}")


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the forest plot.")] = Path("demo_output"),
) -> None:
    """Fit the packaged sample of Adult, print the summary and draw the intervals."""
    sample = load_adult_sample()
    rows = NamedRows(np.asarray(sample.X), sample.names)
    result = dpci.fit(rows, sample.y, budget=DEMO_BUDGET, l2_strength=DEMO_L2_STRENGTH)
    typer.echo(DEMO_NOTES)
    output.mkdir(parents=True, exist_ok=True)
    _show(result, plot=output / "adult_intervals.png")


def _payer(ledger: Path | None, label: str | None) -> dpci.Ledger | None:
    """Return the ledger that pays for a fit, if one is named."""
    if ledger is None:
        if label is not None:
            msg = f"--label is for the entry in a ledger and needs --ledger, got --label {label!r}"
            raise InvalidInput(msg)
        return None
    opened = dpci.Ledger.open(ledger)
    return opened if label is None else opened.labelled(label)


def _check_outputs(json: Path | None, plot: Path | None, moments: str | None) -> None:
    """Refuse files that could not be written once the budget is spent."""
    for option, path in (("--json", json), ("--plot", plot)):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            msg = f"{option} must name a file in a folder that exists, got {str(path)!r}"
            raise InvalidInput(msg)
    if plot is not None:
        check_plot_file(plot)
        if moments == "none":
            msg = "--plot needs released moments, got --moments none"
            raise InvalidInput(msg)


def _show(result: PrivateFit, *, level: float = 0.95, json: Path | None = None, plot: Path | None = None) -> None:
    # The file first: what has been released is not lost when a later step fails.
    if json is not None:
        json.write_text(result.to_json(), encoding="utf-8")
    typer.echo(result.summary(level=level))
    if json is not None:
        typer.echo(f"wrote {json}")
    if plot is not None and result.interval_refusal is not None:
        # Known only after the release, so it cannot be refused before.
        typer.echo(f"no plot: {result.interval_refusal}")
    elif plot is not None:
        figure = cast("Figure", result.plot(level=level).figure)
        figure.savefig(plot, dpi=150, bbox_inches="tight")
        typer.echo(f"wrote {plot}")


def _public_table(name: str, split: str | None = None) -> Table:
    if name == WARFARIN.name and split is None:
        return warfarin_table()
    return load_sample_table() if name == SAMPLE else load_table(name, split)


def _inventory() -> list[str]:
    """Aligned lines: a heading, the packaged sample, and each file of the catalogue."""
    rows = [
        ("name", "split", "rows", "sha256", "licence", "where"),
        (SAMPLE, "", "4000", "-", "CC BY 4.0", "in the package"),
    ]
    for entry in SOURCES:
        for split, file in entry.files.items():
            found = find(file)
            status = "-" if found is None else ("ok" if is_intact(file, found) else "WRONG")
            where = "not here" if found is None else f"{found.place}: {found.path}"
            rows.append((entry.name, split, str(entry.n_rows[split]), status, entry.licence, where))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
