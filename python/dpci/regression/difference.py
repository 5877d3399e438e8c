"""The error of the difference of two regressions, for :func:`dpci.compare`."""

import numpy as np
from numpy.typing import NDArray

from dpci.errors import InvalidInput
from dpci.inference.comparison import (
    ComparedFacts,
    DifferenceLaw,
    Estimated,
    compared_facts,
    difference_law,
    estimated,
    facts_of_counts,
)
from dpci.inference.intervals import Target
from dpci.regression.law import ErrorParts
from dpci.regression.result import LinearFit, model_of, record_of, solution_of
from dpci.regression.shown.show import target_name, unit_map
from dpci.unit import has_far_rows

__all__: list[str] = []

_F64 = NDArray[np.float64]


@compared_facts.register
def _facts(result: LinearFit) -> ComparedFacts:
    record = record_of(result)
    moved = (record.middle.tolist(), record.scale.tolist(), record.row_norm, record.target_middle, record.target_half)
    facts = {
        "names": model_of(result).names,
        "target": _explained(result),
        "l2_strength": result.l2_strength,
        "units of l2_strength": result.l2_rule if result.l2_strength else None,
        "bounds, to which numbers were clipped,": moved if record.on_violation == "clip" else None,
        "bounds, beyond which records weigh less,": moved if has_far_rows(record.weights) else None,
        **facts_of_counts(record),
    }
    units = unit_map(record, model_of(result))
    return ComparedFacts(facts, record.matrix, record.table, record.neighbors == "add_remove", units)


@estimated.register
def _estimated(result: LinearFit, rows: _F64, shift: _F64, target: Target) -> Estimated:
    if target != "regularised":
        raise InvalidInput(f"target must be 'regularised' for results of LinearFit, got {target!r}")
    return Estimated(rows @ solution_of(result).params + shift, (None,) * len(rows))


def _explained(result: LinearFit) -> str:
    """Return what is explained: the same for y, whatever a frame calls it; a schema's column by its name."""
    record, model = record_of(result), model_of(result)
    is_y = record.table is None and model.target == record.target
    return "y" if is_y else target_name(record, model)


class _Difference:
    """Sampling variances add up, or at most the standard deviations on shared data; the noises are independent."""

    def __init__(self, parts: tuple[ErrorParts, ErrorParts], *, shared: bool) -> None:
        one, other = parts
        sampling = one.sampling + other.sampling
        weights = np.ones_like(one.sampling), np.ones_like(other.sampling)
        if shared:
            roots = np.sqrt(one.sampling), np.sqrt(other.sampling)
            sampling = (roots[0] + roots[1]) ** 2
            # Derivatives of this in the two variances.
            weights = (
                1.0 + np.divide(roots[1], roots[0], out=np.zeros_like(roots[0]), where=roots[0] > 0.0),
                1.0 + np.divide(roots[0], roots[1], out=np.zeros_like(roots[1]), where=roots[1] > 0.0),
            )
        uncertain = weights[0] ** 2 * one.sampling_variance + weights[1] ** 2 * other.sampling_variance
        self.parts = ErrorParts(sampling, uncertain, (*one.noises, *other.noises))

    @property
    def std_errors(self) -> _F64:
        return np.asarray(np.sqrt(self.parts.variance))

    def tails(self, distance: _F64) -> _F64:
        return self.parts.tail(distance)

    def half_widths(self, level: float) -> _F64:
        return self.parts.half_width(level)


@difference_law.register
def _law(result: LinearFit, other: LinearFit, rows: _F64, shared: bool, target: str) -> DifferenceLaw:  # noqa: ARG001, FBT001  # as registered
    return _Difference((solution_of(result).parts(rows), solution_of(other).parts(rows)), shared=shared)
