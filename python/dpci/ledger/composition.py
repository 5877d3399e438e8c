"""Total cost of the spends of a ledger: exact sums of decimals, and one proved bound where notions mix.

The proofs are in docs/proofs/ledger.md; the numbers in brackets are sections of docs/ledger.md.
"""

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.budgets import ZCDP, ApproxDP, Budget, PureDP, exact, printed_beyond
from dpci.errors import InvalidInput

_GRID = 1.0 + np.exp2(np.arange(-4, 25) / 2.0)
"""Orders besides the main one. Part of the format of ledgers: a reserve written yesterday means the same tomorrow."""
_SHARED = 0.9
"""Share of the remaining delta that the reserve takes, and share of the reserve that the main order takes."""
_ULPS = 16
"""Relative room for the rounding of one evaluation in f64, in units of 2**-52; each term of a sum adds one."""
_LEAST_DELTA = 1e-290
"""Below it the shares of the reserve would leave the range of f64."""
_GREATEST = 1e100


def rounded_down(budget: Budget) -> Budget:
    """Return the largest budget in floats that is at most the decimals of ``budget``, as rational numbers."""
    return type(budget)(**{name: _float_within(exact(value)) for name, value in budget.parameters().items()})


def _float_within(value: Fraction) -> float:
    """Return the largest float that is at most ``value``."""
    number = float(value)
    return number if Fraction(number) <= value else math.nextafter(number, -math.inf)


def _printed_within(value: Fraction) -> float:
    """Return a float, mostly the largest one, whose decimal is at most ``value``."""
    number = float(value)
    while exact(number) > value:
        number = math.nextafter(number, -math.inf)
    return number


@dataclass(frozen=True)
class Reserve:
    """Part of an (epsilon, delta) total that the first zCDP spend sets aside; it never changes afterwards [4]."""

    order: float
    """The main Renyi order."""
    delta: float
    """The part of the total's delta that converts Renyi divergences."""
    share: float
    """The main order's share of that delta; the orders of the grid divide the rest."""

    def orders(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the orders, and what each has to pay in epsilon for its part of delta."""
        if self.share == 1.0:
            orders, deltas = np.array([self.order]), np.array([self.delta])
        else:
            orders = np.append(_GRID, self.order)
            rest = self.delta * (1.0 - self.share) / len(_GRID)
            deltas = np.append(np.full(len(_GRID), rest), self.delta * self.share)
        # Downwards: the shares of delta were computed in f64.
        return orders, _conversion(orders, deltas * (1.0 - 2.0**-50))

    def parameters(self) -> dict[str, float]:
        """Return the numbers by name."""
        return {"order": self.order, "delta": self.delta, "share": self.share}


def _conversion(order: NDArray[np.float64], delta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return K with: divergence r at the order implies (r + K, delta)-DP (Canonne, Kamath & Steinke 2020)."""
    parts = np.stack([-np.log(delta), order * np.log1p(-1.0 / order), -np.log(order - 1.0)])
    return _sum_rounded_up(parts / (order - 1.0), _ULPS)


def _sum_rounded_up(parts: NDArray[np.float64], ulps: int) -> NDArray[np.float64]:
    """Return the sum over the first axis of terms that are exact to ``ulps`` units of 2**-52, rounded up."""
    total: NDArray[np.float64] = parts.sum(axis=0) + ulps * 2.0**-52 * np.abs(parts).sum(axis=0)
    return total


@dataclass
class Account:
    """The spends so far against a total. Every bound is one that holds for adaptively chosen spends."""

    total: Budget
    epsilon: Fraction = Fraction(0)
    """Pure and approximate spends, added."""
    delta: Fraction = Fraction(0)
    """Approximate spends, added."""
    rho: Fraction = Fraction(0)
    """zCDP spends, added; under a zCDP total pure ones too, converted."""
    reserve: Reserve | None = None
    _before: Fraction = Fraction(0)
    """``epsilon`` when the reserve was set aside."""
    _orders: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _conversions: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _pure: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """By order: the divergences of the pure parts of the spends since then."""
    _terms: int = 0

    def after(self, spends: Iterable[tuple[Budget, Reserve | None]]) -> "Account":
        """Return the account after these further spends, each with the reserve that it set aside."""
        # Everything that `add` changes is replaced, not written into, so a shallow copy will do.
        account = copy.copy(self)
        for budget, reserve in spends:
            account.add(budget, reserve)
        return account

    def add(self, budget: Budget, reserve: Reserve | None = None) -> None:
        """Count a spend; ``reserve`` is what :meth:`reserve_for` said before it."""
        if reserve is not None:
            self.reserve = reserve
            self._before = self.epsilon
            self._orders, self._conversions = reserve.orders()
            self._pure = np.zeros(len(self._orders))
        if isinstance(budget, ZCDP):
            self.rho += exact(budget.rho)
            return
        epsilon = exact(budget.epsilon)
        self.epsilon += epsilon
        if isinstance(budget, ApproxDP):
            self.delta += exact(budget.delta)
        # The decimal may be above the float.
        above = math.nextafter(budget.epsilon, math.inf)
        if isinstance(self.total, ZCDP):
            self.rho += Fraction(_core.pure_to_zcdp(above, "tight"))
        if self.reserve is not None:
            self._pure = self._pure + np.array([_core.pure_rdp(above, float(order)) for order in self._orders])
            self._terms += 1

    def reserve_for(self, budget: Budget) -> Reserve | None:
        """Return what a spend sets aside: something if it is the first zCDP spend of an (epsilon, delta) total [4]."""
        if not isinstance(self.total, ApproxDP) or not isinstance(budget, ZCDP) or self.reserve is not None:
            return None
        epsilon = _printed_within(exact(self.total.epsilon) - self.epsilon)
        delta = _printed_within(exact(self.total.delta) - self.delta)
        if not (epsilon > 0.0 and delta > _LEAST_DELTA):
            return None
        # All of delta, at one order, only for a spend that needs it.
        shared = Reserve(_best_order(epsilon, delta * _SHARED**2), delta * _SHARED, _SHARED)
        whole = Reserve(_best_order(epsilon, delta), delta, 1.0)
        return shared if self._fits(budget, shared) else whole

    def affords(self, budget: Budget) -> bool:
        """Whether the total covers this spend too."""
        if isinstance(self.total, ApproxDP) and isinstance(budget, ZCDP) and self.reserve is None:
            reserve = self.reserve_for(budget)
            return reserve is not None and self._fits(budget, reserve)
        return self._fits(budget, None)

    def spent(self) -> dict[str, Fraction]:
        """Return what has been spent, by the names of the total's numbers."""
        if isinstance(self.total, PureDP):
            return {"epsilon": self.epsilon}
        if isinstance(self.total, ZCDP):
            return {"rho": self.rho}
        if self.reserve is None:
            return {"epsilon": self.epsilon, "delta": self.delta}
        parts = np.stack([self._orders * float(self.rho), self._pure, self._conversions])
        least = float(np.min(_sum_rounded_up(parts, _ULPS + self._terms)))
        # The bound at a large delta may be negative, which is not claimed.
        epsilon = self._before + Fraction(max(least, 0.0))
        return {"epsilon": epsilon, "delta": self.delta + exact(self.reserve.delta)}

    def spent_as_floats(self) -> dict[str, float]:
        """Return what has been spent, rounded up."""
        return {name: printed_beyond(value) for name, value in self.spent().items()}

    def remaining(self) -> Budget | None:
        """Return a budget that can still be spent, rounded down; None: nothing is left."""
        spent = self.spent()
        left = {name: _printed_within(exact(value) - spent[name]) for name, value in self.total.parameters().items()}
        kind: type[Budget] = PureDP if left.get("delta") == 0.0 else type(self.total)
        if kind is PureDP:
            left.pop("delta", None)
        # Sums of divergences are in f64, and their room for rounding grows by a spend: some bits less are left.
        for bits in range(53, 0, -1):
            if not all(value > 0.0 for value in left.values()):
                return None
            budget = kind(**left)
            if self.affords(budget):
                return budget
            name = next(iter(left))
            left[name] -= self.total.parameters()[name] * 2.0**-bits
        return None

    def _fits(self, budget: Budget, reserve: Reserve | None) -> bool:
        spent = self.after([(budget, reserve)]).spent()
        return all(spent[name] <= exact(value) for name, value in self.total.parameters().items())


def check_size(name: str, budget: Budget) -> None:
    """Refuse numbers whose sums could leave the range of f64."""
    for number, value in budget.parameters().items():
        if not value <= _GREATEST:
            raise InvalidInput(f"{number} of a ledger's {name} must be at most {_GREATEST:g}, got {number}={value}")


def check_accepted(total: Budget, budget: Budget) -> None:
    """Refuse a notion that does not imply the total's."""
    check_size("budget", budget)
    accepted = {"pure": ("pure",), "zcdp": ("pure", "zcdp"), "approx": ("pure", "zcdp", "approx")}[total.notion]
    if budget.notion not in accepted:
        raise InvalidInput(
            f"a ledger of {type(total).__name__} accepts budgets of the notions {', '.join(accepted)}, "
            f"got budget={budget!r} (pass one of these, or open the ledger with a total of the notion that you need)"
        )


def reserve_from(parameters: Any) -> Reserve | None:  # noqa: ANN401  # JSON
    """Rebuild a reserve from its :meth:`Reserve.parameters`."""
    return None if parameters is None else Reserve(**parameters)


def _best_order(epsilon: float, delta: float) -> float:
    """Return the order that leaves the most rho within (epsilon, delta); any other would be valid too."""
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # slow to import, and few totals need it

    rho = _core.approx_to_zcdp(epsilon, delta, "tight")

    def cost(log_excess: float) -> float:
        order = np.array([1.0 + math.exp(log_excess)])
        return float(order[0] * rho + _conversion(order, np.array([delta]))[0])

    return 1.0 + math.exp(
        float(minimize_scalar(cost, bounds=(-12.0, 30.0), method="bounded", options={"xatol": 1e-9}).x)
    )
