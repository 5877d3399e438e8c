"""Cost of a fit and its expected precision, before any data are seen."""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from dpci import _core
from dpci.accounting.costs import Seal, Step, describe_seals, seals_from, step_names, steps_from
from dpci.accounting.guarantee import Guarantee, guarantee_of
from dpci.base.habits import PLANS
from dpci.base.tables import format_bound
from dpci.base.validation import advised, check_choice, check_count
from dpci.budgets import Budget, GaussianBudget, core_budget, planned_neighbors
from dpci.described.plan import BoundsPlan
from dpci.described.within import stage_of
from dpci.errors import DpciError, InvalidInput
from dpci.inference.intervals import TARGETS, Target, estimated_matrices
from dpci.losses import WITHOUT_INTERVALS, LossLike, Squared, describe
from dpci.mechanisms import MechanismLike
from dpci.model.keywords import (
    KEYWORDS,
    UNIT_KEYWORDS,
    check_keywords,
    default_loss,
    n_planned_columns,
    planned_unit,
    takes_moments,
    takes_newton,
)
from dpci.model.newton import NewtonPlan, plan_newton
from dpci.model.recommend import (
    are_rows_given,
    column_length,
    hidden_columns,
    noise_std_devs,
    recommended_l2_strength,
    strength_of,
    with_default_rows,
)
from dpci.model.result import PrivateFit
from dpci.model.settings import AUTO, CommonKeywords, FitKeywords, OtherKeywords, Settings
from dpci.released.model import record_of
from dpci.rows import Ball, Blocks, RowDomain, same_blocks
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema
from dpci.shown.displayed import Displayed
from dpci.shown.document import Document, Facts, Table
from dpci.shown.text import as_text
from dpci.unit import Persons, Weights, unit_in_words

if TYPE_CHECKING:
    from dpci.regression.matrix import MomentMatrix
    from dpci.regression.plan import MomentPlan
    from dpci.regression.result import LinearFit

__all__ = ["Plan", "plan"]

LEVEL = 0.95
"""Level of the intervals whose lengths a plan gives."""
_MORE_LENGTH = 1.05
"""From this ratio to that of the others on, a plan says that its longest length is the intercept's."""


@dataclass(frozen=True, repr=False)
class Plan(Displayed):
    """The public consequences of a choice of keywords. Computed without data.

    Attributes
    ----------
    steps : tuple of Step
        Noise, cost and constants by step; the moments' scales hold for parameters of any norm, the released ones are at
        most that.
    seals : tuple of Seal
        How the released numbers will be sealed against the attacks on floating point, and what that costs; the moments'
        hold for parameters of any norm.
    cost_unit : str
        "epsilon", "rho" or "mu_squared": the unit of the costs.
    least_l2_strength : float
        The fit needs ``l2_strength`` above this; 0 if there is no limit.
    noise_spectral_radius : float
        Spectral radius r_H of the noise in the Hessian; 0 without moments.
    noise_ratio : float
        r_H over the strong convexity of the objective: l2_strength, and what the loss declares. Above 10
        a fit with objective perturbation warns: the coverage of its intervals is less certain.
    projection : str
        "floor", "cautious" or "noise_aware", for parameters of any norm.
    privacy_length : tuple of float
        Least and greatest length of a 95% interval of one parameter that the noise of the coefficients alone causes.
        With ``radius`` at most 2 * radius, the ball's diameter: a longer interval tells no more than the ball does.
    column_length : float
        About the largest such length of a parameter other than the intercept, to which blocks give more noise.
    interval_length : float or None
        Expected length of the 95% intervals, on average over the parameters, if the fit's matrices are like those of
        the earlier fit ``like``; None without one.
    tolerance : float
        Distance to the minimiser that the solver must certify before anything is released.
    rows : Ball or Blocks of dpci.rows
        Public domain of the rows, without the intercept.
    row_norm : float
        Bound on the norm of a row with its intercept.
    n_params : int
        Parameters, the intercept included.
    recommended_l2_strength : float or None
        λ that public values recommend (docs/ridge_lengths.md): for predictions, or with ``target="unregularised"`` for
        intervals without the ridge. None if there is no recommendation.
    target : str
        Use of the recommendation: "regularised" or "unregularised".
    noise_std_devs : tuple of float
        Standard deviation of the coefficients' noise, by parameter, the intercept last: of what is added to the
        gradient of the mean objective, or with output perturbation to the parameters.
    hidden_columns : tuple of str
        Groups of columns whose levels the noise in the Hessian will hide: the interval of a level that most records
        have is then too short (docs/proofs/intervals.md, "Common levels"). None unless noise is in the shape of blocks.
    guarantee : Guarantee
        The (epsilon, delta) profile and the Renyi curve of all steps together.
    persons : object or None
        How much the rows of a person count, as text by ``str``, where the samples are persons.
    weights : object or None
        Public bound and total of weights, as text by ``str``.
    bounds : BoundsPlan or None
        The release of the bounds that the schema lacks; None without gaps.
    without_intervals : str or None
        Why the loss has no intervals, and noise is added to its parameters; None where it can have some.
    """

    steps: tuple[Step, ...]
    seals: tuple[Seal, ...]
    cost_unit: str
    least_l2_strength: float
    noise_spectral_radius: float
    noise_ratio: float
    projection: str
    privacy_length: tuple[float, float]
    column_length: float
    interval_length: float | None
    tolerance: float
    rows: RowDomain
    row_norm: float
    n_params: int
    recommended_l2_strength: float | None
    target: Target
    noise_std_devs: tuple[float, ...]
    hidden_columns: tuple[str, ...]
    guarantee: Guarantee = field(compare=False)
    title: str
    persons: Persons | None = None
    weights: Weights | None = None
    bounds: BoundsPlan | None = None
    without_intervals: str | None = None

    def summary(self) -> str:
        """Table of the steps, and the numbers that decide whether the fit is worth its budget (docs/glossary.md)."""
        return as_text(self._document())

    def _document(self) -> Document:
        unit = self.cost_unit.replace("_", " ")
        with_intercept = " with the intercept" if self.row_norm > self.rows.norm else ""
        rows = [
            [name, step.noise.replace("_", " "), *(f"{n:.4g}" for n in (step.cost, step.sensitivity, step.scale))]
            for name, step in zip(step_names(self.steps), self.steps, strict=True)
        ]
        facts = [
            ("parameters", f"{self.n_params}, rows of norm at most {self.row_norm:.4g}{with_intercept}"),
            *([] if isinstance(self.rows, Ball) else [("rows", f"{self.rows}")]),
            *([] if self.persons is None else [("persons", str(self.persons))]),
            *([] if self.weights is None else [("weights", str(self.weights))]),
            *([] if self.bounds is None else self.bounds.facts()),
            (
                "least lambda",
                f"above {format_bound(self.least_l2_strength, 4)}" if self.least_l2_strength > 0 else "none",
            ),
            *self._recommendation(),
            ("rounding seal", describe_seals(self.seals)),
            *self._interval_facts(),
        ]
        table = Table(["step", "noise", unit, "sensitivity", "scale"], rows)
        return Document(title=self.title, parts=[table, Facts(facts)])

    def to_dict(self) -> dict[str, Any]:
        """Return the cost by step and the numbers that decide how precise a fit can be, as JSON can hold them."""
        return {
            "title": self.title,
            "unit": "row" if self.persons is None else "person",
            "persons": None if self.persons is None else self.persons.to_dict(),
            "weights": None if self.weights is None else self.weights.to_dict(),
            "n_params": self.n_params,
            "row_norm": self.row_norm,
            "blocks": self.rows.to_dict() if isinstance(self.rows, Blocks) else None,
            "cost_unit": self.cost_unit,
            "steps": [step.to_dict() for step in self.steps],
            "seals": [seal.to_dict() for seal in self.seals],
            "least_l2_strength": self.least_l2_strength,
            "recommended_l2_strength": self.recommended_l2_strength,
            "noise_spectral_radius": self.noise_spectral_radius,
            "noise_ratio": self.noise_ratio,
            "projection": self.projection,
            "privacy_length": list(self.privacy_length) if len(self.steps) > 1 else None,
            "interval_length": self.interval_length,
            "tolerance": self.tolerance,
            "bounds": None if self.bounds is None else self.bounds.to_dict(),
        }

    def __repr__(self) -> str:
        return self.summary()

    def _recommendation(self) -> list[tuple[str, str]]:
        if self.recommended_l2_strength is None:
            return []
        purpose = "for predictions"
        if self.target == "unregularised":
            further = "a greater one is further from the target, a smaller one has more noise"
            purpose = f"for intervals without the ridge: {further}"
        return [("recommended lambda", f"{self.recommended_l2_strength:.4g} {purpose}")]

    def _interval_facts(self) -> list[tuple[str, str]]:
        if len(self.steps) == 1:
            return [("intervals", f"none, because {self.without_intervals or 'no moments are released'}")]
        ends = dict.fromkeys(f"{length:.4g}" for length in self.privacy_length)
        facts = [
            ("noise ratio", f"{self.noise_ratio:.4g}: noise in the Hessian / strong convexity of the objective"),
            ("projection", self.projection),
            ("95% interval length", f"{' to '.join(ends)} from the noise of the coefficients alone"),
        ]
        if self.privacy_length[1] > _MORE_LENGTH * self.column_length:
            more = f"the upper number is for the intercept; at most about {self.column_length:.2g} for the others"
            facts.append(("", more))
        if self.hidden_columns:
            hidden = f"the noise will hide which levels are common in {', '.join(self.hidden_columns)}"
            facts.append(("common levels", f"{hidden}; the interval of a level that most records have is too short"))
        if self.interval_length is not None:
            facts.append(
                ("", f"{self.interval_length:.4g} on average, if the data are similar to those of the earlier fit")
            )
        return facts


@overload
def plan(
    *,
    n_samples: int,
    n_features: int | None = None,
    schema: Schema | None = None,
    budget: GaussianBudget,
    mechanism: Literal["moments"],
    loss: Literal["squared"] | Squared,
    like: "LinearFit | MomentMatrix | None" = None,
    **keywords: Unpack[OtherKeywords],
) -> "MomentPlan": ...


@overload
def plan(
    *,
    n_samples: int,
    n_features: int | None = None,
    schema: Schema | PartialSchema | None = None,
    budget: Budget,
    mechanism: Literal["newton"],
    loss: LossLike | None = None,
    **keywords: Unpack[OtherKeywords],
) -> NewtonPlan: ...


@overload
def plan(
    *,
    n_samples: int,
    n_features: int | None = None,
    schema: Schema | PartialSchema | None = None,
    target: Target = "regularised",
    like: PrivateFit | None = None,
    budget: Budget,
    l2_strength: float | Literal["auto"] = "auto",
    loss: LossLike | None = None,
    mechanism: MechanismLike | None = None,
    persons: Persons | None = None,
    weights: Weights | None = None,
    **keywords: Unpack[CommonKeywords],
) -> Plan: ...


@overload
def plan(
    *,
    n_samples: int,
    n_features: int | None = None,
    schema: Schema | PartialSchema | None = None,
    target: Target = "regularised",
    like: PrivateFit | None = None,
    **keywords: Unpack[FitKeywords],
) -> Plan | NewtonPlan: ...


@advised(PLANS)  # type: ignore[misc]  # the keywords of a fit over a ball stand for those of both
def plan(
    *,
    n_samples: int,
    n_features: int | None = None,
    schema: Schema | PartialSchema | None = None,
    target: Target = "regularised",
    like: "PrivateFit | LinearFit | MomentMatrix | None" = None,
    **keywords: Unpack[FitKeywords],
) -> "Plan | NewtonPlan | MomentPlan":
    """Compute what :func:`dpci.fit` would cost with these keywords, before any data are seen.

    Parameters
    ----------
    n_samples : int
        Public number of samples, which ``neighbors="add_remove"`` takes for ``n_public``.
    n_features : int, optional
        Columns, without the intercept; None: those of the schema.
    schema : dpci.schema.Schema, optional
        See :func:`dpci.fit`: gives the number of columns and the domain of the rows. Where it names a column of
        persons the samples are persons, as ``fit`` demands, and all their rows count unless ``persons`` says otherwise.
        Of a :class:`dpci.schema.PartialSchema` the plan has the cost of the bounds, and the columns that are known.
    target : {"regularised", "unregularised"}
        Use of :attr:`Plan.recommended_l2_strength`: predictions, or intervals without the ridge, which take a
        smaller λ and thus more noise.
    like : PrivateFit, or LinearFit or MomentMatrix of dpci.regression, optional
        An earlier fit of similar data with the same columns, loss and unit of privacy, such as last year's release or a
        fit of a public sample, and with weights where the plan has weights. Its matrices then predict the length of the
        intervals, the noise in the new matrices included. Only its released values are used. A plan of a linear
        regression takes an earlier moment matrix.
    **keywords
        Keywords of :func:`dpci.fit`; ``budget`` is required. With
        ``persons=dpci.Persons()`` the samples are persons; ``weights=dpci.Weights(bound=...)`` plans a fit with
        weights. Both have no values, because a plan reads no data.

    Returns
    -------
    Plan, NewtonPlan or MomentPlan
        Costs, noise scales, the smallest ``l2_strength``, the noise ratio, and interval lengths. For the squared loss
        (``mechanism="moments"``) a :class:`dpci.regression.MomentPlan`: costs, noise, and the
        precision of the coefficients under stated assumptions. For Newton steps a :class:`NewtonPlan`: costs, and the
        lengths of intervals over those without privacy.

    Raises
    ------
    InvalidInput
        For arguments out of range, a combination that is not offered, or an earlier fit without intervals or with other
        parameters, another loss, another bound on rows or another unit of privacy. For a linear regression that public
        numbers show to be within the noise.
    RegularizationTooSmall
        If the mechanism needs a larger ``l2_strength``; the message names it.

    Examples
    --------
    >>> import dpci
    >>> plan = dpci.plan(n_samples=4000, n_features=6, budget=dpci.PureDP(1.0), l2_strength=0.01)
    >>> plan.n_params, plan.projection, plan.least_l2_strength < 0.01
    (7, 'noise_aware', True)
    """
    n_samples = check_count("n_samples", n_samples)
    partial = schema if isinstance(schema, PartialSchema) else None
    described = schema.blank if isinstance(schema, PartialSchema) else schema
    n_features = n_planned_columns(n_features, described)
    check_choice("target", target, TARGETS)
    if "neighbors" in keywords:
        keywords["neighbors"] = planned_neighbors(keywords["neighbors"], n_samples)  # type: ignore[typeddict-item]  # checked below
    check_keywords("plan", keywords, allowed=(*KEYWORDS, *UNIT_KEYWORDS), required=("budget",), advice=PLANS)
    keywords["persons"] = planned_unit(described, keywords.get("persons"))
    loss = default_loss(keywords.get("loss"), described)
    keywords["loss"] = loss
    if takes_moments(loss, keywords.get("mechanism")):
        # Imported when it is first used, as by fit.
        from dpci.model.moments import plan_moments  # noqa: PLC0415

        return plan_moments(
            n_samples=n_samples, n_columns=n_features, target=target, like=like, schema=schema, **keywords
        )
    if takes_newton(keywords.get("mechanism"), keywords.get("l2_strength", AUTO), keywords["budget"], loss):
        if target != "regularised" or like is not None:
            given = f"target={target!r}" if like is None else "like"
            raise InvalidInput(
                f"{given.partition('=')[0]} must not be given for Newton steps, which have no ridge to choose and take "
                f"no earlier fit, got {given} (pass l2_strength, or mechanism='objective')"
            )
        return plan_newton(n_samples, n_features, schema=described, partial=partial, **keywords)
    return _of_perturbation(
        n_samples,
        n_features,
        schema=described,
        partial=partial,
        target=target,
        like=like,
        **keywords,
    )


def _of_perturbation(
    n_samples: int,
    n_features: int,
    *,
    schema: Schema | None,
    partial: PartialSchema | None,
    target: Target,
    like: object,
    **keywords: Unpack[FitKeywords],
) -> Plan:
    """Plan a fit that perturbs one minimisation; see :func:`plan`. ``schema`` is the blank one of ``partial``."""
    settings = Settings.checked(schema=schema, **keywords)
    if not are_rows_given(keywords.get("rows")):
        settings = with_default_rows(settings)

    def found(settings: Settings) -> Plan:
        recommended = _recommended(settings, n_samples, n_features, target)
        return planned(settings, n_samples, n_features, target=target, recommended=recommended, like=like)

    if partial is None:
        return found(settings)
    stage = stage_of(partial, settings, settings.budget, settings.mechanism.name, n_samples)
    rest = found(replace(settings, budget=stage.rest or settings.budget))
    longer = rest.privacy_length[0] / found(settings).privacy_length[0]
    title = rest.title.replace(str(stage.rest), str(settings.budget), 1)
    return replace(rest, bounds=BoundsPlan.of(stage, longer=longer), title=title)


def planned(
    settings: Settings,
    n_samples: int,
    n_features: int,
    *,
    target: Target = "regularised",
    recommended: float | None = None,
    like: object = None,
) -> Plan:
    """Return the plan of a fit with validated keywords and as many samples and columns; see :func:`plan`."""
    spec = settings.spec(n_samples, n_features, l2_strength=strength_of(settings, n_samples, n_features))
    core = spec.plan()
    record = settings.public_record(spec)
    loss = settings.loss_words
    steps = steps_from(core["steps"])
    seals = seals_from(core["seals"])
    std_devs = noise_std_devs(settings, spec, core["n_params"])
    numbers: dict[str, Any] = {**core, "steps": steps, "seals": seals}
    return Plan(
        **numbers,
        interval_length=None if like is None else _interval_length(spec, settings, n_samples, core["n_params"], like),
        rows=settings.rows,
        persons=settings.unit,
        weights=settings.weights,
        without_intervals=WITHOUT_INTERVALS if settings.core_loss.kinked else None,
        recommended_l2_strength=recommended,
        target=target,
        noise_std_devs=tuple(std_devs.tolist()),
        hidden_columns=hidden_columns(settings, spec, steps, std_devs),
        column_length=column_length(settings, core["privacy_length"][1], std_devs),
        cost_unit=_core.cost_unit(core_budget(settings.budget), record["calibration"], record["mechanism"]),
        guarantee=guarantee_of(settings.budget, steps, seals, record, divisor=spec.divisor, n_params=core["n_params"]),
        title=_title(settings, spec, loss, n_samples),
    )


def _title(settings: Settings, spec: _core.Spec, loss: str, n_samples: int) -> str:
    counted = f"n={settings.public_n(n_samples):,}{'' if settings.unit is None else ' persons'}"
    ridge = f"lambda={spec.l2_strength:g}{' (recommended)' if settings.is_auto else ''}"
    ball = [] if settings.radius is None else [f"radius={settings.radius:g}"]
    how = f"{settings.mechanism.name} perturbation"
    return ", ".join([f"Plan: {loss} loss", how, str(settings.budget), counted, ridge, *ball])


def _interval_length(spec: _core.Spec, settings: Settings, n_samples: int, n_params: int, like: object) -> float:
    """Return the mean length of the intervals over simulated releases of the matrices of an earlier fit."""
    if not isinstance(like, PrivateFit):
        raise InvalidInput(f"like must be a PrivateFit, got {type(like).__name__}")
    if settings.moments == "none":
        raise InvalidInput('like requires a plan with intervals, got moments="none"')
    if like.interval_refusal is not None:
        raise InvalidInput(f"like must be a fit with intervals: {like.interval_refusal}")
    earlier, loss = record_of(like), settings.public_record(spec)["loss"]
    # The blocks of a schema and the ball around them have norms that differ by rounding.
    same_norm = math.isclose(settings.row_norm, earlier.row_norm, rel_tol=1e-9)
    # Gradients of persons vary less than those of their rows, and those with weights more than those without.
    units, weights = (settings.unit, earlier.persons), (settings.weights, earlier.weights)
    for same, name, expected, got in [
        (n_params == len(earlier.params), "number of parameters", n_params, len(earlier.params)),
        (same_norm, "row norm", settings.row_norm, earlier.row_norm),
        (same_blocks(settings.rows, earlier.rows), "blocks", settings.rows, earlier.rows),
        (loss == earlier.loss, "loss", describe(loss), describe(earlier.loss)),
        (units[0] == units[1], "unit of privacy", *map(unit_in_words, units)),
        (weights[0] is weights[1] or all(weights), "weights", *(one and str(one) for one in weights)),
    ]:
        if not same:
            raise InvalidInput(f"like must have the {name} of the plan, {expected}, got {got}")
    hessian, gradient_cov = estimated_matrices(earlier)
    if weights[0] is not None and weights[1] is not None:
        # That of the gradients times their weights over the mean weight, times the mean weight over the bound.
        shares = weights[0].mean_share(settings.public_n(n_samples)), weights[1].mean_share(earlier.n_samples)
        gradient_cov = gradient_cov * (shares[0] / shares[1])
    known = (earlier.params, hessian, gradient_cov, earlier.l2_strength, earlier.neighbors)
    return float(spec.expected_lengths(*known, LEVEL).mean())


def _recommended(settings: Settings, n_samples: int, n_columns: int, target: Target) -> float | None:
    """Return the recommended λ, None where public values do not tell and none is needed."""
    try:
        return recommended_l2_strength(settings, n_samples, n_columns, target=target)
    except DpciError:
        if settings.is_auto or target == "unregularised":
            raise
        return None
