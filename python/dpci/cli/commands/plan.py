"""The command ``plan``: what a fit will cost, and how precise it can be, without data."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from dpci import multinomial
from dpci.cli import options
from dpci.cli.app import Command, app, show_json
from dpci.cli.options import INPUT, INTERVALS, find_any_schema, in_any_rows, option
from dpci.cli.rows import UnitOptions
from dpci.cli.saved import load
from dpci.cli.several import asks_several, labels_of, several_keywords, several_schema
from dpci.errors import InvalidInput
from dpci.model import plan as planning
from dpci.model.newton import NewtonPlan
from dpci.model.plan import Plan
from dpci.regression.plan import MomentPlan
from dpci.released.result import shown_of
from dpci.rows import Ball, RowDomain
from dpci.schema.partial import PartialSchema, known_of
from dpci.schema.table import Schema

_EXAMPLES = """\
dpci plan --n-samples 20000 --schema people.toml --epsilon 1 --l2-strength 0.01
dpci plan --n-samples 20000 --n-features 4 --epsilon 1 --delta 1e-6 --l2-strength 0.01 --json
dpci plan --n-samples 20000 --schema people.toml --epsilon 1 --l2-strength 0.01 --without-ridge
dpci plan --n-samples 20000 --schema people.toml --rho 0.5
dpci plan --n-samples 20000 --schema gaps.toml --rho 0.5
dpci plan --n-samples 20000 --n-features 4 --epsilon 1 --l2-strength 0.01 --loss multinomial --classes walk,bus,car
dpci plan --n-samples 20000 --n-features 4 --loss squared --mu 0.5 --r-squared 0.3
"""


@app.command(cls=Command, epilog=_EXAMPLES)
@options.with_options()
def plan(
    *,
    n_samples: Annotated[int, option(INPUT, "Public number of records, or of persons.")],
    schema: Annotated[
        str | None,
        option(INPUT, "Schema as for fit; the plan uses its columns and their bounds.", completed_by=options.schemas),
    ] = None,
    formula: options.Formula = None,
    n_features: Annotated[
        int | None, option(INPUT, "Number of columns without the intercept, instead of --schema.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="File of an earlier model of similar data, whose matrices predict the length of the intervals.",
            rich_help_panel=options.INPUT,
        ),
    ] = None,
    target_std_dev: Annotated[
        float | None,
        option(
            INPUT, "For a linear regression: assumed standard deviation of the target. Default: uniform in its bounds."
        ),
    ] = None,
    r_squared: Annotated[
        float | None,
        option(
            INPUT,
            "For a linear regression: assumed part of the target's variance that the columns explain. Default: .5",
        ),
    ] = None,
    model: options.PlanOptions,
    bounds_share: options.BoundsShare = None,
    classes: options.ClassesText = None,
    neighbors: options.Neighbors = None,
    persons: options.PlannedPersons = None,
    max_rows: options.MaxRows = None,
    weight_bound: options.WeightBound = None,
    weight_total: options.WeightTotal = None,
    without_ridge: Annotated[
        bool, option(INTERVALS, "Recommend a lambda for coefficients without the ridge.", "--without-ridge")
    ] = False,
    json: options.Json = False,
) -> None:
    """Print the cost and the precision of a fit in advance. Reads no data.

    With a schema that names a column of persons the plan is for persons, with or without --persons. With --loss squared
    and no --radius it is a plan of dpci regress. Without --l2-strength it is for the Newton steps that dpci fit takes.
    """
    if (schema is None) == (n_features is None):
        given = "none" if schema is None else "both"
        raise InvalidInput(f"exactly one of --schema and --n-features must be given, got {given}")
    options.check_formula(schema, formula)
    unit = UnitOptions(persons=persons, max_rows=max_rows, weight_bound=weight_bound, weight_total=weight_total)
    assumed = options.given(target_std_dev=target_std_dev, r_squared=r_squared)
    earlier: Any = None if like is None else shown_of(load(like)).earlier()
    if asks_several(model, classes):
        unused = {"mu": model.mu, **assumed, "without_ridge": without_ridge or None}
        described = None if schema is None else several_schema(schema, None, formula, classes)
        several = multinomial.plan(
            n_samples=n_samples,
            n_features=n_features,
            schema=described,
            classes=None if classes is None or described is not None else labels_of(classes),
            like=earlier,
            **several_keywords(model, unused, neighbors=neighbors, **unit.planned(described)),
        )
        _show_plan(several, json=json)
        return
    domain: RowDomain | None = Ball()
    description: Schema | PartialSchema | None = None
    if schema is None:
        if model.rows == "blocks":
            raise InvalidInput("--rows blocks requires --schema, which bounds each column, got --n-features")
        n_columns = cast("int", n_features)
    else:
        description, domain = in_any_rows(find_any_schema(schema, None, formula), model.rows)
        n_columns = len(known_of(description).names)
    keywords: dict[str, Any] = {**model.keywords(domain, neighbors=neighbors)}
    if description is not None:
        keywords.pop("classes", None)
    counted = unit.planned(None if description is None else known_of(description))
    if assumed and not (model.loss == "squared" and model.radius is None and like is None):
        name, value = next(iter(assumed.items()))
        option = "--" + name.replace("_", "-")
        raise InvalidInput(f"{option} must be given with --loss squared, without --radius and --like, got {value}")
    found: Plan | NewtonPlan | MomentPlan = planning.plan(
        n_samples=n_samples,
        n_features=n_columns,
        schema=None if description is None else options.with_share(description, bounds_share),
        like=earlier,
        target=options.target_of(without_ridge),
        **keywords,
        **counted,
    )
    if assumed:
        found = cast("MomentPlan", found).assuming(**assumed)
    _show_plan(found, json=json)


def _show_plan(found: Plan | NewtonPlan | MomentPlan, *, json: bool) -> None:
    if json:
        show_json(found.to_dict())
    else:
        typer.echo(found.summary())
