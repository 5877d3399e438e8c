"""``Regression``: a planned regression with a robust covariance or refined coefficients, each with its own release."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpci.base.validation import as_name, broken, check_flag, check_not_negative
from dpci.errors import InvalidInput
from dpci.regression.choices.model import Model

__all__ = ["Regression"]

Plan = tuple[list[int], list[float], list[float]]
"""Regressors, ridge and response as the core takes them, in terms of the scaled row, the constant and the target."""


@dataclass(frozen=True, kw_only=True)
class Regression:
    """A planned regression with an intercept; see ``robust`` and ``refine`` of :func:`release`.

    Attributes
    ----------
    target : str or None
        Name of a column. None: the target, or each of several targets.
    features : sequence of str or None
        Names of columns of X. None: all columns except the target.
    l2_strength : float
        Ridge λ, as in :meth:`MomentMatrix.fit`; 0: ordinary least squares.
    """

    target: str | None = None
    features: Sequence[str] | None = None
    l2_strength: float = 0.0

    def __post_init__(self) -> None:
        if not (self.target is None or isinstance(self.target, str)):
            raise broken("target", "the name of a column or None", self.target)
        if self.features is not None:
            if isinstance(self.features, str) or not isinstance(self.features, Iterable):
                raise broken("features", "a sequence of names", self.features)
            features = tuple(map(as_name, self.features))
            if not all(isinstance(name, str) for name in features) or len(set(features)) < len(features):
                raise InvalidInput(f"features must be names that differ from each other, got {features!r}")
            object.__setattr__(self, "features", features)
        object.__setattr__(self, "target", as_name(self.target))
        object.__setattr__(self, "l2_strength", check_not_negative("l2_strength", self.l2_strength))

    def among(self, columns: tuple[str, ...], targets: tuple[str, ...]) -> "Regression":
        """Return the same with its names, for a matrix of these columns of X and targets.

        Raises
        ------
        InvalidInput
            For names that are not there, and targets among the regressors.
        """
        response = targets[0] if self.target is None and len(targets) == 1 else self.target
        if response is None or response not in {*columns, *targets}:
            raise InvalidInput(
                f"the target of a planned regression must be of the columns {', '.join((*columns, *targets))}, got "
                f"{response!r}"
            )
        given = tuple(name for name in columns if name != response) if self.features is None else self.features
        for name in given:
            if name == response or name not in columns:
                raise InvalidInput(
                    "features of a planned regression must be columns of X other than its target, got "
                    f"{name!r} (columns: {', '.join(columns)})"
                )
        ordered = tuple(name for name in columns if name in given)
        return Regression(target=response, features=ordered, l2_strength=self.l2_strength)


def check_planned(name: str, value: object, *, needed: bool = False) -> tuple[Regression, ...]:
    """Return the regressions that ``robust`` or ``refine`` names; None: y on all columns, if some are needed."""
    planned = (Regression(),) if value is None and needed else _planned(name, value)
    if needed and not planned:
        raise broken(
            name,
            "True or a list of regression.Regression with persons and with weights, because regressions have no other "
            "standard errors there",
            value,
        )
    return planned


def _planned(name: str, value: object) -> tuple[Regression, ...]:
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        for entry in value:
            if not isinstance(entry, Regression):
                raise InvalidInput(f"{name} must be a flag or a list of regression.Regression, got {entry!r} in it")
        return tuple(value)
    if isinstance(value, Regression):
        raise InvalidInput(f"{name} must be a flag or a list of regression.Regression, got {value} alone")
    return (Regression(),) if check_flag(name, value) else ()


def named_regressions(
    name: str, planned: tuple[Regression, ...], columns: tuple[str, ...], targets: tuple[str, ...]
) -> tuple[Regression, ...]:
    """Return planned regressions with their names: of each of several targets where none is named."""
    found = tuple(
        replace(regression, target=target).among(columns, targets)
        for regression in planned
        for target in (targets if regression.target is None else (regression.target,))
    )
    for i, regression in enumerate(found):
        if regression in found[:i]:
            raise InvalidInput(f"{name} must name every regression once, got {regression} twice")
    return found


def planned_model(regression: Regression) -> Model:
    """Return a named regression as :meth:`MomentMatrix.fit` will ask for it."""
    assert regression.target is not None and regression.features is not None  # noqa: S101, PT018  # for the type checker
    return Model(
        target=regression.target,
        features=tuple(regression.features),
        fit_intercept=True,
        l2_strength=regression.l2_strength,
        covariance="robust",
    )


def plan_of(
    regression: Regression,
    columns: tuple[str, ...],
    place: tuple[np.ndarray, np.ndarray],
    constant: float,
    middle: float,
) -> Plan:
    """Return a named regression as the core takes it.

    ``place`` has the middle and the scale of each column, ``middle`` is that of the last target.
    """
    features = regression.features or ()
    k = len(columns)
    regressors = [*(columns.index(name) for name in features), k]
    size = len(regressors)
    # A ridge is on the coefficients of the caller's columns, which are combinations of those of the matrix.
    own = np.diag([*(float(place[1][j]) for j in regressors[:-1]), 1.0 / constant])
    own[:-1, -1] = [float(place[0][j]) / constant for j in regressors[:-1]]
    inverse = np.linalg.inv(own)
    ridge = 0.5 * regression.l2_strength * inverse @ inverse.T
    response = np.zeros(k + 2)
    # Without a ridge the intercept takes up the middles.
    with_middle = float(regression.l2_strength > 0.0)
    if regression.target in columns:
        at = columns.index(regression.target)
        response[at], response[k] = place[1][at], with_middle * float(place[0][at]) / constant
    else:
        response[k + 1], response[k] = 1.0, with_middle * middle / constant
    return regressors, ridge.reshape(size * size).tolist(), response.tolist()
