"""Options that commands share, and what their texts mean."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from dpci.base.validation import check_choice, check_not_negative
from dpci.budgets import GDP, ZCDP, ApproxDP, Budget, GaussianBudget, NeighborsLike, PureDP, neighbors_of
from dpci.cli.saved import load
from dpci.datasets.loaders import load_schema, schema_names
from dpci.errors import InvalidInput
from dpci.inference.intervals import Target as Estimand
from dpci.losses import BUILT_IN, SEVERAL, Loss
from dpci.mechanisms import NewtonSteps, ObjectivePerturbation, OutputPerturbation, check_mechanism
from dpci.model.settings import ModelKeywords, default_mechanism
from dpci.regression.choices.model import Ridge
from dpci.report.summary import View
from dpci.rows import Ball, Blocks, Clipped, RowDomain, Within
from dpci.schema.columns import CategoricalTarget
from dpci.schema.partial import PartialSchema, schema_from
from dpci.schema.saved import read_file
from dpci.schema.table import Schema
from dpci.sources.formats import NO_QUOTE, Format

_NUMBERS = {name: ",".join(part.name for part in dataclasses.fields(kind)) for name, kind in BUILT_IN.items()}
_FORMS = [f"{name}[:{numbers}]" if numbers else name for name, numbers in _NUMBERS.items()]

LOSSES = f"{', '.join(_FORMS[:-1])} or {_FORMS[-1]}"


def parse_budget(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    """Return the budget of the three options; exactly one notion may be named."""
    return _budget_of(epsilon, delta, rho, "--epsilon, --epsilon with --delta, or --rho")


def parse_gaussian_budget(
    epsilon: float | None, delta: float | None, rho: float | None, mu: float | None
) -> GaussianBudget:
    """Return the budget of the four options, of which --mu is for linear regressions from a moment matrix."""
    if mu is None:
        return _budget_of(
            epsilon, delta, rho, "--epsilon, --epsilon with --delta, --rho, or --mu for linear regressions"
        )
    others = {"--epsilon": epsilon, "--delta": delta, "--rho": rho}
    given = [option for option, value in others.items() if value is not None]
    if given:
        raise InvalidInput(
            f"--mu must be given without --epsilon, --delta and --rho, got --mu {mu} and {' and '.join(given)}"
        )
    return GDP(mu)


def _budget_of(epsilon: float | None, delta: float | None, rho: float | None, forms: str) -> Budget:
    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho=rho)
    if rho is None and epsilon is not None:
        return PureDP(epsilon=epsilon) if delta is None else ApproxDP(epsilon=epsilon, delta=delta)
    given = [f"--{name}" for name, value in (("epsilon", epsilon), ("delta", delta), ("rho", rho)) if value is not None]
    raise InvalidInput(f"the budget must be {forms}, got {' and '.join(given) if given else 'none of them'}")


def parse_ridge(text: str) -> Ridge:
    """Return the strength of a ridge, or "private"."""
    if text == "private":
        return "private"
    try:
        return check_not_negative("l2_strength", float(text))
    except ValueError as error:
        raise InvalidInput(f"--l2-strength must be a number of at least 0 or 'private', got {text!r}") from error


def parse_loss(text: str) -> Loss:
    """Return the loss of a text such as ``huber_hinge:0.5``."""
    name, colon, width = text.partition(":")
    kind = BUILT_IN.get(name)
    n_parameters = 0 if kind is None else len(dataclasses.fields(kind))
    values = numbers("loss", width) if colon and n_parameters else ()
    if kind is None or (colon and (not values or len(values) != n_parameters)):
        raise InvalidInput(f"loss must be {LOSSES}, got {text!r}")
    return kind(*values)


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Return the numbers of a text such as ``.5,.25,.25``."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise InvalidInput(f"{option} must hold numbers, got {text!r}") from error


_ROW_KINDS = ("ball", "blocks")

BUDGET, MODEL, INTERVALS = "Budget", "Model", "Intervals"
INPUT, OUTPUT, RUNNING = "Input", "Output", "Running"
"""Groups of options in the help of every command."""


def completes(*words: str) -> Callable[[str], list[str]]:
    """Return what completes the beginning of one of these words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def schemas(incomplete: str) -> list[str]:
    """Return what completes the name of a packaged schema."""
    return completes(*schema_names())(incomplete)


def option(group: str, help_text: str, *names: str, completed_by: Callable[[str], list[str]] | None = None) -> Any:  # noqa: ANN401  # as typer has it
    """Return an option in a group of the help."""
    return typer.Option(*names, help=help_text, rich_help_panel=group, autocompletion=completed_by)


def one_of(group: str, help_text: str, *words: str, names: tuple[str, ...] = ()) -> Any:  # noqa: ANN401  # as above
    """Return an option whose words a shell completes."""
    return option(group, help_text, *names, completed_by=completes(*words))


Tables = Annotated[
    list[Path],
    typer.Argument(
        metavar="TABLE",
        help="Tables (.csv, .parquet, .xlsx, .ods), a folder of them, a quoted pattern, or - (CSV).",
    ),
]
TableFiles = Annotated[
    list[Path],
    typer.Argument(metavar="TABLE", help="Tables (.csv, .parquet, .xlsx, .ods), a folder of them or a quoted pattern."),
]
SchemaText = Annotated[
    str,
    option(INPUT, "Schema (.toml, .json), also without bounds, or the name of a packaged one.", completed_by=schemas),
]
FullSchema = Annotated[
    str,
    option(INPUT, "Schema with all bounds (.toml, .json), or a packaged one.", "--schema", completed_by=schemas),
]
SchemaWithGaps = Annotated[
    str, option(INPUT, 'File of a schema with columns of the kind "unbounded" (.toml, .json).', "--schema")
]
OptionalSchema = Annotated[
    str | None,
    option(INPUT, "Schema as for fit. A public data set has its own, if none is given.", completed_by=schemas),
]
ModelSchema = Annotated[
    str | None,
    option(INPUT, "Schema as for fit. A model that was fitted with a schema holds it.", completed_by=schemas),
]
Formula = Annotated[
    str | None,
    option(INPUT, "Model of the columns of the schema, such as 'ill ~ age*sex + C(ward)' (see the page on schemas)."),
]
Target = Annotated[str | None, option(INPUT, "Column to predict, if its name differs from the schema's.")]
Delimiter = Annotated[str, option(INPUT, "Character between the fields of a CSV file; tab or '\\t' for a tab.")]
Decimal = Annotated[str, one_of(INPUT, "Decimal mark of numbers in a CSV file.", ".", ",")]
Encoding = Annotated[
    str,
    one_of(INPUT, "Encoding of a CSV file, such as latin-1 or cp1252.", "utf-8", "latin-1", "cp1252", "utf-16"),
]
Quote = Annotated[str, one_of(INPUT, f"Character around fields of a CSV file; {NO_QUOTE}: there is none.", NO_QUOTE)]
Sheet = Annotated[str | None, option(INPUT, "Sheet of a workbook. Default: the only one.")]
DateFormat = Annotated[
    str | None, option(INPUT, "Form of dates, such as '%d.%m.%Y' for 31.12.2024. Default: 2024-12-31.")
]
ChunkRows = Annotated[int | None, option(INPUT, "Number of rows read at a time.")]

Epsilon = Annotated[float | None, option(BUDGET, "Budget: pure DP, or with --delta approximate DP.")]
Delta = Annotated[float | None, option(BUDGET, "Budget: approximate DP, together with --epsilon.")]
Rho = Annotated[float | None, option(BUDGET, "Budget: zero-concentrated DP, instead of --epsilon.")]
Split = Annotated[
    str | None, option(BUDGET, "Shares of the budget for coefficients, Hessian, gradient covariance: a,b,c.")
]
BoundsShare = Annotated[
    float | None,
    option(BUDGET, "Share for the bounds that the schema lacks, from 0 to 1. Default: by a public rule."),
]
Neighbors = Annotated[
    str | None,
    one_of(
        BUDGET,
        "Neighbouring relation: replace_one, or add_remove together with --n-public.",
        "replace_one",
        "add_remove",
    ),
]
Persons = Annotated[
    str | None,
    option(BUDGET, "Column of ids: protect persons, who may have several rows."),
]
CheckedPersons = Annotated[str | None, option(BUDGET, "Column of ids: count its persons. Default: that of the schema.")]
PlannedPersons = Annotated[
    str | None, option(BUDGET, "Column of ids as for fit: the records are persons. The plan does not read it.")
]
MaxRows = Annotated[
    int | None,
    option(BUDGET, "With --persons: number of rows that count for each person at most, the first ones. Default: all."),
]
Weights = Annotated[
    str | None,
    option(BUDGET, "Column of weights of the rows; requires --weight-bound."),
]
WeightBound = Annotated[float | None, option(BUDGET, "Public bound on the weight of any row. The noise grows with it.")]
WeightTotal = Annotated[
    float | None, option(BUDGET, "Public number that divides weighted sums, instead of the number of records.")
]
NPublic = Annotated[int | None, option(BUDGET, "Public number of records under add_remove.")]

Mu = Annotated[float | None, option(BUDGET, "Budget of a linear regression: Gaussian DP, instead of the other three.")]

_PRIVATE = "private: the least strength that the noise allows"
RidgeText = Annotated[
    str,
    typer.Option(help=f"Strength of the ridge, or {_PRIVATE}.", metavar="FLOAT|private", rich_help_panel=MODEL),
]
PlannedRidge = Annotated[
    str | None,
    typer.Option(
        help=f"Lambda, the strength of the ridge. Default: a recommended one; of linear regressions 0, or {_PRIVATE}.",
        metavar="FLOAT|private",
        rich_help_panel=MODEL,
    ),
]
CandidateStrength = Annotated[float | None, option(MODEL, "Lambda of the candidates that name none.")]
L2Strength = Annotated[
    float | None,
    option(
        MODEL,
        "Lambda, the strength of a ridge. Default: none for Newton steps, otherwise what public values recommend "
        "(coverage needs one).",
    ),
]
LossText = Annotated[
    str | None,
    one_of(MODEL, f"{LOSSES}; {SEVERAL} for three or more classes (fit, tune and plan).", *BUILT_IN, SEVERAL),
]
ClassesText = Annotated[
    str | None,
    option(
        MODEL,
        "With --loss multinomial: the public classes a,b,c of the target, the reference first. Default: the schema's.",
        "--classes",
    ),
]
Radius = Annotated[
    float | None,
    option(
        MODEL,
        "Bound on the norm of the parameters; without it, fit takes a moment matrix for the squared loss.",
    ),
]
PerturbedMechanism = Annotated[str | None, one_of(MODEL, "objective or output.", "objective", "output")]
Mechanism = Annotated[str | None, one_of(MODEL, "newton, objective or output.", "newton", "objective", "output")]
OnViolation = Annotated[str | None, one_of(MODEL, "Rows outside the bounds: error or clip.", "error", "clip")]
Rows = Annotated[
    str | None,
    one_of(
        MODEL,
        "ball: rows of norm at most 1. blocks: each column of the schema has a bound of its own, parameters are per "
        "full range. Default: the encoding of the schema, and the domain with less noise.",
        "ball",
        "blocks",
    ),
]
Intercept = Annotated[bool, option(MODEL, "Fit an intercept.")]
InterceptScale = Annotated[float | None, option(MODEL, "Constant that is appended to each row for the intercept.")]

Level = Annotated[float, option(INTERVALS, "Level of the confidence intervals.")]
Simultaneous = Annotated[
    str | None,
    one_of(INTERVALS, "Intervals that all cover together: bonferroni, or the shorter max_z.", "bonferroni", "max_z"),
]
Units = Annotated[
    str,
    one_of(
        INTERVALS,
        "table: coefficients in the units of the table. scaled: parameters of the scaled columns.",
        "table",
        "scaled",
    ),
]
WithoutRidge = Annotated[
    bool,
    option(INTERVALS, "Coefficients without the ridge, where released values show them.", "--without-ridge"),
]
Moments = Annotated[
    str | None,
    one_of(
        INTERVALS,
        "Release of the matrices behind the intervals: joint, levels (with their totals), separate or none.",
        "joint",
        "levels",
        "separate",
        "none",
    ),
]
Projection = Annotated[
    str | None,
    one_of(
        INTERVALS,
        "Projection of the released matrices: auto (default: noise_aware, or floor with --calibration paper), "
        "noise_aware, floor or cautious.",
        "floor",
        "cautious",
        "auto",
        "noise_aware",
    ),
]
Calibration = Annotated[str | None, one_of(INTERVALS, "tight or paper.", "tight", "paper")]

PayingLedger = Annotated[
    Path | None, option(BUDGET, "File of the ledger that pays for the fit; see dpci ledger create.", "--ledger")
]
Label = Annotated[str | None, option(BUDGET, "Label of the entry in the ledger.")]
Model = Annotated[Path | None, option(OUTPUT, "Write the released model to this new file.", "--output")]
ReleasedSchema = Annotated[
    Path | None, option(OUTPUT, "Write the released schema to this new file (.json).", "--output")
]
Plot = Annotated[Path | None, option(OUTPUT, "Write a forest plot to this new file.", "--plot")]
Page = Annotated[Path | None, option(OUTPUT, "Write one self-contained HTML page to this new file.", "--page")]
Json = Annotated[bool, option(OUTPUT, "Print JSON; errors are JSON on stderr.", "--json")]
Force = Annotated[bool, option(OUTPUT, "Replace existing files.", "--force")]
Quiet = Annotated[
    bool, option(OUTPUT, "Print no progress and no notes; warnings and errors are still printed.", "--quiet", "-q")
]
Progress = Annotated[
    bool | None,
    option(RUNNING, "Show progress on stderr. Default: only on a terminal.", "--progress/--no-progress"),
]
Threads = Annotated[int | None, option(RUNNING, "Threads; by default all cores.")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """The options of files that are written in another way."""

    delimiter: Delimiter = ","
    decimal: Decimal = "."
    encoding: Encoding = "utf-8"
    quote: Quote = '"'
    sheet: Sheet = None
    date_format: DateFormat = None

    def read(self) -> Format:
        """Return how files are written; a shell passes no tabulator easily."""
        return Format(**{**vars(self), "delimiter": {"\\t": "\t", "tab": "\t"}.get(self.delimiter, self.delimiter)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The options of every command that fits or plans, which a command takes as one parameter; see `with_options`."""

    epsilon: Epsilon = None
    delta: Delta = None
    rho: Rho = None
    split: Split = None
    l2_strength: L2Strength = None
    loss: LossText = None
    radius: Radius = None
    mechanism: Mechanism = None
    intercept: Intercept = True
    intercept_scale: InterceptScale = None
    on_violation: OnViolation = None
    rows: Rows = None
    moments: Moments = None
    projection: Projection = None
    calibration: Calibration = None

    def keywords(self, rows: RowDomain | None, **others: Any) -> ModelKeywords:  # noqa: ANN401  # dpci.fit checks them
        """Return the keywords of :func:`dpci.fit`; options that were not given keep its defaults."""
        loss = None if self.loss is None else parse_loss(self.loss)
        two_classes = loss is None or loss.to_core().target_bounds is None
        keywords = {
            "budget": self._budget(),
            "l2_strength": self.ridge(),
            "loss": loss,
            "mechanism": self.perturbation("objective" if loss is None else default_mechanism(loss).name),
            "classes": (-1, 1) if two_classes else None,
            "rows": self.bounds(rows),
            **others,
        }
        return cast("ModelKeywords", {name: value for name, value in keywords.items() if value is not None})

    def perturbation(self, default: str = ObjectivePerturbation.name, **others: object) -> Any:  # noqa: ANN401  # a name, or an object
        """Return the mechanism with the options that were given, or its name where none were; None for the default.

        ``others``: values of options in place of those that were not given.
        """
        split = None if self.split is None else tuple(numbers("split", self.split))
        options = given(**{**others, **given(split=split, **{name: getattr(self, name) for name in _OF_MECHANISM})})
        return self.mechanism if not options else mechanism_with(self.mechanism or default, options)

    def bounds(self, rows: RowDomain | None = None) -> Within:
        """Return the domain of the rows, with what is done beyond it, and the constant that is appended."""
        clips = check_choice("on_violation", self.on_violation or "error", ("error", "clip")) == "clip"
        constant = self.intercept and (True if self.intercept_scale is None else self.intercept_scale)
        return (Clipped if clips else Within)(rows, intercept=constant)

    def _budget(self) -> GaussianBudget:
        return parse_budget(self.epsilon, self.delta, self.rho)

    def ridge(self) -> Ridge | None:
        """Return λ, or "private"."""
        return self.l2_strength


@dataclasses.dataclass(frozen=True, kw_only=True)
class CommonOptions(ModelOptions):
    """Options of candidates, which may each have an l2_strength of their own."""

    l2_strength: CandidateStrength = None
    mechanism: PerturbedMechanism = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanOptions(ModelOptions):
    """Options of plans, which are also for linear regressions."""

    mu: Mu = None
    l2_strength: PlannedRidge = None  # type: ignore[assignment]  # which may be private

    def _budget(self) -> GaussianBudget:
        return parse_gaussian_budget(self.epsilon, self.delta, self.rho, self.mu)

    def ridge(self) -> Ridge | None:
        """Return λ, or "private"."""
        return None if self.l2_strength is None else parse_ridge(str(self.l2_strength))


_OF_MECHANISM = ("radius", "moments", "projection", "calibration")
OF_MECHANISM = ("split", *_OF_MECHANISM)
"""Options of commands that are options of a mechanism."""


def mechanism_with(mechanism: object, options: dict[str, Any]) -> ObjectivePerturbation | OutputPerturbation:
    """Return a mechanism with options in place of its own."""
    if mechanism == NewtonSteps.name:
        name = next(iter(options))
        raise InvalidInput(
            f"--{name} must not be given with --mechanism newton, which does not use it, got {options[name]!r}"
        )
    return dataclasses.replace(check_mechanism(mechanism), **options)


def with_options(*, without: Sequence[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, in place of each parameter that is a group of options, these options ``without`` some of them."""

    def of(command: Callable[..., None]) -> Callable[..., None]:
        ordered: list[inspect.Parameter] = []
        groups: dict[str, tuple[Any, list[str]]] = {}
        for name, part in inspect.signature(command).parameters.items():
            taken = [part]
            if isinstance(part.annotation, type) and dataclasses.is_dataclass(part.annotation):
                fields = inspect.signature(part.annotation).parameters.values()
                taken = [field for field in fields if field.name not in without]
                groups[name] = part.annotation, [field.name for field in taken]
            ordered += taken

        @functools.wraps(command)
        def collected(*args: Any, **given: Any) -> None:  # noqa: ANN401  # what typer has parsed
            made = {name: kind(**{each: given.pop(each) for each in names}) for name, (kind, names) in groups.items()}
            command(*args, **made, **given)

        collected.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]  # what inspect.signature reads
        collected.__annotations__ = {part.name: part.annotation for part in ordered}
        return collected

    return of


def relation(neighbors: str | None, n_public: int | None) -> NeighborsLike:
    """Return the relation of two options."""
    return neighbors_of(neighbors or "replace_one", n_public)


def view(**values: Any) -> View:  # noqa: ANN401  # which checks them
    """Return what is shown of a result."""
    return View(**values)


def target_of(without_ridge: bool) -> Estimand:  # noqa: FBT001  # the option as it was given
    """Return what estimates are of."""
    return "unregularised" if without_ridge else "regularised"


def given(**values: object) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in values.items() if value is not None}


def find_schema(schema: str, target: str | None, formula: str | None = None) -> Schema:
    """Return the schema of a command that needs all bounds; see :func:`find_any_schema`."""
    found = find_any_schema(schema, target, formula)
    if isinstance(found, PartialSchema):
        gaps = ", ".join(column.name for column in found.gaps)
        raise InvalidInput(
            f"--schema must have bounds for every column here, got none for {gaps} (dpci schema releases them)"
        )
    return found


def find_any_schema(schema: str, target: str | None, formula: str | None = None) -> Schema | PartialSchema:
    """Return a packaged schema by its name, or that of a file; with another column to be predicted, or a formula.

    The file may be one that ``dpci schema`` wrote, and its schema may have gaps.
    """
    packaged = schema in schema_names()
    if not packaged and not Path(schema).suffix:
        names = ", ".join(schema_names())
        raise InvalidInput(
            f"a schema must be a file .toml or .json, or one of the packaged schemas ({names}), got {schema!r}"
        )
    description = load_schema(schema) if packaged else _schema_of_file(Path(schema))
    if target is not None:
        renamed = dataclasses.replace(description.target, column=target)
        description = dataclasses.replace(description, target=renamed)  # type: ignore[arg-type]  # of the same kind
    if formula is None:
        return description
    if isinstance(description, PartialSchema):
        return PartialSchema.from_formula(formula, description)
    return Schema.from_formula(formula, description)


def in_any_rows(
    description: Schema | PartialSchema, rows: str | None
) -> tuple[Schema | PartialSchema, RowDomain | None]:
    """Return what :func:`in_rows` does, also of a schema with gaps, whose blocks follow from the bounds."""
    if not isinstance(description, PartialSchema):
        return in_rows(description, rows)
    found, domain = in_rows(description.blank, rows)
    encoded = dataclasses.replace(description, encoding=found.encoding)
    return encoded, None if isinstance(domain, Blocks) else domain


def _schema_of_file(path: Path) -> Schema | PartialSchema:
    """Return the schema that a file describes, or that of the saved result in it."""
    found = read_file(path)
    if not (isinstance(found, dict) and isinstance(found.get("schema"), str)):
        return schema_from(found)
    schema: Schema | PartialSchema | None = getattr(load(path), "schema", None)
    if schema is None:
        raise InvalidInput(
            f"--schema must be a schema, or a saved result with one, got a result without: {str(path)!r}"
        )
    return schema


def with_share(description: Schema | PartialSchema, bounds_share: float | None) -> Schema | PartialSchema:
    """Return the schema with the share of the budget for what it lacks, if one is given."""
    if bounds_share is None:
        return description
    if not isinstance(description, PartialSchema):
        raise InvalidInput(
            f"--bounds-share requires a schema with gaps, whose bounds are released, got --bounds-share {bounds_share}"
        )
    return dataclasses.replace(description, bounds_share=bounds_share)


def check_formula(schema: str | None, formula: str | None) -> None:
    """Refuse a formula without the schema whose columns it names."""
    if schema is None and formula is not None:
        raise InvalidInput(f"--formula requires --schema, which bounds each column, got --formula {formula!r}")


def agreed_schema(schema: str | None, formula: str | None) -> Schema | PartialSchema | None:
    """Return the schema that a released file is compared with, if one is given."""
    check_formula(schema, formula)
    return None if schema is None else find_any_schema(schema, None, formula)


def in_rows(description: Schema, rows: str | None) -> tuple[Schema, RowDomain | None]:
    """Return the schema in the encoding that goes with the rows that were asked for, and the domain of its rows.

    None: the domain that :func:`dpci.fit` takes for the schema. Blocks that are asked for have another encoding, with
    which the same λ is another model.
    """
    if isinstance(description.target, CategoricalTarget):
        raise InvalidInput(
            f"a schema whose target has three classes or more requires dpci fit or dpci plan with --loss {SEVERAL}, "
            "got another loss or command"
        )
    if rows is None and description.encoding == "unit_norm":
        return description, None
    if check_choice("rows", rows or "blocks", _ROW_KINDS) == "ball":
        return description, Ball(description.row_norm)
    description = dataclasses.replace(description, encoding="full_range")
    return description, description.rows


def schema_files(schema: str) -> list[Path]:
    """Return the file of a schema, if it is one of the user's."""
    return [] if schema in schema_names() else [Path(schema)]
