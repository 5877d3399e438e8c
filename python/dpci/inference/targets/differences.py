"""Laws of the error of the difference of two released models: sums, exact or simulated."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpci.inference.intervals import ErrorLaw
from dpci.inference.quadratic_tail import mixing_nodes, mixture_quantile, mixture_tail, ratio_nodes

_F64 = NDArray[np.float64]

_LIGHT = 1e-12
# How fine the rule of a mixing variable is (mixing_nodes), and the least tail for which it is taken.
# All are exact to 1e-9 there, as quantiles by Newton's method are.
_RULES = ((0.5, 1e-6), (1.0, 1e-10), (2.0, 0.0))
# Numbers that are held at once.
_BLOCK = 2**21
# Of simulated laws, and numbers of them that are held.
_DRAWS, _LEAST_DRAWS, _MOST_NUMBERS = 200_000, 10_000, 2 * 10**7


class Difference:
    """Law of the error of each difference: normal given the mixing variables W and Omega of both.

    Its variance is ``W_a (v_a + a² Omega_a) + W_b (v_b + b² Omega_b)``, and on shared records twice ``sqrt(W_a W_b)``
    times the largest covariance of the sampling errors more.
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
        tails, below = np.zeros(len(self.parts)), math.inf
        for far, least in _RULES:
            rows, below = np.flatnonzero(tails < below), least
            if len(rows):
                nodes, weights = self._nodes(far=far, least=least)
                for at, std_devs in self._std_devs(rows, nodes):
                    tails[at] = mixture_tail(distance[at], std_devs, weights)
        return np.minimum(1.0, tails)

    def half_widths(self, level: float) -> _F64:
        """Return the q with P(|error| <= q) = level for each error."""
        beyond = 1.0 - level
        far = next(far for far, least in _RULES if beyond >= least)
        nodes, weights = self._nodes(far=far, least=beyond)
        rows = np.arange(len(self.parts))
        parts = [mixture_quantile(std_devs, weights, beyond) for _, std_devs in self._std_devs(rows, nodes)]
        return np.concatenate([*parts, np.empty(0)])

    def _nodes(self, *, far: float, least: float) -> tuple[_F64, _F64]:
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

    def _std_devs(self, rows: NDArray[np.intp], nodes: _F64) -> Iterator[tuple[NDArray[np.intp], _F64]]:
        """Yield some of the rows, and the standard deviations of their errors given each node."""
        size = max(1, _BLOCK // nodes.shape[1])
        for first in range(0, len(rows), size):
            at = rows[first : first + size]
            yield at, np.sqrt(self.parts[at] @ nodes)


class SimulatedDifference(Difference):
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
