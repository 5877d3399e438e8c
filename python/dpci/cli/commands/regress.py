"""The command ``regress``: linear regression of a table from one released moment matrix."""

import warnings

from dpci.base.threads import threads
from dpci.cli import options
from dpci.cli.app import Command, app
from dpci.cli.delivery import Delivery, deliver
from dpci.cli.options import parse_gaussian_budget, parse_ridge
from dpci.cli.rows import MOST_BYTES, TableRows, UnitOptions
from dpci.errors import InvalidInput, MomentNoiseWarning
from dpci.model import fit as fitting
from dpci.rows import Clipped, Weighted
from dpci.schema.partial import PartialSchema, known_of
from dpci.schema.table import far_columns
from dpci.sources.files import is_stream
from dpci.sources.find import find_tables

_EXAMPLES = """\
dpci regress people.csv --schema ages.toml --epsilon 1 --delta 1e-8 --output regression.json
dpci regress people.csv --schema ages.toml --mu 0.5 --json
dpci regress people.csv --schema unbounded_ages.toml --rho 0.5 --bounds-share 0.1
"""


@app.command(cls=Command, epilog=_EXAMPLES)
@options.with_options()
def regress(
    files: options.TableFiles,
    *,
    schema: options.SchemaText,
    target: options.Target = None,
    formula: options.Formula = None,
    form: options.FormatOptions,
    chunk_rows: options.ChunkRows = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    mu: options.Mu = None,
    bounds_share: options.BoundsShare = None,
    l2_strength: options.RidgeText = "0",
    intercept: options.Intercept = True,
    neighbors: options.Neighbors = None,
    n_public: options.NPublic = None,
    unit: UnitOptions,
    level: options.Level = 0.95,
    delivery: Delivery,
) -> None:
    """Fit a linear regression by ordinary least squares.

    The target of the schema is a number. One noisy moment matrix is released. Columns of the kind "unbounded" get
    bounds within the budget.
    Prints coefficients in the units of the table with confidence intervals, and the spent budget. Other regressions
    among the columns follow from the written file in Python (regression.MomentMatrix.of) at no further cost.

    If public numbers show that the noise hides the regression, it is refused before anything is spent (exit code 2).
    If only the released matrix shows this, the release is written without coefficients (exit code 5).
    """
    # Whatever can be refused is refused before budget is spent.
    view = options.view(level=level)
    budget = parse_gaussian_budget(epsilon, delta, rho, mu)
    ridge = parse_ridge(l2_strength)
    tables = find_tables(files)
    if any(is_stream(table) for table in tables):
        raise InvalidInput("tables must be files, because they are read several times, got the standard input (-)")
    delivery.check(tables, schema)
    paying = delivery.payer()
    is_private = paying is not None and paying.errors == "private"
    description = options.with_share(options.find_any_schema(schema, target, formula), bounds_share)
    known = known_of(description)
    unit.check(known)
    rows = TableRows(files=tables, schema=known, form=form.read(), **options.given(chunk_rows=chunk_rows))
    shown = delivery.shows_progress(is_private=is_private)
    # Two passes or three: only persons, whose rows may be anywhere, are worth the memory.
    in_parts = is_private or chunk_rows is not None or not unit.columns
    if isinstance(description, PartialSchema):
        (X, beside), y = unit.read_table(rows, description, in_parts=in_parts, progress=shown), None
    else:
        X, y, beside = unit.read(rows, 0 if in_parts else MOST_BYTES, progress=shown)
    beyond = (Weighted if far_columns(known) else Clipped)(intercept=intercept)
    with warnings.catch_warnings(action="ignore", category=MomentNoiseWarning), threads(delivery.threads):
        # What the noise hides is the error that ends the command.
        result = fitting.fit(
            X,
            y,
            schema=description,
            loss="squared",
            mechanism="moments",
            budget=budget,
            l2_strength=ridge,
            rows=beyond,
            neighbors=options.relation(neighbors, n_public),
            ledger=paying,
            **beside,
        )
    deliver(result, delivery, view)
