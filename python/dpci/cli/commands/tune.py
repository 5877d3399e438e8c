"""The command ``tune``: chooses one of several public candidates with differential privacy, and fits it."""

import math
from typing import Annotated, Any

from dpci.base.threads import threads
from dpci.base.validation import check_choice
from dpci.cli import options
from dpci.cli.app import Command, app
from dpci.cli.delivery import Delivery, deliver
from dpci.cli.options import (
    BUDGET,
    MODEL,
    CommonOptions,
    find_schema,
    in_rows,
    numbers,
    one_of,
    option,
    parse_loss,
    with_options,
)
from dpci.cli.rows import TableRows, UnitOptions
from dpci.cli.several import asks_several, several_keywords, several_schema
from dpci.errors import InvalidInput
from dpci.mechanisms import ObjectivePerturbation, check_mechanism
from dpci.sources.find import find_tables
from dpci.tuning import choose
from dpci.tuning.selection import METHODS

_EXAMPLES = """\
dpci tune people.csv --schema people.toml --rho 1 --radius 3 --candidate l2_strength=.1 --candidate l2_strength=.5
dpci tune people.csv --schema people.toml --epsilon 2 --candidate l2_strength=.1,radius=2 --json
"""

_TEXT = ("mechanism", "moments", "projection", "calibration")


@app.command(cls=Command, epilog=_EXAMPLES)
@with_options(without=("plot", "page"))
def tune(
    files: options.TableFiles,
    *,
    schema: options.FullSchema,
    formula: options.Formula = None,
    target: options.Target = None,
    form: options.FormatOptions,
    candidate: Annotated[
        list[str],
        option(
            MODEL,
            "Candidate, such as l2_strength=0.01 or l2_strength=0.1,radius=2; repeat the option for each. "
            "Candidates must be public: do not choose them by looking at the data.",
        ),
    ],
    method: Annotated[
        str,
        one_of(
            MODEL,
            "repeat: the best of a random number of private runs. chunks: each candidate is fitted to its own "
            "part of the rows.",
            "repeat",
            "chunks",
        ),
    ] = "repeat",
    selection_share: Annotated[float, option(BUDGET, "Share of the budget for the choice.")] = 0.5,
    validation_radius: Annotated[
        float | None, option(MODEL, "Radius of the ball in which candidates without a radius are compared.")
    ] = None,
    model: CommonOptions,
    classes: options.ClassesText = None,
    unit: UnitOptions,
    level: options.Level = 0.95,
    delivery: Delivery,
) -> None:
    """Choose one of several candidates with privacy, and fit it.

    A part of the budget pays for the choice, the rest for a fit with the chosen values. The table is held in memory.
    """
    # Whatever can be refused is refused before budget is spent.
    view = options.view(level=level)
    method = check_choice("method", method, tuple(name for name in METHODS if name != "public_rule"))
    candidates = [parse_candidate(text, model.perturbation()) for text in candidate]
    tables = find_tables(files)
    delivery.check(tables, schema)
    paying = delivery.payer()
    if paying is not None and paying.errors == "private":
        raise InvalidInput(
            "--ledger must have detailed errors for dpci tune, which reads the table first, got errors='private'"
        )
    keywords: dict[str, Any]
    if asks_several(model, classes):
        description = several_schema(schema, target, formula, classes)
        keywords = options.given(**several_keywords(model, {}))
    else:
        description, domain = in_rows(find_schema(schema, target, formula), model.rows)
        keywords = dict(model.keywords(domain))
        keywords.pop("classes", None)
    unit.check(description)
    rows = TableRows(files=tables, schema=description, form=form.read())
    shown = delivery.shows_progress(is_private=False)
    X, y, beside = unit.read(rows, math.inf, progress=shown)
    with threads(delivery.threads):
        result = choose.tune(
            X,
            y,
            schema=description,
            candidates=candidates,
            method=method,
            selection_share=selection_share,
            validation_radius=validation_radius,
            ledger=paying,
            progress=shown,
            **beside,
            **keywords,
        )
    deliver(result, delivery, view)


def parse_candidate(text: str, mechanism: object = None) -> dict[str, Any]:
    """Return the keywords of a text such as ``l2_strength=0.1,loss=huber_hinge:0.5``.

    ``mechanism``: that of candidates which name none, with the options that are common to all.
    """
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name or name in found:
            raise InvalidInput(
                f"--candidate must be NAME=VALUE, several separated by commas, each name once, got {text!r}"
            )
        if name == "loss":
            found[name] = parse_loss(value)
        elif name in _TEXT:
            found[name] = value
        else:
            (found[name],) = numbers(f"--candidate {name}", value)
    given = {name: found.pop(name) for name in options.OF_MECHANISM if name in found}
    if given or "mechanism" in found:
        common = check_mechanism(ObjectivePerturbation.name if mechanism is None else mechanism)
        found["mechanism"] = options.mechanism_with(found.get("mechanism", common.name), {**common.given, **given})
    return found
