"""Attacks on mechanisms and models: lower bounds on what a mechanism leaks, and what a model tells. Never private."""

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci.audit.bounds import Inversion, LowerBound, Quantity, delta_at, epsilon_at, lower_bound, rho, with_failures
from dpci.audit.cases import WorstCase, delta_of
from dpci.audit.catalogue import MECHANISMS, all_cases, make_case
from dpci.base.tables import format_percent
from dpci.base.threads import check_threads
from dpci.base.validation import (
    broken,
    check_count,
    check_fraction,
    check_not_negative,
    check_real,
    check_seed,
)
from dpci.budgets import ZCDP, ApproxDP, Budget, Neighbors, PureDP, check_budget
from dpci.errors import InvalidInput
from dpci.shown.displayed import Displayed
from dpci.shown.document import NOT_PRIVATE, Document, Table
from dpci.shown.text import as_text

__all__ = ["delta_lower_bound", "epsilon_lower_bound", "report", "rho_lower_bound", "worst_case"]


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditReport(Displayed):
    """Lower bounds of many audits; returned by :func:`dpci.audit.report`. Not private.

    Attributes
    ----------
    bounds : tuple of LowerBound
        In the order of :data:`dpci.audit.MECHANISMS`.
    n_runs : int
        Runs on each of the two data sets of a case.
    seed : int
        Seed of the noise.
    """

    bounds: tuple[LowerBound, ...]
    n_runs: int
    seed: int

    @property
    def private(self) -> bool:
        """False, as for each bound."""
        return False

    @property
    def refuted(self) -> tuple[LowerBound, ...]:
        """The bounds that refute their claims. A true claim is refuted with probability at most 1 - confidence."""
        return tuple(bound for bound in self.bounds if bound.refutes())

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return mechanism, statement, claim, lower bound and verdict of each audit as texts."""
        found = []
        for bound in self.bounds:
            statement = "ρ" if bound.quantity == "rho" else f"ε at δ={bound.at:g}" if bound.at else "ε"
            verdict = "REFUTED" if bound.refutes() else "not refuted"
            claim = "" if bound.claim is None else f"{_number(bound.claim):.3f}"
            found.append((bound.name or "", statement, claim, f"{bound.value:.3f}", verdict))
        return found

    def summary(self) -> str:
        """Aligned table."""
        return as_text(self._document())

    def _document(self) -> Document:
        header = ("mechanism", "statement", "claim", "lower bound", "verdict")
        confidence = ", ".join(sorted({format_percent(bound.confidence) for bound in self.bounds}))
        head = f"Audit: {self.n_runs:,} runs on each data set, confidence {confidence}, seed {self.seed}. {NOT_PRIVATE}"
        return Document(title=head, parts=[Table(header, self.rows())])

    def to_json(self) -> str:
        """Return all bounds as JSON."""
        bounds = [bound.to_dict() for bound in self.bounds]
        return json.dumps({"n_runs": self.n_runs, "seed": self.seed, "private": self.private, "bounds": bounds})

    def __repr__(self) -> str:
        return self.summary()


def _number(claim: Budget) -> float:
    return claim.rho if isinstance(claim, ZCDP) else claim.epsilon


_F64: TypeAlias = NDArray[np.float64]

Draw: TypeAlias = Callable[[Any], ArrayLike]

_GREATEST_FLOAT = float(np.finfo(np.float64).max)


class Failure:
    """Stands for the output of a run that raised an exception."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def attempt(draw: Draw, data: object) -> ArrayLike | Failure:
    """Run a mechanism once."""
    try:
        return draw(data)
    except Exception as error:  # noqa: BLE001  # a failure of any kind is an outcome
        return Failure(error)


def tables(first: list[ArrayLike | Failure], second: list[ArrayLike | Failure]) -> tuple[_F64, _F64]:
    """Return outputs on both data sets, (n_runs,) or (n_runs, k); with a column of failures if there are any."""
    runs = first, second
    failed = [np.array([isinstance(output, Failure) for output in outputs]) for outputs in runs]
    kept = [[output for output in outputs if not isinstance(output, Failure)] for outputs in runs]
    errors = [output.error for output in (*first, *second) if isinstance(output, Failure)]
    if not any(kept):
        raise errors[0]
    found = [_as_outputs(outputs) for outputs in kept if outputs]
    if len({outputs.shape[1:] for outputs in found}) > 1:
        raise InvalidInput(f"outputs must have one length, got shapes {found[0].shape[1:]} and {found[1].shape[1:]}")
    if not errors:
        return found[0], found[1]
    given = iter(found)
    empty = np.empty((0, *found[0].shape[1:]))
    a, b = (with_failures(next(given) if outputs else empty, gone) for outputs, gone in zip(kept, failed, strict=True))
    return a, b


def _as_outputs(outputs: list[ArrayLike]) -> _F64:
    """Return the outputs as an array of shape (n_runs,) or (n_runs, k)."""
    try:
        given = np.asarray(outputs)
        with np.errstate(over="ignore"):
            table = given.astype(np.float64) if _is_real(given) else None
    except (TypeError, ValueError, OverflowError):
        table = None
    if table is None:
        raise InvalidInput(
            "outputs must be numbers or vectors of one length, real and in the range of floats, got a "
            f"{type(outputs[0]).__name__} as the first output"
        )
    if table.ndim > 1:
        table = table.reshape(len(table), -1)
    if np.isnan(table).any() or table.size == 0:
        raise InvalidInput(
            "outputs must not be NaN or empty, got one that is (return a number that represents this outcome)"
        )
    # A threshold between infinite outputs would be infinite, which JSON does not have.
    return np.clip(table, -_GREATEST_FLOAT, _GREATEST_FLOAT)


def _is_real(outputs: NDArray[Any]) -> bool:
    """Whether these are real numbers: NumPy would parse texts, and drop imaginary parts."""
    # Integers beyond 64 bits are objects to it.
    if outputs.dtype.kind == "O":
        return all(isinstance(value, Real) for value in outputs.flat)
    return outputs.dtype.kind in "biuf"


# One run to choose and one to measure would be legal, and say nothing.
_LEAST_RUNS = 4

# Where a claim is not pure and has no delta, one that some thousand runs can measure.
_DELTA = 0.01

_BUDGETS = (PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, _DELTA))


def worst_case(mechanism: str, *, budget: Budget, neighbors: Neighbors | None = None) -> WorstCase:
    """Return two neighbouring data sets on which a mechanism of dpci has its greatest privacy loss, or nearly so.

    The core simulates its runs with every step of a release. The records are artificial.

    Parameters
    ----------
    mechanism : str
        One of :data:`MECHANISMS`.
    budget : PureDP, ZCDP or ApproxDP
        The claim of the mechanism.
    neighbors : {"replace_one", "add_remove"}, optional
        Relation of the two data sets; by default "replace_one" if the mechanism supports it.

    Returns
    -------
    WorstCase
        A case for :func:`epsilon_lower_bound` and the other bounds.

    Raises
    ------
    InvalidInput
        For an unknown mechanism, or a budget or relation that its worst case does not have.
    """
    return make_case(mechanism, check_budget(budget), neighbors)


def epsilon_lower_bound(
    draw: Draw | WorstCase,
    D: object = None,
    D2: object = None,
    *,
    n_runs: int,
    confidence: float = 0.999,
    delta: float = 0.0,
    claim: Budget | None = None,
    seed: int | None = None,
    n_threads: int | None = None,
) -> LowerBound:
    """Bound the epsilon of a mechanism from below by running it on two neighbouring data sets.

    One half of the runs serves to choose an event that distinguishes the data sets: a threshold and a direction of a
    statistic. For vectors the statistic is a coordinate or Fisher's discriminant. The other half gives the
    Clopper-Pearson bounds p <= P(event on one data set) and q >= P(event on the other), each at half of the error. Then
    epsilon is at least log((p - delta) / q). If the runs are independent, as those of a canned case are, the bound
    holds with this confidence for any mechanism. It is not private.

    A failed run is an outcome like any other, because an observer sees that no result arrives. If any run fails, every
    output gets one more number: 1 for a failure and 0 otherwise. The other numbers of a failure are 0.

    Parameters
    ----------
    draw : callable or WorstCase
        ``draw(D)`` runs the mechanism once and returns a number or a vector, of the same length each time, with fresh
        randomness each time: a mechanism that draws once and keeps the draw is refuted wrongly. A run that raises an
        exception counts as a failure. Alternatively a canned case, which is simulated in Rust.
    D, D2 : object
        The two data sets, as ``draw`` takes them; omit them with a canned case.
    n_runs : int
        Runs on each data set, at least 4.
    confidence : float
        Probability that the bound holds, between 0 and 1.
    delta : float
        The delta of the statement (epsilon, delta), at least 0 and below 1; 0 is pure differential privacy.
    claim : PureDP, ZCDP or ApproxDP, optional
        The claim of the mechanism, for :meth:`LowerBound.refutes`; a canned case has its own.
    seed : int, optional
        Seed of the noise of a canned case; None: a fresh one.
    n_threads : int, optional
        For a canned case; None: all cores. The result does not depend on it.

    Returns
    -------
    LowerBound
        Value, event and counts.

    Raises
    ------
    InvalidInput
        For arguments out of range, or outputs that are NaN or not of one length.
    Exception
        The first one of ``draw``, if every run on both data sets fails.

    References
    ----------
    Jagielski, Ullman & Oprea, "Auditing differentially private machine learning: how private is private SGD?", 2020.

    Examples
    --------
    >>> import numpy as np, dpci
    >>> rng = np.random.default_rng(0)
    >>> found = dpci.audit.epsilon_lower_bound(
    ...     lambda data: data + rng.laplace(scale=0.5), 0.0, 1.0, n_runs=4000, claim=dpci.PureDP(1.0)
    ... )
    >>> 1.0 < found.value < 2.0, found.refutes()
    (True, True)
    """
    delta = _check_delta(delta)
    runs = _Runs(draw, D, D2, n_runs=n_runs, confidence=confidence, claim=claim, seed=seed, n_threads=n_threads)
    return runs.bound(epsilon_at(delta), quantity="epsilon", at=delta)


def delta_lower_bound(
    draw: Draw | WorstCase,
    D: object = None,
    D2: object = None,
    *,
    epsilon: float,
    n_runs: int,
    confidence: float = 0.999,
    claim: Budget | None = None,
    seed: int | None = None,
    n_threads: int | None = None,
) -> LowerBound:
    """Bound the delta of a mechanism at a given epsilon from below; see :func:`epsilon_lower_bound`.

    The runs must be independent, each with fresh randomness.

    Parameters
    ----------
    draw, D, D2, n_runs, confidence, claim, seed, n_threads
        See :func:`epsilon_lower_bound`.
    epsilon : float
        The epsilon of the statement (epsilon, delta), at least 0 and at most 700.

    Returns
    -------
    LowerBound
        The largest ``p - exp(epsilon) q`` that the runs support.

    Raises
    ------
    InvalidInput
        See :func:`epsilon_lower_bound`.
    """
    epsilon = check_not_negative("epsilon", epsilon)
    if epsilon > _GREATEST_EPSILON:
        raise InvalidInput(f"epsilon must be at most {_GREATEST_EPSILON}, got epsilon={epsilon}")
    runs = _Runs(draw, D, D2, n_runs=n_runs, confidence=confidence, claim=claim, seed=seed, n_threads=n_threads)
    return runs.bound(delta_at(epsilon), quantity="delta", at=epsilon)


def rho_lower_bound(
    draw: Draw | WorstCase,
    D: object = None,
    D2: object = None,
    *,
    n_runs: int,
    confidence: float = 0.999,
    claim: Budget | None = None,
    seed: int | None = None,
    n_threads: int | None = None,
) -> LowerBound:
    """Bound the rho of a zCDP mechanism from below; see :func:`epsilon_lower_bound`.

    The runs must be independent, each with fresh randomness.
    The Renyi divergence of a yes/no question about an output is at most that of the output itself. Ten orders are
    tried.

    Parameters
    ----------
    draw, D, D2, n_runs, confidence, claim, seed, n_threads
        See :func:`epsilon_lower_bound`.

    Returns
    -------
    LowerBound
        The largest D_alpha / alpha that the runs support.

    Raises
    ------
    InvalidInput
        See :func:`epsilon_lower_bound`.
    """
    runs = _Runs(draw, D, D2, n_runs=n_runs, confidence=confidence, claim=claim, seed=seed, n_threads=n_threads)
    return runs.bound(rho, quantity="rho", at=0.0)


def report(
    *,
    budgets: Sequence[Budget] = _BUDGETS,
    mechanisms: Sequence[str] = MECHANISMS,
    n_runs: int = 100_000,
    confidence: float = 0.999,
    seed: int | None = None,
    n_threads: int | None = None,
    progress: Callable[[LowerBound], None] | None = None,
) -> AuditReport:
    """Audit every mechanism of dpci on its worst cases: epsilon under pure and approximate DP, rho under zCDP.

    Parameters
    ----------
    budgets : sequence of PureDP, ZCDP and ApproxDP
        Claims, at most one for each notion; each mechanism is audited under the notions that it supports.
    mechanisms : sequence of str
        Names from :data:`MECHANISMS`.
    n_runs : int
        Runs on each of the two data sets of a case, half of them to choose the event.
    confidence : float
        Confidence of each bound by itself.
    seed : int, optional
        Seed of the noise; None: a fresh one.
    n_threads : int, optional
        None: all cores. The result does not depend on it.
    progress : callable, optional
        Called with each bound as soon as it is computed.

    Returns
    -------
    AuditReport
        A bound for each mechanism, notion and relation; prints as a table.

    Raises
    ------
    InvalidInput
        For arguments out of range.
    """
    given: dict[str, object] = {"budgets": budgets, "mechanisms": mechanisms}
    for name, value in given.items():
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise broken(name, "a sequence", value)
    by_notion: dict[str, Budget] = {check_budget(budget).notion: budget for budget in budgets}
    if not by_notion or len(by_notion) != len(budgets):
        raise InvalidInput(
            f"budgets must hold at least one budget, and at most one of each notion, got {list(budgets)!r}"
        )
    seed = _fresh_seed(seed)
    found = []
    for case in all_cases(by_notion, tuple(mechanisms)):
        runs = _Runs(case, None, None, n_runs=n_runs, confidence=confidence, claim=None, seed=seed, n_threads=n_threads)
        if case.budget.notion == "zcdp":
            bound = runs.bound(rho, quantity="rho", at=0.0)
        else:
            delta = delta_of(case.budget, _DELTA)
            bound = runs.bound(epsilon_at(delta), quantity="epsilon", at=delta)
        found.append(bound)
        if progress is not None:
            progress(bound)
    return AuditReport(bounds=tuple(found), n_runs=n_runs, seed=seed)


# Beyond it e^epsilon is near the end of the range of floats.
_GREATEST_EPSILON = 700.0


class _Runs:
    """Scores, or outputs, of all runs of one audit."""

    def __init__(
        self,
        draw: Draw | WorstCase,
        first: object,
        second: object,
        *,
        n_runs: int,
        confidence: float,
        claim: Budget | None,
        seed: int | None,
        n_threads: int | None,
    ) -> None:
        n_runs = check_count("n_runs", n_runs, least=_LEAST_RUNS)
        self._confidence = check_fraction("confidence", confidence)
        self._claim = None if claim is None else check_budget(claim)
        self._name = None
        threads = check_threads(n_threads)
        if isinstance(draw, WorstCase):
            if first is not None or second is not None:
                raise InvalidInput(
                    "D and D2 must not be given with a case of worst_case, which has its own data sets, got "
                    f"D={first!r}"
                )
            self._claim, self._name = self._claim or draw.budget, draw.title
            self._outputs = draw.simulate(n_runs=n_runs, seed=_fresh_seed(seed), n_threads=threads)
            return
        if not callable(draw):
            raise broken("draw", "a function or a case of worst_case", draw)
        if seed is not None:
            raise broken("seed", "None with a function as draw, which has its own randomness", seed)
        # In turns, so that whatever drifts does so on both.
        outputs = [(attempt(draw, first), attempt(draw, second)) for _ in range(n_runs)]
        self._outputs = tables([a for a, _ in outputs], [b for _, b in outputs])

    def bound(self, invert: Inversion, *, quantity: Quantity, at: float) -> LowerBound:
        return lower_bound(
            *self._outputs,
            invert,
            quantity=quantity,
            at=at,
            confidence=self._confidence,
            claim=self._claim,
            name=self._name,
        )


def _check_delta(delta: object) -> float:
    number = check_real("delta", delta)
    if not (0.0 <= number < 1.0):
        raise InvalidInput(f"delta must be >= 0 and < 1, got delta={number}")
    return number


def _fresh_seed(seed: int | None) -> int:
    checked = check_seed(seed)
    return secrets.randbits(64) if checked is None else checked
