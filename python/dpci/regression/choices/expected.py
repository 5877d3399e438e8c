"""Release that a plan expects: the matrix of an earlier release, and residual moments."""

import numpy as np
from numpy.typing import NDArray

from dpci.errors import InvalidInput
from dpci.regression.choices.clear import Case
from dpci.regression.choices.planned import plan_of
from dpci.regression.record import MomentRecord
from dpci.unit import Weights, unit_in_words

_F64 = NDArray[np.float64]


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
