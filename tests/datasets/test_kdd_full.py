"""The full KDD Cup 1999 file, streamed into sparse rows, and simulated rows of its shape."""

import gzip
import io
import tracemalloc
from pathlib import Path

import numpy as np
import pooch
import pytest
import scipy.stats
from scipy.sparse import csr_array

import dpci
from dpci import datasets
from dpci.datasets import files as _files
from dpci.datasets import loaders as _loaders
from dpci.datasets import simulated as _simulated
from dpci.datasets.catalogue import CATALOGUE, KDDCUP99
from dpci.datasets.tables import parse
from dpci.errors import InvalidInput
from support.kddcup99 import CHUNK_ROWS, empty_home, needs_percent10, published_lines, publisher
from support.keywords import assembled

N_LINES = 1_003  # ten whole chunks of the synthetic file, and three lines


def dense(lines: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    encoded = datasets.load_schema("kddcup99").transform(parse(b"".join(lines), KDDCUP99.layout))
    return encoded.X, encoded.y


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_home(tmp_path, monkeypatch)


@pytest.fixture
def publish(home: Path, monkeypatch: pytest.MonkeyPatch):
    return publisher(home, monkeypatch)


def check_rows(data: datasets.Dataset, X: np.ndarray, y: np.ndarray) -> None:
    assert isinstance(data.X, csr_array)
    assert (data.X.dtype, data.X.indices.dtype) == (np.float64, np.int32)
    assert data.X.has_canonical_format
    assert (data.X.data != 0.0).all()
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.y, y)
    assert data.schema == datasets.load_schema("kddcup99")
    assert data.names == data.schema.names
    assert "CC BY 4.0" in data.licence


@pytest.mark.parametrize("n", [1, CHUNK_ROWS, N_LINES])
def test_streamed_rows_are_the_dense_rows(publish, n: int) -> None:
    lines = published_lines(n)
    publish["full"](lines)
    check_rows(datasets.load_kddcup99(percent10=False), *dense(lines))
    publish["percent10"](lines)
    check_rows(datasets.load_kddcup99(sparse=True), *dense(lines))


def test_an_archive_of_several_members_is_one_file(publish) -> None:
    lines = published_lines(250)
    publish["full"](lines, gzip.compress(b"".join(lines[:120])) + gzip.compress(b"".join(lines[120:])))
    check_rows(datasets.load_kddcup99(percent10=False), *dense(lines))


def test_sparse_rows_can_be_fitted(publish) -> None:
    lines = published_lines(N_LINES)
    publish["full"](lines)
    data = datasets.load_kddcup99(percent10=False)
    keywords = {"budget": dpci.PureDP(2.0), "l2_strength": 0.1, "seed": 1, "moments": "none"}
    expected = dpci.fit(*dense(lines), **assembled(**keywords))
    np.testing.assert_allclose(
        dpci.fit(data.X, data.y, **assembled(**keywords)).params, expected.params, rtol=0, atol=1e-8
    )


def replaced(line: bytes, position: int, value: bytes) -> bytes:
    cells = line.rstrip(b"\n").split(b",")
    cells[position] = value
    return b",".join(cells) + b"\n"


@pytest.mark.parametrize("number", [1, 7 * CHUNK_ROWS, N_LINES])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: line.rpartition(b",")[0] + b"\n", "a line must have 42 fields, got 41"),
        (lambda line: b"0," + line, "a line must have 42 fields, got 43"),
        (lambda _: b"\n", "a line must have 42 fields, got 0"),
        (lambda line: replaced(line, 2, b"gopherholes"), "column 'service' must hold one of .*, got 'gopherholes'"),
        (lambda line: replaced(line, 41, b"odd."), "column 'label' must hold one of .*, got 'odd.'"),
        (lambda line: replaced(line, 4, b"many"), "column 'src_bytes' must hold finite numbers, got 'many'"),
        (lambda line: replaced(line, 0, b"nan"), "column 'duration' must hold finite numbers, got 'nan'"),
        (lambda line: replaced(line, 0, b""), "column 'duration' must hold finite numbers, got ''"),
        (lambda line: replaced(line, 0, b"1_0"), "column 'duration' must hold finite numbers, got '1_0'"),
        (lambda line: replaced(line, 3, b'"SF'), "column 'flag' must hold one of .*, got '\"SF'"),
        (lambda line: replaced(line, 3, b"\xff"), r"column 'flag' must hold one of .*, got '\\\\xff'"),
    ],
    ids=["short", "long", "empty", "service", "label", "word", "nan", "nothing", "underscore", "quote", "bytes"],
)
def test_a_bad_line_is_named(publish, number: int, change, message: str) -> None:
    lines = published_lines(N_LINES)
    lines[number - 1] = change(lines[number - 1])
    publish["full"](lines)
    with pytest.raises(InvalidInput, match=f"^line {number} of kddcup99/kddcup.data: {message}") as caught:
        datasets.load_kddcup99(percent10=False)
    assert "in row" not in str(caught.value)


def test_the_first_of_several_bad_lines_is_named(publish) -> None:
    lines = published_lines(N_LINES)
    for number in (444, 445, 460, 900):
        lines[number - 1] = replaced(lines[number - 1], 1, b"sctp")
    publish["full"](lines)
    with pytest.raises(InvalidInput, match=r"^line 444 .*got 'sctp'"):
        datasets.load_kddcup99(percent10=False)


def test_another_archive_is_refused(publish) -> None:
    path = publish["full"](published_lines(50))
    file = KDDCUP99.files["full"]
    assert _files.is_intact(file, _files.find(file))
    path.write_bytes(gzip.compress(b"".join(published_lines(50, seed=1))))
    assert not _files.is_intact(file, _files.find(file))
    with pytest.raises(datasets.DatasetUnavailable, match=f"must be the published archive with sha256 {file.sha256}"):
        datasets.load_kddcup99(percent10=False)


@pytest.mark.parametrize("damage", ["cut", "content", "no gzip"])
def test_a_damaged_archive_is_refused(publish, damage: str) -> None:
    archive = bytearray(gzip.compress(b"".join(published_lines(N_LINES))))
    if damage == "cut":
        archive = archive[:-100]
    elif damage == "content":
        archive[-5] ^= 1  # the length that the archive states of its content
    else:
        archive[0] ^= 1
    publish["full"]([], bytes(archive))
    with pytest.raises(datasets.DatasetUnavailable, match="must be a whole gzip archive"):
        datasets.load_kddcup99(percent10=False)


def test_an_uncompressed_file_is_refused(publish) -> None:
    lines = published_lines(20)
    archive = publish["full"](lines)
    plain = archive.with_suffix("")
    plain.write_bytes(b"".join(lines))
    datasets.load_kddcup99(percent10=False)  # the archive comes first
    archive.unlink()
    assert not _files.is_intact(KDDCUP99.files["full"], _files.find(KDDCUP99.files["full"]))
    with pytest.raises(
        datasets.DatasetUnavailable, match=r"published archive kddcup\.data\.gz, got an uncompressed file"
    ):
        datasets.load_kddcup99(percent10=False)


@pytest.mark.usefixtures("home")
def test_without_the_file() -> None:
    with pytest.raises(datasets.DatasetUnavailable, match="downloading was not allowed"):
        datasets.load_kddcup99(percent10=False, download=False)
    with pytest.raises(datasets.DatasetUnavailable) as caught:
        datasets.load_kddcup99(percent10=False)
    for part in ("kddcup99/kddcup.data.gz", "archive with sha256", KDDCUP99.files["full"].sha256, "network is down"):
        assert part in str(caught.value)
    with pytest.raises(datasets.DatasetUnavailable, match=r"kddcup\.data_10_percent"):
        datasets.simulate_kddcup99(100, n_distinct=10)


def test_a_download_is_verified_and_kept(publish, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = published_lines(N_LINES)
    archive = publish["full"](lines)
    content = archive.read_bytes()
    archive.unlink()
    served = [b"<html>busy</html>", content]
    monkeypatch.setattr(
        pooch.HTTPDownloader, "__call__", lambda _self, _url, output, _pooch: Path(output).write_bytes(served.pop(0))
    )
    with pytest.raises(datasets.DatasetUnavailable, match=r"the file at .* must have sha256"):
        datasets.load_kddcup99(percent10=False)
    assert not [path for path in (home / "cache").rglob("*") if path.is_file()]
    check_rows(datasets.load_kddcup99(percent10=False), *dense(lines))
    assert not served
    # The second time it comes from the cache.
    assert _files.find(KDDCUP99.files["full"]).place == "cache"
    check_rows(datasets.load_kddcup99(percent10=False, download=False), *dense(lines))


@pytest.mark.usefixtures("home")
def test_the_full_file_is_no_table() -> None:
    with pytest.raises(InvalidInput, match=r"split of kddcup99 must be one of"):
        datasets.load_table("kddcup99", "full")
    for keywords in ({"percent10": 0}, {"sparse": "yes"}):
        with pytest.raises(InvalidInput, match="must be True or False"):
            datasets.load_kddcup99(**keywords)


def test_the_checksum_is_that_of_scikit_learn() -> None:
    archive = pytest.importorskip("sklearn.datasets._kddcup99").ARCHIVE
    file = CATALOGUE["kddcup99"].files["full"]
    assert (file.url, file.sha256, file.sha256_of) == (archive.url, archive.checksum, "archive")


def test_memory_is_the_sparse_rows_and_a_chunk(publish) -> None:
    lines = published_lines(N_LINES) * 10
    publish["full"](lines)
    del lines
    tracemalloc.start()
    data = datasets.load_kddcup99(percent10=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = data.X.data.nbytes + data.X.indices.nbytes + data.X.indptr.nbytes + data.y.nbytes
    dense_chunk = CHUNK_ROWS * len(data.names) * 8
    # The offsets are held twice for a moment; text, table and dense rows of a chunk; buffers of the archive.
    assert peak < kept + 8 * data.X.indptr.size + 10 * dense_chunk + 2**20
    assert peak < 0.5 * len(data.y) * len(data.names) * 8


@needs_percent10
def test_streamed_lines_of_the_published_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_loaders, "CHUNK_ROWS", 7_000)
    content = _files.read(KDDCUP99.files["percent10"], download=False)
    # Normal connections and attacks, in three chunks.
    lines = content.splitlines(keepends=True)[140_000:160_000]
    rows = _loaders.read_rows(io.BytesIO(b"".join(lines)), KDDCUP99.layout, datasets.load_schema("kddcup99"), "part")
    X, y = dense(lines)
    np.testing.assert_array_equal(rows.X.toarray(), X)
    np.testing.assert_array_equal(rows.y, y)
    assert set(y) == {-1.0, 1.0}


FALSE_POSITIVE_RATE = 1e-6


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
