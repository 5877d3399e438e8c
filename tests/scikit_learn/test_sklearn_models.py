"""Estimators of other models than two classes: several classes, and regressors of a loss or of a moment matrix."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from scipy import optimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, PoissonRegressor, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpci
from dpci import regression
from dpci.errors import DpciWarning, InvalidInput, ReleaseFailed
from dpci.losses import Poisson, Quantile, Squared
from dpci.sklearn.classifiers import PrivateMultinomialRegression
from dpci.sklearn.linear import PrivateLinearRegression, PrivatePoissonRegressor, PrivateRegressor, PrivateRidge
from dpci.sklearn.transformers import RowNormClipper
from support.keywords import assembled
from support.sklearn_rows import CHECKED, WEIGHTED, D, N, make_rows, make_targets, warnings_of

X, _ = make_rows()
LABELS = np.array(["mid", "high", "low"])
TRUE = np.array([[0.0, 0.0, 0.0], [3.0, -1.0, 0.5], [-2.0, 2.0, 0.0]])
Y = LABELS[(X @ TRUE.T + np.random.default_rng(2).gumbel(size=(N, 3))).argmax(axis=1)]
CLASSES = ("mid", "low", "high")
ASKED = {"epsilon": 3.0, "l2_strength": 0.05, "classes": CLASSES}
TWO = "its rows have two classes, for which PrivateLogisticRegression is"
OTHERS = "its rows have other labels, or do not have every public class"
OF_TWO = (
    "check_estimators_dtypes", "check_estimators_nan_inf", "check_estimators_pickle", "check_classifiers_classes",
    "check_classifier_data_not_an_array", "check_classifiers_train", "check_decision_proba_consistency",
    "check_fit2d_1feature", "check_fit_idempotent", "check_fit_check_is_fitted", "check_n_features_in",
)  # fmt: skip
if sklearn.__version__.startswith("1.6."):
    OF_TWO = (*OF_TWO, "check_n_features_in_after_fitting")
OF_OTHERS = ("check_classifiers_classes", "check_classifiers_train", "check_decision_proba_consistency")

quiet = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")


OF_WEIGHTS = ("pandas_series", "not_an_array", "shape", "not_overwritten")


def expected_failures(estimator):
    if estimator.classes is not None:
        return WEIGHTED | dict.fromkeys(OF_OTHERS, OTHERS)
    return WEIGHTED | dict.fromkeys((*OF_TWO, *map("check_sample_weights_{}".format, OF_WEIGHTS)), TWO)


@quiet
@parametrize_with_checks(
    # What the rows of one half of the checks lack, those of the other have.
    [PrivateMultinomialRegression(**CHECKED), PrivateMultinomialRegression(**CHECKED, classes=(0, 1, 2, 3))],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@quiet
def test_the_limit_minimises_the_risk():
    model = PrivateMultinomialRegression(
        **assembled(**{**ASKED, "epsilon": 1e9}, moments="none", intercept_scale=0.7)
    ).fit(X, Y)
    rows = np.column_stack([X, np.full(N, 0.7)])
    codes = np.array([CLASSES.index(label) for label in Y])

    def risk(params):
        scores = np.column_stack([np.zeros(N), rows @ params.reshape(2, D + 1).T])
        loss = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(N), codes]
        return loss.mean() + 0.025 * params @ params

    best = optimize.minimize(risk, np.zeros(2 * (D + 1)), tol=1e-10).x.reshape(2, D + 1)
    # In the order of classes_: high, low, mid, of which mid is the reference.
    np.testing.assert_allclose(model.coef_, [best[1, :D], best[0, :D], np.zeros(D)], atol=1e-4)
    np.testing.assert_allclose(model.intercept_, [0.7 * best[1, D], 0.7 * best[0, D], 0.0], atol=1e-4)


def test_columns_stand_as_the_classes():
    model = PrivateMultinomialRegression(**ASKED).fit(X, Y)
    assert model.classes_.tolist() == sorted(CLASSES)
    assert model.result_.classes == CLASSES
    assert model.coef_.shape == (3, D)
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-12)
    weights = np.exp(scores)
    np.testing.assert_allclose(model.predict_proba(X), weights / weights.sum(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), model.result_.predict_proba(X)[:, [2, 1, 0]], atol=1e-12)
    assert (model.predict(X) == model.result_.predict(X)).all()
    assert log_loss(Y, model.predict_proba(X), labels=model.classes_) < np.log(3)
    sparse = model.decision_function(scipy.sparse.csr_matrix(X))
    np.testing.assert_allclose(sparse, scores, atol=1e-12)
    with pytest.warns(DpciWarning, match="score"):
        assert model.score(X, Y) == np.mean(model.predict(X) == Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@quiet
def test_a_fit_is_that_of_the_library():
    ledger = dpci.Ledger(dpci.PureDP(5.0))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    asked = {**ASKED, "row_norm": 0.5, "seed": 4}
    model = make_pipeline(RowNormClipper(0.5).set_output(transform="pandas"), PrivateMultinomialRegression(**asked))
    found = model.fit(frame, Y)[-1].result_
    expected = dpci.multinomial.fit(
        frame, Y, budget=dpci.PureDP(3.0), classes=CLASSES, l2_strength=0.05, rows=dpci.rows.Clipped(0.5), seed=4
    )
    np.testing.assert_allclose(found.params, expected.params, atol=1e-9)
    assert found.names == expected.names
    assert model[-1].conf_int(level=0.9).names[:2] == ("low:a", "low:b")
    paying = clone(model[-1]).set_params(ledger=ledger, seed=None)
    paying.fit(frame, Y)
    (entry,) = ledger.history
    assert entry.source == "dpci.sklearn.PrivateMultinomialRegression"


@pytest.mark.parametrize("seed", [None, 1])
def test_inferred_classes_are_told(seed):
    asked = {"epsilon": 3.0, "l2_strength": 0.05, "seed": seed}
    model, caught = warnings_of(lambda: PrivateMultinomialRegression(**asked).fit(X, Y))
    told = [str(one.message) for one in caught if issubclass(one.category, dpci.PrivacyLeakWarning)]
    assert [one[:32] for one in told] == ["the classes were inferred from y"] * (seed is None)
    assert {one.filename for one in caught} == {__file__}
    assert model.result_.classes == ("high", "low", "mid")
    assert model.result_.privacy["classes_inferred"]
    assert "the classes were inferred from y" in model.result_.to_html()
    again = dpci.multinomial.MultinomialFit.from_json(model.result_.to_json())
    assert again.privacy["classes_inferred"]
    if seed is None:
        assert "unless the class labels are public" in again.officer_report()
    given, _ = warnings_of(lambda: PrivateMultinomialRegression(**asked, classes=CLASSES).fit(X, Y))
    assert not given.result_.privacy["classes_inferred"]


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_the_default_strength_is_that_of_public_values(mechanism):
    asked = {"epsilon": 1.0, "classes": CLASSES, "moments": "none", "mechanism": mechanism}
    first, second = (
        PrivateMultinomialRegression(**assembled(**asked)).fit(X[order], Y[order])
        for order in (slice(None), slice(None, None, -1))
    )
    assert first.result_.l2_strength == second.result_.l2_strength > 0.0
    # The noise in a coordinate of the gradient, of 8: 2 sqrt(2) R / n times sqrt(9), with R = sqrt(2).
    expected = 2.0 * np.sqrt(2.0) * np.sqrt(2.0) / N * np.sqrt(9.0)
    # Objective perturbation pays for the Jacobian too, at this strength less than a tenth of epsilon.
    np.testing.assert_allclose(first.result_.l2_strength, expected, rtol=1e-2 if mechanism == "output" else 0.1)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"classes": ("a", "b")}, "at least three"),
        ({"classes": ("a", "b", 3)}, "one type"),
        ({"classes": ("low", "mid", "none")}, "y must hold only the classes"),
        ({"epsilon": None}, "epsilon must be given"),
        ({"l2_strength": 0.0}, "l2_strength"),
        ({"neighbors": "add_remove"}, "n_public"),
        ({"on_violation": "error", "row_norm": 0.1}, "row"),
        ({"budget": 1.0}, "budget"),
    ],
)
def test_what_is_refused(change, match):
    ledger = dpci.Ledger(dpci.PureDP(10.0))
    with pytest.raises((InvalidInput, ValueError, TypeError), match=match):
        PrivateMultinomialRegression(**{**ASKED, "ledger": ledger, **change}).fit(X, Y)
    assert not ledger.history


@quiet
def test_labels_are_refused_before_anything_is_spent():
    ledger = dpci.Ledger(dpci.PureDP(10.0))
    missing = Y.astype(object)
    missing[3] = None
    for labels, match in (
        (np.where(Y == "mid", "low", Y), "two classes"),
        (np.full(N, "low"), "one class"),
        (missing, "missing"),
        (X[:, 0], "Unknown label type"),
        (np.arange(N) % 30, "from 3 to 20"),
        (np.where(Y == "mid", "a:b", Y), "colon"),
    ):
        with pytest.raises(ValueError, match=match):
            PrivateMultinomialRegression(epsilon=1.0, ledger=ledger).fit(X, labels)
    assert not ledger.history


def test_private_errors_need_classes_and_say_nothing():
    ledger = dpci.Ledger(dpci.PureDP(10.0), errors="private")
    with pytest.raises(InvalidInput, match="classes must be given"):
        PrivateMultinomialRegression(epsilon=1.0, l2_strength=0.05, ledger=ledger).fit(X, Y)
    assert not ledger.history
    asked = {**ASKED, "ledger": ledger, "classes": ("low", "mid", "none")}
    with pytest.raises(ReleaseFailed):
        PrivateMultinomialRegression(**asked).fit(X, Y)
    assert len(ledger.history) == 1


def test_a_refused_fit_changes_nothing():
    model = PrivateMultinomialRegression(**ASKED).fit(X, Y)
    before = model.coef_
    with pytest.raises(ValueError, match="only the classes"):
        model.fit(X[:, :2], np.full(N, "other"))
    assert model.coef_ is before
    assert model.n_features_in_ == D


def test_tags_and_the_warning_of_model_selection():
    tags = get_tags(PrivateMultinomialRegression())
    assert tags.non_deterministic
    assert tags.classifier_tags.poor_score
    assert tags.classifier_tags.multi_class
    _, caught = warnings_of(lambda: cross_val_score(PrivateMultinomialRegression(**ASKED), X, Y, cv=2))
    assert any("model selection" in str(warning.message) for warning in caught)


@quiet
def test_weights_and_persons_are_those_of_the_library():
    weights, whose = np.random.default_rng(5).uniform(0.0, 2.0, N), np.arange(N) // 2
    public = {"weights": dpci.Weights(bound=2.0, total=1.5 * N)}
    model = PrivateMultinomialRegression(**ASKED, seed=3, **public)
    common = {"budget": dpci.PureDP(3.0), "l2_strength": 0.05, "classes": CLASSES, "rows": "clip", "seed": 3}
    weighing = dpci.Weights(weights, bound=2.0, total=1.5 * N)
    for rule in (None, dpci.Persons(), dpci.Persons(max_rows=1)):
        found = clone(model).set_params(persons=rule).fit(X, Y, weights, persons=None if rule is None else whose)
        persons = None if rule is None else dpci.Persons(whose, max_rows=rule.max_rows)
        fit = dpci.multinomial.fit(X, Y, weights=weighing, persons=persons, **common)
        assert found.result_.to_json() == fit.to_json()
    alone = PrivateMultinomialRegression(**ASKED, seed=3, persons=dpci.Persons(max_rows=2))
    fit = dpci.multinomial.fit(X, Y, persons=dpci.Persons(whose, max_rows=2), **common)
    assert alone.fit(X, Y, persons=whose).result_.to_json() == fit.to_json()
    with pytest.raises(InvalidInput, match="max_rows"):
        alone.fit(X, Y)
    # Without weights the public values are not used.
    assert model.fit(X, Y).result_.to_json() == dpci.multinomial.fit(X, Y, **common).to_json()
    for estimator, weighed, message in (
        (PrivateMultinomialRegression(**ASKED), weights, "must not depend on the data"),
        (
            PrivateMultinomialRegression(**ASKED, weights=dpci.Weights(bound=2.0), on_violation="error"),
            2.0 * weights,
            "weights",
        ),
        (PrivateMultinomialRegression(**ASKED, weights=dpci.Weights(bound=2.0)), -weights, "weights"),
    ):
        with pytest.raises(InvalidInput, match=message):
            estimator.fit(X, Y, weighed)
    with sklearn.config_context(enable_metadata_routing=True):
        last = clone(model).set_fit_request(sample_weight=True)
        pipe = make_pipeline(RowNormClipper(), last).fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(pipe[-1].coef_, model.fit(X, Y, weights).coef_)


WITH_ONES = np.column_stack([X, np.ones(len(X))])


def test_poisson_regression_tends_to_that_of_scikit_learn():
    counts = np.random.default_rng(4).poisson(np.exp(X[:, 0] + 0.2))
    model = PrivatePoissonRegressor(
        epsilon=1e9, mechanism=dpci.ObjectivePerturbation(moments="none"), radius=2.0, l2_strength=0.02
    ).fit(X, counts)
    theirs = PoissonRegressor(alpha=0.02, fit_intercept=False, tol=1e-10, max_iter=1000).fit(WITH_ONES, counts)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(model.predict(X), theirs.predict(WITH_ONES), rtol=1e-4)
    with pytest.warns(dpci.DpciWarning, match="score"):
        score = model.score(X, counts)
    assert abs(score - theirs.score(WITH_ONES, counts)) < 1e-4


HUGE = {"epsilon": 1e9, "moments": "none", "l2_strength": 0.02}


def test_a_loss_of_counts_predicts_means():
    counts = np.random.default_rng(4).poisson(np.exp(X[:, 0] + 0.2))
    named = PrivatePoissonRegressor(seed=3, l2_strength=0.1, count_bound=5.0).fit(X, counts)
    model = PrivateRegressor(
        seed=3, l2_strength=0.1, loss=Poisson(count_bound=5.0), mechanism=dpci.ObjectivePerturbation(radius=1.0)
    ).fit(X, counts)
    assert model.result_.to_json() == named.result_.to_json()
    scores = []
    for fitted in (model, named, model.set_params(loss="huber")):  # what is fitted counts, not what comes next
        np.testing.assert_array_equal(fitted.predict(X), named.result_.predict(X))
        with pytest.warns(dpci.DpciWarning, match="score"):
            scores.append(fitted.score(X, counts))
    assert scores[0] == scores[1] == scores[2]


def test_quantiles_are_those_of_the_targets():
    targets = make_targets(X)
    below = [
        (
            targets
            <= PrivateRegressor(**assembled(**HUGE | {"l2_strength": 1e-4}, loss=loss)).fit(X, targets).predict(X)
        ).mean()
        for loss in (Quantile(quantile=0.2, s=0.01), Quantile(quantile=0.8, s=0.01))
    ]
    np.testing.assert_allclose(below, [0.2, 0.8], atol=0.05)


def test_the_loss_is_checked_by_fit_and_says_which_targets_there_are():
    for loss in ("logistic", dpci.losses.HuberHinge()):
        with pytest.raises(dpci.InvalidInput, match="loss must be that of a real target or of a count"):
            PrivateRegressor(loss=loss).fit("no table", None)
    with pytest.raises(dpci.InvalidInput, match="loss must be one of"):
        PrivateRegressor(loss="absolute").fit("no table", None)
    assert [get_tags(PrivateRegressor(loss=loss)).target_tags.positive_only for loss in (Squared(), "poisson")] == [
        False,
        True,
    ]


T = make_targets(X)
KNOWN = {"bounds": (-0.5, 0.5), "target_bound": (-1.0, 1.0)}
HUGE_BUDGET = 1e12


def test_a_huge_budget_gives_the_coefficients_of_scikit_learn():
    model, theirs = PrivateLinearRegression(epsilon=HUGE_BUDGET, **KNOWN).fit(X, T), LinearRegression().fit(X, T)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), atol=1e-6)
    without = PrivateLinearRegression(epsilon=HUGE_BUDGET, fit_intercept=False, **KNOWN).fit(X, T)
    expected = LinearRegression(fit_intercept=False).fit(X, T).coef_
    np.testing.assert_allclose(without.coef_, expected, atol=1e-6)
    assert without.intercept_ == 0.0
    ones = np.column_stack([X, np.ones(N)])
    ridge = PrivateRidge(epsilon=HUGE_BUDGET, l2_strength=0.02).fit(X, T)
    theirs = Ridge(alpha=N * 0.02 / 2, fit_intercept=False).fit(ones, T)
    np.testing.assert_allclose(np.append(ridge.coef_, ridge.intercept_), theirs.coef_, atol=1e-6)


def test_the_result_is_that_of_a_release():
    given = {"robust": True, "neighbors": "add_remove", "n_public": N, "seed": 3, **KNOWN}
    model, caught = warnings_of(lambda: PrivateLinearRegression(epsilon=None, rho=0.5, **given).fit(X, T))
    assert [warning.category for warning in caught] == [dpci.SeededNoiseWarning]
    assert caught[0].filename == __file__
    given["neighbors"] = dpci.AddRemove(given.pop("n_public"))
    with pytest.warns(dpci.SeededNoiseWarning):
        direct = regression.release(X, T, budget=dpci.ZCDP(0.5), rows="clip", **given)
    assert model.result_.to_json() == direct.fit(covariance="robust").to_json()
    np.testing.assert_array_equal(model.conf_int(level=0.8), model.result_.conf_int(level=0.8))
    assert regression.MomentMatrix.of(model.result_).to_json() == direct.to_json()
    with pytest.warns(dpci.SeededNoiseWarning):
        ridge = PrivateRidge(l2_strength=0.1, target_bound=2.0, seed=5).fit(X, T)
    with pytest.warns(dpci.SeededNoiseWarning):
        same = dpci.fit(
            X, T, loss=dpci.losses.Squared(2.0), budget=dpci.PureDP(1.0), l2_strength=0.1, rows="clip", seed=5
        )
    assert ridge.result_.to_json() == same.to_json()


def test_moments_take_budgets_of_gaussian_dp():
    assert PrivateLinearRegression(epsilon=None, mu=0.5, **KNOWN).fit(X, T).result_.budget == dpci.GDP(0.5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"mu": 0.5}, r"epsilon, delta and rho must be None if mu is given, got epsilon=1.0"),
        ({"row_norm": 1.0}, r"rows must be None, or 'clip', with bounds"),
        ({"bounds": 3}, r"bounds must be a pair"),
        ({"target_bound": (1, 0)}, r"target_bound must be finite and increasing"),
        ({"robust": True, "fit_intercept": False}, r"robust must be False without an intercept"),
        ({"fit_intercept": "no"}, r"fit_intercept must be"),
        ({"n_public": 5}, r"n_public must be None"),
        ({"ledger": "no"}, r"ledger must be a dpci.Ledger or None"),
    ],
    ids=str,
)
def test_parameters_are_checked_before_the_data(params, message):
    model = PrivateLinearRegression(**{**KNOWN, **params})
    with pytest.raises(dpci.InvalidInput, match=message):
        model.fit("no table", None)
    with pytest.raises(NotFittedError):
        model.conf_int()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"intercept_scale": 0.5}, "intercept must be True or False with"),
        ({"l2_strength": -1.0}, "l2_strength must be"),
    ],
    ids=str,
)
def test_a_ridge_refuses_what_its_mechanism_does_not_use(params, message):
    with pytest.raises(dpci.InvalidInput, match=message):
        PrivateRidge(**params).fit("no table", None)


def test_perturbation_needs_a_radius():
    with pytest.raises(dpci.InvalidInput, match="radius"):
        PrivateRidge(mechanism="objective", l2_strength=0.1).fit(X, T)


def test_hidden_regressions_become_ridges_with_a_warning():
    ledger = dpci.Ledger(dpci.PureDP(0.01))
    model, caught = warnings_of(lambda: PrivateLinearRegression(epsilon=0.01, ledger=ledger, **KNOWN).fit(X, T))
    (warning,) = caught
    assert warning.category is dpci.MomentNoiseWarning
    assert warning.filename == __file__
    assert "l2_strength='private'" in str(warning.message)
    assert model.result_.l2_rule == "private"
    assert model.result_.l2_strength > 0
    assert np.isfinite(model.predict(X)).all()
    assert ledger.history[0].source == "dpci.sklearn.PrivateLinearRegression"
    with pytest.raises(dpci.BudgetExceeded):
        clone(model).fit(X, T)


def test_too_few_records_cost_nothing():
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    with pytest.raises(dpci.InvalidInput, match="more records than coefficients, got n_samples=4"):
        PrivateLinearRegression(ledger=ledger, **KNOWN).fit(X[:4], T[:4])
    assert ledger.history == ()
    # A ridge may have more coefficients than records.
    assert np.isfinite(warnings_of(lambda: PrivateRidge().fit(X[:2], T[:2]))[0].coef_).all()


def test_pipelines_frames_pickles_and_sparse_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["age", "dose", "time"])
    pipe = make_pipeline(FunctionTransformer(feature_names_out="one-to-one"), PrivateLinearRegression(**KNOWN))
    model = clone(pipe).fit(frame, T)
    assert model[-1].conf_int().names == ("age", "dose", "time", "intercept")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame))
    with pytest.raises(dpci.InvalidInput, match="X must be dense"):
        PrivateLinearRegression(**KNOWN).fit(scipy.sparse.csr_array(X), T)
    sparse = PrivateLinearRegression(epsilon=HUGE_BUDGET).fit(scipy.sparse.csr_array(X), T)
    dense = PrivateLinearRegression(epsilon=HUGE_BUDGET).fit(X, T)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_allclose(sparse.predict(scipy.sparse.csr_array(X)), sparse.predict(X), atol=1e-12)


def test_an_estimator_has_one_target():
    ledger = dpci.Ledger(dpci.PureDP(2.0))
    several = np.column_stack([T, T])
    for bound in ((-1.0, 1.0), [(-1.0, 1.0), (-1.0, 1.0)]):
        model = PrivateLinearRegression(epsilon=1.0, bounds=(-0.5, 0.5), target_bound=bound, ledger=ledger)
        with pytest.raises((dpci.InvalidInput, ValueError), match=r"target_bound must|1d array|one-dimensional"):
            model.fit(X, several)
    assert ledger.spent["epsilon"] == 0.0
