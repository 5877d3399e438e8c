"""``ReleasedBounds``: public values of released bounds and lists, by themselves or within the budget of a fit."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

import numpy as np

from dpci import _core
from dpci.accounting.costs import Step, steps_from
from dpci.accounting.guarantee import Guarantee, Ranges
from dpci.base.codec import check_interval
from dpci.base.validation import broken
from dpci.budgets import (
    ZCDP,
    ApproxDP,
    Budget,
    GaussianBudget,
    Neighbors,
    PureDP,
    SavedBudget,
    core_budget,
    remainder,
    split_budget,
)
from dpci.errors import InvalidInput
from dpci.released.counts import NO_COUNTS, Counting, ReleasedCounts, Share, half_width, step_named
from dpci.schema.columns import CategoricalColumn, NumericColumn, NumericTarget
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema, far_columns
from dpci.schema.transforms import Transform, forth
from dpci.unit import Persons, Weights, core_terms, has_far_rows

RELEASED = "released at "
"""Beginning of the source of released bounds."""


@dataclass(frozen=True)
class GapSpecs:
    """Calibrated releases of bounds, levels and counts, None where there are none. Holds no data."""

    bounds: _core.BoundsSpec | None
    levels: _core.LevelsSpec | None
    beyond: _core.CountsSpec | None = None
    counts: _core.CountsSpec | None = None

    @property
    def share(self) -> float | None:
        """Share of the records that bounds leave out on either side; None without bounds."""
        return None if self.bounds is None else self.bounds.share

    @property
    def steps(self) -> tuple[Step, ...]:
        """Steps of the release."""
        return steps_from([*([] if self.bounds is None else self.bounds.steps),
                           *([] if self.levels is None else self.levels.steps),
                           *([spec.step for spec in (self.beyond, self.counts) if spec is not None])])  # fmt: skip


def gap_specs(
    ranges: Sequence[tuple[tuple[float, float] | None, bool, Transform]],
    n_unlisted: int,
    n_samples: int,
    budget: Budget,
    *,
    unit: Persons | None,
    neighbors: Neighbors,
    counting: Counting = NO_COUNTS,
) -> GapSpecs:
    """Calibrate a release of bounds and levels, and of counts for their shares.

    ``ranges`` has the range of each column without bounds, whether 0 stands apart, and the transform after which its
    bounds are chosen. Of what counts leave, levels take all of δ, and where there are bounds as well, a quarter of ε.
    """
    terms = core_terms(n_samples, neighbors, unit)
    check_lists(budget, lists=bool(n_unlisted))
    of_beyond, of_counts, budget = counting.split(budget)
    of_bounds, of_levels = _parts(budget, lists=bool(n_unlisted)) if ranges else (budget, budget)
    bounds = levels = None
    if ranges:
        columns = [
            (None if extent is None else _after(transform, extent), zeros) for extent, zeros, transform in ranges
        ]
        bounds = _core.BoundsSpec(terms, columns=columns, budget=core_budget(of_bounds))
    if n_unlisted:
        levels = _core.LevelsSpec(terms, n_columns=n_unlisted, budget=core_budget(of_levels))
    beyond = counts = None
    if of_beyond is not None:
        beyond = _core.CountsSpec(terms, n_columns=None, budget=core_budget(of_beyond))
    if of_counts is not None:
        counts = _core.CountsSpec(terms, n_columns=len(ranges) + n_unlisted, budget=core_budget(of_counts))
    return GapSpecs(bounds, levels, beyond, counts)


def _after(transform: Transform, extent: Sequence[float]) -> tuple[float, float]:
    lower, upper = forth(transform, np.array(extent, dtype=np.float64)).tolist()
    return lower, upper


def check_lists(budget: Budget, *, lists: bool) -> None:
    """Refuse a budget without δ for lists of categories."""
    if lists and not isinstance(budget, ApproxDP):
        raise InvalidInput(
            "budget must be ApproxDP for an UnlistedColumn, because whether a table has a rare category cannot be "
            f"hidden without delta, got {budget} (take ApproxDP(1.0, 1e-6), or a CategoricalColumn with a public list)"
        )


def _parts(budget: Budget, *, lists: bool) -> tuple[Budget, Budget]:
    """Return the budget of bounds, and that of the lists that are released with them."""
    if lists and isinstance(budget, ApproxDP):
        return PureDP(0.75 * budget.epsilon), ApproxDP(0.25 * budget.epsilon, budget.delta)
    return budget, budget


_BESIDE_RELEASED = {"bounds": "public bounds and ranges", "categories": "public categories"}
# Of a budget, to which bounds and what follows add up.
_ROUNDING = 1e-9


def are_joint(budget: GaussianBudget, mechanism: str) -> bool:
    """Return whether bounds and what follows are accounted for jointly: if its noise is Gaussian throughout."""
    return isinstance(budget, ApproxDP) and mechanism in {"newton", "moment_matrix"}


def first_part(budget: Budget, share: float, *, lists: bool, joint: bool) -> Budget:
    """Return the budget of bounds and lists for a share of a whole; where parts are ``joint``, lists alone need δ."""
    own, _ = split_budget(budget, share, "bounds_share")
    return PureDP(own.epsilon) if joint and not lists and isinstance(own, ApproxDP) else own


@lru_cache(maxsize=256)
def rest_after(
    own: Budget, whole: Budget, *, stages: int, lists: bool, joint: bool, counting: Counting = NO_COUNTS
) -> Budget:
    """Return what bounds in so many stages, lists and counts leave of a budget for what begins with them."""
    if not (joint and isinstance(whole, ApproxDP)):
        return remainder(whole, own)
    if not isinstance(own, ApproxDP if lists else PureDP):
        raise InvalidInput(
            f"the budget of bounds within {whole} must be {'ApproxDP with' if lists else 'PureDP without'} lists of "
            f"categories, got {own}"
        )
    *of_counts, own = counting.split(own)
    of_bounds, of_lists = _parts(own, lists=lists) if stages else (None, own)
    left = remainder(whole, of_lists) if lists else whole
    assert isinstance(left, ApproxDP)  # noqa: S101  # for the type checker
    for part in of_counts:
        if part is not None:
            left = ApproxDP(remainder(PureDP(left.epsilon), part).parameters()["epsilon"], left.delta)
    return left if of_bounds is None else _ranges(of_bounds, stages).rest_of(left)


def _ranges(of_bounds: Budget, stages: int) -> Ranges:
    return Ranges(of_bounds.parameters()["epsilon"] / stages, stages)


def chosen_beside(released: "ReleasedBounds | None", names: Iterable[str]) -> Iterator[str]:
    """Yield choices that must not depend on the data, of which bounds that were released are none."""
    public = {} if released is None else _BESIDE_RELEASED
    return (public.get(each, each) for each in names)


def chosen_with(table: Schema | None, names: Iterable[str]) -> Iterator[str]:
    """Yield the choices that a schema can have made, and its treatment of missing values; without one, all."""
    columns = () if table is None else table.columns
    for name in names:
        listed = table is None or any(isinstance(column, CategoricalColumn) for column in columns)
        if (listed or "categories" not in name) and (table is None or table.terms or name != "formula"):
            yield name
    if any(column.missing not in {None, "error"} for column in columns):
        yield "treatment of missing values"


def source_of(budget: Budget, n_columns: int) -> str:
    """Return why the released bounds of so many columns are public, as a schema states it."""
    return f"{RELEASED}{budget}" + f" for {n_columns} columns together" * (n_columns > 1)


def numbers_of(table: Schema) -> dict[str, NumericColumn | NumericTarget]:
    """Return the parts of a schema that have bounds, by their columns."""
    target = table.target
    found: dict[str, NumericColumn | NumericTarget] = {
        column.name: column for column in table.columns if isinstance(column, NumericColumn)
    }
    return found | ({target.column: target} if isinstance(target, NumericTarget) else {})


def check_ranges(name: str, value: object) -> dict[str, Any]:
    """Return public ranges by the names of columns, None where none is known."""
    if not isinstance(value, dict) or not all(isinstance(column, str) for column in value):
        raise broken(name, "an object that names columns", value)
    return {
        column: None if extent is None else check_interval(f"{name}.{column}", extent)
        for column, extent in value.items()
    }


OF_OTHERS = 0.2
"""Share of the values other than 0 that bounds leave out on either side where 0 stands apart (proofs/bounds.md)."""


@dataclass(frozen=True, kw_only=True)
class ReleasedBounds:
    """Public values of bounds and lists that were released: of which columns, and at what cost."""

    budget: SavedBudget
    """Budget of the bounds and lists alone."""
    ranges: Annotated[dict[str, Any], check_ranges]
    """The public range of each column whose bounds were released, None where none is known."""
    zeros: tuple[str, ...]
    """Columns of which 0 stands apart."""
    logarithmic: tuple[str, ...] = ()
    """Columns whose bounds were chosen after the signed logarithm."""
    listed: tuple[str, ...]
    """Columns whose categories were released."""
    share: float | None
    """Share of the records that bounds leave out on either side; None without bounds."""
    steps: tuple[Step, ...]
    counts: ReleasedCounts | None = None

    def __post_init__(self) -> None:
        if not set(self.ranges).issuperset(self.zeros) or not self.columns:
            raise InvalidInput(f"ranges must name columns of the schema with bounds, got ranges={self.ranges!r}")
        if len(set(self.columns)) < len(self.columns):
            raise InvalidInput(f"a column must have released bounds or a released list, got both in {self.columns}")
        if (self.share is None) != (not self.ranges) or not 0.0 < (self.share or 0.02) < 0.5:
            raise InvalidInput(f"share must be above 0 and below .5, and None without bounds, got share={self.share!r}")
        found = [(step.step, step.noise) for step in self.steps]
        of_levels = [("levels", "bernoulli")] if self.listed else []
        of_bounds = [[("bounds", "gumbel")] * n for n in ((1, 2) if self.ranges else (0,))]
        noise = "discrete_gaussian" if isinstance(self.budget, ZCDP) else "discrete_laplace"
        named = {"records_beyond": self.counting.beyond, "column_counts": self.counting.columns}
        of_counts = [(name, noise) for name, share in named.items() if share is not None]
        if found not in [each + of_levels + of_counts for each in of_bounds]:
            raise InvalidInput(
                "released bounds must have one or two steps of their kind, and lists and counts one each, got "
                f"{self.steps}"
            )
        if self.counting.beyond is not None and not self.ranges:
            raise InvalidInput("rows beyond their bounds must be counted where bounds are released, got none")

    @classmethod
    def of(
        cls, schema: PartialSchema, budget: Budget, specs: GapSpecs, counts: ReleasedCounts | None = None
    ) -> "ReleasedBounds":
        """Return what was released of the gaps of a schema; without ``counts``, as in plans, nothing is counted yet."""
        if counts is None and (specs.beyond is not None or specs.counts is not None):
            cells = dict.fromkeys([gap.name for gap in schema.gaps], ()) if specs.counts is not None else {}
            counts = ReleasedCounts(
                beyond_share=schema.beyond_share,
                counts_share=schema.counts_share,
                beyond=None if specs.beyond is None else 0,
                cells=cells,
            )
        return cls(
            budget=budget,
            ranges={column.name: column.range for column in schema.unbounded},
            zeros=tuple(column.name for column in schema.unbounded if column.zeros),
            logarithmic=tuple(column.name for column in schema.unbounded if column.transform == "signed_log"),
            listed=tuple(column.name for column in schema.unlisted),
            share=specs.share,
            steps=specs.steps,
            counts=counts,
        )

    @property
    def counting(self) -> Counting:
        """Shares of the budget for counts."""
        return NO_COUNTS if self.counts is None else self.counts.counting

    def beyond(self, n_records: int) -> Share | None:
        """Return the share of so many records with a number beyond its released bounds; None where it is not known."""
        step = step_named(self.steps, "records_beyond")
        if step is None or self.counts is None or self.counts.beyond is None:
            return None
        return Share.of(self.counts.beyond, half_width(step), n_records)

    @property
    def left_out(self) -> str:
        """How many values bounds may leave out, in words; the core aims at more where 0 stands apart."""
        said, many = f"up to about {self.share or 0.0:.1%} of the values on either side", ", ".join(self.zeros)
        return f"{said}; of {many} up to about {OF_OTHERS:.0%} of the values other than 0" if many else said

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of which something was released."""
        return (*self.ranges, *self.listed)

    def facts(self) -> dict[str, Any]:
        """Return what was released and spent, as :attr:`PrivateFit.privacy` has it."""
        return {
            "columns": list(self.ranges),
            "listed": list(self.listed),
            "share": self.share,
            "budget": self.budget.parameters(),
            "steps": [step.to_dict() for step in self.steps],
            **({} if self.counts is None else {"beyond": self.counts.beyond, "cells": self.counts.cells}),
        }

    def check_table(self, table: Schema) -> None:
        """Refuse a schema whose columns do not have such bounds and lists."""
        numeric = numbers_of(table)
        lists = {column.name: column for column in table.columns if isinstance(column, CategoricalColumn)}
        if not set(numeric).issuperset(self.ranges):
            raise InvalidInput(f"ranges must name columns of the schema with bounds, got ranges={self.ranges!r}")
        if not set(lists).issuperset(self.listed):
            raise InvalidInput(f"listed must name columns of the schema with categories, got listed={self.listed}")
        if self.counts is not None:
            self.counts.check_columns(self.ranges, {name: len(lists[name].categories) for name in self.listed})
        source = source_of(self.budget, len(self.columns))
        for name, extent in self.ranges.items():
            column = numeric[name]
            if (getattr(column, "transform", "none") == "signed_log") is not (name in self.logarithmic):
                raise InvalidInput(
                    f"logarithmic must name columns with transform='signed_log' and no others, got {self.logarithmic}"
                )
            if extent is not None and not extent[0] <= column.lower < column.upper <= extent[1]:
                raise InvalidInput(
                    f"{name!r} must have bounds within its range {tuple(extent)}, got {(column.lower, column.upper)}"
                )
            if column.source != source or getattr(column, "outside", "clip") == "error":
                raise InvalidInput(f"the source of {name!r} must be {source!r}, got {column.source!r}")
        for name in self.listed:
            if lists[name].source != source or lists[name].other is None:
                raise InvalidInput(
                    f"{name!r} must have the source {source!r} and a category of all others, got {lists[name]}"
                )

    def specs(self, n_samples: int, unit: Persons | None, neighbors: Neighbors) -> GapSpecs:
        """Return the release as the core calibrates it, of public choices alone."""
        ranges: list[tuple[tuple[float, float] | None, bool, Transform]] = [
            (extent, name in self.zeros, "signed_log" if name in self.logarithmic else "none")
            for name, extent in self.ranges.items()
        ]
        return gap_specs(
            ranges,
            len(self.listed),
            n_samples,
            self.budget,
            unit=unit,
            neighbors=neighbors,
            counting=self.counting,
        )

    def rest_of(self, budget: Budget, *, joint: bool) -> Budget:
        """Return what a budget leaves for the release that begins with these bounds."""
        lists = bool(self.listed)
        return rest_after(self.budget, budget, stages=self.stages, lists=lists, joint=joint, counting=self.counting)

    @property
    def stages(self) -> int:
        """Number of exponential mechanisms, one after another."""
        return sum(step.step == "bounds" for step in self.steps)

    def before(self, guarantee: Guarantee, budget: Budget, *, joint: bool) -> Guarantee:
        """Return the guarantee of the bounds and what follows them together, at the budget of both.

        Under (ε, δ) the exponential mechanism of an ε is ε-DP and ε²/8-zCDP, and a count ε-DP and ε²/2-zCDP. These add
        to what follows, or ``joint`` with Gaussian noise the profile of both takes the place of the first. Lists add
        their ε and δ, and have no Rényi divergence. Pure and zero-concentrated DP add up to the budget.
        """
        if not isinstance(budget, ApproxDP):
            return Guarantee(budget, None, 0.0, 0.0)
        (epsilon, delta, rho), own = guarantee.seal, self.totals
        ranges = None
        if joint and self.stages:
            of_bounds, of_lists = _parts(self.counting.split(self.budget)[2], lists=bool(self.listed))
            ranges = _ranges(of_bounds, self.stages)
            of_counts = sum(self.counting.spent(self.budget))
            own = (of_counts + (of_lists.parameters()["epsilon"] if self.listed else 0.0), *own[1:])
        return replace(guarantee, budget=budget, ranges=ranges, seal=(epsilon + own[0], delta + own[1], rho + own[2]))

    def together(self, guarantee: Guarantee, budget: ApproxDP) -> tuple[bool, str, str]:
        """Return whether bounds and what follows spend too much together, by the guarantee of both; rule and value."""
        delta = float(guarantee.delta(budget.epsilon))
        rule = f"bounds and steps must spend together at most the budget delta={budget.delta:g}"
        return not delta <= budget.delta * (1.0 + _ROUNDING), rule, f"delta={delta:g}"

    @property
    def totals(self) -> tuple[float, float, float]:
        """Epsilon and delta that are spent under (ε, δ), and the rho that bounds the Rényi divergence."""
        spent = self.budget.parameters()
        epsilon = spent["epsilon"]
        if self.listed:
            return epsilon, spent["delta"], math.inf
        of_counts = self.counting.spent(self.budget)
        rho = (epsilon - sum(of_counts)) ** 2 / 8.0 + sum(each**2 / 2.0 for each in of_counts)
        return epsilon, 0.0, rho


def check_far_rows(on_violation: str | None, weights: Weights | None, table: Schema | None, *, weighed: bool) -> None:
    """Refuse a record of which one part alone has rows that weigh less beyond their bounds."""
    far = on_violation == "weight"
    if has_far_rows(weights) != (far and weighed) or (table is not None and far_columns(table) and not far):
        raise InvalidInput(
            "rows beyond their bounds must weigh less by on_violation, weights and schema alike, got "
            f"on_violation={on_violation!r} and weights={weights}"
        )
