"""The canned worst cases: for each mechanism the budgets it takes and two neighbours that it tells apart best."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpci.audit.cases import (
    FitCase,
    FunctionalCase,
    HistogramCase,
    MomentMatrixCase,
    ReportCase,
    Rows,
    SealCase,
    TuningCase,
    WorstCase,
)
from dpci.base.validation import check_choice
from dpci.budgets import ZCDP, AddRemove, Budget, Neighbors
from dpci.errors import InvalidInput
from dpci.losses import HuberHinge, Logistic
from dpci.mechanisms import ObjectivePerturbation, OutputPerturbation

_ALL = ("pure", "zcdp", "approx")
_RELATIONS: tuple[Neighbors, ...] = ("replace_one", "add_remove")
_REPLACE, _ADD_REMOVE = _RELATIONS


def rows(*x: list[float], y: float = 1.0) -> Rows:
    """Rows with one target for all."""
    return np.array(x, dtype=float), np.full(len(x), y)


# With this much regularisation the params stay near zero, where the Huber hinge is a line of slope -1: neighbours shift
# the noise, and the minimiser, by all that the bounds allow.
_MATRICES = OutputPerturbation(split=(0.02, 0.49, 0.49))
_ALONE, _OUTPUT_ALONE = ObjectivePerturbation(moments="none"), OutputPerturbation(moments="none")
_LINE = {"loss": HuberHinge(h=0.5), "l2_strength": 50.0}
_ANTIPODAL = rows([1.0]), rows([-1.0])
_ONE_LESS = rows([1.0], [0.0]), rows([0.0])
# Near params of zero the logistic loss has its greatest curvature, and all slopes are as great as their bound.
_MOMENTS = {"loss": Logistic(), "l2_strength": 1e4}
_ORTHOGONAL = rows([1.0, 0.0]), rows([0.0, 1.0])
_ORTHOGONAL_LESS = rows([1.0, 0.0], [0.0, 0.0]), rows([0.0, 0.0])
# Between antipodal, the worst for the coefficients, and orthogonal, the worst for the moments.
_BETWEEN = rows([1.0, 0.0]), rows([-math.cos(0.5), math.sin(0.5)])
# Rows that move the gradient of the squared loss most when all bounds are 1, among others which push the minimiser out.
_OTHERS = [[1.0, 0.0]] * 30
_BALL = {"loss": "squared", "l2_strength": 0.5}


def _on_ball(x: list[float]) -> Rows:
    X, y = rows(x, *_OTHERS)
    y[0] = -1.0
    return X, y


_EXTREME = _on_ball([0.5, math.sqrt(0.75)]), _on_ball([0.5, -math.sqrt(0.75)])

_Maker: TypeAlias = Callable[[str, Budget, Neighbors], WorstCase]

# Beyond it the hinge of `_steep` would be narrower than minimisers can be certified.
_GREATEST_EPSILON = 20.0


def _regularisation(l2_strength: float, budget: Budget) -> float:
    """Return what at epsilons below 1 keeps the greater noise, and the curvature to be paid for, as small as at 1."""
    epsilon = math.sqrt(2.0 * budget.rho) if isinstance(budget, ZCDP) else budget.epsilon
    return l2_strength * max(1.0, 1.0 / epsilon)


def _fit(
    pair: tuple[Rows, Rows], keywords: Mapping[str, Any], less: tuple[Rows, Rows] | None = None, **more: object
) -> _Maker:
    def make(name: str, budget: Budget, neighbors: Neighbors) -> WorstCase:
        data, public = (pair, {}) if neighbors == _REPLACE or less is None else (less, {"neighbors": AddRemove(2)})
        values = {**keywords, **more, **public}
        values["l2_strength"] = _regularisation(values["l2_strength"], budget)
        return FitCase(name=name, budget=budget, neighbors=neighbors, first=data[0], second=data[1], keywords=values)

    return make


def _steep(name: str, budget: Budget, neighbors: Neighbors) -> WorstCase:
    """Half of epsilon pays for curvature: where the Huber hinge sets in, one record bends the risk and pulls fully.

    The curvature 1 / (2 h) and the slope, close to its bound, come together at margins just above 1 - h, which noise of
    this size reaches; the other record is a line there. So releases near 1 - h lose all of epsilon.
    """
    pure = budget.pure_within() if isinstance(budget, ZCDP) else budget
    curvature = math.expm1(min(pure.epsilon, _GREATEST_EPSILON) / 2.0)
    # With a wider hinge the noise would have to change its sign before the margin is there.
    width = min(0.4, 1.0 / (1.0 + 2.0 * curvature))
    keywords = {"loss": HuberHinge(h=width), "mechanism": _ALONE, "l2_strength": 1.0 / (2.0 * width * curvature)}
    first, second = _ANTIPODAL
    return FitCase(name=name, budget=budget, neighbors=neighbors, first=first, second=second, keywords=keywords)


def _report(shares: tuple[float, float, float] | None, loss: object, l2_strength: float) -> _Maker:
    def make(name: str, budget: Budget, neighbors: Neighbors) -> WorstCase:
        keywords = {"loss": loss, "l2_strength": _regularisation(l2_strength, budget), "neighbors": AddRemove(2)}
        first, second = _ONE_LESS
        return ReportCase(
            name=name, budget=budget, neighbors=neighbors, first=first, second=second, keywords=keywords, shares=shares
        )

    return make


def _functional(name: str, budget: Budget, neighbors: Neighbors) -> WorstCase:
    first, second = (rows([1.0]), rows([1.0], y=-1.0)) if neighbors == _REPLACE else _ONE_LESS
    return FunctionalCase(name=name, budget=budget, neighbors=neighbors, first=first, second=second)


def _moment_matrix(name: str, budget: Budget, neighbors: Neighbors) -> WorstCase:
    # Rows for which the records with constant and target are at right angles: the cosine is -(1/8 + 9/16).
    other = [-11.0 / 16.0, math.sqrt(135.0) / 16.0]
    replaced = rows([1.0, 0.0]), rows(other)
    first, second = replaced if neighbors == _REPLACE else (rows([1.0, 0.0], other), rows(other))
    return MomentMatrixCase(name=name, budget=budget, neighbors=neighbors, first=first, second=second)


def _histogram(name: str, budget: Budget, neighbors: Neighbors) -> WorstCase:
    first, second = (rows([1.0]), rows([1.0], y=-1.0)) if neighbors == _REPLACE else (rows([1.0], [-1.0]), rows([-1.0]))
    return HistogramCase(name=name, budget=budget, neighbors=neighbors, first=first, second=second)


def _tuning(method: Literal["repeat", "chunks"], n: int) -> _Maker:
    def make(name: str, budget: Budget, neighbors: Neighbors) -> WorstCase:
        x = np.eye(n)[0][:, None].tolist()
        keywords = {**_LINE, "mechanism": ObjectivePerturbation(moments="none", radius=0.1)}
        first, second = rows(*x), rows(*x, y=-1.0)
        return TuningCase(
            name=name, budget=budget, neighbors=neighbors, first=first, second=second, keywords=keywords, method=method
        )

    return make


def _seal(name: str, budget: Budget, neighbors: Neighbors) -> WorstCase:
    """Values a step and a half from zero, all rounded away from it: as far apart as the seal provides for.

    There are twelve, so that the scale of the noise, a whole number of steps, is not much above what it has to be.
    """
    values = np.full((1, 12), 1.5)
    distance = float(np.linalg.norm(values)) * (1.0 + 1e-12)
    first, second = ((sign * values, np.ones(1)) for sign in (1.0, -1.0))
    return SealCase(name=name, budget=budget, neighbors=neighbors, first=first, second=second, distance=distance)


class Entry(NamedTuple):
    """Mechanism of the catalogue: its maker of cases, and what it takes."""

    make: _Maker
    notions: tuple[str, ...] = _ALL
    relations: tuple[Neighbors, ...] = (_REPLACE,)


CATALOGUE: dict[str, Entry] = {
    "objective": Entry(_fit(_ANTIPODAL, _LINE, _ONE_LESS, mechanism=_ALONE), relations=_RELATIONS),
    "objective_curvature": Entry(_steep),
    "objective_cms11": Entry(
        _fit(_ANTIPODAL, _LINE, mechanism=ObjectivePerturbation(moments="none", variant="cms11")), ("pure", "zcdp")
    ),
    "output": Entry(_fit(_ANTIPODAL, _LINE, _ONE_LESS, mechanism=_OUTPUT_ALONE), relations=_RELATIONS),
    "moments_joint": Entry(_fit(_ORTHOGONAL, _MOMENTS, _ORTHOGONAL_LESS, mechanism=_MATRICES), relations=_RELATIONS),
    "moments_separate": Entry(
        _fit(_ORTHOGONAL, _MOMENTS, _ORTHOGONAL_LESS, mechanism=replace(_MATRICES, moments="separate")),
        relations=_RELATIONS,
    ),
    "whole_fit": Entry(_fit(_BETWEEN, _LINE)),
    "whole_fit_output": Entry(_fit(_BETWEEN, _LINE, mechanism="output")),
    "ball_objective": Entry(_fit(_EXTREME, _BALL, mechanism=replace(_ALONE, radius=1.0))),
    "ball_output": Entry(_fit(_EXTREME, _BALL, mechanism=replace(_OUTPUT_ALONE, radius=1.0))),
    "ball_projected": Entry(_fit(_EXTREME, _BALL, mechanism=replace(_OUTPUT_ALONE, radius=1.0, project=True))),
    "hinge": Entry(_fit(_ANTIPODAL, _LINE, loss="hinge", mechanism=_OUTPUT_ALONE)),
    # Near params of zero the Huber hinge has its steepest slope, the logistic loss its greatest curvature.
    "report": Entry(_report((0.2, 0.7, 0.1), HuberHinge(h=0.5), 50.0), ("approx",), (_ADD_REMOVE,)),
    "report_gradient": Entry(_report((0.001, 0.998, 0.001), HuberHinge(h=0.5), 50.0), ("approx",), (_ADD_REMOVE,)),
    "report_hessian": Entry(_report((1e-4, 1e-4, 0.9998), Logistic(), 200.0), ("approx",), (_ADD_REMOVE,)),
    "functional_mechanism": Entry(_functional, relations=_RELATIONS),
    "moment_matrix": Entry(_moment_matrix, relations=_RELATIONS),
    "histogram": Entry(_histogram, relations=_RELATIONS),
    "tuning_repeat": Entry(_tuning("repeat", 1)),
    "tuning_chunks": Entry(_tuning("chunks", 2)),
    "seal": Entry(_seal),
}

MECHANISMS = tuple(CATALOGUE)
"""Names of the mechanisms with a worst case."""


def make_case(mechanism: str, budget: Budget, neighbors: Neighbors | None) -> WorstCase:
    """Return a canned case; ``neighbors`` None is the mechanism's first relation."""
    entry = _entry(mechanism)
    if budget.notion not in entry.notions:
        works = " or ".join(entry.notions)
        raise InvalidInput(f"the worst case of {mechanism!r} takes a budget of notion {works}, got budget={budget!r}")
    relation = entry.relations[0] if neighbors is None else check_choice("neighbors", neighbors, _RELATIONS)
    if relation not in entry.relations:
        works = " or ".join(map(repr, entry.relations))
        raise InvalidInput(f"the worst case of {mechanism!r} takes neighbors={works}, got neighbors={neighbors!r}")
    return entry.make(mechanism, budget, relation)


def all_cases(budgets: Mapping[str, Budget], mechanisms: tuple[str, ...] = MECHANISMS) -> list[WorstCase]:
    """Every mechanism under every notion of ``budgets`` that it takes, for every relation."""
    entries = [(name, _entry(name)) for name in mechanisms]
    return [
        make_case(name, budgets[notion], relation)
        for name, entry in entries
        for notion in entry.notions
        if notion in budgets
        for relation in entry.relations
    ]


def _entry(mechanism: str) -> Entry:
    return CATALOGUE[check_choice("mechanism", mechanism, MECHANISMS)]
