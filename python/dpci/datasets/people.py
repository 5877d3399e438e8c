"""Simulated people: panels, in which every person has several rows that resemble each other."""

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
        Rows of each person, or the least and the greatest number, uniform.
    n_features : int
        Columns.
    persistence : float
        Share of the variance of a column, from 0 to 1, that does not change from row to row of a person.
    effect : float
        Standard deviation of the effect that all rows of a person share; 0: rows are independent given their columns.
    seed : int
        Of the simulation.

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
