"""Neighbouring data sets on which a mechanism has its greatest privacy loss, or nearly so: outputs and scores."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.audit.bounds import with_failures
from dpci.audit.scores import Rows, additive_scores, fit_scores, report_scores
from dpci.budgets import ApproxDP, Budget, Neighbors, core_budget
from dpci.losses import Logistic
from dpci.model.settings import Settings
from dpci.unit import core_terms

_F64: TypeAlias = NDArray[np.float64]

# The two data sets of a pair draw from different streams.
_SEED_BITS = 2**64 - 1


@dataclass(frozen=True, kw_only=True)
class WorstCase(ABC):
    """A mechanism with two neighbouring data sets; :func:`dpci.audit.worst_case` makes one.

    Attributes
    ----------
    name : str
        Name of the mechanism.
    budget : PureDP, ZCDP or ApproxDP
        Budget that the mechanism claims.
    neighbors : {"replace_one", "add_remove"}
        Relation of the two data sets.
    first, second : (X, y)
        The data sets, called D and D2 elsewhere.
    """

    name: str
    budget: Budget
    neighbors: Neighbors
    first: Rows
    second: Rows

    @abstractmethod
    def outputs(self, data: Rows, *, n_runs: int, seed: int, n_threads: int | None = None) -> _F64:
        """Return simulated outputs on a data set, of shape (n_runs, k); run i draws from stream i of ``seed``.

        A run that fails is a row of NaN.
        """

    @abstractmethod
    def scores(self, outputs: _F64) -> _F64:
        """Return a number for each output, the greater the more it speaks for ``first``."""

    def simulate(self, *, n_runs: int, seed: int, n_threads: int | None = None) -> tuple[_F64, _F64]:
        """Return the scores of ``n_runs`` outputs on either data set; with failures, if there are any, beside them."""
        pairs = (self.first, seed), (self.second, seed ^ _SEED_BITS)
        first, second = (self.outputs(data, n_runs=n_runs, seed=stream, n_threads=n_threads) for data, stream in pairs)
        failed = [np.asarray(np.isnan(outputs).any(axis=1)) for outputs in (first, second)]
        scores = [self.scores(outputs[~gone]) for outputs, gone in zip((first, second), failed, strict=True)]
        if any(gone.any() for gone in failed):
            scores = [with_failures(found, gone) for found, gone in zip(scores, failed, strict=True)]
        return scores[0], scores[1]

    @property
    def title(self) -> str:
        """The mechanism, the notion of its budget, and the relation where it is not replace-one."""
        relation = "" if self.neighbors == "replace_one" else ", add/remove"
        return f"{self.name}, {_NOTIONS[self.budget.notion]}{relation}"


_NOTIONS = {"pure": "pure", "zcdp": "zCDP", "approx": "(ε, δ)"}


@dataclass(frozen=True, kw_only=True)
class FitCase(WorstCase):
    """A fit: parameters and, where they are released, the noisy moments."""

    keywords: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def settings(self) -> Settings:
        """All keywords of the fit."""
        return Settings.checked(budget=self.budget, intercept=False, **self.keywords)

    @cached_property
    def spec(self) -> _core.Spec:
        """The same, calibrated."""
        return self.settings.spec(*self.first[0].shape)

    def outputs(self, data: Rows, *, n_runs: int, seed: int, n_threads: int | None = None) -> _F64:
        """Parameters, then lower triangles of the noisy matrices."""
        return _core.simulate(self.spec, _core.Records(*data), n_runs=n_runs, seed=seed, n_threads=n_threads)

    def scores(self, outputs: _F64) -> _F64:
        """Return log-ratios of densities; on a ball, whose sphere has none, the params along the neighbours' pull."""
        return fit_scores(self.settings, self.spec, self.first, self.second, outputs)


@dataclass(frozen=True, kw_only=True)
class ReportCase(WorstCase):
    """A per-instance report of one parameter; the record x = 1 is there or is not."""

    keywords: Mapping[str, Any] = field(default_factory=dict)
    shares: tuple[float, float, float] | None = None

    @cached_property
    def settings(self) -> Settings:
        """All keywords of the fit."""
        return Settings.checked(budget=self.budget, intercept=False, **self.keywords).without_moments()

    @cached_property
    def spec(self) -> _core.ReportSpec:
        """The same with the report's shares, calibrated."""
        fit = self.settings.spec(*self.first[0].shape)
        return _core.ReportSpec(
            fit, shares=self.shares, failure_probability=1e-6, simultaneous=False, bound="interpolated"
        )

    def outputs(self, data: Rows, *, n_runs: int, seed: int, n_threads: int | None = None) -> _F64:
        """Parameter, gradient, Hessian."""
        return _core.simulate(self.spec, _core.Records(*data), n_runs=n_runs, seed=seed, n_threads=n_threads)

    def scores(self, outputs: _F64) -> _F64:
        """Log-ratio of densities."""
        scales = tuple(step.scale for step in self.spec.steps)
        target = float(self.first[1][0])
        with_record, without = (report_scores(self.settings, scales, target, n, outputs) for n in (1, 0))
        return with_record - without


@dataclass(frozen=True, kw_only=True)
class FunctionalCase(WorstCase):
    """The functional mechanism with one parameter, which is its own score."""

    def outputs(self, data: Rows, *, n_runs: int, seed: int, n_threads: int | None = None) -> _F64:
        """Return parameters."""
        spec = _core.FunctionalSpec(
            core_terms(len(self.first[0]), self.neighbors),
            n_columns=1,
            intercept=None,
            row_norm=1.0,
            target_bound=1.0,
            l2_strength=0.0,
            calibration="tight",
            polynomial="squared",
            budget=core_budget(self.budget),
        )
        return _core.simulate(spec, _core.Records(*data), n_runs=n_runs, seed=seed, n_threads=n_threads)

    def scores(self, outputs: _F64) -> _F64:
        """Return the parameter."""
        return outputs[:, 0]


@dataclass(frozen=True, kw_only=True)
class MomentMatrixCase(WorstCase):
    """A moment matrix of two columns, without the moments of residuals."""

    @cached_property
    def spec(self) -> _core.MomentMatrixSpec:
        """All public choices, calibrated."""
        return _core.MomentMatrixSpec(
            core_terms(len(self.first[0]), self.neighbors),
            n_columns=2,
            row_norm=1.0,
            target_bound=1.0,
            residuals=[],
            residual_share=0.1,
            budget=core_budget(self.budget),
        )

    def outputs(self, data: Rows, *, n_runs: int, seed: int, n_threads: int | None = None) -> _F64:
        """Return lower triangles."""
        return _core.simulate(self.spec, _core.Records(*data), n_runs=n_runs, seed=seed, n_threads=n_threads)

    def scores(self, outputs: _F64) -> _F64:
        """Return inner products with the difference of the neighbours: log-ratios of densities under Gaussian noise."""
        first, second = (self._matrix(data) for data in (self.first, self.second))
        difference = first - second
        inside = np.tril_indices(len(difference))
        # Entries off the diagonal are there twice.
        weights = np.where(inside[0] == inside[1], 1.0, 2.0)
        return np.asarray(outputs @ (weights * difference[inside]))

    def _matrix(self, data: Rows) -> _F64:
        X, y = data
        z = np.column_stack([X, np.full(len(X), self.spec.intercept), self.spec.target_weight * y])
        return np.asarray(z.T @ z)


@dataclass(frozen=True, kw_only=True)
class HistogramCase(WorstCase):
    """Noisy counts of the four cells of x and y in {-1, 1}."""

    @cached_property
    def spec(self) -> _core.HistogramSpec:
        """Grid and noise; the regression on the cells is post-processing."""
        return _core.HistogramSpec(
            core_terms(len(self.first[0]), self.neighbors),
            axes=[([0], [-1.0, 1.0])],
            n_columns=1,
            targets=[-1.0, 1.0],
            loss=Logistic().to_core(),
            l2_strength=1.0,
            intercept=None,
            budget=core_budget(self.budget),
        )

    def outputs(self, data: Rows, *, n_runs: int, seed: int, n_threads: int | None = None) -> _F64:
        """Return counts, cell by cell."""
        return _core.simulate(self.spec, _core.Records(*data), n_runs=n_runs, seed=seed, n_threads=n_threads)

    def scores(self, outputs: _F64) -> _F64:
        """Log-ratio of densities."""
        first, second = (
            np.bincount((2 * (y > 0) + (X[:, 0] > 0)).astype(int), minlength=4).astype(float)
            for X, y in (self.first, self.second)
        )
        noise, scale = self.spec.noise()
        return additive_scores(noise, scale, first, second, outputs)


@dataclass(frozen=True, kw_only=True)
class TuningCase(WorstCase):
    """A choice of one candidate, whose parameter along the record is the score."""

    keywords: Mapping[str, Any] = field(default_factory=dict)
    method: Literal["repeat", "chunks"] = "repeat"
    expected_runs: float = 3.0

    def outputs(self, data: Rows, *, n_runs: int, seed: int, n_threads: int | None = None) -> _F64:
        """Parameters of the winner."""
        settings = Settings.checked(budget=self.budget, intercept=False, **self.keywords).without_moments()
        spec = _core.TuningSpec(
            [settings.spec(*self.first[0].shape)],
            loss=settings.core_loss,
            validation_radius=None,
            method=self.method,
            shape=1.0,
            expected_runs=self.expected_runs,
            budget=core_budget(self.budget),
        )
        return _core.simulate(spec, _core.Records(*data), n_runs=n_runs, seed=seed, n_threads=n_threads)[:, 1:]

    def scores(self, outputs: _F64) -> _F64:
        """Return the first parameter."""
        return outputs[:, 0]


@dataclass(frozen=True, kw_only=True)
class SealCase(WorstCase):
    """The seal alone: the two results of one computation that lie furthest apart. The values are the one row."""

    distance: float

    @cached_property
    def spec(self) -> _core.Seal:
        """Lattice and noise."""
        return _core.Seal(dim=self.first[0].shape[1], distance=self.distance, budget=core_budget(self.budget))

    def outputs(self, data: Rows, *, n_runs: int, seed: int, n_threads: int | None = None) -> _F64:
        """Return sealed values."""
        budget, runs = core_budget(self.budget), {"n_runs": n_runs, "seed": seed}
        return _core.simulate_seals(data[0][0], distance=self.distance, budget=budget, n_threads=n_threads, **runs)

    def scores(self, outputs: _F64) -> _F64:
        """Return log-ratios of probabilities."""
        noise, scale = self.spec.noise, self.spec.scale
        # Half a step is rounded away from zero.
        first, second = (
            np.trunc(X[0] / self.spec.lattice + np.copysign(0.5, X[0])) for X, _ in (self.first, self.second)
        )
        return additive_scores(noise.removeprefix("discrete_"), scale, first, second, outputs / self.spec.lattice)


def delta_of(budget: Budget, fallback: float) -> float:
    """Return the delta that goes with the epsilon of a claim: the budget's, 0 under pure DP, otherwise ``fallback``."""
    if isinstance(budget, ApproxDP):
        return budget.delta
    return 0.0 if budget.notion == "pure" else fallback
