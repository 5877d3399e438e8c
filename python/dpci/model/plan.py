"""What a fit will cost and how precise it can be, before any data are seen."""

import math
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np

from dpci import _core
from dpci.accounting.guarantee import GUARANTEE_FACTS, Guarantee, guarantee_of
from dpci.accounting.seals import Seal, describe_seals, seals_from
from dpci.accounting.steps import Step, steps_from
from dpci.base.tables import format_facts, format_table
from dpci.base.validation import check_count
from dpci.budgets import core_budget
from dpci.errors import InvalidInput
from dpci.inference.error_law import estimated_matrices
from dpci.losses import describe
from dpci.model.result import PrivateFit
from dpci.model.settings import (
    KEYWORDS,
    PERSON_KEYWORDS,
    FitKeywords,
    Settings,
    asks_add_remove,
    check_keywords,
    check_n_planned,
)
from dpci.released.model import record_of
from dpci.rows import Ball, RowDomain, core_blocks, same_blocks

__all__ = ["Plan", "plan"]

LEVEL = 0.95
"""Level of the intervals whose lengths a plan gives."""


@dataclass(frozen=True, repr=False)
class Plan:
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
        The fit needs ``l2_strength`` above this; 0 where any will do.
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
    noise_std_devs : tuple of float
        Standard deviation of the coefficients' noise, by parameter, the intercept last: of what is added to the
        gradient of the mean objective, or with output perturbation to the parameters.
    guarantee : Guarantee
        The (epsilon, delta) profile and the Renyi curve of all steps together.
    """

    steps: tuple[Step, ...]
    seals: tuple[Seal, ...]
    cost_unit: str
    least_l2_strength: float
    noise_spectral_radius: float
    noise_ratio: float
    projection: str
    privacy_length: tuple[float, float]
    interval_length: float | None
    tolerance: float
    rows: RowDomain
    row_norm: float
    n_params: int
    noise_std_devs: tuple[float, ...]
    guarantee: Guarantee = field(compare=False)
    title: str

    def summary(self) -> str:
        """Table of the steps, and the numbers that decide whether the fit is worth its budget."""
        unit = self.cost_unit.replace("_", " ")
        rows = [
            [
                step.step.replace("_", " "),
                step.noise.replace("_", " "),
                f"{step.cost:.4g}",
                f"{step.sensitivity:.4g}",
                f"{step.scale:.4g}",
            ]
            for step in self.steps
        ]
        facts = [
            ("parameters", f"{self.n_params}, rows of norm at most {self.row_norm:.4g}"),
            *([] if isinstance(self.rows, Ball) else [("rows", f"{self.rows}")]),
            ("least lambda", f"{self.least_l2_strength:.4g} (exclusive)" if self.least_l2_strength > 0 else "none"),
            ("seal", describe_seals(self.seals)),
            *self._interval_facts(),
        ]
        table = format_table(["step", "noise", unit, "sensitivity", "scale"], rows)
        return "\n\n".join([self.title, table, format_facts(facts)])

    def __repr__(self) -> str:
        return self.summary()

    def _interval_facts(self) -> list[tuple[str, str]]:
        if len(self.steps) == 1:
            return [("intervals", "none, because no moments are released")]
        shortest, longest = self.privacy_length
        facts = [
            ("moment noise / strong convexity", f"{self.noise_ratio:.4g} (projection {self.projection})"),
            ("95% interval length", f"{shortest:.4g} to {longest:.4g} from the noise of the coefficients alone"),
        ]
        if self.interval_length is not None:
            facts.append(
                ("", f"{self.interval_length:.4g} on average, if the data are similar to those of the earlier fit")
            )
        return facts


def plan(*, n_samples: int, n_features: int, like: PrivateFit | None = None, **keywords: Unpack[FitKeywords]) -> Plan:
    """Say what :func:`dpci.fit` would cost with these keywords, before any data are seen.

    Parameters
    ----------
    n_samples : int
        Public number of samples; under ``neighbors="add_remove"`` the same as ``n_public``, which may be left out.
    n_features : int
        Columns, without the intercept.
    like : PrivateFit, optional
        An earlier fit of similar data with the same columns and loss, such as last year's release or a fit of a public
        sample. Its matrices then predict the length of the intervals, the noise in the new matrices included. Only its
        released values are used.
    **keywords
        Keywords of :func:`dpci.fit`; ``budget`` and ``l2_strength`` are required. With ``contribution`` or ``max_rows``
        the samples are persons.

    Returns
    -------
    Plan
        Costs, noise scales, the least ``l2_strength``, the moment noise against it, and interval lengths.

    Raises
    ------
    InvalidInput
        For arguments out of range, a combination that is not offered, or an earlier fit without intervals or with other
        parameters, another loss or another bound on rows.
    RegularizationTooSmall
        If the mechanism needs a greater ``l2_strength``; the message names it.

    Examples
    --------
    >>> import dpci
    >>> plan = dpci.plan(n_samples=4000, n_features=6, budget=dpci.PureDP(1.0), l2_strength=0.01)
    >>> plan.n_params, plan.projection, plan.least_l2_strength < 0.01
    (7, 'noise_aware', True)
    """
    n_samples = check_count("n_samples", n_samples)
    n_features = check_count("n_features", n_features, least=0)
    if asks_add_remove(keywords):
        keywords["n_public"] = check_n_planned(n_samples, keywords.get("n_public"))
    check_keywords("plan", keywords, allowed=(*KEYWORDS, *PERSON_KEYWORDS))
    settings = Settings.checked(**keywords)
    spec = settings.spec(n_samples, n_features)
    core = spec.plan()
    record = settings.public_record(spec)
    loss = describe(record["loss"])
    steps = steps_from(core["steps"])
    seals = seals_from(core["seals"])
    numbers: dict[str, Any] = {**core, "steps": steps, "seals": seals}
    return Plan(
        **numbers,
        interval_length=None if like is None else _interval_length(spec, core["n_params"], record, settings.rows, like),
        rows=settings.rows,
        noise_std_devs=tuple(_std_devs(settings, steps[0], settings.public_n(n_samples), core["n_params"])),
        cost_unit=_core.cost_unit(core_budget(settings.budget), settings.calibration, settings.mechanism.name),
        guarantee=guarantee_of(
            settings.budget,
            steps,
            seals,
            n_samples=settings.public_n(n_samples),
            n_params=core["n_params"],
            **{name: record[name] for name in GUARANTEE_FACTS},
        ),
        title=f"Plan: {loss} loss, {settings.mechanism.name} perturbation, {settings.budget}, "
        f"n={settings.public_n(n_samples):,}, lambda={spec.l2_strength:g}"
        + ("" if settings.radius is None else f", radius={settings.radius:g}"),
    )


def _interval_length(
    spec: _core.Spec, n_params: int, planned: dict[str, Any], rows: RowDomain, like: PrivateFit
) -> float:
    """Return the mean length of the intervals over simulated releases of the matrices of an earlier fit."""
    if not isinstance(like, PrivateFit):
        raise InvalidInput(f"like must be a PrivateFit, got {type(like).__name__}")
    if planned["moments"] == "none":
        raise InvalidInput('like requires a plan with intervals, got moments="none"')
    if like.interval_refusal is not None:
        raise InvalidInput(f"like must be a fit with intervals: {like.interval_refusal}")
    earlier = record_of(like)
    # The blocks of a schema and the ball around them have norms that differ by rounding.
    same_norm = math.isclose(planned["row_norm"], earlier.row_norm, rel_tol=1e-9)
    for same, name, expected, got in [
        (n_params == len(earlier.params), "number of parameters", n_params, len(earlier.params)),
        (same_norm, "row norm", planned["row_norm"], earlier.row_norm),
        (same_blocks(rows, earlier.rows), "blocks", rows, earlier.rows),
        (planned["loss"] == earlier.loss, "loss", describe(planned["loss"]), describe(earlier.loss)),
    ]:
        if not same:
            raise InvalidInput(f"like must have the {name} of the plan, {expected}, got {got}")
    hessian, gradient_cov = estimated_matrices(earlier)
    lengths = spec.expected_lengths(
        earlier.params, hessian, gradient_cov, earlier.l2_strength, earlier.neighbors, LEVEL
    )
    return float(lengths.mean())


def _std_devs(settings: Settings, step: Step, n_samples: int, n_params: int) -> list[float]:
    """Return the standard deviations of the noise of the coefficients."""
    # Objective perturbation adds its draw to n times the gradient.
    scale = step.scale / (n_samples if settings.mechanism.name == "objective" else 1)
    if step.noise == "gaussian":
        return [scale] * n_params
    shape = core_blocks(settings.rows, settings.intercept)
    if shape is None or step.noise == "spherical_laplace":
        return [scale * math.sqrt(n_params + 1.0)] * n_params
    if step.noise == "shaped_gaussian":
        return list(scale * np.sqrt(shape.metric()))
    # A radius of Gamma(D + 1) times a uniform point of the blocks.
    return list(scale * np.sqrt((n_params + 1.0) * (n_params + 2.0) * shape.variances()))
