"""The plan of a linear regression: what it says is what a release of such data has, and it agrees with the release."""

from dataclasses import replace

import numpy as np
import pytest

import dpci
from dpci import regression
from dpci.regression.choices.assumed import assumed
from dpci.regression.choices.matrix import choices_of_fit
from dpci.rows import Blocks
from dpci.schema import CategoricalColumn, NumericColumn, NumericTarget, Schema
from support.keywords import assembled

pytestmark = [pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")]

N, K = 3000, 3
ROWS = Blocks([1.0] * K)
PLAN = {"n_samples": N, "n_features": K, "loss": "squared", "rows": ROWS}
SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=18, upper=80, unit="year"),
        CategoricalColumn(name="ward", categories=("a", "b", "c", "d"), reference="a"),
    ),
    target=NumericTarget(column="days", lower=0, upper=30),
)
BUDGETS = [dpci.PureDP(6.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-6), dpci.GDP(1.0)]


def drawn(plan, rng, n=N):
    """Data of which the assumptions of a plan hold: uniform columns, equal slopes, normal errors."""
    assumed = plan.assumptions
    x = rng.uniform(-1, 1, (n, K)) * np.sqrt(3) * assumed.column_std_dev
    slopes = assumed.target_std_dev * np.sqrt(assumed.r_squared / K) / np.array(assumed.column_std_dev)
    errors = rng.normal(size=n) * assumed.target_std_dev * np.sqrt(1 - assumed.r_squared)
    return x, x @ slopes + errors, slopes


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_standard_errors_are_those_of_releases(budget):
    # A target whose normal errors stay within the bounds.
    plan = dpci.plan(**PLAN, budget=budget).assuming(column_std_dev=[0.5, 0.4, 0.57], target_std_dev=0.25)
    rng = np.random.default_rng(1)
    stated, errors, halves, shares = [], [], [], []
    for seed in range(200):
        x, y, slopes = drawn(plan, rng)
        fit = dpci.fit(x, y, loss="squared", rows=dpci.rows.Clipped(ROWS), budget=budget, seed=seed)
        stated.append(fit.std_errors)
        halves.append(fit.conf_int().length / 2)
        shares.append(fit.noise_shares)
        errors.append(fit.params - [*slopes, 0.0])
    # The released numbers vary by a few per cent from release to release; their mean by far less.
    np.testing.assert_allclose(np.median(stated, axis=0), plan.std_errors, rtol=0.05)
    np.testing.assert_allclose(np.median(halves, axis=0), plan.half_widths, rtol=0.05)
    np.testing.assert_allclose(np.median(shares, axis=0), plan.noise_shares, rtol=0.05)
    # Of 800 errors in all, 4 in each release: their mean square is within 5 standard deviations, of 2/√800 each way.
    ratio = np.mean((np.array(errors) / plan.std_errors) ** 2)
    assert 0.7 < ratio < 1.35


def test_the_noise_of_every_entry_is_that_of_releases():
    bounds = {"rows": Blocks([2.0, 0.5, 1.0])}
    plan = dpci.plan(**{**PLAN, **bounds}, budget=dpci.PureDP(5.0))
    x, y, _ = drawn(dpci.plan(**PLAN, budget=dpci.PureDP(5.0)), np.random.default_rng(0))
    x = x * [2.0, 0.5, 1.0]
    keywords = {"loss": "squared", "rows": dpci.rows.Clipped(bounds["rows"])}
    gaps = []
    for seed in range(400):
        fit = dpci.fit(x, y, budget=dpci.PureDP(5.0), seed=seed, **keywords)
        gaps.append(regression.MomentMatrix.of(fit).moments)
        assert plan.noise_std_dev == pytest.approx(fit._release.noise(), rel=1e-14)
    spread = np.std(gaps, axis=0)
    # Of 400 draws a standard deviation is within a fifth, six of its own standard deviations.
    np.testing.assert_allclose(spread, plan.noise_std_devs, rtol=0.25)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_cost_and_noise_are_those_of_the_release(budget, neighbors):
    relation = dpci.AddRemove(N) if neighbors == "add_remove" else neighbors
    keywords = {"loss": "squared", "rows": ROWS, "neighbors": relation, "budget": budget}
    plan = dpci.plan(n_samples=N, n_features=K, **keywords)
    x, y, _ = drawn(plan, np.random.default_rng(2))
    fit = dpci.fit(x, y, seed=1, **{**keywords, "rows": dpci.rows.Clipped(ROWS)})
    assert plan.steps == fit._release.steps
    assert plan.seals == fit._release.seals
    assert plan.cost_unit == fit.privacy["cost_unit"]
    assert plan.guarantee.delta(1.0) == fit.guarantee.delta(1.0)
    assert plan.names == fit.names


def test_a_schema_gives_the_units_of_its_table():
    keywords = {"schema": SCHEMA, "loss": "squared", "budget": dpci.GDP(2.0)}
    plan = dpci.plan(n_samples=4000, **keywords).assuming(target_std_dev=5.0, r_squared=0.3)
    rng = np.random.default_rng(3)
    stated = []
    for seed in range(60):
        table = {"age": rng.uniform(18, 80, 4000), "ward": rng.choice(list("abcd"), 4000)}
        x = SCHEMA.features(table)
        slopes = 1 / x.std(axis=0)
        part = (x - x.mean(axis=0)) @ slopes
        part *= np.sqrt(0.3) * 5 / part.std()
        table["days"] = np.clip(15 + part + rng.normal(size=4000) * np.sqrt(0.7) * 5, 0, 30)
        units = dpci.fit(table, seed=seed, **keywords)
        stated.append(units.std_errors)
        assert (plan.names, plan.units) == (units.names, units.units)
    np.testing.assert_allclose(np.median(stated, axis=0), plan.std_errors, rtol=0.06)


def test_an_earlier_release_stands_for_the_assumptions():
    budget = dpci.ZCDP(1e9)
    plan = dpci.plan(**PLAN, budget=dpci.ZCDP(0.5))
    x, y, _ = drawn(plan.assuming(target_std_dev=0.25), np.random.default_rng(4))
    fits = [
        dpci.fit(x, y, loss="squared", rows=dpci.rows.Clipped(ROWS), budget=b, seed=5) for b in (budget, dpci.ZCDP(0.5))
    ]
    for like in (fits[0], regression.MomentMatrix.of(fits[0])):
        found = dpci.plan(**PLAN, budget=dpci.ZCDP(0.5), like=like)
        np.testing.assert_allclose(found.std_errors, fits[1].std_errors, rtol=0.05)
        assert found.assumptions is None
        assert "earlier release" in found.summary()
        more = dpci.plan(**{**PLAN, "n_samples": 4 * N}, budget=dpci.ZCDP(1e9), like=like)
        np.testing.assert_allclose(more.std_errors, fits[0].std_errors / 2, rtol=1e-3)
    half = {"neighbors": dpci.AddRemove(N // 2)}
    other = dpci.fit(x, y, loss="squared", rows=ROWS, budget=budget, seed=5, **half)
    again = dpci.plan(**PLAN, budget=dpci.ZCDP(0.5), like=other)
    np.testing.assert_allclose(again.std_errors, found.std_errors, rtol=1e-4)


def test_from_the_least_number_on_regressions_are_clear():
    budget = dpci.ZCDP(0.01)
    plan = dpci.plan(**PLAN, budget=budget)
    found = {}
    for factor in (0.67, 1.0):
        n = int(plan.least_n_samples * factor)
        hidden = 0
        for seed in range(40):
            x, y, _ = drawn(plan.assuming(target_std_dev=0.25), np.random.default_rng(seed), n)
            fit = dpci.fit(x, y, loss="squared", rows=dpci.rows.Clipped(ROWS), budget=budget, seed=seed)
            hidden += fit.interval_refusal is not None
        found[factor] = hidden
    assert found[1.0] <= 4
    assert found[0.67] > 20
    at = dpci.plan(**PLAN, budget=plan.least_budget)
    assert at.least_n_samples <= N
    assert dpci.plan(**PLAN, budget=dpci.ZCDP(plan.least_budget.rho * 0.98)).least_n_samples > N


def test_a_plan_of_a_hidden_regression_says_so():
    # Categories that hardly vary: within the bounds, but not by the assumptions.
    plan = dpci.plan(**PLAN, budget=dpci.ZCDP(0.01)).assuming(column_std_dev=0.05)
    assert plan.std_errors is None
    assert "vary more than the noise" in plan.refusal
    assert "no standard errors" in plan.summary()
    assert plan.least_n_samples > N
    better = dpci.plan(**{**PLAN, "n_samples": plan.least_n_samples}, budget=dpci.ZCDP(0.01))
    assert better.assuming(column_std_dev=0.05).std_errors is not None
    with pytest.raises(dpci.InvalidInput, match="must be able to vary more than the noise"):
        dpci.plan(**PLAN, budget=dpci.ZCDP(1e-6))
    ridge = dpci.plan(**PLAN, budget=dpci.ZCDP(1e-6), l2_strength="private")
    assert np.isfinite(ridge.std_errors).all()
    assert ridge.least_n_samples is ridge.least_budget is None


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"target": "unregularised"}, "target must be 'regularised'"),
        ({"rows": Blocks([1.0])}, "rows must bound every column"),
        ({"like": 3}, "like must be a regression.LinearFit"),
        (
            {"weights": dpci.Weights(bound=2.0), "intercept": False},
            "intercept must be True with persons and with weights",
        ),
        ({"persons": dpci.Persons(), "l2_strength": "private"}, "l2_strength must be a number with persons"),
        ({"budget": 1.0}, "budget must be"),
        ({"l2_strength": -1.0}, "l2_strength"),
        ({"n_samples": 3}, "more records than coefficients"),
    ],
    ids=str,
)
def test_bad_keywords_are_refused(keywords, message):
    with pytest.raises(dpci.InvalidInput, match=message):
        dpci.plan(**assembled(**{**PLAN, "budget": dpci.ZCDP(0.5), **keywords}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"column_std_dev": 1.5}, "at most half the width"),
        ({"column_std_dev": [0.5, 0.5]}, "one for each of 3 columns, got 2"),
        ({"target_std_dev": 2.0}, "at most half the width of the target's bounds, 1"),
        ({"r_squared": 1.0}, "below 1"),
        ({"r_squared": -0.1}, "r_squared"),
    ],
    ids=str,
)
def test_assumptions_must_agree_with_the_bounds(given, message):
    plan = dpci.plan(**PLAN, budget=dpci.ZCDP(0.5))
    with pytest.raises(dpci.InvalidInput, match=message):
        plan.assuming(**given)
    with pytest.raises(dpci.InvalidInput, match="with a schema"):
        dpci.plan(n_samples=4000, schema=SCHEMA, loss="squared", budget=dpci.GDP(2.0)).assuming(column_std_dev=0.1)
    other = dpci.fit(np.zeros((90, 2)), np.zeros(90), loss="squared", budget=dpci.GDP(50.0), seed=1)
    with pytest.raises(dpci.InvalidInput, match="like must have the number of columns of the plan, 3, got 2"):
        dpci.plan(**PLAN, budget=dpci.ZCDP(0.5), like=other)


@pytest.mark.parametrize("rows", [dpci.rows.Ball(2.0), Blocks([1.0], [((1, 2), 0.5)])], ids=str)
def test_uniform_columns_have_the_moments_of_their_domain(rows):
    made = choices_of_fit(
        rows=dpci.rows.Clipped(rows), schema=None, loss=dpci.losses.Squared(), budget=dpci.ZCDP(0.5),
        neighbors="replace_one", n_threads=None, seed=None,
    )  # fmt: skip
    _, mean, covariance = assumed(made, 3)
    rng = np.random.default_rng(6)
    domain, points = made.core_domain(3), rng.uniform(-2, 2, (400_000, 3))
    if isinstance(domain, Blocks):
        points /= 2
        inside = np.abs(points[:, 1:]).sum(axis=1) <= 1
    else:
        inside = np.linalg.norm(points, axis=1) <= 2
    np.testing.assert_allclose(np.cov(points[inside], rowvar=False), covariance, atol=0.01)
    assert not mean.any()


@pytest.mark.parametrize("counts", ["persons", "max_rows", "weights", "both"])
def test_standard_errors_of_persons_and_weights_are_those_of_releases(counts):
    # Three rows of a person alike, and equal weights: what a plan assumes.
    keywords, values = {}, {}
    if counts in {"persons", "max_rows", "both"}:
        keywords |= {"persons": dpci.Persons(max_rows=3)} if counts == "max_rows" else {"persons": dpci.Persons()}
        values["persons"] = np.repeat(np.arange(N), 3)
    if counts in {"weights", "both"}:
        keywords |= {"weights": dpci.Weights(bound=2.5, total=2.0 * N if counts == "both" else None)}
        values["weights"] = np.full(3 * N if counts == "both" else N, 2.0 if counts == "both" else 1.0)
    budget = dpci.ZCDP(2.0)
    plan = dpci.plan(**PLAN, **keywords, budget=budget).assuming(column_std_dev=0.5, target_std_dev=0.25)
    assert [step.step for step in plan.steps] == ["moment_matrix", "residual_moments"]
    rng = np.random.default_rng(1)
    errors, stated = [], []
    for seed in range(60):
        x, y, slopes = drawn(plan, rng)
        if "persons" in values:
            x, y = np.repeat(x, 3, axis=0), np.repeat(y, 3)
        with_ids = {"persons": replace(keywords["persons"], ids=values["persons"])} if "persons" in values else {}
        weighed = {"weights": replace(keywords["weights"], values=values["weights"])} if "weights" in values else {}
        fit = dpci.fit(
            x, y, loss="squared", rows=dpci.rows.Clipped(ROWS), budget=budget, seed=seed,
            **{**keywords, **with_ids, **weighed},
        )  # fmt: skip
        assert fit._release.steps[0].scale == plan.steps[0].scale
        assert fit._release.steps[1].scale == pytest.approx(plan.steps[1].scale, rel=0.25)
        stated.append(fit.std_errors)
        errors.append(fit.params - [*slopes, 0.0])
    np.testing.assert_allclose(np.median(stated, axis=0), plan.std_errors, rtol=0.06)
    # Of 240 errors the mean square is within 5 standard deviations of 1, each 2/√240.
    assert 0.4 < np.mean((np.array(errors) / plan.std_errors) ** 2) < 1.65
    # Another year resembles this one, its residual moments included.
    again = dpci.plan(**PLAN, **keywords, budget=budget, like=fit)
    np.testing.assert_allclose(again.std_errors, fit.std_errors, rtol=0.06)
    assert again.guarantee.delta(3.0) == pytest.approx(fit.guarantee.delta(3.0))


def test_an_earlier_release_of_another_unit_is_refused():
    x, y, _ = drawn(dpci.plan(**PLAN, budget=dpci.ZCDP(0.5)).assuming(target_std_dev=0.2), np.random.default_rng(2))
    released = {"loss": "squared", "budget": dpci.ZCDP(5.0), "rows": dpci.rows.Clipped(ROWS)}
    of_rows, of_persons = dpci.fit(x, y, **released), dpci.fit(x, y, persons=np.arange(N) // 2, **released)
    for like, unit in (
        (of_rows, {"persons": dpci.Persons()}),
        (of_persons, {}),
        (of_persons, {"persons": dpci.Persons(max_rows=2)}),
    ):
        with pytest.raises(dpci.InvalidInput, match="like must have the unit of privacy of the plan, a "):
            dpci.plan(**PLAN, **unit, budget=dpci.ZCDP(0.5), like=like)
