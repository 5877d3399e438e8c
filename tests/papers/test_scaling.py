"""The preprocessing of the published coverage tables, against its definition, and the rules of its sizes."""

import doctest
import warnings

import numpy as np
import pytest

from dpci.datasets import Layout, load_table
from dpci.datasets import files as _files
from dpci.datasets.catalogue import CATALOGUE
from dpci.errors import InvalidInput, PrivacyLeakWarning
from papers import scaling
from papers.scaling import load_with_data_dependent_scaling, scale_by_the_data


def needs(name: str, split: str) -> pytest.MarkDecorator:
    is_here = _files.find(CATALOGUE[name].files[split]) is not None
    return pytest.mark.skipif(not is_here, reason=f"{name} is neither in DPCI_DATA nor in the cache")


def test_the_example_runs() -> None:
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        assert doctest.testmod(scaling) == (0, 7)


def test_scaling_by_the_data_warns() -> None:
    table = {"age": np.array([40.0, 20.0]), "paid": np.array(["yes", "no"])}
    layout = Layout(columns=("age", "paid"), numeric=("age",), target="paid", positive=("yes",))
    with pytest.warns(PrivacyLeakWarning, match="NOT PRIVATE") as caught:
        X, y, names = scale_by_the_data(table, layout)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(X, [[np.sqrt(0.5)] * 2, [0.2**0.5, 0.8**0.5]], rtol=1e-12)
    assert (y.tolist(), names) == ([1.0, -1.0], ("age", "ones"))


@needs("adult", "train")
def test_data_dependent_scaling_of_adult() -> None:
    with pytest.warns(PrivacyLeakWarning, match="NOT PRIVATE"):
        data = load_with_data_dependent_scaling("adult")
    assert data.X.shape == (30_162, len(data.names)) == (30_162, 105)
    assert (data.y > 0).sum() == 7_508
    assert set(np.unique(data.y)) == {-1.0, 1.0}
    assert data.X.flags.c_contiguous
    assert np.sqrt(np.einsum("ij,ij->i", data.X, data.X)).max() <= 1.0
    assert data.schema is None
    assert data.names[:3] == ("age", "fnlwgt", "education-num")
    assert data.names[6:8] == ("workclass=Federal-gov", "workclass=Local-gov")
    assert data.names[-2:] == ("native-country=Yugoslavia", "ones")
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1.0, rtol=1e-13)

    # Against the definition, spelled out for a few rows.
    table = load_table("adult")
    complete = np.all([column != "?" for column in table.values()], axis=0)
    order = np.random.default_rng(3).permutation(complete.sum())[:50]
    numeric = np.array([table[c][complete] / table[c][complete].max() for c in data.names[:6]]).T[order]
    expected = numeric[:, :4] / np.maximum(np.linalg.norm(numeric[:, :4], axis=1), 1.0)[:, None]
    expected = np.hstack([expected, np.ones((50, 1))])
    expected /= np.linalg.norm(expected, axis=1)[:, None]
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        small = load_with_data_dependent_scaling("adult", n=50, d=4, seed=3)
    np.testing.assert_allclose(small.X, expected, rtol=1e-12)
    np.testing.assert_array_equal(small.y > 0, table["income"][complete][order] == ">50K")


@needs("kddcup99", "percent10")
@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
def test_data_dependent_scaling_of_kddcup99() -> None:
    data = load_with_data_dependent_scaling("kddcup99", n=5_000)
    # 36 numeric columns that are not constant zero, 80 categories, ones.
    assert data.X.shape == (5_000, 117)


@needs("bank", "train")
@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
@pytest.mark.parametrize(("n", "d"), [(0, None), (None, 52), (50_000, None), (-1, 3)])
def test_data_dependent_scaling_within_the_file(n: int | None, d: int | None) -> None:
    with pytest.raises(InvalidInput, match="must be between 1 and"):
        load_with_data_dependent_scaling("bank", n=n, d=d)
