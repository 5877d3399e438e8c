"""Options that commands share, and what their texts mean."""

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, cast

import typer

import dpci
from dpci.budgets import Budget
from dpci.datasets import load_schema, schema_names
from dpci.errors import InvalidInput
from dpci.losses import Loss
from dpci.schema import Schema
from dpci.settings import ModelKeywords

LOSSES = "logistic, huber_hinge[:h], smooth_hinge[:s], soft_logistic, squared[:target_bound] or hinge"

L2Strength = Annotated[float, typer.Option(help="Strength of the L2 regularisation of the mean objective.")]
Target = Annotated[str | None, typer.Option(help="Column to be predicted, if the schema's has another name.")]
Epsilon = Annotated[float | None, typer.Option(help="Pure DP, or with --delta approximate DP.")]
Delta = Annotated[float | None, typer.Option(help="Approximate DP together with --epsilon.")]
Rho = Annotated[float | None, typer.Option(help="Zero-concentrated DP, in place of --epsilon.")]
LossText = Annotated[str | None, typer.Option(help=f"{LOSSES}.")]
Radius = Annotated[float | None, typer.Option(help="Bound on the norm of the parameters; squared needs one.")]
Mechanism = Annotated[str | None, typer.Option(help="objective or output.")]
Split = Annotated[str | None, typer.Option(help="Shares of coefficients, Hessian, gradient covariance: a,b,c.")]
Moments = Annotated[str | None, typer.Option(help="joint, separate or none.")]
Projection = Annotated[str | None, typer.Option(help="floor, cautious or auto.")]
Calibration = Annotated[str | None, typer.Option(help="tight or paper.")]
Neighbors = Annotated[str | None, typer.Option(help="replace_one, or add_remove together with --n-public.")]
NPublic = Annotated[int | None, typer.Option(help="Public number of records under add_remove.")]
OnViolation = Annotated[str | None, typer.Option(help="error or clip, for rows above the row bound.")]
Intercept = Annotated[bool, typer.Option(help="Fit an intercept.")]
InterceptScale = Annotated[float | None, typer.Option(help="Constant that is appended for the intercept.")]
Level = Annotated[float, typer.Option(help="Level of the confidence intervals.")]
Delimiter = Annotated[str, typer.Option(help="Between the fields of a CSV file.")]


def find_schema(schema: str, target: str | None) -> Schema:
    """Return a packaged schema by its name, or that of a file; ``target`` replaces the column to be predicted."""
    description = load_schema(schema) if schema in schema_names() else Schema.from_file(schema)
    if target is None:
        return description
    return dataclasses.replace(description, target=dataclasses.replace(description.target, column=target))


def model_keywords(
    description: Schema,
    *,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    loss: str | None,
    split: str | None,
    intercept: bool,
    **others: Any,  # noqa: ANN401  # options that need no parsing; dpci.fit checks them
) -> ModelKeywords:
    """Return the keywords of :func:`dpci.fit`; options that were not given keep its defaults."""
    parsed = None if loss is None else parse_loss(loss)
    two_classes = parsed is None or parsed.to_core().target_bounds is None
    keywords = {
        "budget": parse_budget(epsilon, delta, rho),
        "loss": parsed,
        "split": None if split is None else numbers("split", split),
        "classes": (-1, 1) if two_classes else None,
        "fit_intercept": intercept,
        "row_norm": description.row_norm,
        **others,
    }
    return cast("ModelKeywords", {name: value for name, value in keywords.items() if value is not None})


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
        "soft_logistic": (dpci.losses.SoftLogistic, None),
        "squared": (dpci.losses.Squared, "target_bound"),
        "hinge": (dpci.losses.Hinge, None),
    }
    kind, colon, width = text.partition(":")
    if kind not in kinds or (colon and kinds[kind][1] is None):
        msg = f"loss must be {LOSSES}, got {text!r}"
        raise InvalidInput(msg)
    loss, parameter = kinds[kind]
    if not (colon and parameter):
        return loss()
    values = numbers("loss", width)
    if len(values) != 1:
        msg = f"loss must be {LOSSES}, got {text!r}"
        raise InvalidInput(msg)
    return loss(**{parameter: values[0]})


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Return the numbers of a text such as ``.5,.25,.25``."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        msg = f"{option} must hold numbers, got {text!r}"
        raise InvalidInput(msg) from error
