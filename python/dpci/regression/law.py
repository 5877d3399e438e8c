"""The law of the error of a contrast of regression coefficients: a sampling part and the noise in the matrix.

docs/proofs/linear_regression.md has the formulas. The sum is a t variable with Satterthwaite's degrees of
freedom, which count that the variances are estimated from a noisy matrix; under symmetric matrix Laplace noise it is
mixed over the two gamma variables that make this noise normal.
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

_F64 = NDArray[np.float64]

# Nodes of the rule for each gamma variable: of one release, of two, and of more, which have two each.
_NODES = (12, 7, 5)
# Standard deviations below 0 from which the expansions are exact to seven digits.
_FAR = 40.0
# Steps towards a quantile; halvings alone would leave no digit open after as many.
_STEPS = 60
# Where the steps stop, relative to the quantile.
_CLOSE = 1e-14


def positive_part(mean: _F64, std_dev: _F64) -> tuple[_F64, _F64]:
    """Return mean and variance of a number that is known to be positive and was seen with normal noise.

    Every positive value is equally likely beforehand. Without noise both are what was seen: the number and 0.
    """
    seen = np.divide(mean, std_dev, out=np.full_like(mean, np.inf), where=std_dev > 0.0)
    certain, far = np.isinf(seen), seen < -_FAR
    within = np.where(certain | far, 0.0, seen)
    # The hazard φ(a)/Φ(a) of a normal variable, from logarithms; farther below 0 its expansion, where
    # differences would lose their digits.
    with np.errstate(over="ignore"):
        hazard = np.exp(-0.5 * within**2 - 0.5 * np.log(2.0 * np.pi) - special.log_ndtr(within))
    kept = np.maximum(1.0 - hazard * (within + hazard), 0.0)
    small = 1.0 / np.where(far, -seen, _FAR)
    gap = np.where(far, small * (1.0 - 2.0 * small**2 + 10.0 * small**4), within + hazard)
    variance = np.where(far, small**2 * (1.0 - 6.0 * small**2 + 50.0 * small**4), kept) * std_dev**2
    return np.where(certain, mean, std_dev * gap), np.where(certain, 0.0, variance)


def hidden(seen: _F64, std_dev: _F64, usual: _F64, greatest: _F64, chance: float) -> tuple[_F64, _F64]:
    """Return mean and variance of positive numbers that were seen with normal noise.

    Beforehand they are normal around what is usual, with that for a standard deviation, or by chance with what is
    greatest. Without noise they are what was seen.
    """
    reach = np.stack([usual, greatest])
    spread = np.hypot(reach, std_dev)
    weight = (reach / spread) ** 2
    means, variances = positive_part(weight * seen + (1.0 - weight) * usual, std_dev * np.sqrt(weight))
    odds = special.softmax(-np.log(spread) - 0.5 * ((seen - usual) / spread) ** 2, axis=0) * [[1.0 - chance], [chance]]
    odds /= odds.sum(axis=0)
    mean = np.sum(odds * means, axis=0)
    # A t law with fewer degrees of freedom than four would be that of an error which may be of any size.
    return mean, np.minimum(np.sum(odds * (variances + (means - mean) ** 2), axis=0), 0.5 * mean**2)


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of one release: ``plus·e + minus·f`` with independent e, f of variance 1, one entry a contrast."""

    plus: _F64
    minus: _F64
    degrees: float
    """Shape of the two gamma variables that make e and f normal; infinite for normal noise."""


@dataclass(frozen=True, eq=False)
class ErrorParts:
    """The parts of the errors of some contrasts, one entry each."""

    sampling: _F64
    """Sampling variance."""
    sampling_variance: _F64
    """Variance of its estimate."""
    noises: tuple[Noise, ...]

    @property
    def variance(self) -> _F64:
        """Variance of the error."""
        return np.asarray(self.sampling + sum(noise.plus**2 + noise.minus**2 for noise in self.noises))

    @property
    def df(self) -> _F64:
        """Satterthwaite's degrees of freedom."""
        found = np.full_like(self.variance, np.inf)
        np.divide(2.0 * self.variance**2, self.sampling_variance, out=found, where=self.sampling_variance > 0.0)
        return found

    def tail(self, size: _F64) -> _F64:
        """Return the probability of an error of at least this size."""
        spread, weights = self._mixture()
        return np.asarray(2.0 * special.stdtr(_finite(self.df)[:, None], -size[:, None] / spread) @ weights)

    def half_width(self, level: float) -> _F64:
        """Return the size that errors stay below with this probability."""
        df = _finite(self.df)
        spread, weights = self._mixture()
        beyond = 0.5 - 0.5 * level
        unit = -special.stdtrit(df, beyond)
        if len(weights) == 1:
            return np.asarray(unit * spread[:, 0])
        # Newton's method within brackets, from the law of the same variance, for the contrasts that are still open.
        low, high = unit * spread.min(axis=1), unit * spread.max(axis=1)
        found = np.clip(unit * np.sqrt(self.variance), low, high)
        at = np.flatnonzero(high > low)
        for _ in range(_STEPS):
            standard, freedom = found[at, None] / spread[at], df[at, None]
            excess = special.stdtr(freedom, -standard) @ weights - beyond
            slope = (_density(standard, freedom) / spread[at]) @ weights
            low[at], high[at] = np.where(excess > 0.0, found[at], low[at]), np.where(excess > 0.0, high[at], found[at])
            step = found[at] + excess / slope
            step = np.where((step > low[at]) & (step < high[at]), step, 0.5 * (low[at] + high[at]))
            open_still = np.abs(step - found[at]) > _CLOSE * step
            found[at] = step
            at = at[open_still]
            if not len(at):
                break
        return np.asarray(found)

    def _mixture(self) -> tuple[_F64, _F64]:
        """Return standard deviations, shape (m, nodes), and the weights of the nodes."""
        spread, weights = self.sampling[:, None], np.ones(1)
        mixed = sum(np.isfinite(noise.degrees) for noise in self.noises)
        n_nodes = _NODES[min(max(mixed, 1), len(_NODES)) - 1]
        for noise in self.noises:
            for amplitude in (part for part in (noise.plus, noise.minus) if part.any()):
                nodes, shares = _gamma_rule(noise.degrees, n_nodes)
                spread = (spread[:, :, None] + amplitude[:, None, None] ** 2 * nodes).reshape(len(amplitude), -1)
                weights = np.outer(weights, shares).ravel()
        return np.sqrt(spread), weights


@functools.lru_cache(maxsize=64)
def _gamma_rule(degrees: float, n_nodes: int) -> tuple[_F64, _F64]:
    """Return nodes and weights of a gamma variable of mean 1."""
    if np.isinf(degrees):
        return np.ones(1), np.ones(1)
    nodes, weights = special.roots_genlaguerre(n_nodes, degrees - 1.0)
    return nodes / degrees, weights / weights.sum()


def _density(t: _F64, df: _F64) -> _F64:
    """Return the density of Student's law; to a few digits where there are many degrees of freedom."""
    constant = np.exp(special.gammaln(0.5 * (df + 1.0)) - special.gammaln(0.5 * df)) / np.sqrt(np.pi * df)
    return np.asarray(constant * np.exp(-0.5 * (df + 1.0) * np.log1p(t * t / df)))


def _finite(df: _F64) -> _F64:
    # From here on t is the normal law in double precision.
    return np.minimum(df, 1e10)
