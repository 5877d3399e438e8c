"""Neighbouring data sets on which a mechanism has its greatest privacy loss, or nearly so: outputs and scores."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.audit.bounds import with_failures
from dpci.budgets import ApproxDP, Budget, Neighbors, core_budget
from dpci.losses import Logistic
from dpci.lowlevel.blocks import minimize_erm
from dpci.model.settings import Settings
from dpci.unit import core_terms

_F64: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = tuple[_F64, _F64]

# Of a minimiser, far below the noise of any case.
_TOLERANCE = 1e-9


def fit_scores(settings: Settings, spec: _core.Spec, first: Rows, second: Rows, outputs: _F64) -> _F64:
    """Return the scores of releases of a fit, one a row: parameters, then lower triangles of the noisy matrices."""
    bounded = settings.radius is not None
    if bounded and (settings.mechanism.name == "objective" or settings.mechanism.project):
        # No density on the sphere: the parameters along the direction in which the neighbours pull.
        pull = np.subtract(*(_minimum(settings, spec, data) for data in (first, second)))
        return np.asarray(outputs[:, : len(pull)] @ (pull / np.linalg.norm(pull)))
    dim = first[0].shape[1]
    params, matrices = _parts(outputs, dim)
    # Noise is calibrated at the released norm. Taken at one point, because the score must be one function of an output,
    # whichever data set it came from: many scores lie at the end of their range, where the least difference tells.
    steps = _core.moment_steps(spec, float(np.linalg.norm(_minimum(settings, spec, first))))
    densities = [_fit_density(settings, spec, steps, data, (params, matrices)) for data in (first, second)]
    # Rounded, so that equal log-ratios are ties whatever the last bits.
    return np.asarray(np.round(densities[0] - densities[1], 9))


def report_scores(
    settings: Settings,
    scales: tuple[float, ...],
    target: float,
    count: float,
    outputs: _F64,
) -> _F64:
    """Log density of reports of one parameter, x = 1 so many times in the data: it, the gradient, the Hessian."""
    theta = np.ascontiguousarray(outputs[:, 0])
    n_public = settings.n_public or 0
    _, slopes, curvatures = settings.core_loss.evaluate(theta, np.full(len(theta), target))
    slope = count * slopes + n_public * settings.strength * theta
    curvature = count * curvatures + n_public * settings.strength
    # The noise that leads to these parameters is minus the gradient.
    total = np.log(curvature) - (slope / scales[0]) ** 2 / 2.0
    for released, exact, scale in zip(outputs.T[1:], (slope, curvature)[: len(scales) - 1], scales[1:], strict=True):
        total -= ((released - exact) / scale) ** 2 / 2.0
    return np.asarray(total)


def additive_scores(noise: str, scale: float, first: _F64, second: _F64, outputs: _F64) -> _F64:
    """Return the scores of known vectors plus independent noise: "laplace" or "gaussian"."""
    distances = [np.abs(outputs - center) / scale for center in (first, second)]
    sizes = [(d**2 / 2.0 if noise == "gaussian" else d).sum(axis=1) for d in distances]
    return np.asarray(sizes[1] - sizes[0])


def _parts(outputs: _F64, dim: int) -> tuple[_F64, list[_F64]]:
    """Parameters (n, d) and matrices (n, d, d) of rows."""
    params, *triangles = np.split(outputs, [dim, dim + dim * (dim + 1) // 2], axis=1)
    rows, columns = np.tril_indices(dim)
    matrices = []
    for triangle in triangles:
        if triangle.shape[1]:
            matrix = np.zeros((len(outputs), dim, dim))
            matrix[:, rows, columns] = matrix[:, columns, rows] = triangle
            matrices.append(matrix)
    return params, matrices


def _fit_density(
    settings: Settings,
    spec: _core.Spec,
    steps: list[_core.Step],
    data: Rows,
    parts: tuple[_F64, list[_F64]],
) -> _F64:
    """Log density on ``data``, up to what does not depend on the data; close to it for matrix Laplace noise."""
    (X, y), (theta, matrices) = data, parts
    n = settings.public_n(len(X))
    if settings.mechanism.name == "output":
        total = _log_noise(
            spec.noise_law, spec.noise_scale, np.linalg.norm(theta - _minimum(settings, spec, data), axis=1)
        )
    else:
        total = np.zeros(len(theta))
    if settings.mechanism.name == "output" and not matrices:
        return total
    u = theta @ X.T
    _, slopes, curvatures = settings.core_loss.evaluate(u.ravel(), np.tile(y, len(theta)))
    slopes, curvatures = slopes.reshape(u.shape), curvatures.reshape(u.shape)
    squares = X[:, :, None] * X[:, None, :]
    if settings.mechanism.name == "objective":
        ridge = n * spec.l2_strength
        jacobian = np.einsum("rn,nij->rij", curvatures, squares) + ridge * np.eye(X.shape[1])
        noise = np.linalg.norm(slopes @ X + ridge * theta, axis=1)
        total += np.linalg.slogdet(jacobian)[1] + _log_noise(spec.noise_law, spec.noise_scale, noise)
    if matrices:
        joint = len(steps) == 1
        scales = (steps[0].hessian_scale, steps[0].scale) if joint else tuple(s.scale for s in steps)
        for noisy, weights, scale in zip(matrices, (curvatures, slopes**2), scales, strict=True):
            if not scale:  # nothing was released
                continue
            error = noisy - np.einsum("rn,nij->rij", weights, squares) / n
            nuclear = steps[-1].noise == "matrix_laplace"
            size = np.abs(np.linalg.eigvalsh(error)).sum(axis=1) if nuclear else np.linalg.norm(error, axis=(1, 2))
            total += _log_noise(steps[-1].noise, scale, size)
    return total


def _minimum(settings: Settings, spec: _core.Spec, data: Rows) -> _F64:
    X, y = data
    return minimize_erm(
        X,
        y,
        loss=settings.loss,
        # Of the mean over the public number of records.
        l2_strength=spec.l2_strength * settings.public_n(len(X)) / len(X),
        radius=settings.radius,
        tolerance=_TOLERANCE,
    ).params


def _log_noise(law: str, scale: float, size: _F64) -> _F64:
    return -((size / scale) ** 2) / 2.0 if law == "gaussian" else -size / scale


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

    @property
    @abstractmethod
    def spec(self) -> Any:  # noqa: ANN401  # of a mechanism of the core
        """All public choices, calibrated."""

    def outputs(self, data: Rows, *, n_runs: int, seed: int, n_threads: int | None = None) -> _F64:
        """Return simulated outputs on a data set, of shape (n_runs, k); run i draws from stream i of ``seed``.

        A run that fails is a row of NaN.
        """
        return _core.simulate(self.spec, _core.Records(*data), n_runs=n_runs, seed=seed, n_threads=n_threads)

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


def _without_constant(budget: Budget, keywords: Mapping[str, Any]) -> Settings:
    return dataclasses.replace(Settings.checked(budget=budget, **keywords), intercept=None)


_NOTIONS = {"pure": "pure", "zcdp": "zCDP", "approx": "(ε, δ)"}


@dataclass(frozen=True, kw_only=True)
class FitCase(WorstCase):
    """A fit: parameters and, where they are released, lower triangles of the noisy moments."""

    keywords: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def settings(self) -> Settings:
        """All keywords of the fit."""
        return _without_constant(self.budget, self.keywords)

    @cached_property
    def spec(self) -> _core.Spec:
        """The same, calibrated."""
        return self.settings.spec(*self.first[0].shape)

    def scores(self, outputs: _F64) -> _F64:
        """Return log-ratios of densities; on a ball, whose sphere has none, the params along the neighbours' pull."""
        return fit_scores(self.settings, self.spec, self.first, self.second, outputs)


@dataclass(frozen=True, kw_only=True)
class ReportCase(WorstCase):
    """A per-instance report: a parameter, gradient and Hessian; the record x = 1 is there or is not."""

    keywords: Mapping[str, Any] = field(default_factory=dict)
    shares: tuple[float, float, float] | None = None

    @cached_property
    def settings(self) -> Settings:
        """All keywords of the fit."""
        return _without_constant(self.budget, self.keywords).without_moments()

    @cached_property
    def spec(self) -> _core.ReportSpec:
        """The same with the report's shares, calibrated."""
        fit = self.settings.spec(*self.first[0].shape)
        return _core.ReportSpec(
            fit, shares=self.shares, failure_probability=1e-6, simultaneous=False, bound="interpolated"
        )

    def scores(self, outputs: _F64) -> _F64:
        """Log-ratio of densities."""
        scales = tuple(step.scale for step in self.spec.steps)
        target = float(self.first[1][0])
        with_record, without = (report_scores(self.settings, scales, target, n, outputs) for n in (1, 0))
        return with_record - without


@dataclass(frozen=True, kw_only=True)
class FunctionalCase(WorstCase):
    """The functional mechanism with one parameter, which is its own score."""

    @cached_property
    def spec(self) -> _core.FunctionalSpec:
        """All public choices, calibrated."""
        return _core.FunctionalSpec(
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

    def scores(self, outputs: _F64) -> _F64:
        """Return the parameter."""
        return outputs[:, 0]


@dataclass(frozen=True, kw_only=True)
class MomentMatrixCase(WorstCase):
    """A moment matrix of two columns, without the moments of residuals: its lower triangle."""

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
    """Noisy counts of the four cells of x and y in {-1, 1}, cell by cell."""

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

    @cached_property
    def spec(self) -> _core.TuningSpec:
        """The candidate and the choice, calibrated."""
        settings = _without_constant(self.budget, self.keywords).without_moments()
        return _core.TuningSpec(
            [settings.spec(*self.first[0].shape)],
            loss=settings.core_loss,
            validation_radius=None,
            method=self.method,
            shape=1.0,
            expected_runs=self.expected_runs,
            budget=core_budget(self.budget),
        )

    def outputs(self, data: Rows, *, n_runs: int, seed: int, n_threads: int | None = None) -> _F64:
        """Parameters of the winner."""
        return super().outputs(data, n_runs=n_runs, seed=seed, n_threads=n_threads)[:, 1:]

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
