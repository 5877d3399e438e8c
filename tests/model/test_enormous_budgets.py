"""Budgets at which the noise vanishes: private estimates and intervals are those of statsmodels and scikit-learn."""

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression

import dpci
from support.extreme_choices import inspect
from support.keywords import assembled

N = 3_000
RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, (N, 3))
Y = RNG.random(N) < 1.0 / (1.0 + np.exp(-(X @ [2.0, -1.0, 0.0] + 0.3)))
REAL = np.clip(X @ [1.0, -0.5, 0.0] + 0.1 + 0.2 * RNG.normal(size=N), -1.0, 1.0)
WITH = sm.add_constant(X, prepend=False)
BUDGETS = [
    budget for size in (1e12, 1e15) for budget in (dpci.PureDP(size), dpci.ZCDP(size), dpci.ApproxDP(size, 1e-6))
]

pytestmark = pytest.mark.filterwarnings("ignore::dpci.DpciWarning")
each_budget = pytest.mark.parametrize("budget", BUDGETS, ids=str)


def close(found, expected, relative):
    expected = np.asarray(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0.0, atol=relative * np.abs(expected).max())


def sandwich(slope, curvature, l2_strength):
    """The covariance of regularised estimates at the values of slope and curvature of each row."""
    ridge = l2_strength * np.eye(4)
    inverse = np.linalg.inv((WITH.T * curvature) @ WITH / N + ridge)
    scores = WITH * slope[:, None]
    mean = scores.mean(axis=0)
    return inverse @ (scores.T @ scores / N - np.outer(mean, mean)) @ inverse / N


@each_budget
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_logistic_regression(budget, mechanism):
    strength = 1e-3
    result = dpci.fit(X, Y, budget=budget, l2_strength=strength, mechanism=mechanism, classes=(False, True))
    # With the intercept among the columns its ridge is that of the others.
    model = LogisticRegression(C=1.0 / (N * strength), fit_intercept=False, tol=1e-12, max_iter=10_000)
    expected = model.fit(WITH, Y).coef_[0]
    # At rho = 1e12 output perturbation has noise of 5e-7.
    close(result.params, expected, 1e-5)
    p = 1.0 / (1.0 + np.exp(-WITH @ expected))
    cov = sandwich(p - Y, p * (1.0 - p), strength)
    close(result.std_errors, np.sqrt(np.diag(cov)), 1e-4)
    half = 1.959964 * np.sqrt(np.diag(cov))
    close(result.conf_int(), np.column_stack([expected - half, expected + half]), 1e-4)


@each_budget
def test_least_squares(budget):
    fitted = sm.OLS(REAL, WITH).fit()
    released = dpci.regression.release(X, REAL, budget=budget, bounds=(-0.5, 0.5), robust=True)
    found = released.fit()
    close(found.params, fitted.params, 1e-6)
    close(found.conf_int(), fitted.conf_int(), 1e-3)  # normal quantiles, and n for n less the parameters
    robust = released.fit(covariance="robust")
    close(robust.std_errors, sm.OLS(REAL, WITH).fit(cov_type="HC0").bse, 1e-5)
    result = dpci.fit(
        X, REAL, budget=budget, loss="squared", l2_strength=1e-3, mechanism=dpci.ObjectivePerturbation(radius=4.0)
    )
    # The squared loss has the curvature 2.
    expected = np.linalg.solve(2.0 * WITH.T @ WITH / N + 1e-3 * np.eye(4), 2.0 * WITH.T @ REAL / N)
    close(result.params, expected, 1e-6)
    cov = sandwich(2.0 * (WITH @ expected - REAL), np.full(N, 2.0), 1e-3)
    close(result.std_errors, np.sqrt(np.diag(cov)), 1e-4)


@each_budget
@pytest.mark.parametrize("row_norm", [1.0, 1e5])
def test_ordinary_coefficients(budget, row_norm):
    """However far the public bound is from the rows."""
    ledger = dpci.Ledger(budget)
    result = dpci.fit(X, Y, budget=budget, rows=row_norm, classes=(False, True), ledger=ledger)
    assert len(ledger.history) == 1
    fitted = sm.Logit(Y, WITH).fit(disp=0)
    # Rows that are far out weigh less.
    assert (np.abs(np.asarray(result.params) - fitted.params) < 0.05 * fitted.bse).all()
    np.testing.assert_allclose(result.std_errors, fitted.bse, rtol=0.05)


@each_budget
def test_a_rare_class_has_ordinary_coefficients(budget):
    """The ridge of pure DP is around the best constant, which is far out."""
    n = 40_000
    rng = np.random.default_rng(11)
    rows = rng.uniform(-0.5, 0.5, (n, 3))
    rare = rng.random(n) < 1.0 / (1.0 + np.exp(7.0 - rows[:, 0]))
    result = dpci.fit(rows, rare, budget=budget, classes=(False, True))
    fitted = sm.Logit(rare, sm.add_constant(rows, prepend=False)).fit(disp=0)
    assert (np.abs(np.asarray(result.params) - fitted.params) < 0.3 * fitted.bse).all()


SCHEMA = dpci.schema.Schema(
    columns=(dpci.schema.NumericColumn(name="age", lower=18, upper=90),),
    target=dpci.schema.ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)
TABLE = {"age": 18.0 + 72.0 * RNG.random(N), "state": np.repeat(["A", "B"], N // 2), "ill": np.where(Y, "yes", "no")}


@each_budget
def test_every_release_takes_them(budget):
    losses = dpci.losses
    of_classes = [(loss, Y, {"classes": (False, True)}) for loss in ("huber_hinge", "smooth_hinge")]
    of_numbers = [
        (losses.Huber(k=0.3, target_bound=1.0), REAL, {}),
        (losses.Quantile(0.5, s=0.1, target_bound=1.0), REAL, {}),
    ]
    counts = RNG.poisson(1.0, N).clip(0, 8)
    for loss, y, more in (*of_classes, *of_numbers, (losses.Poisson(8), counts, {"radius": 3.0})):
        for mechanism in ("objective", "output"):
            result = dpci.fit(
                X, y, **assembled(loss=loss, budget=budget, l2_strength=0.01, mechanism=mechanism, **more)
            )
            assert np.isfinite(result.conf_int()).all()
            assert result.wald_test(np.eye(4)[:2]).pvalue <= 1.0
            assert dpci.PrivateFit.from_json(result.to_json()).to_json() == result.to_json()
    classes = np.digitize(REAL, [-0.2, 0.2])
    several = dpci.multinomial.fit(X, classes, classes=[0, 1, 2], budget=budget, l2_strength=0.01)
    assert np.isfinite(several.conf_int()).all()
    for n_public in (N // 2, "private"):
        strata = dpci.fit_strata(
            TABLE, by="state", strata=("A", "B"), schema=SCHEMA, l2_strength=0.05, budget=budget, n_public=n_public
        )
        assert strata["A"].n_samples == N // 2
    candidates = [{"l2_strength": 0.01}, {"l2_strength": 10.0}]
    for method in ("chunks", "repeat"):
        tuned = dpci.tuning.tune(
            X, Y, method=method, candidates=candidates, validation_radius=3.0, classes=(False, True), budget=budget
        )
        # Of a random number of runs none may be that of the better one.
        assert tuned.params == candidates[0] or method == "repeat"
    if isinstance(budget, dpci.ApproxDP):
        dpci.per_instance.report(X, Y, l2_strength=0.05, n_public=N, classes=(False, True), budget=budget)


@each_budget
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_data_without_any_variance_have_all_answers(budget, mechanism):
    """The covariance of the gradients is then nothing but its noise."""
    choices = {"budget": budget, "l2_strength": 0.1, "mechanism": mechanism, "classes": (0, 1)}
    rows = np.zeros((40, 2))
    inspect(*(dpci.fit(rows, np.ones(40), **choices, seed=seed) for seed in (1, 2)))


@pytest.mark.parametrize("size", [1e18, 1e100, 1e300])
@pytest.mark.parametrize("notion", [dpci.PureDP, dpci.ZCDP, lambda size: dpci.ApproxDP(size, 1e-6)])
def test_the_largest_budget_of_a_fit_is_named_before_it_is_spent(notion, size):
    budget = notion(size)
    rows = {"X": X, "y": Y, "classes": (False, True), "budget": budget}
    counted = {"by": "state", "strata": ("A", "B"), "schema": SCHEMA, "n_public": "private", "budget": budget}
    calls = [
        lambda: dpci.fit(**rows),
        lambda: dpci.fit(**rows, l2_strength=0.01),
        lambda: dpci.fit(**rows, l2_strength=0.01, mechanism="output"),
        lambda: dpci.fit_many({"a": (X, Y)}, classes=(False, True), budget=budget),
        lambda: dpci.fit_strata(TABLE, **counted),
        lambda: dpci.fit_strata(TABLE, **counted, l2_strength=0.05),
        lambda: dpci.multinomial.fit(X, Y, classes=[0, 1, 2], budget=budget, l2_strength=0.01),
        lambda: dpci.tuning.tune(
            **rows, candidates=[{"l2_strength": 0.01}, {"l2_strength": 1.0}], validation_radius=3.0
        ),
        lambda: dpci.plan(n_samples=N, n_features=3, budget=budget),
    ]
    if isinstance(budget, dpci.ApproxDP):
        calls.append(lambda: dpci.per_instance.report(**rows, l2_strength=0.05, n_public=N))
    for call in calls:
        with pytest.raises(dpci.InvalidInput, match=r"(epsilon|rho) must be at least 1e-60 and at most 1e15"):
            call()


def test_what_an_enormous_budget_rules_out_is_named():
    with pytest.raises(dpci.InvalidInput, match="mu must be at least 1e-30 and at most 1e8"):
        dpci.regression.release(X, REAL, budget=dpci.GDP(1e9))
    with pytest.raises(dpci.InvalidInput, match="l2_strength of method='public_rule' is not possible with this budget"):
        dpci.tuning.tune(X, Y, method="public_rule", classes=(False, True), budget=dpci.PureDP(1e15))
    hinge = {"loss": "hinge", "mechanism": "output", "moments": "none", "l2_strength": 0.01}
    with pytest.raises(dpci.RegularizationTooSmall, match=r"decrease row_norm or the budget"):
        dpci.plan(**assembled(n_samples=N, n_features=3, budget=dpci.PureDP(1e15), **hinge))


@pytest.mark.parametrize("n_features", [1, 300])
@pytest.mark.parametrize("n_samples", [300, 1_000_000, 1_000_000_000])
@pytest.mark.parametrize("is_public", [True, False])
def test_newton_steps_have_a_certificate_at_any_number_of_records(n_features, n_samples, is_public):
    relation = {} if is_public else {"neighbors": dpci.AddRemove(n_samples)}
    dpci.plan(n_samples=n_samples, n_features=n_features, budget=dpci.PureDP(1e15), mechanism="newton", **relation)
