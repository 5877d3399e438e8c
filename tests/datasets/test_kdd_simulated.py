"""Simulated rows of the shape of the full KDD Cup 1999 file: their counts, marginals and limits."""

from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from scipy.sparse import csr_array

from dpci import datasets
from dpci.datasets import simulated as _simulated
from dpci.errors import InvalidInput
from support.kddcup99 import empty_home, needs_percent10, published_lines, publisher

FALSE_POSITIVE_RATE = 1e-6


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_home(tmp_path, monkeypatch)


@pytest.fixture
def publish(home: Path, monkeypatch: pytest.MonkeyPatch):
    return publisher(home, monkeypatch)


def multiplicities(data: datasets.Dataset) -> np.ndarray:
    """How often each distinct pair of row and sign occurs, the most frequent first.

    Equal rows have equal products with a vector; products that differ belong to rows that differ.
    """
    weights = np.random.default_rng(0).uniform(1.0, 2.0, data.X.shape[1])
    return np.sort(np.unique((data.X @ weights) * data.y, return_counts=True)[1])[::-1]


# Each of 500 rows is among 12,000 draws, except with probability 500 exp(-24) < 1e-6.
@pytest.mark.parametrize(("n_distinct", "n_found"), [(4_000, 4_000), (1, 500)])
def test_simulated_rows_of_a_small_file(publish, n_distinct: int, n_found: int) -> None:
    n = 12_000
    publish["percent10"](published_lines(500))
    data = datasets.simulate_kddcup99(n, n_distinct=n_distinct, seed=4)
    assert isinstance(data.X, csr_array)
    assert data.X.shape == (n, 122)
    assert data.X.indices.dtype == np.int32
    assert data.X.has_canonical_format
    assert set(data.y) <= {-1.0, 1.0}
    assert len(multiplicities(data)) == n_found
    assert np.sqrt(data.X.multiply(data.X).sum(axis=1)).max() <= 1.0
    assert "simulated" in data.licence
    assert "CC BY 4.0" in data.licence


@pytest.mark.parametrize("name", ["src_bytes", "count", "dst_host_count", "diff_srv_rate", "urgent", "logged_in"])
def test_numbers_are_varied_evenly_within_their_bounds(name: str) -> None:
    column = next(column for column in datasets.load_schema("kddcup99").columns if column.name == name)
    per_unit = 100.0 if name.endswith("_rate") else 1.0
    n = 20_000
    for share in (0.0, 0.01, 0.05, 0.3, 0.5, 0.9, 0.99, 1.0):
        value = np.rint(share * column.upper * per_unit) / per_unit
        varied = _simulated._vary(np.full(n, value), column, np.random.default_rng(1))
        assert column.lower <= varied.min() <= varied.max() <= column.upper
        assert ((varied > 0.0) == (value > 0.0)).all()
        np.testing.assert_array_equal(varied, np.rint(varied * per_unit) / per_unit)
        # Hoeffding; rounding moves a value by half a step at most, and as often up as down.
        room = min(0.25 * value, column.upper - value)
        assert np.abs(varied - value).max() <= room + 0.5 / per_unit + 1e-12
        distance = (2 * room + 1.0 / per_unit) * np.sqrt(np.log(2.0 * 48 / FALSE_POSITIVE_RATE) / (2 * n))
        assert abs(varied.mean() - value) <= distance
        # From one step on, some values come to another point of the grid.
        assert (varied.std() > 0.0) == (room * per_unit > 0.5)


def test_the_seed_gives_the_rows(publish) -> None:
    publish["percent10"](published_lines(500))
    first, again, other = (datasets.simulate_kddcup99(3_000, n_distinct=900, seed=seed) for seed in (1, 1, 2))
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(first.X, name), getattr(again.X, name))
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)


@pytest.mark.parametrize(
    ("n", "keywords", "message"),
    [
        (2, {"n_distinct": 1}, "n must be at least 3, got n=2"),
        (300, {"n_distinct": 101}, "n_distinct must be between 1 and n // 3 = 100, got n_distinct=101"),
        (300, {"n_distinct": 0}, "n_distinct must be at least 1, got n_distinct=0"),
        (300, {"n_distinct": 10, "seed": -1}, "seed must be None or an integer in"),
        (3.5, {}, "n must be an integer"),
    ],
)
@pytest.mark.usefixtures("home")
def test_numbers_out_of_range(n: float, keywords: dict, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        datasets.simulate_kddcup99(n, **keywords)
    assert message in str(caught.value)


def test_the_fewest_rows(publish) -> None:
    publish["percent10"](published_lines(500))
    data = datasets.simulate_kddcup99(3, n_distinct=1)
    assert data.X.shape == (3, 122)
    assert data.y.shape == (3,)


def test_rows_that_cannot_be_set_apart(publish) -> None:
    line = b"0,tcp,http,SF" + b",0" * 37 + b",normal.\n"
    publish["percent10"]([line] * 5)
    assert len(multiplicities(datasets.simulate_kddcup99(30, n_distinct=1))) == 1
    with pytest.raises(InvalidInput, match="n_distinct must be at most 1 for n=30 and this seed, got n_distinct=2"):
        datasets.simulate_kddcup99(30, n_distinct=2)


@needs_percent10
def test_simulated_rows_have_the_marginals_of_the_published_file() -> None:
    real = datasets.load_kddcup99(sparse=True, download=False)
    n, n_distinct = 600_000, 200_000  # every seventh row is a variant
    data = datasets.simulate_kddcup99(n, n_distinct=n_distinct, download=False)

    # Drawn rows keep their zeros and their label, so these counts are binomial.
    n_tests = 2 * len(data.names) + 2
    level = FALSE_POSITIVE_RATE / n_tests / 2
    shares = np.append(np.bincount(real.X.indices, minlength=122), (real.y > 0).sum()) / len(real.y)
    counts = np.append(np.bincount(data.X.indices, minlength=122), (data.y > 0).sum())
    assert (scipy.stats.binom.cdf(counts, n, shares) >= level).all()
    assert (scipy.stats.binom.sf(counts - 1, n, shares) >= level).all()

    def bernstein(second_moment, greatest):
        """Distance that the mean of n values in [0, greatest] keeps from its expectation."""
        log = np.log(1.0 / level)
        return greatest * log / (3.0 * n) + np.sqrt((greatest * log / (3.0 * n)) ** 2 + 2.0 * second_moment * log / n)

    # The numbers keep their means, but the rows hold logarithms: varying every row would lower a column by up to 0.5%
    # of its mean. It adds at most a fiftieth to the second moment.
    mean, second = real.X.mean(axis=0), real.X.multiply(real.X).mean(axis=0)
    assert (np.abs(data.X.mean(axis=0) - mean) <= 0.002 * mean + bernstein(1.05 * second, 1 / 41**0.5)).all()
    per_row = np.diff(real.X.indptr)
    drawn = np.diff(data.X.indptr)
    assert per_row.min() <= drawn.min() <= drawn.max() <= per_row.max()
    assert abs(drawn.mean() - per_row.mean()) <= bernstein((per_row.astype(float) ** 2).mean(), per_row.max())

    # One row of the file has 46% of the lines, the next 7%; most rows occur once.
    times, real_times = multiplicities(data), multiplicities(real)
    assert len(times) == n_distinct
    assert real_times[0] > 0.4 * len(real.y)
    for rank in range(3):
        share = real_times[rank] / len(real.y)
        # The draw gives a binomial number of copies, and only rare rows lose some of theirs.
        assert level <= scipy.stats.binom.cdf(times[rank], n, share) <= 1.0 - level
    assert times[1_000] >= 3
    assert (times == 1).mean() > 0.5
