"""Sparse rows: every format of SciPy gives what the dense matrix gives, and is never changed."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import dpci
from dpci.data.arrays import as_features

N, D = 3000, 7
FORMATS = ["bsr", "coo", "csc", "csr", "dok", "lil"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.37, 0.37, size=(N, D)) * (rng.random((N, D)) < 0.25)
    y = (X @ np.linspace(-6, 6, D) + rng.logistic(size=N) > 0).astype(int)
    return X, y


def fit(X, y, **keywords):
    return dpci.fit(X, y, **{"budget": dpci.PureDP(2.0), "l2_strength": 0.02, "seed": 5, **keywords})


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix], ids=["array", "matrix"])
def test_a_sparse_fit_equals_the_dense_one(rows, name, kind):
    X, y = rows
    dense, sparse = fit(X, y), fit(kind(X).asformat(name), y)
    assert sparse.names == dense.names
    for attribute in ("params", "hessian", "gradient_cov"):
        np.testing.assert_allclose(getattr(sparse, attribute), getattr(dense, attribute), rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "keywords",
    [
        {"rows": dpci.rows.Within(intercept=False)},
        {"rows": dpci.rows.Clipped(0.3)},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_keywords(rows, keywords):
    X, y = rows
    sparse = fit(scipy.sparse.csr_array(X), y, **keywords)
    np.testing.assert_allclose(sparse.params, fit(X, y, **keywords).params, rtol=0, atol=1e-8)


def test_building_blocks(rows):
    X, y = rows
    signs, sparse = 2.0 * y - 1.0, scipy.sparse.csc_array(X)
    found, expected = (dpci.lowlevel.minimize_erm(x, signs, l2_strength=0.01) for x in (sparse, X))
    np.testing.assert_allclose(found.params, expected.params, rtol=0, atol=1e-8)
    for name in ("erm_value_and_gradient", "hessian_and_gradient_cov"):
        function = getattr(dpci.lowlevel, name)
        for ours, theirs in zip(
            function(sparse, signs, found.params, l2_strength=0.01),
            function(X, signs, found.params, l2_strength=0.01),
            strict=True,
        ):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def test_predictions(rows):
    X, y = rows
    result, sparse = fit(X, y), scipy.sparse.coo_array(X)
    np.testing.assert_allclose(result.decision_function(sparse), result.decision_function(X), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(result.predict(sparse), result.predict(X))
    np.testing.assert_allclose(result.predict_proba(sparse), result.predict_proba(X), rtol=0, atol=1e-12)
    with pytest.raises(dpci.InvalidInput, match=r"X must have the 7 columns of the fit, got 6"):
        result.predict(sparse.tocsr()[:, :6])
    bad = scipy.sparse.csr_array(([1.0, np.inf], ([2, 4], [3, 1])), shape=(5, D))
    with pytest.raises(dpci.InvalidInput, match=r"X must be finite, got inf at index \(4, 1\)"):
        result.predict(bad)


def test_duplicate_entries_are_summed_as_toarray_does():
    parts = (np.array([1, 2, 4, 8], dtype=np.int8), ([0, 0, 1, 1], [1, 1, 0, 2]))
    sparse = scipy.sparse.coo_array(parts, shape=(3, 3))
    indptr, indices, values, _ = as_features(sparse)[0]
    rebuilt = scipy.sparse.csr_array((values, indices, indptr), shape=(3, 3))
    np.testing.assert_array_equal(rebuilt.toarray(), sparse.toarray())


def test_the_matrix_is_not_changed():
    unsorted = scipy.sparse.csr_array(([1.0, 2.0, 3.0], [1, 0, 1], [0, 3, 3]), shape=(2, 2))
    # A flag that does not say the truth is not believed.
    unsorted.has_canonical_format = True
    indptr, indices, values, width = as_features(unsorted)[0]
    assert (indptr.tolist(), indices.tolist(), values.tolist(), width) == ([0, 2, 2], [0, 1], [2.0, 4.0], 2)
    assert (unsorted.indices.tolist(), unsorted.data.tolist()) == ([1, 0, 1], [1.0, 2.0, 3.0])
    canonical = scipy.sparse.csr_array(np.eye(3))
    assert np.shares_memory(as_features(canonical)[0][2], canonical.data)


def test_indices_of_other_types(rows):
    X, y = rows
    wide = scipy.sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_array_equal(fit(wide, y).params, fit(scipy.sparse.csr_array(X), y).params)


def test_sparse_columns_of_a_frame(rows):
    X, y = rows
    frame = pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_matrix(X), columns=list("abcdefg"))
    result = fit(frame, y)
    assert result.names == (*"abcdefg", "intercept")
    np.testing.assert_array_equal(result.params, fit(X, y).params)


KINDS = [scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.bsr_array]


@pytest.mark.parametrize(
    ("kind", "name"), [*itertools.product(KINDS, ("indptr", "indices")), (scipy.sparse.coo_array, "col")]
)
@pytest.mark.parametrize("value", [-1, 10**6])
def test_broken_structure_is_refused(rows, name, value, kind):
    X, y = rows
    broken = kind(X)
    getattr(broken, name)[3] = value
    with pytest.raises(dpci.InvalidInput, match="a sparse X must have valid indices"):
        fit(broken, y)
