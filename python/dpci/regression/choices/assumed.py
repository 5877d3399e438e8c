"""Moments that a plan expects: by public assumptions about columns and target, or those of an earlier release."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.base.validation import broken, check_not_negative, check_positive
from dpci.data.arrays import as_vector
from dpci.errors import InvalidInput
from dpci.regression.choices.clear import Case
from dpci.regression.choices.matrix import MatrixChoices
from dpci.regression.choices.planned import plan_of
from dpci.regression.record import MomentRecord
from dpci.rows import Ball
from dpci.schema.cells import stand_in
from dpci.schema.columns import CategoricalColumn, NumericColumn, NumericTarget
from dpci.schema.table import Schema
from dpci.unit import Weights, unit_in_words

_F64 = NDArray[np.float64]

# Rows of the made-up table by which the moments of a schema's columns are found; they are within a per cent.
_ROWS = 20_000
_MISSING = 0.1
# Standard deviation of rounding errors.
_CONSTANT = 1e-9


@dataclass(frozen=True)
class Assumptions:
    """Assumptions of a plan of a linear regression about the data; all of them are public.

    Attributes
    ----------
    uniform : bool
        Whether numbers are uniform within their bounds, one in ten missing where a column allows it, and categories
        equally frequent.
    column_std_dev : tuple of float
        Standard deviation of each column, in the units of the columns of the matrix.
    target_std_dev : float
        Standard deviation of the target; with a schema in its unit.
    r_squared : float
        Share of the target's variance that the columns explain, with equal coefficients per standard deviation.
    """

    uniform: bool
    column_std_dev: tuple[float, ...]
    target_std_dev: float
    r_squared: float


def assumed(
    choices: MatrixChoices,
    n_columns: int,
    *,
    column_std_dev: ArrayLike | None = None,
    target_std_dev: float | None = None,
    r_squared: float = 0.5,
) -> tuple[Assumptions, _F64, _F64]:
    """Return what is assumed, and mean and covariance of the scaled columns."""
    scale = choices.place(n_columns)[1]
    mean, covariance = _uniform(choices, n_columns)
    reach = np.sqrt(_greatest_squares(choices, n_columns)) * scale
    if column_std_dev is not None:
        if choices.schema is not None:
            raise InvalidInput("column_std_dev must be None with a schema, whose columns are taken for uniform")
        given = as_vector("column_std_dev", np.atleast_1d(np.asarray(column_std_dev)))
        if len(given) not in (1, n_columns):
            raise InvalidInput(
                f"column_std_dev must be a number, or one for each of {n_columns} columns, got {len(given)} numbers"
            )
        if not np.all((given > 0.0) & (given <= reach)):
            raise broken("column_std_dev", "above 0 and at most half the width of a column's bounds", column_std_dev)
        factor = given / scale / np.sqrt(np.diag(covariance))
        covariance = factor[:, None] * covariance * factor
    unit = _target_unit(choices.schema)
    half = float(choices.targets.half[-1]) * unit
    spread = half / np.sqrt(3.0) if target_std_dev is None else check_positive("target_std_dev", target_std_dev)
    if spread > half:
        raise InvalidInput(
            f"target_std_dev must be at most half the width of the target's bounds, {half:g}, got {target_std_dev!r}"
        )
    explained = check_not_negative("r_squared", r_squared)
    if not explained < 1.0:
        raise broken("r_squared", "at least 0 and below 1", r_squared)
    stated = Assumptions(
        column_std_dev is None, tuple((np.sqrt(np.diag(covariance)) * scale).tolist()), float(spread), explained
    )
    return stated, mean, covariance


def assumed_matrix(
    stated: Assumptions, mean: _F64, covariance: _F64, choices: MatrixChoices, spec: _core.MomentMatrixSpec
) -> _F64:
    """Return the mean of zz' under the assumptions, z = (scaled row, constant, weighted target)."""
    k, constant, weight = len(mean), spec.intercept, spec.target_weight
    variance = (stated.target_std_dev / _target_unit(choices.schema)) ** 2
    spread = np.sqrt(np.diag(covariance))
    # A column that does not vary, as the one category of a list that is not released yet, explains nothing.
    slopes = np.divide(1.0, spread, out=np.zeros(k), where=spread > _CONSTANT)
    if (explained := slopes @ covariance @ slopes) > 0.0:
        slopes *= np.sqrt(stated.r_squared * variance / explained)
    matrix = np.zeros((k + 2, k + 2))
    matrix[:k, :k] = covariance + np.outer(mean, mean)
    matrix[:k, k] = matrix[k, :k] = constant * mean
    matrix[k, k] = constant**2
    # The target has its mean at the middle of its bounds.
    matrix[:k, k + 1] = matrix[k + 1, :k] = weight * covariance @ slopes
    matrix[k + 1, k + 1] = weight**2 * variance
    return matrix


def _target_unit(schema: Schema | None) -> float:
    """Return how many units of the table one of the encoded target is."""
    if schema is None or not isinstance(schema.target, NumericTarget):
        return 1.0
    return 1.0 / schema.target.scaling[1]


def _greatest_squares(choices: MatrixChoices, n_columns: int) -> _F64:
    """Return the largest square of each scaled column."""
    domain = choices.core_domain(n_columns)
    if isinstance(domain, Ball):
        return np.full(n_columns, domain.norm**2)
    return np.array([domain.block_bounds[block] ** 2 for block in domain.members])


def _uniform(choices: MatrixChoices, n_columns: int) -> tuple[_F64, _F64]:
    """Return mean and covariance of scaled rows that are uniform within their bounds."""
    if choices.schema is not None:
        return _of_schema(choices, choices.schema)
    domain = choices.core_domain(n_columns)
    squares = _greatest_squares(choices, n_columns)
    if isinstance(domain, Ball):
        variances = squares / (n_columns + 2)
    else:
        sizes = np.array([domain.members.count(block) for block in domain.members])
        # Of a number 1/3; of a group, where absolute values sum to at most its bound, that of Dirichlet's law.
        variances = 2.0 * squares / ((sizes + 1) * (sizes + 2))
    return np.zeros(n_columns), np.diag(variances)


def _of_schema(choices: MatrixChoices, schema: Schema) -> tuple[_F64, _F64]:
    """Return those of a made-up table by the assumptions."""
    rng = np.random.default_rng(0)
    table: dict[str, NDArray[Any]] = {}
    for column in schema.columns:
        if isinstance(column, CategoricalColumn):
            table[column.name] = rng.choice(np.array(column.categories), _ROWS)
            continue
        table[column.name] = rng.uniform(column.lower, column.upper, _ROWS)
        if stand_in(column) is not None:
            table[column.name][rng.random(_ROWS) < _MISSING] = np.nan
    # Days are numbers already.
    columns = (replace(column, since="") if isinstance(column, NumericColumn) else column for column in schema.columns)
    rows = replace(schema, columns=tuple(columns)).features(table)
    middle, scale = choices.place(rows.shape[1])
    rows = (rows - middle) / scale
    return np.asarray(rows.mean(axis=0)), np.asarray(np.atleast_2d(np.cov(rows, rowvar=False, bias=True)))


def matrix_of_earlier(record: MomentRecord, case: Case) -> _F64:
    """Return the matrix of an earlier release in the units of the planned one."""
    place = case.place
    numbers = (
        (len(record.columns), len(case.columns), "number of columns"),
        (record.middle.tolist(), place.middle.tolist(), "bounds"),
        (record.scale.tolist(), place.scale.tolist(), "bounds"),
        (record.constant, place.constant, "domain of rows"),
        (record.target_weight, place.target_weight, "bound of the target"),
        (record.target_middle, place.target_middle, "bound of the target"),
        # The mean over persons is another one than that over rows, and its residuals vary less.
        (unit_in_words(record.persons), unit_in_words(case.choices.unit), "unit of privacy"),
    )
    for got, expected, name in numbers:
        if got != expected:
            raise InvalidInput(f"like must have the {name} of the plan, {expected}, got {got}")
    # Where it is not public what the records count, the matrix tells.
    share = record.counted
    if not share > 0.0:
        raise InvalidInput(f"like must show the number of its records, got a share of {share:.3g}")
    return np.asarray(record.matrix / share)


def expected_residuals(
    case: Case, matrix: _F64, points: list[_F64], earlier: MomentRecord | None
) -> list[tuple[_F64, _F64]]:
    """Return the residual moments of planned regressions: of equal variances, or of an earlier release that has them.

    Of equal weights the squares are as much smaller than the weights as these are than their bound.
    """
    choices, columns, spec = case.choices, case.columns, case.spec
    k, place = len(columns), choices.place(len(columns))
    share = _squared_share(choices.weights, choices.public_n(case.n_samples))
    found = []
    for regression, point in zip(choices.planned(columns, k), points, strict=True):
        middle = float(choices.targets.middle[-1])
        regressors, _, response = plan_of(regression, columns, place, spec.intercept, middle)
        known = None if earlier is None or not earlier.residuals else earlier.residuals_of(regression)
        if known is not None and earlier is not None:
            factor = share / (earlier.counted * _squared_share(earlier.weights, earlier.n_samples))
            moments = factor * known[0]
        else:
            residual = np.array(response)
            residual[k + 1] /= spec.target_weight
            residual[: k + 1] -= point
            moments = share * (residual @ matrix @ residual) * matrix[: k + 1, : k + 1]
        found.append((point, moments[np.ix_(regressors, regressors)]))
    return found


def _squared_share(weights: Weights | None, n_samples: int) -> float:
    """Return the mean square of equal weights over their mean, both as shares of the bound."""
    return 1.0 if weights is None else min(1.0, weights.mean_share(n_samples))
