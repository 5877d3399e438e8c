"""The release of a moment matrix: what comes out, by every way in, and what is refused."""

import json
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import dpci
from dpci import regression

N, D = 400, 3
_rng = np.random.default_rng(0)
X = _rng.uniform(0, 10, (N, D))
Y = X @ [1.5, -2.0, 0.5] + _rng.normal(size=N)
KNOWN = {"bounds": (0, 10), "target_bound": 30}
BUDGETS = {"pure": dpci.PureDP(3.0), "zcdp": dpci.ZCDP(0.5), "approx": dpci.ApproxDP(3.0, 1e-6)}


def seeded(x=X, y=Y, **keywords):
    return regression.release(x, y, **{"budget": BUDGETS["zcdp"], "seed": 3, **KNOWN, **keywords})


def exact(x=X, y=Y, **keywords):
    return seeded(x, y, budget=dpci.ZCDP(1e14), **keywords)


def test_moments_are_those_of_the_columns():
    columns = np.column_stack([X, np.ones(N), Y])
    np.testing.assert_allclose(exact().moments, columns.T @ columns / N, rtol=1e-6)
    lower, upper = np.array([-3.0, 0.0, 0.0]), np.array([10.0, 20.0, 11.0])
    other = exact(bounds=(lower, upper), target_bound=(-40, 25))
    np.testing.assert_allclose(other.moments, columns.T @ columns / N, rtol=1e-6)
    by_norm = exact(X / 20, Y / 30, bounds=None, rows=1.0, target_bound=1.0)
    np.testing.assert_allclose(
        by_norm.moments, (columns / [20, 20, 20, 1, 30]).T @ (columns / [20, 20, 20, 1, 30]) / N, rtol=1e-6
    )


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("robust", [False, True])
def test_noise_has_the_stated_size(notion, robust):
    truth = exact(robust=robust)._record
    gaps = []
    for seed in range(300):
        record = seeded(budget=BUDGETS[notion], seed=seed, robust=robust)._record
        gaps.append(record.matrix - truth.matrix)
    std_dev = record.noise()
    gaps = np.array(gaps)
    entries = np.array([gaps[:, i, j] * (1 if i == j else np.sqrt(2)) for i in range(D + 2) for j in range(i + 1)])
    assert np.sqrt(np.mean(entries**2)) == pytest.approx(std_dev, rel=0.1)


@pytest.mark.parametrize("robust", [False, True])
def test_rows_in_parts_give_the_same_matrix(robust):
    whole = seeded(robust=robust, target_bound=(-25, 35))
    parts = seeded(dpci.Chunks([(X[:100], Y[:100]), (X[100:], Y[100:])]), None, robust=robust, target_bound=(-25, 35))
    np.testing.assert_allclose(parts.moments, whole.moments, rtol=1e-12)
    if robust:
        np.testing.assert_allclose(parts._record.residuals[0].moments, whole._record.residuals[0].moments, rtol=1e-9)


def test_dask_frames_and_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    matrix = seeded(frame, pd.Series(Y))
    np.testing.assert_array_equal(matrix.moments, seeded().moments)
    assert matrix.columns == ("a", "b", "c")
    assert matrix.fit(features=["c", "a"]).names == ("c", "a", "intercept")
    with pytest.raises(dpci.InvalidInput, match="index"):
        seeded(frame, pd.Series(Y, index=np.arange(N) + 1))
    dask = pytest.importorskip("dask.dataframe", exc_type=ImportError)
    lazy = dask.from_pandas(pd.concat([frame, pd.Series(Y, name="t")], axis=1), npartitions=3)
    found = seeded(lazy[["a", "b", "c"]], lazy["t"])
    np.testing.assert_allclose(found.moments, matrix.moments, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_sparse_rows(kind):
    dense = np.where(X > 6, X / 20, 0.0).astype(kind)
    y = np.clip(Y / 40, -1, 1)
    keywords = {"bounds": None, "rows": 1.0, "target_bound": 1.0}
    np.testing.assert_allclose(
        seeded(sp.csr_array(dense), y, **keywords).moments, seeded(dense, y, **keywords).moments, rtol=1e-12
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_memory_layout_change_nothing(threads):
    np.testing.assert_array_equal(dpci.threads(threads)(seeded)().moments, seeded(np.asfortranarray(X)).moments)


def test_clipping_moves_numbers_to_their_bounds():
    wild = X.copy()
    wild[0] = [99, -99, 5]
    y = Y.copy()
    y[1] = 1e6
    tame, targets = np.clip(wild, 0, 10), np.clip(y, -30, 30)
    clipped = seeded(wild, y, rows="clip")
    np.testing.assert_array_equal(clipped.moments, seeded(tame, targets).moments)
    parts = seeded(dpci.Chunks([(wild, y)]), None, rows="clip")
    np.testing.assert_allclose(parts.moments, clipped.moments, rtol=1e-12)


def test_single_precision_and_no_copy_of_the_rows():
    single = X.astype(np.float32)
    doubles = single.astype(np.float64)
    np.testing.assert_array_equal(seeded(single).moments, seeded(doubles).moments)
    rows = np.tile(X, (500, 1))
    y = rows @ [1.5, -2.0, 0.5]
    tracemalloc.start()
    seeded(rows, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The rows are 4.8 MB; NumPy's arrays are traced.
    assert peak < rows.nbytes / 2


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("bounds", [None, "clip"])
@pytest.mark.parametrize("where", ["X", "y"])
def test_numbers_that_are_none_are_refused(value, bounds, where):
    wild, y = X.copy(), Y.copy()
    (wild if where == "X" else y)[5] = value
    if where == "y" and bounds == "clip" and not np.isnan(value):
        pytest.skip("a target is moved to its bound")
    for x, targets in ((wild, y), (dpci.Chunks([(wild, y)]), None)):
        with pytest.raises(dpci.DpciError):
            seeded(x, targets, rows=bounds)


BAD = {
    "beyond a bound": ({"bounds": (0, 9)}, "within its bounds"),
    "beyond the target's": ({"target_bound": 1.0}, "target_bound"),
    "bounds that fall": ({"bounds": (10, 0)}, "increasing"), "one bound": ({"bounds": 10}, "pair"),
    "bounds of other columns": ({"bounds": (np.zeros(4), 10)}, "3 columns"),
    "bounds of two shapes": ({"bounds": (np.zeros(3), np.ones(2))}, "one for each column"),
    "endless bounds": ({"bounds": (0, np.inf)}, "finite"), "bounds and a norm": ({"rows": 1.0}, "rows must be None"),
    "targets that fall": ({"target_bound": (1, 0)}, "increasing"),
    "three targets": ({"target_bound": (0, 1, 2)}, "pair"), "no budget": ({"budget": 1.0}, "budget"),
    "a word for robust": ({"robust": "yes"}, "robust"), "a word for what to do": ({"rows": "drop"}, "rows"),
    "another relation": ({"neighbors": "swap"}, "neighbors"), "no public n": ({"neighbors": "add_remove"}, "AddRemove"),
    "a seed": ({"seed": -1}, "seed"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_refused_in_words(name):
    keywords, message = BAD[name]
    with pytest.raises(dpci.InvalidInput, match=message):
        seeded(**keywords)


def test_bad_tables_are_refused():
    for x, y, error in (
        (X, None, dpci.InvalidInput),
        (X[:, 0], Y, dpci.InvalidInput),
        (X, Y[:-1], dpci.InvalidInput),
        (np.empty((0, 3)), np.empty(0), dpci.InvalidInput),
        (np.empty((5, 0)), np.zeros(5), dpci.InvalidInput),
        (sp.csr_array(X), Y, dpci.InvalidInput),
        (dpci.Chunks([(X, Y)]), Y, dpci.InvalidInput),
        ([["a"]], [1], dpci.InvalidInput),
    ):
        with pytest.raises(error):
            seeded(x, y)
    with pytest.raises(dpci.RowNormViolation):
        seeded(bounds=None, rows=1.0)
    with pytest.raises(dpci.InvalidInput, match="sixteenth"), pytest.warns(dpci.MomentNoiseWarning):
        seeded(neighbors=dpci.AddRemove(2))


def test_reserved_names_are_refused():
    pd = pytest.importorskip("pandas")
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    with pytest.raises(dpci.InvalidInput, match="'intercept'"):
        seeded(pd.DataFrame(X, columns=["a", "intercept", "c"]), seed=None, ledger=ledger)
    assert ledger.spent["rho"] == 0
    matrix = exact(pd.DataFrame(X, columns=["a", "y", "y_"]))
    assert matrix.target == "y__"
    np.testing.assert_allclose(matrix.fit().params[:3], exact().fit().params[:3], rtol=1e-5)
    assert matrix.fit("y").names == ("a", "y_", "intercept")


def test_a_ledger_pays_once_and_only_for_good_data():
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    with pytest.raises(dpci.InvalidInput):
        regression.release(X * 2, Y, budget=dpci.ZCDP(0.4), ledger=ledger, **KNOWN)
    assert ledger.spent["rho"] == 0
    matrix = regression.release(X, Y, budget=dpci.ZCDP(0.4), ledger=ledger, **KNOWN)
    assert matrix.private
    assert ledger.spent["rho"] == pytest.approx(0.4)
    matrix.fit()
    matrix.fit("x0")
    assert ledger.spent["rho"] == pytest.approx(0.4)
    with pytest.raises(dpci.BudgetExceeded):
        regression.release(X, Y, budget=dpci.ZCDP(0.7), ledger=ledger, **KNOWN)
    regression.release(dpci.Chunks([(X, Y)]), budget=dpci.ZCDP(0.4), ledger=ledger, **KNOWN)
    assert ledger.spent["rho"] == pytest.approx(0.8)


def test_private_errors_say_nothing_of_the_data():
    ledger = dpci.Ledger(dpci.ZCDP(5.0), errors="private")
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(dpci.ReleaseFailed):
        regression.release(bad, Y, budget=dpci.ZCDP(0.4), ledger=ledger, rows="clip", **KNOWN)
    assert ledger.spent["rho"] == pytest.approx(0.4)


@pytest.mark.parametrize("notion", BUDGETS)
def test_steps_seals_and_guarantee(notion):
    matrix = seeded(budget=BUDGETS[notion], robust=True)
    privacy = matrix.privacy
    assert [step["step"] for step in privacy["steps"]] == ["moment_matrix", "residual_moments"]
    costs = [step["cost"] for step in privacy["steps"]]
    assert costs[1] / sum(costs) == pytest.approx(0.1)
    budget = BUDGETS[notion]
    if notion == "approx":
        epsilon, delta = budget.epsilon, budget.delta
        assert delta * 0.9 < matrix.guarantee.delta(epsilon) <= delta
    else:
        sealed = sum(next(iter(seal["cost"].values())) for seal in privacy["seal"]["releases"])
        whole = next(iter(budget.parameters().values()))
        assert sum(costs) + sealed == pytest.approx(whole, rel=1e-9)
        assert sum(costs) + sealed <= whole
    assert "seeded" in privacy["conditions"][0]
    assert json.loads(json.dumps(privacy)) == privacy


def test_saved_and_pickled():
    for matrix in (seeded(), seeded(robust=True, budget=BUDGETS["pure"])):
        again = regression.MomentMatrix.from_json(matrix.to_json())
        assert again.to_json() == matrix.to_json()
        assert pickle.loads(pickle.dumps(matrix)).to_json() == matrix.to_json()
        assert again.summary() == matrix.summary()
        assert "NOT PRIVATE" in repr(again)
    document = json.loads(matrix.to_json())
    for name in (name for name, value in document.items() if value is not None):
        damaged = {**document, name: None}
        with pytest.raises(dpci.InvalidInput):
            regression.MomentMatrix.from_json(json.dumps(damaged))


@pytest.mark.entropy
def test_a_private_release_is_not_repeated():
    with warnings.catch_warnings(action="error"):
        first, second = (regression.release(X, Y, budget=BUDGETS["zcdp"], **KNOWN) for _ in range(2))
    assert not np.array_equal(first.moments, second.moments)


def test_seeded_noise_warns():
    with pytest.warns(dpci.SeededNoiseWarning):
        seeded()


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize(("value", "clip"), [(9.5, False), (np.nan, False), (np.nan, True)])
def test_messages_show_the_targets_of_the_caller(value, clip, in_parts):
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    y = np.random.default_rng(1).uniform(2, 4, N)
    y[3], y[7] = (9.0 if clip else 3.0), value
    table = (dpci.Chunks([(X[:100], y[:100]), (X[100:], y[100:])]),) if in_parts else (X, y)
    keywords = {"budget": dpci.ZCDP(0.5), "bounds": (0, 10), "rows": "clip" if clip else None}
    rule = "y must be a number, got NaN in row 7" if np.isnan(value) else r"target_bound \(2, 4\), got 9.5 in row 7"
    with pytest.raises(dpci.InvalidInput, match=rule):
        regression.release(*table, target_bound=(2, 4), ledger=ledger, **keywords)
    assert ledger.history == ()
    # Both bounds belong to the interval, also where its middle is rounded.
    for low, high in ((0.1, 0.7), (-1e16, 1.0), (1 / 3, 1.1)):
        ends = np.where(np.arange(N) % 2, low, high)
        regression.release(X, ends, target_bound=(low, high), seed=1, **keywords)


@pytest.mark.parametrize(
    ("call", "keywords"), [(regression.release, KNOWN), (dpci.fit, {"loss": "squared", "rows": 20})]
)
def test_a_pure_ledger_says_why_it_does_not_pay_for_gaussian_dp(call, keywords):
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    with pytest.raises(dpci.InvalidInput, match=r"pure DP, PureDP\(epsilon=1.0\).*Gaussian DP, GDP\(mu=1.0\)"):
        call(X, Y, budget=dpci.GDP(1.0), ledger=ledger, **keywords)
    assert ledger.history == ()


def test_the_target_has_the_name_that_is_known():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["age", "dose", "time"])
    for name, expected in (("wage", "wage"), ("age", "age_"), ("intercept", "intercept_"), (None, "y"), (3, "y")):
        matrix = exact(frame, pd.Series(Y, name=name), robust=True)
        fit = matrix.fit(covariance="robust")
        assert matrix.target == fit.target == expected
        assert f"of {expected}, robust" in fit.summary()
        assert f"a constant and {expected}" in matrix.summary()
        assert matrix.fit("age", features=[expected]).names == (expected, "intercept")
        again = regression.LinearFit.from_json(fit.to_json())
        assert again.target == expected
    others = [exact(frame, pd.Series(Y, name=name), seed=seed).fit() for name, seed in (("a", 1), ("b", 2))]
    assert dpci.compare(*others).names == (*frame.columns, "intercept")
    by_name = exact(frame, pd.Series(Y, name="wage"), robust=[regression.Regression(target="wage", features=["age"])])
    assert by_name.fit(features=["age"], covariance="robust").target == "wage"
    columns = (dpci.schema.NumericColumn(name="age", lower=0, upper=10),)
    schema = dpci.schema.Schema(columns=columns, target=dpci.schema.NumericTarget(column="wage", lower=-30, upper=30))
    table = {"age": X[:, 0], "wage": Y}
    fit = dpci.fit(table, schema=schema, loss="squared", budget=dpci.ZCDP(1e6), seed=1)
    assert fit.target == regression.MomentMatrix.of(fit).target == "wage"
    assert fit.names == ("age", "intercept")
    assert repr(fit).startswith("<LinearFit: wage on 2 regressors")
