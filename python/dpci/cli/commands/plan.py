"""The command ``plan``: what a fit will cost, and how precise it can be, without data."""

from pathlib import Path
from typing import Annotated, cast

import typer

from dpci.base.validation import check_choice
from dpci.cli import options
from dpci.cli.app import Command, app, show_json
from dpci.cli.documents import plan_document
from dpci.cli.options import find_schema, in_rows, with_model
from dpci.cli.saved import read_model, read_saved_result
from dpci.cli.several import asks_several, plan_several, several_keywords, several_schema
from dpci.data.persons import person_rule
from dpci.errors import InvalidInput
from dpci.inference.targets.unregularised import TARGETS
from dpci.model import plan as planning
from dpci.rows import Ball, RowDomain
from dpci.schema.table import Schema

_EXAMPLES = """\
dpci plan --n-samples 20000 --schema people.toml --epsilon 1 --l2-strength 0.01
dpci plan --n-samples 20000 --n-features 4 --epsilon 1 --delta 1e-6 --l2-strength 0.01 --json
dpci plan --n-samples 20000 --schema people.toml --epsilon 1 --l2-strength 0.01 --target unregularised
dpci plan --n-samples 20000 --n-features 4 --epsilon 1 --l2-strength 0.01 --loss multinomial --classes walk,bus,car
"""


@app.command(cls=Command, epilog=_EXAMPLES)
@with_model
def plan(
    *,
    n_samples: Annotated[
        int, typer.Option(help="Public number of records, or of persons.", rich_help_panel=options.INPUT)
    ],
    schema: Annotated[
        str | None,
        typer.Option(
            help="Schema as for fit; the plan uses its number of columns.",
            rich_help_panel=options.INPUT,
            autocompletion=options.schemas,
        ),
    ] = None,
    formula: options.Formula = None,
    n_features: Annotated[
        int | None,
        typer.Option(
            help="Number of columns without the intercept, instead of --schema.", rich_help_panel=options.INPUT
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="File of an earlier model of similar data, whose matrices predict the length of the intervals.",
            rich_help_panel=options.INPUT,
        ),
    ] = None,
    model: options.ModelOptions,
    classes: options.ClassesText = None,
    neighbors: options.Neighbors = None,
    persons: options.PlannedPersons = None,
    max_rows: options.MaxRows = None,
    weight_bound: options.WeightBound = None,
    weight_total: options.WeightTotal = None,
    target: options.OfTarget = "regularised",
    json: options.Json = False,
) -> None:
    """Print the cost and the precision of a fit in advance. Reads no data.

    With a schema that names a column of persons the plan is for persons, with or without --persons.
    """
    if (schema is None) == (n_features is None):
        given = "none" if schema is None else "both"
        msg = f"exactly one of --schema and --n-features must be given, got {given}"
        raise InvalidInput(msg)
    if schema is None and formula is not None:
        msg = f"--formula needs --schema, which bounds each column, got --formula {formula!r}"
        raise InvalidInput(msg)
    if asks_several(model, classes):
        unused = {
            "target": None if target == "regularised" else target,
            "persons": persons,
            "max_rows": max_rows,
            "weight_bound": weight_bound,
            "weight_total": weight_total,
        }
        several = plan_several(
            several_keywords(model, unused, neighbors=neighbors),
            n_samples=n_samples,
            n_features=n_features,
            schema=None if schema is None else several_schema(schema, None, formula, classes),
            classes=classes,
            like=None if like is None else read_saved_result(like),
        )
        _show_plan(several, json=json)
        return
    domain: RowDomain | None = Ball()
    description: Schema | None = None
    if schema is None:
        if model.rows == "blocks":
            msg = "--rows blocks needs --schema, which bounds each column, got --n-features"
            raise InvalidInput(msg)
        n_columns = cast("int", n_features)
    else:
        description, domain = in_rows(find_schema(schema, None, formula), model.rows)
        n_columns = len(description.names)
    keywords = model.keywords(domain, neighbors=neighbors)
    if description is not None:
        keywords.pop("classes", None)
    named = None if description is None else description.persons
    rule = person_rule(persons or named or None, None, max_rows)
    earlier = None if like is None else read_model(like)
    of = check_choice("target", target, TARGETS)
    found = planning.plan(
        n_samples=n_samples,
        n_features=n_columns,
        schema=description,
        like=earlier,
        target=of,
        **keywords,
        contribution=rule,
        max_rows=max_rows,
        weight_bound=weight_bound,
        weight_total=weight_total,
    )
    _show_plan(found, json=json)


def _show_plan(found: planning.Plan, *, json: bool) -> None:
    if json:
        show_json(plan_document(found))
    else:
        typer.echo(found.summary())
