"""Simulated people: panels, in which a person has rows that resemble each other, and surveys with weights."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpci.base.validation import check_count, check_seed
from dpci.errors import InvalidInput

_F64 = NDArray[np.float64]


class Panel(NamedTuple):
    """Rows of persons, in random order."""

    X: _F64
    """Rows of norm at most 1."""
    y: _F64
    """-1 and 1."""
    persons: NDArray[np.int64]
    """The person of each row."""


def simulate_panel(
    n_persons: int,
    *,
    n_rows: int | tuple[int, int] = 10,
    n_features: int = 3,
    persistence: float = 0.9,
    effect: float = 2.0,
    seed: int,
) -> Panel:
    """Simulate a panel: waves of a survey, visits of patients. The true log odds are 3 x0 + the person's own effect.

    Parameters
    ----------
    n_persons : int
        Number of persons.
    n_rows : int or (int, int)
        Rows of each person, or the smallest and the largest number, uniform.
    n_features : int
        Columns.
    persistence : float
        Share of the variance of a column, from 0 to 1, that does not change from row to row of a person.
    effect : float
        Standard deviation of the effect that all rows of a person share; 0: rows are independent given their columns.
    seed : int
        Seed of the simulation.

    Returns
    -------
    Panel
        ``X``, ``y`` and ``persons``.

    Raises
    ------
    InvalidInput
        For arguments out of range.

    Examples
    --------
    >>> panel = simulate_panel(100, n_rows=(1, 5), seed=0)
    >>> panel.X.shape[1], len(set(panel.persons.tolist()))
    (3, 100)
    """
    n_persons, n_features = check_count("n_persons", n_persons), check_count("n_features", n_features)
    least, greatest = (check_count("n_rows", n) for n in (n_rows if isinstance(n_rows, tuple) else (n_rows, n_rows)))
    if least > greatest:
        raise InvalidInput(f"n_rows must be (least, greatest), got n_rows={n_rows}")
    if not 0.0 <= persistence <= 1.0:
        raise InvalidInput(f"persistence must be from 0 to 1, got persistence={persistence}")
    if not 0.0 <= effect < np.inf:
        raise InvalidInput(f"effect must be finite and at least 0, got effect={effect}")
    rng = np.random.default_rng(check_seed(seed))
    persons = np.repeat(np.arange(n_persons), rng.integers(least, greatest + 1, n_persons))
    persons = rng.permutation(persons)
    lasting = rng.normal(size=(n_persons, n_features))[persons]
    X = np.sqrt(persistence) * lasting + np.sqrt(1.0 - persistence) * rng.normal(size=lasting.shape)
    X *= 0.5
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True) * (1.0 + 1e-12))
    odds = 3.0 * X[:, 0] + effect * rng.normal(size=n_persons)[persons]
    y = np.where(odds + rng.logistic(size=len(persons)) > 0.0, 1.0, -1.0)
    return Panel(X, y, persons)


class Survey(NamedTuple):
    """A sample of a population in which some were drawn more often than others."""

    X: _F64
    """Rows of norm at most 1."""
    y: _F64
    """-1 and 1."""
    weights: _F64
    """The reciprocals of the probabilities with which the rows were drawn, with mean 1."""
    weight_bound: float
    """The largest of them, from the design alone."""


# Of everyone with y = -1 a quarter was asked, and of those with x1 <= 0 a half answered.
_ASKED, _ANSWERED = 0.25, 0.5


def simulate_survey(n_samples: int, *, n_features: int = 3, effect: float = 4.0, seed: int) -> Survey:
    """Simulate a survey that drew people by their outcome and by x1.

    The log odds are 2 x0 where x1 is at most 0, and (2 + effect) x0 elsewhere. Rows without weights are not a sample of
    the population: four fifths of them have y = 1 in place of a half, and two thirds have x1 above 0.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    n_features : int
        Columns, at least 2.
    effect : float
        By how much the effect of x0 differs, which a linear model averages over the population.
    seed : int
        Seed of the simulation.

    Returns
    -------
    Survey
        ``X``, ``y``, ``weights`` and ``weight_bound``.

    Raises
    ------
    InvalidInput
        For arguments out of range.

    Examples
    --------
    >>> survey = simulate_survey(1000, seed=0)
    >>> survey.X.shape, survey.weight_bound, bool(abs(survey.weights.mean() - 1.0) < 0.1)
    ((1000, 3), 3.75, True)
    """
    n_samples, n_features = check_count("n_samples", n_samples), check_count("n_features", n_features, least=2)
    if not np.isfinite(effect):
        raise InvalidInput(f"effect must be finite, got effect={effect}")
    rng = np.random.default_rng(check_seed(seed))
    found: list[tuple[_F64, _F64, _F64]] = []
    while sum(len(y) for _, y, _ in found) < n_samples:
        X = 0.5 * rng.normal(size=(2 * n_samples + 100, n_features))
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True) * (1.0 + 1e-12))
        odds = X[:, 0] * (2.0 + effect * (X[:, 1] > 0.0))
        y = np.where(odds + rng.logistic(size=len(X)) > 0.0, 1.0, -1.0)
        chance = np.where(y > 0, 1.0, _ASKED) * np.where(X[:, 1] > 0, 1.0, _ANSWERED)
        drawn = rng.random(len(X)) < chance
        found.append((X[drawn], y[drawn], chance[drawn]))
    X, y, chance = (np.concatenate([part[i] for part in found])[:n_samples] for i in range(3))
    # The outcome and x1 > 0 are independent, and each is as likely as not: x0 has either sign.
    mean = (1.0 + _ASKED) / 2.0 * (1.0 + _ANSWERED) / 2.0
    return Survey(X, y, mean / chance, mean / (_ASKED * _ANSWERED))
