"""Several targets in one moment matrix: regressions, noise, how far a record moves it, and what is refused."""

import itertools
import json
import pickle

import numpy as np
import pytest

import dpci
from dpci import _core, regression
from dpci.regression import Regression
from support.core import specified

sm = pytest.importorskip("statsmodels.api")

N = 2000
_rng = np.random.default_rng(7)
X = _rng.uniform([0, -1], [10, 1], (N, 2))
Y = np.column_stack(
    [
        np.clip(X @ [1.0, 2.0] + _rng.normal(size=N), -8, 18),
        np.clip(X @ [-0.5, 1.0] + 3 + (0.3 + 0.1 * X[:, 0]) * _rng.normal(size=N), -8, 12),
        np.clip(X @ [0.0, 0.1] + 0.1 * _rng.normal(size=N), -2, 2),
    ]
)
KNOWN = {"bounds": ([0, -1], [10, 1]), "target_bound": [(-8, 18), (-8, 12), (-2, 2)]}
ENORMOUS = dpci.ZCDP(1e26)


def released(x=X, y=Y, budget=None, **keywords):
    return regression.release(x, y, budget=budget or dpci.ZCDP(0.5), **{"seed": 1, **KNOWN, **keywords})


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("form", ["array", "frames", "chunks", "blocks"])
def test_an_enormous_budget_gives_least_squares_of_each_target(form, neighbors):
    relation = dpci.AddRemove(N) if neighbors == "add_remove" else neighbors
    names, data, keywords = ("y0", "y1", "y2"), (X, Y), {}
    if form == "frames":
        pd = pytest.importorskip("pandas")
        names = ("wage", "hours", "y")
        data = pd.DataFrame(X, columns=["age", "sex"]), pd.DataFrame(Y, columns=names)
    elif form == "chunks":
        data = dpci.Chunks([(X[:300], Y[:300]), (X[300:], Y[300:])]), None
    elif form == "blocks":
        keywords = {"bounds": None, "rows": dpci.rows.Blocks([10.0, 10.0])}
    matrix = released(*data, ENORMOUS, robust=True, neighbors=relation, **keywords)
    assert matrix.targets == names
    assert matrix.columns == (("age", "sex") if form == "frames" else ("x0", "x1"))
    design = sm.add_constant(X, prepend=False)
    for j, name in enumerate(names):
        expected = sm.OLS(Y[:, j], design).fit()
        fit = matrix.fit(name, covariance="classical")
        assert fit.names == (*matrix.columns, "intercept")
        np.testing.assert_allclose(fit.params, expected.params, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(fit.std_errors, expected.bse, rtol=1e-8)
        np.testing.assert_allclose(fit.conf_int().lower, expected.conf_int()[:, 0], rtol=1e-7, atol=1e-8)
        robust = matrix.fit(name, covariance="robust")
        np.testing.assert_allclose(robust.std_errors, expected.get_robustcov_results("HC0").bse, rtol=1e-7)
    both = matrix.fit(names[0], features=[matrix.columns[0], names[1], names[2]])
    expected = sm.OLS(Y[:, 0], np.column_stack([X[:, 0], Y[:, 1:], np.ones(N)])).fit()
    np.testing.assert_allclose(both.params, expected.params, rtol=1e-7)
    columns = np.column_stack([X, np.ones(N), Y])
    np.testing.assert_allclose(matrix.moments, columns.T @ columns / N, rtol=1e-9, atol=1e-9)
    means = matrix.means()
    assert means.names == (*matrix.columns, *names)
    np.testing.assert_allclose(means.estimate, [*X.mean(axis=0), *Y.mean(axis=0)], rtol=1e-8, atol=1e-9)
    variances = matrix.variances()
    np.testing.assert_allclose(variances.estimate[2:], Y.var(axis=0, ddof=1), rtol=1e-8)
    np.testing.assert_allclose(matrix.correlations().estimate[-3:], np.corrcoef(Y.T)[np.triu_indices(3, 1)], rtol=1e-7)


def test_the_sampling_error_of_a_variance_follows_from_the_bounds_of_its_target():
    alone = regression.release(X, Y[:, 0], budget=ENORMOUS, seed=1, bounds=KNOWN["bounds"], target_bound=(-8, 18))
    both = released(budget=ENORMOUS)
    np.testing.assert_allclose(both.variances(["y0"]).length, alone.variances(["y"]).length, rtol=1e-9)


@pytest.mark.parametrize("notion", ["zcdp", "pure"])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("m", [2, 4])
def test_no_pair_of_records_exceeds_the_sensitivity_and_corners_attain_that_of_one(m, neighbors, notion):
    bounds = np.array([3.0, 0.5, 20.0, 1.0])[:m]
    budget = {"zcdp": _core.Budget.zcdp(0.5), "pure": _core.Budget.pure(1.0)}[notion]
    spec = specified(
        _core.MomentMatrixSpec, n_samples=30, n_columns=1 + m, further_targets=m - 1, target_bound=bounds[-1],
        residuals=[], residual_share=0.1, row_norm=_core.RowDomain.blocks([1.0] * (1 + m), [*range(1 + m)]),
        budget=budget, neighbors=neighbors,
    )  # fmt: skip
    found = _core.release(
        spec, _core.Records(np.zeros((30, 1 + m)), np.zeros(30)), on_violation="error", n_threads=1, seed=1
    )
    sensitivity = found["steps"][0].sensitivity
    norm = "fro" if notion == "zcdp" else "nuc"
    # Every corner of the domain, 0 and ±1 in each column.
    corners = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=2 + m)))[:: 1 if m == 2 else 7]
    weights = np.append(spec.weights, spec.intercept), spec.target_weight * bounds[-1]
    rows = [np.array([*(np.append(c[:-1], 1.0) * weights[0]), weights[1] * c[-1]]) for c in corners]
    terms = [np.outer(z, z) / 30 for z in rows]
    if neighbors == "add_remove":
        greatest = max(np.linalg.norm(term, norm) for term in terms)
        assert greatest == pytest.approx(sensitivity, rel=1e-12)
        assert greatest <= sensitivity
    else:
        greatest = max(np.linalg.norm(a - b, norm) for a, b in itertools.combinations(terms, 2))
        assert 0.8 * sensitivity < greatest <= sensitivity


def test_replacing_a_record_moves_the_released_matrix_by_no_more():
    base = released(budget=dpci.ZCDP(1e14))
    greatest = base.privacy["steps"][0]["sensitivity"]
    gaps = []
    for row in itertools.product([0, 10], [-1, 1], [-8, 18], [-8, 12], [-2, 2]):
        x, y = X.copy(), Y.copy()
        x[5], y[5] = row[:2], row[2:]
        gaps.append(np.linalg.norm(released(x, y, dpci.ZCDP(1e14))._record.matrix - base._record.matrix))
    assert 0.3 * greatest < max(gaps) <= greatest


@pytest.mark.parametrize("budget", [dpci.ZCDP(0.5), dpci.PureDP(5.0), dpci.ApproxDP(2.0, 1e-6), dpci.GDP(1.0)])
def test_noise_has_the_stated_size(budget):
    truth = released(budget=ENORMOUS)._record.matrix
    at = np.tril_indices(len(truth))
    factor = np.where(at[0] == at[1], 1.0, np.sqrt(2.0))
    records = [released(budget=budget, seed=seed)._record for seed in range(200)]
    gaps = np.array([(record.matrix - truth)[at] * factor for record in records])
    assert np.sqrt(np.mean(gaps**2)) == pytest.approx(records[0].noise(), rel=0.08)


def test_errors_of_every_target_have_the_claimed_size():
    x, y = X, Y
    budget, errors = dpci.ZCDP(2.0), {name: [] for name in ("y0", "y1", "y2")}
    truth = released(budget=ENORMOUS)
    for seed in range(300):
        matrix = released(x, y, budget, seed=seed)
        for name, found in errors.items():
            fit = matrix.fit(name)
            noise = fit.std_errors * np.sqrt(fit.noise_shares)
            found.append((fit.params - truth.fit(name).params) / noise)
    for found in errors.values():
        # 300 draws: the standard deviation of a standard deviation is .041.
        np.testing.assert_allclose(np.std(found, axis=0), 1.0, atol=0.2)


def test_one_column_of_targets_is_the_one_dimensional_call():
    keywords = {"bounds": KNOWN["bounds"], "seed": 3, "robust": True, "budget": dpci.ZCDP(0.5)}
    plain = regression.release(X, Y[:, 0], target_bound=(-8, 18), **keywords)
    for y, bound in ((Y[:, :1], (-8, 18)), (Y[:, :1], [(-8, 18)]), (Y[:, 0], [(-8, 18)])):
        assert regression.release(X, y, target_bound=bound, **keywords).to_json() == plain.to_json()
    assert json.loads(plain.to_json())["further"] == []


def test_robust_plans_are_of_each_target_or_named():
    planned = [Regression(target="y1"), Regression(target="y2", features=["x1"]), Regression(target="x0")]
    matrix = released(budget=ENORMOUS, robust=planned)
    expected = sm.OLS(Y[:, 2], sm.add_constant(X[:, 1], prepend=False)).fit(cov_type="HC0")
    fit = matrix.fit("y2", ["x1"], covariance="robust")
    np.testing.assert_allclose(fit.std_errors, expected.bse, rtol=1e-7)
    expected = sm.OLS(X[:, 0], sm.add_constant(X[:, 1], prepend=False)).fit(cov_type="HC0")
    np.testing.assert_allclose(matrix.fit("x0", covariance="robust").std_errors, expected.bse, rtol=1e-7)
    for target, features in (("y0", None), ("y1", ["x0", "y0"])):
        with pytest.raises(dpci.InvalidInput, match="planned"):
            matrix.fit(target, features, covariance="robust")
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    for bad in (Regression(target="y1", features=["y0"]), Regression(target="y1", features=["y2"])):
        with pytest.raises(dpci.InvalidInput, match="columns of X other than its target"):
            released(robust=[bad], seed=None, ledger=ledger)
    assert ledger.spent["rho"] == 0


def test_the_target_of_a_regression_must_be_named():
    matrix = released()
    with pytest.raises(dpci.InvalidInput, match=r"target must be named .*\(y0, y1, y2\)"):
        matrix.fit()
    with pytest.raises(dpci.InvalidInput, match="y0, y1, y2"):
        matrix.target  # noqa: B018  # a property that refuses
    summary = matrix.summary()
    assert "2 columns, a constant and y0, y1, y2" in summary
    assert matrix.privacy["constants"]["target_bounds"] == [[-8.0, 18.0], [-8.0, 12.0], [-2.0, 2.0]]
    assert matrix.privacy["constants"]["middle"] == [5.0, 0.0]


def test_saved_pickled_and_paid():
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    matrix = released(robust=True, seed=None, ledger=ledger)
    assert ledger.spent["rho"] == pytest.approx(0.5)
    again = regression.MomentMatrix.from_json(matrix.to_json())
    assert again.to_json() == matrix.to_json() == pickle.loads(pickle.dumps(matrix)).to_json()
    fit = matrix.fit("y0")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fit)).params, fit.params)
    np.testing.assert_allclose(fit.predict(X[:3]), X[:3] @ fit.params[:2] + fit.params[2])
    document = json.loads(matrix.to_json())
    for further in (["y1", "y0"], ["x0"], ["x0", "x1", "y0", "y1"], "y0", ["y2"]):
        with pytest.raises(dpci.InvalidInput):
            regression.MomentMatrix.from_json(json.dumps({**document, "further": further}))
    private = dpci.Ledger(dpci.ZCDP(1.0), errors="private")
    released(rows="clip", seed=None, ledger=private)
    assert private.spent["rho"] == pytest.approx(0.5)


def test_clipping_moves_each_target_to_its_bounds():
    wild, tame = Y.copy(), Y.copy()
    wild[:3] = [[99, -99, 9], [-99, np.inf, -9], [-np.inf, 99, np.inf]]
    tame[:3] = [[18, -8, 2], [-8, 12, -2], [-8, 12, 2]]
    found = released(y=wild, rows="clip").moments
    np.testing.assert_allclose(found, released(y=tame).moments, rtol=1e-12)
    parts = released(dpci.Chunks([(X, wild)]), None, rows="clip").moments
    np.testing.assert_allclose(parts, found, rtol=1e-12)


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("value", [1e3, np.nan])
def test_numbers_beyond_the_bounds_are_refused_before_payment(column, value):
    wild = Y.copy()
    wild[4, column] = value
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    for data in ((X, wild), (dpci.Chunks([(X, wild)]), None)):
        with pytest.raises(dpci.DpciError, match=r"target|y must be a number, got NaN"):
            released(*data, seed=None, ledger=ledger)
    assert ledger.spent["rho"] == 0


def test_what_several_targets_do_not_take_is_refused_before_payment():
    sp = pytest.importorskip("scipy.sparse")
    pd = pytest.importorskip("pandas")
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    same = pd.DataFrame(Y, columns=["a", "b", "c"])
    for data, keywords, message in (
        ((X, Y), {"bounds": None}, "several targets require bounds"),
        ((X, Y), {"bounds": None, "rows": 20.0}, "several targets require bounds"),
        ((sp.csr_array(X), Y), {}, "X must be dense"),
        ((X, Y), {"target_bound": [(-8, 18), (-8, 12)]}, r"each column of y \(3\), got a list of 2"),
        ((X, Y), {"target_bound": [(-8, 18)]}, r"each column of y \(3\), got a list of 1"),
        ((X, Y[:, 0]), {}, r"each column of y \(1\), got a list of 3"),
        ((X, Y[:-1]), {}, "one row for each of the 2000 rows"),
        ((X, Y[:, :0]), {"target_bound": 1.0}, "at least one column"),
        ((X, Y[:, :, None]), {}, "one dimension, or two"),
        ((dpci.Chunks([(X, Y[:, :2])]), None), {}, "3 columns that target_bound is for"),
        ((dpci.Chunks([(X, Y)]), None), {"target_bound": (-9, 19)}, "y must"),
        ((pd.DataFrame(X, columns=["a", "x"]), same), {}, "'a' in both"),
        ((X, pd.DataFrame(Y, columns=["a", "a", "c"])), {}, "different names"),
        ((X, pd.DataFrame(Y, columns=["a", "b", "intercept"])), {}, "intercept"),
        ((pd.DataFrame(X, index=np.arange(N) + 1), same), {}, "index"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            released(*data, seed=None, ledger=ledger, **keywords)
    assert ledger.spent["rho"] == 0


def test_columns_that_are_called_like_targets_keep_their_names():
    pd = pytest.importorskip("pandas")
    matrix = released(pd.DataFrame(X, columns=["y1", "x"]))
    assert matrix.targets == ("y0", "y1_", "y2")
    assert matrix.fit("y1_").names == ("y1", "x", "intercept")


def test_a_refined_regression_among_several_targets_in_blocks():
    keywords = {"bounds": None, "rows": dpci.rows.Blocks([10.0, 1.0]), "refine": [Regression(target="y1")]}
    fit = released(budget=ENORMOUS, **keywords).fit("y1")
    np.testing.assert_allclose(fit.params, sm.OLS(Y[:, 1], sm.add_constant(X, prepend=False)).fit().params, rtol=1e-6)
    assert np.isfinite(fit.conf_int()).all()
