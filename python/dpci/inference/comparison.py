"""Comparison of two released models: differences of their parameters with intervals and p-values."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpci.base.tables import format_percent, format_pvalue, format_table, new_frame, number_format
from dpci.base.validation import check_flag, check_fraction
from dpci.errors import InvalidInput
from dpci.inference.contrasts import Contrast, contrast_rows
from dpci.inference.error_law import ErrorLaw, mixing_nodes, ratio_nodes
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.methods import Inference, law_of
from dpci.inference.quadratic_tail import mixture_quantile, mixture_tail
from dpci.released.model import record_of
from dpci.schema.table import Schema, same_columns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare"]

_F64 = NDArray[np.float64]

_LIGHT = 1e-12
# Tails below it are computed with twice the nodes.
_FAR_TAIL = 1e-10
# Numbers that are held at once.
_BLOCK = 2**21
# Of simulated laws, and numbers of them that are held.
_DRAWS, _LEAST_DRAWS, _MOST_NUMBERS = 200_000, 10_000, 2 * 10**7


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Differences between two released models, a minus b; made by :func:`dpci.compare`, post-processing of both.

    Attributes
    ----------
    names : tuple of str
        Parameters or contrasts, m of them.
    estimate_a, estimate_b : numpy.ndarray of shape (m,)
        What each model released.
    std_errors : numpy.ndarray of shape (m,)
        Standard deviation of the error of each difference; on shared data an upper bound.
    pvalues : numpy.ndarray of shape (m,)
        Two-sided p-values of "the two targets are the same"; on shared data upper bounds.
    intervals : ConfidenceIntervals
        Of the differences.
    shared_data : bool
        Whether the two models may have been fitted to the same records.
    private : bool
        False if the noise of either was seeded.
    private_n_samples : bool
        Whether the number of records of either is private (add/remove). The ridge of its target is ``l2_strength``
        times ``n_public`` over that number, so that targets differ where these ratios do.
    """

    names: tuple[str, ...]
    estimate_a: _F64
    estimate_b: _F64
    std_errors: _F64
    pvalues: _F64
    intervals: ConfidenceIntervals
    shared_data: bool
    private: bool
    private_n_samples: bool

    def __post_init__(self) -> None:
        for array in (self.estimate_a, self.estimate_b, self.std_errors, self.pvalues):
            array.flags.writeable = False

    @property
    def difference(self) -> _F64:
        """``estimate_a - estimate_b``, shape (m,)."""
        return self.intervals.estimate

    def to_frame(self) -> "pd.DataFrame":
        """One row for each parameter or contrast, indexed by name; needs pandas."""
        return new_frame(self._columns(), self.names)

    def summary(self) -> str:
        """Return a table of the differences, and what it rests on."""
        header = ["name", "a", "b", "a - b", "std error", "p-value", "lower", "upper"]
        columns = self._columns()
        digits = number_format(self.std_errors, [self.estimate_a, self.estimate_b])
        shown = [[format_pvalue(x) if c == "pvalue" else f"{x:{digits}}" for x in columns[c]] for c in columns]
        rows = [list(row) for row in zip(self.names, *shown, strict=True)]
        data = (
            "Data: may be shared. The dependence of the sampling errors is unknown, so std errors, p-values\n"
            "and intervals are upper bounds."
            if self.shared_data
            else "Data: two independent samples."
        )
        ridge = (
            "Add/remove: the ridge of a target is lambda * n_public / (number of records, which is private).\n"
            "A difference may come from these numbers."
        )
        parts = [
            f"{format_percent(self.intervals.level)} confidence intervals of the differences",
            format_table(header, rows),
            data,
            *([ridge] if self.private_n_samples else []),
        ]
        return "\n\n".join(parts if self.private else ["NOT PRIVATE (seeded)", *parts])

    def __repr__(self) -> str:
        return self.summary()

    def _columns(self) -> dict[str, _F64]:
        return {
            "estimate_a": self.estimate_a,
            "estimate_b": self.estimate_b,
            "difference": self.difference,
            "std_error": self.std_errors,
            "pvalue": self.pvalues,
            "lower": self.intervals.lower,
            "upper": self.intervals.upper,
        }


class Comparable(Protocol):
    """A released result that may be compared with another of its kind."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""

    @property
    def params(self) -> _F64:
        """The parameters."""

    @property
    def private(self) -> bool:
        """Whether the noise was drawn for privacy."""


class DifferenceLaw(Protocol):
    """The law of the errors of differences."""

    @property
    def std_errors(self) -> _F64:
        """Standard deviation of each error."""

    def tails(self, distance: _F64, /) -> _F64:
        """Return P(|error| >= distance) for each error."""

    def half_widths(self, level: float, /) -> _F64:
        """Return the q with P(|error| <= q) = level for each error."""


class ComparedFacts(NamedTuple):
    """What two results must have in common, and what tells one release from another."""

    facts: dict[str, Any]
    released: _F64
    schema: Schema | None
    private_n_samples: bool


def compare(
    result_a: Comparable,
    result_b: Comparable,
    *,
    contrast: Contrast | None = None,
    level: float = 0.95,
    shared_data: bool = False,
    same_loss: bool = False,
) -> Comparison:
    """Compare two released models, parameter by parameter: differences with intervals and p-values.

    Both must have targets that mean the same: equal names, loss, regularisation, classes and intercept, and the same
    public bound where rows were clipped to it. Under add/remove they mean the same only where ``n_public`` is to the
    private number of records as in the other fit, which no release tells (:attr:`Comparison.private_n_samples`). It
    reads no data and costs no budget.

    On independent samples the errors of both add up, sampling and noise alike, and the law of their sum is exact:
    with two spherical Laplace noises a normal law with two mixing variables. (Unless the projection is "floor" or
    "cautious", its tails are computed to a few percent.) On shared records the sampling errors depend on each other in
    a way that neither model tells; their difference has at most the standard deviation that perfectly opposed errors
    have, the sum of both, and the result is conservative. The noises are independent in both cases, but of fits with
    equal seeds. With noise in the shape of the rows of a fit, the law is that of 200,000 simulated errors, always the
    same.

    Parameters
    ----------
    result_a, result_b : PrivateFit or LinearFit
        Two releases of one kind, each with intervals.
    contrast : array-like of shape (k,) or (m, k), or names, optional
        Linear combinations to compare, as in :meth:`PrivateFit.conf_int`; None: each parameter.
    level : float
        Strictly between 0 and 1; of each interval by itself.
    shared_data : bool
        True where a record may have entered both fits. False, where it may, gives wrong intervals: nothing in two
        releases tells.
    same_loss : bool
        For two fits with custom losses only, of which a release holds the declared bounds and not the functions: True
        says that both are the same function. Without it they are refused.

    Returns
    -------
    Comparison
        Differences, standard errors, p-values and intervals; prints itself.

    Raises
    ------
    InvalidInput
        For results without intervals, or whose targets do not mean the same; the message names what differs.
    """
    level = check_fraction("level", level)
    shared_data = check_flag("shared_data", shared_data)
    same_loss = check_flag("same_loss", same_loss)
    for name, result in (("result_a", result_a), ("result_b", result_b)):
        if compared_facts.dispatch(type(result)) is compared_facts.dispatch(object):
            raise InvalidInput(f"{name} must be a PrivateFit or a LinearFit, got {type(result).__name__}")
    _check_comparable(result_a, result_b)
    if isinstance(result_a, Inference) and result_a.loss["name"] == "custom" and not same_loss:
        raise InvalidInput(
            "same_loss must be True to compare two custom losses, because a release does not contain their "
            "functions, got same_loss=False"
        )
    rows, names = contrast_rows(contrast, result_a.names)
    error = difference_law(result_a, result_b, rows, shared_data)
    simulated = isinstance(error, _SimulatedDifference)
    estimates = rows @ result_a.params, rows @ result_b.params
    difference = estimates[0] - estimates[1]
    half_width = error.half_widths(level)
    bounds = difference - half_width, difference + half_width
    intervals = ConfidenceIntervals(names, difference, *bounds, level, "monte_carlo" if simulated else "exact")
    return Comparison(
        names,
        *estimates,
        error.std_errors,
        error.tails(np.abs(difference)),
        intervals,
        shared_data,
        private=result_a.private and result_b.private,
        private_n_samples=any(compared_facts(result).private_n_samples for result in (result_a, result_b)),
    )


@singledispatch
def compared_facts(result: object) -> ComparedFacts:
    """Return the facts of a result; each kind of result registers its own."""
    raise NotImplementedError


@compared_facts.register
def _(result: Inference) -> ComparedFacts:
    record = record_of(result)
    facts = {
        "names": record.names,
        "loss": record.loss,
        "l2_strength": record.l2_strength,
        "classes": record.classes,
        "intercept_scale": record.intercept_scale,
        "rows, to which records were clipped,": record.rows if record.on_violation == "clip" else None,
    }
    return ComparedFacts(facts, result.params, result.schema, private_n_samples=record.neighbors == "add_remove")


@singledispatch
def difference_law(result: object, other: object, rows: _F64, shared: bool) -> DifferenceLaw:  # noqa: FBT001  # as registered
    """Return the law of the errors of the differences of two results; each kind of result registers its own."""
    raise NotImplementedError


@difference_law.register
def _(result: Inference, other: Inference, rows: _F64, shared: bool) -> DifferenceLaw:  # noqa: FBT001
    laws = law_of(result), law_of(other)
    simulated = any(law.blocks is not None for law in laws)
    return (_SimulatedDifference if simulated else _Difference)(laws, rows, shared=shared)


def _check_comparable(result_a: Comparable, result_b: Comparable) -> None:
    one, two = compared_facts(result_a), compared_facts(result_b)
    if set(one.facts) != set(two.facts):
        kinds = type(result_a).__name__, type(result_b).__name__
        raise InvalidInput(f"two results must be of one kind to be compared, got {kinds[0]} and {kinds[1]}")
    for name, value in one.facts.items():
        other = two.facts[name]
        if value != other:
            raise InvalidInput(f"two results must have the same {name} to be compared, got {value!r} and {other!r}")
    if one.schema is not None and two.schema is not None and not same_columns(one.schema, two.schema):
        raise InvalidInput(
            "two results must have schemas of equal columns to be compared, got two that scale or code their columns "
            "in other ways"
        )
    if result_a is result_b or np.array_equal(one.released, two.released):
        raise InvalidInput("the two results must be different releases, got the same parameters twice")


class _Difference:
    """Law of the error of each difference: normal given the mixing variables W and Omega of both.

    Its variance is ``W_a (v_a + a² Omega_a) + W_b (v_b + b² Omega_b)``, and on shared records twice ``sqrt(W_a W_b)``
    times the greatest covariance of the sampling errors more.
    """

    def __init__(self, laws: tuple[ErrorLaw, ...], rows: _F64, *, shared: bool) -> None:
        self.laws = laws
        variances = [law.components(rows)[0] for law in laws]
        common = np.zeros(len(rows))
        if shared:
            # The seals are noise, and independent. What is left are two sampling errors of any correlation.
            seals = [law.seal_variance * (rows**2).sum(axis=1) for law in laws]
            sampling = [np.maximum(v - seal, 0.0) for v, seal in zip(variances, seals, strict=True)]
            common = 2.0 * np.sqrt(sampling[0]) * np.sqrt(sampling[1])
        mixed = [law.noise_variance(rows) for law in laws]
        # What the five products of mixing variables in _nodes are multiplied with.
        self.parts = np.stack([*variances, common, *mixed], axis=1)

    @property
    def std_errors(self) -> _F64:
        """Standard deviation of each error."""
        return np.asarray(np.sqrt(self.parts.sum(axis=1)))

    def tails(self, distance: _F64) -> _F64:
        """Return P(|error| >= distance) for each error."""
        tails = self._tails(distance, slice(None), far=1, least=_FAR_TAIL)
        for i in np.flatnonzero(tails < _FAR_TAIL):
            tails[i] = self._tails(distance, slice(i, i + 1), far=2, least=0.0)[0]
        return np.minimum(1.0, tails)

    def half_widths(self, level: float) -> _F64:
        """Return the q with P(|error| <= q) = level for each error."""
        nodes, weights = self._nodes(far=1, least=1.0 - level)
        rows = slice(None)
        parts = [mixture_quantile(std_devs, weights, 1.0 - level) for _, std_devs in self._std_devs(rows, nodes)]
        return np.concatenate([*parts, np.empty(0)])

    def _tails(self, distance: _F64, rows: slice, *, far: Literal[1, 2], least: float) -> _F64:
        nodes, weights = self._nodes(far=far, least=least)
        parts = [mixture_tail(distance[at], std_devs, weights) for at, std_devs in self._std_devs(rows, nodes)]
        return np.concatenate([*parts, np.empty(0)])

    def _nodes(self, *, far: Literal[1, 2], least: float) -> tuple[_F64, _F64]:
        """Products of the mixing variables over their means, shape (5, n), and the weights of the nodes.

        What is left out has no more than the share :data:`_LIGHT` of a tail of ``least``.
        """
        ratios = [ratio_nodes(law.shape) for law in self.laws]
        noises = [mixing_nodes(law.law, law.dim, far=far) for law in self.laws]
        grids = [grid.ravel() for grid in np.meshgrid(*(nodes for nodes, _ in (*ratios, *noises)), indexing="ij")]
        weights = np.prod(np.meshgrid(*(p for _, p in (*ratios, *noises)), indexing="ij"), axis=0).ravel()
        kept = weights >= _LIGHT * least / len(weights)
        w_a, w_b, omega_a, omega_b = (grid[kept] for grid in grids)
        return np.stack([w_a, w_b, np.sqrt(w_a * w_b), w_a * omega_a, w_b * omega_b]), weights[kept]

    def _std_devs(self, rows: slice, nodes: _F64) -> Iterator[tuple[slice, _F64]]:
        """Yield rows, and the standard deviations of their errors given each node."""
        start, stop, _ = rows.indices(len(self.parts))
        size = max(1, _BLOCK // nodes.shape[1])
        for first in range(start, stop, size):
            at = slice(first, min(first + size, stop))
            yield at, np.sqrt(self.parts[at] @ nodes)


class _SimulatedDifference(_Difference):
    """The same where noise is in the shape of blocks and no mixture of normal laws: always with the same draws."""

    def __init__(self, laws: tuple[ErrorLaw, ...], rows: _F64, *, shared: bool) -> None:
        super().__init__(laws, rows, shared=shared)
        rng = np.random.default_rng(0)
        n = max(_LEAST_DRAWS, min(_DRAWS, _MOST_NUMBERS // max(1, len(rows))))
        ratios = [np.ones(n) if math.isinf(law.shape) else rng.standard_gamma(law.shape, n) / law.shape for law in laws]
        fixed = np.stack([*ratios, np.sqrt(ratios[0] * ratios[1])], axis=1) @ self.parts[:, :3].T
        errors = np.sqrt(fixed) * rng.standard_normal((n, len(rows)))
        for law, ratio in zip(laws, ratios, strict=True):
            noise = replace(law, sampling=np.zeros_like(law.sampling), least_sampling=None, seal_variance=0.0)
            errors += np.sqrt(ratio)[:, None] * replace(noise, shape=math.inf).draw(rng, rows, n)
        self.sizes = np.abs(errors)

    def tails(self, distance: _F64) -> _F64:
        """Return P(|error| >= distance) for each error; the distance itself counts as a draw."""
        return np.asarray((1 + np.count_nonzero(self.sizes >= distance, axis=0)) / (1 + len(self.sizes)))

    def half_widths(self, level: float) -> _F64:
        """Return the q with P(|error| <= q) = level for each error."""
        return np.asarray(np.quantile(self.sizes, level, axis=0))
