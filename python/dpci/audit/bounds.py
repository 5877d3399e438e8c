"""Lower bounds on privacy loss from counts: an event chosen on one half of the runs, its probabilities on the other."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.base.tables import format_percent
from dpci.budgets import ZCDP, Budget, PureDP, check_budget
from dpci.errors import InvalidInput
from dpci.shown.displayed import Displayed
from dpci.shown.document import NOT_PRIVATE, Document, Facts
from dpci.shown.text import as_text

_F64: TypeAlias = NDArray[np.float64]

_DataSet: TypeAlias = Literal["D", "D2"]
Quantity: TypeAlias = Literal["epsilon", "delta", "rho"]

# Bounds on (P(event), P(event on the other data)) -> a lower bound on the quantity; elementwise.
Inversion: TypeAlias = Callable[[_F64, _F64], _F64]

# Thresholds that are tried for a statistic.
_N_THRESHOLDS = 1000

# Orders of the Renyi divergence that are tried; each is a valid bound.
_ORDERS = np.array([1.001, 1.1, 1.3, 1.6, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0])

# Directions in which outputs vary less than this, relative to the greatest variance, are left out of a discriminant.
_LEAST_VARIANCE = 1e-12


def epsilon_at(delta: float) -> Inversion:
    """Epsilon that an event of probability p, and of q on the other data, refutes at this delta."""

    def invert(p: _F64, q: _F64) -> _F64:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(p - delta, 0.0)) - np.log(q))

    return invert


def delta_at(epsilon: float) -> Inversion:
    """Delta likewise."""
    return lambda p, q: np.asarray(p - math.exp(epsilon) * q)


def rho(p: _F64, q: _F64) -> _F64:
    """Rho likewise: the largest D_alpha / alpha of the two yes/no laws, at most that of the output."""
    p, q = np.asarray(p)[..., None], np.asarray(q)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        yes, no, yes_other, no_other = (np.log(x) for x in (p, 1.0 - p, q, 1.0 - q))
        divergences = [
            np.logaddexp(_ORDERS * a + (1.0 - _ORDERS) * b, _ORDERS * c + (1.0 - _ORDERS) * d) / (_ORDERS - 1.0)
            for a, b, c, d in ((yes, yes_other, no, no_other), (yes_other, yes, no_other, no))
        ]
    greatest = np.nan_to_num(np.max(np.divide(divergences, _ORDERS), axis=(0, -1)), nan=0.0, posinf=0.0)
    return np.asarray(np.where(p[..., 0] > q[..., 0], greatest, 0.0))


def probability_bounds(
    hits: NDArray[np.int64], others: NDArray[np.int64], n: int, confidence: float
) -> tuple[_F64, _F64]:
    """Return the smallest P(event) after ``hits`` in ``n`` and the largest after ``others``, by Clopper & Pearson."""
    from scipy import stats  # noqa: PLC0415  # slow to import, and audits alone need it

    alpha = (1.0 - confidence) / 2.0
    least = np.where(hits > 0, stats.beta.ppf(alpha, np.maximum(hits, 1), n - hits + 1), 0.0)
    greatest = np.where(others < n, stats.beta.isf(alpha, others + 1, np.maximum(n - others, 1)), 1.0)
    return least, greatest


@dataclass(frozen=True, kw_only=True)
class Event:
    """A yes/no question about an output that distinguishes the two data sets.

    Attributes
    ----------
    likelier_on : {"D", "D2"}
        The data set on which the event is more probable.
    above : bool
        Whether the event is a statistic of at least ``threshold``, or of at most ``threshold``.
    threshold : float
        Threshold of the statistic.
    weights : tuple of float
        The statistic is the sum of the numbers of an output, multiplied by these weights. If some runs failed, the last
        number is 1 for a failure and 0 otherwise.
    """

    likelier_on: _DataSet
    above: bool
    threshold: float
    weights: tuple[float, ...] = (1.0,)

    def holds(self, outputs: _F64) -> NDArray[np.bool_]:
        """Return whether each output, one a row, is in the event."""
        statistic = _statistic(outputs, np.array(self.weights))
        return np.asarray(statistic >= self.threshold if self.above else statistic <= self.threshold)

    def __str__(self) -> str:
        sign = ">=" if self.above else "<="
        numbers = ", ".join(f"{weight:.4g}" for weight in self.weights)
        statistic = "score" if self.weights == (1.0,) else f"({numbers}) . output"
        return f"{statistic} {sign} {self.threshold:.6g}, more likely on {self.likelier_on}"


@dataclass(frozen=True, kw_only=True, repr=False)
class LowerBound(Displayed):
    """A lower bound from an attack on a mechanism. Not private: it comes from runs on known data.

    Attributes
    ----------
    quantity : {"epsilon", "delta", "rho"}
        The bounded quantity.
    value : float
        With ``confidence``, the quantity of the mechanism is at least this value; 0 if the attack shows nothing.
    at : float
        The delta of a bound on epsilon, the epsilon of a bound on delta; 0 for rho.
    confidence : float
        Probability, over the runs, that the bound holds.
    event : Event
        The event, chosen on the first half of the runs.
    hits, others : int
        Occurrences of the event in the second half: on the data set on which it is more probable, and on the other.
    n_measured : int
        Runs of the second half, on each data set.
    least, greatest : float
        Bounds on the two probabilities of the event, which hold together with ``confidence``.
    claim : PureDP, ZCDP, ApproxDP or None
        The claim of the mechanism, if it is known.
    name : str or None
        Name of the mechanism, if it has one.
    """

    quantity: Quantity
    value: float
    at: float
    confidence: float
    event: Event
    hits: int
    others: int
    n_measured: int
    least: float
    greatest: float
    claim: Budget | None = None
    name: str | None = None

    @property
    def private(self) -> bool:
        """False: what a run on real data shows is not a release."""
        return False

    def refutes(self, claim: Budget | None = None) -> bool:
        """Return whether the runs refute a claim: a true claim is refuted with probability at most 1 - ``confidence``.

        Both the event and its complement are used; the two bounds on probabilities hold for them together.

        Parameters
        ----------
        claim : PureDP, ZCDP or ApproxDP, optional
            By default the claim of the mechanism.
        """
        if claim is None and self.claim is None:
            raise InvalidInput("claim must be given, because this mechanism has no claim of its own, got claim=None")
        budget = check_budget(self.claim if claim is None else claim)
        if isinstance(budget, ZCDP):
            return bool(rho(np.array(self.least), np.array(self.greatest)) > budget.rho)
        delta = 0.0 if isinstance(budget, PureDP) else budget.delta
        pairs = (self.least, self.greatest), (1.0 - self.greatest, 1.0 - self.least)
        # In logarithms, because e^epsilon may be beyond the range.
        return any(p > delta and (q == 0.0 or math.log(p - delta) - math.log(q) > budget.epsilon) for p, q in pairs)

    def summary(self) -> str:
        """Aligned lines: the bound, the claim, and the counts behind them."""
        return as_text(self._document())

    def _document(self) -> Document:
        at = {"epsilon": f" at delta={self.at:g}" if self.at else "", "delta": f" at epsilon={self.at:g}", "rho": ""}
        verdict = None if self.claim is None else ("REFUTED" if self.refutes() else "not refuted")
        facts = [
            ("mechanism", self.name),
            (
                f"{self.quantity}{at[self.quantity]}",
                f">= {self.value:.6g}, confidence {format_percent(self.confidence)}",
            ),
            ("claim", None if self.claim is None else f"{self.claim}: {verdict}"),
            ("event", str(self.event)),
            ("on that data set", f"{self.hits:,} of {self.n_measured:,} runs, probability >= {self.least:.6g}"),
            ("on the other", f"{self.others:,} of {self.n_measured:,} runs, probability <= {self.greatest:.6g}"),
        ]
        given = Facts([(name, value) for name, value in facts if value is not None])
        return Document(title=f"Audit. {NOT_PRIVATE}", parts=[given])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and texts, for :func:`json.dumps`."""
        claim = None if self.claim is None else {"notion": self.claim.notion, **self.claim.parameters()}
        event = {**vars(self.event), "weights": list(self.event.weights)}
        refuted = None if self.claim is None else self.refutes()
        return {**vars(self), "event": event, "claim": claim, "refuted": refuted, "private": self.private}

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict())

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return self.summary()


def lower_bound(
    first: _F64,
    second: _F64,
    invert: Inversion,
    *,
    quantity: Quantity,
    at: float,
    confidence: float,
    claim: Budget | None = None,
    name: str | None = None,
) -> LowerBound:
    """Bound a quantity from outputs on two data sets, one a row: even runs choose the event, odd ones measure it."""
    event = _choose(first[::2], second[::2], invert, confidence)
    ours, theirs = (first, second) if event.likelier_on == "D" else (second, first)
    measured = ours[1::2], theirs[1::2]
    hits, others = (int(event.holds(outputs).sum()) for outputs in measured)
    n = len(measured[0])
    least, greatest = probability_bounds(np.array(hits), np.array(others), n, confidence)
    return LowerBound(
        quantity=quantity,
        value=max(0.0, float(invert(least, greatest))),
        at=at,
        confidence=confidence,
        event=event,
        hits=hits,
        others=others,
        n_measured=n,
        least=float(least),
        greatest=float(greatest),
        claim=claim,
        name=name,
    )


def with_failures(outputs: _F64, failed: NDArray[np.bool_]) -> _F64:
    """Return the outputs of all runs from the others: zeros for a failure, and a last number that tells."""
    columns = outputs.reshape(len(outputs), math.prod(outputs.shape[1:]))
    table = np.zeros((len(failed), columns.shape[1] + 1))
    table[~failed, :-1] = columns
    table[failed, -1] = 1.0
    return table


def _choose(first: _F64, second: _F64, invert: Inversion, confidence: float) -> Event:
    """Return the event that would give the largest bound on these runs."""
    best, chosen = -math.inf, Event(likelier_on="D", above=True, threshold=math.inf)
    for weights in _directions(first, second):
        statistics = _statistic(first, weights), _statistic(second, weights)
        numbers = tuple(map(float, weights))
        for above in (True, False):
            a, b = (statistic if above else -statistic for statistic in statistics)
            roles: tuple[tuple[_DataSet, _F64, _F64], ...] = (("D", a, b), ("D2", b, a))
            for likelier_on, ours, theirs in roles:
                value, threshold = _best_threshold(ours, theirs, invert, confidence)
                if value > best:
                    at = threshold if above else -threshold
                    best, chosen = value, Event(likelier_on=likelier_on, above=above, threshold=at, weights=numbers)
    return chosen


def _best_threshold(ours: _F64, theirs: _F64, invert: Inversion, confidence: float) -> tuple[float, float]:
    ours, theirs = np.sort(ours), np.sort(theirs)
    thresholds = np.unique(np.quantile(ours, np.linspace(0.0, 0.999, _N_THRESHOLDS), method="higher"))
    hits, others = (len(x) - np.searchsorted(x, thresholds) for x in (ours, theirs))
    found = invert(*probability_bounds(hits, others, len(ours), confidence))
    best = int(np.argmax(found))
    return float(found[best]), float(thresholds[best])


def _directions(first: _F64, second: _F64) -> list[_F64]:
    """Each coordinate, and of vectors Fisher's linear discriminant: difference of means over the pooled covariance."""
    if first.ndim == 1:
        return [np.ones(1)]
    axes = list(np.eye(first.shape[1]))
    if len(axes) == 1:
        return axes
    with np.errstate(over="ignore", invalid="ignore"):
        pooled = np.cov(first.T) + np.cov(second.T)
        difference = first.mean(axis=0) - second.mean(axis=0)
    if not (np.isfinite(pooled).all() and np.isfinite(difference).all()):
        return axes
    values, vectors = np.linalg.eigh(pooled)
    kept = values > _LEAST_VARIANCE * values[-1]
    discriminant = vectors[:, kept] @ (vectors[:, kept].T @ difference / values[kept])
    return [*axes, discriminant] if np.any(discriminant) else axes


def _statistic(outputs: _F64, weights: _F64) -> _F64:
    if outputs.ndim == 1:
        return outputs
    # Column by column: a product of matrices may round equal rows differently; an event is a function of one output.
    terms = [weight * outputs[:, column] for column, weight in enumerate(weights) if weight]
    return np.asarray(np.add.reduce(terms))
