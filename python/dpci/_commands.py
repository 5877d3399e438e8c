"""The commands of the command line: ``fit``, ``data`` and ``demo``."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer
from numpy.typing import NDArray

import dpci
from dpci._table_io import read_table, write_csv
from dpci.budgets import Budget
from dpci.datasets import load_adult_sample, load_schema, load_table, schema_names
from dpci.datasets._catalogue import CATALOGUE
from dpci.datasets._files import find, is_intact
from dpci.datasets._tables import load_sample_table
from dpci.errors import InvalidInput
from dpci.losses import Loss
from dpci.plotting import check_plot_file
from dpci.results import PrivateFit
from dpci.schema import Schema
from dpci.settings import FitKeywords
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


@dataclasses.dataclass(frozen=True)
class _NamedRows:
    """Rows that carry the names of their columns, in the manner of a data frame and without a copy."""

    values: NDArray[np.float64]
    columns: tuple[str, ...]
    dtypes = ("float64",)

    def to_numpy(self) -> NDArray[np.float64]:
        return self.values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: ANN401, FBT001  # NumPy's own
        return np.array(self.values, dtype=dtype, copy=copy)


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
    l2_strength: Annotated[float, typer.Option(help="Strength of the L2 regularisation of the mean objective.")],
    target: Annotated[
        str | None, typer.Option(help="Column to be predicted, if the schema's has another name.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Pure DP, or with --delta approximate DP.")] = None,
    delta: Annotated[float | None, typer.Option(help="Approximate DP together with --epsilon.")] = None,
    rho: Annotated[float | None, typer.Option(help="Zero-concentrated DP, in place of --epsilon.")] = None,
    loss: Annotated[str | None, typer.Option(help="logistic, huber_hinge[:h] or smooth_hinge[:s].")] = None,
    mechanism: Annotated[str | None, typer.Option(help="objective or output.")] = None,
    split: Annotated[
        str | None, typer.Option(help="Shares of coefficients, Hessian, gradient covariance: a,b,c.")
    ] = None,
    moments: Annotated[str | None, typer.Option(help="joint, separate or none.")] = None,
    projection: Annotated[str | None, typer.Option(help="floor, cautious or auto.")] = None,
    calibration: Annotated[str | None, typer.Option(help="tight or paper.")] = None,
    neighbors: Annotated[str | None, typer.Option(help="replace_one, or add_remove together with --n-public.")] = None,
    n_public: Annotated[int | None, typer.Option(help="Public number of records under add_remove.")] = None,
    on_violation: Annotated[str | None, typer.Option(help="error or clip, for rows above the row bound.")] = None,
    intercept: Annotated[bool, typer.Option(help="Fit an intercept.")] = True,
    intercept_scale: Annotated[float | None, typer.Option(help="Constant that is appended for the intercept.")] = None,
    level: Annotated[float, typer.Option(help="Level of the confidence intervals.")] = 0.95,
    delimiter: Annotated[str, typer.Option(help="Between the fields of a CSV file.")] = ",",
    json: Annotated[Path | None, typer.Option(help="Write the released result to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a forest plot to this file.")] = None,
) -> None:
    """Fit a private model to a table and print its parameters with confidence intervals."""
    # Whatever can be refused is refused before budget is spent.
    check_fraction("level", level)
    _check_outputs(json, plot, moments)
    description = load_schema(schema) if schema in schema_names() else Schema.from_file(schema)
    if target is not None:
        renamed = dataclasses.replace(description.target, column=target)
        description = dataclasses.replace(description, target=renamed)
    keywords = {
        "budget": parse_budget(epsilon, delta, rho),
        "l2_strength": l2_strength,
        "loss": None if loss is None else parse_loss(loss),
        "mechanism": mechanism,
        "split": None if split is None else _numbers("split", split),
        "moments": moments,
        "projection": projection,
        "calibration": calibration,
        "classes": (-1, 1),
        "fit_intercept": intercept,
        "intercept_scale": intercept_scale,
        "row_norm": description.row_norm,
        "on_violation": on_violation,
        "neighbors": neighbors,
        "n_public": n_public,
    }
    # Options that were not given keep the defaults of dpci.fit, which checks them all.
    given = cast("FitKeywords", {name: value for name, value in keywords.items() if value is not None})
    X, y, names = description.transform(read_table(file, delimiter=delimiter))
    result = dpci.fit(_NamedRows(X, names), y, **given)
    _show(result, level=level, json=json, plot=plot)


@app.command()
def data(
    name: Annotated[str | None, typer.Argument(help=f"Data set to be exported, also {SAMPLE}.")] = None,
    export: Annotated[Path | None, typer.Option(help="Write the table to this CSV file (.csv, .csv.gz).")] = None,
    split: Annotated[str | None, typer.Option(help="train, test or all, where there are several files.")] = None,
) -> None:
    """List the public data sets and where they were found, or export one as CSV with a header."""
    if name is None:
        if export is not None:
            msg = f"--export needs the name of a data set, one of {[SAMPLE, *CATALOGUE]}, got none"
            raise InvalidInput(msg)
        typer.echo("\n".join(_inventory()))
        return
    if export is None:
        msg = f"dpci data {name} needs --export FILE, got none"
        raise InvalidInput(msg)
    table = load_sample_table() if name == SAMPLE else load_table(name, split)
    write_csv(export, table)
    typer.echo(f"{export}: {len(next(iter(table.values())))} rows of {name}")


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the forest plot.")] = Path("demo_output"),
) -> None:
    """Fit the packaged sample of Adult, print the summary and draw the intervals."""
    sample = load_adult_sample()
    result = dpci.fit(_NamedRows(sample.X, sample.names), sample.y, budget=DEMO_BUDGET, l2_strength=DEMO_L2_STRENGTH)
    typer.echo(DEMO_NOTES)
    output.mkdir(parents=True, exist_ok=True)
    _show(result, plot=output / "adult_intervals.png")


def parse_budget(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    """Return the budget of the three options; exactly one notion may be named."""
    if rho is not None and epsilon is None and delta is None:
        return dpci.ZCDP(rho=rho)
    if rho is None and epsilon is not None:
        return dpci.PureDP(epsilon=epsilon) if delta is None else dpci.ApproxDP(epsilon=epsilon, delta=delta)
    given = {"epsilon": epsilon, "delta": delta, "rho": rho}
    msg = (
        "a budget is --epsilon, --epsilon with --delta, or --rho, "
        f"got {[f'--{option}' for option, value in given.items() if value is not None]}"
    )
    raise InvalidInput(msg)


def parse_loss(text: str) -> Loss:
    """Return the loss of a text such as ``huber_hinge:0.5``."""
    kinds: dict[str, tuple[Callable[..., Loss], str | None]] = {
        "logistic": (dpci.losses.Logistic, None),
        "huber_hinge": (dpci.losses.HuberHinge, "h"),
        "smooth_hinge": (dpci.losses.SmoothHinge, "s"),
    }
    kind, colon, width = text.partition(":")
    if kind not in kinds or (colon and kinds[kind][1] is None):
        msg = f"loss must be logistic, huber_hinge[:h] or smooth_hinge[:s], got {text!r}"
        raise InvalidInput(msg)
    loss, parameter = kinds[kind]
    if not (colon and parameter):
        return loss()
    numbers = _numbers("loss", width)
    if len(numbers) != 1:
        msg = f"loss must be logistic, huber_hinge[:h] or smooth_hinge[:s], got {text!r}"
        raise InvalidInput(msg)
    return loss(**{parameter: numbers[0]})


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        msg = f"{option} must hold numbers, got {text!r}"
        raise InvalidInput(msg) from error


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
    if plot is not None:
        figure = cast("Figure", result.plot(level=level).figure)
        figure.savefig(plot, dpi=150, bbox_inches="tight")
        typer.echo(f"wrote {plot}")


def _inventory() -> list[str]:
    """Aligned lines: a heading, the packaged sample, and each file of the catalogue."""
    rows = [
        ("name", "split", "rows", "sha256", "licence", "where"),
        (SAMPLE, "", "4000", "-", "CC BY 4.0", "in the package"),
    ]
    for entry in CATALOGUE.values():
        for split, file in entry.files.items():
            found = find(file)
            status = "-" if found is None else ("ok" if is_intact(file, found) else "WRONG")
            where = "not here" if found is None else f"{found.place}: {found.path}"
            rows.append((entry.name, split, str(entry.n_rows[split]), status, entry.licence, where))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
