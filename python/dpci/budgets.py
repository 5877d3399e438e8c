"""The privacy budgets: what the caller is ready to spend, in which notion of differential privacy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypedDict, TypeVar, cast, get_args

from dpci import _core
from dpci.base.codec import Form
from dpci.base.tables import format_bound
from dpci.base.validation import (
    broken,
    check_choice,
    check_count,
    check_fraction,
    check_not_negative,
    check_positive,
    usage,
)
from dpci.errors import InvalidInput

__all__ = ["GDP", "ZCDP", "ApproxDP", "Budget", "Calibration", "PureDP"]

Calibration: TypeAlias = Literal["tight", "paper"]
_CALIBRATIONS: tuple[Calibration, ...] = ("tight", "paper")


class _Numbers:
    """A budget of some notion, whose fields are its numbers."""

    __slots__ = ()

    def parameters(self) -> dict[str, float]:
        """Return the numbers of the budget by name."""
        return {name: getattr(self, name) for name in cast("Any", self).__match_args__}  # those of its fields

    def __str__(self) -> str:
        return budget_text(cast("GaussianBudget", self))


@usage("dpci.PureDP(epsilon=1.0)")
@dataclass(frozen=True, slots=True)
class PureDP(_Numbers):
    """Pure differential privacy.

    Parameters
    ----------
    epsilon : float
        Privacy loss, finite and above zero.

    Examples
    --------
    >>> import dpci
    >>> dpci.PureDP(epsilon=1.0).to_zcdp()
    ZCDP(rho=0.46211715726001...)
    """

    epsilon: float
    notion: ClassVar[Literal["pure"]] = "pure"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))

    def to_zcdp(self, calibration: Calibration = "tight") -> "ZCDP":
        """Return the zCDP guarantee that this one implies.

        Parameters
        ----------
        calibration : {"tight", "paper"}
            ``"tight"``: rho = epsilon * tanh(epsilon / 2), attained by randomised response. ``"paper"``: epsilon**2 / 2
            (Bun & Steinke 2016, Proposition 1.4).
        """
        return ZCDP(_core.pure_to_zcdp(self.epsilon, check_calibration(calibration)))

    def to_approx(self, delta: float) -> "ApproxDP":
        """Return the same epsilon with a ``delta``; a pure guarantee holds with every one."""
        return ApproxDP(self.epsilon, delta)


@usage("dpci.ZCDP(rho=0.5)")
@dataclass(frozen=True, slots=True)
class ZCDP(_Numbers):
    """Zero-concentrated differential privacy (Bun & Steinke 2016).

    Parameters
    ----------
    rho : float
        Privacy loss, finite and above zero.

    Examples
    --------
    >>> import dpci
    >>> dpci.ZCDP(rho=0.5).parameters()
    {'rho': 0.5}
    """

    rho: float
    notion: ClassVar[Literal["zcdp"]] = "zcdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_positive("rho", self.rho))

    def to_approx(self, delta: float, calibration: Calibration = "tight") -> "ApproxDP":
        """Return the (epsilon, delta) guarantee that this one implies.

        Parameters
        ----------
        delta : float
            Above 0 and below 1.
        calibration : {"tight", "paper"}
            ``"tight"``: the best Renyi order. ``"paper"``: epsilon = rho + 2 sqrt(rho log(1/delta)) (Bun & Steinke
            2016, Proposition 1.3).
        """
        delta = check_fraction("delta", delta)
        return ApproxDP(_core.zcdp_to_approx_epsilon(self.rho, delta, check_calibration(calibration)), delta)

    def pure_within(self, calibration: Calibration = "tight") -> PureDP:
        """Return the largest pure budget that costs no more than this one (a zCDP guarantee implies no pure one)."""
        return PureDP(_core.zcdp_to_pure(self.rho, check_calibration(calibration)))


@usage("dpci.ApproxDP(epsilon=1.0, delta=1e-6)")
@dataclass(frozen=True, slots=True)
class ApproxDP(_Numbers):
    """Approximate, or (epsilon, delta), differential privacy.

    Parameters
    ----------
    epsilon : float
        Privacy loss, finite and above zero.
    delta : float
        Above 0 and below 1; much below one over the number of people.

    Examples
    --------
    >>> import dpci
    >>> dpci.ApproxDP(epsilon=1.0, delta=1e-6).zcdp_within()
    ZCDP(rho=0.0243...)
    """

    epsilon: float
    delta: float
    notion: ClassVar[Literal["approx"]] = "approx"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))
        given: object = self.delta
        if isinstance(given, int | float) and given == 0:
            raise InvalidInput(
                f"delta must be > 0 and < 1, got delta={float(given)} (a guarantee without delta is dpci.PureDP)"
            )
        object.__setattr__(self, "delta", check_fraction("delta", self.delta))

    def zcdp_within(self, calibration: Calibration = "tight") -> ZCDP:
        """Return the largest zCDP budget whose guarantee lies within this one (no zCDP guarantee follows from it)."""
        return ZCDP(_core.approx_to_zcdp(self.epsilon, self.delta, check_calibration(calibration)))


@dataclass(frozen=True, slots=True)
class GDP(_Numbers):
    """Gaussian differential privacy (Dong, Roth & Su 2022): as hard to tell apart as N(0, 1) and N(mu, 1).

    For releases whose noise is Gaussian: linear regression from a moment matrix. A ledger counts it as the zCDP that
    it implies.

    Parameters
    ----------
    mu : float
        Distance of the two normal laws, finite and above zero. Several releases have the root of the sum of squares.

    Examples
    --------
    >>> import dpci
    >>> dpci.GDP(mu=1.0).to_zcdp()
    ZCDP(rho=0.5)
    """

    mu: float
    notion: ClassVar[Literal["gdp"]] = "gdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_positive("mu", self.mu))

    def delta(self, epsilon: float) -> float:
        """Return the delta at which this is (epsilon, delta)-DP: exact (Balle & Wang 2018)."""
        return _core.gaussian_delta(check_not_negative("epsilon", epsilon), self.mu)

    def to_zcdp(self) -> ZCDP:
        """Return the zCDP guarantee that this one implies, rho = mu²/2, the Rényi curve of the two normal laws."""
        return ZCDP(0.5 * self.mu**2)


Budget: TypeAlias = PureDP | ZCDP | ApproxDP


GaussianBudget: TypeAlias = Budget | GDP
"""Budgets of releases whose noise may be Gaussian."""
AnyBudget = TypeVar("AnyBudget", bound=GaussianBudget)


_NOTIONS = {"pure": "pure DP", "zcdp": "zCDP", "approx": "approximate DP", "gdp": "Gaussian DP"}


def budget_text(budget: GaussianBudget, *, remains: bool = False) -> str:
    """Return the numbers of a budget, as :func:`numbers_text`, and its notion."""
    return f"{numbers_text(budget.parameters(), remains=remains)} ({_NOTIONS[budget.notion]})"


def remaining_text(remaining: Budget | None) -> str:
    """Return what remains of a total, or that nothing does."""
    return "nothing" if remaining is None else budget_text(remaining, remains=True)


def numbers_text(numbers: Mapping[str, float], *, remains: bool = False) -> str:
    """Return numbers by name, rounded upwards as what is spent, or downwards as what ``remains``."""
    # The last digits of a float are those of its computation.
    shown = {name: format_bound(float(f"{value:.12g}"), 6, least=remains) for name, value in numbers.items()}
    return ", ".join(f"{name}={value}" for name, value in shown.items())


def check_gaussian_budget(budget: object) -> GaussianBudget:
    """Return a budget of a release whose noise may be Gaussian."""
    return budget if isinstance(budget, GDP) else check_budget(budget)


def check_budget(budget: object) -> Budget:
    """Return a budget, or raise ``InvalidInput``."""
    if isinstance(budget, GDP):
        raise InvalidInput(
            "budget must be dpci.PureDP, dpci.ZCDP or dpci.ApproxDP for this function, whose noise is not Gaussian "
            f"throughout, got budget={budget!r} (dpci.regression.release takes it)"
        )
    if not isinstance(budget, PureDP | ZCDP | ApproxDP):
        meant = f", such as dpci.PureDP(epsilon={budget!r})" if type(budget) in {int, float} else ""
        if isinstance(budget, tuple | list) and [type(number) in {int, float} for number in budget] == [True, True]:
            meant = f", such as dpci.ApproxDP(epsilon={budget[0]!r}, delta={budget[1]!r})"
        raise broken("budget", f"dpci.PureDP, dpci.ZCDP or dpci.ApproxDP{meant}", budget)
    return budget


def core_budget(budget: Budget) -> _core.Budget:
    """Return a budget as the core takes it."""
    if isinstance(budget, PureDP):
        return _core.Budget.pure(budget.epsilon)
    return (
        _core.Budget.zcdp(budget.rho) if isinstance(budget, ZCDP) else _core.Budget.approx(budget.epsilon, budget.delta)
    )


def budget_from_parameters(notion: str, parameters: object) -> Budget:
    """Rebuild a budget from its notion and its :meth:`parameters`."""
    for kind in (PureDP, ZCDP, ApproxDP):
        if kind.notion == notion:
            return kind(**_checked(notion, parameters, kind.__match_args__))
    raise broken("notion", "'pure', 'zcdp' or 'approx'", notion)


def saved_budget(budget: GaussianBudget) -> dict[str, Any]:
    """Return a budget as a file holds it."""
    return {"notion": budget.notion, **budget.parameters()}


def read_budget(name: str, value: object) -> Budget:
    """Return the budget of a file."""
    return budget_from_parameters(*_notion(name, value))


def _read_gaussian(name: str, value: object) -> GaussianBudget:
    notion, parameters = _notion(name, value)
    if notion == GDP.notion:
        return GDP(**_checked(notion, parameters, ("mu",)))
    return budget_from_parameters(notion, parameters)


def _notion(name: str, value: object) -> tuple[str, dict[str, Any]]:
    if not isinstance(value, dict) or "notion" not in value:
        raise broken(name, "an object with a notion and its parameters", value)
    return value["notion"], {key: number for key, number in value.items() if key != "notion"}


SavedBudget: TypeAlias = Annotated[Budget, Form(saved_budget, read_budget)]
SavedGaussianBudget: TypeAlias = Annotated[GaussianBudget, Form(saved_budget, _read_gaussian)]


def _checked(notion: str, parameters: object, names: tuple[str, ...]) -> dict[str, float]:
    if not isinstance(parameters, Mapping) or set(parameters) != set(names):
        raise InvalidInput(
            f"a budget of notion {notion!r} must hold every field of its schema and no other, "
            f"{' and '.join(names)}, got {parameters!r}"
        )
    return dict(parameters)


def check_calibration(value: object) -> Calibration:
    """Return the constants of the noise."""
    return check_choice("calibration", value, _CALIBRATIONS)


Neighbors: TypeAlias = Literal["replace_one", "add_remove"]


@dataclass(frozen=True)
class AddRemove:
    """Neighbouring data sets that differ by one record more or less, so that the number of records is private.

    It is ``neighbors`` of functions that read data. Plans and ledgers, which read none, take the word "add_remove".

    Parameters
    ----------
    n_public : int
        Public stand-in for the number of records. It must not be counted in the data.

    Examples
    --------
    >>> import dpci
    >>> dpci.AddRemove(n_public=10_000)
    AddRemove(n_public=10000)
    """

    n_public: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_public", check_count("n_public", self.n_public))


NeighborsLike: TypeAlias = Neighbors | AddRemove
"""The relation as a caller gives it. Functions that read data need the public number of records as well."""


class Relation(TypedDict):
    """The two choices that ``neighbors`` of a caller makes."""

    neighbors: Neighbors
    n_public: int | None


def read_neighbors(neighbors: object) -> Relation:
    """Return the relation and the public number of records, which add/remove needs."""
    if isinstance(neighbors, AddRemove):
        return {"neighbors": "add_remove", "n_public": neighbors.n_public}
    rule = "'replace_one' or dpci.AddRemove(n_public=...)"
    if isinstance(neighbors, str) and neighbors == "add_remove":
        raise broken("neighbors", f"{rule}, because the number of records is then private", neighbors)
    if not isinstance(neighbors, str) or neighbors != "replace_one":
        raise broken("neighbors", rule, neighbors)
    return {"neighbors": "replace_one", "n_public": None}


def neighbors_of(neighbors: object, n_public: int | None) -> NeighborsLike:
    """Return the one keyword that two flat parameters or options make."""
    kinds: tuple[Neighbors, ...] = get_args(Neighbors)
    kind = check_choice("neighbors", neighbors, kinds)
    number = check_n_public(kind, n_public)
    return "replace_one" if number is None else AddRemove(number)


def planned_neighbors(neighbors: object, n_samples: int) -> object:
    """Return the relation of a plan, whose number of samples is the public number of records."""
    if isinstance(neighbors, AddRemove) and neighbors.n_public != n_samples:
        raise InvalidInput(
            f"n_public must equal n_samples={n_samples}, the public number of samples, got "
            f"n_public={neighbors.n_public}"
        )
    return AddRemove(n_samples) if isinstance(neighbors, str) and neighbors == "add_remove" else neighbors


def check_n_public(neighbors: Neighbors, n_public: int | None) -> int | None:
    """Return the public stand-in for the number of rows, which add/remove needs and replace-one has no use for."""
    if neighbors == "replace_one":
        if n_public is None:
            return None
        raise broken("n_public", "None with neighbors='replace_one', because the number of records is public", n_public)
    if n_public is None:
        raise InvalidInput(
            "n_public must be given with neighbors='add_remove', because the number of records is private, got "
            "n_public=None"
        )
    return check_count("n_public", n_public)


def split_budget(budget: Budget, share: float, name: str = "selection_share") -> tuple[Budget, Budget | None]:
    """Return a first part of this share and the rest, whose exact sum never exceeds the budget; None without a rest."""
    if share == 1.0:
        return budget, None
    whole = budget.parameters()
    first = {key: share * value for key, value in whole.items()}
    rest = {key: _remainder(value, first[key]) for key, value in whole.items()}
    if not all(value > 0.0 for value in (*first.values(), *rest.values())):
        raise InvalidInput(f"{name} must leave two parts of {budget} that are not zero, got {name}={share}")
    return type(budget)(**first), type(budget)(**rest)


def remainder(whole: Budget, part: Budget) -> Budget:
    """Return what a part of a budget leaves, so that the exact sum of both never exceeds the whole."""
    if type(part) is not type(whole):
        raise InvalidInput(f"a part of a budget must be of its notion, got {part} of {whole}")
    taken = part.parameters()
    return type(whole)(**{key: _remainder(value, taken[key]) for key, value in whole.parameters().items()})


def _remainder(whole: float, part: float) -> float:
    rest = whole - part
    return rest if Fraction(part) + Fraction(rest) <= Fraction(whole) else math.nextafter(rest, 0.0)


def exact(value: float) -> Fraction:
    """Return the decimal that Python prints for a float: what a caller who writes 0.1 means."""
    return Fraction(repr(value))


def times(budget: AnyBudget, count: int) -> AnyBudget:
    """Return a budget that ``count`` releases at ``budget`` never exceed, by basic composition."""
    return type(budget)(**{name: printed_beyond(exact(value) * count) for name, value in budget.parameters().items()})


def for_changes(budget: GaussianBudget, count: int) -> GaussianBudget | None:
    """Return what a budget guarantees where ``count`` records change and not one; None where that is nothing.

    Of zCDP: Bun and Steinke 2016, Proposition 1.9. Of (epsilon, delta): each change multiplies by e^epsilon what was
    lost before.
    """
    if count == 1:
        return budget
    if isinstance(budget, ZCDP):
        return times(budget, count**2)
    if not isinstance(budget, ApproxDP):
        return times(budget, count)
    lost, factor = 1.0, math.exp(budget.epsilon) if budget.epsilon < 700.0 else math.inf
    for _ in range(count - 1):
        lost = 1.0 + factor * lost
    # Rounded up by more than the exponential and the products err.
    delta = budget.delta * lost * (1.0 + count * 5e-15)
    return ApproxDP(times(PureDP(budget.epsilon), count).epsilon, delta) if delta < 1.0 else None


def printed_beyond(value: Fraction) -> float:
    """Return a float, mostly the smallest one, whose decimal is at least ``value``."""
    number = float(value)
    while exact(number) < value:
        number = math.nextafter(number, math.inf)
    return number
