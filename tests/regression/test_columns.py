"""Means, variances and correlations from a moment matrix: their numbers, their coverage, and what is refused."""

import dataclasses

import numpy as np
import pytest
from scipy import special

import dpci
from dpci import regression
from dpci.regression.columns import Columns
from dpci.schema import CategoricalColumn, NumericColumn, NumericTarget, Schema

N = 2000
BOUNDS = ([-4, 0, -1], [4, 10, 3])


def table(seed, n=N):
    rng = np.random.default_rng(seed)
    one = np.clip(rng.normal(size=n), -4, 4)
    rows = np.column_stack([one, rng.uniform(0, 10, n), np.where(rng.random(n) < 0.25, 3.0, -1.0)])
    return rows, np.clip(0.6 * one + 0.8 * rng.normal(size=n), -5, 5)


X, Y = table(0)
TABLE = np.column_stack([X, Y])


def released(x=X, y=Y, **keywords):
    given = {"budget": dpci.GDP(1e7), "bounds": BOUNDS, "target_bound": 5.0, "seed": 1}
    return regression.release(x, y, **{**given, **keywords})


@pytest.mark.parametrize("relation", [{}, {"neighbors": dpci.AddRemove(N // 2)}], ids=["replace", "add"])
def test_without_noise_they_are_those_of_the_sample(relation):
    matrix = released(**relation)
    z = special.stdtrit(N - 1, 0.975)
    means = matrix.means()
    assert means.names == ("x0", "x1", "x2", "y")
    np.testing.assert_allclose(means.estimate, TABLE.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(means.length / 2, z * TABLE.std(axis=0, ddof=1) / np.sqrt(N), rtol=2e-3)
    variance = TABLE.var(axis=0, ddof=1)
    normal = matrix.variances(assume="normal", level=0.9)
    np.testing.assert_allclose(normal.estimate, variance, rtol=1e-4)
    np.testing.assert_allclose(normal.length / 2, 1.645 * variance * np.sqrt(2 / N), rtol=5e-3)
    bounded = matrix.variances(["x2", "x0"], level=0.9)
    reach = np.array([2.0 + abs(X[:, 2].mean() - 1), 4.0 + abs(X[:, 0].mean())])
    spread = np.sqrt(variance[[2, 0]] * (reach**2 - variance[[2, 0]]) / N)
    np.testing.assert_allclose(bounded.length / 2, 1.645 * spread, rtol=1e-2)
    found = matrix.correlations()
    assert found.names[:4] == ("x0:x1", "x0:x2", "x0:y", "x1:x2")
    np.testing.assert_allclose(found.estimate, np.corrcoef(TABLE.T)[np.triu_indices(4, 1)], atol=1e-4)
    np.testing.assert_allclose(np.tanh(np.arctanh(found.estimate[2]) + 1.96 / np.sqrt(N)), found.upper[2], atol=2e-3)


def test_with_a_schema_they_are_in_the_units_of_the_table():
    columns = (NumericColumn("x0", lower=-4, upper=4, per=2), NumericColumn("x1", lower=0, upper=10, unit="kg"))
    kind = CategoricalColumn("x2", categories=("3", "-1"), reference="-1")
    base = Schema(columns=(*columns, kind), target=NumericTarget("y", lower=-5, upper=5, unit="m"))
    frame = dict(zip(("x0", "x1", "x2", "y"), TABLE.T, strict=True))
    fit = dpci.fit(frame, schema=Schema.from_formula("y ~ x0 * x1 + x2", base), budget=dpci.ZCDP(1e7), seed=1)
    matrix, seen = regression.MomentMatrix.of(fit), ["x0", "x1", "x2=3", "y"]
    numbers = np.column_stack([X[:, :2], X[:, 2] == 3.0, Y])
    means, variances = matrix.means(seen), matrix.variances(seen)
    np.testing.assert_allclose(means.estimate, numbers.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(variances.estimate, numbers.var(axis=0), rtol=1e-2)
    assert means.per == ("unit", "kg", "share", "m")
    assert variances.per[1] == "kg^2"
    assert matrix.means(["x0:x1"]).per == ("scaled",)


# Both laws of the noise and both relations.
@pytest.mark.parametrize(
    ("budget", "relation"), [(dpci.GDP(1.0), {"neighbors": dpci.AddRemove(N)}), (dpci.PureDP(10.0), {})], ids=str
)
def test_noise_is_counted(budget, relation):
    """The noise alone moves the estimates of one data set: at an n so great that the sampling is a small part."""
    columns = ["x0", "y"]
    names = ("means", "variances", "correlations")
    found, stated = ({name: [] for name in names} for _ in range(2))
    for seed in range(150):
        matrix = released(budget=budget, seed=seed, **relation)
        for name in names:
            intervals = getattr(matrix, name)(columns, level=0.9)
            found[name].append(intervals.estimate)
            stated[name].append(intervals.length / 2 / 1.645)
    exact = released(**relation)
    for name in names:
        moved = np.std(found[name], axis=0)
        sampling = getattr(exact, name)(columns, level=0.9).length / 2 / 1.645
        spread = np.sqrt(np.mean(np.square(stated[name]), axis=0) - sampling**2)
        # Standard deviations of 150 draws err by 6%; linearisation and truncation have the rest.
        assert np.all(np.abs(np.log(spread / moved)) < 0.3), (name, spread, moved)
        gap = np.mean(found[name], axis=0) - getattr(exact, name)(columns).estimate
        assert np.all(np.abs(gap) < 0.35 * moved), name


@pytest.mark.parametrize("relation", [{}, {"neighbors": dpci.AddRemove(N)}], ids=["replace", "add"])
def test_gradients_in_the_matrix_are_those_of_finite_differences(relation):
    """Effect of noise on a variance and on a correlation: the eigenvalues of their gradients, all but two of them 0."""
    record = released(**relation)._record

    def slope(value):
        k, step = len(record.matrix), 1e-6
        gradient = np.zeros((k, k))
        for i, j in np.ndindex(k, k):
            change = np.zeros((k, k))
            change[i, j] += step / 2
            change[j, i] += step / 2
            ends = [
                value(Columns(dataclasses.replace(record, matrix=record.matrix + sign * change))) for sign in (1, -1)
            ]
            gradient[i, j] = (ends[0] - ends[1]) / (2 * step)
        return np.linalg.eigvalsh(gradient)

    def columns(of):
        return of._column("x0"), of._column("y")

    here = Columns(record)
    high, low = columns(here)[0].gradient
    # But for the 1/n of n/(n - 1), which the noise moves as well.
    near = {"rtol": 2e-3, "atol": 1e-3}
    np.testing.assert_allclose(slope(lambda of: columns(of)[0].variance)[[0, -1]], [low, high], **near)
    r, high, low = here._correlation(*columns(here))
    assert abs(r) > 0.5
    found = slope(lambda of: of._correlation(*columns(of))[0])
    np.testing.assert_allclose(found[[0, -1]], [low, high], **near)
    np.testing.assert_allclose(found[1:-1], 0.0, atol=1e-3)


def test_columns_that_noise_hides_have_no_correlation():
    with pytest.warns(dpci.MomentNoiseWarning, match="no regression with an intercept"):
        matrix = released(budget=dpci.GDP(0.02))
    found = matrix.correlations(["x0", "y"])
    assert np.isnan(found.lower).all()
    assert "vary no more than the noise" in found.refusals[0]
    assert np.isfinite(matrix.variances().length).all()
    assert np.all(matrix.variances().lower >= 0)
    assert np.isfinite(matrix.means().length).all()


def test_a_correlation_near_one_stays_within_its_bounds():
    rows = np.column_stack([X[:, 0], X[:, 0], X[:, 2]])
    bounds = ([-4, -4, -1], [4, 4, 3])
    for seed in range(20):
        matrix = released(rows, Y, bounds=bounds, budget=dpci.GDP(5.0), seed=seed)
        found = matrix.correlations(["x0", "x1"], level=0.999)
        assert found.upper[0] == 1.0
        assert 0.5 < found.lower[0] < 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.means(["z"]), "columns must be of the columns"),
        (lambda m: m.means("x0"), "sequence of names"),
        (lambda m: m.means([]), "at least one"),
        (lambda m: m.variances(["x0", "x0"]), "differ"),
        (lambda m: m.variances(assume="uniform"), "assume"),
        (lambda m: m.means(level=1.0), "level"),
        (lambda m: m.correlations(["x0"]), "at least two"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(dpci.InvalidInput, match=message):
        call(released())


@pytest.mark.parametrize(
    "domain", [{"rows": 12.0}, {"rows": dpci.rows.Blocks([4.0, 10.0, 3.0])}, {"rows": dpci.rows.Blocks([10.0] * 3)}]
)
def test_bounds_of_any_domain(domain):
    matrix = released(bounds=None, **domain)
    np.testing.assert_allclose(matrix.means().estimate, TABLE.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(matrix.variances().estimate, TABLE.var(axis=0, ddof=1), rtol=1e-3)
    rows = domain["rows"]
    reach = np.array([rows] * 3 if isinstance(rows, float) else rows.block_bounds) + np.abs(X.mean(axis=0))
    variance = X.var(axis=0, ddof=1)
    half = 1.96 * np.sqrt(variance * (reach**2 - variance) / N)
    np.testing.assert_allclose(matrix.variances(["x0", "x1", "x2"]).length / 2, half, rtol=2e-2)
