"""The commands that fit: ``fit``, ``coverage`` and ``demo``."""

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dpci import multinomial, simulate
from dpci.base.threads import threads
from dpci.budgets import ZCDP
from dpci.cli import options
from dpci.cli.app import Command, app, show_json, wants_progress
from dpci.cli.commands.data import NAMES, SAMPLE, is_public, public_table
from dpci.cli.delivery import Delivery, deliver, draw, show
from dpci.cli.options import RUNNING, find_any_schema, find_schema, in_any_rows, in_rows, option, with_options
from dpci.cli.rows import MOST_BYTES, TableRows, UnitOptions
from dpci.cli.several import asks_several, several_keywords, several_schema
from dpci.data.arrays import NamedRows
from dpci.datasets.tables import load_sample_table, without_missing
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.ledger.ledger import Ledger
from dpci.mechanisms import ObjectivePerturbation, check_mechanism
from dpci.model import fit as fitting
from dpci.model.keywords import default_loss, takes_newton
from dpci.model.recommend import default_rows
from dpci.model.settings import AUTO, ModelKeywords
from dpci.released.result import shown_of
from dpci.schema.columns import CategoricalColumn, ClassTarget, UnboundedColumn
from dpci.schema.partial import PartialSchema, known_of
from dpci.schema.table import Schema
from dpci.sources.files import STDIN, is_stream
from dpci.sources.find import find_tables

DEMO_NOTES = """\
Logistic regression of an income above 50,000 dollars a year, on the packaged sample of Adult: 4,000 people of the US
Current Population Survey of 1994. The schema names the columns and their kinds, but no bounds: the fit finds them
within its budget. The coefficients are the ordinary ones, without a ridge.
"""
DEMO_BUDGET = ZCDP(rho=0.5)

_FIT_EXAMPLES = """\
dpci fit people.csv --schema people.toml --rho 0.5 --output model.json
dpci fit people.csv --schema people.toml --epsilon 1 --l2-strength 0.01 --output model.json
dpci fit people.csv --schema people.toml --epsilon 1 --delta 1e-6 --l2-strength 0.01 --json
dpci fit people.csv --schema people.toml --formula 'ill ~ poly(age, 2)' --epsilon 1 --l2-strength 0.01 --page page.html
dpci fit 'parts/*.csv' --schema people.toml --rho 0.5 --l2-strength 0.01 --mechanism output --chunk-rows 1000
dpci fit people.csv --schema gaps.toml --rho 0.5 --bounds-share 0.1 --output model.json
dpci fit people.csv --schema people.toml --epsilon 1 --l2-strength 0.05 --loss multinomial --classes no,probably,yes
"""

_COVERAGE_EXAMPLES = """\
dpci coverage adult_sample --rho 0.5 --replicates 20 --variability 0
dpci coverage adult_sample --epsilon 1 --l2-strength 0.01 --replicates 20 --variability 0
dpci coverage people.csv --schema people.toml --rho 0.5 --l2-strength 0.01 --replicates 20 --variability 20 --json
"""

_DEMO_EXAMPLES = """\
dpci demo
dpci demo --output figures
"""


@app.command(cls=Command, epilog=_FIT_EXAMPLES)
@with_options()
def fit(
    files: options.Tables,
    *,
    schema: options.SchemaText,
    formula: options.Formula = None,
    target: options.Target = None,
    form: options.FormatOptions,
    chunk_rows: options.ChunkRows = None,
    model: options.ModelOptions,
    bounds_share: options.BoundsShare = None,
    neighbors: options.Neighbors = None,
    n_public: options.NPublic = None,
    classes: options.ClassesText = None,
    unit: UnitOptions,
    level: options.Level = 0.95,
    simultaneous: options.Simultaneous = None,
    units: options.Units = "table",
    delivery: Delivery,
) -> None:
    """Fit a private model to a table.

    A schema may have columns of the kind "unbounded": the fit finds their bounds within its budget. Prints the
    parameters with confidence intervals, or the reason for their absence, and the spent budget. Tables whose rows take
    more than 512 MiB, and all with --chunk-rows, are read again in every pass instead of held in memory; the result is
    the same.
    """
    # Whatever can be refused is refused before budget is spent.
    view = options.view(level=level, simultaneous=simultaneous, units=units)
    tables = find_tables(files)
    delivery.check(tables, schema)
    if delivery.plot is not None and model.moments == "none":
        raise InvalidInput("--plot requires released moments, got --moments none")
    paying = delivery.payer()
    several = asks_several(model, classes)
    description: Schema | PartialSchema
    if several:
        description = several_schema(schema, target, formula, classes)
        keywords = several_keywords(model, {}, neighbors=options.relation(neighbors, n_public))
    else:
        description, domain = in_any_rows(find_any_schema(schema, target, formula), model.rows)
        keywords = {**model.keywords(domain, neighbors=options.relation(neighbors, n_public))}
        keywords.pop("classes", None)
    description = options.with_share(description, bounds_share)
    known = known_of(description)
    rows = TableRows(files=tables, schema=known, form=form.read(), **options.given(chunk_rows=chunk_rows))
    is_private = paying is not None and paying.errors == "private"
    in_parts = read_in_passes(tables, paying, chunk_rows)
    shown = delivery.shows_progress(is_private=is_private)
    unit.check(known)
    if isinstance(description, PartialSchema):
        (X, beside), y = unit.read_table(rows, description, in_parts=in_parts, progress=shown), None
    else:
        most_bytes = 0 if in_parts else math.inf if any(map(is_stream, tables)) else MOST_BYTES
        X, y, beside = unit.read(rows, most_bytes, progress=shown)
    given: dict[str, Any] = {
        "schema": description,
        "ledger": paying,
        **beside,
        **keywords,
    }
    with threads(delivery.threads):
        result = multinomial.fit(X, y, **given) if several else fitting.fit(X, y, **given)
    deliver(result, delivery, view)


@app.command(cls=Command, epilog=_COVERAGE_EXAMPLES)
@with_options()
def coverage(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|NAME",
            help="Table as for fit, or the name of a public data set.",
            autocompletion=options.completes(*NAMES),
        ),
    ],
    *,
    schema: options.OptionalSchema = None,
    formula: options.Formula = None,
    target: options.Target = None,
    form: options.FormatOptions,
    model: options.ModelOptions,
    unit: UnitOptions,
    level: options.Level = 0.95,
    replicates: Annotated[int, option(RUNNING, "Replicates with intervals.")] = 1000,
    variability: Annotated[
        int | None,
        option(
            RUNNING,
            "Number of replicates for the variability lengths; 0 for none. Default: 10,000, or 1,000 of Newton steps.",
        ),
    ] = None,
    seed: Annotated[int, option(RUNNING, "Seed that determines every number of the study.")] = 0,
    checkpoint: Annotated[Path | None, option(RUNNING, "File (.npz) from which a killed run resumes.")] = None,
    threads: options.Threads = None,
    progress: options.Progress = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure the coverage of the intervals of a fit. NOT PRIVATE.

    Repeats the fit on bootstrap samples of the table, which is treated as the population. Without --l2-strength these
    are the Newton steps of dpci fit, and the output has the length over that without privacy.
    """
    if schema is None and not is_public(source):
        raise InvalidInput(
            f"--schema must be given unless the table is a public data set ({', '.join(NAMES)}), got none for "
            f"{source!r}"
        )
    named = find_schema(schema or {SAMPLE: "adult_demo"}.get(source, source), target, formula)
    description, domain = in_rows(named, model.rows)
    keywords = model.keywords(domain)
    steps = takes_steps(keywords, description)
    if domain is None and steps:
        keywords["rows"] = model.bounds(description.domain)
    elif domain is None:
        of_table = keywords.copy()
        of_table.pop("classes", None)  # those of the schema
        keywords["rows"] = model.bounds(default_rows(description, **of_table))
    shown = wants_progress(progress, quiet=quiet)
    unit.check(description)
    beside: dict[str, Any] = {}
    if is_public(source):
        if unit.columns:
            raise InvalidInput(
                f"--persons and --weights must be columns of a table of yours, got {source!r}, which has none"
            )
        values, y, names = description.transform(without_missing(public_table(source)))
        X = NamedRows(values, names)
    else:
        rows = TableRows(files=find_tables([Path(source)]), schema=description, form=form.read())
        X, y, beside = unit.read_arrays(rows, progress=shown)
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        # The output says the same.
        study = simulate.coverage(
            X,
            y,
            n_replicates=replicates,
            n_variability=variability,
            level=level,
            seed=seed,
            progress=shown,
            checkpoint=checkpoint,
            n_threads=threads,
            **beside,
            **keywords,
        )
    if json:
        show_json(study.to_dict())
    else:
        typer.echo(study.summary())


@app.command(cls=Command, epilog=_DEMO_EXAMPLES)
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the forest plot.")] = Path("demo_output"),
) -> None:
    """Publish odds ratios of the packaged sample."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--output must name a folder that exists or can be created, got {str(output)!r}: {error.strerror}"
        ) from error
    result = fitting.fit(load_sample_table(), schema=demo_schema(), budget=DEMO_BUDGET)
    typer.echo(DEMO_NOTES)
    shown = shown_of(result)
    show(shown)
    typer.echo(f"\nOdds ratios\n{result.odds_ratios()}\n")
    draw(shown, output / "forest_plot.png", force=True)


def demo_schema() -> PartialSchema:
    """Return the schema of the README's first result."""
    return PartialSchema(
        columns=(
            UnboundedColumn(name="age", unit="year"),
            UnboundedColumn(name="education-num", unit="level"),
            UnboundedColumn(name="hours-per-week", unit="hour"),
            CategoricalColumn(name="sex", categories=("Female", "Male"), reference="Female"),
        ),
        target=ClassTarget(column="income", negative=("<=50K",), positive=(">50K",)),
    )


def takes_steps(keywords: ModelKeywords, schema: Schema) -> bool:
    """Whether a study of a table with this schema repeats fits by Newton steps."""
    loss = default_loss(keywords.get("loss"), schema)
    ridge = keywords.get("l2_strength", AUTO)
    steps = takes_newton(keywords.get("mechanism"), ridge, keywords["budget"], loss)
    if not steps and ridge == AUTO:
        check_mechanism(keywords.get("mechanism", ObjectivePerturbation.name))
        raise InvalidInput(
            "--l2-strength must be given for a study of fits that take no Newton steps, got none (dpci plan has one)"
        )
    return steps


def read_in_passes(tables: Sequence[Path], paying: Ledger | None, chunk_rows: int | None) -> bool:
    """Whether tables are read again in every pass: with private errors nothing is read before the budget is spent."""
    is_private = paying is not None and paying.errors == "private"
    stream = next((table for table in tables if is_stream(table)), None)
    if stream is not None and (chunk_rows is not None or is_private):
        name = "the standard input (-)" if stream == STDIN else repr(str(stream))
        what = "--chunk-rows" if chunk_rows is not None else "a ledger with errors='private'"
        raise InvalidInput(f"{what} requires files, because tables are read several times, got {name}")
    return chunk_rows is not None or is_private
