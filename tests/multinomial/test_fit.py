"""Multinomial fits: their limit beside statsmodels, results and their notes, payment, and what is refused."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import optimize, stats

import dpci
from dpci.base.codec import plain_fields
from dpci.errors import BudgetExceeded, InvalidInput, ReleaseFailed
from dpci.multinomial.result import fit_of
from dpci.released.whole import Whole
from dpci.report.summary import TRUSTED_COVERAGE, mean_coverage
from support.extreme import attempt_several
from support.keywords import assembled
from support.saved import rewritten

N, STRENGTH = 1500, 1e-2
LABELS = ["none", "some", "all", "more"]
rng = np.random.default_rng(5)
X = rng.uniform(-1.0, 1.0, (N, 2)) / np.sqrt(2.0)
Z = np.column_stack([X, np.ones(N)])
TRUE = np.array([[1.5, -1.0, 0.5], [-1.0, 2.0, 0.2], [0.5, 1.0, -0.5]])
GUMBEL = rng.gumbel(size=(N, 4))
CODES = (np.column_stack([np.zeros(N), Z @ TRUE.T]) + GUMBEL).argmax(axis=1)
Y = np.array(LABELS)[CODES]
BUDGET = dpci.ZCDP(rho=0.5)
LIMIT = {"budget": dpci.ZCDP(rho=1e13), "classes": LABELS, "l2_strength": STRENGTH, "seed": 1}
NAMES = tuple(f"{label}:{name}" for label in LABELS[1:] for name in ("x0", "x1", "intercept"))


@pytest.fixture(scope="module", params=[dpci.PureDP(1e10), dpci.ApproxDP(1e14, 0.5), dpci.ZCDP(rho=1e13)], ids=str)
def limit(request):
    """A fit with next to no noise, by objective perturbation or under zCDP by output perturbation."""
    return dpci.multinomial.fit(X, Y, **{**LIMIT, "budget": request.param})


@pytest.fixture(scope="module")
def fitted():
    """A fit with noise."""
    return dpci.multinomial.fit(X, Y, budget=BUDGET, classes=LABELS, l2_strength=STRENGTH, seed=2)


def test_the_limit_is_the_fit_of_statsmodels(limit):
    model = sm.MNLogit(CODES, Z)
    start = np.zeros(9)
    found = optimize.minimize(
        lambda p: -model.loglike(p.reshape(3, 3).T) / N + STRENGTH / 2 * p @ p,
        start,
        jac=lambda p: -model.score(p.reshape(3, 3).T) / N + STRENGTH * p,
        method="BFGS",
        options={"gtol": 1e-11},
    )
    params = found.x
    np.testing.assert_allclose(limit.params, params, atol=1e-6)
    bread = np.linalg.inv(-model.hessian(params.reshape(3, 3).T) / N + STRENGTH * np.eye(9))
    scores = model.score_obs(params.reshape(3, 3).T)
    meat = scores.T @ scores / N - STRENGTH**2 * np.outer(params, params)
    errors = np.sqrt(np.diag(bread @ meat @ bread / N))
    np.testing.assert_allclose(limit.std_errors, errors, rtol=1e-5)
    probabilities = model.predict(params.reshape(3, 3).T, Z)
    np.testing.assert_allclose(limit.predict_proba(X), probabilities, atol=1e-6)
    assert np.mean(limit.predict(X) == np.array(LABELS)[probabilities.argmax(axis=1)]) > 0.999


def test_parameters_are_called_by_class_and_column(limit):
    assert limit.names == NAMES
    assert limit.coef.shape == (3, 2)
    np.testing.assert_array_equal(np.column_stack([limit.coef, limit.intercept]).ravel(), limit.params)
    scaled = dpci.multinomial.fit(X, Y, **LIMIT, rows=dpci.rows.Within(intercept=0.5))
    np.testing.assert_allclose(scaled.intercept, 0.5 * scaled.params.reshape(3, 3)[:, 2])
    without = dpci.multinomial.fit(
        pd.DataFrame(X, columns=["age", "pay"]), Y, **LIMIT, rows=dpci.rows.Within(intercept=False)
    )
    assert without.names[:2] == ("some:age", "some:pay")
    np.testing.assert_array_equal(without.intercept, 0.0)
    with pytest.raises(InvalidInput, match="columns"):
        without.predict(pd.DataFrame(X, columns=["pay", "age"]))


def test_another_order_of_classes_is_the_same_model_up_to_the_ridge():
    tiny = {**LIMIT, "l2_strength": 1e-6, "budget": dpci.ZCDP(rho=1e14)}
    first = dpci.multinomial.fit(X, Y, **tiny)
    other = dpci.multinomial.fit(X, Y, **{**tiny, "classes": LABELS[::-1]})
    np.testing.assert_allclose(first.predict_proba(X), other.predict_proba(X)[:, ::-1], atol=1e-3)


@pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")
def test_intervals_contrasts_and_tests(fitted):
    intervals = fitted.conf_int()
    assert intervals.names == NAMES
    assert (intervals.lower < fitted.params).all()
    wider = fitted.conf_int(level=0.99)
    assert (wider.length > intervals.length).all()
    difference = fitted.conf_int(contrast={"some:x0": 1, "all:x0": -1})
    at = [NAMES.index("some:x0"), NAMES.index("all:x0")]
    middle = 0.5 * (difference.lower + difference.upper)
    np.testing.assert_allclose(middle, fitted.params[at[0]] - fitted.params[at[1]], atol=1e-9)
    assert 0.0 <= fitted.wald_test(["some:x0", "all:x0"]).pvalue <= 1.0
    text = fitted.summary()
    assert "against 'none'" in text
    assert all(name in text for name in NAMES)
    assert "multinomial" in text
    assert "NOT PRIVATE" in text


def test_probabilities_add_to_one_far_out(limit):
    far = np.array([[1e6, -1e6], [-1e6, 0.0]])
    found = limit.predict_proba(far)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.isfinite(found).all()


def test_a_saved_fit_is_the_same(fitted):
    text = fitted.to_json()
    for again in (dpci.multinomial.MultinomialFit.from_json(text), pickle.loads(pickle.dumps(fitted))):
        assert again.to_json() == text
        assert again.classes == tuple(LABELS)
        np.testing.assert_array_equal(again.conf_int().lower, fitted.conf_int().lower)
        np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    with pytest.raises(InvalidInput, match="schema"):
        dpci.PrivateFit.from_json(text)


def test_no_other_result_reads_the_inner_fit(fitted):
    inner = json.dumps(json.loads(fitted.to_json())["fit"])
    with pytest.raises(InvalidInput, match=r"loss\.name"):
        dpci.PrivateFit.from_json(inner)


def test_damaged_files_are_refused(fitted):
    saved = json.loads(fitted.to_json())
    for damage in (
        {"classes": LABELS[:3]},
        {"classes": ["none", "some", "all", "other"]},
        {"classes": ["none", "none", "all", "more"]},
        {"fit": {}},
        {"other": 1},
    ):
        with pytest.raises(InvalidInput):
            dpci.multinomial.MultinomialFit.from_json(rewritten({**saved, **damage}))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"whole": plain_fields(Whole("disjoint_groups", 2, "replace_one", BUDGET))}, "part of another release"),
        ({"projection": "floor"}, "projection"),
        ({"projection": "cautious"}, "projection"),
        ("report", "steps must be those of a fit"),
    ],
)
def test_what_no_multinomial_fit_has_is_refused(fitted, change, match):
    """Parts of reports and of other releases are checked less: no model of several classes is one."""
    saved = json.loads(fitted.to_json())
    inner = saved["fit"]
    if change == "report":
        # The noise could then be anything: only the file of a report has all that it was calibrated to.
        first, last = inner["steps"][0], inner["steps"][1]
        inner.update(hessian=None, gradient_cov=None, moments="none", projection="none")
        inner["steps"] = [first, *({**last, "step": f"report_{name}", "cost": last["cost"] / 2, "hessian_scale": None}
                                   for name in ("gradient", "hessian"))]  # fmt: skip
        for seal, name in zip(inner["seals"], ("params", "gradient", "hessian"), strict=True):
            seal["release"] = name
    else:
        # A projected matrix is positive definite.
        inner.update(change, hessian=np.eye(9).tolist(), gradient_cov=np.eye(9).tolist())
    with pytest.raises(InvalidInput, match=match):
        dpci.multinomial.MultinomialFit.from_json(rewritten(saved))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"classes": LABELS[:2]}, "at least three"),
        ({"classes": "abc"}, "at least three"),
        ({"classes": [*LABELS, "none"]}, "twice"),
        ({"classes": [1, "1", 2]}, "twice"),
        ({"classes": [0, 1, 1.0]}, "twice"),
        ({"classes": [0, True, 1]}, "twice"),
        ({"classes": ["r", "a", "a:b"]}, "colon"),
        ({"classes": [1.0, np.nan, 2.0]}, "nan"),
        ({"classes": list(range(21))}, "from 3 to 20"),
        ({"classes": LABELS[:3]}, "y must hold only the classes"),
        ({"classes": [0, 1, 2, 3]}, "y must hold only the classes"),
        ({"l2_strength": 0.0}, "l2_strength"),
        ({"l2_strength": 1e-5, "mechanism": "objective"}, "l2_strength"),
        ({"mechanism": "moments"}, "mechanism"),
        ({"mechanism": dpci.ObjectivePerturbation(variant="cms11")}, "cms11"),
        ({"mechanism": dpci.ObjectivePerturbation(noise="shaped_laplace")}, "shaped"),
        ({"mechanism": dpci.OutputPerturbation(project=True)}, "radius"),
        ({"rows": 0.1}, "row"),
        ({"neighbors": "add_remove"}, "n_public"),
        ({"moments": "all"}, "moments"),
        ({"rows": "drop"}, "rows"),
    ],
)
def test_what_is_refused(change, match):
    ledger = dpci.Ledger(dpci.ZCDP(rho=1.0))
    asked = {"budget": BUDGET, "classes": LABELS, "l2_strength": STRENGTH, "ledger": ledger, **change}
    with pytest.raises((InvalidInput, ValueError), match=match):
        dpci.multinomial.fit(X, Y, **assembled(**asked))
    assert not ledger.history


def test_rows_and_labels_must_go_together():
    asked = {"budget": BUDGET, "classes": LABELS, "l2_strength": STRENGTH, "seed": 1}
    with pytest.raises(InvalidInput, match="one entry for each row"):
        dpci.multinomial.fit(X, Y[:-1], **asked)
    with pytest.raises(InvalidInput, match="index of y"):
        dpci.multinomial.fit(pd.DataFrame(X), pd.Series(Y, index=np.arange(N)[::-1]), **asked)
    missing = Y.astype(object)
    missing[3] = None
    with pytest.raises(InvalidInput, match="missing"):
        dpci.multinomial.fit(X, missing, **asked)


def test_a_fit_of_other_losses_names_no_multinomial_one():
    with pytest.raises(InvalidInput, match="loss must be one of"):
        dpci.fit(X, Y, budget=BUDGET, l2_strength=STRENGTH, loss="multinomial")


def test_a_ledger_pays_once():
    ledger = dpci.Ledger(dpci.ZCDP(rho=0.8))
    result = dpci.multinomial.fit(X, Y, budget=BUDGET, classes=LABELS, l2_strength=STRENGTH, ledger=ledger)
    assert result.private
    assert result.spent == BUDGET
    (entry,) = ledger.history
    assert entry.source == "dpci.multinomial.fit"
    with pytest.raises(BudgetExceeded):
        dpci.multinomial.fit(X, Y, budget=BUDGET, classes=LABELS, l2_strength=STRENGTH, ledger=ledger)


def test_private_errors_say_nothing():
    ledger = dpci.Ledger(dpci.ZCDP(rho=1.0), errors="private")
    asked = {"budget": BUDGET, "classes": LABELS[:3], "l2_strength": STRENGTH, "ledger": ledger}
    with pytest.raises(ReleaseFailed) as failed:
        dpci.multinomial.fit(X, Y, **asked, rows="clip")
    assert "more" not in str(failed.value)
    assert len(ledger.history) == 1


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("budget", [dpci.PureDP(1.0), dpci.ZCDP(0.5), dpci.ApproxDP(1.0, 1e-6)])
def test_every_budget_and_relation(budget, mechanism):
    asked = {"budget": budget, "classes": LABELS, "l2_strength": 0.1, "mechanism": mechanism, "seed": 3}
    for relation in ({}, {"neighbors": dpci.AddRemove(N)}):
        result = dpci.multinomial.fit(X, Y, **asked, **relation)
        assert result.spent == budget
        assert np.isfinite(result.conf_int().length).all()
        assert result.guarantee is not None
        step = result.privacy["steps"][0]
        # Two records of gradients up to sqrt(2) R, or one; R = sqrt(2).
        expected = (1.0 if relation else 2.0) * np.sqrt(2.0) * np.sqrt(2.0)
        expected /= 1.0 if mechanism == "objective" else N * 0.1
        assert expected <= step["sensitivity"] <= expected * (1.0 + 1e-9)


def test_a_warning_of_a_test_points_to_its_caller():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (3000, 2)), rng.choice(["a", "b", "c"], 3000)
    noisy = dpci.multinomial.fit(X, y, budget=dpci.PureDP(0.1), classes=["a", "b", "c"], l2_strength=0.1)
    assert noisy.privacy["mechanism"] == "objective"
    with pytest.warns(dpci.MomentNoiseWarning) as caught:
        noisy.wald_test(["b:x0", "b:x1"])
    assert [warning.filename for warning in caught] == [__file__]


def test_fits_that_are_not_refused_beforehand_do_not_fail():
    """A failure that depends on the data would be paid by no budget."""
    found = [attempt_several(seed) for seed in range(60)]
    assert [facts for outcome, facts in found if outcome == "failed"] == []
    assert sum(outcome == "fitted" for outcome, _ in found) > 20


NOTE = "They hold on average over the parameters."


def fitted_with_noise(budget, seed=1, **asked):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.6, 0.6, (8_000, 2))
    y = (np.column_stack([np.zeros(8_000), X @ [2.0, -1.0], X @ [-1.0, 1.0]]) + rng.gumbel(size=(8_000, 3))).argmax(
        axis=1
    )
    return dpci.multinomial.fit(X, y, classes=range(3), budget=budget, l2_strength=0.02, seed=seed, **asked)


def test_the_coverage_is_that_of_a_normal_error_with_a_greater_variance():
    fit = fit_of(fitted_with_noise(dpci.ZCDP(0.3), mechanism="output"))
    law = fit._error_law()
    spread, covered = law.spread, mean_coverage(law)
    assert 0.05 < spread < 1.0
    half = 0.5 * fit.conf_int().length
    expected = 2.0 * stats.norm.cdf(half / (fit.std_errors * np.sqrt(1.0 + spread))) - 1.0
    assert covered == pytest.approx(expected.mean(), abs=1e-6)
    # That much was made of the mixture of all ratios, whose intervals cover .95.
    assert covered < 0.95 < (2.0 * stats.norm.cdf(half / fit.std_errors) - 1.0).mean()


@pytest.mark.parametrize("budget", [dpci.PureDP(1.0), dpci.PureDP(4.0)])
def test_a_fit_whose_matrices_are_noisy_says_so(budget):
    result = fitted_with_noise(budget)
    covered = mean_coverage(fit_of(result)._error_law())
    assert covered < TRUSTED_COVERAGE
    (note,) = [note for note in result.privacy["interval_notes"] if NOTE in note]
    assert f"covers in {covered:.1%} of repetitions" in note
    for shown in (result.summary(full=True), result.to_html()):
        assert NOTE in " ".join(shown.split())


@pytest.mark.parametrize("budget", [dpci.ZCDP(1e8), dpci.PureDP(1e7)])
def test_a_fit_without_noise_says_nothing(budget):
    result = fitted_with_noise(budget)
    law = fit_of(result)._error_law()
    assert law.spread < 0.01
    assert mean_coverage(law) > 0.949
    assert not any(NOTE in note for note in result.privacy["interval_notes"])
    assert NOTE not in " ".join(result.summary().split())
