"""Guarantees of a release beyond its budget: the (epsilon, delta) profile and the Renyi curve, for composition."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri_exp

from dpci import _core
from dpci.accounting.costs import Seal, Step, seal_cost, seal_costs
from dpci.budgets import GDP, ZCDP, ApproxDP, Budget, GaussianBudget, PureDP, core_budget
from dpci.data.arrays import as_numbers
from dpci.errors import InvalidInput
from dpci.losses import SEVERAL

__all__ = ["Guarantee"]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Exponential mechanisms before Gaussian noise, which compose in one profile (docs/proofs/bounds.md)."""

    stage_epsilon: float
    """Epsilon of each."""
    stages: int
    """Number of them."""

    def delta(self, epsilon: float, mu: float) -> float:
        """Return a bound on delta of all of them and then Gaussian releases that compose to ``mu``."""
        return _core.joint_delta(epsilon, mu, stage_epsilon=self.stage_epsilon, stages=self.stages)

    def rest_of(self, whole: ApproxDP) -> ApproxDP:
        """Return the greatest budget of a Gaussian mechanism that spends ``whole`` together with them.

        Both epsilons may add up to more.
        """
        rest = _core.joint_rest(whole.epsilon, whole.delta, stage_epsilon=self.stage_epsilon, stages=self.stages)
        return ApproxDP(rest, whole.delta)


@dataclass(frozen=True, slots=True, eq=False)
class Guarantee:
    """The guarantee of all steps of a fit together, as curves. Public: it depends on no data and on no outcome.

    Made by ``result.guarantee`` and ``plan.guarantee``. The curves hold for the neighbouring relation of the fit.
    """

    budget: GaussianBudget
    profile: _core.ObjectiveProfile | None
    """How Gaussian objective perturbation composes; None for other mechanisms."""
    shift: float
    """Shift of Gaussian objective perturbation: LR/std_dev, with the slope bound L and the row bound R."""
    mu: float
    """Under ApproxDP: sensitivity/std_dev of the (other) Gaussian releases, composed; under GDP its mu."""
    seal: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Under ApproxDP: epsilon and delta that the seals spend, and the rho of their discrete Gaussian noise."""
    ranges: Ranges | None = None
    """Under ApproxDP: exponential mechanisms that compose with Gaussian releases; None for others."""

    def delta(self, epsilon: ArrayLike) -> NDArray[np.float64]:
        """Return the delta at which the release is (epsilon, delta)-DP, of the shape of ``epsilon``.

        For pure DP it is that of randomised response, the worst mechanism with this epsilon. zCDP: Canonne, Kamath &
        Steinke (2020). Gaussian output perturbation: exact (Balle & Wang 2018). Gaussian objective perturbation: see
        docs/proofs/mechanisms.md.

        Raises
        ------
        InvalidInput
            Unless every epsilon is finite and at least 0.
        """
        return _elementwise(self._delta, "epsilon", epsilon, least=0.0)

    def rdp(self, order: ArrayLike) -> NDArray[np.float64]:
        """Return a bound on the Renyi divergence between neighbours, in both directions, of the shape of ``order``.

        The divergences of several mechanisms on the same data add up, order by order (Mironov 2017).

        Raises
        ------
        InvalidInput
            Unless every order is finite and above 1.
        """
        return _elementwise(self._rdp, "order", order, least=np.nextafter(1.0, 2.0))

    def _delta(self, epsilon: float) -> float:
        if isinstance(self.budget, PureDP):
            whole = self.budget.epsilon
            # (e^whole - e^epsilon) / (1 + e^whole), without overflow.
            return max(0.0, -math.expm1(epsilon - whole) / (1.0 + math.exp(-whole))) if epsilon < whole else 0.0
        if isinstance(self.budget, ZCDP):
            return _core.zcdp_to_approx_delta(self.budget.rho, epsilon)
        # A profile never rises, so what holds at 0 holds everywhere: objective perturbation says nothing near 0.
        return min(self._sealed_delta(epsilon), self._sealed_delta(0.0))

    def _sealed_delta(self, epsilon: float) -> float:
        seal_epsilon, seal_delta, _ = self.seal
        rest = epsilon - seal_epsilon
        if rest >= 0.0:
            return min(1.0, seal_delta + self._unsealed_delta(rest))
        # The hockey-stick divergence at a negative epsilon is that in the other direction at its size.
        return min(1.0, seal_delta - math.expm1(rest) + math.exp(rest) * self._unsealed_delta(-rest))

    def _unsealed_delta(self, epsilon: float) -> float:
        if self.ranges is not None:
            return self.ranges.delta(epsilon, self.mu)
        if self.profile is None:
            return _core.gaussian_delta(epsilon, self.mu)
        return self.profile.delta(epsilon, self.shift, self.mu)

    def _rdp(self, order: float) -> float:
        if isinstance(self.budget, PureDP):
            return _core.pure_rdp(self.budget.epsilon, order)
        if isinstance(self.budget, ZCDP):
            return order * self.budget.rho
        seal = order * self.seal[2]
        if self.profile is None:
            return seal + order * self.mu**2 / 2.0
        return seal + self.profile.rdp(order, self.shift, self.mu)


def guarantee_of(
    budget: Budget,
    steps: Iterable[Step],
    seals: Iterable[Seal],
    facts: Mapping[str, Any],
    *,
    divisor: float,
    n_params: int,
) -> Guarantee:
    """Return the guarantee of a fit from its steps, seals and public facts, by the names of a record.

    ``divisor`` divides the sums over the records. Among the facts, the rows are without intercept, and the bounds on
    slope and curvature are those of the loss on the domain.
    """
    if not isinstance(budget, ApproxDP):
        return Guarantee(budget, None, 0.0, 0.0)
    steps = tuple(steps)
    seal = seal_totals(seals, steps)
    if facts["mechanism"] == "newton":
        # Steps of one name are several.
        return Guarantee(budget, None, 0.0, math.hypot(*(step.sensitivity / step.scale for step in steps)), seal)
    counted_in = core_budget(budget), facts["calibration"], facts["mechanism"]
    # A release that these parameters made needless counts with what it was allowed: the guarantee is the mechanism's.
    ratios = {
        step.step: step.sensitivity / step.scale if step.scale > 0.0 else _core.step_mu(*counted_in, step.cost)
        for step in steps
    }
    if facts["mechanism"] == "output":
        return Guarantee(budget, None, 0.0, math.hypot(*ratios.values()), seal)
    if "coefficients" not in ratios:
        raise InvalidInput(f"the steps of a fit must hold the coefficients, got {sorted(ratios)}")
    loss, rows, intercept, persons = facts["loss"], facts["rows"], facts["intercept_scale"], facts["persons"]
    # The coefficients were calibrated to the longest shift of the noise, the profile takes that of one record.
    coefficients = next(step for step in steps if step.step == "coefficients")
    longest = coefficients.sensitivity
    # In the metric of blocks no row is longer than 1.
    norm = 1.0 if coefficients.noise == "shaped_gaussian" else math.hypot(rows.norm, intercept or 0.0)
    steepest = facts["slope_bound"] * norm
    profile = _core.ObjectiveProfile(
        n_samples=divisor,
        row_norm=rows.norm,
        intercept=intercept,
        curvature_bound=facts["curvature_bound"],
        l2_strength=facts["l2_strength"],
        one_signed=loss["one_signed"],
        neighbors=facts["neighbors"],
        pair=longest / steepest if steepest > 0.0 else 2.0,
        n_params=n_params,
        n_classes=None if loss["name"] != SEVERAL else int(loss["target_bounds"][1]) + 1,
        persons=persons is not None,
        max_rows=None if persons is None else persons.max_rows,
    )
    shift = ratios.pop("coefficients") / profile.shift
    return Guarantee(budget, profile, shift, math.hypot(*ratios.values()), seal)


def seal_totals(seals: Iterable[Seal], steps: Iterable[Step]) -> tuple[float, float, float]:
    """Return epsilon, delta and rho of all seals of a release under ApproxDP together: each adds up."""
    costs = [(cost["epsilon"], cost["delta"]) for cost in seal_costs(seals, steps)]
    rho = sum(_core.approx_to_zcdp(epsilon, delta, "tight") for epsilon, delta in costs)
    return sum(epsilon for epsilon, _ in costs), sum(delta for _, delta in costs), rho


def _elementwise(
    function: Callable[[float], float], name: str, values: ArrayLike, *, least: float
) -> NDArray[np.float64]:
    numbers = as_numbers(name, values).astype(np.float64)
    refused = ~((numbers >= least) & np.isfinite(numbers))
    if refused.any():
        rule = ">= 0" if least == 0.0 else "> 1"
        raise InvalidInput(f"{name} must be finite and {rule}, got {name}={numbers[refused].flat[0]}")
    return np.asarray([function(float(number)) for number in numbers.ravel()], dtype=np.float64).reshape(numbers.shape)


# Of the budget: what rounding may do to a sum of costs.
_ROUNDING = 1e-9
# Of the budget: what the decimals of a ledger may leave, and a step that is not calibrated to the last digit.
_UNSPENT = 1e-6


def spending_contradictions(
    budget: GaussianBudget,
    steps: tuple[Step, ...],
    seals: tuple[Seal, ...],
    guarantee: Callable[[], Guarantee],
) -> Iterator[tuple[bool, str, str]]:
    """Yield, for each rule of the costs, whether it is broken, the rule and the value; stop at the first broken one.

    Pure and zero-concentrated DP add up. Gaussian DP adds the squares of mu, with a pure epsilon of a seal at the mu of
    randomised response (Dong, Roth & Su 2022). Approximate DP composes steps and seals in the profile of ``guarantee``,
    which is called for it alone.
    """
    unit = ("epsilon",) if isinstance(budget, GDP) else tuple(budget.parameters())
    for seal in seals:
        other = tuple(seal.cost) != unit
        yield other, f"the cost of a seal must be in {' and '.join(unit)}, as the budget", f"cost={seal.cost}"
    # Whoever stops at the first contradiction never gets here with a cost in another unit.
    spent = seal_cost(seals, steps)
    together = sum(step.cost for step in steps)
    if isinstance(budget, ApproxDP):
        for name, whole in budget.parameters().items():
            yield _beyond(name, spent[name], whole)
        delta = float(guarantee().delta(budget.epsilon))
        rule = f"the steps and seals must spend at most the budget delta={budget.delta:g} at epsilon={budget.epsilon:g}"
        yield not delta <= budget.delta * (1.0 + _ROUNDING), rule, f"delta={delta:g}"
        return
    if isinstance(budget, GDP):
        of_seals = sum((2.0 * float(ndtri_exp(-np.logaddexp(0.0, seal.cost["epsilon"])))) ** 2 for seal in seals)
        yield _beyond("mu", math.sqrt(together + of_seals), budget.mu)
        return
    for name, whole in budget.parameters().items():
        found = together + spent[name]
        yield _beyond(name, found, whole)
        rule = f"the steps and seals must spend the whole budget {name}={whole:g}"
        yield not found >= whole * (1.0 - _UNSPENT), rule, f"{found:g}"


def check_spending(
    budget: GaussianBudget,
    steps: tuple[Step, ...],
    seals: tuple[Seal, ...],
    guarantee: Callable[[], Guarantee],
) -> None:
    """Refuse steps of additive noise that cost something else than their noise, and what exceeds the budget."""
    for step in steps:
        ratio = step.sensitivity / step.scale
        cost = ratio if isinstance(budget, PureDP) else ratio**2 / (2.0 if isinstance(budget, ZCDP) else 1.0)
        if not math.isclose(step.cost, cost, rel_tol=_ROUNDING):
            rule = f"the cost of the step {step.step!r} must be that of its noise, {cost:g}"
            raise InvalidInput(f"{rule}, got {step.cost:g}")
    for broken, rule, value in spending_contradictions(budget, steps, seals, guarantee):
        if broken:
            raise InvalidInput(f"{rule}, got {value}")


def _beyond(name: str, spent: float, whole: float) -> tuple[bool, str, str]:
    rule = f"the steps and seals must spend at most the budget {name}={whole:g}"
    return not spent <= whole * (1.0 + _ROUNDING), rule, f"{spent:g}"
