"""Robust covariances of planned regressions: their numbers, cost and sensitivity, and what is refused."""

import json

import numpy as np
import pytest
import statsmodels.api as sm

import dpci
from dpci import regression
from dpci.regression import Regression
from support.saved import rewritten

N = 600
_rng = np.random.default_rng(4)
X = _rng.uniform([1990, -1, 0], [2020, 1, 10], (N, 3))
Y = (X - [2005, 0, 5]) @ [0.1, -2.0, 0.5] + (0.5 + 0.1 * X[:, 2]) * _rng.normal(size=N) + 7
KNOWN = {"bounds": ([1990, -1, 0], [2020, 1, 10]), "target_bound": (-12, 26)}
PLANNED = [
    Regression(),
    Regression(features=["x2", "x1"]),
    Regression(l2_strength=0.3),
    Regression(target="x2", features=["x0", "x1"]),
    Regression(target="x1", features=["x2"], l2_strength=0.5),
    Regression(features=[]),
]


def released(x=X, y=Y, budget=None, **keywords):
    given = {"budget": budget or dpci.ZCDP(1e24), "robust": PLANNED, "seed": 1, **KNOWN, **keywords}
    return regression.release(x, y, **given)


def fitted(matrix, planned):
    return matrix.fit(planned.target, planned.features, l2_strength=planned.l2_strength, covariance="robust")


def sandwich(planned):
    """Coefficients and HC0 covariance, by hand."""
    columns = {f"x{i}": X[:, i] for i in range(3)}
    target = "y" if planned.target is None else planned.target
    features = [name for name in columns if name != target] if planned.features is None else planned.features
    design = np.column_stack([*(columns[name] for name in features), np.ones(N)])
    response = {**columns, "y": Y}[target]
    inverse = np.linalg.inv(design.T @ design / N + 0.5 * planned.l2_strength * np.eye(design.shape[1]))
    params = inverse @ design.T @ response / N
    scores = design * (response - design @ params)[:, None]
    return params, inverse @ (scores.T @ scores / N) @ inverse / N


@pytest.mark.parametrize("rows", ["bounds", "ball", "chunks"])
def test_an_enormous_budget_gives_the_sandwich(rows):
    if rows == "ball":
        matrix = released(bounds=None, rows=2100.0)
    elif rows == "chunks":
        matrix = released(dpci.Chunks([(X[:100], Y[:100]), (X[100:], Y[100:])]), None)
    else:
        matrix = released()
    for planned in PLANNED:
        params, cov = sandwich(planned)
        fit = fitted(matrix, planned)
        np.testing.assert_allclose(fit.params, params, rtol=1e-3 if rows == "ball" else 1e-7)
        np.testing.assert_allclose(fit.std_errors, np.sqrt(np.diag(cov)), rtol=1e-3 if rows == "ball" else 1e-6)
        assert fit.covariance == "robust"
        assert type(fit).from_json(fit.to_json()).conf_int().lower.tolist() == fit.conf_int().lower.tolist()


def test_the_tenth_is_divided():
    for budget in (dpci.PureDP(1.5), dpci.ZCDP(0.5), dpci.ApproxDP(1.5, 1e-6), dpci.GDP(0.7)):
        privacy = released(budget=budget).privacy
        costs = [step["cost"] for step in privacy["steps"]]
        assert [step["step"] for step in privacy["steps"]] == ["moment_matrix"] + ["residual_moments"] * len(PLANNED)
        np.testing.assert_allclose(np.array(costs[1:]) / sum(costs), 0.1 / len(PLANNED), rtol=1e-9)
        assert len(privacy["seal"]["releases"]) == 1 + len(PLANNED)
        if isinstance(budget, dpci.PureDP | dpci.ZCDP):
            sealed = sum(next(iter(seal["cost"].values())) for seal in privacy["seal"]["releases"])
            whole = next(iter(budget.parameters().values()))
            assert whole * (1 - 1e-9) < sum(costs) + sealed <= whole


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("notion", ["pure", "zcdp"])
def test_no_pair_of_records_exceeds_the_sensitivity(notion, neighbors):
    budget = dpci.PureDP(1e13) if notion == "pure" else dpci.ZCDP(1e24)
    record = released(budget=budget, neighbors=dpci.AddRemove(N) if neighbors == "add_remove" else neighbors)._record
    rng = np.random.default_rng(0)
    norm = "nuc" if notion == "pure" else "fro"
    for step, residual in zip(record.steps[1:], record.residuals, strict=True):
        used = [record.columns.index(name) for name in residual.regression.features]
        # Columns that are no regressors do not count.
        square = len(used) + record.constant**2
        factor = {"pure": 2.0, "zcdp": np.sqrt(2.0)}[notion] if neighbors == "replace_one" else 1.0
        cap2 = step.sensitivity * N / factor / square
        worst = 0.0
        for _ in range(400):
            pair = []
            for _ in range(2):
                x = rng.choice([-1.0, 1.0], len(used)) * rng.uniform(0.8, 1, len(used))
                row = np.array([*x, record.constant])
                pair.append(cap2 * rng.choice([0.0, 1.0]) * np.outer(row, row) / N)
            gap = pair[0] - pair[1] if neighbors == "replace_one" else pair[0]
            worst = max(worst, np.linalg.norm(gap, norm))
        assert 0.3 * step.sensitivity < worst <= step.sensitivity * (1 + 1e-12)


def test_replacing_a_record_moves_planned_moments_by_no_more():
    """At the same coefficients and cap: of many records one moves both by next to nothing."""
    rng = np.random.default_rng(8)
    rows = rng.uniform(-1, 1, (4000, 3))
    y = np.clip(rows @ [0.4, -0.3, 0.2] + 0.05 * rng.normal(size=4000), -1, 1)
    planned = [Regression(features=["x0"]), Regression(target="x1", features=["x2"])]
    known = {"budget": dpci.ZCDP(1e20), "bounds": (-1, 1), "target_bound": 1.0, "robust": planned, "seed": 1}
    base = regression.release(rows, y, **known)._record
    for corner, target in (([1, 1, 1], -1.0), ([-1, 1, -1], 1.0)):
        rows[3], y[3] = corner, target
        moved = regression.release(rows, y, **known)._record
        for step, first, second in zip(base.steps[1:], base.residuals, moved.residuals, strict=True):
            gap = np.linalg.norm(first.moments - second.moments)
            assert 0 < gap <= step.sensitivity * 1.05


BAD = {
    "a name that is not there": ([Regression(features=["z"])], "columns of X"),
    "a target that is not there": ([Regression(target="z")], "target"),
    "y among the regressors": ([Regression(target="x0", features=["y"])], "columns of X"),
    "its own target": ([Regression(target="x0", features=["x0"])], "columns of X"),
    "twice": ([Regression(), Regression(features=["x2", "x0", "x1"])], "once"),
    "no regression": (["x0"], "regression.Regression"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("errors", ["detailed", "private"])
@pytest.mark.parametrize("kind", ["array", "frame", "chunks"])
def test_bad_plans_spend_nothing(name, errors, kind):
    planned, message = BAD[name]
    ledger = dpci.Ledger(dpci.ZCDP(1.0), errors=errors)
    x, y = X, Y
    if kind == "frame":
        x = pytest.importorskip("pandas").DataFrame(X, columns=["x0", "x1", "x2"])
    if kind == "chunks":
        x, y = dpci.Chunks([(X, Y)]), None
    # Then names of columns in parts are looked at after the payment, unless the plan is no plan at all.
    if kind == "chunks" and errors == "private" and name != "no regression":
        with pytest.raises(dpci.ReleaseFailed):
            released(x, y, dpci.ZCDP(0.4), robust=planned, ledger=ledger, seed=None, rows="clip")
        assert ledger.spent["rho"] > 0
        return
    with pytest.raises(dpci.InvalidInput, match=message):
        released(x, y, dpci.ZCDP(0.4), robust=planned, ledger=ledger, seed=None, rows="clip")
    assert ledger.spent["rho"] == 0


def test_bad_regressions_are_refused():
    for keywords in (
        {"target": 3},
        {"features": "x0"},
        {"features": ["x0", "x0"]},
        {"features": [1]},
        {"l2_strength": -1.0},
        {"l2_strength": "private"},
        {"l2_strength": np.nan},
    ):
        with pytest.raises(dpci.InvalidInput):
            Regression(**keywords)


def test_what_was_not_planned_is_refused_and_names_what_was():
    matrix = released(robust=[Regression(features=["x0"])])
    for call in (
        matrix.fit,
        lambda **kw: matrix.fit(features=["x0"], l2_strength=0.1, **kw),
        lambda **kw: matrix.fit(features=["x0"], intercept=False, **kw),
        lambda **kw: matrix.fit("x1", features=["x0"], **kw),
        lambda **kw: matrix.fit("x1", features=["y"], **kw),
        lambda **kw: matrix.fit(features=["x0"], l2_strength="private", **kw),
    ):
        with pytest.raises(dpci.InvalidInput, match="y on x0"):
            call(covariance="robust")
    assert matrix.submodels([["x0"]], covariance="robust")[0].covariance == "robust"
    named = released(
        pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"]), robust=[Regression(features=["c"])]
    )
    assert named.fit(features=["c"], covariance="robust").names == ("c", "intercept")


def test_the_default_covariance_is_robust_where_it_was_paid_for():
    matrix = released(robust=[Regression(features=["x0"])])
    paid, other = matrix.fit(features=["x0"]), matrix.fit()
    assert (paid.covariance, other.covariance) == ("robust", "classical")
    assert matrix.fit(features=["x0"], l2_strength=0.1).covariance == "classical"
    assert released(robust=False).fit(features=["x0"]).covariance == "classical"
    assert np.array_equal(paid.cov, matrix.fit(features=["x0"], covariance="robust").cov)


def test_frames_in_parts_have_their_own_names():
    pandas = pytest.importorskip("pandas")
    # The first column has the name that an array would give the second.
    frame = pandas.DataFrame(X, columns=["x1", "x0", "c"])
    chunks = dpci.Chunks([(frame[:100], Y[:100]), (frame[100:], Y[100:])])
    for planned in (Regression(features=["x0"]), Regression(target="c", features=["x1"])):
        found = [fitted(released(*data, robust=[planned]), planned) for data in ((frame, Y), (chunks, None))]
        np.testing.assert_allclose(found[1].std_errors, found[0].std_errors, rtol=1e-6)
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    with pytest.raises(dpci.InvalidInput, match="columns of X"):
        released(chunks, None, dpci.ZCDP(0.4), robust=[Regression(features=["x2"])], ledger=ledger, seed=None)
    assert ledger.spent["rho"] == 0


def test_damaged_files_are_refused():
    matrix = released()
    assert regression.MomentMatrix.from_json(matrix.to_json()).to_json() == matrix.to_json()
    document = json.loads(matrix.to_json())

    def read(residuals):
        return regression.MomentMatrix.from_json(rewritten({**document, "residuals": residuals}))

    assert read(document["residuals"]).to_json() == matrix.to_json()
    first = document["residuals"][0]
    for damage in (
        {},
        None,
        [{}],
        document["residuals"][:-1],
        [{**first, "features": ["x2", "x0", "x1"]}, *document["residuals"][1:]],
        [{**first, "moments": [[1.0]]}, *document["residuals"][1:]],
        [{**first, "point": [1.0]}, *document["residuals"][1:]],
        [{**first, "target": 3}, *document["residuals"][1:]],
    ):
        with pytest.raises(dpci.InvalidInput):
            read(damage)


@pytest.mark.parametrize(
    "planned", [Regression(features=["x0"]), Regression(l2_strength=0.3)], ids=["sub-model", "ridge"]
)
def test_coverage_with_errors_of_unequal_variance(planned):
    """Rejects the classical covariance here, whose intervals of x0 cover in .80."""
    beta, runs, n = np.array([0.3, -0.2]), 300, 4000
    hits = 0
    truth = beta if planned.features is None else beta[:1]
    if planned.l2_strength:
        truth = np.linalg.solve(np.eye(2) / 3 + 0.5 * planned.l2_strength * np.eye(2), beta / 3)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        rows = rng.uniform(-1, 1, (n, 2))
        y = rows @ beta + 1.2 * rows[:, 0] ** 2 * rng.uniform(-1, 1, n)
        matrix = regression.release(
            rows, y, budget=dpci.ZCDP(20.0), bounds=(-1, 1), target_bound=1.7, robust=[planned], seed=seed
        )
        interval = fitted(matrix, planned).conf_int()
        hits += bool(interval.lower[0] <= truth[0] <= interval.upper[0])
    # Binomial tails of 1e-6 about .95.
    assert 0.88 <= hits / runs < 1.0


def test_residuals_beyond_the_cap_count():
    """Rejects standard errors of the residuals that count alone, which are half as long here."""
    n = 20_000
    rng = np.random.default_rng(0)
    rows = rng.uniform(0.0, 1.0, (n, 2))
    large = 30.0 * rng.choice([-1.0, 1.0], n) * (rng.random(n) < 0.003)
    y = rows @ [1.0, -1.0] + 0.3 * rng.normal(size=n) + large
    common = {"bounds": (0, 1), "target_bound": 32.0, "robust": True, "seed": 1}
    fit = regression.release(rows, y, budget=dpci.ZCDP(1e13), **common).fit()
    expected = sm.OLS(y, sm.add_constant(rows, prepend=False)).fit(cov_type="HC0").bse
    np.testing.assert_allclose(fit.std_errors, expected, rtol=0.05)


@pytest.mark.parametrize("budget", [dpci.PureDP(4.0), dpci.ZCDP(0.5)], ids=str)
def test_a_rare_group_with_larger_errors_is_covered(budget):
    """Rejects an estimate that is moved to that of equal variances wherever noise is not small, by which .77 cover."""
    runs, n, hits = 150, 60_000, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        rows = np.column_stack([rng.uniform(0.0, 1.0, n), rng.random(n) < 0.02])
        y = rows[:, 0] + np.where(rows[:, 1] > 0.0, 5.0, 0.1) * rng.normal(size=n)
        common = {"bounds": (0, 1), "target_bound": 30.0, "robust": True, "seed": seed}
        fit = regression.release(rows, y, budget=budget, **common).fit()
        interval = fit.conf_int()
        hits += bool(interval.lower[1] <= 0.0 <= interval.upper[1])
        np.testing.assert_allclose(np.diag(fit.cov), fit._estimates().parts().variance, rtol=1e-9)
    # A binomial tail of 1e-6 about .945.
    assert hits / runs > 0.83


def test_no_interval_of_equal_variances_is_many_times_as_long():
    """Noise that hides a covariance makes neither a factor of its own nor a t law of few degrees of freedom."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (5000, 6)) / 6.0**0.5
        y = np.clip(X.sum(axis=1) + 0.3 * rng.normal(size=5000), -2.0, 2.0)
        release = dpci.regression.release(
            X, y, budget=dpci.PureDP(epsilon=8.0), target_bound=2.0, robust=True, seed=seed
        )
        lengths = [
            found.upper - found.lower
            for found in (release.fit().conf_int(), release.fit(covariance="classical").conf_int())
        ]
        assert (lengths[0] < 4.0 * lengths[1]).all()
