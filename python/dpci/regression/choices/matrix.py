"""The public choices of a moment matrix, validated before any data are looked at."""

import sys
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.budgets import (
    GDP,
    Budget,
    GaussianBudget,
    check_gaussian_budget,
    core_budget,
    read_neighbors,
)
from dpci.errors import InvalidInput
from dpci.losses import Squared
from dpci.regression.choices.bounds import Bounds, Standardise, bounds_and_domain, domain_of
from dpci.regression.choices.planned import Plan, Regression, check_planned, named_regressions, plan_of
from dpci.regression.choices.targets import Targets
from dpci.regression.record import charge_of
from dpci.released.choices import NoisyChoices, rows_are_alike
from dpci.rows import Ball, Blocks, RowDomain, RowsLike, core_rows, read_bounds, read_rows
from dpci.schema.columns import NumericTarget
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema, on_violation_of
from dpci.unit import core_terms

RESIDUAL_SHARE = 0.1
"""Share of the budget for the moments of the squared residuals, where they are asked for."""
REFINED_SHARE = 0.6
"""Share of the budget for the gradients of refined regressions, where they are asked for."""


class MatrixKeywords(TypedDict):
    """Keywords of a specification besides its budget and the regressions that are planned."""

    terms: _core.Terms
    n_columns: int
    row_norm: _core.RowDomain | float
    further_targets: int
    target_bound: float


def specified(
    budget: GaussianBudget, residuals: list[Plan], refined: list[Plan], **keywords: Unpack[MatrixKeywords]
) -> _core.MomentMatrixSpec:
    """Return the calibrated specification of a matrix, and of what is released for planned regressions."""
    return _core.MomentMatrixSpec(
        residuals=residuals,
        residual_share=RESIDUAL_SHARE,
        refined=refined,
        refined_share=REFINED_SHARE,
        budget=None if isinstance(budget, GDP) else core_budget(budget),
        mu=budget.mu if isinstance(budget, GDP) else None,
        **keywords,
    )


@dataclass(frozen=True, kw_only=True)
class MatrixChoices(NoisyChoices):
    """Choices of the caller of :func:`dpci.regression.release`."""

    bounds: Bounds | None
    """Bounds of the columns, by which they are moved and scaled; None: they are used as they are."""
    domain: RowDomain | None
    """Domain of the rows before that; None: the columns have bounds alone."""
    targets: Targets
    robust: tuple[Regression, ...] = ()
    """The regressions that are to have a robust covariance."""
    refine: tuple[Regression, ...] = ()
    """The regressions whose coefficients are to be refined."""
    schema: Schema | None = None
    gaps: PartialSchema | None = None
    """The schema as it is given, where it has gaps, which are released first; ``schema`` is then its blank one."""

    def __post_init__(self) -> None:
        check_gaussian_budget(self.budget)
        super().__post_init__()  # which may give weights
        object.__setattr__(self, "robust", check_planned("robust", self.robust, needed=self.needs_robust))
        object.__setattr__(self, "refine", check_planned("refine", self.refine))

    @property
    def needs_robust(self) -> bool:
        """Whether regressions have no other standard errors: residuals of rows are not independent, or weighted."""
        return not rows_are_alike(self.unit, self.weights)

    # The core adds the constant, and its name comes last.
    has_constant = True
    intercept = None
    two_classes = False
    classes = None

    @property
    def rows(self) -> RowDomain:
        """The domain that the rows are checked against before their number of columns is known."""
        if isinstance(self.domain, Blocks):
            further = self.targets.further
            return domain_of(self.bounds, self.domain, self.domain.n_columns + further, further)
        return self.domain or Ball(sys.float_info.max)

    @property
    def encoded_loss(self) -> Squared:
        """The loss whose sums are the moments."""
        return Squared(float(self.targets.half[-1]))

    def completed(self, schema: Schema) -> "MatrixChoices":
        """Return the choices with a schema whose gaps have been released."""
        return replace(self, schema=schema, gaps=None, bounds=Bounds.of_schema(schema), domain=schema.rows)

    def standardise(self) -> Standardise:
        """Return what is done with rows and targets before the core sees them."""
        return Standardise(self.bounds, self.targets, self.on_violation)

    def core_domain(self, n_columns: int) -> RowDomain:
        """Return the domain of rows of so many columns, further targets included, as the core sees them."""
        return domain_of(self.bounds, self.domain, n_columns, self.targets.further)

    @property
    def charge(self) -> Budget:
        """Budget that a ledger counts: of Gaussian DP the zCDP that it implies, rounded up."""
        return charge_of(self.budget)

    def place(self, n_columns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the middle and the scale of each of so many columns, further targets included."""
        return self.standardise().place(n_columns)

    def names(self, names: tuple[str, ...] | None, n_columns: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the columns of X and of the targets.

        ``names`` may have those of X alone, or further targets behind them, as ``n_columns`` counts; None: x0, x1, ...
        """
        features = n_columns - self.targets.further
        columns = tuple(f"x{i}" for i in range(features)) if names is None else names[:features]
        return columns, self.targets.names(columns)

    def all_names(self, names: tuple[str, ...] | None, n_columns: int) -> tuple[tuple[str, ...], str]:
        """Return the names of the core's columns, with further targets behind those of X, and of the last target."""
        columns, targets = self.names(names, n_columns)
        return (*columns, *targets[:-1]), targets[-1]

    def planned(self, names: tuple[str, ...] | None, n_columns: int) -> tuple[Regression, ...]:
        """Return the regressions that are to have a robust covariance, with the names of their columns."""
        return named_regressions("robust", self.robust, *self.names(names, n_columns))

    def refined(self, names: tuple[str, ...] | None, n_columns: int) -> tuple[Regression, ...]:
        """Return the regressions whose coefficients are to be refined, with the names of their columns."""
        return named_regressions("refine", self.refine, *self.names(names, n_columns))

    def divisor(self, n_samples: int) -> float:
        """Return what divides the sums over records: their public number, or with weights total over bound."""
        n = self.public_n(n_samples)
        return n if self.weights is None else self.weights.divisor(n)

    def spec(
        self, n_samples: int, n_columns: int, budget: GaussianBudget, names: tuple[str, ...] | None = None
    ) -> _core.MomentMatrixSpec:
        """Return the calibrated specification for so many columns, further targets included; names as of ``names``.

        ``budget`` is that of a payment, which is rounded down; of Gaussian DP the noise has the whole.
        """
        budget = self.budget if isinstance(self.budget, GDP) else budget
        place = self.place(n_columns)

        def made(residuals: list[Plan], refined: list[Plan]) -> _core.MomentMatrixSpec:
            return specified(
                budget,
                residuals,
                refined,
                terms=core_terms(self.public_n(n_samples), self.neighbors, self.unit, self.weights),
                n_columns=n_columns,
                row_norm=core_rows(self.core_domain(n_columns)),
                further_targets=self.targets.further,
                target_bound=self.encoded_loss.target_bound,
            )

        spec = made([], [])
        if not self.robust and not self.refine:
            return spec
        columns, _ = self.all_names(names, n_columns)
        middle = float(self.targets.middle[-1])

        def plans(regressions: tuple[Regression, ...]) -> list[Plan]:
            return [plan_of(regression, columns, place, spec.intercept, middle) for regression in regressions]

        return made(plans(self.planned(names, n_columns)), plans(self.refined(names, n_columns)))


def matrix_choices(
    targets: Targets,
    *,
    bounds: tuple[ArrayLike, ArrayLike] | None,
    rows: RowsLike | None,
    neighbors: object,
    **keywords: Any,  # noqa: ANN401  # of MatrixChoices
) -> MatrixChoices:
    """Return the choices that the keywords of :func:`release` make."""
    given, on_violation, _ = read_bounds(rows)
    if on_violation == "weight" and bounds is not None:
        raise InvalidInput(
            "bounds move numbers beyond them, so that no row weighs less, got rows with weights (pass a schema with "
            'outside="weight", or dpci.rows.Weighted without bounds)'
        )
    placed, domain = bounds_and_domain(bounds, given, several=targets.further > 0)
    return MatrixChoices(
        bounds=placed,
        domain=domain,
        targets=targets,
        on_violation=on_violation,
        **read_neighbors(neighbors),
        **keywords,
    )


def choices_of_fit(
    *,
    rows: RowsLike | None,
    neighbors: object,
    schema: Schema | PartialSchema | None,
    loss: Squared,
    **keywords: Any,  # noqa: ANN401  # of MatrixChoices
) -> MatrixChoices:
    """Return the choices that the keywords of :func:`dpci.fit` make."""
    gaps = schema if isinstance(schema, PartialSchema) else None
    if isinstance(schema, PartialSchema):
        if isinstance(keywords["budget"], GDP):
            raise InvalidInput(
                "budget must be PureDP, ZCDP or ApproxDP for a schema with gaps, because the choice of bounds has no "
                f"cost in Gaussian DP, got {keywords['budget']}"
            )
        schema = schema.blank
    middle, half, name = 0.0, loss.target_bound, None
    given, on_violation, _ = read_rows(rows)
    if schema is None:
        placed, domain = bounds_and_domain(None, given)
    else:
        if not isinstance(schema.target, NumericTarget):
            raise InvalidInput("the target of the schema must be a number for the squared loss, got classes")
        if given not in (None, Ball(schema.row_norm), schema.rows):
            raise InvalidInput(f"rows must be those of the schema, {schema.domain!r}, got {given!r}")
        if loss != Squared():
            raise InvalidInput(f"target_bound must be 1 with a schema, which scales the targets, got {loss!r}")
        placed, domain, name = Bounds.of_schema(schema), schema.rows, schema.target.column
        on_violation = on_violation_of(schema, on_violation)
        if schema.target.scale == "unit":
            middle, half = 0.5, 0.5
    return MatrixChoices(
        bounds=placed,
        domain=domain,
        targets=Targets.one(middle, half, name),
        schema=schema,
        gaps=gaps,
        on_violation=on_violation,
        **read_neighbors(neighbors),
        **keywords,
    )
