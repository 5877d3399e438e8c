"""``plan``: the cost and the precision of a multinomial fit, before any data are seen."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

from dpci.base.validation import check_count
from dpci.budgets import Budget, NeighborsLike, planned_neighbors
from dpci.errors import InvalidInput
from dpci.mechanisms import MechanismLike
from dpci.model.keywords import n_planned_columns, planned_unit
from dpci.model.plan import Plan, planned
from dpci.model.settings import fit_keywords
from dpci.multinomial.release import check_norm, multinomial_settings, public_classes
from dpci.multinomial.result import MultinomialFit, fit_of
from dpci.rows import BallLike
from dpci.schema.table import Schema
from dpci.unit import Persons, Weights


def plan(
    *,
    n_samples: int,
    n_features: int | None = None,
    budget: Budget,
    classes: Sequence[Any] | None = None,
    l2_strength: float | Literal["auto"] = "auto",
    mechanism: MechanismLike | None = None,
    rows: BallLike | None = None,
    neighbors: NeighborsLike = "replace_one",
    persons: Persons | None = None,
    weights: Weights | None = None,
    schema: Schema | None = None,
    like: MultinomialFit | None = None,
) -> Plan:
    """Compute the cost of :func:`fit` with these keywords, before any data are seen.

    Parameters
    ----------
    n_samples : int
        Public number of samples, which ``neighbors="add_remove"`` takes for ``n_public``.
    n_features : int, optional
        Number of columns, without the intercept; None: those of the schema.
    like : MultinomialFit, optional
        An earlier fit of similar data with the same columns and as many classes. Its matrices then predict the length
        of the intervals. Only its released values are used.
    budget, classes, l2_strength, mechanism, rows, neighbors
        See :func:`fit`.
    schema
        See :func:`fit`.
    persons : Persons, optional
        See :func:`fit`, without ids. With it, or a schema that names a column of persons, the samples are persons.
    weights : Weights, optional
        See :func:`fit`, without values.

    Returns
    -------
    Plan
        Plan as :func:`dpci.plan` returns it. ``noise_std_devs`` has the standard deviation of the noise of each
        parameter, one class after another; there is no recommended ``l2_strength``.

    Raises
    ------
    InvalidInput
        For arguments out of range, and an earlier fit of other columns or of another number of classes.
    RegularizationTooSmall
        If objective perturbation needs a larger ``l2_strength``; the message names it.

    Examples
    --------
    >>> import dpci
    >>> found = dpci.multinomial.plan(
    ...     n_samples=50_000, n_features=4, classes=["a", "b", "c"], budget=dpci.ZCDP(0.5), l2_strength=0.01
    ... )
    >>> found.n_params, len(found.noise_std_devs)
    (10, 10)
    """
    call = dict(locals())
    n_samples = check_count("n_samples", n_samples)
    n_columns = n_planned_columns(n_features, schema)
    known = public_classes(classes, schema)
    check_norm(rows, schema)
    relation = planned_neighbors(neighbors, n_samples)
    decided = {"classes": None, "neighbors": relation, "persons": planned_unit(schema, persons)}
    settings = multinomial_settings(len(known), schema=schema, **{**fit_keywords(call), **decided})
    if like is not None and not isinstance(like, MultinomialFit):
        raise InvalidInput(f"like must be a MultinomialFit, got {type(like).__name__}")
    if like is not None and len(like.classes) != len(known):
        raise InvalidInput(f"like must have as many classes as the plan, {len(known)}, got {len(like.classes)}")
    found = planned(settings, n_samples, n_columns, like=None if like is None else fit_of(like))
    return dataclasses.replace(found, title=found.title.replace(" loss", f" loss of {len(known)} classes", 1))
