"""Meaning of ``--loss multinomial`` for the commands: the classes of the target, the keywords, and what is refused."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from dpci.cli.options import ModelOptions, find_schema, given, parse_budget
from dpci.errors import InvalidInput
from dpci.losses import SEVERAL
from dpci.schema.columns import CategoricalTarget
from dpci.schema.table import Schema

_USED = {
    *("epsilon", "delta", "rho", "split", "l2_strength", "loss", "mechanism"),
    *("intercept", "intercept_scale", "on_violation", "moments"),
}
"""Options of a model that a loss of several classes has."""


def asks_several(model: ModelOptions, classes: str | None) -> bool:
    """Whether a command is asked for a model of several classes."""
    if classes is not None and model.loss != SEVERAL:
        loss = "no --loss" if model.loss is None else f"--loss {model.loss}"
        raise InvalidInput(
            f"--classes must go with --loss {SEVERAL}, as other losses take those of the schema, got {loss}"
        )
    return model.loss == SEVERAL


def labels_of(classes: str) -> tuple[str, ...]:
    """Return the classes of a text such as ``walk,bus,car``, the reference first."""
    return tuple(label.strip() for label in classes.split(","))


def several_schema(schema: str, target: str | None, formula: str | None, classes: str | None) -> Schema:
    """Return a schema whose target has several classes, those of ``--classes`` if they are given."""
    found = find_schema(schema, target, formula)
    if classes is not None:
        each = tuple((label,) for label in labels_of(classes))
        return dataclasses.replace(found, target=CategoricalTarget(column=found.target.column, classes=each))
    if not isinstance(found.target, CategoricalTarget):
        raise InvalidInput(
            f"--loss {SEVERAL} requires a schema whose target has classes = [...], or --classes, got {found.target}"
        )
    return found


def several_keywords(model: ModelOptions, others: Mapping[str, object], **more: object) -> dict[str, Any]:
    """Return the keywords of :func:`dpci.multinomial.fit`; options that were not given keep its defaults.

    Parameters
    ----------
    model
        The options of the model.
    others
        Values by the names of options that this loss does not have.
    **more
        Other keywords, None for those that were not given.
    """
    names = (field.name for field in dataclasses.fields(model) if field.name not in _USED)
    unused = {**others, **{name: getattr(model, name) for name in names}}
    for name, value in unused.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise InvalidInput(
                f"{option} must not be given with --loss {SEVERAL} (docs/families.md), got {option} {value}"
            )
    return {
        "budget": parse_budget(model.epsilon, model.delta, model.rho),
        **given(
            l2_strength=model.ridge(),
            mechanism=model.perturbation("output" if model.rho is not None else "objective"),
            rows=model.bounds(),
            **more,
        ),
    }
