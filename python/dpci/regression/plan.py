"""``MomentPlan``: the cost and the precision of a linear regression from one moment matrix, without data.

The standard errors are those of a regression with the assumed moments, computed as those of a release.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.accounting.costs import Seal, Step, describe_seals
from dpci.accounting.guarantee import Guarantee
from dpci.budgets import GDP, GaussianBudget, saved_budget
from dpci.described.plan import BoundsPlan
from dpci.described.within import stage_of
from dpci.errors import InvalidInput
from dpci.regression.choices.assumed import (
    Assumptions,
    assumed,
    assumed_matrix,
    expected_residuals,
    matrix_of_earlier,
)
from dpci.regression.choices.clear import Case
from dpci.regression.choices.model import PRIVATE, Model, combinations
from dpci.regression.equations import Solution, attempt
from dpci.regression.estimates import LinearEstimates
from dpci.regression.matrix import MomentMatrix
from dpci.regression.mechanism import record_of_release
from dpci.regression.record import MomentRecord
from dpci.regression.result import LinearFit, record_of
from dpci.regression.shown.show import shown_estimates
from dpci.released.bounds import ReleasedBounds, are_joint
from dpci.report.commands import table_rows
from dpci.rows import RowDomain
from dpci.schema.cells import stand_in
from dpci.schema.columns import NumericColumn, UnboundedTarget
from dpci.schema.partial import PartialSchema
from dpci.shown.displayed import Displayed
from dpci.shown.document import Document, Facts, Paragraph, Table
from dpci.shown.text import as_text
from dpci.unit import Persons, Weights

__all__ = ["MomentPlan"]

_F64 = NDArray[np.float64]

LEVEL = 0.95
"""Level of the intervals whose half widths a plan gives."""

# The noise lowers the least eigenvalue by about half of what it must be above: with this factor it stays above.
_ROOM = 1.5


@dataclass(frozen=True, repr=False)
class MomentPlan(Displayed):
    """The public consequences of the keywords of a linear regression from one moment matrix; see :func:`dpci.plan`.

    Attributes
    ----------
    steps : tuple of Step
        Noise, cost and sensitivity of the matrix, and with persons or weights also those of the residual moments. The
        cost of the latter is exact; their noise is that for the assumed matrix.
    seals : tuple of Seal
        The seals of the released values, and their cost.
    cost_unit : str
        "epsilon", "rho" or "mu_squared": the unit of the cost.
    n_samples : int
        Public number of samples; for a plan for persons, their number.
    rows : Ball or Blocks of dpci.rows
        Public domain of the rows, as the core sees them: scaled by the bounds of the columns.
    noise_std_dev : float
        Standard deviation of the noise in each direction of the matrix of scaled columns.
    noise_std_devs : ndarray of shape (k + 2, k + 2)
        Standard deviation of the noise in each entry of :attr:`dpci.regression.MomentMatrix.moments`: the mean products
        of the columns, of 1 and of the target, in the units of the caller's columns.
    greatest_variation : float
        Bound on the variation of the regressors of any table within the bounds, in the direction in which they vary
        least.
    needed_variation : float
        The variation in that direction that exceeds the noise.
    assumptions : Assumptions or None
        The assumptions about the data; None if an earlier release replaces them.
    expected_variation : float
        The variation of the regressors in that direction under the assumptions.
    names, units : tuple of str
        Names of the coefficients, the intercept last, and their units: those of the table with a schema, "" without.
    std_errors : ndarray or None
        Predicted standard deviation of the error of each coefficient, sampling and noise together. None if the noise
        hides the regression under the assumptions; ``refusal`` has the reason.
    half_widths : ndarray or None
        Predicted half width of each 95% interval.
    noise_shares : ndarray or None
        Share of each error variance that is due to noise.
    refusal : str or None
        The reason if there are no standard errors.
    least_n_samples : int or None
        The least number of samples for which the regression exceeds the noise under the assumptions, even if the noise
        lowers the variation of the columns. None for ``l2_strength="private"``, which needs no such number, and
        if no number suffices.
    least_budget : PureDP, ZCDP, ApproxDP, GDP or None
        The smallest budget with this property, for this number of samples.
    guarantee : Guarantee
        The (epsilon, delta) profile and the Renyi curve.
    persons : object or None
        If the samples are persons: how much the rows of a person count, as text by ``str``. All rows of a person are
        then assumed to be equal, which gives the largest sampling errors.
    weights : object or None
        The public bound and total of weights, as text by ``str``. The weights are then assumed to be equal.
    bounds : object or None
        Release of the bounds that the schema lacks: its ``share`` of the budget, ``left_out``, by how much intervals
        are ``longer``. Coefficients are then those of columns and a target that are scaled by their bounds, and a
        target without bounds has half their width for its unit.
    """

    steps: tuple[Step, ...]
    seals: tuple[Seal, ...]
    cost_unit: str
    n_samples: int
    rows: RowDomain
    noise_std_dev: float
    noise_std_devs: _F64 = field(compare=False)
    greatest_variation: float
    needed_variation: float
    assumptions: Assumptions | None
    expected_variation: float
    names: tuple[str, ...]
    units: tuple[str, ...]
    std_errors: _F64 | None = field(compare=False)
    half_widths: _F64 | None = field(compare=False)
    noise_shares: _F64 | None = field(compare=False)
    refusal: str | None
    least_n_samples: int | None
    least_budget: GaussianBudget | None
    guarantee: Guarantee = field(compare=False)
    title: str
    persons: Persons | None
    weights: Weights | None
    bounds: BoundsPlan | None
    _case: Case = field(compare=False)
    _model: Model

    def assuming(
        self,
        *,
        column_std_dev: ArrayLike | None = None,
        target_std_dev: float | None = None,
        r_squared: float = 0.5,
    ) -> "MomentPlan":
        """Return the same plan under other assumptions about the data.

        Parameters
        ----------
        column_std_dev : float or array-like of shape (k,), optional
            Standard deviation of the columns, in their units; not with a schema. None: numbers are uniform within their
            bounds, and categories equally frequent.
        target_std_dev : float, optional
            Standard deviation of the target, with a schema in its unit. None: the target is uniform within its bounds.
        r_squared : float
            Part of the target's variance that the columns explain.

        Raises
        ------
        InvalidInput
            For numbers that the bounds contradict.
        """
        assumptions: dict[str, Any] = {
            "column_std_dev": column_std_dev,
            "target_std_dev": target_std_dev,
            "r_squared": r_squared,
        }
        gaps = self._case.choices.gaps
        if gaps is not None:
            return planned_with_gaps(self._case, self._model, gaps, **assumptions)
        return planned(self._case, self._model, **assumptions)

    def summary(self) -> str:
        """Table of the predicted precision, with the numbers that show whether the release is worth its budget."""
        return as_text(self._document())

    def _document(self) -> Document:
        alike = "" if self.persons is None else "; all rows of a person are equal"
        equal = "" if self.weights is None else "; all weights are equal"
        facts = [
            *([] if self.bounds is None else self.bounds.facts()),
            *((step.step.replace("_", " "), self._step(step)) for step in self.steps),
            *([] if self.persons is None else [("persons", f"{self.persons}")]),
            *([] if self.weights is None else [("weights", f"{self.weights}")]),
            ("rounding seal", describe_seals(self.seals)),
            ("noise", f"standard deviation {self.noise_std_dev:.4g} in each direction of the matrix of scaled columns"),
            ("weakest direction", self._varying()),
            *self._least(),
            ("assumed", f"{self._assumed_moments()}{alike}{equal}"),
        ]
        return Document(title=self.title, parts=[self._precision(), Facts(facts)])

    def to_dict(self) -> dict[str, Any]:
        """Return the cost by step and the predicted precision, as JSON can hold them."""
        columns: dict[str, Sequence[Any]] = {"name": self.names, "unit": self.units}
        if self.std_errors is not None and self.half_widths is not None and self.noise_shares is not None:
            columns |= {
                "std_error": self.std_errors.tolist(),
                "half_width": self.half_widths.tolist(),
                "noise_share": self.noise_shares.tolist(),
            }
        return {
            "title": self.title,
            "n_samples": self.n_samples,
            "cost_unit": self.cost_unit,
            "steps": [step.to_dict() for step in self.steps],
            "seals": [seal.to_dict() for seal in self.seals],
            "noise_std_dev": self.noise_std_dev,
            "noise_std_devs": self.noise_std_devs.tolist(),
            "greatest_variation": self.greatest_variation,
            "expected_variation": self.expected_variation,
            "needed_variation": self.needed_variation,
            "assumptions": None if self.assumptions is None else asdict(self.assumptions),
            "coefficients": table_rows(columns),
            "refusal": self.refusal,
            "least_n_samples": self.least_n_samples,
            "least_budget": None if self.least_budget is None else saved_budget(self.least_budget),
            "bounds": None if self.bounds is None else self.bounds.to_dict(),
        }

    def __repr__(self) -> str:
        return self.summary()

    def _precision(self) -> Table | Paragraph:
        if self.std_errors is None or self.half_widths is None or self.noise_shares is None:
            return Paragraph(f"no standard errors: {self.refusal}")
        with_unit = any(self.units)
        header = ["name", *(["unit"] if with_unit else []), "std error", "95% half width", "noise"]
        columns = zip(self.names, self.units, self.std_errors, self.half_widths, self.noise_shares, strict=True)
        rows = [
            [name, *([unit] if with_unit else []), f"{error:.4g}", f"{half:.4g}", f"{share:.0%}"]
            for name, unit, error, half, share in columns
        ]
        return Table(header, rows)

    def _step(self, step: Step) -> str:
        unit = self.cost_unit.replace("_", " ")
        noise = step.noise.replace("_", " ")
        return f"{unit} {step.cost:.4g}, {noise} noise of scale {step.scale:.4g}, sensitivity {step.sensitivity:.4g}"

    def _least(self) -> list[tuple[str, str]]:
        if self.least_n_samples is None and self.least_budget is None:
            return []
        parts = [] if self.least_n_samples is None else [f"n={self.least_n_samples:,}"]
        parts += [] if self.least_budget is None else [str(self.least_budget)]
        return [("sufficient", f"{' or '.join(parts)}, if the assumptions hold")]

    def _varying(self) -> str:
        return (
            f"the regressors vary by {self.expected_variation:.4g} if the assumptions hold, and by at most "
            f"{self.greatest_variation:.4g} in any table; the noise requires more than {self.needed_variation:.4g}"
        )

    @property
    def _may_miss(self) -> bool:
        schema = self._case.choices.schema
        columns = () if schema is None else schema.columns
        return any(isinstance(column, NumericColumn) and stand_in(column) is not None for column in columns)

    def _assumed_moments(self) -> str:
        if self.assumptions is None:
            return "second moments as those of the earlier release"
        stated = self.assumptions
        sds = sorted({f"{sd:.3g}" for sd in stated.column_std_dev}, key=float)
        given = f"columns of standard deviation {sds[0] if len(sds) == 1 else f'{sds[0]} to {sds[-1]}'}"
        columns = given
        if stated.uniform:
            missing = ", one in ten missing where a column allows it" if self._may_miss else ""
            columns = f"numbers uniform within their bounds{missing}, categories equally frequent"
        return (
            f"{columns}; the target has standard deviation {stated.target_std_dev:.3g}, and the columns explain "
            f"{stated.r_squared:.0%} of its variance"
        )


def planned(
    case: Case,
    model: Model,
    *,
    like: object = None,
    in_units: bool = True,
    **assumptions: Any,  # noqa: ANN401  # those of ``assumed``
) -> MomentPlan:
    """Return the plan of a regression of the target, whose release would have these public numbers."""
    case.check_possible(model)
    choices, columns, spec = case.choices, case.columns, case.spec
    k, n = len(model.names), choices.public_n(case.n_samples)
    stated, earlier = None, _earlier(like)
    if earlier is None:
        stated, mean, covariance = assumed(choices, len(columns), **assumptions)
        matrix = assumed_matrix(stated, mean, covariance, choices, spec)
    else:
        matrix = matrix_of_earlier(earlier, case)
    planned_steps = spec.planned(np.ascontiguousarray(matrix))
    release = {
        **planned_steps,
        "matrix": matrix,
        "refined": [],
        "residuals": expected_residuals(case, matrix, planned_steps["points"], earlier),
        "private": True,
        "paid": None,
        "released_bounds": None,
        "named_columns": choices.schema is not None,
    }
    record = record_of_release(columns, case.n_samples, spec, choices, release)
    expected, facts = attempt(record, model), MomentMatrix(record)
    variation = _variation(case, model, matrix)
    least_n, least_budget = None, None
    if model.l2_strength != PRIVATE:
        least_n, least_budget = _least_of(case, variation / _ROOM, k)
    names, units, std_errors, half_widths, shares = _precision_of(expected, record, model, in_units=in_units)
    ridge = "private" if model.l2_strength == PRIVATE else f"{model.l2_strength:g}"
    return MomentPlan(
        steps=record.steps,
        seals=record.seals,
        cost_unit=facts.privacy["cost_unit"],
        n_samples=n,
        rows=choices.core_domain(len(columns)),
        noise_std_dev=spec.noise_std_dev,
        noise_std_devs=_entry_std_devs(record, spec.noise_std_dev),
        greatest_variation=case.greatest(model),
        needed_variation=case.needed(k),
        assumptions=stated,
        expected_variation=variation,
        names=names,
        units=units,
        std_errors=std_errors,
        half_widths=half_widths,
        noise_shares=shares,
        refusal=str(expected) if isinstance(expected, InvalidInput) else None,
        least_n_samples=least_n,
        least_budget=least_budget,
        guarantee=facts.guarantee,
        title=f"Plan: linear regression from one moment matrix, {choices.budget}, "
        f"n={n:,}{'' if choices.unit is None else ' persons'}, {len(columns)} columns, lambda={ridge}",
        persons=choices.unit,
        weights=choices.weights,
        bounds=None,
        _case=case,
        _model=model,
    )


def planned_with_gaps(
    case: Case,
    model: Model,
    partial: PartialSchema,
    **assumptions: Any,  # noqa: ANN401  # as above
) -> MomentPlan:
    """Return the plan of a release that begins with the gaps of its schema, whose case has the whole budget."""
    # Half the width of its bounds is the unit of a target without any.
    target = partial.target
    bounds = {target.column: (-1.0, 1.0)} if isinstance(target, UnboundedTarget) else {}
    choices, whole = case.choices.completed(partial.completed(bounds, {}, source="")), case.budget
    assert not isinstance(whole, GDP)  # noqa: S101  # for the type checker: refused with gaps
    stage = stage_of(partial, choices, whole, "moment_matrix", case.n_samples)
    rest = stage.rest or whole
    left = replace(case, choices=replace(choices, budget=rest), budget=rest)
    all_known = replace(case, choices=choices)
    known, found = (planned(each, model, in_units=False, **assumptions) for each in (all_known, left))
    facts = ReleasedBounds.of(partial, stage.budget, stage.specs)
    return replace(
        found,
        title=known.title,
        bounds=BoundsPlan.of(stage, longer=_length_ratio(found, known)),
        guarantee=facts.before(found.guarantee, whole, joint=are_joint(whole, "moment_matrix")),
        # The share of the bounds depends on both.
        least_n_samples=None,
        least_budget=None,
        _case=case,
    )


def _length_ratio(found: MomentPlan, known: MomentPlan) -> float:
    """Return by how much intervals are longer, at most; of the noise where it hides the regression."""
    if found.half_widths is None or known.half_widths is None:
        return found.noise_std_dev / known.noise_std_dev
    return float((found.half_widths / known.half_widths).max())


def _precision_of(
    expected: Solution | InvalidInput, record: MomentRecord, model: Model, *, in_units: bool
) -> tuple[tuple[str, ...], tuple[str, ...], _F64 | None, _F64 | None, _F64 | None]:
    names, units = model.names, ("",) * len(model.names)
    if isinstance(expected, InvalidInput):
        return names, units, None, None, None
    estimates = LinearEstimates.of(expected)
    if in_units:
        estimates, names, units = shown_estimates(record, model, expected)
    parts = estimates.parts()
    halves = parts.half_width(LEVEL)
    return names, units, np.sqrt(parts.variance), halves, 1.0 - parts.sampling / parts.variance


def _least_of(case: Case, variation: float, k: int) -> tuple[int | None, GaussianBudget | None]:
    """Return the smallest number of samples and the smallest budget, whatever those of the case are."""
    if not variation > 0.0:
        return None, None
    # From the fewest samples that there may be, and from a budget that is far too small.
    weights = case.choices.weights
    fewest = 1 if weights is None else math.ceil(weights.bound)
    choices = case.choices if case.choices.n_public is None else replace(case.choices, n_public=fewest)
    count = replace(case, choices=choices, n_samples=fewest).least_n(variation, k)
    return count, case.least_budget(variation, k, least=2.0**-40)


def _variation(case: Case, model: Model, matrix: _F64) -> float:
    """Return the smallest eigenvalue of orthonormal regressors with their ridge."""
    rows, response, _, _ = combinations(case.place, model)
    strength = 0.0 if model.l2_strength == PRIVATE else float(model.l2_strength)
    ridge = 0.5 * strength * np.eye(len(rows))
    found = _core.moment_regression(matrix, np.ascontiguousarray(rows), response, ridge=ridge, residual_moments=None)
    return float(found["least_eigenvalue"])


def _entry_std_devs(record: MomentRecord, std_dev: float) -> _F64:
    """Return the standard deviations of u'Ev for the rows u, v that make the caller's units of the columns."""
    units = record.place.units
    gram = units @ units.T
    found = std_dev * np.sqrt(0.5 * (np.outer(np.diag(gram), np.diag(gram)) + gram**2))
    found.flags.writeable = False
    return np.asarray(found)


def _earlier(like: object) -> MomentRecord | None:
    if not (like is None or isinstance(like, LinearFit | MomentMatrix)):
        raise InvalidInput(
            "like must be a regression.LinearFit or a regression.MomentMatrix for a plan of a linear regression from "
            f"a moment matrix, got {type(like).__name__}"
        )
    return None if like is None else record_of(like)
