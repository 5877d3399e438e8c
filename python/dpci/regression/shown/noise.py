"""Whether the noise that a saved moment matrix states is that which its public choices call for."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.costs import seals_from, steps_from
from dpci.regression.choices.bounds import Bounds, domain_of
from dpci.regression.choices.matrix import specified
from dpci.regression.choices.planned import Plan, Regression, plan_of
from dpci.regression.record import MomentRecord
from dpci.released.calibration import (
    TOLERANCE,
    differences,
    differences_of_bounds,
    differences_of_seals,
    differences_of_steps,
)
from dpci.rows import Blocks, RowDomain, core_rows
from dpci.unit import core_terms

_F64 = NDArray[np.float64]


def other_noise(record: MomentRecord) -> str | None:
    """Return the first number in which the noise of a matrix is not that of its public choices, in words."""
    spec = _spec(record, [], [])
    if record.residuals or record.refined:
        # Further targets are weighted behind the scale of their bounds.
        place = record.middle, record.scale * spec.weights

        def plans(planned: list[Regression]) -> list[Plan]:
            return [plan_of(one, record.columns, place, record.constant, record.target_middle) for one in planned]

        residuals = plans([one.regression for one in record.residuals])
        spec = _spec(record, residuals, plans([one.regression for one in record.refined]))
    levels = [one.levels.tolist() for one in record.refined]
    planned = spec.planned(np.ascontiguousarray(record.matrix), levels)
    gradients = [{"cap": (one.cap, cap), "square_weight": (one.square_weight, weight)}
                 for one, (_, cap, weight) in zip(record.refined, planned["refined"], strict=True)]  # fmt: skip
    placed = {
        "constant": (record.constant, spec.intercept),
        "target_weight": (record.target_weight, spec.target_weight),
    }
    points = [*(one.point for one in record.residuals), *(one.point for one in record.refined)]
    following = [*planned["points"], *(point for point, _, _ in planned["refined"])]
    before = record.released_bounds
    differ = (
        *([] if before is None else differences_of_bounds(before, record.n_samples, record.persons, record.neighbors)),
        *differences(placed),
        *_other_places(record, spec),
        *(text for gradient in gradients for text in differences(gradient)),
        *_other_points(points, following),
        *differences_of_steps(record.steps, steps_from(planned["steps"])),
        *differences_of_seals(record.seals, seals_from(planned["seals"])),
    )
    return next(iter(differ), None)


def _other_points(points: list[_F64], following: list[_F64]) -> Iterator[str]:
    """Yield where residuals were not taken at the coefficients that follow from the matrix."""
    for own, other in zip(points, following, strict=True):
        # Rounding moves all coefficients together where columns are nearly collinear.
        room = TOLERANCE * float(np.linalg.norm(other))
        wrong = np.flatnonzero(~(np.abs(own - other) <= room))
        if len(wrong):
            yield f"point[{wrong[0]}]={other[wrong[0]]:.9g}, got {own[wrong[0]]:.9g}"


def _other_places(record: MomentRecord, spec: _core.MomentMatrixSpec) -> Iterator[str]:
    """Yield in which columns the place is not that of their domain; bounds of single columns are the caller's own."""
    domain, n_features = _domain(record), len(record.features)
    if domain is None:
        return
    bounds = _bounds(record, domain)
    middle, half = (np.zeros(n_features), np.ones(n_features)) if bounds is None else bounds.placed(n_features)
    half = half / spec.weights[:n_features]
    for j, name in enumerate(record.features):
        places = {
            "middle": (float(record.middle[j]), float(middle[j])),
            "scale": (float(record.scale[j]), float(half[j])),
        }
        yield from differences({f"{what} of the column {name!r}": pair for what, pair in places.items()})


def _domain(record: MomentRecord) -> RowDomain | None:
    """Return the domain of the rows: with a schema its blocks; None where each column has bounds of its own."""
    if record.table is not None:
        return record.table.rows
    return record.rows


def _bounds(record: MomentRecord, domain: RowDomain) -> Bounds | None:
    if record.table is not None:
        return Bounds.of_schema(record.table)
    return Bounds.of_blocks(domain, always=bool(record.further)) if isinstance(domain, Blocks) else None


def _spec(record: MomentRecord, residuals: list[Plan], refined: list[Plan]) -> _core.MomentMatrixSpec:
    further, n_columns = len(record.further), len(record.columns)
    rows = _domain(record)
    bounds = None if rows is None else _bounds(record, rows)
    return specified(
        record.own_budget,
        residuals,
        refined,
        terms=core_terms(record.n_samples, record.neighbors, record.persons, record.weights),
        n_columns=n_columns,
        row_norm=core_rows(domain_of(bounds, rows, n_columns, further)),
        further_targets=further,
        target_bound=record.target_half,
    )
