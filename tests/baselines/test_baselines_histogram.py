"""The histogram baseline: counts against NumPy, the regression against scikit-learn, grids of schemas, refusals."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy import stats
from sklearn.linear_model import LogisticRegression, Ridge

import dpci
from dpci import _core, baselines
from dpci.baselines import Bins, Levels, OneHot
from dpci.budgets import core_budget
from dpci.errors import InvalidInput
from dpci.schema import CategoricalColumn, NumericColumn, NumericTarget, Schema
from support.core import specified
from support.seal import left_of

N = 500
FREE = dpci.PureDP(1e9)
# Column 1 is numeric, columns 0 and 3 code three levels, column 2 has three levels of its own.
AXES = (Bins(1, 4, -0.5, 0.5), OneHot((3, 0), 0.5), Levels((2,), (-0.3, 0.0, 0.6)))
LEVELS = 4 * 3 * 3


def make_rows(seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=N)
    X = np.column_stack([0.5 * (kind == 2), rng.uniform(-0.7, 0.7, N), rng.normal(0, 0.4, N), 0.5 * (kind == 1)])
    y = np.clip(X @ [0.5, -0.6, 0.4, 0.2] + 0.1 * rng.standard_normal(N), -1.0, 1.0)
    return X, y


X, Y = make_rows()


def histogram(x=X, y=Y, **keywords):
    return baselines.projected_histogram(
        x, y, **{"budget": dpci.PureDP(1.0), "axes": AXES, "l2_strength": 0.01, "target_bins": 5, "seed": 2, **keywords}
    )


def nearest(values, levels):
    values, levels = np.reshape(values, (len(values), -1)), np.reshape(levels, (len(levels), -1))
    return np.argmin(((values[:, None, :] - levels[None]) ** 2).sum(axis=2), axis=1)


def centers(count, bound):
    edges = np.linspace(-bound, bound, count + 1)
    return (edges[1:] + edges[:-1]) / 2.0


def projected(x=X, y=Y, target_levels=None):
    """Rows and targets moved to their cells, and the cells."""
    target_levels = centers(5, 1.0) if target_levels is None else target_levels
    codes = 0.5 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    indices = [
        nearest(y, target_levels),
        nearest(x[:, 1], centers(4, 0.5)),
        nearest(x[:, [3, 0]], codes),
        nearest(x[:, 2], np.array([-0.3, 0.0, 0.6])),
    ]
    moved = np.column_stack(
        [
            codes[indices[2], 1],
            centers(4, 0.5)[indices[1]],
            np.array([-0.3, 0.0, 0.6])[indices[3]],
            codes[indices[2], 0],
        ]
    )
    return moved, target_levels[indices[0]], np.ravel_multi_index(indices, (len(target_levels), 4, 3, 3))


def release(notion="pure", neighbors="replace_one", seed=2, x=X):
    budgets = {"pure": dpci.PureDP(1.0), "zcdp": dpci.ZCDP(0.5), "approx": dpci.ApproxDP(1.0, 1e-6)}
    spec = specified(
        _core.HistogramSpec, axes=[(list(axis.columns), axis.levels.ravel().tolist()) for axis in AXES], n_columns=4,
        targets=centers(5, 1.0).tolist(), loss=_core.Loss("squared", 1.0), l2_strength=0.01,
        budget=core_budget(budgets[notion]), neighbors=neighbors,
    )  # fmt: skip
    assert spec.n_cells == 5 * LEVELS
    return _core.release(spec, _core.Records(x, Y), on_violation="clip", n_threads=1, seed=seed)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("notion", ["pure", "zcdp", "approx"])
def test_every_cell_gets_noise(notion, neighbors):
    found = release(notion, neighbors)
    (step,) = found["steps"]
    changed = 2.0 if neighbors == "replace_one" else 1.0
    sensitivity = changed if notion == "pure" else np.sqrt(changed)
    # Of epsilon = 1, rho = .5 or (1, 1e-6): what the seal leaves.
    rest = left_of(1.0)
    mu = {"pure": rest, "zcdp": np.sqrt(rest), "approx": _core.gaussian_mu(rest, left_of(1e-6))}[notion]
    assert step.sensitivity == pytest.approx(sensitivity)
    assert step.scale == pytest.approx(sensitivity / mu, rel=1e-12)
    counts = np.bincount(projected()[2], minlength=5 * LEVELS)
    assert (counts == 0).sum() > 5
    # The noise is that of the same seed on other rows, and has the law: p-values below 1e-6 are failures.
    noise = found["counts"] - counts
    others = np.ascontiguousarray(X[::-1])
    exact = np.bincount(projected(x=others)[2], minlength=5 * LEVELS)
    np.testing.assert_allclose(release(notion, neighbors, x=others)["counts"] - exact, noise, atol=1e-9)
    law = stats.laplace if notion == "pure" else stats.norm
    assert stats.kstest(noise, law(scale=step.scale).cdf).pvalue > 1e-6


def test_one_record_moves_two_counts_by_one():
    # The sensitivities, by brute force: the same noise on neighbouring data leaves the difference of the counts.
    rng = np.random.default_rng(1)
    base = release()["counts"]
    distances = []
    for row in range(60):
        x = X.copy()
        x[row] = rng.uniform(-3.0, 3.0, 4)
        difference = release(x=x)["counts"] - base
        distances.append((np.abs(difference).sum(), np.linalg.norm(difference)))
    distances = np.round(distances, 9)
    assert {tuple(d) for d in distances} == {(0.0, 0.0), (2.0, round(np.sqrt(2.0), 9))}


def test_without_noise_it_is_the_regression_on_the_cells():
    moved, targets, _ = projected()
    ridge = Ridge(alpha=0.01 * N / 2.0, fit_intercept=False).fit(moved, targets)
    found = histogram(budget=FREE, intercept=False)
    np.testing.assert_allclose(found.params, ridge.coef_, atol=1e-8)
    np.testing.assert_allclose(found.predict(X), ridge.predict(X), atol=1e-7)
    np.testing.assert_allclose(histogram(scipy.sparse.csr_array(X), budget=FREE).params, histogram(budget=FREE).params)


def test_classes():
    labels = np.where(Y > 0, "b", "a")
    moved, targets, _ = projected(y=np.where(Y > 0, 1.0, -1.0), target_levels=np.array([-1.0, 1.0]))
    theirs = LogisticRegression(C=1.0 / (0.01 * N), fit_intercept=False, tol=1e-12).fit(moved, targets)
    found = histogram(y=labels, loss="logistic", classes=("a", "b"), budget=FREE, intercept=False)
    np.testing.assert_allclose(found.params, theirs.coef_[0], atol=1e-5)
    assert found.classes == ("a", "b")
    assert set(found.predict(X)) == {"a", "b"}
    assert found.predict_proba(X).shape == (N, 2)


def test_noisy_counts_are_rounded_and_never_negative():
    # The cells of a released histogram with their rounded counts as weights give the released parameters.
    found = histogram(intercept=False)
    counts = np.maximum(np.round(release()["counts"]), 0.0)
    index = np.unravel_index(np.arange(5 * LEVELS), (5, 4, 3, 3))
    codes = 0.5 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    cells = np.column_stack(
        [codes[index[2], 1], centers(4, 0.5)[index[1]], np.array([-0.3, 0.0, 0.6])[index[3]], codes[index[2], 0]]
    )
    weighted = Ridge(alpha=0.01 * counts.sum() / 2.0, fit_intercept=False)
    weighted.fit(cells, centers(5, 1.0)[index[0]], sample_weight=counts)
    np.testing.assert_allclose(found.params, weighted.coef_, atol=1e-8)


def test_rows_need_no_bounds():
    wild, far = X.copy(), Y.copy()
    wild[0, 1], far[1] = 1e6, -400.0
    moved, targets, _ = projected(wild, np.clip(far, -1.0, 1.0))
    ridge = Ridge(alpha=0.01 * N / 2.0, fit_intercept=False).fit(moved, targets)
    found = histogram(wild, far, budget=FREE, intercept=False)
    np.testing.assert_allclose(found.params, ridge.coef_, atol=1e-8)


def test_parameters_are_zero_where_no_cell_is_left():
    # One cell whose count is negative for half of the seeds.
    axes = (Levels((0,), (0.0,)),)
    found = [
        histogram(np.zeros((1, 1)), [0.5], axes=axes, target_bins=1, budget=dpci.PureDP(1e-3), seed=s)
        for s in range(20)
    ]
    assert all(result.params.tolist() == [0.0, 0.0] for result in found)


def test_results():
    result = histogram(pd.DataFrame(X, columns=list("abcd")), neighbors=dpci.AddRemove(450))
    assert result.names == ("a", "b", "c", "d", "intercept")
    assert result.n_samples == 450
    assert result.privacy["constants"]["n_cells"] == 5 * LEVELS
    assert "180" in result.summary()
    for again in (baselines.BaselineFit.from_json(result.to_json()), pickle.loads(pickle.dumps(result))):
        assert again.privacy == result.privacy
        assert again.summary() == result.summary()
    assert "counts" not in json.loads(result.to_json())
    with pytest.raises(InvalidInput, match="rounding noisy counts"):
        result.conf_int()
    first, second = (baselines.projected_histogram(X, Y, budget=FREE, axes=AXES, l2_strength=0.1) for _ in range(2))
    assert first.private
    np.testing.assert_allclose(first.params, second.params, atol=1e-6)


def test_axes_of_a_schema():
    schema = Schema(
        columns=(
            NumericColumn(name="age", lower=0, upper=90, scale="unit"),
            CategoricalColumn(name="race", categories=("a", "b", "c"), reference="a"),
            NumericColumn(name="height", lower=100, upper=200),
            CategoricalColumn(name="drug", categories=("no", "yes"), unknown="error"),
        ),
        target=NumericTarget(column="dose", lower=0, upper=10),
    )
    axes = baselines.axes_of(schema, {"age": 9})
    assert [len(axis.levels) for axis in axes] == [9, 3, 10, 2]
    assert [axis.columns for axis in axes] == [(0,), (1, 2), (3,), (4, 5)]
    table = {
        "age": [5.0, 85.0, 45.0],
        "race": ["a", "c", "b"],
        "height": [105.0, 195.0, 155.0],
        "drug": ["no", "yes", "no"],
        "dose": [1, 2, 3],
    }
    rows = schema.transform(table).X
    for axis in axes:  # these records are centres of cells
        distance = np.abs(rows[:, None, list(axis.columns)] - axis.levels[None]).max(axis=2).min(axis=1)
        np.testing.assert_allclose(distance, 0.0, atol=1e-9)
    assert [len(axis.levels) for axis in baselines.axes_of(schema, 3)] == [3, 3, 3, 2]
    with pytest.raises(InvalidInput, match="bins must name numeric columns"):
        baselines.axes_of(schema, {"race": 3})
    with pytest.raises(InvalidInput, match="bins must be at least 1"):
        baselines.axes_of(schema, 0)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"axes": AXES[:2]}, "every column of X must be in exactly one axis, got column 2 in 0"),
        ({"axes": (*AXES, Bins(1, 2))}, "got column 1 in 2"),
        ({"axes": (*AXES, Bins(9, 2))}, "got column 9 in axis 3"),
        ({"axes": 3}, "axes must be a sequence of Bins, OneHot and Levels"),
        ({"axes": (1, 2)}, "axes must be a sequence of Bins, OneHot and Levels"),
        (
            {"axes": (Bins(1, 10**6), *AXES[1:])},
            r"the number of cells must be at most 6710886 for 4 columns, got 45000000",
        ),
        ({"l2_strength": 0.0}, "l2_strength must be finite and > 0"),
        ({"target_bins": 0}, "target_bins must be at least 1"),
        ({"loss": "hinge"}, "smooth"),
        ({"budget": None}, "budget must be dpci.PureDP"),
        ({"neighbors": "add_remove"}, "the number of records is then private"),
        ({"x": np.full((N, 4), np.inf)}, "X must be finite"),
        ({"y": np.full(N, np.nan)}, "y must be a number, got NaN in row 0"),
        ({"budget": dpci.PureDP(1e-320)}, "budget must be such that the noise has a finite scale"),
    ],
)
def test_refused(keywords, message):
    with pytest.raises(InvalidInput, match=message):
        histogram(**keywords)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bins(-1, 3), "column must be at least 0"),
        (lambda: Bins(0, 0), "count must be at least 1"),
        (lambda: Bins(0, 3, 1.0, 1.0), "lower must be below upper"),
        (lambda: Bins(0, 3, 0.0, float("inf")), "lower must be below upper"),
        (lambda: Bins(0, 3, float("nan")), "lower must be below upper"),
        (lambda: OneHot(()), "at least one column"),
        (lambda: OneHot((0, 1.5)), "must be an integer"),
        (lambda: OneHot((0,), 0.0), "value must be finite and > 0"),
        (lambda: OneHot((0,), 1.0, 1), "reference must be True or False"),
        (lambda: Levels((0, 1), (1.0, 2.0)), r"points must have shape \(n_levels, 2\)"),
        (lambda: Levels((0,), ()), "points must have shape"),
        (lambda: Levels((0,), ("a",)), "points must be an array of numbers"),
    ],
)
def test_axes_are_checked(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_levels_that_are_not_finite_are_refused():
    with pytest.raises(InvalidInput, match="every level must be finite"):
        histogram(axes=(*AXES[:2], Levels((2,), (0.0, float("nan")))))
