"""Newton steps in a fit: the specification for the core, the plan, and what the release gives to the record."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dpci import _core
from dpci.accounting.costs import Seal, Step, describe_seals, noise_of, seal_facts, seals_from, step_names, steps_from
from dpci.budgets import ZCDP, Budget, PureDP, check_budget, core_budget
from dpci.data.rows import Rows
from dpci.described.plan import BoundsPlan
from dpci.described.within import stage_of
from dpci.errors import InvalidInput
from dpci.losses import Custom
from dpci.mechanisms import NewtonSteps
from dpci.model.keywords import check_keywords, check_references, default_loss, takes_newton, used_keywords
from dpci.model.settings import AUTO, Settings
from dpci.released.newton import Newton, least_marks
from dpci.rows import core_rows, read_rows
from dpci.schema.cells import MARK
from dpci.schema.partial import PartialSchema, known_of
from dpci.schema.table import Schema, category_names
from dpci.shown.displayed import Displayed
from dpci.shown.document import Document, Facts
from dpci.shown.text import as_text
from dpci.unit import core_terms

_INSTEAD = " (pass l2_strength for objective perturbation)"
"""Advice to callers who did not choose Newton steps by name."""


def check_newton(keywords: dict[str, Any]) -> None:
    """Refuse a ridge, and keywords of :func:`dpci.fit` that only other mechanisms use."""
    strength = keywords.get("l2_strength", AUTO)
    if not (isinstance(strength, str | int | float) and strength in {AUTO, 0.0}):
        raise InvalidInput(
            f"l2_strength must be 'auto' with mechanism='newton', which has no ridge, got l2_strength={strength!r}"
        )
    advice = _INSTEAD if keywords.get("mechanism") is None else ""
    used_keywords(keywords, NewtonSteps.name, allowed=("classes",), advice=advice)
    schema = keywords.get("schema")
    if isinstance(schema, Schema | PartialSchema):
        intercept = read_rows(keywords.get("rows"))[2] is not None and known_of(schema).has_constant
        check_references(schema, fit_intercept=intercept, ridge="l2_strength=, the weight of a ridge")


def for_groups(
    function: str,
    keywords: Mapping[str, Any],
    budget: object,
    *,
    allowed: Collection[str],
    schema: Schema | None = None,
) -> dict[str, Any]:
    """Return the keywords of a function that fits many tables, with Newton steps where these ask for them."""
    fitted = dict(keywords)
    loss = default_loss(keywords.get("loss"), schema)
    if takes_newton(keywords.get("mechanism"), keywords.get("l2_strength", AUTO), check_budget(budget), loss):
        check_newton({**fitted, "schema": schema})
        fitted |= {"l2_strength": 0.0, "mechanism": NewtonSteps()}
    check_keywords(function, fitted, allowed=allowed, required=())
    return {**fitted, "loss": loss}


def newton_spec(settings: Settings, n_samples: int, n_columns: int, *, budget: Budget) -> _core.NewtonSpec:
    """Return the specification of a fit by Newton steps of a table of this size."""
    settings.rows.check_columns(n_columns)
    if isinstance(settings.loss, Custom) and settings.loss.predictor_bound is not None:
        # No ball holds the predictors, on which the bounds of slope and curvature are declared.
        raise InvalidInput(
            "mechanism='newton' requires bounds of a custom loss that hold for every predictor, got "
            f"predictor_bound={settings.loss.predictor_bound:g} (pass l2_strength and radius, for objective "
            "perturbation)"
        )
    return _core.NewtonSpec(
        core_terms(settings.public_n(n_samples), settings.neighbors, settings.unit, settings.weights),
        n_columns=n_columns,
        intercept=settings.intercept,
        row_norm=core_rows(settings.rows),
        loss=settings.core_loss,
        budget=core_budget(budget),
    )


def newton_release(rows: Rows, spec: _core.NewtonSpec, settings: Settings) -> dict[str, Any]:
    """Release a fit by Newton steps of rows that are read and paid for; return what a record has of it."""
    on_violation, n_threads, seed = settings.treatment, settings.n_threads, settings.seed
    found: Mapping[str, Any] = _core.release(
        spec, rows.source, on_violation=on_violation, n_threads=n_threads, seed=seed
    )
    moved = {part.name: found[part.name] for part in fields(Newton) if part.name != "params"}
    newton = Newton(params=found["moved_params"], **moved)
    kept = ("params", "hessian", "gradient_cov", "noise_scale", "steps", "seals", "private")
    return {
        **{name: found[name] for name in kept},
        "newton": newton,
        "noise_law": "gaussian" if newton.ridge == 0.0 else "spherical_laplace",
        "noise_spectral_radius": 0.0,
        "projection": "noise_aware",
    }


@dataclass(frozen=True, repr=False)
class NewtonPlan(Displayed):
    """The public consequences of a choice of keywords of a fit by Newton steps. Computed without data.

    Pairs are for rows whose lengths, once they are round, hardly differ, and for rows with heavy tails. Their constants
    were fitted to lengths of real tables (docs/evidence/plan_lengths.md). Coefficients of rare categories, and fits of
    a rare class, have longer intervals.

    Attributes
    ----------
    length : tuple of float
        Length of an interval over that without privacy; under pure DP if the mean curvature is .6 of its bound.
    one_row_length : tuple of float or None
        The same if each person has one row, which weighs ``1 / max_rows``; None where that is 1.
    gives_intervals : tuple of bool
        Whether the mean curvature is above the noise in the Hessian, without which a fit has no intervals.
    steps : tuple of Step
        Noise, cost and constants by step, for the first of the two.
    seals : tuple of Seal
        How the released numbers will be sealed, and what that costs.
    cost_unit : str
        "epsilon", "rho" or "mu_squared": the unit of the costs.
    n_params : int
        Parameters, the intercept included. Of a schema with unknown categories only the public ones are counted.
    bounds : BoundsPlan or None
        The release of the bounds that the schema lacks; None without gaps.
    rare : tuple of str
        Columns of zeros and ones, in words: those of categories, and those that mark missing cells.
    least_marks : int
        Number of records that such a column must mark for its coefficient to have an interval, about; with eight times
        as many its interval is about as long as others.
    lacking : float
        Noise in the Hessian of even rows over the most with which a fit has intervals: 2 asks for twice the records.
    """

    length: tuple[float, float]
    gives_intervals: tuple[bool, bool]
    steps: tuple[Step, ...]
    seals: tuple[Seal, ...]
    cost_unit: str
    n_params: int
    title: str = field(repr=False)
    bounds: BoundsPlan | None = None
    rare: tuple[str, ...] = ()
    least_marks: int = 0
    lacking: float = 0.0
    one_row_length: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the cost by step and the expected lengths, as JSON can hold them."""
        return {
            "title": self.title,
            "n_params": self.n_params,
            "length": list(self.length),
            "one_row_length": None if self.one_row_length is None else list(self.one_row_length),
            "gives_intervals": list(self.gives_intervals),
            "cost_unit": self.cost_unit,
            "steps": [step.to_dict() for step in self.steps],
            "seal": seal_facts(self.seals),
            "bounds": None if self.bounds is None else self.bounds.to_dict(),
            "rare": list(self.rare),
            "least_marks": self.least_marks,
            "lacking": self.lacking,
        }

    def summary(self) -> str:
        """Return the plan as text."""
        return as_text(self._document())

    def _document(self) -> Document:
        even, heavy = (f"{length:.2f} times that without privacy" for length in self.length)
        unit = self.cost_unit.replace("_", " ")
        names = step_names(self.steps)
        steps = [(f"  {name}", f"{unit} {step.cost:.4g}") for name, step in zip(names, self.steps, strict=True)]
        least = self.least_marks
        rare = f"each needs about {least:,} records for an interval, {8 * least:,} for a short one"
        facts = [
            ("interval length, even rows", even),
            ("interval length, heavy tails", heavy),
            *([] if self.one_row_length is None else [("if persons have one row", self._one_row())]),
            ("intervals", self._expected()),
            *([(" and ".join(self.rare), rare)] if self.rare else []),
            ("parameters", f"{self.n_params}"),
            *([] if self.bounds is None else self.bounds.facts()),
            ("budget" if self.bounds is None else "budget of the fit", ""),
            *steps,
            ("  rounding seal", describe_seals(self.seals)),
        ]
        return Document(parts=[Facts(facts)], title=self.title)

    def _one_row(self) -> str:
        """Return what fewer rows than the most of a person cost."""
        even, heavy = self.one_row_length or self.length
        first = "" if self.bounds is None else "; first release the bounds by dpci.release_schema"
        return (
            f"{even:.2f} times, with heavy tails {heavy:.2f}, because each row weighs 1/max_rows (without max_rows "
            f"intervals are shorter{first})"
        )

    def _expected(self) -> str:
        """Return whether fits have intervals, and what would give them."""
        if all(self.gives_intervals):
            return "expected"
        if any(self.gives_intervals):
            return "likely; with heavy tails some fits have none"
        budget = self.lacking**2 if self.cost_unit == "rho" else self.lacking
        more = f"{max(self.lacking, 1.1):.2g} times as many records, a budget {max(budget, 1.1):.2g} times as large"
        if self.lacking <= _NEARLY:
            return f"uncertain: some fits may have none (take {more}, or fewer columns)"
        return f"not expected: the noise hides the curvature (take about {more}, or fewer columns)"

    def __repr__(self) -> str:
        return self.summary()


_NEARLY = 1.5
"""How many times as many records a plan may lack whose fits often have intervals nevertheless."""
_NORMS = ((4.0, 3.0), (9.0, 8.0))
"""Bounds on gradients, over the root of the number of parameters, and on Hessians, over that number, of even rows and
of rows with heavy tails, where the noise is small."""
_RADII = ((1.5, 1.5), (4.0, 4.0))
"""The same under pure DP: the longest row, and the bound on a Hessian over the bound on the curvature."""
_DEAR, _CUT = 1.44, (3.0, 2.0)
"""Noise over sampling variance up to which the core keeps a bound on gradients, and how far it then falls at most."""
_CURVATURE = 0.6
"""Mean curvature over its bound: of the logistic loss where a fifth of the records is of the rarer class."""


def plan_newton(
    n_samples: int,
    n_features: int,
    *,
    schema: Schema | None,
    partial: PartialSchema | None = None,
    **keywords: Any,  # noqa: ANN401  # of fit
) -> NewtonPlan:
    """Plan a fit by Newton steps; see :func:`dpci.plan`.

    ``schema`` is the blank one of ``partial``, where that has gaps.
    """
    check_newton({**keywords, "schema": partial or schema})
    settings = Settings.checked(schema=schema, **{**keywords, "l2_strength": 0.0, "mechanism": NewtonSteps()})
    pure = isinstance(settings.budget, PureDP)
    most_rows = 1 if settings.unit is None else settings.unit.max_rows or 1
    unit = "epsilon" if pure else "rho" if isinstance(settings.budget, ZCDP) else "mu_squared"
    n = f"n={settings.public_n(n_samples):,}{'' if settings.unit is None else ' persons'}"
    title = f"Plan: {settings.loss_words} loss, Newton steps, {settings.budget}, {n}"

    def planned(budget: Budget, bounds: BoundsPlan | None = None) -> NewtonPlan:
        spec = newton_spec(settings, n_samples, n_features, budget=budget)
        n_params = n_features + settings.has_constant
        # Hessians are about I, but those of rows that are round alone.
        curvature = _CURVATURE * spec.curvature_bound if pure else 1.0
        lengths: list[float] = []
        of_one_row: list[float] = []
        lacking, found = [], []
        n_radii, n_points = spec.counts
        for (of_root, of_square), cut in zip(_RADII if pure else _NORMS, _CUT, strict=True):
            gradient, hessian = of_root * math.sqrt(n_params), of_square * n_params
            if pure:
                gradient, hessian = gradient * spec.slope_bound, hessian * spec.curvature_bound
            points = [[gradient, hessian, 1.0]] * n_points
            radii = [of_root * math.sqrt(n_params)] * n_radii
            steps, seals = spec.planned(radii, points)
            # The gradient's noise over its sampling error, of a likelihood.
            noise = spec.noise_scale(radii, points) ** 2 * (n_params + 1.0 if pure else 1.0) / spec.divisor
            ratio = noise / curvature
            for times, into in ((1.0, lengths), (most_rows**2, of_one_row)):
                shown = times * ratio
                into.append(math.sqrt(1.0 + (shown if pure or shown <= _DEAR else max(_DEAR, shown / cut))))
            law, scale = noise_of(steps_from(steps), "hessian") or ("gaussian", 0.0)
            edge = math.sqrt(2.0 * n_params) * _core.sealed_std_dev(law, scale=scale, dim=n_params, seal_std_dev=0.0)
            lacking.append(_core.SEEN_CURVATURE * edge / curvature)
            found.append((steps_from(steps), seals_from(seals)))
        steps_shown, seals_shown = found[0]
        return NewtonPlan(
            length=(lengths[0], lengths[1]),
            one_row_length=(of_one_row[0], of_one_row[1]) if most_rows > 1 else None,
            gives_intervals=(lacking[0] <= 1.0, lacking[1] <= 1.0),
            steps=steps_shown,
            seals=seals_shown,
            cost_unit=unit,
            n_params=n_params,
            title=title,
            bounds=bounds,
            rare=() if schema is None else _rare(schema),
            least_marks=least_marks(steps_shown, pure=pure),
            lacking=lacking[0],
        )

    if partial is None:
        return planned(settings.budget)
    stage = stage_of(partial, settings, settings.budget, settings.mechanism.name, n_samples)
    known, rest = planned(settings.budget), stage.rest or settings.budget
    longer = planned(rest).length[0] / known.length[0]
    return planned(rest, BoundsPlan.of(stage, longer=longer))


def _rare(schema: Schema) -> tuple[str, ...]:
    """Return which columns of zeros and ones a schema has, in words."""
    marked = any(name.endswith(MARK) for name in schema.names)
    return (*(["categories"] if category_names(schema) else []), *(["missing cells"] if marked else []))
