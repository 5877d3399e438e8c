"""The classifier of several classes: scikit-learn's own checks, the order of classes, and what is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from scipy import optimize
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpci
from dpci.errors import DpciWarning, InvalidInput, ReleaseFailed
from dpci.sklearn.classifiers import PrivateMultinomialRegression
from dpci.sklearn.transformers import RowNormClipper
from support.keywords import assembled
from support.sklearn_rows import D, N, make_rows, warnings_of

X, _ = make_rows()
LABELS = np.array(["mid", "high", "low"])
TRUE = np.array([[0.0, 0.0, 0.0], [3.0, -1.0, 0.5], [-2.0, 2.0, 0.0]])
Y = LABELS[(X @ TRUE.T + np.random.default_rng(2).gumbel(size=(N, 3))).argmax(axis=1)]
CLASSES = ("mid", "low", "high")
ASKED = {"epsilon": 3.0, "l2_strength": 0.05, "classes": CLASSES}
TWO = "its rows have two classes, for which PrivateLogisticRegression is"
OTHERS = "its rows have other labels, or do not have every public class"
CHECKED = {"epsilon": 1e5, "weights": dpci.Weights(bound=3.0), "seed": 1}  # some checks compare two fits
OF_TWO = (
    "check_estimators_dtypes", "check_estimators_nan_inf", "check_estimators_pickle", "check_classifiers_classes",
    "check_classifier_data_not_an_array", "check_classifiers_train", "check_decision_proba_consistency",
    "check_fit2d_1feature", "check_fit_idempotent", "check_fit_check_is_fitted", "check_n_features_in",
)  # fmt: skip
if sklearn.__version__.startswith("1.6."):
    OF_TWO = (*OF_TWO, "check_n_features_in_after_fitting")
OF_OTHERS = ("check_classifiers_classes", "check_classifiers_train", "check_decision_proba_consistency")

quiet = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")


WEIGHTED = {
    "check_sample_weight_equivalence_on_dense_data": "its noise is that of one record",
    "check_sample_weight_equivalence_on_sparse_data": "its noise is that of one record",
    "check_all_zero_sample_weights_error": "which weights are 0 is private",
}
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


@quiet
def test_persons_are_those_of_the_library():
    whose = np.arange(N) // 3
    for max_rows in (None, 2):
        rule = dpci.Persons(max_rows=max_rows)
        found = PrivateMultinomialRegression(**ASKED, persons=rule, seed=4).fit(X, Y, persons=whose).result_
        expected = dpci.multinomial.fit(
            X, Y, budget=dpci.PureDP(3.0), classes=CLASSES, l2_strength=0.05, rows="clip", seed=4,
            persons=dpci.Persons(whose, max_rows=max_rows),
        )  # fmt: skip
        np.testing.assert_array_equal(found.params, expected.params)
        assert found.n_samples == len(np.unique(whose))
    with pytest.raises(InvalidInput, match="max_rows"):
        PrivateMultinomialRegression(**ASKED, persons=dpci.Persons(max_rows=2)).fit(X, Y)


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
