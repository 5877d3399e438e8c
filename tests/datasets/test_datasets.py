"""Public data sets: counts, checksums, bounds, and what happens when a file is not here."""

import gzip
import importlib
import sys
from pathlib import Path

import numpy as np
import pooch
import pytest
from sklearn.linear_model import LogisticRegression

from dpci import datasets
from dpci.datasets import files as _files
from dpci.datasets.catalogue import ADULT, CATALOGUE, CREDIT_DEFAULT
from dpci.errors import DpciError, InvalidInput
from support.kddcup99 import empty_home


def here(name: str, split: str) -> bool:
    return _files.find(CATALOGUE[name].files[split]) is not None


def needs(name: str, split: str = "train") -> pytest.MarkDecorator:
    return pytest.mark.skipif(not here(name, split), reason=f"{name} is neither in DPCI_DATA nor in the cache")


def check(data: datasets.Dataset, shape: tuple[int, int], n_positive: int) -> None:
    assert data.X.shape == shape
    assert (data.y > 0).sum() == n_positive
    assert set(np.unique(data.y)) == {-1.0, 1.0}
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert len(data.names) == shape[1] == len(set(data.names))
    assert np.sqrt(np.einsum("ij,ij->i", data.X, data.X)).max() <= 1.0
    assert "CC BY 4.0" in data.licence


def test_sample() -> None:
    check(datasets.load_adult_sample(), (4_000, 6), 1_012)
    check(datasets.load_adult_sample("adult"), (4_000, 88), 1_012)
    packed = importlib.resources.files("dpci.datasets").joinpath("adult_sample.csv.gz").read_bytes()
    assert len(packed) < 100_000
    header, _, rows = gzip.decompress(packed).partition(b"\n")
    assert header.decode().split(",") == list(ADULT.layout.columns)
    assert b"?" not in rows


def test_the_sample_says_what_one_expects() -> None:
    sample = datasets.load_adult_sample()
    model = LogisticRegression(C=1.0 / (0.01 * len(sample.y))).fit(sample.X, sample.y)
    assert (model.coef_ > 0.3).all()


@needs("adult")
def test_the_sample_is_drawn_from_adult(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(__file__).parents[2] / "benches" / "make_adult_sample.py"
    namespace = importlib.util.spec_from_file_location("make_adult_sample", script)
    module = importlib.util.module_from_spec(namespace)
    namespace.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", ["make_adult_sample", "--output", str(tmp_path / "again.csv.gz")])
    module.main()
    assert gzip.decompress((tmp_path / "again.csv.gz").read_bytes()) == gzip.decompress(module.TARGET.read_bytes())


@needs("adult")
@needs("adult", "test")
@pytest.mark.parametrize(
    ("split", "drop_missing", "n", "n_positive"),
    [
        ("train", True, 30_162, 7_508),
        ("test", True, 15_060, 3_700),
        ("all", True, 45_222, 11_208),
        ("train", False, 32_561, 7_841),
        ("all", False, 48_842, 11_687),
    ],
)
def test_adult(split: str, *, drop_missing: bool, n: int, n_positive: int) -> None:
    data = datasets.load_adult(split, drop_missing=drop_missing)
    check(data, (n, 88), n_positive)
    assert data.schema == datasets.load_schema("adult")


@needs("bank")
def test_bank() -> None:
    check(datasets.load_bank(), (45_211, 47), 5_289)


@needs("credit_default")
def test_credit_default() -> None:
    check(datasets.load_credit_default(), (30_000, 28), 6_636)
    table = datasets.load_table("credit_default")
    means = {name: table[name].mean() for name in ("X1", "X18")}
    assert means["X1"] == pytest.approx(167_484.32, abs=0.01)
    assert means["X18"] == pytest.approx(5_663.58, abs=0.01)


@needs("kddcup99", "percent10")
def test_kddcup99() -> None:
    data = datasets.load_kddcup99()
    check(data, (494_021, 122), 97_278)
    for group, per_row in (("service=", 1), ("flag=", 1), ("protocol_type=", 1)):
        chosen = [position for position, name in enumerate(data.names) if name.startswith(group)]
        # Every connection has a service, a flag and a protocol of the public lists.
        assert (np.count_nonzero(data.X[:, chosen], axis=1) == per_row).all()


@needs("adult")
def test_every_category_of_adult_is_in_the_public_list() -> None:
    table = datasets.load_table("adult")
    for column in datasets.load_schema("adult").columns:
        if hasattr(column, "categories"):
            assert set(table[column.name].tolist()) <= {*column.categories, "?"}


def test_packaged_schemas_state_their_sources() -> None:
    assert datasets.schema_names() == ("adult", "adult_demo", "bank", "credit_default", "kddcup99")
    for name in datasets.schema_names():
        schema = datasets.load_schema(name)
        assert schema.name == name
        assert schema.source
        assert schema.licence == "CC BY 4.0"
        assert all(column.source for column in schema.columns)


def test_unknown_names() -> None:
    with pytest.raises(InvalidInput, match="a packaged schema must be one of"):
        datasets.load_schema("iris")
    with pytest.raises(InvalidInput, match="a data set must be one of"):
        datasets.load_table("iris")
    with pytest.raises(InvalidInput, match=r"split of adult must be one of .*, got 'valid'"):
        datasets.load_adult("valid")
    with pytest.raises(InvalidInput, match=r"split of kddcup99 must be one of .*, got 'half'"):
        datasets.load_table("kddcup99", "half")


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_home(tmp_path, monkeypatch)


@pytest.mark.usefixtures("nowhere")
def test_offline() -> None:
    with pytest.raises(datasets.DatasetUnavailable) as caught:
        datasets.load_adult()
    assert isinstance(caught.value, DpciError)
    for part in ("set DPCI_DATA", "adult/adult.data.gz", ADULT.files["train"].sha256, "the network is down"):
        assert part in str(caught.value)
    with pytest.raises(datasets.DatasetUnavailable, match="downloading was not allowed"):
        datasets.load_bank(download=False)


@pytest.mark.usefixtures("nowhere")
def test_without_pooch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(datasets.DatasetUnavailable, match=r"needs pooch: pip install 'dpci\[datasets\]'"):
        datasets.load_adult()


@pytest.mark.parametrize(
    "content",
    [gzip.compress(b"1, 2\n"), b"no archive", gzip.compress(b"1, 2\n")[:-6]],
    ids=["another archive", "no archive", "cut off"],
)
def test_another_file_is_refused(nowhere: Path, content: bytes) -> None:
    path = nowhere / "data" / "adult" / "adult.data.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(datasets.DatasetUnavailable, match="must be the published file with sha256"):
        datasets.load_adult()


def test_another_spreadsheet_is_refused(nowhere: Path) -> None:
    path = nowhere / "data" / f"{CREDIT_DEFAULT.files['train'].path}"
    path.parent.mkdir(parents=True)
    path.write_text("not,a\nnumber,here\n", encoding="utf-8")
    with pytest.raises(datasets.DatasetUnavailable, match="must be the published file"):
        datasets.load_credit_default()


@needs("credit_default")
def test_another_export_of_the_same_spreadsheet_is_accepted(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    content = _files.read(CREDIT_DEFAULT.files["train"])
    other = content.replace(b"\r\n", b"\n").replace(b"2.00E+05", b"200000")
    assert other != content

    def fetch(_self: object, _url: str, output: str, _pooch: object) -> None:
        Path(output).write_bytes(other)

    monkeypatch.setenv("DPCI_DATA", str(nowhere / "data"))
    monkeypatch.setattr(pooch, "os_cache", lambda name: nowhere / "cache" / name)
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", fetch)
    check(datasets.load_credit_default(), (30_000, 28), 6_636)
    # The second time it comes from the cache.
    kept = _files.find(CREDIT_DEFAULT.files["train"])
    assert kept is not None
    assert kept.place == "cache"
    check(datasets.load_credit_default(download=False), (30_000, 28), 6_636)


@needs("adult")
def test_a_table_without_missing_values() -> None:
    whole, complete = datasets.load_table("adult"), datasets.load_table("adult", drop_missing=True)
    assert (len(whole["age"]), len(complete["age"])) == (32_561, 30_162)
    assert not any("?" in column for column in complete.values() if column.dtype.kind == "U")


def test_layouts_of_the_catalogue() -> None:
    layout = datasets.load_layout("credit_default")
    assert (layout.target, layout.positive, layout.ignored) == ("Y", ("1",), ("ID",))
    for other in ("iris", None, []):
        with pytest.raises(InvalidInput, match="a data set must be one of"):
            datasets.load_layout(other)
