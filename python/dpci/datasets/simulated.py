"""Simulates rows of the shape of the full KDD Cup 1999 file from those of its 10% file."""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpci.base.validation import check_count, check_not_negative, check_real, check_seed
from dpci.datasets.catalogue import KDDCUP99
from dpci.datasets.loaders import CHUNK_ROWS, Dataset, load_schema, stack
from dpci.datasets.tables import Table, load_table
from dpci.errors import InvalidInput
from dpci.schema.columns import CategoricalColumn, NumericColumn
from dpci.schema.table import Encoded, Schema

# A value is varied by at most this share of itself, and stays within its public bounds.
_GREATEST_CHANGE = 0.25

# Above a third, copies of the most frequent rows would have to be set apart, and the heavy tail would be gone.
_ROWS_PER_DISTINCT = 3


class _Distinct(NamedTuple):
    """Distinct rows as a table, their hashes, how often each occurs in the file, and the columns that hold numbers."""

    table: Table
    hashes: NDArray[np.uint64]
    frequency: NDArray[np.int64]
    numeric: list[NumericColumn]

    def take(self, rows: NDArray[np.intp]) -> "_Distinct":
        return _Distinct(_rows(self.table, rows), self.hashes[rows], self.frequency[rows], self.numeric)


def simulate_kddcup99(
    n: int = 4_898_431, *, n_distinct: int = 1_000_000, seed: int = 0, download: bool = True
) -> Dataset:
    """Simulate rows of the shape of the full KDD Cup 1999 file, from those of its 10% file.

    Rows of the 10% file are drawn with replacement. Copies of rows that are rare in it are then varied until enough
    rows are distinct: each number that is not zero is moved by at most a quarter of itself, evenly to both sides, in
    whole numbers (shares: hundredths) and within its public bounds. So the columns keep their shares of non-zeros and
    their means, every row keeps its label, its categories and its zeros, and the most frequent rows their many copies.
    Relations between columns are kept only as far as those changes let them. The rows are in random order, not by time.

    Nothing here is private: these rows are for measuring speed, memory and coverage at that size.

    Parameters
    ----------
    n : int
        Number of rows, at least 3; the full file has 4,898,431.
    n_distinct : int
        The least number of distinct pairs of row and sign, between 1 and a third of ``n``. Where the draw alone holds
        more, there are more.
    seed : int
        The rows depend on it, on ``n`` and on ``n_distinct`` alone.
    download : bool
        Whether the 10% file may be fetched where it is not here.

    Returns
    -------
    Dataset
        Counterpart of ``load_kddcup99(percent10=False)``: sparse rows, about 160 bytes each; 1.4 GB at the peak at full
        size.

    Raises
    ------
    InvalidInput
        A number is out of its range, or so many rows cannot be set apart.
    DatasetUnavailable
        The 10% file is not here and cannot be fetched, or is not the published one.

    References
    ----------
    The rows are changed from Stolfo et al. (1999), KDD Cup 1999 Data, doi 10.24432/C51C7N, licence CC BY 4.0.
    """
    n = check_count("n", n, least=_ROWS_PER_DISTINCT)
    n_distinct = check_count("n_distinct", n_distinct)
    if n_distinct > n // _ROWS_PER_DISTINCT:
        raise InvalidInput(
            f"n_distinct must be between 1 and n // 3 = {n // _ROWS_PER_DISTINCT}, got n_distinct={n_distinct}"
        )
    rng = np.random.default_rng(check_seed(seed))
    schema = load_schema(KDDCUP99.name)
    real = _distinct(load_table(KDDCUP99.name, download=download), schema)

    copies = rng.multinomial(n, real.frequency / real.frequency.sum())
    drawn = np.flatnonzero(copies)
    real, copies = real.take(drawn), copies[drawn]
    n_missing = max(0, n_distinct - len(drawn))
    # The first copy of every row stays as it is. Rare rows come first; equally rare ones in the order of their hashes.
    rare_first = np.argsort(real.frequency, kind="stable")
    candidates = np.repeat(rare_first, copies[rare_first] - 1)
    varied: list[NDArray[np.intp]] = []

    def chunks() -> Iterator[Encoded]:
        for start in range(0, len(drawn), CHUNK_ROWS):
            yield schema.transform(_rows(real.table, slice(start, start + CHUNK_ROWS)))
        for sources, table in _variants(real, candidates, n_missing, rng):
            varied.append(sources)
            yield schema.transform(table)

    pool, signs = stack(chunks(), len(schema.names))
    n_varied = len(signs) - len(drawn)
    if n_varied < n_missing:
        raise InvalidInput(
            f"n_distinct must be at most {len(signs)} for n={n} and this seed, got n_distinct={n_distinct}"
        )
    if varied:
        copies -= np.bincount(np.concatenate(varied), minlength=len(copies))
    order = rng.permutation(np.repeat(np.arange(len(signs)), np.concatenate([copies, np.ones(n_varied, dtype=int)])))
    return Dataset(
        X=pool[order],
        y=signs[order],
        names=schema.names,
        schema=schema,
        licence=f"{KDDCUP99.licence}: simulated, changed from {KDDCUP99.citation}",
    )


def _distinct(table: Table, schema: Schema) -> _Distinct:
    """Distinct rows within their bounds, ordered by their hashes."""
    numeric = [column for column in schema.columns if isinstance(column, NumericColumn)]
    table = {**table, **{column.name: np.clip(table[column.name], column.lower, column.upper) for column in numeric}}
    hashes = _hash(schema.targets(table), schema.target.column)
    for column in schema.columns:
        values = table[column.name]
        if isinstance(column, CategoricalColumn):
            # Positions among the categories that occur stand for the categories.
            values = np.unique(values, return_inverse=True)[1].astype(np.float64)
        hashes += _hash(values, column.name)
    unique, first, frequency = np.unique(hashes, return_index=True, return_counts=True)
    return _Distinct(_rows(table, first), unique, frequency.astype(np.int64), numeric)


def _variants(
    real: _Distinct, candidates: NDArray[np.intp], n_wanted: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.intp], Table]]:
    """Vary copies of the rows at `candidates` in turn, and give those that equal no row so far, with their sources.

    Rows are compared by their hashes: two rows that differ may be taken as equal, but never two equal ones as distinct.
    """
    known = real.hashes
    for start in range(0, len(candidates), CHUNK_ROWS):
        if n_wanted == 0:
            return
        sources = candidates[start : start + CHUNK_ROWS]
        table = _rows(real.table, sources)
        hashes = real.hashes[sources]
        for column in real.numeric:
            values = _vary(table[column.name], column, rng)
            hashes += _hash(values, column.name) - _hash(table[column.name], column.name)
            table[column.name] = values
        unique, first = np.unique(hashes, return_index=True)
        chosen = np.sort(first[~np.isin(unique, known, assume_unique=True)])[:n_wanted]
        known = np.union1d(known, hashes[chosen])
        n_wanted -= len(chosen)
        yield sources[chosen], _rows(table, chosen)


def _vary(values: NDArray[np.float64], column: NumericColumn, rng: np.random.Generator) -> NDArray[np.float64]:
    """Move each value evenly to both sides on its grid; zeros and values at the upper bound stay."""
    per_unit = 100.0 if column.name.endswith("_rate") else 1.0
    # Less room above means less below as well, or the mean would sink.
    room = np.minimum(_GREATEST_CHANGE * values, column.upper - values)
    return np.rint((values + room * rng.uniform(-1.0, 1.0, len(values))) * per_unit) / per_unit


def _hash(values: NDArray[np.float64], column: str) -> NDArray[np.uint64]:
    """Return 64 bits for each value of a column, by the finaliser of SplitMix64; the hash of a row is the sum."""
    salt = np.uint64(zlib.crc32(column.encode()))
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + salt
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)), dtype=np.uint64)


def _rows(table: Table, rows: NDArray[np.intp] | slice) -> Table:
    return {name: values[rows] for name, values in table.items()}


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
    persistence, effect = check_real("persistence", persistence), check_not_negative("effect", effect)
    if not 0.0 <= persistence <= 1.0:
        raise InvalidInput(f"persistence must be from 0 to 1, got persistence={persistence}")
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
